//! Roots, powers, exponentials and logarithms of numerics.
//!
//! Everything is computed in integers scaled by a power of ten with some digits to spare, and rounded once; the scales of results are
//! those of PostgreSQL's numeric.c (at least 16 significant digits and no fewer behind the point than the arguments have).
//!
//! # Errors
//! 2201E, 2201F for arguments without a result; 22003 for a result that numeric can't hold; 0A000 for one of more than
//! [`RESULT_DIGITS_MAX`] digits, which would take seconds.

use super::wide::Wide;
use crate::error::{Result, SqlError, code};
use Wide::{Finite, Infinity, NaN, NegInfinity};
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Significant digits that a result has at least.
const DIGITS_MIN: i64 = 16;
/// Digits behind the point that a result has at most.
const SCALE_MAX: i64 = 1_000;
/// Digits before the point that numeric holds.
const INTEGER_DIGITS_MAX: f64 = 131_072.0;
/// Digits before the point of the results that are computed.
pub const RESULT_DIGITS_MAX: f64 = 10_000.0;
/// Digits computed beyond those of the result.
const SPARE: u32 = 20;

fn power(message: &str) -> SqlError {
    SqlError::new(code::INVALID_ARGUMENT_FOR_POWER, message)
}

fn scaled(digits: i64, scales: &[u32]) -> u32 {
    let wanted = scales.iter().fold(DIGITS_MIN - digits, |most, scale| most.max(i64::from(*scale)));
    wanted.clamp(0, SCALE_MAX) as u32
}

fn pow10(n: u32) -> BigInt {
    BigInt::from(10u8).pow(n)
}

/// A value as an integer of 10^-`digits`.
fn fixed(unscaled: &BigInt, scale: u32, digits: u32) -> BigInt {
    if digits >= scale { unscaled * pow10(digits - scale) } else { unscaled / pow10(scale - digits) }
}

/// The other way, rounded half away from zero.
fn rounded(value: &BigInt, digits: u32, scale: u32) -> Wide {
    Wide::new(value.clone(), digits).round(scale as i32)
}

/// log10 of a positive value, as good as a double is; also of values beyond a double's range.
fn log10(unscaled: &BigInt, scale: u32) -> f64 {
    let text = unscaled.magnitude().to_str_radix(10);
    let head: f64 = text.get(..text.len().min(17)).and_then(|t| t.parse().ok()).unwrap_or(1.0);
    head.log10() + text.len().saturating_sub(17) as f64 - f64::from(scale)
}

/// The decimal weight of ln(x), estimated as numeric.c does.
fn ln_weight(unscaled: &BigInt, scale: u32) -> i64 {
    let one = pow10(scale);
    let near = unscaled * 10u8 >= &one * 9u8 && unscaled * 10u8 <= &one * 11u8;
    if near {
        let rest = unscaled - one;
        if rest.is_zero() {
            return 0;
        }
        let (weight, first) = Wide::head(&rest, scale);
        return weight * 4 + (first as f64).log10() as i64;
    }
    let ln = log10(unscaled, scale) * std::f64::consts::LN_10;
    ln.abs().log10() as i64
}

/// atanh(`numerator` / `denominator`) for a quotient well below 1.
fn atanh(numerator: &BigInt, denominator: &BigInt, digits: u32) -> Result<BigInt> {
    let one = pow10(digits);
    let ratio = numerator * &one / denominator;
    let square = &ratio * &ratio / &one;
    let (mut sum, mut term, mut n) = (BigInt::zero(), ratio, 1u32);
    while !term.is_zero() {
        product(digits)?;
        sum += &term / n;
        term = &term * &square / &one;
        n += 2;
    }
    Ok(sum)
}

/// Counts a product or quotient of numbers of so many digits.
fn product(digits: u32) -> Result<()> {
    Ok(clearway_base::breath::step(64 + digits / 8 * (1 + digits / 256))?)
}

