//! Window functions: the rows of a level are sorted by partition and order, and each partition is computed as a whole, in memory. A stage
//! whose functions need no row after the last peer is computed row by row instead (`running`).
//!
//! # Structure
//! [`Partition`] has the rows of one partition and their groups of peers, `frame` has the frames of the rows, and the functions here
//! compute one value for each row (PLN-8).

use super::frame::{Frames, Segments};
use super::host::CxHost;
use super::running::Running;
use super::sort::{KeyedRows, Sorter, put};
use super::{Cx, Row};
use clearway_base::breath;
use clearway_base::memory::{Held, Kind};
use clearway_planner::plan::{SortKey, StageCall, WindowStage};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::accumulate::{Accumulator, order_of};
use clearway_values::expr::aggregate::AggregateCall;
use clearway_values::expr::window::WindowFunction;
use clearway_values::types::Datum;
use std::ops::Range;

/// Rows with their sort values, sorted: those of one partition.
pub struct Partition<'a> {
    /// Sort values, and the rows.
    pub rows: &'a mut [(Row, Row)],
    /// Values of PARTITION BY in front of each list of sort values.
    pub keys: usize,
    /// (descending, nulls first) of ORDER BY.
    pub by: &'a [(bool, bool)],
    /// Where each group of peers begins, and at last where the partition ends.
    pub groups: Vec<usize>,
    /// The group of each row.
    pub group_of: Vec<usize>,
}

