//! Breaths: the points at which a computation can be stopped, and at which a long computation lets others run first.
//!
//! # Structure
//! ```text
//! within(flag, future)   runs a session's future: while it is polled, its computations read that flag
//!   step(cost)           in synchronous code: counts work; every STEPS units it takes a breath: it reads the clock and the flag
//!   step_on(cost)        the same where the computation must go on to its end: it reads the clock alone
//!   count(cost)          counts work of a function that can't fail: the next step or breathe takes its breath sooner
//!   breathe(cost)        the same in asynchronous code; take_turn   waits for a turn before the computation begins
//!   stop     the flag: a reason that was raised, or a deadline
//!   turn     which of the long computations run now
//!   help     threads that compute beside a long computation where processors are idle
//!   share    how much processor time the sessions of a role or a database have together
//! ```
//! A unit of cost is about a nanosecond in an optimized build: copying a byte or reading a character costs one unit; a row costs
//! [`ROW`]. Every loop whose length depends on data or input counts its work, so that about [`STEPS`] units of work lie between two
//! breaths.
//!
//! # Life of a long computation
//! It runs on one of the runtime's workers -> when its poll has lasted [`FIRST_NS`], it counts as long: it waits for a turn and steps aside,
//! which means that another thread takes over the worker's other tasks (`StepAside`); from then on the operating system divides the
//! processors between it and the workers -> every [`SLICE_NS`] it passes the turn to another long computation, if one waits -> at the end of
//! the poll it gives the turn back.
//!
//! # Invariants
//! - BRE-1: between two breaths a computation uses less than [`STRETCH_MAX_NS`] of processor time. Debug builds assert it.
//! - BRE-2: a thread has at most one turn, and gives it back at the end of the poll in which it took the turn.
//! - BRE-3: no computation waits for a turn, or for its share of the processors, while it holds a latch.
//! - BRE-4: the processor time that a computation with a limited share uses within `within` is entered in its budget, at each breath and at the
//!   end of the poll.
//! - BRE-11: a computation that was told to stop is told again at each breath, until the flag's owner has heard of it (`hear`). So a computation whose
//!   caller has dropped the error, as the error of an expression whose value turned out not to be needed, does not go on.
//!
//! # Not here
//! The meaning of a reason, and the code that raises it: `sql/context/src/interrupt.rs`. How a thread leaves the runtime: the server
//! installs that.

mod help;
mod share;
mod stop;
mod turn;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::sync::{block_on, sleep_until_ns, yield_now};
use crate::waits::{Object, WaitEvent, clock, in_wait, now_ns};
pub use help::{Hand, Helped, Team, team};
pub use share::{Budget, QUANTUM_NS, Share};
use stop::Relay;
pub use stop::{StopFlag, Stopped};
pub use turn::{Enter, Turns};

/// The cost of a row.
pub const ROW: u32 = 256;
/// Units of work between two breaths.
pub const STEPS: u32 = 1 << 15;
/// A computation whose poll has lasted this long needs a turn.
pub const FIRST_NS: u64 = 2_000_000;
/// How long a turn lasts while other computations wait for one.
pub const SLICE_NS: u64 = 10_000_000;
/// The longest stretch between two breaths, in processor time: ten times the target, and thirty times that without optimization, where
/// giving back a list of millions of rows in one call takes more than a second.
pub const STRETCH_MAX_NS: u64 = if cfg!(debug_assertions) { 3_000_000_000 } else { 100_000_000 };
/// A pause within synchronous code looks for a reason to stop so often.
const PAUSE_NS: u64 = 20_000_000;
/// How long a thread that steps aside leaves to the one that takes over.
const ASIDE_NS: u64 = 50_000;

/// Runs a closure, which blocks, in such a way that another thread takes over the tasks of the worker that the calling thread is.
pub type StepAside = fn(&mut dyn FnMut());

struct Machinery {
    step_aside: StepAside,
    turns: Turns,
    processors: usize,
}

