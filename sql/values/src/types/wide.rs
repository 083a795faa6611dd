//! numeric of any size: exact decimal numbers with a scale, NaN and the infinities. Values that fit a machine word are computed in
//! `numeric`.
//!
//! A value is an integer and the number of its digits behind the point. Scales of results follow PostgreSQL's numeric.c
//! (`select_div_scale` for division); rounding is half away from zero.

use super::numeric::overflow;
use crate::error::{Result, SqlError, code};
use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// The most digits behind the point.
pub const SCALE_MAX: u32 = 16_383;
/// The most digits before the point.
pub const INTEGER_DIGITS_MAX: u32 = 131_072;

/// A numeric value.
#[derive(Clone, Debug)]
pub enum Wide {
    /// Not a number; equal to itself and above all else.
    NaN,
    /// Infinity.
    Infinity,
    /// -Infinity.
    NegInfinity,
    /// `unscaled` / 10^`scale`.
    Finite {
        /// The digits with the sign.
        unscaled: BigInt,
        /// How many of them stand behind the point.
        scale: u32,
    },
}

use Wide::{Finite, Infinity, NaN, NegInfinity};

fn pow10(n: u32) -> BigInt {
    BigInt::from(10u8).pow(n)
}

/// Exponents from here on are refused, whatever they belong to.
const EXPONENT_END: i64 = i32::MAX as i64 / 2;

/// The number behind an `e`, cut to what is refused anyway; none: it is no number.
fn exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(EXPONENT_END).min(EXPONENT_END);
    Some(if text.starts_with('-') { -size } else { size })
}

/// Divides, rounding half away from zero.
fn div_round(a: &BigInt, b: &BigInt) -> BigInt {
    let (q, r) = (a / b, a % b);
    if (r.abs() * 2u8) >= b.abs() {
        let away = if (a.sign() == Sign::Minus) == (b.sign() == Sign::Minus) { 1 } else { -1 };
        q + away
    } else {
        q
    }
}

impl From<i64> for Wide {
    fn from(n: i64) -> Self {
        Finite { unscaled: BigInt::from(n), scale: 0 }
    }
}

impl Wide {
    /// Builds a finite value.
    pub fn new(unscaled: BigInt, scale: u32) -> Self {
        Finite { unscaled, scale }
    }

    /// Reads PostgreSQL's text form; none: not a number's text.
    pub fn parse(text: &str) -> Option<Result<Self>> {
        let t = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        let (sign, body) = match t.as_bytes().first()? {
            b'-' => (-1, &t[1..]),
            b'+' => (1, &t[1..]),
            _ => (1, t),
        };
        match body.to_ascii_lowercase().as_str() {
            "nan" if body.len() == t.len() => return Some(Ok(NaN)),
            "inf" | "infinity" => return Some(Ok(if sign < 0 { NegInfinity } else { Infinity })),
            _ => {}
        }
        let (mantissa, exponent) = match body.find(['e', 'E']) {
            Some(i) => (&body[..i], exponent(&body[i + 1..])?),
            None => (body, 0),
        };
        let (int, frac) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if (int.is_empty() && frac.is_empty()) || !digits(int) || !digits(frac) {
            return None;
        }
        Some(Self::from_parts(sign, int, frac, exponent))
    }

    fn from_parts(sign: i32, int: &str, frac: &str, exponent: i64) -> Result<Self> {
        if exponent.abs() >= EXPONENT_END {
            return Err(overflow());
        }
        let scale = frac.len() as i64 - exponent;
        let leading = int.bytes().chain(frac.bytes()).take_while(|b| *b == b'0').count() as i64;
        let zero = leading == (int.len() + frac.len()) as i64;
        let significant = int.len() as i64 + exponent - leading;
        if scale > i64::from(SCALE_MAX) || (!zero && significant > i64::from(INTEGER_DIGITS_MAX)) {
            return Err(overflow());
        }
        if zero {
            return Ok(Finite { unscaled: BigInt::zero(), scale: scale.max(0) as u32 });
        }
        clearway_base::breath::step_bytes(32 * (int.len() + frac.len()))?;
        let joined = format!("{int}{frac}");
        let mut unscaled = BigInt::parse_bytes(joined.as_bytes(), 10).unwrap_or_default() * sign;
        if scale < 0 {
            unscaled *= pow10((-scale) as u32);
        }
        Ok(Finite { unscaled, scale: scale.max(0) as u32 })
    }

