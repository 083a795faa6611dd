//! Functions on arrays.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use super::text_functions::{join, shown};
use super::{array_parts, long_text};
use crate::error::{Result, SqlError, code};
use crate::types::datum::{Array, compare};
use crate::types::{Datum, Oid, oid};
use clearway_base::{breath, memory};

use oid::{ANYARRAY, ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYELEMENT, ANYNONARRAY, INT4, INT4_ARRAY, TEXT, TEXT_ARRAY};
const ANY: Oid = super::resolve::ANY;

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "array_length"(ANYARRAY, INT4) INT4 strict |a, _| dimension(a, |(len, _)| len);
    "array_upper"(ANYARRAY, INT4) INT4 strict |a, _| dimension(a, |(len, low)| low + len - 1);
    "array_lower"(ANYARRAY, INT4) INT4 strict |a, _| dimension(a, |(_, low)| low);
    "cardinality"(ANYARRAY) INT4 strict |a, _| Ok(Datum::Int4(array(a, 0)?.values.len() as i32));
    "array_ndims"(ANYARRAY) INT4 strict |a, _| { let n = array(a, 0)?.dims.len() as i32; Ok(if n == 0 { Datum::Null } else { Datum::Int4(n) }) };
    "array_dims"(ANYARRAY) TEXT strict dims;
    "array_append"(ANYCOMPATIBLEARRAY, ANYCOMPATIBLE) ANYCOMPATIBLEARRAY lenient append;
    "array_prepend"(ANYCOMPATIBLE, ANYCOMPATIBLEARRAY) ANYCOMPATIBLEARRAY lenient prepend;
    "array_cat"(ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY) ANYCOMPATIBLEARRAY lenient cat;
    "array_remove"(ANYCOMPATIBLEARRAY, ANYCOMPATIBLE) ANYCOMPATIBLEARRAY lenient remove;
    "array_replace"(ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, ANYCOMPATIBLE) ANYCOMPATIBLEARRAY lenient replace;
    "array_position"(ANYCOMPATIBLEARRAY, ANYCOMPATIBLE) INT4 lenient position;
    "array_position"(ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, INT4) INT4 lenient position;
    "width_bucket"(ANYCOMPATIBLE, ANYCOMPATIBLEARRAY) INT4 strict bucket;
    "array_positions"(ANYCOMPATIBLEARRAY, ANYCOMPATIBLE) INT4_ARRAY lenient positions;
    "array_fill"(ANYELEMENT, INT4_ARRAY) ANYARRAY lenient fill; "array_fill"(ANYELEMENT, INT4_ARRAY, INT4_ARRAY) ANYARRAY lenient fill;
    "trim_array"(ANYARRAY, INT4) ANYARRAY strict trim;
    "array_to_string"(ANYARRAY, TEXT) TEXT lenient to_string; "array_to_string"(ANYARRAY, TEXT, TEXT) TEXT lenient to_string;
    "string_to_array"(TEXT, TEXT) TEXT_ARRAY lenient of_string; "string_to_array"(TEXT, TEXT, TEXT) TEXT_ARRAY lenient of_string;
    "num_nulls"(ANY) INT4 variadic |a, _| Ok(Datum::Int4(a.iter().filter(|d| d.is_null()).count() as i32));
    "num_nonnulls"(ANY) INT4 variadic |a, _| Ok(Datum::Int4(a.iter().filter(|d| !d.is_null()).count() as i32));
    "quote_literal"(ANYNONARRAY) TEXT strict |a, e| super::text_functions::quote_literal(&[Datum::text(shown(&a[0], e)?)], e);
    "quote_nullable"(ANYNONARRAY) TEXT lenient quote_nullable;
};

fn array(a: &[Datum], n: usize) -> Result<&Array> {
    match a.get(n) {
        Some(Datum::Array(array)) => Ok(array),
        _ => Err(SqlError::internal("a function of arrays got another type")),
    }
}

fn wrap(array: Array) -> Result<Datum> {
    crate::types::size::array(array)
}

fn dimension(a: &[Datum], of: impl Fn((i32, i32)) -> i32) -> Result<Datum> {
    let dim = usize::try_from(i(a, 1) - 1).ok().and_then(|n| array(a, 0).ok()?.dims.get(n).copied());
    Ok(dim.map_or(Datum::Null, |d| Datum::Int4(of(d))))
}

