//! Assignment to an element or a slice of an array, as UPDATE does it.

use super::eval::Env;
use super::functions::Function;
use crate::error::{Result, SqlError, code};
use crate::types::datum::Array;
use crate::types::{Datum, Oid, oid, size};
use clearway_base::{breath, memory};

/// The most dimensions that an array has.
const DIMENSIONS_MAX: usize = 6;
/// The most elements.
const ELEMENTS_MAX: i64 = (1 << 27) - 1;

/// `array[i] = value`: (array, value, type of the elements, one subscript for each dimension).
pub static ELEMENT: Function = function("array_set_element", set_element);
/// `array[i:j] = values`: (array, values, type of the elements, given bounds as an array of booleans, two bounds for each dimension).
pub static SLICE: Function = function("array_set_slice", set_slice);

const fn function(name: &'static str, body: super::functions::Body) -> Function {
    const ARGS: &[Oid] = &[oid::ANYARRAY, oid::ANYELEMENT, oid::OID];
    Function { name, args: ARGS, result: oid::ANYARRAY, strict: false, variadic: false, volatile: false, body }
}

fn refused(message: &str) -> SqlError {
    SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, message)
}

fn no_null() -> SqlError {
    SqlError::new("22004", "array subscript in assignment must not be null")
}

fn old(a: &[Datum]) -> Result<Array> {
    let element = a[2].as_i64().and_then(|n| Oid::try_from(n).ok()).unwrap_or(oid::TEXT);
    match &a[0] {
        Datum::Null => Ok(Array { element, dims: Vec::new(), values: Vec::new() }),
        Datum::Array(old) => Ok((**old).clone()),
        _ => Err(SqlError::internal("an assignment to a part of what is no array")),
    }
}

fn subscript(d: &Datum) -> Result<i64> {
    d.as_i64().ok_or_else(no_null)
}

/// An array of one dimension whose bounds reach from `low` to `high` at least; what comes between is null.
fn reach(array: &mut Array, low: i64, high: i64) -> Result<()> {
    let (length, first) = array.dims[0];
    let (first, last) = (i64::from(first), i64::from(first) + i64::from(length) - 1);
    let (new_first, new_last) = (first.min(low), last.max(high));
    let length = new_last - new_first + 1;
    if length > ELEMENTS_MAX {
        let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
    }
    memory::claim(usize::try_from(length).unwrap_or(0) * size_of::<Datum>())?;
    breath::step_bytes(usize::try_from(length).unwrap_or(0))?;
    let before = usize::try_from(first - new_first).unwrap_or(0);
    array.values.splice(0..0, std::iter::repeat_n(Datum::Null, before));
    array.values.resize(usize::try_from(length).unwrap_or(0), Datum::Null);
    array.dims[0] = (length as i32, new_first as i32);
    Ok(())
}

fn within_range(n: i64) -> Result<()> {
    // The upper bound has to be an int, too.
    if n > i64::from(i32::MAX) - 1 || n < i64::from(i32::MIN) {
        return Err(SqlError::new(
            code::PROGRAM_LIMIT_EXCEEDED,
            "array lower bound is too large: ".to_owned() + &n.to_string(),
        ));
    }
    Ok(())
}

fn set_element(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    with_element(a)
}

fn set_slice(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    with_slice(a)
}

/// The array with another element: the arguments of [`ELEMENT`].
///
/// # Errors
/// 2202E, 54000.
pub fn with_element(a: &[Datum]) -> Result<Datum> {
    let mut array = old(a)?;
    let at = a[3..].iter().map(subscript).collect::<Result<Vec<i64>>>()?;
    at.iter().try_for_each(|n| within_range(*n))?;
    if at.len() > DIMENSIONS_MAX {
        return Err(too_many(at.len()));
    }
    if array.dims.is_empty() {
        array.dims = at.iter().map(|n| (1, *n as i32)).collect();
        array.values = vec![a[1].clone()];
        return size::array(array);
    }
    if array.dims.len() != at.len() {
        return Err(refused("wrong number of array subscripts"));
    }
    if let [n] = at[..] {
        reach(&mut array, n, n)?;
    }
    let place = place(&array, &at).ok_or_else(|| refused("array subscript out of range"))?;
    array.values[place] = a[1].clone();
    size::array(array)
}

