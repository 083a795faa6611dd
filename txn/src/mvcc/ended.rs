//! How the latest transactions have ended, and which transactions a snapshot sees: what `pg_xact_status` and `pg_current_snapshot` tell.
//!
//! # Structure
//! A ring has one word for each of the latest [`KEPT`] ids: the commit LSN, a mark of a rollback, or 0. A transaction that is older than the ring when
//! it commits is kept in a short list. The book holds both under the mutex of the active transactions.
//!
//! # Invariants
//! - EIT-1: a transaction leaves the active ones under the same hold of the mutex in which its end is put here. So a holder of the mutex finds each
//!   transaction of this process among the active ones or among the ends, if its id is not older than what is kept.
//! - EIT-2: the commit LSN of each transaction whose end is no longer kept is at or below `dropped`. A snapshot below `dropped` is refused
//!   ([`VersionBook::snapshot_ids`]): it would count a transaction among those that it sees whose commit it does not see.
//! - EIT-3: an id below `xmin` of a snapshot's ids belongs to a transaction that committed at or below the snapshot, that was rolled back, or that ended
//!   before this process began; the same holds for an id below `xmax` that is not in the list. The snapshot's own transaction is not in the list.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use clearway_storage::ids::{Lsn, TxnId};

use super::book::VersionBook;
use super::state::Status;

/// So many ids have a word in the ring.
pub const KEPT: usize = 1 << 16;
/// So many transactions that were older than the ring at their end are kept.
const LATE_MAX: usize = 256;
/// So many ids are looked at under one hold of the mutex.
const AT_ONCE: u64 = 4096;

const NONE: u64 = 0;
const ROLLED_BACK: u64 = u64::MAX;

/// The ids that belong to a snapshot, as `pg_snapshot` has them (EIT-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotIds {
    /// Every id below it has ended, and the snapshot sees what it committed.
    pub xmin: TxnId,
    /// The snapshot sees nothing of this id and of those above it.
    pub xmax: TxnId,
    /// The ids between, in their order, that the snapshot does not see.
    pub running: Vec<TxnId>,
}

/// The ends of transactions.
#[derive(Debug)]
pub(super) struct Ended {
    ring: Vec<u64>,
    late: VecDeque<(TxnId, Lsn)>,
    dropped: Lsn,
}

impl Ended {
    pub(super) fn new() -> Ended {
        Ended { ring: vec![NONE; KEPT], late: VecDeque::new(), dropped: Lsn::ZERO }
    }

    fn place(txn: TxnId) -> usize {
        txn.0 as usize % KEPT
    }

    /// The lowest id that has a word in the ring, when `next` is the next one.
    fn lowest(next: TxnId) -> TxnId {
        TxnId(next.0.saturating_sub(KEPT as u64).max(1))
    }

    /// A transaction gets this id: its word was that of an older one.
    pub(super) fn begin(&mut self, txn: TxnId) {
        let word = std::mem::replace(&mut self.ring[Self::place(txn)], NONE);
        if word != NONE && word != ROLLED_BACK {
            self.drop(Lsn(word)); // EIT-2
        }
    }

    fn drop(&mut self, lsn: Lsn) {
        self.dropped = self.dropped.max(lsn);
    }

    /// A transaction has ended (EIT-1); `next`: the next id.
    pub(super) fn end(&mut self, txn: TxnId, status: Status, next: TxnId) {
        let word = match status {
            Status::Active => return,
            Status::Committed(lsn) => lsn.0,
            Status::Aborted => ROLLED_BACK,
        };
        if txn >= Self::lowest(next) {
            self.ring[Self::place(txn)] = word;
        } else if word != ROLLED_BACK {
            self.late.push_back((txn, Lsn(word)));
            if self.late.len() > LATE_MAX
                && let Some((_, lsn)) = self.late.pop_front()
            {
                self.drop(lsn); // EIT-2
            }
        }
    }

    /// How a transaction ended, if that is kept.
    fn of(&self, txn: TxnId, next: TxnId) -> Option<Status> {
        if txn < Self::lowest(next) {
            return self.late.iter().find(|(late, _)| *late == txn).map(|(_, lsn)| Status::Committed(*lsn));
        }
        match self.ring[Self::place(txn)] {
            NONE => None,
            ROLLED_BACK => Some(Status::Aborted),
            lsn => Some(Status::Committed(Lsn(lsn))),
        }
    }

    /// Whether every commit above a snapshot is kept (EIT-2).
    fn tells(&self, read_lsn: Lsn) -> bool {
        self.dropped <= read_lsn
    }
}

/// Whether a snapshot sees what a transaction with this status has changed, or has nothing to see of it.
fn is_seen(status: Status, read_lsn: Lsn) -> bool {
    match status {
        Status::Active => false,
        Status::Committed(lsn) => lsn <= read_lsn,
        Status::Aborted => true,
    }
}

impl VersionBook {
    /// Whether a transaction runs, or how it ended. None: that is not kept any more, or it ended before this process began.
    pub fn end_of(&self, txn: TxnId) -> Option<Status> {
        let active = self.active.lock();
        let running = active.states.get(&txn).map(|state| state.status());
        running.or_else(|| active.ended.of(txn, self.next_txn()))
    }

