//! Functions and operators of hstore.

use super::eval::Env;
use super::functions::{Function, s, table};
use super::set_table::{Rows, column};
use crate::error::{Result, SqlError};
use crate::types::datum::Array;
use crate::types::hstore::{self, Hstore, Pair};
use crate::types::{Datum, Oid, oid};
use clearway_base::{breath, memory};
use std::cmp::Ordering;
use std::sync::Arc;

use oid::{BOOL, HSTORE, INT4, JSON, JSONB, TEXT, TEXT_ARRAY};

/// The functions.
#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "hstore"(TEXT, TEXT) HSTORE lenient of_texts; "tconvert"(TEXT, TEXT) HSTORE lenient of_texts;
    "hstore"(TEXT_ARRAY) HSTORE strict |a, _| Ok(datum(hstore::of_array(array(a, 0)?)?)); "hstore"(TEXT_ARRAY, TEXT_ARRAY) HSTORE lenient of_arrays;
    "akeys"(HSTORE) TEXT_ARRAY strict |a, _| Ok(list(keys(value(a, 0)?)?)); "avals"(HSTORE) TEXT_ARRAY strict |a, _| Ok(list(values(value(a, 0)?)?));
    "hstore_to_array"(HSTORE) TEXT_ARRAY strict |a, _| alternating(a, false); "hstore_to_matrix"(HSTORE) TEXT_ARRAY strict |a, _| alternating(a, true);
    "hstore_to_json"(HSTORE) JSON strict |a, _| json(a, false); "hstore_to_json_loose"(HSTORE) JSON strict |a, _| json(a, true);
    "hstore_to_jsonb"(HSTORE) JSONB strict |a, _| jsonb(a, false); "hstore_to_jsonb_loose"(HSTORE) JSONB strict |a, _| jsonb(a, true);
    "fetchval"(HSTORE, TEXT) TEXT strict fetch; "slice_array"(HSTORE, TEXT_ARRAY) TEXT_ARRAY strict slice_array; "slice"(HSTORE, TEXT_ARRAY) HSTORE strict slice;
    "exist"(HSTORE, TEXT) BOOL strict exist; "isexists"(HSTORE, TEXT) BOOL strict exist; "defined"(HSTORE, TEXT) BOOL strict defined;
    "isdefined"(HSTORE, TEXT) BOOL strict defined; "exists_any"(HSTORE, TEXT_ARRAY) BOOL strict any; "exists_all"(HSTORE, TEXT_ARRAY) BOOL strict all;
    "delete"(HSTORE, TEXT) HSTORE strict without_key; "delete"(HSTORE, TEXT_ARRAY) HSTORE strict without_keys; "delete"(HSTORE, HSTORE) HSTORE strict without_pairs;
    "hs_concat"(HSTORE, HSTORE) HSTORE strict joined; "hs_contains"(HSTORE, HSTORE) BOOL strict |a, _| contains(a, 0, 1);
    "hs_contained"(HSTORE, HSTORE) BOOL strict |a, _| contains(a, 1, 0);
    "hstore_eq"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_eq); "hstore_ne"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_ne);
    "hstore_lt"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_lt); "hstore_le"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_le);
    "hstore_gt"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_gt); "hstore_ge"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_ge);
    "hstore_cmp"(HSTORE, HSTORE) INT4 strict |a, _| Ok(Datum::Int4(order(a)? as i32));
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "->"(HSTORE, TEXT) TEXT strict fetch; "->"(HSTORE, TEXT_ARRAY) TEXT_ARRAY strict slice_array; "||"(HSTORE, HSTORE) HSTORE strict joined;
    "?"(HSTORE, TEXT) BOOL strict exist; "?|"(HSTORE, TEXT_ARRAY) BOOL strict any; "?&"(HSTORE, TEXT_ARRAY) BOOL strict all;
    "@>"(HSTORE, HSTORE) BOOL strict |a, _| contains(a, 0, 1); "<@"(HSTORE, HSTORE) BOOL strict |a, _| contains(a, 1, 0);
    "-"(HSTORE, TEXT) HSTORE strict without_key; "-"(HSTORE, TEXT_ARRAY) HSTORE strict without_keys; "-"(HSTORE, HSTORE) HSTORE strict without_pairs;
    "%%"(HSTORE) TEXT_ARRAY strict |a, _| alternating(a, false); "%#"(HSTORE) TEXT_ARRAY strict |a, _| alternating(a, true);
    "#<#"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_lt); "#<=#"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_le);
    "#>#"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_gt); "#>=#"(HSTORE, HSTORE) BOOL strict |a, _| test(a, Ordering::is_ge);
};

