//! Converts SQL values to JSON: to_json, to_jsonb and the functions that build documents.

use super::eval::Env;
use super::functions::{Function, table};
use crate::error::{Result, SqlError, code};
use crate::types::datum::{Array, Record};
use crate::types::json::{self, Json, escape};
use crate::types::{Datum, Oid, SqlType, datetime, oid, text};
use clearway_base::{breath, memory, stack};
use std::sync::Arc;

use oid::{ANYARRAY, ANYELEMENT, BOOL, JSON, JSONB, RECORD, TEXT_ARRAY};
const ANY: Oid = super::resolve::ANY;

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "to_json"(ANYELEMENT) JSON strict |a, e| text_of(&a[0], e); "to_jsonb"(ANYELEMENT) JSONB strict |a, e| document(&a[0], e);
    "array_to_json"(ANYARRAY) JSON strict |a, e| text_of(&a[0], e); "array_to_json"(ANYARRAY, BOOL) JSON strict pretty_array;
    "row_to_json"(RECORD) JSON strict |a, e| text_of(&a[0], e); "row_to_json"(RECORD, BOOL) JSON strict pretty_row;
    "json_build_array"() JSON strict build_array; "json_build_array"(ANY) JSON variadic build_array;
    "json_build_object"() JSON strict build_object; "json_build_object"(ANY) JSON variadic build_object;
    "jsonb_build_array"() JSONB strict build_array_b; "jsonb_build_array"(ANY) JSONB variadic build_array_b;
    "jsonb_build_object"() JSONB strict build_object_b; "jsonb_build_object"(ANY) JSONB variadic build_object_b;
    "json_object"(TEXT_ARRAY) JSON strict |a, e| object_text(pairs(a)?, e);
    "json_object"(TEXT_ARRAY, TEXT_ARRAY) JSON strict |a, e| object_text(pairs(a)?, e);
    "jsonb_object"(TEXT_ARRAY) JSONB strict |a, _| object_document(pairs(a)?);
    "jsonb_object"(TEXT_ARRAY, TEXT_ARRAY) JSONB strict |a, _| object_document(pairs(a)?);
};

fn text_of(d: &Datum, e: &Env<'_>) -> Result<Datum> {
    let mut out = String::new();
    write(d, oid::TEXT.into(), None, e.session, &mut out)?;
    Ok(Datum::Json(out.into()))
}

fn document(d: &Datum, e: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Jsonb(to_document(d, oid::TEXT.into(), e.session)?.into()))
}

fn pretty_array(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    pretty(a, e)
}

fn pretty_row(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    pretty(a, e)
}

fn pretty(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let mut out = String::new();
    let lines = a[1].as_bool() == Some(true);
    write(&a[0], oid::TEXT.into(), lines.then_some("\n "), e.session, &mut out)?;
    Ok(Datum::Json(out.into()))
}

/// Dates and times as ISO 8601 has them, whatever DateStyle says; none: another value.
fn iso(d: &Datum, session: &dyn super::Session) -> Option<String> {
    let format = datetime::Format { zone: session.format().zone.clone(), ..datetime::Format::default() };
    Some(match d {
        Datum::Date(d) => datetime::format_date(*d, &format),
        Datum::Timestamp(t) => datetime::format_timestamp(*t, &format).replacen(' ', "T", 1),
        Datum::TimestampTz(t) => {
            let shown = datetime::format_timestamptz(*t, &format).replacen(' ', "T", 1);
            // The offset always has minutes.
            match shown.rfind(['+', '-']) {
                Some(at) if shown.len() - at == 3 && shown.contains('T') => shown + ":00",
                _ => shown,
            }
        }
        _ => return None,
    })
}

