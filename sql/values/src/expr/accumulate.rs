//! The running state of aggregates.

use super::aggregate::{AggregateCall, Kind};
use super::json_aggregate::Gathered;
use super::operators::{self, Op};
use super::statistics::{ExactMoments, Moments, Pairs};
use crate::error::{Result, SqlError, code};
use crate::types::datum::{Array, compare};
use crate::types::interval::Interval;
use crate::types::{Datum, Numeric, Oid, element_of, oid, size};
use clearway_base::breath;
use std::cmp::Ordering;
use std::collections::HashSet;

/// The longest value, as in PostgreSQL.
const VALUE_BYTES_MAX: usize = (1 << 30) - 1;

/// The running value of an aggregate for one group. Rows come in the order that ORDER BY or WITHIN GROUP asks for.
#[derive(Clone)]
pub struct Accumulator {
    kind: Kind,
    result: Oid,
    /// Rows that were taken.
    count: i64,
    state: State,
    /// Boxed: most aggregates have none, and each group has an accumulator.
    #[allow(clippy::box_collection, reason = "an empty set has 48 bytes")]
    seen: Option<Box<HashSet<Vec<Datum>>>>,
}

#[derive(Clone)]
enum State {
    /// Nothing but the count.
    Count,
    /// A sum of integers.
    Int(i128),
    /// A sum of numerics.
    Decimal(Box<DecimalSum>),
    /// A sum of other numbers, an extreme, a boolean, bits.
    Value(Datum),
    /// Values one after the other.
    List(Vec<Datum>),
    /// Rows, and the order of their values: (descending, nulls first).
    Rows(Vec<Vec<Datum>>, Vec<(bool, bool)>),
    Moments(Box<Moments>),
    Exact(Box<ExactMoments>),
    Pairs(Box<Pairs>),
    Json(Box<Gathered>),
}

fn initial(call: &AggregateCall) -> State {
    use Kind as K;
    let first = call.args.first().map_or(0, |a| a.ty.oid);
    match call.kind {
        K::CountStar | K::Count => State::Count,
        K::Sum | K::Avg if matches!(first, oid::INT2 | oid::INT4 | oid::INT8) => State::Int(0),
        K::Sum | K::Avg if first == oid::NUMERIC => State::Decimal(Box::default()),
        K::Sum | K::Avg | K::Min | K::Max | K::BoolAnd | K::BoolOr | K::BitAnd | K::BitOr | K::BitXor => {
            State::Value(Datum::Null)
        }
        K::JsonAgg | K::JsonbAgg | K::JsonObjectAgg | K::JsonbObjectAgg => State::Json(Box::default()),
        K::StringAgg | K::ArrayAgg | K::PercentileCont | K::PercentileDisc | K::Mode => State::List(Vec::new()),
        K::VarPop | K::VarSamp | K::StddevPop | K::StddevSamp if call.ty.oid == oid::FLOAT8 => {
            State::Moments(Box::default())
        }
        K::VarPop | K::VarSamp | K::StddevPop | K::StddevSamp => State::Exact(Box::default()),
        K::Rank | K::DenseRank | K::PercentRank | K::CumeDist => {
            State::Rows(Vec::new(), call.order_by.iter().map(|o| (o.1, o.2)).collect())
        }
        _ => State::Pairs(Box::default()),
    }
}

impl Accumulator {
    /// An empty one.
    pub fn new(call: &AggregateCall) -> Self {
        let seen = call.distinct.then(Box::default);
        Self { kind: call.kind, result: call.ty.oid, count: 0, state: initial(call), seen }
    }

    /// Takes so many rows of a `count(*)`.
    pub fn count_rows(&mut self, rows: usize) {
        assert!(matches!(self.kind, Kind::CountStar), "rows are counted by count(*) alone");
        self.count += rows as i64;
    }

