//! Background work on a tree: neighbours that are nearly empty become one; leaves that will be written anyway lose
//! their settled tags.
//!
//! # Life of a merge
//! ```text
//!   1  parent and both children found in memory; nothing is read for this       no latch
//!   2  one record: the left node gets all rows, the right fence and the right   latches: left, right, parent,
//!      link; the parent forgets the right node; its page is freed               space's pages
//! ```
//! A reader on its way to the right node finds a free page, or one that was used again, and begins at the root
//! (BTR-6). A root with a single child takes over the child's content.
//!
//! # Invariants
//! - BTR-15: two nodes merge only while one parent lists them side by side and they are linked; so no split
//!   between them is unfinished, and nobody can put the freed node into a parent any more (BTR-10).
//!
//! BTR-11 (see `split`) holds here too: what is not in memory stays as it is.

use super::descend::{Descent, Target};
use super::edit::remove;
use super::image::{Frame, Image, Rows, node_of};
use super::node::Node;
use super::ops;
use super::tree::Tree;
use super::write::{record_bytes, take_credit};
use crate::buffer::page::{PAGE_BYTES, kind};
use crate::buffer::{Latched, Optimistic, Pin};
use crate::error::StorageError;
use crate::ids::PageId;
use crate::record::PageOp;
use crate::seams::{Credit, FreeReservation, Purpose};
use clearway_base::sync::yield_now;

/// Two neighbours merge when together they fill at most this much of a page; more, and the next insert would
/// split them again.
const MERGED_BYTES_MAX: usize = PAGE_BYTES * 3 / 4;

/// What a pass over a tree did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tidied {
    /// Pairs of nodes that became one.
    pub merged: usize,
    /// Leaves that lost settled tags or ghosts.
    pub stripped: usize,
}

enum Step {
    Merged,
    /// Nothing to do here; go on at this key, if there is one.
    Next(Option<Vec<u8>>),
}

/// Two children of one parent, side by side.
struct Pair<'p> {
    parent: Optimistic<'p>,
    left: Pin<'p>,
    right: Pin<'p>,
    /// The parent's key for the right one.
    separator: Vec<u8>,
}

impl Tree {
    /// One pass over the nodes that are in memory: strips dirty leaves, merges neighbours, takes empty levels off.
    /// Waits only for the log; lets others run after every step.
    pub async fn tidy(&self) -> Result<Tidied, StorageError> {
        let mut tidied = Tidied::default();
        let root = self.root().await?;
        let mut level = 0;
        while self.level_of(root).is_some_and(|top| level < top) {
            let mut key = Some(Vec::new());
            while let Some(at) = key.take() {
                if level == 0 && self.strip_dirty(root, &at).await? {
                    tidied.stripped += 1;
                }
                match self.merge_at(root, &at, level).await? {
                    Step::Merged => {
                        tidied.merged += 1;
                        key = Some(at);
                    }
                    Step::Next(next) => key = next,
                }
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

    /// Strips the leaf of `key` if it is in memory and dirty, so that it will be written anyway.
    async fn strip_dirty(&self, root: PageId, key: &[u8]) -> Result<bool, StorageError> {
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 1, 16 + 2 * PAGE_BYTES / 4);
        let mut credit = take_credit(&*wal, Purpose::Change, bytes).await?;
        let Descent::At(leaf, _) = self.descend(root, Target::Key(key), 0)? else {
            return Ok(false);
        };
        if !self.pool().is_dirty(&leaf) {
            return Ok(false);
        }
        let Some(mut leaf) = self.latch(&leaf) else {
            return Ok(false);
        };
        Ok(self.strip_latched(&mut leaf, &mut credit))
    }

    /// Merges the node at `level` that owns `key` with its right neighbour, if both are in memory and small.
    async fn merge_at(&self, root: PageId, key: &[u8], level: u8) -> Result<Step, StorageError> {
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 8, PAGE_BYTES + 2 * super::KEY_BYTES_MAX);
        let (next, small) = self.look(root, key, level)?;
        if !small {
            return Ok(Step::Next(next));
        }
        let mut freeing = self.pool().space().reserve_free(1).await?;
        let mut credit = take_credit(&*wal, Purpose::System, bytes).await?;
        let Some(pair) = self.find_pair(root, key, level)? else {
            return Ok(Step::Next(next));
        };
        let merged = self.merge(&pair, &mut credit, &mut *freeing);
        Ok(if merged { Step::Merged } else { Step::Next(next) })
    }

    /// Where the next node begins, and whether this one is small enough to be worth a second look.
    fn look(&self, root: PageId, key: &[u8], level: u8) -> Result<(Option<Vec<u8>>, bool), StorageError> {
        loop {
            match self.descend(root, Target::Key(key), level)? {
                // Not in memory: on to the next node that the parent knows.
                Descent::Miss(_) => return Ok((self.next_separator(root, key, level)?, false)),
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
            return Ok(None);
        };
        Ok(Some(Pair { parent, left, right, separator }))
    }

    fn is_node(&self, latched: &Latched<'_>, level: u8) -> bool {
        let page = latched.page();
        page.kind() == kind::NODE && page.tree() == self.id() && page.level() == level
    }

    fn merge(&self, pair: &Pair<'_>, credit: &mut Credit<'_>, freeing: &mut dyn FreeReservation) -> bool {
        let level = pair.parent.page.level().saturating_sub(1);
        // Left to right, bottom to top.
        let (Some(mut left), Some(mut right)) = (pair.left.read().latch(), pair.right.read().latch()) else {
            return false;
        };
        let Some(mut parent) = self.latch(&pair.parent) else {
            return false;
        };
        let (left_node, right_node) = (node_of(left.page()), node_of(right.page()));
        // BTR-15: the parent's word is that of the version which is latched now.
        let side_by_side = self.is_node(&left, level)
            && self.is_node(&right, level)
            && left_node.right() == pair.right.id()
            && right_node.low() == pair.separator;
        if !side_by_side {
            return false;
        }
        let mut rows = Rows::of(left_node, 0, left_node.count());
        rows.extend(right_node, 0, right_node.count());
        let (mut frame, right_frame) = (Frame::of(left_node), Frame::of(right_node));
        frame.flags |= right_frame.flags;
        frame.right = right_frame.right;
        frame.high = right_frame.high;
        let mut image = Image::new();
        if !image.build(&frame, &rows, 0, rows.len()) || image.used_bytes() > MERGED_BYTES_MAX {
            return false;
        }
        let space = freeing.latch(&[pair.right.id()]);
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
        true
    }

    /// Lets a root with a single child take over the child's content; whether it did.
    async fn lower_root(&self, root: PageId) -> Result<bool, StorageError> {
        let wal = self.pool().log().clone();
        let bytes = record_bytes(&*wal, 8, PAGE_BYTES);
        let mut freeing = self.pool().space().reserve_free(1).await?;
        let mut credit = take_credit(&*wal, Purpose::System, bytes).await?;
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
