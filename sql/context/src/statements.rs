//! The cost of every statement, added up by digest; on unless the recorder is switched off (`recorded`).
//!
//! # Structure
//! The key of an entry is the digest, the role, the database, `application_name` and the tags of the statement's comment. An entry is a
//! sum, and a tally ([`Tally`]) for each thread that has run the statement more than once. A statement adds to the tally of its thread; a
//! reader adds the sum and the tallies up. The registry's mutex is taken to read, to find a tally for the first time, and for what is rare.
//!
//! # Invariants
//! - STM-1: there are at most [`ENTRIES_MAX`] entries. When there are so many, the twentieth part of them with the fewest calls is evicted,
//!   and `evicted` counts these.
//! - STM-2: all entries have at most [`TALLIES_MAX`] tallies together. A thread for which there is no place counts in the sum.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use clearway_base::memory;
use clearway_base::sync::{Mutex, thread_number};
use clearway_base::waits::{self, WaitEvent};

pub use super::cost::{BUCKETS, Cost, Execution, Key, MISSED_ROWS, Others, Usual, Work, bounds_of, bucket_of};
pub use super::digest::{Digest, TEXT_MAX, hash_of};
use super::statement_sample::SampleText;
use super::tally::{self, Left, Tally};

/// Entries that are kept, as many as PostgreSQL keeps.
pub const ENTRIES_MAX: usize = 5_000;
/// Tallies of all entries together: half a kilobyte and a histogram each.
const TALLIES_MAX: usize = 32_000;

/// The parts of a key are numbers that are spread already.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

/// An entry.
#[derive(Debug)]
struct Entry {
    sum: Cost,
    live: Vec<Arc<Tally>>,
}

impl Entry {
    fn calls(&self) -> u64 {
        self.sum.calls + self.live.iter().map(|tally| tally.calls()).sum::<u64>()
    }

    /// Moves what threads that have ended have counted into the sum (TLY-3).
    fn take_in(&mut self) -> usize {
        let before = self.live.len();
        let sum = &mut self.sum;
        self.live.retain(|tally| {
            let over = tally.is_over();
            if over {
                tally.add_to(sum);
            }
            !over
        });
        before - self.live.len()
    }

    /// The entry is removed (TLY-4).
    fn leave(&self) -> usize {
        self.live.iter().for_each(|tally| tally.leave());
        self.live.len()
    }
}

#[derive(Debug, Default)]
struct Registry {
    entries: HashMap<Key, Entry, BuildHasherDefault<Mix>>,
    tallies: usize,
    /// Tallies that were refused since the last look for threads that have ended.
    refused: usize,
}

impl Registry {
    /// STM-1; returns how many entries are evicted.
    fn make_room(&mut self) -> usize {
        let mut by_calls: Vec<(u64, Key)> = self.entries.iter().map(|(key, entry)| (entry.calls(), *key)).collect();
        let count = ENTRIES_MAX / 20;
        if by_calls.len() > count {
            by_calls.select_nth_unstable_by_key(count, |(calls, _)| *calls);
        }
        for (_, key) in by_calls.iter().take(count) {
            self.tallies -= self.entries.remove(key).map_or(0, |entry| entry.leave());
        }
        count.min(by_calls.len())
    }

    /// The tally of the calling thread; none: it counts in the sum (STM-2).
    fn tally(&mut self, home: u64, key: &Key) -> Option<Arc<Tally>> {
        let thread = thread_number();
        if self.refused >= TALLIES_MAX {
            self.refused = 0;
            self.tallies -= self.entries.values_mut().map(Entry::take_in).sum::<usize>();
        }
        let entry = self.entries.get_mut(key)?;
        if let Some(tally) = entry.live.iter().find(|tally| tally.thread() == thread) {
            return Some(tally.clone());
        }
        self.tallies -= entry.take_in();
        // The first execution of a text is often the only one.
        if entry.sum.calls == 0 {
            return None;
        }
        if self.tallies >= TALLIES_MAX {
            self.refused += 1;
            return None;
        }
        let tally = Tally::new(home, *key, thread)?;
        entry.live.push(tally.clone());
        self.tallies += 1;
        Some(tally)
    }
}

/// The costs of all statements of a server or an embedded database.
#[derive(Debug)]
pub struct Statements {
    /// Its number in the process (TLY-5).
    home: u64,
    registry: Mutex<Registry>,
    evicted: AtomicU64,
    reset_us: AtomicI64,
}

impl Default for Statements {
    fn default() -> Self {
        static HOMES: AtomicU64 = AtomicU64::new(0);
        Statements {
            home: HOMES.fetch_add(1, Relaxed),
            registry: Mutex::new("sql/statements", Registry::default()),
            evicted: AtomicU64::new(0),
            reset_us: AtomicI64::new(waits::wall_us()),
        }
    }
}

impl Statements {
    /// Counts an execution that ended without an error, a warning, a whole scan or any wait beside those for its client and in the run queue.
    /// False: it was not counted, since a sample of it is wanted or the thread has no tally of it; it is for `ran`.
    pub fn ran_usually(&self, key: &Key, usual: &Usual) -> bool {
        tally::with_own(self.home, key, |tally| tally.ran_usually(usual)).unwrap_or(false)
    }

    /// Counts any execution. `waits` gives what it has waited for, beside the run queue. True: a sample of it is wanted.
    pub fn ran(&self, execution: &Execution<'_>, waits: impl FnOnce(&mut dyn FnMut(WaitEvent, u64, u64))) -> bool {
        let (mut waits, mut left) = (Some(waits), Vec::new());
        let counted = tally::with_own(self.home, execution.key, |tally| {
            tally.ran(execution, |tally| waits.take().into_iter().for_each(|waits| tally.add_waits(waits, &mut left)))
        });
        if !left.is_empty() {
            self.add_left(execution.key, &left, 0);
        }
        match (counted, waits) {
            (None, Some(waits)) => self.ran_anew(execution, waits),
            (counted, _) => counted.unwrap_or(false),
        }
    }

