//! The clock by which waits are timed: a calibrated time-stamp counter, the system's clock where the counter can't be trusted, or a
//! virtual clock.
//!
//! # Structure
//! `now_ns` asks, in this order: the virtual clock that a simulation installed on the calling thread, the calibrated
//! counter, CLOCK_MONOTONIC. Whether any thread has a virtual clock and how the counter is converted stand side by side (`FAST`), so that
//! production pays two predicted branches and no call. `description` says which clock answers and why.
//!
//! # Invariants
//! - CLK-1: times of one thread never decrease.
//! - CLK-2: a virtual clock moves only when a call advances it; the call wakes every timer that is due before it returns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;

use super::{kernel, tsc};

/// How long the counter is compared with the system's clock. 5 ms against a reading error of some 40 ns at either end
/// makes the rate good to 20 parts in a million.
const CALIBRATION_NS: u64 = 5_000_000;

/// What a reading of the counter needs, in one place: whether any thread has a virtual clock, and a copy of the machine's counter once that is
/// calibrated (its rate is written last).
static FAST: Fast = Fast {
    virtual_clocks: AtomicUsize::new(0),
    ns_per_tick: AtomicU64::new(0),
    origin_ticks: AtomicU64::new(0),
    origin_ns: AtomicU64::new(0),
};
static MACHINE: OnceLock<Machine> = OnceLock::new();

thread_local! {
    static INSTALLED: RefCell<Option<Arc<dyn VirtualTime>>> = const { RefCell::new(None) };
}

struct Fast {
    virtual_clocks: AtomicUsize,
    /// As in [`Counter`]; 0: not calibrated, or another clock answers.
    ns_per_tick: AtomicU64,
    origin_ticks: AtomicU64,
    origin_ns: AtomicU64,
}

impl Fast {
    /// The counter is calibrated.
    fn set(&self, counter: &Counter) {
        self.origin_ticks.store(counter.origin_ticks, Relaxed);
        self.origin_ns.store(counter.origin_ns, Relaxed);
        self.ns_per_tick.store(counter.ns_per_tick, Release);
    }

    #[inline]
    fn now_ns(&self) -> Option<u64> {
        let ns_per_tick = self.ns_per_tick.load(Acquire);
        if ns_per_tick == 0 || self.virtual_clocks.load(Relaxed) != 0 {
            return None;
        }
        Some(at(self.origin_ticks.load(Relaxed), self.origin_ns.load(Relaxed), ns_per_tick))
    }
}

/// What the counter says now.
#[inline]
fn at(origin_ticks: u64, origin_ns: u64, ns_per_tick: u64) -> u64 {
    let ticks = tsc::read().saturating_sub(origin_ticks);
    origin_ns + ((u128::from(ticks) * u128::from(ns_per_tick)) >> 32) as u64
}

struct Machine {
    /// Counter value and nanoseconds at the origin; None when CLOCK_MONOTONIC answers.
    counter: Option<Counter>,
    description: String,
}

struct Counter {
    origin_ticks: u64,
    origin_ns: u64,
    /// Nanoseconds per tick, 32 bits before and 32 behind the point.
    ns_per_tick: u64,
}

impl Counter {
    fn now_ns(&self) -> u64 {
        at(self.origin_ticks, self.origin_ns, self.ns_per_tick)
    }
}

/// Nanoseconds since an arbitrary origin (the machine's start), by the fastest clock that can be trusted.
#[inline]
pub fn now_ns() -> u64 {
    match FAST.now_ns() {
        Some(ns) => ns,
        None => otherwise_ns(),
    }
}

/// The same where the counter does not answer, or is not calibrated yet: apart, so that a reading of the counter needs no frame.
#[cold]
#[inline(never)]
fn otherwise_ns() -> u64 {
    if let Some(clock) = installed() {
        return clock.now_ns();
    }
    match &machine().counter {
        Some(counter) => counter.now_ns(),
        None => kernel::monotonic_ns(),
    }
}

/// The wall clock in microseconds since 1970-01-01 00:00 UTC; for what people read, never for intervals.
pub fn wall_us() -> i64 {
    installed().map_or_else(kernel::wall_us, |clock| clock.wall_us())
}

/// How long the difference between the two clocks is taken for the same: a wall clock that was set shows after this.
const WALL_KEPT_NS: u64 = 5_000_000;

/// The wall clock less `now_ns`, in microseconds, and until when by `now_ns` that counts.
static WALL_AHEAD_US: AtomicI64 = AtomicI64::new(0);
static WALL_UNTIL_NS: AtomicU64 = AtomicU64::new(0);

