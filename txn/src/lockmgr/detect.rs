//! The search for a deadlock at the start of a wait, and the background scan that finds a deadlock which that search has missed.
//!
//! # Structure
//! ```text
//! collect: outward from the waiter, one shard at a time ──► WaitGraph ──► judge ──► act: the shards of the cycle, in order
//! ```
//! No latch covers the whole graph, so the copy may be stale when it is judged: `act` verifies the edges under the mutexes of the
//! shards concerned and starts over if an edge is gone. The copy may also lack an edge that was added later. Then the search of the wait
//! that added the edge finds the cycle, since that wait was published before its search (LKM-4).
//!
//! Cost: one mutex per lock reached and one per owner met there. In a lock with thousands of holders each holder is examined, at some
//! 30 ns apiece; the search follows only holders that conflict with a waiter of the queue.
//!
//! # Invariants
//! - DET-1: the background scan searches from the holders that wait, of each lock that others wait for: every cycle goes through one. (A session waits
//!   in one queue, and within a queue each waits for those ahead; so a cycle leaves a queue through a holder.) Thousands of sessions that wait for
//!   one row cost the scan one look at that row's lock. It does not look at `blocking`, on which the search at the start of a wait relies.
//!
//! # Latch order
//! shard (ascending by index) -> owner.held, owner.waiting

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use clearway_base::waits::clock;

use super::deadlock::{Edge, LockQueue, Verdict, WaitGraph};
use super::history::Facts;
use super::modes::ModeSet;
use super::owner::Owner;
use super::report::{DeadlockReport, Participant};
use super::tag::LockTag;
use super::wait::Waiter;
use super::{Lock, LockManager, Shard};

/// A copy of what the waiter can reach, and how to find it again.
struct Collected {
    graph: WaitGraph,
    tags: Vec<LockTag>,
    versions: Vec<u64>,
    owners: HashMap<u32, Arc<Owner>>,
}

/// After so many retries, each because the graph had changed, the search leaves the rest to the background scan. Each retry means that
/// another session made progress.
const RETRIES_MAX: usize = 100;

/// The holders that conflict with a waiter in the queue.
fn in_the_way(lock: &Lock) -> Vec<Arc<Owner>> {
    let wanted = lock.queue.modes().iter().fold(ModeSet::EMPTY, |set, mode| set.union(mode.conflicts()));
    lock.holders.iter().filter(|h| h.modes.meets(wanted)).map(|h| h.owner.clone()).collect()
}

impl LockManager {
    /// Looks for a cycle through `waiter` and breaks it. `scan`: the background scan calls this.
    pub(super) fn resolve_deadlock(&self, waiter: &Arc<Waiter>, scan: bool) {
        self.archive.count_search();
        for _ in 0..RETRIES_MAX {
            let collected = self.collect(waiter);
            let verdict = collected.graph.judge(waiter.owner.id);
            let settled = match &verdict {
                Verdict::NoCycle => return,
                Verdict::Hard(cycle) => self.kill(waiter, &collected, cycle, scan),
                Verdict::Reorder(orders) => self.reorder(waiter, &collected, orders),
            };
            if settled {
                if scan {
                    self.archive.count_missed();
                }
                return;
            }
            if !waiter.is_queued() {
                return;
            }
        }
    }

    /// Searches from the holders that wait for at least `older_than_ns` (DET-1). A safety net: a cycle found here was missed by the search
    /// at the start of a wait, and `Archive::missed_by_fast_path` counts it.
    pub fn background_scan(&self, older_than_ns: u64) {
        let now = clock::now_ns();
        self.look_at_waits(now);
        let waiting = |owner: &Owner| {
            let waiter = owner.waiting.lock().clone();
            waiter.filter(|w| w.is_queued() && !w.in_turn && now.saturating_sub(w.since_ns) >= older_than_ns)
        };
        let waited_for: HashSet<LockTag> =
            self.owners().iter().filter_map(|owner| waiting(owner)).map(|waiter| waiter.tag.clone()).collect();
        let holders = waited_for.iter().flat_map(|tag| {
            let shard = self.shard_of(tag).lock();
            shard.locks.get(tag).map_or_else(Vec::new, in_the_way)
        });
        let holders: BTreeMap<u32, Arc<Owner>> = holders.map(|owner| (owner.id, owner)).collect();
        for waiter in holders.values().filter_map(|owner| waiting(owner)) {
            self.resolve_deadlock(&waiter, true);
        }
    }

