//! The entries that a change of one stored row moves in plain indexes: their keys, made from the row where it stands.
//!
//! # Invariants
//! - EMV-1: the key of an entry is what [`IndexShape::entry_of`] gives for the values of [`TableShape::row`], and the row's key behind it.
//!
//! # Not here
//! Indexes with expressions or a condition; entries that come to a unique index, for which the change may have to wait (TAB-2).

use crate::table::pick::Picker;
use crate::table::shape::{IndexShape, TableShape};
use crate::value::{Value, ValueRef};

/// How the keys of a row's entries in some indexes are made.
#[derive(Clone, Debug)]
pub struct EntryKeys {
    picker: Picker,
    /// The places of the indexes in the table's shape.
    indexes: Box<[usize]>,
}

impl EntryKeys {
    /// Those of the indexes that are wanted; the outer `None`: one of them is not plain, or is unique and gets entries; the inner one: none is wanted.
    pub fn of(
        shape: &TableShape,
        get_entries: bool,
        wanted: impl Fn(&IndexShape) -> bool,
    ) -> Option<Option<EntryKeys>> {
        let (mut indexes, mut columns) = (Vec::new(), Vec::new());
        for (at, index) in shape.indexes.iter().enumerate().filter(|(_, index)| wanted(index)) {
            if !index.is_plain() || index.unique && get_entries {
                return None;
            }
            indexes.push(at);
            columns.extend(index.reads());
        }
        if indexes.is_empty() {
            return Some(None);
        }
        Some(Some(EntryKeys { picker: Picker::new(shape, &columns), indexes: indexes.into() }))
    }
}

/// An entry that goes, one that comes, or both; an empty key is none.
#[derive(Debug, Default)]
pub(crate) struct EntryMove {
    /// The index's place in the table's shape.
    pub(crate) index: usize,
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
}

/// The moves of one change, in memory that changes use one after the other.
#[derive(Debug, Default)]
pub struct EntryMoves {
    moves: Vec<EntryMove>,
    count: usize,
    values: Vec<Value>,
}

impl EntryMoves {
    /// No entries move.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// The entries of a row go. False: its bytes are damaged.
    pub fn go(&mut self, keys: &EntryKeys, shape: &TableShape, (key, value): (&[u8], &[u8])) -> bool {
        self.begin(keys);
        self.make(keys, shape, (key, value), |entry| &mut entry.old)
    }

    /// The entries of a row come, beside those that go, if `go` was called before with the same keys.
    pub fn come(&mut self, keys: &EntryKeys, shape: &TableShape, (key, value): (&[u8], &[u8])) -> bool {
        if self.count == 0 {
            self.begin(keys);
        }
        self.make(keys, shape, (key, value), |entry| &mut entry.new)
    }

    /// Those that are not left where they are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &EntryMove> {
        self.moves[..self.count].iter().filter(|entry| entry.old != entry.new)
    }

    fn begin(&mut self, keys: &EntryKeys) {
        self.count = keys.indexes.len();
        if self.moves.len() < self.count {
            self.moves.resize_with(self.count, EntryMove::default);
        }
        for (entry, index) in self.moves.iter_mut().zip(&keys.indexes) {
            entry.index = *index;
            entry.old.clear();
            entry.new.clear();
        }
    }

    fn make(
        &mut self,
        keys: &EntryKeys,
        shape: &TableShape,
        (key, value): (&[u8], &[u8]),
        part: impl Fn(&mut EntryMove) -> &mut Vec<u8>,
    ) -> bool {
        let values = &mut self.values;
        values.clear();
        values.resize(shape.columns.len(), Value::Null);
        let put = &mut |column: usize, value: ValueRef<'_>| values[column] = value.into();
        if keys.picker.read(shape, key, value, put).is_err() {
            return false;
        }
        // EMV-1
        for entry in &mut self.moves[..self.count] {
            let index = &shape.indexes[entry.index];
            let out = part(entry);
            index.prefix_into(&self.values, out);
            out.extend_from_slice(key);
        }
        true
    }
}
