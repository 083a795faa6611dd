//! The shared state of a writing transaction: its status, its changes, and its place in the log.
//!
//! # Invariants
//! - TXN-1: the status leaves `Active` once. It becomes `Committed` inside the commit section, after the commit record was reserved, or
//!   `Aborted` when the last change is undone.
//! - TXN-5: `superseded` lists, in the order of the changes, the overflow chain of each value that a standing change replaced. Storage gets
//!   the list before the commit section and learns the commit LSN in it. So a checkpoint finds each chain either with the transaction or among
//!   the chains to be freed.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use clearway_base::memory::Outside;
use clearway_base::sync::{Class, Mutex};
use clearway_base::waits::now_ns;
use clearway_storage::ids::{Lsn, Tag, TreeId, TxnId};
use clearway_storage::record::{BeforeImage, TxnLog};

use crate::lockmgr::Owner;

// A transaction has mutexes of its own: their classes are not looked for by their names each time.
static CHANGES: Class = Class::new("txn/mvcc/changes");
static SUPERSEDED: Class = Class::new("txn/mvcc/superseded");
static LOG: Class = Class::new("txn/mvcc/log");

const ACTIVE: u64 = 0;
const ABORTED: u64 = u64::MAX;

/// The status of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The transaction runs, or is undoing its changes.
    Active,
    /// The transaction committed; its commit record ends at this LSN.
    Committed(Lsn),
    /// The transaction has undone all its changes.
    Aborted,
}

/// The tags of a transaction's changes, oldest first. As the records that they lead to, the list belongs to no session's account.
#[derive(Debug, Default)]
pub(super) struct Tags {
    tags: Vec<Tag>,
    memory: Option<Outside>,
}

impl Tags {
    pub(super) fn as_slice(&self) -> &[Tag] {
        &self.tags
    }

    fn push(&mut self, tag: Tag) {
        if self.tags.len() == self.tags.capacity() {
            self.tags.reserve(1);
            self.memory = Some(Outside::new(self.tags.capacity() * size_of::<Tag>()));
        }
        self.tags.push(tag);
    }
}

/// A transaction that changes something.
pub struct TxnState {
    id: TxnId,
    owner: Arc<Owner>,
    status: AtomicU64,
    position: AtomicU32,
    undo_bytes: AtomicU64,
    since_ns: u64,
    /// The tags of its changes, oldest first.
    changes: Mutex<Tags>,
    /// The overflow chains that its changes superseded, oldest first.
    superseded: Mutex<Vec<(TreeId, [u8; 16])>>,
    /// A copy, for checkpoints, of the transaction's place in the log. The session has the original.
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
            undo_bytes: AtomicU64::new(0),
            since_ns: now_ns(),
            changes: Mutex::of_class(&CHANGES, Tags::default()),
            superseded: Mutex::of_class(&SUPERSEDED, Vec::new()),
            log: Mutex::of_class(&LOG, TxnLog::new(id)),
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

    /// The status.
    pub fn status(&self) -> Status {
        match self.status.load(Ordering::Acquire) {
            ACTIVE => Status::Active,
            ABORTED => Status::Aborted,
            lsn => Status::Committed(Lsn(lsn)),
        }
    }

    /// Sets the status to `Committed` (TXN-1).
    pub fn committed(&self, lsn: Lsn) {
        let was = self.status.swap(lsn.0, Ordering::AcqRel);
        assert_eq!(was, ACTIVE, "TXN-1: {:?}", self.id);
    }

    /// Sets the status to `Aborted`; every change has been undone (TXN-1).
    pub fn aborted(&self) {
        let was = self.status.swap(ABORTED, Ordering::AcqRel);
        assert_eq!(was, ACTIVE, "TXN-1: {:?}", self.id);
    }

    /// Copies the session's place in the log, after the session has moved it.
    pub fn moved(&self, log: &TxnLog) {
        self.log.lock().clone_from(log);
    }

    /// Its place in the log.
    pub fn log(&self) -> TxnLog {
        self.log.lock().clone()
    }

    pub(super) fn next_position(&self) -> u32 {
        let position = self.position.fetch_add(1, Ordering::Relaxed);
        assert!(position < u32::MAX, "UND-3: {:?} has made as many changes as there are positions", self.id);
        position
    }

    /// How many changes it has made, undone ones included: a mark for statements, savepoints and cursors.
    pub fn position(&self) -> u32 {
        self.position.load(Ordering::Relaxed)
    }

    pub(super) fn changed(&self, tag: Tag, undo_bytes: u64) {
        // The transaction's own session is the only writer.
        self.undo_bytes.store(self.undo_bytes.load(Ordering::Relaxed) + undo_bytes, Ordering::Relaxed);
        self.changes.lock().push(tag);
    }

    /// The record of its latest change has become larger by so many bytes.
    pub(super) fn grew(&self, undo_bytes: u64) {
        self.undo_bytes.store(self.undo_bytes.load(Ordering::Relaxed) + undo_bytes, Ordering::Relaxed);
    }

    /// How many bytes of undo its changes have written, those of undone changes included.
    pub fn undo_bytes(&self) -> u64 {
        self.undo_bytes.load(Ordering::Relaxed)
    }

    /// Takes the latest change off the list.
    pub fn pop_change(&self) -> Option<Tag> {
        self.changes.lock().tags.pop()
    }

    /// The latest change.
    pub fn last_change(&self) -> Option<Tag> {
        self.changes.lock().tags.last().copied()
    }

    /// How many changes stand.
    pub fn changes(&self) -> usize {
        self.changes.lock().tags.len()
    }

    /// All that stand, oldest first.
    pub fn all_changes(&self) -> Vec<Tag> {
        self.changes.lock().tags.clone()
    }

    /// Notes the overflow chain of a version that a change has replaced, if it had one.
    pub fn superseded(&self, tree: TreeId, before: &BeforeImage) {
        if let Some(reference) = chain_of(before) {
            self.superseded.lock().push((tree, reference));
        }
    }

    /// Removes the latest noted chain, if the change that was just undone had replaced a version with a chain.
    pub fn restored(&self, before: &BeforeImage) {
        if chain_of(before).is_some() {
            self.superseded.lock().pop();
        }
    }

    /// Takes the chains that are to be freed after the commit (TXN-5).
    pub fn take_superseded(&self) -> Vec<(TreeId, [u8; 16])> {
        std::mem::take(&mut *self.superseded.lock())
    }

    /// Takes the whole list, when the transaction has ended.
    pub(super) fn take_changes(&self) -> Tags {
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
