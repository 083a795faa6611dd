//! A batch: rows of equal width in one list, which nodes hand to each other.

use super::Row;
use crate::error::{Result, SqlError};
use crate::types::Datum;

/// The most rows that a node is asked for at a time. The rows of a batch are in memory together, also while a client does not read.
pub const ROWS: usize = 64;

/// Rows.
#[derive(Default)]
pub struct Batch {
    values: Vec<Datum>,
    width: usize,
    rows: usize,
}

impl Batch {
    /// How many rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Drops all rows; the room stays.
    pub fn clear(&mut self) {
        self.values.clear();
        self.rows = 0;
    }

    /// A row.
    #[inline]
    pub fn row(&self, at: usize) -> &[Datum] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    /// The last row, of which there must be one.
    #[inline]
    pub fn last(&self) -> &[Datum] {
        self.row(self.rows - 1)
    }

    /// The list behind whose end a new row's values are put; `end` makes a row of them.
    #[inline]
    pub fn begin(&mut self) -> &mut Vec<Datum> {
        &mut self.values
    }

    /// What was put behind the last row is a row now. All rows are equally wide.
    #[inline]
    pub fn end(&mut self) {
        if self.rows == 0 {
            self.width = self.values.len();
        }
        self.rows += 1;
        assert_eq!(self.values.len(), self.rows * self.width, "rows of one batch have one width");
    }

    /// Adds a row that is made of two parts.
    #[inline]
    pub fn push(&mut self, left: &[Datum], right: &[Datum]) {
        self.values.extend_from_slice(left);
        self.values.extend_from_slice(right);
        self.end();
    }

    /// Adds a row: `left`, and nulls up to `end`.
    pub fn push_extended(&mut self, left: &[Datum], end: usize) {
        let from = self.values.len();
        self.values.extend_from_slice(left);
        self.values.resize(from + end, Datum::Null);
        self.end();
    }

    /// Drops the rows from this one on.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows * self.width);
        self.rows = rows;
    }

    /// What failed, if there are rows from `mark` on that go before it.
    ///
    /// # Errors
    /// The same if there are none.
    pub fn failed_behind(&mut self, mark: usize, filled: Result<()>) -> Result<Option<SqlError>> {
        let Err(failed) = filled else { return Ok(None) };
        // The values of half a row go.
        self.truncate(self.rows);
        if self.rows > mark { Ok(Some(failed)) } else { Err(failed) }
    }

    /// Puts a row at an earlier place, where the old one is no longer needed.
    pub fn put_at(&mut self, place: usize, row: usize) {
        if place < row {
            let (before, behind) = self.values.split_at_mut(row * self.width);
            before[place * self.width..(place + 1) * self.width].swap_with_slice(&mut behind[..self.width]);
        }
    }

    /// The row by itself; nulls are left in its place.
    pub fn take(&mut self, at: usize) -> Row {
        self.take_from(at, 0).collect()
    }

    /// The values of a row from a column on; nulls are left in their place.
    pub fn take_from(&mut self, at: usize, column: usize) -> impl ExactSizeIterator<Item = Datum> {
        let row = &mut self.values[at * self.width + column..(at + 1) * self.width];
        row.iter_mut().map(|v| std::mem::replace(v, Datum::Null))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rows: &[[i32; 2]]) -> Batch {
        let mut batch = Batch::default();
        rows.iter().for_each(|[a, b]| batch.push(&[Datum::Int4(*a)], &[Datum::Int4(*b)]));
        batch
    }

    #[test]
    fn rows_can_be_moved_forward_dropped_and_taken() {
        let mut rows = batch(&[[1, 2], [3, 4], [5, 6]]);
        rows.put_at(0, 2);
        rows.truncate(2);
        assert_eq!((rows.len(), rows.row(0)), (2, &[Datum::Int4(5), Datum::Int4(6)][..]));
        assert_eq!(rows.last(), &[Datum::Int4(3), Datum::Int4(4)][..]);
        assert_eq!(rows.take_from(0, 1).collect::<Row>(), vec![Datum::Int4(6)]);
        assert_eq!(rows.take(0), vec![Datum::Int4(5), Datum::Null]);
        rows.push_extended(&[Datum::Int4(7)], 2);
        assert_eq!(rows.last(), &[Datum::Int4(7), Datum::Null][..]);
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let mut rows = Batch::default();
        rows.push(&[], &[]);
        rows.push(&[], &[]);
        assert_eq!((rows.len(), rows.row(1).len()), (2, 0));
        rows.truncate(1);
        assert_eq!(rows.len(), 1);
    }

    #[test]
    #[should_panic(expected = "one width")]
    fn rows_of_another_width_are_refused() {
        batch(&[[1, 2]]).push(&[Datum::Null], &[]);
    }
}
