//! Functions on time and timetz, and the functions that make dates, times and intervals from numbers.

use super::eval::Env;
use super::functions::{Function, i, s, table};
use crate::error::{Result, SqlError, code};
use crate::types::interval::Interval;
use crate::types::{Datum, Numeric, datetime, oid};

use oid::{BOOL, DATE, FLOAT8, INT4, INTERVAL, NUMERIC, TEXT, TIME, TIMESTAMP, TIMESTAMPTZ, TIMETZ};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "date_part"(TEXT, TIME) FLOAT8 strict part; "date_part"(TEXT, TIMETZ) FLOAT8 strict part;
    "extract"(TEXT, TIME) NUMERIC strict extract; "extract"(TEXT, TIMETZ) NUMERIC strict extract;
    "timezone"(TEXT, TIMETZ) TIMETZ strict in_zone; "timezone"(INTERVAL, TIMETZ) TIMETZ strict in_offset;
    "timezone"(INTERVAL, TIMESTAMP) TIMESTAMPTZ strict in_offset; "timezone"(INTERVAL, TIMESTAMPTZ) TIMESTAMP strict in_offset;
    "make_date"(INT4, INT4, INT4) DATE strict make_date; "make_time"(INT4, INT4, FLOAT8) TIME strict make_time;
    "make_timestamp"(INT4, INT4, INT4, INT4, INT4, FLOAT8) TIMESTAMP strict make_timestamp;
    "make_timestamptz"(INT4, INT4, INT4, INT4, INT4, FLOAT8) TIMESTAMPTZ strict make_timestamptz;
    "make_timestamptz"(INT4, INT4, INT4, INT4, INT4, FLOAT8, TEXT) TIMESTAMPTZ strict make_timestamptz;
    "make_interval"() INTERVAL strict make_interval; "make_interval"(INT4) INTERVAL strict make_interval;
    "make_interval"(INT4, INT4) INTERVAL strict make_interval; "make_interval"(INT4, INT4, INT4) INTERVAL strict make_interval;
    "make_interval"(INT4, INT4, INT4, INT4) INTERVAL strict make_interval;
    "make_interval"(INT4, INT4, INT4, INT4, INT4) INTERVAL strict make_interval;
    "make_interval"(INT4, INT4, INT4, INT4, INT4, INT4) INTERVAL strict make_interval;
    "make_interval"(INT4, INT4, INT4, INT4, INT4, INT4, FLOAT8) INTERVAL strict make_interval;
    "to_timestamp"(FLOAT8) TIMESTAMPTZ strict from_epoch;
    "isfinite"(DATE) BOOL strict is_finite; "isfinite"(TIMESTAMP) BOOL strict is_finite;
    "isfinite"(TIMESTAMPTZ) BOOL strict is_finite; "isfinite"(INTERVAL) BOOL strict |_, _| Ok(Datum::Bool(true));
    "justify_days"(INTERVAL) INTERVAL strict |a, _| justified(a, false, true);
    "justify_hours"(INTERVAL) INTERVAL strict |a, _| justified(a, true, false);
    "justify_interval"(INTERVAL) INTERVAL strict |a, _| justified(a, true, true);
    "age"(TIMESTAMP, TIMESTAMP) INTERVAL strict age; "age"(TIMESTAMPTZ, TIMESTAMPTZ) INTERVAL strict age;
    "age"(TIMESTAMP) INTERVAL strict age; "age"(TIMESTAMPTZ) INTERVAL strict age;
    "date_bin"(INTERVAL, TIMESTAMP, TIMESTAMP) TIMESTAMP strict bin;
    "date_bin"(INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ) TIMESTAMPTZ strict bin;
    "date_trunc"(TEXT, INTERVAL) INTERVAL strict trunc_interval;
    "date_trunc"(TEXT, TIMESTAMPTZ, TEXT) TIMESTAMPTZ strict trunc_in_zone;
    "timeofday"() TEXT volatile time_of_day;
};

fn overflow(message: &str) -> SqlError {
    SqlError::new(code::DATETIME_FIELD_OVERFLOW, message)
}