    /// This thread has not counted the statement lately.
    #[cold]
    #[inline(never)]
    fn ran_anew(&self, execution: &Execution<'_>, waits: impl FnOnce(&mut dyn FnMut(WaitEvent, u64, u64))) -> bool {
        let Execution { key, digest, application, .. } = execution;
        // What the registry keeps is the server's, whatever session is the first to run a statement.
        let kept = memory::uncharged(|| {
            let mut registry = self.registry.lock();
            if !registry.entries.contains_key(*key) {
                if registry.entries.len() >= ENTRIES_MAX {
                    self.evicted.fetch_add(registry.make_room() as u64, Relaxed);
                }
                let sum = Cost::new((*digest).clone(), (*application).clone(), **key);
                registry.entries.insert(**key, Entry { sum, live: Vec::new() });
            }
            match (registry.tally(self.home, key), registry.entries.get_mut(*key)) {
                (None, Some(entry)) => {
                    waits(&mut |event, count, ns| entry.sum.waited(event, count, ns));
                    Err(entry.sum.ran(execution))
                }
                (tally, _) => Ok((tally, waits)),
            }
        });
        let (tally, waits) = match kept {
            Ok((Some(tally), waits)) => (tally, waits),
            Ok((None, _)) => return false,
            Err(wants_sample) => return wants_sample,
        };
        let mut left = Vec::new();
        let wants_sample = tally.ran(execution, |tally| tally.add_waits(waits, &mut left));
        memory::uncharged(|| tally::keep(tally));
        self.add_left(key, &left, 0);
        wants_sample
    }

    /// Adds waits for which a tally has no place to the sum, and so much to the time from message to reply.
    #[cold]
    fn add_left(&self, key: &Key, left: &[Left], busy_ns: u64) {
        if let Some(entry) = self.registry.lock().entries.get_mut(key).filter(|_| !left.is_empty()) {
            left.iter().for_each(|(event, count, ns)| entry.sum.waited(*event, *count, *ns));
            entry.sum.busy_ns += busy_ns;
        }
    }

    /// Keeps a sample of an execution (STX-1), with the text as the client sent it.
    #[cold]
    pub fn sample(&self, key: &Key, ns: u64, ended_ns: u64, text: &str) {
        memory::uncharged(|| {
            let sample = SampleText::of(text, ns, ended_ns);
            if let Some(entry) = self.registry.lock().entries.get_mut(key) {
                entry.sum.sample.add(&sample);
            }
        });
    }

    /// Counts waits that came after an execution: those of its commit. `waits` gives each, how many and how long.
    pub fn waited(&self, key: &Key, waits: impl FnOnce(&mut dyn FnMut(WaitEvent, u64, u64))) {
        let mut waits = Some(waits);
        let counted = tally::with_own(self.home, key, |tally| waits.take().map(|waits| tally.waited_later(waits)));
        let mut left = counted.flatten().unwrap_or_default();
        if let Some(waits) = waits {
            waits(&mut |event, count, ns| left.push((event, count, ns)));
        }
        if !left.is_empty() {
            self.add_left(key, &left, left.iter().map(|(_, _, ns)| ns).sum());
        }
    }

    /// Every entry, with what all threads have counted.
    pub fn all(&self) -> Vec<Cost> {
        let mut all: Vec<Cost> = {
            let mut registry = self.registry.lock();
            let registry = &mut *registry;
            let sum_up = |entry: &mut Entry| {
                registry.tallies -= entry.take_in();
                let mut sum = entry.sum.clone();
                entry.live.iter().for_each(|tally| tally.add_to(&mut sum));
                sum
            };
            registry.entries.values_mut().map(sum_up).collect()
        };
        let (now_us, now_ns) = (waits::wall_us(), waits::now_ns());
        for cost in all.iter_mut().filter(|cost| cost.last_ns > 0) {
            let ago_us = i64::try_from(now_ns.saturating_sub(cost.last_ns) / 1_000).unwrap_or(i64::MAX);
            cost.last_us = cost.last_us.max(now_us - ago_us);
        }
        all
    }

    /// How many entries had to go, and since when it counts: wall clock, microseconds since 1970.
    pub fn info(&self) -> (u64, i64) {
        (self.evicted.load(Relaxed), self.reset_us.load(Relaxed))
    }

    /// Begins anew.
    pub fn reset(&self) {
        self.forget(|_| true);
        self.evicted.store(0, Relaxed);
        self.reset_us.store(waits::wall_us(), Relaxed);
    }

    /// Forgets some entries.
    pub fn forget(&self, which: impl Fn(&Key) -> bool) {
        let mut registry = self.registry.lock();
        let registry = &mut *registry;
        registry.entries.retain(|key, entry| {
            let stays = !which(key);
            if !stays {
                registry.tallies -= entry.leave();
            }
            stays
        });
    }

    /// Takes in what an earlier run has left.
    pub fn restore(&self, earlier: Vec<(Key, Cost)>) {
        let mut registry = self.registry.lock();
        for (key, cost) in earlier {
            if let Some(entry) = registry.entries.get_mut(&key) {
                entry.sum.add(&cost);
            } else if registry.entries.len() < ENTRIES_MAX {
                registry.entries.insert(key, Entry { sum: cost, live: Vec::new() });
            }
        }
    }
}

#[cfg(test)]
#[path = "statements_tests.rs"]
mod tests;
