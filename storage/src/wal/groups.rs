//! The flushes that are under way, and the threads that wait for one of them.
//!
//! A flush carries a group of commits. While its sync is under way the next group may be written: its sync then is at the device when the first one
//! ends, and the time in which the committers of the first are woken is no pause of the disk. (LevelDB and RocksDB write one group at a time, whose
//! leader is a committer, too; RocksDB's pipelined writes overlap the log of one group with the memory tables of another, WiredTiger's log slots
//! are filled while an earlier slot is written and synced.)
//!
//! # Life of a flush
//! begun (it has taken its records) -> written -> synced -> published, when all before it are -> its bell ticks.
//!
//! # Structure
//! A thread that waits takes its seat with the first flush that reaches its record, or with the next one that will be begun, and parks at
//! that flush's bell; one tick releases a whole group. Tasks wait in the queue ([`super::waiters`]).
//!
//! # Invariants
//! - WAL-28: at most [`UNDER_WAY_MAX`] flushes are under way, that is begun and not published, and one task at a time writes.
//! - WAL-29: flushes are published in the order in which they were begun, and a flush only after its own sync has returned without an error. So after
//!   a failed sync nothing is published that was written before or after it.
//! - WAL-30: a thread reads its bell's count, then what is durable, and then parks; a flush is published, then ticks. One of the two sees the other.
//!   A flush that is begun after a thread has taken a seat with the next flush has that seat's bell.

use clearway_base::sync::{Mutex, Ticker};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many flushes may be under way.
pub(super) const UNDER_WAY_MAX: u64 = 2;
/// Flushes under way, and the next one, have different bells.
const BELLS: u64 = 4;

/// See the head of this module.
pub(super) struct Groups {
    flushes: Mutex<Flushes>,
    under_way: AtomicU64,
    bells: [Ticker; BELLS as usize],
}

/// The flushes, numbered from 1 on.
#[derive(Default)]
struct Flushes {
    begun: u64,
    published: u64,
    /// Those under way, by their numbers.
    under_way: [Flush; BELLS as usize],
}

/// A flush that has been begun.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flush {
    /// The log up to here is durable when it and all before it are synced.
    pub end: u64,
    /// How many committers had come when it took its records.
    pub arrived: u64,
    is_synced: bool,
}

/// Where a thread waits for a flush.
pub(super) struct Seat<'a> {
    bell: &'a Ticker,
    count: u32,
}

impl Seat<'_> {
    /// Parks until the flush has ticked, or one that shares its bell.
    pub fn wait(self) {
        self.bell.wait(self.count);
    }
}

impl Default for Groups {
    fn default() -> Self {
        let flushes = Mutex::new("storage/wal/groups", Flushes::default());
        Groups { flushes, under_way: AtomicU64::new(0), bells: Default::default() }
    }
}

fn slot(number: u64) -> usize {
    (number % BELLS) as usize
}

impl Groups {
    /// How many flushes are under way.
    #[inline]
    pub fn under_way(&self) -> u64 {
        self.under_way.load(Ordering::SeqCst)
    }

    /// A flush has taken the records up to `end`; returns its number. The caller has the flush state.
    pub fn begin(&self, end: u64, arrived: u64) -> u64 {
        let mut flushes = self.flushes.lock();
        flushes.begun += 1;
        let number = flushes.begun;
        let count = number - flushes.published;
        assert!(count <= UNDER_WAY_MAX, "WAL-28: {count} flushes under way");
        flushes.under_way[slot(number)] = Flush { end, arrived, is_synced: false };
        self.under_way.store(count, Ordering::SeqCst);
        number
    }

    /// The sync of a flush has returned without an error.
    pub fn synced(&self, number: u64) {
        let mut flushes = self.flushes.lock();
        assert!(number > flushes.published && number <= flushes.begun, "WAL-29: flush {number} is not under way");
        flushes.under_way[slot(number)].is_synced = true;
    }

    /// The flush that is to be published next, if it may be.
    pub fn due(&self) -> Option<(u64, Flush)> {
        let flushes = self.flushes.lock();
        let next = flushes.published + 1;
        let flush = flushes.under_way[slot(next)];
        (next <= flushes.begun && flush.is_synced).then_some((next, flush)) // WAL-29
    }

    /// A flush is published.
    pub fn published(&self, number: u64) {
        let mut flushes = self.flushes.lock();
        assert_eq!(flushes.published + 1, number, "WAL-29: published out of order");
        flushes.published = number;
        self.under_way.store(flushes.begun - number, Ordering::SeqCst);
    }

    /// Releases the threads that wait for a flush.
    pub fn tick(&self, number: u64) {
        self.bells[slot(number)].tick();
    }

    /// Releases all threads: the log is poisoned.
    pub fn tick_all(&self) {
        self.bells.iter().for_each(Ticker::tick);
    }

    /// A seat with the flush that makes the log durable up to `lsn`. The caller then looks what is durable, and after that may wait (WAL-30).
    pub fn seat(&self, lsn: u64) -> Seat<'_> {
        let flushes = self.flushes.lock();
        let covers = |number: &u64| flushes.under_way[slot(*number)].end >= lsn;
        let number = (flushes.published + 1..=flushes.begun).find(covers).unwrap_or(flushes.begun + 1);
        let bell = &self.bells[slot(number)];
        Seat { bell, count: bell.count() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WAL-29
    #[test]
    fn a_flush_is_published_after_those_before_it() {
        let groups = Groups::default();
        let (first, second) = (groups.begin(100, 1), groups.begin(200, 2));
        assert_eq!(groups.under_way(), 2);
        groups.synced(second);
        assert!(groups.due().is_none(), "the first is not synced");
        groups.synced(first);
        let (number, flush) = groups.due().expect("both are synced");
        assert_eq!((number, flush.end), (first, 100));
        groups.published(number);
        let (number, flush) = groups.due().expect("the second is synced");
        assert_eq!((number, flush.end, groups.under_way()), (second, 200, 1));
        groups.published(number);
        assert!(groups.due().is_none());
        assert_eq!(groups.under_way(), 0);
    }

    /// WAL-28
    #[test]
    #[should_panic(expected = "WAL-28: 3 flushes under way")]
    fn no_third_flush_is_begun() {
        let groups = Groups::default();
        for number in 1..=3 {
            assert_eq!(groups.begin(100 * number, number), number);
        }
    }

    /// WAL-30
    #[test]
    fn a_seat_is_that_of_the_flush_that_carries_the_record() {
        let groups = Groups::default();
        let ends = |seat: &Seat<'_>| seat.bell.count() != seat.count;
        let early = groups.seat(150);
        let first = groups.begin(100, 1);
        let (carried, next) = (groups.seat(100), groups.seat(101));
        let second = groups.begin(200, 2);
        let third = groups.seat(201);
        groups.synced(first);
        groups.published(first);
        groups.tick(first);
        assert!(ends(&carried) && ends(&early), "one that could not know how far the flush would reach looks again");
        assert!(!ends(&next) && !ends(&third));
        groups.synced(second);
        groups.published(second);
        groups.tick(second);
        assert!(ends(&next) && !ends(&third));
        groups.tick_all();
        assert!(ends(&third));
    }
}
