//! Reads the tables and views of the system: the rows that a scan asks for, behind the slots to their left.
//!
//! # Life of a scan
//! The condition that finds rows by a key, if there is one, is evaluated once -> the rows of those keys are built, or taken from the rows that the
//! statement has looked up before -> each row is compared with the keys, put behind the slots to its left, and judged by the other conditions.
//!
//! Where a nested loop looks rows up by one number, and nothing of it can wait, this needs no future (`found_now`, `put_found`).
//!
//! # Invariants
//! - SYV-1: rows that were looked up are given again within one execution only, whose version of the catalog does not change, and only those of
//!   tables that are made of nothing but that version. They have the columns of the scan that looked them up, and are given to it alone.

use super::row_batch::Batch;
use super::{Cx, Keys, Row, RunState, SoughtRows, boxed};
use clearway_base::breath::{self, Stopped};
use clearway_base::sync::Mutex;
use clearway_context::views::SystemView;
use clearway_planner::plan::SystemScan;
use clearway_planner::sought::Values;
use clearway_syntax::error::Result;
use clearway_values::expr::Bound;
use clearway_values::types::{Datum, Oid, oid};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// So many look-ups a statement keeps. A join looks up the same few types for the columns of all tables.
const LOOK_UPS: usize = 16;
/// A look-up with more rows is not kept.
const ROWS_KEPT: usize = 4;

/// Rows of a system table that have a number, by which the scan at this address has looked them up.
pub(super) struct LookUp {
    scan: usize,
    number: Oid,
    rows: Arc<[Row]>,
}

/// A scan that has begun.
pub(super) struct SystemRows {
    rows: Left,
    /// The keys, which a row has to have at this place; the condition that says so is at that place among those of the filter.
    sought: Option<(SoughtRows, usize, usize)>,
    /// The filter must be awaited.
    waits: bool,
}

/// Rows that have still to be judged.
enum Left {
    Built(std::vec::IntoIter<Row>),
    Known(Arc<[Row]>, usize),
}

/// What the rows of one object of the catalog cost about: a table has some fifteen of pg_attribute.
const OBJECT: u32 = 8 * breath::ROW;

impl RunState {
    /// A breath between two objects of which rows are built for a view; false: the statement has to end, and the building with it, early (VRB-1).
    pub fn goes_on(&self) -> bool {
        let told = breath::step(OBJECT);
        if let Err(Stopped(reason)) = told {
            self.cut.store(1 + u16::from(reason), Relaxed);
        }
        told.is_ok()
    }

    /// Whether a view's rows are not all there.
    fn was_cut(&self) -> std::result::Result<(), Stopped> {
        match self.cut.swap(0, Relaxed) {
            0 => Ok(()),
            more => Err(Stopped((more - 1) as u8)),
        }
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
        let sought = self.sought(scan, prefix).await?;
        let rows = self.rows_of(scan, sought.as_ref().map(|(rows, _)| rows), !prefix.is_empty()).await?;
        let sought = sought.map(|(sought, condition)| {
            let place = place_of(scan, sought.place);
            (sought, place, condition)
        });
        Ok(SystemRows { rows, sought, waits: scan.conditions().iter().any(Bound::may_wait) })
    }

    /// The rows of a view. Their building ends early where the statement has to end: so the reason is asked for (VRB-1).
    fn view_rows(self, view: &SystemView, sought: Option<&SoughtRows>, columns: Option<&[usize]>) -> Result<Vec<Row>> {
        let rows = self.run.views.rows(view, sought, columns, self.run);
        self.run.state.was_cut()?;
        Ok(rows)
    }

