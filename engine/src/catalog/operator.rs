//! Operators that users define.

use super::object::Oid;
use serde::{Deserialize, Serialize};

/// An operator. One that other operators name as their commutator or negator, and that no statement has defined yet, is a shell: it
/// has no function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// Its number.
    pub oid: Oid,
    /// Its database.
    pub database: Oid,
    /// Its schema.
    pub schema: Oid,
    /// Its name, which other operators between other types may have, too.
    pub name: String,
    /// Its owner.
    pub owner: Oid,
    /// The type on its left; 0: it stands before its operand.
    pub left: Oid,
    /// The type on its right.
    pub right: Oid,
    /// The type of its result; 0 of a shell.
    #[serde(default)]
    pub result: Oid,
    /// The function that computes it, which may be one of the system's; 0 of a shell.
    #[serde(default)]
    pub function: Oid,
    /// The operator with the sides exchanged; 0: none is known.
    #[serde(default)]
    pub commutator: Oid,
    /// The operator that gives the opposite; 0: none is known.
    #[serde(default)]
    pub negator: Oid,
    /// The function that estimates how many rows it holds for; 0: none.
    #[serde(default)]
    pub restrict: Oid,
    /// The same for a join.
    #[serde(default)]
    pub join: Oid,
    /// HASHES.
    #[serde(default)]
    pub hashes: bool,
    /// MERGES.
    #[serde(default)]
    pub merges: bool,
}

impl Operator {
    /// Its name and the types of its operands: what no other operator of the schema has.
    pub fn signature(&self) -> String {
        format!("{}\0{},{}", self.name, self.left, self.right)
    }

    /// Whether it is only named by other operators, and not defined.
    pub fn is_shell(&self) -> bool {
        self.function == 0
    }

    /// Whether a function computes it, or estimates for it.
    pub fn calls(&self, function: Oid) -> bool {
        [self.function, self.restrict, self.join].contains(&function)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Catalog, Object, decode_object, encode_object};
    use super::*;
    use std::sync::Arc;

    #[test]
    fn operators_of_a_name_differ_by_their_operands() {
        let text = r#"{"oid":20000,"database":2,"schema":3,"name":"+","owner":4,"left":23,"right":25}"#;
        let shell: Operator = serde_json::from_str(text).expect("fields that are left out have defaults");
        assert!(shell.is_shell() && shell.signature() == "+\x0023,25");
        let prefix = Operator { oid: 20001, left: 0, function: 500, ..shell.clone() };
        let stored = encode_object(&Object::Operator(prefix.clone())).expect("it is stored");
        let read = decode_object(&stored).expect("it is read");
        let mut catalog = Catalog::default();
        catalog.put(Arc::new(Object::Operator(shell))).expect("the name is free");
        catalog.put(Arc::new(read)).expect("the operands differ");
        assert!(catalog.has_operators() && catalog.operator(20001) == Some(&prefix));
        assert_eq!(catalog.operators_in(3, "+").map(|o| o.oid).collect::<Vec<_>>(), [20001, 20000]);
        assert!(catalog.operators_in(3, "++").next().is_none());
        assert!(catalog.put(Arc::new(Object::Operator(Operator { oid: 20002, ..prefix }))).is_err());
        catalog.remove(20000);
        catalog.remove(20001);
        assert!(!catalog.has_operators());
    }
}
