//! The table of the set-returning functions that give all their rows at once.

use super::functions::s;
use super::host::Session;
use super::json_functions::element_text;
use super::{citext_functions, hstore_functions, json_path, regexp, snapshot_functions};
use crate::error::{Result, SqlError, code};
use crate::types::json::{Json, raw};
use crate::types::{Datum, Oid, oid};

/// Rows of values.
pub type Rows = Vec<Vec<Datum>>;

/// A function that gives rows.
pub struct SetRow {
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments.
    pub args: &'static [Oid],
    /// The names and types of its columns; an empty name is the function's.
    pub columns: &'static [(&'static str, Oid)],
    /// No rows where an argument is NULL.
    pub strict: bool,
    /// What it gives.
    pub body: fn(&[Datum], &dyn Session) -> Result<Rows>,
}

impl std::fmt::Debug for SetRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

use oid::{
    ANYARRAY, ANYELEMENT, BOOL, CITEXT, HSTORE, INT4, INT8, JSON, JSONB, JSONPATH, PG_SNAPSHOT, TEXT, TEXT_ARRAY,
    TXID_SNAPSHOT, XID8,
};

macro_rules! sets {
    ($($name:literal ($($arg:ident),*) [$($column:literal $ty:ident),*] $strict:literal $body:expr;)*) => {
        &[$(SetRow { name: $name, args: &[$($arg),*], columns: &[$(($column, $ty)),*], strict: $strict, body: $body }),*]
    };
}

/// All of them.
#[rustfmt::skip]
pub static SETS: &[SetRow] = sets! {
    "json_each"(JSON) ["key" TEXT, "value" JSON] true |a, _| each(a, "json_each", false);
    "jsonb_each"(JSONB) ["key" TEXT, "value" JSONB] true |a, _| each(a, "jsonb_each", false);
    "json_each_text"(JSON) ["key" TEXT, "value" TEXT] true |a, _| each(a, "json_each_text", true);
    "jsonb_each_text"(JSONB) ["key" TEXT, "value" TEXT] true |a, _| each(a, "jsonb_each_text", true);
    // Its first column has the type of the array's elements.
    "_pg_expandarray"(ANYARRAY) ["x" ANYELEMENT, "n" INT4] true |a, _| Ok(expanded(a));
    "json_array_elements"(JSON) ["value" JSON] true |a, _| elements(a, "json_array_elements", false);
    "jsonb_array_elements"(JSONB) ["value" JSONB] true |a, _| elements(a, "jsonb_array_elements", false);
    "json_array_elements_text"(JSON) ["value" TEXT] true |a, _| elements(a, "json_array_elements_text", true);
    "jsonb_array_elements_text"(JSONB) ["value" TEXT] true |a, _| elements(a, "jsonb_array_elements_text", true);
    "json_object_keys"(JSON) ["" TEXT] true |a, _| keys(a, "json_object_keys");
    "jsonb_object_keys"(JSONB) ["" TEXT] true |a, _| keys(a, "jsonb_object_keys");
    "jsonb_path_query"(JSONB, JSONPATH) ["" JSONB] true |a, session| json_path::query(a, session, false);
    "jsonb_path_query"(JSONB, JSONPATH, JSONB) ["" JSONB] true |a, session| json_path::query(a, session, false);
    "jsonb_path_query"(JSONB, JSONPATH, JSONB, BOOL) ["" JSONB] true |a, session| json_path::query(a, session, false);
    "jsonb_path_query_tz"(JSONB, JSONPATH) ["" JSONB] true |a, session| json_path::query(a, session, true);
    "jsonb_path_query_tz"(JSONB, JSONPATH, JSONB) ["" JSONB] true |a, session| json_path::query(a, session, true);
    "jsonb_path_query_tz"(JSONB, JSONPATH, JSONB, BOOL) ["" JSONB] true |a, session| json_path::query(a, session, true);
    "regexp_matches"(TEXT, TEXT) ["" TEXT_ARRAY] true |a, _| regexp::all_matches(a);
    "regexp_matches"(TEXT, TEXT, TEXT) ["" TEXT_ARRAY] true |a, _| regexp::all_matches(a);
    "regexp_split_to_table"(TEXT, TEXT) ["" TEXT] true |a, _| Ok(column(regexp::pieces(a)?));
    "regexp_split_to_table"(TEXT, TEXT, TEXT) ["" TEXT] true |a, _| Ok(column(regexp::pieces(a)?));
    "regexp_matches"(CITEXT, CITEXT) ["" TEXT_ARRAY] true |a, _| citext_functions::all_matches(a);
    "regexp_matches"(CITEXT, CITEXT, TEXT) ["" TEXT_ARRAY] true |a, _| citext_functions::all_matches(a);
    "regexp_split_to_table"(CITEXT, CITEXT) ["" TEXT] true |a, _| Ok(column(citext_functions::pieces(a)?));
    "regexp_split_to_table"(CITEXT, CITEXT, TEXT) ["" TEXT] true |a, _| Ok(column(citext_functions::pieces(a)?));
    "skeys"(HSTORE) ["" TEXT] true |a, _| hstore_functions::key_rows(a); "svals"(HSTORE) ["" TEXT] true |a, _| hstore_functions::value_rows(a);
    "each"(HSTORE) ["key" TEXT, "value" TEXT] true |a, _| hstore_functions::pair_rows(a);
    "pg_snapshot_xip"(PG_SNAPSHOT) ["" XID8] true |a, _| snapshot_functions::running(a, true);
    "txid_snapshot_xip"(TXID_SNAPSHOT) ["" INT8] true |a, _| snapshot_functions::running(a, false);
    "string_to_table"(TEXT, TEXT) ["" TEXT] false |a, _| split(a); "string_to_table"(TEXT, TEXT, TEXT) ["" TEXT] false |a, _| split(a);
};

