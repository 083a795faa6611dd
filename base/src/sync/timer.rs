//! Sleeps and timeouts of tasks, for lock timeouts above all: one thread, one ordered list of deadlines.
//!
//! Under a virtual clock the deadlines are in that clock instead, and the thread that advances the clock wakes the sleepers.
//!
//! # Invariants
//! - TIMER-1: a sleep is never ready before its deadline.
//! - TIMER-2: the thread's own deadline is the earliest in the list: a task that enters an earlier deadline wakes the thread.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::mutex::{Condvar, Mutex};
use super::thread::spawn_thread;
use crate::waits::clock::{self, TimerKey};
use crate::waits::{self, Object, Wait, WaitEvent};

struct Timer {
    deadlines: Mutex<Deadlines>,
    earlier: Condvar,
}

#[derive(Default)]
struct Deadlines {
    next_id: u64,
    by_deadline: BTreeMap<TimerKey, Waker>,
}

static TIMER: OnceLock<Timer> = OnceLock::new();

fn timer() -> &'static Timer {
    let mut is_new = false;
    let the_timer = TIMER.get_or_init(|| {
        is_new = true;
        Timer { deadlines: Mutex::new("sync/timer", Deadlines::default()), earlier: Condvar::new() }
    });
    if is_new {
        let started = spawn_thread("timer", || timer().run());
        assert!(started.is_ok(), "no thread for the timer: {started:?}");
    }
    the_timer
}

impl Timer {
    fn run(&self) {
        let mut deadlines = self.deadlines.lock();
        loop {
            let now_ns = waits::now_ns();
            match deadlines.by_deadline.first_key_value() {
                Some((&(deadline_ns, _), _)) if deadline_ns <= now_ns => {
                    let first = deadlines.by_deadline.pop_first();
                    drop(deadlines);
                    if let Some((_, waker)) = first {
                        waker.wake();
                    }
                    deadlines = self.deadlines.lock();
                }
                Some((&(deadline_ns, _), _)) => {
                    let event = WaitEvent::TimerMain;
                    deadlines = self.earlier.wait_timeout(deadlines, event, deadline_ns - now_ns).0;
                }
                None => deadlines = self.earlier.wait(deadlines, WaitEvent::TimerMain),
            }
        }
    }

    fn set(&self, deadline_ns: u64, waker: Waker) -> TimerKey {
        let mut deadlines = self.deadlines.lock();
        deadlines.next_id += 1;
        let key = (deadline_ns, deadlines.next_id);
        deadlines.by_deadline.insert(key, waker);
        let is_first = deadlines.by_deadline.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(deadlines);
        if is_first {
            self.earlier.notify_one(); // TIMER-2
        }
        key
    }

    /// False if it has fired already.
    fn update(&self, key: TimerKey, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut deadlines = self.deadlines.lock();
        let replaced = deadlines.by_deadline.get_mut(&key).map(|slot| std::mem::replace(slot, waker));
        drop(deadlines);
        replaced.is_some()
    }

    fn cancel(&self, key: TimerKey) {
        let removed = self.deadlines.lock().by_deadline.remove(&key);
        drop(removed);
    }
}

/// A sleep until a moment of the clock; see [`sleep`] and [`sleep_until_ns`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    deadline_ns: u64,
    key: Option<TimerKey>,
}

/// Sleeps for a time. Declares no wait: put it into `waits::in_wait` with what the sleep is for.
pub fn sleep(duration: Duration) -> Sleep {
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    sleep_until_ns(waits::now_ns().saturating_add(ns))
}

/// Sleeps until `waits::now_ns()` has reached `deadline_ns`.
pub fn sleep_until_ns(deadline_ns: u64) -> Sleep {
    Sleep { deadline_ns, key: None }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if waits::now_ns() >= self.deadline_ns {
            return Poll::Ready(()); // TIMER-1
        }
        let virtual_time = clock::installed();
        let kept = self.key.is_some_and(|key| match &virtual_time {
            Some(time) => time.update_timer(key, cx.waker()),
            None => timer().update(key, cx.waker()),
        });
        if !kept {
            let waker = cx.waker().clone();
            self.key = Some(match &virtual_time {
                Some(time) => time.set_timer(self.deadline_ns, waker),
                None => timer().set(self.deadline_ns, waker),
            });
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            match clock::installed() {
                Some(time) => time.cancel_timer(key),
                None => timer().cancel(key),
            }
        }
    }
}

/// The time ran out before the future was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

impl std::fmt::Display for TimedOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("timed out")
    }
}

impl std::error::Error for TimedOut {}

pin_project! {
    /// The future that [`timeout`] returns.
    #[must_use = "futures do nothing unless polled"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        sleep: Sleep,
    }
}

/// Runs a future for at most `duration`, then drops its claim: the future is dropped with the `Timeout`.
///
/// # Errors
/// [`TimedOut`] if the time ran out first. A future that is ready when the time runs out succeeds.
pub fn timeout<F: Future>(duration: Duration, future: F) -> Timeout<F> {
    Timeout { future, sleep: sleep(duration) }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimedOut>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        this.sleep.poll(cx).map(|()| Err(TimedOut))
    }
}

/// Blocks the calling thread for a time, as a wait of `event`. Real time only.
pub fn pause(duration: Duration, event: WaitEvent) {
    let _wait = Wait::begin(event, Object::NONE);
    std::thread::sleep(duration);
}
