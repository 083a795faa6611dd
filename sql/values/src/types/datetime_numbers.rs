//! Parses the numbers in a date or time, and makes the errors of texts that are no date or time.

use super::zone::{Named, fixed_zone};
use crate::error::{SqlError, code};

/// Why a text is no date; PostgreSQL's DTERR codes.
pub(super) enum Refusal {
    Format,
    Field,
    /// Month and day may be the wrong way round.
    MonthOrDay,
    Displacement,
    ZoneName(String),
}

pub(super) type Step<T> = std::result::Result<T, Refusal>;

pub(super) fn short(ty: &str) -> &str {
    if ty == "date" { "date" } else { "timestamp" }
}

pub(super) fn refused(refusal: Refusal, text: &str, ty: &str) -> SqlError {
    let overflow =
        || SqlError::new(code::DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""));
    match refusal {
        Refusal::Format => {
            SqlError::new(code::INVALID_DATETIME_FORMAT, format!("invalid input syntax for type {ty}: \"{text}\""))
        }
        Refusal::Field => overflow(),
        Refusal::MonthOrDay => overflow().hint("Perhaps you need a different \"datestyle\" setting."),
        Refusal::Displacement => SqlError::new("22009", format!("time zone displacement out of range: \"{text}\"")),
        Refusal::ZoneName(name) => {
            SqlError::new(code::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
        }
    }
}

pub(super) fn integer(text: &str) -> Step<i64> {
    text.parse::<i32>().map(i64::from).map_err(|_| if text.is_empty() { Refusal::Format } else { Refusal::Field })
}

/// `.25` in microseconds.
pub(super) fn fraction(text: &str) -> Step<i64> {
    let digits = text.strip_prefix('.').ok_or(Refusal::Format)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Refusal::Format);
    }
    let value: f64 = format!("0.{digits}0").parse().map_err(|_| Refusal::Format)?;
    Ok((value * 1e6).round_ties_even() as i64)
}

/// `+hh`, `-hh:mm`, `+hhmm`, `+hh:mm:ss`: the sign counts hours east of Greenwich.
pub(super) fn displacement(text: &str) -> Step<Named> {
    let body = text.strip_prefix(['+', '-']).ok_or(Refusal::Format)?;
    let mut parts = body.splitn(3, ':');
    let number = |text: &str| match text.parse::<i32>() {
        Ok(n) => Ok(n),
        Err(_) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => Err(Refusal::Displacement),
        Err(_) => Err(Refusal::Format),
    };
    let first = number(parts.next().unwrap_or(""))?;
    let (h, m, s) = match (parts.next(), parts.next()) {
        (None, _) if text.len() > 3 => (first / 100, first % 100, 0),
        (None, _) => (first, 0, 0),
        (Some(m), s) => (first, number(m)?, s.map_or(Ok(0), number)?),
    };
    // PostgreSQL's MAX_TZDISP_HOUR.
    if h > 15 || m > 59 || s > 59 {
        return Err(Refusal::Displacement);
    }
    let seconds = h * 3600 + m * 60 + s;
    let seconds = if text.starts_with('-') { -seconds } else { seconds };
    debug_assert!(fixed_zone(seconds).is_some(), "{seconds} seconds are less than a day");
    Ok(Named::Offset(seconds))
}
