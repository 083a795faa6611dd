//! Row-level security of a table: whether it is in force, and the policies that say which rows a role may see and write.

use super::object::{Oid, ViewMeaning};
use serde::{Deserialize, Serialize};

/// What a table says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSecurity {
    /// It is in force for every role but the table's owner.
    pub enabled: bool,
    /// It is in force for the owner, too.
    pub forced: bool,
    /// The policies, by name.
    pub policies: Vec<Policy>,
}

impl RowSecurity {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == RowSecurity::default()
    }
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Its number.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// Rows must meet it beside the others; else one of those that are permissive is enough.
    pub restrictive: bool,
    /// `r`, `a`, `w`, `d` for SELECT, INSERT, UPDATE, DELETE, `*` for all of them.
    pub command: char,
    /// The roles for which it is in force; 0: every role.
    pub roles: Vec<Oid>,
    /// The rows that may be seen and changed.
    pub using: Option<PolicyCondition>,
    /// The rows that may be written; none: those of `using`.
    pub check: Option<PolicyCondition>,
}

/// A condition of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyCondition {
    /// Its text.
    pub text: String,
    /// The table's name when the text was written: columns may be named with it.
    pub table: String,
    /// What the names of other tables in it stood for.
    pub meaning: ViewMeaning,
}

impl Policy {
    /// Its conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &PolicyCondition> {
        self.using.iter().chain(&self.check)
    }

    /// The same to be changed.
    pub fn conditions_mut(&mut self) -> impl Iterator<Item = &mut PolicyCondition> {
        self.using.iter_mut().chain(&mut self.check)
    }
}
