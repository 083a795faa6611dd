//! Rows side by side in one buffer.

use clearway_storage::btree::{Direction, LeafCopy};

use crate::mvcc::record::UndoRecord;

/// How another transaction ended the row that a snapshot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownEnd {
    /// The version was replaced: by another one, or by one with another key.
    Updated,
    /// It was deleted.
    Deleted,
}

impl ShownEnd {
    pub(super) fn of(record: &UndoRecord) -> ShownEnd {
        if record.deletes && record.moved_to().is_none() { ShownEnd::Deleted } else { ShownEnd::Updated }
    }
}

/// Rows of one leaf, side by side in one buffer.
#[derive(Debug, Default)]
pub struct RowBatch {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<(usize, usize)>,
    /// Rows that only the snapshot shows, where the transaction has put another row (RDV-2), by their index.
    pub(super) shown: Vec<(usize, ShownEnd)>,
}

impl RowBatch {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Key and value of a row.
    #[inline]
    pub fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let (key_end, end) = self.ends[index];
        let from = if index == 0 { 0 } else { self.ends[index - 1].1 };
        (&self.bytes[from..key_end], &self.bytes[key_end..end])
    }

    /// Keys and values.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        (0..self.len()).map(|i| self.get(i))
    }

    /// For a row that only the snapshot shows, where the transaction has put another row (RDV-2): how it ended.
    #[inline]
    pub fn shown(&self, index: usize) -> Option<ShownEnd> {
        if self.shown.is_empty() {
            return None;
        }
        self.shown.iter().find(|(at, _)| *at == index).map(|(_, end)| *end)
    }

    /// Bytes of its keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory that it has.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(usize, usize)>()
    }

    /// Makes it empty.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    pub(super) fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.bytes.truncate(self.ends.last().map_or(0, |(_, end)| *end));
        self.shown.retain(|(at, _)| *at < rows);
    }

    /// Appends the rows of a leaf as they stand there, in the order of a walk.
    pub(super) fn push_leaf(&mut self, leaf: &LeafCopy, direction: Direction) {
        self.ends.reserve(leaf.len());
        match direction {
            Direction::Forward => leaf.iter().for_each(|(key, row)| self.push(key, row.value)),
            Direction::Backward => leaf.iter().rev().for_each(|(key, row)| self.push(key, row.value)),
        }
    }

    /// Appends a row.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }
}
