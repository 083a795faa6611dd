//! What the executions of one statement add up to on one thread: the thread adds without a lock, and any thread may read.
//!
//! # Structure
//! Each thread counts an entry of [`Statements`](super::statements::Statements) in a tally of its own, which it finds in a table of its own
//! ([`with_own`], [`keep`]), without a lock. The entry lists its tallies, and adds them up when it is read. The table is not the session's:
//! sessions that run the same statements in turns find the thread's one in the processor's cache, a table of their own they would not.
//!
//! # Invariants
//! - TLY-1: only the thread whose number a tally has writes to it, so a load followed by a store is a correct addition.
//! - TLY-2: `version` is odd while the thread writes. A reader that finds it even, and unchanged after reading, has read whole executions.
//! - TLY-3: what a tally holds is moved into the sum of its entry once, when its thread has ended. Until then the entry lists it.
//! - TLY-4: a tally whose entry was removed is [`GONE`], and its thread counts in another from then on. An execution that ends at the same
//!   moment as a reset is one of those that the reset forgets.
//! - TLY-5: a thread's table has the tallies of all `Statements` of the process; each is found by the number of its own.
//!
//! # Not here
//! A thread that still runs statements while its thread-local values are dropped may lose the counts of these.

use std::cell::RefCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::sync::{Arc, Weak};

use clearway_base::usage::Usage;
use clearway_base::waits::WaitEvent;

use super::cost::{BUCKETS, Cost, Execution, Key, Usual, Work, bucket_of};

/// Wait events that a tally counts beside RunQueue; those of any further event are added to the sum of the entry.
const EVENTS: usize = 6;
/// Places of a thread's table at first, and at most.
const PLACES: usize = 128;
const PLACES_MAX: usize = 4_096;
/// The number of no `Statements`.
const GONE: u64 = u64::MAX;
/// After so many attempts to read a tally a reader lets the thread run that writes to it: it has lost its processor meanwhile.
const ATTEMPTS: usize = 100;

thread_local! {
    static TABLE: RefCell<Table> = RefCell::new(Table { alive: Arc::new(()), places: Vec::new() });
}

/// The tallies that a thread has found lately, each at the place that its digest gives.
struct Table {
    /// Lives as long as the thread does; goes before the tallies.
    alive: Arc<()>,
    places: Vec<Option<Arc<Tally>>>,
}

/// A counter with one writer (TLY-1).
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    #[inline]
    fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Waits for which a tally has no place: event, how many, how long.
pub type Left = (WaitEvent, u64, u64);

/// Waits of one event; `event` is its number and 1, 0: the place is free.
#[derive(Debug, Default)]
struct Waited {
    event: Count,
    count: Count,
    ns: Count,
}

/// The executions of one entry on one thread. What each execution touches stands in its first three cache lines, and in that of its bucket.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Tally {
    version: AtomicU64,
    /// The number of its `Statements`; [`GONE`]: its entry was removed (TLY-4).
    home: AtomicU64,
    key: Key,
    rows: Count,
    examined: Count,
    total_ns: Count,
    min_ns: Count,
    max_ns: Count,
    /// The bits of a floating-point number: the sum of the squares, in square nanoseconds.
    squares: Count,
    busy_ns: Count,
    cpu_ns: Count,
    last_ns: Count,
    /// How long the latest sample took, and until when it stays if none takes longer (STX-1).
    sample_ns: Count,
    sample_until_ns: Count,
    repeated: Count,
    queued: Count,
    queued_ns: Count,
    pages_hit: Count,
    log_records: Count,
    log_bytes: Count,
    waits: [Waited; EVENTS],
    /// By duration; its sum is the number of executions.
    histogram: [Count; BUCKETS],
    errors: Count,
    warnings: Count,
    full_scans: Count,
    missed_index: Count,
    series: Count,
    pages_read: Count,
    pages_dirtied: Count,
    temp_read: Count,
    temp_written: Count,
    thread: usize,
    alive: Weak<()>,
}

