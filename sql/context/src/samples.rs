//! The history of active sessions: what each was doing, sampled once a second.
//!
//! # Invariants
//! - SMP-1: the history holds at most an hour and [`SAMPLES_MAX`] samples. If more than [`SESSIONS_MAX`] sessions are active, only a part
//!   of them is sampled, and each sample stands for as many sessions as its `weight` says.

use std::collections::VecDeque;
use std::sync::Arc;

use clearway_base::sync::Mutex;
use clearway_base::waits::{self, WaitEvent};

use super::backend::Backends;

/// Samples that are kept.
pub const SAMPLES_MAX: usize = 200_000;
/// Sessions of which one moment keeps a sample.
pub const SESSIONS_MAX: usize = 200;
const HOUR_US: i64 = 3_600_000_000;

/// What one session was doing.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Wall clock, microseconds since 1970.
    pub at_us: i64,
    /// The session.
    pub pid: i32,
    /// Its login role's oid.
    pub user: u32,
    /// Its database and `application_name`.
    pub names: Arc<(String, String)>,
    /// What it waited for; none: it ran.
    pub event: Option<WaitEvent>,
    /// The digest of its statement.
    pub query: u64,
    /// The session that it waited behind, 0 for none.
    pub behind: i32,
    /// How many sessions it stands for.
    pub weight: f32,
}

/// The history.
#[derive(Debug)]
pub struct Samples(Mutex<VecDeque<Sample>>);

impl Default for Samples {
    fn default() -> Self {
        Samples(Mutex::new("sql/samples", VecDeque::new()))
    }
}

impl Samples {
    /// Takes a sample of every active session; how many there were.
    pub fn take(&self, backends: &Backends) -> usize {
        let at_us = waits::wall_us();
        let active: Vec<_> = backends.all().into_iter().filter(|b| b.activity.lock().state.is_active()).collect();
        // SMP-1
        let step = active.len().div_ceil(SESSIONS_MAX).max(1);
        let weight = active.len() as f32 / active.len().div_ceil(step).max(1) as f32;
        let offset = (at_us / 1_000_000) as usize % step;
        let samples = active.iter().skip(offset.min(active.len().saturating_sub(1))).step_by(step).map(|backend| {
            let wait = backend.waits.current_or_ready();
            let application = backend.activity.lock().application_name.clone();
            Sample {
                at_us,
                pid: backend.pid,
                user: backend.role.load(std::sync::atomic::Ordering::Relaxed),
                names: Arc::new((backend.database.clone(), application)),
                event: wait.map(|wait| wait.event),
                query: backend.digest.load(std::sync::atomic::Ordering::Relaxed),
                behind: wait.map_or(0, |wait| wait.behind as i32),
                weight,
            }
        });
        let samples: Vec<Sample> = samples.collect();
        let count = samples.len();
        self.add(samples, at_us);
        count
    }

    fn add(&self, samples: Vec<Sample>, now_us: i64) {
        let mut all = self.0.lock();
        all.extend(samples);
        while all.len() > SAMPLES_MAX || all.front().is_some_and(|sample| sample.at_us < now_us - HOUR_US) {
            all.pop_front();
        }
    }

    /// All of them, oldest first.
    pub fn all(&self) -> Vec<Sample> {
        self.0.lock().iter().cloned().collect()
    }

    /// Takes in what an earlier run has left.
    pub fn restore(&self, earlier: Vec<Sample>) {
        self.add(earlier, waits::wall_us());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::ClientIdentity;
    use clearway_base::waits::SessionStats;

    /// SMP-1
    #[test]
    fn a_crowd_is_sampled_in_part_and_weighs_as_much() {
        let backends = Arc::new(Backends::default());
        let listed: Vec<_> =
            (0..1_000).map(|_| backends.list(SessionStats::new("client"), 1, ClientIdentity::default())).collect();
        listed.iter().take(999).for_each(|listed| listed.backend().runs("select 1".into()));
        let samples = Samples::default();
        assert_eq!(samples.take(&backends), samples.all().len());
        let all = samples.all();
        assert!(all.len() <= SESSIONS_MAX, "{}", all.len());
        let weight: f32 = all.iter().map(|sample| sample.weight).sum();
        assert!((weight - 999.0).abs() < 10.0, "{weight}");
        for _ in 0..2 * SAMPLES_MAX / SESSIONS_MAX {
            let _ = samples.take(&backends);
        }
        assert!(samples.all().len() <= SAMPLES_MAX);
    }
}
