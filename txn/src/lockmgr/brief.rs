//! Brief requests: those of a transaction that takes the lock of one row, changes the row and commits within one poll of its session.
//!
//! A lock that a release hands over stays taken until the new holder's session is polled, and with a thousand sessions that is some hundred polls later.
//! Every session that comes meanwhile finds the row taken and has to queue, though the row is free but for the hand-over. So a queue that one longer
//! transaction had made of brief requests lasted for as long as the load. A brief request in the queue is therefore called instead: the lock is free until its
//! session takes it.
//!
//! # Life of a brief wait
//! ```text
//! queued ──► called: woken, the lock is free ──► granted: its session takes the lock when it is polled
//!   ▲           │
//!   ╰───────────╯ when it is polled, another transaction has the lock again
//! ```
//!
//! # Invariants
//! - LKM-17: no release grants a lock to a brief waiter; the waiter takes it itself. It stays in the queue until then, and waiters behind it for which its mode
//!   is in the way wait as behind any other. Of the waiters that are first in the queue, if they are brief and no holder is in the way, at least one is
//!   called; each release calls one more, in the order of the queue, up to [`super::line::CALLED_MAX`]. A waiter that has been called and takes
//!   the lock, finds it taken, or leaves the queue, has the queue looked through again. So no call is lost.
//! - LKM-18: of all requests only brief ones go ahead of waiters that have been called; any other request with which a called waiter's mode conflicts
//!   stands behind it, unless that waiter would have to wait for its owner (LKM-6). Each one that goes ahead ends within its poll, and its release calls one
//!   more: a waiter is passed by at most once for each that stands before it until it is called. Where none goes ahead, one waiter at a time is
//!   called, and they have the lock in the order of the queue.
//!
//! # Not here
//! That brief requests of one row run one at a time, so that one does not meet the lock of another that runs on another thread: the turns at the row
//! (`engine/src/row_turn.rs`). A session takes the lock for which it was called only while it says that it has the turn ([`Owner::has_turn`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::LockManager;
use super::owner::Owner;
use super::wait::Waiter;

/// What to do when the lock is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfTaken {
    /// Wait in the queue. A timeout or a cancel drops the future.
    Wait,
    /// Fail at once: `NOWAIT`, `SKIP LOCKED`, `pg_try_advisory_lock`.
    Fail,
    /// As `Wait`, for a brief request of a row's lock: it is called when the lock is free (LKM-17).
    WaitBriefly,
    /// As `Fail`, for a brief request of a row's lock: it goes ahead of waiters that have been called (LKM-18).
    FailBriefly,
}

impl IfTaken {
    /// Whether the request fails where it would have to wait.
    pub(super) fn fails(self) -> bool {
        matches!(self, IfTaken::Fail | IfTaken::FailBriefly)
    }

    /// Whether the request is a brief one.
    pub(super) fn is_brief(self) -> bool {
        matches!(self, IfTaken::WaitBriefly | IfTaken::FailBriefly)
    }
}

impl Owner {
    /// Whether it waits for a lock that it may take now, with its turn (LKM-17).
    pub fn is_called(&self) -> bool {
        self.waiting.lock().as_ref().is_some_and(|waiter| waiter.is_called())
    }

    /// Whether its session has the turn at the row for whose lock it waits: it takes the lock for which it is called only then.
    pub fn has_turn(&self, has: bool) {
        self.with_turn.store(has, Ordering::Relaxed);
    }
}

impl Waiter {
    /// Whether it has been called (LKM-17).
    pub(super) fn is_called(&self) -> bool {
        self.called.load(Ordering::Acquire)
    }

    /// Under the shard's mutex.
    pub(super) fn set_called(&self, called: bool) {
        self.called.store(called, Ordering::Release);
    }

    /// Whether its session takes the lock now, if that is still free.
    pub(super) fn may_take(&self) -> bool {
        self.is_called() && self.owner.with_turn.load(Ordering::Relaxed)
    }
}

impl LockManager {
    /// Takes the lock for which a waiter was called, unless another transaction has it by now: then the waiter waits to be called again.
    pub(super) fn take_called(&self, waiter: &Arc<Waiter>) {
        let mut guard = self.shard_of(&waiter.tag).lock();
        let Some(lock) = guard.locks.get_mut(&waiter.tag) else { return };
        if !waiter.is_called() {
            return; // it has left the queue meanwhile
        }
        lock.queue.uncall(waiter);
        if !lock.conflicts_with_holders(&waiter.owner, waiter.mode) {
            lock.queue.leave(waiter);
            lock.grant(&waiter.owner, waiter.mode);
            self.book(lock, waiter);
        }
        // A waiter whose mode agrees with that of the holder need not wait for a release.
        let wake = self.admit(lock);
        drop(guard);
        wake.iter().for_each(|w| w.wake());
    }
}

#[cfg(test)]
#[path = "brief_tests.rs"]
mod tests;