fn ln2(digits: u32) -> Result<BigInt> {
    Ok(atanh(&BigInt::one(), &BigInt::from(3), digits)? * 2u8)
}

/// ln of a positive value, as an integer of 10^-`digits`: powers of two out, then 2 atanh((m - 1) / (m + 1)).
fn ln_fixed(unscaled: &BigInt, scale: u32, digits: u32) -> Result<BigInt> {
    let work = digits + SPARE;
    let one = pow10(scale);
    let mut twos = unscaled.bits() as i64 - one.bits() as i64;
    let (mut top, mut bottom) = (unscaled.clone(), one);
    if twos >= 0 {
        bottom <<= twos as u64
    } else {
        top <<= (-twos) as u64
    }
    // The quotient is between 1/2 and 2; between 3/4 and 3/2 from here on.
    if &top * 2u8 > &bottom * 3u8 {
        bottom <<= 1u8;
        twos += 1;
    } else if &top * 4u8 < &bottom * 3u8 {
        top <<= 1u8;
        twos -= 1;
    }
    let ln = atanh(&(&top - &bottom), &(&top + &bottom), work)? * 2u8 + ln2(work)? * twos;
    Ok(ln / pow10(SPARE))
}

/// e to the power of `x` (an integer of 10^-`digits`), the same; `integer_digits` of the result stand before the point.
fn exp_fixed(x: &BigInt, digits: u32, scale: u32, integer_digits: u32) -> Result<BigInt> {
    let work = scale + integer_digits + SPARE;
    let one = pow10(work);
    let x = fixed(x, digits, work);
    let ln2 = ln2(work)?;
    let twos: BigInt = &x / &ln2;
    // The smaller the argument of the series, the fewer its terms; each halving is a squaring afterwards.
    let halvings = (f64::from(work) * 3.33).sqrt() as u64 / 2 + 1;
    let extra = halvings as u32;
    let (fine, rest) = (&one * pow10(extra), (x - &twos * &ln2) * pow10(extra) / (BigInt::one() << halvings));
    let (mut sum, mut term, mut n) = (fine.clone(), fine.clone(), 1u32);
    while !term.is_zero() {
        product(work)?;
        term = &term * &rest / &fine / n;
        sum += &term;
        n += 1;
    }
    for _ in 0..halvings {
        product(work)?;
        sum = &sum * &sum / &fine;
    }
    let sum = sum / pow10(extra);
    Ok(match twos.to_i64().unwrap_or(0) {
        n if n >= 0 => sum << n as u64,
        n => sum >> n.unsigned_abs(),
    })
}

/// Refuses what is too long; the digits before the point of a result of 10^`weight`.
fn integer_digits(weight: f64) -> Result<u32> {
    if weight >= INTEGER_DIGITS_MAX {
        return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format"));
    }
    if weight >= RESULT_DIGITS_MAX {
        return Err(SqlError::unsupported(format!("a result of {weight:.0} digits")));
    }
    Ok(weight.max(0.0) as u32 + 1)
}

/// e^(x), where x is an integer of 10^-`digits`, to `scale` digits behind the point.
fn exp_to(x: &BigInt, digits: u32, weight: f64, scale: u32) -> Result<Wide> {
    if weight < -(SCALE_MAX as f64) - 2.0 {
        return Ok(Wide::new(BigInt::zero(), scale));
    }
    let before = integer_digits(weight)?;
    let work = scale + before + SPARE;
    Ok(rounded(&exp_fixed(x, digits, scale, before)?, work, scale))
}

impl Wide {
    /// The square root.
    pub fn sqrt(&self) -> Result<Self> {
        let negative = || Err(power("cannot take square root of a negative number"));
        match self {
            NaN | Infinity => Ok(self.clone()),
            NegInfinity => negative(),
            Finite { unscaled, .. } if unscaled.is_negative() => negative(),
            Finite { unscaled, scale } => {
                let (weight, _) = Wide::head(unscaled, *scale);
                let digits = if weight >= 0 { weight * 2 + 1 } else { 1 - (1 - weight * 4) / 2 };
                let result = scaled(digits, &[*scale]);
                Ok(Wide::new(root(unscaled, *scale, result), result))
            }
        }
    }

