//! A queue of waiting tasks: first come, first served; a grant that reached a dropped waiter passes on.
//!
//! # Life of a waiter
//! `enroll` enters it in the queue -> a `wake_*` grants it (or its future is dropped, and it leaves the queue) -> its future is ready.
//! A caller enrolls first, then checks its condition, then awaits: a grant that comes in between is kept.
//!
//! # Invariants
//! - QUEUE-1: grants go in the order of enrolment.
//! - QUEUE-2: a grant of `wake_one` or `wake_n` is lost only if the queue is empty: a waiter that is dropped with such a grant hands it to
//!   the next. A grant of `wake_all` is not handed on: it was not meant for waiters that enrolled later.
//! - QUEUE-3: no waker runs while the queue's mutex is held.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::mutex::Mutex;

/// A queue of tasks. The awaiting task declares the wait itself, with `waits::in_wait`.
#[derive(Debug)]
pub struct WaitQueue {
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    places: Vec<Place>,
    free: Option<usize>,
    head: Option<usize>,
    tail: Option<usize>,
    waiting: usize,
}

#[derive(Debug)]
struct Place {
    state: State,
    before: Option<usize>,
    after: Option<usize>,
}

#[derive(Debug)]
enum State {
    Free,
    Waiting(Waker),
    Granted { hand_on: bool },
}

impl Line {
    fn push(&mut self) -> usize {
        let place = Place { state: State::Waiting(Waker::noop().clone()), before: self.tail, after: None };
        let at = match self.free {
            Some(at) => {
                self.free = self.places[at].after;
                self.places[at] = place;
                at
            }
            None => {
                self.places.push(place);
                self.places.len() - 1
            }
        };
        match self.tail.replace(at) {
            Some(tail) => self.places[tail].after = Some(at),
            None => self.head = Some(at),
        }
        self.waiting += 1;
        at
    }

    /// Takes a waiting place out of the line; it stays in use.
    fn unlink(&mut self, at: usize) {
        let (before, after) = (self.places[at].before, self.places[at].after);
        match before {
            Some(before) => self.places[before].after = after,
            None => self.head = after,
        }
        match after {
            Some(after) => self.places[after].before = before,
            None => self.tail = before,
        }
        self.waiting -= 1;
    }

    /// Gives a place back that is in no line.
    fn release(&mut self, at: usize) {
        self.places[at] = Place { state: State::Free, before: None, after: self.free };
        self.free = Some(at);
    }

    fn grant_head(&mut self, hand_on: bool) -> Option<Waker> {
        let at = self.head?; // QUEUE-1
        self.unlink(at);
        match std::mem::replace(&mut self.places[at].state, State::Granted { hand_on }) {
            State::Waiting(waker) => Some(waker),
            State::Free | State::Granted { .. } => {
                unreachable!("the queue has only places that wait")
            }
        }
    }
}

/// Wakers are collected and run in batches of this size, so that the mutex is held for a short time.
const BATCH: usize = 16;

impl WaitQueue {
    /// An empty line whose mutex is of the class of that name.
    pub fn new(name: &'static str) -> Self {
        Self { line: Mutex::new(name, Line::default()) }
    }

    /// Puts the caller in line. The future is ready once it is granted.
    pub fn enroll(&self) -> Waiter<'_> {
        let at = self.line.lock().push();
        Waiter { queue: self, at: Some(at) }
    }

    /// How many stand in line.
    pub fn waiting(&self) -> usize {
        self.line.lock().waiting
    }

    /// Grants the first in line; false if the queue is empty.
    pub fn wake_one(&self) -> bool {
        self.wake_n(1) == 1
    }

    /// Grants the first `limit` in line; returns how many there were.
    pub fn wake_n(&self, limit: usize) -> usize {
        self.wake(limit, true)
    }

    /// Grants every task that is in the queue now; returns how many there were.
    pub fn wake_all(&self) -> usize {
        let waiting = self.line.lock().waiting;
        self.wake(waiting, false)
    }

    fn wake(&self, limit: usize, hand_on: bool) -> usize {
        let mut granted = 0;
        while granted < limit {
            let mut wakers: [Option<Waker>; BATCH] = [const { None }; BATCH];
            let wanted = BATCH.min(limit - granted);
            {
                let mut line = self.line.lock();
                for slot in wakers.iter_mut().take(wanted) {
                    *slot = line.grant_head(hand_on);
                }
            }
            let before = granted;
            for waker in wakers.into_iter().flatten() {
                waker.wake(); // QUEUE-3
                granted += 1;
            }
            if granted - before < wanted {
                break;
            }
        }
        granted
    }
}

/// A place in line; a future that is ready once it is granted. Dropping it leaves the line.
#[derive(Debug)]
#[must_use = "dropping it leaves the line"]
pub struct Waiter<'a> {
    queue: &'a WaitQueue,
    at: Option<usize>,
}

impl Waiter<'_> {
    /// Whether it has been granted already.
    pub fn is_granted(&self) -> bool {
        let Some(at) = self.at else { return true };
        matches!(self.queue.line.lock().places[at].state, State::Granted { .. })
    }
}

impl Future for Waiter<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else {
            return Poll::Ready(());
        };
        let waker = cx.waker().clone(); // QUEUE-3: cloning runs foreign code
        let mut line = self.queue.line.lock();
        let replaced = match &mut line.places[at].state {
            State::Waiting(current) => Some(std::mem::replace(current, waker)),
            State::Granted { .. } => None,
            State::Free => unreachable!("a waiter's place is its own"),
        };
        if replaced.is_none() {
            line.release(at);
        }
        drop(line);
        match replaced {
            Some(_) => Poll::Pending,
            None => {
                self.at = None;
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let Some(at) = self.at else { return };
        let hand_on = {
            let mut line = self.queue.line.lock();
            let hand_on = match line.places[at].state {
                State::Granted { hand_on } => hand_on,
                _ => {
                    line.unlink(at);
                    false
                }
            };
            line.release(at);
            hand_on
        };
        if hand_on {
            self.queue.wake_one(); // QUEUE-2
        }
    }
}
