//! Functions and operators on bit strings.

use super::aggregate::Kind;
use super::functions::{Function, i, table};
use super::text_functions::overlaid_to;
use crate::error::{Result, SqlError, code};
use crate::types::bits::Bits;
use crate::types::{Datum, oid};
use clearway_base::breath;

use oid::{BIT, INT4, INT8, VARBIT};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "length"(BIT) INT4 strict |a, _| Ok(Datum::Int4(bits(a, 0)?.len() as i32)); "bit_length"(BIT) INT4 strict |a, _| Ok(Datum::Int4(bits(a, 0)?.len() as i32));
    "octet_length"(BIT) INT4 strict |a, _| Ok(Datum::Int4(bits(a, 0)?.bytes().len() as i32));
    "bit_count"(BIT) INT8 strict |a, _| Ok(Datum::Int8(bits(a, 0)?.bytes().iter().map(|b| i64::from(b.count_ones())).sum()));
    "substring"(BIT, INT4) BIT strict substring; "substring"(BIT, INT4, INT4) BIT strict substring;
    "position"(BIT, BIT) INT4 strict |a, _| position(bits(a, 1)?, bits(a, 0)?);
    "overlay"(BIT, BIT, INT4) BIT strict overlay; "overlay"(BIT, BIT, INT4, INT4) BIT strict overlay;
    "get_bit"(BIT, INT4) INT4 strict |a, _| Ok(Datum::Int4(i32::from(bits(a, 0)?.get(index(a)?))));
    "set_bit"(BIT, INT4, INT4) BIT strict set_bit;
    "bitcat"(VARBIT, VARBIT) VARBIT strict |a, _| Ok(datum(bits(a, 0)?.joined(bits(a, 1)?)?));
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "&"(BIT, BIT) BIT strict |a, _| both(a, "AND", |x, y| x & y); "|"(BIT, BIT) BIT strict |a, _| both(a, "OR", |x, y| x | y);
    "#"(BIT, BIT) BIT strict |a, _| both(a, "XOR", |x, y| x ^ y); "~"(BIT) BIT strict not;
    "<<"(BIT, INT4) BIT strict |a, _| shifted(a, i(a, 1)); ">>"(BIT, INT4) BIT strict |a, _| shifted(a, -i(a, 1));
    "||"(VARBIT, VARBIT) VARBIT strict |a, _| Ok(datum(bits(a, 0)?.joined(bits(a, 1)?)?));
};

fn bits(a: &[Datum], n: usize) -> Result<&Bits> {
    match a.get(n) {
        Some(Datum::Bits(bits)) => Ok(bits),
        _ => Err(SqlError::internal("a function of bit strings got another type")),
    }
}

fn datum(bits: Bits) -> Datum {
    Datum::Bits(bits.into())
}

fn both(a: &[Datum], verb: &str, op: fn(u8, u8) -> u8) -> Result<Datum> {
    let (x, y) = (bits(a, 0)?, bits(a, 1)?);
    if x.len() != y.len() {
        return Err(SqlError::new("22026", format!("cannot {verb} bit strings of different sizes")));
    }
    breath::step_bytes(x.bytes().len())?;
    let bytes: Vec<u8> = x.bytes().iter().zip(y.bytes()).map(|(x, y)| op(*x, *y)).collect();
    Ok(Bits::of_bytes(x.len(), &bytes).map_or(Datum::Null, datum))
}

/// The next value of bit_and, bit_or or bit_xor.
pub(super) fn folded(kind: Kind, old: &Datum, next: &Datum) -> Result<Datum> {
    let pair = [old.clone(), next.clone()];
    match kind {
        Kind::BitAnd => both(&pair, "AND", |x, y| x & y),
        Kind::BitOr => both(&pair, "OR", |x, y| x | y),
        _ => both(&pair, "XOR", |x, y| x ^ y),
    }
}

fn not(a: &[Datum], _: &super::eval::Env<'_>) -> Result<Datum> {
    let x = bits(a, 0)?;
    let bytes: Vec<u8> = x.bytes().iter().map(|b| !b).collect();
    Ok(Bits::of_bytes(x.len(), &bytes).map_or(Datum::Null, datum))
}

/// Moved to the left; the length stays.
fn shifted(a: &[Datum], left: i64) -> Result<Datum> {
    let x = bits(a, 0)?;
    let mut out = Bits::zeros(x.len())?;
    for at in 0..x.len() {
        breath::step(1)?;
        let from = i64::try_from(at).unwrap_or(i64::MAX).saturating_add(left);
        if let Ok(from) = usize::try_from(from)
            && from < x.len()
        {
            out.set(at, x.get(from));
        }
    }
    Ok(datum(out))
}

/// The bits from a place, counted from 1, and as many as asked for.
fn cut(x: &Bits, start: i64, length: Option<i64>) -> Result<Bits> {
    let end = match length {
        None => i64::MAX,
        Some(length) if length < 0 => {
            return Err(SqlError::new("22011", "negative substring length not allowed"));
        }
        Some(length) => start.saturating_add(length),
    };
    let from = start.max(1) - 1;
    let count = end.saturating_sub(1).saturating_sub(from).max(0);
    x.part(usize::try_from(from).unwrap_or(usize::MAX).min(x.len()), usize::try_from(count).unwrap_or(usize::MAX))
}

fn substring(a: &[Datum], _: &super::eval::Env<'_>) -> Result<Datum> {
    Ok(datum(cut(bits(a, 0)?, i(a, 1), (a.len() > 2).then(|| i(a, 2)))?))
}

fn overlay(a: &[Datum], _: &super::eval::Env<'_>) -> Result<Datum> {
    let (x, new) = (bits(a, 0)?, bits(a, 1)?);
    let start = i(a, 2);
    let length = if a.len() > 3 { i(a, 3) } else { new.len() as i64 };
    if start <= 0 {
        return Err(SqlError::new("22011", "negative substring length not allowed"));
    }
    let (before, behind) = (cut(x, 1, Some(start - 1))?, cut(x, overlaid_to(start, length)?, None)?);
    Ok(datum(before.joined(new)?.joined(&behind)?))
}

/// Where a bit string first stands in another one, counted from 1; 0: nowhere.
fn position(part: &Bits, whole: &Bits) -> Result<Datum> {
    if part.is_empty() && !whole.is_empty() {
        return Ok(Datum::Int4(1));
    }
    for at in 0..(whole.len() + 1).saturating_sub(part.len().max(1)) {
        breath::step(1)?;
        breath::step_bytes(part.len() / 8)?;
        if (0..part.len()).all(|n| whole.get(at + n) == part.get(n)) {
            return Ok(Datum::Int4(at as i32 + 1));
        }
    }
    Ok(Datum::Int4(0))
}

fn index(a: &[Datum]) -> Result<usize> {
    let (n, length) = (i(a, 1), bits(a, 0)?.len());
    usize::try_from(n).ok().filter(|n| *n < length).ok_or_else(|| {
        let message = format!("bit index {n} out of valid range (0..{})", length as i64 - 1);
        SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, message)
    })
}

fn set_bit(a: &[Datum], _: &super::eval::Env<'_>) -> Result<Datum> {
    let (at, mut out) = (index(a)?, bits(a, 0)?.clone());
    let new = i(a, 2);
    if !matches!(new, 0 | 1) {
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "new bit must be 0 or 1"));
    }
    out.set(at, new == 1);
    Ok(datum(out))
}
