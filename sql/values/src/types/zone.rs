//! Time zones: names, POSIX rules and abbreviations, and the offset of a local time in a zone.
//!
//! # Invariants
//! - ZON-1: a local time that a change of clocks skips is read with the offset before the change, and one that it repeats with the offset
//!   after it: of the two possible instants the later one, as in PostgreSQL.

use super::datetime::{DAY, EPOCH_DAYS, SECOND, check_range, civil_from_days};
use super::interval::{Interval, IntervalStyle};
use super::zone_abbreviations::{ABBREVIATIONS, Abbreviation, abbreviation};
use crate::error::{Result, SqlError, code};
use jiff::tz::TimeZone;

/// PostgreSQL's rules for a POSIX zone that names its daylight saving time and not when it begins: those of the United States.
const DEFAULT_RULES: &str = ",M3.2.0,M11.1.0";

/// The zone of a name: one of the time zone database, in any case, or a POSIX zone such as `EST5EDT`, `UTC-3` or `-02:00`, whose sign counts
/// hours west of Greenwich.
pub fn zone(name: &str) -> Option<TimeZone> {
    if name.eq_ignore_ascii_case("gmt") || name.eq_ignore_ascii_case("utc") {
        return Some(TimeZone::UTC);
    }
    // "posix" and "right" prefixes, paths and blanks are no names of the database.
    if let Ok(zone) = TimeZone::get(name) {
        return Some(zone);
    }
    posix(name)
}

/// The zone that SET TIME ZONE means, and the name that SHOW gives it: a number of hours east of Greenwich, `INTERVAL '...'`, or a zone's name.
/// None: there is no such zone.
///
/// # Errors
/// 22023: by name, no zone is taken whose offset has seconds.
pub fn zone_setting(value: &str) -> Result<Option<(TimeZone, String)>> {
    let value = value.trim();
    let east = match value.parse::<f64>() {
        Ok(hours) => Some((hours * 3600.0).round()),
        Err(_) => interval_setting(value),
    };
    if let Some(seconds) = east {
        // A number may be "inf" or "nan".
        let seconds = seconds.is_finite().then_some(seconds as i32);
        return Ok(seconds.and_then(|seconds| Some((fixed_zone(seconds)?, fixed_name(seconds)))));
    }
    let Some(zone) = zone(value) else { return Ok(None) };
    if offset_at(0, &zone) % 60 != 0 {
        let message = format!("time zone \"{value}\" appears to use leap seconds");
        return Err(
            SqlError::new(code::INVALID_PARAMETER_VALUE, message).detail("PostgreSQL does not support leap seconds.")
        );
    }
    let name = match zone.iana_name() {
        Some(_) if value.eq_ignore_ascii_case("gmt") => "GMT".to_owned(),
        Some(name) => name.to_owned(),
        None => value.to_ascii_uppercase(),
    };
    Ok(Some((zone, name)))
}

/// The seconds of `INTERVAL '...'`, if it holds neither months nor days.
fn interval_setting(value: &str) -> Option<f64> {
    let head = value.get(..8).filter(|head| head.eq_ignore_ascii_case("interval"))?;
    let text = value[head.len()..].trim().strip_prefix('\'')?.strip_suffix('\'')?;
    let interval = Interval::parse(text, -1, IntervalStyle::Postgres).ok().filter(|i| i.months == 0 && i.days == 0)?;
    Some((interval.micros / SECOND) as f64)
}

/// The POSIX name of a fixed offset: `<+05>-05`.
fn fixed_name(seconds: i32) -> String {
    let (sign, opposite) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
    let abs = seconds.abs();
    let mut offset = format!("{:02}", abs / 3600);
    if abs % 3600 != 0 {
        offset.push_str(&format!(":{:02}", abs / 60 % 60));
    }
    if abs % 60 != 0 {
        offset.push_str(&format!(":{:02}", abs % 60));
    }
    format!("<{sign}{offset}>{opposite}{offset}")
}

/// The zone that is this many seconds east of Greenwich all the time; none beyond a week.
pub fn fixed_zone(seconds: i32) -> Option<TimeZone> {
    jiff::tz::Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}

/// A POSIX zone: a name, which may be empty here, the hours west of Greenwich, and optionally the name of the daylight saving time with its
/// offset and rules.
fn posix(text: &str) -> Option<TimeZone> {
    let text = text.to_ascii_uppercase();
    let (standard, rest) = posix_name(&text)?;
    // PostgreSQL takes names that POSIX does not have, the empty one too. They are not shown.
    let plain = |name: &str| name.starts_with('<') || name.len() >= 3 && name.bytes().all(|b| b.is_ascii_alphabetic());
    let standard = if plain(standard) { standard } else { "XXX" };
    let (west, rest) = posix_offset(rest)?;
    if rest.is_empty() {
        return fixed_zone(-west);
    }
    let (daylight, after) = posix_name(rest).filter(|(name, _)| !name.is_empty())?;
    let rules = if after.contains(',') { "" } else { DEFAULT_RULES };
    let daylight = if plain(daylight) { daylight } else { "XXX" };
    TimeZone::posix(&format!("{standard}{}{daylight}{after}{rules}", hours_text(west))).ok()
}

