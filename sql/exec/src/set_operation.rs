//! UNION, INTERSECT and EXCEPT. UNION gives the rows of one side and then those of the other, each row once unless ALL is given.
//! INTERSECT and EXCEPT count the rows of the right side, and then compare each row of the left side with the counts.
//!
//! # Life of a right side that does not fit its memory (`Cx::hash_bytes`)
//! Its rows are counted -> the counts exceed it -> the counted rows and all that follow go into files chosen by the row's hash ->
//! the left side is divided in the same way -> each pair of files is processed by itself. A right file that does not fit is divided
//! again, and its left file with it.

use super::distinct::FirstRows;
use super::external::Merge;
use super::keys::FoldState;
use super::parts::{LEVELS_MAX, PARTS, Parts};
use super::query::QueryRows;
use super::spill::{SpillReader, Spilled};
use super::{Cx, Row};
use clearway_base::memory::{Held, Kind};
use clearway_planner::explain::Method;
use clearway_planner::plan::Query;
use clearway_syntax::ast::SetOp;
use clearway_syntax::error::Result;
use clearway_values::types::Datum;
use std::collections::HashMap;
use std::sync::Arc;

/// Different rows that are kept in memory at least.
const ROWS_MIN: usize = 64;

/// Rows of a right side, each with its number.
struct Counts {
    rows: HashMap<Row, i64, FoldState>,
    held: Held,
}

/// A right side that is being counted.
struct Counting {
    counts: Counts,
    parts: Option<Parts>,
    level: u32,
}

impl Counting {
    fn new(level: u32) -> Self {
        let counts = Counts { rows: HashMap::default(), held: Held::new(Kind::SetOperation) };
        Self { counts, parts: None, level }
    }

    async fn add(&mut self, row: Row, count: i64, cx: Cx<'_>) -> Result<()> {
        if let Some(parts) = &mut self.parts {
            return parts.append(&row, &[Datum::Int8(count)], &row).await;
        }
        self.counts.held.resume();
        *self.counts.rows.entry(row).or_default() += count;
        self.counts.held.grow()?;
        let exceeds = self.counts.rows.len() >= ROWS_MIN && self.counts.held.exceeds(cx.hash_bytes() as i64);
        if exceeds && self.level < LEVELS_MAX {
            let mut parts = Parts::create(self.level, cx).await?;
            for (row, count) in std::mem::take(&mut self.counts.rows) {
                cx.breathe().await?;
                parts.append(&row, &[Datum::Int8(count)], &row).await?;
            }
            self.parts = Some(parts);
        }
        Ok(())
    }
}

/// The left rows that go with the counts at hand.
enum Left {
    Query(Box<QueryRows>),
    File(SpillReader),
    None,
}

/// Both sides of a part, still in files; how often their rows have been divided.
struct Pair {
    left: Spilled,
    right: Spilled,
    level: u32,
}

/// A set operation that is being read.
pub(super) struct SetRows {
    op: SetOp,
    all: bool,
    left: Left,
    right: Option<Box<QueryRows>>,
    counts: Option<Counts>,
    pairs: Vec<Pair>,
    first: FirstRows,
    /// Rows that were put aside, in the end.
    rest: Option<Box<Merge>>,
}

impl SetRows {
    /// Nothing has been read.
    pub fn new(op: SetOp, all: bool, left: &Arc<Query>, right: &Arc<Query>) -> Self {
        Self {
            op,
            all,
            left: Left::Query(Box::new(QueryRows::new(left.clone()))),
            right: Some(Box::new(QueryRows::new(right.clone()))),
            counts: None,
            pairs: Vec::new(),
            first: FirstRows::new(Kind::SetOperation),
            rest: None,
        }
    }

    /// How the different rows of a UNION were found.
    pub fn method(&self) -> Method {
        self.first.method()
    }

