//! A queue of tasks that wait for an LSN to be reached, as commits do for the durable LSN. They are woken in order, and in a chain.
//!
//! # Life of a wait
//! `wait(lsn)`: ready at once if `published` has reached it; else the waiter enters the queue, ordered by LSN -> `publish` wakes the first
//! few waiters whose LSN it has reached (they are due) -> each of them, when it is polled or dropped, wakes a few more. So the flusher
//! never wakes thousands itself: it begins the next flush while the woken waiters wake the others.
//!
//! # Invariants
//! - LSN-1: `published` never falls.
//! - LSN-2: a waiter enters the queue under the mutex and reads `published` again before it releases the mutex; `publish`
//!   stores before it takes the mutex. So either the waiter or the publisher notices that the waiter is due.
//! - LSN-3: a waiter that was taken off the queue wakes the next few, whether it is polled or dropped. So while a due waiter is in the
//!   queue, a woken waiter exists that is going to wake it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};

use super::mutex::Mutex;
use super::shim::{AtomicBool, AtomicU64};

/// How many `publish` wakes by itself, and how many each of the woken wakes in turn.
const FIRST: usize = 8;
const CHAIN: usize = 4;

/// The waits were given up: the position will never be reached (the log is poisoned).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the position will never be reached")
    }
}

impl std::error::Error for Closed {}

/// A position that grows, and its waiters.
#[derive(Debug)]
pub struct LsnWaiters {
    published: AtomicU64,
    closed: AtomicBool,
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    next_id: u64,
    waiting: BTreeMap<(u64, u64), Waker>,
}

impl LsnWaiters {
    /// A position that has been published up to `lsn`; the mutex is of the class of that name.
    pub fn new(name: &'static str, lsn: u64) -> Self {
        let line = Mutex::new(name, Line::default());
        Self { published: AtomicU64::new(lsn), closed: AtomicBool::new(false), line }
    }

    /// What has been published. A wait for `lsn` is over once this is at least `lsn`.
    pub fn published(&self) -> u64 {
        self.published.load(SeqCst)
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.line.lock().waiting.len()
    }

    /// Publishes a position and wakes the first of its waiters. Positions below the published one change
    /// nothing (LSN-1).
    pub fn publish(&self, lsn: u64) {
        self.published.fetch_max(lsn, SeqCst);
        self.wake(FIRST);
    }

    /// Gives all waits up, present and future ones: those whose position has been reached still succeed.
    pub fn close(&self) {
        self.closed.store(true, SeqCst);
        self.wake(FIRST);
    }

    /// Waits until `published() >= lsn`.
    ///
    /// # Errors
    /// [`Closed`] if the waits were given up before that.
    pub fn wait(&self, lsn: u64) -> WaitLsn<'_> {
        WaitLsn { waiters: self, lsn, entered: None }
    }

    fn outcome(&self, lsn: u64) -> Option<Result<(), Closed>> {
        if self.published.load(SeqCst) >= lsn {
            return Some(Ok(()));
        }
        self.closed.load(SeqCst).then_some(Err(Closed))
    }

    fn wake(&self, limit: usize) {
        let mut wakers: [Option<Waker>; FIRST] = [const { None }; FIRST];
        {
            let mut line = self.line.lock();
            for slot in wakers.iter_mut().take(limit) {
                let Some(first) = line.waiting.first_entry() else {
                    break;
                };
                if self.outcome(first.key().0).is_none() {
                    break;
                }
                *slot = Some(first.remove());
            }
        }
        for waker in wakers.into_iter().flatten() {
            waker.wake();
        }
    }
}

/// A wait for a position; see [`LsnWaiters::wait`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct WaitLsn<'a> {
    waiters: &'a LsnWaiters,
    lsn: u64,
    entered: Option<u64>,
}

impl Future for WaitLsn<'_> {
    type Output = Result<(), Closed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = self.waiters.outcome(self.lsn) {
            self.leave();
            return Poll::Ready(outcome);
        }
        let waker = cx.waker().clone();
        let mut line = self.waiters.line.lock();
        let id = self.entered.unwrap_or_else(|| {
            line.next_id += 1;
            line.next_id
        });
        let replaced = line.waiting.insert((self.lsn, id), waker);
        let outcome = self.waiters.outcome(self.lsn); // LSN-2
        drop(line);
        drop(replaced);
        self.entered = Some(id);
        match outcome {
            None => Poll::Pending,
            Some(outcome) => {
                self.leave();
                Poll::Ready(outcome)
            }
        }
    }
}

impl WaitLsn<'_> {
    /// LSN-3: a waiter that another task took off the queue owes the next ones their wake-up.
    fn leave(&mut self) {
        let Some(id) = self.entered.take() else {
            return;
        };
        let removed = self.waiters.line.lock().waiting.remove(&(self.lsn, id));
        if removed.is_none() {
            self.waiters.wake(CHAIN);
        }
    }
}

impl Drop for WaitLsn<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
