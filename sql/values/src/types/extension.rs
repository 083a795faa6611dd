//! The types that extensions bring.
//!
//! # Invariants
//! - EXN-1: their numbers are fixed, the same in every database and directory: from [`FIRST_OID`] on and below the first number that an object of a
//!   user gets. PostgreSQL gives a new number at each CREATE EXTENSION, so no client knows them: drivers ask the catalog for every number above
//!   their tables of built-in types. With fixed numbers the tables of functions, operators and casts name these types as they name any other.
//! - EXN-2: a type is there where its extension is: a name, a function, an operator or a cast that leads to it is found in no other database.

use super::{Oid, TypeFacts, oid, user};

/// The number of the first of them.
pub const FIRST_OID: Oid = 16_000;
/// What follows them: the first number of a user's object.
const END: Oid = 16_384;

/// A type of an extension.
#[derive(Debug)]
pub struct ExtensionType {
    /// The extension.
    pub extension: &'static str,
    /// The type; its name for SQL depends on the search path.
    pub facts: TypeFacts,
}

const fn of(extension: &'static str, name: &'static str, category: u8, number: Oid) -> ExtensionType {
    let facts = TypeFacts {
        oid: number,
        name,
        len: -1,
        category,
        preferred: false,
        array: number + 1,
        element: 0,
        sql_name: name,
    };
    ExtensionType { extension, facts }
}

/// All of them; the type of a type's arrays has the next number.
pub static TYPES: &[ExtensionType] =
    &[of("citext", "citext", b'S', oid::CITEXT), of("hstore", "hstore", b'U', oid::HSTORE)];

/// The extension that a type, or the type of its arrays, comes from.
pub fn of_type(ty: Oid) -> Option<&'static str> {
    TYPES.iter().find(|own| own.facts.oid == ty || own.facts.array == ty).map(|own| own.extension)
}

/// The facts of a type, whether its extension is there or not.
pub fn facts(ty: Oid) -> Option<&'static TypeFacts> {
    TYPES.iter().find(|own| own.facts.oid == ty).map(|own| &own.facts)
}

/// Whether a number is that of a type of an extension.
pub fn is_one(ty: Oid) -> bool {
    (FIRST_OID..END).contains(&ty)
}

/// Whether a function or operator of this signature is there: not where it needs a type of an extension that the database lacks (EXN-2).
pub fn is_there(args: &[Oid], result: Oid) -> bool {
    args.iter().chain([&result]).all(|ty| !is_one(*ty) || user::facts(*ty).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// EXN-1
    #[test]
    fn numbers_are_apart_from_those_of_other_types() {
        let mut seen = Vec::new();
        for ty in TYPES {
            seen.extend([ty.facts.oid, ty.facts.array]);
        }
        seen.sort_unstable();
        let count = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), count);
        assert!(seen.iter().all(|ty| is_one(*ty)) && super::super::TYPES.iter().all(|ty| !is_one(ty.oid)));
    }

    /// EXN-2
    #[test]
    fn what_needs_a_type_is_not_there_without_its_extension() {
        assert!(is_there(&[oid::TEXT, oid::TEXT], oid::BOOL));
        assert!(!is_there(&[oid::TEXT, oid::TEXT], oid::HSTORE) && !is_there(&[oid::CITEXT], oid::BOOL));
    }
}