    /// The square root with so many digits behind the point.
    pub fn sqrt_to(&self, digits: u32) -> Result<Self> {
        match self {
            Finite { unscaled, scale } if !unscaled.is_negative() => {
                Ok(Wide::new(root(unscaled, *scale, digits), digits))
            }
            _ => self.sqrt(),
        }
    }

    /// e to this power.
    pub fn exp(&self) -> Result<Self> {
        match self {
            NaN | Infinity => Ok(self.clone()),
            NegInfinity => Ok(Wide::from(0)),
            Finite { unscaled, scale } => {
                let weight = self.to_f64() * std::f64::consts::LOG10_E;
                let result = scaled(weight.clamp(-2000.0, 2_000_000.0) as i64, &[*scale]);
                exp_to(unscaled, *scale, weight, result)
            }
        }
    }

    fn logarithm_of(&self) -> Result<Option<(&BigInt, u32)>> {
        let bad = |m: &str| Err(SqlError::new(code::INVALID_ARGUMENT_FOR_LOG, m));
        match self {
            NaN | Infinity => Ok(None),
            Finite { unscaled, .. } if unscaled.is_zero() => bad("cannot take logarithm of zero"),
            Finite { unscaled, scale } if unscaled.is_positive() => Ok(Some((unscaled, *scale))),
            Finite { .. } | NegInfinity => bad("cannot take logarithm of a negative number"),
        }
    }

    /// The natural logarithm.
    pub fn ln(&self) -> Result<Self> {
        let Some((unscaled, scale)) = self.logarithm_of()? else { return Ok(self.clone()) };
        let result = scaled(ln_weight(unscaled, scale), &[scale]);
        let digits = result + SPARE;
        Ok(rounded(&ln_fixed(unscaled, scale, digits)?, digits, result))
    }

    /// The logarithm to a base.
    pub fn log(&self, base: &Self) -> Result<Self> {
        if matches!(base, NaN) || matches!(self, NaN) {
            return Ok(NaN);
        }
        match (base.logarithm_of()?, self.logarithm_of()?) {
            (Some((b, b_scale)), Some((x, x_scale))) => {
                let result = scaled(ln_weight(x, x_scale) - ln_weight(b, b_scale), &[b_scale, x_scale]);
                let digits = result + 2 * SPARE;
                let bottom = ln_fixed(b, b_scale, digits)?;
                if bottom.is_zero() {
                    return Err(SqlError::new(code::DIVISION_BY_ZERO, "division by zero"));
                }
                let quotient = ln_fixed(x, x_scale, digits)? * pow10(digits) / bottom;
                Ok(rounded(&quotient, digits, result))
            }
            (None, None) => Ok(NaN),
            (None, Some(_)) => Ok(Wide::from(0)),
            (Some(_), None) => Ok(Infinity),
        }
    }

    /// Whether it is a whole number, and an odd one.
    fn whole(&self) -> (bool, bool) {
        let Finite { unscaled, scale } = self else { return (false, false) };
        let one = pow10(*scale);
        let whole = (unscaled % &one).is_zero();
        (whole, whole && !((unscaled / one) % 2u8).is_zero())
    }

