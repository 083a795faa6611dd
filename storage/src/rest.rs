//! Rest: lets the background loops of a database that is not in use wake up once a minute at most.
//!
//! # Life of a rest
//! The upkeep finds that nothing has happened for a while -> [`Rest::begin`] -> the upkeep looks for snapshots once more -> at its next pause
//! each loop waits for the end of the rest -> a statement begins -> [`Rest::end`] -> the loops go on with their usual pauses.
//!
//! # Invariants
//! - RST-1: while the loops rest, no statement has a snapshot. A statement publishes its snapshot, fences, and then looks at `resting`; the
//!   upkeep sets `resting` and then looks for snapshots, and ends the rest if it finds one. One of the two sees the other.
//! - RST-2: a resting loop has no strong reference to its database, so the database can be dropped meanwhile. The thread that drops or closes
//!   it ends the rest, so that the loops end at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_base::sync::{sleep, timeout};
use clearway_base::waits::{Object, WaitEvent, in_wait};

use crate::sync::Bell;

/// The loops that pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pauses {
    /// Of the engine: old versions, counts, what was observed.
    Upkeep,
    /// Of the engine: the safety net of the deadlock search.
    DeadlockScan,
    /// Of the page cache.
    Cleaner,
    /// Of the store.
    Checkpointer,
    /// Of the trees.
    Tidier,
}

/// A loop looks around once in so long even while it rests.
const REST_MAX: Duration = Duration::from_secs(60);

/// See the head of this module.
pub struct Rest {
    resting: AtomicBool,
    bells: [Bell; 5],
}

impl Default for Rest {
    fn default() -> Rest {
        Rest { resting: AtomicBool::new(false), bells: std::array::from_fn(|_| Bell::new("storage/rest_bell")) }
    }
}

impl Rest {
    /// Whether the loops rest.
    #[inline]
    pub fn is_resting(&self) -> bool {
        self.resting.load(Ordering::SeqCst)
    }

    /// Lets the loops rest. The caller then looks whether a statement has begun, and ends the rest if so (RST-1).
    pub fn begin(&self) {
        self.resting.store(true, Ordering::SeqCst);
    }

    /// Wakes the loops if they rest. Each statement calls this, so it is a load where they do not.
    #[inline]
    pub fn end(&self) {
        if self.is_resting() {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        self.resting.store(false, Ordering::SeqCst);
        self.bells.iter().for_each(Bell::ring);
    }

    /// A loop's pause: so long, or until the rest ends.
    pub async fn pause(&self, who: Pauses, event: WaitEvent, pause: Duration) {
        if self.is_resting() {
            let _ = in_wait(event, Object::NONE, timeout(REST_MAX, self.ended(who))).await;
        } else {
            in_wait(event, Object::NONE, sleep(pause)).await;
        }
    }

    /// Waits until the loops do not rest.
    pub async fn ended(&self, who: Pauses) {
        self.bells[who as usize].wait_until(|| !self.is_resting()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::testkit::{Sim, spawn};
    use std::sync::Arc;

    /// RST-2: all of them, at whatever point of their pauses they are.
    #[test]
    fn the_end_of_a_rest_wakes_every_loop() {
        Sim::new(1)
            .block_on(async {
                let rest = Arc::new(Rest::default());
                rest.begin();
                let all = [Pauses::Upkeep, Pauses::DeadlockScan, Pauses::Cleaner, Pauses::Checkpointer, Pauses::Tidier];
                let loops = all.map(|who| {
                    let rest = Arc::clone(&rest);
                    spawn("loop", async move { rest.pause(who, WaitEvent::Pause, Duration::from_millis(10)).await })
                });
                sleep(Duration::from_secs(30)).await;
                assert!(loops.iter().all(|one| one.try_take().is_none()), "they rest");
                rest.end();
                for one in loops {
                    one.await;
                }
                // Without a rest a pause is one.
                rest.pause(Pauses::Upkeep, WaitEvent::Pause, Duration::from_millis(10)).await;
            })
            .expect("every loop goes on");
    }
}
