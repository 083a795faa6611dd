//! time and timetz: their text forms and their order.

use super::datetime::{DAY, SECOND, local_to_utc, offset_at, utc_to_local};
use super::datetime_input::read_time;
use super::datum::Datum;
use super::interval::seconds;
use super::text::Conversion;
use crate::error::{Result, SqlError, code};
use std::cmp::Ordering;

/// Text to time; a zone in it is ignored.
pub fn parse(text: &str, c: &Conversion<'_>) -> Result<i64> {
    Ok(read_time(text, "time", c.format, c.now)?.time)
}

/// Text to timetz; without a zone it is that of the session, today.
pub fn parse_zoned(text: &str, c: &Conversion<'_>) -> Result<Datum> {
    let read = read_time(text, "time with time zone", c.format, c.now)?;
    let day = read.days.unwrap_or_else(|| utc_to_local(c.now, &c.format.zone).div_euclid(DAY));
    let local = day.saturating_mul(DAY).saturating_add(read.time);
    let utc = match &read.zone {
        Some(zone) => zone.to_utc(local)?,
        None => local_to_utc(local, &c.format.zone)?,
    };
    let east = match &read.zone {
        Some(zone) => zone.offset_at(utc),
        None => offset_at(utc, &c.format.zone),
    };
    Ok(Datum::TimeTz(read.time, -(east as i32)))
}

/// time to text.
pub fn format(time: i64) -> String {
    format!(
        "{:02}:{:02}:{}",
        time / (3600 * SECOND),
        time / (60 * SECOND) % 60,
        seconds((time % (60 * SECOND)) as u64, 2)
    )
}

/// timetz to text.
pub fn format_zoned(time: i64, west: i32) -> String {
    let (sign, abs) = if west > 0 { ('-', west) } else { ('+', -west) };
    let mut out = format!("{}{sign}{:02}", format(time), abs / 3600);
    if abs % 3600 != 0 {
        out.push_str(&format!(":{:02}", abs / 60 % 60));
    }
    if abs % 60 != 0 {
        out.push_str(&format!(":{:02}", abs % 60));
    }
    out
}

/// By the instant, then by the zone.
pub fn zoned_order(a: (i64, i32), b: (i64, i32)) -> Ordering {
    let instant = |(time, west): (i64, i32)| time + i64::from(west) * SECOND;
    instant(a).cmp(&instant(b)).then(a.1.cmp(&b.1))
}

/// A time from outside.
///
/// # Errors
/// 22008.
pub fn checked(time: i64) -> Result<i64> {
    if (0..=DAY).contains(&time) {
        Ok(time)
    } else {
        Err(SqlError::new(code::DATETIME_FIELD_OVERFLOW, "time out of range"))
    }
}

/// A zone from outside: less than sixteen hours.
///
/// # Errors
/// 22009.
pub fn checked_zone(west: i32) -> Result<i32> {
    if west > -16 * 3600 && west < 16 * 3600 {
        return Ok(west);
    }
    Err(SqlError::new("22009", "time zone displacement out of range"))
}
