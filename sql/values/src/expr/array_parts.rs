//! Parts of arrays: slices, and assignment to elements and slices.

use crate::error::{Result, SqlError, code};
use crate::types::Datum;
use crate::types::datum::Array;
use clearway_base::{breath, memory};

/// The most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 6;
/// The most elements.
const ELEMENTS_MAX: i64 = 134_217_727;

fn subscript(message: impl Into<String>) -> SqlError {
    SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, message)
}

/// `a[i:j]...`: bounds come by twos; one that is left out is the array's own.
///
/// # Errors
/// 53200.
pub fn slice(array: &Datum, bounds: &[Option<Datum>]) -> Result<Datum> {
    let Datum::Array(a) = array else { return Ok(Datum::Null) };
    if bounds.iter().any(|b| b.as_ref().is_some_and(Datum::is_null)) {
        return Ok(Datum::Null);
    }
    let empty = || Datum::Array(Array { element: a.element, dims: Vec::new(), values: Vec::new() }.into());
    if bounds.len() / 2 > a.dims.len() {
        return Ok(empty());
    }
    // The elements of each dimension that remain, from 0.
    let mut kept = Vec::new();
    for (d, (len, low)) in a.dims.iter().enumerate() {
        let (low, high) = (i64::from(*low), i64::from(*low) + i64::from(*len) - 1);
        let given = |n: usize| bounds.get(2 * d + n).and_then(|b| b.as_ref()).and_then(Datum::as_i64);
        let (from, to) = (given(0).unwrap_or(low).max(low), given(1).unwrap_or(high).min(high));
        if from > to {
            return Ok(empty());
        }
        kept.push(((from - low) as usize, (to - low) as usize));
    }
    let dims: Vec<(i32, i32)> = kept.iter().map(|(from, to)| ((to - from + 1) as i32, 1)).collect();
    let count = dims.iter().map(|d| d.0 as usize).product::<usize>();
    memory::claim(count * size_of::<Datum>())?;
    let mut values = Vec::with_capacity(count);
    collect(a, &kept, 0, 0, &mut values)?;
    Ok(Datum::Array(Array { element: a.element, dims, values }.into()))
}

fn collect(a: &Array, kept: &[(usize, usize)], level: usize, base: usize, out: &mut Vec<Datum>) -> Result<()> {
    let Some((from, to)) = kept.get(level) else { return Ok(()) };
    for n in *from..=*to {
        breath::step(8)?;
        let at = base * a.dims[level].0 as usize + n;
        if level + 1 == a.dims.len() {
            out.push(a.values[at].clone());
        } else {
            collect(a, kept, level + 1, at, out)?;
        }
    }
    Ok(())
}

fn bound(d: &Datum) -> Result<i64> {
    d.as_i64().ok_or_else(|| SqlError::new("22004", "array subscript in assignment must not be null"))
}

/// `a[i]... = value`; an array of one dimension grows, with nulls between.
///
/// # Errors
/// 2202E, 22004, 54000.
pub fn assign_element(array: &Datum, element: crate::types::Oid, index: &[Datum], value: &Datum) -> Result<Datum> {
    let index: Vec<i64> = index.iter().map(bound).collect::<Result<_>>()?;
    let mut a = match array {
        Datum::Array(a) => (**a).clone(),
        _ => Array { element, dims: Vec::new(), values: Vec::new() },
    };
    if a.dims.is_empty() {
        if index.len() > DIMENSIONS_MAX {
            let message = format!("number of array dimensions ({}) exceeds the maximum allowed (6)", index.len());
            return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
        }
        a.dims = index.iter().map(|i| (1, *i as i32)).collect();
        a.values = vec![value.clone()];
        return Ok(Datum::Array(a.into()));
    }
    if index.len() != a.dims.len() {
        return Err(subscript("wrong number of array subscripts"));
    }
    if let ([at], [(len, low)]) = (index.as_slice(), a.dims.as_slice()) {
        let (len, low) = (i64::from(*len), i64::from(*low));
        grow(&mut a, (*at).min(low), (*at).max(low + len - 1))?;
        let place = (at - i64::from(a.dims[0].1)) as usize;
        a.values[place] = value.clone();
        return Ok(Datum::Array(a.into()));
    }
    let mut place = 0usize;
    for (i, (len, low)) in index.iter().zip(&a.dims) {
        let n = i - i64::from(*low);
        if !(0..i64::from(*len)).contains(&n) {
            return Err(subscript("array subscript out of range"));
        }
        place = place * *len as usize + n as usize;
    }
    a.values[place] = value.clone();
    Ok(Datum::Array(a.into()))
}

