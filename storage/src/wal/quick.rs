//! Whether flushes are so quick that handing one to another thread would take longer: files in memory, or a disk that answers from a cache.
//!
//! To hand a flush over takes two changes of threads (the flusher is woken, and the committer again), some 10 us of processor time; a
//! flush of files in memory takes 3 to 5. On a disk a flush takes 50 us and more, in which other sessions append, and the flusher's thread does it.
//!
//! # Invariants
//! - WAL-27: a task that shares its thread with others flushes while other sessions are at work only if four of five flushes, of the last ones, took less than
//!   [`QUICK_NS`]. So where a disk becomes slow, few flushes hold up the tasks of a thread before the flusher has them again.

use std::sync::atomic::{AtomicU32, Ordering};

/// A quick flush takes less, in nanoseconds.
pub(super) const QUICK_NS: u64 = 20_000;
/// What a slow flush takes back: that many quick ones.
const SLOW: u32 = 4;
/// From here on flushes count as quick.
const ENOUGH: u32 = 16;
const MOST: u32 = 32;

/// The count of quick flushes. The task that has the flush state writes it.
#[derive(Debug, Default)]
pub(super) struct Quickness(AtomicU32);

impl Quickness {
    /// A flush has taken so long.
    pub fn took(&self, ns: u64) {
        let count = self.0.load(Ordering::Relaxed);
        let count = if ns < QUICK_NS { (count + 1).min(MOST) } else { count.saturating_sub(SLOW) };
        self.0.store(count, Ordering::Relaxed);
    }

    /// Whether flushes are quick (WAL-27).
    pub fn is_quick(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WAL-27
    #[test]
    fn few_slow_flushes_end_it_and_many_quick_ones_begin_it() {
        let quickness = Quickness::default();
        let after = |count: usize, ns: u64| {
            (0..count).for_each(|_| quickness.took(ns));
            quickness.is_quick()
        };
        assert!(!after(15, 3_000) && after(1, 3_000));
        assert!(
            after(100, 3_000) && after(4, 90_000),
            "a thread that loses its processor four times in a hundred flushes"
        );
        assert!(!after(1, 90_000), "five of the last flushes were slow");
        assert!(!after(1000, QUICK_NS));
        // One flush in three is slow.
        (0..1000).for_each(|at| assert!(!after(1, if at % 3 == 0 { 90_000 } else { 3_000 })));
    }
}
