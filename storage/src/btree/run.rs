//! Runs of edits: a run changes rows in the order of their keys, as many as are in one leaf, under one latch.
//!
//! # Life of a run
//! ```text
//! credit, without a wait -> descend -> latch -> row by row: room? -> the caller decides -> page changed, change noted for the record
//!      a page of the way that is not in memory, a parent that lacks a separator: fetched, put in, from the start again
//!      a row that does not fit, or that the caller leaves, or the end of the leaf: the run ends before it
//!      -> one record of all changes appended -> the caller learns their positions -> latch goes
//! ```
//! A run waits for pages before its first change alone, and makes only changes that need no split. The caller passes the first row that the run did not
//! change to [`Tree::edit`], and begins another run behind that row.
//!
//! A new key may lack the prefix that the leaf's keys share: among ascending numbers every 256th does. Then the run goes on in the copy, too, with the
//! prefix that is left. An edit of such a row compacts the leaf first, and then builds it anew.
//!
//! In a full leaf each change of a row would build the node anew. So a run copies the rows out at the first such change, makes the further
//! changes in the copy, and builds the node once, at its end. (Before, an update of all rows of a table spent a third of its time in
//! building nodes.)
//!
//! # Invariants
//! - BTR-18: after each change the rows of the leaf fit a node, with two bytes to spare for a longer prefix (`write::fits`). So redo, which
//!   makes the changes one after the other, succeeds at each of them (BTR-3), and so does the node that the run builds at its end.
//! - BTR-19: a run appends one record, of all its changes in their order, before its latch goes (BTR-24, BTR-25 in `run_record`). From the first change of the
//!   page to the record nothing fails or waits: the credit for a change's part of the record, and for its undo, is there before the caller decides on it.
//! - BTR-8 and BTR-9 hold as for edits.
//! - BTR-27: where a row of the page is settled and becomes a ghost under the shared tag of the page, which is that of the run's edit before it, the caller is not asked
//!   for a decision: no caller would refuse it, and its answer is known. Page, record, undo and what the caller learns are those of such a decision. (Most rows
//!   of a DELETE are such rows; a decision and a copy of the row for each were a third of what its runs took.)
//! - BTR-23: rows of one run may carry one tag. They then share it in the page, where no other tag is shared: the record of a row says so, and redo
//!   does the same. A row that only gets a shared tag takes no more room than before, and neither does its undo: so neither splits a leaf.

use super::edit::{put_at, put_over};
use super::image::{Frame, Image, NodeRow, Rows, node_bytes_with, node_of, row_bytes};
use super::node::{MEMORY_LOCKS, SLOT_BYTES, common_prefix};
use super::ops;
use super::run_record::{CHANGE_BYTES, HEAD_BYTES, RunGhosts, RunPositions, RunRecord};
use super::tree::{LeafRow, RowBuf, Tree, read_row};
use super::write::{PREFIX_SLACK, record_bytes, undo_bytes};
use super::{KEY_BYTES_MAX, ROW_BYTES_MAX};
use crate::buffer::Latched;
use crate::buffer::page::PAGE_BYTES;
use crate::error::StorageError;
use crate::ids::Tag;
use crate::record::{PageOp, Record, RecordKind, TxnLog};
use crate::seams::{Credit, PageLog, Purpose};
use crate::wal::RoomChange;

/// Log bytes that a run takes credit for beside those of its first row.
const CREDIT_BYTES: usize = 48 << 10;

/// Bytes of a tag in a row.
const TAG_BYTES: usize = 8;

/// The row that an edit of a run puts in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPut<'v> {
    /// Its value, at most as long as was announced.
    pub value: &'v [u8],
    /// Its tag.
    pub tag: Tag,
    /// It is a ghost.
    pub ghost: bool,
    /// Other rows of the run may carry the same tag (BTR-23). There was no row before, or a settled one.
    pub shares: bool,
}

/// For which tags a leaf has room (BTR-23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagRoom {
    /// For one that the row does not share.
    Any,
    /// For one that it shares.
    Shared,
    /// For that of the last edit.
    Last,
}

