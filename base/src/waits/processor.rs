//! Processor time and elapsed time of a session, measured while its future is polled.
//!
//! # Life of a poll
//! `begins` -> (`settle` where a long statement begins, or any ends) -> `ended`. The time from one of these to the next is a step. A statement
//! that ends in a short step reads the figures and does not end the step ([`read`]). A step's own time is its elapsed time less its sync waits. It is divided into the session's processor time, run delay (the thread was ready and had no
//! processor), and a gap that nothing explains.
//!
//! # Invariants
//! - CPU-1: the processor time of a step is the first of these that applies:
//!   - what the thread's processor clock says, if that clock was read at both ends of the step;
//!   - the step's own time, if that is below [`SHORT_NS`]. Reading the clock costs half a microsecond, and a thread that lost its processor
//!     is seldom back so soon;
//!   - the step's own time less its run delay, if that is below [`LONG_NS`] (CPU-5);
//!   - what the thread has computed since its clocks were last read, less what earlier steps were charged with since then (CPU-3).
//!
//!   After two steps of a millisecond or more, one after the other, the clock is read for the session's next step. One such step alone has most
//!   often lost its processor, and the next one is short again.
//! - CPU-2: no moment counts twice. Sync waits are subtracted. If one session's future is polled within a poll of another session, the outer
//!   session is charged only for the part of its poll that follows the inner poll.
//! - CPU-3: if the gap of a step reaches [`GAP_NS`], the scheduler's run delay since the thread last read it explains the gap, up to the gap's
//!   length. The thread reads its clocks again every [`REFRESH_NS`], so that the run delay of other code adds little to that figure.
//! - CPU-4: while [`account`] has switched this off, no new step is measured and the figures do not change. A step that had begun is still
//!   charged.
//! - CPU-5: the run delay of a step between [`SHORT_NS`] and [`LONG_NS`] whose processor time was not measured is read if the thread has not read
//!   it for such a step within [`DELAY_EVERY_NS`]. Until then it is a share of the step's own time: the share that the run delay was of the thread's
//!   steps at its latest readings. What steps were charged with too much, or too little, is made up for after the next reading, so that the sums are
//!   those of the scheduler. A reading takes a microsecond; with 64 clients on two processors half of all statements lost theirs, and the readings
//!   took 2 % of the server's time (docs/measured/waits-cost.md).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::context::{self, Context};
use super::event::{WaitClass, WaitEvent};
use super::session::{SessionStats, add_time};
use super::{clock, totals};

/// Whether polls are measured (CPU-4).
static ACCOUNTS: AtomicBool = AtomicBool::new(true);

/// Switches the accounts of processor time and elapsed time on or off, for the whole process.
pub fn account(on: bool) {
    ACCOUNTS.store(on, Relaxed);
}

/// Steps below this are not measured by the thread's processor clock.
pub const SHORT_NS: u64 = 100_000;
/// After two steps of this length the session's next step is measured by the thread's processor clock ([`Measure::after`]). With 50 us, as it was,
/// the readings took 2 % of the server's time under sysbench's read-write (docs/measured/waits-cost.md).
const LONG_NS: u64 = 1_000_000;
/// After two of this length the scheduler's run delay is read as well.
const VERY_LONG_NS: u64 = 4_000_000;

/// A gap of this length is explained by the scheduler's run delay (CPU-3).
const GAP_NS: u64 = 20_000;
/// The thread reads its clocks again after this time.
const REFRESH_NS: u64 = 4_000_000;
/// Steps below [`LONG_NS`] share a reading of the run delay for this time (CPU-5).
const DELAY_EVERY_NS: u64 = 2_000_000;
/// What a share is counted in.
const WHOLE: u64 = 1 << 10;

/// What the clocks of a thread said when they were last read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastRead {
    cpu_ns: u64,
    delay_ns: u64,
    /// Run delay that steps have been charged with since, and what had been charged too much before; negative: what they are still to be charged
    /// with. Their processor time is in `Context::charged_ns`.
    delayed_ns: i64,
    /// The own time of these steps, those that were charged with a share of it (CPU-5) included.
    own_ns: u64,
    /// The share of run delay in the own time of steps at the latest readings, in parts of [`WHOLE`].
    share: u64,
    /// From when on the run delay is read for such a step.
    due_ns: u64,
}