const _: () = assert!(std::mem::offset_of!(Tally, waits) <= 3 * 64, "three cache lines");

impl Tally {
    /// An empty one of the calling thread, of the `Statements` of that number; none: the thread is ending.
    pub fn new(home: u64, key: Key, thread: usize) -> Option<Arc<Tally>> {
        let alive = TABLE.try_with(|table| Arc::downgrade(&table.borrow().alive)).ok()?;
        let min_ns = Count::default();
        min_ns.set(u64::MAX);
        Some(Arc::new(Tally {
            version: AtomicU64::new(0),
            home: AtomicU64::new(home),
            key,
            thread,
            rows: Count::default(),
            examined: Count::default(),
            total_ns: Count::default(),
            min_ns,
            max_ns: Count::default(),
            squares: Count::default(),
            busy_ns: Count::default(),
            cpu_ns: Count::default(),
            last_ns: Count::default(),
            sample_ns: Count::default(),
            sample_until_ns: Count::default(),
            errors: Count::default(),
            warnings: Count::default(),
            full_scans: Count::default(),
            missed_index: Count::default(),
            repeated: Count::default(),
            series: Count::default(),
            queued: Count::default(),
            queued_ns: Count::default(),
            pages_hit: Count::default(),
            pages_read: Count::default(),
            pages_dirtied: Count::default(),
            temp_read: Count::default(),
            temp_written: Count::default(),
            log_records: Count::default(),
            log_bytes: Count::default(),
            waits: std::array::from_fn(|_| Waited::default()),
            histogram: std::array::from_fn(|_| Count::default()),
            alive,
        }))
    }

    /// The number of its thread.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// How many executions it has counted.
    pub fn calls(&self) -> u64 {
        self.histogram.iter().map(Count::get).sum()
    }

    /// Its entry is removed (TLY-4).
    pub fn leave(&self) {
        self.home.store(GONE, Relaxed);
    }

    /// Whether its thread has ended, so that nothing is added any more (TLY-3).
    pub fn is_over(&self) -> bool {
        let over = self.alive.strong_count() == 0;
        // What the thread has written before it dropped its reference is seen from here on.
        fence(Acquire);
        over
    }

    #[inline]
    fn begin(&self) -> u64 {
        let version = self.version.load(Relaxed);
        self.version.store(version + 1, Relaxed);
        fence(Release); // TLY-2
        version
    }

    #[inline]
    fn end(&self, version: u64) {
        self.version.store(version + 2, Release);
    }

    /// Counts an execution that has no other figures than these (TLY-1). False: it was not counted, since a sample of it is wanted.
    #[inline]
    pub fn ran_usually(&self, usual: &Usual) -> bool {
        if self.wants_sample(usual.ns, usual.ended_ns) {
            return false;
        }
        let version = self.begin();
        self.add(usual);
        self.end(version);
        true
    }

    #[inline]
    fn wants_sample(&self, ns: u64, ended_ns: u64) -> bool {
        ns > self.sample_ns.get() || ended_ns > self.sample_until_ns.get()
    }

    /// What each execution adds.
    #[inline]
    fn add(&self, usual: &Usual) {
        let ns = usual.ns;
        self.rows.add(usual.rows);
        self.examined.add(usual.examined);
        self.total_ns.add(ns);
        if ns < self.min_ns.get() {
            self.min_ns.set(ns);
        }
        if ns > self.max_ns.get() {
            self.max_ns.set(ns);
        }
        // As a signed number it is converted by one instruction; no execution takes 292 years.
        let square = (ns as i64 as f64) * (ns as i64 as f64);
        self.squares.set((f64::from_bits(self.squares.get()) + square).to_bits());
        self.busy_ns.add(usual.busy_ns);
        self.cpu_ns.add(usual.cpu_ns);
        self.last_ns.set(usual.ended_ns);
        self.histogram[bucket_of(ns)].add(1);
        self.queued.add(usual.queued.0);
        self.queued_ns.add(usual.queued.1);
        self.repeated.add(usual.repeated);
        if usual.repeated > 1 {
            self.series_begins();
        }
        self.uses(&usual.used);
    }

