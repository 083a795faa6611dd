//! Iterators over the rows of a range of keys, from either end.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow, RangeBounds};

use clearway_engine::embedded::{Columns, Direction, Error as TableError, Key, Table, Txn};

use crate::error::{Error, Result};

/// Rows of the first batch; each further one is twice as long.
const FIRST_ROWS: usize = 16;
/// Rows of the longest batch.
const BATCH_ROWS: usize = 512;

/// Rows in the order of their keys, from the front and from the back: see [`range`](super::ReadTxn::range). After an error there are no more.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// let squares = db.table::<i64, i64>("squares", &["n"], &["square"])?;
/// db.transact(|t| (1..=9).try_for_each(|n| t.put(&squares, &n, &(n * n))))?;
/// db.read(|t| {
///     let mut rows = t.range(&squares, 2..=8);
///     assert_eq!(rows.next().transpose()?, Some((2, 4)));
///     assert_eq!(rows.next_back().transpose()?, Some((8, 64)));
///     assert_eq!(rows.count(), 5);
///     Ok::<_, clearway::Error>(())
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct Rows<'a, 't, 's, K, V> {
    txn: &'a mut Txn<'t, 's>,
    table: Table<K, V>,
    /// What has not been read yet lies between these.
    from: Bound<K>,
    to: Bound<K>,
    /// Read from the front: ascending.
    front: VecDeque<(K, V)>,
    /// Read from the back: descending.
    back: VecDeque<(K, V)>,
    batch: usize,
    /// Nothing is left between `from` and `to`.
    ended: bool,
    /// A key of the range that could not be copied.
    failed: Option<Error>,
}

/// A key anew; none if its type does not read what it writes.
fn copy<K: Key>(key: &K) -> Option<K> {
    let mut values = Vec::new();
    key.write(&mut values);
    K::read(&values)
}

fn bound<K: Key>(bound: Bound<&K>) -> Option<Bound<K>> {
    Some(match bound {
        Bound::Included(key) => Bound::Included(copy(key)?),
        Bound::Excluded(key) => Bound::Excluded(copy(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

impl<'a, 't, 's, K: Key, V: Columns> Rows<'a, 't, 's, K, V> {
    pub(super) fn new(
        txn: &'a mut Txn<'t, 's>,
        table: &Table<K, V>,
        range: &impl RangeBounds<K>,
    ) -> Rows<'a, 't, 's, K, V> {
        let (from, to) = (bound(range.start_bound()), bound(range.end_bound()));
        let failed = (from.is_none() || to.is_none()).then(|| unreadable(table));
        Rows {
            txn,
            table: table.clone(),
            from: from.unwrap_or(Bound::Unbounded),
            to: to.unwrap_or(Bound::Unbounded),
            front: VecDeque::new(),
            back: VecDeque::new(),
            batch: FIRST_ROWS,
            ended: failed.is_some(),
            failed,
        }
    }

    /// Reads the next batch from one end.
    fn fill(&mut self, direction: Direction) -> Result<()> {
        let mut rows = VecDeque::with_capacity(self.batch);
        let wanted = self.batch;
        let range = (self.from.as_ref(), self.to.as_ref());
        let read = self.txn.scan(&self.table, Between(range), direction, |key, value| {
            rows.push_back((key, value));
            if rows.len() < wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        // No row is given after an error.
        self.ended = rows.len() < wanted || read.is_err();
        read?;
        self.batch = (2 * self.batch).min(BATCH_ROWS);
        if let Some((last, _)) = rows.back() {
            let last = copy(last).ok_or_else(|| unreadable(&self.table));
            self.ended |= last.is_err();
            match direction {
                Direction::Forward => self.from = Bound::Excluded(last?),
                Direction::Backward => self.to = Bound::Excluded(last?),
            }
        }
        match direction {
            Direction::Forward => self.front = rows,
            Direction::Backward => self.back = rows,
        }
        Ok(())
    }

    fn failed(&mut self, error: Error) -> Option<Result<(K, V)>> {
        self.ended = true;
        self.front.clear();
        self.back.clear();
        Some(Err(error))
    }
}

fn unreadable<K: Key, V: Columns>(table: &Table<K, V>) -> Error {
    TableError::Value { table: table.name().to_owned() }.into()
}

/// A pair of bounds of references as a range.
struct Between<'k, K>((Bound<&'k K>, Bound<&'k K>));

impl<K> RangeBounds<K> for Between<'_, K> {
    fn start_bound(&self) -> Bound<&K> {
        self.0.0
    }
    fn end_bound(&self) -> Bound<&K> {
        self.0.1
    }
}

impl<K: Key, V: Columns> Iterator for Rows<'_, '_, '_, K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        if self.front.is_empty()
            && !self.ended
            && let Err(error) = self.fill(Direction::Forward)
        {
            return self.failed(error);
        }
        self.front.pop_front().or_else(|| self.back.pop_back()).map(Ok)
    }
}

impl<K: Key, V: Columns> DoubleEndedIterator for Rows<'_, '_, '_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        if self.back.is_empty()
            && !self.ended
            && let Err(error) = self.fill(Direction::Backward)
        {
            return self.failed(error);
        }
        self.back.pop_front().or_else(|| self.front.pop_back()).map(Ok)
    }
}