static MACHINERY: OnceLock<Machinery> = OnceLock::new();

/// Says how threads leave the runtime that polls the sessions, and how many long computations run at a time. Without it, long
/// computations let other tasks of their thread run first at every slice.
pub fn install(step_aside: StepAside, processors: usize) {
    let _ = MACHINERY.set(Machinery { step_aside, turns: Turns::new(processors), processors });
}

/// How many processors there are for computations.
pub fn processors() -> usize {
    let own = || std::thread::available_parallelism().map_or(1, usize::from);
    MACHINERY.get().map_or_else(own, |machinery| machinery.processors)
}

struct Stretch {
    /// Work left until the next look at the clock.
    steps: Cell<u32>,
    /// Futures of `within` that are being polled, one in the other.
    depth: Cell<u32>,
    /// When the slice began; 0: the clock was not read in this poll.
    began_ns: Cell<u64>,
    has_turn: Cell<bool>,
    /// Processor time at the last breath, in debug builds.
    cpu_ns: Cell<u64>,
    /// Processor time up to which the flag's budget was told of it; 0: the flag's share has no limit.
    told_ns: Cell<u64>,
    /// Until when the computation must pause; 0: it need not.
    due_ns: Cell<u64>,
    flag: RefCell<Option<Arc<StopFlag>>>,
    /// The thread helps another one's computation (`help`).
    helps: Cell<bool>,
    /// What stops one of the threads that share a computation stops all.
    relay: RefCell<Option<Arc<Relay>>>,
}

thread_local! {
    static STRETCH: Stretch = const {
        Stretch {
            steps: Cell::new(STEPS),
            depth: Cell::new(0),
            began_ns: Cell::new(0),
            has_turn: Cell::new(false),
            cpu_ns: Cell::new(0),
            told_ns: Cell::new(0),
            due_ns: Cell::new(0),
            flag: RefCell::new(None),
            helps: Cell::new(false),
            relay: RefCell::new(None),
        }
    };
}

impl Stretch {
    /// Counts work; whether it is time to look at the clock.
    #[inline]
    fn count(&self, cost: u32) -> bool {
        let left = self.steps.get();
        if left > cost {
            self.steps.set(left - cost);
            return false;
        }
        self.steps.set(STEPS);
        true
    }

    /// Looks at the clock and the flag; whether the slice is over.
    #[cold]
    fn check(&self) -> Result<bool, Stopped> {
        if self.depth.get() == 0 {
            return Ok(false);
        }
        self.measure();
        let now_ns = now_ns();
        if let Some(flag) = &*self.flag.borrow() {
            match &*self.relay.borrow() {
                Some(relay) => relay.check(flag, now_ns)?,
                None => flag.check(now_ns)?,
            }
            if flag.budget.is_limited() {
                self.report_use(&flag.budget);
                self.due_ns.set(flag.budget.due_ns(now_ns));
                if self.due_ns.get() != 0 {
                    return Ok(true);
                }
            }
        }
        if self.helps.get() {
            return Ok(false); // BRE-8
        }
        if clock::installed().is_some() {
            return Ok(true); // a simulation's clock stands still while something computes
        }
        let began_ns = self.began_ns.get();
        if began_ns == 0 {
            self.began_ns.set(now_ns);
        }
        let slice_ns = if self.has_turn.get() { SLICE_NS } else { FIRST_NS };
        Ok(began_ns != 0 && now_ns.saturating_sub(began_ns) >= slice_ns)
    }

    /// BRE-4
    fn report_use(&self, budget: &Budget) {
        let cpu_ns = clock::thread_cpu_ns();
        let told_ns = self.told_ns.replace(cpu_ns);
        if told_ns != 0 {
            budget.spend(cpu_ns.saturating_sub(told_ns), now_ns());
        }
    }

