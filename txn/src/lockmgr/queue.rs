//! One lock with its holders and its wait queue. Decides whether a request is granted at once, and which waiters are granted next. The state
//! is plain data, changed under the shard's mutex.
//!
//! # Invariants
//! - LKM-5: the modes of two holders never conflict. The lock of a transaction's id is exempt: a waiter asks for it in `Share` only to learn
//!   that the transaction has ended, and gives it back at once. A rollback to a savepoint grants that `Share` to all waiters; a waiter that
//!   still has to wait asks again, which enters the transaction as a holder beside waiters that have not given their `Share` back yet.
//! - LKM-6: first come, first served. A request is granted at once only if it conflicts with no holder and with no waiter ahead of it.
//!   There are two exceptions. An owner that already holds a mode for which a waiter ahead must wait goes ahead of that waiter; else both
//!   would wait for ever. And the lock of a row follows PostgreSQL: a request that conflicts with no holder is granted at once, whatever
//!   waits. (A foreign key's check overtakes a `FOR UPDATE` that waits for other checks.)
//! - LKM-7: after every change of holders or queue, no waiter is left that could be granted under LKM-5 and LKM-6, but for brief ones, which
//!   take the lock themselves (LKM-17).
//! - LKM-12: a grant depends on the commits of the transactions that gave up a mode which conflicts with the granted one, and on no other
//!   commit. Beside a mode that does not conflict the request would have been granted before that commit, so its release tells nothing.
//!   (Two hundred sessions that insert rows with one foreign key share a lock of its row which is never free: if each depended on the commits
//!   of the others, none of them could be relaxed about durability.)

use std::sync::Arc;

use clearway_base::memory::Outside;
use clearway_storage::ids::Lsn;

use super::line::WaitLine;
use super::modes::{LockMode, ModeSet};
use super::owner::Owner;
use super::wait::Waiter;

/// A holder and what it holds.
pub(super) struct Holder {
    pub(super) owner: Arc<Owner>,
    pub(super) modes: ModeSet,
}

/// One lock.
#[derive(Default)]
pub(super) struct Lock {
    pub(super) holders: Vec<Holder>,
    pub(super) queue: WaitLine,
    /// Changes with every change of holders or queue.
    pub(super) version: u64,
    /// The modes that were given up, each with the highest commit LSN of the transactions that did (LKM-12). Most locks have none.
    given_up: Vec<(LockMode, Lsn)>,
    /// Of the list of holders (LKM-16).
    memory: Option<Outside>,
}

/// The verdict on a request.
pub(super) enum Decision {
    /// The request may be granted now.
    Grant,
    /// The request has to wait, at this position of the queue.
    Wait(usize),
}

impl Lock {
    /// Whether the lock has neither holders nor waiters.
    pub(super) fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    /// The modes that `owner` holds.
    pub(super) fn held_by(&self, owner: &Owner) -> ModeSet {
        self.holders.iter().find(|h| h.owner.id == owner.id).map_or(ModeSet::EMPTY, |h| h.modes)
    }

    /// Whether a holder other than `owner` conflicts with `mode`.
    pub(super) fn conflicts_with_holders(&self, owner: &Owner, mode: LockMode) -> bool {
        self.holders.iter().any(|h| h.owner.id != owner.id && mode.conflicts().meets(h.modes))
    }

    /// Decides a request by LKM-6 and LKM-18.
    pub(super) fn decide(&self, owner: &Owner, mode: LockMode, brief: bool) -> Decision {
        let mine = self.held_by(owner);
        if mine.contains(mode) {
            return Decision::Grant;
        }
        let mut ahead = self.queue.modes();
        let mut position = self.queue.len();
        // Only an owner that holds the lock already may go ahead of a waiter.
        if !mine.is_empty()
            && let Some(at) = self.queue.iter().position(|w| w.mode.conflicts().meets(mine))
        {
            position = at;
            ahead = self.queue.iter().take(at).fold(ModeSet::EMPTY, |set, w| set.with(w.mode));
        }
        let passes = if mode.is_row_strength() {
            let bars = |w: &Waiter| w.mode.conflicts().contains(mode) && !w.mode.conflicts().meets(mine);
            brief || !self.queue.called().any(|w| bars(w))
        } else {
            !mode.conflicts().meets(ahead)
        };
        if passes && !self.conflicts_with_holders(owner, mode) { Decision::Grant } else { Decision::Wait(position) }
    }

    /// Enters `owner`, with whose mode nothing conflicts, among the holders.
    pub(super) fn grant(&mut self, owner: &Arc<Owner>, mode: LockMode) {
        self.enter(owner, mode);
        debug_assert!(self.holders_agree(), "LKM-5");
    }

