//! One lock with its holders and its queue: who may have it now, and who is next. Plain state, changed under its shard's mutex.
//!
//! # Invariants
//! - LKM-5: the modes of two holders never conflict.
//! - LKM-6: first come, first served: a request is granted at once only if it conflicts with no holder and with nobody who waits
//!   ahead of it, except that who already holds a mode for which somebody ahead must wait goes before him (else both would wait for ever).
//!   A row is different, as in PostgreSQL: what agrees with all its holders is granted at once, whoever waits; only those who have to
//!   wait stand in line. (A foreign key's check passes by a `FOR UPDATE` that waits for other checks.)
//! - LKM-7: after every change of holders or queue, nobody waits whom LKM-5 and LKM-6 let in.

use std::sync::Arc;

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
    /// The highest commit LSN of those who gave the lock up: whoever gets it depends on that.
    pub(super) dep_lsn: Lsn,
}

/// What becomes of a request.
pub(super) enum Decision {
    /// It may be granted now.
    Grant,
    /// It has to wait, at this position of the queue.
    Wait(usize),
}

impl Lock {
    /// Whether nobody holds or wants it.
    pub(super) fn is_idle(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    /// The modes that `owner` holds.
    pub(super) fn held_by(&self, owner: &Owner) -> ModeSet {
        self.holders.iter().find(|h| h.owner.id == owner.id).map_or(ModeSet::EMPTY, |h| h.modes)
    }

    /// Whether a holder other than `owner` stands against `mode`.
    pub(super) fn conflicts_with_holders(&self, owner: &Owner, mode: LockMode) -> bool {
        self.holders.iter().any(|h| h.owner.id != owner.id && mode.conflicts().meets(h.modes))
    }

    /// Decides a request by LKM-6.
    pub(super) fn decide(&self, owner: &Owner, mode: LockMode) -> Decision {
        let mine = self.held_by(owner);
        if mine.contains(mode) {
            return Decision::Grant;
        }
        let mut ahead = self.queue.modes();
        let mut position = self.queue.len();
        // Only who holds the lock already may go before somebody.
        if !mine.is_empty()
            && let Some(at) = self.queue.iter().position(|w| w.mode.conflicts().meets(mine))
        {
            position = at;
            ahead = self.queue.iter().take(at).fold(ModeSet::EMPTY, |set, w| set.with(w.mode));
        }
        if (mode.is_row_strength() || !mode.conflicts().meets(ahead)) && !self.conflicts_with_holders(owner, mode) {
            Decision::Grant
        } else {
            Decision::Wait(position)
        }
    }

    /// Enters `owner` among the holders.
    pub(super) fn grant(&mut self, owner: &Arc<Owner>, mode: LockMode) {
        self.version += 1;
        match self.holders.iter_mut().find(|h| h.owner.id == owner.id) {
            Some(holder) => holder.modes = holder.modes.with(mode),
            None => self.holders.push(Holder { owner: owner.clone(), modes: ModeSet::EMPTY.with(mode) }),
        }
        debug_assert!(self.holders_agree(), "LKM-5");
    }

    /// Leaves `owner` only the modes in `kept`.
    pub(super) fn keep(&mut self, owner: &Owner, kept: ModeSet) {
        let Some(at) = self.holders.iter().position(|h| h.owner.id == owner.id) else {
            return;
        };
        self.version += 1;
        match kept.is_empty() {
            true => drop(self.holders.swap_remove(at)),
            false => self.holders[at].modes = kept,
        }
    }

    /// Takes out of the queue, in order, everybody who may have the lock now, and enters them as holders (LKM-7). This is the direct
    /// hand-off: the lock is never free in between, so nobody who comes later can slip in.
    pub(super) fn admit(&mut self) -> Vec<Arc<Waiter>> {
        let mut admitted = Vec::new();
        let mut ahead = ModeSet::EMPTY;
        let mut at = 0;
        while let Some(waiter) = self.queue.get(at).cloned() {
            let blocked =
                waiter.mode.conflicts().meets(ahead) || self.conflicts_with_holders(&waiter.owner, waiter.mode);
            if blocked {
                ahead = ahead.with(waiter.mode);
                at += 1;
                // If everything that is wanted conflicts with who stands ahead by now, the rest of the line need not be walked.
                if self.queue.modes().iter().all(|mode| mode.conflicts().meets(ahead)) {
                    break;
                }
            } else {
                self.queue.remove(at);
                self.grant(&waiter.owner, waiter.mode);
                admitted.push(waiter);
            }
        }
        debug_assert!(self.queue.counts_hold(), "LKM-10");
        admitted
    }

    fn holders_agree(&self) -> bool {
        self.holders.iter().enumerate().all(|(i, a)| {
            self.holders[i + 1..].iter().all(|b| a.modes.iter().all(|mode| !mode.conflicts().meets(b.modes)))
        })
    }
}
