//! Which types have an order, and an equality that DISTINCT, GROUP BY and keys go by: those for which PostgreSQL has an operator class of btree.
//!
//! The operators `<` and `=` of box, lseg, path and circle compare areas, lengths or numbers of points, and belong to no class.

use super::{Oid, SqlType, element_of, format_type, geometry, oid, user};
use crate::error::{Pos, Result, SqlError, code};

/// Whether values of a type have an order: an array has that of its elements, a row that of its fields.
pub fn is_ordered(ty: Oid) -> bool {
    let ty = user::base(ty.into()).oid;
    if let Some(element) = element_of(ty) {
        return is_ordered(element);
    }
    if let Some(shape) = user::shape(ty) {
        return shape.types.iter().all(|field| is_ordered(field.oid));
    }
    !geometry::is_one(ty)
        && !matches!(ty, oid::JSON | oid::JSONPATH | oid::REFCURSOR | oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT)
}

/// A type that is to have an order.
///
/// # Errors
/// 42883.
pub fn need_order(ty: SqlType, pos: Pos) -> Result<()> {
    if is_ordered(ty.oid) {
        return Ok(());
    }
    let message = format!("could not identify an ordering operator for type {}", format_type(SqlType::new(ty.oid)));
    Err(SqlError::new(code::UNDEFINED_FUNCTION, message)
        .hint("Use an explicit ordering operator or modify the query.")
        .at(pos))
}

/// 42883, for a type without an equality.
pub fn no_equality(ty: Oid) -> SqlError {
    let message = format!("could not identify an equality operator for type {}", format_type(ty.into()));
    SqlError::new(code::UNDEFINED_FUNCTION, message)
}

/// A type that is to have an equality.
///
/// # Errors
/// 42883.
pub fn need_equality(ty: SqlType, pos: Pos) -> Result<()> {
    if is_ordered(ty.oid) {
        return Ok(());
    }
    Err(no_equality(ty.oid).at(pos))
}

/// The refusal of a key of a type: 0A000 for one with an order, otherwise PostgreSQL's 42704, which tells no position.
pub fn not_a_key(ty: Oid, pos: Option<Pos>) -> SqlError {
    let shown = format_type(ty.into());
    if is_ordered(ty) {
        let error = SqlError::unsupported(format!("a key of type {shown}"));
        return match pos {
            Some(pos) => error.at(pos),
            None => error,
        };
    }
    let message = format!("data type {shown} has no default operator class for access method \"btree\"");
    let hint = "You must specify an operator class for the index or define a default operator class for the data type.";
    SqlError::new(code::UNDEFINED_OBJECT, message).hint(hint)
}
