//! Background work on a tree: merges neighbouring nodes that are nearly empty, and strips settled tags from leaves that will
//! be written anyway.
//!
//! # Life of a merge
//! ```text
//!   1  parent and both children found in memory; nothing is read for this       no latch
//!   2  one record: the left node gets all rows, the right fence and the right   latches: left, right, parent,
//!      link; the parent forgets the right node; its page is freed               space's pages
//! ```
//! Alternatively, of two leaves at rest, the left leaf takes as many rows of the right leaf as fit, and the fence between them
//! moves: one record changes both nodes and the parent's two entries. A reader on its way to a merged right node finds a free
//! or reused page and begins again at the root (BTR-6). A root with a single child takes over the child's content.
//!
//! # Invariants
//! - BTR-15: two nodes merge only while one parent lists them side by side and they are linked. So no split
//!   between them is unfinished, and no writer can put the freed node into a parent any more (BTR-10).
//!
//! BTR-11 (see `split`) holds here too: nodes that are not in memory are left alone.

use super::descend::{Descent, Target};
use super::edit::{put, remove, separator};
use super::image::{Frame, Image, NodeRow, Rows, node_bytes, node_of};
use super::node::Node;
use super::ops;
use super::tree::Tree;
use super::write::{fits_instead, has_room, record_bytes, take_credit};
use crate::buffer::page::{PAGE_BYTES, kind};
use crate::buffer::{Latched, Optimistic, Pin};
use crate::error::StorageError;
use crate::ids::{Lsn, PageId, Tag};
use crate::mutation::{self, Mutation};
use crate::record::{PageOp, Record};
use crate::seams::{Credit, FreeReservation, Purpose};
use crate::wal::RoomChange;
use clearway_base::sync::yield_now;

/// Two neighbours that still change merge when together they fill at most this much of a page; more, and the next
/// insert would split them again.
pub(super) const MERGED_BYTES_MAX: usize = PAGE_BYTES * 3 / 4;

/// What a pass over a tree did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Pairs of nodes that became one.
    pub merged: usize,
    /// Times that rows moved from a leaf to its left neighbour.
    pub moved: usize,
    /// Leaves that lost settled tags or ghosts.
    pub stripped: usize,
    /// Leaves had changed lately or held what is not settled, or the budget ran out: worth another pass later.
    pub unquiet: bool,
    /// Where to go on, if the budget ran out.
    pub next: Option<Vec<u8>>,
}

/// What a pass may cost.
#[derive(Clone, Debug)]
pub struct TidyBudget {
    /// Leaves changed at or after this are left alone, but for pairs that are nearly empty.
    pub quiet_before: Lsn,
    /// Nodes that may be rewritten; each costs up to two pages of log.
    pub rewrites: usize,
    /// Leaves that may be looked at.
    pub looks: usize,
}

impl TidyBudget {
    /// Whatever it takes, as if nothing changed any more.
    pub fn unlimited() -> TidyBudget {
        TidyBudget { quiet_before: Lsn::MAX, rewrites: usize::MAX, looks: usize::MAX }
    }
}

/// What one step on a pair of neighbours came to.
pub(super) enum Joined {
    /// They are one.
    Merged,
    /// The left one took rows; the right one begins at this key now.
    Moved(Vec<u8>),
    /// The left one has no room; the right one begins at this key.
    Full(Vec<u8>),
    /// They are left as they were.
    Left,
}

/// Two children of one parent, side by side.
struct Pair<'p> {
    parent: Optimistic<'p>,
    left: Pin<'p>,
    right: Pin<'p>,
    /// The parent's key for the right one.
    separator: Vec<u8>,
}

/// What a join holds.
struct Latches<'p> {
    left: Latched<'p>,
    right: Latched<'p>,
    parent: Latched<'p>,
}

/// Two neighbours after rows moved to the left one, and the fence between them.
struct Packed {
    left: Image,
    right: Image,
    separator: Vec<u8>,
}

/// Fills the left of two leaves up to `bytes_max`; `old` of the rows are its own. None if it has no room.
fn pack(left: &Frame, right: &Frame, rows: &Rows, old: usize, bytes_max: usize) -> Option<Packed> {
    let (mut left, mut right) = (left.clone(), right.clone());
    let mut part = |keep: usize| {
        let fence = separator(rows.get(keep - 1).key, rows.get(keep).key);
        left.high = Some(fence.clone());
        right.low = fence;
        let fits = node_bytes(&left, rows, 0, keep) <= bytes_max.min(PAGE_BYTES)
            && node_bytes(&right, rows, keep, rows.len()) <= PAGE_BYTES;
        fits.then(|| (left.clone(), right.clone()))
    };
    // By arithmetic: to build both nodes at each step took a third of the processor time that followed a large deletion.
    let (mut low, mut high) = (old, rows.len() - 1);
    while low < high {
        let middle = (low + high).div_ceil(2);
        match part(middle) {
            Some(_) => low = middle,
            None => high = middle - 1,
        }
    }
    // Less is not worth two pages of log.
    if low <= old + old / 16 {
        return None;
    }
    let (left, right) = part(low)?;
    let mut packed = Packed { left: Image::new(), right: Image::new(), separator: right.low.clone() };
    let built = packed.left.build(&left, rows, 0, low) && packed.right.build(&right, rows, low, rows.len());
    built.then_some(packed)
}