impl LastRead {
    /// Nothing was read.
    pub const NONE: LastRead = LastRead { cpu_ns: 0, delay_ns: 0, delayed_ns: 0, own_ns: 0, share: 0, due_ns: 0 };

    /// Both clocks are read.
    fn refresh(&mut self) {
        self.learn(clock::run_delay_ns().unwrap_or(0), 0, 0);
        self.cpu_ns = clock::thread_cpu_ns();
    }

    /// The run delay was read, at the end of a step of so much own time and such a gap; 0: of none. Returns what of it the step is charged with.
    fn learn(&mut self, total_ns: u64, own_ns: u64, gap_ns: u64) -> u64 {
        let since_ns = total_ns.saturating_sub(self.delay_ns);
        if self.own_ns == 0 {
            self.delayed_ns = 0;
        }
        let delay_ns = since_ns.saturating_add_signed(-self.delayed_ns).min(gap_ns);
        let of_ns = self.own_ns + own_ns;
        // The next step with a gap counts from here: what other code was delayed by is not its own.
        let known_ns = since_ns.min(of_ns) as i64;
        self.delayed_ns = (self.delayed_ns + delay_ns as i64 - known_ns).clamp(-(LONG_NS as i64), LONG_NS as i64); // CPU-5
        let parts = (known_ns - self.delayed_ns).clamp(0, of_ns as i64) as u64 * WHOLE;
        if let Some(now) = parts.checked_div(of_ns) {
            // A single step says little, but it is the only one there is.
            self.share = if self.own_ns > 0 { u64::midpoint(self.share, now) } else { now };
        }
        (self.delay_ns, self.own_ns) = (total_ns, 0);
        delay_ns
    }

    /// A step was charged with this run delay, which is not to be charged again.
    fn charged(&mut self, own_ns: u64, delay_ns: u64) {
        self.own_ns += own_ns;
        self.delayed_ns += delay_ns as i64;
    }

    /// Run delay of a step with a gap that ends now, and its processor time if that was not measured by itself, when the gap is all its own time.
    fn explain(&mut self, now_ns: u64, own_ns: u64, measured_ns: Option<u64>, charged_ns: u64) -> (u64, u64) {
        let gap_ns = own_ns - measured_ns.unwrap_or(0);
        let short = measured_ns.is_none() && gap_ns < LONG_NS;
        if short && now_ns < self.due_ns {
            let delay_ns = gap_ns * self.share / WHOLE;
            self.charged(own_ns, delay_ns);
            return (delay_ns, gap_ns - delay_ns); // CPU-5
        }
        let Some(total_ns) = clock::run_delay_ns() else { return (0, 0) };
        let delay_ns = self.learn(total_ns, own_ns, gap_ns);
        if measured_ns.is_some() {
            return (delay_ns, 0);
        }
        if short {
            self.due_ns = now_ns + DELAY_EVERY_NS;
            return (delay_ns, gap_ns - delay_ns); // CPU-1
        }
        let cpu_ns = clock::thread_cpu_ns().saturating_sub(self.cpu_ns + charged_ns);
        (delay_ns, cpu_ns.min(gap_ns - delay_ns))
    }
}

/// The step that runs on a thread: when it began, and what the clocks said. A short step, which each poll is, writes the first three alone.
#[derive(Debug)]
pub(super) struct Step {
    /// 0: no session is polled.
    began_ns: Cell<u64>,
    /// The session's id.
    session: Cell<u64>,
    waited_ns: Cell<u64>,
    /// What the thread's clocks said when the step began; [`NOT_READ`]: they were not read, as between steps.
    cpu_ns: Cell<u64>,
    delay_ns: Cell<u64>,
}

/// A clock that was not read.
const NOT_READ: u64 = u64::MAX;

/// How a step is measured, the dearest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Measure {
    /// It is short: by its own time.
    #[default]
    Short,
    /// The same after a single step that was not short.
    Once,
    /// By the thread's processor clock.
    Processor,
    /// With the scheduler's run delay too.
    RunDelay,
}

