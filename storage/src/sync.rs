//! The mutex of this crate, until every use is a named one.

/// A mutex for short sections in memory; a panic under it does not spread to others.
#[derive(Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub const fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits for the mutex.
    pub fn lock(&self) -> std::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

/// Wakes the one task that waits for a condition to become true.
///
/// The waiter announces itself, then looks at the condition once more; who makes the condition true rings afterwards.
/// One of the two sees the other.
#[derive(Default)]
pub struct Bell {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
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
