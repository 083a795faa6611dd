//! The waits that go on, for views: as whole records, and as little as shows which session stands behind which.

use std::cmp::Reverse;
use std::sync::Arc;

use clearway_base::waits::clock;

use super::LockManager;
use super::history::{Outcome, WaitRecord};
use super::modes::{LockMode, ModeSet};
use super::owner::Owner;
use super::tag::LockTag;
use super::wait::Waiter;

/// A wait that goes on. Only its duration is computed when it is listed, since thousands may be listed at once.
pub struct LiveWait {
    waiter: Arc<Waiter>,
    since_ns: u64,
    /// How long it has been.
    pub waited_ns: u64,
}

/// What the session in the way of a wait holds.
#[derive(Clone, Debug)]
pub struct BlockerHolds {
    /// The modes; empty for one that only stands ahead in the queue.
    pub modes: ModeSet,
    /// The statement that took the lock.
    pub taken_by: Option<Arc<str>>,
    /// How many statements ago that was.
    pub ago: u32,
}

impl LiveWait {
    /// The session that waits.
    pub fn pid(&self) -> i32 {
        self.waiter.owner.pid()
    }

    /// What it wants.
    pub fn tag(&self) -> &LockTag {
        &self.waiter.tag
    }

    /// How.
    pub fn mode(&self) -> LockMode {
        self.waiter.mode
    }

    /// The session that was in the way when the wait began.
    pub fn blocker(&self) -> Option<i32> {
        self.waiter.before.as_ref().map(|before| before.pid())
    }

    /// What that one held. Takes the mutex of its session.
    pub fn blocker_holds(&self) -> Option<BlockerHolds> {
        let before = self.waiter.before.as_ref()?;
        Some(BlockerHolds { modes: before.holds(), taken_by: before.taken_by(), ago: before.ago() })
    }
}

impl LockManager {
    /// The waits that go on, the longest first. Reads every session's wait.
    pub fn live_waits(&self) -> Vec<LiveWait> {
        let now_ns = clock::now_ns();
        let mut waits: Vec<LiveWait> = self.owners().iter().filter_map(|owner| live_wait_of(owner, now_ns)).collect();
        waits.sort_by_key(|wait| Reverse(wait.waited_ns));
        waits
    }

    /// The same as whole records.
    pub fn waits(&self) -> Vec<WaitRecord> {
        let now_ns = clock::now_ns();
        let record = |wait: &LiveWait| {
            wait.waiter.find_root();
            let record = self.history().record(&wait.waiter, wait.since_ns, now_ns, Outcome::Waiting);
            WaitRecord { number: 0, ..record }
        };
        self.live_waits().iter().map(record).collect()
    }
}

fn live_wait_of(owner: &Owner, now_ns: u64) -> Option<LiveWait> {
    let aside = owner.aside.lock().clone();
    let waiting = owner.waiting.lock().clone().filter(|waiter| waiter.is_queued());
    let waiter = waiting.or_else(|| aside.as_ref()?.waiter.clone())?;
    let since_ns = aside.map_or(waiter.since_ns, |aside| aside.since_ns);
    Some(LiveWait { waiter, since_ns, waited_ns: now_ns.saturating_sub(since_ns) })
}
