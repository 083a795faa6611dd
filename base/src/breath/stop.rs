//! The stop flag, which tells a computation to end: a raised reason, or a deadline.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use super::share::Budget;

/// Why a computation must end: a number whose meaning its raiser knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped(pub u8);

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stopped for reason {}", self.0)
    }
}

impl std::error::Error for Stopped {}

/// The reason for which one session's computations must end. Anybody raises it; the session's own computations look at it at every
/// breath.
#[derive(Debug)]
pub struct StopFlag {
    /// 0: nothing is raised.
    raised: AtomicU8,
    /// Reasons from here on stay raised once they are: they end the session.
    stays_from: u8,
    /// The reason that a computation was told and of which the flag's owner has not heard yet; 0: none (BRE-11).
    told: AtomicU8,
    /// 0: none.
    deadline_ns: AtomicU64,
    /// The reason when the deadline has passed.
    late: AtomicU8,
    /// What the session's computations use of the processors, where that has a limit.
    pub budget: Budget,
}

impl StopFlag {
    /// A flag without a reason; reasons from `stays_from` on can't be withdrawn.
    pub fn new(stays_from: u8) -> Self {
        let (raised, told, deadline_ns, late) =
            (AtomicU8::new(0), AtomicU8::new(0), AtomicU64::new(0), AtomicU8::new(0));
        Self { raised, stays_from, told, deadline_ns, late, budget: Budget::default() }
    }

    /// Raises a reason unless a stronger one is raised already; whether it was new.
    pub fn raise(&self, reason: u8) -> bool {
        self.raised.fetch_max(reason, SeqCst) < reason
    }

    /// The reason that is raised now; 0: none.
    #[inline]
    pub fn raised(&self) -> u8 {
        self.raised.load(SeqCst)
    }

    /// Takes a reason back, unless it is one that stays or another one is raised by now.
    pub fn withdraw(&self, reason: u8) {
        if reason < self.stays_from {
            let _ = self.raised.compare_exchange(reason, 0, SeqCst, SeqCst);
        }
    }

    /// From `deadline_ns` on (0: never) computations end for this reason.
    pub fn set_deadline(&self, deadline_ns: u64, reason: u8) {
        self.late.store(reason, Relaxed);
        self.deadline_ns.store(deadline_ns, Relaxed);
    }

    /// Tells the reason for which a computation must end at this time.
    pub(super) fn check(&self, now_ns: u64) -> Result<(), Stopped> {
        let told = self.told.load(SeqCst);
        if told != 0 {
            return Err(Stopped(told));
        }
        let raised = self.raised();
        if raised != 0 {
            self.told.store(raised, SeqCst);
            self.withdraw(raised);
            return Err(Stopped(raised));
        }
        let deadline_ns = self.deadline_ns.load(Relaxed);
        if deadline_ns != 0 && now_ns >= deadline_ns {
            let late = self.late.load(Relaxed);
            self.told.store(late, SeqCst);
            self.deadline_ns.store(0, Relaxed);
            return Err(Stopped(late));
        }
        Ok(())
    }

    /// The owner has heard of the reason that a computation was told, or its computations have ended; 0: none was told.
    #[inline]
    pub fn hear(&self) -> u8 {
        match self.told.load(Relaxed) {
            0 => 0,
            _ => self.told.swap(0, SeqCst),
        }
    }
}

/// The reason for which one of the threads that share a computation was stopped (`help`); 0: none was.
#[derive(Debug, Default)]
pub(super) struct Relay(AtomicU8);

impl Relay {
    /// What the flag says, and what it has said to another of the threads (BRE-9).
    pub fn check(&self, flag: &StopFlag, now_ns: u64) -> Result<(), Stopped> {
        match self.0.load(SeqCst) {
            0 => flag.check(now_ns).inspect_err(|stopped| self.0.store(stopped.0, SeqCst)),
            reason => Err(Stopped(reason)),
        }
    }
}
