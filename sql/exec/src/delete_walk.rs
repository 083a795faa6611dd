//! DELETE of the rows that a walk over their table finds: key and value of a row go to the engine as they are stored, without a list of the row's values.
//!
//! # Life of a row
//! The columns that the condition names are read where they stand -> the condition holds -> key and value are gathered -> at the end of a leaf, if there are enough
//! of them, all are deleted in runs, and their index entries are noted
//!
//! # Invariants
//! - DLW-1: what is deleted, and in which order, is what `Cx::delete` deletes with lists of values: a row that the engine leaves is taken apart and deleted alone, as there.
//! - DLW-2: a batch ends where a leaf ends. A second run in a leaf could not share the leaf's tag, so that each of its rows would get one of its own.
//!
//! # Not here
//! Statements that need the values of a row: RETURNING, foreign keys that lead to the table, indexes of expressions or with conditions; conditions that may wait;
//! walks by an index.

use super::change::Changes;
use super::int_filter::IntFilter;
use super::pending::Pending;
use super::row_batch::Batch;
use super::scan::{TableRows, append_row, append_walked, fill, key_slot, slots_of};
use super::{Cx, Row};
use clearway_base::usage::{self, Counted};
use clearway_context::errors::from_engine;
use clearway_engine::table::batch::EntryBatch;
use clearway_engine::table::scan::TableScan;
use clearway_planner::plan::{Access, Delete, Node, Scan};
use clearway_syntax::error::Result;
use clearway_txn::read::{RowBatch, ShownEnd};
use clearway_txn::transaction::Basis;
use clearway_values::expr::Bound;
use std::pin::pin;
use std::sync::Arc;

/// So many rows are looked at between two breaths.
const BURST: usize = 32;
/// Bytes of gathered rows from which on they are deleted at the end of a leaf.
const BYTES: usize = 128 << 10;

/// The rows of such a DELETE.
struct Walked<'d> {
    delete: &'d Delete,
    scan: &'d Scan,
    walk: Box<TableScan>,
    /// The filter, if it asks for integers alone.
    ints: Option<IntFilter>,
    slots: Batch,
    rows: RowBatch,
    entries: EntryBatch,
    out: Changes,
    pending: Pending,
}

/// What a look at the next rows came to.
enum Look {
    /// So many were looked at.
    Seen(usize),
    /// So many were looked at; the last one was only shown by the snapshot, and this is the row.
    Shown(usize, Row),
}

/// The scan of a statement of this kind.
fn scan_of(delete: &Delete) -> Option<&Scan> {
    let Node::Scan(scan) = &*delete.source else { return None };
    let target = &delete.target;
    let is_walk = matches!(scan.access, Access::Full | Access::KeyRange(_)) && scan.jump.is_none();
    let waits = scan.filter.as_ref().is_some_and(Bound::may_wait);
    let needs_values = delete.returning.is_some()
        || delete.filter.is_some()
        || !target.referrers.is_empty()
        || !target.table.shape.indexes.iter().all(|index| index.is_plain());
    (is_walk && !waits && !needs_values).then_some(scan)
}

impl Cx<'_> {
    /// Runs a DELETE of this kind; none: it is of another one, and nothing was done.
    pub(super) async fn delete_walked(self, delete: &Delete) -> Result<Option<Changes>> {
        match scan_of(delete) {
            // Made only where it runs: this future is large, and moving it to the heap took a seventh of the instructions of a DELETE of one row.
            Some(scan) => Box::pin(self.delete_by_walk(delete, scan)).await,
            None => Ok(None),
        }
    }

    async fn delete_by_walk(self, delete: &Delete, scan: &Scan) -> Result<Option<Changes>> {
        let TableRows::Table(walk) = self.open_scan(scan, &[]).await? else { return Ok(None) };
        let mut all = Walked {
            delete,
            scan,
            walk,
            ints: IntFilter::of(self, scan),
            slots: Batch::default(),
            rows: RowBatch::default(),
            entries: EntryBatch::default(),
            out: Changes::default(),
            pending: Pending::default(),
        };
        for turn in 0.. {
            match all.look_measured(self, turn == 0)? {
                Look::Seen(0) => {
                    // DLW-2
                    if all.rows.bytes() >= BYTES {
                        all.delete_gathered(self).await?;
                    }
                    if !all.read_ahead(self).await? {
                        break;
                    }
                }
                Look::Seen(seen) => self.breathe_for(seen).await?,
                Look::Shown(_, row) => {
                    all.delete_gathered(self).await?;
                    self.delete_one(delete, row, &mut all.pending, &mut all.out).await?;
                }
            }
        }
        all.end(self).await.map(Some)
    }
}