    /// Enters `owner` among the holders.
    pub(super) fn enter(&mut self, owner: &Arc<Owner>, mode: LockMode) {
        self.version += 1;
        match self.holders.iter_mut().find(|h| h.owner.id == owner.id) {
            Some(holder) => holder.modes = holder.modes.with(mode),
            None => {
                let room = self.holders.capacity();
                self.holders.push(Holder { owner: owner.clone(), modes: ModeSet::EMPTY.with(mode) });
                if self.holders.capacity() != room {
                    self.memory = Some(Outside::new(self.holders.capacity() * size_of::<Holder>()));
                }
            }
        }
    }

    /// The commit LSN on which a holder in this mode depends (LKM-12).
    pub(super) fn dep_lsn(&self, mode: LockMode) -> Lsn {
        let conflicts = mode.conflicts();
        self.given_up
            .iter()
            .filter(|(other, _)| conflicts.contains(*other))
            .map(|(_, lsn)| *lsn)
            .max()
            .unwrap_or(Lsn::ZERO)
    }

    /// Notes the modes that a transaction has given up by its commit.
    fn note_given_up(&mut self, modes: impl Iterator<Item = LockMode>, commit_lsn: Lsn) {
        for mode in modes {
            match self.given_up.iter_mut().find(|(other, _)| *other == mode) {
                Some((_, lsn)) => *lsn = commit_lsn.max(*lsn),
                None => self.given_up.push((mode, commit_lsn)),
            }
        }
    }

    /// Leaves `owner` only the modes in `kept`; it has committed at `commit_lsn`, if that is not zero.
    pub(super) fn keep(&mut self, owner: &Owner, kept: ModeSet, commit_lsn: Lsn) {
        let Some(at) = self.holders.iter().position(|h| h.owner.id == owner.id) else {
            return;
        };
        let had = self.holders[at].modes;
        assert!(kept.iter().all(|mode| had.contains(mode)), "LKM-2: a holder keeps of what it has");
        self.version += 1;
        match kept.is_empty() {
            true => drop(self.holders.swap_remove(at)),
            false => self.holders[at].modes = kept,
        }
        // A lock without holders and waiters is removed: no later request reads what was noted.
        if commit_lsn != Lsn::ZERO && !self.is_idle() {
            self.note_given_up(had.iter().filter(|mode| !kept.contains(*mode)), commit_lsn);
        }
    }

    /// Takes out of the queue, in order, all waiters that may be granted now, and enters them as holders (LKM-7). This is the direct
    /// hand-off: the lock is never free in between, so no later request can take it. Beside them, the brief waiter that is called now (LKM-17).
    pub(super) fn admit(&mut self) -> (Vec<Arc<Waiter>>, Option<Arc<Waiter>>) {
        let (mut admitted, mut called) = (Vec::new(), None);
        let mut may_call = self.queue.may_call();
        // What the waiters passed so far want, and what those of them want that have not been called.
        let (mut ahead, mut barred) = (ModeSet::EMPTY, ModeSet::EMPTY);
        let mut at = 0;
        while let Some(waiter) = self.queue.get(at).cloned() {
            let conflicts = waiter.mode.conflicts();
            let behind = conflicts.meets(if waiter.brief { barred } else { ahead });
            let blocked = behind || self.conflicts_with_holders(&waiter.owner, waiter.mode);
            if !blocked && !waiter.brief {
                self.queue.remove(at);
                self.grant(&waiter.owner, waiter.mode);
                admitted.push(waiter);
                continue;
            }
            if !blocked && may_call && !waiter.is_called() {
                self.queue.call(&waiter);
                may_call = false;
                called = Some(waiter.clone());
            }
            ahead = ahead.with(waiter.mode);
            if !waiter.is_called() {
                barred = barred.with(waiter.mode);
            }
            at += 1;
            // If every mode still wanted conflicts with the waiters passed so far, the rest of the queue need not be walked.
            let all_behind = |passed| self.queue.modes().iter().all(|mode| mode.conflicts().meets(passed));
            if all_behind(ahead) && (!may_call || all_behind(barred)) {
                break;
            }
        }
        debug_assert!(self.queue.counts_hold(), "LKM-10");
        (admitted, called)
    }

    /// LKM-5
    pub(super) fn holders_agree(&self) -> bool {
        self.holders.iter().enumerate().all(|(i, a)| {
            self.holders[i + 1..].iter().all(|b| a.modes.iter().all(|mode| !mode.conflicts().meets(b.modes)))
        })
    }
}
