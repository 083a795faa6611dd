//! Cursors: scans of a range, leaf by leaf, in both directions.
//!
//! # Life of a scan
//! Each step copies the rows of one leaf that lie in the range, with the leaf's version, and remembers only the key
//! from which to continue. So the cursor holds no page between steps, and stays right whatever splits, merges or is evicted meanwhile.
//! Forward it tries the right link first; backward it descends for the keys just below. Where leaves are not in
//! memory, it reads their numbers from the parent and loads many of them at once, more with every leaf that
//! it had to wait for. A step that is told how many rows are expected takes no more of its leaf; the next step goes on behind them.
//!
//! # Invariants
//! - BTR-13: the steps yield all rows of `[from, to)` that were in the tree during the whole scan, each once, in
//!   order: each step begins where the step before ended, at a fence or at the last row that it took.

use super::descend::{Descent, Target};
use super::leaf_copy::LeafCopy;
use super::node::Node;
use super::tree::Tree;
use crate::buffer::page::kind;
use crate::buffer::{Miss, Optimistic};
use crate::error::StorageError;
use crate::ids::PageId;

/// Leaves read at once at most.
const AHEAD_MAX: usize = 64;

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// Keys from `from`, inclusive, to `to`, exclusive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key; empty for the first of all.
    pub from: Vec<u8>,
    /// The bound above; none for all.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    pub fn all() -> KeyRange {
        KeyRange::default()
    }

    /// Keys of `from..to`.
    pub fn new(from: impl Into<Vec<u8>>, to: Option<Vec<u8>>) -> KeyRange {
        KeyRange { from: from.into(), to }
    }

    /// Becomes `from..to`, in the memory that it has.
    pub fn set(&mut self, from: &[u8], to: Option<&[u8]>) {
        self.from.clear();
        self.from.extend_from_slice(from);
        match (&mut self.to, to) {
            (Some(bound), Some(to)) => to.clone_into(bound),
            (bound, to) => *bound = to.map(<[u8]>::to_vec),
        }
    }

    /// Keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let mut to = prefix.to_vec();
        while let Some(last) = to.pop() {
            if last < u8::MAX {
                to.push(last + 1);
                return KeyRange::new(prefix, Some(to));
            }
        }
        KeyRange::new(prefix, None)
    }
}

/// A walk over a range.
pub struct Cursor {
    tree: Tree,
    range: KeyRange,
    direction: Direction,
    // Forward: `range.from` moves up; backward: `range.to` moves down.
    done: bool,
    right: PageId,
    ahead: usize,
    /// Rows that a step takes of its leaf at most.
    expected: usize,
    copy: LeafCopy,
}

/// The way on from a leaf.
enum Onward {
    /// To the leaf on the right, which begins here.
    Right(Option<Vec<u8>>, PageId),
    /// To the leaf on the left, which ends here.
    Left(Vec<u8>),
    /// Rows of this leaf are left.
    Here(PageId),
}

/// What a step without waiting came to.
pub enum NextLeaf<'c> {
    /// Rows of a leaf; a leaf may have no rows in the range.
    Rows(&'c LeafCopy),
    /// The end of the range.
    End,
    /// A page is not in memory.
    Miss,
}

impl Tree {
    /// A walk over `range`.
    pub fn cursor(&self, range: KeyRange, direction: Direction) -> Cursor {
        let done = range.to.as_ref().is_some_and(|to| *to <= range.from);
        let (right, copy) = (PageId(0), LeafCopy::default());
        Cursor { tree: self.clone(), range, direction, done, right, ahead: 1, expected: usize::MAX, copy }
    }
}

impl Cursor {
    /// Becomes a walk over another range, in the memory of this one.
    pub fn restart(&mut self, tree: &Tree, (from, to): (&[u8], Option<&[u8]>), direction: Direction) {
        if self.tree.id() != tree.id() {
            self.tree = tree.clone();
        }
        self.range.set(from, to);
        self.done = to.is_some_and(|to| to <= from);
        (self.direction, self.right, self.ahead, self.expected) = (direction, PageId(0), 1, usize::MAX);
    }

    /// How many rows of a leaf the caller can use at most, until it says otherwise: more are not decoded.
    pub fn expect(&mut self, rows: usize) {
        self.expected = rows.max(1);
    }

    /// The rows of the last step.
    pub fn leaf(&self) -> &LeafCopy {
        &self.copy
    }

