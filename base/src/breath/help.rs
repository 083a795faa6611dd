//! Helpers: threads that compute beside a long computation, for some milliseconds, where processors are idle.
//!
//! # Life of a helper
//! [`team`] finds idle processors and takes a turn for each helper -> the helper's thread begins -> the helper takes pieces of work until
//! there are none, or until [`Hand::goes_on`] says that its processor is wanted -> the thread ends -> the caller goes on when all have ended.
//!
//! # Invariants
//! - BRE-7: helpers end before [`Team::run`] returns. The panic of one is the caller's.
//! - BRE-8: a helper has a turn, which was free. It waits for none, and ends when another computation waits for one, or when its thread waited
//!   for its processor.
//! - BRE-9: what a helper allocates counts to the caller's account (MEM-6), its processor time to the caller's session, and the caller's flag
//!   stops all of them: the first that looks at it takes the reason away, and tells the others.
//! - BRE-10: there are no helpers without idle processors: what the other threads of the process used since the last look is taken off.
//!
//! # Not here
//! What the work is, and into which pieces it is divided: `sql/exec/src/apart.rs`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::stop::Relay;
use super::{MACHINERY, Machinery, STRETCH, StopFlag, Turns, clock, within_now};
use crate::memory;
use crate::waits::{self, Object, SessionStats, Wait, WaitEvent, now_ns};

/// What the process uses of the processors is judged over at least this time, and at most that.
const LOOK_NS: u64 = 1_000_000;
const LOOK_MAX_NS: u64 = 200_000_000;
/// The part of a processor, in percent, that may be in use where it counts as idle.
const IDLE_PERCENT: u64 = 15;
/// A helper's thread may have waited for its processor for so much of the time, in percent.
const DELAY_PERCENT: u64 = 20;
/// After a helper has given way there is none for so long, at first; each time in a row twice as long.
const QUIET_NS: u64 = 20_000_000;
const QUIET_MAX_NS: u64 = 1_280_000_000;
/// The stack of a helper.
const STACK_BYTES: usize = 8 << 20;

/// Until when there are no helpers, and how long the next such time is.
static QUIET_UNTIL_NS: AtomicU64 = AtomicU64::new(0);
static QUIET_NEXT_NS: AtomicU64 = AtomicU64::new(QUIET_NS);
/// Processor time of all helpers.
static HELPERS_CPU_NS: AtomicU64 = AtomicU64::new(0);

/// The clocks of the process and of a thread at some time.
#[derive(Clone, Copy, Default)]
struct Look {
    at_ns: u64,
    /// Processor time of the threads that neither are the calling one nor help.
    others_ns: u64,
}

thread_local! {
    static LAST: Cell<Look> = const { Cell::new(Look { at_ns: 0, others_ns: 0 }) };
}

/// The calling thread is one of those that share a relay, until this is dropped.
struct Shares;

impl Shares {
    fn new(relay: &Arc<Relay>) -> Self {
        STRETCH.with(|s| s.relay.replace(Some(Arc::clone(relay))));
        Shares
    }
}

impl Drop for Shares {
    fn drop(&mut self) {
        STRETCH.with(|s| s.relay.take());
    }
}

/// What one of the threads of [`Team::run`] knows of itself.
pub struct Hand<'a> {
    /// The turns; none: it is the caller.
    turns: Option<&'a Turns>,
    /// It does not give way.
    forced: bool,
    /// The clock and the thread's delay at the last look, and whether it gave way.
    looked: Cell<(u64, u64)>,
    gave_way: Cell<bool>,
}

impl Hand<'_> {
    /// Whether it may take another piece of work; the caller always may. To be asked about once a millisecond.
    pub fn goes_on(&self) -> bool {
        let Some(turns) = self.turns.filter(|_| !self.forced) else { return true };
        let (now, delay_ns) = (now_ns(), clock::run_delay_ns().unwrap_or(0));
        let (before, delay_before_ns) = self.looked.replace((now, delay_ns));
        let delayed_ns = delay_ns.saturating_sub(delay_before_ns);
        let waited = delayed_ns * 100 > now.saturating_sub(before) * DELAY_PERCENT;
        self.gave_way.set(turns.is_wanted() || waited); // BRE-8
        !self.gave_way.get()
    }

    /// Whether it is a helper.
    pub fn helps(&self) -> bool {
        self.turns.is_some()
    }
}

/// What became of a piece of work that was to be done together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Helped {
    /// Threads that helped.
    pub helpers: u32,
    /// Helpers that gave way to others.
    pub gave_way: u32,
}

/// A helper's turn.
struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Helpers for the computation that runs here: at most `most`, as far as processors are idle. None: there is no idle processor, or the computation
/// may have none. `forced`: processors count as idle whatever the clocks say, and no helper gives way: for tests of what helpers do.
pub fn team(most: usize, forced: bool) -> Option<Team> {
    let flag = STRETCH.with(|s| s.flag.borrow().clone())?;
    let machinery = MACHINERY.get()?;
    let turns = turns_for(machinery, &flag, most, forced);
    (!turns.is_empty()).then_some(Team { machinery, flag, turns, forced })
}

/// Idle processors that were taken for helpers.
pub struct Team {
    machinery: &'static Machinery,
    flag: Arc<StopFlag>,
    turns: Vec<Turn<'static>>,
    forced: bool,
}

