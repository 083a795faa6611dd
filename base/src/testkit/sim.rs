//! A deterministic executor: tasks, timers and pending I/O on one thread, scheduled by a seed.
//!
//! # Structure
//! ```text
//!   ready tasks ─┐
//!   pending I/O ─┼─ the seed picks one ── poll it / run its completion ── again
//!   timers ──────┘  (due ones; others only when nothing else can run)
//! ```
//! Everything that can happen next is in one of three bags. While a task is ready, the pick is among
//! ready tasks and pending I/O, so that I/O ends before, between and after the steps of tasks. When no
//! task is ready it is among pending I/O and the earliest timer. Clock: polling takes no virtual time;
//! the end of an I/O moves the clock to the moment it was due (but not past a timer); a timer moves it
//! to its own moment; a task that wants to have computed calls [`advance`].
//!
//! # Invariants
//! - SIM-1: the same seed and the same program give the same schedule. (No iteration over hash maps,
//!   no address, no real clock decides anything.)
//! - SIM-2: virtual time never goes back.
//! - SIM-3: no task code (poll, wake, drop) runs while the executor's state is borrowed, so tasks may
//!   call back into it from anywhere.
//!
//! # Not here
//! Preemption inside a poll: threads that really run in parallel are loom's or shuttle's matter.

use super::Rng;
use crate::waits::clock::{self, Installed, TimerKey, VirtualClock, VirtualTime};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
type Completion = Box<dyn FnOnce() + Send>;

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct SimOptions {
    /// Steps after which a run stops with [`Stop::StepLimit`]: a livelock, most likely.
    pub steps_max: u64,
}

impl Default for SimOptions {
    fn default() -> Self {
        SimOptions { steps_max: 50_000_000 }
    }
}

/// Why a run ended before its future did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Tasks wait, and nothing is left that could wake them. Their names.
    Deadlock(Vec<String>),
    /// [`crash`] was called (or a simulated disk lost power); all tasks were dropped.
    Crashed,
    /// The limit of steps was reached.
    StepLimit,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Deadlock(tasks) => write!(f, "deadlock: nothing can wake {}", tasks.join(", ")),
            Stop::Crashed => f.write_str("crashed"),
            Stop::StepLimit => f.write_str("the limit of steps was reached"),
        }
    }
}

/// The executor. Everything runs on the thread that calls [`Sim::block_on`] or [`Sim::run`].
pub struct Sim {
    shared: Arc<Shared>,
    options: SimOptions,
}

struct Shared {
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    now_ns: u64,
    crashed: bool,
    next_id: u64,
    tasks: BTreeMap<u64, Task>,
    ready: Vec<u64>,
    pending_io: Vec<PendingIo>,
    // Key: due, then order of registration.
    timers: BTreeMap<(u64, u64), Waker>,
}

struct Task {
    name: String,
    // Empty while the task is being polled.
    future: Option<TaskFuture>,
    ready: bool,
}

struct PendingIo {
    due_ns: u64,
    complete: Completion,
}

enum Next {
    Poll(u64, TaskFuture),
    Complete(Completion),
    Fire(Waker),
    Nothing,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

fn current() -> Option<Arc<Shared>> {
    CURRENT.with(|current| current.borrow().clone())
}

fn expect_current() -> Arc<Shared> {
    current().expect("called outside a simulation")
}

/// Whether the calling code runs inside [`Sim::block_on`] or [`Sim::run`].
pub fn in_simulation() -> bool {
    current().is_some()
}

/// Virtual time in ns since the start of the simulation; `None` outside of one.
pub fn now_ns() -> Option<u64> {
    current().map(|shared| shared.state().now_ns)
}

/// Moves the virtual clock on, as if the calling task had computed for `ns`. Timers that fall due are
/// fired at the next step.
pub fn advance(ns: u64) {
    expect_current().state().now_ns += ns;
}

/// Stops the world: no task is polled again, all are dropped, the run returns [`Stop::Crashed`].
pub fn crash() {
    expect_current().state().crashed = true;
}

/// Registers an I/O that has begun and is due in `latency_ns`; `complete` runs when the scheduler lets
/// it end. If the world stops first it is dropped.
pub fn defer(latency_ns: u64, complete: impl FnOnce() + Send + 'static) {
    let shared = expect_current();
    let mut state = shared.state();
    let due_ns = state.now_ns + latency_ns;
    state.pending_io.push(PendingIo { due_ns, complete: Box::new(complete) });
}

/// Starts a task in the running simulation.
pub fn spawn<T: Send + 'static>(name: &str, future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    expect_current().spawn(name, future)
}

