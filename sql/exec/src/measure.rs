//! Measures nodes for EXPLAIN ANALYZE. A node's time includes the time of the nodes below it.

use super::{BoxFuture, Row};
use clearway_base::sync::Mutex;
use clearway_base::waits::now_ns;
use clearway_planner::explain::{Actual, Actuals};
use clearway_syntax::error::Result;
use std::collections::HashMap;

/// The next row of a node or a query.
type NextRow<'a> = BoxFuture<'a, Result<Option<Row>>>;

/// Figures by the address of a node or a query.
pub struct Measured {
    /// With each whether it still waits for the first row of its loop.
    all: Mutex<HashMap<usize, (Actual, bool)>>,
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
            let row = next.await?;
            self.note(address, is_first, began, usize::from(row.is_some()));
            Ok(row)
        })
    }

    /// The time at which rows are asked for.
    pub fn begin(&self) -> u64 {
        now_ns()
    }

    /// Notes that rows were asked for at `began`, and how many came; `is_first`: they were the first of a loop.
    pub fn note(&self, address: usize, is_first: bool, began: u64, gave: usize) {
        let took = now_ns().saturating_sub(began);
        let mut all = self.all.lock();
        let (actual, waiting) = all.entry(address).or_default();
        if is_first {
            actual.loops += 1;
            *waiting = true;
        }
        actual.total_ns += took;
        if *waiting {
            actual.first_ns += took;
        }
        *waiting &= gave == 0;
        actual.rows += gave as u64;
    }

    /// Notes that so many threads helped at a node; the most at once are kept.
    pub fn helped(&self, address: usize, helpers: u32) {
        let mut all = self.all.lock();
        let (actual, _) = all.entry(address).or_default();
        actual.helpers = actual.helpers.max(helpers);
    }

    /// Notes a scan whose rows were grouped part by part, at the addresses of its node and of itself: when it was asked for, how many rows there
    /// were, and how many groups of parts.
    pub fn grouped(&self, (node, scan): (usize, usize), began: u64, gave: u64, partial: u64) {
        let took = now_ns().saturating_sub(began);
        let mut all = self.all.lock();
        all.entry(scan).or_default().0.partial += partial;
        let (actual, _) = all.entry(node).or_default();
        actual.loops += 1;
        actual.first_ns += took;
        actual.total_ns += took;
        actual.rows += gave;
    }

    /// All figures.
    pub fn all(&self) -> Actuals {
        self.all.lock().iter().map(|(address, (actual, _))| (*address, *actual)).collect()
    }
}
