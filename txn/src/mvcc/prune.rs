//! Pruning: which versions nobody can read any more, between open snapshots, too.
//!
//! # Life of a retired change
//! its commit is durable -> nobody can miss it: freed (and a ghost is purged) | a snapshot reads the version before it: kept, looked at
//! again in turn | nobody reads that version, but older ones are read through it: a link, which keeps no image.
//!
//! So under one old snapshot, however old, a row that changes all the time keeps its first version and one link.
//!
//! # Invariants
//! - PRU-1: only a change whose commit the bound of the horizon has passed is freed between snapshots, made a link, or separated from
//!   its transaction: no snapshot begins below the bound any more.
//! - PRU-2: a link is never what a reader stops behind: no snapshot lies between the commit before it and its own, and none will.
//! - PRU-3: a record that a younger one leads to is freed only after the younger one leads past it, or is freed itself. A reader who meets
//!   a gap looks whether the record that led there still stands; a writer frees what it passes only if it still stands.
//! - PRU-4: one pruner at a time; writers, under their rows' latches, are the only others who free committed records.

use std::collections::VecDeque;
use std::sync::Arc;

use clearway_base::sync::Mutex;
use clearway_storage::ids::{Lsn, Tag, TreeId};

use super::book::VersionBook;
use super::fate::Passed;
use super::record::{UndoRecord, Writer};
use super::snapshots::Horizon;
use super::state::{Status, TxnState};
use super::undo::Look;

/// How many kept changes each pruning looks at again, at least.
const AGAIN_MIN: usize = 64;

/// Changes of a transaction that has committed.
#[derive(Debug)]
struct Retired {
    commit: Lsn,
    changes: Vec<Tag>,
}

/// A deleted row that can be taken out of its tree.
#[derive(Clone, Debug)]
pub struct Purgeable {
    /// The tree.
    pub tree: TreeId,
    /// The key.
    pub key: Box<[u8]>,
}

/// What pruning has still to look at.
#[derive(Debug)]
pub(super) struct Pruner {
    retired: Mutex<VecDeque<Retired>>,
    /// Changes that were looked at and kept.
    held: Mutex<VecDeque<Tag>>,
    purgeable: Mutex<VecDeque<Purgeable>>,
}

impl Default for Pruner {
    fn default() -> Self {
        Pruner {
            retired: Mutex::new("txn/mvcc/retired", VecDeque::new()),
            held: Mutex::new("txn/mvcc/held", VecDeque::new()),
            purgeable: Mutex::new("txn/mvcc/purgeable", VecDeque::new()),
        }
    }
}

impl Pruner {
    pub(super) fn next_purgeable(&self) -> Option<Purgeable> {
        self.purgeable.lock().pop_front()
    }

    pub(super) fn purge_later(&self, record: &UndoRecord) {
        self.purgeable.lock().push_back(Purgeable { tree: record.tree, key: record.key.clone() });
    }

    /// How many kept changes there are to look at again.
    pub(super) fn held(&self) -> usize {
        self.held.lock().len()
    }

    /// What the lists weigh, in bytes; the changes of those that were not looked at yet count with their records.
    pub(super) fn bytes(&self) -> u64 {
        let (retired, held) = (self.retired.lock().capacity(), self.held.lock().capacity());
        (retired * size_of::<Retired>() + held * size_of::<Tag>()) as u64
    }
}

enum Fate {
    Freed,
    Held,
    Elsewhere,
}

impl VersionBook {
    /// The transaction has committed `at` this LSN; its undo goes when nobody can read what it replaced.
    pub fn retire(&self, txn: &TxnState, at: Lsn) {
        let changes = txn.take_changes();
        if !changes.is_empty() {
            self.pruner.retired.lock().push_back(Retired { commit: at, changes });
        }
    }

    /// How many ended transactions have not been looked at.
    pub fn retired(&self) -> usize {
        self.pruner.retired.lock().len()
    }

    /// Frees what nobody needs; `durable` is the log's durable LSN. Returns how many records went. PRU-4: the caller sees to it that he
    /// is the only one.
    pub fn prune(&self, durable: Lsn) -> usize {
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
            seen += next.changes.len();
            for tag in next.changes {
                freed += self.look_at(tag, &horizon);
            }
        }
        freed + self.look_again(2 * seen + AGAIN_MIN)
    }

    /// How many kept changes there are to look at again.
    pub fn held(&self) -> usize {
        self.pruner.held()
    }

    /// Looks at up to `count` kept changes, the longest unseen first. PRU-4, as for [`VersionBook::prune`].
    pub fn look_again(&self, count: usize) -> usize {
        let horizon = &*self.snapshots.horizon();
        let mut freed = 0;
        for _ in 0..count.min(self.pruner.held()) {
            let Some(tag) = self.pruner.held.lock().pop_front() else { break };
            freed += self.look_at(tag, horizon);
        }
        freed
    }

    fn look_at(&self, tag: Tag, horizon: &Horizon) -> usize {
        match self.judge(tag, horizon) {
            Fate::Freed => 1,
            Fate::Held => {
                self.pruner.held.lock().push_back(tag);
                0
            }
            Fate::Elsewhere => 0,
        }
    }

    fn judge(&self, tag: Tag, horizon: &Horizon) -> Fate {
        // What is spilled is looked at by spans.
        let Look::Here(record) = self.undo.look(tag) else {
            return Fate::Elsewhere;
        };
        let Status::Committed(commit) = record.status() else {
            return Fate::Elsewhere;
        };
        if horizon.covers(commit) || record.rowless {
            if !self.undo.free(tag, &record) {
                return Fate::Elsewhere;
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
        Fate::Held
    }

    /// PRU-2, PRU-3: the record keeps no image and leads past others of its kind, which go.
    fn make_link(&self, tag: Tag, record: &Arc<UndoRecord>, commit: Lsn, horizon: &Horizon) {
        let mut passed = Vec::new();
        let mut prev = record.prev;
        while let Look::Here(older) = self.undo.look(prev) {
            let Status::Committed(lsn) = older.status() else { break };
            if horizon.covers(lsn) || older.is_needed(lsn, horizon) {
                break;
            }
            let next = older.prev;
            passed.push((prev, lsn, older));
            prev = next;
        }
        if record.dropped && passed.is_empty() {
            return;
        }
        let told = Passed::of(record.passed.as_deref(), passed.iter().map(|(_, lsn, older)| (*lsn, &**older)));
        if self.undo.replace(tag, record, record.link(commit, prev, told)) {
            for (tag, _, older) in passed {
                self.undo.free(tag, &older);
            }
        }
    }
}