    #[inline]
    fn uses(&self, used: &Usage) {
        self.pages_hit.add(used.pages_hit);
        if used.log_records != 0 {
            self.log_records.add(used.log_records);
            self.log_bytes.add(used.log_bytes);
        }
        if used.pages_read | used.pages_dirtied | used.temp_read | used.temp_written != 0 {
            self.uses_more(used);
        }
    }

    #[cold]
    fn uses_more(&self, used: &Usage) {
        self.pages_read.add(used.pages_read);
        self.pages_dirtied.add(used.pages_dirtied);
        self.temp_read.add(used.temp_read);
        self.temp_written.add(used.temp_written);
    }

    #[cold]
    fn series_begins(&self) {
        self.series.add(1);
    }

    /// Counts any execution (TLY-1); `waits` adds its waits by `add_waits`. True: a sample of the execution is wanted.
    pub fn ran(&self, execution: &Execution<'_>, waits: impl FnOnce(&Tally)) -> bool {
        let Usual { ns, ended_ns, .. } = execution.usual;
        let version = self.begin();
        self.add(&execution.usual);
        self.errors.add(u64::from(execution.others.failed));
        self.warnings.add(execution.others.warnings);
        self.full_scans.add(execution.others.full_scans);
        self.missed_index.add(execution.others.missed_index);
        waits(self);
        let wants_sample = self.wants_sample(ns, ended_ns);
        if wants_sample {
            self.sample_ns.set(ns);
            self.sample_until_ns.set(super::statement_sample::lasts_until(ended_ns));
        }
        self.end(version);
        wants_sample
    }

    /// False: there is no place for this event.
    #[inline]
    fn waits_of(&self, event: WaitEvent, count: u64, ns: u64) -> bool {
        let number = event.index() as u64 + 1;
        let place = self.waits.iter().find(|place| {
            let taken = place.event.get();
            taken == number || taken == 0
        });
        let Some(place) = place else { return false };
        place.event.set(number);
        place.count.add(count);
        place.ns.add(ns);
        true
    }

    /// Adds waits of the execution that is being counted; those for which there is no place are given to `left`.
    pub fn add_waits(&self, waits: impl FnOnce(&mut dyn FnMut(WaitEvent, u64, u64)), left: &mut Vec<Left>) {
        waits(&mut |event, count, ns| {
            if !self.waits_of(event, count, ns) {
                left.push((event, count, ns));
            }
        });
    }

    /// Counts waits that came after an execution (TLY-1); returns those for which there is no place, whose time is not added either.
    pub fn waited_later(&self, waits: impl FnOnce(&mut dyn FnMut(WaitEvent, u64, u64))) -> Vec<Left> {
        let mut left = Vec::new();
        let version = self.begin();
        waits(&mut |event, count, ns| match self.waits_of(event, count, ns) {
            true => self.busy_ns.add(ns),
            false => left.push((event, count, ns)),
        });
        self.end(version);
        left
    }

