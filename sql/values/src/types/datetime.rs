//! date, timestamp and timestamptz: their text forms by DateStyle and TimeZone, and calendar arithmetic.
//!
//! Days and microseconds count from 2000-01-01, as in PostgreSQL. The calendar is Gregorian throughout;
//! days convert by the algorithms of Howard Hinnant's "chrono-compatible low-level date algorithms".

use super::datetime_input::{EPOCH, Moment, Read, read};
use super::interval::{Interval, IntervalStyle, seconds};
use super::zone::abbreviation_at;
pub use super::zone::{
    abbreviation_at as zone_name_at, fixed_zone, in_zone_to_utc, local_to_utc, offset_at, utc_to_local, utc_to_zone,
    zone, zone_setting,
};
use crate::encoding::Encoding;
use crate::error::{Result, SqlError, code};
use jiff::tz::TimeZone;

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;
/// Days from 1970-01-01 to 2000-01-01.
pub const EPOCH_DAYS: i64 = 10_957;
pub(super) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
pub(super) const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// How dates look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DateStyle {
    Iso,
    Postgres,
    Sql,
    German,
}

/// The order of day, month and year where digits leave it open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DateOrder {
    #[default]
    Mdy,
    Dmy,
    Ymd,
}

/// The settings of a session that decide the text forms of values.
#[derive(Clone, Debug)]
pub struct Format {
    /// DateStyle, first part.
    pub date_style: DateStyle,
    /// DateStyle, second part.
    pub date_order: DateOrder,
    /// IntervalStyle.
    pub interval_style: IntervalStyle,
    /// TimeZone.
    pub zone: TimeZone,
    /// bytea_output: escape.
    pub bytea_escape: bool,
    /// extra_float_digits: above 0, floats have the digits that they need to be read back; else 15 (real: 6) and so many more.
    pub float_digits: i8,
    /// client_encoding.
    pub encoding: Encoding,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            date_style: DateStyle::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            zone: TimeZone::UTC,
            bytea_escape: false,
            float_digits: 1,
            encoding: Encoding::UTF8,
        }
    }
}

/// Days since 2000-01-01 of a civil date; the year is astronomical (0 is 1 BC).
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468 - EPOCH_DAYS
}

/// The civil date of days since 2000-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + EPOCH_DAYS + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

pub(super) fn month_days(year: i64, month: i64) -> i64 {
    let (y, m) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_from_civil(y, m, 1) - days_from_civil(year, month, 1)
}

/// A date as the timestamp of its midnight; the infinities stay.
pub fn date_to_timestamp(days: i32) -> i64 {
    match days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        d => i64::from(d).saturating_mul(DAY),
    }
}

/// Compares a date with a timestamp. A date later than all timestamps is before infinity, as in PostgreSQL.
pub fn compare_date(days: i32, t: i64) -> std::cmp::Ordering {
    match date_to_timestamp(days) {
        i64::MAX if days != i32::MAX && t == i64::MAX => std::cmp::Ordering::Less,
        own => own.cmp(&t),
    }
}

