//! Totals per wait event: count, time, longest, spin time and a histogram, in shards that only their own thread writes.
//!
//! # Structure
//! Each thread owns a shard and writes it with relaxed loads and stores, never with a locked instruction and never on a
//! cache line that another thread writes. A reader adds the shards up. When a thread ends, its shard is added to the
//! retired totals and forgotten.
//!
//! # Invariants
//! - TOT-1: only its own thread writes a shard, so a load followed by a store is a correct addition.
//! - TOT-2: nothing that was recorded is lost when a thread ends, and nothing is counted twice while it ends: retiring
//!   and reading exclude each other.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::context;
use super::event::WaitEvent;

/// Buckets of a histogram: bucket `i` holds waits of 2^i to 2^(i+1) ns, the first one those of 0 too, the last one all
/// that are longer (from 9 minutes on).
pub const HISTOGRAM_BUCKETS: usize = 40;

/// What all waits of one event add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTotals {
    /// How many waits there were.
    pub count: u64,
    /// How long they were together, spinning included.
    pub total_ns: u64,
    /// How long the longest was.
    pub max_ns: u64,
    /// How much of the time was spun away on a processor; the rest was parked.
    pub spin_ns: u64,
    /// How many waits fell into each power of two; see [`HISTOGRAM_BUCKETS`].
    pub histogram: [u64; HISTOGRAM_BUCKETS],
}

impl Default for EventTotals {
    fn default() -> Self {
        Self { count: 0, total_ns: 0, max_ns: 0, spin_ns: 0, histogram: [0; HISTOGRAM_BUCKETS] }
    }
}

impl EventTotals {
    /// Adds the waits of another shard or event.
    pub fn add(&mut self, other: &EventTotals) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.spin_ns = self.spin_ns.saturating_add(other.spin_ns);
        for (mine, others) in self.histogram.iter_mut().zip(&other.histogram) {
            *mine += others;
        }
    }

    /// The waits since `earlier` totals of the same event; the longest stays that of the whole time.
    pub fn since(&self, earlier: &EventTotals) -> EventTotals {
        let mut difference = *self;
        difference.count = self.count.saturating_sub(earlier.count);
        difference.total_ns = self.total_ns.saturating_sub(earlier.total_ns);
        difference.spin_ns = self.spin_ns.saturating_sub(earlier.spin_ns);
        for (mine, earlier) in difference.histogram.iter_mut().zip(&earlier.histogram) {
            *mine = mine.saturating_sub(*earlier);
        }
        difference
    }
}

/// The bucket of a histogram that a wait belongs to.
#[inline]
pub fn bucket_of(ns: u64) -> usize {
    ((ns | 1).ilog2() as usize).min(HISTOGRAM_BUCKETS - 1)
}

/// Adds to a counter that has one writer (TOT-1).
#[inline]
pub(super) fn add_single_writer(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(value), Relaxed);
}

/// Raises a maximum that has one writer (TOT-1).
#[inline]
pub(super) fn raise_single_writer(maximum: &AtomicU64, value: u64) {
    if value > maximum.load(Relaxed) {
        maximum.store(value, Relaxed);
    }
}

/// How many waits there were is the sum of its histogram.
struct EventCell {
    total_ns: AtomicU64,
    max_ns: AtomicU64,
    spin_ns: AtomicU64,
    histogram: [AtomicU64; HISTOGRAM_BUCKETS],
}