/// The edits of a run, numbered from 0.
pub trait RunEdits<'v> {
    /// The key of an edit, and the most bytes that its value has; none: there are no more.
    fn key(&self, n: usize) -> Option<(&'v [u8], usize)>;

    /// The tag of the last edit, if the next one may carry it as well (BTR-23).
    fn tag(&self) -> Option<Tag>;

    /// Decides on an edit under the latch of its leaf, as the closure of [`Tree::edit`]; none: the run ends before it, and nothing was done.
    /// The row then fits with a tag that `fits` allows.
    fn decide(&mut self, n: usize, leaf: LeafRow<'_>, fits: TagRoom) -> Option<RunPut<'v>>;

    /// The key of an edit that makes a ghost of any settled row that no transaction has locked, and of that row only a ghost that carries the last edit's tag (BTR-27). None: the
    /// edit has to be decided on.
    fn ghost(&self, _n: usize) -> Option<&'v [u8]> {
        None
    }

    /// BTR-27: the rows of the edits from number `n` on become ghosts that carry the last edit's tag.
    fn join_ghosts(&mut self, _n: usize, _ghosts: RunGhosts<'_>) {}

    /// The edits from number `from` on, so many, were logged at these positions. Called once, under the latch, if there was any.
    fn logged(&mut self, from: usize, count: usize, positions: RunPositions);
}

/// What the changes of a run take of the log at most.
pub(super) struct Cost {
    /// Their record, without the changes.
    record: usize,
    /// The record that undoes a change, without key and value.
    undo: usize,
}

impl Cost {
    fn of(log: &dyn PageLog) -> Cost {
        Cost { record: record_bytes(log, 1, HEAD_BYTES), undo: undo_bytes(log, 0, 0) }
    }

    /// The record that undoes a change.
    pub(super) fn undo(&self, key_len: usize, before_len: usize) -> usize {
        self.undo + key_len + before_len
    }

    /// A change, and its undo.
    fn change(&self, key_len: usize, max_value: usize, before_len: usize) -> usize {
        CHANGE_BYTES + key_len + max_value + before_len + self.undo(key_len, before_len)
    }
}

/// How far a run has come in its leaf.
pub(super) struct Pass<'v> {
    /// The number of its first edit.
    from: usize,
    pub(super) done: usize,
    /// The last edit's key.
    pub(super) last: Option<&'v [u8]>,
    /// So many rows of the leaf are below the next key: the last edit's and those before it.
    pub(super) low: usize,
    /// There is room for ghosts that are not decided on (BTR-28).
    pub(super) joins: bool,
}

impl<'v> Pass<'v> {
    /// The number of the next edit.
    pub(super) fn next(&self) -> usize {
        self.from + self.done
    }

    /// Whether a key is behind the last one and below a fence.
    fn is_in_order(&self, key: &[u8], high: Option<&[u8]>) -> bool {
        self.last.is_none_or(|last| last < key && high.is_none_or(|high| key < high))
    }

    fn made(&mut self, key: &'v [u8], slot: usize) {
        (self.last, self.low, self.done) = (Some(key), slot + 1, self.done + 1);
    }
}

/// Where the rows of the leaf stand during a run.
enum Work {
    /// In the page.
    Page,
    /// In a copy that becomes the page at the end.
    Copy(Frame, Rows),
}

/// A leaf that a run changes.
pub(super) struct Leaf<'p> {
    pub(super) latched: Latched<'p>,
    /// Its upper fence.
    high: Option<Vec<u8>>,
    work: Work,
    prefix_len: usize,
    /// Bytes that a node of these rows leaves free.
    pub(super) free: usize,
    before: RowBuf,
    /// The changes that were made.
    pub(super) record: RunRecord,
    /// Log bytes to be set aside for undoing them.
    pub(super) undo_bytes: usize,
}

