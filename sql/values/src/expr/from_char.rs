//! to_date and to_timestamp (the second half of src/backend/utils/adt/formatting.c).

use super::eval::Env;
use super::functions::s;
use super::to_char::{DAYS, MONTHS, Piece, ROMAN, cased, pieces};
use crate::error::{Result, SqlError, code};
use crate::types::json::Moment;
use crate::types::{Datum, datetime};
use clearway_base::breath;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(code::INVALID_DATETIME_FORMAT, message)
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(code::DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""))
}

/// What a text says; a part that is not there is none.
#[derive(Default)]
struct Parts {
    /// Which calendar the fields belong to: the weeks of ISO 8601 (true) or days and months.
    by_weeks: Option<bool>,
    /// The values of the fields so far, by what they say.
    said: Vec<(&'static str, i64)>,
    hour: Option<i64>,
    half: bool,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    seconds_of_day: Option<i64>,
    micros: i64,
    year: Option<i64>,
    short_year: bool,
    century: Option<i64>,
    before_christ: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week: Option<i64>,
    week_of_month: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    julian: Option<i64>,
    zone_hour: Option<i64>,
    zone_minute: i64,
    zone_negative: bool,
    /// The digits of FFn.
    precision: Option<i32>,
}

impl Parts {
    /// A value that a field says. PostgreSQL keeps 0 where nothing was said, so that any value may follow it.
    fn say(&mut self, what: &'static str, value: i64, key: &str) -> Result<i64> {
        match self.said.iter_mut().find(|(known, _)| *known == what) {
            Some((_, before)) if *before != 0 && *before != value => {
                let message = format!("conflicting values for \"{key}\" field in formatting string");
                return Err(
                    invalid(message).detail("This value contradicts a previous setting for the same field type.")
                );
            }
            Some((_, before)) => *before = value,
            None => self.said.push((what, value)),
        }
        Ok(value)
    }

    /// Dates by months and dates by weeks of ISO 8601 do not go together.
    fn belong(&mut self, field: &str) -> Result<()> {
        let by_weeks = match field {
            "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => true,
            "DDD" | "DD" | "D" | "MM" | "MONTH" | "MON" | "RM" | "WW" | "W" | "Y,YYY" | "YYYY" | "YYY" | "YY" | "Y" => {
                false
            }
            _ => return Ok(()),
        };
        if *self.by_weeks.get_or_insert(by_weeks) == by_weeks {
            return Ok(());
        }
        Err(invalid("invalid combination of date conventions")
            .hint("Do not mix Gregorian and ISO week date conventions in a formatting template."))
    }

    /// The zone, in seconds east of Greenwich.
    fn east(&self) -> Option<i64> {
        let sign = if self.zone_negative { -60 } else { 60 };
        self.zone_hour.map(|hours| (hours * 60 + self.zone_minute) * sign)
    }
}

struct Reader<'a> {
    /// What stands before the rest.
    before: &'a str,
    rest: &'a str,
    fixed: bool,
    /// Blanks and separators that were passed over beyond those of the format.
    extra: i64,
}

