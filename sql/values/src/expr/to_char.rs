//! to_char of dates, times and intervals (the first half of src/backend/utils/adt/formatting.c).

use super::eval::Env;
use super::functions::{Function, s, table};
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, datetime, oid};
use clearway_base::breath;

use oid::{DATE, INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "to_char"(TIMESTAMP, TEXT) TEXT strict to_char; "to_char"(TIMESTAMPTZ, TEXT) TEXT strict to_char;
    "to_char"(INTERVAL, TEXT) TEXT strict to_char;
    "to_date"(TEXT, TEXT) DATE strict super::from_char::to_date;
    "to_timestamp"(TEXT, TEXT) TIMESTAMPTZ strict super::from_char::to_timestamp;
};

/// The fields of a format, the longer ones of a letter first.
const KEYS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2", "FF3", "FF4", "FF5",
    "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM", "MONTH", "MON",
    "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY",
    "YYY", "YY", "Y",
];

/// The fields that are digits in a text.
const DIGITS: &[&str] = &[
    "CC", "DDD", "DD", "D", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY",
    "IYY", "IY", "I", "J", "MI", "MM", "MS", "Q", "SSSSS", "SSSS", "SS", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY",
    "Y",
];

/// How a field's letters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// MONTH
    Upper,
    /// Month
    Title,
    /// month
    Lower,
}

/// A piece of a format.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// A field.
    Field {
        /// Its name.
        key: &'static str,
        /// Its case.
        case: Case,
        /// FM: without padding.
        fill: bool,
        /// TH (true) or th (false) behind it.
        ordinal: Option<bool>,
    },
    /// Any other character; whether it came in quotes.
    Char(char, bool),
}

impl Piece {
    /// Whether it is digits in a text.
    pub fn is_digits(&self) -> bool {
        match self {
            Piece::Field { key, .. } => DIGITS.contains(key),
            Piece::Char(c, _) => c.is_ascii_digit(),
        }
    }
}

/// Takes a format apart; also whether it says FX.
///
/// # Errors
/// The reason for which the statement must end.
pub fn pieces(format: &str) -> Result<(Vec<Piece>, bool)> {
    let (mut out, mut rest, mut fixed) = (Vec::new(), format, false);
    let starts = |text: &str, word: &str| text.get(..word.len()).is_some_and(|t| t.eq_ignore_ascii_case(word));
    'next: while let Some(c) = rest.chars().next() {
        breath::step(32)?;
        let mut at = rest;
        let mut fill = false;
        loop {
            if starts(at, "FM") {
                fill = true;
            } else if starts(at, "FX") {
                fixed = true;
            } else if !starts(at, "TM") {
                break;
            }
            at = &at[2..];
        }
        if let Some(key) = KEYS.iter().find(|k| starts(at, k)) {
            let written = &at[..key.len()];
            let mut letters = written.chars().filter(char::is_ascii_alphabetic);
            let case = match (letters.next(), letters.next()) {
                (Some(a), _) if a.is_ascii_lowercase() => Case::Lower,
                (_, Some(b)) if b.is_ascii_lowercase() => Case::Title,
                _ => Case::Upper,
            };
            rest = &at[key.len()..];
            let ordinal = starts(rest, "TH").then(|| rest.starts_with('T'));
            if ordinal.is_some() {
                rest = &rest[2..];
            }
            out.push(Piece::Field { key, case, fill, ordinal });
            continue;
        }
        if at.len() != rest.len() {
            rest = at;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if c == '"' {
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '"' => continue 'next,
                    '\\' => {
                        if let Some(next) = rest.chars().next() {
                            rest = &rest[next.len_utf8()..];
                            out.push(Piece::Char(next, true));
                        }
                    }
                    c => out.push(Piece::Char(c, true)),
                }
            }
            continue;
        }
        if c == '\\' && rest.starts_with('"') {
            rest = &rest[1..];
            out.push(Piece::Char('"', true));
            continue;
        }
        out.push(Piece::Char(c, false));
    }
    Ok((out, fixed))
}

pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
pub const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

const DAY: i64 = 86_400_000_000;

/// What is written.
struct Moment {
    interval: bool,
    year: i64,
    month: i64,
    day: i64,
    days: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Seconds east of Greenwich and the name of the zone.
    zone: Option<(i64, String)>,
}

impl Moment {
    /// The year as people count it.
    fn shown_year(&self) -> i64 {
        if self.interval || self.year > 0 { self.year } else { 1 - self.year }
    }

    fn day_of_year(&self) -> i64 {
        if self.interval {
            return self.year * 360 + self.month * 30 + self.day;
        }
        self.days - datetime::days_from_civil(self.year, 1, 1) + 1
    }

    fn shown_iso_year(&self) -> i64 {
        let year = self.iso().0;
        if self.interval || year > 0 { year } else { 1 - year }
    }

