//! Aggregates: which exist for which types, and their accumulators.

use super::bound::Bound;
use super::operators::{self, Op};
use super::resolve::{self, Choice};
use crate::error::{Result, SqlError, code};
use crate::types::datum::{Array, compare};
use crate::types::interval::Interval;
use crate::types::{Datum, Numeric, Oid, SqlType, array_of, oid};
use clearway_base::breath;
use std::collections::HashSet;

/// What an aggregate computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    CountStar,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BoolAnd,
    BoolOr,
    StringAgg,
    ArrayAgg,
}

/// A call of an aggregate.
#[derive(Clone, Debug)]
pub struct AggregateCall {
    /// What it computes.
    pub kind: Kind,
    /// Its arguments.
    pub args: Vec<Bound>,
    /// DISTINCT.
    pub distinct: bool,
    /// FILTER.
    pub filter: Option<Bound>,
    /// ORDER BY: key, descending, nulls first.
    pub order_by: Vec<(Bound, bool, bool)>,
    /// The type of its result.
    pub ty: SqlType,
}

const ANY: Oid = resolve::ANY;

/// The longest value, as in PostgreSQL.
const VALUE_BYTES_MAX: usize = (1 << 30) - 1;

/// (name, kind, argument types, result type; ANY as result: the argument's).
#[rustfmt::skip]
static AGGREGATES: &[(&str, Kind, &[Oid], Oid)] = {
    use oid::*;
    &[
        ("count", Kind::Count, &[ANY], INT8),
        ("sum", Kind::Sum, &[INT8], NUMERIC), ("sum", Kind::Sum, &[INT4], INT8), ("sum", Kind::Sum, &[INT2], INT8),
        ("sum", Kind::Sum, &[FLOAT4], FLOAT4), ("sum", Kind::Sum, &[FLOAT8], FLOAT8),
        ("sum", Kind::Sum, &[NUMERIC], NUMERIC), ("sum", Kind::Sum, &[INTERVAL], INTERVAL),
        ("avg", Kind::Avg, &[INT8], NUMERIC), ("avg", Kind::Avg, &[INT4], NUMERIC), ("avg", Kind::Avg, &[INT2], NUMERIC),
        ("avg", Kind::Avg, &[FLOAT4], FLOAT8), ("avg", Kind::Avg, &[FLOAT8], FLOAT8),
        ("avg", Kind::Avg, &[NUMERIC], NUMERIC), ("avg", Kind::Avg, &[INTERVAL], INTERVAL),
        ("bool_and", Kind::BoolAnd, &[BOOL], BOOL), ("every", Kind::BoolAnd, &[BOOL], BOOL),
        ("bool_or", Kind::BoolOr, &[BOOL], BOOL),
        ("string_agg", Kind::StringAgg, &[TEXT, TEXT], TEXT), ("string_agg", Kind::StringAgg, &[BYTEA, BYTEA], BYTEA),
    ]
};

/// The types that min and max take.
const ORDERED: &[&[Oid]] = &[
    &[oid::INT8],
    &[oid::INT4],
    &[oid::INT2],
    &[oid::OID],
    &[oid::FLOAT4],
    &[oid::FLOAT8],
    &[oid::NUMERIC],
    &[oid::TEXT],
    &[oid::BPCHAR],
    &[oid::DATE],
    &[oid::TIMESTAMP],
    &[oid::TIMESTAMPTZ],
    &[oid::INTERVAL],
];

/// Whether a name is that of an aggregate.
pub fn is_aggregate(name: &str) -> bool {
    matches!(name, "min" | "max" | "array_agg") || AGGREGATES.iter().any(|a| a.0 == name)
}

/// The aggregate for argument types: kind, the types its arguments are cast to, result.
pub fn resolve(name: &str, inputs: &[Oid]) -> Option<(Kind, Vec<Oid>, Oid)> {
    if name == "array_agg" {
        let [t] = inputs else { return None };
        let t = if *t == oid::UNKNOWN { oid::TEXT } else { *t };
        return Some((Kind::ArrayAgg, vec![t], array_of(t)?));
    }
    if matches!(name, "min" | "max") {
        let kind = if name == "min" { Kind::Min } else { Kind::Max };
        let Choice::One(i) = resolve::choose(inputs, ORDERED) else {
            return None;
        };
        return Some((kind, ORDERED[i].to_vec(), ORDERED[i][0]));
    }
    let rows: Vec<_> = AGGREGATES.iter().filter(|a| a.0 == name).collect();
    let types: Vec<&[Oid]> = rows.iter().map(|r| r.2).collect();
    let Choice::One(i) = resolve::choose(inputs, &types) else {
        return None;
    };
    let args = rows[i].2.iter().zip(inputs).map(|(t, input)| if *t == ANY { *input } else { *t }).collect();
    Some((rows[i].1, args, rows[i].3))
}

/// The running value of an aggregate for one group. Rows come in the order that ORDER BY asks for.
pub struct Accumulator {
    kind: Kind,
    result: Oid,
    count: i64,
    value: Datum,
    int: i128,
    list: Vec<Datum>,
    seen: Option<HashSet<Vec<Datum>>>,
}

