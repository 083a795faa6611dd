//! to_char of numbers (src/backend/utils/adt/formatting.c, `NUM_processor`).

use super::eval::Env;
use super::functions::{Function, s, table};
use super::number_format::{Format, Key, Piece, SignPlace};
use super::to_char::ordinal_suffix;
use crate::error::{Result, SqlError, code};
use crate::types::numeric::SCALE_MAX;
use crate::types::{Datum, Numeric, oid};
use clearway_base::breath;
use num_bigint::BigInt;

use oid::{FLOAT4, FLOAT8, INT4, INT8, NUMERIC, TEXT};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "to_char"(INT4, TEXT) TEXT strict to_char; "to_char"(INT8, TEXT) TEXT strict to_char; "to_char"(NUMERIC, TEXT) TEXT strict to_char;
    "to_char"(FLOAT4, TEXT) TEXT strict to_char; "to_char"(FLOAT8, TEXT) TEXT strict to_char;
    "to_number"(TEXT, TEXT) NUMERIC strict super::to_number::to_number;
};

/// Digits of a float that mean something.
const FLOAT4_DIGITS: usize = 6;
const FLOAT8_DIGITS: usize = 15;

/// How long a number in roman digits can be.
const ROMAN_MAX: usize = 15;

/// The roman digits, and pairs of them that count as one.
const ROMAN_DIGITS: &[(i64, &str)] = &[
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
];

/// A number's digits, ready to be put into a format.
struct Digits {
    /// Without the sign; the point is a dot.
    text: Vec<u8>,
    negative: bool,
    /// Places of the format before the first digit.
    spaces: usize,
}

fn to_char(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let text = s(a, 1);
    if text.is_empty() {
        return Ok(Datum::text(String::new()));
    }
    let mut format = Format::parse(text)?;
    if format.exponent {
        return Ok(Datum::text(scientific(&a[0], &format)?));
    }
    let digits = if format.roman { roman(&a[0])? } else { digits(&a[0], &mut format)? };
    if format.roman {
        let fill = format.fill;
        (format.pre, format.post, format.pre_sign, format.sign) = (0, 0, 0, SignPlace::None);
        (format.decimal, format.bracket, format.minus, format.plus, format.zero_start) =
            (false, false, false, false, None);
        format.fill = fill;
    }
    let mut out = Writer::new(&format, &digits).write()?;
    // What stands behind a digit that the number does not have is lost, as in PostgreSQL.
    if let Some(end) = out.iter().position(|b| *b == 0) {
        out.truncate(end);
    }
    let shown = String::from_utf8(out).map_err(|_| SqlError::internal("a formatted number is no text"))?;
    Ok(Datum::text(shown))
}

/// `#` for each digit, for a number that has too many.
fn overflow(format: &Format) -> Vec<u8> {
    let mut out = vec![b'#'; format.pre + format.post + 1];
    out[format.pre] = b'.';
    out
}

fn placed(text: &str, format: &Format) -> Digits {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let before = text.find('.').unwrap_or(text.len());
    match before > format.pre {
        true => Digits { text: overflow(format), negative, spaces: 0 },
        false => Digits { text: text.as_bytes().to_vec(), negative, spaces: format.pre - before },
    }
}

fn digits(value: &Datum, format: &mut Format) -> Result<Digits> {
    let value = match value {
        Datum::Float4(v) => return Ok(float_digits(f64::from(*v), format, FLOAT4_DIGITS)),
        Datum::Float8(v) => return Ok(float_digits(*v, format, FLOAT8_DIGITS)),
        other => exact(other)?,
    };
    let post = i32::try_from(format.post).unwrap_or(i32::MAX);
    let value = match format.shift {
        true => value.mul(&power_of_ten(format.multi)?),
        false => value,
    };
    format.pre += format.multi;
    let rounded = value.round(post);
    let shown = rounded.to_string();
    Ok(match rounded.scale() {
        Some(_) => placed(&padded(shown, format.post), format),
        None => placed(&shown, format),
    })
}

