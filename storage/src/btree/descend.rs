//! The descent: finds the node that owns a key, from the root, without a latch.
//!
//! # Invariants
//! - BTR-6: a pointer is only a hint. A node is accepted only if, in one validated version, it is a live node of
//!   this tree and of the expected level, and `low <= key < high`. With a key at or above `high` the descent moves right;
//!   with a key below `low`, or in any other case, it begins again at the root. So a descent never ends at a wrong node, even if the page was
//!   split, merged away, freed or reused since the pointer was read, or can't be read any more (BUF-17).
//! - BTR-26: the straight way follows children alone. On its inner nodes it looks at kind, tree and level in a validated version, and at no fence: it may be
//!   led astray where a parent does not know of a split, or where a node changed in between. So where it ends counts only if the leaf, in one
//!   validated version, has a row with the key (by BTR-1 it owns the key then) or owns the key by its fences. In all other cases the descent that
//!   looks at everything (BTR-6) begins at the root.
//! - BTR-7: a descent never waits: it returns a miss to the caller, which fetches the page and descends again.

use super::node::Node;
use super::tree::Tree;
use crate::buffer::page::{Probe, kind};
use crate::buffer::{Latched, Miss, Optimistic, Seen};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::mutation::{self, Mutation};
use std::cmp::Ordering;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'k> {
    /// The node that owns this key.
    Key(&'k [u8]),
    /// The node that owns the keys just below this bound, or the last one.
    Below(Option<&'k [u8]>),
}

/// A separator that a parent lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// The left fence of the node that the parent does not know.
    pub(super) separator: Vec<u8>,
    /// That node.
    pub(super) child: PageId,
    /// Its left neighbour, in a version that links to it.
    pub(super) by: Seen,
    /// The parent's level.
    pub(super) level: u8,
}

/// Where a descent ended.
pub(super) enum Descent<'p> {
    /// At the node; with a separator that some parent lacks, if one was noticed.
    At(Optimistic<'p>, Option<Pending>),
    /// This page must be fetched first.
    Miss(Miss),
    /// There is no such level: the root is below it, since what stood there was merged away. Never for leaves.
    Shallow,
}

/// Pages that one way from a root passes at most: right links may lead in a circle where pages are damaged.
const STEPS_MAX: usize = 1 << 20;
/// Times that a descent may end nowhere by the same versions of the same pages.
const SAME_TRAILS_MAX: usize = 64;

/// The pages and versions that a descent came by, as one number.
#[derive(Default)]
struct Trail {
    now: u64,
    before: u64,
    same: usize,
    steps: usize,
    page: PageId,
}

impl Trail {
    #[inline]
    fn pass(&mut self, page: &Optimistic<'_>) {
        self.now = (self.now ^ page.seen().fingerprint()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.steps += 1;
        self.page = page.id();
    }
}

enum Step<'p> {
    Arrived,
    Right(PageId),
    Child(PageId, u8),
    Restart,
    Shallow,
    Wrong(Optimistic<'p>, String),
}

impl<'k> Target<'k> {
    /// The key or the bound, to compare it with the fences of the nodes on the way; of no use where there is none.
    #[inline]
    fn probe(&self) -> Probe<'k> {
        match self {
            Target::Key(key) | Target::Below(Some(key)) => Probe::of(key),
            Target::Below(None) => Probe::of(&[]),
        }
    }

    fn is_left_of(&self, node: Node<'_>, probe: &Probe<'_>) -> bool {
        match self {
            Target::Key(_) => node.low_against(probe) == Ordering::Greater,
            Target::Below(None) => false,
            Target::Below(Some(_)) => node.low_against(probe) != Ordering::Less,
        }
    }

    fn is_right_of(&self, node: Node<'_>, probe: &Probe<'_>) -> bool {
        match self {
            Target::Key(_) => node.high_against(probe) != Ordering::Greater,
            Target::Below(bound) => node.high_is_below(*bound),
        }
    }