    /// Takes a row's arguments; the filter was applied.
    ///
    /// # Errors
    /// 22003; 2202E for arrays of different dimensions; 22023 for a key of json.
    pub fn add(&mut self, args: &[Datum], session: &dyn super::Session) -> Result<()> {
        // Most sums.
        if let (State::Decimal(sum), [Datum::Numeric(v)], None) = (&mut self.state, args, &self.seen) {
            self.count += 1;
            return sum.add(v);
        }
        let takes_null = matches!(self.kind, Kind::CountStar | Kind::ArrayAgg) || self.kind.is_json();
        let skips_null = !takes_null && !self.kind.is_hypothetical();
        let missing = |d: Option<&Datum>| d.is_none_or(Datum::is_null);
        if skips_null && (missing(args.first()) || (self.kind.is_of_pairs() && missing(args.get(1)))) {
            return Ok(());
        }
        if let Some(seen) = &mut self.seen
            && !seen.insert(args.to_vec())
        {
            return Ok(());
        }
        self.count += 1;
        match (&mut self.state, args.first()) {
            (State::Count, _) => {}
            (State::Int(sum), Some(v)) => *sum += i128::from(v.as_i64().unwrap_or(0)),
            (State::Decimal(sum), Some(Datum::Numeric(v))) => sum.add(v)?,
            (State::Decimal(_), Some(_)) => return Err(SqlError::internal("a sum of numerics got another type")),
            (State::Value(_), Some(v)) => self.add_value(v, session)?,
            (State::List(list), Some(first)) => {
                if self.kind == Kind::StringAgg && self.count > 1 {
                    list.push(args.get(1).cloned().unwrap_or(Datum::Null));
                }
                list.push(first.clone());
            }
            (State::Rows(rows, _), _) => rows.push(args.to_vec()),
            (State::Json(gathered), _) => gathered.add(self.kind, args, session)?,
            (State::Moments(m), Some(v)) => m.add(v.as_f64().unwrap_or(0.0))?,
            (State::Exact(m), Some(v)) => m.add(&exact(v), false),
            (State::Pairs(p), Some(y)) => {
                p.add(y.as_f64().unwrap_or(0.0), args.get(1).and_then(Datum::as_f64).unwrap_or(0.0))?;
            }
            (_, None) => {}
        }
        Ok(())
    }

    fn add_value(&mut self, v: &Datum, session: &dyn super::Session) -> Result<()> {
        let State::Value(value) = &mut self.state else { return Ok(()) };
        let old = std::mem::replace(value, Datum::Null);
        *value = match self.kind {
            Kind::Min | Kind::Max if old.is_null() => v.clone(),
            // Of equal values that look different the last one stays.
            Kind::Min if compare(v, &old).is_gt() => old,
            Kind::Max if compare(v, &old).is_lt() => old,
            Kind::Min | Kind::Max => v.clone(),
            Kind::BoolAnd | Kind::BoolOr => {
                let (a, b) = (old.as_bool(), v.as_bool().unwrap_or(false));
                let and = self.kind == Kind::BoolAnd;
                Datum::Bool(a.map_or(b, |a| if and { a && b } else { a || b }))
            }
            Kind::BitAnd | Kind::BitOr | Kind::BitXor if old.is_null() => v.clone(),
            kind @ (Kind::BitAnd | Kind::BitOr | Kind::BitXor) if matches!(v, Datum::Bits(_)) => {
                super::bit_functions::folded(kind, &old, v)?
            }
            Kind::BitAnd => operators::binary(Op::BitAnd, &old, v, session)?,
            Kind::BitOr => operators::binary(Op::BitOr, &old, v, session)?,
            Kind::BitXor => operators::binary(Op::BitXor, &old, v, session)?,
            _ => {
                let v = if self.result == oid::FLOAT8 { Datum::Float8(v.as_f64().unwrap_or(0.0)) } else { v.clone() };
                if old.is_null() { v } else { operators::binary(Op::Add, &old, &v, session)? }
            }
        };
        Ok(())
    }

    /// Whether the values of an aggregate over parts of the rows can be joined to the one over all. (Sums of floating-point numbers then differ
    /// in their last digits from a sum from row to row, as in PostgreSQL's parallel plans.)
    pub fn joins(call: &AggregateCall) -> bool {
        let empty = Self::new(call);
        let joins = match &empty.state {
            State::Count | State::Int(_) | State::Decimal(_) | State::Value(_) | State::Exact(_) => true,
            State::List(_) | State::Rows(..) | State::Moments(_) | State::Pairs(_) | State::Json(_) => false,
        };
        joins && empty.seen.is_none() && call.order_by.is_empty() && call.direct.is_empty()
    }