    /// The next row.
    pub async fn next(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        loop {
            cx.breathe().await?;
            if let Some(rest) = &mut self.rest {
                return Ok(rest.next().await?.map(|(_, row)| row));
            }
            let row = match self.op {
                SetOp::Union => self.either(cx).await?,
                SetOp::Intersect | SetOp::Except => self.judged(cx).await?,
            };
            match row {
                Some(row) if self.all || self.first.is_first(&row, None, cx).await? => return Ok(Some(row)),
                Some(_) => {}
                None => match self.first.rest(cx).await? {
                    Some(rest) => self.rest = Some(Box::new(rest)),
                    None => return Ok(None),
                },
            }
        }
    }

    /// The next row of the left side, then of the right one.
    async fn either(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        while let Left::Query(rows) = &mut self.left {
            if let Some(row) = rows.next(cx).await? {
                return Ok(Some(row));
            }
            self.left = self.right.take().map_or(Left::None, Left::Query);
        }
        Ok(None)
    }

    /// The next row of the left side that the right one has, or has not.
    async fn judged(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        if let Some(right) = self.right.take() {
            self.count(*right, cx).await?;
        }
        loop {
            cx.breathe().await?;
            let row = match &mut self.left {
                Left::Query(rows) => rows.next(cx).await?,
                Left::File(rows) => rows.next().await?,
                Left::None => return Ok(None),
            };
            let Some(row) = row else {
                self.left = self.next_pair(cx).await?;
                continue;
            };
            let found = match self.counts.as_mut().and_then(|counts| counts.rows.get_mut(&row)) {
                Some(count) if *count > 0 => {
                    *count -= i64::from(self.all);
                    true
                }
                _ => false,
            };
            if found == (self.op == SetOp::Intersect) {
                return Ok(Some(row));
            }
        }
    }

    /// Reads the right side; the left one too, if the right one does not fit.
    async fn count(&mut self, mut right: QueryRows, cx: Cx<'_>) -> Result<()> {
        let mut counting = Counting::new(0);
        while let Some(row) = right.next(cx).await? {
            cx.breathe().await?;
            counting.add(row, 1, cx).await?;
        }
        let Some(rights) = counting.parts else {
            self.counts = Some(counting.counts);
            return Ok(());
        };
        let mut lefts = Parts::create(0, cx).await?;
        if let Left::Query(rows) = &mut self.left {
            while let Some(row) = rows.next(cx).await? {
                cx.breathe().await?;
                lefts.append(&row, &row, &[]).await?;
            }
        }
        self.add_pairs(lefts, rights);
        self.left = self.next_pair(cx).await?;
        Ok(())
    }

    fn add_pairs(&mut self, lefts: Parts, rights: Parts) {
        let files = lefts.into_files().zip(rights.into_files());
        self.pairs.extend(files.map(|((left, level), (right, _))| Pair { left, right, level }));
    }

    /// Counts the right side of the next pair; gives the left one.
    async fn next_pair(&mut self, cx: Cx<'_>) -> Result<Left> {
        self.counts = None;
        while let Some(Pair { mut left, mut right, level }) = self.pairs.pop() {
            if left.rows() == 0 {
                continue;
            }
            let (block_bytes, mut counting) = (cx.hash_bytes() / PARTS, Counting::new(level));
            let end = right.end();
            let mut rows = right.reader(0..end, block_bytes).await?;
            while let Some(mut count) = rows.next().await? {
                cx.breathe().await?;
                let row = count.split_off(1.min(count.len()));
                let count = count.first().and_then(Datum::as_i64).unwrap_or(0);
                counting.add(row, count, cx).await?;
            }
            let end = left.end();
            let mut rows = left.reader(0..end, block_bytes).await?;
            let Some(rights) = counting.parts else {
                self.counts = Some(counting.counts);
                return Ok(Left::File(rows));
            };
            let mut lefts = Parts::create(level, cx).await?;
            while let Some(row) = rows.next().await? {
                cx.breathe().await?;
                lefts.append(&row, &row, &[]).await?;
            }
            self.add_pairs(lefts, rights);
        }
        Ok(Left::None)
    }
}
