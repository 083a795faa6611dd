//! Reserves time for sessions which write the same rows, before sessions which only read.
//!
//! A row that many sessions want is held by one session at a time, and each of them has to get through the server, its client and the log
//! before the next has made its statement. At each of these steps readers compete for the processors, so that a few saturating readers
//! slow such a row down far more than their number would suggest. A session that writes a contended row therefore goes first: of every
//! [`PERIOD_NS`] the first [`ALONE_NS`] are reserved for sessions that write. A session that only reads, and begins a statement outside
//! of a transaction block in that span, waits for its end.
//!
//! # States
//! ```text
//!             rows are contended                    writers get more done alone
//!   Quiet -------------------------> Probing -----------------------------------> Holding
//!     ^                                | ^                                           |
//!     +--- no row is contended --------+ +---- they get no more done alone ----------+
//! ```
//! A writer decides about the state once in [`WINDOW_PERIODS`] periods. A row counts as contended if the next session to change or lock
//! it is another one than the session before. (Waits for rows are no measure: a single change often ends before the next one begins, the
//! more so the longer writers queue for a processor.) Quiet: no reader is held. Probing: readers are held in two periods of a window
//! only, to measure whether that helps the writers. If readers do not disturb the writers (clients have processors of their own, or the
//! disk is the limit), readers are not held further. Holding: readers are held in every period.
//!
//! # Invariants
//! - TURN-1: a reader is held for at most [`ALONE_NS`] at a time, and not again before it has run: readers keep three tenths of the time.
//! - TURN-2: no session is held in a transaction block or shortly after it has written; none is held when no session writes.
//! - TURN-3: in the state Holding, writers have seven tenths of the time for themselves, so they do at least the work that they did in
//!   that part.
//!
//! # Not here
//! Which sessions are readers: `connection::talk`. A run queue with priorities was tried instead (docs/measured/hot-row-slice.md): it
//! orders work inside the server, but not the clients and the log writer that compete for the same processors.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use clearway_base::waits;

/// A period, in nanoseconds.
pub const PERIOD_NS: u64 = 10_000_000;
/// The writers' part of it.
pub const ALONE_NS: u64 = 7_000_000;
/// Periods from one look at the figures to the next.
pub const WINDOW_PERIODS: u64 = 16;
/// While probing, every so many periods has a writers' part.
const PROBE_EVERY: u64 = 8;
/// The number of statements without a change after which a session counts as one that only reads.
pub const READS: u8 = 32;
/// Fewer writes of contended rows in a window say nothing.
const CONTENDED_MIN: u64 = 32;
/// One in this many writes must be of a contended row.
const CONTENDED_PART: u64 = 8;
/// Rows whose last writer is known.
const ROWS: usize = 64;

const QUIET: u8 = 0;
const PROBING: u8 = 1;
const HOLDING: u8 = 2;

/// The state that all connections of a server share. Counts are statistics: what is lost between two of them does not matter.
#[derive(Debug)]
pub struct Turns {
    mode: AtomicU8,
    began_ns: AtomicU64,
    writes_alone: AtomicU64,
    writes_shared: AtomicU64,
    /// Writes of rows that another session had written before.
    contended: AtomicU64,
    /// By the lower bits of its digest, the upper half of a row's digest and the session that wrote it last.
    rows: [AtomicU64; ROWS],
}

impl Default for Turns {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        let rows = std::array::from_fn(|_| zero());
        let mode = AtomicU8::new(QUIET);
        Self { mode, began_ns: zero(), writes_alone: zero(), writes_shared: zero(), contended: zero(), rows }
    }
}

impl Turns {
    /// Until when a session that only reads is held, on the clock of `waits::now_ns`; none: it may go on.
    pub fn held_until(&self) -> Option<u64> {
        if self.mode.load(Relaxed) == QUIET { None } else { self.held_until_at(waits::now_ns()) }
    }

    fn held_until_at(&self, now_ns: u64) -> Option<u64> {
        let mode = self.mode.load(Relaxed);
        let since_ns = now_ns.saturating_sub(self.began_ns.load(Relaxed));
        if mode == QUIET || since_ns > 2 * WINDOW_PERIODS * PERIOD_NS {
            return None; // TURN-2: no writer has come by since
        }
        let rest_ns = alone_ns_left(mode, since_ns)?;
        debug_assert!(rest_ns <= ALONE_NS, "TURN-1");
        Some(now_ns + rest_ns)
    }

    /// Counts statements of a session that have changed or locked something until this moment, on the clock of `waits::now_ns`, in the end the row
    /// of this digest (0: no row).
    pub fn wrote(&self, now_ns: u64, session: i32, count: u64, row: u64) {
        if let Some(last) = self.rows.get(row as usize % ROWS).filter(|_| row != 0) {
            let mine = (row >> 32 << 32) | u64::from(session as u32);
            let before = last.swap(mine, Relaxed);
            if before != mine && before >> 32 == mine >> 32 {
                self.contended.fetch_add(1, Relaxed);
            }
        }
        let began_ns = self.began_ns.load(Relaxed);
        let since_ns = now_ns.saturating_sub(began_ns);
        if since_ns >= WINDOW_PERIODS * PERIOD_NS {
            if self.began_ns.compare_exchange(began_ns, now_ns, Relaxed, Relaxed).is_ok() {
                self.end_window(since_ns);
            }
            return;
        }
        let alone = alone_ns_left(self.mode.load(Relaxed), since_ns).is_some();
        let counter = if alone { &self.writes_alone } else { &self.writes_shared };
        counter.fetch_add(count, Relaxed);
    }