impl Accumulator {
    /// An empty one.
    pub fn new(call: &AggregateCall) -> Self {
        Self {
            kind: call.kind,
            result: call.ty.oid,
            count: 0,
            value: Datum::Null,
            int: 0,
            list: Vec::new(),
            seen: call.distinct.then(HashSet::new),
        }
    }

    /// Takes a row's arguments; the filter was applied.
    pub fn add(&mut self, args: &[Datum], session: &dyn super::Session) -> Result<()> {
        let skips_null = !matches!(self.kind, Kind::CountStar | Kind::ArrayAgg);
        let first = args.first().cloned().unwrap_or(Datum::Null);
        if skips_null && first.is_null() {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen
            && !seen.insert(args.to_vec())
        {
            return Ok(());
        }
        self.count += 1;
        match self.kind {
            Kind::CountStar | Kind::Count => {}
            Kind::Sum | Kind::Avg => self.sum(first, session)?,
            Kind::Min | Kind::Max => {
                let better = compare(&first, &self.value).is_lt() == (self.kind == Kind::Min);
                if self.value.is_null() || better {
                    self.value = first;
                }
            }
            Kind::BoolAnd | Kind::BoolOr => {
                let (a, b) = (self.value.as_bool(), first.as_bool().unwrap_or(false));
                let and = self.kind == Kind::BoolAnd;
                self.value = Datum::Bool(a.map_or(b, |a| if and { a && b } else { a || b }));
            }
            Kind::StringAgg => {
                if self.count > 1 {
                    self.list.push(args.get(1).cloned().unwrap_or(Datum::Null));
                }
                self.list.push(first);
            }
            Kind::ArrayAgg => self.list.push(first),
        }
        Ok(())
    }

    fn sum(&mut self, v: Datum, session: &dyn super::Session) -> Result<()> {
        if let Some(n) = v.as_i64() {
            self.int += i128::from(n);
            return Ok(());
        }
        let v = if self.result == oid::FLOAT8 { Datum::Float8(v.as_f64().unwrap_or(0.0)) } else { v };
        let v = match (&v, self.result) {
            (Datum::Float8(_), oid::FLOAT8) | (_, oid::FLOAT4 | oid::NUMERIC | oid::INTERVAL) => v,
            _ => {
                return Err(SqlError::internal("an aggregate got an argument of another type"));
            }
        };
        let old = std::mem::replace(&mut self.value, Datum::Null);
        self.value = if old.is_null() { v } else { operators::binary(Op::Add, &old, &v, session)? };
        Ok(())
    }

    /// The result.
    pub fn finish(self) -> Result<Datum> {
        let empty = self.count == 0;
        Ok(match self.kind {
            Kind::CountStar | Kind::Count => Datum::Int8(self.count),
            _ if empty => Datum::Null,
            Kind::Sum if self.value.is_null() => match self.result {
                oid::INT8 => Datum::Int8(
                    i64::try_from(self.int)
                        .map_err(|_| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))?,
                ),
                _ => Datum::numeric(Numeric::new(self.int.into(), 0)),
            },
            Kind::Avg => self.average()?,
            Kind::StringAgg if self.result == oid::BYTEA => {
                let mut out = Vec::with_capacity(claim_whole(&self.list)?);
                for part in &self.list {
                    breath::step(16)?;
                    if let Datum::Bytea(part) = part {
                        breath::append(&mut out, part)?;
                    }
                }
                Datum::Bytea(out.into())
            }
            Kind::StringAgg => {
                let mut out = String::with_capacity(claim_whole(&self.list)?);
                for part in self.list.iter().filter_map(Datum::as_str) {
                    breath::step(16)?;
                    breath::append_text(&mut out, part)?;
                }
                Datum::text(out)
            }
            Kind::ArrayAgg => {
                let element = crate::types::element_of(self.result).unwrap_or(0);
                Datum::Array(Array::one_dimensional(element, self.list).into())
            }
            Kind::Sum | Kind::Min | Kind::Max | Kind::BoolAnd | Kind::BoolOr => self.value,
        })
    }

    fn average(self) -> Result<Datum> {
        let n = Numeric::from(self.count);
        Ok(match self.value {
            Datum::Null => Datum::numeric(Numeric::new(self.int.into(), 0).div(&n)?),
            Datum::Numeric(sum) => Datum::numeric(sum.div(&n)?),
            Datum::Float8(sum) => Datum::Float8(sum / self.count as f64),
            Datum::Interval(sum) => Datum::Interval(sum.checked_div(self.count as f64)?),
            _ => Datum::Interval(Interval::default()),
        })
    }
}

/// The length of all parts together, once the account has granted a text of that length.
fn claim_whole(parts: &[Datum]) -> Result<usize> {
    let bytes = parts.iter().map(Datum::heap_bytes).sum();
    if bytes > VALUE_BYTES_MAX {
        let message = format!("a value would have {bytes} bytes, of at most {VALUE_BYTES_MAX}");
        return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, message));
    }
    clearway_base::memory::claim(2 * bytes)?;
    Ok(bytes)
}
