//! numeric, in the form that the rest of the code uses: a value that fits a machine word is stored inline, every other value is shared.
//!
//! Arithmetic on small values is done in 128 bits; where a result or an intermediate result does not fit, [`Wide`] computes it. Both give
//! the same results with the same scales.
//!
//! # Invariants
//! - NUM-1: a finite value whose unscaled integer fits 64 bits is `Small`; so equal values of one scale have the same form.

use super::numeric_words::{cut_word, word_of};
use super::wide::Wide;
pub use super::wide::{INTEGER_DIGITS_MAX, SCALE_MAX};
use crate::error::{Result, SqlError, code};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A numeric value.
#[derive(Clone, Debug)]
pub enum Numeric {
    /// Not a number; equal to itself and above all else.
    NaN,
    /// Infinity.
    Infinity,
    /// -Infinity.
    NegInfinity,
    /// `unscaled` / 10^`scale`.
    Small {
        /// How many digits stand behind the point.
        scale: u32,
        /// The digits with the sign.
        unscaled: i64,
    },
    /// A finite value with more digits.
    Big(Arc<Wide>),
}

use Numeric::{Big, Infinity, NaN, NegInfinity, Small};

/// The powers of ten that fit.
const POWERS: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// A power of ten, if it fits.
pub(super) fn power(n: u32) -> Option<i128> {
    POWERS.get(n as usize).copied()
}

/// Divides, rounding half away from zero; none: a step does not fit.
fn div_round(a: i128, b: i128) -> Option<i128> {
    let (q, r) = (a.checked_div(b)?, a.checked_rem(b)?);
    if r.unsigned_abs().checked_mul(2)? < b.unsigned_abs() {
        return Some(q);
    }
    Some(if (a < 0) == (b < 0) { q + 1 } else { q - 1 })
}

/// The quotient of two numbers that are not negative. Most fit a word, and a word is divided in a fraction of the time.
fn divided(a: i128, b: i128) -> i128 {
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => i128::from(a / b),
        _ => a / b,
    }
}

/// Both unscaled integers with the larger of the two scales.
fn aligned((a, s): (i64, u32), (b, t): (i64, u32)) -> Option<(i128, i128, u32)> {
    let (a, b) = (i128::from(a), i128::from(b));
    Some(match s.cmp(&t) {
        Ordering::Equal => (a, b, s),
        Ordering::Less => (a.checked_mul(power(t - s)?)?, b, t),
        Ordering::Greater => (a, b.checked_mul(power(s - t)?)?, s),
    })
}

/// As `Wide::head`: the weight of the first digit to base 10,000, and that digit.
fn head(unscaled: i64, scale: u32) -> (i64, i64) {
    if unscaled == 0 {
        return (0, 0);
    }
    let magnitude = unscaled.unsigned_abs();
    let digits = i64::from(magnitude.ilog10()) + 1;
    let exponent = digits - 1 - i64::from(scale);
    let weight = exponent.div_euclid(4);
    let count = exponent - 4 * weight + 1;
    let head = match digits - count {
        more @ 0.. => magnitude / 10u64.pow(more as u32),
        fewer => magnitude * 10u64.pow(-fewer as u32),
    };
    (weight, head as i64)
}

impl From<i64> for Numeric {
    fn from(n: i64) -> Self {
        Small { unscaled: n, scale: 0 }
    }
}

impl From<Wide> for Numeric {
    fn from(wide: Wide) -> Self {
        match &wide {
            Wide::NaN => NaN,
            Wide::Infinity => Infinity,
            Wide::NegInfinity => NegInfinity,
            Wide::Finite { unscaled, scale } => match unscaled.to_i64() {
                Some(unscaled) => Small { unscaled, scale: *scale },
                None => Big(Arc::new(wide)),
            },
        }
    }
}

impl Numeric {
    /// Builds a finite value.
    pub fn new(unscaled: BigInt, scale: u32) -> Self {
        Wide::new(unscaled, scale).into()
    }

    /// The same from an integer of the machine.
    pub fn of(unscaled: i128, scale: u32) -> Self {
        match i64::try_from(unscaled) {
            Ok(unscaled) => Small { unscaled, scale },
            Err(_) => Big(Arc::new(Wide::new(unscaled.into(), scale))),
        }
    }

