//! Pruning: frees the versions that no snapshot can read, including those that are between two open snapshots.
//!
//! # Life of a retired change
//! Once its commit is durable, a record has one of three fates:
//! - It is freed if no snapshot can read the version that it replaced or an older one (a ghost is then purged from its tree).
//! - It is kept, and judged again later, if a snapshot can read that version.
//! - It becomes a link, which keeps no image, if no snapshot reads that version but a snapshot may reach an older version through the
//!   record. A link leads past the links behind it, which are freed.
//!
//! So under one old snapshot, however old, a row that changes all the time keeps its first version and one link.
//!
//! # Invariants
//! - PRU-1: a record is freed between snapshots, turned into a link, or separated from its transaction only if its commit is at or below
//!   the horizon's bound. No new snapshot begins below the bound.
//! - PRU-2: no reader needs a link's image: no present or future snapshot falls between the previous version's commit and the link's own.
//! - PRU-3: a record that a younger one leads to is freed only after the younger one leads past it, or is freed itself. A reader that finds
//!   no record under a tag checks whether the record that led to that tag was replaced or freed meanwhile, and if so walks the chain again. A
//!   writer frees a record that it leads past only if that record is still the one that the writer has judged.
//! - PRU-4: one thread prunes at a time: pruning takes a [`PruneTurn`]. Besides it only writers, under the latches of their rows, free
//!   committed records.

use std::collections::VecDeque;
use std::sync::Arc;

use clearway_base::sync::{Mutex, MutexGuard};
use clearway_storage::ids::{Lsn, Tag, TreeId};

use super::book::VersionBook;
use super::fate::Passed;
use super::key::RowKey;
use super::record::{UndoRecord, Writer};
use super::snapshots::Horizon;
use super::state::{Status, Tags, TxnState};
use super::undo::TagState;

/// The least number of kept changes that each pruning rechecks.
const AGAIN_MIN: usize = 64;

/// The changes of a committed transaction that pruning has not judged yet.
#[derive(Debug)]
struct Retired {
    commit: Lsn,
    changes: Tags,
}

/// A deleted row that can be removed from its tree.
#[derive(Clone, Debug)]
pub struct Purgeable {
    /// The tree.
    pub tree: TreeId,
    /// The key.
    pub key: RowKey,
}

/// The turn to prune (PRU-4).
#[must_use]
pub struct PruneTurn<'a> {
    _turn: MutexGuard<'a, ()>,
}

/// The lists of changes that pruning has still to judge, and of rows to purge.
#[derive(Debug)]
pub(super) struct Pruner {
    turn: Mutex<()>,
    retired: Mutex<VecDeque<Retired>>,
    /// Changes that were judged and kept.
    held: Mutex<VecDeque<Tag>>,
    purgeable: Mutex<VecDeque<Purgeable>>,
}

impl Default for Pruner {
    fn default() -> Self {
        Pruner {
            turn: Mutex::new("txn/mvcc/prune_turn", ()),
            retired: Mutex::new("txn/mvcc/retired", VecDeque::new()),
            held: Mutex::new("txn/mvcc/held", VecDeque::new()),
            purgeable: Mutex::new("txn/mvcc/purgeable", VecDeque::new()),
        }
    }
}

impl Pruner {
    pub(super) fn purgeable(&self) -> usize {
        self.purgeable.lock().len()
    }

    pub(super) fn take_purgeable(&self, count: usize) -> Vec<Purgeable> {
        let mut rows = self.purgeable.lock();
        let count = count.min(rows.len());
        rows.drain(..count).collect()
    }

    pub(super) fn purge_again(&self, rows: impl Iterator<Item = Purgeable>) {
        self.purgeable.lock().extend(rows);
    }

    pub(super) fn purge_later(&self, record: &UndoRecord) {
        let mut rows = self.purgeable.lock();
        record.for_each_key(|key| rows.push_back(Purgeable { tree: record.tree, key }));
    }

    /// How many kept changes there are to look at again.
    pub(super) fn held(&self) -> usize {
        self.held.lock().len()
    }

    /// Bytes of the lists. The tags of retired transactions, not judged yet, count with their records instead.
    pub(super) fn bytes(&self) -> u64 {
        let (retired, held) = (self.retired.lock().capacity(), self.held.lock().capacity());
        (retired * size_of::<Retired>() + held * size_of::<Tag>()) as u64
    }
}

/// What pruning does with a record.
enum Fate {
    /// It is freed.
    Freed,
    /// It is kept, and judged again later.
    Kept,
    /// It is not pruned here: it is spilled, not committed, or freed already.
    NotHere,
}

