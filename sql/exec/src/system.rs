//! Reads the tables and views of the system: the rows that a scan asks for, behind the slots to their left.
//!
//! # Life of a scan
//! The condition that finds rows by a key, if there is one, is evaluated once -> the rows of those keys are built, or taken from the rows that the
//! statement has looked up before -> each row is compared with the keys, put behind the slots to its left, and judged by the other conditions.
//!
//! # Invariants
//! - SYV-1: rows that were looked up are given again within one execution only, whose version of the catalog does not change, and only those of
//!   tables that are made of nothing but that version.

use super::row_batch::Batch;
use super::{Cx, Keys, Row, SoughtRows, boxed};
use clearway_planner::plan::SystemScan;
use clearway_syntax::error::Result;
use clearway_values::expr::{Bound, BoundKind};
use clearway_values::types::{Datum, Oid};
use std::sync::Arc;

/// So many look-ups a statement keeps. A join looks up the same few types for the columns of all tables.
const LOOK_UPS: usize = 16;
/// A look-up with more rows is not kept.
const ROWS_KEPT: usize = 4;

/// Rows of a system table that were looked up by a number.
pub(super) struct LookUp {
    table: Oid,
    column: usize,
    number: Oid,
    rows: Arc<[Row]>,
}

/// A scan that has begun.
pub(super) struct SystemRows {
    rows: Left,
    /// The keys, which a row has to have; the condition that says so is at this place among those of the filter.
    sought: Option<(SoughtRows, usize)>,
    /// The filter must be awaited.
    waits: bool,
}

/// Rows that have still to be judged.
enum Left {
    Built(std::vec::IntoIter<Row>),
    Known(Arc<[Row]>, usize),
}

/// The conditions that a filter consists of.
fn conditions(filter: Option<&Bound>) -> &[Bound] {
    match filter {
        Some(Bound { kind: BoundKind::And(list), .. }) => list,
        Some(one) => std::slice::from_ref(one),
        None => &[],
    }
}

impl Cx<'_> {
    /// Begins a scan behind these slots.
    pub(super) async fn open_system(self, scan: &SystemScan, prefix: &[Datum]) -> Result<SystemRows> {
        if scan.view.shows_files()
            && let Some(configuration) = self.run.core.backends.configuration()
        {
            boxed(configuration.read_files()).await;
        }
        let all = conditions(scan.filter.as_ref());
        let sought = self.sought(scan, all, prefix).await?;
        let rows = self.rows_of(scan, sought.as_ref().map(|(rows, _)| rows), !prefix.is_empty()).await?;
        Ok(SystemRows { rows, sought, waits: all.iter().any(Bound::may_wait) })
    }

    async fn rows_of(self, scan: &SystemScan, sought: Option<&SoughtRows>, again: bool) -> Result<Left> {
        let (run, view) = (self.run, scan.view);
        let of_data = matches!(view.name, "pg_largeobject" | "pg_largeobject_metadata" | "pg_description");
        let number = sought.filter(|_| again && view.is_table() && !of_data).and_then(|sought| match &sought.keys {
            Keys::Oids(oids) => <[Oid; 1]>::try_from(oids.as_slice()).ok().map(|[number]| (sought.place, number)),
            Keys::Names(_) => None,
        });
        let (Some((column, number)), Some(kept)) = (number, &run.state.looked_up) else {
            let mut rows = run.views.rows(view, sought, run);
            if of_data {
                boxed(self.add_large_objects(view, sought, &mut rows)).await?;
            }
            return Ok(Left::Built(rows.into_iter()));
        };
        // SYV-1
        let is_it = |known: &&LookUp| (known.table, known.column, known.number) == (view.oid, column, number);
        if let Some(known) = kept.lock().iter().find(is_it) {
            return Ok(Left::Known(known.rows.clone(), 0));
        }
        let rows = run.views.rows(view, sought, run);
        if rows.len() > ROWS_KEPT {
            return Ok(Left::Built(rows.into_iter()));
        }
        let rows: Arc<[Row]> = rows.into();
        let mut kept = kept.lock();
        if kept.len() == LOOK_UPS {
            kept.remove(0);
        }
        kept.push(LookUp { table: view.oid, column, number, rows: rows.clone() });
        Ok(Left::Known(rows, 0))
    }

    /// Appends some `want` rows that meet the filter; false: there are no more. After an error `out` has the rows before it.
    pub(super) async fn read_system(
        self,
        rows: &mut SystemRows,
        scan: &SystemScan,
        prefix: &[Datum],
        want: usize,
        out: &mut Batch,
    ) -> Result<bool> {
        let enough = out.len() + want;
        while out.len() < enough {
            self.breathe().await?;
            match rows.put_next(scan, prefix, out) {
                None => return Ok(false),
                Some(false) => continue,
                Some(true) => {}
            }
            let mark = out.len();
            out.end();
            let judged = self.is_meant(rows, scan, out.last()).await;
            if !matches!(judged, Ok(true)) {
                out.truncate(mark);
            }
            judged?;
        }
        Ok(true)
    }

    /// Whether a row that has the keys meets the other conditions.
    async fn is_meant(self, rows: &SystemRows, scan: &SystemScan, row: &[Datum]) -> Result<bool> {
        let by_keys = rows.sought.as_ref().map(|(_, at)| *at);
        for (at, condition) in conditions(scan.filter.as_ref()).iter().enumerate() {
            if by_keys != Some(at) && !self.judge(Some(condition), rows.waits, row).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl SystemRows {
    /// Puts the slots of the next row behind the last row of a batch, if it has the keys; none: there is no row left.
    fn put_next(&mut self, scan: &SystemScan, prefix: &[Datum], out: &mut Batch) -> Option<bool> {
        let has_keys = |row: &Row| self.sought.as_ref().is_none_or(|(sought, _)| sought.keys.have(&row[sought.place]));
        match &mut self.rows {
            Left::Built(rows) => {
                let mut row = rows.next()?;
                if !has_keys(&row) {
                    return Some(false);
                }
                put(scan, prefix, row.len(), out, |at| std::mem::replace(&mut row[at], Datum::Null));
            }
            Left::Known(rows, next) => {
                let row = rows.get(*next)?;
                *next += 1;
                if !has_keys(row) {
                    return Some(false);
                }
                put(scan, prefix, row.len(), out, |at| row[at].clone());
            }
        }
        Some(true)
    }
}

/// Puts slots behind the last row of a batch: those to the left, and of the columns those that are wanted.
fn put(scan: &SystemScan, prefix: &[Datum], width: usize, out: &mut Batch, mut column: impl FnMut(usize) -> Datum) {
    let slots = out.begin();
    if slots.is_empty() {
        slots.reserve(ROWS_KEPT * (prefix.len() + width));
    }
    slots.extend_from_slice(prefix);
    match &scan.wanted {
        None => slots.extend((0..width).map(column)),
        Some(wanted) => {
            let from = slots.len();
            slots.resize(from + width, Datum::Null);
            wanted.iter().for_each(|at| slots[from + at] = column(*at));
        }
    }
}