    /// As [`Cursor::next_leaf`], without waiting.
    ///
    /// # Errors
    /// As `next_leaf`.
    pub fn next_leaf_now(&mut self) -> Result<NextLeaf<'_>, StorageError> {
        if self.done {
            return Ok(NextLeaf::End);
        }
        let Some(root) = self.tree.root_now() else { return Ok(NextLeaf::Miss) };
        loop {
            match self.try_leaf(root)? {
                Ok(()) => return Ok(NextLeaf::Rows(&self.copy)),
                Err(Some(_)) => return Ok(NextLeaf::Miss),
                Err(None) => self.tree.pool().counters().read_restarts.add(1),
            }
        }
    }

    /// The next leaf of the range; none behind the last. A leaf may have no rows in the range.
    pub async fn next_leaf(&mut self) -> Result<Option<&LeafCopy>, StorageError> {
        if self.done {
            return Ok(None);
        }
        let root = self.tree.root().await?;
        loop {
            match self.try_leaf(root)? {
                Ok(()) => return Ok(Some(&self.copy)),
                Err(Some(miss)) => self.fetch_ahead(root, miss).await?,
                Err(None) => self.tree.pool().counters().read_restarts.add(1),
            }
        }
    }

    /// Copies the next leaf without waiting; or says which page is missing, or that a page changed meanwhile.
    fn try_leaf(&mut self, root: PageId) -> Result<Result<(), Option<Miss>>, StorageError> {
        let tree = self.tree.clone();
        let leaf = match self.neighbour(&tree) {
            Some(leaf) => leaf,
            None => {
                let target = match self.direction {
                    Direction::Forward => Target::Key(&self.range.from),
                    Direction::Backward => Target::Below(self.range.to.as_deref()),
                };
                match tree.descend_to_read(root, target)? {
                    Descent::At(leaf, _) => leaf,
                    Descent::Miss(miss) => return Ok(Err(Some(miss))),
                    Descent::Shallow => return Ok(Err(None)),
                }
            }
        };
        let Some(onward) = self.copy_leaf(&leaf) else {
            self.right = PageId(0);
            return Ok(Err(None));
        };
        self.go_on(onward);
        Ok(Ok(()))
    }

    /// The leaf behind the right link, if it is in memory and begins where the last one ended.
    fn neighbour<'t>(&self, tree: &'t Tree) -> Option<Optimistic<'t>> {
        if self.right == PageId(0) {
            return None;
        }
        tree.pool().counters().reads.add(1);
        let page = tree.pool().read(self.right)?;
        let node = Node(page.page);
        let is_next = node.0.kind() == kind::NODE
            && node.0.tree() == tree.id()
            && node.is_leaf()
            && node.low_admits(&self.range.from)
            && node.high_admits(&self.range.from);
        (page.validate() && is_next).then_some(page)
    }

    fn copy_leaf(&mut self, leaf: &Optimistic<'_>) -> Option<Onward> {
        let node = Node(leaf.page);
        let place = |key: &[u8]| node.search(key).unwrap_or_else(|index| index);
        let from = place(&self.range.from);
        let to = self.range.to.as_deref().map_or(node.count(), place);
        let whole = to.saturating_sub(from) <= self.expected;
        let rows = match self.direction {
            _ if whole => from..to,
            Direction::Forward => from..from + self.expected,
            Direction::Backward => to - self.expected..to,
        };
        self.copy.take(node, rows.clone());
        self.copy.seen = Some(leaf.seen());
        let onward = match self.direction {
            _ if !whole => Onward::Here(leaf.seen().page),
            Direction::Forward => Onward::Right(node.high(), node.right()),
            Direction::Backward => Onward::Left(node.low()),
        };
        if !leaf.validate() {
            return None;
        }
        self.copy.decode(rows);
        Some(onward)
    }

    /// BTR-13.
    fn go_on(&mut self, onward: Onward) {
        match (self.direction, onward) {
            (_, Onward::Right(Some(high), right)) if self.range.to.as_ref().is_none_or(|to| high < *to) => {
                self.range.from = high;
                self.right = right;
            }
            (_, Onward::Right(..)) => self.done = true,
            (_, Onward::Left(low)) => {
                self.done = low <= self.range.from || low.is_empty();
                self.range.to = Some(low);
            }
            // A damaged leaf may give no row (BTR-17), and then there is no place to go on from.
            (_, Onward::Here(_)) if self.copy.is_empty() => self.done = true,
            (Direction::Forward, Onward::Here(page)) => {
                self.range.from.clear();
                self.range.from.extend_from_slice(self.copy.get(self.copy.len() - 1).0);
                self.range.from.push(0);
                self.right = page;
            }
            (Direction::Backward, Onward::Here(_)) => self.range.to = Some(self.copy.get(0).0.to_vec()),
        }
    }

    /// Fetches a page, and with it the leaves that come next.
    async fn fetch_ahead(&mut self, root: PageId, miss: Miss) -> Result<(), StorageError> {
        let mut others = Vec::new();
        if self.ahead > 1 {
            for next in self.leaves_ahead(root)? {
                if next != miss.page && !others.contains(&next) {
                    others.push(next);
                }
            }
        }
        self.ahead = (self.ahead * 2).min(AHEAD_MAX);
        self.tree.pool().fetch_all(miss, &others).await
    }

    /// The next leaves on the way, as far as their parent knows; hints, nothing more.
    fn leaves_ahead(&self, root: PageId) -> Result<Vec<PageId>, StorageError> {
        let mut pages = Vec::new();
        let target = match self.direction {
            Direction::Forward => Target::Key(&self.range.from),
            Direction::Backward => Target::Below(self.range.to.as_deref()),
        };
        let Some(top) = self.tree.pool().read(root) else {
            return Ok(pages);
        };
        let is_leaf = Node(top.page).is_leaf();
        if !top.validate() || is_leaf {
            return Ok(pages);
        }
        let Descent::At(parent, _) = self.tree.descend(root, target, 1)? else {
            return Ok(pages);
        };
        let node = Node(parent.page);
        let Some(here) = target.child(node) else {
            return Ok(pages);
        };
        match self.direction {
            Direction::Forward => {
                let end = match &self.range.to {
                    Some(to) => node.search(to).unwrap_or_else(|index| index),
                    None => node.count(),
                };
                pages.extend((here..end.min(here + self.ahead)).map(|index| node.child(index)));
            }
            Direction::Backward => {
                let first = node.child_index(&self.range.from).unwrap_or(0);
                let low = first.max((here + 1).saturating_sub(self.ahead));
                pages.extend((low..here + 1).rev().map(|index| node.child(index)));
            }
        }
        if !parent.validate() {
            pages.clear();
        }
        Ok(pages)
    }
}