    async fn rows_of(self, scan: &SystemScan, sought: Option<&SoughtRows>, again: bool) -> Result<Left> {
        let (run, view, columns) = (self.run, scan.view, scan.wanted.as_deref());
        if is_of_data(view) {
            let mut rows = self.view_rows(view, sought, None)?;
            boxed(self.add_large_objects(view, sought, &mut rows)).await?;
            if let Some(columns) = columns {
                rows.iter_mut().for_each(|row| *row = picked(row, columns));
            }
            return Ok(Left::Built(rows.into_iter()));
        }
        let number = sought.filter(|_| again && view.is_table()).and_then(|sought| match &sought.keys {
            Keys::Oids(oids) => <[Oid; 1]>::try_from(oids.as_slice()).ok().map(|[number]| number),
            Keys::Names(_) => None,
        });
        let (Some(number), Some(kept), Some(sought)) = (number, &run.state.looked_up, sought) else {
            return Ok(Left::Built(self.view_rows(view, sought, columns)?.into_iter()));
        };
        if let Some(rows) = known(kept, scan, number) {
            return Ok(Left::Known(rows, 0));
        }
        let mut rows = self.view_rows(view, Some(sought), columns)?;
        if rows.len() > ROWS_KEPT {
            return Ok(Left::Built(rows.into_iter()));
        }
        let place = place_of(scan, sought.place);
        rows.retain(|row| sought.keys.have(&row[place]));
        Ok(Left::Known(keep(kept, scan, number, rows), 0))
    }

    /// The rows that a scan of which `is_found_now` is true finds behind these slots; they have still to be judged by the other conditions. None:
    /// `open_system` finds them.
    pub(super) fn found_now(self, scan: &SystemScan, prefix: &[Datum]) -> Result<Option<Arc<[Row]>>> {
        let run = self.run;
        let (Some((at, _, Values::List([e]))), Some(kept)) = (scan.found(), &run.state.looked_up) else {
            return Ok(None);
        };
        let number = self.value_now(e, prefix)?.as_i64().and_then(|number| Oid::try_from(number).ok());
        // A number that no oid is, or none, finds nothing.
        let Some(number) = number else { return Ok(Some(Arc::new([]))) };
        if let Some(rows) = known(kept, scan, number) {
            return Ok(Some(rows));
        }
        let (column, _) = scan.view.columns[at];
        let sought = SoughtRows { column, place: at, keys: Keys::Oids(vec![number]) };
        let mut rows = self.view_rows(scan.view, Some(&sought), scan.wanted.as_deref())?;
        let place = place_of(scan, at);
        rows.retain(|row| sought.keys.have(&row[place]));
        Ok(Some(if rows.len() > ROWS_KEPT { rows.into() } else { keep(kept, scan, number, rows) }))
    }

    /// Appends some `want` of the rows that `found_now` has given, from the one at `next` on, that meet the conditions; false: there are no more.
    /// So few need no breath of their own.
    pub(super) fn put_found(
        self,
        scan: &SystemScan,
        (rows, next): (&[Row], &mut usize),
        prefix: &[Datum],
        want: usize,
        out: &mut Batch,
    ) -> Result<bool> {
        let enough = out.len() + want;
        while out.len() < enough {
            let Some(row) = rows.get(*next) else { return Ok(false) };
            *next += 1;
            put(scan, prefix, row.iter().cloned(), out);
            let mark = out.len();
            out.end();
            let meant = self.is_meant_now(scan, out.last());
            if !matches!(meant, Ok(true)) {
                out.truncate(mark);
            }
            meant?;
        }
        Ok(true)
    }