    /// Takes the rows that another one has taken, which come after its own; of aggregates of which `joins` says so.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub fn join(&mut self, later: &Accumulator, session: &dyn super::Session) -> Result<()> {
        self.count += later.count;
        match (&mut self.state, &later.state) {
            (State::Int(sum), State::Int(other)) => *sum += other,
            (State::Decimal(sum), State::Decimal(other)) => sum.join(other),
            (State::Exact(moments), State::Exact(other)) => moments.join(other),
            (State::Value(_), State::Value(other)) if !other.is_null() => self.add_value(other, session)?,
            _ => {}
        }
        Ok(())
    }

    /// Whether a row that counts has been taken.
    pub fn has_value(&self) -> bool {
        self.count > 0
    }

    /// Takes a row back that was taken; false if this aggregate can't.
    ///
    /// # Errors
    /// 22003.
    pub fn remove(&mut self, args: &[Datum], session: &dyn super::Session) -> Result<bool> {
        let able = match &self.state {
            _ if self.seen.is_some() => false,
            State::Count | State::Int(_) => true,
            State::Value(v) => {
                matches!(self.kind, Kind::Sum | Kind::Avg) && matches!(v, Datum::Interval(_) | Datum::Null)
            }
            State::Decimal(sum) => match args.first() {
                Some(Datum::Numeric(v)) => sum.can_remove(v, self.count),
                _ => true,
            },
            State::Exact(m) => m.is_finite(),
            _ => false,
        };
        if !able {
            return Ok(false);
        }
        let Some(v) = args.first() else {
            self.count -= i64::from(self.kind == Kind::CountStar);
            return Ok(true);
        };
        if v.is_null() && self.kind != Kind::CountStar {
            return Ok(true);
        }
        self.count -= 1;
        match &mut self.state {
            State::Int(sum) => *sum -= i128::from(v.as_i64().unwrap_or(0)),
            State::Value(value) if self.count == 0 => *value = Datum::Null,
            State::Value(value) => *value = operators::binary(Op::Sub, value, v, session)?,
            State::Decimal(sum) => {
                if let Datum::Numeric(v) = v {
                    sum.remove(v);
                }
            }
            State::Exact(m) => m.add(&exact(v), true),
            _ => {}
        }
        Ok(true)
    }

    /// The result; `direct` are the arguments before WITHIN GROUP.
    ///
    /// # Errors
    /// 22003, 22P02; 54000 for a value that is too long.
    pub fn finish(&self, direct: &[Datum]) -> Result<Datum> {
        if matches!(self.kind, Kind::CountStar | Kind::Count) {
            return Ok(Datum::Int8(self.count));
        }
        match &self.state {
            State::Pairs(p) => return Ok(p.value(self.kind)),
            State::Rows(rows, by) => return hypothetical(self.kind, rows, by, direct),
            _ if self.count == 0 => return Ok(Datum::Null),
            _ => {}
        }
        Ok(match &self.state {
            State::Count => Datum::Int8(self.count),
            State::Int(sum) if self.kind == Kind::Avg => {
                Datum::numeric(Numeric::of(*sum, 0).div(&Numeric::from(self.count))?)
            }
            State::Int(sum) if self.result == oid::INT8 => Datum::Int8(
                i64::try_from(*sum)
                    .map_err(|_| SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))?,
            ),
            State::Int(sum) => Datum::numeric(Numeric::of(*sum, 0)),
            State::Decimal(sum) if self.kind == Kind::Avg => Datum::numeric(sum.sum.div(&Numeric::from(self.count))?),
            State::Decimal(sum) => Datum::numeric(sum.sum.clone().within_limits()?),
            State::Value(sum) if self.kind == Kind::Avg => average(sum, self.count)?,
            State::Value(v) => v.clone(),
            State::Moments(m) => m.value(self.kind),
            State::Exact(m) => m.value(self.kind)?,
            State::List(list) => match self.kind {
                Kind::StringAgg => joined(list, self.result)?,
                Kind::ArrayAgg => array(list, self.result)?,
                Kind::Mode => mode(list)?,
                Kind::PercentileDisc => percentiles(direct, self.result, |p| discrete(list, p))?,
                _ => percentiles(direct, self.result, |p| continuous(list, p))?,
            },
            State::Json(gathered) => gathered.value(self.kind),
            State::Rows(..) | State::Pairs(_) => Datum::Null,
        })
    }
}

