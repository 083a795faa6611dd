//! Failed logins: an address that has failed waits before its next attempt is read.
//!
//! # Invariants
//! - FAIL-1: the account of failures is bounded: past [`ADDRESSES_MAX`] addresses it is forgotten and begins anew.
//! - FAIL-2: the wait comes before the proof is looked at and is the same whatever the proof is, so it tells nothing, and attempts at the
//!   same time from one address wait as well.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use clearway_base::sync::{Mutex, sleep};
use clearway_base::waits::{Object, WaitEvent, in_wait};

/// So many addresses are remembered.
const ADDRESSES_MAX: usize = 10_000;
/// After the first failure the next attempt waits for so long, after each further one twice as long,
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// and never longer than this.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Who has failed how often since its last success.
pub struct Failures {
    counts: Mutex<HashMap<Option<IpAddr>, u32>>,
}

impl Default for Failures {
    fn default() -> Self {
        Failures { counts: Mutex::new("server/failed_logins", HashMap::new()) }
    }
}

fn wait_after(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        failures => FIRST_WAIT.saturating_mul(1 << (failures - 1).min(16)).min(WAIT_MAX),
    }
}

impl Failures {
    /// Waits for as long as the failures of this address ask for (FAIL-2).
    pub async fn slow_down(&self, from: Option<IpAddr>) {
        let failures = self.counts.lock().get(&from).copied().unwrap_or(0);
        if failures > 0 {
            in_wait(WaitEvent::RetryDelay, Object::NONE, sleep(wait_after(failures))).await;
        }
    }

    /// Notes a failure.
    pub fn failed(&self, from: Option<IpAddr>) {
        let mut counts = self.counts.lock();
        if counts.len() >= ADDRESSES_MAX {
            counts.clear(); // FAIL-1
        }
        *counts.entry(from).or_default() += 1;
    }

    /// Somebody at this address has proven who it is.
    pub fn succeeded(&self, from: Option<IpAddr>) {
        self.counts.lock().remove(&from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAIL-1
    #[test]
    fn waits_grow_to_a_limit_and_the_account_is_bounded() {
        let all: Vec<u128> = [0, 1, 2, 5, 7, u32::MAX].into_iter().map(|n| wait_after(n).as_millis()).collect();
        assert_eq!(all, [0, 100, 200, 1600, 5000, 5000]);
        let failures = Failures::default();
        for n in 0..ADDRESSES_MAX as u32 + 5 {
            let address = IpAddr::from(std::net::Ipv4Addr::from(0x0a00_0000 + n));
            failures.failed(Some(address));
        }
        assert!(failures.counts.lock().len() <= ADDRESSES_MAX);
    }
}