/// `h[key]`.
pub static SUBSCRIPT: Function = {
    const ARGS: &[Oid] = &[HSTORE, TEXT];
    Function {
        name: "hstore_subscript",
        args: ARGS,
        result: TEXT,
        strict: true,
        variadic: false,
        volatile: false,
        body: fetch,
    }
};

/// What the assignment to a key is called.
pub const SET_NAME: &str = "hstore_set_key";

/// (value, new text, key): the value with that pair.
pub static SET: Function = {
    const ARGS: &[Oid] = &[HSTORE, TEXT, TEXT];
    Function {
        name: SET_NAME,
        args: ARGS,
        result: HSTORE,
        strict: false,
        variadic: false,
        volatile: false,
        body: with_key,
    }
};

pub(super) fn value(a: &[Datum], n: usize) -> Result<&Hstore> {
    match a.get(n) {
        Some(Datum::Hstore(value)) => Ok(value),
        _ => Err(SqlError::internal("a function of hstore got another type")),
    }
}

fn array(a: &[Datum], n: usize) -> Result<&Array> {
    match a.get(n) {
        Some(Datum::Array(array)) => Ok(array),
        _ => Err(SqlError::internal("a function of arrays got another type")),
    }
}

pub(super) fn datum(value: Hstore) -> Datum {
    Datum::Hstore(value.into())
}

fn text(value: Option<&Arc<str>>) -> Datum {
    value.map_or(Datum::Null, |text| Datum::Text(text.clone()))
}

/// The texts of an array's elements that are not NULL.
fn texts(a: &[Datum], n: usize) -> Result<Vec<Arc<str>>> {
    let values = &array(a, n)?.values;
    memory::claim(values.len() * size_of::<Arc<str>>())?;
    breath::step_bytes(16 * values.len())?;
    let text = |value: &Datum| match value {
        Datum::Text(text) => Some(text.clone()),
        _ => None,
    };
    Ok(values.iter().filter_map(text).collect())
}

fn of_texts(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let text = |value: &Datum| value.as_str().map(Arc::from);
    Ok(text(&a[0]).map_or(Datum::Null, |key| datum(Hstore::new(vec![(key, text(&a[1]))]))))
}

fn of_arrays(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let values = if a[1].is_null() { None } else { Some(array(a, 1)?) };
    Ok(datum(hstore::of_arrays(array(a, 0)?, values)?))
}

fn each(value: &Hstore, of: impl Fn(&Pair) -> Datum) -> Result<Vec<Datum>> {
    memory::claim(value.pairs().len() * size_of::<Datum>())?;
    breath::step_bytes(16 * value.pairs().len())?;
    Ok(value.pairs().iter().map(of).collect())
}

fn keys(value: &Hstore) -> Result<Vec<Datum>> {
    each(value, |pair| text(Some(&pair.0)))
}

fn values(value: &Hstore) -> Result<Vec<Datum>> {
    each(value, |pair| text(pair.1.as_ref()))
}

fn list(values: Vec<Datum>) -> Datum {
    Datum::Array(Array::one_dimensional(TEXT, values).into())
}

/// Keys and values in turn; `matrix`: in two columns.
fn alternating(a: &[Datum], matrix: bool) -> Result<Datum> {
    let value = value(a, 0)?;
    let mut out = Vec::with_capacity(2 * value.pairs().len());
    for (key, value) in keys(value)?.into_iter().zip(values(value)?) {
        out.extend([key, value]);
    }
    if !matrix || out.is_empty() {
        return Ok(list(out));
    }
    let dims = vec![(value.pairs().len() as i32, 1), (2, 1)];
    Ok(Datum::Array(Array { element: TEXT, dims, values: out }.into()))
}