    /// The index of the child that leads there.
    pub(super) fn child(&self, node: Node<'_>) -> Option<usize> {
        self.child_for(node, &self.probe())
    }

    fn child_for(&self, node: Node<'_>, probe: &Probe<'_>) -> Option<usize> {
        match self {
            Target::Key(_) => node.child_index_for(probe),
            Target::Below(None) => node.count().checked_sub(1),
            Target::Below(Some(_)) => match node.search_for(probe) {
                Ok(index) | Err(index) => index.checked_sub(1),
            },
        }
    }
}

impl Tree {
    /// The leaf to which the children lead (BTR-26), not validated. None: a page is not in memory, or changed, or is not what its parent says.
    #[inline]
    pub(super) fn straight(&self, root: PageId, key: &Probe<'_>) -> Option<Optimistic<'_>> {
        let (mut page, mut expected) = (self.pool().read(root)?, None);
        loop {
            let node = Node(page.page);
            let level = node.0.level();
            let is_ours = node.0.kind() == kind::NODE && node.0.tree() == self.id();
            if !is_ours || expected.is_some_and(|expected| expected != level) {
                return None;
            }
            if level == 0 {
                return Some(page);
            }
            let child = node.child(node.child_index_for(key)?);
            // A page number that was never one would make the table of pages grow.
            if !page.validate() {
                return None;
            }
            (page, expected) = (self.pool().read(child)?, Some(level - 1));
        }
    }

    /// The leaf that owns the key, if the straight way leads to it.
    #[inline]
    fn straight_to_owner(&self, root: PageId, key: &[u8]) -> Option<Optimistic<'_>> {
        let key = Probe::of(key);
        let leaf = self.straight(root, &key)?;
        (Node(leaf.page).owns(&key) && leaf.validate()).then_some(leaf)
    }