impl From<u8> for Measure {
    fn from(n: u8) -> Measure {
        match n {
            0 => Measure::Short,
            1 => Measure::Once,
            2 => Measure::Processor,
            _ => Measure::RunDelay,
        }
    }
}

impl Measure {
    /// How the next step is measured if this is how the latest one should have been, and the latest one was measured so as `before` says. Reading the
    /// clocks costs a microsecond or two; with 64 clients on two processors one point select in twenty loses its processor.
    #[inline]
    pub fn after(self, before: Measure) -> Measure {
        if before == Measure::Short { self.min(Measure::Once) } else { self }
    }

    /// Whether clocks of the thread are read.
    #[inline]
    pub fn reads_clocks(self) -> bool {
        self > Measure::Once
    }
}

impl Step {
    /// No session is polled.
    pub const fn none() -> Step {
        Step {
            began_ns: Cell::new(0),
            session: Cell::new(0),
            waited_ns: Cell::new(0),
            cpu_ns: Cell::new(NOT_READ),
            delay_ns: Cell::new(NOT_READ),
        }
    }

    /// Whether a session is polled.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.began_ns.get() != 0
    }

    /// Whether it is one of this session.
    #[inline]
    fn is_of(&self, session: &SessionStats) -> bool {
        self.is_running() && self.session.get() == session.id()
    }

    /// One begins where none runs, or where the one before has been charged.
    #[inline]
    fn begins(&self, context: &Context, now_ns: u64, session: u64, how: Measure) {
        self.began_ns.set(now_ns);
        self.session.set(session);
        self.waited_ns.set(context.waited_ns.get());
        if now_ns > context.read_until_ns.get() || how.reads_clocks() {
            self.reads(context, now_ns, how);
        }
    }

    /// The same of a session that is at hand, which learns of it.
    #[inline]
    fn begins_in(&self, context: &Context, now_ns: u64, session: &SessionStats, how: Measure) {
        session.steps(now_ns);
        self.begins(context, now_ns, session.id(), how);
        if how.reads_clocks() {
            session.step_asks();
        }
    }

    /// The clocks of the thread are read.
    #[cold]
    #[inline(never)]
    fn reads(&self, context: &Context, now_ns: u64, how: Measure) {
        if now_ns > context.read_until_ns.get() {
            let mut last_read = context.last_read.get();
            last_read.refresh();
            context.last_read.set(last_read);
            context.read_until_ns.set(now_ns + REFRESH_NS);
            context.charged_ns.set(0);
        }
        if how == Measure::RunDelay {
            self.delay_ns.set(clock::run_delay_ns().unwrap_or(NOT_READ));
        }
        if how.reads_clocks() {
            self.cpu_ns.set(clock::thread_cpu_ns());
        }
    }

    /// The poll of another session begins within this step, which is not charged for (CPU-2); returns its session.
    #[cold]
    #[inline(never)]
    fn gives_way(&self, context: &Context) -> u64 {
        if let Some(session) = context.session.borrow().as_ref() {
            session.step_asks();
            session.use_rests();
        }
        self.forgets_clocks();
        self.began_ns.set(0);
        self.session.get()
    }

    fn forgets_clocks(&self) {
        self.cpu_ns.set(NOT_READ);
        self.delay_ns.set(NOT_READ);
    }

    /// Processor time and run delay of a step that is not short, or whose processor time was measured.
    #[cold]
    fn divide(&self, context: &Context, now_ns: u64, own_ns: u64) -> (u64, u64) {
        let read = |clock: u64| (clock != NOT_READ).then_some(clock);
        let measured_ns =
            read(self.cpu_ns.get()).map(|before| clock::thread_cpu_ns().saturating_sub(before).min(own_ns));
        let mut cpu_ns = measured_ns.unwrap_or(0);
        let mut last_read = context.last_read.get();
        let mut delay_ns = 0;
        if let Some(before) = read(self.delay_ns.get()) {
            delay_ns = clock::run_delay_ns().unwrap_or(before).saturating_sub(before).min(own_ns - cpu_ns);
            last_read.charged(own_ns, delay_ns);
        } else if own_ns - cpu_ns >= GAP_NS {
            let charged_ns = context.charged_ns.get();
            let (delayed_ns, computed_ns) = last_read.explain(now_ns, own_ns, measured_ns, charged_ns); // CPU-3
            delay_ns = delayed_ns;
            cpu_ns += computed_ns;
        }
        context.last_read.set(last_read);
        (cpu_ns, delay_ns)
    }

    /// Divides the time since the step began; returns how it should have been measured.
    #[inline]
    fn charge(&self, context: &Context, session: &SessionStats, now_ns: u64) -> Measure {
        let wall_ns = now_ns.saturating_sub(self.began_ns.get());
        let own_ns = wall_ns.saturating_sub(context.waited_ns.get().saturating_sub(self.waited_ns.get()));
        // CPU-1
        if self.cpu_ns.get() == NOT_READ && own_ns < SHORT_NS {
            context.charged_ns.set(context.charged_ns.get() + own_ns);
            add_time(session, wall_ns, own_ns);
            return Measure::Short;
        }
        self.charge_long(context, session, wall_ns, own_ns)
    }

    #[cold]
    #[inline(never)]
    fn charge_long(&self, context: &Context, session: &SessionStats, wall_ns: u64, own_ns: u64) -> Measure {
        let (cpu_ns, delay_ns) = self.divide(context, self.began_ns.get() + wall_ns, own_ns);
        self.forgets_clocks();
        context.charged_ns.set(context.charged_ns.get() + cpu_ns);
        if delay_ns > 0 {
            totals::record(WaitEvent::RunQueue, delay_ns, 0);
            session.record(WaitEvent::RunQueue, delay_ns);
        }
        add_time(session, wall_ns, cpu_ns);
        match own_ns {
            ..LONG_NS => Measure::Short,
            LONG_NS..VERY_LONG_NS => Measure::Processor,
            VERY_LONG_NS.. => Measure::RunDelay,
        }
    }
}

