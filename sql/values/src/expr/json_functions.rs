//! Functions and operators that read json and jsonb.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use super::json_change as change;
use crate::error::{Result, SqlError, code};
use crate::types::json::{self, Json, raw};
use crate::types::{Datum, oid};
use std::sync::Arc;

use oid::{BOOL, INT4, JSON, JSONB, TEXT, TEXT_ARRAY};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "json_array_length"(JSON) INT4 strict array_length; "jsonb_array_length"(JSONB) INT4 strict array_length;
    "json_typeof"(JSON) TEXT strict type_name; "jsonb_typeof"(JSONB) TEXT strict type_name;
    "json_extract_path"(JSON, TEXT) JSON spread path; "jsonb_extract_path"(JSONB, TEXT) JSONB spread path;
    "json_extract_path_text"(JSON, TEXT) TEXT spread path_text; "jsonb_extract_path_text"(JSONB, TEXT) TEXT spread path_text;
    "json_object_field"(JSON, TEXT) JSON strict get; "jsonb_object_field"(JSONB, TEXT) JSONB strict get;
    "json_object_field_text"(JSON, TEXT) TEXT strict get_text; "jsonb_object_field_text"(JSONB, TEXT) TEXT strict get_text;
    "json_array_element"(JSON, INT4) JSON strict get; "jsonb_array_element"(JSONB, INT4) JSONB strict get;
    "json_array_element_text"(JSON, INT4) TEXT strict get_text; "jsonb_array_element_text"(JSONB, INT4) TEXT strict get_text;
    "jsonb_exists"(JSONB, TEXT) BOOL strict exists; "jsonb_exists_any"(JSONB, TEXT_ARRAY) BOOL strict exists_any;
    "jsonb_exists_all"(JSONB, TEXT_ARRAY) BOOL strict exists_all;
    "jsonb_contains"(JSONB, JSONB) BOOL strict contains; "jsonb_contained"(JSONB, JSONB) BOOL strict contained;
    "jsonb_pretty"(JSONB) TEXT strict |a, _| Ok(Datum::text(json::pretty(document(a, 0)?)));
    "json_strip_nulls"(JSON) JSON strict change::strip_nulls_text; "jsonb_strip_nulls"(JSONB) JSONB strict change::strip_nulls;
    "jsonb_set"(JSONB, TEXT_ARRAY, JSONB) JSONB strict change::set; "jsonb_set"(JSONB, TEXT_ARRAY, JSONB, BOOL) JSONB strict change::set;
    "jsonb_set_lax"(JSONB, TEXT_ARRAY, JSONB) JSONB lenient change::set_lax;
    "jsonb_set_lax"(JSONB, TEXT_ARRAY, JSONB, BOOL) JSONB lenient change::set_lax;
    "jsonb_set_lax"(JSONB, TEXT_ARRAY, JSONB, BOOL, TEXT) JSONB lenient change::set_lax;
    "jsonb_insert"(JSONB, TEXT_ARRAY, JSONB) JSONB strict change::insert;
    "jsonb_insert"(JSONB, TEXT_ARRAY, JSONB, BOOL) JSONB strict change::insert;
    "jsonb_concat"(JSONB, JSONB) JSONB strict change::concat; "jsonb_delete"(JSONB, TEXT) JSONB strict change::delete;
    "jsonb_delete"(JSONB, INT4) JSONB strict change::delete; "jsonb_delete"(JSONB, TEXT_ARRAY) JSONB strict change::delete;
    "jsonb_delete_path"(JSONB, TEXT_ARRAY) JSONB strict change::delete_path;
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "->"(JSON, TEXT) JSON strict get; "->"(JSON, INT4) JSON strict get;
    "->>"(JSON, TEXT) TEXT strict get_text; "->>"(JSON, INT4) TEXT strict get_text;
    "#>"(JSON, TEXT_ARRAY) JSON strict path; "#>>"(JSON, TEXT_ARRAY) TEXT strict path_text;
    "->"(JSONB, TEXT) JSONB strict get; "->"(JSONB, INT4) JSONB strict get;
    "->>"(JSONB, TEXT) TEXT strict get_text; "->>"(JSONB, INT4) TEXT strict get_text;
    "#>"(JSONB, TEXT_ARRAY) JSONB strict path; "#>>"(JSONB, TEXT_ARRAY) TEXT strict path_text;
    "?"(JSONB, TEXT) BOOL strict exists; "?|"(JSONB, TEXT_ARRAY) BOOL strict exists_any;
    "?&"(JSONB, TEXT_ARRAY) BOOL strict exists_all; "@>"(JSONB, JSONB) BOOL strict contains;
    "<@"(JSONB, JSONB) BOOL strict contained; "||"(JSONB, JSONB) JSONB strict change::concat;
    "-"(JSONB, TEXT) JSONB strict change::delete; "-"(JSONB, INT4) JSONB strict change::delete;
    "-"(JSONB, TEXT_ARRAY) JSONB strict change::delete; "#-"(JSONB, TEXT_ARRAY) JSONB strict change::delete_path;
};

