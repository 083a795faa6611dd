//! Window frames: which rows of its partition the function of a row covers.

use super::Cx;
use super::host::CxHost;
use super::window::{At, Partition};
use clearway_base::breath;
use clearway_syntax::error::{Result, SqlError};
use clearway_syntax::window::{Exclude, Frame, FrameBound, FrameMode};
use clearway_values::expr::Bound;
use clearway_values::expr::operators::{self, Op};
use clearway_values::types::datum::compare;
use clearway_values::types::{Datum, Numeric};
use std::cmp::Ordering;
use std::ops::Range;

/// Rows of a partition: up to three ranges, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments([Range<usize>; 3]);

impl Segments {
    /// No rows.
    pub fn empty() -> Self {
        Self([0..0, 0..0, 0..0])
    }

    /// The ranges.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.0.clone().into_iter()
    }

    /// The one range, where there is only one.
    pub fn whole(&self) -> Option<Range<usize>> {
        (self.0[1].is_empty() && self.0[2].is_empty()).then(|| self.0[0].clone())
    }

    /// The n-th row from 0.
    pub fn nth(&self, mut n: usize) -> Option<usize> {
        for range in &self.0 {
            if n < range.len() {
                return Some(range.start + n);
            }
            n -= range.len();
        }
        None
    }

    /// The last row.
    pub fn last(&self) -> Option<usize> {
        self.0.iter().rev().find(|r| !r.is_empty()).map(|r| r.end - 1)
    }
}

/// The frames of a call; offsets are known.
pub struct Frames {
    mode: FrameMode,
    start: FrameBound<Datum>,
    end: FrameBound<Datum>,
    exclude: Exclude,
}

async fn offset(e: &Bound, mode: FrameMode, end: &str, cx: Cx<'_>) -> Result<Datum> {
    let value = cx.value(e, &[]).await?;
    if value.is_null() {
        return Err(SqlError::new("22004", format!("frame {end} offset must not be null")));
    }
    let bad = match &value {
        _ if mode != FrameMode::Range => value.as_i64().is_some_and(|n| n < 0),
        Datum::Numeric(n) => matches!(n, Numeric::NaN) || n.signum() < 0,
        Datum::Interval(i) => i.span() < 0,
        v => v.as_i64().is_some_and(|n| n < 0) || v.as_f64().is_some_and(|f| f < 0.0 || f.is_nan()),
    };
    match (bad, mode) {
        (false, _) => Ok(value),
        (true, FrameMode::Range) => {
            Err(SqlError::new("22013", "invalid preceding or following size in window function"))
        }
        (true, _) => Err(SqlError::new("22013", format!("frame {end} offset must not be negative"))),
    }
}

async fn bound(b: &FrameBound<Bound>, mode: FrameMode, end: &str, cx: Cx<'_>) -> Result<FrameBound<Datum>> {
    Ok(match b {
        FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
        FrameBound::CurrentRow => FrameBound::CurrentRow,
        FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
        FrameBound::Preceding(e) => FrameBound::Preceding(offset(e, mode, end, cx).await?),
        FrameBound::Following(e) => FrameBound::Following(offset(e, mode, end, cx).await?),
    })
}

impl Frames {
    /// The frames of a clause; none: from the first row of the partition to the last peer.
    ///
    /// # Errors
    /// 22004, 22013 for offsets that are null or negative.
    pub async fn new(frame: Option<&Frame<Bound>>, cx: Cx<'_>) -> Result<Frames> {
        Ok(match frame {
            None => Frames {
                mode: FrameMode::Range,
                start: FrameBound::UnboundedPreceding,
                end: FrameBound::CurrentRow,
                exclude: Exclude::NoOthers,
            },
            Some(f) => Frames {
                mode: f.mode,
                start: bound(&f.start, f.mode, "starting", cx).await?,
                end: bound(&f.end, f.mode, "ending", cx).await?,
                exclude: f.exclude,
            },
        })
    }

    /// The rows that a row looks at.
    ///
    /// # Errors
    /// 22008 for a bound beyond the range of its type.
    pub async fn of(&self, at: &At, p: &mut Partition<'_>, edges: &mut Edges, cx: Cx<'_>) -> Result<Segments> {
        let start = self.edge((&self.start, &mut edges.0), at, p, false, cx).await?;
        let end = self.edge((&self.end, &mut edges.1), at, p, true, cx).await?.max(start);
        let row = at.row;
        let left_out = match self.exclude {
            Exclude::NoOthers => return Ok(Segments([start..end, 0..0, 0..0])),
            Exclude::CurrentRow => row..row + 1,
            Exclude::Group | Exclude::Ties => at.peers.clone(),
        };
        let inside = |r: Range<usize>| {
            let (from, to) = (r.start.clamp(start, end), r.end.clamp(start, end));
            if from < to { from..to } else { 0..0 }
        };
        let middle = if self.exclude == Exclude::Ties { inside(row..row + 1) } else { 0..0 };
        Ok(Segments([inside(start..left_out.start), middle, inside(left_out.end..end)]))
    }

