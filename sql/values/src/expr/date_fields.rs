//! extract, date_part and date_trunc of dates, timestamps and intervals; those of times are in `time_functions`.
//!
//! Source: PostgreSQL 15's timestamp_part_common, extract_date, interval_part_common and timestamp_trunc (src/backend/utils/adt).

use super::eval::Env;
use super::functions::{Function, s, table};
use super::to_char::iso_week;
use crate::error::{Result, SqlError, code};
use crate::types::interval::Interval;
use crate::types::{Datum, Numeric, datetime, oid};

use oid::{DATE, FLOAT8, INTERVAL, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// The Julian day of 2000-01-01, from which days are counted here.
const JULIAN_OF_FIRST: i64 = 2_451_545;
/// The first timestamp, 4713-11-24 BC.
const FIRST: i64 = -211_813_488_000_000_000;
/// The first day after the last timestamp, 294277-01-01.
const END_DAY: i32 = 106_751_983;

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "date_part"(TEXT, TIMESTAMP) FLOAT8 strict date_part; "date_part"(TEXT, TIMESTAMPTZ) FLOAT8 strict date_part;
    "date_part"(TEXT, DATE) FLOAT8 strict date_part; "date_part"(TEXT, INTERVAL) FLOAT8 strict date_part;
    "extract"(TEXT, TIMESTAMP) NUMERIC strict extract; "extract"(TEXT, TIMESTAMPTZ) NUMERIC strict extract;
    "extract"(TEXT, DATE) NUMERIC strict extract; "extract"(TEXT, INTERVAL) NUMERIC strict extract;
    "date_trunc"(TEXT, TIMESTAMP) TIMESTAMP strict date_trunc; "date_trunc"(TEXT, TIMESTAMPTZ) TIMESTAMPTZ strict date_trunc;
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Julian,
    IsoYear,
    Dow,
    IsoDow,
    Doy,
    Epoch,
    Zone,
    ZoneHour,
    ZoneMinute,
}

/// The unit of a name. As in PostgreSQL, the first ten characters of a name count.
fn unit(name: &str) -> Option<Unit> {
    use Unit::*;
    let name: String = name.chars().take(10).collect();
    Some(match name.as_str() {
        "microsecon" | "us" | "usec" | "usecs" | "usecond" | "useconds" => Microsecond,
        "millisecon" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Millisecond,
        "s" | "sec" | "secs" | "second" | "seconds" => Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Hour,
        "d" | "day" | "days" => Day,
        "w" | "week" | "weeks" => Week,
        "mon" | "mons" | "month" | "months" => Month,
        "qtr" | "quarter" => Quarter,
        "y" | "yr" | "yrs" | "year" | "years" => Year,
        "dec" | "decs" | "decade" | "decades" => Decade,
        "c" | "cent" | "century" | "centuries" => Century,
        "mil" | "mils" | "millennium" | "millennia" => Millennium,
        "j" | "jd" | "julian" => Julian,
        "isoyear" => IsoYear,
        "dow" => Dow,
        "isodow" => IsoDow,
        "doy" => Doy,
        "epoch" => Epoch,
        "timezone" => Zone,
        "timezone_h" => ZoneHour,
        "timezone_m" => ZoneMinute,
        _ => return None,
    })
}

fn type_name(value: &Datum) -> &'static str {
    match value {
        Datum::Date(_) => "date",
        Datum::Timestamp(_) => "timestamp without time zone",
        Datum::TimestampTz(_) => "timestamp with time zone",
        _ => "interval",
    }
}

fn unknown(a: &[Datum]) -> SqlError {
    let message = format!("unit \"{}\" not recognized for type {}", s(a, 0).to_lowercase(), type_name(&a[1]));
    SqlError::new(code::INVALID_PARAMETER_VALUE, message)
}

fn unsupported(a: &[Datum]) -> SqlError {
    let message = format!("unit \"{}\" not supported for type {}", s(a, 0).to_lowercase(), type_name(&a[1]));
    SqlError::new(code::FEATURE_NOT_SUPPORTED, message)
}

fn named(a: &[Datum]) -> Result<Unit> {
    unit(&s(a, 0).to_lowercase()).ok_or_else(|| unknown(a))
}

fn wrong() -> SqlError {
    SqlError::internal("a function got an argument of another type")
}

/// What a field is: a number with digits behind the point, or for a moment that is not finite.
enum Field {
    /// In units of 10^-6, and how many digits of it are shown.
    Number(i128, i32),
    /// A Julian day and the time of that day.
    Julian(i64, i64),
    /// Of a moment without an end: the field grows without an end.
    Endless(bool),
    /// Of such a moment: the field has no value.
    None,
}