    /// BRE-4, where the flag is about to change or has just changed.
    fn tell_flag(&self) {
        match &*self.flag.borrow() {
            Some(flag) if flag.budget.is_limited() => self.report_use(&flag.budget),
            _ => self.told_ns.set(0),
        }
    }

    /// BRE-1
    fn measure(&self) {
        if cfg!(debug_assertions) {
            let cpu_ns = clock::real_thread_cpu_ns();
            let stretch_ns = cpu_ns.saturating_sub(self.cpu_ns.replace(cpu_ns));
            assert!(stretch_ns < STRETCH_MAX_NS, "{} ms without a breath (BRE-1)", stretch_ns / 1_000_000);
        }
    }

    fn begin(&self) {
        self.began_ns.set(0);
        self.due_ns.set(0);
        self.steps.set(STEPS);
        if cfg!(debug_assertions) {
            self.cpu_ns.set(clock::real_thread_cpu_ns());
        }
    }
}

/// Counts work of synchronous code. Now and then it looks whether the computation must end, and steps aside if it is long.
///
/// # Errors
/// The reason for which it must end.
#[inline]
pub fn step(cost: u32) -> Result<(), Stopped> {
    STRETCH.with(|s| if s.count(cost) { step_slowly(s) } else { Ok(()) })
}

/// [`step`] where a computation must go on to its end, as the release of a transaction's locks. The caller holds no latch.
#[inline]
pub fn step_on(cost: u32) {
    STRETCH.with(|s| {
        if s.count(cost) {
            step_on_slowly(s);
        }
    });
}

#[cold]
fn step_on_slowly(s: &Stretch) {
    let flag = s.flag.take();
    let went_on = step_slowly(s);
    s.flag.replace(flag);
    assert!(went_on.is_ok(), "without a flag nothing stops a computation");
}

/// Counts work of a function that returns no error: it takes no breath itself, but the next [`step`] or [`breathe`] takes its one sooner. For
/// single operations well below 100 ms.
#[inline]
pub fn count(cost: u32) {
    STRETCH.with(|s| s.steps.set(s.steps.get().saturating_sub(cost)));
}

/// [`step`] over a length: something of the order of a nanosecond each.
///
/// # Errors
/// The reason for which the computation must end.
#[inline]
pub fn step_bytes(length: usize) -> Result<(), Stopped> {
    step(u32::try_from(length).unwrap_or(u32::MAX))
}

#[cold]
fn step_slowly(s: &Stretch) -> Result<(), Stopped> {
    if s.check()? {
        pause(s)?;
        if let Some(machinery) = MACHINERY.get().filter(|_| crate::sync::latches_held() == 0) {
            (machinery.step_aside)(&mut || {
                if s.has_turn.get() && machinery.turns.is_wanted() {
                    machinery.turns.leave();
                    s.has_turn.set(false);
                }
                if !s.has_turn.get() {
                    block_on(in_wait(WaitEvent::ProcessorTurn, Object::NONE, machinery.turns.enter())); // BRE-3
                    s.has_turn.set(true);
                }
                clock::nap_ns(ASIDE_NS);
            });
        }
        s.began_ns.set(now_ns());
    }
    Ok(())
}

/// Waits where synchronous code has used up its share.
fn pause(s: &Stretch) -> Result<(), Stopped> {
    while s.due_ns.get() != 0 && crate::sync::latches_held() == 0 {
        let until_ns = s.due_ns.take().min(now_ns() + PAUSE_NS);
        let mut wait = || {
            if s.has_turn.replace(false)
                && let Some(machinery) = MACHINERY.get()
            {
                machinery.turns.leave();
            }
            block_on(in_wait(WaitEvent::ProcessorShare, Object::NONE, sleep_until_ns(until_ns)));
        };
        match MACHINERY.get() {
            Some(machinery) => (machinery.step_aside)(&mut wait),
            None => wait(),
        }
        s.check()?;
    }
    s.due_ns.set(0);
    Ok(())
}

