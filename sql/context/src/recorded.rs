//! Records single executions of statements: all of them while performance_schema's consumer `events_statements_history_long` is on, slow
//! ones while `record_slow` is in force. Also holds the switches of the recorders that are on by default.
//!
//! # Invariants
//! - RCS-1: at most [`KEPT`] executions are kept, each with at most [`TEXT_MAX`] bytes of its text.
//! - RCS-2: what `record_slow` has begun ends by itself: after its time, or when it has recorded as many bytes as it may.

use super::statements::{Digest, Work};
use clearway_base::sync::{ClassStats, Mutex, track_holders};
use clearway_base::waits::{self, EventTotals};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Statements that are kept.
pub const KEPT: usize = 10_000;
/// Bytes of a statement's text.
pub const TEXT_MAX: usize = 4_096;
/// The consumer that records all statements.
pub const HISTORY_LONG: &str = "events_statements_history_long";
/// The consumer that counts statements by digest.
pub const DIGESTS: &str = "statements_digest";
/// The consumers and whether they are on; those of [`HISTORY_LONG`] and [`DIGESTS`] can be switched.
const CONSUMERS: [(&str, bool); 9] = [
    ("events_waits_current", true),
    ("events_waits_history", false),
    ("events_waits_history_long", false),
    ("events_statements_current", true),
    ("events_statements_history", false),
    (HISTORY_LONG, false),
    ("global_instrumentation", true),
    ("thread_instrumentation", true),
    (DIGESTS, true),
];

/// Totals when performance_schema was truncated: its views show what came since.
#[derive(Debug)]
pub struct Truncated {
    /// Of events.
    pub totals: Vec<EventTotals>,
    /// Of mutexes and latches.
    pub classes: Vec<ClassStats>,
}

/// One execution.
#[derive(Clone, Debug)]
pub struct RecordedExecution {
    /// When it began: wall clock, microseconds since 1970.
    pub began_us: i64,
    /// How long it took.
    pub ns: u64,
    /// How much of that it waited for locks.
    pub lock_ns: u64,
    /// The session.
    pub pid: i32,
    /// Its user, database and application.
    pub user: String,
    /// See there.
    pub database: String,
    /// See there.
    pub application: String,
    /// The client's address.
    pub client: Option<std::net::IpAddr>,
    /// The text, cut.
    pub text: String,
    /// Its digest.
    pub digest: Arc<Digest>,
    /// Rows given or changed.
    pub rows: u64,
    /// It changes rows.
    pub writes: bool,
    /// What it has looked at.
    pub work: Work,
    /// It failed.
    pub failed: bool,
}

#[derive(Debug, Default)]
struct State {
    all: VecDeque<RecordedExecution>,
    history: bool,
    /// What `record_slow` asks for: from which duration on, until when, and how many bytes are left of it.
    slow: Option<(u64, u64, u64)>,
}

/// The recorders; those of statements, sessions and time run unless they are switched off. Waits and the history of locks have settings of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorders {
    /// Statements by digest.
    pub statements: bool,
    /// What each active session does, once a second.
    pub sessions: bool,
    /// Processor time and elapsed time.
    pub time: bool,
    /// The holder of a latch, where in the source it was taken, and how long it is held.
    pub latches: bool,
}

impl Default for Recorders {
    fn default() -> Self {
        Recorders { statements: true, sessions: true, time: true, latches: false }
    }
}

impl Recorders {
    /// By their names, with commas between them; `none`: none of them.
    pub fn named(text: &str) -> Option<Recorders> {
        let mut some = Recorders { statements: false, sessions: false, time: false, latches: false };
        for name in text.split(',').map(str::trim).filter(|_| text.trim() != "none") {
            match name {
                "statements" => some.statements = true,
                "sessions" => some.sessions = true,
                "time" => some.time = true,
                "latches" => some.latches = true,
                _ => return None,
            }
        }
        Some(some)
    }
}

/// What is recorded.
#[derive(Debug)]
pub struct Recorded {
    /// Statements that took at least so long are recorded; the highest number: none.
    from_ns: AtomicU64,
    /// Whether statements are counted by digest, and active sessions sampled.
    digests: AtomicBool,
    samples: AtomicBool,
    state: Mutex<State>,
}

impl Default for Recorded {
    fn default() -> Self {
        Recorded {
            from_ns: AtomicU64::new(u64::MAX),
            digests: AtomicBool::new(true),
            samples: AtomicBool::new(true),
            state: Mutex::new("sql/recorded", State::default()),
        }
    }
}

impl State {
    fn least_ns(&self) -> u64 {
        match (self.history, self.slow) {
            (true, _) => 0,
            (false, Some((from_ns, ..))) => from_ns,
            (false, None) => u64::MAX,
        }
    }

    /// RCS-2
    fn ends(&mut self, now_ns: u64) {
        self.slow = self.slow.filter(|(_, until_ns, left)| now_ns < *until_ns && *left > 0);
    }
}

impl Recorded {
    /// Whether a statement that took so long is recorded.
    #[inline]
    pub fn wants(&self, ns: u64) -> bool {
        ns >= self.from_ns.load(Relaxed)
    }

    /// Whether statements are counted by digest.
    #[inline]
    pub fn digests(&self) -> bool {
        self.digests.load(Relaxed)
    }

