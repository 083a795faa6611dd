//! Making room in a node: compact it, strip settled tags, split it; then put the new node's separator into the parent.
//!
//! # Life of a split
//! ```text
//!   1  pages reserved, frames pinned, credit taken                          no latch yet
//!   2  one record: left keeps its rows up to the separator and links to     latches: the node, the new node,
//!      the new right node, which gets the others and the old right link     space's pages
//!   3  the separator is put into the parent, a step of its own              latch: the parent
//! ```
//! After 2 the tree is whole: a descent that comes from the parent to the left node moves right by its link, and a writer
//! then does step 3. A root splits into two new nodes and keeps its page, so the tree's root never changes; the split of a
//! root has no step 3.
//!
//! # Invariants
//! - BTR-10: a node appears in its parent only while it is alive with that separator as its low fence. A node that
//!   its parent does not know is never merged away.
//! - BTR-11: no neighbour is read in order to be latched: a split touches the node, new nodes and, later, the
//!   parent.
//!
//! # Crash safety
//! Step 2 is one record with the allocation. A crash before step 3 leaves a tree that is whole.

use super::descend::{Descent, Pending, Target};
use super::edit::{Strip, put, separator};
use super::image::{Frame, Image, NodeRow, Rows, node_of, row_bytes};
use super::node::{Node, SLOT_BYTES, common_prefix};
use super::ops;
use super::tree::Tree;
use super::write::{has_room, record_bytes, take_credit};
use crate::buffer::page::PAGE_BYTES;
use crate::buffer::{Latched, Miss, Pin, ReadReason};
use crate::error::{Corruption, StorageError};
use crate::ids::{PageId, Tag};
use crate::mutation::{self, Mutation};
use crate::record::{PageOp, Record};
use crate::seams::{Credit, PageReservation, Purpose, SpaceLatch};

/// What is left free at least after a compaction that makes a split needless; below that the next row would
/// compact again.
pub(super) const WORTH_COMPACTING: usize = PAGE_BYTES / 24;

/// Rearranges a node so that a row with `key` and at most `max_value` bytes fits; false if it can't, or only just.
/// Not logged: what the node holds stays the same (BTR-3).
pub(super) fn compact(leaf: &mut Latched<'_>, key: &[u8], max_value: usize) -> bool {
    let node = node_of(leaf.page());
    let found = node.search(key);
    if !may_win(node, key, max_value, found) {
        return false;
    }
    let mut rows = Rows::of(node, 0, node.count());
    let frame = Frame::of(node);
    let replaced = found.is_ok();
    let mut with = Rows::of(node, 0, node.count());
    let index = found.unwrap_or_else(|index| index);
    if replaced {
        with.remove(index);
    }
    let filler = vec![0; max_value];
    with.insert(index, &NodeRow { key, value: &filler, tag: Tag(u64::MAX), ghost: false, overflow: false });
    let mut image = Image::new();
    if !image.build(&frame, &with, 0, with.len()) {
        return false;
    }
    if image.used_bytes() + WORTH_COMPACTING > PAGE_BYTES && with.len() > 2 {
        return false;
    }
    if !image.build(&frame, &rows, 0, rows.len()) {
        return false;
    }
    rows.clear();
    leaf.rearranged();
    image.store(leaf.page());
    true
}

/// A cheap look before the dear one: whether garbage, a longer prefix and the row that goes could make room at all, and enough of it. (Without the
/// second question each split of a leaf in which one transaction deletes many rows was preceded by two builds in vain.)
fn may_win(node: Node<'_>, key: &[u8], max_value: usize, found: Result<usize, usize>) -> bool {
    let count = node.count();
    if count == 0 {
        return true;
    }
    let shared = common_prefix(&node.key(0), &node.key(count - 1));
    let longer = shared.saturating_sub(node.prefix_len()) * count;
    let replaced = found.map_or(0, |index| SLOT_BYTES + node.cell(node.slot(index)).len());
    let least = row_bytes(key.len().saturating_sub(shared), max_value, false, true);
    let spare = if count + usize::from(found.is_err()) > 2 { WORTH_COMPACTING } else { 0 };
    node.gap() + node.garbage() + longer + replaced >= least + spare
}