/// The name at the start of a POSIX zone, in angle brackets or up to a digit, sign or comma; and the rest.
fn posix_name(text: &str) -> Option<(&str, &str)> {
    if text.starts_with('<') {
        let end = text.find('>')? + 1;
        return Some(text.split_at(end));
    }
    let end = text.find(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ',')).unwrap_or(text.len());
    Some(text.split_at(end))
}

/// `[+-]hh[:mm[:ss]]` in seconds, and the rest.
fn posix_offset(text: &str) -> Option<(i32, &str)> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut rest = body;
    let mut parts = [0; 3];
    for (place, part) in parts.iter_mut().enumerate() {
        if place > 0 {
            let Some(next) = rest.strip_prefix(':') else { break };
            rest = next;
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        *part = rest[..digits].parse::<i32>().ok().filter(|n| *n <= [167, 59, 60][place])?;
        rest = &rest[digits..];
    }
    Some((sign * (parts[0] * 3600 + parts[1] * 60 + parts[2]), rest))
}

fn hours_text(seconds: i32) -> String {
    let (sign, abs) = if seconds < 0 { ("-", -seconds) } else { ("", seconds) };
    format!("{sign}{}:{:02}:{:02}", abs / 3600, abs / 60 % 60, abs % 60)
}

/// Years after this one are looked up 400 years, or a multiple of that, earlier: the calendar repeats, and so do the rules of zones.
const LAST_YEAR: i64 = 9_998;
const CYCLE_YEARS: i64 = 400;
const CYCLE: i64 = 146_097 * DAY;

fn to_jiff(utc: i64) -> Option<jiff::Timestamp> {
    let year = civil_from_days(utc.div_euclid(DAY)).0;
    let cycles = (year - LAST_YEAR + CYCLE_YEARS - 1).div_euclid(CYCLE_YEARS).max(0);
    jiff::Timestamp::from_microsecond((utc - cycles * CYCLE).checked_add(EPOCH_DAYS * DAY)?).ok()
}

/// What is shown of a zone or of an abbreviation at an instant: its name, the abbreviation, seconds east of Greenwich, and whether it is daylight
/// saving time.
pub type ZoneShown = (String, String, i32, bool);

/// Every zone of the time zone database.
pub fn zones(utc: i64) -> Vec<ZoneShown> {
    let instant = to_jiff(utc).unwrap_or(jiff::Timestamp::MIN);
    let shown = |name: jiff::tz::TimeZoneName<'_>| {
        let zone = TimeZone::get(name.as_str()).ok()?;
        let info = zone.to_offset_info(instant);
        Some((name.as_str().to_owned(), info.abbreviation().to_owned(), info.offset().seconds(), info.dst().is_dst()))
    };
    jiff::tz::db().available().filter_map(shown).collect()
}

/// Every abbreviation, in capitals.
pub fn abbreviations(utc: i64) -> Vec<ZoneShown> {
    let shown = |(name, meaning): &(&str, Abbreviation)| {
        let name = name.to_ascii_uppercase();
        let (seconds, dst) = match meaning {
            Abbreviation::Fixed(seconds, dst) => (*seconds, *dst),
            Abbreviation::Of(of) => meant_at(utc, &name, &zone(of)?),
        };
        Some((name.clone(), name, seconds, dst))
    };
    ABBREVIATIONS.iter().filter_map(shown).collect()
}

/// Seconds east of Greenwich in `zone` at an instant.
pub fn offset_at(utc: i64, zone: &TimeZone) -> i64 {
    to_jiff(utc).map_or_else(|| oldest_offset(zone), |t| i64::from(zone.to_offset(t).seconds()))
}

/// What a zone had before the years that its table covers.
fn oldest_offset(zone: &TimeZone) -> i64 {
    i64::from(zone.to_offset(jiff::Timestamp::MIN).seconds())
}

/// The abbreviation that `zone` uses at an instant.
pub fn abbreviation_at(utc: i64, zone: &TimeZone) -> String {
    let instant = to_jiff(utc).unwrap_or(jiff::Timestamp::MIN);
    zone.to_offset_info(instant).abbreviation().to_owned()
}

/// The instant at which the clocks of `zone` show `local` (ZON-1).
///
/// # Errors
/// 22008 beyond what a timestamp can hold.
pub fn local_to_utc(local: i64, zone: &TimeZone) -> Result<i64> {
    if matches!(local, i64::MAX | i64::MIN) {
        return Ok(local);
    }
    let guess = local.saturating_sub(offset_at(local, zone) * SECOND);
    let (before, after) = (offset_at(guess.saturating_sub(DAY), zone), offset_at(guess.saturating_add(DAY), zone));
    let instants = [local.saturating_sub(before * SECOND), local.saturating_sub(after * SECOND)];
    let shows = |utc: i64| offset_at(utc, zone) * SECOND == local - utc;
    let utc = match (shows(instants[0]), shows(instants[1])) {
        (true, false) => instants[0],
        (false, true) => instants[1],
        _ => instants[0].max(instants[1]),
    };
    check_range(utc)
}