    /// This to the power of `exponent`.
    pub fn pow(&self, exponent: &Self) -> Result<Self> {
        let one = Wide::from(1);
        match (self, exponent) {
            (_, Finite { unscaled, .. }) if unscaled.is_zero() && !matches!(self, Finite { .. }) => return Ok(one),
            (NaN, _) => return Ok(NaN),
            (_, NaN) => return Ok(if *self == one { one } else { NaN }),
            (Finite { unscaled: base, scale }, Finite { unscaled: exp, scale: exp_scale }) => {
                return finite_power((base, *scale), (exp, *exp_scale), exponent);
            }
            _ => {}
        }
        // An infinity is among them.
        let (whole, odd) = exponent.whole();
        if self.is_zero() && exponent.signum() < 0 {
            return Err(power("zero raised to a negative power is undefined"));
        }
        if self.signum() < 0 && matches!(exponent, Finite { .. }) && !whole {
            return Err(power("a negative number raised to a non-integer power yields a complex result"));
        }
        let size = match self {
            Finite { .. } => {
                let magnitude = if self.signum() < 0 { self.negate() } else { self.clone() };
                magnitude.compare(&one) as i32
            }
            _ => 1,
        };
        Ok(match (size, exponent.signum()) {
            (0, _) => one,
            (1, 1) | (-1, -1) if matches!(self, NegInfinity) && odd => NegInfinity,
            (1, 1) | (-1, -1) => Infinity,
            _ => Wide::from(0),
        })
    }
}

fn finite_power((base, scale): (&BigInt, u32), (exp, exp_scale): (&BigInt, u32), exponent: &Wide) -> Result<Wide> {
    let (whole, odd) = exponent.whole();
    if base.is_zero() {
        if exp.is_negative() {
            return Err(power("zero raised to a negative power is undefined"));
        }
        let result = scaled(0, &[scale, exp_scale]);
        let value = if exp.is_zero() { pow10(result) } else { BigInt::zero() };
        return Ok(Wide::new(value, result));
    }
    if base.is_negative() && !whole {
        return Err(power("a negative number raised to a non-integer power yields a complex result"));
    }
    let magnitude = base.abs();
    let weight = exponent.to_f64() * log10(&magnitude, scale);
    if weight < -(SCALE_MAX as f64) - 1.0 && whole {
        return Ok(Wide::new(BigInt::zero(), scaled(0, &[scale, exp_scale])));
    }
    let before = integer_digits(weight)?;
    // PostgreSQL 15 gives whole powers 16 digits behind the point, whatever their size.
    let weight_shown = if whole { 0 } else { weight.clamp(-2000.0, 20_000.0) as i64 };
    let result = scaled(weight_shown, &[scale, exp_scale]);
    let count = if whole { (exp / pow10(exp_scale)).to_i64() } else { None };
    let length = magnitude.bits() as f64 * 0.302 * count.map_or(f64::INFINITY, |n| n.unsigned_abs() as f64);
    let value = match count {
        // Few enough digits: exactly.
        Some(n) if length <= RESULT_DIGITS_MAX => {
            let (times, power_of) = (n.unsigned_abs() as u32, magnitude.pow(n.unsigned_abs() as u32));
            if n >= 0 {
                rounded(&power_of, scale * times, result)
            } else {
                let quotient = pow10(scale * times + result + SPARE) / power_of;
                rounded(&quotient, result + SPARE, result)
            }
        }
        _ => {
            // x^y = e^(y ln x)
            let digits = result + before + (exp.bits() as f64 * 0.302) as u32 + SPARE;
            let product = ln_fixed(&magnitude, scale, digits)? * exp;
            exp_to(&product, digits + exp_scale, weight, result)?
        }
    };
    Ok(if base.is_negative() && odd { value.negate() } else { value })
}

/// The rounded root of `unscaled` / 10^`scale` with `digits` digits behind the point.
fn root(unscaled: &BigInt, scale: u32, digits: u32) -> BigInt {
    let square = match (2 * digits).checked_sub(scale) {
        Some(more) => unscaled * pow10(more),
        // More digits than twice those of the root say nothing about it.
        None => unscaled / pow10(scale - 2 * digits),
    };
    let root = square.sqrt();
    let up = &square - &root * &root > root;
    if up { root + 1u8 } else { root }
}
