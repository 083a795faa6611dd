//! The books: divide the elapsed time of a future or a call into processor time, run queue, waits, and what is unaccounted.
//!
//! # Structure
//! ```text
//!  poll ............ Pending        wake      poll ...................... Ready
//!  | cpu, run delay, |  wait by     | run     | cpu, run delay,           |
//!  | sync waits      |  pending     | queue   | sync waits                |
//!  |                 |  event       |         |                           |
//! ```
//! Within a poll: the thread's CPU clock, the scheduler's run delay, and the sync waits (spin and park apart) are read
//! at its start and end and at both ends of each wait. Between polls: a waker of our own notes when the task was first
//! woken; before that it waited for the event that `in_wait` declared, from there it stood in a run queue.
//!
//! # Invariants
//! - BOOK-1: no column is computed from the elapsed time. `unaccounted` = elapsed - (CPU + run queue + spin + waits),
//!   and may come out negative by the width of the readings.
//! - BOOK-2: no moment counts twice. CPU time within a wait belongs to the wait (a system call's own work, the spin)
//!   and is taken off the CPU column; run delay within a wait belongs to the run queue and is taken off the wait; an
//!   inner wait's time is taken off the outer one's.
//! - BOOK-3: time between polls that no `in_wait` declared is not guessed at: it stays unaccounted.
//!
//! # Not here
//! Totals over all sessions are always on (`totals`). Books cost some microseconds a poll and are opened only on request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use pin_project_lite::pin_project;

use super::event::WaitEvent;
use super::{clock, context};

/// The three clocks of a thread, read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub wall_ns: u64,
    pub cpu_ns: u64,
    pub run_delay_ns: u64,
}

impl Mark {
    /// Always in this order, so that two marks are the same distance apart on all three clocks.
    pub fn take() -> Self {
        let run_delay_ns = clock::run_delay_ns().unwrap_or(0);
        let cpu_ns = clock::thread_cpu_ns();
        Self { wall_ns: clock::now_ns(), cpu_ns, run_delay_ns }
    }

    fn since(&self, earlier: &Mark) -> Mark {
        Mark {
            wall_ns: self.wall_ns.saturating_sub(earlier.wall_ns),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(earlier.run_delay_ns),
        }
    }

    fn plus(&self, other: &Mark) -> Mark {
        Mark {
            wall_ns: self.wall_ns + other.wall_ns,
            cpu_ns: self.cpu_ns + other.cpu_ns,
            run_delay_ns: self.run_delay_ns + other.run_delay_ns,
        }
    }
}

/// What waits of one event took of the elapsed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitShare {
    /// The event.
    pub event: WaitEvent,
    /// How many waits there were.
    pub count: u64,
    /// Time blocked, parked or in the system call.
    pub wait_ns: u64,
    /// Time spun away on a processor.
    pub spin_ns: u64,
}

/// What is booked while books are open: the sync waits of a poll, or everything so far.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// All sync waits booked so far, each moment once.
    pub consumed: Mark,
    shares: Vec<WaitShare>,
}

impl Ledger {
    /// Books a sync wait that has ended. `consumed_before` is `self.consumed` as of its beginning; what came on top
    /// since is inner waits' (BOOK-2).
    pub fn book_wait(
        &mut self,
        event: WaitEvent,
        began: &Mark,
        spun: Option<&Mark>,
        ended: &Mark,
        consumed_before: Mark,
    ) {
        let whole = ended.since(began);
        let inner = self.consumed.since(&consumed_before);
        let spin_ns = spun.map_or(0, |spun| spun.cpu_ns.saturating_sub(began.cpu_ns));
        let blocked = ended.since(spun.unwrap_or(began)).since(&inner);
        let share = self.share(event);
        share.count += 1;
        share.spin_ns += spin_ns;
        share.wait_ns += blocked.wall_ns.saturating_sub(blocked.run_delay_ns);
        self.consumed = consumed_before.plus(&whole);
    }

    fn share(&mut self, event: WaitEvent) -> &mut WaitShare {
        let at = self.shares.iter().position(|share| share.event == event).unwrap_or_else(|| {
            self.shares.push(WaitShare { event, count: 0, wait_ns: 0, spin_ns: 0 });
            self.shares.len() - 1
        });
        &mut self.shares[at]
    }

    fn add(&mut self, other: &Ledger) {
        self.consumed = self.consumed.plus(&other.consumed);
        for theirs in &other.shares {
            let share = self.share(theirs.event);
            share.count += theirs.count;
            share.wait_ns += theirs.wait_ns;
            share.spin_ns += theirs.spin_ns;
        }
    }
}

/// What the elapsed time consists of. Every column but the last was measured on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// From the first poll to the end of the last.
    pub elapsed_ns: u64,
    /// Computing: the thread's CPU clock, without what waits and spins used of it.
    pub cpu_ns: u64,
    /// Ready but not running: from wake-up to poll, and the scheduler's run delay.
    pub run_queue_ns: u64,
    /// Whether the kernel gave its run delay; without it, preemption shows as unaccounted.
    pub run_delay_known: bool,
    /// Waits by event, in the order in which they first came.
    pub waits: Vec<WaitShare>,
    /// Elapsed less all of the above; negative by the width of the readings where they overlap.
    pub unaccounted_ns: i64,
}

impl Books {
    /// Time spun away on a processor, over all events.
    pub fn spin_ns(&self) -> u64 {
        self.waits.iter().map(|share| share.spin_ns).sum()
    }

    /// Time waited without a processor, over all events.
    pub fn wait_ns(&self) -> u64 {
        self.waits.iter().map(|share| share.wait_ns).sum()
    }