fn json(a: &[Datum], loose: bool) -> Result<Datum> {
    Ok(Datum::Json(hstore::to_json(value(a, 0)?, loose)?.into()))
}

fn jsonb(a: &[Datum], loose: bool) -> Result<Datum> {
    Ok(Datum::Jsonb(crate::types::json::parse(&hstore::to_json(value(a, 0)?, loose)?)?.into()))
}

fn fetch(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(text(value(a, 0)?.get(s(a, 1)).flatten()))
}

/// The values of these keys, in an array of the same shape.
fn slice_array(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (from, wanted) = (value(a, 0)?, array(a, 1)?);
    memory::claim(wanted.values.len() * size_of::<Datum>())?;
    let mut values = Vec::new();
    for key in &wanted.values {
        breath::step(16)?;
        values.push(text(key.as_str().and_then(|key| from.get(key).flatten())));
    }
    Ok(Datum::Array(Array { element: TEXT, dims: wanted.dims.clone(), values }.into()))
}

fn slice(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let from = value(a, 0)?;
    let mut pairs = Vec::new();
    for key in texts(a, 1)? {
        breath::step(16)?;
        if let Some(value) = from.get(&key) {
            pairs.push((key, value.cloned()));
        }
    }
    Ok(datum(Hstore::new(pairs)))
}

fn exist(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Bool(value(a, 0)?.get(s(a, 1)).is_some()))
}

fn defined(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Bool(value(a, 0)?.get(s(a, 1)).flatten().is_some()))
}

fn any(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let from = value(a, 0)?;
    Ok(Datum::Bool(texts(a, 1)?.iter().any(|key| from.get(key).is_some())))
}

fn all(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let from = value(a, 0)?;
    Ok(Datum::Bool(texts(a, 1)?.iter().all(|key| from.get(key).is_some())))
}

fn contains(a: &[Datum], whole: usize, part: usize) -> Result<Datum> {
    Ok(Datum::Bool(value(a, whole)?.contains(value(a, part)?)?))
}

fn without_key(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let key = s(a, 1);
    value(a, 0)?.filtered(|pair| &*pair.0 != key).map(datum)
}

fn without_keys(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let mut keys = texts(a, 1)?;
    keys.sort_unstable();
    value(a, 0)?.filtered(|pair| keys.binary_search(&pair.0).is_err()).map(datum)
}

fn without_pairs(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let other = value(a, 1)?;
    value(a, 0)?.filtered(|pair| other.get(&pair.0) != Some(pair.1.as_ref())).map(datum)
}

fn joined(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    value(a, 0)?.joined(value(a, 1)?).map(datum)
}

fn order(a: &[Datum]) -> Result<Ordering> {
    Ok(hstore::compare(value(a, 0)?, value(a, 1)?))
}

fn test(a: &[Datum], holds: fn(Ordering) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(holds(order(a)?)))
}

fn with_key(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let key = a[2].as_str().ok_or_else(|| SqlError::new("22004", "hstore subscript in assignment must not be null"))?;
    let pair = datum(Hstore::new(vec![(key.into(), a[1].as_str().map(Arc::from))]));
    match &a[0] {
        Datum::Hstore(old) => old.joined(value(&[pair], 0)?).map(datum),
        _ => Ok(pair),
    }
}

/// skeys.
pub fn key_rows(a: &[Datum]) -> Result<Rows> {
    Ok(column(keys(value(a, 0)?)?))
}

/// svals.
pub fn value_rows(a: &[Datum]) -> Result<Rows> {
    Ok(column(values(value(a, 0)?)?))
}

/// each.
pub fn pair_rows(a: &[Datum]) -> Result<Rows> {
    let value = value(a, 0)?;
    memory::claim(value.pairs().len() * (size_of::<Vec<Datum>>() + 2 * size_of::<Datum>()))?;
    Ok(keys(value)?.into_iter().zip(values(value)?).map(|(key, value)| vec![key, value]).collect())
}
