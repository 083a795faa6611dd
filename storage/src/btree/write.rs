//! Changes of rows: edit, undo. Each latches one leaf and appends one record, without a wait in between.
//!
//! # Life of an edit
//! ```text
//!   credit -> descend -> latch -> room? -> closure -> page changed, record appended, page_lsn set -> latch goes
//!      ^         | miss: fetch       | no: strip or split
//!      |         | separator missing: put it in
//!      +---------+-------------------+   everything given back before any wait
//! ```
//!
//! # Invariants
//! - BTR-8: credit is never held across a wait, so a task that waits for log space waits for background work alone.
//! - BTR-9: the closure runs exactly once, under the latch of the leaf that owns the key, and the change it decides on fits.

use super::descend::{Descent, Pending, Target};
use super::edit::{put, put_at, remove};
use super::image::{NodeRow, node_of, row_bytes};
use super::node::{MEMORY_LOCKS, Node, SLOT_BYTES};
use super::ops;
use super::tree::{Edit, LeafRow, Row, RowBuf, Tree, read_row};
use super::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use crate::buffer::page::{PAGE_BYTES, Probe, kind};
use crate::buffer::{Latched, Miss, ReadReason};
use crate::error::{Corruption, StorageError};
use crate::ids::{PageId, Tag};
use crate::mutation::{self, Mutation};
use crate::record::{Before, BeforeImage, LsnRange, PageOp, Record, RecordKind, RowUndo, TxnLog, UndoEntry};
use crate::seams::{Credit, PageLog, Purpose};
use crate::wal::RoomChange;
use std::borrow::Cow;

/// Why an attempt ended without doing its work.
pub(super) enum Obstacle {
    /// This page must be fetched.
    Miss(Miss),
    /// The leaf must be stripped or split first.
    Room,
    /// There must be more pages, for undo (SPC-7).
    Pages,
    /// A parent lacks a separator.
    Separator(Pending),
    /// A page changed meanwhile.
    Again,
}

/// How an attempt ended.
pub(super) type Attempt<T> = Result<Result<T, Obstacle>, StorageError>;

/// What a record costs in the log: `parts` bytes of arguments, keys and images in `ops` operations.
pub(super) fn record_bytes(log: &dyn PageLog, ops: usize, parts: usize) -> usize {
    let (per_record, per_op) = log.overhead_bytes();
    per_record + ops * per_op + parts
}

/// Bytes set aside when a change is made for the record that undoes it.
pub fn undo_bytes(log: &dyn PageLog, key_len: usize, before_len: usize) -> usize {
    // Flags, key length, tag: at most 16 bytes.
    record_bytes(log, 1, 16 + key_len + before_len)
}

/// Credit: at once where there is room.
pub(super) async fn take_credit(log: &dyn PageLog, purpose: Purpose, bytes: usize) -> Result<Credit<'_>, StorageError> {
    match log.try_credit(purpose, bytes) {
        Some(credit) => Ok(credit),
        None => log.credit(purpose, bytes).await,
    }
}

impl Tree {
    fn check_lengths(&self, key: &[u8], value_len: usize) -> Result<(), StorageError> {
        if key.len() > KEY_BYTES_MAX {
            return Err(StorageError::KeyTooLong { len: key.len(), max: KEY_BYTES_MAX });
        }
        let max = ROW_BYTES_MAX - key.len();
        if value_len > max {
            return Err(StorageError::ValueTooLong { len: value_len, max });
        }
        Ok(())
    }

    /// The longest value that a leaf holds for a key; longer ones go to [`Tree::write_overflow`].
    pub fn inline_max(key_len: usize) -> usize {
        ROW_BYTES_MAX.saturating_sub(key_len)
    }

