//! pg_column_size: how many bytes PostgreSQL takes for a value that is not compressed.
//!
//! A value of variable length has a header of four bytes, and one of one byte where it is short and part of a row. What is computed has the
//! long header, what a column gives has that of a row.

use super::bind::Binder;
use super::bound::{Bound, BoundKind};
use super::eval::Env;
use super::functions::{Function, i, table};
use crate::error::{Pos, Result, SqlError};
use crate::types::datum::{Array, Record};
use crate::types::json::Json;
use crate::types::range::Range;
use crate::types::{Datum, Numeric, Oid, SqlType, binary, facts, oid};

use oid::{ANY, BOOL, INT4, OID};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    // Bound as the next one.
    "pg_column_size"(ANY) INT4 strict |_, _| Err(SqlError::internal("pg_column_size is bound with the type of its argument"));
    "clearway_value_size"(ANY, OID, BOOL) INT4 strict size;
};

/// The longest value that has a header of one byte in a row, with a header of four bytes.
const SHORT_MAX: usize = 126 + 4;
/// The header of a row.
const ROW_HEADER: usize = 24;

/// Binds pg_column_size of a value.
///
/// # Errors
/// None of its own.
pub(super) fn bind(b: &mut Binder<'_>, value: Bound, pos: Pos) -> Result<Option<Bound>> {
    let stored = matches!(value.kind, BoundKind::Column { .. });
    let ty = if value.ty.oid == oid::UNKNOWN { oid::CSTRING } else { value.ty.oid };
    let args = vec![value, Bound::constant(Datum::Oid(ty), OID, pos), Bound::constant(Datum::Bool(stored), BOOL, pos)];
    let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
    b.scalar_call("clearway_value_size", args, &types, pos)
}

fn size(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let bytes = of_value(&a[0], i(a, 1) as Oid)?;
    let stored = a[2].as_bool() == Some(true) && is_variable(i(a, 1) as Oid) && bytes <= SHORT_MAX;
    Ok(Datum::Int4(i32::try_from(if stored { bytes - 3 } else { bytes }).unwrap_or(i32::MAX)))
}

/// Whether the header of a short value is one byte in a row.
fn is_variable(ty: Oid) -> bool {
    !matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR) && facts(ty).is_none_or(|facts| facts.len == -1)
}

/// With a header of four bytes, where the type has one.
fn of_value(value: &Datum, ty: Oid) -> Result<usize> {
    let length = facts(ty).map_or(-1, |facts| facts.len);
    if let Ok(length) = usize::try_from(length) {
        return Ok(length);
    }
    let text = |s: &str| if length == -2 { s.len() + 1 } else { 4 + s.len() };
    Ok(match value {
        Datum::Text(s) | Datum::Bpchar(s) | Datum::Json(s) | Datum::Citext(s) => text(s),
        Datum::Bytea(b) => 4 + b.len(),
        Datum::Bits(b) => 8 + b.bytes().len(),
        Datum::Numeric(n) => 4 + of_numeric(n),
        Datum::Inet(v, cidr) => {
            if v.text(*cidr).contains(':') {
                22
            } else {
                10
            }
        }
        Datum::Enum(_) => 4,
        Datum::Jsonb(json) => 4 + of_jsonb(json),
        Datum::Array(array) => of_array(array)?,
        Datum::Row(row) => of_row(row)?,
        Datum::Range(range) => of_range(range)?,
        other => {
            let mut bytes = Vec::new();
            binary::output(SqlType::new(ty), other, &mut bytes);
            // A path has other words before its points, a polygon its box, too.
            match ty {
                oid::PATH => 11 + bytes.len(),
                oid::POLYGON => 36 + bytes.len(),
                _ => 4 + bytes.len(),
            }
        }
    })
}