/// With so many digits behind the point.
fn padded(mut text: String, post: usize) -> String {
    let behind = text.find('.').map_or(0, |at| text.len() - at - 1);
    if post > behind {
        if behind == 0 {
            text.push('.');
        }
        text.extend(std::iter::repeat_n('0', post - behind));
    }
    text
}

fn power_of_ten(n: usize) -> Result<Numeric> {
    let n = u32::try_from(n).ok().filter(|n| *n <= SCALE_MAX);
    let n = n.ok_or_else(|| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format"))?;
    Ok(Numeric::new(BigInt::from(10).pow(n), 0))
}

fn exact(value: &Datum) -> Result<Numeric> {
    match value {
        Datum::Numeric(n) => Ok(n.clone()),
        other => other
            .as_i64()
            .map(Numeric::from)
            .ok_or_else(|| SqlError::internal("a format of numbers got something else")),
    }
}

/// PostgreSQL's words for what is no number of digits.
fn float_text(v: f64, post: usize) -> String {
    match v {
        v if v.is_nan() => "NaN".to_owned(),
        v if v.is_infinite() => (if v < 0.0 { "-Infinity" } else { "Infinity" }).to_owned(),
        v => format!("{v:.post$}"),
    }
}

fn float_digits(v: f64, format: &mut Format, digits: usize) -> Digits {
    let v = if format.shift { v * 10f64.powi(i32::try_from(format.multi).unwrap_or(i32::MAX)) } else { v };
    format.pre += format.multi;
    let before = float_text(v.abs(), 0).len();
    if before >= digits {
        format.post = 0;
    } else if before + format.post > digits {
        format.post = digits - before;
    }
    placed(&float_text(v, format.post), format)
}

/// With EEEE.
fn scientific(value: &Datum, format: &Format) -> Result<String> {
    // The sign, the point, e, the exponent's sign and two digits.
    let unknown = || {
        let mut out = vec![b'#'; format.pre + format.post + 6];
        out[0] = b' ';
        if let Some(point) = out.get_mut(format.pre + 1) {
            *point = b'.';
        }
        String::from_utf8_lossy(&out).into_owned()
    };
    let float = match value {
        Datum::Float4(v) => Some(f64::from(*v)),
        Datum::Float8(v) => Some(*v),
        Datum::Int4(v) => Some(f64::from(*v)),
        _ => None,
    };
    let shown = match float {
        Some(v) if !v.is_finite() => return Ok(unknown()),
        Some(v) => {
            let post = format.post;
            let text = format!("{v:.post$e}");
            let (significand, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            with_exponent(significand, exponent.parse().unwrap_or(0))
        }
        None => {
            let value = exact(value)?;
            let Some(scale) = value.scale() else { return Ok(unknown()) };
            let digits: Vec<u8> = value.to_string().bytes().filter(u8::is_ascii_digit).collect();
            let first = digits.iter().position(|d| *d != b'0');
            let exponent = first.map_or(0, |at| (digits.len() - at) as i64 - 1 - i64::from(scale));
            let post = i32::try_from(format.post).unwrap_or(i32::MAX);
            // Exact, then rounded once.
            let significand = match usize::try_from(exponent) {
                Ok(_) => shifted(&value, exponent),
                Err(_) => value.mul(&power_of_ten(exponent.unsigned_abs() as usize)?),
            };
            with_exponent(&padded(significand.round(post).to_string(), format.post), exponent)
        }
    };
    Ok(if shown.starts_with('-') { shown } else { format!(" {shown}") })
}

/// Divided by a power of ten, exactly.
fn shifted(value: &Numeric, exponent: i64) -> Numeric {
    let text = value.to_string();
    let digits: String = text.chars().filter(|c| *c != '.').collect();
    let scale = i64::from(value.scale().unwrap_or(0)) + exponent;
    match (digits.parse::<BigInt>(), u32::try_from(scale)) {
        (Ok(unscaled), Ok(scale)) => Numeric::new(unscaled, scale),
        _ => value.clone(),
    }
}

fn with_exponent(significand: &str, exponent: i64) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{significand}e{sign}{:02}", exponent.unsigned_abs())
}

fn roman(value: &Datum) -> Result<Digits> {
    let number = match value {
        Datum::Float4(v) => f64::from(*v).round_ties_even() as i64,
        Datum::Float8(v) => v.round_ties_even() as i64,
        other => {
            let rounded = exact(other)?.round(0);
            let out_of_range = || SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
            if rounded.scale().is_none() {
                let what = if matches!(rounded, Numeric::NaN) { "NaN" } else { "infinity" };
                return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, format!("cannot convert {what} to integer")));
            }
            let number = rounded.to_i64("integer")?;
            i32::try_from(number).map(i64::from).map_err(|_| out_of_range())?
        }
    };
    let mut text = Vec::new();
    match number {
        1..=3999 => {
            let mut left = number;
            for (worth, letters) in ROMAN_DIGITS {
                while left >= *worth {
                    left -= worth;
                    text.extend_from_slice(letters.as_bytes());
                }
            }
        }
        _ => text.extend(std::iter::repeat_n(b'#', ROMAN_MAX)),
    }
    Ok(Digits { text, negative: false, spaces: 0 })
}

