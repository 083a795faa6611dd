//! One wait for a lock: the waiter in the queue, and the future that its session polls.
//!
//! # Life of a wait
//! ```text
//! queued ──► granted        the hand-off: the waiter is a holder already when it is woken
//!   │  ╰──► killed          the waiter is the victim of a deadlock; the report is attached
//!   ╰─────► left            the future was dropped: cancel, timeout, a request that may not wait
//! ```
//! The state `queued` is left once, under the shard's mutex.
//!
//! # Invariants
//! - LKM-8: a grant is not lost with a future that is dropped before it is polled again: the drop releases the mode and grants the lock to
//!   the next waiters.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use clearway_base::sync::{Class, Mutex};
use clearway_storage::ids::Lsn;

use super::history::{Culprit, Root};
use super::modes::LockMode;
use super::owner::{LockScope, Owner};
use super::report::DeadlockReport;
use super::tag::LockTag;
use super::{LockError, LockManager, Request};

const QUEUED: u8 = 0;
const GRANTED: u8 = 1;
const KILLED: u8 = 2;
const LEFT: u8 = 3;

// A wait has mutexes of its own: their classes are not looked for by their names each time.
static ROOT: Class = Class::new("txn/lockmgr/root");
static WAKER: Class = Class::new("txn/lockmgr/waker");

/// A request that stands in a queue.
pub struct Waiter {
    pub(super) owner: Arc<Owner>,
    pub(super) tag: LockTag,
    pub(super) mode: LockMode,
    pub(super) scope: LockScope,
    /// When the wait began, by the clock of wait events.
    pub(super) since_ns: u64,
    /// The holder or waiter in the way when it began.
    pub(super) before: Option<Culprit>,
    /// The session at the end of the chain, when the chain was walked last.
    pub(super) root: Mutex<Option<Root>>,
    /// Its session has stood still for it; one that was granted before it was polled has not waited (HIS-2).
    paused: AtomicBool,
    /// The log has told of it.
    pub(super) told: AtomicBool,
    state: AtomicU8,
    waker: Mutex<Option<Waker>>,
    dep_lsn: AtomicU64,
    report: OnceLock<Arc<DeadlockReport>>,
    /// The waiter looks at the row when a holder has committed (`Request::looks`).
    pub(super) looks: bool,
    /// It has to look.
    look: AtomicBool,
    /// LKM-15: it waits for a turn and stands in no queue.
    pub(super) in_turn: bool,
    /// LKM-17
    pub(super) brief: bool,
    pub(super) called: AtomicBool,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} waits for {:?}", self.owner, self.tag)
    }
}

impl Waiter {
    pub(super) fn new(request: &Request<'_>, since_ns: u64, before: Option<Culprit>) -> Arc<Waiter> {
        Arc::new(Waiter::of(request, since_ns, before))
    }

    /// One that waits for a turn at a row (LKM-15).
    pub(super) fn in_turn(request: &Request<'_>, since_ns: u64, before: Option<Culprit>) -> Arc<Waiter> {
        Arc::new(Waiter { in_turn: true, ..Waiter::of(request, since_ns, before) })
    }

    fn of(request: &Request<'_>, since_ns: u64, before: Option<Culprit>) -> Waiter {
        Waiter {
            owner: request.owner.clone(),
            tag: request.tag.clone(),
            mode: request.mode,
            scope: request.scope,
            since_ns,
            looks: request.looks,
            look: AtomicBool::new(false),
            before,
            root: Mutex::of_class(&ROOT, None),
            paused: AtomicBool::new(false),
            told: AtomicBool::new(false),
            state: AtomicU8::new(QUEUED),
            waker: Mutex::of_class(&WAKER, None),
            dep_lsn: AtomicU64::new(0),
            report: OnceLock::new(),
            in_turn: false,
            brief: request.if_taken.is_brief(),
            called: AtomicBool::new(false),
        }
    }

    /// Whether it still waits.
    pub(super) fn is_queued(&self) -> bool {
        self.state.load(Ordering::Acquire) == QUEUED
    }

    /// Marks the waiter as granted. The caller has entered it as a holder, books the lock to the owner, and wakes the waiter after the
    /// shard's mutex is released.
    pub(super) fn granted(&self, dep_lsn: Lsn) {
        self.dep_lsn.store(dep_lsn.0, Ordering::Relaxed);
        self.leave_queue(GRANTED);
    }

    /// Marks the waiter as the victim of a deadlock. The caller has taken it out of the queue.
    pub(super) fn killed(&self, report: Arc<DeadlockReport>) {
        // Only one cycle can take it: the state is left once.
        assert!(self.report.set(report).is_ok(), "a waiter is the victim of one deadlock");
        self.leave_queue(KILLED);
    }

    /// A holder has committed: the waiter looks at the row. The caller wakes it after the shard's mutex is released.
    pub(super) fn let_look(&self) {
        self.look.store(true, Ordering::Release);
    }

    fn leave_queue(&self, to: u8) {
        let from = self.state.swap(to, Ordering::AcqRel);
        assert_eq!(from, QUEUED, "a waiter leaves its queue once");
    }

    /// Wakes the session that polls it.
    pub(super) fn wake(&self) {
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The future of a wait. Resolves to the LSN on which the new holder of the lock depends; to `None` if the waiter has to look at the row, and
/// may be polled again then.
pub(super) struct WaitFuture<'a> {
    pub(super) manager: &'a LockManager,
    pub(super) waiter: Arc<Waiter>,
    pub(super) done: bool,
}

impl Future for WaitFuture<'_> {
    type Output = Result<Option<Lsn>, LockError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = loop {
            if self.waiter.may_take() {
                self.manager.take_called(&self.waiter);
            }
            let mut waker = self.waiter.waker.lock();
            break match self.waiter.state.load(Ordering::Acquire) {
                QUEUED => {
                    if self.waiter.may_take() {
                        continue; // called since
                    }
                    if self.waiter.look.swap(false, Ordering::AcqRel) {
                        return Poll::Ready(Ok(None));
                    }
                    match waker.as_mut() {
                        Some(waker) => waker.clone_from(cx.waker()),
                        None => *waker = Some(cx.waker().clone()),
                    }
                    self.waiter.pauses();
                    return Poll::Pending;
                }
                GRANTED => Ok(Some(Lsn(self.waiter.dep_lsn.load(Ordering::Relaxed)))),
                KILLED => Err(LockError::Deadlock(self.waiter.report.get().cloned())),
                _ => Err(LockError::Abandoned),
            };
        };
        self.done = true;
        self.manager.wait_over(&self.waiter);
        Poll::Ready(outcome)
    }
}

impl Drop for WaitFuture<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.manager.abandon(&self.waiter);
            self.manager.wait_over(&self.waiter);
        }
    }
}

impl Waiter {
    /// Marks the waiter as taken out of the queue by its own session. False if it was granted or killed before.
    pub(super) fn left(&self) -> bool {
        self.state.compare_exchange(QUEUED, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether it fell to a deadlock.
    pub(super) fn was_killed(&self) -> bool {
        self.state.load(Ordering::Acquire) == KILLED
    }

    /// Its session stands still for it.
    pub(super) fn pauses(&self) {
        self.paused.store(true, Ordering::Relaxed);
    }

    /// Whether its session has stood still for it.
    pub(super) fn has_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Whether it was granted.
    pub(super) fn was_granted(&self) -> bool {
        self.state.load(Ordering::Acquire) == GRANTED
    }
}
