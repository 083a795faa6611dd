//! Operators: their names, and the code that computes them.

use super::like::like;
use super::pattern;
use crate::error::{Result, SqlError, code};
use crate::types::datum::{Array, compare};
use crate::types::size::{self, fits};
use crate::types::{Datum, Numeric, SqlType, datetime, oid, text, word};
use clearway_base::breath;
use clearway_base::memory::claim;
use std::cmp::Ordering;

macro_rules! ops {
    ($($variant:ident $name:literal),* $(,)?) => {
        /// An operator. Its variant is its name; the types of the operands choose what it computes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Op { $($variant),* }

        impl Op {
            /// The operator of a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

ops! {
    Add "+", Sub "-", Mul "*", Div "/", Rem "%", Power "^",
    Lt "<", Le "<=", Eq "=", Ne "<>", Ge ">=", Gt ">",
    Concat "||", Like "~~", NotLike "!~~", ILike "~~*", NotILike "!~~*",
    Match "~", NotMatch "!~", IMatch "~*", NotIMatch "!~*",
    BitAnd "&", BitOr "|", BitXor "#", ShiftLeft "<<", ShiftRight ">>",
    Abs "@", SquareRoot "|/", Contains "@>", ContainedBy "<@", Overlaps "&&",
}

impl Op {
    /// Whether the operator only asks for the order of its operands.
    pub fn is_comparison(self) -> bool {
        matches!(self, Self::Lt | Self::Le | Self::Eq | Self::Ne | Self::Ge | Self::Gt)
    }

    /// The comparison with its sides exchanged.
    pub fn commuted(self) -> Option<Self> {
        Some(match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Eq | Self::Ne => self,
            _ => return None,
        })
    }

    /// Whether a comparison holds between values in this order.
    #[inline]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Ge => order.is_ge(),
            _ => order.is_gt(),
        }
    }
}

fn range(ty: &str) -> SqlError {
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("{ty} out of range"))
}

fn zero() -> SqlError {
    SqlError::new(code::DIVISION_BY_ZERO, "division by zero")
}

/// `left op right`; neither is NULL.
#[inline]
pub fn binary(op: Op, l: &Datum, r: &Datum, session: &dyn super::Session) -> Result<Datum> {
    if op.is_comparison() {
        return Ok(Datum::Bool(op.holds(compare(l, r))));
    }
    if let (Datum::Int4(a), Datum::Int4(b)) = (l, r) {
        let sum = match op {
            Op::Add => a.checked_add(*b),
            Op::Sub => a.checked_sub(*b),
            Op::Mul => a.checked_mul(*b),
            Op::Rem if *b != 0 => Some(a.wrapping_rem(*b)),
            _ => return integers(op, l, r),
        };
        return sum.map(Datum::Int4).ok_or_else(|| range("integer"));
    }
    if let (Datum::Numeric(a), Datum::Numeric(b)) = (l, r) {
        // What fits a word is within all limits.
        let word = match op {
            Op::Add => a.add_words(b),
            Op::Sub => a.sub_words(b),
            Op::Mul => a.mul_words(b),
            _ => None,
        };
        if let Some(word) = word {
            return Ok(Datum::Numeric(word));
        }
    }
    others(op, l, r, session)
}

fn others(op: Op, l: &Datum, r: &Datum, session: &dyn super::Session) -> Result<Datum> {
    use Datum as D;
    match (l, r) {
        (D::Numeric(a), D::Numeric(b)) => numerics(op, a, b),
        (D::Text(a) | D::Bpchar(a), D::Text(b)) => texts(op, a, b),
        (D::Bytea(a), D::Bytea(b)) if op == Op::Concat => Ok(D::Bytea([&a[..], &b[..]].concat().into())),
        // Of bytes, `_` is one byte: each is a character of Latin-1.
        (D::Bytea(a), D::Bytea(b)) => texts(op, &latin1(a)?, &latin1(b)?),
        (D::Array(a), D::Array(b)) => arrays(op, a, b),
        (D::Array(a), item) if op == Op::Concat => append(a, item, false),
        (item, D::Array(a)) if op == Op::Concat => append(a, item, true),
        _ if op == Op::Concat => {
            let shown = |d: &D| {
                fits(d)?;
                Ok::<_, SqlError>(text::output(SqlType::new(oid::TEXT), d, &session.conversion()))
            };
            Ok(D::text(shown(l)? + &shown(r)?))
        }
        _ => match (l.as_i64(), r.as_i64(), l.as_f64(), r.as_f64()) {
            (Some(_), Some(_), _, _) => integers(op, l, r),
            (_, _, Some(a), Some(b)) => floats(op, a, b, matches!((l, r), (D::Float4(_), D::Float4(_)))),
            _ => dates(op, l, r, session),
        },
    }
}