/// A sum of numerics.
#[derive(Clone)]
struct DecimalSum {
    sum: Numeric,
    /// Terms that have the sum's scale, which is that of its longest term.
    longest: i64,
}

impl Default for DecimalSum {
    fn default() -> Self {
        Self { sum: Numeric::from(0), longest: 0 }
    }
}

impl DecimalSum {
    fn add(&mut self, v: &Numeric) -> Result<()> {
        breath::step(64)?;
        match v.scale().cmp(&self.sum.scale()) {
            Ordering::Greater => self.longest = 1,
            Ordering::Equal => self.longest += 1,
            Ordering::Less => {}
        }
        self.sum = self.sum.add(v);
        Ok(())
    }

    /// Takes the terms of another sum.
    fn join(&mut self, other: &DecimalSum) {
        self.longest = match other.sum.scale().cmp(&self.sum.scale()) {
            Ordering::Greater => other.longest,
            Ordering::Equal => self.longest + other.longest,
            Ordering::Less => self.longest,
        };
        self.sum = self.sum.add(&other.sum);
    }

    /// Whether the sum without this term follows from the sum with it: what was infinite, and the scale of the longest term, are lost.
    fn can_remove(&self, v: &Numeric, count: i64) -> bool {
        let finite = self.sum.scale().is_some() && v.scale().is_some();
        finite && (count == 1 || v.scale() != self.sum.scale() || v.scale() == Some(0) || self.longest > 1)
    }

    fn remove(&mut self, v: &Numeric) {
        if v.scale() == self.sum.scale() {
            self.longest -= 1;
        }
        self.sum = if self.longest == 0 && v.scale() == self.sum.scale() { Numeric::from(0) } else { self.sum.sub(v) };
    }
}

fn exact(v: &Datum) -> Numeric {
    match v {
        Datum::Numeric(n) => n.clone(),
        v => Numeric::from(v.as_i64().unwrap_or(0)),
    }
}

fn average(sum: &Datum, count: i64) -> Result<Datum> {
    Ok(match sum {
        Datum::Float8(sum) => Datum::Float8(sum / count as f64),
        Datum::Interval(sum) => Datum::Interval(sum.checked_div(count as f64)?),
        _ => Datum::Interval(Interval::default()),
    })
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

fn joined(list: &[Datum], result: Oid) -> Result<Datum> {
    let bytes = claim_whole(list)?;
    if result == oid::BYTEA {
        let mut out = Vec::with_capacity(bytes);
        for part in list {
            breath::step(16)?;
            if let Datum::Bytea(part) = part {
                breath::append(&mut out, part)?;
            }
        }
        return Ok(Datum::Bytea(out.into()));
    }
    let mut out = String::with_capacity(bytes);
    for part in list.iter().filter_map(Datum::as_str) {
        breath::step(16)?;
        breath::append_text(&mut out, part)?;
    }
    Ok(Datum::text(out))
}

/// An array of the values, or of one more dimension where they are arrays.
fn array(list: &[Datum], result: Oid) -> Result<Datum> {
    let element = element_of(result).unwrap_or(0);
    clearway_base::memory::claim(std::mem::size_of_val(list))?;
    breath::step_bytes(16 * list.len())?;
    let nested = list.iter().any(|v| matches!(v, Datum::Array(_)));
    if !nested {
        return size::array(Array::one_dimensional(element, list.to_vec()));
    }
    arrays(list, result)
}

/// Arrays of the same form as one array of a type, which has one more dimension.
///
/// # Errors
/// 22004, 2202E; 54000 beyond the largest array.
pub fn arrays(list: &[Datum], result: Oid) -> Result<Datum> {
    let element = element_of(result).unwrap_or(0);
    if list.is_empty() {
        return size::array(Array::one_dimensional(element, Vec::new()));
    }
    let refused = |message: &str| SqlError::new(code::ARRAY_SUBSCRIPT_ERROR, message);
    let mut dims: Option<&[(i32, i32)]> = None;
    let mut values = Vec::new();
    for v in list {
        breath::step(64)?;
        let Datum::Array(a) = v else {
            return Err(SqlError::new("22004", "cannot accumulate null arrays"));
        };
        if a.dims.is_empty() {
            return Err(refused("cannot accumulate empty arrays"));
        }
        if *dims.get_or_insert(&a.dims) != a.dims.as_slice() {
            return Err(refused("cannot accumulate arrays of different dimensionality"));
        }
        clearway_base::memory::check()?;
        values.extend(a.values.iter().cloned());
    }
    let mut all = vec![(list.len() as i32, 1)];
    all.extend_from_slice(dims.unwrap_or_default());
    size::array(Array { element, dims: all, values })
}

/// The most frequent value of a sorted list, the first of several.
fn mode(list: &[Datum]) -> Result<Datum> {
    let (mut best, mut best_count, mut count) = (0, 0, 0);
    for (i, v) in list.iter().enumerate() {
        breath::step(16)?;
        count = if i > 0 && compare(&list[i - 1], v).is_eq() { count + 1 } else { 1 };
        if count > best_count {
            (best, best_count) = (i + 1 - count, count);
        }
    }
    Ok(list.get(best).cloned().unwrap_or(Datum::Null))
}

/// One percentile, or an array of them.
fn percentiles(direct: &[Datum], result: Oid, value: impl Fn(f64) -> Result<Datum>) -> Result<Datum> {
    let one = |p: &Datum| match p.as_f64() {
        None => Ok(Datum::Null),
        Some(p) if !(0.0..=1.0).contains(&p) => {
            let message = format!("percentile value {} is not between 0 and 1", crate::types::float::format8(p));
            Err(SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, message))
        }
        Some(p) => value(p),
    };
    match direct.first() {
        Some(Datum::Array(a)) => {
            let values = a.values.iter().map(one).collect::<Result<Vec<_>>>()?;
            let element = element_of(result).unwrap_or(0);
            Ok(Datum::Array(Array { element, dims: a.dims.clone(), values }.into()))
        }
        Some(p) => one(p),
        None => Ok(Datum::Null),
    }
}

