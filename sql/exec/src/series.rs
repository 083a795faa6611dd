//! `generate_series`, one value at a time.

use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::expr::Session;
use clearway_values::expr::operators::{self, Op};
use clearway_values::types::datum::compare;
use clearway_values::types::{Datum, Numeric};

/// A series that is being read.
pub struct Series {
    next: Option<Datum>,
    to: Datum,
    step: Datum,
    down: bool,
}

impl Series {
    /// A series from, to and by these; empty if one of them is null.
    ///
    /// # Errors
    /// 22023 for a step of zero.
    pub fn new(args: &[Datum]) -> Result<Series> {
        let [from, to, ..] = args else { return Err(SqlError::internal("generate_series without bounds")) };
        let one = match from {
            Datum::Int8(_) => Datum::Int8(1),
            Datum::Numeric(_) => Datum::numeric(Numeric::from(1i64)),
            _ => Datum::Int4(1),
        };
        let step = args.get(2).cloned().unwrap_or(one);
        if from.is_null() || to.is_null() || step.is_null() {
            return Ok(Series { next: None, to: Datum::Null, step: Datum::Null, down: false });
        }
        for (value, what) in [(from, "start value"), (to, "stop value"), (&step, "step size")] {
            let found = match value {
                Datum::Numeric(Numeric::NaN) => "NaN",
                Datum::Numeric(n) if n.scale().is_none() => "infinity",
                _ => continue,
            };
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, format!("{what} cannot be {found}")));
        }
        let sign = match &step {
            Datum::Interval(i) => i.span().cmp(&0),
            Datum::Numeric(_) => compare(&step, &Datum::numeric(Numeric::from(0i64))),
            _ => compare(&step, &Datum::Int8(0)),
        };
        if sign.is_eq() {
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, "step size cannot equal zero"));
        }
        Ok(Series { next: Some(from.clone()), to: to.clone(), step, down: sign.is_lt() })
    }

    /// The next value.
    ///
    /// # Errors
    /// 22008 beyond the range of timestamps. Integers end silently at the end of their range.
    pub fn next(&mut self, session: &dyn Session) -> Result<Option<Datum>> {
        let Some(value) = self.next.take() else { return Ok(None) };
        let order = compare(&value, &self.to);
        if (order.is_gt() && !self.down) || (order.is_lt() && self.down) {
            return Ok(None);
        }
        self.next = match (&value, &self.step) {
            (Datum::Int4(v), Datum::Int4(step)) => v.checked_add(*step).map(Datum::Int4),
            (Datum::Int8(v), Datum::Int8(step)) => v.checked_add(*step).map(Datum::Int8),
            (v, step) => Some(operators::binary(Op::Add, v, step, session)?),
        };
        Ok(Some(value))
    }
}