fn integers(op: Op, l: &Datum, r: &Datum) -> Result<Datum> {
    use Datum as D;
    let (a, b) = (l.as_i64().unwrap_or(0), r.as_i64().unwrap_or(0));
    let shift = matches!(op, Op::ShiftLeft | Op::ShiftRight);
    let bytes = |d: &D| match d {
        D::Int2(_) => 2,
        D::Int4(_) => 4,
        _ => 8,
    };
    let width = if shift { bytes(l) } else { bytes(l).max(bytes(r)) };
    let name = ["smallint", "integer", "bigint"][width / 4];
    let value = match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div | Op::Rem if b == 0 => return Err(zero()),
        Op::Div => a.checked_div(b),
        Op::Rem => Some(a.checked_rem(b).unwrap_or(0)),
        Op::BitAnd => Some(a & b),
        Op::BitOr => Some(a | b),
        Op::BitXor => Some(a ^ b),
        Op::ShiftLeft if width == 8 => Some(a.wrapping_shl(b as u32)),
        Op::ShiftLeft if width == 4 => Some(i64::from((a as i32).wrapping_shl(b as u32))),
        Op::ShiftLeft => Some(i64::from(((a as i32).wrapping_shl(b as u32)) as i16)),
        Op::ShiftRight if width == 8 => Some(a >> (b & 63)),
        Op::ShiftRight => Some(a >> (b & 31)),
        _ => return Err(missing(op)),
    };
    let out = value.and_then(|v| match width {
        2 => i16::try_from(v).ok().map(D::Int2),
        4 => i32::try_from(v).ok().map(D::Int4),
        _ => Some(D::Int8(v)),
    });
    out.ok_or_else(|| range(name))
}

fn missing(op: Op) -> SqlError {
    SqlError::unsupported(format!("operator {} on these types", op.name()))
}

fn numerics(op: Op, a: &Numeric, b: &Numeric) -> Result<Datum> {
    // The longest operands take some milliseconds.
    clearway_base::breath::step(256)?;
    let result = match op {
        Op::Add => a.add(b),
        Op::Sub => a.sub(b),
        Op::Mul => a.mul(b),
        Op::Div => a.div(b)?,
        Op::Rem => a.rem(b)?,
        Op::Power => a.pow(b)?,
        _ => return Err(missing(op)),
    };
    result.within_limits().map(Datum::numeric)
}

/// Checks a float result: an infinity or a zero that the operands don't explain is an error.
fn float_checked(v: f64, may_be_infinite: bool, may_be_zero: bool, single: bool) -> Result<Datum> {
    let narrow = if single { f64::from(v as f32) } else { v };
    let out = |what| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {what}"));
    if narrow.is_infinite() && !may_be_infinite {
        return Err(out("overflow"));
    }
    if narrow == 0.0 && !may_be_zero {
        return Err(out("underflow"));
    }
    Ok(if single { Datum::Float4(v as f32) } else { Datum::Float8(v) })
}

/// `exp` of a float.
pub(super) fn exponential(v: f64) -> Result<Datum> {
    float_checked(v.exp(), v.is_infinite() || v.is_nan(), v.is_infinite(), false)
}

fn floats(op: Op, a: f64, b: f64, single: bool) -> Result<Datum> {
    let infinite = a.is_infinite() || b.is_infinite();
    match op {
        Op::Add => float_checked(a + b, infinite, true, single),
        Op::Sub => float_checked(a - b, infinite, true, single),
        Op::Mul => float_checked(a * b, infinite, a == 0.0 || b == 0.0, single),
        Op::Div if b == 0.0 && !a.is_nan() => Err(zero()),
        Op::Div => float_checked(a / b, a.is_infinite(), a == 0.0 || b.is_infinite(), single),
        Op::Power => power(a, b),
        _ => Err(missing(op)),
    }
}

/// Power of doubles, with PostgreSQL's refusals.
pub(super) fn power(a: f64, b: f64) -> Result<Datum> {
    let bad = |m: &str| Err(SqlError::new(code::INVALID_ARGUMENT_FOR_POWER, m));
    if a == 0.0 && b < 0.0 {
        return bad("zero raised to a negative power is undefined");
    }
    if a < 0.0 && b.fract() != 0.0 && b.is_finite() {
        return bad("a negative number raised to a non-integer power yields a complex result");
    }
    let infinite = a.is_infinite() || b.is_infinite();
    float_checked(a.powf(b), infinite, a == 0.0 || infinite, false)
}

