//! What checkpoints have done since the directory was opened: counts for views, the latest ones for the server's log.
//!
//! # Invariants
//! - TKN-1: at most [`KEPT`] checkpoints are kept one by one.

use crate::ids::Lsn;
use clearway_base::sync::Mutex;
use std::collections::VecDeque;

/// So many of the latest checkpoints are kept one by one.
const KEPT: usize = 64;

/// One checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointTaken {
    /// Its number since the directory was opened, from 1.
    pub number: u64,
    /// It came by its time or by the size of the log; no session asked for it.
    pub timed: bool,
    /// The database was being closed.
    pub closing: bool,
    /// When it began: wall clock, microseconds since 1970.
    pub began_us: i64,
    /// Pages that it wrote.
    pub pages: u64,
    /// Time in which pages were written, pauses included, in nanoseconds.
    pub write_ns: u64,
    /// Time in which its state was written and synced, in nanoseconds.
    pub sync_ns: u64,
    /// The log has grown by so many bytes since the one before it began.
    pub log_bytes: u64,
    /// Where recovery would begin.
    pub redo: Lsn,
}

/// Sums over all checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Those that came by themselves,
    pub timed: u64,
    /// and those that were asked for.
    pub requested: u64,
    /// Pages.
    pub pages: u64,
    /// Time in which pages were written, in nanoseconds.
    pub write_ns: u64,
    /// Time in which states were written and synced, in nanoseconds.
    pub sync_ns: u64,
}

/// The checkpoints since the directory was opened.
pub(crate) struct History(Mutex<(Totals, VecDeque<CheckpointTaken>)>);

impl Default for History {
    fn default() -> Self {
        History(Mutex::new("storage/recovery/checkpoints_taken", Default::default()))
    }
}

impl History {
    /// Notes one that has ended.
    pub(crate) fn note(&self, mut taken: CheckpointTaken) {
        let mut history = self.0.lock();
        let (totals, latest) = &mut *history;
        let count = if taken.timed { &mut totals.timed } else { &mut totals.requested };
        *count += 1;
        totals.pages += taken.pages;
        totals.write_ns += taken.write_ns;
        totals.sync_ns += taken.sync_ns;
        taken.number = totals.timed + totals.requested;
        latest.push_back(taken);
        if latest.len() > KEPT {
            latest.pop_front(); // TKN-1
        }
    }

    /// The sums.
    pub(crate) fn totals(&self) -> Totals {
        self.0.lock().0
    }

    /// Those with a higher number than `number`, oldest first.
    pub(crate) fn after(&self, number: u64) -> Vec<CheckpointTaken> {
        self.0.lock().1.iter().filter(|taken| taken.number > number).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept_and_all_are_counted() {
        let history = History::default();
        for n in 0..3 * KEPT {
            history.note(CheckpointTaken { timed: n % 3 == 0, pages: 2, ..CheckpointTaken::default() });
        }
        let totals = history.totals();
        assert_eq!((totals.timed, totals.requested, totals.pages), (KEPT as u64, 2 * KEPT as u64, 6 * KEPT as u64));
        assert_eq!(history.after(0).len(), KEPT, "TKN-1");
        let last = 3 * KEPT as u64;
        assert_eq!(history.after(last - 2).iter().map(|taken| taken.number).collect::<Vec<_>>(), [last - 1, last]);
    }
}