    /// Where the frame of a row begins, or (`is_end`) behind which row it ends.
    async fn edge(
        &self,
        (bound, near): (&FrameBound<Datum>, &mut usize),
        at: &At,
        p: &mut Partition<'_>,
        is_end: bool,
        cx: Cx<'_>,
    ) -> Result<usize> {
        let n = p.len();
        let count = |d: &Datum| usize::try_from(d.as_i64().unwrap_or(0)).unwrap_or(usize::MAX);
        let after = usize::from(is_end);
        Ok(match (self.mode, bound) {
            (_, FrameBound::UnboundedPreceding) => 0,
            (_, FrameBound::UnboundedFollowing) => n,
            (FrameMode::Rows, FrameBound::CurrentRow) => at.row + after,
            (FrameMode::Rows, FrameBound::Preceding(d)) => (at.row + after).saturating_sub(count(d)),
            (FrameMode::Rows, FrameBound::Following(d)) => at.row.saturating_add(count(d)).saturating_add(after).min(n),
            (_, FrameBound::CurrentRow) if is_end => at.peers.end,
            (_, FrameBound::CurrentRow) => at.peers.start,
            (FrameMode::Groups, FrameBound::Preceding(d)) => {
                p.group_start((at.group + after).saturating_sub(count(d))).await?
            }
            (FrameMode::Groups, FrameBound::Following(d)) => {
                let group = at.group.saturating_add(count(d)).saturating_add(after);
                p.group_start(group.min(p.groups())).await?
            }
            (FrameMode::Range, FrameBound::Preceding(d)) => range_edge((at, near), (d, true), p, is_end, cx).await?,
            (FrameMode::Range, FrameBound::Following(d)) => range_edge((at, near), (d, false), p, is_end, cx).await?,
        })
    }
}

/// The groups at which the last frame of a call began and ended: with RANGE those of the next one are near.
#[derive(Default)]
pub struct Edges(usize, usize);

/// The first row whose value is not before `value - offset` (or, `is_end`, the first that is behind it), in the direction of the order. It is the first one of a
/// group of peers; the search begins at the group `near`, and leaves its own there.
async fn range_edge(
    (at, near): (&At, &mut usize),
    (offset, preceding): (&Datum, bool),
    p: &mut Partition<'_>,
    is_end: bool,
    cx: Cx<'_>,
) -> Result<usize> {
    let (descending, nulls_first) = p.by[0];
    let base = p.order(at.group).await?[0].clone();
    if base.is_null() {
        return Ok(if is_end { at.peers.end } else { at.peers.start });
    }
    // Rows of nulls stand together at one end; no offset reaches them.
    let (mut low, mut high) = (0, p.groups());
    if nulls_first && p.order(0).await?[0].is_null() {
        low = 1;
    }
    if !nulls_first && p.order(high - 1).await?[0].is_null() {
        high -= 1;
    }
    let subtract = preceding != descending;
    let target = Target::new(&base, offset, subtract, cx)?;
    let is_before = |order: &[Datum]| {
        let order = target.compare_to(&order[0])?;
        let order = if descending { order.reverse() } else { order };
        Ok::<_, SqlError>(order.is_lt() || (is_end && order.is_eq()))
    };
    let mut group = (*near).clamp(low, high);
    while group < high && is_before(p.order(group).await?)? {
        breath::step(breath::ROW)?;
        group += 1;
    }
    while group > low && !is_before(p.order(group - 1).await?)? {
        breath::step(breath::ROW)?;
        group -= 1;
    }
    *near = group;
    p.group_start(group).await
}

fn is_nan(value: &Datum) -> bool {
    match value {
        Datum::Numeric(n) => matches!(n, Numeric::NaN),
        v => v.as_f64().is_some_and(f64::is_nan),
    }
}

/// A value plus or minus an offset, wide enough to hold it.
enum Target {
    Integer(i128),
    Float(f64),
    /// Infinite value and infinite offset against each other: nothing is before it and nothing behind.
    Anything,
    Value(Datum),
}

impl Target {
    fn new(base: &Datum, offset: &Datum, subtract: bool, cx: Cx<'_>) -> Result<Target> {
        if let (Some(base), Some(offset)) = (base.as_i64(), offset.as_i64()) {
            let (base, offset) = (i128::from(base), i128::from(offset));
            return Ok(Target::Integer(if subtract { base - offset } else { base + offset }));
        }
        if let (Some(base), Some(offset)) = (base.as_f64(), offset.as_f64()) {
            let against = base.is_infinite() && offset.is_infinite() && (base > 0.0) == subtract;
            return Ok(match against {
                true => Target::Anything,
                false => Target::Float(if subtract { base - offset } else { base + offset }),
            });
        }
        if let (Datum::Numeric(base), Datum::Numeric(offset)) = (base, offset) {
            let infinite = |n: &Numeric| matches!(n, Numeric::Infinity | Numeric::NegInfinity);
            if infinite(base) && infinite(offset) && (base.signum() > 0) == subtract {
                return Ok(Target::Anything);
            }
            let sum = if subtract { base.sub(offset) } else { base.add(offset) };
            return Ok(Target::Value(Datum::numeric(sum)));
        }
        let op = if subtract { Op::Sub } else { Op::Add };
        Ok(Target::Value(operators::binary(op, base, offset, &CxHost { cx })?))
    }

    /// The order of a value and the target.
    fn compare_to(&self, value: &Datum) -> Result<Ordering> {
        Ok(match self {
            Target::Integer(t) => i128::from(value.as_i64().unwrap_or(0)).cmp(t),
            Target::Float(t) => compare(&Datum::Float8(value.as_f64().unwrap_or(0.0)), &Datum::Float8(*t)),
            // NaN is behind every number.
            Target::Anything if is_nan(value) => Ordering::Greater,
            Target::Anything => Ordering::Equal,
            Target::Value(t) => compare(value, t),
        })
    }
}