/// Bytes as the characters of the same numbers.
pub(super) fn latin1(bytes: &[u8]) -> Result<String> {
    claim(2 * bytes.len())?;
    breath::step_bytes(bytes.len())?;
    Ok(bytes.iter().map(|b| char::from(*b)).collect())
}

/// Both texts, one behind the other.
fn joined(a: &str, b: &str) -> Result<String> {
    claim(2 * (a.len() + b.len()))?;
    let mut out = String::with_capacity(a.len() + b.len());
    breath::append_text(&mut out, a)?;
    breath::append_text(&mut out, b)?;
    Ok(out)
}

fn texts(op: Op, a: &str, b: &str) -> Result<Datum> {
    Ok(match op {
        Op::Concat => Datum::text(joined(a, b)?),
        Op::Like => Datum::Bool(like(a, b, Some('\\'), false)?),
        Op::NotLike => Datum::Bool(!like(a, b, Some('\\'), false)?),
        Op::ILike => Datum::Bool(like(a, b, Some('\\'), true)?),
        Op::NotILike => Datum::Bool(!like(a, b, Some('\\'), true)?),
        Op::Match => Datum::Bool(pattern::matches(a, b, false)?),
        Op::NotMatch => Datum::Bool(!pattern::matches(a, b, false)?),
        Op::IMatch => Datum::Bool(pattern::matches(a, b, true)?),
        Op::NotIMatch => Datum::Bool(!pattern::matches(a, b, true)?),
        _ => return Err(missing(op)),
    })
}