fn whole(v: i64) -> Result<Field> {
    Ok(Field::Number(i128::from(v) * i128::from(SECOND), 0))
}

/// Seconds of a minute, in a unit of which a second has so many.
fn seconds(time: i64, unit: Unit) -> Result<Field> {
    let within = time % (60 * SECOND);
    Ok(match unit {
        Unit::Second => Field::Number(within.into(), 6),
        Unit::Millisecond => Field::Number(i128::from(within) * 1000, 3),
        _ => return whole(within),
    })
}

fn of_interval(a: &[Datum], v: &Interval) -> Result<Field> {
    let (years, months) = (i64::from(v.months / 12), i64::from(v.months % 12));
    match named(a)? {
        unit @ (Unit::Microsecond | Unit::Millisecond | Unit::Second) => seconds(v.micros, unit),
        Unit::Minute => whole(v.micros / (60 * SECOND) % 60),
        Unit::Hour => whole(v.micros / (3600 * SECOND)),
        Unit::Day => whole(v.days.into()),
        Unit::Month => whole(months),
        Unit::Quarter => whole(months / 3 + 1),
        Unit::Year => whole(years),
        Unit::Decade => whole(years / 10),
        Unit::Century => whole(years / 100),
        Unit::Millennium => whole(years / 1000),
        Unit::Epoch => {
            let days = i128::from(years) * 31_557_600 + i128::from(months) * 2_592_000 + i128::from(v.days) * 86_400;
            Ok(Field::Number(days * i128::from(SECOND) + i128::from(v.micros), 6))
        }
        _ => Err(unsupported(a)),
    }
}

/// Of a moment that is not finite.
fn of_endless(unit: Unit, late: bool) -> Field {
    use Unit::*;
    match unit {
        Year | Decade | Century | Millennium | Julian | IsoYear | Epoch => Field::Endless(late),
        _ => Field::None,
    }
}

/// Of which `size` of years a year is part, counted from 1 on and from -1 back; `year` counts 1 BC as 0.
fn age_of(year: i64, size: i64) -> i64 {
    if year > 0 { (year + size - 1) / size } else { -((size - 1 - (year - 1)) / size) }
}

fn decade_of(year: i64) -> i64 {
    if year >= 0 { year / 10 } else { -((8 - (year - 1)) / 10) }
}

/// A year before Christ is negative; there is no year 0.
fn shown_year(year: i64) -> i64 {
    if year <= 0 { year - 1 } else { year }
}

/// A moment by the session's clock.
struct Moment {
    /// Days since 2000-01-01, and the time of that day.
    days: i64,
    time: i64,
    /// The same moment in UTC, in microseconds.
    utc: i128,
    /// The zone's distance from UTC in seconds, to the east.
    east: i64,
    /// It has no end: `infinity`, or with false `-infinity`.
    endless: Option<bool>,
}

fn moment(value: &Datum, e: &Env<'_>) -> Result<Moment> {
    let (local, utc) = match value {
        Datum::Date(d) => {
            let utc = i128::from(*d) * i128::from(DAY);
            let endless = matches!(*d, i32::MAX | i32::MIN).then_some(*d > 0);
            return Ok(Moment { days: (*d).into(), time: 0, utc, east: 0, endless });
        }
        Datum::Timestamp(t) => (*t, *t),
        Datum::TimestampTz(t) => (datetime::utc_to_local(*t, &e.session.format().zone), *t),
        _ => return Err(wrong()),
    };
    let endless = matches!(utc, i64::MAX | i64::MIN).then_some(utc > 0);
    let (days, time) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    Ok(Moment { days, time, utc: utc.into(), east: (local - utc) / SECOND, endless })
}

