//! One undo record: the version before a change, and what a rollback needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::memory::Outside;
use clearway_storage::ids::{Lsn, Tag, TreeId};
use clearway_storage::record::{Before, BeforeImage, UndoEntry};

use super::fate::Passed;
use super::key::RowKey;
use super::rows::RunRows;
use super::snapshots::Horizon;
use super::state::{Status, TxnState};
use crate::lockmgr::LockMode;

/// The transaction that made a change.
#[derive(Clone, Debug)]
pub enum Writer {
    /// A transaction that runs, or has ended but whose commit is not known to be durable.
    Live(Arc<TxnState>),
    /// A transaction whose commit, at this LSN, is durable.
    Ended(Lsn),
}

/// Where a record that was read from the spill file stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) span: u64,
    pub(super) index: u32,
}

/// The parts of a record that few records have. In the record itself they would make it a quarter larger, and a statement that changes many rows
/// writes a record for each of them: first uses of memory were a third of the time of a COPY.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    moved_to: Option<Box<[u8]>>,
    passed: Option<Box<Passed>>,
    spot: Option<Spot>,
    rows: Option<Arc<RunRows>>,
}

impl Aside {
    /// None if there are no such parts.
    pub(super) fn of(
        moved_to: Option<Box<[u8]>>,
        passed: Option<Box<Passed>>,
        spot: Option<Spot>,
        rows: Option<Arc<RunRows>>,
    ) -> Option<Box<Aside>> {
        let any = moved_to.is_some() || passed.is_some() || spot.is_some() || rows.is_some();
        any.then(|| Box::new(Aside { moved_to, passed, spot, rows }))
    }

    /// Its bytes on the heap, without the summary's.
    fn bytes(&self) -> usize {
        let rows = self.rows.as_ref().map_or(0, |rows| rows.bytes());
        size_of::<Aside>() + self.moved_to.as_ref().map_or(0, |key| key.len()) + rows
    }
}

/// One change of one row; or, with the same change each, of several rows (`rows`).
#[derive(Debug)]
pub struct UndoRecord {
    /// The transaction that made the change.
    pub writer: Writer,
    /// The position of the change in its transaction, from 0.
    pub position: u32,
    /// The tree.
    pub tree: TreeId,
    /// The key in the tree, of several rows the first one's; empty if it is no longer needed.
    pub key: RowKey,
    /// The row before the change; of several rows the first one's (RSH-5).
    pub(super) before: BeforeImage,
    /// The record is a link: it keeps no row before the change, which no snapshot can read, and only leads to `prev` (PRU-2).
    pub dropped: bool,
    /// The tag that the row had before.
    pub prev: Tag,
    /// The commit LSN of the version before the change; zero if it is no longer needed.
    pub before_lsn: Lsn,
    /// The lock mode that the change implies: `RowUpdate` for a delete or a change of key, else `RowNoKeyUpdate`.
    pub strength: LockMode,
    /// The change deleted the row and left a ghost.
    pub deletes: bool,
    /// No row carries its tag: the undo of a tree or of pages.
    pub rowless: bool,
    /// The transaction's changes at this key stand over a row that its snapshot shows and another transaction has deleted since (VER-4).
    pub over_shown: bool,
    /// What few records have.
    pub(super) aside: Option<Box<Aside>>,
    /// No change of the row that was committed after this moment, before this one, ended the row or changed its key columns (FAT-3).
    pub intact_since: Lsn,
    pub(super) lsn: AtomicU64,
    pub(super) undo_next: AtomicU64,
    /// Old versions have a budget of their own; no session's account pays for them.
    pub(super) _memory: Outside,
}

/// Bytes on the heap of a record with these parts.
pub(super) fn heap(key: &[u8], before: &BeforeImage, aside: Option<&Aside>) -> Outside {
    let before = match before {
        BeforeImage::Absent => 0,
        BeforeImage::Row { value, .. } => value.len(),
    };
    Outside::new(
        size_of::<UndoRecord>()
            + 2 * size_of::<usize>()
            + RowKey::heap_bytes(key.len())
            + before
            + aside.map_or(0, Aside::bytes),
    )
}

