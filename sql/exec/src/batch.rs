//! UPDATE and DELETE of many rows: rows are gathered, and then changed in batches (engine/src/session/batch.rs).
//!
//! # Life of a row
//! The row is read -> its new values are computed -> it is gathered -> it is changed in a batch -> its index entries wait for those of
//! the other rows.
//!
//! A row that the batch can't change (another transaction has locked it, or has changed it since it was read) is changed alone, as
//! without batches.
//!
//! # Invariants
//! - EXE-13: rows are changed in the order in which they were read. An error of one row is reported after the errors of the rows before
//!   it.
//! - EXE-14: a statement that sets a column of the primary key changes its rows one by one. So does a statement that calls a function
//!   written in SQL, since a volatile function reads what the statement has changed so far.

use super::change::{Changes, engine_row, is_of_a_row};
use super::convert::to_value;
use super::lock::{key_of, key_within};
use super::pending::Pending;
use super::{Cx, Row};
use clearway_context::errors::from_engine;
use clearway_engine::error::EngineError;
use clearway_engine::session::batch::Replaced;
use clearway_engine::table::batch::EntryBatch;
use clearway_engine::value::Value;
use clearway_planner::plan::{Delete, TableSlot, Target, Update};
use clearway_syntax::error::Result;
use clearway_txn::transaction::Basis;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::Datum;
use std::pin::pin;
use std::sync::Arc;

/// The number of rows that are gathered before they are changed.
const ROWS: usize = 256;

type Key = Arc<[u8]>;

/// The rows of an UPDATE.
#[derive(Default)]
pub(super) struct UpdateBatch {
    /// As they were read, and as they will be.
    rows: Vec<(Row, Row)>,
    replaced: Vec<Replaced<Key>>,
    entries: EntryBatch,
    /// Rows have been changed.
    changed: bool,
}

impl UpdateBatch {
    /// EXE-14
    pub(super) fn new(update: &Update) -> Option<UpdateBatch> {
        let shape = &update.target.table.shape;
        let generated = update.target.generated.iter().map(|(column, _)| column);
        let moves = !shape.has_row_id()
            && update.set.iter().map(|(column, _)| column).chain(generated).any(|c| shape.key.contains(c));
        let reads = update.set.iter().map(|(_, value)| value).chain(&update.filter).any(calls_sql);
        (!moves && !reads).then(UpdateBatch::default)
    }
}

/// Whether a function in SQL is called, which may read what the statement has changed.
pub(super) fn calls_sql(e: &Bound) -> bool {
    e.any(&|e| matches!(e.kind, BoundKind::Host { function, .. } if function.routine().is_some()))
}

/// The rows of a DELETE.
#[derive(Default)]
pub(super) struct DeleteBatch {
    /// The values of the rows, one row behind the other: a list for each row was a tenth of the statement.
    pub(super) values: Vec<Datum>,
    rows: usize,
    /// Those of which entries of indexes are made, as the engine has them.
    old: Vec<Value>,
    entries: EntryBatch,
}

/// The columns of which entries of indexes are made.
fn indexed_columns(table: &TableSlot) -> Vec<bool> {
    let mut indexed = vec![false; table.types.len()];
    table.shape.indexes.iter().flat_map(|index| index.reads()).for_each(|column| indexed[*column] = true);
    indexed
}

