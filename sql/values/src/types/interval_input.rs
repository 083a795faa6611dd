//! The text of an interval, read as PostgreSQL reads it: units, the standard's `years-months days time`, and ISO 8601's durations
//! (`DecodeInterval` and `DecodeISO8601Interval`, src/backend/utils/adt/datetime.c).

use super::datetime_fields::{Field, FieldKind, fields};
use super::interval::{Interval, IntervalStyle};
use super::interval_modifier::{self as modifier, DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
use crate::error::{Result, SqlError, code};

const MICROS: i64 = 1_000_000;
const MINUTE_MICROS: i64 = 60 * MICROS;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;

/// Why a text is no interval.
enum IntervalError {
    /// It does not look like one: another form may fit.
    Format,
    /// A field is beyond what can be stored.
    Overflow,
}

type Read<T> = std::result::Result<T, IntervalError>;

/// What a number counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
    /// Known by name; no number of them is taken.
    Other,
}

impl Unit {
    /// Its bit among the units that were seen.
    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The units finer than a minute.
fn seconds_bits() -> u32 {
    Unit::Second.bit() | Unit::Millisecond.bit() | Unit::Microsecond.bit()
}

/// The unit of a word, which counts up to its tenth character.
fn unit(word: &str) -> Option<Unit> {
    let word = word.get(..10).unwrap_or(word);
    Some(match word {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
        "dec" | "decs" | "decade" | "decades" => Unit::Decade,
        "c" | "cent" | "century" | "centuries" => Unit::Century,
        "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
        "qtr" | "quarter" | "timezone" | "timezone_h" | "timezone_m" => Unit::Other,
        _ => return None,
    })
}

/// Sums of what was read so far, years apart from months as PostgreSQL keeps them.
#[derive(Default)]
struct Sums {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

fn add(to: &mut i32, value: i64, times: i64) -> Read<()> {
    let value = i32::try_from(value).map_err(|_| IntervalError::Overflow)?;
    let more = i32::try_from(i64::from(value) * times).map_err(|_| IntervalError::Overflow)?;
    *to = to.checked_add(more).ok_or(IntervalError::Overflow)?;
    Ok(())
}

impl Sums {
    fn micros(&mut self, value: i64, fraction: f64, unit: i64) -> Read<()> {
        let more = value.checked_mul(unit).ok_or(IntervalError::Overflow)?;
        self.micros = self.micros.checked_add(more).ok_or(IntervalError::Overflow)?;
        self.part_of(fraction, unit)
    }

    /// A fraction of a unit of so many microseconds.
    fn part_of(&mut self, fraction: f64, unit: i64) -> Read<()> {
        let parts = fraction * unit as f64;
        let whole = parts.trunc();
        let rest = parts - whole;
        let rounded = if rest > 0.5 {
            1
        } else if rest < -0.5 {
            -1
        } else {
            0
        };
        self.micros = self.micros.checked_add(whole as i64 + rounded).ok_or(IntervalError::Overflow)?;
        Ok(())
    }

    /// A fraction of a unit of so many days.
    fn part_of_days(&mut self, fraction: f64, days: f64) -> Read<()> {
        let parts = fraction * days;
        let whole = parts.trunc();
        add(&mut self.days, whole as i64, 1)?;
        self.part_of(parts - whole, DAY_MICROS)
    }

    fn years(&mut self, value: i64, fraction: f64, years: i64) -> Read<()> {
        add(&mut self.years, value, years)?;
        add(&mut self.months, (fraction * years as f64 * 12.0).round_ties_even() as i64, 1)
    }

    fn months(&mut self, value: i64, fraction: f64) -> Read<()> {
        add(&mut self.months, value, 1)?;
        self.part_of_days(fraction, 30.0)
    }

    fn days(&mut self, value: i64, fraction: f64) -> Read<()> {
        add(&mut self.days, value, 1)?;
        self.part_of(fraction, DAY_MICROS)
    }