    /// The ids that belong to the snapshot of a view (EIT-3). None: more transactions have committed since than are kept.
    pub fn snapshot_ids(&self, read_lsn: Lsn, own: TxnId) -> Option<SnapshotIds> {
        let (running, late, next) = {
            let active = self.active.lock();
            let running: BTreeMap<TxnId, Status> = active.states.values().map(|s| (s.id(), s.status())).collect();
            let late = active.ended.late.iter().filter(|(_, lsn)| *lsn > read_lsn);
            (running, late.map(|(txn, _)| *txn).collect::<Vec<_>>(), self.next_txn())
        };
        let lowest = Ended::lowest(next);
        let mut unseen: BTreeSet<TxnId> = late.into_iter().collect();
        unseen.extend(running.range(..lowest).filter(|(_, s)| !is_seen(**s, read_lsn)).map(|(txn, _)| *txn));
        let mut highest = lowest.0 - 1;
        let mut from = lowest.0;
        while from < next.0 {
            let until = (from + AT_ONCE).min(next.0);
            let active = self.active.lock();
            if !active.ended.tells(read_lsn) {
                return None; // EIT-2
            }
            let now = self.next_txn();
            for txn in (from..until).map(TxnId) {
                let known = active.ended.of(txn, now).or_else(|| running.get(&txn).copied());
                if known.is_none_or(|status| is_seen(status, read_lsn)) {
                    highest = txn.0;
                } else {
                    unseen.insert(txn);
                }
            }
            from = until;
        }
        let xmax = TxnId(highest + 1);
        let ids: Vec<TxnId> = unseen.range(..xmax).copied().collect();
        let xmin = ids.first().copied().unwrap_or(xmax);
        Some(SnapshotIds { xmin, xmax, running: ids.into_iter().filter(|txn| *txn != own).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lockmgr::{LockManager, Owner};
    use crate::mvcc::state::TxnState;
    use clearway_storage::ids::Tag;
    use std::sync::Arc;

    struct World {
        book: VersionBook,
        owner: Arc<Owner>,
        lsn: u64,
    }

    impl World {
        fn new() -> World {
            World { book: VersionBook::new(Tag::SETTLED), owner: LockManager::new().register(1), lsn: 100 }
        }

        fn begin(&self) -> Arc<TxnState> {
            self.book.begin(&self.owner)
        }

        fn commit(&mut self, txn: &TxnState) -> Lsn {
            self.lsn += 1;
            txn.committed(Lsn(self.lsn));
            self.book.publish(Lsn(self.lsn));
            self.book.end(txn.id());
            Lsn(self.lsn)
        }

        fn roll_back(&self, txn: &TxnState) {
            txn.aborted();
            self.book.end(txn.id());
        }

        fn ids(&self, read_lsn: u64) -> (u64, u64, Vec<u64>) {
            let ids = self.book.snapshot_ids(Lsn(read_lsn), TxnId::NONE).expect("kept");
            (ids.xmin.0, ids.xmax.0, ids.running.iter().map(|txn| txn.0).collect())
        }
    }

    #[test]
    fn a_snapshot_has_the_ids_that_it_does_not_see_whenever_it_is_asked() {
        let mut world = World::new();
        let [a, b, c, d] = [world.begin(), world.begin(), world.begin(), world.begin()];
        assert_eq!(world.ids(world.lsn), (1, 1, vec![]), "nobody has ended");
        world.commit(&b);
        let at = world.lsn;
        assert_eq!(world.ids(at), (1, 3, vec![1]));
        world.commit(&a);
        world.commit(&d);
        assert_eq!(world.ids(at), (1, 3, vec![1]), "1 and 4 have committed since");
        assert_eq!(world.ids(world.lsn), (3, 5, vec![3]));
        world.roll_back(&c);
        assert_eq!(world.ids(world.lsn), (5, 5, vec![]), "what was rolled back has nothing to see");
        let own = world.begin();
        let e = world.begin();
        world.commit(&e);
        let ids = world.book.snapshot_ids(Lsn(world.lsn), own.id()).expect("kept");
        assert_eq!(
            (ids.xmin, ids.xmax, ids.running),
            (own.id(), TxnId(7), vec![]),
            "its own transaction is not in the list"
        );
    }

    #[test]
    fn the_latest_ends_are_told() {
        let mut world = World::new();
        let [a, b, c] = [world.begin(), world.begin(), world.begin()];
        let lsn = world.commit(&a);
        world.roll_back(&b);
        let told = [1, 2, 3, 4].map(|id| world.book.end_of(TxnId(id)));
        let expected = [Some(Status::Committed(lsn)), Some(Status::Aborted), Some(Status::Active), None];
        assert_eq!(told, expected);
        world.commit(&c);
        world.book.raise_txn(TxnId(KEPT as u64));
        world.begin();
        assert_eq!(world.book.end_of(TxnId(1)), None, "its word is another transaction's");
        assert_eq!(world.book.end_of(TxnId(2)), Some(Status::Aborted));
    }

    /// EIT-2, and a transaction that is older than the ring when it commits.
    #[test]
    fn a_snapshot_of_which_not_every_later_commit_is_kept_is_refused() {
        let mut world = World::new();
        let old = world.begin();
        let first = world.begin();
        let before = world.lsn;
        let since = world.commit(&first).0;
        for _ in 0..KEPT {
            let txn = world.begin();
            world.roll_back(&txn);
        }
        assert_eq!(world.book.snapshot_ids(Lsn(before), TxnId::NONE), None, "{:?} is not kept", first.id());
        assert_eq!(world.ids(since).2, [1], "the one that still runs");
        world.commit(&old);
        assert_eq!(world.ids(since).2, [1], "it has committed since");
        assert_eq!(world.ids(world.lsn).2, [0; 0]);
        assert_eq!(world.book.end_of(TxnId(1)), Some(Status::Committed(Lsn(world.lsn))));
    }
}
