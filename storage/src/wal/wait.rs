//! The futures with which tasks wait for the log: for durability, and for credit.

use super::Wal;
use super::credit::Short;
use super::waiters::{HELP_BATCH, NEXT_BATCH, Place};
use crate::error::StorageError;
use crate::ids::Lsn;
use crate::seams::{Credit, Purpose};
use clearway_base::vfs::{IoMode, io_mode};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// Waits until an LSN is durable. A waiter that is alone (docs/design/execution.md, who flushes) flushes by itself, sometimes
/// after one yield.
pub struct WaitDurable<'a> {
    wal: &'a Wal,
    lsn: Lsn,
    place: Option<Place>,
    yielded: bool,
    /// This committer is counted ([`super::gather`]).
    counted: bool,
}

impl<'a> WaitDurable<'a> {
    pub(super) fn new(wal: &'a Wal, lsn: Lsn) -> Self {
        assert!(lsn <= wal.end_lsn(), "waiting for {lsn}, and the log ends at {}", wal.end_lsn());
        WaitDurable { wal, lsn, place: None, yielded: false, counted: false }
    }

    fn outcome(&self) -> Option<Result<(), StorageError>> {
        if self.wal.durable.load(Ordering::SeqCst) >= self.lsn.0 {
            return Some(Ok(()));
        }
        self.wal.poisoned().map(Err)
    }
}

impl Future for WaitDurable<'_> {
    type Output = Result<(), StorageError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wal = self.wal;
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        wal.wanted.fetch_max(self.lsn.0, Ordering::SeqCst);
        if !self.counted && io_mode() == IoMode::Inline {
            self.counted = true;
            wal.arrivals.come();
        }
        let mut another_flushes = false;
        if self.place.is_none() && wal.may_flush() {
            if !self.yielded && wal.yield_is_due() {
                self.yielded = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let flushed = wal.flush_here();
            if flushed == Some(true)
                && let Some(outcome) = self.outcome()
            {
                return Poll::Ready(outcome);
            }
            another_flushes = flushed.is_none();
        }
        // Tasks woken from the flusher's thread queue behind those that the runtime's own workers woke, so waiters that arrive
        // while the log is crowded wake some of them.
        if wal.is_crowded() {
            wal.durable_waiters.wake(wal.durable.load(Ordering::SeqCst), HELP_BATCH);
        }
        self.place = Some(wal.durable_waiters.enter(self.lsn.0, self.place, cx.waker()));
        // WAL-9: a flush that published before this waiter entered the queue has not seen it.
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        // Each ring wakes the flusher, which would find the state gone: a thread that flushes for itself holds it. That thread rings (WAL-16).
        if !another_flushes {
            wal.flusher_bell.ring();
        }
        Poll::Pending
    }
}

impl Drop for WaitDurable<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        self.wal.durable_waiters.leave(place);
        // WAL-8: the wake-up is passed on, whether this waiter was woken or is being dropped.
        self.wal.durable_waiters.wake(self.wal.durable.load(Ordering::SeqCst), NEXT_BATCH);
    }
}

/// Waits for credit.
pub struct WaitCredit<'a> {
    wal: &'a Wal,
    bytes: usize,
    purpose: Purpose,
    place: Option<Place>,
    /// How many attempts to prepare a segment had failed when the wait began.
    failures: u64,
}

impl<'a> WaitCredit<'a> {
    pub(super) fn new(wal: &'a Wal, bytes: usize, purpose: Purpose) -> Self {
        let failures = wal.prepare_failures.load(Ordering::SeqCst);
        WaitCredit { wal, bytes, purpose, place: None, failures }
    }

    fn outcome(&self) -> Result<Result<Credit<'a>, StorageError>, Short> {
        if let Some(err) = self.wal.poisoned() {
            return Ok(Err(err));
        }
        let short = match self.wal.accounts.try_take(self.bytes, self.purpose, self.wal.for_splits()) {
            Ok(()) => return Ok(Ok(self.wal.credit_of(self.purpose, self.bytes))),
            Err(short) => short,
        };
        if short == Short::Log && self.wal.prepare_failures.load(Ordering::SeqCst) > self.failures {
            let what = format!("{} bytes of log", self.bytes);
            return Ok(Err(StorageError::NoSpace(what.into())));
        }
        Err(short)
    }
}

impl<'a> Future for WaitCredit<'a> {
    type Output = Result<Credit<'a>, StorageError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wal = self.wal;
        if let Ok(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        self.place = Some(wal.credit_waiters.enter(0, self.place, cx.waker()));
        match self.outcome() {
            Ok(outcome) => return Poll::Ready(outcome),
            Err(Short::Ring) => wal.ask_flush(wal.ring.tail()),
            Err(Short::Log) => {
                wal.ahead.waited();
                wal.preparer_bell.ring();
            }
        }
        Poll::Pending
    }
}

impl Drop for WaitCredit<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.wal.credit_waiters.leave(place);
            self.wal.credit_waiters.wake(u64::MAX, 1);
        }
    }
}
