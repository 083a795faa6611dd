//! The release of locks: at a commit, at the end of a transaction or session, by a rollback to a savepoint, or one at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use clearway_base::breath;
use clearway_storage::ids::{Lsn, TreeId};

use super::LockManager;
use super::modes::{LockMode, ModeSet};
use super::owner::{self, LockMark, Owner};
use super::tag::LockTag;
use crate::mutation::{self, Mutation};

impl LockManager {
    /// Takes back the announcements of strong modes that were released (LKM-3).
    fn retract(&self, tag: &LockTag, before: ModeSet, kept: ModeSet) {
        let LockTag::Relation { database, relation } = *tag else {
            return;
        };
        for _ in before.iter().filter(|m| m.is_strong_table_mode() && !kept.contains(*m)) {
            let before = self.strong_count(database, relation).fetch_sub(1, Ordering::SeqCst);
            assert!(before > 0, "LKM-3: a strong mode is announced once, and taken back once");
        }
    }

    /// Releases the locks of a transaction whose commit record is in the log buffer; the next holders depend on `commit_lsn`.
    /// Advisory locks stay until `release_transaction`: they protect something outside the database, where no reader waits for durability.
    pub fn release_early(&self, owner: &Arc<Owner>, commit_lsn: Lsn) {
        self.release(owner, commit_lsn, |tag| !matches!(tag, LockTag::Advisory { .. }));
    }

    /// Releases all locks that a transaction still holds after it has ended, durably if it committed. The next holders depend on
    /// `commit_lsn` (zero after an abort).
    pub fn release_transaction(&self, owner: &Arc<Owner>, commit_lsn: Lsn) {
        self.release(owner, commit_lsn, |_| true);
    }

    fn release(&self, owner: &Arc<Owner>, commit_lsn: Lsn, which: impl Fn(&LockTag) -> bool) {
        let released = {
            let mut held = owner.held();
            held.txn = None;
            held.release_fast();
            if held.locks.is_empty() {
                // The next transaction uses the list again.
                held.trail.clear();
                // Without locks in the table no session waits behind it; most have had no waiter.
                if owner.blocking.load(Ordering::Relaxed) {
                    owner.blocking.store(false, Ordering::SeqCst);
                }
                return;
            }
            let trail = held.take_trail();
            // In the order in which the locks were taken, so that every simulated run wakes waiters in the same order.
            let (gone, left): (Vec<_>, Vec<_>) = trail.into_iter().partition(|step| which(&step.tag));
            held.trail = left;
            gone.into_iter().map(|step| step.tag).filter(|tag| held.locks.contains_key(tag)).collect::<Vec<LockTag>>()
        };
        for tag in &released {
            breath::step_on(breath::ROW); // BRE-1: a transaction may have taken any number of locks
            self.release_where(owner, tag, commit_lsn, |lock| lock.txn = ModeSet::EMPTY);
        }
        owner.blocking.store(!owner.held().locks.is_empty(), Ordering::SeqCst);
    }

    /// Whether a session holds a lock on a row in a mode, by the lock table.
    pub fn holds_row(&self, owner: &Owner, tree: TreeId, key: &[u8], mode: LockMode) -> bool {
        let tag = LockTag::Row { tree, key: key.into() };
        owner.held().locks.get(&tag).is_some_and(|lock| lock.modes().contains(mode))
    }

    /// Whether the lock table has a row: a transaction has locked it, or waits for it.
    pub fn knows_row(&self, tree: TreeId, key: &[u8]) -> bool {
        let tag = LockTag::Row { tree, key: key.into() };
        self.shard_of(&tag).lock().locks.contains_key(&tag)
    }

    /// Whether a session other than this one holds a lock on a row that conflicts with a mode, by the lock table.
    pub fn is_taken(&self, owner: &Owner, (tree, key): (TreeId, &Arc<[u8]>), mode: LockMode) -> bool {
        let tag = LockTag::Row { tree, key: key.clone() };
        self.shard_of(&tag).lock().locks.get(&tag).is_some_and(|lock| lock.conflicts_with_holders(owner, mode))
    }