impl Cx<'_> {
    /// A row that is to be updated.
    pub(super) async fn update_soon(
        self,
        batch: &mut UpdateBatch,
        update: &Update,
        row: Row,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<()> {
        let new = match self.row_after(update, &row).await {
            Ok(new) => new,
            Err(error) => {
                // EXE-13
                if is_of_a_row(&error) {
                    self.end_updates(batch, update, pending, out).await?;
                }
                return Err(error);
            }
        };
        batch.rows.push((row, new));
        if batch.rows.len() >= ROWS { self.update_gathered(batch, update, pending, out).await } else { Ok(()) }
    }

    /// There are no more rows.
    pub(super) async fn end_updates(
        self,
        batch: &mut UpdateBatch,
        update: &Update,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<()> {
        if batch.rows.len() == 1 && !batch.changed {
            // The only row of a statement.
            let (row, new) = batch.rows.remove(0);
            return self.update_one(update, (row, Some(new)), pending, out).await;
        }
        if !batch.rows.is_empty() {
            self.update_gathered(batch, update, pending, out).await?;
        }
        self.apply_index_entries(&mut batch.entries, &update.target).await
    }

    /// The end of a batch: the changes of the indexes, each index at once.
    pub(super) async fn apply_index_entries(self, entries: &mut EntryBatch, target: &Target) -> Result<()> {
        let mut session = self.run.core.engine.take();
        let applied = session.apply_entries(entries, &target.table.shape);
        self.run.core.lock_wait(pin!(applied)).await.map_err(from_engine)
    }

    async fn update_gathered(
        self,
        batch: &mut UpdateBatch,
        update: &Update,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<()> {
        self.breathe().await?;
        batch.changed = true;
        batch.entries.stay_within(self.work_bytes());
        let target = &update.target;
        let (table, rows) = (&target.table, std::mem::take(&mut batch.rows));
        let range = table.base..table.base + table.types.len();
        batch.replaced.clear();
        for (row, new) in &rows {
            let (key, old) = (key_of(row, table)?, engine_row(&row[range.clone()]));
            batch.replaced.push(Replaced { key, old, new: engine_row(new) });
        }
        // What a foreign key asks of a row depends on whether the transaction had written it.
        let over_own = target.references.is_empty();
        let mut at = 0;
        let mut rows = rows.into_iter();
        while at < batch.replaced.len() {
            let done = {
                let mut session = self.run.core.engine.take();
                let (entries, left) = (&mut batch.entries, &batch.replaced[at..]);
                let change = async {
                    let basis = Basis::Read(self.run.view);
                    Ok::<_, EngineError>(session.update_rows(entries, &table.shape, left, basis, over_own).await)
                };
                self.run.core.lock_wait(pin!(change)).await.map_err(from_engine)?
            };
            let done = match done {
                Ok(done) => done,
                Err((n, error)) => {
                    // EXE-13
                    for (row, new) in rows.by_ref().take(n) {
                        self.was_updated(update, row, &new, out).await?;
                    }
                    let EngineError::Duplicate { index, oid, .. } = error else { return Err(from_engine(error)) };
                    let new = rows.next().map(|(_, new)| new).unwrap_or_default();
                    return Err(self.duplicate(target, &index, oid, &new));
                }
            };
            for (row, new) in rows.by_ref().take(done) {
                pending.updated(target, &row[range.clone()], &new, false)?;
                self.keep_small(pending).await?;
                out.count += 1;
                self.was_updated(update, row, &new, out).await?;
            }
            at += done;
            if let Some((row, new)) = rows.next() {
                self.update_one(update, (row, Some(new)), pending, out).await?;
                at += 1;
            }
        }
        Ok(())
    }

    /// The values from number `from` of the batch's on are a row that is to be deleted.
    pub(super) async fn delete_soon(
        self,
        batch: &mut DeleteBatch,
        delete: &Delete,
        from: usize,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<()> {
        batch.rows += 1;
        assert_eq!(batch.values.len() * (batch.rows - 1), from * batch.rows, "the rows of a table have one width");
        if batch.rows >= ROWS { self.delete_gathered(batch, delete, pending, out).await } else { Ok(()) }
    }

    /// There are no more rows.
    pub(super) async fn end_deletes(
        self,
        batch: &mut DeleteBatch,
        delete: &Delete,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<()> {
        if batch.rows == 1 && out.count == 0 {
            // The only row of a statement.
            batch.rows = 0;
            return self.delete_one(delete, std::mem::take(&mut batch.values), pending, out).await;
        }
        if batch.rows > 0 {
            self.delete_gathered(batch, delete, pending, out).await?;
        }
        self.apply_index_entries(&mut batch.entries, &delete.target).await
    }

    async fn delete_gathered(
        self,
        batch: &mut DeleteBatch,
        delete: &Delete,
        pending: &mut Pending,
        out: &mut Changes,
    ) -> Result<()> {
        self.breathe().await?;
        batch.entries.stay_within(self.work_bytes());
        let table = &delete.target.table;
        let (mut values, rows) = (std::mem::take(&mut batch.values), std::mem::take(&mut batch.rows));
        let (range, width) = (table.base..table.base + table.types.len(), values.len() / rows);
        batch.old.clear();
        let mut old_width = 0;
        if !table.shape.indexes.is_empty() {
            old_width = table.types.len();
            let indexed = indexed_columns(table);
            for row in values.chunks_exact(width) {
                let value = |(value, is): (&Datum, &bool)| if *is { to_value(value) } else { Value::Null };
                batch.old.extend(row[range.clone()].iter().zip(&indexed).map(value));
            }
        }
        let mut deleted = Vec::with_capacity(rows);
        for (n, row) in values.chunks_exact(width).enumerate() {
            deleted.push((key_within(row, table)?, &batch.old[n * old_width..(n + 1) * old_width]));
        }
        let (mut at, mut left) = (0, values.chunks_exact(width));
        while at < deleted.len() {
            let done = {
                let mut session = self.run.core.engine.take();
                let entries = &mut batch.entries;
                let change = session.delete_rows(entries, &table.shape, &deleted[at..], Basis::Read(self.run.view));
                self.run.core.lock_wait(pin!(change)).await.map_err(from_engine)?
            };
            for row in left.by_ref().take(done) {
                pending.deleted(&delete.target, &row[range.clone()])?;
                self.keep_small(pending).await?;
                out.count += 1;
                self.was_deleted(delete, row, out).await?;
            }
            at += done;
            if let Some(row) = left.next() {
                self.delete_one(delete, row.to_vec(), pending, out).await?;
                at += 1;
            }
        }
        values.clear();
        batch.values = values;
        Ok(())
    }
}
