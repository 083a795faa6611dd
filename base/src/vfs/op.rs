//! One file operation: a future that starts when it is first polled, or that `wait` performs at once.
//!
//! # Life of an operation
//! ```text
//!   Ready   (failed before it began, e.g. misaligned)   ── poll ──> Done
//!   Idle    ── first poll, a driver takes it ──> Begun  ── poll, completed ──> Done
//!           ── first poll or wait, inline ─────────────────────────────────> Done
//! ```
//! The driver (thread pool, simulated disk) holds the other end of `Begun`, a [`Completer`], together
//! with the buffer (VFS-1).

use super::booking::Booking;
use super::error::{OpKind, VfsError};
use crate::memory::Outside;
use crate::waits::{InWait, Wait, in_wait};
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A file operation with result `Result<T, VfsError>`. Dropping it before the first poll cancels it;
/// afterwards the operation runs to its end and the result is thrown away.
#[must_use = "an operation does nothing until it is awaited or waited for"]
pub struct IoOp<T: Send + 'static> {
    state: State<T>,
}

enum State<T: Send + 'static> {
    Ready(Result<T, VfsError>),
    Idle(Booking, Box<dyn Begin<T>>),
    Begun(Begun<T>),
    Done,
}

/// An operation that a driver performs.
struct Begun<T> {
    booking: Booking,
    cell: Arc<Cell<T>>,
    waiting: InWait<InFlight<T>>,
}

/// How a driver performs an operation.
pub(super) trait Begin<T: Send + 'static>: Send {
    /// Performs it on this thread and returns when it has ended (VFS-1: not before it is polled).
    fn perform(self: Box<Self>) -> Result<T, VfsError>;

    /// Whether the calling thread is to perform it, even in a poll.
    fn is_inline(&self) -> bool {
        true
    }

    /// Hands it to the driver. Only called when it is not inline.
    fn submit(self: Box<Self>) -> InFlight<T> {
        unreachable!("an operation without a driver is performed inline")
    }
}

/// The future's end of an operation that a driver performs.
pub(super) struct InFlight<T>(Arc<Cell<T>>);

/// The driver's end. Dropped without a result, it completes the operation with an error, so that
/// no task waits for ever for a driver that went away.
pub(super) struct Completer<T> {
    cell: Arc<Cell<T>>,
    op: OpKind,
    path: Arc<PathBuf>,
    completed: bool,
}

struct Cell<T> {
    slot: Mutex<Slot<T>>,
    // For `wait` on an operation that is already in flight.
    filled: Condvar,
    /// Either end may be the last one (MEM-8).
    _outside: Outside,
}

struct Slot<T> {
    result: Option<Result<T, VfsError>>,
    waker: Option<Waker>,
}

/// The two ends of an operation in flight.
pub(super) fn in_flight<T>(op: OpKind, path: Arc<PathBuf>) -> (Completer<T>, InFlight<T>) {
    let slot = Mutex::new(Slot { result: None, waker: None });
    let outside = Outside::new(size_of::<Cell<T>>() + 2 * size_of::<usize>());
    let cell = Arc::new(Cell { slot, filled: Condvar::new(), _outside: outside });
    (Completer { cell: cell.clone(), op, path, completed: false }, InFlight(cell))
}

impl<T> Completer<T> {
    /// Ends the operation and wakes the task that waits for it.
    pub(super) fn complete(mut self, result: Result<T, VfsError>) {
        self.fill(result);
    }

    fn fill(&mut self, result: Result<T, VfsError>) {
        self.completed = true;
        let waker = {
            let mut slot = self.cell.slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.result = Some(result);
            slot.waker.take()
        };
        self.cell.filled.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        if !self.completed {
            let gone = io::Error::other("the thread that performed the operation is gone");
            self.fill(Err(VfsError::new(self.op, &self.path, gone)));
        }
    }
}

impl<T: Send + 'static> IoOp<T> {
    /// An operation whose result is known before it began.
    pub fn ready(result: Result<T, VfsError>) -> Self {
        IoOp { state: State::Ready(result) }
    }

    pub(super) fn idle(booking: Booking, begin: impl Begin<T> + 'static) -> Self {
        IoOp { state: State::Idle(booking, Box::new(begin)) }
    }

    /// Performs the operation on the calling thread and returns its result; if it is already in
    /// flight, blocks until it ends. Not for tasks: a task awaits.
    pub fn wait(self) -> Result<T, VfsError> {
        match self.state {
            State::Ready(result) => result,
            State::Idle(booking, begin) => {
                let _wait = Wait::begin(booking.event, booking.object);
                begin.perform()
            }
            State::Begun(Begun { booking, cell, waiting }) => {
                assert!(
                    !crate::testkit::in_simulation(),
                    "blocked on an operation that only the simulation can end; await it"
                );
                drop(waiting);
                let _wait = Wait::begin(booking.event, booking.object);
                let mut slot = cell.slot.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    if let Some(result) = slot.result.take() {
                        return result;
                    }
                    slot = cell.filled.wait(slot).unwrap_or_else(PoisonError::into_inner);
                }
            }
            State::Done => panic!("an operation's result was already taken"),
        }
    }
}

// The result is moved in and out as a whole; nothing points into the operation.
impl<T: Send + 'static> Unpin for IoOp<T> {}

impl<T: Send + 'static> Future for IoOp<T> {
    type Output = Result<T, VfsError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut begun = match std::mem::replace(&mut this.state, State::Done) {
            State::Ready(result) => return Poll::Ready(result),
            State::Idle(booking, begin) if begin.is_inline() => {
                let _wait = Wait::begin(booking.event, booking.object);
                return Poll::Ready(begin.perform());
            }
            State::Idle(booking, begin) => {
                let in_flight = begin.submit();
                let cell = in_flight.0.clone();
                Begun { booking, cell, waiting: in_wait(booking.event, booking.object, in_flight) }
            }
            State::Begun(begun) => begun,
            State::Done => panic!("an operation was polled after it had ended"),
        };
        let polled = Pin::new(&mut begun.waiting).poll(cx);
        if polled.is_pending() {
            this.state = State::Begun(begun);
        }
        polled
    }
}

impl<T> Future for InFlight<T> {
    type Output = Result<T, VfsError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
