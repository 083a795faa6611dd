//! The text form of floats: shortest digits that read back, laid out as PostgreSQL lays them out.

use crate::error::{Result, SqlError, code};

/// Lays out `digits` with an exponent as C's %g does, with a limit of `plain_max` digits before the point.
fn layout(scientific: &str, plain_max: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if !(-4..plain_max).contains(&exponent) {
        let (head, tail) = digits.split_at(1);
        let point = if tail.is_empty() { "" } else { "." };
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{head}{point}{tail}e{mark}{:02}", exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let int = exponent as usize + 1;
    if digits.len() <= int {
        return format!("{sign}{digits}{}", "0".repeat(int - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..int], &digits[int..])
}

fn special(v: f64) -> Option<&'static str> {
    if v.is_nan() {
        Some("NaN")
    } else if v.is_infinite() {
        Some(if v > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        None
    }
}

/// A float as a whole number of units of a power of two.
#[derive(Clone, Copy)]
struct Parts {
    units: u64,
    power: i32,
    /// Whether the next float towards zero is half as far away as the one on the other side.
    is_lowest: bool,
}

impl Parts {
    fn of(bits: u64, mantissa_bits: i32, bias: i32) -> Parts {
        let (fraction, raised) = (bits & ((1 << mantissa_bits) - 1), (bits >> mantissa_bits) as i32);
        let units = if raised == 0 { fraction } else { fraction | 1 << mantissa_bits };
        let power = raised.max(1) - bias - mantissa_bits;
        Parts { units, power, is_lowest: fraction == 0 && raised > 1 }
    }

    /// Whether a number lies halfway between the float and one of its neighbours.
    fn is_halfway(&self, decimal: Decimal) -> bool {
        if self.units == 0 {
            return false;
        }
        let below =
            if self.is_lowest { (4 * self.units - 1, self.power - 2) } else { (2 * self.units - 1, self.power - 1) };
        decimal.is(2 * self.units + 1, self.power - 1) || decimal.is(below.0, below.1)
    }
}

/// A number as digits and a power of ten.
#[derive(Clone, Copy)]
struct Decimal {
    digits: u64,
    power: i32,
}

impl Decimal {
    /// The number that `{:e}` has written, without its sign.
    fn of(scientific: &str) -> Option<Decimal> {
        let (mantissa, exponent) = scientific.trim_start_matches('-').split_once('e')?;
        let (head, tail) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let power = exponent.parse::<i32>().ok()? - tail.len() as i32;
        let digits = tail.bytes().fold(head.parse::<u64>().ok()?, |n, b| n * 10 + u64::from(b - b'0'));
        Some(Decimal { digits, power })
    }

    /// Whether it is exactly so many units of a power of two. The units have at most 55 bits, hence no divisor 5^24.
    fn is(self, units: u64, power: i32) -> bool {
        if units == 0 || self.digits == 0 || !(-27..24).contains(&self.power) {
            return false;
        }
        let fives = 5_u128.pow(self.power.unsigned_abs());
        let own = match (self.power >= 0, u128::from(self.digits)) {
            (true, digits) => digits * fives,
            (false, digits) if digits % fives == 0 => digits / fives,
            _ => return false,
        };
        let (own_twos, twos) = (own.trailing_zeros() as i32, units.trailing_zeros() as i32);
        own >> own_twos == u128::from(units >> twos) && self.power + own_twos == power + twos
    }

    fn written(self, sign: &str) -> String {
        let digits = self.digits.to_string();
        let exponent = self.power + digits.len() as i32 - 1;
        let (head, tail) = digits.split_at(1);
        let tail = tail.trim_end_matches('0');
        format!("{sign}{head}{}{tail}e{exponent}", if tail.is_empty() { "" } else { "." })
    }
}

/// The digits that PostgreSQL's algorithm (Ryu) shows for a float of which `shortest` are the shortest that read back. They differ in two
/// cases: it does not take digits that lie halfway to the next float, though they read back here, and of two that are equally near it takes the
/// even ones.
fn as_ryu(
    shortest: String,
    parts: Parts,
    longest: usize,
    written: impl Fn(usize) -> String,
    same: impl Fn(&str) -> bool,
) -> String {
    let Some(decimal) = Decimal::of(&shortest) else { return shortest };
    let sign = if shortest.starts_with('-') { "-" } else { "" };
    if parts.is_halfway(decimal) {
        let length = decimal.digits.to_string().len();
        let inside = (length..=longest).find_map(|length| {
            let near = Decimal::of(&written(length))?;
            let around =
                [near.digits, near.digits + 1, near.digits.saturating_sub(1)].map(|digits| Decimal { digits, ..near });
            let is_inside = |d: &Decimal| !parts.is_halfway(*d) && same(&d.written(sign));
            around.into_iter().find(is_inside)
        });
        return inside.map_or(shortest, |d| d.written(sign));
    }
    let between = Decimal { digits: decimal.digits.wrapping_mul(10).wrapping_sub(5), power: decimal.power - 1 };
    let lower = Decimal { digits: decimal.digits.wrapping_sub(1), ..decimal };
    let is_even = decimal.digits % 2 == 1 && between.is(parts.units, parts.power);
    if is_even && !parts.is_halfway(lower) && same(&lower.written(sign)) { lower.written(sign) } else { shortest }
}

/// double precision to text.
pub fn format8(v: f64) -> String {
    if let Some(text) = special(v) {
        return text.to_owned();
    }
    let parts = Parts::of(v.abs().to_bits(), 52, 1023);
    let written = |length: usize| format!("{v:.*e}", length - 1);
    layout(&as_ryu(format!("{v:e}"), parts, 17, written, |text| text.parse() == Ok(v)), 15)
}

/// real to text.
pub fn format4(v: f32) -> String {
    if let Some(text) = special(f64::from(v)) {
        return text.to_owned();
    }
    let parts = Parts::of(u64::from(v.abs().to_bits()), 23, 127);
    let written = |length: usize| format!("{v:.*e}", length - 1);
    layout(&as_ryu(format!("{v:e}"), parts, 9, written, |text| text.parse() == Ok(v)), 6)
}

/// double precision to text by `extra_float_digits`.
pub fn shown8(v: f64, extra: i8) -> String {
    if extra > 0 { format8(v) } else { rounded(v, 15 + i32::from(extra)) }
}

/// real to text by `extra_float_digits`.
pub fn shown4(v: f32, extra: i8) -> String {
    if extra > 0 { format4(v) } else { rounded(f64::from(v), 6 + i32::from(extra)) }
}

/// As C's %g with so many digits, at least one.
fn rounded(v: f64, digits: i32) -> String {
    if let Some(text) = special(v) {
        return text.to_owned();
    }
    let digits = digits.max(1);
    let text = format!("{v:.*e}", digits as usize - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    layout(&format!("{mantissa}e{exponent}"), digits)
}

/// Text to a float; `ty` is the type's name for errors.
pub fn parse(text: &str, ty: &str) -> Result<f64> {
    let t = text.trim();
    let invalid =
        || SqlError::new(code::INVALID_TEXT_REPRESENTATION, format!("invalid input syntax for type {ty}: \"{text}\""));
    let range = || SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("\"{t}\" is out of range for type {ty}"));
    match t.to_ascii_lowercase().trim_start_matches(['+', '-']) {
        "nan" | "inf" | "infinity" => {}
        body if body.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {}
        _ => return Err(invalid()),
    }
    let single = ty == "real";
    // Rounded once: what is rounded to a double first may become another real.
    let v: f64 = match single {
        true => f64::from(t.parse::<f32>().map_err(|_| invalid())?),
        false => t.parse().map_err(|_| invalid())?,
    };
    let nonzero = t.bytes().take_while(|b| !matches!(b, b'e' | b'E')).any(|b| matches!(b, b'1'..=b'9'));
    let lost = nonzero && (v.is_infinite() || v == 0.0);
    if lost { Err(range()) } else { Ok(v) }
}
