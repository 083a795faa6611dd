//! Foreign keys.

use super::object::Oid;
use serde::{Deserialize, Serialize};

/// What happens to the rows that refer to a row when that goes or changes its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferentialAction {
    /// Error, checked at the end of the statement.
    NoAction,
    /// Error at once.
    Restrict,
    /// They go, or follow.
    Cascade,
    /// They become null.
    SetNull,
    /// They get their defaults.
    SetDefault,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Its number.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Columns of the referring table.
    pub columns: Vec<usize>,
    /// The table referred to.
    pub references: Oid,
    /// Its columns, in the same order.
    pub referenced: Vec<usize>,
    /// On DELETE of the row referred to.
    pub on_delete: ReferentialAction,
    /// The columns that ON DELETE SET NULL or SET DEFAULT sets; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete_columns: Vec<usize>,
    /// On UPDATE of its key.
    pub on_update: ReferentialAction,
    /// False between ADD ... NOT VALID and VALIDATE.
    pub validated: bool,
    /// DEFERRABLE: it may be checked at the end of the transaction.
    #[serde(default)]
    pub deferrable: bool,
    /// INITIALLY DEFERRED: it is checked then if nothing else is said.
    #[serde(default)]
    pub deferred: bool,
    /// MATCH FULL: all referring columns are null, or none.
    #[serde(default)]
    pub full: bool,
}