    fn collect(&self, start: &Waiter) -> Collected {
        let mut found =
            Collected { graph: WaitGraph::default(), tags: Vec::new(), versions: Vec::new(), owners: HashMap::new() };
        let mut reached: BTreeSet<u32> = BTreeSet::from([start.owner.id]);
        let mut seen: HashSet<LockTag> = HashSet::new();
        let mut todo = vec![start.tag.clone()];
        while let Some(tag) = todo.pop() {
            if !seen.insert(tag.clone()) {
                continue;
            }
            for owner in self.copy_queue(&tag, &mut found) {
                if reached.insert(owner.id) {
                    let waiting = owner.waiting.lock().clone();
                    if let Some(waiter) = waiting {
                        todo.push(waiter.tag.clone());
                    }
                }
            }
        }
        found
    }

    /// Copies one queue and lists the holders that conflict with a waiter in it.
    fn copy_queue(&self, tag: &LockTag, found: &mut Collected) -> Vec<Arc<Owner>> {
        let shard = self.shard_of(tag).lock();
        let Some(lock) = shard.locks.get(tag) else {
            return Vec::new();
        };
        let against = in_the_way(lock);
        found.graph.add(LockQueue {
            granted: lock.holders.iter().map(|h| (h.owner.id, h.modes)).collect(),
            waiters: lock.queue.iter().map(|w| (w.owner.id, w.mode)).collect(),
        });
        found.tags.push(tag.clone());
        found.versions.push(lock.version);
        for owner in lock.holders.iter().map(|h| &h.owner).chain(lock.queue.iter().map(|w| &w.owner)) {
            found.owners.insert(owner.id, owner.clone());
        }
        against
    }

    /// Cancels the victim, if the cycle still exists.
    fn kill(&self, victim: &Arc<Waiter>, collected: &Collected, cycle: &[Edge], scan: bool) -> bool {
        assert!(
            cycle.iter().zip(cycle.iter().cycle().skip(1)).all(|(edge, next)| edge.hard && edge.blocker == next.waiter),
            "LKM-4: a cycle of hard edges comes back to its beginning: {cycle:?}"
        );
        let tags: Vec<&LockTag> = cycle.iter().map(|e| &collected.tags[e.lock]).collect();
        // The witness takes mutexes of the layers above: it is asked before any of ours is held. If the cycle stands no more, the report is dropped.
        let mut report = self.report(victim, collected, cycle, scan);
        if let Some(witness) = self.history.witness() {
            report.participants.iter_mut().for_each(|p| p.facts = witness.facts(p.pid));
            report.context = witness.context(&report);
        }
        let mut shards = self.lock_shards(&tags);
        let standing = cycle.iter().zip(&tags).all(|(edge, tag)| {
            let Some(lock) = self.shard_in(&mut shards, tag).locks.get(*tag) else {
                return false;
            };
            let Some(waiter) = lock.queue.iter().find(|w| w.owner.id == edge.waiter) else {
                return false;
            };
            lock.holders.iter().any(|h| h.owner.id == edge.blocker && waiter.mode.conflicts().meets(h.modes))
        });
        if !standing || !victim.is_queued() {
            return false;
        }
        report.number = self.archive.next_number();
        let report = Arc::new(report);
        let shard = self.shard_in(&mut shards, &victim.tag);
        let mut wake = Vec::new();
        if let Some(lock) = shard.locks.get_mut(&victim.tag) {
            lock.queue.leave(victim);
            lock.version += 1;
            victim.killed(report.clone());
            wake = self.admit(lock);
        }
        drop(shards);
        self.archive.keep(report.clone());
        self.history.deadlock(&report);
        victim.wake();
        wake.iter().for_each(|w| w.wake());
        true
    }

