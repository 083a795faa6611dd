//! The book of versions: which version of a row who sees, and when an old one can go.
//!
//! # Life of a version
//! written with a tag -> its transaction commits -> every snapshot sees it: its undo record is freed, the tag is settled ->
//! the tag is stripped from the row, or the ghost is purged, by whoever changes the page next.
//!
//! # Invariants
//! - VER-1: the versions of a row are walked newest first; the first whose transaction is the reader's own (below its mark) or committed at
//!   or below its snapshot is the one that it sees.
//! - VER-2: nothing is freed, stripped or purged but for commits at or below min(every open snapshot, durable_lsn).

use std::collections::VecDeque;
use std::sync::Arc;

use clearway_base::sync::Mutex;
use clearway_storage::ids::{Lsn, Tag, TreeId, TxnId};
use clearway_storage::record::BeforeImage;
use clearway_storage::seams::Versions;

use super::snapshots::Snapshots;
use super::state::{Status, TxnState};
use super::undo::{UndoRecord, UndoStore};

/// Whose version a row's newest one is, for somebody who wants to change or check it.
#[derive(Clone, Debug)]
pub enum Newest {
    /// Everybody sees it.
    Settled,
    /// Committed at this LSN.
    Committed(Lsn),
    /// The asking transaction's own change at this position.
    Mine(u32),
    /// A transaction that still runs.
    Busy(Arc<UndoRecord>),
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Commits at or below this are seen.
    pub read_lsn: Lsn,
    /// The reader's own transaction, if it has an id.
    pub txn: TxnId,
    /// Of its own changes, those below this position are seen.
    pub mark: u32,
}

/// What a reader sees of a row.
#[derive(Debug)]
pub enum Visible {
    /// The version in the leaf.
    Current,
    /// An older one.
    Older(Arc<UndoRecord>),
    /// None.
    Nothing,
}

/// Changes whose undo nobody needs once the horizon has passed.
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

/// Undo records and snapshots together.
#[derive(Debug)]
pub struct VersionBook {
    undo: UndoStore,
    snapshots: Arc<Snapshots>,
    retired: Mutex<VecDeque<Retired>>,
    purgeable: Mutex<VecDeque<Purgeable>>,
}

impl VersionBook {
    /// An empty book whose tags lie above `high_water`.
    pub fn new(high_water: Tag) -> VersionBook {
        VersionBook {
            undo: UndoStore::new(high_water),
            snapshots: Arc::new(Snapshots::new()),
            retired: Mutex::new("txn/mvcc/retired", VecDeque::new()),
            purgeable: Mutex::new("txn/mvcc/purgeable", VecDeque::new()),
        }
    }

    /// The undo records.
    pub fn undo(&self) -> &UndoStore {
        &self.undo
    }

    /// The snapshots.
    pub fn snapshots(&self) -> &Arc<Snapshots> {
        &self.snapshots
    }

    /// Whose the newest version is. The caller has the row's page latched, or re-validates it.
    pub fn newest(&self, tag: Tag, me: TxnId) -> Newest {
        if tag.is_settled() {
            return Newest::Settled;
        }
        // UND-1: under the latch the row's tag is live, so a record that is gone is a settled one.
        let Some(record) = self.undo.get(tag) else {
            return Newest::Settled;
        };
        match record.txn.status() {
            Status::Committed(lsn) => Newest::Committed(lsn),
            Status::Active if record.txn.id() == me && me != TxnId::NONE => {
                Newest::Mine(record.position)
            }
            _ => Newest::Busy(record),
        }
    }

    /// VER-1, with the highest commit LSN that was looked at on the way. The caller re-validates the page afterwards.
    pub fn resolve(&self, tag: Tag, view: &View, dep_lsn: &mut Lsn) -> Visible {
        let mut tag = tag;
        let mut older: Option<Arc<UndoRecord>> = None;
        loop {
            if tag.is_settled() {
                break;
            }
            let Some(record) = self.undo.get(tag) else {
                break;
            };
            match record.txn.status() {
                Status::Committed(lsn) if lsn <= view.read_lsn => {
                    *dep_lsn = lsn.max(*dep_lsn);
                    break;
                }
                Status::Active if record.txn.id() == view.txn && record.position < view.mark => {
                    break;
                }
                _ => {}
            }
            if record.before == BeforeImage::Absent {
                return Visible::Nothing;
            }
            tag = record.prev;
            older = Some(record);
        }
        older.map_or(Visible::Current, Visible::Older)
    }

    /// Which tag a new version that replaces one with `tag`, committed at `commit`, has to point back to. The version before that one
    /// is linked past when nobody can read it any more: so a hot row keeps a short chain however old the oldest snapshot is.
    pub fn link(&self, tag: Tag) -> (Tag, Lsn) {
        let mut tag = tag;
        let horizon = self.snapshots.horizon();
        let mut committed = Lsn::ZERO;
        while !tag.is_settled() {
            let Some(record) = self.undo.get(tag) else {
                return (Tag::SETTLED, committed);
            };
            let Status::Committed(lsn) = record.txn.status() else {
                return (tag, committed);
            };
            committed = committed.max(lsn);
            if horizon.covers(lsn) {
                return (Tag::SETTLED, committed);
            }
            if record.before == BeforeImage::Absent
                || record.deletes
                || horizon.needs(record.before_lsn, lsn)
            {
                return (tag, committed);
            }
            self.undo.free(tag);
            tag = record.prev;
        }
        (tag, committed)
    }

    /// The transaction has ended; its undo goes when everybody sees its commit, or what it undid (`at`: the end of the log then).
    pub fn retire(&self, txn: &TxnState, at: Lsn) {
        let changes = txn.take_changes();
        if !changes.is_empty() {
            self.retired.lock().push_back(Retired {
                commit: at,
                changes,
            });
        }
    }

    /// Frees what nobody needs; `durable` is the log's durable LSN. Returns how many records went.
    pub fn prune(&self, durable: Lsn) -> usize {
        let horizon = self.snapshots.refresh(durable);
        let mut freed = 0;
        loop {
            let next = {
                let mut retired = self.retired.lock();
                match retired.front() {
                    Some(front) if horizon.covers(front.commit) => retired.pop_front(),
                    _ => None,
                }
            };
            let Some(next) = next else { return freed };
            for tag in next.changes {
                if let Some(record) = self.undo.get(tag)
                    && record.deletes
                {
                    let purgeable = Purgeable {
                        tree: record.tree,
                        key: record.key.clone(),
                    };
                    self.purgeable.lock().push_back(purgeable);
                }
                self.undo.free(tag);
                freed += 1;
            }
        }
    }

    /// How many ended transactions still have undo.
    pub fn retired(&self) -> usize {
        self.retired.lock().len()
    }

    /// The next deleted row that can go.
    pub fn next_purgeable(&self) -> Option<Purgeable> {
        self.purgeable.lock().pop_front()
    }
}

impl Versions for VersionBook {
    fn is_settled(&self, tag: Tag) -> bool {
        let Some(record) = self.undo.get(tag) else {
            return true;
        };
        matches!(record.txn.status(), Status::Committed(lsn) if self.snapshots.horizon().covers(lsn))
    }

    fn horizon(&self) -> Lsn {
        self.snapshots.horizon().oldest()
    }
}
