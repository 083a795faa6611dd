//! Dates and times in a jsonpath: how they are written and how they compare.

use crate::error::{Result, SqlError, code};
use crate::types::datetime::{self, DAY, SECOND};
use crate::types::interval::seconds;
use crate::types::json::{Json, Moment};
use jiff::tz::TimeZone;
use std::cmp::Ordering;

/// A moment as an item of a path.
pub fn item(moment: Moment) -> Json {
    Json::Moment(moment, text(moment).into())
}

/// The type's name in pg_type.
fn short_name(moment: Moment) -> &'static str {
    match moment {
        Moment::Date(_) => "date",
        Moment::Time(_) => "time",
        Moment::TimeTz(..) => "timetz",
        Moment::Timestamp(_) => "timestamp",
        Moment::TimestampTz(..) => "timestamptz",
    }
}

/// As a JSON string holds it.
fn text(moment: Moment) -> String {
    let date = |days: i64| {
        let (year, month, day) = datetime::civil_from_days(days);
        let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
        (format!("{year:04}-{month:02}-{day:02}"), era)
    };
    let both = |local: i64, zone: String| {
        let (day, era) = date(local.div_euclid(DAY));
        format!("{day}T{}{zone}{era}", clock(local.rem_euclid(DAY)))
    };
    match moment {
        Moment::Date(days) => {
            let (day, era) = date(i64::from(days));
            day + era
        }
        Moment::Time(t) => clock(t),
        Moment::TimeTz(t, west) => clock(t) + &zone(west),
        Moment::Timestamp(t) => both(t, String::new()),
        Moment::TimestampTz(t, west) => both(t - i64::from(west) * SECOND, zone(west)),
    }
}

/// The order of two moments; none: their types do not compare. `here`: the zone in which those without one are, if the function takes it.
///
/// # Errors
/// 0A000 where the order depends on the zone of the session, and the function does not use that.
pub fn compare(one: Moment, other: Moment, here: Option<&TimeZone>) -> Result<Option<Ordering>> {
    use Moment as M;
    let zoned = |from: Moment, to: Moment| {
        here.ok_or_else(|| {
            let (from, to) = (short_name(from), short_name(to));
            let message = format!("cannot convert value from {from} to {to} without time zone usage");
            SqlError::new(code::FEATURE_NOT_SUPPORTED, message).hint("Use *_tz() function for time zone support.")
        })
    };
    let midnight = |days: i32| datetime::date_to_timestamp(days);
    Ok(Some(match (one, other) {
        (M::Date(a), M::Date(b)) => a.cmp(&b),
        (M::Date(a), M::Timestamp(b)) => midnight(a).cmp(&b),
        (M::Timestamp(a), M::Timestamp(b)) | (M::Time(a), M::Time(b)) => a.cmp(&b),
        (M::TimestampTz(a, _), M::TimestampTz(b, _)) => a.cmp(&b),
        (M::Date(a), M::TimestampTz(b, _)) => datetime::local_to_utc(midnight(a), zoned(one, other)?)?.cmp(&b),
        (M::Timestamp(a), M::TimestampTz(b, _)) => datetime::local_to_utc(a, zoned(one, other)?)?.cmp(&b),
        (M::TimeTz(a, x), M::TimeTz(b, y)) => zoned_order((a, x), (b, y)),
        (M::Time(a), M::TimeTz(b, y)) => {
            let west = -(datetime::offset_at(a, zoned(one, other)?) as i32);
            zoned_order((a, west), (b, y))
        }
        (M::Timestamp(_), M::Date(_))
        | (M::TimestampTz(..), M::Date(_) | M::Timestamp(_))
        | (M::TimeTz(..), M::Time(_)) => return Ok(compare(other, one, here)?.map(Ordering::reverse)),
        _ => return Ok(None),
    }))
}

/// `+05:20`
fn zone(west: i32) -> String {
    let (sign, abs) = if west > 0 { ('-', west) } else { ('+', -west) };
    let seconds = if abs % 60 == 0 { String::new() } else { format!(":{:02}", abs % 60) };
    format!("{sign}{:02}:{:02}{seconds}", abs / 3600, abs / 60 % 60)
}

/// `12:34:56.7`
fn clock(time: i64) -> String {
    let minute = 60 * SECOND;
    format!("{:02}:{:02}:{}", time / (60 * minute), time / minute % 60, seconds((time % minute) as u64, 2))
}

/// By the instant, then by the zone.
fn zoned_order(a: (i64, i32), b: (i64, i32)) -> Ordering {
    let instant = |(time, west): (i64, i32)| time + i64::from(west) * SECOND;
    instant(a).cmp(&instant(b)).then(a.1.cmp(&b.1))
}