    /// So many of a unit; gives back the units that count as seen.
    fn of_unit(&mut self, unit: Unit, value: i64, fraction: f64) -> Read<u32> {
        match unit {
            Unit::Microsecond => self.micros(value, fraction, 1)?,
            Unit::Millisecond => self.micros(value, fraction, 1_000)?,
            Unit::Second => self.micros(value, fraction, MICROS)?,
            Unit::Minute => self.micros(value, fraction, MINUTE_MICROS)?,
            Unit::Hour => self.micros(value, fraction, HOUR_MICROS)?,
            Unit::Day => self.days(value, fraction)?,
            Unit::Week => {
                add(&mut self.days, value, 7)?;
                self.part_of_days(fraction, 7.0)?;
            }
            Unit::Month => self.months(value, fraction)?,
            Unit::Year => self.years(value, fraction, 1)?,
            Unit::Decade => self.years(value, fraction, 10)?,
            Unit::Century => self.years(value, fraction, 100)?,
            Unit::Millennium => self.years(value, fraction, 1_000)?,
            Unit::Other => return Err(IntervalError::Format),
        }
        Ok(if unit == Unit::Second && fraction != 0.0 { seconds_bits() } else { unit.bit() })
    }

    fn negated(self) -> Read<Sums> {
        Ok(Sums {
            years: self.years.checked_neg().ok_or(IntervalError::Overflow)?,
            months: self.months.checked_neg().ok_or(IntervalError::Overflow)?,
            days: self.days.checked_neg().ok_or(IntervalError::Overflow)?,
            micros: self.micros.checked_neg().ok_or(IntervalError::Overflow)?,
        })
    }

    fn interval(&self) -> Option<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        Some(Interval { months: i32::try_from(months).ok()?, days: self.days, micros: self.micros })
    }
}

/// The digits at the beginning, with a sign perhaps, and what follows them.
fn leading_int(text: &str) -> Read<(i64, &str)> {
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(sign + digits);
    if digits == 0 {
        return Ok((0, text));
    }
    number.parse().map(|n| (n, rest)).map_err(|_| IntervalError::Overflow)
}

/// `.25`, or a point alone.
fn fraction(text: &str) -> Read<f64> {
    match text.strip_prefix('.') {
        Some("") => Ok(0.0),
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => text.parse().map_err(|_| IntervalError::Format),
        _ => Err(IntervalError::Format),
    }
}

/// `hours:minutes`, `hours:minutes:seconds`, or with a fraction behind two parts `minutes:seconds`: microseconds.
fn time(text: &str, range: i32) -> Read<i64> {
    let small = |n: i64| i32::try_from(n).map_err(|_| IntervalError::Overflow);
    let (hours, rest) = leading_int(text)?;
    let rest = rest.strip_prefix(':').ok_or(IntervalError::Format)?;
    let (minutes, rest) = leading_int(rest)?;
    small(minutes)?;
    let (hours, minutes, seconds, part) = if rest.is_empty() && range != MINUTE | SECOND {
        (hours, minutes, 0, 0.0)
    } else if rest.is_empty() || rest.starts_with('.') {
        small(hours)?;
        (0, hours, minutes, if rest.is_empty() { 0.0 } else { fraction(rest)? })
    } else {
        let (seconds, rest) = leading_int(rest.strip_prefix(':').ok_or(IntervalError::Format)?)?;
        small(seconds)?;
        (hours, minutes, seconds, if rest.is_empty() { 0.0 } else { fraction(rest)? })
    };
    if hours < 0 || !(0..60).contains(&minutes) || !(0..=60).contains(&seconds) {
        return Err(IntervalError::Overflow);
    }
    let below = minutes * MINUTE_MICROS + seconds * MICROS + (part * 1e6).round_ties_even() as i64;
    hours.checked_mul(HOUR_MICROS).and_then(|h| h.checked_add(below)).ok_or(IntervalError::Overflow)
}

/// The finest field of a restricted interval: what a number without a unit counts.
fn finest(range: i32) -> Unit {
    match range {
        YEAR => Unit::Year,
        _ if range == modifier::FULL_RANGE || range & SECOND != 0 => Unit::Second,
        _ if range & MINUTE != 0 => Unit::Minute,
        _ if range & HOUR != 0 => Unit::Hour,
        DAY => Unit::Day,
        _ if range & MONTH != 0 => Unit::Month,
        _ => Unit::Second,
    }
}

/// Reads fields from the last one to the first: a unit stands behind its number.
struct Reader {
    sums: Sums,
    seen: u32,
    unit: Option<Unit>,
    ago: bool,
    range: i32,
    /// The standard's style: a sign before the first field holds for all.
    negative: bool,
}

impl Reader {
    fn mark(&mut self, seen: u32) -> Read<()> {
        if self.seen & seen != 0 {
            return Err(IntervalError::Format);
        }
        self.seen |= seen;
        Ok(())
    }