/// Writes a value as JSON text; `lines` stands between the parts of the outermost array or row.
///
/// # Errors
/// 53200, and the reason for which the statement must end.
pub fn write(
    d: &Datum,
    ty: SqlType,
    lines: Option<&str>,
    session: &dyn super::Session,
    out: &mut String,
) -> Result<()> {
    breath::step(16)?;
    memory::check()?;
    match d {
        Datum::Null => out.push_str("null"),
        Datum::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Datum::Json(s) => out.push_str(s),
        Datum::Jsonb(j) => out.push_str(&j.to_string()),
        Datum::Array(a) => stack::deeper(|| write_array(a, 0, &mut a.values.iter(), lines, session, out))?,
        Datum::Row(r) => stack::deeper(|| write_row(r, lines, session, out))?,
        _ => {
            let shown = iso(d, session).unwrap_or_else(|| text::output(ty, d, &session.conversion()));
            match d {
                Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => out.push_str(&shown),
                Datum::Float4(_) | Datum::Float8(_) | Datum::Numeric(_)
                    if shown.starts_with(|c: char| c == '-' || c.is_ascii_digit()) && shown != "-Infinity" =>
                {
                    out.push_str(&shown);
                }
                _ => escape(&shown, out),
            }
        }
    }
    Ok(())
}

fn write_array<'a>(
    a: &Array,
    level: usize,
    values: &mut impl Iterator<Item = &'a Datum>,
    lines: Option<&str>,
    session: &dyn super::Session,
    out: &mut String,
) -> Result<()> {
    out.push('[');
    for i in 0..a.dims.get(level).map_or(0, |d| d.0) {
        if i > 0 {
            out.push(',');
            out.push_str(lines.unwrap_or(""));
        }
        if level + 1 < a.dims.len() {
            write_array(a, level + 1, values, None, session, out)?;
        } else if let Some(v) = values.next() {
            write(v, a.element.into(), None, session, out)?;
        }
    }
    out.push(']');
    Ok(())
}

fn write_row(r: &Record, lines: Option<&str>, session: &dyn super::Session, out: &mut String) -> Result<()> {
    out.push('{');
    for (i, (value, ty)) in r.values.iter().zip(&r.shape.types).enumerate() {
        if i > 0 {
            out.push(',');
            out.push_str(lines.unwrap_or(""));
        }
        escape(&r.shape.name(i), out);
        out.push(':');
        write(value, *ty, None, session, out)?;
    }
    out.push('}');
    Ok(())
}

/// A value as a document.
///
/// # Errors
/// 22P05 for a json text with an escape that text can't hold.
pub fn to_document(d: &Datum, ty: SqlType, session: &dyn super::Session) -> Result<Json> {
    breath::step(16)?;
    memory::check()?;
    Ok(match d {
        Datum::Null => Json::Null,
        Datum::Bool(b) => Json::Bool(*b),
        Datum::Jsonb(j) => (**j).clone(),
        Datum::Numeric(n) if n.scale().is_some() => Json::number(n.clone()),
        Datum::Array(a) => stack::deeper(|| array_document(a, 0, &mut a.values.iter(), session))?,
        Datum::Row(r) => {
            let field = |(i, (v, ty)): (usize, (&Datum, &SqlType))| {
                let name: Arc<str> = r.shape.name(i).into();
                Ok((name, stack::deeper(|| to_document(v, *ty, session))?))
            };
            Json::object(r.values.iter().zip(&r.shape.types).enumerate().map(field).collect::<Result<_>>()?)
        }
        Datum::Json(_) | Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Float4(_) | Datum::Float8(_) => {
            let mut out = String::new();
            write(d, ty, None, session, &mut out)?;
            json::parse(&out)?
        }
        _ => Json::string(iso(d, session).unwrap_or_else(|| text::output(ty, d, &session.conversion()))),
    })
}

fn array_document<'a>(
    a: &Array,
    level: usize,
    values: &mut impl Iterator<Item = &'a Datum>,
    session: &dyn super::Session,
) -> Result<Json> {
    let mut list = Vec::new();
    for _ in 0..a.dims.get(level).map_or(0, |d| d.0) {
        if level + 1 < a.dims.len() {
            list.push(array_document(a, level + 1, values, session)?);
        } else if let Some(v) = values.next() {
            list.push(to_document(v, a.element.into(), session)?);
        }
    }
    Ok(Json::Array(list))
}

fn build_array(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let mut out = String::from("[");
    for (i, v) in a.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write(v, oid::TEXT.into(), None, e.session, &mut out)?;
    }
    Ok(Datum::Json((out + "]").into()))
}