    /// Whether a row that `found_now` has found meets the other conditions.
    fn is_meant_now(self, scan: &SystemScan, row: &[Datum]) -> Result<bool> {
        let by_number = scan.found().map(|(_, condition, _)| condition);
        for (at, condition) in scan.conditions().iter().enumerate() {
            if by_number != Some(at) && !self.holds_now(Some(condition), row)? {
                return Ok(false);
            }
        }
        Ok(true)
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
        let by_keys = rows.sought.as_ref().map(|(_, _, at)| *at);
        for (at, condition) in scan.conditions().iter().enumerate() {
            if by_keys != Some(at) && !self.judge(Some(condition), rows.waits, row).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Where a column stands in the rows of a scan that finds rows by it.
fn place_of(scan: &SystemScan, column: usize) -> usize {
    match &scan.wanted {
        Some(wanted) => wanted.iter().position(|at| *at == column).expect("a condition names the column (PLN-6)"),
        None => column,
    }
}

/// Whether `found_now` can find the rows of a scan: by one number, and without a wait.
pub(super) fn is_found_now(scan: &SystemScan) -> bool {
    let by_number = match scan.found() {
        Some((at, _, Values::List([e]))) => !matches!(scan.view.columns[at].1, oid::NAME | oid::TEXT) && !e.may_wait(),
        _ => false,
    };
    by_number && scan.view.is_table() && !is_of_data(scan.view) && !scan.conditions().iter().any(Bound::may_wait)
}

/// Whether rows of it stand in the tables of a database, which have to be read.
fn is_of_data(view: &SystemView) -> bool {
    matches!(view.name, "pg_largeobject" | "pg_largeobject_metadata" | "pg_description")
}

/// The rows that a scan has found by this number before (SYV-1).
fn known(kept: &Mutex<Vec<LookUp>>, scan: &SystemScan, number: Oid) -> Option<Arc<[Row]>> {
    let scan = std::ptr::from_ref(scan) as usize;
    let kept = kept.lock();
    kept.iter().find(|known| (known.scan, known.number) == (scan, number)).map(|known| known.rows.clone())
}

/// Keeps what a scan has found by this number.
fn keep(kept: &Mutex<Vec<LookUp>>, scan: &SystemScan, number: Oid, rows: Vec<Row>) -> Arc<[Row]> {
    let rows: Arc<[Row]> = rows.into();
    let mut kept = kept.lock();
    if kept.len() == LOOK_UPS {
        kept.remove(0);
    }
    kept.push(LookUp { scan: std::ptr::from_ref(scan) as usize, number, rows: rows.clone() });
    rows
}

impl SystemRows {
    /// Puts the slots of the next row behind the last row of a batch, if it has the keys; none: there is no row left.
    fn put_next(&mut self, scan: &SystemScan, prefix: &[Datum], out: &mut Batch) -> Option<bool> {
        let has_keys = |row: &Row| self.sought.as_ref().is_none_or(|(sought, at, _)| sought.keys.have(&row[*at]));
        match &mut self.rows {
            Left::Built(rows) => {
                let row = rows.next()?;
                if !has_keys(&row) {
                    return Some(false);
                }
                put(scan, prefix, row.into_iter(), out);
            }
            Left::Known(rows, next) => {
                let row = rows.get(*next)?;
                *next += 1;
                if !has_keys(row) {
                    return Some(false);
                }
                put(scan, prefix, row.iter().cloned(), out);
            }
        }
        Some(true)
    }
}

/// Puts slots behind the last row of a batch: those to the left, and those of the wanted columns.
fn put(scan: &SystemScan, prefix: &[Datum], values: impl ExactSizeIterator<Item = Datum>, out: &mut Batch) {
    let slots = out.begin();
    if slots.is_empty() {
        slots.reserve(ROWS_KEPT * (prefix.len() + values.len()));
    }
    slots.extend_from_slice(prefix);
    match &scan.wanted {
        Some(wanted) if !scan.is_dense => {
            let from = slots.len();
            slots.resize(from + scan.view.width(), Datum::Null);
            wanted.iter().zip(values).for_each(|(at, value)| slots[from + at] = value);
        }
        _ => slots.extend(values),
    }
}

/// These columns of a row, which no other node reads.
fn picked(row: &mut Row, columns: &[usize]) -> Row {
    columns.iter().map(|at| std::mem::replace(&mut row[*at], Datum::Null)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_building_that_ends_early_is_told_and_only_once() {
        // VRB-1
        let (flag, state) = (Arc::new(breath::StopFlag::new(4)), RunState::new());
        let build = || breath::within_now(flag.clone(), || (0..100_000).take_while(|_| state.goes_on()).count());
        assert_eq!((build(), state.was_cut()), (100_000, Ok(())));
        flag.raise(3);
        assert!(build() < 100_000, "a raised flag ends it");
        assert_eq!(state.was_cut(), Err(Stopped(3)), "so the statement fails, for that reason");
        assert_eq!(flag.hear(), 3);
        assert_eq!((build(), state.was_cut()), (100_000, Ok(())), "the next building is whole");
    }
}
