//! Tasks that wait for the log to become durable, in LSN order.
//!
//! # Life of a wake-up
//! A flush publishes the durable LSN, then wakes the first few waiters it covers. Each woken waiter wakes the next few, so
//! the work of waking thousands is spread over the woken tasks. Where many sessions are at work, a task that enters the
//! queue wakes some waiters, too. The flusher wakes at most one batch before it continues with the next write.
//!
//! # Invariants
//! - WAL-8: waiters leave the queue in LSN order. A waiter that left either runs or passes the wake-up on when it is
//!   dropped. So no waiter below the durable LSN stays asleep because another task was dropped.
//! - WAL-9: a waiter reads the durable LSN again after it has entered the queue, and a flush reads the queue
//!   after it has published the durable LSN; one of the two sees the other.

use clearway_base::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

/// How many waiters a flush wakes itself.
pub const FIRST_BATCH: usize = 8;
/// How many waiters each woken waiter wakes.
pub const NEXT_BATCH: usize = 2;

/// How many durable waiters a task wakes when it enters the queue, where many sessions are at work.
pub const HELP_BATCH: usize = 4;

/// A waiter's place in the queue: LSN, then order of arrival.
pub type Place = (u64, u64);

/// The queue.
pub struct Waiters {
    queue: Mutex<Queue>,
    len: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<Place, Waker>,
    arrivals: u64,
}

impl Default for Waiters {
    fn default() -> Self {
        Waiters { queue: Mutex::new("storage/wal/waiters", Queue::default()), len: AtomicUsize::new(0) }
    }
}

impl Waiters {
    /// Enters at `lsn`, or renews the waker of the place held.
    pub fn enter(&self, lsn: u64, held: Option<Place>, waker: &Waker) -> Place {
        let mut queue = self.queue.lock();
        let place = held.unwrap_or_else(|| {
            queue.arrivals += 1;
            (lsn, queue.arrivals)
        });
        queue.waiting.insert(place, waker.clone());
        self.len.store(queue.waiting.len(), Ordering::SeqCst);
        place
    }

    /// Leaves the queue; false if a wake-up had already taken the place out of it.
    pub fn leave(&self, place: Place) -> bool {
        let mut queue = self.queue.lock();
        let waker = queue.waiting.remove(&place);
        self.len.store(queue.waiting.len(), Ordering::SeqCst);
        drop(queue);
        waker.is_some()
    }

    /// The number of waiters.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    /// Wakes at most `max` waiters at or below `durable`, in order; returns how many.
    pub fn wake(&self, durable: u64, max: usize) -> usize {
        if self.len() == 0 {
            return 0;
        }
        let mut woken = 0;
        while woken < max {
            // The mutex is taken for each waiter: a waker runs foreign code, which must not run under it. Nothing is allocated.
            let waker = {
                let mut queue = self.queue.lock();
                let waker = match queue.waiting.first_entry() {
                    Some(first) if first.key().0 <= durable => Some(first.remove()),
                    _ => None,
                };
                self.len.store(queue.waiting.len(), Ordering::SeqCst);
                waker
            };
            match waker {
                Some(waker) => waker.wake(),
                None => break,
            }
            woken += 1;
        }
        woken
    }
}