/// The wall clock at a moment of `now_ns` just past, as `wall_us`; right to some microseconds, so that of two moments the later one may have
/// the smaller number. Costs no reading of a clock.
#[inline]
pub fn wall_us_at(now_ns: u64) -> i64 {
    if FAST.virtual_clocks.load(Relaxed) != 0 || now_ns >= WALL_UNTIL_NS.load(Relaxed) {
        return compare_clocks(now_ns);
    }
    (now_ns / 1_000) as i64 + WALL_AHEAD_US.load(Relaxed)
}

#[cold]
fn compare_clocks(now_ns: u64) -> i64 {
    if let Some(clock) = installed() {
        return clock.wall_us();
    }
    // Of several pairs the tightest, so that an interruption between the two readings does not count. The counter is read last: what this
    // clock says is never ahead of the wall clock.
    let pair = || {
        let (before_ns, wall_us, read_ns) = (self::now_ns(), kernel::wall_us(), self::now_ns());
        (read_ns - before_ns, wall_us, read_ns)
    };
    let pairs = (0..4).map(|_| pair());
    let (_, wall_us, read_ns) = pairs.min_by_key(|(width_ns, ..)| *width_ns).unwrap_or_else(pair);
    let ahead_us = wall_us - read_ns.div_ceil(1_000) as i64;
    WALL_AHEAD_US.store(ahead_us, Relaxed);
    WALL_UNTIL_NS.store(read_ns + WALL_KEPT_NS, Relaxed);
    (now_ns / 1_000) as i64 + ahead_us
}

/// Processor time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    installed().map_or_else(kernel::thread_cpu_ns, |clock| clock.thread_cpu_ns())
}

/// Processor time of the calling thread in nanoseconds, in a simulation as well.
pub fn real_thread_cpu_ns() -> u64 {
    kernel::thread_cpu_ns()
}

/// Lets another thread have the processor for a moment; for `breath` alone.
pub(crate) fn nap_ns(ns: u64) {
    kernel::pause_ns(ns);
}

/// Time that the calling thread was ready to run and did not, by the scheduler's own figure, in nanoseconds; None where
/// the kernel does not keep it.
pub fn run_delay_ns() -> Option<u64> {
    installed().map_or_else(kernel::run_delay_ns, |clock| clock.run_delay_ns())
}

/// Processor time of the whole process in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    kernel::process_cpu_ns()
}

/// Which clock answers, and why not a better one.
pub fn description() -> String {
    match installed() {
        Some(_) => "virtual clock of a simulation".to_string(),
        None => machine().description.clone(),
    }
}

/// The virtual clock of the calling thread, if a simulation installed one.
#[inline]
pub fn installed() -> Option<Arc<dyn VirtualTime>> {
    if FAST.virtual_clocks.load(Relaxed) == 0 {
        return None;
    }
    INSTALLED.with(|slot| slot.borrow().clone())
}

#[inline]
fn machine() -> &'static Machine {
    MACHINE.get_or_init(calibrate)
}

fn calibrate() -> Machine {
    let reason = if !tsc::is_invariant() {
        "the processor has no invariant time-stamp counter".to_string()
    } else {
        match kernel::clock_source() {
            Some(source) if source == "tsc" => return calibrate_counter(),
            Some(source) => format!("the kernel trusts {source}, not the time-stamp counter"),
            None => "the kernel does not say that it trusts the time-stamp counter".to_string(),
        }
    };
    Machine { counter: None, description: format!("clock_gettime(CLOCK_MONOTONIC): {reason}") }
}

fn calibrate_counter() -> Machine {
    let (ticks_0, ns_0) = simultaneous();
    kernel::pause_ns(CALIBRATION_NS);
    let (ticks_1, ns_1) = simultaneous();
    let (ticks, ns) = (ticks_1.saturating_sub(ticks_0), ns_1.saturating_sub(ns_0));
    let ns_per_tick = ((u128::from(ns) << 32) / u128::from(ticks.max(1))) as u64;
    // 0.1 to 10 GHz; anything else is a counter that a hypervisor traps or holds.
    if ticks < ns / 10 || ticks > ns.saturating_mul(10) {
        let description = format!("clock_gettime(CLOCK_MONOTONIC): the counter made {ticks} ticks in {ns} ns");
        return Machine { counter: None, description };
    }
    let counter = Counter { origin_ticks: ticks_1, origin_ns: ns_1, ns_per_tick };
    FAST.set(&counter);
    let mhz = ticks as f64 * 1e3 / ns as f64;
    Machine {
        counter: Some(counter),
        description: format!("time-stamp counter, {mhz:.1} MHz, calibrated over {:.1} ms", ns as f64 / 1e6),
    }
}

