//! Waits of background tasks: a bell, for one task that sleeps until it has work, and a turn, for tasks that exclude each other.
//!
//! # Invariants
//! - WTN-1: a task whose wait for a turn is dropped leaves the queue. The end of a turn wakes the first of the queue alone, so that a place
//!   without a task would keep all others waiting for ever.

use clearway_base::sync::Mutex;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

/// Wakes the one task that waits for a condition to become true.
///
/// The waiter announces itself, then looks at the condition once more; the thread that makes the condition true rings afterwards.
/// One of the two sees the other.
pub struct Bell {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    /// A bell; `name` is that of its mutex in the figures on mutexes.
    pub fn new(name: &'static str) -> Self {
        Bell { asleep: AtomicBool::new(false), waker: Mutex::new(name, None) }
    }

    /// Wakes the waiter, if it sleeps.
    pub fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            let waker = self.waker.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Ends when `condition` holds; it is looked at now and after each ring.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
        poll_fn(move |cx| {
            if condition() {
                return Poll::Ready(());
            }
            *self.waker.lock() = Some(cx.waker().clone());
            self.asleep.store(true, Ordering::SeqCst);
            if condition() { Poll::Ready(()) } else { Poll::Pending }
        })
    }
}

/// Lets others run, then goes on.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Ends with the first of two futures.
pub async fn first_of(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    poll_fn(|cx| {
        let ended = one.as_mut().poll(cx).is_ready() || other.as_mut().poll(cx).is_ready();
        if ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Lets one task at a time through; the others wait in order of arrival.
pub struct Turn {
    inner: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    taken: bool,
    arrivals: u64,
    waiting: std::collections::BTreeMap<u64, Waker>,
}

/// It is this task's turn until the guard goes.
pub struct TurnGuard<'a>(&'a Turn);

/// A task in the queue of a turn.
struct Arrival<'a> {
    turn: &'a Turn,
    place: Option<u64>,
}

impl Turn {
    /// A free turn; `name` is that of its mutex in the figures on mutexes.
    pub fn new(name: &'static str) -> Self {
        Turn { inner: Mutex::new(name, TurnState::default()) }
    }

    /// Waits for the turn.
    pub fn take(&self) -> impl Future<Output = TurnGuard<'_>> + Send {
        let mut arrival = Arrival { turn: self, place: None };
        poll_fn(move |cx| {
            // WTN-1: by this the closure owns the arrival itself. Of fields that can be copied it would own copies, which no drop ends.
            let arrival = &mut arrival;
            let turn = arrival.turn;
            let mut state = turn.inner.lock();
            let mine = arrival.place.is_none_or(|place| !state.waiting.contains_key(&place));
            if !state.taken && (mine || state.waiting.keys().next() == arrival.place.as_ref()) {
                state.taken = true;
                if let Some(place) = arrival.place.take() {
                    state.waiting.remove(&place);
                }
                return Poll::Ready(TurnGuard(turn));
            }
            let place = arrival.place.unwrap_or_else(|| {
                state.arrivals += 1;
                state.arrivals
            });
            state.waiting.insert(place, cx.waker().clone());
            arrival.place = Some(place);
            Poll::Pending
        })
    }

    fn wake_first(&self) {
        let waker = {
            let state = self.inner.lock();
            if state.taken { None } else { state.waiting.first_key_value().map(|(_, waker)| waker.clone()) }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.turn.inner.lock().waiting.remove(&place);
            // The wake-up may have been for this one.
            self.turn.wake_first();
        }
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().taken = false;
        self.0.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Context;

    /// WTN-1
    #[test]
    fn a_dropped_wait_for_a_turn_keeps_no_task_from_it() {
        let turn = Turn::new("storage/tests/turn");
        let cx = &mut Context::from_waker(Waker::noop());
        let Poll::Ready(taken) = pin!(turn.take()).poll(cx) else { panic!("the turn is free") };
        let mut dropped = Box::pin(turn.take());
        assert!(dropped.as_mut().poll(cx).is_pending());
        let mut second = pin!(turn.take());
        assert!(second.as_mut().poll(cx).is_pending());
        drop(dropped);
        drop(taken);
        assert!(second.as_mut().poll(cx).is_ready(), "the first of the queue has gone");
    }
}
