//! A batch: rows of equal width in one list, which nodes hand to each other.
//!
//! # Invariants
//! - RWB-1: the slots that [`Batch::slots`] gives hold nulls, or values that the same writer has put into slots for another row.

use super::Row;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::Datum;

/// The most rows that a node is asked for at a time. The rows of a batch are in memory together, also while a client does not read.
pub const ROWS: usize = 64;

/// Rows.
#[derive(Default)]
pub struct Batch {
    /// The rows, and behind them the slots of rows that were dropped.
    values: Vec<Datum>,
    width: usize,
    rows: usize,
    /// The number of the writer that put values into the slots behind the last row (RWB-1); zero: any may have.
    writer: usize,
}

/// Whether an error is the statement's, whatever row was at hand: it was stopped, it has no memory or no files, or something is damaged. Any other
/// error, one that a function raises too, is of the row on which it was met, which is more than `change::is_of_a_row` counts.
fn ends_all(error: &SqlError) -> bool {
    let code = error.code();
    ["53", "57", "58", "XX", "25P03", "55P03"].iter().any(|of_all| code.starts_with(of_all))
}

impl Batch {
    /// How many rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Drops all rows; the room stays, and the values until others take their slots.
    pub fn clear(&mut self) {
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
        self.values.truncate(self.rows * self.width);
        self.writer = 0;
        &mut self.values
    }

    /// The slots of a new row, of which the writer fills the same ones each time (RWB-1); `add` makes a row of them. So a row of many
    /// slots, few of which are filled, costs only those.
    #[inline]
    pub fn slots(&mut self, width: usize, writer: usize) -> &mut [Datum] {
        if self.writer != writer || self.rows == 0 && self.width != width {
            self.values.truncate(self.rows * self.width);
            self.writer = writer;
        }
        if self.rows == 0 {
            self.width = width;
        }
        assert_eq!(self.width, width, "rows of one batch have one width");
        let from = self.rows * width;
        if self.values.len() < from + width {
            self.values.resize(from + width, Datum::Null);
        }
        &mut self.values[from..from + width]
    }

    /// What was put into the new row's slots is a row now.
    #[inline]
    pub fn add(&mut self) {
        self.rows += 1;
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
        let values = self.begin();
        values.extend_from_slice(left);
        values.extend_from_slice(right);
        self.end();
    }

    /// Adds a row: `left`, and these columns of another one.
    pub fn push_columns(&mut self, left: &[Datum], right: &[Datum], columns: &[usize]) {
        let values = self.begin();
        values.extend_from_slice(left);
        values.extend(columns.iter().map(|column| right[*column].clone()));
        self.end();
    }

    /// Adds a row that no other node needs.
    #[inline]
    pub fn push_owned(&mut self, row: Row) {
        self.begin().extend(row);
        self.end();
    }

    /// Adds a row: `left`, and nulls up to `end`.
    pub fn push_extended(&mut self, left: &[Datum], end: usize) {
        let values = self.begin();
        let from = values.len();
        values.extend_from_slice(left);
        values.resize(from + end, Datum::Null);
        self.end();
    }

    /// Drops the rows from this one on.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = rows;
    }

    /// What failed, if there are rows from `mark` on that go before it, and it is an error of another row, for which no consumer may ask.
    ///
    /// # Errors
    /// The same if there are none, and what ends the statement.
    pub fn failed_behind(&mut self, mark: usize, filled: Result<()>) -> Result<Option<SqlError>> {
        let Err(failed) = filled else { return Ok(None) };
        if self.rows > mark && !ends_all(&failed) { Ok(Some(failed)) } else { Err(failed) }
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

    /// The values of a row in these columns; nulls are left in their place.
    pub fn take_columns<'b>(&'b mut self, at: usize, columns: &'b [usize]) -> impl ExactSizeIterator<Item = Datum> {
        let row = &mut self.values[at * self.width..(at + 1) * self.width];
        columns.iter().map(|column| std::mem::replace(&mut row[*column], Datum::Null))
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
    fn slots_hold_nulls_or_what_the_same_writer_put_there() {
        let mut rows = Batch::default();
        rows.slots(2, 1)[0] = Datum::Int4(1);
        rows.add();
        rows.slots(2, 1)[0] = Datum::Int4(2);
        assert_eq!((rows.len(), rows.row(0)), (1, &[Datum::Int4(1), Datum::Null][..]), "a row that was not added");
        rows.clear();
        assert_eq!(rows.slots(2, 1), &[Datum::Int4(1), Datum::Null], "its own value of another row (RWB-1)");
        assert_eq!(rows.slots(2, 2), &[Datum::Null, Datum::Null], "another writer (RWB-1)");
        rows.push(&[Datum::Int4(3)], &[Datum::Int4(4)]);
        rows.truncate(0);
        assert_eq!(rows.slots(2, 2), &[Datum::Null, Datum::Null], "what was pushed meanwhile (RWB-1)");
        assert_eq!(rows.slots(1, 2), &[Datum::Null], "rows of another width");
        rows.add();
        rows.begin().push(Datum::Int4(5));
        rows.end();
        assert_eq!((rows.len(), rows.last()), (2, &[Datum::Int4(5)][..]));
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