/// A poll of a session's future begins; returns the id of the session around it, for [`ended`]; 0: there is none.
#[inline]
pub(super) fn begins(context: &Context, session: &SessionStats, now_ns: u64) -> u64 {
    let step = &context.step;
    let outer = if step.is_running() { step.gives_way(context) } else { 0 };
    if ACCOUNTS.load(Relaxed) {
        step.begins_in(context, now_ns, session, session.measured());
    }
    session.use_goes_on();
    outer
}

/// The poll has ended.
#[inline]
pub(super) fn ended(context: &Context, session: &SessionStats, outer: u64, now_ns: u64) {
    let step = &context.step;
    session.use_rests();
    if step.is_running() {
        let (measure, before) = (step.charge(context, session, now_ns), session.measured());
        if measure != before {
            session.set_measured(measure.after(before));
        }
        step.began_ns.set(0);
        session.steps(0);
    }
    // CPU-2
    if outer != 0 {
        step.begins(context, now_ns, outer, Measure::Short);
        if let Some(session) = context.session.borrow().as_ref() {
            session.use_goes_on();
        }
    }
}

/// Divides what the calling session's poll has taken until now, so that [`SessionStats::time`] has it; `next` is how what follows is measured.
/// Returns how the part that ends here should have been. Nothing happens for a session that is not polled by the calling thread.
#[inline]
pub fn settle(session: &SessionStats, now_ns: u64, next: Measure) -> Measure {
    let settled = context::with(|context| {
        let step = &context.step;
        if !step.is_of(session) {
            return Measure::Short;
        }
        let measure = step.charge(context, session, now_ns);
        step.begins_in(context, now_ns, session, next);
        measure
    });
    settled.unwrap_or_default()
}

/// The session's elapsed time and processor time until now, and how the step that runs should have been measured. A step that is short so far
/// goes on; a longer one is divided as by [`settle`]. When the step is divided later, its processor time may prove smaller than it was here.
pub fn read(session: &SessionStats, now_ns: u64) -> (Measure, u64, u64) {
    let (elapsed_ns, cpu_ns) = session.elapsed_and_cpu();
    let short = context::with(|context| {
        let step = &context.step;
        if step.cpu_ns.get() != NOT_READ || !step.is_of(session) {
            return None;
        }
        let wall_ns = now_ns.saturating_sub(step.began_ns.get());
        let own_ns = wall_ns.saturating_sub(context.waited_ns.get().saturating_sub(step.waited_ns.get()));
        (own_ns < SHORT_NS).then_some((Measure::Short, elapsed_ns + wall_ns, cpu_ns + own_ns)) // CPU-1
    });
    short.flatten().unwrap_or_else(|| {
        let measure = settle(session, now_ns, Measure::Short);
        let (elapsed_ns, cpu_ns) = session.elapsed_and_cpu();
        (measure, elapsed_ns, cpu_ns)
    })
}

