//! Sorts rows. Pieces of some hundred rows are sorted by the standard library and then merged two by two, so that a long sort has
//! breaths. Rows that exceed `work_mem` go to temporary files in sorted runs (`external`). If only the first rows are wanted, rows that
//! can't be among them are dropped on the way.
//!
//! # Invariants
//! - EXE-26: a row in a sorter has its sort values behind its own values. It is given without them.

use super::external::{Merge, Runs};
use super::measure::{Place, place};
use super::row_batch::Batch;
use super::{Cx, Row};
use clearway_base::breath;
use clearway_base::memory::Held;
use clearway_planner::explain::{Method, Step};
use clearway_planner::plan::SortKey;
use clearway_planner::walk;
use clearway_syntax::error::Result;
use clearway_values::types::Datum;
use std::cmp::Ordering;

pub use clearway_values::expr::accumulate::order_of;

/// Rows of a piece: some ten comparisons each.
const PIECE: usize = 256;
/// If more first rows than this are wanted, no rows are dropped on the way.
const FIRST_MAX: usize = 100_000;

/// Sorts rows by the values before them, stably.
///
/// # Errors
/// The reason for which the statement must end.
pub async fn sort_keyed(rows: Vec<(Row, Row)>, by: &[(bool, bool)]) -> Result<Vec<(Row, Row)>> {
    if by.is_empty() {
        return Ok(rows);
    }
    sort_in_pieces(rows, |a, b| order_of(&a.0, &b.0, by)).await
}