/// Ends when `duration` of virtual time has passed.
pub async fn sleep(duration: Duration) {
    let shared = expect_current();
    let due_ns = {
        let nanos = u64::try_from(duration.as_nanos()).expect("a virtual sleep of centuries");
        shared.state().now_ns + nanos
    };
    Sleep { due_ns, key: None }.await;
}

/// Lets the scheduler pick anew.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

struct Sleep {
    due_ns: u64,
    key: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = expect_current();
        let mut state = shared.state();
        if state.now_ns >= self.due_ns {
            return Poll::Ready(());
        }
        if let Some(key) = self.key {
            state.timers.remove(&key);
        }
        let key = (self.due_ns, state.fresh_id());
        state.timers.insert(key, cx.waker().clone());
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // A forgotten timer would keep a deadlock from being seen.
        if let (Some(key), Some(shared)) = (self.key, current()) {
            let _waker = shared.state().timers.remove(&key);
        }
    }
}

/// The result of a task: a future, and a place to look.
pub struct JoinHandle<T> {
    cell: Arc<Mutex<JoinCell<T>>>,
}

struct JoinCell<T> {
    result: Option<T>,
    waker: Option<Waker>,
}

fn join_cell<T>(cell: &Mutex<JoinCell<T>>) -> MutexGuard<'_, JoinCell<T>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> JoinHandle<T> {
    /// Takes the result, if the task has ended.
    pub fn try_take(&self) -> Option<T> {
        join_cell(&self.cell).result.take()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut cell = join_cell(&self.cell);
        match cell.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                cell.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

struct TaskWaker {
    id: u64,
    shared: std::sync::Weak<Shared>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.state().make_ready(self.id);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn<T: Send + 'static>(&self, name: &str, future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let cell = Arc::new(Mutex::new(JoinCell { result: None, waker: None }));
        let for_task = cell.clone();
        let task = async move {
            let result = future.await;
            let waker = {
                let mut cell = join_cell(&for_task);
                cell.result = Some(result);
                cell.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        };
        let mut state = self.state();
        let id = state.fresh_id();
        let task = Task { name: name.to_owned(), future: Some(Box::pin(task)), ready: false };
        state.tasks.insert(id, task);
        state.make_ready(id);
        JoinHandle { cell }
    }
}

impl State {
    fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn make_ready(&mut self, id: u64) {
        if let Some(task) = self.tasks.get_mut(&id)
            && !std::mem::replace(&mut task.ready, true)
        {
            self.ready.push(id);
        }
    }

    /// Chooses what happens next and takes it out of its bag.
    fn next(&mut self) -> Next {
        let timer_due = self.timers.first_key_value().map(|(key, _)| key.0);
        if timer_due.is_some_and(|due| due <= self.now_ns) {
            return self.fire_timer();
        }
        let choices = self.ready.len() + self.pending_io.len();
        if choices == 0 {
            return if timer_due.is_some() { self.fire_timer() } else { Next::Nothing };
        }
        // With I/O pending and no task ready, a timer may overtake: the device is slow, this time.
        if self.ready.is_empty()
            && let Some(due) = timer_due
        {
            let all_later = self.pending_io.iter().all(|io| io.due_ns > due);
            if all_later || self.rng.chance(1, 8) {
                return self.fire_timer();
            }
        }
        let pick = self.rng.index(choices);
        if pick < self.ready.len() {
            let id = self.ready.swap_remove(pick);
            let task = self.tasks.get_mut(&id).expect("a ready task exists");
            task.ready = false;
            match task.future.take() {
                Some(future) => Next::Poll(id, future),
                None => unreachable!("tasks are polled one at a time"),
            }
        } else {
            let io = self.pending_io.swap_remove(pick - self.ready.len());
            let due_ns = timer_due.map_or(io.due_ns, |due| io.due_ns.min(due));
            self.now_ns = self.now_ns.max(due_ns); // SIM-2
            Next::Complete(io.complete)
        }
    }

    fn fire_timer(&mut self) -> Next {
        let Some(((due_ns, _), waker)) = self.timers.pop_first() else {
            return Next::Nothing;
        };
        self.now_ns = self.now_ns.max(due_ns); // SIM-2
        Next::Fire(waker)
    }
}

impl Sim {
    /// An executor whose schedule is a function of `seed` (SIM-1).
    pub fn new(seed: u64) -> Self {
        Sim::with_options(seed, SimOptions::default())
    }

    /// The same with other limits.
    pub fn with_options(seed: u64, options: SimOptions) -> Self {
        let state = State {
            rng: Rng::new(seed),
            now_ns: 0,
            crashed: false,
            next_id: 0,
            tasks: BTreeMap::new(),
            ready: Vec::new(),
            pending_io: Vec::new(),
            timers: BTreeMap::new(),
        };
        Sim { shared: Arc::new(Shared { state: Mutex::new(state) }), options }
    }

    /// Adds a task; it runs during the next [`Sim::block_on`] or [`Sim::run`].
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.shared.spawn(name, future)
    }

    /// Virtual time in ns.
    pub fn now_ns(&self) -> u64 {
        self.shared.state().now_ns
    }

    /// Runs all tasks until `future` ends; the others stay for the next call.
    ///
    /// # Errors
    /// [`Stop`], if it can't end.
    pub fn block_on<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Result<T, Stop> {
        let main = self.spawn("main", future);
        self.run_until(|_| main.try_take())
    }

    /// Runs until every task has ended.
    ///
    /// # Errors
    /// [`Stop`], if they can't.
    pub fn run(&self) -> Result<(), Stop> {
        self.run_until(|state| state.tasks.is_empty().then_some(()))
    }

    fn run_until<R>(&self, mut ended: impl FnMut(&State) -> Option<R>) -> Result<R, Stop> {
        let _entered = Entered::enter(&self.shared);
        for _ in 0..self.options.steps_max {
            let next = {
                let mut state = self.shared.state();
                if state.crashed {
                    drop(state);
                    self.drop_all();
                    return Err(Stop::Crashed);
                }
                if let Some(result) = ended(&state) {
                    return Ok(result);
                }
                state.next()
            };
            match next {
                Next::Poll(id, future) => self.poll_task(id, future),
                Next::Complete(complete) => complete(),
                Next::Fire(waker) => waker.wake(),
                Next::Nothing => {
                    let state = self.shared.state();
                    let names = state.tasks.values().map(|task| task.name.clone()).collect();
                    return Err(Stop::Deadlock(names));
                }
            }
        }
        Err(Stop::StepLimit)
    }

    fn poll_task(&self, id: u64, mut future: TaskFuture) {
        let waker = Waker::from(Arc::new(TaskWaker { id, shared: Arc::downgrade(&self.shared) }));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            drop(future); // SIM-3: before the state is borrowed
            let task = self.shared.state().tasks.remove(&id);
            self.shared.state().ready.retain(|ready| *ready != id);
            drop(task);
        } else if let Some(task) = self.shared.state().tasks.get_mut(&id) {
            task.future = Some(future);
        }
    }

    /// Drops every task, timer and pending I/O, in order of creation.
    fn drop_all(&self) {
        let (tasks, pending_io, timers) = {
            let mut state = self.shared.state();
            state.ready.clear();
            (std::mem::take(&mut state.tasks), std::mem::take(&mut state.pending_io), std::mem::take(&mut state.timers))
        };
        drop((tasks, pending_io, timers));
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.drop_all();
    }
}