impl<'p> Leaf<'p> {
    fn new(latched: Latched<'p>) -> Leaf<'p> {
        let node = node_of(latched.page());
        let (prefix_len, free) = (node.prefix_len(), node.gap() + node.garbage());
        let (high, before, record) = (node.high(), RowBuf::default(), RunRecord::default());
        Leaf { latched, high, work: Work::Page, prefix_len, free, before, record, undo_bytes: 0 }
    }

    /// Where the row with this key, which is above the first `low` rows, stands, or would; copied to `before` if it is there.
    fn find(&mut self, key: &[u8], low: usize) -> Result<usize, usize> {
        match &self.work {
            Work::Page => {
                let node = node_of(self.latched.page());
                let found = if low == 0 { node.search(key) } else { node.search_from(key, low) };
                debug_assert_eq!(found, node.search(key), "the rows before {low} are below the key");
                if let Ok(index) = found {
                    read_row(node, index, &mut self.before);
                }
                found
            }
            Work::Copy(_, rows) => {
                let found = if low == 0 { rows.search(key) } else { rows.search_from(key, low) };
                debug_assert_eq!(found, rows.search(key), "the rows before {low} are below the key");
                if let Ok(index) = found {
                    self.before.set(&rows.get(index));
                }
                found
            }
        }
    }

    fn shared_tag(&self) -> Tag {
        match &self.work {
            Work::Page => node_of(self.latched.page()).shared_tag(),
            Work::Copy(frame, _) => frame.shared_tag,
        }
    }

    /// BTR-27: whether ghosts may carry the tag of the last edit, this one, without a decision.
    pub(super) fn may_join(&self, tag: Option<Tag>) -> bool {
        let (shared, flags) = (self.shared_tag(), self.latched.page().flags());
        let carries = !shared.is_settled() && tag == Some(shared) && flags & MEMORY_LOCKS == 0;
        carries && matches!(self.work, Work::Page)
    }

    /// Log bytes of the record and the undo of the changes up to now.
    pub(super) fn log_bytes(&self, cost: &Cost) -> usize {
        cost.record + self.record.bytes() + self.undo_bytes
    }

    /// For which tags there is room beside any row with this key and at most so many bytes, if there is any (BTR-18). `tag`: that of the last edit,
    /// which the next one may carry.
    fn tag_room(
        &mut self,
        key: &[u8],
        max_value: usize,
        found: Result<usize, usize>,
        tag: Option<Tag>,
    ) -> Option<TagRoom> {
        // A value that does not grow, a tag, a longer code of the value's length, and a longer prefix.
        if found.is_ok() && max_value <= self.before.value().len() && self.free >= TAG_BYTES + 1 + PREFIX_SLACK {
            return Some(TagRoom::Any);
        }
        if self.fits(key, max_value, found, true) {
            return Some(TagRoom::Any);
        }
        let shared = self.shared_tag();
        let room = match shared.is_settled() {
            true => TagRoom::Shared,
            // BTR-23
            false if tag == Some(shared) => TagRoom::Last,
            false => return None,
        };
        self.fits(key, max_value, found, false).then_some(room)
    }

    /// BTR-18: whether any row with this key and at most so many bytes fits the node; with a tag of its own, if `own`.
    fn fits(&mut self, key: &[u8], max_value: usize, found: Result<usize, usize>, own: bool) -> bool {
        // In a copy the prefix may be shorter than in the page.
        let has_prefix = || {
            let node = node_of(self.latched.page());
            key.len() >= self.prefix_len
                && node.0.compare(node.tail(), self.prefix_len, &key[..self.prefix_len]).is_eq()
        };
        if found.is_err() && !has_prefix() {
            return self.shorten_prefix(key, max_value);
        }
        let most = |value_len| row_bytes(key.len() - self.prefix_len, value_len, false, own);
        match found {
            Err(_) => most(max_value) + PREFIX_SLACK <= self.free,
            Ok(_) => {
                let (before, after) = (self.bytes_before(key), most(max_value.max(self.before.value().len())));
                // What does not grow is put in the place of what was there, by redo too.
                after <= before || after + PREFIX_SLACK - before <= self.free
            }
        }
    }

    /// Goes on in a copy with the prefix that the keys there share with a new one, if then any row with this key and at most so many bytes fits
    /// (BTR-18); else nothing is changed.
    fn shorten_prefix(&mut self, key: &[u8], max_value: usize) -> bool {
        let node = node_of(self.latched.page());
        let copied = match self.work {
            Work::Page => Some((Frame::of(node), Rows::of(node, 0, node.count()))),
            Work::Copy(..) => None,
        };
        let (frame, rows) = match (&copied, &self.work) {
            (Some((frame, rows)), _) | (None, Work::Copy(frame, rows)) => (frame, rows),
            (None, Work::Page) => return false,
        };
        if rows.len() == 0 {
            return false;
        }
        let shared = common_prefix(&rows.get(0).key[..self.prefix_len], key);
        let bytes = node_bytes_with(frame, rows, shared);
        let more = row_bytes(key.len() - shared, max_value, false, true) + PREFIX_SLACK;
        if bytes + more > PAGE_BYTES {
            return false;
        }
        (self.prefix_len, self.free) = (shared, PAGE_BYTES - bytes);
        if let Some((frame, rows)) = copied {
            self.work = Work::Copy(frame, rows);
        }
        true
    }

    /// Bytes that the row in `before` takes in the node.
    fn bytes_before(&self, key: &[u8]) -> usize {
        let own = !self.before.tag.is_settled() && self.before.tag != self.shared_tag();
        row_bytes(key.len() - self.prefix_len, self.before.value().len(), self.before.overflow, own)
    }

    /// Puts a row in place, which fits.
    fn put(&mut self, row: &NodeRow<'_>, found: Result<usize, usize>, shares: bool) {
        if let Work::Page = self.work {
            let node = node_of(self.latched.page());
            if let Ok(index) = found
                && put_over(self.latched.page(), row, index, shares)
            {
                self.free = node.gap() + node.garbage();
                return;
            }
            let shared = node.shared_tag();
            let own = row.tag != shared && !(shared.is_settled() && (shares || found.is_err()));
            let needed = row_bytes(row.key.len() - self.prefix_len, row.value.len(), row.overflow, own);
            let in_place = found.is_ok_and(|index| node.cell(node.slot(index)).len() + SLOT_BYTES >= needed);
            if node.count() > 1 && !in_place && node.gap() < needed {
                self.work = Work::Copy(Frame::of(node), Rows::of(node, 0, node.count()));
            }
        }
        let bytes_before = match self.work {
            Work::Copy(..) if found.is_ok() => self.bytes_before(row.key),
            _ => 0,
        };
        match &mut self.work {
            Work::Page => {
                put_at(self.latched.page(), row, found, shares).expect("BTR-18: the row fits");
                let node = node_of(self.latched.page());
                // The prefix of a node that was built anew may be longer.
                (self.prefix_len, self.free) = (node.prefix_len(), node.gap() + node.garbage());
            }
            Work::Copy(frame, rows) => {
                // As `edit::put_at` shares a tag.
                if frame.shared_tag.is_settled() && (found.is_err() || shares) {
                    frame.shared_tag = row.tag;
                }
                if let Ok(index) = found {
                    rows.remove(index);
                }
                let index = found.unwrap_or_else(|index| index);
                rows.insert(index, row);
                let own = !row.tag.is_settled() && row.tag != frame.shared_tag;
                let bytes = row_bytes(row.key.len() - self.prefix_len, row.value.len(), row.overflow, own);
                self.free = (self.free + bytes_before).checked_sub(bytes).expect("BTR-18: the row fits");
            }
        }
    }

    /// Puts a row in place, which fits, and notes the change for the record. Returns what it does to the room in the leaf.
    fn change(&mut self, row: &NodeRow<'_>, found: Result<usize, usize>, shares: bool) -> RoomChange {
        self.latched.will_change();
        self.put(row, found, shares);
        if shares {
            // BTR-23: undo puts the row back without a tag.
            self.before.tag = Tag::SETTLED;
        }
        let before = found.is_ok().then(|| self.before.row());
        self.record.push(row, shares, before);
        RoomChange::of(row.key.len(), before.map(|before| before.value.len()), Some(row.value.len()))
    }

    /// The copy becomes the page.
    fn finish(&self) {
        if let (Work::Copy(frame, rows), true) = (&self.work, self.record.changes() > 0) {
            let mut image = Image::new();
            assert!(image.build(frame, rows, 0, rows.len()), "BTR-18: the rows of a leaf fit a node");
            image.store(self.latched.page());
        }
    }
}

impl Tree {
    /// Makes the edits from number `from` on that stand in one leaf and can be made at once; says how many were made. 0: the first one is for
    /// [`Tree::edit`]. Dropped early, the run has not happened.
    ///
    /// # Errors
    /// Those of a descent; poisoned.
    pub async fn edit_run<'v, E>(&self, log: &mut TxnLog, from: usize, edits: &mut E) -> Result<usize, StorageError>
    where
        E: RunEdits<'v> + Send,
    {
        let Some((key, max_value)) = edits.key(from) else { return Ok(0) };
        if key.len() > KEY_BYTES_MAX || key.len() + max_value > ROW_BYTES_MAX {
            return Ok(0);
        }
        let Some(root) = self.root_now() else { return Ok(0) };
        self.pool().throttle().await?;
        let wal = &**self.pool().log();
        let cost = Cost::of(wal);
        let first = cost.record + cost.change(key.len(), max_value, ROW_BYTES_MAX - key.len());
        let more = if edits.key(from + 1).is_some() { CREDIT_BYTES } else { 0 };
        loop {
            let Some(mut credit) = wal.try_credit(Purpose::Change, first + more) else { return Ok(0) };
            let obstacle = match self.latch_leaf(root, key)? {
                Ok(leaf) => return Ok(self.run_in(Leaf::new(leaf), &cost, log, &mut credit, from, edits)),
                Err(obstacle) => obstacle,
            };
            // BTR-8. Before, the first row of a leaf that was not in memory was left to a single edit, and a tag of its own split the leaf.
            drop(credit);
            self.clear(obstacle, key, max_value, Purpose::Change).await?;
        }
    }