impl Reader<'_> {
    fn blanks(&mut self) -> i64 {
        let before = self.rest.len();
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        (before - self.rest.len()) as i64
    }

    /// An integer of `len` digits, or of any number where no digits follow it in the format.
    fn int(&mut self, key: &str, len: usize, free: bool) -> Result<i64> {
        self.blanks();
        let signed = self.rest.starts_with(['-', '+']);
        let digits = self.rest[usize::from(signed)..].bytes().take_while(u8::is_ascii_digit).count();
        let whole = usize::from(signed) + digits;
        let most = if free { whole } else { whole.min(len) };
        let shown = || self.rest.get(..len.min(self.rest.len())).unwrap_or(self.rest).to_owned();
        if !free && self.rest.chars().count() < len {
            let message = format!("source string too short for \"{key}\" formatting field");
            let detail = format!("Field requires {len} characters, but only {} remain.", self.rest.chars().count());
            return Err(invalid(message)
                .detail(detail)
                .hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        if digits == 0 || most <= usize::from(signed) {
            let message = format!("invalid value \"{}\" for \"{key}\"", shown());
            return Err(invalid(message).detail("Value must be an integer."));
        }
        if !free && most < len {
            let message = format!("invalid value \"{}\" for \"{key}\"", shown());
            let detail = format!("Field requires {len} characters, but only {most} could be parsed.");
            return Err(invalid(message)
                .detail(detail)
                .hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        let text = &self.rest[..most];
        let value = text.parse::<i64>().ok().filter(|v| i32::try_from(*v).is_ok()).ok_or_else(|| {
            let message = format!("value for \"{key}\" in source string is out of range");
            SqlError::new(code::DATETIME_FIELD_OVERFLOW, message)
                .detail("Value must be in the range -2147483648 to 2147483647.")
        })?;
        self.rest = &self.rest[most..];
        Ok(value)
    }

    /// Which of these words comes next, in any case.
    fn word(&mut self, words: &[&str], short: Option<usize>, key: &str) -> Result<i64> {
        let cut = |w: &str| short.map_or(w.len(), |n| n.min(w.len()));
        let fits = |w: &&str| self.rest.get(..cut(w)).is_some_and(|t| t.eq_ignore_ascii_case(&w[..cut(w)]));
        // The longest: "III" begins with "I".
        let found = words.iter().enumerate().filter(|(_, w)| fits(w)).max_by_key(|(_, w)| cut(w));
        match found {
            Some((i, w)) => {
                self.rest = &self.rest[cut(w)..];
                Ok(i as i64)
            }
            None => {
                let shown = self.rest.split_whitespace().next().unwrap_or("");
                let message = format!("invalid value \"{shown}\" for \"{key}\"");
                Err(invalid(message).detail("The given value did not match any of the allowed values for this field."))
            }
        }
    }
}

/// Takes a text apart; `exactly`: as the standard has it, separators have to be the format's, and nothing may be left over.
fn read(text: &str, format: &str, exactly: bool) -> Result<Parts> {
    let (list, fixed) = pieces(format)?;
    let fixed = fixed || exactly;
    let mut parts = Parts::default();
    let mut r = Reader { before: "", rest: text, fixed, extra: 0 };
    for (n, piece) in list.iter().enumerate() {
        breath::step(32)?;
        if r.rest.is_empty() {
            if exactly {
                return Err(invalid("input string is too short for datetime format"));
            }
            break;
        }
        if !fixed && (matches!(piece, Piece::Field { .. }) || n == 0) {
            r.extra += r.blanks();
        }
        match piece {
            Piece::Char(c, quoted) => {
                let separator = |c: char| c.is_ascii_punctuation() || c.is_ascii_whitespace();
                let first = r.rest.chars().next();
                if exactly && !quoted {
                    if !"-./,':; ".contains(*c) {
                        return Err(invalid(format!("invalid datetime format separator: \"{c}\"")));
                    }
                    if first != Some(*c) {
                        return Err(invalid(format!("unmatched format separator \"{c}\"")));
                    }
                }
                let skip = if fixed {
                    true
                } else if separator(*c) && !quoted {
                    r.extra -= 1;
                    let found = first.is_some_and(separator);
                    r.extra += i64::from(found);
                    found
                } else if r.extra > 0 {
                    r.extra -= 1;
                    false
                } else {
                    true
                };
                if let Some(c) = first.filter(|_| skip) {
                    r.rest = &r.rest[c.len_utf8()..];
                }
            }
            Piece::Field { key, case, fill, ordinal } => {
                let shown = cased(key, *case);
                r.before = &text[..text.len() - r.rest.len()];
                let next_is_digits = list.get(n + 1).is_some_and(Piece::is_digits);
                let free = *fill || ordinal.is_some() || !next_is_digits;
                field(&mut r, &mut parts, (key, &shown), free)?;
                if ordinal.is_some() {
                    r.rest = r.rest.get(2..).unwrap_or("");
                }
                if !r.fixed {
                    r.extra = r.blanks();
                }
            }
        }
    }
    if exactly && !r.rest.trim_start().is_empty() {
        return Err(invalid("trailing characters remain in input string after datetime format"));
    }
    Ok(parts)
}

/// A year of fewer than four digits, in the decades around 2020.
fn full_year(year: i64) -> i64 {
    match year {
        ..=-1 | 1000.. => year,
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        100..=519 => year + 2000,
        _ => year + 1000,
    }
}

fn field(r: &mut Reader<'_>, p: &mut Parts, (field, key): (&str, &str), free: bool) -> Result<()> {
    p.belong(field)?;
    match field {
        "A.D." | "B.C." => p.before_christ = p.say("bc", r.word(&["a.d.", "b.c."], None, key)?, key)? == 1,
        "AD" | "BC" => p.before_christ = p.say("bc", r.word(&["ad", "bc"], None, key)?, key)? == 1,
        "MONTH" => p.month = Some(p.say("month", r.word(&MONTHS, None, key)? + 1, key)?),
        "MON" => p.month = Some(p.say("month", r.word(&MONTHS, Some(3), key)? + 1, key)?),
        "MM" => p.month = Some(p.say("month", r.int(key, 2, free)?, key)?),
        "RM" => p.month = Some(p.say("month", r.word(&ROMAN, None, key)? + 1, key)?),
        "DAY" => drop(p.say("weekday", r.word(&DAYS, None, key)? + 1, key)?),
        "DY" => drop(p.say("weekday", r.word(&DAYS, Some(3), key)? + 1, key)?),
        "DDD" => p.day_of_year = Some(p.say("day of year", r.int(key, 3, free)?, key)?),
        "IDDD" => {
            let day = p.say("day of year", r.int(key, 3, free)?, key)?;
            (p.iso_week, p.iso_day) = (Some((day - 1) / 7 + 1), Some((day - 1) % 7 + 1));
        }
        "DD" => p.day = Some(p.say("day", r.int(key, 2, free)?, key)?),
        "D" => drop(p.say("weekday", r.int(key, 1, free)?, key)?),
        "ID" => {
            let day = r.int(key, 1, free)?;
            // Weekdays count from Sunday, those of ISO 8601 from Monday.
            p.say("weekday", day % 7 + 1, key)?;
            p.iso_day = Some(day);
        }
        "WW" => p.week = Some(p.say("week", r.int(key, 2, free)?, key)?),
        "IW" => p.iso_week = Some(p.say("week", r.int(key, 2, free)?, key)?),
        "W" => p.week_of_month = Some(p.say("week of month", r.int(key, 1, free)?, key)?),
        "Q" => drop(r.int(key, 1, free)?),
        "CC" => p.century = Some(p.say("century", r.int(key, 2, free)?, key)?),
        "J" => p.julian = Some(p.say("julian", r.int(key, 7, true)?, key)?),
        "Y,YYY" => {
            let thousands = r.int(key, 1, true)?;
            r.rest = r.rest.strip_prefix(',').ok_or_else(|| invalid("invalid input string for \"Y,YYY\""))?;
            p.year = Some(p.say("year", thousands * 1000 + r.int(key, 3, free)?, key)?);
        }
        "YYYY" | "IYYY" => {
            let year = p.say("year", r.int(key, 4, free)?, key)?;
            if field == "YYYY" { p.year = Some(year) } else { p.iso_year = Some(year) }
        }
        "YYY" | "YY" | "Y" | "IYY" | "IY" | "I" => {
            let before = {
                r.blanks();
                r.rest.len()
            };
            let len = field.trim_start_matches('I').len().max(if field.starts_with('I') { field.len() } else { 1 });
            let year = p.say("year", r.int(key, len, free)?, key)?;
            let year = if before - r.rest.len() < 4 { full_year(year) } else { year };
            p.said.retain(|(what, _)| *what != "year");
            p.say("year", year, key)?;
            p.short_year = len <= 2;
            if field.starts_with('I') { p.iso_year = Some(year) } else { p.year = Some(year) }
        }
        _ => return clock_field(r, p, (field, key), free),
    }
    Ok(())
}

/// Fields of the time of day and of the zone.
fn clock_field(r: &mut Reader<'_>, p: &mut Parts, (field, key): (&str, &str), free: bool) -> Result<()> {
    match field {
        "A.M." | "P.M." => p.afternoon = Some(p.say("pm", r.word(&["a.m.", "p.m."], None, key)?, key)? == 1),
        "AM" | "PM" => p.afternoon = Some(p.say("pm", r.word(&["am", "pm"], None, key)?, key)? == 1),
        "HH" | "HH12" => (p.hour, p.half) = (Some(p.say("hour", r.int(key, 2, free)?, key)?), true),
        "HH24" => p.hour = Some(p.say("hour", r.int(key, 2, free)?, key)?),
        "MI" => p.minute = p.say("minute", r.int(key, 2, free)?, key)?,
        "SS" => p.second = p.say("second", r.int(key, 2, free)?, key)?,
        "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let most = match field {
                "MS" => 3,
                "US" => 6,
                key => usize::from(key.as_bytes()[2] - b'0'),
            };
            if field.starts_with("FF") {
                p.precision = Some(most as i32);
            }
            let before = {
                r.blanks();
                r.rest.len()
            };
            let value =
                p.say(if field == "MS" { "milliseconds" } else { "microseconds" }, r.int(key, most, free)?, key)?;
            let digits = before - r.rest.len();
            if digits > 6 {
                return Err(out_of_range(&value.to_string()));
            }
            p.micros = value * 10i64.pow(6 - digits as u32);
        }
        "SSSS" | "SSSSS" => p.seconds_of_day = Some(p.say("seconds of day", r.int(key, 5, free)?, key)?),
        "TZ" | "OF" => {
            let message = format!("formatting field \"{key}\" is only supported in to_char");
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        "TZH" => {
            // A minus may have been passed over as a separator.
            p.zone_negative =
                r.rest.starts_with('-') || r.extra > 0 && r.before.ends_with('-') && !r.rest.starts_with(['+', ' ']);
            r.rest = r.rest.strip_prefix(['+', '-', ' ']).unwrap_or(r.rest);
            p.zone_hour = Some(r.int(key, 2, free)?);
        }
        "TZM" => {
            p.zone_hour.get_or_insert(0);
            p.zone_minute = r.int(key, 2, free)?;
        }
        _ => {}
    }
    Ok(())
}

/// The time of day that a text means, in microseconds.
fn time_of(p: &Parts, text: &str) -> Result<i64> {
    let mut hour = p.hour.unwrap_or(0);
    if p.half {
        if !(1..=12).contains(&hour) {
            let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
            return Err(invalid(message).hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        hour %= 12;
        hour += if p.afternoon == Some(true) { 12 } else { 0 };
    }
    let (mut minute, mut second) = (p.minute, p.second);
    if let Some(seconds) = p.seconds_of_day {
        (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    if !(0..24).contains(&hour)
        || !(0..60).contains(&minute)
        || !(0..60).contains(&second)
        || !(0..1_000_000).contains(&p.micros)
    {
        return Err(out_of_range(text));
    }
    Ok(((hour * 60 + minute) * 60 + second) * 1_000_000 + p.micros)
}

/// The year that a text means; 0, which is 1 BC, where it has none. A negative year before Christ is one after.
fn year_of(p: &Parts) -> i64 {
    let signed = |n: i64| if p.before_christ { -n } else { n };
    match (p.century.map(signed), p.year.or(p.iso_year).unwrap_or(0)) {
        (Some(century), year) if p.short_year && year != 0 => match (year % 100, century) {
            (0, 0..) => century * 100,
            (0, _) => century * 100 + 1,
            (rest, 0..) => (century - 1) * 100 + rest,
            (rest, _) => (century + 1) * 100 - rest + 1,
        },
        (Some(century @ 0..), 0) => (century - 1) * 100 + 1,
        (Some(century), 0) => century * 100 + 1,
        (None, 0) => 0,
        (_, year) => match signed(year) {
            year @ ..0 => year + 1,
            year => year,
        },
    }
}

/// The day and the time that a text means.
fn resolved(p: &Parts, text: &str) -> Result<(i64, i64)> {
    let time = time_of(p, text)?;
    if let Some(julian) = p.julian {
        return Ok((julian - 2_451_545, time));
    }
    if let (Some(week), year) = (p.iso_week, p.iso_year) {
        let january_4 = datetime::days_from_civil(year.unwrap_or(1), 1, 4);
        let monday = january_4 - (january_4 + 5).rem_euclid(7);
        return Ok((monday + (week - 1) * 7 + p.iso_day.unwrap_or(1) - 1, time));
    }
    let year = year_of(p);
    if let (Some(day), None) = (p.day_of_year.or(p.week.map(|w| (w - 1) * 7 + 1)), p.month) {
        let length = datetime::days_from_civil(year + 1, 1, 1) - datetime::days_from_civil(year, 1, 1);
        if !(1..=length).contains(&day) {
            return Err(out_of_range(text));
        }
        return Ok((datetime::days_from_civil(year, 1, 1) + day - 1, time));
    }
    let month = p.month.unwrap_or(1);
    let day = p.day.or(p.week_of_month.map(|w| (w - 1) * 7 + 1)).unwrap_or(1);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(out_of_range(text));
    }
    let days = datetime::days_from_civil(year, month, day);
    if datetime::civil_from_days(days) != (year, month, day) {
        return Err(out_of_range(text));
    }
    Ok((days, time))
}

pub fn to_date(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (days, _) = resolved(&read(s(a, 0), s(a, 1), false)?, s(a, 0))?;
    if !(-2_451_545..2_145_031_949).contains(&days) {
        return Err(SqlError::new(code::DATETIME_FIELD_OVERFLOW, format!("date out of range: \"{}\"", s(a, 0))));
    }
    Ok(Datum::Date(days as i32))
}

pub fn to_timestamp(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let parts = read(s(a, 0), s(a, 1), false)?;
    let (days, time) = resolved(&parts, s(a, 0))?;
    let range = || SqlError::new(code::DATETIME_FIELD_OVERFLOW, "timestamp out of range");
    let time = parts.precision.map_or(time, |precision| datetime::fit(time, precision));
    let local = days.checked_mul(86_400_000_000).and_then(|t| t.checked_add(time)).ok_or_else(range)?;
    Ok(Datum::TimestampTz(match parts.east() {
        Some(east) => local.checked_sub(east * 1_000_000).ok_or_else(range)?,
        None => datetime::local_to_utc(local, &e.session.format().zone)?,
    }))
}

/// The fields of a time of day.
const TIME_FIELDS: &[&str] = &[
    "A.M.", "P.M.", "AM", "PM", "HH", "HH12", "HH24", "MI", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "SSSS", "SSSSS",
];

/// A text read by the standard's rules; which type it has the fields of the format say.
///
/// # Errors
/// 22007, 22008.
pub fn moment(text: &str, format: &str) -> Result<Moment> {
    let (list, _) = pieces(format)?;
    let (mut dated, mut timed, mut zoned) = (false, false, false);
    for piece in &list {
        match piece {
            Piece::Field { key, .. } if TIME_FIELDS.contains(key) => timed = true,
            Piece::Field { key: "TZ" | "TZH" | "TZM" | "OF", .. } => zoned = true,
            Piece::Field { key: "FX", .. } | Piece::Char(..) => {}
            Piece::Field { .. } => dated = true,
        }
    }
    let parts = read(text, format, true)?;
    let (days, time) = resolved(&parts, text)?;
    let west = -parts.east().unwrap_or(0) as i32;
    let local = || datetime::check_range(days.saturating_mul(86_400_000_000).saturating_add(time));
    Ok(match (dated, timed, zoned) {
        (true, true, false) => Moment::Timestamp(local()?),
        (true, true, true) => Moment::TimestampTz(local()? + i64::from(west) * 1_000_000, west),
        (true, false, false) => Moment::Date(days as i32),
        (true, false, true) => return Err(invalid("datetime format is zoned but not timed")),
        (false, true, false) => Moment::Time(time),
        (false, true, true) => Moment::TimeTz(time, west),
        (false, false, _) => return Err(invalid("datetime format is not dated and not timed")),
    })
}
