//! The arithmetic of coordinates: PostgreSQL's comparisons within a tolerance, and sums and products that say where they leave the range.

use crate::error::{Result, SqlError, code};

/// How far two coordinates may be apart and count as equal.
const EPSILON: f64 = 1.0e-6;

/// Whether a number counts as 0.
pub fn is_zero(a: f64) -> bool {
    a.abs() <= EPSILON
}

/// Whether two numbers count as equal. Two infinities of one sign are; a NaN equals nothing.
pub fn eq(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}

/// Whether two numbers count as different. A NaN differs from nothing.
pub fn ne(a: f64, b: f64) -> bool {
    a != b && (a - b).abs() > EPSILON
}

/// `a < b`, and not as good as equal.
pub fn lt(a: f64, b: f64) -> bool {
    a + EPSILON < b
}

/// `a <= b`, or as good as equal.
pub fn le(a: f64, b: f64) -> bool {
    a <= b + EPSILON
}

/// `a > b`, and not as good as equal.
pub fn gt(a: f64, b: f64) -> bool {
    a > b + EPSILON
}

/// `a >= b`, or as good as equal.
pub fn ge(a: f64, b: f64) -> bool {
    a + EPSILON >= b
}

/// Whether two numbers are one; NaN is NaN.
pub fn same(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan()
}

/// `a < b`, where NaN is the largest number.
pub fn less(a: f64, b: f64) -> bool {
    a < b || b.is_nan() && !a.is_nan()
}

/// The smaller one; NaN is the largest number.
pub fn min(a: f64, b: f64) -> f64 {
    if less(a, b) { a } else { b }
}

/// The larger one; NaN is the largest number.
pub fn max(a: f64, b: f64) -> f64 {
    if less(b, a) { a } else { b }
}

fn out_of_range(what: &str) -> SqlError {
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {what}"))
}

/// The result, unless it is an infinity though none went in, or 0 though it can't be.
fn checked(result: f64, infinite: bool, may_be_zero: bool) -> Result<f64> {
    if result.is_infinite() && !infinite {
        return Err(out_of_range("overflow"));
    }
    if result == 0.0 && !may_be_zero {
        return Err(out_of_range("underflow"));
    }
    Ok(result)
}

/// `a + b`.
///
/// # Errors
/// 22003.
pub fn add(a: f64, b: f64) -> Result<f64> {
    checked(a + b, a.is_infinite() || b.is_infinite(), true)
}

/// `a - b`.
///
/// # Errors
/// 22003.
pub fn sub(a: f64, b: f64) -> Result<f64> {
    checked(a - b, a.is_infinite() || b.is_infinite(), true)
}

/// `a * b`.
///
/// # Errors
/// 22003.
pub fn mul(a: f64, b: f64) -> Result<f64> {
    checked(a * b, a.is_infinite() || b.is_infinite(), a == 0.0 || b == 0.0)
}

/// `a / b`.
///
/// # Errors
/// 22003, 22012.
pub fn div(a: f64, b: f64) -> Result<f64> {
    if b == 0.0 && !a.is_nan() {
        return Err(SqlError::new(code::DIVISION_BY_ZERO, "division by zero"));
    }
    checked(a / b, a.is_infinite(), a == 0.0 || b.is_infinite())
}

/// The length of the hypotenuse, by PostgreSQL's formula.
///
/// # Errors
/// 22003.
pub fn hypot(x: f64, y: f64) -> Result<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (x, y) = (x.abs(), y.abs());
    let (x, y) = if x < y { (y, x) } else { (x, y) };
    if y == 0.0 {
        return Ok(x);
    }
    let ratio = y / x;
    checked(x * (1.0 + ratio * ratio).sqrt(), false, false)
}
