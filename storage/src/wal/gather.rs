//! Gathering: before a flush, its task waits for the committers that the last flush has released, so that one sync carries them all.
//!
//! Threads that commit again and again otherwise form two groups: while a flush carries one of them the other one enters its records, and the
//! next flush begins for that one alone. Each sync then carries half of the commits that it could. PostgreSQL's answer is a fixed
//! delay (`commit_delay`), MariaDB's and MySQL's a number of committers or of microseconds (`binlog_group_commit_sync_delay`); here the wait is a
//! part of what a sync takes.
//!
//! # Structure
//! Only waits of threads that perform their own I/O are counted (an embedded program's threads). [`Arrivals`] counts them and wakes the
//! task that gathers; [`Rhythm`] is a part of the flush state and says how many the next flush waits for, and until when.
//!
//! # Invariants
//! - WAL-24: a flush waits for as many committers as took part in the last one or have come since, and begins when they have. So a thread that commits
//!   alone never waits for another.
//! - WAL-25: a flush begins at the latest when after the end of the last one half the time has passed that a flush takes, at most [`WAIT_MAX_NS`],
//!   except for the lateness of the system's timers; where half of that time is below [`WAIT_MIN_NS`], a flush waits for none. A committer that comes
//!   later than that waits for none. After a gathering in vain the next flush gathers none, after two in a row the next three, and so on up to
//!   [`SKIP_MAX`]; a complete one halves that.
//! - WAL-26: a committer is counted after its record is appended and wanted, and then reads the goal; the task that gathers stores the goal, then
//!   reads the count. One of the two sees the other.

use clearway_base::sync::{Condvar, Mutex};
use clearway_base::waits::{WaitEvent, now_ns};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many flushes at most gather none after gatherings in vain: the time that is lost then is below a hundredth.
const SKIP_MAX: u32 = 127;
/// Where syncs are fast, the processors and not the disk decide how many commits there are: with syncs of 62 us and two processors, sixteen threads
/// had 14 % fewer commits when a flush waited up to the time of a whole one.
const WAIT_MIN_NS: u64 = 50_000;
/// A disk that stands still for a second does not have the next commits wait as long.
const WAIT_MAX_NS: u64 = 5_000_000;

/// The count of the committers, and the task that waits for some of them.
pub(super) struct Arrivals {
    count: AtomicU64,
    /// The count at which the gathering is complete; `u64::MAX`: no task gathers.
    goal: AtomicU64,
    gathering: Mutex<()>,
    complete: Condvar,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals {
            count: AtomicU64::new(0),
            goal: AtomicU64::new(u64::MAX),
            gathering: Mutex::new("storage/wal/gathering", ()),
            complete: Condvar::new(),
        }
    }
}

impl Arrivals {
    /// A committer has come: its record is appended and wanted (WAL-26).
    pub fn come(&self) {
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        if count >= self.goal.load(Ordering::SeqCst) {
            drop(self.gathering.lock());
            self.complete.notify_one();
        }
    }

    /// How many have come since the log was opened.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until `goal` committers have come; false if `deadline_ns` came first. Blocks the thread.
    pub fn gather(&self, goal: u64, deadline_ns: u64) -> bool {
        let mut guard = self.gathering.lock();
        self.goal.store(goal, Ordering::SeqCst);
        let complete = loop {
            if self.count() >= goal {
                break true;
            }
            let left_ns = deadline_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                break false;
            }
            guard = self.complete.wait_timeout(guard, WaitEvent::CommitDelay, left_ns).0;
        };
        self.goal.store(u64::MAX, Ordering::SeqCst);
        complete
    }
}

/// What the task that flushes knows of the flushes before.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    /// The count of committers when the last flush took its records.
    taken: u64,
    /// How many are expected to take part in the next flush.
    expected: u64,
    /// When the last flush ended.
    ended_ns: u64,
    /// How long a flush takes: a moving average.
    took_ns: u64,
    /// How long the next flush may wait, from the end of the last one.
    pub(super) wait_ns: u64,
    /// How many flushes gather none after the next gathering in vain.
    to_skip: u32,
    /// How many flushes still gather none.
    skipping: u32,
}

impl Rhythm {
    /// The count of committers up to which the next flush waits, and until when; none: it begins at once.
    pub fn goal(&mut self, count: u64, now_ns: u64) -> Option<(u64, u64)> {
        let goal = self.taken + self.expected;
        let deadline_ns = self.ended_ns + self.wait_ns;
        if count >= goal || now_ns >= deadline_ns {
            return None; // WAL-24, WAL-25
        }
        if self.skipping > 0 {
            self.skipping -= 1;
            return None;
        }
        Some((goal, deadline_ns))
    }

    /// A gathering has ended: with all that were expected, or in vain.
    pub fn gathered(&mut self, complete: bool) {
        if complete {
            self.to_skip /= 2;
        } else {
            self.skipping = 1 + self.to_skip;
            self.to_skip = (2 * self.to_skip + 1).min(SKIP_MAX - 1);
        }
    }