/// The parts of a new record; see [`UndoRecord`].
#[derive(Debug)]
pub struct NewUndo {
    /// The transaction that makes the change.
    pub txn: Arc<TxnState>,
    /// The tree.
    pub tree: TreeId,
    /// The key.
    pub key: RowKey,
    /// The row before.
    pub before: BeforeImage,
    /// Its tag.
    pub prev: Tag,
    /// The commit LSN of that version.
    pub before_lsn: Lsn,
    /// The lock mode that the change implies.
    pub strength: LockMode,
    /// The change deletes the row.
    pub deletes: bool,
    /// No row carries its tag.
    pub rowless: bool,
    /// See [`UndoRecord::over_shown`].
    pub over_shown: bool,
    /// The row's new key, for a delete that is half of a key update.
    pub moved_to: Option<Box<[u8]>>,
    /// See [`UndoRecord::intact_since`].
    pub intact_since: Lsn,
}

impl UndoRecord {
    /// The next record of a transaction.
    pub(super) fn new(new: NewUndo) -> UndoRecord {
        let aside = Aside::of(new.moved_to, None, None, None);
        UndoRecord {
            _memory: heap(&new.key, &new.before, aside.as_deref()),
            position: new.txn.next_position(),
            writer: Writer::Live(new.txn),
            tree: new.tree,
            key: new.key,
            before: new.before,
            dropped: false,
            prev: new.prev,
            before_lsn: new.before_lsn,
            strength: new.strength,
            deletes: new.deletes,
            rowless: new.rowless,
            over_shown: new.over_shown,
            aside,
            intact_since: new.intact_since,
            lsn: AtomicU64::new(0),
            undo_next: AtomicU64::new(0),
        }
    }

    /// For a delete that is half of a key update: the row's new key.
    pub fn moved_to(&self) -> Option<&[u8]> {
        self.aside.as_ref()?.moved_to.as_deref()
    }

    /// A summary of the changes between `prev` and this one, which the record leads past (FAT-2).
    pub fn passed(&self) -> Option<&Passed> {
        self.aside.as_ref()?.passed.as_deref()
    }

    /// The rows of a run, if the change is of several rows (RSH-1).
    pub(crate) fn rows(&self) -> Option<&Arc<RunRows>> {
        self.aside.as_ref()?.rows.as_ref()
    }

    /// The keys of its rows.
    pub(super) fn for_each_key(&self, mut f: impl FnMut(RowKey)) {
        match self.rows() {
            Some(rows) => rows.iter().for_each(|(key, ..)| f(key.into())),
            None => f(self.key.clone()),
        }
    }

