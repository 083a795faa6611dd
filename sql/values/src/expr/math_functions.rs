//! Mathematical functions.

use super::eval::Env;
use super::functions::{Function, i, table};
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, Numeric, oid};

use oid::{FLOAT8, INT4, INT8, NUMERIC};

#[rustfmt::skip]
pub static FUNCTIONS: &[Function] = table! {
    "sin"(FLOAT8) FLOAT8 strict |a, _| finite(a, f64::sin); "cos"(FLOAT8) FLOAT8 strict |a, _| finite(a, f64::cos);
    "tan"(FLOAT8) FLOAT8 strict |a, _| finite(a, f64::tan); "cot"(FLOAT8) FLOAT8 strict |a, _| finite(a, |v| 1.0 / v.tan());
    "asin"(FLOAT8) FLOAT8 strict |a, _| unit(a, f64::asin); "acos"(FLOAT8) FLOAT8 strict |a, _| unit(a, f64::acos);
    "atan"(FLOAT8) FLOAT8 strict |a, _| plain(a, f64::atan);
    "atan2"(FLOAT8, FLOAT8) FLOAT8 strict |a, _| Ok(Datum::Float8(f(a, 0).atan2(f(a, 1))));
    "sind"(FLOAT8) FLOAT8 strict |a, _| finite(a, sind); "cosd"(FLOAT8) FLOAT8 strict |a, _| finite(a, cosd);
    "tand"(FLOAT8) FLOAT8 strict |a, _| finite(a, |v| zero_is_positive(sind(v) / cosd(v)));
    "cotd"(FLOAT8) FLOAT8 strict |a, _| finite(a, |v| zero_is_positive(cosd(v) / sind(v)));
    "asind"(FLOAT8) FLOAT8 strict |a, _| unit(a, asind); "acosd"(FLOAT8) FLOAT8 strict |a, _| unit(a, acosd);
    "atand"(FLOAT8) FLOAT8 strict |a, _| plain(a, |v| v.atan() / ATAN_OF_1 * 45.0); "atan2d"(FLOAT8, FLOAT8) FLOAT8 strict atan2d;
    "sinh"(FLOAT8) FLOAT8 strict |a, _| Ok(Datum::Float8(f(a, 0).sinh()));
    "cosh"(FLOAT8) FLOAT8 strict |a, _| Ok(Datum::Float8(f(a, 0).cosh()));
    "tanh"(FLOAT8) FLOAT8 strict |a, _| plain(a, f64::tanh); "asinh"(FLOAT8) FLOAT8 strict |a, _| plain(a, asinh);
    "acosh"(FLOAT8) FLOAT8 strict acosh; "atanh"(FLOAT8) FLOAT8 strict |a, _| unit(a, atanh);
    "degrees"(FLOAT8) FLOAT8 strict |a, _| plain(a, |v| v / (std::f64::consts::PI / 180.0));
    "radians"(FLOAT8) FLOAT8 strict |a, _| plain(a, |v| v * (std::f64::consts::PI / 180.0));
    "cbrt"(FLOAT8) FLOAT8 strict |a, _| plain(a, f64::cbrt); "dcbrt"(FLOAT8) FLOAT8 strict |a, _| plain(a, f64::cbrt);
    "factorial"(INT8) NUMERIC strict factorial;
    "gcd"(INT4, INT4) INT4 strict gcd; "gcd"(INT8, INT8) INT8 strict gcd; "gcd"(NUMERIC, NUMERIC) NUMERIC strict numeric_gcd;
    "lcm"(INT4, INT4) INT4 strict lcm; "lcm"(INT8, INT8) INT8 strict lcm; "lcm"(NUMERIC, NUMERIC) NUMERIC strict numeric_lcm;
    "scale"(NUMERIC) INT4 strict |a, _| Ok(numeric(a, 0)?.scale().map_or(Datum::Null, |s| Datum::Int4(s as i32)));
    "min_scale"(NUMERIC) INT4 strict |a, _| Ok(trimmed(numeric(a, 0)?).scale().map_or(Datum::Null, |s| Datum::Int4(s as i32)));
    "trim_scale"(NUMERIC) NUMERIC strict |a, _| Ok(Datum::numeric(trimmed(numeric(a, 0)?)));
    "width_bucket"(FLOAT8, FLOAT8, FLOAT8, INT4) INT4 strict bucket_float;
    "width_bucket"(NUMERIC, NUMERIC, NUMERIC, INT4) INT4 strict bucket_numeric;
};

/// Operators that these functions compute.
#[rustfmt::skip]
pub static OPERATORS: &[Function] = table! {
    "||/"(FLOAT8) FLOAT8 strict |a, _| plain(a, f64::cbrt);
};

fn f(a: &[Datum], n: usize) -> f64 {
    a.get(n).and_then(Datum::as_f64).unwrap_or(0.0)
}

fn numeric(a: &[Datum], n: usize) -> Result<&Numeric> {
    match a.get(n) {
        Some(Datum::Numeric(n)) => Ok(n),
        _ => Err(SqlError::internal("a function of numeric got another type")),
    }
}