/// What the clocks of `zone` show at an instant.
pub fn utc_to_local(utc: i64, zone: &TimeZone) -> i64 {
    if matches!(utc, i64::MAX | i64::MIN) { utc } else { utc.saturating_add(offset_at(utc, zone) * SECOND) }
}

/// What a text names as its zone.
#[derive(Clone, Debug)]
pub(super) enum Named {
    /// Seconds east of Greenwich.
    Offset(i32),
    /// A zone of the database, or a POSIX one.
    Zone(TimeZone),
    /// An abbreviation that the zone has used with several offsets.
    Meant(String, TimeZone),
}

impl Named {
    /// The abbreviation of this name, in lower case.
    pub(super) fn abbreviated(name: &str) -> Option<Named> {
        match abbreviation(name)? {
            Abbreviation::Fixed(seconds, _) => Some(Named::Offset(seconds)),
            Abbreviation::Of(of) => Some(Named::Meant(name.to_ascii_uppercase(), zone(of)?)),
        }
    }

    /// The instant that a local time in this zone means.
    pub(super) fn to_utc(&self, local: i64) -> Result<i64> {
        match self {
            Named::Offset(seconds) => check_range(local.saturating_sub(i64::from(*seconds) * SECOND)),
            Named::Zone(zone) => local_to_utc(local, zone),
            Named::Meant(abbreviation, zone) => match offset_meant(local, abbreviation, zone) {
                Some(seconds) => check_range(local.saturating_sub(seconds * SECOND)),
                None => local_to_utc(local, zone),
            },
        }
    }

    /// Seconds east of Greenwich at an instant.
    pub(super) fn offset_at(&self, utc: i64) -> i64 {
        match self {
            Named::Offset(seconds) => i64::from(*seconds),
            Named::Zone(zone) => offset_at(utc, zone),
            Named::Meant(abbreviation, zone) => {
                offset_meant_at(utc, abbreviation, zone).unwrap_or_else(|| offset_at(utc, zone))
            }
        }
    }
}

/// The offset that a zone's abbreviation had at a local time: that of its last use before, else of its first use after.
fn offset_meant(local: i64, abbreviation: &str, zone: &TimeZone) -> Option<i64> {
    offset_meant_at(local_to_utc(local, zone).ok()?, abbreviation, zone)
}

/// The same at an instant.
fn offset_meant_at(utc: i64, abbreviation: &str, zone: &TimeZone) -> Option<i64> {
    use_at(utc, abbreviation, zone).map(|(seconds, _)| i64::from(seconds))
}

/// The offset of a use of an abbreviation, and whether it was daylight saving time.
fn use_at(utc: i64, abbreviation: &str, zone: &TimeZone) -> Option<(i32, bool)> {
    let at = to_jiff(utc)?;
    let info = zone.to_offset_info(at);
    if info.abbreviation() == abbreviation {
        return Some((info.offset().seconds(), info.dst().is_dst()));
    }
    let uses = |t: &jiff::tz::TimeZoneTransition<'_>| t.abbreviation() == abbreviation;
    let offset = |t: jiff::tz::TimeZoneTransition<'_>| (t.offset().seconds(), t.dst().is_dst());
    zone.preceding(at).take(400).find(uses).map(offset).or_else(|| zone.following(at).take(400).find(uses).map(offset))
}

/// What an abbreviation means at an instant, though its zone has never used it.
fn meant_at(utc: i64, abbreviation: &str, zone: &TimeZone) -> (i32, bool) {
    use_at(utc, abbreviation, zone).unwrap_or_else(|| (offset_at(utc, zone) as i32, false))
}

/// The zone that AT TIME ZONE names: an abbreviation or a zone's name.
fn named(name: &str) -> Result<Named> {
    Named::abbreviated(&name.to_ascii_lowercase())
        .or_else(|| zone(name).map(Named::Zone))
        .ok_or_else(|| SqlError::new(code::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized")))
}

/// The instant at which the clocks of the zone of this name show `local`.
///
/// # Errors
/// 22023 for an unknown zone, 22008 beyond what a timestamp can hold.
pub fn in_zone_to_utc(local: i64, name: &str) -> Result<i64> {
    let named = named(name)?;
    if matches!(local, i64::MAX | i64::MIN) { Ok(local) } else { named.to_utc(local) }
}

/// What the clocks of the zone of this name show at an instant.
///
/// # Errors
/// 22023 for an unknown zone, 22008 beyond what a timestamp can hold.
pub fn utc_to_zone(utc: i64, name: &str) -> Result<i64> {
    let named = named(name)?;
    if matches!(utc, i64::MAX | i64::MIN) {
        return Ok(utc);
    }
    check_range(utc.saturating_add(named.offset_at(utc) * SECOND))
}