pub(super) fn document(a: &[Datum], n: usize) -> Result<&Json> {
    match a.get(n) {
        Some(Datum::Jsonb(j)) => Ok(j),
        _ => Err(SqlError::internal("a function of jsonb got another type")),
    }
}

pub(super) fn jsonb(json: Json) -> Result<Datum> {
    Ok(Datum::Jsonb(json.into()))
}

/// A part of either kind.
enum Part<'a> {
    Text(&'a str),
    Document(&'a Json),
}

impl Part<'_> {
    fn value(self) -> Datum {
        match self {
            Part::Text(t) => Datum::Json(t.into()),
            Part::Document(j) => Datum::Jsonb(j.clone().into()),
        }
    }

    fn text(self) -> Result<Datum> {
        Ok(match self {
            Part::Text(t) => raw::as_text(t)?.map_or(Datum::Null, Datum::text),
            Part::Document(j) => element_text(j),
        })
    }
}

/// What `->>` gives.
pub(super) fn element_text(json: &Json) -> Datum {
    match json {
        Json::Null => Datum::Null,
        Json::String(s) => Datum::Text(s.clone()),
        other => Datum::text(other.to_string()),
    }
}

/// The part that one key chooses.
fn part<'a>(a: &'a Datum, key: &Datum) -> Result<Option<Part<'a>>> {
    Ok(match (a, key) {
        (Datum::Json(t), Datum::Text(name)) if raw::type_name(t) == "object" => raw::step(t, name)?.map(Part::Text),
        (Datum::Json(t), Datum::Int4(n)) => raw::element(t, i64::from(*n))?.map(Part::Text),
        (Datum::Jsonb(j), Datum::Text(name)) => j.member(name).map(Part::Document),
        // A scalar is the one element of itself, as in PostgreSQL.
        (Datum::Jsonb(j), Datum::Int4(0 | -1)) if !matches!(**j, Json::Array(_) | Json::Object(_)) => {
            Some(Part::Document(j))
        }
        (Datum::Jsonb(j), Datum::Int4(n)) => j.element(i64::from(*n)).map(Part::Document),
        _ => None,
    })
}

fn get(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(part(&a[0], &a[1])?.map_or(Datum::Null, Part::value))
}

fn get_text(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    part(&a[0], &a[1])?.map_or(Ok(Datum::Null), Part::text)
}

/// The keys of a path, from an array or the arguments behind the first; none: one of them is null.
pub(super) fn keys(a: &[Datum]) -> Option<Vec<&str>> {
    let list: Vec<&Datum> = match a {
        [Datum::Array(array)] => array.values.iter().collect(),
        given => given.iter().collect(),
    };
    list.into_iter().map(Datum::as_str).collect()
}

/// One step of a path into a document: the name of a member, or the number of an element.
pub(super) fn step<'a>(json: &'a Json, key: &str) -> Option<&'a Json> {
    match json {
        Json::Object(_) => json.member(key),
        Json::Array(_) => json.element(key.trim().parse::<i32>().ok()?.into()),
        _ => None,
    }
}

fn follow(a: &[Datum]) -> Result<Option<Part<'_>>> {
    let Some(keys) = keys(&a[1..]) else { return Ok(None) };
    match &a[0] {
        Datum::Json(t) => {
            let mut at = raw::trimmed(t);
            for key in &keys {
                match raw::step(at, key)? {
                    Some(next) => at = next,
                    None => return Ok(None),
                }
            }
            Ok(Some(Part::Text(at)))
        }
        Datum::Jsonb(j) => Ok(keys.iter().try_fold(&**j, |at, key| step(at, key)).map(Part::Document)),
        _ => Ok(None),
    }
}

