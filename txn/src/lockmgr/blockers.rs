//! The sessions that block a waiting session, as PostgreSQL counts them.
//!
//! Holders of a conflicting mode come first (hard blockers), then waiters ahead for a conflicting mode (soft blockers). Rows are reported in
//! PostgreSQL's terms: the first waiter holds the tuple's lock and waits for the end of one transaction; a request that conflicts with
//! that waiter waits for the tuple. Those behind the first place at a key are told to wait for the transaction for which its holder waits (TXN-15).

use std::sync::Arc;

use super::LockManager;
use super::history::Culprit;
use super::modes::{LockMode, ModeSet};
use super::owner::Owner;
use super::queue::{Holder, Lock};
use super::tag::LockTag;
use super::wait::Waiter;

/// A session that blocks another session.
#[derive(Clone, Debug)]
pub struct Blocker {
    /// Its session.
    pub pid: i32,
    /// What it holds; empty for a waiter that only stands ahead.
    pub modes: ModeSet,
    /// The statement that took what it holds.
    pub statement: Option<Arc<str>>,
}

/// A wait and its blockers.
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// What is wanted.
    pub tag: LockTag,
    /// How.
    pub mode: LockMode,
    /// Since when, by the clock of wait events.
    pub since_ns: u64,
    /// Holders first.
    pub blockers: Vec<Blocker>,
}

impl Blocker {
    fn holder(owner: &Owner, tag: &LockTag, modes: ModeSet) -> Blocker {
        Blocker { pid: owner.pid(), modes, statement: owner.held().statement_of(tag) }
    }

    fn in_turn(before: &Culprit) -> Blocker {
        Blocker { pid: before.pid(), modes: before.holds(), statement: before.taken_by() }
    }

    fn ahead(waiter: &Waiter) -> Blocker {
        Blocker { pid: waiter.owner.pid(), modes: ModeSet::EMPTY, statement: None }
    }
}

impl LockManager {
    /// The sessions that directly block this session: `pg_blocking_pids`.
    pub fn blockers(&self, pid: i32) -> Vec<i32> {
        self.obstacle(pid).map_or_else(Vec::new, |o| o.blockers.iter().map(|b| b.pid).collect())
    }

    /// What a session waits for; `None` if it doesn't wait. A request that steps aside has waited since its first round. Locks one
    /// shard, and for a request that has stepped aside each owner in turn.
    pub fn obstacle(&self, pid: i32) -> Option<Obstacle> {
        let owner = self.owners().into_iter().find(|o| o.pid() == pid)?;
        let Some(waiter) = owner.waiting.lock().clone() else {
            let aside = owner.aside.lock().clone()?;
            let blockers = self.holders_anywhere(&owner, &aside.tag, aside.mode);
            return Some(Obstacle { tag: aside.tag, mode: aside.mode, since_ns: aside.since_ns, blockers });
        };
        if waiter.in_turn {
            let blockers = waiter.before.iter().map(Blocker::in_turn).collect();
            return Some(Obstacle { tag: waiter.tag.clone(), mode: waiter.mode, since_ns: waiter.since_ns, blockers });
        }
        let since_ns = owner.aside.lock().as_ref().map_or(waiter.since_ns, |aside| aside.since_ns);
        let shard = self.shard_of(&waiter.tag).lock();
        let lock = shard.locks.get(&waiter.tag)?;
        if !lock.queue.iter().any(|w| Arc::ptr_eq(w, &waiter)) {
            return None;
        }
        if let LockTag::Place { .. } = waiter.tag {
            let first = holders(lock, &waiter).next().map(|first| (first.owner.clone(), first.modes));
            drop(shard);
            let (first, modes) = first?;
            let awaited = first.waiting.lock().as_ref().map(|wait| wait.tag.clone());
            let blocker = Blocker::holder(&first, &waiter.tag, modes);
            let blockers = vec![self.transaction_of(awaited).unwrap_or(blocker)];
            return Some(Obstacle { tag: waiter.tag.clone(), mode: waiter.mode, since_ns, blockers });
        }
        let blockers = match &waiter.tag {
            LockTag::Row { .. } => before_row(lock, &waiter),
            // A waiter for a writer's key waits for that transaction alone.
            LockTag::UniqueKey { .. } => oldest_holder(lock, &waiter).into_iter().collect(),
            _ => {
                let conflicts = waiter.mode.conflicts();
                let ahead = lock.queue.iter().take_while(|w| !Arc::ptr_eq(w, &waiter));
                let ahead = ahead.filter(|w| conflicts.contains(w.mode)).map(|w| Blocker::ahead(w));
                let mut all: Vec<Blocker> =
                    holders(lock, &waiter).map(|h| Blocker::holder(&h.owner, &waiter.tag, h.modes)).collect();
                all.extend(ahead.filter(|a| !all.iter().any(|h| h.pid == a.pid)).collect::<Vec<_>>());
                all
            }
        };
        Some(Obstacle { tag: waiter.tag.clone(), mode: waiter.mode, since_ns, blockers })
    }

