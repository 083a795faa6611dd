//! Filling a new index from its table: the entries are sorted (runs.rs) and loaded bottom-up, with one log record for each page.
//!
//! # Life of a build
//! ```text
//! scan -> entries gather in runs, which go to a temporary file where memory does not suffice
//!      -> merged in the order of their keys -> loaded into the empty tree (storage/src/btree/bulk.rs)
//! ```
//!
//! # Invariants
//! - BLD-1: the transaction that fills the tree has created it, and the caller's lock keeps writers away from the table. So no other
//!   transaction sees a loaded entry before the commit, and undoing the creation of the tree removes all entries (BTR-14).
//! - BLD-2: loaded entries are settled, so every snapshot would see them. A snapshot that is older than the rows does not read the index,
//!   because of the index's `valid_from_lsn` (DB-2).
//! - BLD-3: two entries with the same key of a unique index are neighbours in the merge. So a duplicate is never loaded unnoticed.
//! - BLD-4: of a row only the columns are read on which its entry depends (`IndexShape::reads`); the others are null in what the entry is made of.
//!
//! # Crash safety
//! Each page of the load is one structure record. A crash before the commit leaves a tree that the undo of its creation drops. The commit
//! record follows the records of all pages in the log, so once it is durable the whole index is there.

use std::sync::Arc;

use clearway_base::sync::yield_now;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::seams::BoxFuture;

use super::Session;
use super::runs::{BREATH_ENTRIES, FREE, RUN_BYTES, Runs};
use crate::error::EngineError;
use crate::table::pick::Picker;
use crate::table::shape::{IndexShape, TableShape};
use crate::table::write::duplicate_entry;
use crate::value::Value;

impl Session {
    /// Fills a new index from the newest rows of its table. The caller holds a lock that keeps writers away from the table, and the open
    /// transaction has created the index (BLD-1).
    ///
    /// # Errors
    /// `Duplicate`.
    pub fn build_index<'a>(
        &'a mut self,
        shape: &'a Arc<TableShape>,
        index: usize,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(self.build_index_by_runs(shape, index, RUN_BYTES))
    }

    /// As [`Session::build_index`], with runs of at most `run_bytes`.
    ///
    /// # Errors
    /// `Duplicate`.
    pub async fn build_index_by_runs(
        &mut self,
        shape: &Arc<TableShape>,
        index: usize,
        run_bytes: usize,
    ) -> Result<(), EngineError> {
        let all = self.db.transactions();
        let snapshot = self.reader.begin(|| all.visible_lsn());
        let built = self.sort_into(shape, &shape.indexes[index], run_bytes).await;
        self.reader.end(snapshot);
        built
    }

    async fn sort_into(
        &mut self,
        shape: &Arc<TableShape>,
        index: &IndexShape,
        run_bytes: usize,
    ) -> Result<(), EngineError> {
        let read_lsn = self.db.transactions().visible_lsn();
        let view = self.txn().view(read_lsn);
        let mut runs = Runs::new(self.db.transactions().store().temp_files(), self.database, run_bytes);
        let mut scan = self.scan(shape, KeyRange::all(), Direction::Forward, &view);
        let known = self.db.statistics().of(shape.oid).map_or(0, |counted| counted.rows);
        self.progress.phase("building index: scanning table", known);
        // BLD-4
        let picker = Picker::new(shape, index.reads());
        let (mut row, mut prefix) = (vec![Value::Null; shape.columns.len()], Vec::new());
        while self.fill(&mut scan).await? {
            let Some((key, value)) = scan.buffered() else { break };
            self.progress.add(1);
            picker.read(shape, key, value, &mut |column, value| row[column] = value.into())?;
            if index.is_plain() {
                prefix.clear();
                index.prefix_into(&row, &mut prefix);
                runs.push_entry(&prefix, key, index.constrains(&row)).await?;
            } else if let Some(entry) = index.entry_of(&row)? {
                runs.push_entry(&entry.prefix, key, entry.constrained).await?;
            }
        }
        let scanned = self.progress.shown().map_or(0, |shown| shown.done);
        self.progress.phase("building index: sorting live tuples", scanned);
        let mut load = index.entries(self.db.transactions()).bulk_load();
        let (mut merged, mut last, mut count) = (runs.merged().await?, Vec::new(), 0u64);
        self.progress.phase("building index: loading tuples in tree", scanned);
        while let Some(entry) = merged.next().await? {
            count += 1;
            if count.is_multiple_of(BREATH_ENTRIES) {
                self.progress.reach(count);
                yield_now().await;
            }
            if entry.prefix != FREE {
                // BLD-3
                let unique = usize::from(entry.prefix);
                if last.len() >= unique && last[..unique] == entry.key[..unique] {
                    let key = index.row_key(entry.key)?.to_vec();
                    let row = match self.find(shape, &view, &key).await? {
                        Some(value) => shape.row(&key, value)?,
                        None => Vec::new(),
                    };
                    return Err(duplicate_entry(index).of_row(&row));
                }
                last.clear();
                last.extend_from_slice(entry.key);
            }
            load.push(entry.key, &[]).await?;
        }
        load.finish().await?;
        Ok(())
    }
}
