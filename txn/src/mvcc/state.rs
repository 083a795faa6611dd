//! What everybody may know of a transaction that changes something: whether it runs, committed (when) or aborted.
//!
//! # Invariants
//! - TXN-1: the status leaves `Active` once; to `Committed` inside the commit section, after the record was reserved; to
//!   `Aborted` when the last change is undone.
//! - TXN-5: `superseded` names the chain of each change that stands and replaced an overflow value, in their order; storage gets the list
//!   in the commit section, so that a checkpoint finds each chain with the transaction or among what is to be freed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_base::waits::now_ns;
use clearway_storage::ids::{Lsn, Tag, TreeId, TxnId};
use clearway_storage::record::{BeforeImage, TxnLog};

use crate::lockmgr::Owner;

const ACTIVE: u64 = 0;
const ABORTED: u64 = u64::MAX;

/// How a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs, or undoes its changes.
    Active,
    /// Its commit record ends here.
    Committed(Lsn),
    /// It has undone all its changes.
    Aborted,
}

/// A transaction that changes something.
pub struct TxnState {
    id: TxnId,
    owner: Arc<Owner>,
    status: AtomicU64,
    position: AtomicU32,
    since_ns: u64,
    /// The tags of its changes, oldest first.
    changes: Mutex<Vec<Tag>>,
    /// The overflow chains that its changes superseded, oldest first.
    superseded: Mutex<Vec<(TreeId, [u8; 16])>>,
    /// Its place in the log as checkpoints see it; its session has the original.
    log: Mutex<TxnLog>,
}

impl TxnState {
    /// A transaction that begins to change.
    pub fn new(id: TxnId, owner: Arc<Owner>) -> Arc<TxnState> {
        Arc::new(TxnState {
            id,
            owner,
            status: AtomicU64::new(ACTIVE),
            position: AtomicU32::new(0),
            since_ns: now_ns(),
            changes: Mutex::new("txn/mvcc/changes", Vec::new()),
            superseded: Mutex::new("txn/mvcc/superseded", Vec::new()),
            log: Mutex::new("txn/mvcc/log", TxnLog::new(id)),
        })
    }

    /// Its id.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// Its session.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// When it began to change something, by the clock of wait events.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        match self.status.load(Ordering::Acquire) {
            ACTIVE => Status::Active,
            ABORTED => Status::Aborted,
            lsn => Status::Committed(Lsn(lsn)),
        }
    }

    /// TXN-1: it committed.
    pub fn committed(&self, lsn: Lsn) {
        let was = self.status.swap(lsn.0, Ordering::AcqRel);
        assert_eq!(was, ACTIVE, "TXN-1: {:?}", self.id);
    }

    /// TXN-1: it has undone everything.
    pub fn aborted(&self) {
        let was = self.status.swap(ABORTED, Ordering::AcqRel);
        assert_eq!(was, ACTIVE, "TXN-1: {:?}", self.id);
    }

    /// Its session has changed its place in the log.
    pub fn moved(&self, log: &TxnLog) {
        self.log.lock().clone_from(log);
    }

    /// Its place in the log.
    pub fn log(&self) -> TxnLog {
        self.log.lock().clone()
    }

    pub(super) fn next_position(&self) -> u32 {
        self.position.fetch_add(1, Ordering::Relaxed)
    }

    /// How many changes it has made, undone ones included: a mark for statements, savepoints and cursors.
    pub fn position(&self) -> u32 {
        self.position.load(Ordering::Relaxed)
    }

    pub(super) fn changed(&self, tag: Tag) {
        self.changes.lock().push(tag);
    }

    /// Takes the latest change off the list.
    pub fn pop_change(&self) -> Option<Tag> {
        self.changes.lock().pop()
    }

    /// The latest change.
    pub fn last_change(&self) -> Option<Tag> {
        self.changes.lock().last().copied()
    }

    /// How many changes stand.
    pub fn changes(&self) -> usize {
        self.changes.lock().len()
    }

    /// All that stand, oldest first.
    pub fn all_changes(&self) -> Vec<Tag> {
        self.changes.lock().clone()
    }

    /// A change put another version in the place of one whose value stands in an overflow chain.
    pub fn superseded(&self, tree: TreeId, before: &BeforeImage) {
        if let Some(reference) = chain_of(before) {
            self.superseded.lock().push((tree, reference));
        }
    }

    /// Such a change, the latest that stands, has been undone.
    pub fn restored(&self, before: &BeforeImage) {
        if chain_of(before).is_some() {
            self.superseded.lock().pop();
        }
    }

    /// The chains that go when it has committed (TXN-5).
    pub fn take_superseded(&self) -> Vec<(TreeId, [u8; 16])> {
        std::mem::take(&mut *self.superseded.lock())
    }

    /// Takes the whole list, when the transaction has ended.
    pub fn take_changes(&self) -> Vec<Tag> {
        std::mem::take(&mut *self.changes.lock())
    }
}

/// The overflow chain in which a version's value stands.
fn chain_of(before: &BeforeImage) -> Option<[u8; 16]> {
    match before {
        BeforeImage::Row { overflow: true, value, .. } => value[..].try_into().ok(),
        _ => None,
    }
}

impl fmt::Debug for TxnState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.id, self.status())
    }
}
