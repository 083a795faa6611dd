//! The rows of a table move to another tree, by another key: ADD PRIMARY KEY, and the drop of one.
//!
//! # Life of a rewrite
//! ```text
//! scan of the old tree -> rows in the order of the new key    -> loaded as they come
//!                      -> a row out of that order: `Unordered`; the caller goes back and asks for `Rows::Sorted`
//! Rows::Sorted: rows gather in runs (runs.rs), are merged in the order of the new key, and loaded
//!               rows too long for a leaf, which a run does not hold -> inserted by a second scan
//! at last each index is built from the new tree (build.rs)
//! ```
//!
//! # Invariants
//! - RWR-1: the transaction has created the new tree, and the caller's lock keeps all other transactions away from the table (LOD-1).
//! - RWR-2: two rows with the same new key are neighbours in the merge, or the second one is too long for a leaf and meets the first in the
//!   tree. So a duplicate is never loaded unnoticed.
//!
//! # Crash safety
//! As for a load (txn/src/transaction/load.rs): until the commit, the undo of the new tree's creation drops it.

use std::sync::Arc;

use clearway_base::sync::yield_now;
use clearway_storage::btree::{Direction, KEY_BYTES_MAX, KeyRange, Tree};
use clearway_storage::seams::BoxFuture;
use clearway_txn::transaction::load::Load;

use super::Session;
use super::load::Loading;
use super::runs::{BREATH_ENTRIES, Merged, RUN_BYTES, Runs};
use crate::error::EngineError;
use crate::table::recode::Recoder;
use crate::table::scan::TableScan;
use crate::table::shape::TableShape;
use crate::table::write;

/// How the rows of the old tree are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// As they come, which has to be the order of the new key.
    AsTheyCome,
    /// Sorted in runs of at most so many bytes.
    Sorted(usize),
}

impl Rows {
    /// Sorted in runs of the usual size.
    pub const SORTED: Rows = Rows::Sorted(RUN_BYTES);
}

/// The outcome of a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// All rows stand in the new tree, and in its indexes.
    Done,
    /// The rows do not come in the order of the new key. The caller goes back to a mark before the tree was created.
    Unordered,
    /// A row has a null in this column of the new key.
    Null(usize),
}