    /// Whether active sessions are sampled.
    pub fn samples(&self) -> bool {
        self.samples.load(Relaxed)
    }

    /// Switches the recorders.
    pub fn run(&self, which: Recorders) {
        self.digests.store(which.statements, Relaxed);
        self.samples.store(which.sessions, Relaxed);
        waits::account(which.time);
        track_holders(which.latches);
    }

    /// Records one; true: it belongs into the slow log.
    pub fn add(&self, ran: RecordedExecution) -> bool {
        let mut state = self.state.lock();
        state.ends(waits::now_ns());
        let mut slow = false;
        if let Some((from_ns, _, left)) = &mut state.slow
            && ran.ns >= *from_ns
        {
            *left = left.saturating_sub(ran.text.len() as u64 + 200);
            slow = true;
        }
        if state.history || slow {
            state.all.push_back(ran);
        }
        if state.all.len() > KEPT {
            state.all.pop_front(); // RCS-1
        }
        self.from_ns.store(state.least_ns(), Relaxed);
        slow
    }

    /// Records statements that take `from_ns` or longer, for a time, up to a number of bytes.
    pub fn record_slow(&self, from_ns: u64, for_ns: u64, bytes_max: u64) {
        let mut state = self.state.lock();
        state.slow = Some((from_ns, waits::now_ns().saturating_add(for_ns), bytes_max));
        state.ends(waits::now_ns());
        self.from_ns.store(state.least_ns(), Relaxed);
    }

    /// The consumers of performance_schema.
    pub fn consumers(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let history = self.state.lock().history;
        let digests = self.digests();
        CONSUMERS.into_iter().map(move |(name, on)| match name {
            HISTORY_LONG => (name, history),
            DIGESTS => (name, digests),
            _ => (name, on),
        })
    }

    /// Switches a consumer; false: it can't be.
    pub fn switch(&self, name: &str, on: bool) -> bool {
        if name == DIGESTS {
            self.digests.store(on, Relaxed);
            return true;
        }
        if name != HISTORY_LONG {
            return self.consumers().any(|(known, is_on)| known == name && is_on == on);
        }
        let mut state = self.state.lock();
        state.history = on;
        self.from_ns.store(state.least_ns(), Relaxed);
        true
    }

    /// Everything that is kept, oldest first.
    pub fn all(&self) -> Vec<RecordedExecution> {
        self.state.lock().all.iter().cloned().collect()
    }

    /// Forgets what was recorded.
    pub fn clear(&self) {
        self.state.lock().all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(ns: u64) -> RecordedExecution {
        RecordedExecution {
            began_us: 0,
            ns,
            lock_ns: 0,
            pid: 1,
            user: String::new(),
            database: String::new(),
            application: String::new(),
            client: None,
            text: "x".repeat(100),
            digest: Digest::of("select 1"),
            rows: 1,
            writes: false,
            work: Work::default(),
            failed: false,
        }
    }

    #[test]
    fn slow_statements_are_recorded_for_a_time_and_up_to_a_size() {
        let recorded = Recorded::default();
        assert!(!recorded.wants(u64::MAX - 1));
        recorded.record_slow(1_000, 3_600_000_000_000, 900);
        assert!(recorded.wants(1_000) && !recorded.wants(999));
        assert_eq!([recorded.add(ran(2_000)), recorded.add(ran(10)), recorded.add(ran(2_000))], [true, false, true]);
        assert!(recorded.add(ran(2_000)), "300 bytes each");
        assert!(!recorded.add(ran(2_000)) && !recorded.wants(2_000), "RCS-2");
        assert_eq!(recorded.all().len(), 3);
        recorded.record_slow(0, 0, 1_000);
        assert!(!recorded.wants(5), "RCS-2");
    }

    #[test]
    fn the_history_is_switched_and_bounded() {
        let recorded = Recorded::default();
        assert!(recorded.switch("events_waits_current", true) && !recorded.switch("events_waits_current", false));
        assert!(recorded.digests() && recorded.switch(DIGESTS, false) && !recorded.digests());
        assert!(recorded.consumers().any(|(name, on)| name == DIGESTS && !on));
        assert!(!recorded.switch("nonsense", true) && recorded.switch(HISTORY_LONG, true) && recorded.wants(0));
        for ns in 0..KEPT as u64 + 10 {
            assert!(!recorded.add(ran(ns)), "none belongs into the slow log");
        }
        assert_eq!((recorded.all().len(), recorded.all()[0].ns), (KEPT, 10), "RCS-1");
        assert!(recorded.switch(HISTORY_LONG, false) && !recorded.wants(1 << 40));
    }

    #[test]
    fn recorders_are_named() {
        assert_eq!(Recorders::named("statements,sessions,time"), Some(Recorders::default()));
        let some = Recorders { statements: false, sessions: false, time: true, latches: false };
        assert_eq!((Recorders::named(" time "), Recorders::named("time, times")), (Some(some), None));
        assert_eq!(Recorders::named("none"), Some(Recorders { time: false, ..some }));
        assert_eq!(Recorders::named("latches,time"), Some(Recorders { latches: true, ..some }));
        assert_eq!(Recorders::named("none,time"), None);
    }
}