    fn wide(&self) -> Cow<'_, Wide> {
        Cow::Owned(match self {
            NaN => Wide::NaN,
            Infinity => Wide::Infinity,
            NegInfinity => Wide::NegInfinity,
            Small { unscaled, scale } => Wide::new((*unscaled).into(), *scale),
            Big(wide) => {
                if let Wide::Finite { unscaled, .. } = &**wide {
                    count_digits(unscaled.bits() / 3);
                }
                return Cow::Borrowed(wide);
            }
        })
    }

    /// Reads PostgreSQL's text form; none: not a number's text.
    pub fn parse(text: &str) -> Option<Result<Self>> {
        if let Some(plain) = Self::parse_plain(text.as_bytes()) {
            return Some(Ok(plain));
        }
        Some(Wide::parse(text)?.map(Self::from))
    }

    /// Digits with at most one point between or before them, and a sign.
    fn parse_plain(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, text),
        };
        if digits.len() > 18 {
            return None;
        }
        let (mut unscaled, mut scale, mut any) = (0i64, None, false);
        for byte in digits {
            match byte {
                b'0'..=b'9' => {
                    unscaled = unscaled * 10 + i64::from(byte - b'0');
                    scale = scale.map(|n: u32| n + 1);
                    any = true;
                }
                b'.' if scale.is_none() => scale = Some(0),
                _ => return None,
            }
        }
        any.then(|| Small { unscaled: if negative { -unscaled } else { unscaled }, scale: scale.unwrap_or(0) })
    }

    /// The value of a finite double in its shortest digits (`digits`: 15 for float8, 6 for float4).
    pub fn from_f64(v: f64, digits: usize) -> Result<Self> {
        Wide::from_f64(v, digits).map(Self::from)
    }

    /// As a double.
    pub fn to_f64(&self) -> f64 {
        match self {
            // Both are doubles without loss, and so their quotient is rounded once.
            Small { unscaled, scale } if unscaled.unsigned_abs() < 1 << 53 && *scale <= 22 => {
                *unscaled as f64 / 10f64.powi(*scale as i32)
            }
            _ => self.wide().to_f64(),
        }
    }

    /// Rounded to an integer; `what` names the target for errors.
    pub fn to_i64(&self, what: &str) -> Result<i64> {
        match self.round(0) {
            Small { unscaled, .. } => Ok(unscaled),
            other => other.wide().to_i64(what),
        }
    }

    /// Digits behind the point, of a finite value.
    pub fn scale(&self) -> Option<u32> {
        match self {
            Small { scale, .. } => Some(*scale),
            Big(wide) => wide.scale(),
            _ => None,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self, Small { unscaled: 0, .. })
    }

    /// -1, 0, 1; NaN counts as 1.
    pub fn signum(&self) -> i32 {
        match self {
            NaN | Infinity => 1,
            NegInfinity => -1,
            Small { unscaled, .. } => unscaled.signum() as i32,
            Big(wide) => wide.signum(),
        }
    }

    /// The value with another sign.
    pub fn negate(&self) -> Self {
        match self {
            Small { unscaled, scale } => Self::of(-i128::from(*unscaled), *scale),
            _ => self.wide().negate().into(),
        }
    }

    /// Rounds to `scale` digits behind the point; negative ones count before it.
    pub fn round(&self, scale: i32) -> Self {
        self.rescaled(scale, div_round).unwrap_or_else(|| self.wide().round(scale).into())
    }

    /// Cuts to `scale` digits behind the point; negative ones count before it.
    pub fn trunc(&self, scale: i32) -> Self {
        self.rescaled(scale, i128::checked_div).unwrap_or_else(|| self.wide().trunc(scale).into())
    }

    fn rescaled(&self, scale: i32, divide: fn(i128, i128) -> Option<i128>) -> Option<Self> {
        let Small { unscaled, scale: from } = self else { return None };
        let to = u32::try_from(scale).ok()?.min(SCALE_MAX);
        let unscaled = i128::from(*unscaled);
        let value = match to.cmp(from) {
            Ordering::Equal => return Some(self.clone()),
            Ordering::Greater => unscaled.checked_mul(power(to - from)?)?,
            Ordering::Less => divide(unscaled, power(from - to)?)?,
        };
        Some(Self::of(value, to))
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
    #[inline]
    pub fn within_limits(self) -> Result<Self> {
        match &self {
            Small { scale, .. } if *scale <= SCALE_MAX => Ok(self),
            _ => Ok(self.wide().into_owned().within_limits()?.into()),
        }
    }

    /// Sum.
    #[inline]
    pub fn add(&self, other: &Self) -> Self {
        if let Some(sum) = self.add_words(other) {
            return sum;
        }
        if let (Small { unscaled: a, scale: s }, Small { unscaled: b, scale: t }) = (self, other)
            && let Some((a, b, scale)) = aligned((*a, *s), (*b, *t))
            && let Some(sum) = a.checked_add(b)
        {
            return Self::of(sum, scale);
        }
        self.wide().add(&other.wide()).into()
    }

    /// Difference.
    pub fn sub(&self, other: &Self) -> Self {
        if let (Small { unscaled: a, scale: s }, Small { unscaled: b, scale: t }) = (self, other)
            && let Some((a, b, scale)) = aligned((*a, *s), (*b, *t))
            && let Some(difference) = a.checked_sub(b)
        {
            return Self::of(difference, scale);
        }
        self.wide().sub(&other.wide()).into()
    }

    /// Product.
    pub fn mul(&self, other: &Self) -> Self {
        if let (Small { unscaled: a, scale: s }, Small { unscaled: b, scale: t }) = (self, other)
            && s + t <= SCALE_MAX
        {
            return Self::of(i128::from(*a) * i128::from(*b), s + t);
        }
        self.wide().mul(&other.wide(), false).into()
    }

    /// Product, as a step of a computation: with more digits behind the point than a value may have.
    pub fn mul_exact(&self, other: &Self) -> Self {
        let few = matches!((self, other), (Small { scale: s, .. }, Small { scale: t, .. }) if s + t <= SCALE_MAX);
        if few { self.mul(other) } else { self.wide().mul(&other.wide(), true).into() }
    }

    /// Quotient, with at least 16 significant digits, after `select_div_scale`.
    pub fn div(&self, other: &Self) -> Result<Self> {
        match self.div_small(other) {
            Some(quotient) => Ok(quotient),
            None => Ok(self.wide().div(&other.wide())?.into()),
        }
    }

    fn div_small(&self, other: &Self) -> Option<Self> {
        let (Small { unscaled: a, scale: s }, Small { unscaled: b, scale: t }) = (self, other) else { return None };
        let ((w1, d1), (w2, d2)) = (head(*a, *s), head(*b, *t));
        let weight = w1 - w2 - i64::from(d1 <= d2);
        let scale = (16 - 4 * weight).max(i64::from(*s)).max(i64::from(*t)).clamp(0, 1000) as u32;
        // a/10^s / (b/10^t) * 10^scale = a * 10^(scale + t) / (b * 10^s)
        let top = i128::from(*a).checked_mul(power(scale + t)?)?;
        Some(Self::of(div_round(top, i128::from(*b).checked_mul(power(*s)?)?)?, scale))
    }

    /// Remainder of the division that cuts.
    pub fn rem(&self, other: &Self) -> Result<Self> {
        if let (Small { unscaled: a, scale: s }, Small { unscaled: b, scale: t }) = (self, other)
            && let Some((a, b, scale)) = aligned((*a, *s), (*b, *t))
            && let Some(rest) = a.checked_rem(b)
        {
            return Ok(Self::of(rest, scale));
        }
        Ok(self.wide().rem(&other.wide())?.into())
    }

    /// PostgreSQL's order: NaN is equal to itself and greater than all else.
    pub fn compare(&self, other: &Self) -> Ordering {
        if let (Small { unscaled: a, scale: s }, Small { unscaled: b, scale: t }) = (self, other) {
            if s == t {
                return a.cmp(b);
            }
            if let Some((a, b, _)) = aligned((*a, *s), (*b, *t)) {
                return a.cmp(&b);
            }
        }
        self.wide().compare(&other.wide())
    }

    /// Fits the value into `numeric(precision, scale)`.
    pub fn fit(&self, precision: i32, scale: i32) -> Result<Self> {
        if let (Small { .. }, Small { unscaled, scale: s }) = (self, &self.round(scale)) {
            let limit = precision - scale + *s as i32;
            let fits = u32::try_from(limit).is_ok_and(|n| power(n).is_none_or(|p| i128::from(*unscaled).abs() < p));
            if fits || *unscaled == 0 {
                return Ok(Small { unscaled: *unscaled, scale: *s });
            }
        }
        Ok(self.wide().fit(precision, scale)?.into())
    }

    /// The value without trailing zeros behind the point, for hashing and keys.
    pub fn normalized(&self) -> Self {
        match self {
            Small { unscaled, scale } => {
                let (mut unscaled, mut scale) = (*unscaled, *scale);
                while scale > 0 && unscaled % 10 == 0 {
                    unscaled /= 10;
                    scale -= 1;
                }
                Small { unscaled, scale }
            }
            _ => self.wide().normalized().into(),
        }
    }

    /// The digits to base 10,000 of the wire's binary form: (weight, sign, scale, digits).
    pub fn to_wire(&self) -> (i16, u16, u16, Vec<u16>) {
        let Small { unscaled, scale } = self else { return self.wide().to_wire() };
        let pad = (4 - scale % 4) % 4;
        let mut rest = u128::from(unscaled.unsigned_abs()) * 10u128.pow(pad);
        let behind = (scale + pad) / 4;
        let mut digits = Vec::with_capacity(6);
        while rest > 0 {
            digits.push((rest % 10_000) as u16);
            rest /= 10_000;
        }
        let weight = if digits.is_empty() { 0 } else { digits.len() as i64 - i64::from(behind) - 1 };
        digits.reverse();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        (weight as i16, if *unscaled < 0 { 0x4000 } else { 0 }, *scale as u16, digits)
    }

    /// The opposite of [`Self::to_wire`]; none where the fields don't make a number.
    pub fn from_wire(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> Option<Self> {
        if let Some(small) = Self::of_digits(weight, sign, scale, digits.iter().copied()) {
            return Some(small);
        }
        count_digits(4 * (digits.len() as u64).max(i64::from(weight).unsigned_abs()));
        Wide::from_wire(weight, sign, scale, digits).map(Self::from)
    }

    /// The same of a finite value that fits a word; none: it does not, or the fields make no number.
    #[inline]
    pub fn of_digits(weight: i16, sign: u16, scale: u16, digits: impl ExactSizeIterator<Item = u16>) -> Option<Self> {
        let negative = match sign {
            0 => false,
            0x4000 => true,
            _ => return None,
        };
        let count = digits.len();
        if count > 5 || u32::from(scale) > SCALE_MAX {
            return None;
        }
        let exponent = (i64::from(weight) + 1 - count as i64) * 4 + i64::from(scale);
        let mut unscaled = 0i128;
        if count <= 4 {
            let word = word_of(digits)?;
            if let Some(cut) = cut_word(word, exponent) {
                return Some(Small { unscaled: if negative { -cut } else { cut }, scale: u32::from(scale) });
            }
            unscaled = i128::from(word);
        } else {
            for digit in digits {
                if digit > 9_999 {
                    return None;
                }
                unscaled = unscaled * 10_000 + i128::from(digit);
            }
        }
        let step = power(u32::try_from(exponent.unsigned_abs()).ok()?)?;
        let unscaled = if exponent >= 0 { unscaled.checked_mul(step)? } else { divided(unscaled, step) };
        let unscaled = i64::try_from(if negative { -unscaled } else { unscaled }).ok()?;
        Some(Small { unscaled, scale: u32::from(scale) })
    }

    /// The square root.
    pub fn sqrt(&self) -> Result<Self> {
        self.wide().sqrt().map(Self::from)
    }

    /// The square root with so many digits behind the point.
    pub fn sqrt_to(&self, digits: u32) -> Result<Self> {
        self.wide().sqrt_to(digits).map(Self::from)
    }

    /// e to this power.
    pub fn exp(&self) -> Result<Self> {
        self.wide().exp().map(Self::from)
    }

    /// The natural logarithm.
    pub fn ln(&self) -> Result<Self> {
        self.wide().ln().map(Self::from)
    }

    /// The logarithm to a base.
    pub fn log(&self, base: &Self) -> Result<Self> {
        self.wide().log(&base.wide()).map(Self::from)
    }

    /// This to the power of `exponent`.
    pub fn pow(&self, exponent: &Self) -> Result<Self> {
        self.wide().pow(&exponent.wide()).map(Self::from)
    }

    /// Bytes beyond its own.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Big(wide) => match &**wide {
                Wide::Finite { unscaled, .. } => unscaled.bits() as usize / 8,
                _ => 0,
            },
            _ => 0,
        }
    }
}

