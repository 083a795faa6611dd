//! The handle of a tree, and reads of single rows through it.

use super::descend::{Descent, Target};
use super::image::NodeRow;
use super::node::{GHOST, MEMORY_LOCKS, Node};
use crate::buffer::page::Probe;
use crate::buffer::{Optimistic, Pool, ReadReason, Seen};
use crate::error::StorageError;
use crate::ids::{PageId, Tag, TreeId};
use crate::mutation::{self, Mutation};
use crate::seams::Versions;
use clearway_base::sync::yield_now;
use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// A handle on a tree; cheap to clone.
#[derive(Clone)]
pub struct Tree {
    inner: Arc<Inner>,
}

struct Inner {
    id: TreeId,
    pool: Arc<Pool>,
    versions: Arc<dyn Versions>,
    // A root never moves, so once known it stays known.
    root: OnceLock<PageId>,
}

/// A row as a leaf holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// Its value; a 16-byte reference if it stands in an overflow chain.
    pub value: &'a [u8],
    /// Its tag; settled if every snapshot sees it.
    pub tag: Tag,
    /// Deleted, but kept for older snapshots.
    pub ghost: bool,
    /// `value` is a reference to an overflow chain.
    pub overflow: bool,
}

/// A row copied out of a leaf. Its memory is used again by the next read.
#[derive(Clone, Debug, Default)]
pub struct RowBuf {
    /// The value, and behind it what is left of longer ones before: a piece of memory that was written once is not cleared before it is written again.
    bytes: Vec<u8>,
    len: usize,
    pub(super) tag: Tag,
    pub(super) ghost: bool,
    pub(super) overflow: bool,
    pub(super) memory_locks: bool,
}

impl RowBuf {
    /// The row; as the leaf held it, but for a value fetched from its overflow chain by [`Tree::get`].
    #[inline]
    pub fn row(&self) -> Row<'_> {
        Row { value: self.value(), tag: self.tag, ghost: self.ghost, overflow: self.overflow }
    }

    /// The row's value.
    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Takes a value.
    pub(super) fn set_value(&mut self, value: Vec<u8>) {
        (self.len, self.bytes) = (value.len(), value);
    }

    /// Takes a row that stands outside of a page.
    pub(super) fn set(&mut self, row: &NodeRow<'_>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(row.value);
        self.len = row.value.len();
        (self.tag, self.ghost, self.overflow) = (row.tag, row.ghost, row.overflow);
    }

    /// The leaf's hint that rows of it have locks in the lock manager.
    pub fn memory_locks(&self) -> bool {
        self.memory_locks
    }
}

/// What a read found; the row, if any, is in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A row, ghosts included.
    Found(Seen),
    /// No row; `Seen` is of the leaf where it would stand.
    Absent(Seen),
}

impl Lookup {
    /// Where to ask whether it still holds.
    pub fn seen(&self) -> Seen {
        match self {
            Lookup::Found(seen) | Lookup::Absent(seen) => *seen,
        }
    }
}

/// What a read without waiting found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryGet {
    /// As [`Lookup::Found`]; the value may be an overflow reference.
    Hit(Seen),
    /// As [`Lookup::Absent`].
    Absent(Seen),
    /// A page is not in memory, or the tree is damaged: [`Tree::get`] will wait, or tell.
    Miss,
}

/// What an edit finds under the leaf latch.
#[derive(Clone, Copy, Debug)]
pub struct LeafRow<'a> {
    /// The row with the key, ghosts included.
    pub row: Option<Row<'a>>,
    /// The leaf's hint that rows of it have locks in the lock manager.
    pub memory_locks: bool,
    /// The leaf.
    pub page: PageId,
    /// Where the row stands in it, or would.
    pub slot: u16,
}

/// What an edit wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit<'v> {
    /// Nothing.
    Keep,
    /// The hint set that rows of this leaf have locks in the lock manager. Not logged.
    SetMemoryLockHint,
    /// The row put in or replaced.
    Put {
        /// Its value, at most as long as was announced; a reference if `overflow`.
        value: Cow<'v, [u8]>,
        /// Its tag.
        tag: Tag,
        /// It is a ghost.
        ghost: bool,
        /// `value` is what [`Tree::write_overflow`] gave.
        overflow: bool,
    },
    /// The row taken out physically.
    Remove,
}

impl Tree {
    /// The tree with this id; whether it exists shows at the first use.
    pub fn new(id: TreeId, pool: Arc<Pool>, versions: Arc<dyn Versions>) -> Tree {
        Tree { inner: Arc::new(Inner { id, pool, versions, root: OnceLock::new() }) }
    }