fn dims(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let dims = &array(a, 0)?.dims;
    if dims.is_empty() {
        return Ok(Datum::Null);
    }
    Ok(Datum::text(dims.iter().map(|(len, low)| format!("[{low}:{}]", low + len - 1)).collect::<String>()))
}

/// An array with one element more, before or behind the others.
fn with(array: &Datum, item: &Datum, front: bool) -> Result<Datum> {
    let Datum::Array(a) = array else {
        let element = super::eval::element_type(item);
        return wrap(Array::one_dimensional(element, vec![item.clone()]));
    };
    if a.dims.len() > 1 {
        return Err(SqlError::new("22000", "argument must be empty or one-dimensional array"));
    }
    memory::claim(2 * a.values.len() * size_of::<Datum>())?;
    breath::step_bytes(16 * a.values.len())?;
    let mut values = a.values.clone();
    values.insert(if front { 0 } else { values.len() }, item.clone());
    let low = a.dims.first().map_or(1, |d| d.1);
    wrap(Array { element: a.element, dims: vec![(values.len() as i32, low)], values })
}

fn append(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    with(&a[0], &a[1], false)
}

fn prepend(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    with(&a[1], &a[0], true)
}

fn cat(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    match (&a[0], &a[1]) {
        (Datum::Null, other) | (other, Datum::Null) => Ok(other.clone()),
        (l, r) => super::operators::binary(super::operators::Op::Concat, l, r, e.session),
    }
}

/// NULL is the same as NULL here.
fn same(x: &Datum, y: &Datum) -> bool {
    compare(x, y).is_eq()
}

fn remove(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Array(from) = &a[0] else { return Ok(Datum::Null) };
    if from.dims.len() > 1 {
        return Err(SqlError::unsupported("removing elements from multidimensional arrays"));
    }
    let kept: Vec<Datum> = from.values.iter().filter(|v| !same(v, &a[1])).cloned().collect();
    if kept.len() == from.values.len() {
        return Ok(a[0].clone());
    }
    let low = from.dims.first().map_or(1, |d| d.1);
    let dims = if kept.is_empty() { Vec::new() } else { vec![(kept.len() as i32, low)] };
    wrap(Array { element: from.element, dims, values: kept })
}

fn replace(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Array(from) = &a[0] else { return Ok(Datum::Null) };
    let values = from.values.iter().map(|v| if same(v, &a[1]) { a[2].clone() } else { v.clone() }).collect();
    wrap(Array { element: from.element, dims: from.dims.clone(), values })
}

fn one_dimension(from: &Array) -> Result<i64> {
    match from.dims.as_slice() {
        [] => Ok(1),
        [(_, low)] => Ok(i64::from(*low)),
        _ => Err(SqlError::unsupported("searching for elements in multidimensional arrays")),
    }
}

fn position(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Array(from) = &a[0] else { return Ok(Datum::Null) };
    let low = one_dimension(from)?;
    let start = match a.get(2) {
        None => low,
        Some(d) => d.as_i64().ok_or_else(|| SqlError::new("22004", "initial position must not be null"))?,
    };
    for (at, v) in (low..).zip(&from.values) {
        breath::step(8)?;
        if at >= start && same(v, &a[1]) {
            return Ok(Datum::Int4(at as i32));
        }
    }
    Ok(Datum::Null)
}

/// How many of the thresholds, which rise, the value has reached.
fn bucket(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let thresholds = array(a, 1)?;
    if thresholds.dims.len() > 1 {
        return Err(SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, "thresholds must be one-dimensional array"));
    }
    if thresholds.values.iter().any(Datum::is_null) {
        return Err(SqlError::new("22004", "thresholds array must not contain NULLs"));
    }
    let reached = thresholds.values.partition_point(|t| compare(t, &a[0]).is_le());
    Ok(Datum::Int4(reached as i32))
}

fn positions(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Array(from) = &a[0] else { return Ok(Datum::Null) };
    let low = one_dimension(from)?;
    let found = (low..).zip(&from.values).filter(|(_, v)| same(v, &a[1])).map(|(at, _)| Datum::Int4(at as i32));
    wrap(Array::one_dimensional(oid::INT4, found.collect()))
}

