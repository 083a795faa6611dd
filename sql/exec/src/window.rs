//! Window functions: the rows of a level are sorted by partition and order, and each partition is computed as a whole. A stage
//! whose functions need no row after the last peer is computed row by row instead (`running`).
//!
//! # Structure
//! [`Partition`] has the rows of one partition and their groups of peers, `frame` has the frames of the rows, and the functions here
//! compute one value for each row (PLN-8).
//!
//! # Invariants
//! - WND-1: what a partition keeps for each of its rows (the rows, their groups, arguments of a function, values) is in lists that go to temporary files beyond what the statement may
//!   have, so a partition may have any number of rows.

use super::frame::{Edges, Frames, Segments};
use super::host::CxHost;
use super::numbered::{NumberedRows, NumberedValues};
use super::running::Running;
use super::sort::{KeyedRows, Sorter, put};
use super::{Cx, Row};
use clearway_base::breath;
use clearway_base::memory::{Held, Kind};
use clearway_planner::plan::{SortKey, StageCall, WindowStage};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::Bound;
use clearway_values::expr::accumulate::{Accumulator, order_of};
use clearway_values::expr::aggregate::AggregateCall;
use clearway_values::expr::window::WindowFunction;
use clearway_values::types::Datum;
use std::ops::Range;

/// The rows of one partition, in the order of the stage.
pub struct Partition<'a> {
    rows: NumberedRows,
    /// For each group of peers the number of its first row, and the values of ORDER BY of that row.
    groups: NumberedRows,
    /// (descending, nulls first) of ORDER BY.
    pub by: &'a [(bool, bool)],
    /// What it has in memory, and how much that may be.
    held: Held,
    most: i64,
}

/// A row of a partition.
pub struct At {
    /// Its number.
    pub row: usize,
    /// The number of its group of peers, and their rows.
    pub group: usize,
    pub peers: Range<usize>,
}

impl<'a> Partition<'a> {
    fn new(by: &'a [(bool, bool)], cx: Cx<'_>) -> Partition<'a> {
        let most = i64::try_from(cx.work_bytes()).unwrap_or(i64::MAX);
        let (rows, groups) = (NumberedRows::default(), NumberedRows::default());
        Partition { rows, groups, by, held: Held::new(Kind::Sort), most }
    }

    /// Adds a row; `order`: the values of ORDER BY of one that begins a group.
    async fn push(&mut self, row: Row, order: Option<&[Datum]>, cx: Cx<'_>) -> Result<()> {
        if let Some(order) = order {
            let mut group = Vec::with_capacity(1 + order.len());
            group.push(Datum::Int8(self.rows.len() as i64));
            group.extend_from_slice(order);
            self.groups.push(group, cx, (&mut self.held, self.most)).await?;
        }
        self.rows.push(row, cx, (&mut self.held, self.most)).await
    }

    /// It has all of its rows.
    async fn end(&mut self) -> Result<()> {
        self.rows.end().await?;
        self.groups.end().await
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many groups of peers it has.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The number of the first row of a group; of the one behind the last, where the partition ends.
    pub async fn group_start(&mut self, group: usize) -> Result<usize> {
        if group == self.groups.len() {
            return Ok(self.rows.len());
        }
        let start = self.groups.get(group).await?.first().and_then(Datum::as_i64);
        start.and_then(|start| usize::try_from(start).ok()).ok_or_else(|| SqlError::internal("a group without a row"))
    }

    /// The values of ORDER BY of a group.
    pub async fn order(&mut self, group: usize) -> Result<&[Datum]> {
        Ok(&self.groups.get(group).await?[1..])
    }

    /// The first row.
    async fn begin(&mut self) -> Result<At> {
        Ok(At { row: 0, group: 0, peers: 0..self.group_start(1).await? })
    }

    /// Goes to the next row, which there is.
    async fn go_on(&mut self, at: &mut At) -> Result<()> {
        at.row += 1;
        if at.row == at.peers.end && at.row < self.len() {
            at.group += 1;
            at.peers = at.row..self.group_start(at.group + 1).await?;
        }
        Ok(())
    }
}