    /// Calls `f` once with the row that `key` has now, under the exclusive latch of its leaf, and does what it
    /// decides, logged as one Row record. A value may have `max_value` bytes at most. `f` neither waits, nor
    /// latches pages, nor panics. Dropped early, the edit has not happened.
    pub async fn edit<'v, T, F>(
        &self,
        log: &mut TxnLog,
        key: &[u8],
        max_value: usize,
        f: F,
    ) -> Result<(T, Option<LsnRange>), StorageError>
    where
        F: FnOnce(LeafRow<'_>) -> (Edit<'v>, T) + Send,
        T: Send,
    {
        self.check_lengths(key, max_value)?;
        let root = self.root().await?;
        let wal = &**self.pool().log();
        // The before-image may be any row with this key; its undo is paid for as well.
        let before_max = ROW_BYTES_MAX - key.len();
        let bytes = record_bytes(wal, 1, 16 + key.len() + max_value + key.len() + before_max)
            + undo_bytes(wal, key.len(), before_max);
        let mut f = Some(f);
        let mut before = RowBuf::default();
        self.pool().throttle().await?;
        loop {
            let mut credit = take_credit(wal, Purpose::Change, bytes).await?;
            let attempt = self.try_edit(root, log, &mut credit, key, max_value, &mut before, &mut f)?;
            // BTR-8.
            drop(credit);
            match attempt {
                Ok(done) => return Ok(done),
                Err(obstacle) => self.clear(obstacle, key, max_value, Purpose::Change).await?,
            }
        }
    }

    /// Removes what stood in an attempt's way.
    pub(super) async fn clear(
        &self,
        obstacle: Obstacle,
        key: &[u8],
        max_value: usize,
        purpose: Purpose,
    ) -> Result<(), StorageError> {
        match obstacle {
            Obstacle::Miss(miss) => self.pool().fetch_missing(miss, ReadReason::Path).await.map(|_| ()),
            Obstacle::Room => self.make_room(key, max_value, purpose).await,
            Obstacle::Pages => self.pool().space().room_for_undo().await,
            Obstacle::Separator(pending) => self.put_separator(pending, purpose).await,
            Obstacle::Again => {
                self.pool().counters().restarts.add(1);
                Ok(())
            }
        }
    }

    /// The leaf that owns `key`, latched, if a run of ascending keys goes on there.
    pub(super) fn latch_append_leaf(&self, key: &[u8]) -> Option<Latched<'_>> {
        let page = self.pool().read(self.append_leaf()?)?;
        let node = Node(page.page);
        // BTR-6: the same questions as at the end of a descent.
        let is_here =
            node.0.kind() == kind::NODE && node.0.tree() == self.id() && node.is_leaf() && node.owns(&Probe::of(key));
        if !is_here {
            return None;
        }
        let leaf = page.latch()?;
        self.pool().counters().appends.add(1);
        Some(leaf)
    }

    /// The leaf that owns `key`, latched.
    pub(super) fn latch_leaf(&self, root: PageId, key: &[u8]) -> Attempt<Latched<'_>> {
        if let Some(leaf) = self.latch_append_leaf(key) {
            return Ok(Ok(leaf));
        }
        Ok(match self.descend(root, Target::Key(key), 0)? {
            Descent::Miss(miss) => Err(Obstacle::Miss(miss)),
            Descent::Shallow => Err(Obstacle::Again),
            Descent::At(_, Some(pending)) => Err(Obstacle::Separator(pending)),
            Descent::At(leaf, None) => self.latch(&leaf).ok_or(Obstacle::Again),
        })
    }

    #[expect(clippy::too_many_arguments, reason = "one attempt of one caller; a struct would only rename them")]
    fn try_edit<'v, T, F>(
        &self,
        root: PageId,
        log: &mut TxnLog,
        credit: &mut Credit<'_>,
        key: &[u8],
        max_value: usize,
        before: &mut RowBuf,
        f: &mut Option<F>,
    ) -> Attempt<(T, Option<LsnRange>)>
    where
        F: FnOnce(LeafRow<'_>) -> (Edit<'v>, T),
    {
        let mut leaf = match self.latch_leaf(root, key)? {
            Ok(leaf) => leaf,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        if !has_room(&mut leaf, key, max_value) {
            return Ok(Err(Obstacle::Room));
        }
        let node = node_of(leaf.page());
        let probe = Probe::of(key);
        let found = match self.append_leaf() == Some(node.0.id()) {
            true => node.search_behind(&probe),
            false => node.search_for(&probe),
        };
        if let Ok(index) = found {
            read_row(node, index, before);
        }
        let slot = found.unwrap_or_else(|index| index);
        self.note_append(node.0.id(), found.is_err() && slot == node.count());
        let row = found.is_ok().then(|| before.row());
        // What the closure makes of the row is not known yet.
        let at_most = RoomChange { given_up: row.map_or(0, |_| PAGE_BYTES), taken: key.len() + max_value + 32 };
        if self.pool().log().undo_room().is_some_and(|room| !room.allows(at_most)) {
            return Ok(Err(Obstacle::Pages));
        }
        let memory_locks = node.0.flags() & MEMORY_LOCKS != 0;
        let f = f.take().expect("BTR-9: an attempt that calls the closure is the last");
        let (edit, result) = f(LeafRow { row, memory_locks, page: node.0.id(), slot: slot as u16 });
        let before = row;
        let range = match edit {
            Edit::Keep => None,
            Edit::SetMemoryLockHint => {
                leaf.will_change();
                leaf.page().set_flags(leaf.page().flags() | MEMORY_LOCKS);
                None
            }
            Edit::Put { value, tag, ghost, overflow } => {
                assert!(
                    value.len() <= max_value.max(before.map_or(0, |row| row.value.len())),
                    "BTR-9: a value longer than announced"
                );
                let row = NodeRow { key, value: &value, tag, ghost, overflow };
                Some(self.log_put(&mut leaf, log, credit, &row, found, before))
            }
            Edit::Remove => before.map(|before| self.log_remove(&mut leaf, log, credit, key, before)),
        };
        Ok(Ok((result, range)))
    }

    fn log_put(
        &self,
        leaf: &mut Latched<'_>,
        log: &mut TxnLog,
        credit: &mut Credit<'_>,
        row: &NodeRow<'_>,
        found: Result<usize, usize>,
        before: Option<Row<'_>>,
    ) -> LsnRange {
        leaf.will_change();
        put_at(leaf.page(), row, found, false).expect("BTR-9: room was made");
        let head = [ops::put_flags(row)];
        let payload = [&head[..], row.value];
        let room = RoomChange::of(row.key.len(), before.map(|before| before.value.len()), Some(row.value.len()));
        self.append_row(leaf, log, credit, ops::PUT, &payload, row.key, row.tag, before, room)
    }

    /// Tells background work of a leaf that has become half empty.
    pub(super) fn note_sparse(&self, leaf: &Latched<'_>) {
        if node_of(leaf.page()).used_bytes() < PAGE_BYTES / 2 {
            self.pool().note_untidy(self.id());
        }
    }

    fn log_remove(
        &self,
        leaf: &mut Latched<'_>,
        log: &mut TxnLog,
        credit: &mut Credit<'_>,
        key: &[u8],
        before: Row<'_>,
    ) -> LsnRange {
        let mut args = Vec::with_capacity(1);
        ops::remove_args(None, &mut args);
        leaf.will_change();
        assert!(remove(leaf.page(), key), "the row that was just read");
        self.note_sparse(leaf);
        let room = RoomChange::of(key.len(), Some(before.value.len()), None);
        self.append_row(leaf, log, credit, ops::REMOVE, &[&args], key, Tag::SETTLED, Some(before), room)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one record")]
    pub(super) fn append_row(
        &self,
        leaf: &mut Latched<'_>,
        log: &mut TxnLog,
        credit: &mut Credit<'_>,
        op: u8,
        payload: &[&[u8]],
        key: &[u8],
        tag: Tag,
        before: Option<Row<'_>>,
        room: RoomChange,
    ) -> LsnRange {
        let wal = self.pool().log();
        let undo = RowUndo {
            tree: self.id(),
            key,
            tag,
            prev_tag: before.map_or(Tag::SETTLED, |row| row.tag),
            before: before.map_or(Before::Absent, |row| Before::Row {
                ghost: row.ghost,
                overflow: row.overflow,
                value: row.value,
            }),
        };
        let record = Record {
            kind: RecordKind::Row,
            txn: log.txn,
            undo_next: log.last_lsn,
            undo: Some(undo),
            ops: &[PageOp { page: leaf.page().id(), op, payload }],
            body: &[],
        };
        let reserve = undo_bytes(&**wal, key.len(), before.map_or(0, |row| row.value.len()));
        wal.set_aside(credit, log, reserve);
        let range = wal.append(credit, &record);
        leaf.changed(range.end);
        log.appended(range);
        if let Some(claims) = wal.undo_room() {
            claims.changed(log, room);
        }
        range
    }

    /// Undoes one change of a row: finds it by its key wherever it stands now, and puts back what was there.
    /// Logged as a compensation record that names the next change to undo. Dropped early, it has not happened.
    pub async fn compensate(&self, log: &mut TxnLog, entry: &UndoEntry) -> Result<LsnRange, StorageError> {
        let root = self.root().await?;
        let wal = self.pool().log().clone();
        let value_len = match &entry.before {
            BeforeImage::Absent => 0,
            BeforeImage::Row { value, .. } => value.len(),
        };
        let bytes = undo_bytes(&*wal, entry.key.len(), value_len);
        loop {
            let mut credit = wal.credit_for_undo(bytes).await?;
            let attempt = self.try_compensate(root, log, &mut credit, entry, value_len)?;
            drop(credit);
            match attempt {
                Ok(range) => {
                    wal.undo_spent(log, bytes);
                    return Ok(range);
                }
                Err(obstacle) => self.clear(obstacle, &entry.key, value_len, Purpose::System).await?,
            }
        }
    }

    fn try_compensate(
        &self,
        root: PageId,
        log: &mut TxnLog,
        credit: &mut Credit<'_>,
        entry: &UndoEntry,
        value_len: usize,
    ) -> Attempt<LsnRange> {
        let mut leaf = match self.latch_leaf(root, &entry.key)? {
            Ok(leaf) => leaf,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        if !undone_in_place(&leaf, entry) && !has_room(&mut leaf, &entry.key, value_len) {
            return Ok(Err(Obstacle::Room));
        }
        self.check_undoable(&leaf, entry)?;
        let room = room_of(&leaf, entry);
        leaf.will_change();
        let mut head = Vec::with_capacity(16 + entry.key.len());
        let (op, value): (u8, &[u8]) = match &entry.before {
            BeforeImage::Absent => {
                remove(leaf.page(), &entry.key);
                self.note_sparse(&leaf);
                ops::remove_args(Some(&entry.key), &mut head);
                (ops::REMOVE, &[])
            }
            BeforeImage::Row { ghost, overflow, value } => {
                let row = NodeRow { key: &entry.key, value, tag: entry.prev_tag, ghost: *ghost, overflow: *overflow };
                ops::put_head(&row, &mut head);
                put(leaf.page(), &row).expect("BTR-9: room was made");
                (ops::PUT, value)
            }
        };
        let record = Record {
            kind: RecordKind::Compensation,
            txn: log.txn,
            undo_next: if mutation::active(Mutation::NoUndoNext) { entry.lsn } else { entry.undo_next },
            undo: None,
            ops: &[PageOp { page: leaf.page().id(), op, payload: &[&head, value] }],
            body: &[],
        };
        let range = self.pool().log().append(credit, &record);
        leaf.changed(range.end);
        log.last_lsn = entry.undo_next;
        if let Some(claims) = self.pool().log().undo_room() {
            claims.undone(log, room);
        }
        Ok(Ok(range))
    }

    /// The row that is to be undone carries the tag that the change wrote; or was removed, if that was the change.
    fn check_undoable(&self, leaf: &Latched<'_>, entry: &UndoEntry) -> Result<(), StorageError> {
        let node = node_of(leaf.page());
        let tag = node.search(&entry.key).ok().map(|index| {
            let slot = node.slot(index);
            node.tag(slot, &node.cell(slot))
        });
        let removed = tag.is_none() && entry.tag.is_settled();
        if removed || tag == Some(entry.tag) {
            return Ok(());
        }
        let expected = format!("a row with key {:02x?} and {:?}", entry.key, entry.tag);
        let found = tag.map_or("no such row".to_owned(), |tag| format!("{tag:?}"));
        let page = leaf.page().id();
        let corruption = Corruption::in_page(page, leaf.page().lsn(), expected, found);
        Err(corruption.in_file(self.pool().space().file_name(page)).into())
    }
}

/// BTR-23: whether the undo of a change takes no more room than the change does: the row goes, or becomes no longer. A full leaf has no room even
/// for the tag for which an edit would ask, and a split here would take pages that are not set aside (WAL-20).
fn undone_in_place(leaf: &Latched<'_>, entry: &UndoEntry) -> bool {
    let node = node_of(leaf.page());
    let BeforeImage::Row { overflow, value, .. } = &entry.before else { return true };
    let own = |tag: Tag| !tag.is_settled() && tag != node.shared_tag();
    node.search(&entry.key).is_ok_and(|index| {
        let slot = node.slot(index);
        let cell = node.cell(slot);
        let now = row_bytes(cell.suffix_len, cell.value_len, cell.overflow, own(node.tag(slot, &cell)));
        row_bytes(cell.suffix_len, value.len(), *overflow, own(entry.prev_tag)) <= now
    })
}

/// What a change, which still stands in the leaf, did to the room there.
fn room_of(leaf: &Latched<'_>, entry: &UndoEntry) -> RoomChange {
    let node = node_of(leaf.page());
    let after = node.search(&entry.key).ok().map(|index| node.cell(node.slot(index)).value_len);
    let before = match &entry.before {
        BeforeImage::Absent => None,
        BeforeImage::Row { value, .. } => Some(value.len()),
    };
    RoomChange::of(entry.key.len(), before, after)
}

/// Whether any row with `key` and at most `max_value` bytes fits the node; compacts it if that is what it takes.
pub(super) fn has_room(leaf: &mut Latched<'_>, key: &[u8], max_value: usize) -> bool {
    let node = node_of(leaf.page());
    fits(node, key, max_value) || fits_anew(node, key, max_value) || super::split::compact(leaf, key, max_value)
}

/// Whether a key without the node's prefix, for which putting the row builds the node anew, surely fits then: each key grows by what the prefix loses,
/// and perhaps by a byte of its length. So a compaction that would build the node for nothing is left out: of a leaf that is filled from the left,
/// the second row and each that ends the prefix took two such builds.
pub(super) fn fits_anew(node: Node<'_>, key: &[u8], max_value: usize) -> bool {
    let prefix_len = node.prefix_len();
    let shared = node.0.common(node.tail(), prefix_len, key);
    if shared == prefix_len {
        return false;
    }
    let grown = node.count() * (prefix_len - shared + 1);
    let row = row_bytes(key.len() - shared, max_value, false, true) + PREFIX_SLACK;
    node.used_bytes() + grown + row + super::split::WORTH_COMPACTING <= PAGE_BYTES
}

/// A node that is built anew has the longest prefix that its keys share; it may take so many bytes more than a shorter one
/// did, where all keys end within two bytes of it.
pub(super) const PREFIX_SLACK: usize = 2;

/// The same without a compaction; false also where only that would tell. What fits here also fits a node of the same rows
/// that lies in its page in another way, as redo may find it (BTR-3).
pub(super) fn fits(node: Node<'_>, key: &[u8], max_value: usize) -> bool {
    let prefix_len = node.prefix_len();
    if key.len() < prefix_len || node.0.compare(node.tail(), prefix_len, &key[..prefix_len]).is_ne() {
        return false;
    }
    let most = |value_len| row_bytes(key.len() - prefix_len, value_len, false, true) + PREFIX_SLACK;
    if node.gap() >= most(max_value) {
        return true;
    }
    // A row that is there needs room only for what it grows by; it may also keep its value and get a tag.
    node.search(key).is_ok_and(|index| {
        let cell = node.cell(node.slot(index));
        let growth = most(max_value.max(cell.value_len)).saturating_sub(SLOT_BYTES + cell.len());
        growth <= node.gap() + node.garbage()
    })
}

/// Whether an inner node has room for a separator in the place of another one, which goes in the same record.
pub(super) fn fits_instead(node: Node<'_>, gone: &[u8], separator: &[u8]) -> bool {
    let prefix_len = node.prefix_len();
    if separator.len() < prefix_len || node.0.compare(node.tail(), prefix_len, &separator[..prefix_len]).is_ne() {
        return false;
    }
    let bytes = row_bytes(separator.len() - prefix_len, size_of::<u32>(), false, false) + PREFIX_SLACK;
    node.search(gone).is_ok_and(|index| {
        let growth = bytes.saturating_sub(SLOT_BYTES + node.cell(node.slot(index)).len());
        growth <= node.gap() + node.garbage()
    })
}

/// A value that stands in the caller's memory.
impl<'v> Edit<'v> {
    /// Puts a live row.
    pub fn put(value: &'v [u8], tag: Tag) -> Edit<'v> {
        Edit::Put { value: Cow::Borrowed(value), tag, ghost: false, overflow: false }
    }

    /// Leaves a ghost without a value.
    pub fn ghost(tag: Tag) -> Edit<'v> {
        Edit::Put { value: Cow::Borrowed(&[]), tag, ghost: true, overflow: false }
    }
}