impl Tree {
    /// A whole pass over the nodes that are in memory, as if nothing changed any more.
    pub async fn tidy(&self) -> Result<Tidied, StorageError> {
        self.tidy_within(&mut TidyBudget::unlimited(), Vec::new()).await
    }

    /// A pass over the nodes that are in memory, from `from` on, within a budget: strips leaves, packs those at rest,
    /// merges neighbours that are nearly empty, takes empty levels off. Waits only for the log; lets others run after
    /// every step.
    pub async fn tidy_within(&self, budget: &mut TidyBudget, from: Vec<u8>) -> Result<Tidied, StorageError> {
        let mut tidied = Tidied::default();
        let root = self.root().await?;
        let mut key = self.level_of(root).is_some_and(|top| top > 0).then_some(from);
        while let Some(at) = key.take() {
            key = self.tidy_family(root, &at, budget, &mut tidied).await?;
            if budget.rewrites == 0 || budget.looks == 0 {
                tidied.next = key;
                return Ok(tidied);
            }
        }
        let mut level = 1;
        while self.level_of(root).is_some_and(|top| level < top) {
            let mut key = Some(Vec::new());
            while let Some(at) = key.take() {
                let (next, small) = self.next_node(root, &at, level)?;
                let joined = match small {
                    true => self.join_at(root, &at, level, MERGED_BYTES_MAX, false).await?,
                    false => Joined::Left,
                };
                key = match joined {
                    Joined::Merged => {
                        tidied.merged += 1;
                        Some(at)
                    }
                    _ => next,
                };
                yield_now().await;
            }
            level += 1;
        }
        while self.lower_root(root).await? {
            tidied.merged += 1;
        }
        Ok(tidied)
    }

    /// The root's level, if it is in memory.
    fn level_of(&self, root: PageId) -> Option<u8> {
        loop {
            let page = self.pool().read(root)?;
            let level = page.page.level();
            if page.validate() {
                return Some(level);
            }
        }
    }