/// Counts work of asynchronous code. Now and then it looks whether the computation must end, and if it is long lets others go first.
///
/// # Errors
/// The reason for which it must end.
#[inline]
pub async fn breathe(cost: u32) -> Result<(), Stopped> {
    if STRETCH.with(|s| if s.count(cost) { s.check() } else { Ok(false) })? {
        give_way().await;
    }
    Ok(())
}

/// [`breathe`] where a computation must go on to its end, as the undoing of a transaction.
pub async fn breathe_on(cost: u32) {
    let flag = STRETCH.with(|s| s.flag.take());
    let due = STRETCH.with(|s| if s.count(cost) { s.check() } else { Ok(false) });
    STRETCH.with(|s| s.flag.replace(flag));
    if due == Ok(true) {
        give_way().await;
    }
}

/// Waits for a turn at once, for a computation that is expected to be long and had better wait before it begins than in its midst.
pub async fn take_turn() {
    if MACHINERY.get().is_some() && STRETCH.with(|s| s.depth.get() > 0 && !s.has_turn.get()) {
        give_way().await;
    }
}

#[cold]
fn give_way() -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async {
        let due_ns = STRETCH.with(|s| s.due_ns.take());
        if due_ns != 0 {
            in_wait(WaitEvent::ProcessorShare, Object::NONE, sleep_until_ns(due_ns)).await; // BRE-3
        }
        let Some(machinery) = MACHINERY.get() else {
            yield_now().await;
            return STRETCH.with(|s| s.began_ns.set(0));
        };
        let has_turn = STRETCH.with(|s| {
            if s.has_turn.get() && machinery.turns.is_wanted() {
                machinery.turns.leave();
                s.has_turn.set(false);
            }
            s.has_turn.get()
        });
        if !has_turn {
            in_wait(WaitEvent::ProcessorTurn, Object::NONE, machinery.turns.enter()).await; // BRE-3
            STRETCH.with(|s| s.has_turn.set(true));
        }
        (machinery.step_aside)(&mut || clock::nap_ns(ASIDE_NS));
        STRETCH.with(|s| s.began_ns.set(now_ns()));
    })
}

/// Copies bytes behind others, with a breath now and then.
///
/// # Errors
/// The reason for which the computation must end.
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Stopped> {
    out.reserve(bytes.len());
    for piece in bytes.chunks(1 << 16) {
        step_bytes(piece.len())?;
        out.extend_from_slice(piece);
    }
    Ok(())
}

/// Copies text behind other text, with a breath now and then.
///
/// # Errors
/// The reason for which the computation must end.
pub fn append_text(out: &mut String, mut text: &str) -> Result<(), Stopped> {
    out.reserve(text.len());
    while !text.is_empty() {
        let (piece, rest) = text.split_at(text.floor_char_boundary(text.len().min(1 << 16)));
        step_bytes(piece.len())?;
        out.push_str(piece);
        text = rest;
    }
    Ok(())
}

pin_project! {
    /// The future that [`within`] returns.
    #[must_use = "futures do nothing unless polled"]
    pub struct Within<F> {
        #[pin]
        future: F,
        flag: Option<Arc<StopFlag>>,
    }
}

/// Runs a future whose computations obey a flag.
pub fn within<F: Future>(flag: Arc<StopFlag>, future: F) -> Within<F> {
    Within { future, flag: Some(flag) }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = Entered::new(this.flag);
        this.future.poll(cx)
    }
}

/// Runs synchronous code whose computations obey a flag.
pub fn within_now<R>(flag: Arc<StopFlag>, work: impl FnOnce() -> R) -> R {
    let mut flag = Some(flag);
    let _entered = Entered::new(&mut flag);
    work()
}

/// Runs synchronous code that no flag ends, for a result that must be the same whether a cancel request has come or not. It takes its breaths.
pub fn unstopped<R>(work: impl FnOnce() -> R) -> R {
    let mut flag = None;
    let _entered = Entered::new(&mut flag);
    work()
}

