//! Whose turn it is: time that sessions which write the same rows have for themselves, beside sessions which only read.
//!
//! A row that many want is held by one session at a time, and each of them has to get through the server, its client and the log before
//! the next has made its statement. Readers that take whatever processor time they can get stand in line before all of these steps, so that
//! a few saturating readers slow such a row down far more than their number would have it. Whoever writes a contended row therefore goes
//! first: of every [`PERIOD_NS`] the first [`ALONE_NS`] belong to sessions that write. A session that only reads, and begins a
//! statement outside of a transaction block in that span, waits for its end.
//!
//! # When
//! ```text
//!             rows are waited for                   writers get more done alone
//!   Quiet -------------------------> Probing -----------------------------------> Holding
//!     ^                                | ^                                           |
//!     +--- no row is waited for -------+ +---- they get no more done alone ----------+
//! ```
//! Looked at once in [`WINDOW_PERIODS`] periods, by a writer. Quiet: nobody is held. Probing: readers are held in two periods of a window
//! only, which tells whether that helps the writers; where readers do not disturb them (clients have processors of their own, the
//! disk is what everybody waits for), readers go on freely.
//!
//! # Invariants
//! - TURN-1: a reader is held for at most [`ALONE_NS`] at a time, and not again before it has run: readers keep two fifths of the time.
//! - TURN-2: nobody is held in a transaction block, nor a session that has written lately; nobody is held when nobody writes.
//! - TURN-3: while it holds, writers have three fifths of the time for themselves; what they did in it alone is what they keep at least.
//!
//! # Not here
//! Who is a reader: `connection::talk`. A run queue with priorities was tried instead (docs/measured/hot-row-slice.md): it
//! orders what stands in the server, not the clients and the log writer that compete for the same processors.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use clearway_base::waits::{self, WaitEvent};

/// A period, in nanoseconds.
pub const PERIOD_NS: u64 = 10_000_000;
/// The writers' part of it.
pub const ALONE_NS: u64 = 6_000_000;
/// Periods from one look at the figures to the next.
pub const WINDOW_PERIODS: u64 = 16;
/// While probing, every so many periods has a writers' part.
const PROBE_EVERY: u64 = 8;
/// So many statements without a change make a session one that only reads.
pub const READS: u8 = 32;
/// Fewer writes in a window say nothing.
const WRITES_MIN: u64 = 32;
/// So many waits for rows in a window make them contended.
const ROW_WAITS_MIN: u64 = 4;

const QUIET: u8 = 0;
const PROBING: u8 = 1;
const HOLDING: u8 = 2;

/// The state that all connections of a server share. Counts are statistics: what is lost between two of them does not matter.
#[derive(Debug, Default)]
pub struct Turns {
    mode: AtomicU8,
    began_ns: AtomicU64,
    writes_alone: AtomicU64,
    writes_shared: AtomicU64,
    /// Waits for rows up to the window's beginning.
    row_waits: AtomicU64,
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

    /// Counts statements that have changed or locked something.
    pub fn wrote(&self, count: u64) {
        self.wrote_at(waits::now_ns(), count, row_waits);
    }

    fn wrote_at(&self, now_ns: u64, count: u64, row_waits: impl FnOnce() -> u64) {
        let began_ns = self.began_ns.load(Relaxed);
        let since_ns = now_ns.saturating_sub(began_ns);
        if since_ns >= WINDOW_PERIODS * PERIOD_NS {
            if self.began_ns.compare_exchange(began_ns, now_ns, Relaxed, Relaxed).is_ok() {
                self.look(since_ns, row_waits());
            }
            return;
        }
        let alone = alone_ns_left(self.mode.load(Relaxed), since_ns).is_some();
        let counter = if alone { &self.writes_alone } else { &self.writes_shared };
        counter.fetch_add(count, Relaxed);
    }

