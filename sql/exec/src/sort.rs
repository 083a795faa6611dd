//! Sorts rows. Pieces of some hundred rows are sorted by the standard library and then merged two by two, so that a long sort has
//! breaths. Rows that exceed `work_mem` go to temporary files in sorted runs (`external`). If only the first rows are wanted, rows that
//! can't be among them are dropped on the way.

use super::external::{Merge, Runs};
use super::row_batch::Batch;
use super::{Cx, Row};
use clearway_base::breath;
use clearway_base::memory::Held;
use clearway_planner::plan::SortKey;
use clearway_syntax::error::Result;
use clearway_values::types::Datum;

pub use clearway_values::expr::accumulate::order_of;

/// Rows of a piece: some ten comparisons each.
const PIECE: usize = 256;
/// If more first rows than this are wanted, no rows are dropped on the way.
const FIRST_MAX: usize = 100_000;

/// Sorts rows by the values before them, stably.
///
/// # Errors
/// The reason for which the statement must end.
pub async fn sort_keyed(mut rows: Vec<(Row, Row)>, by: &[(bool, bool)]) -> Result<Vec<(Row, Row)>> {
    if by.is_empty() {
        return Ok(rows);
    }
    let order = |a: &(Row, Row), b: &(Row, Row)| order_of(&a.0, &b.0, by);
    for piece in rows.chunks_mut(PIECE) {
        breath::breathe(piece.len() as u32 * breath::ROW).await?;
        piece.sort_by(order);
    }
    let mut width = PIECE;
    while width < rows.len() {
        let mut merged = Vec::with_capacity(rows.len());
        let mut rest = rows.into_iter();
        while rest.len() > 0 {
            let mut left = rest.by_ref().take(width).collect::<Vec<_>>().into_iter().peekable();
            let mut right = rest.by_ref().take(width).collect::<Vec<_>>().into_iter().peekable();
            loop {
                breath::breathe(breath::ROW / 2).await?;
                let from_right = match (left.peek(), right.peek()) {
                    (Some(l), Some(r)) => order(l, r).is_gt(),
                    (None, Some(_)) => true,
                    (Some(_), None) => false,
                    (None, None) => break,
                };
                merged.extend(if from_right { right.next() } else { left.next() });
            }
        }
        rows = merged;
        width *= 2;
    }
    Ok(rows)
}

/// Rows on their way into an order.
pub struct Sorter<'a> {
    keys: &'a [SortKey],
    by: Vec<(bool, bool)>,
    /// Slots of a row before the values of aggregates and the like; none: it has nothing else.
    width: Option<usize>,
    /// Only so many first rows are asked for.
    first: Option<usize>,
    rows: Vec<(Row, Row)>,
    /// Sort values that a row must stay below to be among the first.
    bound: Option<Row>,
    key: Row,
    /// What did not fit the memory.
    runs: Option<Runs>,
    work_bytes: i64,
}

/// Rows in their order.
pub enum SortedRows {
    /// In memory.
    List(std::vec::IntoIter<Row>),
    /// In temporary files.
    Merged(Box<Merge>),
}

/// Rows in their order, each behind its sort values.
pub enum KeyedRows {
    /// In memory.
    List(std::vec::IntoIter<(Row, Row)>),
    /// In temporary files.
    Merged(Box<Merge>),
}

impl KeyedRows {
    /// The next one.
    pub async fn next(&mut self) -> Result<Option<(Row, Row)>> {
        match self {
            Self::List(rows) => Ok(rows.next()),
            Self::Merged(merge) => merge.next().await,
        }
    }
}

impl From<Vec<Row>> for SortedRows {
    fn from(rows: Vec<Row>) -> Self {
        Self::List(rows.into_iter())
    }
}

impl SortedRows {
    /// The next one.
    pub async fn next(&mut self) -> Result<Option<Row>> {
        match self {
            Self::List(rows) => Ok(rows.next()),
            Self::Merged(merge) => Ok(merge.next().await?.map(|(_, row)| row)),
        }
    }

    /// Those that are left.
    pub async fn all(mut self) -> Result<Vec<Row>> {
        match self {
            Self::List(rows) => Ok(rows.collect()),
            Self::Merged(_) => {
                let mut out = Vec::new();
                while let Some(row) = self.next().await? {
                    clearway_base::memory::check()?;
                    out.push(row);
                }
                Ok(out)
            }
        }
    }
}

impl<'a> Sorter<'a> {
    /// An empty one.
    pub fn new(keys: &'a [SortKey], width: Option<usize>, first: Option<usize>, cx: Cx<'_>) -> Self {
        let by = keys.iter().map(|k| (k.descending, k.nulls_first)).collect();
        let first = first.filter(|n| *n <= FIRST_MAX);
        let work_bytes = cx.work_bytes() as i64;
        Self { keys, by, width, first, rows: Vec::new(), bound: None, key: Row::new(), runs: None, work_bytes }
    }