    /// The row before the change, of the one of its rows that has this key (RSH-5).
    ///
    /// # Panics
    /// If it is of several rows, and none has the key.
    pub fn before_of(&self, key: &[u8]) -> Before<'_> {
        match &self.before {
            BeforeImage::Absent => Before::Absent,
            BeforeImage::Row { ghost, overflow, value } => {
                let value = match self.rows() {
                    None => value,
                    Some(rows) => rows.value_of(key).unwrap_or_else(|| panic!("RSH-5: a row {key:02x?} of {self:?}")),
                };
                Before::Row { ghost: *ghost, overflow: *overflow, value }
            }
        }
    }

    /// Whether there was a row before the change, and not a ghost.
    pub fn keeps_live_row(&self) -> bool {
        matches!(self.before, BeforeImage::Row { ghost: false, .. })
    }

    /// The value before of the first of its rows.
    pub(crate) fn first_value(&self) -> &[u8] {
        match &self.before {
            BeforeImage::Absent => &[],
            BeforeImage::Row { value, .. } => value,
        }
    }

    /// Its change was undone: the transaction has not superseded the chain any more that it had noted for it, if any. Rows of a run have none (RSH-2).
    pub(crate) fn restored_chain(&self, state: &TxnState) {
        state.restored(&self.before);
    }

    /// Where it stands in the spill file, if it was read from there.
    pub(super) fn spot(&self) -> Option<Spot> {
        self.aside.as_ref()?.spot
    }

    /// Whether the change left the row at its key, and its key columns as they were; so did all that the record leads past.
    pub fn keeps_row(&self) -> bool {
        !self.deletes && self.strength != LockMode::RowUpdate && self.passed().is_none()
    }

    /// The status of its transaction.
    pub fn status(&self) -> Status {
        match &self.writer {
            Writer::Live(txn) => txn.status(),
            Writer::Ended(lsn) => Status::Committed(*lsn),
        }
    }

    /// Its transaction, for a record whose writer another transaction may have to wait for.
    ///
    /// # Panics
    /// If the commit is durable already (PRU-1): no transaction waits for such a writer.
    pub fn live(&self) -> &Arc<TxnState> {
        match &self.writer {
            Writer::Live(txn) => txn,
            Writer::Ended(lsn) => panic!("PRU-1: committed at {lsn:?}, and durable"),
        }
    }

    /// Whether both records have the same live writer.
    pub fn is_of(&self, other: &UndoRecord) -> bool {
        match (&self.writer, &other.writer) {
            (Writer::Live(a), Writer::Live(b)) => a.id() == b.id(),
            _ => false,
        }
    }

    /// The position of the change's log record; zero until it is logged.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.lsn.load(Ordering::Acquire))
    }

    /// The transaction's log record before that.
    pub fn undo_next(&self) -> Lsn {
        Lsn(self.undo_next.load(Ordering::Acquire))
    }

    /// The change was logged.
    pub fn logged(&self, lsn: Lsn, undo_next: Lsn) {
        assert!(undo_next < lsn, "TXN-4: the record at {lsn} leads on to {undo_next}");
        self.undo_next.store(undo_next.0, Ordering::Release);
        self.lsn.store(lsn.0, Ordering::Release);
    }

    /// Whether a snapshot can read the version before the change, which was committed at `commit`.
    pub(super) fn is_needed(&self, commit: Lsn, horizon: &Horizon) -> bool {
        !self.dropped && !self.rowless && horizon.needs(self.before_lsn, commit)
    }

    /// Bytes that the record counts in the undo budget. A transaction's first record counts the transaction's state, too.
    pub fn bytes(&self) -> usize {
        let before = match &self.before {
            BeforeImage::Absent => 0,
            BeforeImage::Row { value, .. } => value.len(),
        };
        let txn = match &self.writer {
            // The tag in the list of changes, which grows by doubling.
            Writer::Live(_) if self.position > 0 => 2 * size_of::<Tag>(),
            Writer::Live(_) => size_of::<TxnState>() + 4 * size_of::<Tag>(),
            Writer::Ended(_) => 0,
        };
        let aside = self.aside.as_ref().map_or(0, |aside| aside.bytes()) + self.passed().map_or(0, Passed::bytes);
        size_of::<UndoRecord>() + 2 * size_of::<usize>() + RowKey::heap_bytes(self.key.len()) + before + aside + txn
    }

    /// The changes as their rollback needs them, oldest first: one for each row (RSH-1).
    pub fn entries(&self, tag: Tag) -> Vec<UndoEntry> {
        let entry = |key: Box<[u8]>, before, lsn, undo_next| UndoEntry {
            lsn,
            undo_next,
            tree: self.tree,
            key,
            tag,
            prev_tag: self.prev,
            before,
        };
        let Some(rows) = self.rows() else {
            return vec![entry((&self.key).into(), self.before.clone(), self.lsn(), self.undo_next())];
        };
        // RSH-5
        let before = |value: &[u8]| match self.before {
            BeforeImage::Absent => BeforeImage::Absent,
            BeforeImage::Row { ghost, overflow, .. } => BeforeImage::Row { ghost, overflow, value: value.into() },
        };
        let mut next = self.undo_next();
        let change = |(key, value, lsn): (&[u8], &[u8], Lsn)| {
            entry(key.into(), before(value), lsn, std::mem::replace(&mut next, lsn))
        };
        rows.iter().map(change).collect()
    }

    /// The record with these rows of its run, instead of the first ones; not logged yet (RSH-4).
    pub(super) fn with_rows(&self, rows: RunRows, undo_next: Lsn) -> UndoRecord {
        let first = rows.iter().next().map(|(key, ..)| key);
        assert!(first == Some(&self.key[..]), "RSH-1: the record's row is the first one");
        assert!(self.moved_to().is_none() && self.passed().is_none() && self.prev.is_settled(), "RSH-2: {self:?}");
        let aside = Aside::of(None, None, None, Some(Arc::new(rows)));
        UndoRecord {
            _memory: heap(&self.key, &self.before, aside.as_deref()),
            writer: self.writer.clone(),
            key: self.key.clone(),
            before: self.before.clone(),
            aside,
            lsn: AtomicU64::new(0),
            undo_next: AtomicU64::new(undo_next.0),
            ..*self
        }
    }

    /// A copy of the record for a durable commit. It keeps the commit LSN in place of the transaction.
    pub(super) fn ended(&self, commit: Lsn) -> UndoRecord {
        assert!(matches!(self.writer, Writer::Live(_)), "PRU-1: a record is separated from its transaction once");
        assert!(commit > Lsn::ZERO, "PRU-1: what ends has committed");
        // What was committed is not undone: a purge asks for the keys, and snapshots for the values before (RSH-5).
        let rows = self.rows().filter(|_| self.deletes || self.before != BeforeImage::Absent).cloned();
        let aside = Aside::of(self.moved_to().map(Into::into), self.passed().cloned().map(Box::new), None, rows);
        UndoRecord {
            _memory: heap(&self.key, &self.before, aside.as_deref()),
            writer: Writer::Ended(commit),
            key: self.key.clone(),
            before: self.before.clone(),
            aside,
            lsn: AtomicU64::new(self.lsn.load(Ordering::Acquire)),
            undo_next: AtomicU64::new(self.undo_next.load(Ordering::Acquire)),
            ..*self
        }
    }

    /// A link in the record's place: without the version before, leading to `prev` (PRU-2) past the changes that `passed` sums up (FAT-2).
    pub(super) fn link(&self, commit: Lsn, prev: Tag, passed: Option<Box<Passed>>) -> UndoRecord {
        assert!(!self.rowless, "PRU-2: a link is in the chain of a row");
        assert!(commit > Lsn::ZERO, "PRU-1: what becomes a link has committed");
        assert!(
            self.rows().is_none(),
            "RSH-2: no snapshot is between a settled version and the change that replaced it"
        );
        let key = if self.deletes { self.key.clone() } else { RowKey::default() };
        let aside = Aside::of(self.moved_to().map(Into::into), passed, None, None);
        UndoRecord {
            _memory: heap(&key, &BeforeImage::Absent, aside.as_deref()),
            writer: Writer::Ended(commit),
            key,
            before: BeforeImage::Absent,
            dropped: true,
            prev,
            aside,
            lsn: AtomicU64::new(0),
            undo_next: AtomicU64::new(0),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_plain_change_takes_this_much_memory() {
        // With the two counts of its `Arc` it takes a block of the allocator of 160 bytes.
        let bytes = size_of::<UndoRecord>() + 2 * size_of::<usize>();
        assert!(bytes <= 152, "{bytes} bytes for each row that a statement changes");
        assert!(Aside::of(None, None, None, None).is_none());
    }
}