/// Equal numbers have equal hashes, whatever their scale.
impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.normalized() {
            Small { unscaled, scale } => {
                state.write_i64(unscaled);
                state.write_u64(u64::from(scale));
            }
            Big(wide) => {
                if let Wide::Finite { unscaled, scale } = &*wide {
                    scale.hash(state);
                    (unscaled.sign() == num_bigint::Sign::Minus).hash(state);
                    unscaled.iter_u64_digits().for_each(|d| d.hash(state));
                }
            }
            special => special.to_string().hash(state),
        }
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Small { unscaled, scale } = self else { return self.wide().fmt(f) };
        if *unscaled < 0 {
            f.write_char('-')?;
        }
        let magnitude = unscaled.unsigned_abs();
        match 10u64.checked_pow(*scale) {
            Some(1) => write!(f, "{magnitude}"),
            Some(one) => write!(f, "{}.{:0>width$}", magnitude / one, magnitude % one, width = *scale as usize),
            None => write!(f, "0.{magnitude:0>width$}", width = *scale as usize),
        }
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

/// Counts an operation on a value of so many digits, as a product's work: most operations can't fail, so that none of them can be stopped, and one
/// row of a query may have several of some milliseconds each.
fn count_digits(digits: u64) {
    clearway_base::breath::count(u32::try_from(64 + digits / 8 * (1 + digits / 256)).unwrap_or(u32::MAX));
}

/// The error of a value that no numeric can hold.
pub(super) fn overflow() -> SqlError {
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

#[cfg(test)]
#[path = "numeric_tests.rs"]
mod tests;