/// Whether a name is that of one of them.
pub fn is_set(name: &str) -> bool {
    SETS.iter().any(|s| s.name == name)
}

/// Values as rows of one column.
pub fn column(values: Vec<Datum>) -> Rows {
    values.into_iter().map(|v| vec![v]).collect()
}

/// The elements of an array and their numbers from 1, as drivers ask for the columns of a key.
fn expanded(a: &[Datum]) -> Rows {
    let Datum::Array(array) = &a[0] else { return Vec::new() };
    array.values.iter().zip(1..).map(|(element, n)| vec![element.clone(), Datum::Int4(n)]).collect()
}

fn invalid(message: String) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

fn value(text: &str, as_text: bool) -> Result<Datum> {
    if as_text {
        return Ok(raw::as_text(text)?.map_or(Datum::Null, Datum::text));
    }
    Ok(Datum::Json(text.into()))
}

fn part(json: &Json, as_text: bool) -> Datum {
    if as_text { element_text(json) } else { Datum::Jsonb(json.clone().into()) }
}

fn each(a: &[Datum], function: &str, as_text: bool) -> Result<Rows> {
    match &a[0] {
        Datum::Json(t) => {
            if raw::type_name(t) != "object" {
                let what = if raw::type_name(t) == "array" { "an array" } else { "a scalar" };
                let message = match what {
                    "an array" => "cannot deconstruct an array as an object",
                    _ => "cannot deconstruct a scalar",
                };
                return Err(invalid(message.to_owned()));
            }
            raw::members(t)?.into_iter().map(|(k, v)| Ok(vec![Datum::text(k), value(v, as_text)?])).collect()
        }
        Datum::Jsonb(j) => match &**j {
            Json::Object(members) => {
                Ok(members.iter().map(|(k, v)| vec![Datum::Text(k.clone()), part(v, as_text)]).collect())
            }
            _ => Err(invalid(format!("cannot call {function} on a non-object"))),
        },
        _ => Ok(Vec::new()),
    }
}

fn elements(a: &[Datum], function: &str, as_text: bool) -> Result<Rows> {
    let values = match &a[0] {
        Datum::Json(t) => match raw::type_name(t) {
            "array" => raw::elements(t)?.into_iter().map(|v| value(v, as_text)).collect::<Result<_>>()?,
            "object" => return Err(invalid(format!("cannot call {function} on a non-array"))),
            _ => return Err(invalid(format!("cannot call {function} on a scalar"))),
        },
        Datum::Jsonb(j) => match &**j {
            Json::Array(list) => list.iter().map(|v| part(v, as_text)).collect(),
            Json::Object(_) => return Err(invalid("cannot extract elements from an object".to_owned())),
            _ => return Err(invalid("cannot extract elements from a scalar".to_owned())),
        },
        _ => Vec::new(),
    };
    Ok(column(values))
}

fn keys(a: &[Datum], function: &str) -> Result<Rows> {
    let refused = |kind: &str| {
        let what = if kind == "array" { "an array" } else { "a scalar" };
        Err(invalid(format!("cannot call {function} on {what}")))
    };
    let values = match &a[0] {
        Datum::Json(t) => match raw::type_name(t) {
            "object" => raw::members(t)?.into_iter().map(|m| Datum::text(m.0)).collect(),
            kind => return refused(kind),
        },
        Datum::Jsonb(j) => match &**j {
            Json::Object(members) => members.iter().map(|m| Datum::Text(m.0.clone())).collect(),
            other => return refused(other.type_name()),
        },
        _ => Vec::new(),
    };
    Ok(column(values))
}

fn split(a: &[Datum]) -> Result<Rows> {
    if a[0].is_null() {
        return Ok(Vec::new());
    }
    let null = a.get(2).and_then(Datum::as_str);
    let pieces = super::array_functions::split(s(a, 0), a[1].as_str())?;
    let value = |p: String| if Some(p.as_str()) == null { Datum::Null } else { Datum::text(p) };
    Ok(column(pieces.into_iter().map(value).collect()))
}