/// The order that a stage wants of its rows.
pub fn sort_keys(stage: &WindowStage) -> Vec<SortKey> {
    let partition = stage.partition.iter();
    let partition = partition.map(|e| SortKey { expr: e.clone(), descending: false, nulls_first: false });
    partition.chain(stage.order.iter().cloned()).collect()
}

/// Where the rows of a stage go, with what that has of the statement's memory.
pub type Next<'n, 's> = (&'n mut Sorter<'s>, &'n mut Held);

/// The relation of a row to the row before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is a peer.
    Peer,
    /// It begins a group of peers.
    Group,
    /// It begins a partition.
    Partition,
}

/// Computes the functions of a stage for rows in its order (`sort_keys`), which go on in that order.
pub async fn computed(
    stage: &WindowStage,
    mut rows: KeyedRows,
    width: usize,
    next: Next<'_, '_>,
    cx: Cx<'_>,
) -> Result<()> {
    let keys = stage.partition.len();
    let mut by = vec![(false, false); keys];
    by.extend(stage.order.iter().map(|k| (k.descending, k.nulls_first)));
    let step = |last: &[Datum], this: &[Datum]| {
        if order_of(&last[..keys], &this[..keys], &by).is_ne() {
            Step::Partition
        } else if order_of(&last[keys..], &this[keys..], &by[keys..]).is_ne() {
            Step::Group
        } else {
            Step::Peer
        }
    };
    if let Some(running) = Running::new(stage, width) {
        return running.computed(rows, step, next, cx).await;
    }
    let frames = frames_of(stage, cx).await?;
    let mut first = rows.next().await?;
    while let Some((mut last, row)) = first.take() {
        let mut partition = Partition::new(&by[keys..], cx);
        partition.push(row, Some(&last[keys..]), cx).await?;
        while let Some((key, row)) = rows.next().await? {
            cx.breathe().await?;
            let step = step(&last, &key);
            if step == Step::Partition {
                first = Some((key, row));
                break;
            }
            partition.push(row, (step == Step::Group).then_some(&key[keys..]), cx).await?;
            last = key;
        }
        partition.end().await?;
        let mut values = Vec::with_capacity(stage.calls.len());
        for (call, frames) in stage.calls.iter().zip(&frames) {
            values.push(compute(call, frames, &mut partition, width, cx).await?);
        }
        for n in 0..partition.len() {
            cx.breathe().await?;
            let mut row = partition.rows.take(n).await?;
            for (call, values) in stage.calls.iter().zip(&mut values) {
                put(&mut row, width + call.place, values.get(n).await?);
            }
            next.0.push(row, cx, next.1).await?;
        }
    }
    Ok(())
}

/// The frames of the calls of a stage; their offsets are evaluated once.
async fn frames_of(stage: &WindowStage, cx: Cx<'_>) -> Result<Vec<Frames>> {
    let mut out = Vec::new();
    for call in &stage.calls {
        out.push(Frames::new(call.frame.as_ref(), cx).await?);
    }
    Ok(out)
}

/// The arguments of a function for each row; `filter`: behind them, whether the row meets it.
async fn arguments(
    (args, filter): (&[Bound], Option<&Bound>),
    p: &mut Partition<'_>,
    width: usize,
    cx: Cx<'_>,
) -> Result<NumberedRows> {
    let mut out = NumberedRows::default();
    for n in 0..p.len() {
        cx.breathe().await?;
        let row = p.rows.get(n).await?;
        let taken = match filter {
            None => true,
            Some(e) => cx.value_with(e, row, &row[width..]).await?.as_bool() == Some(true),
        };
        let mut values = if taken { cx.values(args, row, &row[width..]).await? } else { Row::new() };
        values.extend(filter.map(|_| Datum::Bool(taken)));
        out.push(values, cx, (&mut p.held, p.most)).await?;
    }
    out.end().await?;
    Ok(out)
}