impl Team {
    /// Runs `work` on the calling thread and, at the same time, on the helpers' threads. Each of them takes pieces of the work from a place that
    /// they share, until there are none or [`Hand::goes_on`] says no. `work` must end within about a slice ([`super::SLICE_NS`]), and may
    /// block: the caller's thread has left the runtime for that time.
    ///
    /// # Panics
    /// With what a helper panicked with.
    pub fn run(self, work: Work<'_>) -> Helped {
        let (mut turns, mut helped) = (Some(self.turns), Helped::default());
        (self.machinery.step_aside)(&mut || {
            if let Some(turns) = turns.take() {
                helped = with_helpers((turns, self.forced), &self.flag, work);
            }
        });
        if helped.gave_way > 0 {
            let quiet_ns = QUIET_NEXT_NS.load(Relaxed);
            QUIET_NEXT_NS.store((2 * quiet_ns).min(QUIET_MAX_NS), Relaxed);
            QUIET_UNTIL_NS.store(now_ns() + quiet_ns, Relaxed);
        } else if helped.helpers > 0 {
            QUIET_NEXT_NS.store(QUIET_NS, Relaxed);
        }
        helped
    }
}

/// Turns for as many helpers as there are idle processors; the caller has one of its own then.
fn turns_for(machinery: &'static Machinery, flag: &StopFlag, most: usize, forced: bool) -> Vec<Turn<'static>> {
    if most == 0 || flag.budget.is_limited() || clock::installed().is_some() || crate::sync::latches_held() != 0 {
        return Vec::new();
    }
    let idle = if forced { most } else { idle_beside_the_caller(machinery.processors).min(most) };
    if idle == 0 || !forced && now_ns() < QUIET_UNTIL_NS.load(Relaxed) {
        return Vec::new();
    }
    let own = STRETCH.with(|s| {
        if s.helps.get() {
            return false;
        }
        if !s.has_turn.get() && machinery.turns.try_enter() {
            s.has_turn.set(true); // BRE-2
        }
        s.has_turn.get()
    });
    if !own {
        return Vec::new();
    }
    (0..idle).map_while(|_| machinery.turns.try_enter().then(|| Turn(&machinery.turns))).collect() // BRE-8
}

/// BRE-10: how many processors are idle beside that of the caller. None if the last look was too long ago: then this is the first one.
fn idle_beside_the_caller(processors: usize) -> usize {
    let own_ns = clock::thread_cpu_ns() + HELPERS_CPU_NS.load(Relaxed);
    let now = Look { at_ns: now_ns(), others_ns: clock::process_cpu_ns().saturating_sub(own_ns) };
    let before = LAST.get();
    let passed_ns = now.at_ns.saturating_sub(before.at_ns);
    if passed_ns < LOOK_NS {
        return 0;
    }
    LAST.set(now);
    if passed_ns > LOOK_MAX_NS {
        return 0;
    }
    let others_percent = now.others_ns.saturating_sub(before.others_ns) * 100 / passed_ns;
    let free_percent = (processors.saturating_sub(1) as u64 * 100 + IDLE_PERCENT).saturating_sub(others_percent);
    usize::try_from(free_percent / 100).unwrap_or(0)
}

/// What all threads do at the same time.
type Work<'w> = &'w (dyn Fn(&Hand<'_>) + Sync);

/// What a helper used.
struct Used {
    cpu_ns: u64,
    delay_ns: u64,
    gave_way: bool,
}

fn with_helpers((turns, forced): (Vec<Turn<'_>>, bool), flag: &Arc<StopFlag>, work: Work<'_>) -> Helped {
    let caller = Hand { turns: None, forced, looked: Cell::default(), gave_way: Cell::default() };
    let (lent, relay) = (memory::lend(), Arc::new(Relay::default()));
    let (mut helped, mut panicked) = (Helped::default(), None);
    // BRE-7
    std::thread::scope(|scope| {
        let start = |turn| {
            let (lent, relay, flag) = (&lent, &relay, Arc::clone(flag));
            let thread = std::thread::Builder::new().name("parallel worker".to_owned()).stack_size(STACK_BYTES);
            // Where the system has no thread to give, there is one helper less.
            thread.spawn_scoped(scope, move || help((&turn, forced), (lent, relay), flag, work)).ok()
        };
        let started: Vec<_> = turns.into_iter().filter_map(start).collect();
        helped.helpers = started.len() as u32;
        let shares = Shares::new(&relay);
        let worked = catch_unwind(AssertUnwindSafe(|| work(&caller)));
        drop(shares);
        let _wait = Wait::begin(WaitEvent::ThreadJoin, Object::NONE);
        for thread in started {
            match thread.join() {
                Ok(used) => {
                    helped.gave_way += u32::from(used.gave_way);
                    HELPERS_CPU_NS.fetch_add(used.cpu_ns, Relaxed);
                    waits::add_helper(used.cpu_ns, used.delay_ns); // BRE-9
                }
                Err(panic) => panicked = Some(panic),
            }
        }
        if let Err(panic) = worked {
            panicked = Some(panic);
        }
    });
    if let Some(panic) = panicked {
        resume_unwind(panic);
    }
    helped
}

/// The life of a helper's thread.
fn help(
    (turn, forced): (&Turn<'_>, bool),
    (lent, relay): (&memory::Lent, &Arc<Relay>),
    flag: Arc<StopFlag>,
    work: Work<'_>,
) -> Used {
    lent.charge_thread(); // BRE-9
    let _shares = Shares::new(relay);
    waits::set_thread_session(Some(SessionStats::new("parallel worker")));
    let began = (clock::thread_cpu_ns(), clock::run_delay_ns().unwrap_or(0));
    let hand = Hand { turns: Some(turn.0), forced, looked: Cell::new((now_ns(), began.1)), gave_way: Cell::default() };
    STRETCH.with(|s| s.helps.set(true));
    within_now(flag, || work(&hand));
    Used {
        cpu_ns: clock::thread_cpu_ns().saturating_sub(began.0),
        delay_ns: clock::run_delay_ns().unwrap_or(0).saturating_sub(began.1),
        gave_way: hand.gave_way.get(),
    }
}