/// Sorts stably, with breaths.
///
/// # Errors
/// The reason for which the statement must end.
pub(super) async fn sort_in_pieces<T>(mut rows: Vec<T>, order: impl Fn(&T, &T) -> Ordering) -> Result<Vec<T>> {
    for piece in rows.chunks_mut(PIECE) {
        breath::breathe(piece.len() as u32 * breath::ROW).await?;
        piece.sort_by(&order);
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
    /// Some sort value has to be awaited.
    waits: bool,
    /// Where the first sort value stands in a row, if all of them stand there: nothing is to be computed, and nothing can fail.
    first_slot: Option<usize>,
    /// Each with its sort values behind it (EXE-26).
    rows: Vec<Row>,
    /// Sort values that a row must stay below to be among the first.
    bound: Option<Row>,
    key: Row,
    /// What did not fit the memory.
    runs: Option<Runs>,
    work_bytes: i64,
    /// How many rows it has taken.
    taken: u64,
    /// Where EXPLAIN ANALYZE shows how the rows were sorted.
    shown_at: Option<Place>,
}

/// Rows in their order.
pub enum SortedRows {
    /// In memory, each with so many sort values behind it.
    List(std::vec::IntoIter<Row>, usize),
    /// In temporary files.
    Merged(Box<Merge>),
}

/// Rows in their order, each behind its sort values.
pub enum KeyedRows {
    /// In memory, each with so many sort values behind it.
    List(std::vec::IntoIter<Row>, usize),
    /// In temporary files.
    Merged(Box<Merge>),
}

impl KeyedRows {
    /// The next one.
    pub async fn next(&mut self) -> Result<Option<(Row, Row)>> {
        match self {
            Self::List(rows, values) => Ok(rows.next().map(|row| apart(row, *values))),
            Self::Merged(merge) => merge.next().await,
        }
    }
}

impl From<Vec<Row>> for SortedRows {
    fn from(rows: Vec<Row>) -> Self {
        Self::List(rows.into_iter(), 0)
    }
}

impl SortedRows {
    /// The next one of those in memory.
    pub fn next_now(&mut self) -> Option<Row> {
        let Self::List(rows, values) = self else { return None };
        let mut row = rows.next()?;
        row.truncate(row.len() - *values);
        Some(row)
    }

    /// The next one.
    pub async fn next(&mut self) -> Result<Option<Row>> {
        match self {
            Self::List(..) => Ok(self.next_now()),
            Self::Merged(merge) => Ok(merge.next().await?.map(|(_, row)| row)),
        }
    }

    /// Those that are left.
    pub async fn all(mut self) -> Result<Vec<Row>> {
        match self {
            Self::List(rows, 0) => Ok(rows.collect()),
            Self::List(..) | Self::Merged(_) => {
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
        let waits = keys.iter().any(|k| k.expr.may_wait());
        let slots: Option<Vec<usize>> = keys.iter().map(|k| walk::slot(&k.expr)).collect();
        let first_slot = slots.and_then(|slots| slots.first().copied());
        Self {
            keys,
            by,
            width,
            first,
            waits,
            first_slot,
            rows: Vec::new(),
            bound: None,
            key: Row::new(),
            runs: None,
            work_bytes,
            taken: 0,
            shown_at: None,
        }
    }

    /// The same, shown by EXPLAIN ANALYZE as the sort of this number of what stands at an address.
    pub fn shown_as<T>(mut self, at: &T, number: usize) -> Self {
        self.shown_at = Some(place(at, Step::Sort(number)));
        self
    }

    /// How many rows it has taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes a row that is not among the first, as the first of its sort values says already; false: it is to be pushed.
    pub fn passes_over(&mut self, row: &[Datum]) -> bool {
        let (Some(bound), Some(slot)) = (&self.bound, self.first_slot) else { return false };
        let is_behind = order_of(&row[slot..=slot], &bound[..1], &self.by[..1]).is_gt();
        self.taken += u64::from(is_behind);
        is_behind
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
        self.taken += 1;
        match self.waits {
            true => self.compute(rows.row(at), cx).await?,
            false => self.compute_now(rows.row(at), cx)?,
        }
        if self.is_among() {
            let slots = given.map_or(rows.row(at).len(), <[usize]>::len);
            let mut row = Row::with_capacity(slots + self.key.len());
            match given {
                // A slot may be given twice.
                Some(given) => row.extend(given.iter().map(|slot| rows.row(at)[*slot].clone())),
                None => row.extend(rows.take_from(at, 0)),
            }
            if self.keep(row, held)? {
                self.shorten(cx, held).await?;
            }
        }
        Ok(())
    }

    /// Takes a row.
    pub async fn push(&mut self, row: Row, cx: Cx<'_>, held: &mut Held) -> Result<()> {
        self.taken += 1;
        match self.waits {
            true => self.compute(&row, cx).await?,
            false => self.compute_now(&row, cx)?,
        }
        if self.is_among() && self.keep(row, held)? {
            self.shorten(cx, held).await?;
        }
        Ok(())
    }

    /// Computes the sort values of a row.
    async fn compute(&mut self, row: &[Datum], cx: Cx<'_>) -> Result<()> {
        self.key.clear();
        let values = self.width.and_then(|w| row.get(w..)).unwrap_or(&[]);
        for k in self.keys {
            self.key.push(cx.value_with(&k.expr, row, values).await?);
        }
        Ok(())
    }

    /// The same where none has to be awaited.
    fn compute_now(&mut self, row: &[Datum], cx: Cx<'_>) -> Result<()> {
        self.key.clear();
        let values = self.width.and_then(|w| row.get(w..)).unwrap_or(&[]);
        for k in self.keys {
            self.key.push(cx.value_with_now(&k.expr, row, values)?);
        }
        Ok(())
    }

    /// Whether the row whose sort values were computed last may be among the first.
    fn is_among(&self) -> bool {
        self.bound.as_ref().is_none_or(|bound| order_of(&self.key, bound, &self.by).is_lt())
    }

    /// Keeps the row whose sort values were computed last; whether there are more rows now than there should be in memory.
    fn keep(&mut self, mut row: Row, held: &mut Held) -> Result<bool> {
        row.append(&mut self.key); // EXE-26
        self.rows.push(row);
        held.grow()?;
        let is_enough = self.first.is_some_and(|first| self.rows.len() >= 2 * first + PIECE);
        Ok(is_enough || self.rows.len() >= PIECE && held.exceeds(self.work_bytes))
    }

    /// Drops rows that are not among the first, and writes rows to a file where they exceed `work_mem` or their share.
    async fn shorten(&mut self, cx: Cx<'_>, held: &mut Held) -> Result<()> {
        if let Some(first) = self.first
            && self.rows.len() >= 2 * first + PIECE
        {
            self.keep_first(first).await?;
        }
        if self.rows.len() >= PIECE && held.exceeds(self.work_bytes) {
            self.write_run(cx, held).await?;
        }
        Ok(())
    }

    /// Makes a run in a temporary file of the rows in memory.
    async fn write_run(&mut self, cx: Cx<'_>, held: &mut Held) -> Result<()> {
        self.sort().await?;
        let mut runs = match self.runs.take() {
            Some(runs) => runs,
            None => Runs::create(&self.by, cx).await?,
        };
        let values = self.by.len();
        for row in std::mem::take(&mut self.rows) {
            breath::breathe(breath::ROW).await?;
            let (row, key) = row.split_at(row.len() - values);
            runs.append(key, row).await?;
        }
        runs.end_run();
        self.runs = Some(runs);
        held.measure();
        Ok(())
    }

    async fn keep_first(&mut self, first: usize) -> Result<()> {
        self.sort().await?;
        self.rows.truncate(first);
        self.bound = self.rows.last().map(|row| values_behind(row, self.by.len()).to_vec());
        Ok(())
    }

    /// How the rows are sorted, in PostgreSQL's words.
    fn method(&self, held: &Held) -> Method {
        let on_disk = self.runs.is_some();
        let bytes = self.runs.as_ref().map_or(held.bytes().max(0) as u64, Runs::bytes);
        let name = match (on_disk, &self.bound) {
            (true, _) => "external merge",
            (false, Some(_)) => "top-N heapsort",
            (false, None) => "quicksort",
        };
        Method::Sort { name, bytes, on_disk }
    }

    async fn sort(&mut self) -> Result<()> {
        let by = &self.by;
        if !by.is_empty() {
            let order = |a: &Row, b: &Row| order_of(values_behind(a, by.len()), values_behind(b, by.len()), by);
            self.rows = sort_in_pieces(std::mem::take(&mut self.rows), order).await?;
        }
        Ok(())
    }

    /// The rows in their order.
    pub async fn finish(self, cx: Cx<'_>, held: &mut Held) -> Result<SortedRows> {
        Ok(match self.finish_keyed(cx, held).await? {
            KeyedRows::List(rows, values) => SortedRows::List(rows, values),
            KeyedRows::Merged(merge) => SortedRows::Merged(merge),
        })
    }

    /// The rows in their order, with their sort values.
    pub async fn finish_keyed(mut self, cx: Cx<'_>, held: &mut Held) -> Result<KeyedRows> {
        if self.runs.is_some() && !self.rows.is_empty() {
            self.write_run(cx, held).await?;
        }
        if let Some(place) = self.shown_at.filter(|_| !self.keys.is_empty()) {
            cx.note_method(place, || self.method(held));
        }
        if let Some(runs) = self.runs {
            return Ok(KeyedRows::Merged(Box::new(runs.merged().await?)));
        }
        if let Some(first) = self.first {
            self.keep_first(first).await?;
        } else {
            self.sort().await?;
        }
        Ok(KeyedRows::List(self.rows.into_iter(), self.by.len()))
    }
}

/// The sort values of a row, of which there are so many (EXE-26).
fn values_behind(row: &[Datum], values: usize) -> &[Datum] {
    &row[row.len() - values..]
}

/// The sort values of a row, and the row without them.
fn apart(mut row: Row, values: usize) -> (Row, Row) {
    let key = row.split_off(row.len() - values);
    (key, row)
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