/// How a node is cut in two.
struct Cut {
    /// Rows that stay.
    keep: usize,
    /// The new fence between the halves.
    separator: Vec<u8>,
}

/// How a cut treats a key behind or before all others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The full node stays behind and the key goes into an empty one, so that loading in order fills pages.
    Apart,
    /// The same, but the last row goes along: with the fence that it gets, the node would be too full.
    WithLast,
    /// Like any other.
    Middle,
}

/// Where to cut a node that is to take `key`.
fn choose_cut(rows: &Rows, key: &[u8], is_leaf: bool, ends: Ends) -> Cut {
    let count = rows.len();
    let position = rows.iter().take_while(|row| row.key < key).count();
    let at_ends = ends != Ends::Middle;
    if ends == Ends::Apart && is_leaf && position == count {
        return Cut { keep: count, separator: separator(rows.get(count - 1).key, key) };
    }
    if ends == Ends::Apart && is_leaf && position == 0 && rows.get(0).key != key {
        return Cut { keep: 0, separator: separator(key, rows.get(0).key) };
    }
    let keep = if at_ends && position == count {
        count - 1
    } else {
        let total: usize = rows.iter().map(|row| row.key.len() + row.value.len() + 8).sum();
        let mut before = 0;
        let mut keep = 0;
        for row in rows.iter() {
            if before * 2 >= total {
                break;
            }
            before += row.key.len() + row.value.len() + 8;
            keep += 1;
        }
        keep.clamp(1, count - 1)
    };
    let right = rows.get(keep).key;
    let separator = if is_leaf { separator(rows.get(keep - 1).key, right) } else { right.to_vec() };
    Cut { keep, separator }
}

/// A split worked out, not yet done.
struct Plan {
    cut: Cut,
    left: Image,
    right: Image,
}

/// A split of a leaf before a key behind all of its rows: the rows stay as they lie, and the key goes into an empty leaf. None: it is no such
/// split, or the leaf has no room for its new fence. (As each leaf of rows that come in order is split so once, the general way, which copies
/// all rows and builds both nodes of them, took a tenth of the time of a COPY.)
fn plan_behind(node: Node<'_>, key: &[u8], left_id: PageId, right_id: PageId) -> Option<Plan> {
    let count = node.count();
    if !node.is_leaf() || count < 2 || node.search(key) != Err(count) {
        return None;
    }
    let separator = separator(&node.key(count - 1), key);
    let left = Image::fenced(node, left_id, right_id, &separator)?;
    let right_frame = Frame { id: right_id, low: separator.clone(), ..Frame::of(node) };
    let mut right = Image::new();
    let fits = right.build(&right_frame, &Rows::default(), 0, 0);
    fits.then_some(Plan { cut: Cut { keep: count, separator }, left, right })
}

/// Works a split out. `ids` are the numbers that the halves will have.
fn plan(node: Node<'_>, key: &[u8], left_id: PageId, right_id: PageId) -> Option<Plan> {
    if let Some(plan) = plan_behind(node, key, left_id, right_id) {
        return Some(plan);
    }
    let rows = Rows::of(node, 0, node.count());
    if rows.len() < 2 {
        return None;
    }
    let frame = Frame::of(node);
    for ends in [Ends::Apart, Ends::WithLast, Ends::Middle] {
        let cut = choose_cut(&rows, key, node.is_leaf(), ends);
        let left_frame = Frame { id: left_id, right: right_id, high: Some(cut.separator.clone()), ..frame.clone() };
        let right_frame = Frame { id: right_id, low: cut.separator.clone(), ..frame.clone() };
        let (mut left, mut right) = (Image::new(), Image::new());
        if left.build(&left_frame, &rows, 0, cut.keep) && right.build(&right_frame, &rows, cut.keep, rows.len()) {
            return Some(Plan { cut, left, right });
        }
    }
    None
}

/// What one attempt at a split came to.
enum Outcome {
    Done(Option<Pending>),
    Needless,
    Miss(Miss, ReadReason),
    Again,
    /// The node is the root, or no longer is: so many pages are needed.
    Pages(usize),
}