fn f(a: &[Datum], n: usize) -> f64 {
    a.get(n).and_then(Datum::as_f64).unwrap_or(0.0)
}

/// A field of a time: its value in units of 10^-6, and how many digits it shows.
fn field(a: &[Datum]) -> Result<(i64, i32)> {
    let name = s(a, 0).to_lowercase();
    let (time, west) = match &a[1] {
        Datum::Time(t) => (*t, None),
        Datum::TimeTz(t, west) => (*t, Some(i64::from(*west))),
        _ => (0, None),
    };
    let ty = if west.is_some() { "time with time zone" } else { "time without time zone" };
    let whole = |v: i64| Ok((v * SECOND, 0));
    match (name.trim_end_matches('s'), west) {
        ("hour" | "hr" | "h", _) => whole(time / (3600 * SECOND)),
        ("minute" | "min" | "m", _) => whole(time / (60 * SECOND) % 60),
        ("second" | "sec" | "", _) => Ok((time % (60 * SECOND), 6)),
        ("millisecond" | "msec" | "mili", _) => Ok((time % (60 * SECOND) * 1000, 3)),
        ("microsecond" | "u" | "usec", _) => whole(time % (60 * SECOND)),
        ("epoch", west) => Ok((time + west.unwrap_or(0) * SECOND, 6)),
        ("timezone", Some(west)) => whole(-west),
        ("timezone_hour", Some(west)) => whole(-west / 3600),
        ("timezone_minute", Some(west)) => whole(-west / 60 % 60),
        (
            "day" | "month" | "year" | "week" | "decade" | "century" | "dow" | "doy" | "isodow" | "isoyear" | "quarter"
            | "millennium" | "julian" | "timezone" | "timezone_hour" | "timezone_minute",
            _,
        ) => {
            let message = format!("unit \"{name}\" not supported for type {ty}");
            Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message))
        }
        _ => {
            let message = format!("unit \"{name}\" not recognized for type {ty}");
            Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message))
        }
    }
}

fn part(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Float8(field(a)?.0 as f64 / 1e6))
}

fn extract(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (value, digits) = field(a)?;
    Ok(Datum::numeric(Numeric::new(value.into(), 6).trunc(digits)))
}

/// A time of day in another zone, `west` seconds west of Greenwich.
fn moved(time: i64, west: i32, to: i32) -> Datum {
    Datum::TimeTz((time + (i64::from(west) - i64::from(to)) * SECOND).rem_euclid(DAY), to)
}

fn in_zone(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let Datum::TimeTz(time, west) = a[1] else { return Err(SqlError::internal("timezone without a time")) };
    let now = e.session.transaction_start();
    let east = (datetime::utc_to_zone(now, s(a, 0))? - now) / SECOND;
    Ok(moved(time, west, -(east as i32)))
}

fn in_offset(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Interval(by) = &a[0] else { return Err(SqlError::internal("timezone without an interval")) };
    // An infinity is the same in every zone, whatever the zone.
    match &a[1] {
        Datum::Timestamp(t) if matches!(*t, i64::MAX | i64::MIN) => return Ok(Datum::TimestampTz(*t)),
        Datum::TimestampTz(t) if matches!(*t, i64::MAX | i64::MIN) => return Ok(Datum::Timestamp(*t)),
        _ => {}
    }
    if by.months != 0 || by.days != 0 {
        let shown = by.format(crate::types::interval::IntervalStyle::Postgres);
        let message = format!("interval time zone \"{shown}\" must not include months or days");
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    let east = by.micros / SECOND;
    let in_range = |t: Option<i64>| t.ok_or_else(|| overflow("timestamp out of range")).and_then(datetime::check_range);
    Ok(match &a[1] {
        Datum::TimeTz(time, west) => moved(*time, *west, -(east as i32)),
        Datum::Timestamp(t) => Datum::TimestampTz(in_range(t.checked_sub(east * SECOND))?),
        Datum::TimestampTz(t) => Datum::Timestamp(in_range(t.checked_add(east * SECOND))?),
        _ => Datum::Null,
    })
}

/// Days of a civil date; a negative year is before Christ.
fn civil(year: i64, month: i64, day: i64) -> Result<i64> {
    let astronomical = if year < 0 { year + 1 } else { year };
    let ok = year != 0 && (1..=12).contains(&month) && day >= 1;
    let days = if ok { datetime::days_from_civil(astronomical, month, day) } else { 0 };
    if !ok || datetime::civil_from_days(days) != (astronomical, month, day) {
        return Err(overflow(&format!("date field value out of range: {year}-{month:02}-{day:02}")));
    }
    if !(-2_451_545..2_145_031_949).contains(&days) {
        return Err(overflow(&format!("date out of range: {year}-{month:02}-{day:02}")));
    }
    Ok(days)
}

fn make_date(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Date(civil(i(a, 0), i(a, 1), i(a, 2))? as i32))
}