/// The midnight with which a date begins; the infinities stay.
///
/// # Errors
/// 22008 for a date that no timestamp has.
pub fn midnight(days: i32) -> Result<i64> {
    let beyond = || SqlError::new(code::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp");
    match date_to_timestamp(days) {
        t @ (i64::MAX | i64::MIN) if matches!(days, i32::MAX | i32::MIN) => Ok(t),
        t => check_range(t).map_err(|_| beyond()),
    }
}

/// The moment, if PostgreSQL can represent it.
pub(crate) fn check_range(t: i64) -> Result<i64> {
    // 4714-11-24 BC to 294276-12-31, PostgreSQL's limits.
    if (-211_813_488_000_000_000..9_223_371_331_200_000_000).contains(&t) {
        Ok(t)
    } else {
        Err(SqlError::new(code::DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
    }
}

/// A moment in the binary form: an infinity, or one that PostgreSQL can represent.
///
/// # Errors
/// 22008 for any other.
pub fn received(t: i64) -> Result<i64> {
    if matches!(t, i64::MIN | i64::MAX) { Ok(t) } else { check_range(t) }
}

/// A date in the binary form, likewise: 4714-11-24 BC to 5874897-12-31.
///
/// # Errors
/// 22008 for any other.
pub fn date_received(days: i32) -> Result<i32> {
    if matches!(days, i32::MIN | i32::MAX) || (-2_451_545..2_145_031_949).contains(&days) {
        Ok(days)
    } else {
        Err(SqlError::new(code::DATETIME_FIELD_OVERFLOW, "date out of range"))
    }
}

/// Rounds to `precision` digits of the second; negative: leaves it.
pub fn fit(t: i64, precision: i32) -> i64 {
    if !(0..6).contains(&precision) || matches!(t, i64::MAX | i64::MIN) {
        return t;
    }
    let unit = 10i64.pow(6 - precision as u32);
    (t + if t >= 0 { unit / 2 } else { -unit / 2 }) / unit * unit
}

/// A timestamp plus an interval: months by the calendar, then days, then time.
pub fn add_interval(t: i64, i: &Interval) -> Result<i64> {
    if matches!(t, i64::MAX | i64::MIN) {
        return Ok(t);
    }
    let (mut days, time) = (t.div_euclid(DAY), t.rem_euclid(DAY));
    if i.months != 0 {
        let (y, m, d) = civil_from_days(days);
        let total = y * 12 + (m - 1) + i64::from(i.months);
        let (y, m) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        days = days_from_civil(y, m, d.min(month_days(y, m)));
    }
    days += i64::from(i.days);
    let sum = i128::from(days) * i128::from(DAY) + i128::from(time) + i128::from(i.micros);
    let range = || SqlError::new(code::DATETIME_FIELD_OVERFLOW, "timestamp out of range");
    check_range(i64::try_from(sum).map_err(|_| range())?)
}

/// The difference of two timestamps in days and time.
pub fn difference(a: i64, b: i64) -> Result<Interval> {
    let us = a.checked_sub(b).filter(|_| ![a, b].iter().any(|t| matches!(*t, i64::MAX | i64::MIN)));
    let us = us.ok_or_else(|| SqlError::new(code::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite timestamps"))?;
    Ok(Interval { months: 0, days: (us / DAY) as i32, micros: us % DAY })
}

fn infinite(t: i64) -> Option<&'static str> {
    match t {
        i64::MAX => Some("infinity"),
        i64::MIN => Some("-infinity"),
        _ => None,
    }
}

/// The day in the styles SQL, with slashes, and German, with points.
fn with_marks(year: i64, month: i64, day: i64, f: &Format) -> String {
    match (f.date_style, f.date_order) {
        (DateStyle::German, _) => format!("{day:02}.{month:02}.{year:04}"),
        (_, DateOrder::Dmy) => format!("{day:02}/{month:02}/{year:04}"),
        _ => format!("{month:02}/{day:02}/{year:04}"),
    }
}

/// date to text.
pub fn format_date(days: i32, f: &Format) -> String {
    if matches!(days, i32::MAX | i32::MIN) {
        return infinite(date_to_timestamp(days)).unwrap_or_default().to_owned();
    }
    let (y, m, d) = civil_from_days(i64::from(days));
    let (year, bc) = if y <= 0 { (1 - y, " BC") } else { (y, "") };
    match (f.date_style, f.date_order) {
        (DateStyle::Iso, _) => format!("{year:04}-{m:02}-{d:02}{bc}"),
        (DateStyle::Postgres, DateOrder::Dmy) => format!("{d:02}-{m:02}-{year:04}{bc}"),
        (DateStyle::Postgres, _) => format!("{m:02}-{d:02}-{year:04}{bc}"),
        (DateStyle::Sql | DateStyle::German, _) => format!("{}{bc}", with_marks(year, m, d, f)),
    }
}

/// timestamp to text; with `zone_text` the form of timestamptz.
fn format_local(local: i64, f: &Format, zone_text: &str) -> String {
    let (days, time) = (local.div_euclid(DAY), local.rem_euclid(DAY) as u64);
    let (y, m, d) = civil_from_days(days);
    let (year, bc) = if y <= 0 { (1 - y, " BC") } else { (y, "") };
    let clock = format!("{:02}:{:02}:{}", time / 3_600_000_000, time / 60_000_000 % 60, seconds(time % 60_000_000, 2));
    match f.date_style {
        DateStyle::Iso => format!("{year:04}-{m:02}-{d:02} {clock}{zone_text}{bc}"),
        DateStyle::Sql | DateStyle::German => {
            let zone = if zone_text.is_empty() { String::new() } else { format!(" {zone_text}") };
            format!("{} {clock}{zone}{bc}", with_marks(year, m, d, f))
        }
        DateStyle::Postgres => {
            let weekday = WEEKDAYS[(days + 6).rem_euclid(7) as usize];
            let month = MONTHS[(m - 1) as usize];
            let date =
                if f.date_order == DateOrder::Dmy { format!("{d:02} {month}") } else { format!("{month} {d:02}") };
            let zone = if zone_text.is_empty() { String::new() } else { format!(" {zone_text}") };
            format!("{weekday} {date} {clock} {year:04}{zone}{bc}")
        }
    }
}

/// timestamp to text.
pub fn format_timestamp(t: i64, f: &Format) -> String {
    infinite(t).map_or_else(|| format_local(t, f, ""), str::to_owned)
}

/// timestamptz to text.
pub fn format_timestamptz(t: i64, f: &Format) -> String {
    if let Some(text) = infinite(t) {
        return text.to_owned();
    }
    let offset = offset_at(t, &f.zone);
    let zone = match f.date_style {
        DateStyle::Iso => {
            let (sign, abs) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
            let (h, m, s) = (abs / 3600, abs / 60 % 60, abs % 60);
            match (m, s) {
                (0, 0) => format!("{sign}{h:02}"),
                (_, 0) => format!("{sign}{h:02}:{m:02}"),
                _ => format!("{sign}{h:02}:{m:02}:{s:02}"),
            }
        }
        DateStyle::Postgres | DateStyle::Sql | DateStyle::German => abbreviation_at(t, &f.zone),
    };
    format_local(utc_to_local(t, &f.zone), f, &zone)
}

/// Text to date.
pub fn parse_date(text: &str, f: &Format, now: i64) -> Result<i32> {
    let beyond = || SqlError::new(code::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{text}\""));
    match read(text, "date", f, now)? {
        Read::Infinity => Ok(i32::MAX),
        Read::MinusInfinity => Ok(i32::MIN),
        Read::Epoch => Ok(-EPOCH_DAYS as i32),
        Read::Moment(moment) => {
            // 4714-11-24 BC to 5874897-12-31, PostgreSQL's limits.
            if (-2_451_545..2_145_031_949).contains(&moment.days) { Ok(moment.days as i32) } else { Err(beyond()) }
        }
    }
}

/// Text to timestamp; a zone in it is ignored, as in PostgreSQL.
pub fn parse_timestamp(text: &str, f: &Format, now: i64) -> Result<i64> {
    Ok(match read(text, "timestamp", f, now)? {
        Read::Infinity => i64::MAX,
        Read::MinusInfinity => i64::MIN,
        Read::Epoch => EPOCH,
        Read::Moment(moment) => moment.local,
    })
}

/// Text to timestamptz.
pub fn parse_timestamptz(text: &str, f: &Format, now: i64) -> Result<i64> {
    match read(text, "timestamp with time zone", f, now)? {
        Read::Infinity => Ok(i64::MAX),
        Read::MinusInfinity => Ok(i64::MIN),
        Read::Epoch => Ok(EPOCH),
        Read::Moment(Moment { local, zone: Some(zone), .. }) => zone.to_utc(local),
        Read::Moment(Moment { local, zone: None, .. }) => local_to_utc(local, &f.zone),
    }
}
