//! The book of versions: which version of a row who sees, and when an old one can go.
//!
//! # Life of a version
//! written with a tag -> its transaction commits -> every snapshot sees it: its undo record is freed, the tag is settled ->
//! the tag is stripped from the row, or the ghost is purged, by whoever changes the page next.
//!
//! # Invariants
//! - VER-1: the versions of a row are walked newest first; the first whose transaction is the reader's own (below its mark) or committed at
//!   or below its snapshot is the one that it sees.
//! - VER-3: a writer acts on no commit above `visible_lsn`: what it changes, the next statement of its transaction sees.
//! - VER-2: nothing is freed, stripped or purged but for commits at or below min(every open snapshot, durable_lsn).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_storage::ids::{Lsn, Tag, TreeId, TxnId};
use clearway_storage::record::{BeforeImage, UndoEntry};
use clearway_storage::seams::{ActiveTxn, ActiveTxns, Versions};

use super::snapshots::Snapshots;
use super::state::{Status, TxnState};
use super::undo::{UndoRecord, UndoStore};
use crate::lockmgr::Owner;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    active: Mutex<BTreeMap<TxnId, Arc<TxnState>>>,
    next_txn: AtomicU64,
    section: Mutex<()>,
    visible_lsn: AtomicU64,
}

impl VersionBook {
    /// An empty book whose tags lie above `high_water`.
    pub fn new(high_water: Tag) -> VersionBook {
        VersionBook {
            undo: UndoStore::new(high_water),
            snapshots: Arc::new(Snapshots::new()),
            retired: Mutex::new("txn/mvcc/retired", VecDeque::new()),
            purgeable: Mutex::new("txn/mvcc/purgeable", VecDeque::new()),
            active: Mutex::new("txn/mvcc/active", BTreeMap::new()),
            next_txn: AtomicU64::new(1),
            section: Mutex::new("txn/commit/section", ()),
            visible_lsn: AtomicU64::new(0),
        }
    }

    /// The commit section: commit records are reserved and statuses stored one at a time, and never while a checkpoint counts
    /// who is active.
    pub fn section(&self) -> &Mutex<()> {
        &self.section
    }

    /// Commits at or below this are visible to whoever does not insist on durability.
    pub fn visible_lsn(&self) -> Lsn {
        Lsn(self.visible_lsn.load(Ordering::Acquire))
    }

    /// Commits up to here are visible from now on; inside the commit section, or while nobody else is about.
    pub fn publish(&self, lsn: Lsn) {
        self.visible_lsn.store(lsn.0, Ordering::Release);
    }

    /// No id at or below this is given out again.
    pub fn raise_txn(&self, high_water: TxnId) {
        self.next_txn.fetch_max(high_water.0 + 1, Ordering::Relaxed);
    }

    /// The id that the next transaction that changes something gets.
    pub fn next_txn(&self) -> TxnId {
        TxnId(self.next_txn.load(Ordering::Relaxed))
    }

    /// A transaction that changes something begins; known to checkpoints from before its first record on.
    pub fn begin(&self, owner: &Arc<Owner>) -> Arc<TxnState> {
        let mut active = self.active.lock();
        let state = TxnState::new(TxnId(self.next_txn.fetch_add(1, Ordering::Relaxed)), owner.clone());
        active.insert(state.id(), state.clone());
        state
    }

    /// A transaction that a restart found unfinished.
    pub fn adopt(&self, state: &Arc<TxnState>) {
        self.active.lock().insert(state.id(), state.clone());
    }

    /// A transaction has ended.
    pub fn end(&self, txn: TxnId) {
        self.active.lock().remove(&txn);
    }

    /// The transactions that change something now, oldest first.
    pub fn active(&self) -> Vec<Arc<TxnState>> {
        self.active.lock().values().cloned().collect()
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
            // VER-3: between its status and the publishing of `visible_lsn` a transaction still holds its locks.
            Status::Committed(lsn) if lsn <= self.visible_lsn() => Newest::Committed(lsn),
            Status::Active if record.txn.id() == me && me != TxnId::NONE => Newest::Mine(record.position),
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
            if record.before == BeforeImage::Absent || record.deletes || horizon.needs(record.before_lsn, lsn) {
                return (tag, committed);
            }
            self.undo.free(tag);
            tag = record.prev;
        }
        (tag, committed)
    }

    fn undo_of(&self, state: &TxnState, last: Lsn) -> Vec<UndoEntry> {
        let entry = |tag| self.undo.get(tag).map(|record| record.entry(tag));
        let logged = |entry: &UndoEntry| entry.lsn != Lsn::ZERO && entry.lsn <= last;
        state.all_changes().into_iter().filter_map(entry).filter(logged).collect()
    }

    /// The transaction has ended; its undo goes when everybody sees its commit, or what it undid (`at`: the end of the log then).
    pub fn retire(&self, txn: &TxnState, at: Lsn) {
        let changes = txn.take_changes();
        if !changes.is_empty() {
            self.retired.lock().push_back(Retired { commit: at, changes });
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
                    let purgeable = Purgeable { tree: record.tree, key: record.key.clone() };
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

    fn for_checkpoint(&self, previous: Lsn) -> ActiveTxns {
        let _section = self.section.lock();
        let mut txns = Vec::new();
        for state in self.active() {
            let log = state.log();
            if state.status() != Status::Active || log.first_lsn == Lsn::ZERO {
                continue;
            }
            let undo = if log.first_lsn < previous { self.undo_of(&state, log.last_lsn) } else { Vec::new() };
            txns.push(ActiveTxn { log, undo });
        }
        let next = self.next_txn().0;
        ActiveTxns { txns, tag_high_water: self.undo.high_water(), txn_high_water: TxnId(next - 1) }
    }
}
