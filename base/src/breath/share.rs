//! A share of the processors: how much processor time the sessions of a role, or of a database, have together.
//!
//! # Life of a quantum
//! A session computes; at its breaths and at the ends of its polls the time is entered in its [`Budget`] -> it has computed for [`QUANTUM_NS`]:
//! the time is booked on each of its shares, behind what other sessions have booked -> the session pauses until the moment up to which its
//! share is booked (`clearway_base::breath` waits) -> it computes again.
//!
//! So sessions of one share pause one after the other, in the order in which they have used their time up, and wake one after the other. A
//! session that has paid is not asked again, whatever others have booked behind it.
//!
//! # Invariants
//! - SHR-1: over any time T the sessions of a share compute for at most `rate * T`, plus [`BURST_NS`] at that rate, plus one quantum for each session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::sync::Mutex;

/// A session computes for so long before it pauses.
pub const QUANTUM_NS: u64 = 1_000_000;
/// So much unused time a share keeps.
const BURST_NS: u64 = 10_000_000;
/// The time over which the use of a share is shown.
const SHOWN_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
struct Booked {
    /// Nanoseconds of processor time in a second; 0: no limit.
    rate: u64,
    /// Up to when the share is booked, by the clock of wait events.
    until_ns: u64,
    /// What is shown: since when it counts, what was used since, and in the whole stretch before.
    shown: (u64, u64, u64),
}

/// A share of the processors.
#[derive(Debug)]
pub struct Share {
    booked: Mutex<Booked>,
}

impl Default for Share {
    fn default() -> Self {
        Self { booked: Mutex::new("base/breath/share", Booked::default()) }
    }
}

impl Share {
    /// Sets how many nanoseconds of processor time a second there are; 0: no limit.
    pub fn set_rate(&self, rate: u64) {
        self.booked.lock().rate = rate;
    }

    /// Books processor time; up to when the share is booked then.
    fn book(&self, cpu_ns: u64, now_ns: u64) -> u64 {
        let mut booked = self.booked.lock();
        let (since, used, _) = booked.shown;
        booked.shown = match now_ns.saturating_sub(since) {
            age if age >= 2 * SHOWN_NS => (now_ns, cpu_ns, 0),
            age if age >= SHOWN_NS => (since + SHOWN_NS, cpu_ns, used),
            _ => (since, used + cpu_ns, booked.shown.2),
        };
        if booked.rate == 0 {
            return 0;
        }
        let lasts_ns = u128::from(cpu_ns) * 1_000_000_000 / u128::from(booked.rate);
        let lasts_ns = u64::try_from(lasts_ns).unwrap_or(u64::MAX);
        booked.until_ns = booked.until_ns.max(now_ns.saturating_sub(BURST_NS)).saturating_add(lasts_ns); // SHR-1
        booked.until_ns
    }

    /// Processor time used in the last whole second, in nanoseconds.
    pub fn used_ns(&self, now_ns: u64) -> u64 {
        let (since, used, before) = self.booked.lock().shown;
        match now_ns.saturating_sub(since) {
            age if age >= 2 * SHOWN_NS => 0,
            age if age >= SHOWN_NS => used,
            _ => before,
        }
    }
}

/// What one session has used of its shares. Its own thread writes it.
#[derive(Debug)]
pub struct Budget {
    limited: AtomicBool,
    shares: Mutex<Vec<Arc<Share>>>,
    /// Not booked yet.
    owed_ns: AtomicU64,
    /// The session pauses until then.
    due_ns: AtomicU64,
    /// It has paused since `take_paused`.
    paused: AtomicBool,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            limited: AtomicBool::new(false),
            shares: Mutex::new("base/breath/budget", Vec::new()),
            owed_ns: AtomicU64::new(0),
            due_ns: AtomicU64::new(0),
            paused: AtomicBool::new(false),
        }
    }
}

impl Budget {
    /// From now on the session uses these shares.
    pub fn use_shares(&self, shares: Vec<Arc<Share>>) {
        self.limited.store(!shares.is_empty(), Relaxed);
        self.due_ns.store(0, Relaxed);
        *self.shares.lock() = shares;
    }

    /// Whether it uses any.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limited.load(Relaxed)
    }

    /// The session has computed for so long.
    pub(super) fn spend(&self, cpu_ns: u64, now_ns: u64) {
        let owed_ns = self.owed_ns.load(Relaxed) + cpu_ns;
        if owed_ns < QUANTUM_NS {
            self.owed_ns.store(owed_ns, Relaxed);
        } else {
            self.owed_ns.store(0, Relaxed);
            let booked = self.shares.lock().iter().map(|share| share.book(owed_ns, now_ns)).max();
            self.due_ns.store(booked.unwrap_or(0), Relaxed);
        }
    }

    /// Until when it must pause, which it does then; 0: it need not.
    pub fn due_ns(&self, now_ns: u64) -> u64 {
        let due_ns = self.due_ns.load(Relaxed);
        if due_ns <= now_ns {
            return 0;
        }
        self.paused.store(true, Relaxed);
        due_ns
    }

    /// Whether the session has paused since the last call.
    pub fn take_paused(&self) -> bool {
        self.paused.swap(false, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn sessions_of_a_share_pause_one_behind_the_other() {
        let share = Arc::new(Share::default());
        share.set_rate(250 * MS); // a quarter of a processor
        let sessions: Vec<Budget> = (0..3).map(|_| Budget::default()).collect();
        sessions.iter().for_each(|session| session.use_shares(vec![share.clone()]));
        let now = 1_000 * MS;
        let spend = |session: &Budget, cpu_ns, now| {
            session.spend(cpu_ns, now);
            session.due_ns(now)
        };
        let until: Vec<u64> = sessions.iter().map(|session| spend(session, 4 * MS, now)).collect();
        // 4 ms last for 16; what the share had kept is 10 ms.
        assert_eq!(until, [now + 6 * MS, now + 22 * MS, now + 38 * MS], "SHR-1");
        assert_eq!(spend(&sessions[0], MS / 2, now + 6 * MS), 0, "it has paid, and owes less than a quantum");
        assert!(sessions[0].take_paused() && !sessions[0].take_paused());
        assert_eq!(share.used_ns(now), 0);
        assert_eq!(share.used_ns(now + 1_500 * MS), 12 * MS);
        share.set_rate(0);
        assert_eq!(spend(&sessions[1], 50 * MS, now + 22 * MS), 0);
    }
}