    /// A flush that took its records when so many committers had come ends now, when `count` have come.
    pub fn ended(&mut self, taken: u64, count: u64, began_ns: u64, now_ns: u64) {
        self.expected = count - self.taken;
        self.taken = taken;
        let took_ns = now_ns.saturating_sub(began_ns);
        self.took_ns = match self.took_ns {
            0 => took_ns,
            // One slow sync says little about the next.
            average => average - average / 8 + took_ns.min(4 * average) / 8,
        };
        self.ended_ns = now_ns;
        // WAL-25
        self.wait_ns = if self.took_ns / 2 < WAIT_MIN_NS { 0 } else { (self.took_ns / 2).min(WAIT_MAX_NS) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_base::testkit::Rng;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// What came of flushes in a model with a clock of its own.
    struct Modelled {
        commits: u64,
        /// Nanoseconds.
        time_ns: u64,
        gathered: u64,
        in_vain: u64,
    }

    /// So many committers enter a record, wait until it is durable, and enter the next after the time that `think_ns` gives; a flush takes
    /// `flush_ns`.
    fn model(committers: usize, flushes: u64, flush_ns: u64, mut think_ns: impl FnMut(usize) -> u64) -> Modelled {
        let mut rhythm = Rhythm::default();
        let mut coming: BinaryHeap<_> = (0..committers).map(|who| Reverse((think_ns(who), who))).collect();
        let (mut waiting, mut count, mut now_ns) = (Vec::new(), 0, 0);
        let mut seen = Modelled { commits: 0, time_ns: 0, gathered: 0, in_vain: 0 };
        // The next committer, if it comes up to that time.
        let next = |coming: &mut BinaryHeap<Reverse<(u64, usize)>>, waiting: &mut Vec<usize>, until_ns| {
            let Reverse((at_ns, who)) = *coming.peek().filter(|Reverse((at_ns, _))| *at_ns <= until_ns)?;
            coming.pop();
            waiting.push(who);
            Some(at_ns)
        };
        for _ in 0..flushes {
            while next(&mut coming, &mut waiting, now_ns).is_some() {
                count += 1;
            }
            if waiting.is_empty() {
                now_ns = next(&mut coming, &mut waiting, u64::MAX).expect("somebody comes");
                count += 1;
            }
            if let Some((goal, deadline_ns)) = rhythm.goal(count, now_ns) {
                assert!(deadline_ns > now_ns && goal > count, "WAL-24, WAL-25");
                seen.gathered += 1;
                while count < goal {
                    let came_ns = next(&mut coming, &mut waiting, deadline_ns);
                    now_ns = came_ns.unwrap_or(deadline_ns);
                    count += u64::from(came_ns.is_some());
                    if came_ns.is_none() {
                        seen.in_vain += 1;
                        break;
                    }
                }
                rhythm.gathered(count >= goal);
            }
            let (taken, began_ns, carried) = (count, now_ns, std::mem::take(&mut waiting));
            now_ns += flush_ns;
            while next(&mut coming, &mut waiting, now_ns).is_some() {
                count += 1;
            }
            rhythm.ended(taken, count, began_ns, now_ns);
            seen.commits += carried.len() as u64;
            coming.extend(carried.into_iter().map(|who| Reverse((now_ns + think_ns(who), who))));
        }
        seen.time_ns = now_ns;
        seen
    }

    /// WAL-24: threads that commit again at once share every flush, although they began in groups.
    #[test]
    fn one_flush_carries_all_that_commit_again_soon() {
        clearway_base::for_each_seed!(20, |seed| {
            let mut rng = Rng::new(seed);
            let seen = model(16, 1000, 200_000, |_| rng.range(5_000..90_000));
            assert!(seen.commits >= 15 * 1000, "{} commits in 1,000 flushes", seen.commits);
        });
    }

    /// WAL-24
    #[test]
    fn a_committer_that_is_alone_never_waits() {
        let mut rng = Rng::new(1);
        let seen = model(1, 1000, 100_000, |_| rng.range(1_000..500_000));
        assert_eq!((seen.commits, seen.gathered), (1000, 0));
    }

    /// WAL-25: where the others do not come back in time, little time is lost with waiting for them.
    #[test]
    fn gatherings_in_vain_become_rare() {
        clearway_base::for_each_seed!(20, |seed| {
            let mut rng = Rng::new(seed);
            // One commits again and again; fifteen work much longer than a flush takes.
            let mut think_ns = |who: usize| if who == 0 { 10_000 } else { rng.range(600_000..6_000_000) };
            let seen = model(16, 10_000, 200_000, &mut think_ns);
            assert!(seen.gathered > 0, "some wait for another");
            let lost = seen.in_vain * 100_000;
            assert!(lost * 20 < seen.time_ns, "{lost} of {} ns lost by {} gatherings", seen.time_ns, seen.in_vain);
        });
    }

    /// WAL-25: a wait ends half a flush after the last one, and after five milliseconds; with fast syncs there is none.
    #[test]
    fn a_wait_is_at_most_half_of_a_flush() {
        let after = |took_ns| {
            let mut rhythm = Rhythm::default();
            rhythm.ended(16, 16, 0, took_ns);
            rhythm.goal(17, took_ns).map(|(goal, deadline_ns)| (goal, deadline_ns - took_ns))
        };
        assert_eq!(after(62_000), None);
        assert_eq!(after(200_000), Some((32, 100_000)));
        assert_eq!(after(1_000_000_000), Some((32, 5_000_000)));
    }
}
