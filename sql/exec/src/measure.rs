//! Measures nodes for EXPLAIN ANALYZE. A node's time and usage include those of the nodes below it.

use super::{BoxFuture, Cx, Row};
use clearway_base::sync::Mutex;
use clearway_base::usage::{Counted, Usage};
use clearway_base::waits::now_ns;
use clearway_planner::explain::{Actual, Actuals, Method, Step};
use clearway_planner::plan::Scan;
use clearway_syntax::error::Result;
use clearway_values::expr::Bound;
use std::collections::HashMap;

/// The next row of a node or a query.
type NextRow<'a> = BoxFuture<'a, Result<Option<Row>>>;
/// Where something is measured.
pub(super) type Place = (usize, Step);

/// Figures by the address of a node or a query, and by its step.
pub struct Measured {
    /// With each whether it still waits for the first row of its loop.
    all: Mutex<HashMap<Place, (Actual, bool)>>,
}

impl Default for Measured {
    fn default() -> Self {
        Self { all: Mutex::new("sql/exec/measured", HashMap::new()) }
    }
}

impl Measured {
    /// Measures how long `next` takes to give a row; `is_first`: it is the first of a loop.
    pub fn row<'a>(&'a self, address: usize, is_first: bool, next: NextRow<'a>) -> NextRow<'a> {
        Box::pin(async move {
            let began = now_ns();
            let (row, usage) = Counted::new(next).await;
            let row = row?;
            self.note(address, is_first, (began, usage), usize::from(row.is_some()));
            Ok(row)
        })
    }

    /// The time at which rows are asked for.
    pub fn begin(&self) -> u64 {
        now_ns()
    }

    /// Notes that rows were asked for at `began`, what was used for them, and how many came; `is_first`: they were the first of a loop.
    pub fn note(&self, address: usize, is_first: bool, (began, usage): (u64, Usage), gave: usize) {
        let took = now_ns().saturating_sub(began);
        let mut all = self.all.lock();
        let (actual, waiting) = all.entry((address, Step::All)).or_default();
        if is_first {
            actual.loops += 1;
            *waiting = true;
        }
        actual.total_ns += took;
        actual.usage += usage;
        if *waiting {
            actual.first_ns += took;
        }
        *waiting &= gave == 0;
        actual.rows += gave as u64;
    }

    /// Notes that a step that reads all of its input before it gives a row has read it, when it began to, and how many rows it has.
    fn step(&self, place: Place, began: u64, rows: u64) {
        let took = now_ns().saturating_sub(began);
        let mut all = self.all.lock();
        let (actual, _) = all.entry(place).or_default();
        actual.loops += 1;
        actual.first_ns += took;
        actual.total_ns += took;
        actual.rows += rows;
    }

    /// Notes that so many threads helped at a node; the most at once are kept.
    pub fn helped(&self, address: usize, helpers: u32) {
        let mut all = self.all.lock();
        let (actual, _) = all.entry((address, Step::All)).or_default();
        actual.helpers = actual.helpers.max(helpers);
    }

    /// Notes a scan whose rows were grouped part by part, at the addresses of its node and of itself: when it was asked for, how many rows there
    /// were, and how many groups of parts.
    pub fn grouped(&self, (node, scan): (usize, usize), began: u64, gave: u64, partial: u64) {
        self.all.lock().entry((scan, Step::All)).or_default().0.partial += partial;
        self.step((node, Step::All), began, gave);
    }

    /// Notes that a step has given a row.
    pub fn gave(&self, place: Place) {
        self.all.lock().entry(place).or_default().0.rows += 1;
    }

    /// Notes that a condition did not let so many rows through.
    pub fn removed(&self, place: Place, rows: usize) {
        if rows > 0 {
            self.all.lock().entry(place).or_default().0.removed += rows as u64;
        }
    }

    /// Notes how a step did its work; of several the one that took most.
    pub fn did(&self, place: Place, method: Method) {
        let mut all = self.all.lock();
        let kept = &mut all.entry(place).or_default().0.method;
        if kept.is_none_or(|kept| size_of_work(method) > size_of_work(kept)) {
            *kept = Some(method);
        }
    }

    /// All figures.
    pub fn all(&self) -> Actuals {
        self.all.lock().iter().map(|(place, (actual, _))| (*place, *actual)).collect()
    }
}

/// What is compared where a step was done several times: parts first, then bytes.
fn size_of_work(method: Method) -> (u64, u64) {
    match method {
        Method::Sort { bytes, on_disk, .. } => (u64::from(on_disk), bytes),
        Method::Hash { batches, bytes, .. } | Method::Groups { batches, bytes, .. } => (batches, bytes),
    }
}

impl Cx<'_> {
    /// Notes, if the statement is measured, that a step of a level has read its input, when it began to, and how many rows it has.
    pub(super) fn note_step(self, place: Place, began: u64, rows: u64) {
        if let Some(measured) = &self.run.state.measured {
            measured.step(place, began, rows);
        }
    }

    /// The same of rows that a condition did not let through, at the condition's address.
    #[inline]
    pub(super) fn note_removed(self, condition: Option<&Bound>, rows: usize) {
        if let (Some(measured), Some(condition)) = (&self.run.state.measured, condition) {
            measured.removed(place(condition, Step::Filter), rows);
        }
    }

    /// The same of rows of a scan that its filter, or the keys of a join's other side, did not let through.
    #[inline]
    pub(super) fn note_judged(self, scan: &Scan, by_filter: usize, by_keys: usize) {
        if let Some(measured) = &self.run.state.measured {
            let (at, filter) = scan.measured_at();
            measured.removed((at, Step::Keys), by_keys);
            filter.iter().for_each(|filter| measured.removed((*filter, Step::Filter), by_filter));
        }
    }

    /// The same of how a step did its work.
    pub(super) fn note_method(self, place: Place, method: impl FnOnce() -> Method) {
        if let Some(measured) = &self.run.state.measured {
            measured.did(place, method());
        }
    }

    /// When a step begins; 0: the statement is not measured.
    pub(super) fn step_begins(self) -> u64 {
        if self.run.state.measured.is_some() { now_ns() } else { 0 }
    }
}

/// The place of a step of what stands at an address.
#[inline]
pub(super) fn place<T>(at: &T, step: Step) -> Place {
    (std::ptr::from_ref(at) as usize, step)
}
