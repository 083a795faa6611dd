//! Stops a session's statement, or the session, from outside: cancel requests, timeouts, termination.
//!
//! # Life of an interrupt
//! `raise` stores the reason and wakes the session's task. The reason then becomes an error at one of three places: in `guard`, in a
//! breath of a computation (`clearway_base::breath`), or in code that awaits `raised`. Taking a reason clears it, except a reason that
//! ends the session; a computation goes on to be told it until the statement has ended (`hear`, `ended`). `forget` drops a reason that arrived
//! between two statements.
//!
//! # Invariants
//! - INT-1: a raised reason is never overwritten by a weaker one (the order of [`Reason`]).
//! - INT-2: a task that returns pending has registered its waker before it checked the reason for the last time.
//! - INT-3: a statement of which a computation was told to end (BRE-11) fails with that reason, or with another error; it does not succeed.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::Duration;

use clearway_base::breath::{StopFlag, Stopped};
use clearway_base::sync::{Mutex, sleep};
use clearway_base::waits;

use clearway_syntax::error::{Result, SqlError};

/// Why a session is interrupted; a later one is stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// A cancel request, or `pg_cancel_backend`.
    Cancel = 1,
    /// `statement_timeout`.
    StatementTimeout = 2,
    /// `lock_timeout`.
    LockTimeout = 3,
    /// `idle_in_transaction_session_timeout`: ends the session.
    IdleInTransaction = 4,
    /// `idle_session_timeout`: ends the session.
    IdleSession = 5,
    /// `pg_terminate_backend`: ends the session.
    Terminate = 6,
    /// The server stops: ends the session.
    Shutdown = 7,
}

impl Reason {
    const ALL: [Reason; 7] = [
        Reason::Cancel,
        Reason::StatementTimeout,
        Reason::LockTimeout,
        Reason::IdleInTransaction,
        Reason::IdleSession,
        Reason::Terminate,
        Reason::Shutdown,
    ];

    fn from_bits(bits: u8) -> Option<Reason> {
        Reason::ALL.get(usize::from(bits).checked_sub(1)?).copied()
    }

    /// Whether the session ends with it.
    pub fn is_fatal(self) -> bool {
        self >= Reason::IdleInTransaction
    }

    /// PostgreSQL's error for it.
    pub fn error(self) -> SqlError {
        Stopped(self as u8).into()
    }
}

/// One session's interrupt. One task waits for it; any thread may raise it.
#[derive(Debug)]
pub struct Interrupt {
    flag: Arc<StopFlag>,
    /// The reason that was taken last since the statement began; 0: none.
    last: AtomicU8,
    waker: Mutex<Waker>,
}

impl Default for Interrupt {
    fn default() -> Self {
        let flag = Arc::new(StopFlag::new(Reason::IdleInTransaction as u8));
        Self { flag, last: AtomicU8::new(0), waker: Mutex::new("sql/interrupt", Waker::noop().clone()) }
    }
}

impl Interrupt {
    /// What the session's computations obey.
    pub fn flag(&self) -> Arc<StopFlag> {
        Arc::clone(&self.flag)
    }

    /// Raises a reason, unless a stronger one is raised already.
    pub fn raise(&self, reason: Reason) {
        if self.flag.raise(reason as u8) {
            // INT-1
            let waker = self.waker.lock().clone();
            waker.wake();
        }
    }

    /// The reason that is raised now; costs one load.
    #[inline]
    pub fn pending(&self) -> Option<Reason> {
        Reason::from_bits(self.flag.raised())
    }