fn clock(hour: i64, minute: i64, seconds: f64) -> Result<i64> {
    let micros = (seconds * 1e6).round_ties_even();
    let bad = || overflow(&format!("time field value out of range: {hour}:{minute:02}:{seconds:02}"));
    if seconds.is_nan() || !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..=60e6).contains(&micros) {
        return Err(bad());
    }
    let time = (hour * 60 + minute) * 60 * SECOND + micros as i64;
    if time > DAY { Err(bad()) } else { Ok(time) }
}

fn make_time(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Time(clock(i(a, 0), i(a, 1), f(a, 2))?))
}

fn local(a: &[Datum]) -> Result<i64> {
    let (days, time) = (civil(i(a, 0), i(a, 1), i(a, 2))?, clock(i(a, 3), i(a, 4), f(a, 5))?);
    datetime::add_interval(0, &Interval { months: 0, days: days as i32, micros: time })
}

fn make_timestamp(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Timestamp(local(a)?))
}

fn make_timestamptz(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let local = local(a)?;
    Ok(Datum::TimestampTz(match a.get(6) {
        Some(zone) => {
            let name = zone.as_str().unwrap_or("");
            match offset(name)? {
                Some(east) => datetime::local_to_utc(local, &datetime::fixed_zone(east).ok_or_else(|| beyond(name))?)?,
                None => datetime::in_zone_to_utc(local, name)?,
            }
        }
        None => datetime::local_to_utc(local, &e.session.format().zone)?,
    }))
}

fn beyond(zone: &str) -> SqlError {
    SqlError::new(code::INVALID_PARAMETER_VALUE, format!("numeric time zone \"{zone}\" out of range"))
}

/// `+05:30`, `-0530` or `+5` in seconds east of Greenwich; none for a name.
fn offset(zone: &str) -> Result<Option<i32>> {
    if zone.starts_with(|c: char| c.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{zone}\"");
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message)
            .hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    let Some(digits) = zone.strip_prefix(['+', '-']) else { return Ok(None) };
    let numbers: Option<Vec<i32>> = digits.split(':').map(|part| part.parse().ok()).collect();
    let Some(numbers) = numbers else { return Ok(None) };
    let (hours, minutes) = match numbers[..] {
        // Without colons more than two digits are hours and minutes.
        [both] if digits.len() > 2 => (both / 100, both % 100),
        [hours, ref rest @ ..] => (hours, rest.first().copied().unwrap_or(0)),
        [] => return Ok(None),
    };
    let seconds = numbers.get(2).copied().unwrap_or(0);
    let small = |n: i32| (0..60).contains(&n);
    if numbers.len() > 3 || !(0..16).contains(&hours) || !small(minutes) || !small(seconds) {
        return Err(beyond(zone));
    }
    let east = hours * 3600 + minutes * 60 + seconds;
    Ok(Some(if zone.starts_with('-') { -east } else { east }))
}

