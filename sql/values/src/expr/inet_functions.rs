//! Functions and operators on inet and cidr.

use super::eval::Env;
use super::functions::{Function, i, table};
use crate::error::{Result, SqlError, code};
use crate::types::inet::Inet;
use crate::types::{Datum, oid};

use oid::{BOOL, CIDR, INET, INT4, INT8, TEXT};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "host"(INET) TEXT strict |a, _| Ok(Datum::text(inet(a, 0)?.0.host()));
    "text"(INET) TEXT strict |a, _| { let (v, _) = inet(a, 0)?; Ok(Datum::text(v.text(true))) };
    "abbrev"(INET) TEXT strict |a, _| { let (v, _) = inet(a, 0)?; Ok(Datum::text(v.text(false))) };
    "abbrev"(CIDR) TEXT strict abbrev_cidr;
    "family"(INET) INT4 strict |a, _| Ok(Datum::Int4(if inet(a, 0)?.0.v6 { 6 } else { 4 }));
    "masklen"(INET) INT4 strict |a, _| Ok(Datum::Int4(i32::from(inet(a, 0)?.0.bits)));
    "netmask"(INET) INET strict |a, _| mask(a, true); "hostmask"(INET) INET strict |a, _| mask(a, false);
    "network"(INET) CIDR strict |a, _| Ok(Datum::Inet(inet(a, 0)?.0.masked(false), true));
    "broadcast"(INET) INET strict |a, _| Ok(Datum::Inet(inet(a, 0)?.0.masked(true), false));
    "set_masklen"(INET, INT4) INET strict set_masklen; "set_masklen"(CIDR, INT4) CIDR strict set_masklen;
    "inet_same_family"(INET, INET) BOOL strict |a, _| Ok(Datum::Bool(inet(a, 0)?.0.v6 == inet(a, 1)?.0.v6));
    "inet_merge"(INET, INET) CIDR strict merge;
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "<<"(INET, INET) BOOL strict |a, _| within(a, 1, 0, true); "<<="(INET, INET) BOOL strict |a, _| within(a, 1, 0, false);
    ">>"(INET, INET) BOOL strict |a, _| within(a, 0, 1, true); ">>="(INET, INET) BOOL strict |a, _| within(a, 0, 1, false);
    "&&"(INET, INET) BOOL strict overlap; "~"(INET) INET strict not;
    "&"(INET, INET) INET strict |a, _| both(a, "AND", |x, y| x & y); "|"(INET, INET) INET strict |a, _| both(a, "OR", |x, y| x | y);
    "+"(INET, INT8) INET strict |a, _| moved(a, 0, i128::from(i(a, 1))); "+"(INT8, INET) INET strict |a, _| moved(a, 1, i128::from(i(a, 0)));
    "-"(INET, INT8) INET strict |a, _| moved(a, 0, -i128::from(i(a, 1))); "-"(INET, INET) INT8 strict difference;
};

fn inet(a: &[Datum], n: usize) -> Result<(Inet, bool)> {
    match a.get(n) {
        Some(Datum::Inet(inet, cidr)) => Ok((*inet, *cidr)),
        _ => Err(SqlError::internal("a function of inet got another type")),
    }
}

fn mask(a: &[Datum], net: bool) -> Result<Datum> {
    let (v, _) = inet(a, 0)?;
    let zero = Inet { bytes: [0; 16], ..v };
    let host = zero.masked(true);
    let bytes: Vec<u8> = host.address().iter().map(|b| if net { !b } else { *b }).collect();
    Ok(Inet::new(&bytes, v.width()).map_or(Datum::Null, |m| Datum::Inet(m, false)))
}

fn abbrev_cidr(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (v, _) = inet(a, 0)?;
    if v.v6 {
        return Ok(Datum::text(v.text(true)));
    }
    let shown = usize::from(v.bits.div_ceil(8)).max(1);
    let parts: Vec<String> = v.address()[..shown].iter().map(u8::to_string).collect();
    Ok(Datum::text(format!("{}/{}", parts.join("."), v.bits)))
}

fn set_masklen(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (v, cidr) = inet(a, 0)?;
    let bits = if i(a, 1) == -1 { i64::from(v.width()) } else { i(a, 1) };
    if !(0..=i64::from(v.width())).contains(&bits) {
        let message = format!("invalid mask length: {}", i(a, 1));
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    let v = Inet { bits: bits as u8, ..v };
    Ok(Datum::Inet(if cidr { v.masked(false) } else { v }, cidr))
}

fn merge(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let ((x, _), (y, _)) = (inet(a, 0)?, inet(a, 1)?);
    if x.v6 != y.v6 {
        let message = "cannot merge addresses from different families";
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    let common = x.number() ^ y.number();
    let same = (common.leading_zeros() as u8).saturating_sub(128 - x.width());
    let v = Inet { bits: same.min(x.bits).min(y.bits), ..x };
    Ok(Datum::Inet(v.masked(false), true))
}

fn within(a: &[Datum], net: usize, part: usize, strictly: bool) -> Result<Datum> {
    let ((net, _), (part, _)) = (inet(a, net)?, inet(a, part)?);
    Ok(Datum::Bool(net.holds(&part) && !(strictly && net.bits == part.bits)))
}

fn overlap(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let ((x, _), (y, _)) = (inet(a, 0)?, inet(a, 1)?);
    Ok(Datum::Bool(x.holds(&y) || y.holds(&x)))
}

fn not(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (v, _) = inet(a, 0)?;
    let bytes: Vec<u8> = v.address().iter().map(|b| !b).collect();
    Ok(Inet::new(&bytes, v.bits).map_or(Datum::Null, |v| Datum::Inet(v, false)))
}

fn both(a: &[Datum], name: &str, of: fn(u8, u8) -> u8) -> Result<Datum> {
    let ((x, _), (y, _)) = (inet(a, 0)?, inet(a, 1)?);
    if x.v6 != y.v6 {
        let message = format!("cannot {name} inet values of different sizes");
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    let bytes: Vec<u8> = x.address().iter().zip(y.address()).map(|(p, q)| of(*p, *q)).collect();
    Ok(Inet::new(&bytes, x.bits.max(y.bits)).map_or(Datum::Null, |v| Datum::Inet(v, false)))
}

fn out_of_range() -> SqlError {
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

fn moved(a: &[Datum], n: usize, by: i128) -> Result<Datum> {
    let (v, _) = inet(a, n)?;
    v.moved(by).map(|v| Datum::Inet(v, false)).ok_or_else(out_of_range)
}

fn difference(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let ((x, _), (y, _)) = (inet(a, 0)?, inet(a, 1)?);
    if x.v6 != y.v6 {
        let message = "cannot subtract inet values of different sizes";
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    let (p, q) = (x.number(), y.number());
    let distance = i64::try_from(p.abs_diff(q)).map_err(|_| out_of_range())?;
    Ok(Datum::Int8(if p < q { -distance } else { distance }))
}
