//! Slices of arrays.

use crate::error::Result;
use crate::types::Datum;
use crate::types::datum::Array;
use clearway_base::{breath, memory};

/// The most dimensions of an array.
pub const DIMENSIONS_MAX: usize = 6;

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
