//! What the calling thread knows of the task that it polls: its session, its open books, when it was woken.
//!
//! A thread that polls no task has the context of the thread itself: the session of a background thread, no books.
//!
//! # Invariants
//! - CTX-1: sync waits of one thread are strictly nested. `waited` counts each moment once: an inner wait's time is taken
//!   off the outer one's.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use super::books::Ledger;
use super::clock;
use super::event::WaitEvent;
use super::processor::{LastRead, Step};
use super::session::SessionStats;
use super::totals;

pub(super) struct Context {
    /// The session whose future is polled, or that of the thread.
    pub session: RefCell<Option<Arc<SessionStats>>>,
    /// Where sync waits are booked while books are open.
    pub ledger: RefCell<Option<Box<Ledger>>>,
    /// The event of the first async wait that returned Pending in this poll.
    pub pending: Cell<Option<WaitEvent>>,
    /// When the task was woken for this poll; 0 when it was not, or when it is not measured.
    pub woke_ns: Cell<u64>,
    /// All sync waits of this thread so far, each moment once (CTX-1).
    pub waited_ns: Cell<u64>,
    /// The part of the session's poll that runs.
    pub step: Step,
    /// The thread's clocks as they were lately (CPU-3), and until when that counts.
    pub last_read: Cell<LastRead>,
    /// See there.
    pub read_until_ns: Cell<u64>,
    /// Processor time that steps have been charged with since then.
    pub charged_ns: Cell<u64>,
    /// When the task began, in this poll, a wait that ends what it does in the poll (`wait::ends_poll`), its latest; 0: it has not.
    pub rests_ns: Cell<u64>,
    /// The thread's totals.
    totals: OnceCell<totals::Owned>,
}

impl Context {
    /// Adds one wait to the thread's totals.
    #[inline]
    pub fn record(&self, event: WaitEvent, ns: u64, spin_ns: u64) {
        self.totals.get_or_init(totals::Owned::new).record(event, ns, spin_ns);
    }
}

thread_local! {
    static CONTEXT: Context = const {
        Context {
            session: RefCell::new(None),
            ledger: RefCell::new(None),
            pending: Cell::new(None),
            woke_ns: Cell::new(0),
            waited_ns: Cell::new(0),
            step: Step::none(),
            last_read: Cell::new(LastRead::NONE),
            read_until_ns: Cell::new(0),
            charged_ns: Cell::new(0),
            rests_ns: Cell::new(0),
            totals: OnceCell::new(),
        }
    };
}

/// Runs `f` with the calling thread's context; None while the thread ends.
#[inline]
pub(super) fn with<R>(f: impl FnOnce(&Context) -> R) -> Option<R> {
    CONTEXT.try_with(f).ok()
}

/// Remembers when a task was first woken since its last poll, then wakes it.
pub(super) struct Stamp {
    woke_ns: AtomicU64,
    /// Whose task it is: it shows that it is ready to run.
    session: Option<Arc<SessionStats>>,
    inner: Mutex<Waker>,
}

impl Stamp {
    pub fn new(session: Option<Arc<SessionStats>>) -> Arc<Self> {
        Arc::new(Self { woke_ns: AtomicU64::new(0), session, inner: Mutex::new(Waker::noop().clone()) })
    }

    /// At the start of a poll: the task to wake from now on, and when the task was woken for this poll (0: it was not).
    pub fn rearm(&self, waker: &Waker) -> u64 {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if !inner.will_wake(waker) {
            inner.clone_from(waker);
        }
        drop(inner);
        if let Some(session) = &self.session {
            session.polled();
        }
        // A waker writes it only while it is 0, so no locked instruction is needed to take it.
        let woke_ns = self.woke_ns.load(Relaxed);
        if woke_ns != 0 {
            self.woke_ns.store(0, Relaxed);
        }
        woke_ns
    }
}

impl Wake for Stamp {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.woke_ns.load(Relaxed) == 0 {
            let now_ns = clock::now_ns();
            let _ = self.woke_ns.compare_exchange(0, now_ns, Relaxed, Relaxed);
            if let Some(session) = &self.session {
                session.woken(now_ns);
            }
        }
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone();
        inner.wake();
    }
}
