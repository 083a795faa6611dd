//! Where sessions run: tokio's multi-thread scheduler, one tokio current-thread runtime per core, or a run queue of
//! our own on top of such a runtime (tokio is then only the reactor).
//!
//! Structure of the run queue of our own, one per core:
//!
//! ```text
//!   wake on this core  -> urgent | normal   (thread-local deques; urgent: granted lock owners, lock holders)
//!   wake from elsewhere -> remote           (a mutexed list + one wake of the executor task)
//!   executor task: urgent first, then normal; after `interval` polls it yields to the reactor
//! ```
//!
//! Invariant SCHED-1: a task stands in at most one queue (`queued`), cleared before it is polled.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::Flags;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Sched {
    /// tokio, work-stealing.
    Tokio,
    /// tokio current-thread, one per core, sessions dealt round-robin.
    PerCore,
    /// The run queue of our own, one per core.
    Own,
}

type Session = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    static CORE: Core = Core::default();
    static URGENT: Cell<bool> = const { Cell::new(false) };
    static CURRENT: RefCell<Option<Arc<Task>>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Core {
    remote: RefCell<Option<Arc<Remote>>>,
    urgent: RefCell<VecDeque<Arc<Task>>>,
    normal: RefCell<VecDeque<Arc<Task>>>,
    polling: Cell<bool>,
    rang: Cell<bool>,
}

#[derive(Default)]
struct Remote {
    /// Without it `urgent` is never used (to measure what it is worth).
    priorities: bool,
    inbox: Mutex<Vec<(Arc<Task>, bool)>>,
    executor: AtomicWaker,
}

struct Task {
    future: Mutex<Option<Session>>,
    queued: AtomicBool,
    holds_lock: AtomicBool,
    home: Arc<Remote>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if self.queued.swap(true, SeqCst) {
            return;
        }
        let urgent = self.home.priorities && (URGENT.get() || self.holds_lock.load(Relaxed));
        CORE.with(|core| {
            let here = core.remote.borrow().as_ref().is_some_and(|r| Arc::ptr_eq(r, &self.home));
            if here {
                let queue = if urgent { &core.urgent } else { &core.normal };
                queue.borrow_mut().push_back(self);
                if !core.polling.get() && !core.rang.replace(true) {
                    core.remote.borrow().as_ref().unwrap().executor.wake();
                }
            } else {
                let home = self.home.clone();
                let first = {
                    let mut inbox = home.inbox.lock();
                    inbox.push((self, urgent));
                    inbox.len() == 1
                };
                if first {
                    home.executor.wake();
                }
            }
        });
    }
}

/// Runs `wake` so that whom it wakes goes ahead of new statements (no effect on tokio's own schedulers).
pub fn urgently(wake: impl FnOnce()) {
    URGENT.set(true);
    wake();
    URGENT.set(false);
}

/// Says whether the running session holds locks in an open block (no effect on tokio's own schedulers).
pub fn set_holds_lock(yes: bool) {
    CURRENT.with(|c| {
        if let Some(task) = &*c.borrow() {
            task.holds_lock.store(yes, Relaxed);
        }
    });
}

struct Executor {
    remote: Arc<Remote>,
    interval: usize,
    spin: Duration,
    idle_since: Option<Instant>,
}

impl Future for Executor {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.remote.executor.register(cx.waker());
        CORE.with(|core| {
            core.polling.set(true);
            core.rang.set(false);
            let mut polls = 0;
            while polls < self.interval {
                self.take_inbox(core);
                let next = core.urgent.borrow_mut().pop_front();
                let Some(task) = next.or_else(|| core.normal.borrow_mut().pop_front()) else { break };
                run(task);
                polls += 1;
            }
            core.polling.set(false);
            let idle = core.urgent.borrow().is_empty() && core.normal.borrow().is_empty();
            let spin = self.spin_on(idle && polls == 0);
            if !idle || spin {
                // `yield_now` defers behind one turn of the reactor without a system call of its own.
                let _ = std::pin::pin!(tokio::task::yield_now()).poll(cx);
            }
            Poll::Pending
        })
    }
}

impl Executor {
    fn take_inbox(&self, core: &Core) {
        let mut inbox = self.remote.inbox.lock();
        for (task, urgent) in inbox.drain(..) {
            let queue = if urgent { &core.urgent } else { &core.normal };
            queue.borrow_mut().push_back(task);
        }
    }