    /// Which Roman month it is. Of an interval of whole years it is the first month, or the last one counted back from zero.
    fn roman(&self) -> usize {
        let month = match self.month {
            0 if self.year >= 0 => 12,
            0 => 1,
            month @ ..0 => 13 + month,
            month => month,
        };
        (month - 1).rem_euclid(12) as usize
    }

    /// ISO year and week.
    fn iso(&self) -> (i64, i64) {
        iso_week(self.days)
    }
}

/// The ISO year and week of a day.
pub fn iso_week(days: i64) -> (i64, i64) {
    // The Thursday of the week decides its year.
    let thursday = days - (days + 5).rem_euclid(7) + 3;
    let year = datetime::civil_from_days(thursday).0;
    (year, (thursday - datetime::days_from_civil(year, 1, 1)) / 7 + 1)
}

fn moment(a: &[Datum], e: &Env<'_>) -> Option<Moment> {
    let zone = &e.session.format().zone;
    let (local, named) = match &a[0] {
        Datum::Timestamp(t) | Datum::TimestampTz(t) if matches!(*t, i64::MAX | i64::MIN) => return None,
        Datum::Timestamp(t) => (*t, None),
        Datum::TimestampTz(t) => {
            let offset = datetime::offset_at(*t, zone);
            (datetime::utc_to_local(*t, zone), Some((offset, datetime::zone_name_at(*t, zone))))
        }
        Datum::Interval(i) => {
            let micros = i.micros;
            return Some(Moment {
                interval: true,
                year: i64::from(i.months / 12),
                month: i64::from(i.months % 12),
                day: i64::from(i.days),
                days: 0,
                hour: micros / 3_600_000_000,
                minute: micros / 60_000_000 % 60,
                second: micros / 1_000_000 % 60,
                micros: micros % 1_000_000,
                zone: None,
            });
        }
        _ => return None,
    };
    let (days, time) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let (year, month, day) = datetime::civil_from_days(days);
    Some(Moment {
        interval: false,
        year,
        month,
        day,
        days,
        hour: time / 3_600_000_000,
        minute: time / 60_000_000 % 60,
        second: time / 1_000_000 % 60,
        micros: time % 1_000_000,
        zone: named,
    })
}

/// A word in this case.
pub fn cased(text: &str, case: Case) -> String {
    let lower = text.to_lowercase();
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Lower => lower,
        Case::Title => text[..1].to_uppercase() + &lower[1..],
    }
}

/// A number of at least so many digits; the sign does not count.
fn number(n: i64, width: usize, fill: bool) -> String {
    let sign = if n < 0 { "-" } else { "" };
    let width = if fill { 0 } else { width };
    format!("{sign}{:0width$}", n.unsigned_abs())
}

/// `st`, `nd`, `rd`, `th`.
pub fn ordinal_suffix(text: &str, upper: bool) -> String {
    let tail: Vec<char> = text.chars().rev().take(2).collect();
    let suffix = match (tail.get(1), tail.first()) {
        (Some('1'), _) => "th",
        (_, Some('1')) => "st",
        (_, Some('2')) => "nd",
        (_, Some('3')) => "rd",
        _ => "th",
    };
    if upper { suffix.to_uppercase() } else { suffix.to_owned() }
}

fn to_char(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let format = s(a, 1);
    let Some(moment) = moment(a, e) else { return Ok(Datum::Null) };
    if format.is_empty() {
        return Ok(Datum::Null);
    }
    let mut out = String::new();
    for piece in pieces(format)?.0 {
        match piece {
            Piece::Char(c, _) => out.push(c),
            Piece::Field { key, case, fill, ordinal } => {
                let text = field(&moment, key, case, fill)?;
                out.push_str(&text);
                if let Some(upper) = ordinal
                    && DIGITS.contains(&key)
                {
                    out.push_str(&ordinal_suffix(&text, upper));
                }
            }
        }
    }
    Ok(Datum::text(out))
}