/// What is being written.
struct Writer<'f> {
    format: &'f Format,
    digits: &'f Digits,
    out: Vec<u8>,
    sign: SignPlace,
    bracket: bool,
    signed: bool,
    /// A digit has been written just before.
    inside: bool,
    /// The place in the number of the format, and in the digits.
    at: usize,
    digit: usize,
    count: i64,
    /// The last digit behind the point that FM keeps.
    last: Option<usize>,
}

impl<'f> Writer<'f> {
    fn new(format: &'f Format, digits: &'f Digits) -> Writer<'f> {
        let (mut sign, mut bracket) = (format.sign, format.bracket);
        let signed = if format.plus || format.minus {
            format.minus || !format.plus
        } else {
            bracket &= digits.negative || !format.fill;
            if sign == SignPlace::Before && format.pre == format.pre_sign {
                sign = SignPlace::Behind;
            }
            !digits.negative && format.fill && format.sign == SignPlace::None
        };
        let mut last = None;
        if format.fill && format.decimal {
            last = last_relevant(&digits.text);
            if let Some(kept) = &mut last
                && format.zero_end > digits.spaces
            {
                *kept = (*kept).max((digits.text.len() - 1).min(format.zero_end - digits.spaces));
            }
        }
        let mut count = (format.pre + format.post) as i64 - 1;
        count += i64::from(!signed && digits.spaces == 0);
        Writer { format, digits, out: Vec::new(), sign, bracket, signed, inside: false, at: 0, digit: 0, count, last }
    }

    fn write(mut self) -> Result<Vec<u8>> {
        let (format, digits) = (self.format, self.digits);
        for piece in &format.pieces {
            breath::step(8)?;
            let (key, small) = match piece {
                Piece::Pattern(key, small) => (*key, *small),
                Piece::Char(c) => {
                    self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
            };
            let or_blank = |shown: bool, byte: u8| match shown {
                true => Some(byte),
                false => (!format.fill).then_some(b' '),
            };
            match key {
                Key::Nine | Key::Zero | Key::Dot | Key::Decimal => self.place(key),
                Key::Comma | Key::Group => self.out.extend(or_blank(self.inside, b',')),
                Key::Currency => self.out.push(b' '),
                Key::Roman => self.write_roman(small),
                Key::Ordinal => self.write_ordinal(small)?,
                Key::Minus => self.out.extend(or_blank(digits.negative, b'-')),
                Key::Plus => self.out.extend(or_blank(!digits.negative, b'+')),
                Key::SignHere => self.out.push(if digits.negative { b'-' } else { b'+' }),
                _ => {}
            }
        }
        Ok(self.out)
    }

    fn write_roman(&mut self, small: bool) {
        let text = &self.digits.text;
        if !self.format.fill {
            let blanks = ROMAN_MAX.saturating_sub(text.len());
            self.out.extend(std::iter::repeat_n(b' ', blanks));
        }
        self.out.extend(text.iter().map(|b| if small { b.to_ascii_lowercase() } else { *b }));
    }

    fn write_ordinal(&mut self, small: bool) -> Result<()> {
        let (format, digits) = (self.format, self.digits);
        if format.roman || digits.text.first() == Some(&b'#') || digits.negative || format.decimal {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&digits.text);
        if !text.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("\"{text}\" is not a number")));
        }
        self.out.extend_from_slice(ordinal_suffix(&text, !small).as_bytes());
        Ok(())
    }

    /// The digit at hand; 0 behind the last one.
    fn current(&self) -> u8 {
        self.digits.text.get(self.digit).copied().unwrap_or(0)
    }

    /// Whether FM leaves nothing behind the point.
    fn ends_at_point(&self) -> bool {
        self.last.is_some_and(|at| self.digits.text.get(at) == Some(&b'.'))
    }

    /// A zero before the point that the format leaves out: 0.1 is `.1` in `9.9`.
    fn is_zero_left_out(&self) -> bool {
        let first = self.digits.text.first() == Some(&b'0');
        self.format.zero_start.is_none() && self.digit == 0 && first && self.format.post != 0
    }

    fn write_sign(&mut self) {
        let negative = self.digits.negative;
        if self.format.sign != SignPlace::None {
            if self.sign == SignPlace::Before {
                self.out.push(if negative { b'-' } else { b'+' });
                self.signed = true;
            }
            return;
        }
        if self.bracket {
            self.out.push(if negative { b'<' } else { b' ' });
        } else if negative {
            self.out.push(b'-');
        } else if !self.format.fill {
            self.out.push(b' ');
        }
        self.signed = true;
    }

    /// A place of the number: a digit or the point.
    fn place(&mut self, key: Key) {
        let format = self.format;
        if format.roman {
            return;
        }
        self.inside = false;
        let from_zero = format.zero_start.is_some_and(|zero| zero <= self.at);
        let begins = self.at >= self.digits.spaces || format.zero_start == Some(self.at);
        if !self.signed && begins && (!self.is_zero_left_out() || self.ends_at_point()) {
            self.write_sign();
        }
        if self.at < self.digits.spaces {
            if from_zero {
                self.out.push(b'0');
                self.inside = true;
            } else if !format.fill {
                self.out.push(b' ');
            }
        } else {
            self.write_digit(key);
            if self.current() != 0 {
                self.digit += 1;
            }
        }
        let mut end = self.count + i64::from(self.digits.spaces > 0) + i64::from(format.decimal);
        if self.last == Some(self.digit) {
            end = self.at as i64;
        }
        if self.at as i64 + 1 == end {
            let negative = self.digits.negative;
            if self.signed && self.bracket {
                self.out.push(if negative { b'>' } else { b' ' });
            } else if format.sign != SignPlace::None && self.sign == SignPlace::Behind {
                self.out.push(if negative { b'-' } else { b'+' });
            }
        }
        self.at += 1;
    }

    fn write_digit(&mut self, key: Key) {
        let current = self.current();
        if current == b'.' {
            if !self.ends_at_point() || self.format.fill {
                self.out.push(b'.');
            }
        } else if self.last.is_some_and(|last| self.digit > last) && key != Key::Zero {
        } else if self.is_zero_left_out() {
            if !self.format.fill {
                self.out.push(b' ');
            } else if self.ends_at_point() {
                self.out.push(b'0');
            }
        } else {
            self.out.push(current);
            self.inside = true;
        }
    }
}

/// The point, or the last digit behind it that is no zero; none: there is no point.
fn last_relevant(text: &[u8]) -> Option<usize> {
    let point = text.iter().position(|b| *b == b'.')?;
    let behind = text[point + 1..].iter().rposition(|b| *b != b'0');
    Some(behind.map_or(point, |at| point + 1 + at))
}
