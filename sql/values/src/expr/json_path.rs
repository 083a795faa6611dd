//! Functions and operators with jsonpath.

use super::eval::Env;
use super::functions::{Function, table};
use super::host::Session;
use super::json_functions::{document, jsonb};
use super::json_path_run::{self as run, Options};
use crate::error::{Result, SqlError};
use crate::types::json::Json;
use crate::types::jsonpath::JsonPath;
use crate::types::{Datum, oid};
use jiff::tz::TimeZone;

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
    "jsonb_path_exists" BOOL |a, _| exists(a, None); "jsonb_path_exists_tz" BOOL |a, e| exists(a, zone(e));
    "jsonb_path_match" BOOL |a, _| matches(a, None); "jsonb_path_match_tz" BOOL |a, e| matches(a, zone(e));
    "jsonb_path_query_array" JSONB |a, _| query_array(a, None); "jsonb_path_query_array_tz" JSONB |a, e| query_array(a, zone(e));
    "jsonb_path_query_first" JSONB |a, _| query_first(a, None); "jsonb_path_query_first_tz" JSONB |a, e| query_first(a, zone(e));
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

/// The session's zone, for the functions whose names end with `_tz`.
fn zone<'a>(e: &Env<'a>) -> Option<&'a TimeZone> {
    Some(&e.session.format().zone)
}

fn options<'a>(a: &'a [Datum], zone: Option<&'a TimeZone>) -> Result<Options<'a>> {
    let variables = match a.get(2) {
        Some(Datum::Jsonb(j)) => &**j,
        _ => &NO_VARIABLES,
    };
    if !matches!(variables, Json::Object(_)) {
        let message = "\"vars\" argument is not an object";
        return Err(SqlError::new("22023", message)
            .detail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object."));
    }
    Ok(Options { variables, silent: a.get(3).and_then(Datum::as_bool) == Some(true), zone })
}

fn truth(found: Option<bool>) -> Result<Datum> {
    Ok(found.map_or(Datum::Null, Datum::Bool))
}

fn exists(a: &[Datum], zone: Option<&TimeZone>) -> Result<Datum> {
    truth(run::exists(path(a)?, document(a, 0)?, options(a, zone)?)?)
}

fn matches(a: &[Datum], zone: Option<&TimeZone>) -> Result<Datum> {
    truth(run::matches(path(a)?, document(a, 0)?, options(a, zone)?)?)
}

fn silent() -> Options<'static> {
    Options { variables: &NO_VARIABLES, silent: true, zone: None }
}

fn exists_silently(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    truth(run::exists(path(a)?, document(a, 0)?, silent())?)
}

fn matches_silently(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    truth(run::matches(path(a)?, document(a, 0)?, silent())?)
}

fn found(a: &[Datum], zone: Option<&TimeZone>) -> Result<Vec<Json>> {
    Ok(run::find(path(a)?, document(a, 0)?, options(a, zone)?)?.unwrap_or_default())
}

fn query_array(a: &[Datum], zone: Option<&TimeZone>) -> Result<Datum> {
    jsonb(Json::Array(found(a, zone)?))
}

fn query_first(a: &[Datum], zone: Option<&TimeZone>) -> Result<Datum> {
    found(a, zone)?.into_iter().next().map_or(Ok(Datum::Null), jsonb)
}

/// jsonb_path_query.
pub fn query(a: &[Datum], session: &dyn Session, zoned: bool) -> Result<super::set_table::Rows> {
    let zone = zoned.then(|| &session.format().zone);
    Ok(super::set_table::column(found(a, zone)?.into_iter().map(|j| Datum::Jsonb(j.into())).collect()))
}