impl VersionBook {
    /// Hands the changes of a transaction that committed `at` this LSN to pruning: each goes when no snapshot can read the version before it.
    pub fn retire(&self, txn: &TxnState, at: Lsn) {
        assert!(
            txn.status() == Status::Committed(at),
            "PRU-1: {:?} is retired at {at}, and is {:?}",
            txn.id(),
            txn.status()
        );
        let changes = txn.take_changes();
        if !changes.as_slice().is_empty() {
            self.pruner.retired.lock().push_back(Retired { commit: at, changes });
        }
    }

    /// How many committed transactions still have changes that were never judged.
    pub fn retired(&self) -> usize {
        self.pruner.retired.lock().len()
    }

    /// The turn to prune; blocks while another thread has it (PRU-4).
    pub fn prune_turn(&self) -> PruneTurn<'_> {
        PruneTurn { _turn: self.pruner.turn.lock() }
    }

    /// The turn to prune, or `None` if another thread has it.
    pub fn try_prune_turn(&self) -> Option<PruneTurn<'_>> {
        self.pruner.turn.try_lock().map(|turn| PruneTurn { _turn: turn })
    }

    /// Frees the records that no snapshot needs; `durable` is the log's durable LSN. Returns how many it freed.
    pub fn prune(&self, turn: &PruneTurn<'_>, durable: Lsn) -> usize {
        let horizon = self.snapshots.refresh(durable);
        let (mut freed, mut seen) = (0, 0);
        loop {
            let next = {
                let mut retired = self.pruner.retired.lock();
                match retired.front() {
                    // PRU-1
                    Some(front) if horizon.reaches(front.commit) => retired.pop_front(),
                    _ => None,
                }
            };
            let Some(next) = next else { break };
            seen += next.changes.as_slice().len();
            for tag in next.changes.as_slice() {
                freed += self.prune_record(*tag, &horizon);
            }
        }
        freed + self.recheck_kept(turn, 2 * seen + AGAIN_MIN)
    }

    /// How many kept changes there are to look at again.
    pub fn held(&self) -> usize {
        self.pruner.held()
    }

    /// Judges up to `count` kept records again, those first that have waited longest. Returns how many it freed.
    pub fn recheck_kept(&self, _turn: &PruneTurn<'_>, count: usize) -> usize {
        let horizon = &*self.snapshots.horizon();
        let mut freed = 0;
        for _ in 0..count.min(self.pruner.held()) {
            let Some(tag) = self.pruner.held.lock().pop_front() else { break };
            freed += self.prune_record(tag, horizon);
        }
        freed
    }

    fn prune_record(&self, tag: Tag, horizon: &Horizon) -> usize {
        match self.judge(tag, horizon) {
            Fate::Freed => 1,
            Fate::Kept => {
                self.pruner.held.lock().push_back(tag);
                0
            }
            Fate::NotHere => 0,
        }
    }

    fn judge(&self, tag: Tag, horizon: &Horizon) -> Fate {
        // `sweep_spans` in budget.rs judges spilled records, a span at a time.
        let TagState::InMemory(record) = self.undo.state(tag) else {
            return Fate::NotHere;
        };
        let Status::Committed(commit) = record.status() else {
            return Fate::NotHere;
        };
        if horizon.covers(commit) || record.rowless {
            if !self.undo.free(tag, &record) {
                return Fate::NotHere;
            }
            if record.deletes {
                self.pruner.purge_later(&record);
            }
            return Fate::Freed;
        }
        if record.is_needed(commit, horizon) {
            if let Writer::Live(_) = record.writer {
                self.undo.replace(tag, &record, record.ended(commit));
            }
        } else {
            self.make_link(tag, &record, commit, horizon);
        }
        Fate::Kept
    }

    /// Replaces the record by a link without an image (PRU-2). The link leads past the following records that no snapshot needs either;
    /// these are freed after it stands (PRU-3).
    fn make_link(&self, tag: Tag, record: &Arc<UndoRecord>, commit: Lsn, horizon: &Horizon) {
        let mut passed = Vec::new();
        let mut prev = record.prev;
        while let TagState::InMemory(older) = self.undo.state(prev) {
            let Status::Committed(lsn) = older.status() else { break };
            if horizon.covers(lsn) || older.is_needed(lsn, horizon) {
                break;
            }
            assert!(lsn <= commit, "PRU-2: a change at {commit} leads to a younger one at {lsn}");
            assert!(older.rows().is_none(), "RSH-2: other rows need {older:?}");
            let next = older.prev;
            passed.push((prev, lsn, older));
            prev = next;
        }
        if record.dropped && passed.is_empty() {
            return;
        }
        let told = Passed::of(record.passed(), passed.iter().map(|(_, lsn, older)| (*lsn, &**older)));
        if self.undo.replace(tag, record, record.link(commit, prev, told)) {
            for (tag, _, older) in passed {
                self.undo.free(tag, &older);
            }
        }
    }
}
