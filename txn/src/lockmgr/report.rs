//! Deadlock reports: each participant with the lock it wanted, the locks it held, and the statements of its transaction.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_storage::ids::TxnId;

use super::history::Facts;
use super::modes::{LockMode, ModeSet};
use super::tag::{LockTag, VirtualId};

/// How many reports are kept.
const ARCHIVE_MAX: usize = 100;

/// One participant of a deadlock. Each waits for the next participant, and the last for the first.
#[derive(Clone, Debug)]
pub struct Participant {
    /// Its session.
    pub pid: i32,
    /// Its transaction.
    pub virtual_id: VirtualId,
    /// Its transaction's id, where it has one.
    pub txn: Option<TxnId>,
    /// What it waits for.
    pub wanted: LockTag,
    /// In which mode.
    pub mode: LockMode,
    /// How long it has waited, in nanoseconds.
    pub waited_ns: u64,
    /// The lock that it holds and the participant before it waits for.
    pub held: LockTag,
    /// In which modes.
    pub held_modes: ModeSet,
    /// The statement that took what it holds.
    pub held_by_statement: Option<Arc<str>>,
    /// Every statement of its transaction, oldest first; the last is the one that waits.
    pub statements: Vec<Arc<str>>,
    /// The session.
    pub facts: Facts,
}

/// A deadlock that took a victim.
#[derive(Clone, Debug)]
pub struct DeadlockReport {
    /// Counts the deadlocks since the start, from 1.
    pub number: u64,
    /// Wall clock, microseconds since 1970.
    pub at_us: i64,
    /// From the start of the wait that closed the cycle to the verdict, in nanoseconds.
    pub found_in_ns: u64,
    /// Whether only the background scan found it: the search at the start of the wait missed it.
    pub by_background_scan: bool,
    /// The participants of the cycle, the victim first.
    pub participants: Vec<Participant>,
    /// What the victim was about to do, as PostgreSQL's CONTEXT says it; empty if it is not known.
    pub context: String,
}

impl DeadlockReport {
    /// The session whose statement failed.
    pub fn victim_pid(&self) -> i32 {
        self.participants.first().map_or(0, |p| p.pid)
    }
}

impl fmt::Display for DeadlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "deadlock {} of {} sessions, found in {} us, victim {}",
            self.number,
            self.participants.len(),
            self.found_in_ns / 1_000,
            self.victim_pid()
        )?;
        for (i, p) in self.participants.iter().enumerate() {
            let next = &self.participants[(i + 1) % self.participants.len()];
            writeln!(
                f,
                "  process {} ({}) waits for {} on {}; held by process {}",
                p.pid,
                p.virtual_id,
                p.mode.name(),
                p.wanted.kind(),
                next.pid
            )?;
            for statement in &p.statements {
                writeln!(f, "    {statement}")?;
            }
        }
        Ok(())
    }
}

/// The latest reports and the counters.
#[derive(Debug)]
pub struct Archive {
    reports: Mutex<VecDeque<Arc<DeadlockReport>>>,
    deadlocks: AtomicU64,
    reordered: AtomicU64,
    missed_by_fast_path: AtomicU64,
    searches: AtomicU64,
}

impl Archive {
    pub(super) fn new() -> Archive {
        Archive {
            reports: Mutex::new("txn/lockmgr/archive", VecDeque::new()),
            deadlocks: AtomicU64::new(0),
            reordered: AtomicU64::new(0),
            missed_by_fast_path: AtomicU64::new(0),
            searches: AtomicU64::new(0),
        }
    }

    /// The number for a new report.
    pub(super) fn next_number(&self) -> u64 {
        self.deadlocks.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn keep(&self, report: Arc<DeadlockReport>) {
        let mut reports = self.reports.lock();
        if reports.len() == ARCHIVE_MAX {
            reports.pop_front();
        }
        reports.push_back(report);
    }

    pub(super) fn count_search(&self) {
        self.searches.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_reordered(&self) {
        self.reordered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_missed(&self) {
        self.missed_by_fast_path.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes in reports of an earlier run, oldest first; numbers go on behind them.
    pub fn restore(&self, earlier: Vec<DeadlockReport>) {
        let last = earlier.iter().map(|report| report.number).max().unwrap_or(0);
        self.deadlocks.fetch_max(last, Ordering::Relaxed);
        let mut reports = self.reports.lock();
        for report in earlier.into_iter().rev() {
            if reports.len() < ARCHIVE_MAX {
                reports.push_front(Arc::new(report));
            }
        }
    }

    /// The latest reports, oldest first.
    pub fn reports(&self) -> Vec<Arc<DeadlockReport>> {
        self.reports.lock().iter().cloned().collect()
    }

    /// Deadlocks that took a victim.
    pub fn deadlocks(&self) -> u64 {
        self.deadlocks.load(Ordering::Relaxed)
    }

    /// Cycles that were resolved by a new order of a queue.
    pub fn reordered(&self) -> u64 {
        self.reordered.load(Ordering::Relaxed)
    }

    /// Cycles that only the background scan found; must stay 0.
    pub fn missed_by_fast_path(&self) -> u64 {
        self.missed_by_fast_path.load(Ordering::Relaxed)
    }

    /// Searches that walked at least one queue.
    pub fn searches(&self) -> u64 {
        self.searches.load(Ordering::Relaxed)
    }
}
