//! The view of all locks held or awaited. It is read from the owners' own lists, one owner
//! at a time, so it takes no mutex of the lock table.

use std::sync::Arc;

use clearway_storage::ids::TxnId;

use super::LockManager;
use super::modes::{LockMode, ModeSet};
use super::owner::{Owner, Taker};
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
    /// Whether the lock stands only in the session's own list.
    pub fastpath: bool,
    /// When it was first taken or, for a wait, when that began; nanoseconds by the clock of wait events.
    pub since_ns: u64,
    /// The statement that took it; `None` for a wait.
    pub statement: Option<Arc<str>>,
    /// How many statements ago that was.
    pub ago: u32,
}

impl LockManager {
    /// Every lock held or awaited. Each session is shown as of one moment; two sessions may be shown as of different moments.
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
        let held = owner.held();
        let row = |tag: &LockTag, mode, fastpath, since_ns, taker: &Option<Taker>| LockRow {
            pid: owner.pid(),
            virtual_id: owner.virtual_id(),
            txn: held.txn,
            tag: tag.clone(),
            mode,
            granted: true,
            fastpath,
            since_ns,
            statement: taker.as_ref().map(|taker| taker.text.clone()),
            ago: taker.as_ref().map_or(0, |taker| held.number.saturating_sub(taker.number)),
        };
        for fast in &held.fast {
            let tag = LockTag::Relation { database: fast.database, relation: fast.relation };
            rows.extend(fast.modes.iter().map(|m| row(&tag, m, true, fast.since_ns, &fast.statement)));
        }
        for (tag, lock) in &held.locks {
            rows.extend(lock.modes().iter().map(|m| row(tag, m, false, lock.since_ns, &lock.statement)));
        }
        let wait = match (&waiting, &aside) {
            (Some(waiter), aside) if waiter.is_queued() => {
                // A request that steps aside has waited since its first round, not since it entered the queue again.
                let since_ns = aside.as_ref().map_or(waiter.since_ns, |a| a.since_ns);
                Some(row(&waiter.tag, waiter.mode, false, since_ns, &None))
            }
            (None, Some(aside)) => Some(row(&aside.tag, aside.mode, false, aside.since_ns, &None)),
            _ => None,
        };
        rows.extend(wait.map(|wait| LockRow { granted: false, ..wait }));
    }

    /// The first `count` requests in the queue of a lock, first in line first.
    pub fn queue_of(&self, tag: &LockTag, count: usize) -> Vec<(i32, LockMode)> {
        let shard = self.shard_of(tag).lock();
        let Some(lock) = shard.locks.get(tag) else {
            return Vec::new();
        };
        lock.queue.iter().take(count).map(|w| (w.owner.pid(), w.mode)).collect()
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
