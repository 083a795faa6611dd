//! Sorting, with breaths: pieces that are short enough are sorted by the library, then merged two by two. Where only the first rows are
//! asked for, the others are dropped on the way.

use super::{Cx, Row};
use crate::error::Result;
use crate::planner::plan::SortKey;
use crate::types::Datum;
use clearway_base::breath;
use clearway_base::memory::Held;

pub use crate::expr::accumulate::order_of;

/// Rows of a piece: some ten comparisons each.
const PIECE: usize = 256;
/// So many first rows are worth dropping others for.
const FIRST_MAX: usize = 100_000;

/// Sorts rows by the values before them, stably.
///
/// # Errors
/// The reason for which the statement must end.
pub async fn sort_keyed(mut rows: Vec<(Row, Row)>, by: &[(bool, bool)]) -> Result<Vec<(Row, Row)>> {
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
}

impl<'a> Sorter<'a> {
    /// An empty one.
    pub fn new(keys: &'a [SortKey], width: Option<usize>, first: Option<usize>) -> Self {
        let by = keys.iter().map(|k| (k.descending, k.nulls_first)).collect();
        let first = first.filter(|n| *n <= FIRST_MAX);
        Self { keys, by, width, first, rows: Vec::new(), bound: None, key: Row::new() }
    }

    /// Takes a row.
    pub async fn push(&mut self, row: Row, cx: Cx<'_>, held: &mut Held) -> Result<()> {
        self.key.clear();
        let values = self.width.and_then(|w| row.get(w..)).unwrap_or(&[]);
        for k in self.keys {
            self.key.push(cx.value_with(&k.expr, &row, values).await?);
        }
        if let Some(bound) = &self.bound
            && order_of(&self.key, bound, &self.by).is_ge()
        {
            return Ok(());
        }
        self.rows.push((std::mem::take(&mut self.key), row));
        held.grow()?;
        if let Some(first) = self.first
            && self.rows.len() >= 2 * first + PIECE
        {
            self.keep_first(first).await?;
        }
        Ok(())
    }

    async fn keep_first(&mut self, first: usize) -> Result<()> {
        self.rows = sort_keyed(std::mem::take(&mut self.rows), &self.by).await?;
        self.rows.truncate(first);
        self.bound = self.rows.last().map(|(key, _)| key.clone());
        Ok(())
    }

    /// The rows in their order.
    pub async fn finish(mut self) -> Result<Vec<Row>> {
        if let Some(first) = self.first {
            self.keep_first(first).await?;
            return Ok(self.rows.into_iter().map(|(_, row)| row).collect());
        }
        Ok(sort_keyed(self.rows, &self.by).await?.into_iter().map(|(_, row)| row).collect())
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
) -> Result<Vec<Row>> {
    if sort.is_empty() {
        return Ok(rows);
    }
    let mut sorter = Sorter::new(sort, width, first);
    for row in rows {
        cx.breathe().await?;
        sorter.push(row, cx, held).await?;
    }
    sorter.finish().await
}

/// Puts a value behind the slots of a row.
pub fn put(row: &mut Row, at: usize, value: Datum) {
    if row.len() <= at {
        row.resize(at + 1, Datum::Null);
    }
    row[at] = value;
}