fn arrays(op: Op, a: &Array, b: &Array) -> Result<Datum> {
    // One element after the other, as in PostgreSQL.
    let has = |set: &Array, v: &Datum| -> Result<bool> {
        for x in set.values.iter().filter(|_| !v.is_null()) {
            breath::step(16)?;
            if !x.is_null() && compare(x, v).is_eq() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let has_all = |set: &Array, of: &Array| -> Result<bool> {
        for v in &of.values {
            if !has(set, v)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    Ok(match op {
        Op::Contains => Datum::Bool(has_all(a, b)?),
        Op::ContainedBy => Datum::Bool(has_all(b, a)?),
        Op::Overlaps => {
            for v in &a.values {
                if has(b, v)? {
                    return Ok(Datum::Bool(true));
                }
            }
            Datum::Bool(false)
        }
        Op::Concat if a.values.is_empty() => Datum::Array(b.clone().into()),
        Op::Concat if b.values.is_empty() => Datum::Array(a.clone().into()),
        Op::Concat if a.dims.len() == 1 && b.dims.len() == 1 => {
            claim((a.values.len() + b.values.len()) * size_of::<Datum>())?;
            breath::step_bytes(16 * (a.values.len() + b.values.len()))?;
            let values: Vec<Datum> = a.values.iter().chain(&b.values).cloned().collect();
            let dims = vec![(values.len() as i32, a.dims[0].1)];
            size::array(Array { element: a.element, dims, values })?
        }
        Op::Concat => size::array(stacked(a, b)?)?,
        _ => return Err(SqlError::internal("an operator of arrays that has no function")),
    })
}

/// Two arrays of several dimensions as one: the outermost dimension grows.
fn stacked(a: &Array, b: &Array) -> Result<Array> {
    let refused =
        |detail: &str| SqlError::new("2202E", "cannot concatenate incompatible arrays").detail(detail.to_owned());
    // Of arrays whose numbers of dimensions differ by one, the smaller is an element of the larger.
    let (outer, inner) = (a.dims.len(), b.dims.len());
    let (mut dims, rows) = match outer.abs_diff(inner) {
        0 => (a.dims.clone(), a.dims[0].0 + b.dims[0].0),
        1 if outer > inner => (a.dims.clone(), a.dims[0].0 + 1),
        1 => (b.dims.clone(), b.dims[0].0 + 1),
        _ => {
            let detail = format!("Arrays of {outer} and {inner} dimensions are not compatible for concatenation.");
            return Err(refused(&detail));
        }
    };
    let fits = match outer.cmp(&inner) {
        std::cmp::Ordering::Equal => a.dims[1..] == b.dims[1..],
        std::cmp::Ordering::Greater => a.dims[1..] == b.dims[..],
        std::cmp::Ordering::Less => a.dims[..] == b.dims[1..],
    };
    if !fits {
        let parts = if outer == inner { "element " } else { "" };
        return Err(refused(&format!("Arrays with differing {parts}dimensions are not compatible for concatenation.")));
    }
    claim((a.values.len() + b.values.len()) * size_of::<Datum>())?;
    breath::step_bytes(16 * (a.values.len() + b.values.len()))?;
    dims[0].0 = rows;
    let values = a.values.iter().chain(&b.values).cloned().collect();
    Ok(Array { element: a.element, dims, values })
}

fn append(a: &Array, item: &Datum, front: bool) -> Result<Datum> {
    if a.dims.len() > 1 {
        return Err(SqlError::new("22000", "argument must be empty or one-dimensional array"));
    }
    claim(2 * a.values.len() * size_of::<Datum>())?;
    breath::step_bytes(16 * a.values.len())?;
    let mut values = a.values.clone();
    values.insert(if front { 0 } else { values.len() }, item.clone());
    let low = a.dims.first().map_or(1, |d| d.1);
    let dims = vec![(values.len() as i32, low)];
    size::array(Array { element: a.element, dims, values })
}

fn date_range() -> SqlError {
    SqlError::new(code::DATETIME_FIELD_OVERFLOW, "date out of range")
}

/// A date so many days later; the infinities stay where they are.
fn moved_date(date: i32, days: i64) -> Result<Datum> {
    if matches!(date, i32::MAX | i32::MIN) {
        return Ok(Datum::Date(date));
    }
    // 4713-11-24 BC to 5874897-12-31.
    let moved = i64::from(date) + days;
    let valid = (-2_451_545..2_145_031_949).contains(&moved);
    valid.then_some(Datum::Date(moved as i32)).ok_or_else(date_range)
}

fn dates(op: Op, l: &Datum, r: &Datum, session: &dyn super::Session) -> Result<Datum> {
    use Datum as D;
    let zoned = |t: i64, i: &crate::types::interval::Interval| -> Result<Datum> {
        let zone = &session.format().zone;
        let days = crate::types::interval::Interval { micros: 0, ..*i };
        let local = datetime::add_interval(datetime::utc_to_local(t, zone), &days)?;
        let moved = if i.months == 0 && i.days == 0 { t } else { datetime::local_to_utc(local, zone)? };
        let rest = crate::types::interval::Interval { micros: i.micros, ..Default::default() };
        Ok(D::TimestampTz(datetime::add_interval(moved, &rest)?))
    };
    Ok(match (op, l, r) {
        (Op::Add, D::Date(d), D::Int4(n)) | (Op::Add, D::Int4(n), D::Date(d)) => moved_date(*d, i64::from(*n))?,
        (Op::Sub, D::Date(d), D::Int4(n)) => moved_date(*d, -i64::from(*n))?,
        (Op::Sub, D::Date(a), D::Date(b))
            if matches!(a, &i32::MAX | &i32::MIN) || matches!(b, &i32::MAX | &i32::MIN) =>
        {
            return Err(SqlError::new(code::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite dates"));
        }
        (Op::Sub, D::Date(a), D::Date(b)) => D::Int4(a.checked_sub(*b).ok_or_else(date_range)?),
        (Op::Add, D::Date(d), D::Interval(i)) | (Op::Add, D::Interval(i), D::Date(d)) => {
            D::Timestamp(datetime::add_interval(datetime::midnight(*d)?, i)?)
        }
        (Op::Sub, D::Date(d), D::Interval(i)) => {
            D::Timestamp(datetime::add_interval(datetime::midnight(*d)?, &i.checked_neg()?)?)
        }
        (Op::Add, D::Timestamp(t), D::Interval(i)) | (Op::Add, D::Interval(i), D::Timestamp(t)) => {
            D::Timestamp(datetime::add_interval(*t, i)?)
        }
        (Op::Sub, D::Timestamp(t), D::Interval(i)) => D::Timestamp(datetime::add_interval(*t, &i.checked_neg()?)?),
        (Op::Add, D::TimestampTz(t), D::Interval(i)) | (Op::Add, D::Interval(i), D::TimestampTz(t)) => zoned(*t, i)?,
        (Op::Sub, D::TimestampTz(t), D::Interval(i)) => zoned(*t, &i.checked_neg()?)?,
        (Op::Sub, D::Timestamp(a), D::Timestamp(b)) | (Op::Sub, D::TimestampTz(a), D::TimestampTz(b)) => {
            D::Interval(datetime::difference(*a, *b)?)
        }
        (Op::Add, D::Word(a, oid::MONEY), D::Word(b, oid::MONEY)) => word::sum(*a, *b)?,
        (Op::Add, D::Interval(a), D::Interval(b)) => D::Interval(a.checked_add(*b)?),
        (Op::Sub, D::Interval(a), D::Interval(b)) => D::Interval(a.checked_add(b.checked_neg()?)?),
        (Op::Mul, D::Interval(i), D::Float8(f)) | (Op::Mul, D::Float8(f), D::Interval(i)) => {
            D::Interval(i.checked_mul(*f)?)
        }
        (Op::Div, D::Interval(_), D::Float8(0.0)) => return Err(zero()),
        (Op::Div, D::Interval(i), D::Float8(f)) => D::Interval(i.checked_div(*f)?),
        _ => return times(op, l, r),
    })
}

/// Arithmetic of time and timetz; a time of day begins anew at midnight.
fn times(op: Op, l: &Datum, r: &Datum) -> Result<Datum> {
    use Datum as D;
    const DAY: i64 = 86_400_000_000;
    Ok(match (op, l, r) {
        (Op::Add, D::Time(t), D::Interval(i)) | (Op::Add, D::Interval(i), D::Time(t)) => {
            D::Time((t + i.micros % DAY).rem_euclid(DAY))
        }
        (Op::Sub, D::Time(t), D::Interval(i)) => D::Time((t - i.micros % DAY).rem_euclid(DAY)),
        (Op::Add, D::TimeTz(t, west), D::Interval(i)) | (Op::Add, D::Interval(i), D::TimeTz(t, west)) => {
            D::TimeTz((t + i.micros % DAY).rem_euclid(DAY), *west)
        }
        (Op::Sub, D::TimeTz(t, west), D::Interval(i)) => D::TimeTz((t - i.micros % DAY).rem_euclid(DAY), *west),
        (Op::Sub, D::Time(a), D::Time(b)) => {
            D::Interval(crate::types::interval::Interval { micros: a - b, ..Default::default() })
        }
        (Op::Add, D::Date(d), D::Time(t)) | (Op::Add, D::Time(t), D::Date(d)) => {
            let time = crate::types::interval::Interval { micros: *t, ..Default::default() };
            D::Timestamp(datetime::add_interval(datetime::midnight(*d)?, &time)?)
        }
        (Op::Add, D::Date(d), D::TimeTz(t, west)) | (Op::Add, D::TimeTz(t, west), D::Date(d)) => {
            let micros = t + i64::from(*west) * 1_000_000;
            let time = crate::types::interval::Interval { micros, ..Default::default() };
            D::TimestampTz(datetime::add_interval(datetime::midnight(*d)?, &time)?)
        }
        _ => return Err(missing(op)),
    })
}

/// `op arg`; not NULL.
pub fn prefix(op: Op, arg: &Datum) -> Result<Datum> {
    use Datum as D;
    Ok(match (op, arg) {
        (Op::Add, _) => arg.clone(),
        (Op::Sub, D::Int2(v)) => D::Int2(v.checked_neg().ok_or_else(|| range("smallint"))?),
        (Op::Sub, D::Int4(v)) => D::Int4(v.checked_neg().ok_or_else(|| range("integer"))?),
        (Op::Sub, D::Int8(v)) => D::Int8(v.checked_neg().ok_or_else(|| range("bigint"))?),
        (Op::Sub, D::Float4(v)) => D::Float4(-v),
        (Op::Sub, D::Float8(v)) => D::Float8(-v),
        (Op::Sub, D::Numeric(n)) => D::numeric(n.negate()),
        (Op::Sub, D::Interval(i)) => D::Interval(i.checked_neg()?),
        (Op::Abs, D::Int2(v)) => D::Int2(v.checked_abs().ok_or_else(|| range("smallint"))?),
        (Op::Abs, D::Int4(v)) => D::Int4(v.checked_abs().ok_or_else(|| range("integer"))?),
        (Op::Abs, D::Int8(v)) => D::Int8(v.checked_abs().ok_or_else(|| range("bigint"))?),
        (Op::Abs, D::Float4(v)) => D::Float4(v.abs()),
        (Op::Abs, D::Float8(v)) => D::Float8(v.abs()),
        (Op::Abs, D::Numeric(n)) => D::numeric(if n.signum() < 0 { n.negate() } else { n.clone() }),
        (Op::Match, D::Int2(v)) => D::Int2(!v),
        (Op::Match, D::Int4(v)) => D::Int4(!v),
        (Op::Match, D::Int8(v)) => D::Int8(!v),
        (Op::SquareRoot, D::Float8(v)) => square_root(*v)?,
        _ => return Err(missing(op)),
    })
}

/// Square root of a double.
pub(super) fn square_root(v: f64) -> Result<Datum> {
    if v < 0.0 {
        let message = "cannot take square root of a negative number";
        return Err(SqlError::new(code::INVALID_ARGUMENT_FOR_POWER, message));
    }
    Ok(Datum::Float8(v.sqrt()))
}