    fn time(&mut self, text: &str, minus: bool) -> Read<()> {
        let micros = time(text, self.range)?;
        self.sums.micros = if minus || self.negative { -micros } else { micros };
        self.unit = Some(Unit::Day);
        self.mark(seconds_bits() | Unit::Minute.bit() | Unit::Hour.bit())
    }

    fn number(&mut self, text: &str) -> Read<()> {
        let mut unit = self.unit.unwrap_or_else(|| finest(self.range));
        let minus = text.starts_with('-');
        let (mut value, rest) = leading_int(text)?;
        let mut part = 0.0;
        if let Some(months) = rest.strip_prefix('-') {
            let (months, rest) = leading_int(months)?;
            if !(0..12).contains(&months) {
                return Err(IntervalError::Overflow);
            }
            if !rest.is_empty() {
                return Err(IntervalError::Format);
            }
            unit = Unit::Month;
            let months = if minus { -months } else { months };
            value = value.checked_mul(12).and_then(|v| v.checked_add(months)).ok_or(IntervalError::Overflow)?;
        } else if !rest.is_empty() {
            part = fraction(rest)?;
            if minus {
                part = -part;
            }
        }
        if self.negative {
            (value, part) = (-value.abs(), -part.abs());
        }
        let seen = self.sums.of_unit(unit, value, part)?;
        // Before hours stand days.
        self.unit = Some(if unit == Unit::Hour { Unit::Day } else { unit });
        self.mark(seen)
    }

    fn field(&mut self, field: &Field) -> Read<()> {
        match field.kind {
            FieldKind::Time => self.time(&field.text, false),
            FieldKind::Zone => {
                // `1 +02:03`: a sign and a time.
                let (sign, body) = field.text.split_at(1);
                if body.contains(':') && time(body, self.range).is_ok() {
                    return self.time(body, sign == "-");
                }
                self.number(&field.text)
            }
            FieldKind::Number | FieldKind::Date => self.number(&field.text),
            FieldKind::Word | FieldKind::SignedWord if field.text == "ago" => {
                self.ago = true;
                // A number before it needs a unit of its own.
                self.unit = Some(Unit::Other);
                Ok(())
            }
            FieldKind::Word | FieldKind::SignedWord => {
                self.unit = Some(unit(&field.text).ok_or(IntervalError::Format)?);
                Ok(())
            }
        }
    }
}

fn by_fields(text: &str, range: i32, style: IntervalStyle) -> Read<Sums> {
    let fields = fields(text).ok_or(IntervalError::Format)?;
    let signed = |f: &Field| f.text.starts_with(['-', '+']);
    let first_only = fields.first().is_some_and(|f| f.text.starts_with('-')) && !fields.iter().skip(1).any(signed);
    let negative = style == IntervalStyle::SqlStandard && first_only;
    let mut reader = Reader { sums: Sums::default(), seen: 0, unit: None, ago: false, range, negative };
    for field in fields.iter().rev() {
        reader.field(field)?;
    }
    if reader.seen == 0 {
        return Err(IntervalError::Format);
    }
    if reader.ago { reader.sums.negated() } else { Ok(reader.sums) }
}

/// A number of a duration, cut into whole part and fraction, and what follows it.
fn duration_number(text: &str) -> Read<(i64, f64, &str)> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.')) {
        return Err(IntervalError::Format);
    }
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = usize::from(bytes[0] == b'-');
    end += digits(end);
    if bytes.get(end) == Some(&b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let value: f64 = text[..end].parse().map_err(|_| IntervalError::Format)?;
    if !(-1e15..=1e15).contains(&value) {
        return Err(IntervalError::Overflow);
    }
    Ok((value.trunc() as i64, value - value.trunc(), &text[end..]))
}

/// How many digits the whole part of a number has.
fn width(text: &str) -> usize {
    text.trim_start_matches('-').bytes().take_while(u8::is_ascii_digit).count()
}