    /// Takes the reason as an error. Called by loops that compute for long, some thousand rows apart.
    ///
    /// # Errors
    /// [`Reason::error`]; a reason that ends the session stays raised.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.pending() {
            None => Ok(()),
            Some(reason) => Err(self.take(reason).error()),
        }
    }

    fn take(&self, reason: Reason) -> Reason {
        self.last.store(reason as u8, Relaxed);
        self.flag.withdraw(reason as u8);
        reason
    }

    /// Why the running statement was interrupted, if it was.
    pub fn last(&self) -> Option<Reason> {
        Reason::from_bits(self.last.load(Relaxed))
    }

    /// A statement has failed, or another one begins: what computations were told is over.
    #[inline]
    pub fn hear(&self) {
        self.flag.hear();
    }

    /// The end of a statement before its transaction commits: what it gives, or the reason that a computation of it was told (INT-3).
    ///
    /// # Errors
    /// [`Reason::error`], and what the statement failed with.
    #[inline]
    pub fn ended<T>(&self, ended: Result<Result<T>>) -> Result<T> {
        let told = Reason::from_bits(self.flag.hear());
        match (ended, told) {
            (Ok(Ok(_)), Some(reason)) => Err(reason.error()),
            (Ok(ended), _) => ended,
            (Err(interrupted), _) => Err(interrupted),
        }
    }

    /// Drops a reason that reached no statement; one that ends the session stays.
    #[inline]
    pub fn forget(&self) {
        self.last.store(0, Relaxed);
        self.hear();
        if let Some(reason) = self.pending() {
            self.take(reason);
        }
    }

    /// Waits until a reason is raised, and leaves it raised.
    pub async fn raised(&self) -> Reason {
        poll_fn(|context| match self.poll_raised(context.waker()) {
            Some(reason) => Poll::Ready(reason),
            None => Poll::Pending,
        })
        .await
    }

    fn poll_raised(&self, waker: &Waker) -> Option<Reason> {
        if let Some(reason) = self.pending() {
            return Some(reason);
        }
        let mut slot = self.waker.lock();
        if !slot.will_wake(waker) {
            let waker = waker.clone();
            drop(std::mem::replace(&mut *slot, waker));
        }
        drop(slot);
        self.pending() // INT-2
    }

    /// Runs a future until it is ready or a reason is raised; then the future is dropped. What must not be cut off (the
    /// commit) stays outside. A large future is pinned by the caller, here and in `timed`: taken by value it is held twice.
    ///
    /// # Errors
    /// [`Reason::error`].
    pub async fn guard<F: Future>(&self, future: F) -> Result<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            match self.poll_raised(context.waker()) {
                Some(reason) => Poll::Ready(Err(self.take(reason).error())),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Runs a future under `statement_timeout`: when `limit_ms` (0: none) have passed, the reason is raised, which the future itself
    /// takes where it may be cut off.
    pub async fn timed<F: Future>(&self, limit_ms: u64, work: F) -> F::Output {
        if limit_ms == 0 {
            return work.await;
        }
        let mut work = pin!(work);
        let mut timer = pin!(sleep(Duration::from_millis(limit_ms)));
        // What computes without a wait sees the deadline at its next breath; the timer is for what waits.
        let _deadline = Deadline::new(&self.flag, waits::now_ns().saturating_add(limit_ms.saturating_mul(1_000_000)));
        let mut fired = false;
        poll_fn(|context| {
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            if !fired && timer.as_mut().poll(context).is_ready() {
                fired = true;
                self.raise(Reason::StatementTimeout);
                // A statement that computes between two polls looks at the interrupt by itself.
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }
}

/// A deadline, until this is dropped.
struct Deadline<'a>(&'a StopFlag);

impl<'a> Deadline<'a> {
    fn new(flag: &'a StopFlag, deadline_ns: u64) -> Self {
        flag.set_deadline(deadline_ns, Reason::StatementTimeout as u8);
        Self(flag)
    }
}

impl Drop for Deadline<'_> {
    fn drop(&mut self) {
        self.0.set_deadline(0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::sync::{block_on, sleep};
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_guarded_wait_ends_with_the_reason_once() {
        let interrupt = Arc::new(Interrupt::default());
        let raiser = Arc::clone(&interrupt);
        let thread = clearway_base::sync::spawn_thread("raiser", move || raiser.raise(Reason::Cancel));
        let error = block_on(interrupt.guard(std::future::pending::<()>())).expect_err("it is cancelled");
        assert_eq!(error.code(), "57014");
        assert!(thread.is_ok_and(|t| t.join().is_ok()));
        assert!(interrupt.check().is_ok(), "a cancel is taken once");
        assert!(block_on(interrupt.guard(sleep(Duration::from_millis(1)))).is_ok());
    }

    #[test]
    fn a_timed_statement_is_cut_off_and_the_next_one_has_its_own_time() {
        let interrupt = Interrupt::default();
        let wait = interrupt.guard(std::future::pending::<()>());
        let error = block_on(interrupt.timed(1, wait)).expect_err("its time is over");
        assert_eq!((error.code(), error.message()), ("57014", "canceling statement due to statement timeout"));
        assert!(block_on(interrupt.timed(60_000, interrupt.guard(std::future::ready(())))).is_ok());
    }

    #[test]
    fn the_stronger_reason_stays() {
        let interrupt = Interrupt::default();
        interrupt.raise(Reason::Terminate);
        interrupt.raise(Reason::Cancel);
        for _ in 0..2 {
            assert_eq!(interrupt.check().expect_err("raised").code(), "57P01", "INT-1");
        }
        interrupt.forget();
        assert_eq!(interrupt.pending(), Some(Reason::Terminate));
        for reason in Reason::ALL {
            assert_eq!(Reason::from_bits(reason as u8), Some(reason));
        }
    }
}
