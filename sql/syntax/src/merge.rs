//! The syntax tree of MERGE.

use super::ast::{Expr, FromItem, TableRef, With};
use super::stmt::{Assignment, Insert};

/// MERGE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Merge {
    pub with: Option<With>,
    pub table: TableRef,
    /// What stands behind USING.
    pub source: FromItem,
    pub on: Expr,
    /// The WHEN clauses, in the order of the text.
    pub clauses: Vec<MergeClause>,
}

/// A WHEN clause.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct MergeClause {
    /// WHEN MATCHED; else WHEN NOT MATCHED.
    pub matched: bool,
    /// What follows AND.
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

/// What a WHEN clause does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum MergeAction {
    Nothing,
    Update(Vec<Assignment>),
    Delete,
    /// The row of VALUES; none: DEFAULT VALUES. The source of the INSERT is empty.
    Insert(Box<Insert>, Option<Vec<Expr>>),
}