    fn run_in<'v>(
        &self,
        mut leaf: Leaf<'_>,
        cost: &Cost,
        log: &mut TxnLog,
        credit: &mut Credit<'_>,
        from: usize,
        edits: &mut impl RunEdits<'v>,
    ) -> usize {
        let (page, flags) = (leaf.latched.page().id(), leaf.latched.page().flags());
        let undo_room = self.pool().log().undo_room();
        let mut pass = Pass { from, done: 0, last: None, low: 0, joins: true };
        while let Some((key, max_value)) = edits.key(pass.next()) {
            let in_order = pass.is_in_order(key, leaf.high.as_deref());
            if !in_order || key.len() > KEY_BYTES_MAX || key.len() + max_value > ROW_BYTES_MAX {
                break;
            }
            let found = leaf.find(key, pass.low);
            let before_len = found.map_or(0, |_| leaf.before.value().len());
            // BTR-19
            if credit.left_bytes() < leaf.log_bytes(cost) + cost.change(key.len(), max_value, before_len) {
                break;
            }
            let Some(fits) = leaf.tag_room(key, max_value, found, edits.tag()) else { break };
            let at_most = RoomChange { given_up: found.map_or(0, |_| PAGE_BYTES), taken: key.len() + max_value + 32 };
            if undo_room.is_some_and(|room| !room.allows(at_most)) {
                break;
            }
            let slot = found.unwrap_or_else(|index| index) as u16;
            let row = found.is_ok().then(|| leaf.before.row());
            let leaf_row = LeafRow { row, memory_locks: flags & MEMORY_LOCKS != 0, page, slot };
            let Some(put) = edits.decide(pass.next(), leaf_row, fits) else { break };
            assert!(put.value.len() <= max_value, "BTR-9: a value longer than announced");
            let row = NodeRow { key, value: put.value, tag: put.tag, ghost: put.ghost, overflow: false };
            leaf.undo_bytes += cost.undo(key.len(), before_len);
            let change = leaf.change(&row, found, put.shares);
            if let Some(claims) = undo_room {
                claims.changed(log, change);
            }
            let count = node_of(leaf.latched.page()).count();
            self.note_append(page, found.is_err() && usize::from(slot) + 1 >= count);
            pass.made(key, usize::from(slot));
            self.join_ghosts(&mut leaf, (cost, credit), log, edits, &mut pass);
        }
        let done = pass.done;
        leaf.finish();
        if done > 0 {
            let positions = self.append_run(&mut leaf, log, credit);
            edits.logged(from, done, positions);
        }
        done
    }

    /// BTR-19
    fn append_run(&self, leaf: &mut Leaf<'_>, log: &mut TxnLog, credit: &mut Credit<'_>) -> RunPositions {
        let wal = self.pool().log();
        let previous = log.last_lsn;
        let (head, changes) = leaf.record.parts(self.id());
        let record = Record {
            kind: RecordKind::Run,
            txn: log.txn,
            undo_next: previous,
            undo: None,
            ops: &[PageOp { page: leaf.latched.page().id(), op: ops::RUN, payload: &[&head, changes] }],
            body: &[],
        };
        wal.set_aside(credit, log, leaf.undo_bytes);
        let range = wal.append(credit, &record);
        leaf.latched.changed(range.end);
        let positions = leaf.record.positions(range, previous);
        log.appended_run(range, positions.of(leaf.record.changes() - 1).0);
        positions
    }
}