    /// Gives the queues their new orders, if they have not changed since they were copied.
    fn reorder(&self, start: &Waiter, collected: &Collected, orders: &[(usize, Vec<u32>)]) -> bool {
        let tags: Vec<&LockTag> = collected.tags.iter().collect();
        let mut shards = self.lock_shards(&tags);
        let same = collected.tags.iter().zip(&collected.versions).all(|(tag, version)| {
            self.shard_in(&mut shards, tag).locks.get(tag).is_some_and(|l| l.version == *version)
        });
        if !same || !start.is_queued() {
            return false;
        }
        let mut wake = Vec::new();
        for (index, order) in orders {
            let tag = &collected.tags[*index];
            if let Some(lock) = self.shard_in(&mut shards, tag).locks.get_mut(tag) {
                let place: HashMap<u32, usize> = order.iter().enumerate().map(|(i, o)| (*o, i)).collect();
                lock.queue.sort_by_key(|w| place.get(&w.owner.id).copied().unwrap_or(usize::MAX));
                lock.version += 1;
                wake.extend(self.admit(lock));
            }
        }
        drop(shards);
        self.archive.count_reordered();
        wake.iter().for_each(|w| w.wake());
        true
    }

    /// What is known of a deadlock before it is broken; it has no number yet.
    fn report(&self, victim: &Waiter, collected: &Collected, cycle: &[Edge], scan: bool) -> DeadlockReport {
        let now = clock::now_ns();
        let participants = (0..cycle.len()).filter_map(|i| {
            let (edge, before) = (&cycle[i], &cycle[(i + cycle.len() - 1) % cycle.len()]);
            let owner = collected.owners.get(&edge.waiter)?;
            let waiting = owner.waiting.lock().clone();
            let held_tag = &collected.tags[before.lock];
            let held = owner.held();
            let lock = held.locks.get(held_tag);
            Some(Participant {
                pid: owner.pid(),
                virtual_id: owner.virtual_id(),
                txn: held.txn,
                wanted: collected.tags[edge.lock].clone(),
                mode: collected.graph.lock(edge.lock).waiters.iter().find(|(n, _)| *n == edge.waiter)?.1,
                waited_ns: waiting.map_or(0, |w| now.saturating_sub(w.since_ns)),
                held: held_tag.clone(),
                held_modes: lock.map_or(ModeSet::EMPTY, |l| l.modes()),
                held_by_statement: lock.and_then(|l| l.statement.as_ref()).map(|taker| taker.text.clone()),
                statements: held.statements(),
                facts: Facts::default(),
            })
        });
        DeadlockReport {
            number: 0,
            at_us: clock::wall_us(),
            found_in_ns: now.saturating_sub(victim.since_ns),
            by_background_scan: scan,
            participants: participants.collect(),
            context: String::new(),
        }
    }

    /// Locks the shards of these tags in ascending order.
    fn lock_shards(&self, tags: &[&LockTag]) -> HashMap<usize, super::ShardGuard<'_>> {
        let indexes: BTreeSet<usize> = tags.iter().map(|t| self.shard_index(t)).collect();
        indexes.into_iter().map(|i| (i, self.shards[i].lock())).collect()
    }

    fn shard_in<'g>(&self, shards: &'g mut HashMap<usize, super::ShardGuard<'_>>, tag: &LockTag) -> &'g mut Shard {
        shards.get_mut(&self.shard_index(tag)).expect("the shard of every tag concerned was locked")
    }
}