/// Puts a flag into the thread's stretch and takes it out again, also when the poll panics.
struct Entered<'a> {
    flag: &'a mut Option<Arc<StopFlag>>,
}

impl<'a> Entered<'a> {
    fn new(flag: &'a mut Option<Arc<StopFlag>>) -> Self {
        STRETCH.with(|s| {
            s.tell_flag();
            std::mem::swap(&mut *s.flag.borrow_mut(), flag);
            s.told_ns.set(0);
            s.tell_flag();
            if s.depth.replace(s.depth.get() + 1) == 0 {
                s.begin();
            }
        });
        Self { flag }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        STRETCH.with(|s| {
            s.tell_flag();
            std::mem::swap(&mut *s.flag.borrow_mut(), self.flag);
            s.told_ns.set(0);
            s.tell_flag();
            s.depth.set(s.depth.get() - 1);
            if s.depth.get() > 0 {
                return;
            }
            if s.has_turn.replace(false)
                && let Some(machinery) = MACHINERY.get()
            {
                machinery.turns.leave(); // BRE-2
            }
            if !std::thread::panicking() {
                s.measure();
            }
        });
    }
}

/// Drives a future within a flag on the calling thread; for tests and tools.
pub fn block_on_within<F: Future>(flag: Arc<StopFlag>, future: F) -> F::Output {
    block_on(pin!(within(flag, future)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_ends_when_its_flag_is_raised_or_its_deadline_passes() {
        let flag = Arc::new(StopFlag::new(4));
        let endless = || async {
            loop {
                breathe(ROW).await?;
            }
        };
        let run = || -> Result<(), Stopped> { block_on_within(Arc::clone(&flag), endless()) };
        flag.raise(1);
        assert_eq!((run(), flag.raised()), (Err(Stopped(1)), 0), "a cancel is taken");
        assert_eq!(run(), Err(Stopped(1)), "and told again until the flag's owner has heard of it (BRE-11)");
        assert_eq!((flag.hear(), flag.hear()), (1, 0), "which it does once");
        flag.set_deadline(now_ns() + 1_000_000, 2);
        assert_eq!((run(), run(), flag.hear()), (Err(Stopped(2)), Err(Stopped(2)), 2));
        flag.raise(5);
        assert_eq!((run(), flag.raised()), (Err(Stopped(5)), 5), "what ends the session stays");
        let synchronous = within_now(Arc::clone(&flag), || (0..u64::MAX).try_for_each(|_| step(1)));
        assert_eq!(synchronous, Err(Stopped(5)));
        assert_eq!(STRETCH.with(|s| s.depth.get()), 0);
    }

    #[test]
    fn what_must_go_on_takes_its_breaths_and_leaves_the_flag_raised() {
        let flag = Arc::new(StopFlag::new(4));
        flag.raise(1);
        let stopped = within_now(Arc::clone(&flag), || {
            STRETCH.with(|s| s.cpu_ns.set(0));
            (0..STEPS).for_each(|_| step_on(1));
            let measured = STRETCH.with(|s| s.cpu_ns.get()) > 0;
            assert!(measured || !cfg!(debug_assertions), "BRE-1: it has taken a breath");
            (0..=STEPS).try_for_each(|_| step(1))
        });
        assert_eq!(stopped, Err(Stopped(1)), "the flag is still there");
    }

    #[test]
    fn outside_of_a_session_nothing_is_stopped() {
        assert_eq!((0..1_000_000).try_for_each(|_| step(1)), Ok(()));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "without a breath")]
    fn a_stretch_without_a_breath_is_found() {
        within_now(Arc::new(StopFlag::new(4)), || {
            let began_ns = clock::real_thread_cpu_ns();
            while clock::real_thread_cpu_ns() < began_ns + STRETCH_MAX_NS {
                std::hint::spin_loop();
            }
        });
    }
}
