//! Changes of many rows of a table by one statement: in runs where the rows come in the order of their keys (txn/src/transaction/run.rs), with
//! their index entries in sorted batches (table/batch.rs).

use clearway_txn::lockmgr::LockMode;
use clearway_txn::read::RowBatch;
use clearway_txn::transaction::{Basis, Change, RunChange};

use super::Session;
use crate::error::EngineError;
use crate::table::batch::{EntryBatch, StoredEntries};
use crate::table::shape::TableShape;
use crate::table::write;
use crate::value::{Value, ValueRef};

/// A row to be replaced by one with the same key.
pub struct Replaced<K> {
    /// Its key.
    pub key: K,
    /// The row that was read.
    pub old: Vec<Value>,
    /// The row in its place.
    pub new: Vec<Value>,
}

impl Session {
    /// Deletes rows from the first one on, until one of them has to be waited for, or was changed since it was read: that one is for
    /// [`Session::delete`]. Says how many were deleted. Their entries wait in `entries` (BAT-1). Of the values that a row had, those count on which its
    /// entries depend (`IndexShape::reads`).
    ///
    /// # Errors
    /// From the transaction.
    pub async fn delete_rows<K: AsRef<[u8]>, R: AsRef<[Value]>>(
        &mut self,
        entries: &mut EntryBatch,
        shape: &TableShape,
        rows: &[(K, R)],
        basis: Basis,
    ) -> Result<usize, EngineError> {
        let changes: Vec<RunChange<'_>> = rows
            .iter()
            .map(|(key, _)| RunChange { key: key.as_ref(), change: Change::Delete { moved_to: None } })
            .collect();
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut().expect("a transaction is open");
        let done = txn.change_run(tree, &changes, basis, true).await?;
        for (key, old) in &rows[..done] {
            for index in 0..shape.indexes.len() {
                entries.note(shape, index, key.as_ref(), old.as_ref(), false)?;
            }
            self.counted.note(self.db.statistics(), shape.oid);
        }
        self.used.deleted(shape.oid, done as u64);
        self.make_room(entries, shape).await?;
        Ok(done)
    }

    /// Deletes rows as [`Session::delete_rows`] does, from number `from` on: rows as they are stored, of a table whose indexes are all plain. So their entries are made
    /// without the values of the rows.
    ///
    /// # Errors
    /// From the transaction; `BadRow`.
    pub async fn delete_stored(
        &mut self,
        entries: &mut EntryBatch,
        shape: &TableShape,
        (rows, from): (&RowBatch, usize),
        basis: Basis,
    ) -> Result<usize, EngineError> {
        let change = Change::Delete { moved_to: None };
        let changes: Vec<RunChange<'_>> =
            (from..rows.len()).map(|n| RunChange { key: rows.get(n).0, change }).collect();
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut().expect("a transaction is open");
        let done = txn.change_run(tree, &changes, basis, true).await?;
        self.counted.note_many(self.db.statistics(), shape.oid, done as u64);
        if !shape.indexes.is_empty() {
            let (stored, mut columns) = (StoredEntries::of(shape), vec![ValueRef::Null; shape.columns.len()]);
            for n in from..from + done {
                entries.note_deleted((shape, &stored), rows.get(n), &mut columns)?;
            }
        }
        self.used.deleted(shape.oid, done as u64);
        self.make_room(entries, shape).await?;
        Ok(done)
    }

    /// Replaces rows by others with the same keys, as [`Session::delete_rows`] deletes them. With `over_own` also such as the transaction itself
    /// has written.
    ///
    /// # Errors
    /// `Duplicate`, with the number of the row; from the transaction.
    pub async fn update_rows<K: AsRef<[u8]>>(
        &mut self,
        entries: &mut EntryBatch,
        shape: &TableShape,
        rows: &[Replaced<K>],
        basis: Basis,
        over_own: bool,
    ) -> Result<usize, (usize, EngineError)> {
        for (n, row) in rows.iter().enumerate() {
            shape.check_fit(&row.new).map_err(|error| (n, error))?;
        }
        let values: Vec<Vec<u8>> = rows.iter().map(|row| shape.value_of(&row.new)).collect();
        let strength = |row: &Replaced<K>| match shape.changes_key(&row.old, &row.new) {
            true => LockMode::RowUpdate,
            false => LockMode::RowNoKeyUpdate,
        };
        let changes: Vec<RunChange<'_>> = rows
            .iter()
            .zip(&values)
            .map(|(row, value)| RunChange {
                key: row.key.as_ref(),
                change: Change::Update { value, strength: strength(row) },
            })
            .collect();
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut().expect("a transaction is open");
        let done = txn.change_run(tree, &changes, basis, over_own).await.map_err(|error| (0, error.into()))?;
        for (n, row) in rows[..done].iter().enumerate() {
            let mut in_place = true;
            for (place, index) in shape.indexes.iter().enumerate() {
                let touched = index.is_touched(&row.old, &row.new);
                in_place &= !touched;
                if !touched {
                    continue;
                }
                let entry = |row: &[Value]| index.entry_of(row).map_err(|e| (n, e));
                let (before, after) = (entry(&row.old)?, entry(&row.new)?);
                if before == after {
                    continue;
                }
                let key = row.key.as_ref();
                if index.unique {
                    // BAT-2
                    write::move_entry(txn, (shape, index), key, before, after).await.map_err(|e| (n, e))?;
                    continue;
                }
                for (entry, inserts) in [(before, false), (after, true)] {
                    entry.iter().for_each(|entry| entries.note_entry(shape, place, key, &entry.prefix, inserts));
                }
            }
            self.used.updated(shape.oid, in_place);
        }
        self.make_room(entries, shape).await.map_err(|error| (0, error))?;
        Ok(done)
    }

    /// The entries of further rows have room (BAT-5).
    pub(super) async fn make_room(&mut self, entries: &mut EntryBatch, shape: &TableShape) -> Result<(), EngineError> {
        let database = self.database;
        match &mut self.txn {
            Some(txn) if entries.is_full() => entries.make_room(txn, shape, database).await,
            _ => Ok(()),
        }
    }

    /// Changes the entries that wait (BAT-1).
    ///
    /// # Errors
    /// From the transaction.
    pub async fn apply_entries(&mut self, entries: &mut EntryBatch, shape: &TableShape) -> Result<(), EngineError> {
        match &mut self.txn {
            Some(txn) => entries.apply(txn, shape).await,
            None => Ok(()),
        }
    }
}
