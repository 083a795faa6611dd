//! Reading dates and times: the forms that PostgreSQL's own output and ISO 8601 use, and names of zones.

use super::datetime::{
    DAY, DateOrder, EPOCH_DAYS, Format, MONTHS, SECOND, WEEKDAYS, check_range, days_from_civil, month_days,
    utc_to_local, zone,
};
use crate::error::{Result, SqlError, code};
use jiff::tz::TimeZone;

/// What text says: the local time, and its zone where it names one.
pub(super) struct Read {
    pub(super) local: i64,
    pub(super) zone: Option<TimeZone>,
    /// `now` and its like: an instant already.
    pub(super) instant: Option<i64>,
}

/// Reads a date and time. `now` is the transaction's start, in UTC.
pub(super) fn read(text: &str, ty: &str, f: &Format, now: i64) -> Result<Read> {
    let invalid =
        || SqlError::new(code::INVALID_DATETIME_FORMAT, format!("invalid input syntax for type {ty}: \"{text}\""));
    let range =
        || SqlError::new(code::DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""));
    let lower = text.trim().to_ascii_lowercase();
    let midnight = |days: i64| utc_to_local(now, &f.zone).div_euclid(DAY) * DAY + days * DAY;
    let plain = |local| Ok(Read { local, zone: None, instant: None });
    match lower.as_str() {
        "infinity" => return plain(i64::MAX),
        "-infinity" => return plain(i64::MIN),
        "epoch" => {
            return Ok(Read { local: 0, zone: None, instant: Some(-EPOCH_DAYS * DAY) });
        }
        "now" => {
            return Ok(Read { local: 0, zone: None, instant: Some(now) });
        }
        "today" => return plain(midnight(0)),
        "tomorrow" => return plain(midnight(1)),
        "yesterday" => return plain(midnight(-1)),
        _ => {}
    }
    let mut fields = Fields::default();
    for word in split_words(&lower) {
        fields.take(word, f.date_order).ok_or_else(invalid)?;
    }
    let (year, month, day) = fields.date.ok_or_else(invalid)?;
    let year = if fields.bc { 1 - year } else { year };
    let in_range = (1..=12).contains(&month)
        && day >= 1
        && day <= month_days(year, month)
        && (-4713..=294_276).contains(&year)
        && (year != 0 || fields.bc);
    if !in_range || fields.time > DAY || fields.time < 0 {
        let hint = (1..=12).contains(&day) && !(1..=12).contains(&month) || day > 31 || month > 12;
        let e = range();
        return Err(if hint { e.hint("Perhaps you need a different \"datestyle\" setting.") } else { e });
    }
    let time = match (fields.pm, fields.time) {
        (Some(true), t) if t < DAY / 2 => t + DAY / 2,
        (Some(false), t) if t >= DAY / 2 => t - DAY / 2,
        (_, t) => t,
    };
    let local = check_range(days_from_civil(year, month, day).saturating_mul(DAY).saturating_add(time))
        .map_err(|_| SqlError::new(code::DATETIME_FIELD_OVERFLOW, format!("{ty} out of range: \"{text}\"")))?;
    Ok(Read { local, zone: fields.zone, instant: None })
}

/// Splits at blanks, at the T between date and time, and before a zone that follows a time.
fn split_words(lower: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for word in lower.split([' ', ',', '\t', '\n']).filter(|w| !w.is_empty()) {
        let t = word.find('t').filter(|&i| {
            i >= 8
                && word.as_bytes()[i - 1].is_ascii_digit()
                && word.as_bytes().get(i + 1).is_some_and(u8::is_ascii_digit)
        });
        let rest = match t {
            Some(i) => {
                out.push(&word[..i]);
                &word[i + 1..]
            }
            None => word,
        };
        let zone = rest
            .find(':')
            .and_then(|c| rest[c..].find(|ch: char| ch == '+' || ch == '-' || ch.is_ascii_alphabetic()).map(|i| c + i));
        match zone {
            Some(i) if !rest.starts_with(['+', '-']) => out.extend([&rest[..i], &rest[i..]]),
            _ => out.push(rest),
        }
    }
    out
}

#[derive(Default)]
struct Fields {
    date: Option<(i64, i64, i64)>,
    month: Option<i64>,
    day: Option<i64>,
    time: i64,
    zone: Option<TimeZone>,
    pm: Option<bool>,
    bc: bool,
}

