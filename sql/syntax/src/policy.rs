//! The syntax tree of statements about policies.

use super::ast::{Expr, QualName};
use super::ddl::RoleSpec;

/// A condition with its text, for the catalog.
pub type Condition = (Expr, String);

/// CREATE, ALTER and DROP POLICY.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyStatement {
    /// CREATE POLICY.
    Create(CreatePolicy),
    /// ALTER POLICY; what is not said stays.
    Alter {
        /// Its name.
        name: String,
        /// Its table.
        table: QualName,
        /// TO.
        roles: Option<Vec<RoleSpec>>,
        /// USING.
        using: Option<Condition>,
        /// WITH CHECK.
        check: Option<Condition>,
    },
    /// ALTER POLICY ... RENAME TO.
    Rename {
        /// Its name.
        name: String,
        /// Its table.
        table: QualName,
        /// Its new name.
        to: String,
    },
    /// DROP POLICY.
    Drop {
        /// Its name.
        name: String,
        /// Its table.
        table: QualName,
        /// IF EXISTS.
        if_exists: bool,
    },
}

/// CREATE POLICY.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatePolicy {
    /// Its name.
    pub name: String,
    /// Its table.
    pub table: QualName,
    /// AS RESTRICTIVE.
    pub restrictive: bool,
    /// FOR: `r`, `a`, `w`, `d`, or `*`.
    pub command: char,
    /// TO; `public` if nothing is said.
    pub roles: Vec<RoleSpec>,
    /// USING.
    pub using: Option<Condition>,
    /// WITH CHECK.
    pub check: Option<Condition>,
}