/// The counter and the system's clock at the same moment: the tightest of several pairs, so that an interruption
/// between the two readings does not count.
fn simultaneous() -> (u64, u64) {
    let pair = || {
        let before = tsc::read();
        let ns = kernel::monotonic_ns();
        let after = tsc::read();
        (after.saturating_sub(before), before / 2 + after / 2, ns)
    };
    let best = (0..16).map(|_| pair()).min_by_key(|&(width, _, _)| width).unwrap_or_else(pair);
    (best.1, best.2)
}

/// The time of a simulation: a clock that its scheduler moves, and the timers that it fires.
pub trait VirtualTime: Send + Sync {
    /// Virtual nanoseconds.
    fn now_ns(&self) -> u64;

    /// Virtual wall clock in microseconds since 1970-01-01 00:00 UTC.
    fn wall_us(&self) -> i64 {
        VirtualClock::ORIGIN_WALL_US + (self.now_ns() / 1_000) as i64
    }

    /// Processor time of the running task, if the simulation has such a thing.
    fn thread_cpu_ns(&self) -> u64 {
        0
    }

    /// Time ready but without a processor, if the simulation has such a thing.
    fn run_delay_ns(&self) -> Option<u64> {
        None
    }

    /// Wakes `waker` once time has reached `deadline_ns`.
    fn set_timer(&self, deadline_ns: u64, waker: Waker) -> TimerKey;

    /// Replaces the waker of a timer; false if it has fired already.
    fn update_timer(&self, key: TimerKey, waker: &Waker) -> bool;

    /// Forgets a timer.
    fn cancel_timer(&self, key: TimerKey);
}

/// Makes this the time of the calling thread until the guard is dropped.
pub fn install(time: Arc<dyn VirtualTime>) -> Installed {
    FAST.virtual_clocks.fetch_add(1, Relaxed);
    let before = INSTALLED.with(|slot| slot.replace(Some(time)));
    Installed { before, not_send: PhantomData }
}

/// A clock that moves only when it is told to: the time of a simulation, with the figures that the books need.
///
/// Install it on the one thread that runs the simulation; everything that reads time there reads this clock.
#[derive(Debug)]
pub struct VirtualClock {
    now_ns: AtomicU64,
    cpu_ns: AtomicU64,
    run_delay_ns: AtomicU64,
    timers: Mutex<Timers>,
}

#[derive(Debug, Default)]
struct Timers {
    next_id: u64,
    by_deadline: BTreeMap<(u64, u64), Waker>,
}

/// Names one timer of a virtual clock: deadline in nanoseconds, and a number that makes it unique.
pub type TimerKey = (u64, u64);

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl VirtualClock {
    /// Where virtual time begins: not at zero, so that a difference taken the wrong way round overflows in a test.
    pub const ORIGIN_NS: u64 = 1_000_000_000;
    /// The wall clock at the origin: 2020-01-01 00:00 UTC.
    pub const ORIGIN_WALL_US: i64 = 1_577_836_800_000_000;

    /// A clock at its origin.
    pub fn new() -> Self {
        Self {
            now_ns: AtomicU64::new(Self::ORIGIN_NS),
            cpu_ns: AtomicU64::new(0),
            run_delay_ns: AtomicU64::new(0),
            timers: Mutex::new(Timers::default()),
        }
    }

    /// Makes this the clock of the calling thread until the guard is dropped.
    pub fn install(self: &Arc<Self>) -> Installed {
        install(Arc::clone(self) as Arc<dyn VirtualTime>)
    }

    /// Virtual nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Relaxed)
    }

    /// The running task computes for `ns`: time and processor time pass.
    pub fn compute(&self, ns: u64) {
        self.cpu_ns.fetch_add(ns, Relaxed);
        self.advance(ns);
    }

    /// The running thread is ready but has no processor for `ns`: time and run delay pass.
    pub fn preempt(&self, ns: u64) {
        self.run_delay_ns.fetch_add(ns, Relaxed);
        self.advance(ns);
    }

    /// Time passes and the running thread uses none of it. Wakes every timer that is due.
    pub fn advance(&self, ns: u64) {
        let now = self.now_ns.fetch_add(ns, Relaxed) + ns;
        self.fire(now);
    }

    /// Moves time forward to `at_ns` (not back, if it is past that) and wakes every timer that is due.
    pub fn advance_to(&self, at_ns: u64) {
        let now = self.now_ns.fetch_max(at_ns, Relaxed).max(at_ns);
        self.fire(now);
    }

    /// The deadline of the earliest timer: where a simulation goes when no task is ready.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.lock().by_deadline.keys().next().map(|&(deadline, _)| deadline)
    }

    /// CLK-2. Wakers run outside the mutex, in the order of their deadlines.
    fn fire(&self, now_ns: u64) {
        loop {
            let waker = {
                let mut timers = self.lock();
                match timers.by_deadline.first_key_value() {
                    Some((&(deadline, _), _)) if deadline <= now_ns => timers.by_deadline.pop_first(),
                    _ => None,
                }
            };
            match waker {
                Some((_, waker)) => waker.wake(),
                None => return,
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VirtualTime for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns()
    }

    fn wall_us(&self) -> i64 {
        Self::ORIGIN_WALL_US + ((self.now_ns() - Self::ORIGIN_NS) / 1_000) as i64
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Relaxed)
    }

    fn run_delay_ns(&self) -> Option<u64> {
        Some(self.run_delay_ns.load(Relaxed))
    }

    fn set_timer(&self, deadline_ns: u64, waker: Waker) -> TimerKey {
        let mut timers = self.lock();
        timers.next_id += 1;
        let key = (deadline_ns, timers.next_id);
        timers.by_deadline.insert(key, waker);
        key
    }

    fn update_timer(&self, key: TimerKey, waker: &Waker) -> bool {
        match self.lock().by_deadline.get_mut(&key) {
            Some(slot) => {
                slot.clone_from(waker);
                true
            }
            None => false,
        }
    }

    fn cancel_timer(&self, key: TimerKey) {
        self.lock().by_deadline.remove(&key);
    }
}

