//! Failed logins: after failures from an address, the next attempt from that address is delayed.
//!
//! # Invariants
//! - FAIL-1: the record of failures is bounded. Beyond [`ORIGINS_MAX`] origins it is cleared and begins anew; of each origin it knows
//!   [`ROLES_MAX`] roles by name.
//! - FAIL-2: the delay comes before the proof is checked and does not depend on the proof, so it reveals nothing. Once an address has a
//!   recorded failure, parallel attempts from it are each delayed as well.
//! - FAIL-3: a successful login forgives only the failures of its own role: a client that knows one password can't guess another one at
//!   full speed by logging in between its guesses. All failures of an origin are forgotten [`FORGOTTEN_NS`] after the last one.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use clearway_base::sync::{Mutex, sleep};
use clearway_base::waits::{Object, WaitEvent, in_wait, now_ns};

use crate::origins::origin;

/// The most origins that are remembered.
const ORIGINS_MAX: usize = 10_000;
/// The most roles that are remembered of each.
const ROLES_MAX: usize = 16;
/// After the first failure the next attempt waits for so long, after each further one twice as long,
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// and never longer than this.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The time after the last failure of an origin until all its failures are forgotten.
const FORGOTTEN_NS: u64 = 600_000_000_000;

/// What has failed from one origin.
#[derive(Default)]
struct Failed {
    count: u32,
    last_ns: u64,
    /// The part of `count` that belongs to a role, by the hash of its name.
    by_role: Vec<(u64, u32)>,
}

/// Who has failed how often.
pub struct Failures {
    origins: Mutex<HashMap<Option<IpAddr>, Failed>>,
    hasher: RandomState,
}

impl Default for Failures {
    fn default() -> Self {
        Failures { origins: Mutex::new("server/failed_logins", HashMap::new()), hasher: RandomState::new() }
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
        let failures = self.count(from, now_ns());
        if failures > 0 {
            in_wait(WaitEvent::RetryDelay, Object::NONE, sleep(wait_after(failures))).await;
        }
    }

    fn count(&self, from: Option<IpAddr>, now_ns: u64) -> u32 {
        let origins = self.origins.lock();
        let known = origins.get(&from.map(origin));
        known.filter(|known| now_ns.saturating_sub(known.last_ns) < FORGOTTEN_NS).map_or(0, |known| known.count)
    }

    /// Notes a failure.
    pub fn failed(&self, from: Option<IpAddr>, role: &str) {
        self.failed_at(from, role, now_ns());
    }

    fn failed_at(&self, from: Option<IpAddr>, role: &str, now_ns: u64) {
        let role = self.hasher.hash_one(role);
        let mut origins = self.origins.lock();
        if origins.len() >= ORIGINS_MAX {
            origins.clear(); // FAIL-1
        }
        let known = origins.entry(from.map(origin)).or_default();
        if now_ns.saturating_sub(known.last_ns) >= FORGOTTEN_NS {
            *known = Failed::default();
        }
        (known.count, known.last_ns) = (known.count.saturating_add(1), now_ns);
        match known.by_role.iter().position(|(other, _)| *other == role) {
            Some(at) => known.by_role[at].1 = known.by_role[at].1.saturating_add(1),
            None if known.by_role.len() < ROLES_MAX => known.by_role.push((role, 1)),
            None => {}
        }
    }

    /// A client at this address has proven that it is this role (FAIL-3).
    pub fn succeeded(&self, from: Option<IpAddr>, role: &str) {
        let role = self.hasher.hash_one(role);
        let mut origins = self.origins.lock();
        let Some(known) = origins.get_mut(&from.map(origin)) else { return };
        if let Some(at) = known.by_role.iter().position(|(other, _)| *other == role) {
            let (_, count) = known.by_role.swap_remove(at);
            known.count = known.count.saturating_sub(count);
        }
        if known.count == 0 {
            origins.remove(&from.map(origin));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    /// FAIL-1
    #[test]
    fn waits_grow_to_a_limit_and_the_account_is_bounded() {
        let all: Vec<u128> = [0, 1, 2, 5, 7, u32::MAX].into_iter().map(|n| wait_after(n).as_millis()).collect();
        assert_eq!(all, [0, 100, 200, 1600, 5000, 5000]);
        let failures = Failures::default();
        for n in 0..ORIGINS_MAX as u32 + 5 {
            let address = IpAddr::from(std::net::Ipv4Addr::from(0x0a00_0000 + n));
            failures.failed(Some(address), "postgres");
        }
        assert!(failures.origins.lock().len() <= ORIGINS_MAX);
        for n in 0..ROLES_MAX + 5 {
            failures.failed(at("::1"), &n.to_string());
        }
        assert_eq!(failures.origins.lock()[&at("::")].by_role.len(), ROLES_MAX);
        assert_eq!(failures.count(at("::1"), now_ns()), ROLES_MAX as u32 + 5);
    }

    #[test]
    fn addresses_of_one_network_share_their_failures() {
        let failures = Failures::default();
        for n in 1..=5 {
            failures.failed(at(&format!("2001:db8::{n}")), "postgres");
        }
        assert_eq!(failures.count(at("2001:db8::ffff"), now_ns()), 5);
        assert_eq!(failures.count(at("2001:db8:0:1::1"), now_ns()), 0);
    }

    /// FAIL-3
    #[test]
    fn a_login_forgives_its_own_failures_alone_and_time_forgives_all() {
        let failures = Failures::default();
        let (here, now) = (at("10.0.0.1"), 1);
        for _ in 0..3 {
            failures.failed_at(here, "postgres", now);
            failures.succeeded(here, "own");
        }
        failures.failed_at(here, "own", now);
        assert_eq!(failures.count(here, now), 4);
        failures.succeeded(here, "own");
        assert_eq!(failures.count(here, now), 3);
        assert_eq!(failures.count(here, now + FORGOTTEN_NS), 0);
        failures.failed_at(here, "own", now + FORGOTTEN_NS);
        assert_eq!(failures.count(here, now + FORGOTTEN_NS), 1);
        failures.succeeded(here, "own");
        assert!(failures.origins.lock().is_empty());
    }
}
