//! Numbers of bytes as text, and text as numbers of bytes.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, Numeric, oid};

use oid::{INT8, NUMERIC, TEXT};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "pg_size_pretty"(INT8) TEXT strict size_pretty; "pg_size_pretty"(NUMERIC) TEXT strict numeric_size_pretty;
    "pg_size_bytes"(TEXT) INT8 strict |a, _| size_bytes(s(a, 0));
};

/// The units, each 1,024 times the one before.
const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];

/// Bytes with a unit, below 10,240 of it, as in PostgreSQL.
fn size_pretty(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::text(size_shown(i128::from(i(a, 0)))))
}

fn numeric_size_pretty(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Numeric(size) = &a[0] else { return Err(SqlError::internal("a function of numeric got another type")) };
    let text = size.to_string();
    let whole = text.split('.').next().and_then(|whole| whole.parse::<i128>().ok());
    Ok(Datum::text(match whole {
        Some(whole) if whole.abs() >= 10_240 => size_shown(whole),
        Some(_) => format!("{text} bytes"),
        None if size.scale().is_none() => format!("{text} bytes"),
        None => return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range")),
    }))
}

/// PostgreSQL counts in halves of the next unit, and rounds them away from zero at the end.
fn size_shown(size: i128) -> String {
    if size.abs() < 10_240 {
        return format!("{size} bytes");
    }
    let mut halves = size / 512;
    let mut units = UNITS.into_iter().skip(1);
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if halves.abs() < 20_479 {
            break;
        }
        (halves, unit) = (halves / 1_024, next);
    }
    format!("{} {unit}", (halves + halves.signum()) / 2)
}

/// How many bytes a number with a unit is.
fn size_bytes(text: &str) -> Result<Datum> {
    let invalid = || SqlError::new("22023", format!("invalid size: \"{text}\""));
    let white = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let trimmed = text.trim_start_matches(white);
    let (number, unit) = trimmed.split_at(number_length(trimmed).ok_or_else(invalid)?);
    let number = Numeric::parse(number).ok_or_else(invalid)??;
    let unit = unit.trim_matches(white);
    let place = match unit {
        "" => 0,
        unit => UNITS.iter().position(|known| known.eq_ignore_ascii_case(unit)).ok_or_else(|| {
            invalid()
                .detail(format!("Invalid size unit: \"{unit}\"."))
                .hint("Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".")
        })?,
    };
    let bytes = number.mul(&Numeric::from(1_i64 << (10 * place)));
    Ok(Datum::Int8(bytes.to_i64("bigint")?))
}

/// The bytes of the number at the begin of a text: a sign, digits, a fraction, an exponent if digits follow its letter. None: no digits.
fn number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let signed = |at: usize| at + usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let mut end = signed(0);
    let whole = digits(end);
    end += whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let from = signed(end + 1);
        let exponent = digits(from);
        if exponent > 0 {
            end = from + exponent;
        }
    }
    Some(end)
}
