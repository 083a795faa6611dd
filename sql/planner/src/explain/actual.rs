//! The figures that EXPLAIN ANALYZE measures at a node.

use std::collections::HashMap;

/// What was measured at a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Actual {
    /// Nanoseconds until the first row, and until the last, over all loops.
    pub first_ns: u64,
    /// The same.
    pub total_ns: u64,
    /// Rows, over all loops.
    pub rows: u64,
    /// How often it was begun.
    pub loops: u64,
    /// Threads that helped, at most at once.
    pub helpers: u32,
    /// Groups of all parts.
    pub partial: u64,
}

impl Actual {
    fn each(&self, n: u64) -> f64 {
        n as f64 / self.loops.max(1) as f64
    }
    /// Milliseconds until the first row of a loop.
    pub fn first_ms(&self) -> f64 {
        self.each(self.first_ns) / 1e6
    }
    /// Milliseconds of a loop.
    pub fn total_ms(&self) -> f64 {
        self.each(self.total_ns) / 1e6
    }
    /// Rows of a loop.
    pub fn rows_each(&self) -> f64 {
        self.each(self.rows)
    }
}

/// What was measured at nodes and queries, by their address.
pub type Actuals = HashMap<usize, Actual>;