impl EventCell {
    fn new() -> Self {
        Self {
            total_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
            spin_ns: AtomicU64::new(0),
            histogram: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    #[inline]
    fn record(&self, ns: u64, spin_ns: u64) {
        add_single_writer(&self.total_ns, ns);
        raise_single_writer(&self.max_ns, ns);
        if spin_ns != 0 {
            add_single_writer(&self.spin_ns, spin_ns);
        }
        add_single_writer(&self.histogram[bucket_of(ns)], 1);
    }

    fn read(&self) -> EventTotals {
        let histogram: [u64; HISTOGRAM_BUCKETS] = std::array::from_fn(|i| self.histogram[i].load(Relaxed));
        EventTotals {
            count: histogram.iter().sum(),
            total_ns: self.total_ns.load(Relaxed),
            max_ns: self.max_ns.load(Relaxed),
            spin_ns: self.spin_ns.load(Relaxed),
            histogram,
        }
    }
}

struct Shard {
    events: [EventCell; WaitEvent::COUNT],
}

#[derive(Default)]
struct Shards {
    live: Vec<Arc<Shard>>,
    retired: Vec<EventTotals>,
}

static SHARDS: Mutex<Shards> = Mutex::new(Shards { live: Vec::new(), retired: Vec::new() });

fn shards() -> MutexGuard<'static, Shards> {
    SHARDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread's hold on its shard, in its context; dropped when the thread ends.
pub(super) struct Owned(Arc<Shard>);

impl Owned {
    #[cold]
    pub fn new() -> Self {
        let shard = Arc::new(Shard { events: std::array::from_fn(|_| EventCell::new()) });
        shards().live.push(Arc::clone(&shard));
        Self(shard)
    }

    /// Adds one wait; to be called by its thread (TOT-1).
    #[inline]
    pub fn record(&self, event: WaitEvent, ns: u64, spin_ns: u64) {
        self.0.events[event.index()].record(ns, spin_ns);
    }
}

impl Drop for Owned {
    /// TOT-2: one critical section takes the shard off the list and adds it to the retired totals.
    fn drop(&mut self) {
        let mut shards = shards();
        shards.live.retain(|shard| !Arc::ptr_eq(shard, &self.0));
        shards.retired.resize_with(WaitEvent::COUNT, EventTotals::default);
        for (total, cell) in shards.retired.iter_mut().zip(&self.0.events) {
            total.add(&cell.read());
        }
    }
}

/// Adds one wait to the calling thread's shard.
#[inline]
pub(crate) fn record(event: WaitEvent, ns: u64, spin_ns: u64) {
    // A thread that is ending has given its shard back; what destructors still wait for is not counted.
    let _ = context::with(|context| context.record(event, ns, spin_ns));
}

/// Adds what an earlier process has left to the totals.
pub fn restore_totals(earlier: &[(WaitEvent, EventTotals)]) {
    let mut shards = shards();
    shards.retired.resize_with(WaitEvent::COUNT, EventTotals::default);
    for (event, totals) in earlier {
        shards.retired[event.index()].add(totals);
    }
}

/// The totals of every event since the process began, and what [`restore_totals`] has added, in the order of `WaitEvent::all()`.
///
/// Shards are read while their threads write: a wait that ends meanwhile may show in one column and not yet in another.
pub fn totals() -> Vec<EventTotals> {
    let shards = shards();
    let mut totals = shards.retired.clone();
    totals.resize_with(WaitEvent::COUNT, EventTotals::default);
    for shard in &shards.live {
        for (total, cell) in totals.iter_mut().zip(&shard.events) {
            total.add(&cell.read());
        }
    }
    totals
}

const ENABLED: u8 = 1;
const TIMED: u8 = 2;

static INSTRUMENTS: [AtomicU8; WaitEvent::COUNT] = [const { AtomicU8::new(ENABLED | TIMED) }; WaitEvent::COUNT];

/// Whether waits of an event are counted, and whether they are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Counted and shown in the session's block.
    pub enabled: bool,
    /// Timed too.
    pub timed: bool,
}

/// The instrument of an event.
#[inline]
pub fn instrument(event: WaitEvent) -> Instrument {
    let bits = INSTRUMENTS[event.index()].load(Relaxed);
    Instrument { enabled: bits & ENABLED != 0, timed: bits & TIMED != 0 }
}

/// Turns an event's instrument on or off; waits that have begun end as they began.
pub fn set_instrument(event: WaitEvent, instrument: Instrument) {
    let bits = u8::from(instrument.enabled) * ENABLED + u8::from(instrument.timed) * TIMED;
    INSTRUMENTS[event.index()].store(bits, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_two() {
        let cases = [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (1023, 9), (1024, 10), (u64::MAX, HISTOGRAM_BUCKETS - 1)];
        for (ns, bucket) in cases {
            assert_eq!(bucket_of(ns), bucket, "{ns} ns");
        }
    }

    #[test]
    fn waits_of_threads_that_ended_stay_in_the_totals() {
        // No other test of this crate records this event.
        let event = WaitEvent::BaseBackupRead;
        let before = totals()[event.index()];
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(move || {
                    for ns in 0..1_000 {
                        record(event, ns, ns / 2);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let after = totals()[event.index()].since(&before);
        assert_eq!((after.count, after.total_ns, after.max_ns), (4_000, 4 * 499_500, 999), "TOT-2");
        assert_eq!(after.spin_ns, 4 * 249_500, "TOT-2");
        assert_eq!(after.histogram.iter().sum::<u64>(), 4_000, "TOT-2");
        assert_eq!(after.histogram[9], 4 * 488, "512 to 999");
        restore_totals(&[(event, after)]);
        let restored = totals()[event.index()].since(&before);
        assert_eq!((restored.count, restored.histogram[9]), (8_000, 8 * 488));
    }
}
