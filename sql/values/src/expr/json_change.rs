//! Functions that make a new jsonb document from an existing one.

use super::eval::Env;
use super::json_functions::{arc, document, invalid, jsonb, keys, number};
use crate::error::{Result, SqlError, code};
use crate::types::Datum;
use crate::types::json::{self, Json, escape, name_order, raw};
use clearway_base::{breath, stack};

/// What is done at the end of a path.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    /// Replace; where nothing stands, add if the flag says so.
    Set(bool),
    /// Insert before (false) or behind (true).
    Insert(bool),
    Delete,
}

/// Puts a member in its place.
fn put(members: &mut Vec<(std::sync::Arc<str>, Json)>, name: &str, value: Json) {
    match members.binary_search_by(|m| name_order(&m.0, name)) {
        Ok(at) => members[at].1 = value,
        Err(at) => members.insert(at, (arc(name), value)),
    }
}

fn integer(key: &str, position: usize) -> Result<i64> {
    key.trim().parse::<i32>().map(i64::from).map_err(|_| {
        let message = format!("path element at position {position} is not an integer: \"{key}\"");
        SqlError::new(code::INVALID_TEXT_REPRESENTATION, message)
    })
}

fn at_path(json: &mut Json, path: &[&str], level: usize, new: Option<&Json>, change: Change) -> Result<()> {
    breath::step(16)?;
    let Some(key) = path.get(level) else { return Ok(()) };
    let last = level + 1 == path.len();
    match json {
        Json::Object(members) => {
            let found = members.binary_search_by(|m| name_order(&m.0, key));
            match (found, last) {
                (Ok(at), false) => stack::deeper(|| at_path(&mut members[at].1, path, level + 1, new, change)),
                (Ok(_), true) if matches!(change, Change::Insert(_)) => Err(invalid("cannot replace existing key")
                    .hint("Try using the function jsonb_set to replace key value.")),
                (Ok(at), true) => {
                    match new {
                        Some(new) if change != Change::Delete => members[at].1 = new.clone(),
                        _ => {
                            members.remove(at);
                        }
                    }
                    Ok(())
                }
                (Err(_), true) if change != Change::Delete && change != Change::Set(false) => {
                    put(members, key, new.cloned().unwrap_or(Json::Null));
                    Ok(())
                }
                _ => Ok(()),
            }
        }
        Json::Array(list) => {
            let n = integer(key, level + 1)?;
            let len = list.len() as i64;
            let at = if n < 0 { n + len } else { n };
            if !last {
                return match usize::try_from(at).ok().and_then(|at| list.get_mut(at)) {
                    Some(next) => stack::deeper(|| at_path(next, path, level + 1, new, change)),
                    None => Ok(()),
                };
            }
            let inside = (0..len).contains(&at);
            let value = || new.cloned().unwrap_or(Json::Null);
            match change {
                Change::Delete if inside => {
                    list.remove(at as usize);
                }
                Change::Delete => {}
                Change::Set(_) if inside => list[at as usize] = value(),
                Change::Insert(behind) if inside => list.insert(at as usize + usize::from(behind), value()),
                Change::Set(true) | Change::Insert(_) if at < 0 => list.insert(0, value()),
                Change::Set(true) | Change::Insert(_) => list.push(value()),
                Change::Set(false) => {}
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The path of a function's second argument.
fn path(a: &[Datum]) -> Result<Vec<&str>> {
    if let Datum::Array(array) = &a[1] {
        if array.dims.len() > 1 {
            return Err(SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"));
        }
        if let Some(at) = array.values.iter().position(Datum::is_null) {
            let message = format!("path element at position {} is null", at + 1);
            return Err(SqlError::new("22004", message));
        }
    }
    Ok(keys(&a[1..2]).unwrap_or_default())
}

fn flag(a: &[Datum], n: usize, default: bool) -> bool {
    a.get(n).and_then(Datum::as_bool).unwrap_or(default)
}

fn changed(a: &[Datum], new: Option<&Json>, change: Change, verb: &str) -> Result<Datum> {
    let json = document(a, 0)?;
    if json.is_scalar() {
        return Err(invalid(&format!("cannot {verb} path in scalar")));
    }
    let path = path(a)?;
    let mut out = json.clone();
    at_path(&mut out, &path, 0, new, change)?;
    jsonb(out)
}

pub fn set(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    changed(a, Some(document(a, 2)?), Change::Set(flag(a, 3, true)), "set")
}

pub fn insert(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    changed(a, Some(document(a, 2)?), Change::Insert(flag(a, 3, false)), "set")
}

pub fn delete_path(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    changed(a, None, Change::Delete, "delete")
}

pub fn set_lax(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() || a[1].is_null() || a.get(3).is_some_and(Datum::is_null) {
        return Ok(Datum::Null);
    }
    if !a[2].is_null() {
        return changed(a, Some(document(a, 2)?), Change::Set(flag(a, 3, true)), "set");
    }
    let create = flag(a, 3, true);
    match a.get(4).map_or(Some("use_json_null"), Datum::as_str) {
        None => Err(invalid(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
        Some("use_json_null") => changed(a, Some(&Json::Null), Change::Set(create), "set"),
        Some("delete_key") => changed(a, None, Change::Delete, "delete"),
        Some("return_target") => Ok(a[0].clone()),
        Some("raise_exception") => Err(SqlError::new("22004", "JSON value must not be null")
            .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
            .hint(
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
            )),
        Some(_) => Err(invalid(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

pub fn concat(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (l, r) = (document(a, 0)?, document(a, 1)?);
    let list = |j: &Json| match j {
        Json::Array(list) => list.clone(),
        other => vec![other.clone()],
    };
    jsonb(match (l, r) {
        (Json::Object(x), Json::Object(y)) => Json::object(x.iter().chain(y).cloned().collect()),
        _ => Json::Array(list(l).into_iter().chain(list(r)).collect()),
    })
}

pub fn delete(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let json = document(a, 0)?;
    if json.is_scalar() {
        return Err(invalid("cannot delete from scalar"));
    }
    let mut out = json.clone();
    if let Datum::Int4(_) = &a[1] {
        let Json::Array(list) = &mut out else {
            return Err(invalid("cannot delete from object using integer index"));
        };
        let n = number(a, 1);
        let at = if n < 0 { n + list.len() as i64 } else { n };
        if (0..list.len() as i64).contains(&at) {
            list.remove(at as usize);
        }
        return jsonb(out);
    }
    let names: Vec<&str> = match &a[1] {
        Datum::Array(array) => array.values.iter().filter_map(Datum::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    match &mut out {
        Json::Object(members) => members.retain(|m| !names.contains(&&*m.0)),
        Json::Array(list) => list.retain(|v| !matches!(v, Json::String(s) if names.contains(&&**s))),
        _ => {}
    }
    jsonb(out)
}

fn without_nulls(json: &Json) -> Json {
    match json {
        Json::Object(members) => {
            let kept = members.iter().filter(|m| !matches!(m.1, Json::Null));
            Json::Object(kept.map(|(k, v)| (k.clone(), stack::deeper(|| without_nulls(v)))).collect())
        }
        Json::Array(list) => Json::Array(list.iter().map(|v| stack::deeper(|| without_nulls(v))).collect()),
        other => other.clone(),
    }
}

pub fn strip_nulls(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    jsonb(without_nulls(document(a, 0)?))
}

pub fn strip_nulls_text(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut out = String::new();
    stripped(raw::trimmed(a[0].as_str().unwrap_or("")), &mut out)?;
    Ok(Datum::Json(out.into()))
}

fn stripped(text: &str, out: &mut String) -> Result<()> {
    match raw::type_name(text) {
        "object" => {
            out.push('{');
            let mut first = true;
            for (name, value) in raw::members(text)?.into_iter().filter(|m| m.1 != "null") {
                if !std::mem::replace(&mut first, false) {
                    out.push(',');
                }
                escape(&name, out);
                out.push(':');
                stack::deeper(|| stripped(value, out))?;
            }
            out.push('}');
        }
        "array" => {
            out.push('[');
            for (i, value) in raw::elements(text)?.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                stack::deeper(|| stripped(value, out))?;
            }
            out.push(']');
        }
        "string" => escape(&json::raw::string(text)?, out),
        _ => out.push_str(text),
    }
    Ok(())
}