    /// Ends a window and decides about the next.
    fn end_window(&self, since_ns: u64) {
        let (alone, shared) = (self.writes_alone.swap(0, Relaxed), self.writes_shared.swap(0, Relaxed));
        let contended = self.contended.swap(0, Relaxed);
        let is_contended = contended >= CONTENDED_MIN && contended * CONTENDED_PART >= alone + shared;
        let mode = self.mode.load(Relaxed);
        let is_stale = since_ns > (WINDOW_PERIODS + 1) * PERIOD_NS;
        let next = if is_stale || !is_contended {
            QUIET
        } else if mode == QUIET {
            PROBING
        } else {
            let periods = if mode == HOLDING { WINDOW_PERIODS } else { WINDOW_PERIODS / PROBE_EVERY };
            let alone_ns = periods * ALONE_NS;
            let shared_ns = WINDOW_PERIODS * PERIOD_NS - alone_ns;
            // Rates as products; a quarter more is more than the figures of one window differ by themselves.
            let helps = 4 * u128::from(alone) * u128::from(shared_ns) > 5 * u128::from(shared) * u128::from(alone_ns);
            if helps { HOLDING } else { PROBING }
        };
        self.mode.store(next, Relaxed);
    }
}

/// The rest of the writers' part at this moment; none: it is not within a writers' part.
fn alone_ns_left(mode: u8, since_ns: u64) -> Option<u64> {
    let (period, at_ns) = (since_ns / PERIOD_NS, since_ns % PERIOD_NS);
    let has_part = mode == HOLDING || (mode == PROBING && period % PROBE_EVERY == 0);
    (has_part && at_ns < ALONE_NS).then(|| ALONE_NS - at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// Begins anywhere but at 0.
    const BEGAN: u64 = 7_000 * MS;

    /// Lets ten sessions write one row, or a row each, for so many windows: so many writes per millisecond alone and beside readers.
    fn run(turns: &Turns, windows: u64, (alone, shared): (u64, u64), one_row: bool) -> u64 {
        let mut now = turns.began_ns.load(Relaxed).max(BEGAN);
        for _ in 0..windows * WINDOW_PERIODS * 10 {
            now += MS;
            let count = if turns.held_until_at(now).is_some() { alone } else { shared };
            for n in 0..count {
                let session = (n % 10) as i32 + 1;
                let row = if one_row { 0x1234_5678_0000_0007 } else { (session as u64) << 32 | 7 };
                turns.wrote(now, session, 1, row);
            }
        }
        now
    }

    #[test]
    fn writers_of_contended_rows_that_readers_slow_down_get_their_part() {
        let turns = Turns::default();
        let now = run(&turns, 4, (40, 10), true);
        assert_eq!(turns.mode.load(Relaxed), HOLDING, "TURN-3");
        let held = (0..10).filter(|ms| turns.held_until_at(now + ms * MS).is_some()).count();
        assert_eq!(held, 7, "TURN-1");
        for at in (0..20_000).map(|us| now + us * 1_000) {
            if let Some(until) = turns.held_until_at(at) {
                assert!(until - at <= ALONE_NS, "TURN-1");
                assert_eq!(turns.held_until_at(until), None, "TURN-1: it runs before it is held again");
            }
        }
        assert_eq!(turns.held_until_at(now + 3 * WINDOW_PERIODS * PERIOD_NS), None, "TURN-2: the writers are gone");
    }

    #[test]
    fn readers_go_on_where_no_row_is_contended() {
        let turns = Turns::default();
        let now = run(&turns, 6, (40, 10), false);
        assert!((0..160).all(|ms| turns.held_until_at(now + ms * MS).is_none()), "TURN-2");
    }

    #[test]
    fn readers_go_on_where_writers_are_no_faster_alone() {
        let turns = Turns::default();
        let now = run(&turns, 6, (20, 20), true);
        assert_eq!(turns.mode.load(Relaxed), PROBING);
        let held = (0..160).filter(|ms| turns.held_until_at(now + ms * MS).is_some()).count();
        assert!(held <= 15, "two probes of 7 ms in a window, not {held} ms");
    }

    #[test]
    fn it_ends_when_the_readers_are_gone() {
        let turns = Turns::default();
        run(&turns, 4, (40, 10), true);
        run(&turns, 3, (40, 40), true);
        assert_eq!(turns.mode.load(Relaxed), PROBING);
        run(&turns, 2, (40, 40), false);
        assert_eq!(turns.mode.load(Relaxed), QUIET);
    }
}
