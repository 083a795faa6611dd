//! What the lock manager shows: every lock held or awaited, and who stands in whose way. Read from the owners' own lists, one owner
//! at a time, so that looking takes no mutex of the lock table.

use std::sync::Arc;

use clearway_storage::ids::TxnId;

use super::LockManager;
use super::modes::{LockMode, ModeSet};
use super::owner::Owner;
use super::tag::{LockTag, VirtualId};

/// One lock of one session.
#[derive(Clone, Debug)]
pub struct LockRow {
    /// Its session.
    pub pid: i32,
    /// The session's transaction.
    pub virtual_id: VirtualId,
    /// The transaction's id, where it has one.
    pub txn: Option<TxnId>,
    /// What.
    pub tag: LockTag,
    /// How.
    pub mode: LockMode,
    /// Held, or waited for.
    pub granted: bool,
    /// Whether it stands only in the session's own list.
    pub fastpath: bool,
    /// When it was first taken or, for a wait, when that began; nanoseconds by the clock of wait events.
    pub since_ns: u64,
    /// The statement that took it; `None` for a wait.
    pub statement: Option<Arc<str>>,
}

impl LockManager {
    /// Every lock held or awaited. Each session is shown as it is at one moment, two sessions perhaps at two.
    pub fn locks(&self) -> Vec<LockRow> {
        let mut rows = Vec::new();
        for owner in self.owners() {
            self.locks_of(&owner, &mut rows);
        }
        rows
    }

    fn locks_of(&self, owner: &Owner, rows: &mut Vec<LockRow>) {
        let waiting = owner.waiting.lock().clone();
        let aside = owner.aside.lock().clone();
        let held = owner.held.lock();
        let row = |tag: &LockTag, mode, fastpath, since_ns, statement: &Option<Arc<str>>| LockRow {
            pid: owner.pid(),
            virtual_id: owner.virtual_id(),
            txn: held.txn,
            tag: tag.clone(),
            mode,
            granted: true,
            fastpath,
            since_ns,
            statement: statement.clone(),
        };
        for fast in &held.fast {
            let tag = LockTag::Relation { database: fast.database, relation: fast.relation };
            rows.extend(fast.modes.iter().map(|m| row(&tag, m, true, fast.since_ns, &fast.statement)));
        }
        for (tag, lock) in &held.locks {
            rows.extend(lock.modes().iter().map(|m| row(tag, m, false, lock.since_ns, &lock.statement)));
        }
        if let Some(waiter) = waiting.filter(|w| w.is_queued()) {
            let mut wait = row(&waiter.tag, waiter.mode, false, waiter.since_ns, &None);
            wait.granted = false;
            rows.push(wait);
        } else if let Some(aside) = aside {
            let mut wait = row(&aside.tag, aside.mode, false, aside.since_ns, &None);
            wait.granted = false;
            rows.push(wait);
        }
    }

    /// The sessions that stand in the way of this one: holders of a conflicting mode and, as `pg_blocking_pids` counts them, those who
    /// wait ahead of it for one. Locks one shard.
    pub fn blockers(&self, pid: i32) -> Vec<i32> {
        let Some(owner) = self.owners().into_iter().find(|o| o.pid() == pid) else {
            return Vec::new();
        };
        let Some(waiter) = owner.waiting.lock().clone() else {
            return self.blockers_of_aside(&owner);
        };
        let shard = self.shard_of(&waiter.tag).lock();
        let Some(lock) = shard.locks.get(&waiter.tag) else {
            return Vec::new();
        };
        let conflicts: ModeSet = waiter.mode.conflicts();
        let holders =
            lock.holders.iter().filter(|h| h.owner.id != owner.id && conflicts.meets(h.modes)).map(|h| h.owner.pid());
        let ahead = lock.queue.iter().take_while(|w| !Arc::ptr_eq(w, &waiter));
        let mut pids: Vec<i32> =
            holders.chain(ahead.filter(|w| conflicts.contains(w.mode)).map(|w| w.owner.pid())).collect();
        pids.sort_unstable();
        pids.dedup();
        if lock.queue.iter().any(|w| Arc::ptr_eq(w, &waiter)) { pids } else { Vec::new() }
    }

    /// Who holds what a request that has stepped aside waits for.
    fn blockers_of_aside(&self, owner: &Owner) -> Vec<i32> {
        let Some(aside) = owner.aside.lock().clone() else {
            return Vec::new();
        };
        let others = self.owners().into_iter().filter(|o| o.id != owner.id);
        let holds = |o: &Arc<Owner>| o.held.lock().modes_of(&aside.tag).meets(aside.mode.conflicts());
        others.filter(holds).map(|o| o.pid()).collect()
    }

    /// The queue of a lock, first in line first.
    pub fn queue_of(&self, tag: &LockTag) -> Vec<(i32, LockMode)> {
        let shard = self.shard_of(tag).lock();
        let Some(lock) = shard.locks.get(tag) else {
            return Vec::new();
        };
        lock.queue.iter().map(|w| (w.owner.pid(), w.mode)).collect()
    }

    /// The holders of a lock that the lock table knows.
    pub fn holders_of(&self, tag: &LockTag) -> Vec<(Arc<Owner>, ModeSet)> {
        let shard = self.shard_of(tag).lock();
        let Some(lock) = shard.locks.get(tag) else {
            return Vec::new();
        };
        lock.holders.iter().map(|h| (h.owner.clone(), h.modes)).collect()
    }
}