impl Partition<'_> {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The peers of a row.
    pub fn peers(&self, row: usize) -> Range<usize> {
        let group = self.group_of[row];
        self.groups[group]..self.groups[group + 1]
    }

    /// The values of ORDER BY of a row.
    pub fn order(&self, row: usize) -> &[Datum] {
        &self.rows[row].0[self.keys..]
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
    while let Some(row) = first.take() {
        let mut held = Held::new(Kind::Sort);
        let (mut all, mut groups, mut group_of) = (vec![row], vec![0], vec![0]);
        while let Some(row) = rows.next().await? {
            cx.breathe().await?;
            let step = all.last().map_or(Step::Partition, |last| step(&last.0, &row.0));
            if step == Step::Partition {
                first = Some(row);
                break;
            }
            if step == Step::Group {
                groups.push(all.len());
            }
            group_of.push(groups.len() - 1);
            all.push(row);
            held.grow()?;
        }
        groups.push(all.len());
        let mut partition = Partition { rows: &mut all, keys, by: &by[keys..], groups, group_of };
        for (call, frames) in stage.calls.iter().zip(&frames) {
            compute(call, frames, &mut partition, width, cx).await?;
            held.grow()?;
        }
        for (_, row) in all {
            cx.breathe().await?;
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

/// The arguments of a function for each row.
async fn arguments(call: &StageCall, partition: &Partition<'_>, width: usize, cx: Cx<'_>) -> Result<Vec<Row>> {
    let mut out = Vec::with_capacity(partition.len());
    for (_, row) in partition.rows.iter() {
        cx.breathe().await?;
        out.push(cx.values(&call.args, row, &row[width..]).await?);
    }
    Ok(out)
}

async fn compute(
    call: &StageCall,
    frames: &Frames,
    partition: &mut Partition<'_>,
    width: usize,
    cx: Cx<'_>,
) -> Result<()> {
    use WindowFunction as F;
    let values = match &call.function {
        F::Aggregate(aggregate) => aggregated(aggregate, frames, partition, width, cx).await?,
        F::RowNumber | F::Rank | F::DenseRank | F::PercentRank | F::CumeDist => ranks(&call.function, partition)?,
        F::Ntile => {
            let args = arguments(call, partition, width, cx).await?;
            ntile(args.first().and_then(|a| a.first()).and_then(Datum::as_i64), partition.len())?
        }
        F::Shifted(forward) => {
            let args = arguments(call, partition, width, cx).await?;
            let sign = if *forward { 1 } else { -1 };
            shifted(&args, sign)?
        }
        F::FirstValue | F::LastValue | F::NthValue => {
            let args = arguments(call, partition, width, cx).await?;
            let mut out = Vec::with_capacity(args.len());
            for row in 0..args.len() {
                cx.breathe().await?;
                let frame = frames.of(row, partition, cx)?;
                out.push(framed(&call.function, &frame, &args, row)?);
            }
            out
        }
    };
    for ((_, row), value) in partition.rows.iter_mut().zip(values) {
        breath::step(64)?;
        put(row, width + call.place, value);
    }
    Ok(())
}

fn ranks(function: &WindowFunction, partition: &Partition<'_>) -> Result<Vec<Datum>> {
    let n = partition.len();
    let mut out = Vec::with_capacity(n);
    for row in 0..n {
        breath::step(64)?;
        let peers = partition.peers(row);
        out.push(match function {
            WindowFunction::RowNumber => Datum::Int8(row as i64 + 1),
            WindowFunction::Rank => Datum::Int8(peers.start as i64 + 1),
            WindowFunction::DenseRank => Datum::Int8(partition.group_of[row] as i64 + 1),
            WindowFunction::PercentRank if n <= 1 => Datum::Float8(0.0),
            WindowFunction::PercentRank => Datum::Float8(peers.start as f64 / (n - 1) as f64),
            _ => Datum::Float8(peers.end as f64 / n as f64),
        });
    }
    Ok(out)
}

fn ntile(buckets: Option<i64>, n: usize) -> Result<Vec<Datum>> {
    let Some(buckets) = buckets else { return Ok(vec![Datum::Null; n]) };
    if buckets <= 0 {
        return Err(SqlError::new("22014", "argument of ntile must be greater than zero"));
    }
    let (size, larger) = (n as i64 / buckets, n as i64 % buckets);
    let bucket = |row: i64| {
        let in_larger = larger * (size + 1);
        if row < in_larger { row / (size + 1) } else { larger + (row - in_larger) / size.max(1) }
    };
    Ok((0..n as i64).map(|row| Datum::Int4(bucket(row) as i32 + 1)).collect())
}

/// lag and lead.
fn shifted(args: &[Row], sign: i64) -> Result<Vec<Datum>> {
    let mut out = Vec::with_capacity(args.len());
    for (row, mine) in args.iter().enumerate() {
        breath::step(64)?;
        let offset = match mine.get(1) {
            None => Some(1),
            Some(offset) => offset.as_i64(),
        };
        let Some(offset) = offset else {
            out.push(Datum::Null);
            continue;
        };
        let target = usize::try_from(row as i64 + sign * offset).ok().and_then(|at| args.get(at));
        out.push(match target {
            Some(target) => target[0].clone(),
            None => mine.get(2).cloned().unwrap_or(Datum::Null),
        });
    }
    Ok(out)
}

/// first_value, last_value, nth_value.
fn framed(function: &WindowFunction, frame: &Segments, args: &[Row], row: usize) -> Result<Datum> {
    let at = match function {
        WindowFunction::FirstValue => frame.nth(0),
        WindowFunction::LastValue => frame.last(),
        _ => match args[row].get(1).and_then(Datum::as_i64) {
            None => None,
            Some(n) if n <= 0 => {
                return Err(SqlError::new("22016", "argument of nth_value must be greater than zero"));
            }
            Some(n) => frame.nth(n as usize - 1),
        },
    };
    Ok(at.map_or(Datum::Null, |at| args[at][0].clone()))
}

/// An aggregate over the frames of a partition: rows that enter a frame are added, those that leave are taken back where the aggregate can
/// do that; else it begins again.
async fn aggregated(
    call: &AggregateCall,
    frames: &Frames,
    partition: &Partition<'_>,
    width: usize,
    cx: Cx<'_>,
) -> Result<Vec<Datum>> {
    let mut args: Vec<Option<Row>> = Vec::with_capacity(partition.len());
    for (_, row) in partition.rows.iter() {
        cx.breathe().await?;
        let taken = match &call.filter {
            None => true,
            Some(e) => cx.value_with(e, row, &row[width..]).await?.as_bool() == Some(true),
        };
        args.push(if taken { Some(cx.values(&call.args, row, &row[width..]).await?) } else { None });
    }
    let host = CxHost { cx };
    let mut out: Vec<Datum> = Vec::with_capacity(args.len());
    let mut running = Accumulator::new(call);
    let mut held = Segments::empty();
    for row in 0..args.len() {
        cx.breathe().await?;
        let frame = frames.of(row, partition, cx)?;
        if row > 0 && frame == held {
            out.push(out[row - 1].clone());
            continue;
        }
        let add = |running: &mut Accumulator, range: Range<usize>| -> Result<()> {
            for row in args[range].iter().flatten() {
                breath::step(breath::ROW)?;
                running.add(row, &host)?;
            }
            Ok(())
        };
        let follows = match (held.whole(), frame.whole()) {
            (Some(old), Some(new)) => new.start >= old.start && new.end >= old.end && new.start <= old.end,
            _ => false,
        };
        let mut done = false;
        if let (true, Some(old), Some(new)) = (follows, held.whole(), frame.whole()) {
            done = true;
            for row in args[old.start..new.start].iter().flatten() {
                breath::step(breath::ROW)?;
                if !running.remove(row, &host)? {
                    done = false;
                    break;
                }
            }
            if done {
                add(&mut running, old.end..new.end)?;
            }
        }
        if !done {
            running = Accumulator::new(call);
            for range in frame.ranges() {
                add(&mut running, range)?;
            }
        }
        held = frame;
        out.push(running.finish(&[])?);
    }
    Ok(out)
}
