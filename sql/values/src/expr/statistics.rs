//! Aggregates over sums of squares: variance, standard deviation, correlation and regression.
//!
//! Over doubles the sums are those of Youngs and Cramer, as in PostgreSQL's float.c; over exact numbers they are exact.

use super::aggregate::Kind;
use crate::error::{Result, SqlError, code};
use crate::types::{Datum, Numeric};

fn overflow() -> SqlError {
    SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

/// Count, sum and sum of squared deviations of doubles.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    /// Takes a value.
    pub fn add(&mut self, v: f64) -> Result<()> {
        let (before, sum_before) = (self.n, self.sum);
        self.n += 1.0;
        self.sum += v;
        if before > 0.0 {
            let d = v * self.n - self.sum;
            self.squares += d * d / (self.n * before);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !sum_before.is_infinite() && !v.is_infinite() {
                    return Err(overflow());
                }
                self.squares = f64::NAN;
            }
        } else if !v.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }

    /// The value of an aggregate.
    pub fn value(&self, kind: Kind) -> Datum {
        let divisor = if is_population(kind) { self.n } else { self.n - 1.0 };
        if divisor <= 0.0 {
            return Datum::Null;
        }
        let variance = self.squares / divisor;
        Datum::Float8(if is_deviation(kind) { variance.sqrt() } else { variance })
    }
}

fn is_population(kind: Kind) -> bool {
    matches!(kind, Kind::VarPop | Kind::StddevPop)
}

fn is_deviation(kind: Kind) -> bool {
    matches!(kind, Kind::StddevPop | Kind::StddevSamp)
}

/// Count, sum and sum of squares of exact numbers.
#[derive(Clone, Debug)]
pub struct ExactMoments {
    n: i64,
    sum: Numeric,
    squares: Numeric,
}

impl Default for ExactMoments {
    fn default() -> Self {
        Self { n: 0, sum: Numeric::from(0), squares: Numeric::from(0) }
    }
}

impl ExactMoments {
    /// Takes a value, or takes it back.
    pub fn add(&mut self, v: &Numeric, back: bool) {
        let square = v.mul_exact(v);
        if back {
            self.n -= 1;
            self.sum = self.sum.sub(v);
            self.squares = self.squares.sub(&square);
        } else {
            self.n += 1;
            self.sum = self.sum.add(v);
            self.squares = self.squares.add(&square);
        }
    }

    /// Takes the values of another one.
    pub fn join(&mut self, other: &ExactMoments) {
        self.n += other.n;
        self.sum = self.sum.add(&other.sum);
        self.squares = self.squares.add(&other.squares);
    }

    /// Whether no term was infinite or no number.
    pub fn is_finite(&self) -> bool {
        self.sum.scale().is_some() && self.squares.scale().is_some()
    }

    /// The value of an aggregate.
    pub fn value(&self, kind: Kind) -> Result<Datum> {
        let population = is_population(kind);
        if self.n < 1 || (self.n == 1 && !population) {
            return Ok(Datum::Null);
        }
        if self.sum.scale().is_none() || self.squares.scale().is_none() {
            return Ok(Datum::numeric(Numeric::NaN));
        }
        let n = Numeric::from(self.n);
        let rest = n.mul_exact(&self.squares).sub(&self.sum.mul_exact(&self.sum));
        if rest.signum() <= 0 {
            return Ok(Datum::numeric(Numeric::from(0)));
        }
        let divisor = if population { n.mul(&n) } else { n.mul(&Numeric::from(self.n - 1)) };
        let variance = rest.div(&divisor)?;
        if !is_deviation(kind) {
            return Ok(Datum::numeric(variance));
        }
        let scale = variance.scale().unwrap_or(0);
        Ok(Datum::numeric(variance.sqrt_to(scale)?))
    }
}

/// Counts, sums and products of pairs of doubles.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    n: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
}

impl Pairs {
    /// Takes a pair.
    pub fn add(&mut self, y: f64, x: f64) -> Result<()> {
        let old = self.clone();
        self.n += 1.0;
        self.sx += x;
        self.sy += y;
        if old.n > 0.0 {
            let (dx, dy) = (x * self.n - self.sx, y * self.n - self.sy);
            let scale = 1.0 / (self.n * old.n);
            self.sxx += dx * dx * scale;
            self.syy += dy * dy * scale;
            self.sxy += dx * dy * scale;
            let infinite = |list: [f64; 2]| list.iter().any(|v| v.is_infinite());
            if infinite([self.sx, self.sxx]) || infinite([self.sy, self.syy]) || self.sxy.is_infinite() {
                let x_known = infinite([old.sx, x]);
                let y_known = infinite([old.sy, y]);
                if (infinite([self.sx, self.sxx]) && !x_known)
                    || (infinite([self.sy, self.syy]) && !y_known)
                    || (self.sxy.is_infinite() && !x_known && !y_known)
                {
                    return Err(overflow());
                }
                for sum in [&mut self.sxx, &mut self.syy, &mut self.sxy] {
                    if sum.is_infinite() {
                        *sum = f64::NAN;
                    }
                }
            }
            return Ok(());
        }
        if !x.is_finite() {
            (self.sxx, self.sxy) = (f64::NAN, f64::NAN);
        }
        if !y.is_finite() {
            (self.syy, self.sxy) = (f64::NAN, f64::NAN);
        }
        Ok(())
    }

    /// The value of an aggregate.
    pub fn value(&self, kind: Kind) -> Datum {
        let n = self.n;
        let some = n >= 1.0;
        let value = match kind {
            Kind::RegrCount => return Datum::Int8(n as i64),
            Kind::RegrSxx if some => Some(self.sxx),
            Kind::RegrSyy if some => Some(self.syy),
            Kind::RegrSxy if some => Some(self.sxy),
            Kind::RegrAvgx if some => Some(self.sx / n),
            Kind::RegrAvgy if some => Some(self.sy / n),
            Kind::CovarPop if some => Some(self.sxy / n),
            Kind::CovarSamp if n >= 2.0 => Some(self.sxy / (n - 1.0)),
            Kind::Corr if some && self.sxx != 0.0 && self.syy != 0.0 => Some(self.sxy / (self.sxx * self.syy).sqrt()),
            Kind::RegrR2 if some && self.sxx != 0.0 => {
                Some(if self.syy == 0.0 { 1.0 } else { (self.sxy * self.sxy) / (self.sxx * self.syy) })
            }
            Kind::RegrSlope if some && self.sxx != 0.0 => Some(self.sxy / self.sxx),
            Kind::RegrIntercept if some && self.sxx != 0.0 => Some((self.sy - self.sx * self.sxy / self.sxx) / n),
            _ => None,
        };
        value.map_or(Datum::Null, Datum::Float8)
    }
}