/// The same of most steps, from what the session itself has: none if the step that runs is not short, clocks of the thread were read for it, it has
/// waited for something, or another session was polled in it.
#[inline]
pub fn read_short(session: &SessionStats, now_ns: u64) -> Option<(u64, u64)> {
    session.elapsed_and_cpu_below(now_ns, SHORT_NS) // CPU-1
}

/// Adds what a thread used that helped the session that the calling thread polls: its processor time and its run delay, which count as elapsed
/// time too, so that the parts still add up to the whole.
pub fn add_helper(cpu_ns: u64, delay_ns: u64) {
    let Some(session) = super::current_session().filter(|_| ACCOUNTS.load(Relaxed)) else { return };
    if delay_ns > 0 {
        totals::record(WaitEvent::RunQueue, delay_ns, 0);
        session.record(WaitEvent::RunQueue, delay_ns);
    }
    add_time(&session, cpu_ns + delay_ns, cpu_ns);
}

/// What a session's elapsed time consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionTime {
    /// While its work was under way, waits for the client included.
    pub elapsed_ns: u64,
    /// Computing (CPU-1).
    pub cpu_ns: u64,
    /// Waits for the client, and main loops that had nothing to do.
    pub idle_ns: u64,
    /// Ready, without a processor.
    pub run_queue_ns: u64,
    /// All other waits.
    pub wait_ns: u64,
    /// Of [`SessionTime::wait_ns`], the waits for files and their syncs.
    pub io_ns: u64,
    /// Of [`SessionTime::wait_ns`], the waits of commits and replies until they are durable.
    pub durable_ns: u64,
}

impl SessionTime {
    /// No time.
    pub const NONE: SessionTime =
        SessionTime { elapsed_ns: 0, cpu_ns: 0, idle_ns: 0, run_queue_ns: 0, wait_ns: 0, io_ns: 0, durable_ns: 0 };

    /// Adds another's.
    pub fn add(&mut self, other: &SessionTime) {
        self.elapsed_ns += other.elapsed_ns;
        self.cpu_ns += other.cpu_ns;
        self.idle_ns += other.idle_ns;
        self.run_queue_ns += other.run_queue_ns;
        self.wait_ns += other.wait_ns;
        self.io_ns += other.io_ns;
        self.durable_ns += other.durable_ns;
    }

    /// The time that was added since an earlier reading.
    pub fn since(&self, before: &SessionTime) -> SessionTime {
        SessionTime {
            elapsed_ns: self.elapsed_ns.saturating_sub(before.elapsed_ns),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            idle_ns: self.idle_ns.saturating_sub(before.idle_ns),
            run_queue_ns: self.run_queue_ns.saturating_sub(before.run_queue_ns),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
            io_ns: self.io_ns.saturating_sub(before.io_ns),
            durable_ns: self.durable_ns.saturating_sub(before.durable_ns),
        }
    }

    /// Adds waits of an event.
    pub fn waited(&mut self, event: WaitEvent, ns: u64) {
        match event.class() {
            WaitClass::Client | WaitClass::Activity => self.idle_ns += ns,
            WaitClass::Scheduler => self.run_queue_ns += ns,
            class => {
                self.wait_ns += ns;
                if class == WaitClass::Io {
                    self.io_ns += ns;
                }
                if matches!(event, WaitEvent::CommitDurable | WaitEvent::ReplyDurable) {
                    self.durable_ns += ns;
                }
            }
        }
    }

    /// Elapsed time without waits for the client.
    pub fn busy_ns(&self) -> u64 {
        self.elapsed_ns.saturating_sub(self.idle_ns)
    }

    /// What no column explains; negative by the width of the readings.
    pub fn unaccounted_ns(&self) -> i64 {
        self.busy_ns() as i64 - (self.cpu_ns + self.run_queue_ns + self.wait_ns) as i64
    }
}