    /// Finds the node at `level` for `target`, for a change. Counts as one descent however often it begins again.
    pub(super) fn descend(&self, root: PageId, target: Target<'_>, level: u8) -> Result<Descent<'_>, StorageError> {
        let counters = self.pool().counters();
        counters.descents.add(1);
        if let (Target::Key(key), 0) = (target, level)
            && let Some(leaf) = self.straight_to_owner(root, key)
        {
            return Ok(Descent::At(leaf, None));
        }
        let mut trail = Trail::default();
        loop {
            match self.descend_once(root, target, level, &mut trail)? {
                Some(descent) => return Ok(descent),
                None => counters.restarts.add(1),
            }
            self.check_trail(&mut trail)?;
        }
    }

    /// Finds the leaf for `target`, to read it.
    pub(super) fn descend_to_read(&self, root: PageId, target: Target<'_>) -> Result<Descent<'_>, StorageError> {
        if let Target::Key(key) = target
            && let Some(leaf) = self.straight_to_owner(root, key)
        {
            self.pool().counters().reads.add(1);
            return Ok(Descent::At(leaf, None));
        }
        self.descend_with_care(root, target)
    }

    /// The same, looking at everything on the way.
    pub(super) fn descend_with_care(&self, root: PageId, target: Target<'_>) -> Result<Descent<'_>, StorageError> {
        let counters = self.pool().counters();
        counters.reads.add(1);
        let mut trail = Trail::default();
        loop {
            match self.descend_once(root, target, 0, &mut trail)? {
                Some(descent) => return Ok(descent),
                None => counters.read_restarts.add(1),
            }
            self.check_trail(&mut trail)?;
        }
    }

    /// A descent begins again because a page changed under it. One that comes by the very same versions of the very
    /// same pages again and again is in a tree whose pointers lead nowhere.
    fn check_trail(&self, trail: &mut Trail) -> Result<(), StorageError> {
        trail.same = if trail.now == trail.before { trail.same + 1 } else { 0 };
        trail.before = std::mem::take(&mut trail.now);
        trail.steps = 0;
        match trail.same < SAME_TRAILS_MAX {
            true => Ok(()),
            false => Err(self.astray(trail.page)),
        }
    }

    fn astray(&self, page: PageId) -> StorageError {
        let expected = format!("a page on the way to a node of {:?}", self.id());
        let corruption = Corruption::in_page(page, Lsn::ZERO, expected, "no way on");
        corruption.in_file(self.pool().space().file_name(page)).into()
    }

    /// The latch on a node of this tree, if it is still of the version that was read.
    pub(super) fn latch<'p>(&self, page: &Optimistic<'p>) -> Option<Latched<'p>> {
        if Some(page.id()) == self.root_now() && page.page.level() > 0 {
            self.pool().counters().root_latches.add(1);
        }
        page.latch()
    }

    /// One way down; no future, so it can't wait (BTR-7).
    fn descend_once(
        &self,
        root: PageId,
        target: Target<'_>,
        level: u8,
        trail: &mut Trail,
    ) -> Result<Option<Descent<'_>>, StorageError> {
        let mut id = root;
        let mut expected = None;
        let mut pending = None;
        let mut by = None;
        let probe = target.probe();
        loop {
            let Some(page) = self.pool().read(id) else {
                return Ok(Some(Descent::Miss(Miss { page: id, by })));
            };
            trail.pass(&page);
            let step = self.step(page, (target, &probe), level, expected);
            if !page.validate() {
                return Ok(None);
            }
            match step {
                Step::Arrived => return Ok(Some(Descent::At(page, pending))),
                Step::Child(child, below) => {
                    by = Some(page.seen());
                    id = child;
                    expected = Some(below);
                }
                Step::Right(right) => {
                    // The parent sent us too far left: it may not know of `right` yet.
                    let node = Node(page.page);
                    if let (Some(separator), true) = (node.high(), id != root) {
                        let (level, by) = (node.0.level() + 1, page.seen());
                        pending = Some(Pending { separator, child: right, by, level });
                    }
                    if !page.validate() {
                        return Ok(None);
                    }
                    self.pool().counters().right_steps.add(1);
                    if trail.steps > STEPS_MAX {
                        return Err(self.astray(id));
                    }
                    by = Some(page.seen());
                    id = right;
                }
                Step::Restart => return Ok(None),
                Step::Shallow => return Ok(Some(Descent::Shallow)),
                Step::Wrong(page, found) => {
                    let expected = format!("the root of {:?}", self.id());
                    let corruption = Corruption::in_page(page.id(), page.page.lsn(), expected, found);
                    return Err(corruption.in_file(self.pool().space().file_name(page.id())).into());
                }
            }
        }
    }

    /// What to do at one page; to be believed after validation only.
    fn step<'p>(
        &self,
        page: Optimistic<'p>,
        (target, probe): (Target<'_>, &Probe<'_>),
        level: u8,
        expected: Option<u8>,
    ) -> Step<'p> {
        let node = Node(page.page);
        let is_ours = node.0.kind() == kind::NODE && node.0.tree() == self.id();
        let here = node.0.level();
        if mutation::active(Mutation::ResumeAfterMiss) && here == level {
            return Step::Arrived;
        }
        if !is_ours || expected.is_some_and(|expected| expected != here) {
            if expected.is_none() {
                return Step::Wrong(page, format!("kind {} of {:?}", node.0.kind(), node.0.tree()));
            }
            return Step::Restart;
        }
        if target.is_left_of(node, probe) {
            return Step::Restart;
        }
        if target.is_right_of(node, probe) {
            return match node.right() {
                PageId(0) => Step::Restart,
                right => Step::Right(right),
            };
        }
        if here == level {
            return Step::Arrived;
        }
        if here < level {
            // Every level below the root's is passed on the way.
            return Step::Shallow;
        }
        match target.child_for(node, probe) {
            Some(index) => Step::Child(node.child(index), here - 1),
            None => Step::Restart,
        }
    }
}