    /// Ends a window and decides about the next.
    fn look(&self, since_ns: u64, row_waits: u64) {
        let (alone, shared) = (self.writes_alone.swap(0, Relaxed), self.writes_shared.swap(0, Relaxed));
        let waits = row_waits.saturating_sub(self.row_waits.swap(row_waits, Relaxed));
        let mode = self.mode.load(Relaxed);
        let is_stale = since_ns > (WINDOW_PERIODS + 1) * PERIOD_NS;
        let next = if is_stale || waits < ROW_WAITS_MIN || alone + shared < WRITES_MIN {
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

/// What is left of the writers' part that this moment lies in; none: it lies in no such part.
fn alone_ns_left(mode: u8, since_ns: u64) -> Option<u64> {
    let (period, at_ns) = (since_ns / PERIOD_NS, since_ns % PERIOD_NS);
    let has_part = mode == HOLDING || (mode == PROBING && period % PROBE_EVERY == 0);
    (has_part && at_ns < ALONE_NS).then(|| ALONE_NS - at_ns)
}

/// Waits for rows since the process began.
fn row_waits() -> u64 {
    let totals = waits::totals();
    let count = |event: WaitEvent| totals.get(event.index()).map_or(0, |totals| totals.count);
    count(WaitEvent::LockTuple) + count(WaitEvent::LockTransactionid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// Begins anywhere but at 0.
    const BEGAN: u64 = 7_000 * MS;

    /// Lets writers run for so many windows: so many writes per millisecond alone and beside readers, so many waits per window.
    fn run(turns: &Turns, windows: u64, (alone, shared): (u64, u64), waits: u64) -> u64 {
        let mut now = turns.began_ns.load(Relaxed).max(BEGAN);
        for _ in 0..windows * WINDOW_PERIODS * 10 {
            now += MS;
            let mut count = if turns.held_until_at(now).is_some() { alone } else { shared };
            // Readers are held in the writers' part only.
            count += 1;
            turns.wrote_at(now, count, || turns.row_waits.load(Relaxed) + waits);
        }
        now
    }

    #[test]
    fn writers_of_contended_rows_that_readers_slow_down_get_their_part() {
        let turns = Turns::default();
        let now = run(&turns, 4, (40, 10), 100);
        assert_eq!(turns.mode.load(Relaxed), HOLDING, "TURN-3");
        let held = (0..10).filter(|ms| turns.held_until_at(now + ms * MS).is_some()).count();
        assert_eq!(held, 6, "TURN-1");
        for at in (0..20_000).map(|us| now + us * 1_000) {
            if let Some(until) = turns.held_until_at(at) {
                assert!(until - at <= ALONE_NS, "TURN-1");
                assert_eq!(turns.held_until_at(until), None, "TURN-1: it runs before it is held again");
            }
        }
        assert_eq!(turns.held_until_at(now + 3 * WINDOW_PERIODS * PERIOD_NS), None, "TURN-2: the writers are gone");
    }

    #[test]
    fn readers_go_on_where_nobody_waits_for_rows() {
        let turns = Turns::default();
        let now = run(&turns, 6, (40, 10), 0);
        assert!((0..160).all(|ms| turns.held_until_at(now + ms * MS).is_none()), "TURN-2");
    }

    #[test]
    fn readers_go_on_where_writers_are_no_faster_alone() {
        let turns = Turns::default();
        let now = run(&turns, 6, (20, 20), 100);
        assert_eq!(turns.mode.load(Relaxed), PROBING);
        let held = (0..160).filter(|ms| turns.held_until_at(now + ms * MS).is_some()).count();
        assert!(held <= 13, "two probes of 6 ms in a window, not {held} ms");
    }

    #[test]
    fn it_ends_when_the_readers_are_gone() {
        let turns = Turns::default();
        run(&turns, 4, (40, 10), 100);
        run(&turns, 3, (40, 40), 100);
        assert_eq!(turns.mode.load(Relaxed), PROBING);
        run(&turns, 2, (40, 40), 0);
        assert_eq!(turns.mode.load(Relaxed), QUIET);
    }
}