fn make_interval(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let range = || overflow("interval out of range");
    let months = i(a, 0) * 12 + i(a, 1);
    let days = i(a, 2) * 7 + i(a, 3);
    let seconds = f(a, 6);
    if !seconds.is_finite() {
        return Err(range());
    }
    let micros = (i(a, 4) * 3600 + i(a, 5) * 60) as f64 * 1e6 + (seconds * 1e6).round_ties_even();
    if micros.abs() >= 9.2e18 {
        return Err(range());
    }
    Ok(Datum::Interval(Interval {
        months: i32::try_from(months).map_err(|_| range())?,
        days: i32::try_from(days).map_err(|_| range())?,
        micros: micros as i64,
    }))
}

fn from_epoch(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let seconds = f(a, 0);
    if seconds.is_infinite() {
        return Ok(Datum::TimestampTz(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
    }
    let range = || overflow(&format!("timestamp out of range: \"{}\"", crate::types::float::format8(seconds)));
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN"));
    }
    let micros = ((seconds - (datetime::EPOCH_DAYS * 86_400) as f64) * 1e6).round_ties_even();
    if !(-211_813_488_000_000_000.0..9_223_371_331_200_000_000.0).contains(&micros) {
        return Err(range());
    }
    Ok(Datum::TimestampTz(micros as i64))
}

fn is_finite(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Bool(match &a[0] {
        Datum::Date(d) => !matches!(*d, i32::MAX | i32::MIN),
        Datum::Timestamp(t) | Datum::TimestampTz(t) => !matches!(*t, i64::MAX | i64::MIN),
        _ => true,
    }))
}