fn plain(a: &[Datum], of: fn(f64) -> f64) -> Result<Datum> {
    let (v, result) = (f(a, 0), of(f(a, 0)));
    if result.is_infinite() && v.is_finite() {
        return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    Ok(Datum::Float8(result))
}

fn out_of_range() -> SqlError {
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// A function that has no value at infinity.
fn finite(a: &[Datum], of: fn(f64) -> f64) -> Result<Datum> {
    if f(a, 0).is_infinite() { Err(out_of_range()) } else { Ok(Datum::Float8(of(f(a, 0)))) }
}

/// A function of what lies between -1 and 1.
fn unit(a: &[Datum], of: fn(f64) -> f64) -> Result<Datum> {
    if f(a, 0).abs() > 1.0 { Err(out_of_range()) } else { Ok(Datum::Float8(of(f(a, 0)))) }
}

/// From here on the squares of a number and of its neighbours by one are the same.
const LARGE: f64 = 268_435_456.0;

/// The steps of the C library that PostgreSQL calls: Rust's own function overflows, and differs in the last digit.
fn asinh(v: f64) -> f64 {
    let (x, square) = (v.abs(), v * v);
    let positive = if x > LARGE {
        x.ln() + std::f64::consts::LN_2
    } else if x > 2.0 {
        (2.0 * x + 1.0 / ((square + 1.0).sqrt() + x)).ln()
    } else {
        (x + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    positive.copysign(v)
}

fn atanh(v: f64) -> f64 {
    let x = v.abs();
    let twice = x + x;
    let positive = if x < 0.5 { twice + twice * x / (1.0 - x) } else { twice / (1.0 - x) };
    (0.5 * positive.ln_1p()).copysign(v)
}

fn acosh(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let v = f(a, 0);
    let above = v - 1.0;
    Ok(Datum::Float8(if v < 1.0 {
        return Err(out_of_range());
    } else if v > LARGE {
        v.ln() + std::f64::consts::LN_2
    } else if v > 2.0 {
        (2.0 * v - 1.0 / (v + (v * v - 1.0).sqrt())).ln()
    } else {
        (above + (2.0 * above + above * above).sqrt()).ln_1p()
    }))
}

fn zero_is_positive(v: f64) -> f64 {
    if v == 0.0 { 0.0 } else { v }
}

/// The sine of degrees, exact at multiples of 30.
fn sind(v: f64) -> f64 {
    let (mut sign, mut v) = (1.0, v % 360.0);
    if v < 0.0 {
        (v, sign) = (-v, -sign);
    }
    if v > 180.0 {
        (v, sign) = (360.0 - v, -sign);
    }
    if v > 90.0 {
        v = 180.0 - v;
    }
    sign * first_quadrant(v)
}

/// The cosine of degrees, the same.
fn cosd(v: f64) -> f64 {
    let (mut sign, mut v) = (1.0, (v % 360.0).abs());
    if v > 180.0 {
        v = 360.0 - v;
    }
    if v > 90.0 {
        (v, sign) = (180.0 - v, -sign);
    }
    sign * first_quadrant(90.0 - v)
}

fn first_quadrant(v: f64) -> f64 {
    let sine = |v: f64| (v * (std::f64::consts::PI / 180.0)).sin();
    let cosine = |v: f64| 1.0 - (v * (std::f64::consts::PI / 180.0)).cos();
    if v <= 30.0 { sine(v) / sine(30.0) / 2.0 } else { 1.0 - cosine(90.0 - v) / cosine(60.0) / 2.0 }
}

/// The arc tangent of 1, by which others are measured, so that they are exact at 45 degrees.
const ATAN_OF_1: f64 = std::f64::consts::FRAC_PI_4;

/// The arc sine in degrees, measured by those of one half on both sides of it, as in PostgreSQL.
fn asind(v: f64) -> f64 {
    let x = v.abs();
    let positive = if x <= 0.5 { x.asin() / 0.5_f64.asin() * 30.0 } else { 90.0 - x.acos() / 0.5_f64.acos() * 60.0 };
    if v < 0.0 { -positive } else { positive }
}

/// The arc cosine in degrees, the same.
fn acosd(v: f64) -> f64 {
    if v < 0.0 {
        90.0 + asind(-v)
    } else if v <= 0.5 {
        90.0 - v.asin() / 0.5_f64.asin() * 30.0
    } else {
        v.acos() / 0.5_f64.acos() * 60.0
    }
}

fn atan2d(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(Datum::Float8(f(a, 0).atan2(f(a, 1)) / ATAN_OF_1 * 45.0))
}

fn factorial(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let n = i(a, 0);
    if n < 0 {
        let message = "factorial of a negative number is undefined";
        return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    if n > 32_177 {
        return Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format"));
    }
    let mut product = Numeric::from(1i64);
    for factor in 2..=n {
        clearway_base::breath::step(256)?;
        product = product.mul(&Numeric::from(factor));
    }
    Ok(Datum::numeric(product.within_limits()?))
}

fn greatest_divisor(x: i64, y: i64) -> u64 {
    let (mut x, mut y) = (x.unsigned_abs(), y.unsigned_abs());
    while y != 0 {
        (x, y) = (y, x % y);
    }
    x
}

fn int_of(v: u64, like: &Datum) -> Result<Datum> {
    let range = |name: &str| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"));
    match like {
        Datum::Int4(_) => i32::try_from(v).map(Datum::Int4).map_err(|_| range("integer")),
        _ => i64::try_from(v).map(Datum::Int8).map_err(|_| range("bigint")),
    }
}

fn gcd(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    int_of(greatest_divisor(i(a, 0), i(a, 1)), &a[0])
}

fn lcm(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (x, y) = (i(a, 0), i(a, 1));
    if x == 0 || y == 0 {
        return int_of(0, &a[0]);
    }
    let product = u128::from(x.unsigned_abs() / greatest_divisor(x, y)) * u128::from(y.unsigned_abs());
    int_of(u64::try_from(product).unwrap_or(u64::MAX), &a[0])
}

fn numeric_divisor(a: &[Datum]) -> Result<Option<Numeric>> {
    let (mut x, mut y) = (numeric(a, 0)?.clone(), numeric(a, 1)?.clone());
    let (Some(p), Some(q)) = (x.scale(), y.scale()) else { return Ok(None) };
    let scale = p.max(q) as i32;
    while !y.is_zero() {
        clearway_base::breath::step(256)?;
        (x, y) = (y.clone(), x.rem(&y)?);
    }
    let x = if x.signum() < 0 { x.negate() } else { x };
    Ok(Some(x.round(scale)))
}

fn nan() -> Datum {
    Datum::numeric(Numeric::NaN)
}

fn numeric_gcd(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    Ok(numeric_divisor(a)?.map_or_else(nan, Datum::numeric))
}

fn numeric_lcm(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Some(divisor) = numeric_divisor(a)? else { return Ok(nan()) };
    let (x, y) = (numeric(a, 0)?, numeric(a, 1)?);
    let scale = x.scale().max(y.scale()).unwrap_or(0) as i32;
    if x.is_zero() || y.is_zero() {
        return Ok(Datum::numeric(Numeric::from(0i64).round(scale)));
    }
    let product = x.mul(&y.sub(&y.rem(&divisor)?).div(&divisor)?.round(scale)).round(scale);
    let product = if product.signum() < 0 { product.negate() } else { product };
    Ok(Datum::numeric(product.within_limits()?))
}

/// Without zeros at the end of its fraction.
fn trimmed(n: &Numeric) -> Numeric {
    let text = n.to_string();
    if !text.contains('.') {
        return n.clone();
    }
    let cut = text.trim_end_matches('0').trim_end_matches('.');
    Numeric::parse(cut).and_then(std::result::Result::ok).unwrap_or_else(|| n.clone())
}

fn bad_bucket(message: &str) -> SqlError {
    SqlError::new("2201G", message)
}

fn bucket_float(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (v, low, high, n) = (f(a, 0), f(a, 1), f(a, 2), i(a, 3));
    if n <= 0 {
        return Err(bad_bucket("count must be greater than zero"));
    }
    if v.is_nan() || low.is_nan() || high.is_nan() {
        return Err(bad_bucket("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(bad_bucket("lower and upper bounds must be finite"));
    }
    let at = if low < high {
        if v < low {
            0.0
        } else if v >= high {
            n as f64 + 1.0
        } else {
            (n as f64 * ((v - low) / (high - low))).floor() + 1.0
        }
    } else if low > high {
        if v > low {
            0.0
        } else if v <= high {
            n as f64 + 1.0
        } else {
            (n as f64 * ((low - v) / (low - high))).floor() + 1.0
        }
    } else {
        return Err(bad_bucket("lower bound cannot equal upper bound"));
    };
    let at = at as i64;
    i32::try_from(at)
        .map(Datum::Int4)
        .map_err(|_| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))
}

fn bucket_numeric(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let (v, low, high, n) = (numeric(a, 0)?, numeric(a, 1)?, numeric(a, 2)?, i(a, 3));
    if n <= 0 {
        return Err(bad_bucket("count must be greater than zero"));
    }
    if [v, low, high].iter().any(|n| matches!(n, Numeric::NaN)) {
        return Err(bad_bucket("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.scale().is_none() || high.scale().is_none() {
        return Err(bad_bucket("lower and upper bounds must be finite"));
    }
    let order = low.compare(high);
    if order.is_eq() {
        return Err(bad_bucket("lower bound cannot equal upper bound"));
    }
    let rising = order.is_lt();
    let before = if rising { v.compare(low).is_lt() } else { v.compare(low).is_gt() };
    let behind = if rising { v.compare(high).is_ge() } else { v.compare(high).is_le() };
    let at = if before {
        0
    } else if behind {
        n + 1
    } else {
        let (part, whole) = if rising { (v.sub(low), high.sub(low)) } else { (low.sub(v), low.sub(high)) };
        part.mul(&Numeric::from(n)).div(&whole)?.floor().to_i64("integer")? + 1
    };
    i32::try_from(at)
        .map(Datum::Int4)
        .map_err(|_| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))
}