impl Session {
    /// Moves the newest rows of `old` to the trees of `new`, which are empty (RWR-1).
    ///
    /// # Errors
    /// `Duplicate`.
    pub fn rewrite<'a>(
        &'a mut self,
        old: &'a Arc<TableShape>,
        new: &'a Arc<TableShape>,
        rows: Rows,
    ) -> BoxFuture<'a, Result<Rewritten, EngineError>> {
        Box::pin(self.rewrite_rows(old, new, rows))
    }

    async fn rewrite_rows(
        &mut self,
        old: &Arc<TableShape>,
        new: &Arc<TableShape>,
        rows: Rows,
    ) -> Result<Rewritten, EngineError> {
        let all = self.db.transactions();
        let snapshot = self.reader.begin(|| all.visible_lsn());
        let moved = match rows {
            Rows::AsTheyCome => self.move_as_they_come(old, new).await,
            Rows::Sorted(run_bytes) => self.move_sorted(old, new, run_bytes).await,
        };
        self.reader.end(snapshot);
        let moved = moved?;
        if moved != Rewritten::Done {
            return Ok(moved);
        }
        for index in 0..new.indexes.len() {
            self.build_index(new, index).await?;
        }
        Ok(Rewritten::Done)
    }

    fn all_of(&self, shape: &Arc<TableShape>) -> TableScan {
        let read_lsn = self.db.transactions().visible_lsn();
        let view = self.txn.as_ref().expect("a transaction is open").view(read_lsn);
        self.scan(shape, KeyRange::all(), Direction::Forward, &view)
    }

    async fn move_as_they_come(
        &mut self,
        old: &Arc<TableShape>,
        new: &Arc<TableShape>,
    ) -> Result<Rewritten, EngineError> {
        let (mut scan, recoder) = (self.all_of(old), Recoder::new(old, new));
        let (mut loading, mut count, mut row, mut bytes) = (Loading::rows_alone(), 0u64, Vec::new(), Vec::new());
        while self.fill(&mut scan).await? {
            let Some((key, value)) = scan.buffered() else { break };
            count += 1;
            if count.is_multiple_of(BREATH_ENTRIES) {
                yield_now().await;
            }
            if let Some(recoder) = &recoder
                && let Some(middle) = self.recode(recoder, new, (key, value), &mut bytes)
            {
                let (key, value) = bytes.split_at(middle);
                let is_loaded = Session::load_at_once(&mut loading, key, value)?;
                if !is_loaded && !self.load_behind(&mut loading, new, key, value).await? {
                    return Ok(Rewritten::Unordered);
                }
                continue;
            }
            old.row_into(key, value, &mut row)?;
            if let Some(column) = new.key.iter().find(|c| row[**c].is_null()) {
                return Ok(Rewritten::Null(*column));
            }
            if !self.insert_in_order(&mut loading, new, &row).await.map_err(|e| e.of_row(&row))? {
                return Ok(Rewritten::Unordered);
            }
        }
        self.end_loading(&mut loading, new).await?;
        Ok(Rewritten::Done)
    }

    /// The row under its new key, if that takes neither a wait nor its values: where its value begins in `bytes`.
    #[inline]
    fn recode(
        &mut self,
        recoder: &Recoder,
        new: &TableShape,
        (key, value): (&[u8], &[u8]),
        bytes: &mut Vec<u8>,
    ) -> Option<usize> {
        bytes.clear();
        if new.has_row_id() {
            bytes.extend_from_slice(&self.row_ids.peek(new.tree)?);
        }
        let middle = recoder.write(key, value, bytes)?;
        if new.has_row_id() {
            self.row_ids.next_now(new.tree);
        }
        Some(middle)
    }

    async fn move_sorted(
        &mut self,
        old: &Arc<TableShape>,
        new: &Arc<TableShape>,
        run_bytes: usize,
    ) -> Result<Rewritten, EngineError> {
        let mut scan = self.all_of(old);
        let mut runs = Runs::new(self.db.transactions().store().temp_files(), self.database, run_bytes);
        let (recoder, mut long, mut row, mut bytes) = (Recoder::new(old, new), false, Vec::new(), Vec::new());
        while self.fill(&mut scan).await? {
            let Some((key, value)) = scan.buffered() else { break };
            let recoded = recoder.as_ref().and_then(|recoder| self.recode(recoder, new, (key, value), &mut bytes));
            let middle = match recoded {
                Some(middle) => middle,
                None => {
                    old.row_into(key, value, &mut row)?;
                    if let Some(column) = new.key.iter().find(|c| row[**c].is_null()) {
                        return Ok(Rewritten::Null(*column));
                    }
                    bytes = self.new_key(new, &row).await?;
                    let middle = bytes.len();
                    new.value_into(&row, &mut bytes);
                    middle
                }
            };
            let (key, value) = bytes.split_at(middle);
            match is_long(key, value) {
                true => long = true,
                false => runs.push_row(key, value).await?,
            }
        }
        self.put_rows(runs.merged().await?, new).await?;
        if long {
            self.move_long(old, new).await?;
        }
        Ok(Rewritten::Done)
    }

    /// Puts sorted rows into the new tree.
    async fn put_rows(&mut self, mut rows: Merged, new: &TableShape) -> Result<(), EngineError> {
        let tree = new.rows(self.db.transactions()).clone();
        let (mut load, mut count): (Option<Load>, u64) = (None, 0);
        let txn = self.txn.as_mut().expect("a transaction is open");
        while let Some(entry) = rows.next().await? {
            count += 1;
            if count.is_multiple_of(BREATH_ENTRIES) {
                yield_now().await;
            }
            match &mut load {
                // RWR-2: a row that is not taken has the key of the row before it.
                Some(load) => match load.takes(entry.key, entry.value.len()) {
                    true => txn.load_row(load, entry.key, entry.value).await?,
                    false => return Err(write::duplicate_key(new).of_row(&new.row(entry.key, entry.value)?)),
                },
                None => {
                    write::insert_value(txn, new, entry.key, entry.value).await?;
                    load = Some(txn.begin_load(&tree, entry.key.to_vec()));
                }
            }
        }
        if let Some(load) = load {
            txn.end_load(load).await?;
        }
        Ok(())
    }

    /// Inserts the rows whose values are too long for a leaf.
    async fn move_long(&mut self, old: &Arc<TableShape>, new: &Arc<TableShape>) -> Result<(), EngineError> {
        let mut scan = self.all_of(old);
        let mut count = 0u64;
        while let Some(found) = self.next(&mut scan).await? {
            count += 1;
            if count.is_multiple_of(BREATH_ENTRIES) {
                yield_now().await;
            }
            let (key, value) = (self.new_key(new, &found.row).await?, new.value_of(&found.row));
            if is_long(&key, &value) {
                let inserted = write::insert_value(self.txn(), new, &key, &value).await;
                inserted.map_err(|e| e.of_row(&found.row))?;
            }
        }
        Ok(())
    }
}

fn is_long(key: &[u8], value: &[u8]) -> bool {
    key.len() > KEY_BYTES_MAX || value.len() > Tree::inline_max(key.len())
}
