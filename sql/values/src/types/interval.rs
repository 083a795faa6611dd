//! interval: months, days and microseconds, and how it is shown.

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
    SqlStandard,
    Iso8601,
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

    /// To text.
    pub fn format(&self, style: IntervalStyle) -> String {
        match style {
            IntervalStyle::Postgres => self.format_postgres(),
            IntervalStyle::PostgresVerbose => self.format_verbose(),
            IntervalStyle::SqlStandard => self.format_standard(),
            IntervalStyle::Iso8601 => self.format_iso(),
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
            out.push(format!("{sign}{}", clock(self.micros.unsigned_abs(), 2)));
        }
        out.join(" ")
    }

    /// `1-2`, `3 4:05:06`; where the signs differ, or both kinds of fields are there, all fields with their signs.
    fn format_standard(&self) -> String {
        let (months, days, micros) = (self.months, self.days, self.micros);
        let negative = months < 0 || days < 0 || micros < 0;
        let positive = months > 0 || days > 0 || micros > 0;
        let (date, time) =
            (format!("{}-{}", (months / 12).abs(), (months % 12).abs()), clock(micros.unsigned_abs(), 1));
        let sign = |minus: bool| if minus { '-' } else { '+' };
        if !negative && !positive {
            return "0".to_owned();
        }
        if negative && positive || months != 0 && (days != 0 || micros != 0) {
            let (m, d, t) = (sign(months < 0), sign(days < 0), sign(micros < 0));
            return format!("{m}{date} {d}{} {t}{time}", days.unsigned_abs());
        }
        let minus = if negative { "-" } else { "" };
        match (months, days) {
            (0, 0) => format!("{minus}{time}"),
            (0, _) => format!("{minus}{} {time}", days.unsigned_abs()),
            _ => format!("{minus}{date}"),
        }
    }

    /// `P1Y2M3DT4H5M6.7S`
    fn format_iso(&self) -> String {
        let us = self.micros;
        let part = |value: i64, unit: char| if value == 0 { String::new() } else { format!("{value}{unit}") };
        let mut out = String::from("P");
        out.push_str(&part(i64::from(self.months / 12), 'Y'));
        out.push_str(&part(i64::from(self.months % 12), 'M'));
        out.push_str(&part(i64::from(self.days), 'D'));
        if us != 0 {
            out.push('T');
            out.push_str(&part(us / HOUR, 'H'));
            out.push_str(&part(us / (60 * SECOND) % 60, 'M'));
            let rest = us % (60 * SECOND);
            if rest != 0 {
                let minus = if rest < 0 { "-" } else { "" };
                out.push_str(&format!("{minus}{}S", seconds(rest.unsigned_abs(), 1)));
            }
        }
        if out == "P" { "PT0S".to_owned() } else { out }
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

/// `4:05:06.7`, with so many digits of hours at least.
fn clock(micros: u64, width: usize) -> String {
    let minute = 60 * SECOND as u64;
    let (h, m) = (micros / HOUR as u64, micros / minute % 60);
    format!("{h:0width$}:{m:02}:{}", seconds(micros % minute, 2))
}

/// Seconds with their fraction, without trailing zeros.
pub(crate) fn seconds(micros: u64, width: usize) -> String {
    let whole = format!("{:0width$}", micros / SECOND as u64);
    match micros % SECOND as u64 {
        0 => whole,
        fraction => format!("{whole}.{}", format!("{fraction:06}").trim_end_matches('0')),
    }
}