    /// The value of a finite double in its shortest digits (`digits`: 15 for float8, 6 for float4).
    pub fn from_f64(v: f64, digits: usize) -> Result<Self> {
        if v.is_nan() {
            return Ok(NaN);
        }
        if v.is_infinite() {
            return Ok(if v > 0.0 { Infinity } else { NegInfinity });
        }
        let text = format!("{:.*e}", digits - 1, v);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let trimmed =
            if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        Self::parse(&format!("{trimmed}e{exponent}")).unwrap_or_else(|| Err(overflow()))
    }

    /// As a double.
    pub fn to_f64(&self) -> f64 {
        match self {
            NaN => f64::NAN,
            Infinity => f64::INFINITY,
            NegInfinity => f64::NEG_INFINITY,
            Finite { .. } => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// Rounded to an integer; `what` names the target for errors.
    pub fn to_i64(&self, what: &str) -> Result<i64> {
        match self {
            NaN => Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, format!("cannot convert NaN to {what}"))),
            Infinity | NegInfinity => {
                Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, format!("cannot convert infinity to {what}")))
            }
            Finite { .. } => match self.round(0) {
                Finite { unscaled, .. } => unscaled
                    .to_i64()
                    .ok_or_else(|| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("{what} out of range"))),
                _ => Err(overflow()),
            },
        }
    }

    /// Digits behind the point, of a finite value.
    pub fn scale(&self) -> Option<u32> {
        match self {
            Finite { scale, .. } => Some(*scale),
            _ => None,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self, Finite { unscaled, .. } if unscaled.is_zero())
    }

    /// -1, 0, 1; NaN counts as 1.
    pub fn signum(&self) -> i32 {
        match self {
            NaN | Infinity => 1,
            NegInfinity => -1,
            Finite { unscaled, .. } => match unscaled.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    /// The value with another sign.
    pub fn negate(&self) -> Self {
        match self {
            NaN => NaN,
            Infinity => NegInfinity,
            NegInfinity => Infinity,
            Finite { unscaled, scale } => Finite { unscaled: -unscaled, scale: *scale },
        }
    }

    fn rescaled(unscaled: &BigInt, from: u32, to: u32) -> BigInt {
        match to.cmp(&from) {
            Ordering::Equal => unscaled.clone(),
            Ordering::Greater => unscaled * pow10(to - from),
            Ordering::Less => div_round(unscaled, &pow10(from - to)),
        }
    }

    /// Rounds to `scale` digits behind the point; negative ones count before it.
    pub fn round(&self, scale: i32) -> Self {
        let Finite { unscaled, scale: s } = self else {
            return self.clone();
        };
        if scale >= 0 {
            let to = (scale as u32).min(SCALE_MAX);
            return Finite { unscaled: Self::rescaled(unscaled, *s, to), scale: to };
        }
        let unit = pow10(scale.unsigned_abs().min(INTEGER_DIGITS_MAX + 1));
        let whole = div_round(unscaled, &(&unit * pow10(*s)));
        Finite { unscaled: whole * unit, scale: 0 }
    }

    /// Cuts to `scale` digits behind the point; negative ones count before it.
    pub fn trunc(&self, scale: i32) -> Self {
        let Finite { unscaled, scale: s } = self else {
            return self.clone();
        };
        if scale >= 0 {
            let to = (scale as u32).min(SCALE_MAX);
            let cut = if to >= *s { Self::rescaled(unscaled, *s, to) } else { unscaled / pow10(*s - to) };
            return Finite { unscaled: cut, scale: to };
        }
        let unit = pow10(scale.unsigned_abs().min(INTEGER_DIGITS_MAX + 1));
        Finite { unscaled: unscaled / (&unit * pow10(*s)) * unit, scale: 0 }
    }

    /// The largest integer not above it.
    pub fn floor(&self) -> Self {
        let cut = self.trunc(0);
        if self.compare(&cut) == Ordering::Less { cut.add(&Self::from(-1)) } else { cut }
    }

    /// The smallest integer not below it.
    pub fn ceil(&self) -> Self {
        self.negate().floor().negate()
    }

    /// The value, if it has at most [`INTEGER_DIGITS_MAX`] digits before the point and [`SCALE_MAX`] behind it: what a result must have, since
    /// no other can be stored.
    ///
    /// # Errors
    /// 22003.
    pub fn within_limits(self) -> Result<Self> {
        let Finite { unscaled, scale } = &self else { return Ok(self) };
        // 10^n has more than 3.3219 n bits; the exact comparison is only for what is near.
        let digits_max = INTEGER_DIGITS_MAX + scale;
        let near = unscaled.bits() * 1_000 > u64::from(digits_max) * 3_321;
        if *scale > SCALE_MAX || (near && *unscaled.magnitude() >= *pow10(digits_max).magnitude()) {
            return Err(overflow());
        }
        Ok(self)
    }

    /// Sum.
    pub fn add(&self, other: &Self) -> Self {
        match (self, other) {
            (NaN, _) | (_, NaN) | (Infinity, NegInfinity) | (NegInfinity, Infinity) => NaN,
            (Infinity, _) | (_, Infinity) => Infinity,
            (NegInfinity, _) | (_, NegInfinity) => NegInfinity,
            (Finite { unscaled: a, scale: s }, Finite { unscaled: b, scale: t }) => {
                let scale = *s.max(t);
                Finite { unscaled: Self::rescaled(a, *s, scale) + Self::rescaled(b, *t, scale), scale }
            }
        }
    }

    /// Difference.
    pub fn sub(&self, other: &Self) -> Self {
        self.add(&other.negate())
    }

    /// Product; `exact`: with more digits behind the point than a value may have, as a step of a computation.
    pub fn mul(&self, other: &Self, exact: bool) -> Self {
        match (self, other) {
            (NaN, _) | (_, NaN) => NaN,
            (Finite { unscaled: a, scale: s }, Finite { unscaled: b, scale: t }) => {
                let product = Finite { unscaled: a * b, scale: s + t };
                if s + t > SCALE_MAX && !exact { product.round(SCALE_MAX as i32) } else { product }
            }
            _ => match self.signum() * other.signum() {
                0 => NaN,
                1 => Infinity,
                _ => NegInfinity,
            },
        }
    }

    /// The weight of the first digit to base 10,000, and that digit.
    pub(super) fn head(unscaled: &BigInt, scale: u32) -> (i64, i64) {
        if unscaled.is_zero() {
            return (0, 0);
        }
        let digits = unscaled.abs().to_string();
        let exponent = digits.len() as i64 - 1 - i64::from(scale);
        let weight = exponent.div_euclid(4);
        let count = (exponent - 4 * weight + 1) as usize;
        let head: i64 =
            digits.bytes().chain(std::iter::repeat(b'0')).take(count).fold(0, |n, b| n * 10 + i64::from(b - b'0'));
        (weight, head)
    }

    /// Quotient, with at least 16 significant digits, after `select_div_scale`.
    pub fn div(&self, other: &Self) -> Result<Self> {
        let zero = || SqlError::new(code::DIVISION_BY_ZERO, "division by zero");
        Ok(match (self, other) {
            (NaN, _) | (_, NaN) => NaN,
            (Finite { unscaled: a, scale: s }, Finite { unscaled: b, scale: t }) => {
                if b.is_zero() {
                    return Err(zero());
                }
                let ((w1, d1), (w2, d2)) = (Self::head(a, *s), Self::head(b, *t));
                let weight = w1 - w2 - i64::from(d1 <= d2);
                let scale = (16 - 4 * weight).max(i64::from(*s)).max(i64::from(*t)).clamp(0, 1000) as u32;
                // a/10^s / (b/10^t) * 10^scale = a * 10^(scale + t) / (b * 10^s)
                Finite { unscaled: div_round(&(a * pow10(scale + t)), &(b * pow10(*s))), scale }
            }
            (Finite { .. }, _) => Self::from(0),
            (_, Finite { unscaled, .. }) if unscaled.is_zero() => return Err(zero()),
            (_, Finite { .. }) if self.signum() * other.signum() > 0 => Infinity,
            (_, Finite { .. }) => NegInfinity,
            _ => NaN,
        })
    }

    /// Remainder of the division that cuts.
    pub fn rem(&self, other: &Self) -> Result<Self> {
        Ok(match (self, other) {
            (NaN, _) | (_, NaN) => NaN,
            (_, Finite { unscaled, .. }) if unscaled.is_zero() => {
                return Err(SqlError::new(code::DIVISION_BY_ZERO, "division by zero"));
            }
            (Finite { unscaled: a, scale: s }, Finite { unscaled: b, scale: t }) => {
                let scale = *s.max(t);
                Finite { unscaled: Self::rescaled(a, *s, scale) % Self::rescaled(b, *t, scale), scale }
            }
            (Finite { .. }, _) => self.clone(),
            _ => NaN,
        })
    }

    /// PostgreSQL's order: NaN is equal to itself and greater than all else.
    pub fn compare(&self, other: &Self) -> Ordering {
        let rank = |n: &Self| match n {
            NegInfinity => 0,
            Finite { .. } => 1,
            Infinity => 2,
            NaN => 3,
        };
        match (self, other) {
            (Finite { unscaled: a, scale: s }, Finite { unscaled: b, scale: t }) => match s.cmp(t) {
                Ordering::Equal => a.cmp(b),
                Ordering::Less => (a * pow10(t - s)).cmp(b),
                Ordering::Greater => a.cmp(&(b * pow10(s - t))),
            },
            _ => rank(self).cmp(&rank(other)),
        }
    }

    /// Fits the value into `numeric(precision, scale)`.
    pub fn fit(&self, precision: i32, scale: i32) -> Result<Self> {
        let field =
            |detail: String| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").detail(detail);
        let rounded = match self {
            NaN => return Ok(NaN),
            Infinity | NegInfinity => {
                return Err(field(format!(
                    "A field with precision {precision}, scale {scale} cannot hold an infinite value."
                )));
            }
            Finite { .. } => self.round(scale),
        };
        let Finite { unscaled, scale: s } = &rounded else {
            return Ok(rounded);
        };
        let limit = precision - scale + *s as i32;
        if limit >= 0 && unscaled.abs() < pow10(limit as u32) || unscaled.is_zero() {
            return Ok(rounded);
        }
        let whole = precision - scale;
        let bound = if whole == 0 { "1".to_owned() } else { format!("10^{whole}") };
        Err(field(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
        )))
    }

    /// The value without trailing zeros behind the point, for hashing and keys.
    pub fn normalized(&self) -> Self {
        let Finite { unscaled, scale } = self else {
            return self.clone();
        };
        if unscaled.is_zero() {
            return Finite { unscaled: BigInt::zero(), scale: 0 };
        }
        if *scale == 0 {
            return self.clone();
        }
        // One division: one for each digit would take a long value's length squared.
        let zeros = unscaled.to_string().bytes().rev().take_while(|b| *b == b'0').count().min(*scale as usize) as u32;
        Finite { unscaled: unscaled / pow10(zeros), scale: scale - zeros }
    }

    /// The digits to base 10,000 of the wire's binary form: (weight, sign, scale, digits).
    pub fn to_wire(&self) -> (i16, u16, u16, Vec<u16>) {
        let Finite { unscaled, scale } = self else {
            let sign = match self {
                NaN => 0xc000,
                Infinity => 0xd000,
                _ => 0xf000,
            };
            return (0, sign, 0, Vec::new());
        };
        let mut text = unscaled.abs().to_string();
        let pad_right = (4 - (*scale as usize % 4)) % 4;
        text.push_str(&"0".repeat(pad_right));
        let behind = (*scale as usize + pad_right) / 4;
        let pad_left = (4 - text.len() % 4) % 4;
        let text = "0".repeat(pad_left) + &text;
        let mut digits: Vec<u16> =
            text.as_bytes().chunks(4).map(|c| c.iter().fold(0, |n, b| n * 10 + u16::from(b - b'0'))).collect();
        let mut weight = digits.len() as i64 - behind as i64 - 1;
        let lead = digits.iter().take_while(|d| **d == 0).count();
        digits.drain(..lead);
        weight -= lead as i64;
        while digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.is_empty() {
            weight = 0;
        }
        (weight as i16, if unscaled.is_negative() { 0x4000 } else { 0 }, *scale as u16, digits)
    }

    /// The opposite of [`Self::to_wire`]; none where the fields don't make a number.
    pub fn from_wire(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> Option<Self> {
        match sign {
            0xc000 => return Some(NaN),
            0xd000 => return Some(Infinity),
            0xf000 => return Some(NegInfinity),
            0 | 0x4000 => {}
            _ => return None,
        }
        if digits.iter().any(|d| *d > 9999) || u32::from(scale) > SCALE_MAX {
            return None;
        }
        let text: String = digits.iter().map(|d| format!("{d:04}")).collect();
        let mut unscaled = BigInt::parse_bytes(text.as_bytes(), 10).unwrap_or_default();
        let exponent = (i64::from(weight) + 1 - digits.len() as i64) * 4 + i64::from(scale);
        if exponent >= 0 {
            unscaled *= pow10(exponent as u32);
        } else {
            unscaled /= pow10((-exponent) as u32);
        }
        Some(Finite { unscaled: if sign == 0 { unscaled } else { -unscaled }, scale: u32::from(scale) })
    }
}

impl fmt::Display for Wide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finite { unscaled, scale } = self else {
            return f.write_str(match self {
                NaN => "NaN",
                Infinity => "Infinity",
                _ => "-Infinity",
            });
        };
        let digits = unscaled.abs().to_string();
        if unscaled.is_negative() {
            f.write_char('-')?;
        }
        let scale = *scale as usize;
        if scale == 0 {
            return f.write_str(&digits);
        }
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (int, frac) = padded.split_at(padded.len() - scale);
        write!(f, "{int}.{frac}")
    }
}

impl PartialEq for Wide {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}
