//! Gates, at which tasks wait for a page or a frame, and the spinning of threads on a latch.
//!
//! # Invariants
//! - BUF-11: a waiter registers at the gate first and checks the state again afterwards. A task that opens the gate changes
//!   the state first and opens the gate afterwards. So no wake-up is lost.

use super::counters::{Count, Counters};
use crate::ids::PageId;
use crate::interleave::{self, Point};
use clearway_base::sync::{self, Class, Mutex, MutexGuard};
use clearway_base::waits::{Object, Wait, WaitEvent, in_wait};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

const GATES: usize = 64;

/// Gates of pages that are being loaded, by page number. Pages may share a gate; then their waiters are woken needlessly at times.
pub(super) struct Gates {
    gates: Box<[Gate]>,
}

impl Gates {
    pub(super) fn new() -> Gates {
        Gates { gates: (0..GATES).map(|_| Gate::default()).collect() }
    }

    pub(super) fn of(&self, page: PageId) -> &Gate {
        &self.gates[page.0 as usize % GATES]
    }
}

/// A place to wait at until it is next opened.
pub(super) struct Gate {
    inner: Mutex<Inner>,
}

impl Default for Gate {
    fn default() -> Self {
        Gate { inner: Mutex::new("BufferGate", Inner::default()) }
    }
}

#[derive(Default)]
struct Inner {
    openings: u64,
    wakers: Vec<Waker>,
}

impl Gate {
    /// A future that ends when the gate is opened after now (BUF-11).
    pub(super) fn listen(&self) -> Listening<'_> {
        Listening { gate: self, since: self.inner.lock().openings }
    }

    /// Wakes all tasks at the gate.
    pub(super) fn open(&self) {
        let wakers = {
            let mut inner = self.inner.lock();
            inner.openings += 1;
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// A task at a gate.
pub(super) struct Listening<'g> {
    gate: &'g Gate,
    since: u64,
}

impl Future for Listening<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.gate.inner.lock();
        if inner.openings != self.since {
            return Poll::Ready(());
        }
        if !inner.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// The stock of free frames.
pub(super) struct Stock {
    frames: Mutex<Vec<u32>>,
    pub(super) refilled: Gate,
    pub(super) wanted: Gate,
}

impl Stock {
    /// All frames of a new pool.
    pub(super) fn new(frames: usize) -> Stock {
        Stock {
            frames: Mutex::new("BufferFreeFrames", (0..frames as u32).rev().collect()),
            refilled: Gate::default(),
            wanted: Gate::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u32>> {
        self.frames.lock()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn take(&self) -> Option<usize> {
        self.lock().pop().map(|frame| frame as usize)
    }

    pub(super) fn put(&self, frame: usize) {
        self.lock().push(frame as u32);
        self.refilled.open();
    }
}

/// Spins on a latch that another thread holds for some hundred nanoseconds.
pub(super) struct Spin<'c> {
    turns: u32,
    waits: &'c Count,
    booked: Option<Wait>,
}

impl<'c> Spin<'c> {
    pub(super) fn new(counters: &'c Counters) -> Spin<'c> {
        Spin { turns: 0, waits: &counters.latch_waits, booked: None }
    }

    /// Waits a little, more with every turn.
    pub(super) fn turn(&mut self) {
        if cfg!(feature = "interleave") {
            return interleave::step(Point::Spin);
        }
        if self.turns == 0 {
            self.waits.add(1);
            self.booked = Some(Wait::begin(WaitEvent::Latch, Object::NONE));
        }
        self.turns += 1;
        if self.turns < 64 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Latches on pages, as the books know them.
static PAGE_LATCH: Class = Class::new("storage/buffer/page").coupled();

pub(super) fn latch_taken() {
    // The tasks of a test's scheduler share a thread.
    if cfg!(feature = "interleave") {
        return;
    }
    sync::note_latch_taken(&PAGE_LATCH);
}

pub(super) fn latch_given_back() {
    if cfg!(feature = "interleave") {
        return;
    }
    sync::note_latch_given_back(&PAGE_LATCH);
}

/// One task at a time; the others wait at a gate.
#[derive(Default)]
pub(super) struct Turn {
    taken: AtomicBool,
    gate: Gate,
}

/// It is this task's turn until the guard goes.
pub(super) struct TurnGuard<'t> {
    turn: &'t Turn,
}

impl Turn {
    pub(super) async fn take(&self) -> TurnGuard<'_> {
        loop {
            let waiting = self.gate.listen();
            if !self.taken.swap(true, Ordering::SeqCst) {
                return TurnGuard { turn: self };
            }
            in_wait(WaitEvent::BufferIo, Object::NONE, waiting).await;
        }
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.turn.taken.store(false, Ordering::SeqCst);
        self.turn.gate.open();
    }
}