/// `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`.
fn by_duration(text: &str) -> Read<Sums> {
    let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty()).ok_or(IntervalError::Format)?;
    let mut sums = Sums::default();
    let (mut of_time, mut first) = (false, true);
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('T') {
            (of_time, first, rest) = (true, true, behind);
            continue;
        }
        let start = rest;
        let (value, part, behind) = duration_number(rest)?;
        let designator = behind.chars().next();
        rest = &behind[designator.map_or(0, char::len_utf8)..];
        let unit = match (of_time, designator) {
            (false, Some('Y')) => Unit::Year,
            (false, Some('M')) => Unit::Month,
            (false, Some('W')) => Unit::Week,
            (false, Some('D')) => Unit::Day,
            (true, Some('H')) => Unit::Hour,
            (true, Some('M')) => Unit::Minute,
            (true, Some('S')) => Unit::Second,
            (false, None | Some('T' | '-')) if first => {
                rest = alternative_date(&mut sums, (value, part), start, behind)?;
                (of_time, first) = (true, true);
                continue;
            }
            (true, None | Some(':')) if first => {
                alternative_time(&mut sums, (value, part), start, behind)?;
                return Ok(sums);
            }
            _ => return Err(IntervalError::Format),
        };
        sums.of_unit(unit, value, part)?;
        first = false;
    }
    Ok(sums)
}

/// `0001-02-03` or `00010203`, whose first number was read; gives back what stands behind T.
fn alternative_date<'a>(sums: &mut Sums, first: (i64, f64), start: &str, behind: &'a str) -> Read<&'a str> {
    let (value, part) = first;
    let time = |rest: &'a str| match rest.strip_prefix('T') {
        Some(time) => Ok(time),
        None if rest.is_empty() => Ok(rest),
        None => Err(IntervalError::Format),
    };
    if width(start) == 8 && !behind.starts_with('-') {
        sums.years(value / 10_000, 0.0, 1)?;
        sums.months(value / 100 % 100, 0.0)?;
        sums.days(value % 100, part)?;
        return time(behind);
    }
    sums.years(value, part, 1)?;
    let Some(rest) = behind.strip_prefix('-') else { return time(behind) };
    let (value, part, rest) = duration_number(rest)?;
    sums.months(value, part)?;
    let Some(rest) = rest.strip_prefix('-') else { return time(rest) };
    let (value, part, rest) = duration_number(rest)?;
    sums.days(value, part)?;
    time(rest)
}

/// `04:05:06` or `040506`, whose first number was read.
fn alternative_time(sums: &mut Sums, first: (i64, f64), start: &str, behind: &str) -> Read<()> {
    let (value, part) = first;
    if width(start) == 6 && behind.is_empty() {
        sums.micros(value / 10_000, 0.0, HOUR_MICROS)?;
        sums.micros(value / 100 % 100, 0.0, MINUTE_MICROS)?;
        sums.micros(value % 100, 0.0, MICROS)?;
        return sums.part_of(part, 1);
    }
    sums.micros(value, part, HOUR_MICROS)?;
    let Some(rest) = behind.strip_prefix(':') else { return Ok(()) };
    let (value, part, rest) = duration_number(rest)?;
    sums.micros(value, part, MINUTE_MICROS)?;
    if rest.is_empty() {
        return Ok(());
    }
    let (value, part, rest) = duration_number(rest.strip_prefix(':').ok_or(IntervalError::Format)?)?;
    sums.micros(value, part, MICROS)?;
    if rest.is_empty() { Ok(()) } else { Err(IntervalError::Format) }
}

impl Interval {
    /// Reads a text for a type with a modifier (-1: none), which says what a number without a unit counts.
    ///
    /// # Errors
    /// 22007, 22015, 22008.
    pub fn parse(text: &str, modifier: i32, style: IntervalStyle) -> Result<Self> {
        let sums = match by_fields(text, modifier::range(modifier), style) {
            Err(IntervalError::Format) => by_duration(text),
            other => other,
        };
        let sums = sums.map_err(|bad| match bad {
            IntervalError::Format => {
                let message = format!("invalid input syntax for type interval: \"{text}\"");
                SqlError::new(code::INVALID_DATETIME_FORMAT, message)
            }
            IntervalError::Overflow => SqlError::new("22015", format!("interval field value out of range: \"{text}\"")),
        })?;
        let read = sums.interval();
        read.ok_or_else(|| SqlError::new(code::DATETIME_FIELD_OVERFLOW, "interval out of range"))
    }
}