impl Fields {
    fn take(&mut self, word: &str, order: DateOrder) -> Option<()> {
        match word {
            "bc" => self.bc = true,
            "ad" => {}
            "am" => self.pm = Some(false),
            "pm" => self.pm = Some(true),
            _ if word.starts_with(['+', '-']) => self.zone = Some(zone(word)?),
            _ if word.contains(':') => self.time = time(word)?,
            _ if word.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                return self.take_name(word);
            }
            _ if word.contains(['-', '/', '.']) => self.date = Some(numbers(word, order)?),
            _ => return self.take_number(word),
        }
        Some(())
    }

    fn take_name(&mut self, word: &str) -> Option<()> {
        let head = word.get(..3)?;
        if let Some(m) = MONTHS.iter().position(|n| n.eq_ignore_ascii_case(head)).filter(|_| self.date.is_none()) {
            self.month = Some(m as i64 + 1);
            return Some(());
        }
        if WEEKDAYS.iter().any(|n| n.eq_ignore_ascii_case(head)) && self.date.is_none() {
            return Some(());
        }
        let known = match word {
            "utc" | "gmt" | "z" | "zulu" => Some(TimeZone::UTC),
            "pst" => zone("-08"),
            "pdt" => zone("-07"),
            "est" => zone("-05"),
            "edt" => zone("-04"),
            "cet" => zone("+01"),
            "cest" => zone("+02"),
            _ => zone(word),
        };
        self.zone = Some(known?);
        Some(())
    }

    fn take_number(&mut self, word: &str) -> Option<()> {
        let n: i64 = word.parse().ok().filter(|_| word.len() <= 8)?;
        if word.len() == 8 && self.date.is_none() {
            self.date = Some((n / 10_000, n / 100 % 100, n % 100));
        } else if self.day.is_none() && word.len() <= 2 {
            self.day = Some(n);
        } else {
            self.date = Some((n, self.month?, self.day?));
        }
        Some(())
    }
}

/// `2020-01-31`, `1/31/2020`, `31-Jan-2020`, by the order where it is open.
fn numbers(word: &str, order: DateOrder) -> Option<(i64, i64, i64)> {
    let parts: Vec<&str> = word.split(['-', '/', '.']).collect();
    let [a, b, c] = parts.as_slice() else {
        return None;
    };
    let number = |s: &str| {
        if s.len() <= 6 { s.parse::<i64>().ok().filter(|n| *n >= 0) } else { None }
    };
    let year = |s: &str| {
        let y = number(s)?;
        Some(match (s.len(), y) {
            (..=2, 0..=69) => y + 2000,
            (..=2, _) => y + 1900,
            _ => y,
        })
    };
    let named =
        |s: &str| MONTHS.iter().position(|m| m.eq_ignore_ascii_case(s.get(..3).unwrap_or(""))).map(|m| m as i64 + 1);
    if let Some(m) = named(b) {
        return if a.len() > 2 { Some((year(a)?, m, number(c)?)) } else { Some((year(c)?, m, number(a)?)) };
    }
    if a.len() > 2 {
        return Some((year(a)?, number(b)?, number(c)?));
    }
    match order {
        DateOrder::Ymd => Some((year(a)?, number(b)?, number(c)?)),
        DateOrder::Mdy => Some((year(c)?, number(a)?, number(b)?)),
        DateOrder::Dmy => Some((year(c)?, number(b)?, number(a)?)),
    }
}

fn time(word: &str) -> Option<i64> {
    let mut parts = word.split(':');
    let h: i64 = parts.next()?.parse().ok()?;
    let m: i64 = parts.next()?.parse().ok()?;
    let (s, fraction) = match parts.next() {
        None => (0, 0),
        Some(s) => {
            let (whole, frac) = s.split_once('.').unwrap_or((s, ""));
            let f = if frac.is_empty() { 0.0 } else { format!("0.{frac}").parse::<f64>().ok()? };
            (whole.parse::<i64>().ok()?, (f * 1e6).round() as i64)
        }
    };
    let ok = parts.next().is_none() && (0..=99).contains(&h) && (0..60).contains(&m) && (0..=60).contains(&s);
    let total = ((h * 60 + m) * 60 + s) * SECOND + fraction;
    if ok {
        Some(if h > 24 { -1 } else { total })
    } else if (0..=999).contains(&m) {
        Some(-1)
    } else {
        None
    }
}