/// Digits of base 10,000 behind a header of two bytes, or of four where the scale or the weight is large.
fn of_numeric(n: &Numeric) -> usize {
    let mut bytes = Vec::new();
    binary::output(SqlType::new(oid::NUMERIC), &Datum::numeric(n.clone()), &mut bytes);
    let word = |at: usize| bytes.get(2 * at..2 * at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    let (digits, weight, sign, scale) = (usize::from(word(0)), word(1) as i16, word(2), word(3));
    let special = sign & 0xC000 == 0xC000;
    let short = special || (scale <= 63 && (-64..=63).contains(&weight));
    (if short { 2 } else { 4 }) + 2 * digits
}

/// Entries of four bytes, then the texts, and numbers and containers at multiples of four bytes.
fn of_jsonb(json: &Json) -> usize {
    match json {
        Json::Array(_) | Json::Object(_) => container(json),
        // A scalar stands in an array.
        scalar => {
            let mut end = 8;
            add_scalar(scalar, &mut end);
            end
        }
    }
}

fn aligned(at: usize, to: usize) -> usize {
    at.next_multiple_of(to)
}

fn container(json: &Json) -> usize {
    match json {
        Json::Array(items) => {
            let mut end = 4 + 4 * items.len();
            items.iter().for_each(|item| add_json(item, &mut end));
            end
        }
        Json::Object(members) => {
            let mut end = 4 + 8 * members.len();
            members.iter().for_each(|(key, _)| end += key.len());
            members.iter().for_each(|(_, value)| add_json(value, &mut end));
            end
        }
        _ => 0,
    }
}

fn add_json(json: &Json, end: &mut usize) {
    match json {
        Json::Array(_) | Json::Object(_) => *end = aligned(*end, 4) + container(json),
        scalar => add_scalar(scalar, end),
    }
}

fn add_scalar(scalar: &Json, end: &mut usize) {
    match scalar {
        Json::String(s) => *end += s.len(),
        Json::Number(n) => *end = aligned(*end, 4) + 4 + of_numeric(n),
        _ => {}
    }
}

/// The alignment of a type's values.
fn alignment(ty: Oid) -> usize {
    match (facts(ty).map_or(-1, |facts| facts.len), ty) {
        (_, oid::UUID | oid::NAME | oid::CHAR | oid::BOOL) => 1,
        (2, _) | (_, oid::TID) => 2,
        (-1 | 4 | 6, _) => 4,
        (-2 | 1, _) => 1,
        _ => 8,
    }
}

fn of_array(array: &Array) -> Result<usize> {
    let nulls = if array.values.iter().any(Datum::is_null) { array.values.len().div_ceil(8) } else { 0 };
    let mut end = aligned(16 + 8 * array.dims.len() + nulls, 8);
    if array.dims.is_empty() {
        return Ok(16);
    }
    let alignment = alignment(array.element);
    for value in array.values.iter().filter(|v| !v.is_null()) {
        end += aligned(of_value(value, array.element)?, alignment);
    }
    Ok(end)
}

fn of_row(row: &Record) -> Result<usize> {
    let nulls = if row.values.iter().any(Datum::is_null) { row.values.len().div_ceil(8) } else { 0 };
    let start = if nulls == 0 { ROW_HEADER } else { aligned(23 + nulls, 8) };
    let mut end = 0;
    for (value, ty) in row.values.iter().zip(&row.shape.types).filter(|(v, _)| !v.is_null()) {
        let bytes = of_value(value, ty.oid)?;
        // Texts and the like have their short headers, which stand anywhere.
        end = match is_variable(ty.oid) && bytes <= SHORT_MAX {
            true => end + bytes - 3,
            false => aligned(end, alignment(ty.oid)) + bytes,
        };
    }
    Ok(start + end)
}

/// The number of its type, the bounds, and a byte of flags.
fn of_range(range: &Range) -> Result<usize> {
    let mut end = 8;
    let ends = range.ends.iter().flat_map(|(lower, upper)| [lower, upper]);
    for bound in ends.filter_map(|end| end.value.as_ref()) {
        let ty = range.kind.element;
        let bytes = of_value(bound, ty)?;
        end = match is_variable(ty) && bytes <= SHORT_MAX {
            true => end + bytes - 3,
            false => aligned(end, alignment(ty)) + bytes,
        };
    }
    Ok(end + 1)
}
