//! What pages, trees, space and transactions write to the log: records, page operations, undo.
//!
//! # Structure
//! A [`Record`] is one atomic mini-transaction: any number of page operations, and for a row change the undo
//! that recovery, rollback, replicas and change streams need. The log encodes it; redo hands each page
//! operation to the [`Redo`] registered for its op code.
//!
//! # Not here
//! The byte format (the log's), the meaning of op codes (trees and space).

use crate::buffer::PageMut;
use crate::error::Corruption;
use crate::ids::{Lsn, PageId, Tag, TreeId, TxnId};

/// Where a record lies in the log stream; `end` is exclusive and is what a page remembers as its `page_lsn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsnRange {
    /// First byte of the record.
    pub start: Lsn,
    /// One past its last byte.
    pub end: Lsn,
}

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A change of one row by a transaction, with its undo.
    Row = 1,
    /// One undo step: redo only, names the next record to undo.
    Compensation = 2,
    /// A change of structure: split, merge, allocation, free, purge, strip.
    Structure = 3,
    /// A transaction committed.
    Commit = 4,
    /// A transaction has undone all of its changes.
    AbortEnd = 5,
    /// A checkpoint begins.
    CheckpointBegin = 6,
    /// A checkpoint ended; the body says from where redo starts.
    CheckpointEnd = 7,
    /// Reserved: a transaction is prepared.
    Prepare = 8,
    /// Changes of several rows of one leaf by a transaction, with their undo (BTR-24).
    Run = 9,
}

impl RecordKind {
    /// The kind with this code, if there is one.
    pub fn from_code(code: u8) -> Option<RecordKind> {
        Some(match code {
            1 => RecordKind::Row,
            2 => RecordKind::Compensation,
            3 => RecordKind::Structure,
            4 => RecordKind::Commit,
            5 => RecordKind::AbortEnd,
            6 => RecordKind::CheckpointBegin,
            7 => RecordKind::CheckpointEnd,
            8 => RecordKind::Prepare,
            9 => RecordKind::Run,
            _ => return None,
        })
    }
}

/// One record to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What it is for.
    pub kind: RecordKind,
    /// Whose it is; [`TxnId::NONE`] for structure.
    pub txn: TxnId,
    /// Row and run: the transaction's change before. Compensation: the next change to undo.
    pub undo_next: Lsn,
    /// How to undo it; present exactly in Row records. A Run record has the undo of its changes in its operation (BTR-25).
    pub undo: Option<RowUndo<'a>>,
    /// Changes of pages, applied together or not at all.
    pub ops: &'a [PageOp<'a>],
    /// What the kind asks for (commit, checkpoint).
    pub body: &'a [u8],
}

impl<'a> Record<'a> {
    /// A change of structure.
    pub fn structure(ops: &'a [PageOp<'a>]) -> Record<'a> {
        Record { kind: RecordKind::Structure, txn: TxnId::NONE, undo_next: Lsn::ZERO, undo: None, ops, body: &[] }
    }
}

/// The identity of a row and what it was before.
#[derive(Clone, Copy, Debug)]
pub struct RowUndo<'a> {
    /// The row's tree.
    pub tree: TreeId,
    /// The row's key.
    pub key: &'a [u8],
    /// The tag that the change wrote.
    pub tag: Tag,
    /// The tag that stood there.
    pub prev_tag: Tag,
    /// The row before the change.
    pub before: Before<'a>,
}

/// A row before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before<'a> {
    /// There was none.
    Absent,
    /// There was one.
    Row {
        /// It was a ghost.
        ghost: bool,
        /// Its value is a reference to an overflow chain.
        overflow: bool,
        /// Its value as the leaf held it.
        value: &'a [u8],
    },
}

/// [`Before`], owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeforeImage {
    /// There was none.
    Absent,
    /// There was one.
    Row {
        /// It was a ghost.
        ghost: bool,
        /// Its value is a reference to an overflow chain.
        overflow: bool,
        /// Its value as the leaf held it.
        value: Box<[u8]>,
    },
}

impl BeforeImage {
    /// The same, borrowed.
    pub fn as_before(&self) -> Before<'_> {
        match self {
            BeforeImage::Absent => Before::Absent,
            BeforeImage::Row { ghost, overflow, value } => Before::Row { ghost: *ghost, overflow: *overflow, value },
        }
    }
}

/// One change that a transaction made, as its rollback needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoEntry {
    /// Its position: the start of its Row record, or a position within a Run record (BTR-24).
    pub lsn: Lsn,
    /// That of the transaction's change before it, or zero.
    pub undo_next: Lsn,
    /// The row's tree.
    pub tree: TreeId,
    /// The row's key.
    pub key: Box<[u8]>,
    /// The tag that the change wrote.
    pub tag: Tag,
    /// The tag that stood there before.
    pub prev_tag: Tag,
    /// The row before.
    pub before: BeforeImage,
}

/// One change of one page. Codes 1..=63 belong to trees, 64..=95 to space.
#[derive(Clone, Copy, Debug)]
pub struct PageOp<'a> {
    /// The page.
    pub page: PageId,
    /// Which change.
    pub op: u8,
    /// Its arguments, in parts that are copied one after the other into the log.
    pub payload: &'a [&'a [u8]],
}

/// What redo sees of the record that an operation belongs to.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    /// What it is for.
    pub kind: RecordKind,
    /// Where it lies.
    pub lsn: LsnRange,
    /// Its undo part.
    pub undo: Option<RowUndo<'a>>,
}

/// Applies page operations again. The page is latched for the caller alone; `page_lsn` is set by the caller.
pub trait Redo: Send + Sync {
    /// Whether `op` makes the page anew, whatever it held.
    fn is_init(&self, op: u8) -> bool;
    /// Applies `op` to the page.
    fn redo(&self, page: &PageMut<'_>, op: u8, payload: &[u8], record: &RecordView<'_>) -> Result<(), Corruption>;
}

/// A transaction's place in the log; changed by trees under the leaf latch, carried by the layer above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxnLog {
    /// The transaction.
    pub txn: TxnId,
    /// Start of its first record, or zero.
    pub first_lsn: Lsn,
    /// Position of its last change (the next to undo), or zero.
    pub last_lsn: Lsn,
    /// Bytes of log set aside for undoing what was done so far.
    pub undo_reserved: usize,
    /// Changes that made a row shorter, and the bytes that they gave up: what undoing them wants back of its leaf.
    pub room_rows: u64,
    /// See `room_rows`.
    pub room_bytes: u64,
}

impl TxnLog {
    /// A transaction that has logged nothing yet.
    pub fn new(txn: TxnId) -> TxnLog {
        TxnLog { txn, ..TxnLog::default() }
    }

    /// Notes a Row record.
    pub fn appended(&mut self, range: LsnRange) {
        assert!(range.start < range.end, "a record has bytes");
        assert!(
            range.start > self.last_lsn,
            "{:?}: a record at {} after one at {}",
            self.txn,
            range.start,
            self.last_lsn
        );
        if self.first_lsn == Lsn::ZERO {
            self.first_lsn = range.start;
        }
        self.last_lsn = range.start;
    }

    /// Notes a Run record, whose last change has this position (BTR-24).
    pub fn appended_run(&mut self, range: LsnRange, last: Lsn) {
        self.appended(range);
        assert!((range.start..range.end).contains(&last), "BTR-24: a change at {last} of a record at {range:?}");
        self.last_lsn = last;
    }
}
