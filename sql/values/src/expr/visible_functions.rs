//! Whether the name of an object alone leads to it. NULL for a number that no object of the kind has.

use super::eval::Env;
use super::functions::{Function, i, table};
use crate::builtin;
use crate::error::Result;
use crate::types::{Datum, Oid, aliases, extension, facts, oid, operator, routine, user};

use oid::{BOOL, OID};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "pg_function_is_visible"(OID) BOOL strict of_function; "pg_type_is_visible"(OID) BOOL strict of_type; "pg_operator_is_visible"(OID) BOOL strict of_operator;
    "pg_opclass_is_visible"(OID) BOOL strict |a, _| listed("pg_opclass", a); "pg_opfamily_is_visible"(OID) BOOL strict |a, _| listed("pg_opfamily", a);
    "pg_collation_is_visible"(OID) BOOL strict |a, _| listed("pg_collation", a);
    "pg_conversion_is_visible"(OID) BOOL strict nobody; "pg_statistics_obj_is_visible"(OID) BOOL strict nobody;
    "pg_ts_config_is_visible"(OID) BOOL strict nobody; "pg_ts_dict_is_visible"(OID) BOOL strict nobody;
    "pg_ts_parser_is_visible"(OID) BOOL strict nobody; "pg_ts_template_is_visible"(OID) BOOL strict nobody;
};

/// There are no objects of the kind.
fn nobody(_: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Null)
}

/// All that a catalog lists of this kind is in pg_catalog, and that is always searched.
fn listed(catalog: &str, a: &[Datum]) -> Result<Datum> {
    let start = format!("{}\t", i(a, 0));
    let rows = builtin::rows_of(catalog).unwrap_or_default();
    Ok(if rows.lines().any(|row| row.starts_with(&start)) { Datum::Bool(true) } else { Datum::Null })
}

fn of_type(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let oid = i(a, 0) as Oid;
    match user::schema(oid) {
        Some(schema) => {
            let visible = user::current().is_none_or(|types| types.path().iter().any(|s| **s == *schema));
            Ok(Datum::Bool(visible))
        }
        None if facts(oid).is_some() => Ok(Datum::Bool(true)),
        None => listed("pg_type", a),
    }
}

fn of_function(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let oid = i(a, 0) as Oid;
    Ok(match routine::of_oid(oid) {
        Some(found) => Datum::Bool(routine::is_visible(&found)),
        None if extension::is_one(oid) => Datum::Bool(aliases::is_on_path(oid)),
        None if builtin::proc(oid).is_some() => Datum::Bool(true),
        None => Datum::Null,
    })
}

fn of_operator(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let oid = i(a, 0) as Oid;
    Ok(match operator::of_oid(oid) {
        Some(found) => Datum::Bool(operator::is_visible(&found)),
        None if builtin::operator(oid).is_some() => Datum::Bool(true),
        None if extension::is_one(oid) => Datum::Bool(aliases::is_on_path(oid)),
        None => Datum::Null,
    })
}