fn build_array_b(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let list = a.iter().map(|v| to_document(v, oid::TEXT.into(), e.session)).collect::<Result<_>>()?;
    Ok(Datum::Jsonb(Json::Array(list).into()))
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

/// A value as the name of a member.
///
/// # Errors
/// 22023.
pub fn name(v: &Datum, position: usize, session: &dyn super::Session) -> Result<String> {
    match v {
        Datum::Null => Err(invalid(format!("argument {position} cannot be null")).hint("Object keys should be text.")),
        Datum::Array(_) | Datum::Row(_) | Datum::Json(_) | Datum::Jsonb(_) => {
            Err(invalid("key value must be scalar, not array, composite, or json"))
        }
        v => Ok(iso(v, session).unwrap_or_else(|| text::output(oid::TEXT.into(), v, &session.conversion()))),
    }
}

fn even(a: &[Datum], function: &str) -> Result<()> {
    if a.len().is_multiple_of(2) {
        return Ok(());
    }
    Err(invalid("argument list must have even number of elements")
        .hint(format!("The arguments of {function}() must consist of alternating keys and values.")))
}

fn build_object(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    even(a, "json_build_object")?;
    let mut out = String::from("{");
    for (i, pair) in a.chunks_exact(2).enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        escape(&name(&pair[0], 2 * i + 1, e.session)?, &mut out);
        out.push_str(" : ");
        write(&pair[1], oid::TEXT.into(), None, e.session, &mut out)?;
    }
    Ok(Datum::Json((out + "}").into()))
}

fn build_object_b(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    even(a, "jsonb_build_object")?;
    let mut members = Vec::new();
    for (i, pair) in a.chunks_exact(2).enumerate() {
        if pair[0].is_null() {
            return Err(invalid(format!("argument {}: key must not be null", 2 * i + 1)));
        }
        let key: Arc<str> = name(&pair[0], 2 * i + 1, e.session)?.into();
        members.push((key, to_document(&pair[1], oid::TEXT.into(), e.session)?));
    }
    Ok(Datum::Jsonb(Json::object(members).into()))
}

/// The members that json_object is given: in one array by turns or in rows of two, or names and values in two arrays.
fn pairs(a: &[Datum]) -> Result<Vec<(Datum, Datum)>> {
    let subscript = |m: &str| SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, m);
    let arrays: Vec<&Array> =
        a.iter().filter_map(|d| if let Datum::Array(a) = d { Some(&**a) } else { None }).collect();
    let list: Vec<(Datum, Datum)> = match arrays.as_slice() {
        [one] => {
            match one.dims.as_slice() {
                [] => {}
                [(n, _)] if n % 2 != 0 => return Err(subscript("array must have even number of elements")),
                [_] => {}
                [_, (2, _)] => {}
                [_, _] => return Err(subscript("array must have two columns")),
                _ => return Err(subscript("wrong number of array subscripts")),
            }
            one.values.chunks_exact(2).map(|p| (p[0].clone(), p[1].clone())).collect()
        }
        [names, values] => {
            if names.dims.len() > 1 || values.dims.len() > 1 {
                return Err(subscript("wrong number of array subscripts"));
            }
            if names.values.len() != values.values.len() {
                return Err(subscript("mismatched array dimensions"));
            }
            names.values.iter().cloned().zip(values.values.iter().cloned()).collect()
        }
        _ => Vec::new(),
    };
    if list.iter().any(|p| p.0.is_null()) {
        return Err(SqlError::new("22004", "null value not allowed for object key"));
    }
    Ok(list)
}

fn object_text(pairs: Vec<(Datum, Datum)>, e: &Env<'_>) -> Result<Datum> {
    let mut out = String::from("{");
    for (i, (k, v)) in pairs.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        escape(k.as_str().unwrap_or(""), &mut out);
        out.push_str(" : ");
        write(v, oid::TEXT.into(), None, e.session, &mut out)?;
    }
    Ok(Datum::Json((out + "}").into()))
}

fn object_document(pairs: Vec<(Datum, Datum)>) -> Result<Datum> {
    let member = |(k, v): &(Datum, Datum)| {
        let value = v.as_str().map_or(Json::Null, Json::string);
        (Arc::<str>::from(k.as_str().unwrap_or("")), value)
    };
    Ok(Datum::Jsonb(Json::object(pairs.iter().map(member).collect()).into()))
}