fn discrete(list: &[Datum], p: f64) -> Result<Datum> {
    let row = (p * list.len() as f64).ceil() as usize;
    Ok(list.get(row.saturating_sub(1)).cloned().unwrap_or(Datum::Null))
}

fn continuous(list: &[Datum], p: f64) -> Result<Datum> {
    let at = p * (list.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    let (Some(a), Some(b)) = (list.get(low), list.get(high)) else { return Ok(Datum::Null) };
    if low == high {
        return Ok(a.clone());
    }
    let part = at - low as f64;
    Ok(match (a, b) {
        (Datum::Float8(a), Datum::Float8(b)) => Datum::Float8(a + part * (b - a)),
        (Datum::Interval(a), Datum::Interval(b)) => {
            let difference = b.checked_add(a.checked_neg()?)?;
            Datum::Interval(difference.checked_mul(part)?.checked_add(*a)?)
        }
        _ => Datum::Null,
    })
}

/// The order of two lists of sort values; (descending, nulls first) per key.
pub fn order_of(a: &[Datum], b: &[Datum], by: &[(bool, bool)]) -> Ordering {
    for ((x, y), (descending, nulls_first)) in a.iter().zip(b).zip(by) {
        let order = match (x.is_null(), y.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if *nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if *nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if *descending => compare(y, x),
            (false, false) => compare(x, y),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Where a row would stand among rows that come sorted.
fn hypothetical(kind: Kind, rows: &[Vec<Datum>], by: &[(bool, bool)], row: &[Datum]) -> Result<Datum> {
    let (mut before, mut distinct, mut up_to) = (0usize, 0i64, 0usize);
    let mut last: Option<&Vec<Datum>> = None;
    for r in rows {
        breath::step(breath::ROW)?;
        let order = order_of(r, row, by);
        if order.is_lt() {
            before += 1;
            if last.is_none_or(|l| order_of(l, r, by).is_ne()) {
                distinct += 1;
            }
            last = Some(r);
        }
        up_to += usize::from(order.is_le());
    }
    Ok(match kind {
        Kind::Rank => Datum::Int8(before as i64 + 1),
        Kind::DenseRank => Datum::Int8(distinct + 1),
        Kind::PercentRank if rows.is_empty() => Datum::Float8(0.0),
        Kind::PercentRank => Datum::Float8(before as f64 / rows.len() as f64),
        _ => Datum::Float8((up_to + 1) as f64 / (rows.len() + 1) as f64),
    })
}