    /// The tree's id.
    pub fn id(&self) -> TreeId {
        self.inner.id
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    pub(super) fn versions(&self) -> &dyn Versions {
        &*self.inner.versions
    }

    /// Where the next key of an ascending run may belong; a hint, looked at like any other pointer (BTR-6).
    pub(super) fn append_leaf(&self) -> Option<PageId> {
        let page = self.pool().hint(self.id()).load(Relaxed);
        (page != 0).then_some(PageId(page))
    }

    /// Notes where a change stood, if it stood behind all rows of its leaf.
    pub(super) fn note_append(&self, leaf: PageId, is_append: bool) {
        let page = if is_append { leaf.0 } else { 0 };
        // Tested first: threads that change rows all over the tree share the line.
        let hint = self.pool().hint(self.id());
        if hint.load(Relaxed) != page {
            hint.store(page, Relaxed);
        }
    }

    pub(super) fn root_now(&self) -> Option<PageId> {
        if let Some(root) = self.inner.root.get() {
            return Some(*root);
        }
        let root = self.pool().space().root_now(self.id())?;
        Some(*self.inner.root.get_or_init(|| root))
    }

    pub(super) async fn root(&self) -> Result<PageId, StorageError> {
        if let Some(root) = self.root_now() {
            return Ok(root);
        }
        let root = self.pool().space().root(self.id()).await?;
        Ok(*self.inner.root.get_or_init(|| root))
    }

    /// Copies the row with `key` out, if all pages on the way are in memory.
    #[inline]
    pub fn try_get(&self, key: &[u8], out: &mut RowBuf) -> TryGet {
        self.get_straight(key, out).unwrap_or_else(|| self.try_get_with_care(key, out))
    }

    /// By the straight way (BTR-26); none: the leaf where it ends does not own the key, or what it has changed meanwhile.
    fn get_straight(&self, key: &[u8], out: &mut RowBuf) -> Option<TryGet> {
        let probe = Probe::of(key);
        let leaf = self.straight(self.root_now()?, &probe)?;
        let node = Node(leaf.page);
        let found = node.search_for(&probe);
        match found {
            Ok(index) => read_row(node, index, out),
            Err(_) if node.owns(&probe) => {}
            Err(_) => return None,
        }
        if !leaf.validate() {
            return None;
        }
        self.pool().counters().reads.add(1);
        Some(if found.is_ok() { TryGet::Hit(leaf.seen()) } else { TryGet::Absent(leaf.seen()) })
    }

    #[cold]
    fn try_get_with_care(&self, key: &[u8], out: &mut RowBuf) -> TryGet {
        let Some(root) = self.root_now() else {
            return TryGet::Miss;
        };
        loop {
            let leaf = match self.descend_with_care(root, Target::Key(key)) {
                Ok(Descent::At(leaf, _)) => leaf,
                Ok(Descent::Miss(_) | Descent::Shallow) | Err(_) => return TryGet::Miss,
            };
            match copy_row(&leaf, key, out) {
                Some(Lookup::Found(seen)) => return TryGet::Hit(seen),
                Some(Lookup::Absent(seen)) => return TryGet::Absent(seen),
                None => self.pool().counters().read_restarts.add(1),
            }
        }
    }

    /// Copies the row with `key` out, with its whole value.
    pub async fn get(&self, key: &[u8], out: &mut RowBuf) -> Result<Lookup, StorageError> {
        let mut root = self.root().await?;
        loop {
            let miss = match self.descend_to_read(root, Target::Key(key))? {
                Descent::Miss(miss) => Some(miss),
                Descent::Shallow => None,
                Descent::At(leaf, _) => match copy_row(&leaf, key, out) {
                    Some(Lookup::Found(seen)) if out.overflow => {
                        // A chain longer than the cache would push the leaf out, and a reader that validates the answer (F3) would
                        // read it again and again.
                        let _leaf = self.pool().try_pin(seen.page);
                        if self.read_overflow(out, &seen).await? {
                            return Ok(Lookup::Found(seen));
                        }
                        None
                    }
                    Some(lookup) => return Ok(lookup),
                    None => None,
                },
            };
            match miss {
                Some(miss) => {
                    self.pool().fetch_missing(miss, ReadReason::Path).await?;
                    if mutation::active(Mutation::ResumeAfterMiss) {
                        // Between the end of a read and the reader stands the run queue; here, a long one.
                        for _ in 0..64 {
                            yield_now().await;
                        }
                        root = miss.page;
                    }
                }
                None => self.pool().counters().read_restarts.add(1),
            }
        }
    }

    /// Whether nothing in the leaf has changed since `seen` (a reader resolves tags between copy and this; F3).
    #[inline]
    pub fn still(&self, seen: &Seen) -> bool {
        self.pool().still(seen)
    }
}

/// Copies a row out of a leaf; none if the leaf changed meanwhile.
fn copy_row(leaf: &Optimistic<'_>, key: &[u8], out: &mut RowBuf) -> Option<Lookup> {
    let node = Node(leaf.page);
    let found = node.search(key);
    if let Ok(index) = found {
        read_row(node, index, out);
    }
    if !leaf.validate() {
        return None;
    }
    Some(if found.is_ok() { Lookup::Found(leaf.seen()) } else { Lookup::Absent(leaf.seen()) })
}

/// Copies the row at an index.
#[inline]
pub(super) fn read_row(node: Node<'_>, index: usize, out: &mut RowBuf) {
    let slot = node.slot(index);
    let cell = node.cell(slot);
    out.len = cell.value_len;
    // Whole words: the bytes behind the value are of no use, and no bytes of a torn length leave the page (BTR-2).
    let copied = cell.value_len.next_multiple_of(8);
    if out.bytes.len() < copied {
        out.bytes.resize(copied, 0);
    }
    node.0.read(cell.value_at, &mut out.bytes[..copied]);
    out.tag = node.tag(slot, &cell);
    out.ghost = slot & GHOST != 0;
    out.overflow = cell.overflow;
    out.memory_locks = node.0.flags() & MEMORY_LOCKS != 0;
}