impl Tree {
    /// Makes room in the leaf of `key` for a row of at most `max_value` bytes: strips what is settled, or splits.
    pub(super) async fn make_room(&self, key: &[u8], max_value: usize, purpose: Purpose) -> Result<(), StorageError> {
        if self.strip_for(key, max_value, purpose).await? {
            return Ok(());
        }
        self.split(key, max_value, 0, purpose).await
    }

    /// Strips the leaf of `key`; whether that made room.
    async fn strip_for(&self, key: &[u8], max_value: usize, purpose: Purpose) -> Result<bool, StorageError> {
        let root = self.root().await?;
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 1, 16 + 2 * PAGE_BYTES / 4);
        let mut credit = take_credit(&*wal, purpose, bytes).await?;
        let Descent::At(leaf, _) = self.descend(root, Target::Key(key), 0)? else {
            return Ok(false);
        };
        let Some(mut leaf) = self.latch(&leaf) else {
            return Ok(false);
        };
        if !Strip::seems_possible(leaf.page(), |tag| self.versions().is_settled(tag)) {
            return Ok(false);
        }
        if !self.strip_latched(&mut leaf, &mut credit) || !has_room(&mut leaf, key, max_value) {
            return Ok(false);
        }
        self.pool().counters().splits_avoided.add(1);
        Ok(true)
    }

    /// Strips a latched leaf of what is settled; whether there was anything.
    pub(super) fn strip_latched(&self, leaf: &mut Latched<'_>, credit: &mut Credit<'_>) -> bool {
        let strip = Strip::find(leaf.page(), |tag| self.versions().is_settled(tag));
        if strip.is_empty() {
            return false;
        }
        let mut args = self.versions().horizon().0.to_le_bytes().to_vec();
        strip.encode(&mut args);
        leaf.will_change();
        strip.apply(leaf.page()).expect("a strip only shrinks");
        let op = PageOp { page: leaf.page().id(), op: ops::STRIP, payload: &[&args] };
        let range = self.pool().log().append(credit, &Record::structure(&[op]));
        leaf.changed(range.end);
        true
    }

    /// Splits the node at `level` that owns `key`, unless a row of `max_value` bytes fits by now.
    pub(super) async fn split(
        &self,
        key: &[u8],
        max_value: usize,
        level: u8,
        purpose: Purpose,
    ) -> Result<(), StorageError> {
        let root = self.root().await?;
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 8, 3 * PAGE_BYTES);
        let mut pages = 1;
        loop {
            let mut reservation = self.pool().space().reserve_for(pages, purpose).await?;
            let mut pins = Vec::with_capacity(pages);
            for page in reservation.pages().to_vec() {
                pins.push(self.pool().pin_new(page).await?);
            }
            let mut credit = take_credit(&*wal, purpose, bytes).await?;
            let outcome = self.try_split(root, key, max_value, level, &mut credit, &mut *reservation, &pins)?;
            drop((credit, pins, reservation));
            match outcome {
                Outcome::Needless | Outcome::Done(None) => return Ok(()),
                Outcome::Done(Some(pending)) => return self.put_separator(pending, purpose).await,
                Outcome::Miss(miss, why) => drop(self.pool().fetch_missing(miss, why).await?),
                Outcome::Pages(needed) => pages = needed,
                Outcome::Again => {}
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one attempt of one caller; a struct would only rename them")]
    fn try_split(
        &self,
        root: PageId,
        key: &[u8],
        max_value: usize,
        level: u8,
        credit: &mut Credit<'_>,
        reservation: &mut dyn PageReservation,
        pins: &[Pin<'_>],
    ) -> Result<Outcome, StorageError> {
        let page = match self.descend(root, Target::Key(key), level)? {
            Descent::Miss(miss) => return Ok(Outcome::Miss(miss, ReadReason::Path)),
            Descent::Shallow => return Ok(Outcome::Needless),
            Descent::At(page, _) => page,
        };
        let needed = if page.id() == root { 2 } else { 1 };
        if pins.len() != needed {
            return Ok(Outcome::Pages(needed));
        }
        let Some(mut node) = self.latch(&page) else {
            return Ok(Outcome::Again);
        };
        if has_room(&mut node, key, max_value) {
            return Ok(Outcome::Needless);
        }
        let left_id = if needed == 2 { pins[0].id() } else { page.id() };
        let Some(plan) = plan(node_of(node.page()), key, left_id, pins[needed - 1].id()) else {
            let corruption = Corruption::in_page(page.id(), node.page().lsn(), "rows to split between", "too few");
            return Err(corruption.in_file(self.pool().space().file_name(page.id())).into());
        };
        if needed == 2 {
            let frame = Frame::of(node_of(node.page()));
            let (left, right) = (&plan.left, &plan.right);
            self.plant_root(&mut node, &frame, left, right, &plan.cut.separator, credit, reservation, pins);
            return Ok(Outcome::Done(None));
        }
        Ok(Outcome::Done(Some(self.split_node(&mut node, plan, credit, reservation, &pins[0]))))
    }

    fn split_node(
        &self,
        node: &mut Latched<'_>,
        plan: Plan,
        credit: &mut Credit<'_>,
        reservation: &mut dyn PageReservation,
        pin: &Pin<'_>,
    ) -> Pending {
        let mut right = pin.latch();
        let space = reservation.latch(1);
        let level = node.page().level();
        node.will_change();
        right.will_change();
        let head = ops::truncate_head(plan.cut.keep, pin.id());
        let (left_args, right_args) = ([&head[..], &plan.cut.separator[..]], plan.right.parts());
        let ops = [
            PageOp { page: node.page().id(), op: ops::TRUNCATE, payload: &left_args },
            PageOp { page: pin.id(), op: ops::INIT, payload: &right_args },
        ];
        plan.right.store(right.page());
        // What `truncate` would make of the node; redo does.
        plan.left.store(node.page());
        let end = self.append_structure(credit, &ops, space);
        right.changed(end);
        node.changed(end);
        let counters = self.pool().counters();
        if level == 0 {
            self.pool().note_untidy(self.id());
            counters.leaf_splits.add(1)
        } else {
            counters.inner_splits.add(1)
        }
        Pending { separator: plan.cut.separator, child: pin.id(), by: node.seen_after(), level: level + 1 }
    }

    /// Puts a level on top: the root becomes the parent of two new nodes and stays where it is.
    #[expect(clippy::too_many_arguments, reason = "the parts of one record")]
    pub(super) fn plant_root(
        &self,
        root: &mut Latched<'_>,
        frame: &Frame,
        left_image: &Image,
        right_image: &Image,
        separator: &[u8],
        credit: &mut Credit<'_>,
        reservation: &mut dyn PageReservation,
        pins: &[Pin<'_>],
    ) {
        let frame = Frame { level: frame.level + 1, flags: 0, shared_tag: Tag::SETTLED, ..frame.clone() };
        let (left_id, right_id) = (pins[0].id().0.to_le_bytes(), pins[1].id().0.to_le_bytes());
        let mut rows = Rows::default();
        for (index, (key, child)) in [(&frame.low[..], &left_id), (separator, &right_id)].into_iter().enumerate() {
            rows.insert(index, &NodeRow { key, value: child, tag: Tag::SETTLED, ghost: false, overflow: false });
        }
        let mut top = Image::new();
        assert!(top.build(&frame, &rows, 0, 2), "two children fit a node");
        let (mut left, mut right) = (pins[0].latch(), pins[1].latch());
        let space = reservation.latch(2);
        root.will_change();
        left.will_change();
        right.will_change();
        let (top_args, left_args, right_args) = (top.parts(), left_image.parts(), right_image.parts());
        let ops = [
            PageOp { page: pins[0].id(), op: ops::INIT, payload: &left_args },
            PageOp { page: pins[1].id(), op: ops::INIT, payload: &right_args },
            PageOp { page: frame.id, op: ops::INIT, payload: &top_args },
        ];
        left_image.store(left.page());
        right_image.store(right.page());
        top.store(root.page());
        let end = self.append_structure(credit, &ops, space);
        left.changed(end);
        right.changed(end);
        root.changed(end);
        self.pool().note_untidy(self.id());
        self.pool().counters().inner_splits.add(1);
    }

    /// Appends the operations of trees together with those of space.
    pub(super) fn append_structure(
        &self,
        credit: &mut Credit<'_>,
        ops: &[PageOp<'_>],
        space: Box<dyn SpaceLatch + '_>,
    ) -> crate::ids::Lsn {
        let theirs = space.ops().to_vec();
        let payloads: Vec<[&[u8]; 1]> = theirs.iter().map(|op| [op.payload()]).collect();
        let mut all = ops.to_vec();
        all.extend(theirs.iter().zip(&payloads).map(|(op, payload)| PageOp { page: op.page, op: op.op, payload }));
        let range = self.pool().log().append(credit, &Record::structure(&all));
        space.commit(range);
        range.end
    }

    /// Tells a parent of a node that it does not know. Idempotent; any traverser may do it. For an ordinary change, out of
    /// what such a change may have: pages that are kept for undo stay (SPC-7).
    pub(super) async fn put_separator(&self, pending: Pending, purpose: Purpose) -> Result<(), StorageError> {
        let root = self.root().await?;
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 1, 32 + pending.separator.len());
        loop {
            let mut credit = take_credit(&*wal, purpose, bytes).await?;
            let outcome = self.try_separator(root, &pending, &mut credit)?;
            drop(credit);
            match outcome {
                Outcome::Done(_) | Outcome::Needless => return Ok(()),
                Outcome::Miss(miss, why) => {
                    let found = self.pool().fetch_missing(miss, why).await?;
                    if !found && miss.page == pending.child {
                        // BTR-10: another thread put it in, or merged it away.
                        return Ok(());
                    }
                }
                Outcome::Again => self.pool().counters().restarts.add(1),
                Outcome::Pages(_) => {
                    Box::pin(self.split(&pending.separator, 4, pending.level, purpose)).await?;
                }
            }
        }
    }

    fn try_separator(&self, root: PageId, pending: &Pending, credit: &mut Credit<'_>) -> Result<Outcome, StorageError> {
        let parent = match self.descend(root, Target::Key(&pending.separator), pending.level)? {
            Descent::Miss(miss) => return Ok(Outcome::Miss(miss, ReadReason::Path)),
            // Others have told the parent, and it has been merged away since with its children.
            Descent::Shallow => return Ok(Outcome::Needless),
            Descent::At(page, _) => page,
        };
        if Node(parent.page).search(&pending.separator).is_ok() {
            return Ok(if parent.validate() { Outcome::Needless } else { Outcome::Again });
        }
        // BTR-10: seen alive while the parent, at this version, does not know it; so no thread can have merged it
        // away when the latch is taken at this very version.
        let Some(child) = self.pool().read(pending.child) else {
            let miss = Miss { page: pending.child, by: Some(pending.by) };
            return Ok(Outcome::Miss(miss, ReadReason::Neighbour));
        };
        let node = Node(child.page);
        let is_child = node.0.kind() == crate::buffer::page::kind::NODE
            && node.0.tree() == self.id()
            && node.0.level() + 1 == pending.level
            && node.low() == pending.separator;
        if !child.validate() {
            return Ok(Outcome::Again);
        }
        if !is_child && !mutation::active(Mutation::SeparatorUnseen) {
            return Ok(Outcome::Needless);
        }
        let Some(mut parent) = self.latch(&parent) else {
            return Ok(Outcome::Again);
        };
        if !has_room(&mut parent, &pending.separator, 4) {
            return Ok(Outcome::Pages(1));
        }
        let value = pending.child.0.to_le_bytes();
        let row = NodeRow { key: &pending.separator, value: &value, tag: Tag::SETTLED, ghost: false, overflow: false };
        let mut head = Vec::with_capacity(16 + row.key.len());
        ops::put_head(&row, &mut head);
        parent.will_change();
        put(parent.page(), &row).expect("BTR-9: room was made");
        let op = PageOp { page: parent.page().id(), op: ops::PUT, payload: &[&head, &value] };
        let range = self.pool().log().append(credit, &Record::structure(&[op]));
        parent.changed(range.end);
        self.pool().counters().separators.add(1);
        Ok(Outcome::Done(None))
    }
}