fn too_many(n: usize) -> SqlError {
    let message = format!("number of array dimensions ({n}) exceeds the maximum allowed ({DIMENSIONS_MAX})");
    SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message)
}

/// Where an element stands.
fn place(array: &Array, at: &[i64]) -> Option<usize> {
    let mut place = 0;
    for ((length, low), n) in array.dims.iter().zip(at) {
        let offset = usize::try_from(n - i64::from(*low)).ok().filter(|o| *o < *length as usize)?;
        place = place * *length as usize + offset;
    }
    Some(place)
}

/// The bounds of one dimension; none: left out.
type Bounds = (Option<i64>, Option<i64>);

/// The array with another slice: the arguments of [`SLICE`].
///
/// # Errors
/// 2202E, 54000.
pub fn with_slice(a: &[Datum]) -> Result<Datum> {
    // As in PostgreSQL, NULL changes nothing.
    let Datum::Array(source) = &a[1] else { return Ok(a[0].clone()) };
    let mut array = old(a)?;
    let Datum::Array(given) = &a[3] else { return Err(SqlError::internal("a slice without its bounds")) };
    let mut bounds: Vec<Option<i64>> = Vec::new();
    for (is_given, bound) in given.values.iter().zip(&a[4..]) {
        bounds.push(if is_given.as_bool() == Some(true) { Some(subscript(bound)?) } else { None });
    }
    let bounds: Vec<Bounds> = bounds.chunks_exact(2).map(|b| (b[0], b[1])).collect();
    bounds.iter().flat_map(|(low, high)| low.iter().chain(high)).try_for_each(|n| within_range(*n))?;
    if bounds.len() > DIMENSIONS_MAX {
        return Err(too_many(bounds.len()));
    }
    if array.dims.is_empty() {
        return fresh(array, &bounds, source);
    }
    if array.dims.len() < bounds.len() {
        return Err(refused("wrong number of array subscripts"));
    }
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for (n, (length, first)) in array.dims.iter().enumerate() {
        let last = i64::from(*first) + i64::from(*length) - 1;
        let (low, high) = bounds.get(n).copied().unwrap_or((None, None));
        let (low, high) = (low.unwrap_or(i64::from(*first)), high.unwrap_or(last));
        if low > high {
            return Err(refused("upper bound cannot be less than lower bound"));
        }
        if array.dims.len() > 1 && (low < i64::from(*first) || high > last) {
            return Err(refused("array subscript out of range"));
        }
        ranges.push((low, high));
    }
    let wanted: i64 = ranges.iter().map(|(low, high)| high - low + 1).product();
    if i64::try_from(source.values.len()).unwrap_or(0) < wanted {
        return Err(refused("source array too small"));
    }
    if let [(low, high)] = ranges[..] {
        reach(&mut array, low, high)?;
    }
    let mut at: Vec<i64> = ranges.iter().map(|r| r.0).collect();
    for value in source.values.iter().take(usize::try_from(wanted).unwrap_or(0)) {
        breath::step(16)?;
        let place = place(&array, &at).ok_or_else(|| refused("array subscript out of range"))?;
        array.values[place] = value.clone();
        for (n, range) in at.iter_mut().zip(&ranges).rev() {
            *n += 1;
            if *n <= range.1 {
                break;
            }
            *n = range.0;
        }
    }
    size::array(array)
}

/// A slice of an empty array.
fn fresh(mut array: Array, bounds: &[Bounds], source: &Array) -> Result<Datum> {
    let mut wanted = 1i64;
    for bound in bounds {
        let (Some(low), Some(high)) = bound else {
            let detail = "When assigning to a slice of an empty array value, slice boundaries must be fully specified.";
            return Err(refused("array slice subscript must provide both boundaries").detail(detail));
        };
        let length = high - low + 1;
        if length < 0 {
            return Err(refused("upper bound cannot be less than lower bound"));
        }
        wanted = wanted.saturating_mul(length);
        array.dims.push((length as i32, *low as i32));
    }
    let count = usize::try_from(wanted).unwrap_or(usize::MAX);
    if source.values.len() < count {
        return Err(refused("source array too small"));
    }
    if count == 0 {
        array.dims.clear();
    }
    array.values = source.values[..count].to_vec();
    size::array(array)
}
