//! Threads whose waits are accounted for, and `block_on`, which drives a future on the calling thread.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::shim::Signal;
use crate::waits::{self, Object, SessionStats, Wait, WaitEvent};

/// A thread that was started by [`spawn_thread`].
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: std::thread::JoinHandle<T>,
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended (`IPC` / `ThreadJoin`).
    ///
    /// # Errors
    /// What the thread panicked with.
    pub fn join(self) -> std::thread::Result<T> {
        let _wait = Wait::begin(WaitEvent::ThreadJoin, Object::NONE);
        self.thread.join()
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Starts a thread with a session of its own under that name, so that what it waits for shows.
///
/// # Errors
/// When the operating system has no thread to give.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let session = SessionStats::new(name);
    // The kernel keeps 15 bytes of a thread's name; the session has the whole one.
    let thread = std::thread::Builder::new().name(name.to_string()).spawn(move || {
        waits::set_thread_session(Some(session));
        body()
    })?;
    Ok(JoinHandle { thread })
}

/// Stands still until another thread calls `unpark` on it; an `unpark` that came before counts.
#[derive(Debug)]
pub struct Parker {
    signal: Signal,
}

impl Parker {
    /// A parker of the calling thread, which alone may park on it.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { signal: Signal::new() })
    }

    /// Parks until there is a signal, and takes it. Declares no wait: the caller says what it is for.
    pub fn park(&self) {
        self.signal.wait();
    }

    /// Parks at most until `deadline_ns`; false if that came first.
    pub fn park_until(&self, deadline_ns: u64) -> bool {
        self.signal.wait_until(deadline_ns)
    }

    /// Signals the parked thread, or the next park.
    pub fn unpark(&self) {
        self.signal.set();
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

/// Drives a future to its end on the calling thread, which parks while it is pending. What it waits for, the future
/// itself declares (`waits::in_wait`).
///
/// # Panics
/// When the future is pending while the thread holds a latch.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let parker = Parker::new();
    let waker = Waker::from(Arc::clone(&parker));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        super::assert_no_latches();
        parker.park();
    }
}

/// Lets other tasks of the same thread run first, once.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The calling thread's number: threads that ask are counted from 0. What is kept in shards takes the shard of this number, so that threads
/// seldom meet at one. No thread has the number of another one, also after that has ended.
#[inline]
pub fn thread_number() -> usize {
    let number = NUMBER.try_with(|number| {
        if number.get() == usize::MAX {
            number.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    });
    // A thread that ends has none any more.
    number.unwrap_or(0)
}
