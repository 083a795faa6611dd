//! Tasks that wait for the log to become durable, in LSN order.
//!
//! # Life of a wake-up
//! A flush publishes the durable LSN, then wakes the first few waiters it covers. Each woken waiter wakes the next few, so
//! the work of waking thousands is spread over the woken tasks. Where many sessions are at work, a task that enters the
//! queue wakes some waiters, too. The flusher wakes at most one batch before it continues with the next write.
//!
//! # Invariants
//! - WAL-8: waiters leave the queue in LSN order. A waiter that left wakes the next few when it runs or when it is dropped. So no waiter
//!   below the durable LSN stays asleep because another task was dropped.
//! - WAL-9: a waiter reads the durable LSN again after it has entered the queue, and a flush reads the queue
//!   after it has published the durable LSN; one of the two sees the other.
//! - WAL-23: one call wakes a place at most once, and no place that was entered after the call began. A waiter for credit that others have
//!   taken meanwhile comes back to its place at once; a call that went on with the first place of the queue would wake it again, for ever.

use clearway_base::sync::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
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
        let (mut woken, mut last, mut before) = (0, Bound::Unbounded, None);
        while woken < max {
            // The mutex is taken for each waiter: a waker runs foreign code, which must not run under it. Nothing is allocated.
            let waker = {
                let mut queue = self.queue.lock();
                let before = *before.get_or_insert(queue.arrivals); // WAL-23
                let mut covered = queue.waiting.range((last, Bound::Included((durable, u64::MAX))));
                let next = covered.find(|((_, arrival), _)| *arrival <= before).map(|(place, _)| *place);
                let waker = next.and_then(|place| {
                    last = Bound::Excluded(place);
                    queue.waiting.remove(&place)
                });
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, OnceLock};
    use std::task::Wake;

    /// A waiter that finds nothing when it is woken, and comes back to its place at once.
    struct Back {
        waiters: Arc<Waiters>,
        place: OnceLock<Place>,
        wakes: AtomicUsize,
    }

    impl Back {
        fn come(self: &Arc<Back>) {
            let place = self.waiters.enter(0, self.place.get().copied(), &Waker::from(Arc::clone(self)));
            self.place.get_or_init(|| place);
        }
    }

    impl Wake for Back {
        fn wake(self: Arc<Self>) {
            let wakes = self.wakes.fetch_add(1, Ordering::SeqCst) + 1;
            // A newcomer with each wake-up, as where writers go on with other transactions.
            if wakes <= 2 {
                waiter(&self.waiters);
            }
            assert!(wakes < 100, "WAL-23: woken again and again by one call");
            self.come();
        }
    }

    fn waiter(waiters: &Arc<Waiters>) -> Arc<Back> {
        let back = Arc::new(Back { waiters: Arc::clone(waiters), place: OnceLock::new(), wakes: AtomicUsize::new(0) });
        back.come();
        back
    }

    /// WAL-23
    #[test]
    fn a_call_wakes_each_waiter_once_although_it_comes_back() {
        let waiters = Arc::new(Waiters::default());
        let all: Vec<_> = (0..5).map(|_| waiter(&waiters)).collect();
        assert_eq!(waiters.wake(u64::MAX, usize::MAX), 5);
        assert!(all.iter().all(|back| back.wakes.load(Ordering::SeqCst) == 1));
        assert_eq!(waiters.len(), 10, "all are back, and five have come");
        assert_eq!(waiters.wake(u64::MAX, 3), 3, "the three that came first");
        assert_eq!(all.iter().map(|back| back.wakes.load(Ordering::SeqCst)).collect::<Vec<_>>(), [2, 2, 2, 1, 1]);
    }
}