fn fill(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let null = || SqlError::new("22004", "dimension array or low bound array cannot be null");
    let numbers = |d: &Datum| -> Result<Vec<i32>> {
        let Datum::Array(list) = d else { return Err(null()) };
        if list.dims.len() > 1 {
            let detail = "Dimension array must be one dimensional.";
            return Err(SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts").detail(detail));
        }
        let number = |d: &Datum| {
            let message = "dimension values cannot be null";
            d.as_i64().map(|n| n as i32).ok_or_else(|| SqlError::new("22004", message))
        };
        list.values.iter().map(number).collect()
    };
    let lengths = numbers(&a[1])?;
    let lows = match a.get(2) {
        Some(d) => numbers(d)?,
        None => vec![1; lengths.len()],
    };
    if lows.len() != lengths.len() {
        let detail = "Low bound array has different size than dimensions array.";
        return Err(SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts").detail(detail));
    }
    if lengths.len() > array_parts::DIMENSIONS_MAX {
        let message = format!("number of array dimensions ({}) exceeds the maximum allowed (6)", lengths.len());
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let too_large =
        || SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed (134217727)");
    let count = lengths.iter().try_fold(1i64, |n, l| n.checked_mul(i64::from(*l)));
    let count = count.filter(|n| (0..=134_217_727).contains(n)).ok_or_else(too_large)? as usize;
    let element = super::eval::element_type(&a[0]);
    if count == 0 || lengths.is_empty() {
        return wrap(Array::one_dimensional(element, Vec::new()));
    }
    memory::claim(count * size_of::<Datum>())?;
    breath::step_bytes(count)?;
    let dims = lengths.into_iter().zip(lows).collect();
    wrap(Array { element, dims, values: vec![a[0].clone(); count] })
}

fn trim(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let from = array(a, 0)?;
    let (n, len) = (i(a, 1), from.dims.first().map_or(0, |d| i64::from(d.0)));
    if n < 0 || n > len {
        let message = format!("number of elements to trim must be between 0 and {len}");
        return Err(SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, message));
    }
    let low = from.dims.first().map_or(1, |d| i64::from(d.1));
    array_parts::slice(&a[0], &[None, Some(Datum::Int8(low + len - n - 1))])
}

fn to_string(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let (Datum::Array(array), false) = (&a[0], a[1].is_null()) else { return Ok(Datum::Null) };
    match a.get(2).filter(|d| !d.is_null()) {
        None => join(&array.values, s(a, 1), e),
        Some(null) => {
            let values: Vec<Datum> =
                array.values.iter().map(|v| if v.is_null() { null.clone() } else { v.clone() }).collect();
            join(&values, s(a, 1), e)
        }
    }
}

/// The pieces of a text between separators; none: each character by itself.
///
/// # Errors
/// 53200, and the reason for which the statement must end.
pub fn split(whole: &str, separator: Option<&str>) -> Result<Vec<String>> {
    let mut out = Vec::new();
    match separator {
        _ if whole.is_empty() => {}
        None => {
            for c in whole.chars() {
                breath::step(16)?;
                memory::check()?;
                out.push(c.to_string());
            }
        }
        Some("") => out.push(whole.to_owned()),
        Some(separator) => {
            let mut from = 0;
            while let Some(found) = long_text::find(whole, separator, from)? {
                breath::step(16)?;
                memory::check()?;
                out.push(whole[from..found].to_owned());
                from = found + separator.len();
            }
            out.push(whole[from..].to_owned());
        }
    }
    Ok(out)
}

fn of_string(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Some(whole) = a[0].as_str() else { return Ok(Datum::Null) };
    let null = a.get(2).and_then(Datum::as_str);
    let pieces = split(whole, a[1].as_str())?;
    let values = pieces.into_iter().map(|p| if Some(p.as_str()) == null { Datum::Null } else { Datum::text(p) });
    wrap(Array::one_dimensional(oid::TEXT, values.collect()))
}

/// The labels between two, of all of them.
pub(super) static ENUM_RANGE: Function = Function {
    name: "enum_range",
    args: &[oid::ANYARRAY, oid::ANYENUM, oid::ANYENUM],
    result: oid::ANYARRAY,
    strict: false,
    variadic: false,
    volatile: false,
    body: enum_range,
};

fn enum_range(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let all = array(a, 0)?;
    let inside =
        |v: &&Datum| (a[1].is_null() || compare(v, &a[1]).is_ge()) && (a[2].is_null() || compare(v, &a[2]).is_le());
    wrap(Array::one_dimensional(all.element, all.values.iter().filter(inside).cloned().collect()))
}

fn quote_nullable(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::text("NULL"));
    }
    super::text_functions::quote_literal(&[Datum::text(shown(&a[0], e)?)], e)
}