/// A value for each row.
async fn compute(
    call: &StageCall,
    frames: &Frames,
    p: &mut Partition<'_>,
    width: usize,
    cx: Cx<'_>,
) -> Result<NumberedValues> {
    use WindowFunction as F;
    let mut out = match &call.function {
        F::Aggregate(aggregate) => aggregated(aggregate, frames, p, width, cx).await?,
        F::RowNumber | F::Rank | F::DenseRank | F::PercentRank | F::CumeDist => ranks(&call.function, p, cx).await?,
        F::Ntile => {
            let mut args = arguments((&call.args, None), p, width, cx).await?;
            let buckets = args.get(0).await?.first().and_then(Datum::as_i64);
            ntile(buckets, p, cx).await?
        }
        F::Shifted(forward) => {
            let mut args = arguments((&call.args, None), p, width, cx).await?;
            shifted(&mut args, if *forward { 1 } else { -1 }, p, cx).await?
        }
        F::FirstValue | F::LastValue | F::NthValue => {
            let mut args = arguments((&call.args, None), p, width, cx).await?;
            let (mut out, mut at, mut edges) = (NumberedValues::default(), p.begin().await?, Edges::default());
            while at.row < p.len() {
                cx.breathe().await?;
                let frame = frames.of(&at, p, &mut edges, cx).await?;
                let value = framed(&call.function, &frame, &mut args, at.row).await?;
                out.push(value, cx, (&mut p.held, p.most)).await?;
                p.go_on(&mut at).await?;
            }
            out
        }
    };
    out.end().await?;
    Ok(out)
}

async fn ranks(function: &WindowFunction, p: &mut Partition<'_>, cx: Cx<'_>) -> Result<NumberedValues> {
    let n = p.len();
    let (mut out, mut at) = (NumberedValues::default(), p.begin().await?);
    while at.row < n {
        breath::step(64)?;
        let value = match function {
            WindowFunction::RowNumber => Datum::Int8(at.row as i64 + 1),
            WindowFunction::Rank => Datum::Int8(at.peers.start as i64 + 1),
            WindowFunction::DenseRank => Datum::Int8(at.group as i64 + 1),
            WindowFunction::PercentRank if n <= 1 => Datum::Float8(0.0),
            WindowFunction::PercentRank => Datum::Float8(at.peers.start as f64 / (n - 1) as f64),
            _ => Datum::Float8(at.peers.end as f64 / n as f64),
        };
        out.push(value, cx, (&mut p.held, p.most)).await?;
        p.go_on(&mut at).await?;
    }
    Ok(out)
}

async fn ntile(buckets: Option<i64>, p: &mut Partition<'_>, cx: Cx<'_>) -> Result<NumberedValues> {
    if buckets.is_some_and(|buckets| buckets <= 0) {
        return Err(SqlError::new("22014", "argument of ntile must be greater than zero"));
    }
    let n = p.len() as i64;
    let bucket = |row: i64, buckets: i64| {
        let (size, larger) = (n / buckets, n % buckets);
        let in_larger = larger * (size + 1);
        if row < in_larger { row / (size + 1) } else { larger + (row - in_larger) / size.max(1) }
    };
    let mut out = NumberedValues::default();
    for row in 0..n {
        breath::step(64)?;
        let value = buckets.map_or(Datum::Null, |buckets| Datum::Int4(bucket(row, buckets) as i32 + 1));
        out.push(value, cx, (&mut p.held, p.most)).await?;
    }
    Ok(out)
}