fn field(m: &Moment, key: &str, case: Case, fill: bool) -> Result<String> {
    let padded = |text: &str, width: usize| {
        let shown = cased(text, case);
        if fill { shown } else { format!("{shown:width$}") }
    };
    let dotted = |text: &str| cased(text, case);
    let weekday = (m.days + 6).rem_euclid(7);
    if m.interval
        && matches!(
            key,
            "A.D." | "AD" | "B.C." | "BC" | "DAY" | "DY" | "D" | "ID" | "MONTH" | "MON" | "OF" | "TZ" | "TZH" | "TZM"
        )
    {
        let message = "invalid format specification for an interval value";
        return Err(SqlError::new(code::INVALID_DATETIME_FORMAT, message)
            .hint("Intervals are not tied to specific calendar dates."));
    }
    let year = m.shown_year();
    let cut = |n: i64, digits: u32| number(n % 10i64.pow(digits), digits as usize, fill);
    Ok(match key {
        "A.D." | "B.C." => dotted(if m.year <= 0 { "B.C." } else { "A.D." }),
        "AD" | "BC" => dotted(if m.year <= 0 { "BC" } else { "AD" }),
        "MONTH" | "MON" if m.month == 0 => String::new(),
        "RM" if m.month == 0 && m.year == 0 => String::new(),
        "MONTH" => padded(MONTHS[(m.month - 1).rem_euclid(12) as usize], 9),
        "MON" => cased(&MONTHS[(m.month - 1).rem_euclid(12) as usize][..3], case),
        "MM" => number(m.month, 2, fill),
        "RM" => {
            let shown = cased(ROMAN[m.roman()], if case == Case::Lower { case } else { Case::Upper });
            if fill { shown } else { format!("{shown:4}") }
        }
        "DAY" => padded(DAYS[weekday as usize], 9),
        "DY" => cased(&DAYS[weekday as usize][..3], case),
        "DDD" => number(m.day_of_year(), 3, fill),
        "DD" => number(m.day, 2, fill),
        "D" => (weekday + 1).to_string(),
        "ID" => (if weekday == 0 { 7 } else { weekday }).to_string(),
        "IDDD" => {
            let (year, _) = m.iso();
            let january_4 = datetime::days_from_civil(year, 1, 4);
            number(m.days - (january_4 - (january_4 + 5).rem_euclid(7)) + 1, 3, fill)
        }
        "WW" => number((m.day_of_year() - 1) / 7 + 1, 2, fill),
        "IW" => number(m.iso().1, 2, fill),
        "W" => ((m.day - 1) / 7 + 1).to_string(),
        "Q" if m.month == 0 => String::new(),
        "Q" => ((m.month - 1) / 3 + 1).to_string(),
        "CC" => {
            let century = if m.interval || m.year > 0 {
                if m.interval { m.year / 100 } else { (m.year - 1) / 100 + 1 }
            } else {
                m.year / 100 - 1
            };
            if (-99..=99).contains(&century) { number(century, 2, fill) } else { century.to_string() }
        }
        "J" => (if m.interval { 0 } else { m.days + 2_451_545 }).to_string(),
        "Y,YYY" => format!("{},{:03}", year / 1000, (year % 1000).abs()),
        "YYYY" => number(year, 4, fill),
        "YYY" => cut(year, 3),
        "YY" => cut(year, 2),
        "Y" => cut(year, 1),
        "IYYY" => number(m.shown_iso_year(), 4, fill),
        "IYY" => cut(m.shown_iso_year(), 3),
        "IY" => cut(m.shown_iso_year(), 2),
        "I" => cut(m.shown_iso_year(), 1),
        _ => clock_field(m, key, case, fill),
    })
}

/// Fields of the time of day and of the zone.
fn clock_field(m: &Moment, key: &str, case: Case, fill: bool) -> String {
    let dotted = |text: &str| cased(text, case);
    let after_noon = m.hour.rem_euclid(24) >= 12;
    match key {
        "A.M." | "P.M." => {
            dotted(if after_noon { "P.M." } else { "A.M." }).replace("P.m.", "P.M.").replace("A.m.", "A.M.")
        }
        "AM" | "PM" => dotted(if after_noon { "PM" } else { "AM" }),
        "HH" | "HH12" => {
            let hour = m.hour % 12;
            number(if hour == 0 { 12 } else { hour }, 2, fill)
        }
        "HH24" => number(m.hour, 2, fill),
        "MI" => number(m.minute, 2, fill),
        "SS" => number(m.second, 2, fill),
        "MS" | "FF3" => format!("{:03}", m.micros.abs() / 1000),
        "US" | "FF6" => format!("{:06}", m.micros.abs()),
        "FF1" | "FF2" | "FF4" | "FF5" => {
            let digits = (key.as_bytes()[2] - b'0') as usize;
            format!("{:06}", m.micros.abs())[..digits].to_owned()
        }
        "SSSS" | "SSSSS" => (m.hour * 3600 + m.minute * 60 + m.second).to_string(),
        "TZ" => match &m.zone {
            Some((_, name)) => {
                if case == Case::Lower {
                    name.to_lowercase()
                } else {
                    name.clone()
                }
            }
            None => String::new(),
        },
        "TZH" => m.zone.as_ref().map_or_else(String::new, |z| format!("{}{:02}", sign(z.0), z.0.abs() / 3600)),
        "TZM" => m.zone.as_ref().map_or_else(String::new, |z| format!("{:02}", z.0.abs() / 60 % 60)),
        "OF" => m.zone.as_ref().map_or_else(String::new, |z| {
            let minutes = z.0.abs() / 60 % 60;
            let hours = number(z.0.abs() / 3600, 2, fill);
            if minutes == 0 { format!("{}{hours}", sign(z.0)) } else { format!("{}{hours}:{minutes:02}", sign(z.0)) }
        }),
        _ => String::new(),
    }
}

fn sign(n: i64) -> char {
    if n < 0 { '-' } else { '+' }
}