fn justified(a: &[Datum], hours: bool, whole_days: bool) -> Result<Datum> {
    let Datum::Interval(v) = &a[0] else { return Ok(Datum::Null) };
    let (mut months, mut days, mut micros) = (i64::from(v.months), i64::from(v.days), v.micros);
    // Days first, so that hours can't overflow them.
    if hours && whole_days && (days > 0 && micros > 0 || days < 0 && micros < 0) {
        months += days / 30;
        days %= 30;
    }
    if hours {
        days += micros / DAY;
        micros %= DAY;
    }
    if whole_days {
        months += days / 30;
        days %= 30;
        if months > 0 && (days < 0 || days == 0 && micros < 0 && hours) {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && (days > 0 || days == 0 && micros > 0 && hours) {
            (months, days) = (months + 1, days - 30);
        }
    }
    if hours {
        if days > 0 && micros < 0 {
            (days, micros) = (days - 1, micros + DAY);
        } else if days < 0 && micros > 0 {
            (days, micros) = (days + 1, micros - DAY);
        }
    }
    let range = || overflow("interval out of range");
    Ok(Datum::Interval(Interval {
        months: i32::try_from(months).map_err(|_| range())?,
        days: i32::try_from(days).map_err(|_| range())?,
        micros,
    }))
}

/// The difference in years, months, days and time, as `timestamp_age`.
fn age(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let zone = &e.session.format().zone;
    let local = |d: &Datum| match d {
        Datum::TimestampTz(t) => datetime::utc_to_local(*t, zone),
        Datum::Timestamp(t) => *t,
        _ => 0,
    };
    let today = || datetime::utc_to_local(e.session.transaction_start(), zone).div_euclid(DAY) * DAY;
    let (later, earlier) = match a {
        [one] => (today(), local(one)),
        [x, y, ..] => (local(x), local(y)),
        [] => (0, 0),
    };
    if [later, earlier].iter().any(|t| matches!(*t, i64::MAX | i64::MIN)) {
        return Err(overflow("timestamp out of range"));
    }
    let sign = if later < earlier { -1 } else { 1 };
    let (high, low) = if sign < 0 { (earlier, later) } else { (later, earlier) };
    let (yh, mh, dh) = datetime::civil_from_days(high.div_euclid(DAY));
    let (yl, ml, dl) = datetime::civil_from_days(low.div_euclid(DAY));
    let mut micros = high.rem_euclid(DAY) - low.rem_euclid(DAY);
    let (mut days, mut months) = (dh - dl, (yh - yl) * 12 + mh - ml);
    if micros < 0 {
        (micros, days) = (micros + DAY, days - 1);
    }
    if days < 0 {
        // Days are borrowed from the earlier month.
        let (y, m) = (yl, ml);
        let (ny, nm) = if m == 12 { (y + 1, 1) } else { (y, m + 1) };
        days += datetime::days_from_civil(ny, nm, 1) - datetime::days_from_civil(y, m, 1);
        months -= 1;
    }
    Ok(Datum::Interval(Interval { months: (sign * months) as i32, days: (sign * days) as i32, micros: sign * micros }))
}

fn bin(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (Datum::Interval(stride), zoned) = (&a[0], matches!(a[1], Datum::TimestampTz(_))) else {
        return Ok(Datum::Null);
    };
    let at = |d: &Datum| match d {
        Datum::Timestamp(t) | Datum::TimestampTz(t) => *t,
        _ => 0,
    };
    let (source, origin) = (at(&a[1]), at(&a[2]));
    let wrap = |t| if zoned { Datum::TimestampTz(t) } else { Datum::Timestamp(t) };
    if matches!(source, i64::MAX | i64::MIN) {
        return Ok(wrap(source));
    }
    if matches!(origin, i64::MAX | i64::MIN) {
        return Err(overflow("origin out of range"));
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
    }
    let width = i64::try_from(stride.span()).map_err(|_| overflow("interval out of range"))?;
    if width <= 0 {
        return Err(overflow("stride must be greater than zero"));
    }
    let range = || overflow("timestamp out of range");
    let distance = source.checked_sub(origin).ok_or_else(|| overflow("interval out of range"))?;
    let start = origin.checked_add(distance.div_euclid(width) * width).ok_or_else(range)?;
    Ok(wrap(datetime::check_range(start)?))
}

fn trunc_interval(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Interval(v) = &a[1] else { return Ok(Datum::Null) };
    let name = s(a, 0).to_lowercase();
    let to_months = |unit: i32| Interval { months: v.months / unit * unit, days: 0, micros: 0 };
    let to_micros = |unit: i64| Interval { micros: v.micros / unit * unit, ..*v };
    Ok(Datum::Interval(match name.trim_end_matches('s') {
        "millennium" | "millennia" => to_months(12_000),
        "century" | "centurie" => to_months(1_200),
        "decade" => to_months(120),
        "year" => to_months(12),
        "quarter" => to_months(3),
        "month" => to_months(1),
        "day" => Interval { micros: 0, ..*v },
        "hour" => to_micros(3600 * SECOND),
        "minute" => to_micros(60 * SECOND),
        "second" => to_micros(SECOND),
        "millisecond" => to_micros(1000),
        "microsecond" => *v,
        "week" => {
            let message = "unit \"week\" not supported for type interval";
            return Err(
                SqlError::new(code::FEATURE_NOT_SUPPORTED, message).detail("Months usually have fractional weeks.")
            );
        }
        _ => {
            let message = format!("unit \"{name}\" not recognized for type interval");
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
        }
    }))
}

fn trunc_in_zone(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let Datum::TimestampTz(t) = a[1] else { return Ok(Datum::Null) };
    let local = Datum::Timestamp(datetime::utc_to_zone(t, s(a, 2))?);
    match super::date_fields::date_trunc(&[a[0].clone(), local], e)? {
        Datum::Timestamp(cut) => Ok(Datum::TimestampTz(datetime::in_zone_to_utc(cut, s(a, 2))?)),
        other => Ok(other),
    }
}

fn time_of_day(_: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let now = e.session.clock();
    let zone = &e.session.format().zone;
    let local = datetime::utc_to_local(now, zone);
    let format = datetime::Format {
        date_style: datetime::DateStyle::Postgres,
        zone: zone.clone(),
        ..datetime::Format::default()
    };
    let shown = datetime::format_timestamptz(now, &format);
    let mut words: Vec<String> = shown.split(' ').map(str::to_owned).collect();
    if let Some(time) = words.get_mut(3) {
        let whole = time.split('.').next().unwrap_or("").to_owned();
        *time = format!("{whole}.{:06}", local.rem_euclid(SECOND));
    }
    Ok(Datum::text(words.join(" ")))
}