    /// Takes a row out of a batch; `given`: only these slots of it.
    pub async fn push_of(
        &mut self,
        rows: &mut Batch,
        at: usize,
        given: Option<&[usize]>,
        cx: Cx<'_>,
        held: &mut Held,
    ) -> Result<()> {
        if self.is_among(rows.row(at), cx).await? {
            let row = match given {
                // A slot may be given twice.
                Some(given) => given.iter().map(|slot| rows.row(at)[*slot].clone()).collect(),
                None => rows.take(at),
            };
            self.keep(row, cx, held).await?;
        }
        Ok(())
    }

    /// Takes a row.
    pub async fn push(&mut self, row: Row, cx: Cx<'_>, held: &mut Held) -> Result<()> {
        if self.is_among(&row, cx).await? {
            self.keep(row, cx, held).await?;
        }
        Ok(())
    }

    /// Whether a row may be among the first; its key is at hand then.
    async fn is_among(&mut self, row: &[Datum], cx: Cx<'_>) -> Result<bool> {
        self.key.clear();
        let values = self.width.and_then(|w| row.get(w..)).unwrap_or(&[]);
        for k in self.keys {
            self.key.push(cx.value_with(&k.expr, row, values).await?);
        }
        Ok(self.bound.as_ref().is_none_or(|bound| order_of(&self.key, bound, &self.by).is_lt()))
    }

    async fn keep(&mut self, row: Row, cx: Cx<'_>, held: &mut Held) -> Result<()> {
        self.rows.push((std::mem::take(&mut self.key), row));
        held.grow()?;
        if let Some(first) = self.first
            && self.rows.len() >= 2 * first + PIECE
        {
            self.keep_first(first).await?;
        }
        if held.bytes() > self.work_bytes && self.rows.len() >= PIECE {
            self.write_run(cx, held).await?;
        }
        Ok(())
    }

    /// Makes a run in a temporary file of the rows in memory.
    async fn write_run(&mut self, cx: Cx<'_>, held: &mut Held) -> Result<()> {
        let rows = sort_keyed(std::mem::take(&mut self.rows), &self.by).await?;
        let mut runs = match self.runs.take() {
            Some(runs) => runs,
            None => Runs::create(&self.by, cx).await?,
        };
        runs.add(rows).await?;
        self.runs = Some(runs);
        held.measure();
        Ok(())
    }

    async fn keep_first(&mut self, first: usize) -> Result<()> {
        self.rows = sort_keyed(std::mem::take(&mut self.rows), &self.by).await?;
        self.rows.truncate(first);
        self.bound = self.rows.last().map(|(key, _)| key.clone());
        Ok(())
    }

    /// The rows in their order.
    pub async fn finish(self, cx: Cx<'_>, held: &mut Held) -> Result<SortedRows> {
        Ok(match self.finish_keyed(cx, held).await? {
            KeyedRows::List(rows) => rows.map(|(_, row)| row).collect::<Vec<Row>>().into(),
            KeyedRows::Merged(merge) => SortedRows::Merged(merge),
        })
    }

    /// The rows in their order, with their sort values.
    pub async fn finish_keyed(mut self, cx: Cx<'_>, held: &mut Held) -> Result<KeyedRows> {
        if self.runs.is_some() && !self.rows.is_empty() {
            self.write_run(cx, held).await?;
        }
        if let Some(runs) = self.runs {
            return Ok(KeyedRows::Merged(Box::new(runs.merged().await?)));
        }
        if let Some(first) = self.first {
            self.keep_first(first).await?;
        } else {
            self.rows = sort_keyed(self.rows, &self.by).await?;
        }
        Ok(KeyedRows::List(self.rows.into_iter()))
    }
}

/// Rows in the order of sort keys.
///
/// # Errors
/// A key's.
pub async fn sorted(
    rows: Vec<Row>,
    sort: &[SortKey],
    width: Option<usize>,
    first: Option<usize>,
    cx: Cx<'_>,
    held: &mut Held,
) -> Result<SortedRows> {
    if sort.is_empty() {
        return Ok(rows.into());
    }
    let mut sorter = Sorter::new(sort, width, first, cx);
    for row in rows {
        cx.breathe().await?;
        sorter.push(row, cx, held).await?;
    }
    sorter.finish(cx, held).await
}

/// Puts a value behind the slots of a row.
pub fn put(row: &mut Row, at: usize, value: Datum) {
    if row.len() <= at {
        row.resize(at + 1, Datum::Null);
    }
    row[at] = value;
}