    fn spin_on(&mut self, idle: bool) -> bool {
        if !idle || self.spin.is_zero() {
            self.idle_since = None;
            return idle && !self.spin.is_zero();
        }
        self.idle_since.get_or_insert_with(Instant::now).elapsed() < self.spin
    }
}

fn run(task: Arc<Task>) {
    task.queued.store(false, SeqCst); // SCHED-1
    let waker = Waker::from(task.clone());
    let mut cx = Context::from_waker(&waker);
    CURRENT.with(|c| *c.borrow_mut() = Some(task.clone()));
    let mut future = task.future.lock();
    if let Some(session) = future.as_mut() {
        if session.as_mut().poll(&mut cx).is_ready() {
            *future = None;
        }
    }
}

/// Serves `listener` for ever; `session(stream, shard)` makes the future of one connection, `dispatch(shard)` the task
/// that wakes the durability waiters of a shard.
pub fn serve(
    flags: &Flags,
    listener: TcpListener,
    session: impl Fn(tokio::net::TcpStream, usize) -> Session + Send + Sync + 'static,
    dispatch: impl Fn(usize) -> Session + Send + Sync + 'static,
) {
    let (session, dispatch) = (Arc::new(session), Arc::new(dispatch));
    match flags.sched {
        Sched::Tokio => serve_tokio(flags, listener, session, dispatch),
        Sched::PerCore | Sched::Own => serve_per_core(flags, listener, session, dispatch),
    }
}

type MakeSession = Arc<dyn Fn(tokio::net::TcpStream, usize) -> Session + Send + Sync>;
type MakeDispatch = Arc<dyn Fn(usize) -> Session + Send + Sync>;

fn serve_tokio(flags: &Flags, listener: TcpListener, session: MakeSession, dispatch: MakeDispatch) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(flags.workers).enable_io().event_interval(flags.interval as u32);
    builder.global_queue_interval(flags.interval as u32);
    let runtime = builder.build().unwrap();
    let workers = flags.workers;
    runtime.block_on(async move {
        (0..workers).for_each(|shard| drop(tokio::spawn(dispatch(shard))));
        let acceptor = tokio::spawn(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            for n in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(session(stream, n % workers));
            }
        });
        acceptor.await.unwrap();
    });
}

fn serve_per_core(flags: &Flags, listener: TcpListener, session: MakeSession, dispatch: MakeDispatch) {
    let cores: Vec<UnboundedSender<std::net::TcpStream>> = (0..flags.workers)
        .map(|shard| {
            let (send, mut receive) = unbounded_channel::<std::net::TcpStream>();
            let (session, dispatch, flags) = (session.clone(), dispatch.clone(), flags.clone());
            let main = move || {
                let mut builder = tokio::runtime::Builder::new_current_thread();
                let runtime = builder.enable_io().event_interval(flags.interval as u32).build().unwrap();
                runtime.block_on(async move {
                    let spawn = spawner(&flags);
                    spawn(dispatch(shard));
                    let accept = tokio::spawn(async move {
                        while let Some(stream) = receive.recv().await {
                            spawn(session(tokio::net::TcpStream::from_std(stream).unwrap(), shard));
                        }
                    });
                    accept.await.unwrap();
                });
            };
            std::thread::Builder::new().name(format!("core-{shard}")).spawn(main).unwrap();
            send
        })
        .collect();
    for n in 0.. {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        cores[n % cores.len()].send(stream).unwrap();
    }
}

fn spawner(flags: &Flags) -> Box<dyn Fn(Session) + Send> {
    if flags.sched == Sched::PerCore {
        return Box::new(|future| drop(tokio::spawn(future)));
    }
    let remote = Arc::new(Remote { priorities: flags.priorities, ..Remote::default() });
    CORE.with(|core| *core.remote.borrow_mut() = Some(remote.clone()));
    let executor = Executor {
        remote: remote.clone(),
        interval: flags.interval,
        spin: Duration::from_micros(flags.spin_us),
        idle_since: None,
    };
    tokio::spawn(tokio::task::coop::unconstrained(executor));
    Box::new(move |future| {
        let task = Arc::new(Task {
            future: Mutex::new(Some(future)),
            queued: AtomicBool::new(false),
            holds_lock: AtomicBool::new(false),
            home: remote.clone(),
        });
        task.wake();
    })
}
