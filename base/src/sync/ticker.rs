//! A count that threads wait for: one tick releases all that wait, by one system call.
//!
//! A condition variable keeps a queue of its threads and wakes each by a call of its own. Where many threads wait for the same event, as commits do
//! for a flush, the calls are a large part of what the event costs.
//!
//! # Invariants
//! - TICK-1: a thread says that it waits and then reads the count; a tick raises the count and then reads whether a thread waits. One of the two sees
//!   the other, and the kernel compares the count once more before it stops the thread.

use super::shim::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

/// See the head of this module.
#[derive(Debug, Default)]
pub struct Ticker {
    count: AtomicU32,
    waiting: AtomicU32,
    #[cfg(not(all(target_os = "linux", not(loom))))]
    stopped: imp::Stopped,
}

impl Ticker {
    /// What to wait with: the next tick ends a wait with it, however soon it comes.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count.load(SeqCst)
    }

    /// Stops the thread until there was a tick since `count` was read. Declares no wait: the caller says what it is for.
    pub fn wait(&self, count: u32) {
        super::assert_no_latches();
        self.waiting.fetch_add(1, SeqCst);
        while self.count() == count {
            self.stop(count);
        }
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// Releases all threads that wait.
    pub fn tick(&self) {
        self.count.fetch_add(1, SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            self.release();
        }
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
mod imp {
    use super::Ticker;
    use rustix::thread::futex;

    impl Ticker {
        /// Returns when there was a tick, and now and then for no reason.
        pub(super) fn stop(&self, count: u32) {
            // The count is another one already, or a signal came: the caller looks again.
            let _ = futex::wait(&self.count, futex::Flags::PRIVATE, count, None);
        }

        pub(super) fn release(&self) {
            // No thread is left, or all are released: there is no other error for a word of this process.
            let _ = futex::wake(&self.count, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(loom))))]
mod imp {
    use super::Ticker;
    use crate::sync::shim::{TableCondvar, TableMutex};
    use std::sync::PoisonError;

    #[derive(Debug, Default)]
    pub(super) struct Stopped(TableMutex<()>, TableCondvar);

    impl Ticker {
        /// Returns when there was a tick, and now and then for no reason.
        pub(super) fn stop(&self, count: u32) {
            let guard = self.stopped.0.lock().unwrap_or_else(PoisonError::into_inner);
            if self.count() == count {
                drop(self.stopped.1.wait(guard));
            }
        }

        pub(super) fn release(&self) {
            drop(self.stopped.0.lock());
            self.stopped.1.notify_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    /// TICK-1: no thread misses a tick, however the ticks and the waits fall.
    #[test]
    fn every_wait_ends_with_the_next_tick() {
        const THREADS: u32 = 4;
        const ROUNDS: u64 = 3_000;
        let (ticker, seen) = (Arc::new(Ticker::default()), Arc::new(AtomicU64::new(0)));
        let round = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (ticker, seen, round) = (Arc::clone(&ticker), Arc::clone(&seen), Arc::clone(&round));
                crate::sync::spawn_thread("waiter", move || {
                    for wanted in 1..=ROUNDS {
                        loop {
                            let count = ticker.count();
                            if round.load(SeqCst) >= wanted {
                                break;
                            }
                            ticker.wait(count);
                        }
                        seen.fetch_add(1, SeqCst);
                    }
                })
                .expect("a thread")
            })
            .collect();
        for now in 1..=ROUNDS {
            round.store(now, SeqCst);
            ticker.tick();
            while seen.load(SeqCst) < now * u64::from(THREADS) {
                std::hint::spin_loop();
            }
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(ticker.waiting.load(SeqCst), 0);
    }
}
