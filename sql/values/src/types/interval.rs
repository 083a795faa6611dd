//! interval: months, days and microseconds, with its text forms.

use crate::error::{Result, SqlError, code};

/// An interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// IntervalStyle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntervalStyle {
    Postgres,
    PostgresVerbose,
}

fn overflow() -> SqlError {
    SqlError::new(code::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

impl Interval {
    /// The length in microseconds with months of 30 days, by which intervals compare.
    pub fn span(&self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY) + i128::from(self.micros)
    }

    /// Field by field.
    pub fn checked_add(self, o: Self) -> Result<Self> {
        let sum = || {
            Some(Self {
                months: self.months.checked_add(o.months)?,
                days: self.days.checked_add(o.days)?,
                micros: self.micros.checked_add(o.micros)?,
            })
        };
        sum().ok_or_else(overflow)
    }

    /// Field by field.
    pub fn checked_neg(self) -> Result<Self> {
        let neg = || {
            Some(Self {
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        };
        neg().ok_or_else(overflow)
    }

    /// Times a factor; fractions of months flow into days, of days into time.
    pub fn checked_mul(self, factor: f64) -> Result<Self> {
        Self::cascaded(f64::from(self.months) * factor, f64::from(self.days) * factor, self.micros as f64 * factor)
    }

    /// Divided by a number other than zero; the same.
    pub fn checked_div(self, by: f64) -> Result<Self> {
        Self::cascaded(f64::from(self.months) / by, f64::from(self.days) / by, self.micros as f64 / by)
    }

    /// From months, days and microseconds with fractions, as interval_mul and interval_div of PostgreSQL have it: remainders are rounded to a
    /// millionth, and whole days of the remainder are days.
    fn cascaded(months: f64, days: f64, micros: f64) -> Result<Self> {
        let rounded = |v: f64| (v * 1e6).round_ties_even() / 1e6;
        let fits = |v: f64| v.abs() < 2_147_483_648.0;
        if !fits(months) || !fits(days) {
            return Err(overflow());
        }
        let more_days = rounded((months - months.trunc()) * 30.0);
        let seconds_a_day = 86_400.0;
        let mut seconds = rounded((days - days.trunc() + more_days - more_days.trunc()) * seconds_a_day);
        let mut whole = days.trunc() + more_days.trunc();
        if seconds.abs() >= seconds_a_day {
            whole += (seconds / seconds_a_day).trunc();
            seconds -= (seconds / seconds_a_day).trunc() * seconds_a_day;
        }
        let micros = (micros + seconds * 1e6).round_ties_even();
        // A NaN fits nowhere.
        let micros_fit = micros >= i64::MIN as f64 && micros < i64::MAX as f64;
        if !(fits(whole) && micros_fit) {
            return Err(overflow());
        }
        Ok(Self { months: months as i32, days: whole as i32, micros: micros as i64 })
    }

    /// Reads `1 year 2 mons -3 days 04:05:06.7`, with or without `@` and `ago`.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid = || {
            SqlError::new(code::INVALID_DATETIME_FORMAT, format!("invalid input syntax for type interval: \"{text}\""))
        };
        let mut spaced = String::with_capacity(text.len() + 8);
        let mut last = ' ';
        for c in text.trim().trim_start_matches('@').to_ascii_lowercase().chars() {
            if c.is_ascii_alphabetic() && last.is_ascii_digit() {
                spaced.push(' ');
            }
            spaced.push(c);
            last = c;
        }
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut seen = std::collections::HashSet::new();
        let (words, ago) = match words.split_last() {
            Some((&"ago", rest)) => (rest, true),
            _ => (&words[..], false),
        };
        if words.is_empty() {
            return Err(invalid());
        }
        let mut out = Self::default();
        let mut i = 0;
        while i < words.len() {
            if words[i].contains(':') {
                out = out.checked_add(time(words[i]).ok_or_else(invalid)?)?;
                i += 1;
                continue;
            }
            let number: f64 = words[i].parse().map_err(|_| invalid())?;
            let unit = words.get(i + 1).copied().unwrap_or("second");
            if !seen.insert(unit.trim_end_matches('s')) {
                return Err(invalid());
            }
            out = out.checked_add(unit_interval(unit).ok_or_else(invalid)?.checked_mul(number)?)?;
            i += 2;
        }
        if ago { out.checked_neg() } else { Ok(out) }
    }

    /// To text.
    pub fn format(&self, style: IntervalStyle) -> String {
        match style {
            IntervalStyle::Postgres => self.format_postgres(),
            IntervalStyle::PostgresVerbose => self.format_verbose(),
        }
    }

    fn format_postgres(&self) -> String {
        let mut out: Vec<String> = Vec::new();
        let mut before_negative = false;
        for (value, unit) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if value != 0 {
                let plus = if before_negative && value > 0 { "+" } else { "" };
                let s = if value == 1 { "" } else { "s" };
                out.push(format!("{plus}{value} {unit}{s}"));
                before_negative = value < 0;
            }
        }
        if self.micros != 0 || out.is_empty() {
            let sign = if self.micros < 0 {
                "-"
            } else if before_negative {
                "+"
            } else {
                ""
            };
            let us = self.micros.unsigned_abs();
            let (h, m) = (us / HOUR as u64, us / (60 * SECOND as u64) % 60);
            out.push(format!("{sign}{h:02}:{m:02}:{}", seconds(us % (60 * SECOND as u64), 2)));
        }
        out.join(" ")
    }

    fn format_verbose(&self) -> String {
        let us = self.micros;
        let parts = [
            (i64::from(self.months / 12), "year"),
            (i64::from(self.months % 12), "mon"),
            (i64::from(self.days), "day"),
            (us / HOUR, "hour"),
            (us / (60 * SECOND) % 60, "min"),
        ];
        let mut out = String::from("@");
        let (mut ago, mut any) = (false, false);
        for (value, unit) in parts {
            if value != 0 {
                ago |= !any && value < 0;
                any = true;
                let shown = if ago { -value } else { value };
                let s = if shown == 1 { "" } else { "s" };
                out.push_str(&format!(" {shown} {unit}{s}"));
            }
        }
        let rest = us % (60 * SECOND);
        if rest != 0 {
            ago |= !any && rest < 0;
            any = true;
            let minus = if (rest < 0) != ago { "-" } else { "" };
            let shown = seconds(rest.unsigned_abs(), 1);
            let s = if shown == "1" { "" } else { "s" };
            out.push_str(&format!(" {minus}{shown} sec{s}"));
        }
        if !any {
            out.push_str(" 0");
        }
        if ago {
            out.push_str(" ago");
        }
        out
    }
}