fn path(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(follow(a)?.map_or(Datum::Null, Part::value))
}

fn path_text(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    follow(a)?.map_or(Ok(Datum::Null), Part::text)
}

pub(super) fn invalid(message: &str) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

fn array_length(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (kind, count) = match &a[0] {
        Datum::Json(t) => (raw::type_name(t), raw::elements(t)?.len()),
        Datum::Jsonb(j) => (j.type_name(), if let Json::Array(list) = &**j { list.len() } else { 0 }),
        _ => ("", 0),
    };
    match kind {
        "array" => Ok(Datum::Int4(count as i32)),
        "object" => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

fn type_name(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::text(match &a[0] {
        Datum::Json(t) => raw::type_name(t),
        Datum::Jsonb(j) => j.type_name(),
        _ => "",
    }))
}

/// Whether a string is a member's name, an element, or the document itself.
fn has(json: &Json, name: &str) -> bool {
    match json {
        Json::Object(_) => json.member(name).is_some(),
        Json::Array(list) => list.iter().any(|v| matches!(v, Json::String(s) if &**s == name)),
        Json::String(s) => &**s == name,
        _ => false,
    }
}

fn exists(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Bool(has(document(a, 0)?, s(a, 1))))
}

fn names(a: &[Datum]) -> Vec<&str> {
    match &a[1] {
        Datum::Array(array) => array.values.iter().filter_map(Datum::as_str).collect(),
        _ => Vec::new(),
    }
}

fn exists_any(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let json = document(a, 0)?;
    Ok(Datum::Bool(names(a).into_iter().any(|n| has(json, n))))
}

fn exists_all(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let json = document(a, 0)?;
    Ok(Datum::Bool(names(a).into_iter().all(|n| has(json, n))))
}

/// `a @> b`.
fn holds(a: &Json, b: &Json, top: bool) -> Result<bool> {
    clearway_base::breath::step(16)?;
    match (a, b) {
        (Json::Object(_), Json::Object(members)) => {
            for (k, v) in members {
                match a.member(k) {
                    Some(own) if clearway_base::stack::deeper(|| holds(own, v, false))? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Json::Array(list), Json::Array(wanted)) => {
            for v in wanted {
                let mut found = false;
                for own in list.iter().filter(|own| own.is_scalar() == v.is_scalar()) {
                    found |= clearway_base::stack::deeper(|| holds(own, v, false))?;
                    if found {
                        break;
                    }
                }
                if !found {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        // An array holds a scalar at the outermost level.
        (Json::Array(list), scalar) if top && scalar.is_scalar() => {
            Ok(list.iter().any(|v| v.is_scalar() && json::compare(v, scalar).is_eq()))
        }
        (x, y) if x.is_scalar() && y.is_scalar() => Ok(json::compare(x, y).is_eq()),
        _ => Ok(false),
    }
}

fn contains(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Bool(holds(document(a, 0)?, document(a, 1)?, true)?))
}

fn contained(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Bool(holds(document(a, 1)?, document(a, 0)?, true)?))
}

/// A jsonb document by subscripts: each is a name or a number.
pub(super) fn subscript(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut at = document(a, 0)?;
    for key in &a[1..] {
        let next = match key {
            Datum::Null => None,
            Datum::Int4(n) if matches!(at, Json::Array(_)) => at.element(i64::from(*n)),
            Datum::Int4(n) => at.member(&n.to_string()),
            key => step(at, key.as_str().unwrap_or("")),
        };
        match next {
            Some(next) => at = next,
            None => return Ok(Datum::Null),
        }
    }
    jsonb(at.clone())
}

/// A function for subscripts: it is bound with the document and its keys.
pub(super) static SUBSCRIPT: Function = Function {
    name: "jsonb_subscript",
    args: &[JSONB],
    result: JSONB,
    strict: true,
    variadic: false,
    volatile: false,
    body: subscript,
};

/// The number of an argument, for functions that build paths.
pub(super) fn number(a: &[Datum], n: usize) -> i64 {
    i(a, n)
}

/// A name as an object has it.
pub(super) fn arc(text: &str) -> Arc<str> {
    text.into()
}