fn field(a: &[Datum], e: &Env<'_>) -> Result<Field> {
    if let Datum::Interval(v) = &a[1] {
        return of_interval(a, v);
    }
    let unit = named(a)?;
    let Moment { days, time, utc, east, endless } = moment(&a[1], e)?;
    if let Some(late) = endless {
        return Ok(of_endless(unit, late));
    }
    let (year, month, day) = datetime::civil_from_days(days);
    match unit {
        Unit::Microsecond | Unit::Millisecond | Unit::Second => seconds(time, unit),
        Unit::Minute => whole(time / (60 * SECOND) % 60),
        Unit::Hour => whole(time / (3600 * SECOND)),
        Unit::Day => whole(day),
        Unit::Week => whole(iso_week(days).1),
        Unit::Month => whole(month),
        Unit::Quarter => whole((month + 2) / 3),
        Unit::Year => whole(shown_year(year)),
        Unit::Decade => whole(decade_of(year)),
        Unit::Century => whole(age_of(year, 100)),
        Unit::Millennium => whole(age_of(year, 1000)),
        Unit::Julian => Ok(Field::Julian(days + JULIAN_OF_FIRST, time)),
        Unit::IsoYear => whole(shown_year(iso_week(days).0)),
        Unit::Dow => whole((days + 6).rem_euclid(7)),
        Unit::IsoDow => whole((days + 5).rem_euclid(7) + 1),
        Unit::Doy => whole(days - datetime::days_from_civil(year, 1, 1) + 1),
        Unit::Epoch => Ok(Field::Number(utc + i128::from(datetime::EPOCH_DAYS) * i128::from(DAY), 6)),
        Unit::Zone | Unit::ZoneHour | Unit::ZoneMinute if !matches!(a[1], Datum::TimestampTz(_)) => Err(unsupported(a)),
        Unit::Zone => whole(east),
        Unit::ZoneHour => whole(east / 3600),
        Unit::ZoneMinute => whole(east / 60 % 60),
    }
}

fn date_part(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    // Of a date, it is the field of its midnight.
    if matches!(a[1], Datum::Date(d) if (END_DAY..i32::MAX).contains(&d)) {
        return Err(SqlError::new(code::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp"));
    }
    Ok(Datum::Float8(match field(a, e)? {
        Field::Number(value, _) => value as f64 / 1e6,
        Field::Julian(day, time) => day as f64 + time as f64 / DAY as f64,
        Field::Endless(late) => {
            if late {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            }
        }
        Field::None => return Ok(Datum::Null),
    }))
}

fn extract(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    use Unit::*;
    let of_day = matches!(a[1], Datum::Date(_));
    if of_day && matches!(named(a)?, Microsecond | Millisecond | Second | Minute | Hour | Zone | ZoneHour | ZoneMinute)
    {
        return Err(unsupported(a));
    }
    Ok(Datum::numeric(match field(a, e)? {
        Field::Number(value, digits) => Numeric::of(value, 6).trunc(if of_day { 0 } else { digits }),
        Field::Julian(day, _) if of_day => Numeric::from(day),
        Field::Julian(day, time) => Numeric::from(day).add(&Numeric::from(time).div(&Numeric::from(DAY))?),
        Field::Endless(true) => Numeric::Infinity,
        Field::Endless(false) => Numeric::NegInfinity,
        Field::None => return Ok(Datum::Null),
    }))
}

pub(super) fn date_trunc(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let zoned = matches!(a[1], Datum::TimestampTz(_));
    let Moment { days, time, endless, .. } = moment(&a[1], e)?;
    if endless.is_some() {
        return Ok(a[1].clone());
    }
    let unit = named(a)?;
    let floor = |unit: i64| days * DAY + time / unit * unit;
    let (year, month, _) = datetime::civil_from_days(days);
    let civil = |year, month| datetime::days_from_civil(year, month, 1).saturating_mul(DAY);
    let first_of = |size| {
        let age = age_of(year, size) * size;
        if year > 0 { age - size + 1 } else { age + 1 }
    };
    let cut = match unit {
        Unit::Julian | Unit::IsoYear | Unit::Dow | Unit::IsoDow | Unit::Doy | Unit::Epoch => return Err(unknown(a)),
        Unit::Zone | Unit::ZoneHour | Unit::ZoneMinute => return Err(unsupported(a)),
        Unit::Microsecond => floor(1),
        Unit::Millisecond => floor(1000),
        Unit::Second => floor(SECOND),
        Unit::Minute => floor(60 * SECOND),
        Unit::Hour => floor(3600 * SECOND),
        Unit::Day => floor(DAY),
        Unit::Week => (days - (days + 5).rem_euclid(7)).saturating_mul(DAY),
        Unit::Month => civil(year, month),
        Unit::Quarter => civil(year, (month - 1) / 3 * 3 + 1),
        Unit::Year => civil(year, 1),
        Unit::Decade => civil(decade_of(year) * 10, 1),
        Unit::Century => civil(first_of(100), 1),
        Unit::Millennium => civil(first_of(1000), 1),
    };
    if cut < FIRST {
        return Err(SqlError::new(code::DATETIME_FIELD_OVERFLOW, "timestamp out of range"));
    }
    Ok(match zoned {
        true => Datum::TimestampTz(datetime::local_to_utc(cut, &e.session.format().zone)?),
        false => Datum::Timestamp(cut),
    })
}