/// Seconds with their fraction, without trailing zeros.
pub(super) fn seconds(micros: u64, width: usize) -> String {
    let whole = format!("{:0width$}", micros / SECOND as u64);
    match micros % SECOND as u64 {
        0 => whole,
        fraction => format!("{whole}.{}", format!("{fraction:06}").trim_end_matches('0')),
    }
}

fn unit_interval(unit: &str) -> Option<Interval> {
    let of = |months, days, micros| Some(Interval { months, days, micros });
    match unit {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" => of(0, 0, 1),
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => of(0, 0, 1_000),
        "second" | "seconds" | "sec" | "secs" | "s" => of(0, 0, SECOND),
        "minute" | "minutes" | "min" | "mins" | "m" => of(0, 0, 60 * SECOND),
        "hour" | "hours" | "hr" | "hrs" | "h" => of(0, 0, HOUR),
        "day" | "days" | "d" => of(0, 1, 0),
        "week" | "weeks" | "w" => of(0, 7, 0),
        "month" | "months" | "mon" | "mons" => of(1, 0, 0),
        "year" | "years" | "yr" | "yrs" | "y" => of(12, 0, 0),
        "decade" | "decades" | "dec" | "decs" => of(120, 0, 0),
        "century" | "centuries" | "cent" | "c" => of(1200, 0, 0),
        "millennium" | "millennia" | "mil" | "mils" => of(12_000, 0, 0),
        _ => None,
    }
}

fn time(text: &str) -> Option<Interval> {
    let (sign, body) = match text.strip_prefix('-') {
        Some(body) => (-1, body),
        None => (1, text.trim_start_matches('+')),
    };
    let mut parts = body.split(':');
    let h: i64 = parts.next()?.parse().ok()?;
    let m: i64 = parts.next()?.parse().ok()?;
    let s: f64 = parts.next().map_or(Ok(0.0), str::parse).ok()?;
    if parts.next().is_some() || !(0..60).contains(&m) || !(0.0..=60.0).contains(&s) || !(0..2_000_000_000).contains(&h)
    {
        return None;
    }
    let micros = h * HOUR + m * 60 * SECOND + (s * 1e6).round() as i64;
    Some(Interval { micros: sign * micros, ..Interval::default() })
}