/// Makes an array of one dimension reach from `low` to `high`, with nulls where it had nothing.
fn grow(a: &mut Array, low: i64, high: i64) -> Result<()> {
    let (len, old_low) = (i64::from(a.dims[0].0), i64::from(a.dims[0].1));
    let total = high - low + 1;
    if total > ELEMENTS_MAX {
        let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
    }
    if total == len {
        return Ok(());
    }
    memory::claim(total as usize * size_of::<Datum>())?;
    breath::step_bytes(total as usize)?;
    let mut values = vec![Datum::Null; total as usize];
    for (i, v) in std::mem::take(&mut a.values).into_iter().enumerate() {
        values[(old_low - low) as usize + i] = v;
    }
    a.values = values;
    a.dims[0] = (total as i32, low as i32);
    Ok(())
}

/// The first and last subscript of each dimension of a slice; what is left out is the array's own.
fn ranges(a: &Array, bounds: &[Option<Datum>]) -> Result<Vec<(i64, i64)>> {
    let mut ranges = Vec::new();
    for d in 0..bounds.len() / 2 {
        let own = a.dims.get(d).map(|(len, low)| (i64::from(*low), i64::from(*low) + i64::from(*len) - 1));
        let given = |n: usize| bounds[2 * d + n].as_ref().map(bound).transpose();
        let (low, high) = (given(0)?.or(own.map(|o| o.0)), given(1)?.or(own.map(|o| o.1)));
        let (Some(low), Some(high)) = (low, high) else {
            return Err(subscript("array slice subscript must provide both boundaries").detail(
                "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
            ));
        };
        if low > high {
            return Err(subscript("upper bound cannot be less than lower bound"));
        }
        ranges.push((low, high));
    }
    Ok(ranges)
}

/// `a[i:j]... = value`, an array that has at least as many elements as the slice.
///
/// # Errors
/// 2202E, 22004, 54000.
pub fn assign_slice(
    array: &Datum,
    element: crate::types::Oid,
    bounds: &[Option<Datum>],
    value: &Datum,
) -> Result<Datum> {
    let Datum::Array(source) = value else { return Ok(array.clone()) };
    let mut a = match array {
        Datum::Array(a) => (**a).clone(),
        _ => Array { element, dims: Vec::new(), values: Vec::new() },
    };
    let count = bounds.len() / 2;
    let fresh = a.dims.is_empty();
    if !fresh && a.dims.len() != count {
        return Err(subscript("wrong number of array subscripts"));
    }
    let ranges = ranges(&a, bounds)?;
    let size: i64 = ranges.iter().try_fold(1i64, |n, (low, high)| n.checked_mul(high - low + 1)).unwrap_or(i64::MAX);
    if size > ELEMENTS_MAX {
        let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
    }
    if (source.values.len() as i64) < size {
        return Err(subscript("source array too small"));
    }
    if fresh {
        a.dims = ranges.iter().map(|(low, high)| ((high - low + 1) as i32, *low as i32)).collect();
        a.values = source.values[..size as usize].to_vec();
        return Ok(Datum::Array(a.into()));
    }
    if count == 1 {
        let (len, low) = (i64::from(a.dims[0].0), i64::from(a.dims[0].1));
        grow(&mut a, ranges[0].0.min(low), ranges[0].1.max(low + len - 1))?;
    }
    for ((low, high), (len, own)) in ranges.iter().zip(&a.dims) {
        let own = i64::from(*own);
        if *low < own || *high > own + i64::from(*len) - 1 {
            return Err(subscript("array subscript out of range"));
        }
    }
    let mut from = source.values.iter();
    let mut place = ranges.iter().map(|r| r.0).collect::<Vec<i64>>();
    for _ in 0..size {
        breath::step(8)?;
        let at = place
            .iter()
            .zip(&a.dims)
            .fold(0usize, |at, (i, (len, low))| at * *len as usize + (i - i64::from(*low)) as usize);
        a.values[at] = from.next().cloned().unwrap_or(Datum::Null);
        for d in (0..place.len()).rev() {
            place[d] += 1;
            if place[d] <= ranges[d].1 {
                break;
            }
            place[d] = ranges[d].0;
        }
    }
    Ok(Datum::Array(a.into()))
}