    /// Whether the transaction holds what `release_early` leaves until its commit is durable.
    pub fn holds_until_durable(&self, owner: &Owner) -> bool {
        let held = owner.held();
        held.locks.iter().any(|(tag, lock)| matches!(tag, LockTag::Advisory { .. }) && !lock.txn.is_empty())
    }

    /// Whether anything taken for the transaction is still held.
    pub fn holds_for_transaction(&self, owner: &Owner) -> bool {
        owner.held().locks.values().any(|lock| !lock.txn.is_empty())
    }

    /// Releases the session-level locks of a session that ends.
    pub fn release_session(&self, owner: &Arc<Owner>) {
        let tags: Vec<LockTag> = {
            let held = owner.held();
            let mut tags: Vec<LockTag> =
                held.locks.iter().filter(|(_, l)| !l.session.is_empty()).map(|(t, _)| t.clone()).collect();
            tags.sort_unstable();
            tags
        };
        for tag in &tags {
            breath::step_on(breath::ROW);
            self.release_where(owner, tag, Lsn::ZERO, |lock| lock.session.clear());
        }
    }

    /// Releases one acquisition at session level (`pg_advisory_unlock`). False if there was none.
    pub fn release_one(&self, owner: &Arc<Owner>, tag: &LockTag, mode: LockMode) -> bool {
        let mut found = false;
        self.release_where(owner, tag, Lsn::ZERO, |lock| {
            if let Some(at) = lock.session.iter().position(|(m, _)| *m == mode) {
                found = true;
                assert!(lock.session[at].1 > 0, "LKM-2: a lock of a session is counted");
                lock.session[at].1 -= 1;
                if lock.session[at].1 == 0 {
                    lock.session.remove(at);
                }
            }
        });
        found
    }

    /// Releases the locks that the transaction has taken since a savepoint, latest first.
    pub fn release_to(&self, owner: &Arc<Owner>, mark: LockMark) {
        let steps = {
            let mut held = owner.held();
            let from = mark.trail.min(held.trail.len());
            let since = held.trail.split_off(from);
            // LKM-11
            let stays = |step: &owner::Step| {
                if matches!(step.tag, LockTag::VirtualTransaction(_)) {
                    return true;
                }
                let stands = step.change.is_some_and(|change| change < mark.changes);
                stands && !mutation::active(Mutation::SavepointGivesLocks)
            };
            let (stay, gone): (Vec<_>, Vec<_>) = since.into_iter().partition(stays);
            held.trail.extend(stay);
            gone
        };
        for step in steps.into_iter().rev() {
            breath::step_on(breath::ROW);
            let fast = {
                let mut held = owner.held();
                forget_fast(&mut held, &step.tag, step.mode)
            };
            if !fast {
                self.release_where(owner, &step.tag, Lsn::ZERO, |lock| lock.txn = lock.txn.without(step.mode));
            }
        }
    }

    /// Changes the modes that `owner` holds of one lock, and grants the lock to the next waiters.
    fn release_where(&self, owner: &Arc<Owner>, tag: &LockTag, lsn: Lsn, change: impl FnOnce(&mut owner::HeldLock)) {
        let mut guard = self.shard_of(tag).lock();
        let (before, kept) = {
            let mut held = owner.held();
            let Some(lock) = held.locks.get_mut(tag) else {
                return;
            };
            let before = lock.modes();
            change(lock);
            let kept = lock.modes();
            if kept.is_empty() {
                held.locks.remove(tag);
            }
            (before, kept)
        };
        let wake = self.reduce(&mut guard, tag, owner, kept, lsn);
        self.retract(tag, before, kept);
        drop(guard);
        wake.iter().for_each(|w| w.wake());
    }
}

/// Takes a mode out of a fast-path entry. False if there is none.
fn forget_fast(held: &mut owner::Held, tag: &LockTag, mode: LockMode) -> bool {
    let LockTag::Relation { database, relation } = *tag else {
        return false;
    };
    // The owner may have a further mode, which is neither weak nor strong, in the lock table.
    let is_there = |f: &owner::FastLock| f.relation == relation && f.database == database && f.modes.contains(mode);
    let Some(at) = held.fast.iter().position(is_there) else {
        return false;
    };
    held.fast[at].modes = held.fast[at].modes.without(mode);
    if held.fast[at].modes.is_empty() {
        held.fast.swap_remove(at);
    }
    true
}