    /// The transaction whose end is awaited, if that is what is.
    fn transaction_of(&self, awaited: Option<LockTag>) -> Option<Blocker> {
        let tag = awaited?;
        let LockTag::Transaction(txn) = tag else { return None };
        let owner = self.owners().into_iter().find(|owner| owner.txn() == Some(txn))?;
        Some(Blocker::holder(&owner, &tag, ModeSet::EMPTY.with(LockMode::Exclusive)))
    }

    /// The holders of a conflicting mode in the lock table. After a refused request they all stand there, weak holders of a relation
    /// included (LKM-3).
    pub fn holders_against(&self, pid: i32, tag: &LockTag, mode: LockMode) -> Vec<Blocker> {
        let shard = self.shard_of(tag).lock();
        let holders = shard.locks.get(tag).map_or(&[][..], |lock| &lock.holders);
        let against = holders.iter().filter(|h| h.owner.pid() != pid && mode.conflicts().meets(h.modes));
        against.map(|h| Blocker::holder(&h.owner, tag, h.modes)).collect()
    }

    /// The holders of a conflicting mode, in the lock table or not; reads every session's list.
    fn holders_anywhere(&self, owner: &Owner, tag: &LockTag, mode: LockMode) -> Vec<Blocker> {
        let others = self.owners().into_iter().filter(|o| o.id != owner.id);
        let holds = others.filter_map(|o| {
            let modes = o.held().modes_of(tag);
            mode.conflicts().meets(modes).then(|| Blocker::holder(&o, tag, modes))
        });
        holds.collect()
    }
}

fn holders<'l>(lock: &'l Lock, waiter: &'l Waiter) -> impl Iterator<Item = &'l Holder> {
    let conflicts = waiter.mode.conflicts();
    lock.holders.iter().filter(move |h| h.owner.id != waiter.owner.id && conflicts.meets(h.modes))
}

/// PostgreSQL waits for the holders of a row one after the other, by their ids; those that came while the waiter waited come last.
fn oldest_holder(lock: &Lock, waiter: &Waiter) -> Option<Blocker> {
    let came_later = |owner: &Owner| {
        let held = owner.held();
        held.locks.get(&waiter.tag).is_some_and(|held| held.since_ns > waiter.since_ns)
    };
    let place = |h: &&Holder| (came_later(&h.owner), h.owner.txn().map_or(u64::MAX, |txn| txn.0));
    let oldest = holders(lock, waiter).min_by_key(place)?;
    Some(Blocker::holder(&oldest.owner, &waiter.tag, oldest.modes))
}

/// The blockers of a waiter for a row. In PostgreSQL's terms the waiter with the tuple's lock waits for a holder of the row; the others wait
/// for waiters ahead of them.
fn before_row(lock: &Lock, waiter: &Waiter) -> Vec<Blocker> {
    let (mut at_tuple, mut behind): (Vec<&Waiter>, Vec<&Waiter>) = (Vec::new(), Vec::new());
    // A transaction that has the row in another mode already waits for the other holders, not for the tuple.
    let waits_for_tuple = |w: &Waiter| lock.held_by(&w.owner).is_empty();
    let ahead = if waits_for_tuple(waiter) { lock.queue.iter() } else { Default::default() };
    for ahead in ahead.filter(|w| waits_for_tuple(w)) {
        let conflicts = ahead.mode.conflicts();
        let first = !at_tuple.iter().chain(&behind).any(|w| conflicts.contains(w.mode));
        if std::ptr::eq(&raw const **ahead, waiter) {
            if first {
                break;
            }
            let stand = at_tuple.iter().chain(&behind).filter(|w| conflicts.contains(w.mode));
            return stand.map(|w| Blocker::ahead(w)).collect();
        }
        match first {
            true => at_tuple.push(ahead),
            false => behind.push(ahead),
        }
    }
    match oldest_holder(lock, waiter) {
        Some(holder) => vec![holder],
        // The waiter is about to be granted, or the deadlock search has put another waiter ahead of it.
        None => at_tuple.iter().chain(&behind).map(|w| Blocker::ahead(w)).collect(),
    }
}