/// lag and lead.
async fn shifted(args: &mut NumberedRows, sign: i64, p: &mut Partition<'_>, cx: Cx<'_>) -> Result<NumberedValues> {
    let (mut out, n) = (NumberedValues::default(), args.len());
    for row in 0..n {
        breath::step(64)?;
        let mine = args.get(row).await?;
        let offset = match mine.get(1) {
            None => Some(1),
            Some(offset) => offset.as_i64(),
        };
        let target = offset.map(|offset| usize::try_from(row as i64 + sign * offset).ok().filter(|at| *at < n));
        let value = match target {
            None => Datum::Null,
            Some(None) => mine.get(2).cloned().unwrap_or(Datum::Null),
            Some(Some(at)) => args.get(at).await?[0].clone(),
        };
        out.push(value, cx, (&mut p.held, p.most)).await?;
    }
    Ok(out)
}

/// first_value, last_value, nth_value.
async fn framed(function: &WindowFunction, frame: &Segments, args: &mut NumberedRows, row: usize) -> Result<Datum> {
    let at = match function {
        WindowFunction::FirstValue => frame.nth(0),
        WindowFunction::LastValue => frame.last(),
        _ => match args.get(row).await?.get(1).and_then(Datum::as_i64) {
            None => None,
            Some(n) if n <= 0 => {
                return Err(SqlError::new("22016", "argument of nth_value must be greater than zero"));
            }
            Some(n) => frame.nth(n as usize - 1),
        },
    };
    match at {
        None => Ok(Datum::Null),
        Some(at) => Ok(args.get(at).await?[0].clone()),
    }
}

/// The rows of a frame enter an aggregate, or leave it; false: it can't take one of them back.
async fn account(
    running: &mut Accumulator,
    (args, is_filtered): (&mut NumberedRows, bool),
    (range, enters): (Range<usize>, bool),
    host: &CxHost<'_>,
) -> Result<bool> {
    for n in range {
        breath::step(breath::ROW)?;
        let mut row = &args.get(n).await?[..];
        if is_filtered {
            let (taken, others) = row.split_last().ok_or_else(|| SqlError::internal("a row without its mark"))?;
            if taken.as_bool() != Some(true) {
                continue;
            }
            row = others;
        }
        if enters {
            running.add(row, host)?;
        } else if !running.remove(row, host)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An aggregate over the frames of a partition: rows that enter a frame are added, those that leave are taken back where the aggregate can
/// do that; else it begins again.
async fn aggregated(
    call: &AggregateCall,
    frames: &Frames,
    p: &mut Partition<'_>,
    width: usize,
    cx: Cx<'_>,
) -> Result<NumberedValues> {
    let filter = call.filter.as_ref();
    let mut args = arguments((&call.args, filter), p, width, cx).await?;
    let (host, is_filtered) = (CxHost { cx }, filter.is_some());
    let (mut out, mut at, mut edges) = (NumberedValues::default(), p.begin().await?, Edges::default());
    let mut running = Accumulator::new(call);
    let mut held = Segments::empty();
    while at.row < p.len() {
        cx.breathe().await?;
        let frame = frames.of(&at, p, &mut edges, cx).await?;
        let same = out.last().filter(|_| at.row > 0 && frame == held).cloned();
        let value = match same {
            Some(value) => value,
            None => {
                let mut done = false;
                if let (Some(old), Some(new)) = (held.whole(), frame.whole())
                    && new.start >= old.start
                    && new.end >= old.end
                    && new.start <= old.end
                {
                    done =
                        account(&mut running, (&mut args, is_filtered), (old.start..new.start, false), &host).await?;
                    if done {
                        account(&mut running, (&mut args, is_filtered), (old.end..new.end, true), &host).await?;
                    }
                }
                if !done {
                    running = Accumulator::new(call);
                    for range in frame.ranges() {
                        account(&mut running, (&mut args, is_filtered), (range, true), &host).await?;
                    }
                }
                held = frame;
                running.finish(&[])?
            }
        };
        out.push(value, cx, (&mut p.held, p.most)).await?;
        p.go_on(&mut at).await?;
    }
    Ok(out)
}
