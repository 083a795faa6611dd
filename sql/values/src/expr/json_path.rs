//! Functions and operators with jsonpath.

use super::eval::Env;
use super::functions::{Function, table};
use super::json_functions::{document, jsonb};
use super::json_path_run::{self as run, Options};
use crate::error::{Result, SqlError};
use crate::types::json::Json;
use crate::types::jsonpath::JsonPath;
use crate::types::{Datum, oid};

use oid::{BOOL, JSONB, JSONPATH};

macro_rules! forms {
    ($($name:literal $ret:ident $body:expr;)*) => {
        &[$(
            forms!(@one $name (JSONB, JSONPATH) $ret $body),
            forms!(@one $name (JSONB, JSONPATH, JSONB) $ret $body),
            forms!(@one $name (JSONB, JSONPATH, JSONB, BOOL) $ret $body),
        )*]
    };
    (@one $name:literal ($($arg:ident),*) $ret:ident $body:expr) => {
        Function { name: $name, args: &[$($arg),*], result: $ret, strict: true, variadic: false, volatile: false, body: $body }
    };
}

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = forms! {
    "jsonb_path_exists" BOOL |a, _| exists(a); "jsonb_path_exists_tz" BOOL |a, _| exists(a);
    "jsonb_path_match" BOOL |a, _| matches(a); "jsonb_path_match_tz" BOOL |a, _| matches(a);
    "jsonb_path_query_array" JSONB |a, _| query_array(a); "jsonb_path_query_array_tz" JSONB |a, _| query_array(a);
    "jsonb_path_query_first" JSONB |a, _| query_first(a); "jsonb_path_query_first_tz" JSONB |a, _| query_first(a);
};

#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "@?"(JSONB, JSONPATH) BOOL strict exists_silently; "@@"(JSONB, JSONPATH) BOOL strict matches_silently;
};

fn path(a: &[Datum]) -> Result<&JsonPath> {
    match a.get(1) {
        Some(Datum::JsonPath(path)) => Ok(path),
        _ => Err(SqlError::internal("a function of jsonpath got another type")),
    }
}

static NO_VARIABLES: Json = Json::Object(Vec::new());

fn options(a: &[Datum]) -> Result<Options<'_>> {
    let variables = match a.get(2) {
        Some(Datum::Jsonb(j)) => &**j,
        _ => &NO_VARIABLES,
    };
    if !matches!(variables, Json::Object(_)) {
        let message = "\"vars\" argument is not an object";
        return Err(SqlError::new("22023", message)
            .detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."));
    }
    Ok(Options { variables, silent: a.get(3).and_then(Datum::as_bool) == Some(true) })
}

fn truth(found: Option<bool>) -> Result<Datum> {
    Ok(found.map_or(Datum::Null, Datum::Bool))
}

fn exists(a: &[Datum]) -> Result<Datum> {
    truth(run::exists(path(a)?, document(a, 0)?, options(a)?)?)
}

fn matches(a: &[Datum]) -> Result<Datum> {
    truth(run::matches(path(a)?, document(a, 0)?, options(a)?)?)
}

fn silent() -> Options<'static> {
    Options { variables: &NO_VARIABLES, silent: true }
}

fn exists_silently(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    truth(run::exists(path(a)?, document(a, 0)?, silent())?)
}

fn matches_silently(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    truth(run::matches(path(a)?, document(a, 0)?, silent())?)
}

fn found(a: &[Datum]) -> Result<Vec<Json>> {
    Ok(run::find(path(a)?, document(a, 0)?, options(a)?)?.unwrap_or_default())
}

fn query_array(a: &[Datum]) -> Result<Datum> {
    jsonb(Json::Array(found(a)?))
}

fn query_first(a: &[Datum]) -> Result<Datum> {
    found(a)?.into_iter().next().map_or(Ok(Datum::Null), jsonb)
}

/// jsonb_path_query.
pub fn query(a: &[Datum]) -> Result<super::set_table::Rows> {
    Ok(super::set_table::column(found(a)?.into_iter().map(|j| Datum::Jsonb(j.into())).collect()))
}