impl Walked<'_> {
    /// Gathers those of the next rows that have been read ahead and meet the condition.
    fn look(&mut self, cx: Cx<'_>) -> Result<Look> {
        let (scan, filter) = (self.scan, self.scan.filter.as_ref());
        let first = scan.judged_first.as_deref().map(|(first, _)| first).or(scan.wanted.as_ref());
        for seen in 0..BURST {
            let shown = self.walk.next_shown();
            let Some((key, value)) = self.walk.buffered() else { return Ok(Look::Seen(seen)) };
            let known = match &mut self.ints {
                Some(ints) => ints.holds(scan, key, value)?,
                None => None,
            };
            if known == Some(false) {
                continue;
            }
            if known.is_none() && filter.is_some() {
                let slots = slots_of(scan, &[], &mut self.slots);
                fill(scan, slots, |put| match first {
                    Some(picker) => picker.read(&scan.table.shape, key, value, put),
                    None => scan.table.shape.read(key, value, put),
                })?;
                if scan.wanted.is_none() && scan.judged_first.is_none() {
                    slots[scan.table.types.len()] = key_slot(key, shown);
                }
                if !cx.holds_now(filter, slots)? {
                    continue;
                }
            }
            if shown.is_some() {
                return shown_row(scan, (key, value), shown).map(|row| Look::Shown(seen + 1, row));
            }
            self.rows.push(key, value);
        }
        Ok(Look::Seen(BURST))
    }

    /// The same; where the statement is measured, as its scan is.
    fn look_measured(&mut self, cx: Cx<'_>, is_first: bool) -> Result<Look> {
        let Some(measured) = &cx.run.state.measured else { return self.look(cx) };
        let (began, before, gathered) = (measured.begin(), usage::of_thread(), self.rows.len());
        let look = self.look(cx)?;
        let (seen, shown) = match &look {
            Look::Seen(seen) => (*seen, 0),
            Look::Shown(seen, _) => (*seen, 1),
        };
        let gave = self.rows.len() - gathered + shown;
        measured.note(self.address(), is_first, (began, usage::of_thread() - before), gave);
        cx.note_judged(self.scan, seen - gave, 0);
        Ok(look)
    }

    /// Reads a leaf ahead; false: there are no more rows.
    async fn read_ahead(&mut self, cx: Cx<'_>) -> Result<bool> {
        let began = cx.step_begins();
        let mut session = cx.run.core.engine.take();
        let Some(measured) = &cx.run.state.measured else {
            return session.fill(&mut self.walk).await.map_err(from_engine);
        };
        let (filled, usage) = Counted::new(Box::pin(session.fill(&mut self.walk))).await;
        measured.note(self.address(), false, (began, usage), 0);
        filled.map_err(from_engine)
    }

    /// The address by which the scan is measured.
    fn address(&self) -> usize {
        Arc::as_ptr(&self.delete.source) as usize
    }

    /// Deletes the rows that were gathered.
    async fn delete_gathered(&mut self, cx: Cx<'_>) -> Result<()> {
        cx.run.core.limits.check_undo(cx.run.core)?;
        self.entries.stay_within(cx.work_bytes());
        let shape = &self.delete.target.table.shape;
        let mut at = 0;
        while at < self.rows.len() {
            let done = {
                let mut session = cx.run.core.engine.take();
                let (entries, rows) = (&mut self.entries, (&self.rows, at));
                let change = session.delete_stored(entries, shape, rows, Basis::Read(cx.run.view));
                cx.run.core.lock_wait(pin!(change)).await.map_err(from_engine)?
            };
            self.out.count += done as u64;
            at += done;
            if at < self.rows.len() {
                self.delete_alone(at, cx).await?;
                at += 1;
            }
        }
        self.rows.clear();
        Ok(())
    }

    /// DLW-1
    async fn delete_alone(&mut self, at: usize, cx: Cx<'_>) -> Result<()> {
        let (key, value) = self.rows.get(at);
        let mut row = Row::new();
        append_row(self.scan, key, value, &[], &mut row)?;
        cx.delete_one(self.delete, row, &mut self.pending, &mut self.out).await
    }

    /// There are no more rows.
    async fn end(mut self, cx: Cx<'_>) -> Result<Changes> {
        if self.rows.len() == 1 && self.out.count == 0 {
            // The only row of a statement.
            self.delete_alone(0, cx).await?;
            self.rows.clear();
        }
        self.delete_gathered(cx).await?;
        cx.apply_index_entries(&mut self.entries, &self.delete.target).await?;
        Ok(self.out)
    }
}

/// A row that only the snapshot shows.
fn shown_row(scan: &Scan, (key, value): (&[u8], &[u8]), shown: Option<ShownEnd>) -> Result<Row> {
    let mut row = Row::new();
    append_walked(scan, (key, value, shown), &[], &mut row)?;
    Ok(row)
}