    /// Strips the leaf of `key` if it is in memory.
    pub(super) async fn strip_leaf(&self, root: PageId, key: &[u8]) -> Result<bool, StorageError> {
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 1, 16 + 2 * PAGE_BYTES / 4);
        let mut credit = take_credit(&*wal, Purpose::Change, bytes).await?;
        let Descent::At(leaf, _) = self.descend(root, Target::Key(key), 0)? else {
            return Ok(false);
        };
        let Some(mut leaf) = self.latch(&leaf) else {
            return Ok(false);
        };
        Ok(self.strip_latched(&mut leaf, &mut credit))
    }

    /// Joins the node at `level` that owns `key` with its right neighbour, if both are in memory: makes them one, or
    /// moves rows to the left, so that the left one takes at most `bytes_max`.
    pub(super) async fn join_at(
        &self,
        root: PageId,
        key: &[u8],
        level: u8,
        bytes_max: usize,
        may_move: bool,
    ) -> Result<Joined, StorageError> {
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 8, 2 * PAGE_BYTES + 4 * super::KEY_BYTES_MAX);
        let mut freeing = self.pool().space().reserve_free(1).await?;
        let mut credit = take_credit(&*wal, Purpose::Change, bytes).await?;
        let Some(pair) = self.find_pair(root, key, level)? else {
            return Ok(Joined::Left);
        };
        Ok(self.join(&pair, &mut credit, &mut *freeing, bytes_max, may_move))
    }

    /// Where the next node begins, and whether this one is small enough to be worth a second look.
    pub(super) fn next_node(
        &self,
        root: PageId,
        key: &[u8],
        level: u8,
    ) -> Result<(Option<Vec<u8>>, bool), StorageError> {
        loop {
            match self.descend(root, Target::Key(key), level)? {
                // Not in memory: on to the next node that the parent knows.
                Descent::Miss(_) => return Ok((self.next_separator(root, key, level)?, false)),
                Descent::Shallow => return Ok((None, false)),
                Descent::At(page, _) => {
                    let node = Node(page.page);
                    let (next, used) = (node.high(), node.used_bytes());
                    if page.validate() {
                        return Ok((next, used < MERGED_BYTES_MAX));
                    }
                }
            }
        }
    }

    fn next_separator(&self, root: PageId, key: &[u8], level: u8) -> Result<Option<Vec<u8>>, StorageError> {
        let Descent::At(parent, _) = self.descend(root, Target::Key(key), level + 1)? else {
            return Ok(None);
        };
        let node = Node(parent.page);
        let next = match node.child_index(key) {
            Some(index) if index + 1 < node.count() => Some(node.key(index + 1)),
            _ => node.high(),
        };
        Ok(next.filter(|_| parent.validate()))
    }

    fn find_pair(&self, root: PageId, key: &[u8], level: u8) -> Result<Option<Pair<'_>>, StorageError> {
        let Descent::At(parent, None) = self.descend(root, Target::Key(key), level + 1)? else {
            return Ok(None);
        };
        let node = Node(parent.page);
        let Some(index) = node.child_index(key).filter(|index| index + 1 < node.count()) else {
            return Ok(None);
        };
        let (left, right, separator) = (node.child(index), node.child(index + 1), node.key(index + 1));
        if !parent.validate() || left == right {
            return Ok(None);
        }
        // BTR-11
        let (Some(left), Some(right)) = (self.pool().try_pin(left), self.pool().try_pin(right)) else {
            self.pool().counters().neighbours_absent.add(1);
            return Ok(None);
        };
        Ok(Some(Pair { parent, left, right, separator }))
    }

    fn is_node(&self, latched: &Latched<'_>, level: u8) -> bool {
        let page = latched.page();
        page.kind() == kind::NODE && page.tree() == self.id() && page.level() == level
    }

    fn join(
        &self,
        pair: &Pair<'_>,
        credit: &mut Credit<'_>,
        freeing: &mut dyn FreeReservation,
        bytes_max: usize,
        may_move: bool,
    ) -> Joined {
        let level = pair.parent.page.level().saturating_sub(1);
        // Left to right, bottom to top.
        let (Some(left), Some(right)) = (pair.left.read().latch(), pair.right.read().latch()) else {
            return Joined::Left;
        };
        let Some(parent) = self.latch(&pair.parent) else {
            return Joined::Left;
        };
        let (left_node, right_node) = (node_of(left.page()), node_of(right.page()));
        // BTR-15: the parent's word is that of the version which is latched now.
        let side_by_side = self.is_node(&left, level)
            && self.is_node(&right, level)
            && left_node.right() == pair.right.id()
            && right_node.low() == pair.separator;
        if !side_by_side && !mutation::active(Mutation::MergeUnseen) {
            return Joined::Left;
        }
        // Room that undo wants back there is taken by the rows that move.
        let room = self.pool().log().undo_room();
        if room.is_some_and(|room| !room.allows(RoomChange { given_up: 0, taken: PAGE_BYTES })) {
            return Joined::Left;
        }
        let mut rows = Rows::of(left_node, 0, left_node.count());
        let old = rows.len();
        rows.extend(right_node, 0, right_node.count());
        let (mut frame, right_frame) = (Frame::of(left_node), Frame::of(right_node));
        frame.flags |= right_frame.flags;
        let all = Frame { right: right_frame.right, high: right_frame.high.clone(), ..frame.clone() };
        let mut image = Image::new();
        let mut latches = Latches { left, right, parent };
        let nothing_moves = rows.len() == old;
        if image.build(&all, &rows, 0, rows.len()) && (nothing_moves || image.used_bytes() <= bytes_max) {
            self.merge(&mut latches, pair, &image, credit, freeing);
            room.inspect(|room| room.taken(1, PAGE_BYTES));
            return Joined::Merged;
        }
        if !may_move || level > 0 {
            return Joined::Left;
        }
        let Some(packed) = pack(&frame, &right_frame, &rows, old, bytes_max) else {
            return Joined::Full(pair.separator.clone());
        };
        match self.move_rows(&mut latches, pair, &packed, credit) {
            true => {
                room.inspect(|room| room.taken(1, PAGE_BYTES));
                Joined::Moved(packed.separator)
            }
            false => Joined::Left,
        }
    }

    /// The right node's rows go to the left one, its page goes back.
    fn merge(
        &self,
        latches: &mut Latches<'_>,
        pair: &Pair<'_>,
        image: &Image,
        credit: &mut Credit<'_>,
        freeing: &mut dyn FreeReservation,
    ) {
        let space = freeing.latch(&[pair.right.id()]);
        let Latches { left, right, parent } = latches;
        left.will_change();
        right.will_change();
        parent.will_change();
        let mut removal = Vec::with_capacity(4 + pair.separator.len());
        ops::remove_args(Some(&pair.separator), &mut removal);
        let args = image.parts();
        let ops = [
            PageOp { page: pair.left.id(), op: ops::INIT, payload: &args },
            PageOp { page: pair.right.id(), op: ops::FREE, payload: &[] },
            PageOp { page: parent.page().id(), op: ops::REMOVE, payload: &[&removal] },
        ];
        image.store(left.page());
        ops::free(right.page());
        assert!(remove(parent.page(), &pair.separator), "the key that the parent has at this version");
        let end = self.append_structure(credit, &ops, space);
        left.changed(end);
        right.changed(end);
        parent.changed(end);
        self.pool().counters().merges.add(1);
    }

    /// Some of the right node's rows go to the left one; the parent learns of the new fence in the same record
    /// (BTR-10). A reader that comes by the old one finds a low fence above its key, and begins at the root. False if
    /// the parent has no room for the new fence.
    fn move_rows(&self, latches: &mut Latches<'_>, pair: &Pair<'_>, packed: &Packed, credit: &mut Credit<'_>) -> bool {
        let Latches { left, right, parent } = latches;
        // A parent that was filled in key order is full: it has room for the new fence in the place of the old one.
        if !fits_instead(node_of(parent.page()), &pair.separator, &packed.separator)
            && !has_room(parent, &packed.separator, 4)
        {
            return false;
        }
        left.will_change();
        right.will_change();
        parent.will_change();
        let (mut removal, mut head) = (Vec::new(), Vec::new());
        ops::remove_args(Some(&pair.separator), &mut removal);
        let child = pair.right.id().0.to_le_bytes();
        let row = NodeRow { key: &packed.separator, value: &child, tag: Tag::SETTLED, ghost: false, overflow: false };
        ops::put_head(&row, &mut head);
        let (left_args, right_args) = (packed.left.parts(), packed.right.parts());
        let ops = [
            PageOp { page: pair.left.id(), op: ops::INIT, payload: &left_args },
            PageOp { page: pair.right.id(), op: ops::INIT, payload: &right_args },
            PageOp { page: parent.page().id(), op: ops::REMOVE, payload: &[&removal] },
            PageOp { page: parent.page().id(), op: ops::PUT, payload: &[&head, &child] },
        ];
        packed.left.store(left.page());
        packed.right.store(right.page());
        assert!(remove(parent.page(), &pair.separator), "the key that the parent has at this version");
        put(parent.page(), &row).expect("BTR-9: room was made");
        let range = self.pool().log().append(credit, &Record::structure(&ops));
        left.changed(range.end);
        right.changed(range.end);
        parent.changed(range.end);
        self.pool().counters().moves.add(1);
        true
    }

    /// Lets a root with a single child take over the child's content; whether it did.
    async fn lower_root(&self, root: PageId) -> Result<bool, StorageError> {
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 8, PAGE_BYTES);
        let mut freeing = self.pool().space().reserve_free(1).await?;
        let mut credit = take_credit(&*wal, Purpose::Change, bytes).await?;
        let Some(page) = self.pool().read(root) else {
            return Ok(false);
        };
        let node = Node(page.page);
        let (child, single) = (node.child(0), node.0.level() > 0 && node.count() == 1);
        let level = node.0.level().saturating_sub(1);
        if !page.validate() || !single {
            return Ok(false);
        }
        let Some(pin) = self.pool().try_pin(child) else {
            return Ok(false);
        };
        let Some(mut lower) = pin.read().latch() else {
            return Ok(false);
        };
        let Some(mut top) = self.latch(&page) else {
            return Ok(false);
        };
        let lower_node = node_of(lower.page());
        if !self.is_node(&lower, level) || lower_node.right() != PageId(0) {
            return Ok(false);
        }
        let rows = Rows::of(lower_node, 0, lower_node.count());
        let frame = Frame { id: root, ..Frame::of(lower_node) };
        let mut image = Image::new();
        assert!(image.build(&frame, &rows, 0, rows.len()), "the same rows and fences");
        let space = freeing.latch(&[child]);
        top.will_change();
        lower.will_change();
        let args = image.parts();
        let ops =
            [PageOp { page: root, op: ops::INIT, payload: &args }, PageOp { page: child, op: ops::FREE, payload: &[] }];
        image.store(top.page());
        ops::free(lower.page());
        let end = self.append_structure(&mut credit, &ops, space);
        top.changed(end);
        lower.changed(end);
        self.pool().counters().merges.add(1);
        Ok(true)
    }
}