/// Code under test reads the simulation's time through `waits::now_ns` and sleeps on it through `sync::sleep`.
/// Its origin is not zero, which the books take for "never".
impl VirtualTime for Shared {
    fn now_ns(&self) -> u64 {
        VirtualClock::ORIGIN_NS + self.state().now_ns
    }

    fn set_timer(&self, deadline_ns: u64, waker: Waker) -> TimerKey {
        let mut state = self.state();
        let key = (deadline_ns.saturating_sub(VirtualClock::ORIGIN_NS), state.fresh_id());
        state.timers.insert(key, waker);
        key
    }

    fn update_timer(&self, key: TimerKey, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut state = self.state();
        let replaced = state.timers.get_mut(&key).map(|slot| std::mem::replace(slot, waker));
        drop(state); // SIM-3
        replaced.is_some()
    }

    fn cancel_timer(&self, key: TimerKey) {
        let removed = self.state().timers.remove(&key);
        drop(removed); // SIM-3: the state is given back by now
    }
}

/// Makes a simulation current on this thread, and takes it back at the end, panics included.
struct Entered {
    outer: Option<Arc<Shared>>,
    _time: Installed,
}

impl Entered {
    fn enter(shared: &Arc<Shared>) -> Self {
        let outer = CURRENT.with(|current| current.borrow_mut().replace(shared.clone()));
        assert!(outer.is_none(), "a simulation inside a simulation");
        let _time = clock::install(shared.clone());
        Entered { outer, _time }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with(|current| *current.borrow_mut() = self.outer.take());
    }
}