    /// The share of one event; zeros if it was not waited for.
    pub fn wait(&self, event: WaitEvent) -> WaitShare {
        let found = self.waits.iter().find(|share| share.event == event).copied();
        found.unwrap_or(WaitShare { event, count: 0, wait_ns: 0, spin_ns: 0 })
    }
}

/// The columns while they grow.
#[derive(Debug, Default)]
struct Columns {
    cpu_ns: u64,
    run_queue_ns: u64,
    ledger: Ledger,
}

impl Columns {
    fn close(self, elapsed_ns: u64) -> Books {
        let mut books = Books {
            elapsed_ns,
            cpu_ns: self.cpu_ns,
            run_queue_ns: self.run_queue_ns,
            run_delay_known: clock::run_delay_ns().is_some(),
            waits: self.ledger.shares,
            unaccounted_ns: 0,
        };
        let accounted = books.cpu_ns + books.run_queue_ns + books.spin_ns() + books.wait_ns();
        books.unaccounted_ns = elapsed_ns as i64 - accounted as i64;
        books
    }
}

/// A stretch of running: one poll, or one call.
struct Running {
    outer: Option<Box<Ledger>>,
    began: Mark,
}

impl Running {
    fn begin() -> Self {
        let outer = context::with(|context| context.ledger.borrow_mut().replace(Box::default())).flatten();
        Self { outer, began: Mark::take() }
    }

    /// Adds the stretch to the columns; returns when it ended.
    fn end(mut self, columns: &mut Columns) -> u64 {
        let ended = Mark::take();
        let stretch = ended.since(&self.began);
        let ledger = self.restore();
        columns.cpu_ns += stretch.cpu_ns.saturating_sub(ledger.consumed.cpu_ns); // BOOK-2
        columns.run_queue_ns += stretch.run_delay_ns;
        columns.ledger.add(&ledger);
        ended.wall_ns
    }

    /// Gives the thread back to the books that were open before; what this stretch booked counts there too.
    fn restore(&mut self) -> Box<Ledger> {
        let mut outer = self.outer.take();
        context::with(|context| {
            let mut slot = context.ledger.borrow_mut();
            let own = slot.take().unwrap_or_default();
            if let Some(outer) = &mut outer {
                outer.add(&own);
            }
            *slot = outer;
            own
        })
        .unwrap_or_default()
    }
}

/// Takes the ledger off the thread if a poll panics.
struct OnPanic(Option<Running>);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if let Some(running) = &mut self.0 {
            running.restore();
        }
    }
}

/// Runs a call that blocks the thread and says what its time consisted of.
pub fn books_of<R>(call: impl FnOnce() -> R) -> (R, Books) {
    let mut guard = OnPanic(Some(Running::begin()));
    let result = call();
    let mut columns = Columns::default();
    let Some(running) = guard.0.take() else { unreachable!("taken once") };
    let began_ns = running.began.wall_ns;
    let ended_ns = running.end(&mut columns);
    (result, columns.close(ended_ns.saturating_sub(began_ns)))
}

/// Runs a future and says, when it is ready, what its time consisted of.
pub fn books<F: Future>(future: F) -> InBooks<F> {
    InBooks { future, stamp: context::Stamp::new(None), columns: Columns::default(), began_ns: 0, suspended: None }
}

pin_project! {
    /// The future that [`books`] returns.
    #[must_use = "futures do nothing unless polled"]
    pub struct InBooks<F> {
        #[pin]
        future: F,
        stamp: Arc<context::Stamp>,
        columns: Columns,
        began_ns: u64,
        suspended: Option<Suspended>,
    }
}

/// Between two polls: since when, and for what.
struct Suspended {
    since_ns: u64,
    event: Option<WaitEvent>,
}

impl<F: Future> Future for InBooks<F> {
    type Output = (F::Output, Books);

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut woke_ns = this.stamp.rearm(cx.waker());
        let waker = Arc::clone(this.stamp).into();
        let mut guard = OnPanic(Some(Running::begin()));
        let began_ns = guard.0.as_ref().map_or(0, |running| running.began.wall_ns);
        match this.suspended.take() {
            None => *this.began_ns = began_ns,
            Some(suspended) => woke_ns = this.columns.resume(&suspended, woke_ns, began_ns),
        }
        let woke_before_ns = context::with(|context| {
            context.pending.set(None);
            context.woke_ns.replace(woke_ns)
        });
        let polled = this.future.poll(&mut TaskContext::from_waker(&waker));
        let event = context::with(|context| {
            context.woke_ns.set(woke_before_ns.unwrap_or(0));
            context.pending.get()
        });
        let Some(running) = guard.0.take() else { unreachable!("taken once") };
        let ended_ns = running.end(this.columns);
        match polled {
            Poll::Ready(output) => {
                let columns = std::mem::take(this.columns);
                Poll::Ready((output, columns.close(ended_ns.saturating_sub(*this.began_ns))))
            }
            Poll::Pending => {
                *this.suspended = Some(Suspended { since_ns: ended_ns, event: event.flatten() });
                Poll::Pending
            }
        }
    }
}

impl Columns {
    /// Books the time between two polls; returns when the task was woken. A poll that no wake-up led to (a
    /// neighbour in the same task was woken) ends the wait when it begins.
    fn resume(&mut self, suspended: &Suspended, woke_ns: u64, polled_ns: u64) -> u64 {
        let woke_ns = if woke_ns == 0 { polled_ns } else { woke_ns.clamp(suspended.since_ns, polled_ns) };
        if let Some(event) = suspended.event {
            let share = self.ledger.share(event);
            share.count += 1;
            share.wait_ns += woke_ns - suspended.since_ns;
        } // else BOOK-3
        self.run_queue_ns += polled_ns - woke_ns;
        woke_ns
    }
}
