//! The figures that EXPLAIN ANALYZE measures at a node.

use clearway_base::usage::Usage;
use std::collections::HashMap;

/// Which part of what stands at an address was measured: EXPLAIN shows the steps of a query level as nodes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// All of it: a node, or a query with all its steps.
    All,
    /// The condition of a level, at the level's address.
    Filter,
    /// The groups of a level.
    Groups,
    /// The sort of a level before its window functions of this number; behind them the one for the order of the output.
    Sort(usize),
    /// The window functions of this number.
    Window(usize),
    /// The hash table of a join, at the join's address.
    Hash,
    /// The keys of a join's other side that were asked for at a scan (GAT-3), at the scan's address.
    Keys,
}

/// How a step did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A sort: PostgreSQL's word for how, and the bytes that it had in memory or in temporary files.
    Sort {
        /// `quicksort`, `top-N heapsort`, `external merge`.
        name: &'static str,
        /// Its bytes.
        bytes: u64,
        /// They were in files.
        on_disk: bool,
    },
    /// The hash table of a join.
    Hash {
        /// Places of the table.
        buckets: u64,
        /// Parts into which the rows were divided; 1: they were not.
        batches: u64,
        /// The most bytes in memory.
        bytes: u64,
    },
    /// Groups that were found by a hash.
    Groups {
        /// Parts that were grouped one after the other.
        batches: u64,
        /// The most bytes in memory.
        bytes: u64,
        /// Bytes of rows that were put aside in files.
        disk_bytes: u64,
    },
}

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
    /// Rows that a condition did not let through, over all loops.
    pub removed: u64,
    /// Pages, temporary files and records of the log, those of nodes below included.
    pub usage: Usage,
    /// How it did its work, if that is to be told.
    pub method: Option<Method>,
}

impl Actual {
    /// Adds what was measured at another copy.
    pub fn add(&mut self, other: &Actual) {
        self.first_ns += other.first_ns;
        self.total_ns += other.total_ns;
        self.rows += other.rows;
        self.loops += other.loops;
        self.helpers = self.helpers.max(other.helpers);
        self.partial += other.partial;
        self.removed += other.removed;
        self.usage += other.usage;
        self.method = self.method.or(other.method);
    }

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

/// The address by which something is measured.
pub(super) fn address<T>(of: &T) -> usize {
    std::ptr::from_ref(of) as usize
}

/// What was measured, by the address of a node, a query, a level or a join, and by its step.
pub type Actuals = HashMap<(usize, Step), Actual>;
