//! What a session's long statement has done so far: shown by the pg_stat_progress views while it runs.
//!
//! # Invariants
//! - PRG-1: the figures belong to the statement that runs: they are cleared when its [`Working`] is dropped, however the statement ends.
//!
//! Counting is a relaxed addition to a number that only the session itself changes; a reader may see it a little late.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clearway_base::sync::Mutex;

use crate::catalog::Oid;

/// The kind of a long statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An index is made or made anew.
    Index,
    /// Rows are copied in or out.
    Copy,
    /// A table is counted.
    Analyze,
}

/// What does not change often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkView {
    /// The kind.
    pub work: Work,
    /// The statement, as the views call it.
    pub command: &'static str,
    /// Where it stands.
    pub phase: &'static str,
    /// The table; 0: none.
    pub table: Oid,
    /// The index; 0: none.
    pub index: Oid,
}

/// The progress of one session's statement.
#[derive(Debug)]
pub struct Progress {
    now: Mutex<Option<WorkView>>,
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
    left_out: AtomicU64,
}

impl Default for Progress {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self { now: Mutex::new("engine/progress", None), total: zero(), done: zero(), bytes: zero(), left_out: zero() }
    }
}

/// What a view shows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What it is.
    pub now: WorkView,
    /// Rows or leaves that there are; 0: not known.
    pub total: u64,
    /// Those of them that are done.
    pub done: u64,
    /// Bytes that came or went.
    pub bytes: u64,
    /// Rows that a condition left out.
    pub left_out: u64,
}

/// Shows the work as long as it lives (PRG-1).
#[derive(Debug)]
pub struct Working(Arc<Progress>);

impl Drop for Working {
    fn drop(&mut self) {
        *self.0.now.lock() = None;
    }
}

impl Progress {
    /// A statement begins its work.
    pub fn begin(self: &Arc<Self>, now: WorkView) -> Working {
        for number in [&self.total, &self.done, &self.bytes, &self.left_out] {
            number.store(0, Relaxed);
        }
        *self.now.lock() = Some(now);
        Working(Arc::clone(self))
    }

    /// The next part of the work begins; `total` rows are expected of it.
    pub fn phase(&self, phase: &'static str, total: u64) {
        if let Some(now) = &mut *self.now.lock() {
            now.phase = phase;
        }
        self.total.store(total, Relaxed);
        self.done.store(0, Relaxed);
    }

    /// Another table.
    pub fn table(&self, table: Oid, total: u64) {
        if let Some(now) = &mut *self.now.lock() {
            now.table = table;
        }
        self.total.store(total, Relaxed);
        self.done.store(0, Relaxed);
    }

    /// So much more is done.
    #[inline]
    pub fn add(&self, n: u64) {
        self.done.fetch_add(n, Relaxed);
    }

    /// So much is done in all.
    #[inline]
    pub fn reach(&self, n: u64) {
        self.done.store(n, Relaxed);
    }

    /// So many more bytes came or went.
    #[inline]
    pub fn add_bytes(&self, n: usize) {
        self.bytes.fetch_add(n as u64, Relaxed);
    }

    /// So many rows were left out in all.
    #[inline]
    pub fn leave_out(&self, n: u64) {
        self.left_out.store(n, Relaxed);
    }

    /// What it stands at; none: no long statement runs.
    pub fn shown(&self) -> Option<Shown> {
        let now = (*self.now.lock())?;
        let [total, done, bytes, left_out] =
            [&self.total, &self.done, &self.bytes, &self.left_out].map(|number| number.load(Relaxed));
        Some(Shown { now, total, done, bytes, left_out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_ends_with_the_work() {
        let progress = Arc::new(Progress::default());
        assert_eq!(progress.shown(), None);
        let now = WorkView { work: Work::Copy, command: "COPY FROM", phase: "", table: 7, index: 0 };
        let working = progress.begin(now);
        progress.add(3);
        progress.add_bytes(40);
        assert_eq!(progress.shown(), Some(Shown { now, total: 0, done: 3, bytes: 40, left_out: 0 }));
        progress.phase("sorting", 9);
        let shown = progress.shown().expect("it goes on");
        assert_eq!((shown.now.phase, shown.total, shown.done), ("sorting", 9, 0));
        drop(working);
        assert_eq!(progress.shown(), None, "PRG-1");
    }
}