/// Keeps a virtual clock installed on the calling thread; dropping it restores what was there before.
#[must_use = "the clock is taken off the thread when this is dropped"]
pub struct Installed {
    before: Option<Arc<dyn VirtualTime>>,
    not_send: PhantomData<*const ()>,
}

impl Drop for Installed {
    fn drop(&mut self) {
        INSTALLED.with(|slot| slot.replace(self.before.take()));
        FAST.virtual_clocks.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_agrees_with_the_system_clock() {
        let (ours, system) = (now_ns(), kernel::monotonic_ns());
        kernel::pause_ns(20_000_000);
        let (ours, system) = (now_ns() - ours, kernel::monotonic_ns() - system);
        // The two readings of a pair may be separated by a preemption on a loaded machine; the rate may not be off.
        assert!(ours.abs_diff(system) < system / 4, "{ours} ns against {system} ns by {}", description());
    }

    #[test]
    fn times_of_one_thread_never_decrease() {
        let mut last = 0;
        for _ in 0..100_000 {
            let now = now_ns();
            assert!(now >= last, "CLK-1: {last} then {now}");
            last = now;
        }
    }

    #[test]
    fn the_wall_clock_at_a_moment_is_what_it_showed() {
        for _ in 0..20 {
            let now_ns = now_ns();
            let (at, wall) = (wall_us_at(now_ns), wall_us());
            // The thread may lose its processor between the two.
            let between_us = ((self::now_ns() - now_ns) / 1_000) as i64 + 100;
            assert!((wall - between_us..=wall + 100).contains(&at), "{at} at {wall}");
            let later = wall_us_at(now_ns + 3_000_000) - wall_us_at(now_ns);
            assert!(later.abs_diff(3_000) < 500, "{later} us in 3 ms");
        }
        let clock = Arc::new(VirtualClock::new());
        let _installed = clock.install();
        assert_eq!(wall_us_at(now_ns()), VirtualClock::ORIGIN_WALL_US);
    }

    #[test]
    fn virtual_clock_moves_only_when_told_and_only_on_its_thread() {
        let clock = Arc::new(VirtualClock::new());
        {
            let _installed = clock.install();
            assert_eq!(now_ns(), VirtualClock::ORIGIN_NS);
            clock.compute(5);
            clock.preempt(7);
            assert_eq!((now_ns(), thread_cpu_ns(), run_delay_ns()), (VirtualClock::ORIGIN_NS + 12, 5, Some(7)));
            std::thread::scope(|s| {
                s.spawn(|| assert!(installed().is_none()));
            });
        }
        assert!(installed().is_none());
    }

    #[test]
    fn timers_fire_when_due_and_not_when_cancelled() {
        let clock = VirtualClock::new();
        let start = clock.now_ns();
        let fired = Arc::new(Fired::default());
        clock.set_timer(start + 10, Arc::clone(&fired).into());
        let cancelled = clock.set_timer(start + 10, Arc::clone(&fired).into());
        clock.set_timer(start + 20, Arc::clone(&fired).into());
        clock.cancel_timer(cancelled);
        clock.advance(9);
        assert_eq!(fired.0.load(Relaxed), 0);
        clock.advance(1);
        assert_eq!(fired.0.load(Relaxed), 1, "CLK-2");
        assert_eq!(clock.next_deadline_ns(), Some(start + 20));
        clock.advance_to(start + 25);
        assert_eq!(fired.0.load(Relaxed), 2, "CLK-2");
    }

    #[derive(Default)]
    struct Fired(AtomicUsize);

    impl std::task::Wake for Fired {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}