    /// Adds what it holds to a sum (TLY-2).
    pub fn add_to(&self, sum: &mut Cost) {
        for attempt in 1.. {
            // A thread that had ended before leaves an odd version only if it panicked while it wrote.
            let over = self.is_over();
            let version = self.version.load(Acquire);
            let mut with_it = sum.clone();
            self.add_figures(&mut with_it);
            fence(Acquire);
            let is_whole = version.is_multiple_of(2) && self.version.load(Relaxed) == version;
            if is_whole || over {
                *sum = with_it;
                return;
            }
            if attempt % ATTEMPTS == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }

    fn add_figures(&self, sum: &mut Cost) {
        sum.calls += self.calls();
        sum.errors += self.errors.get();
        sum.rows += self.rows.get();
        sum.warnings += self.warnings.get();
        sum.work.add(&Work {
            examined: self.examined.get(),
            full_scans: self.full_scans.get(),
            missed_index: self.missed_index.get(),
            repeated: self.repeated.get(),
            series: self.series.get(),
        });
        sum.used += Usage {
            pages_hit: self.pages_hit.get(),
            pages_read: self.pages_read.get(),
            pages_dirtied: self.pages_dirtied.get(),
            temp_read: self.temp_read.get(),
            temp_written: self.temp_written.get(),
            log_records: self.log_records.get(),
            log_bytes: self.log_bytes.get(),
        };
        sum.total_ns += self.total_ns.get();
        sum.min_ns = sum.min_ns.min(self.min_ns.get());
        sum.max_ns = sum.max_ns.max(self.max_ns.get());
        sum.squares_ms += f64::from_bits(self.squares.get()) / 1e12;
        sum.busy_ns += self.busy_ns.get();
        sum.cpu_ns += self.cpu_ns.get();
        sum.last_ns = sum.last_ns.max(self.last_ns.get());
        for (sum, own) in sum.histogram.iter_mut().zip(&self.histogram) {
            *sum = sum.saturating_add(u32::try_from(own.get()).unwrap_or(u32::MAX));
        }
        sum.queued((self.queued.get(), self.queued_ns.get()));
        for place in &self.waits {
            let event = (place.event.get() as usize).checked_sub(1).and_then(WaitEvent::from_index);
            event.into_iter().for_each(|event| sum.waited(event, place.count.get(), place.ns.get()));
        }
    }
}

impl Tally {
    #[inline]
    fn is_of(&self, home: u64, key: &Key) -> bool {
        // One branch.
        let (own, numbers) = (&self.key, (self.key.user ^ key.user) | (self.key.database ^ key.database));
        let hashes = (own.query ^ key.query) | (own.application ^ key.application) | (own.tags ^ key.tags);
        (hashes | u64::from(numbers) | (self.home.load(Relaxed) ^ home)) == 0
    }
}

impl Table {
    #[inline]
    fn place(&self, key: &Key) -> usize {
        // The digest is a hash already; the length is a power of two.
        (key.query ^ key.application.rotate_left(7) ^ u64::from(key.user)) as usize & self.places.len().wrapping_sub(1)
    }

    #[inline]
    fn find(&self, home: u64, key: &Key) -> Option<&Tally> {
        self.places.get(self.place(key))?.as_deref().filter(|tally| tally.is_of(home, key))
    }

    fn keep(&mut self, tally: Arc<Tally>) {
        if self.places.is_empty() {
            self.places.resize(PLACES, None);
        }
        loop {
            let (place, length) = (self.place(&tally.key), self.places.len());
            let Some(kept) = self.places.get_mut(place) else { return };
            let is_other = kept.as_ref().is_some_and(|kept| kept.home.load(Relaxed) != GONE && kept.key != tally.key);
            if !is_other || length >= PLACES_MAX {
                *kept = Some(tally);
                return;
            }
            let grown = vec![None; 2 * length];
            for kept in std::mem::replace(&mut self.places, grown).into_iter().flatten() {
                let place = self.place(&kept.key);
                self.places[place] = Some(kept);
            }
        }
    }
}

/// Gives the calling thread's tally of an entry, if the thread has found it lately; `home` is the number of its `Statements` (TLY-5).
#[inline]
pub fn with_own<R>(home: u64, key: &Key, use_it: impl FnOnce(&Tally) -> R) -> Option<R> {
    TABLE.try_with(|table| table.borrow().find(home, key).map(use_it)).ok().flatten()
}

/// Keeps a tally of the calling thread for the next time.
pub fn keep(tally: Arc<Tally>) {
    // A thread that is ending needs it no more.
    let _ = TABLE.try_with(|table| table.borrow_mut().keep(tally));
}
