//! Look-ups of many keys in their order: the rows of one leaf at a time, after one descent.
//!
//! A look-up of its own for each of 90,000 keys, eight in a leaf, spent half of its time on the way from the root and in misses of the processor's
//! cache, one after the other. Here the leaf is copied as for a scan, which reads memory in order, and the keys are found in what the
//! cache has then.
//!
//! # Invariants
//! - BTR-22: the keys that a pick answers are in the leaf's bounds in the version that was copied, and `copy` has a row for each of them that
//!   is there, in the order of the keys. A key that is given twice has its row twice.

use super::descend::{Descent, Target};
use super::leaf_copy::LeafCopy;
use super::node::Node;
use super::tree::Tree;
use crate::buffer::{Miss, Optimistic};
use crate::error::StorageError;
use crate::ids::PageId;

/// Leaves that are brought into memory together, and keys that are looked at for them.
const FETCH_MAX: usize = 64;
const FETCH_KEYS_MAX: usize = 256;

/// Pages on the way to some keys that are not in memory: hints, but for the first one.
pub struct MissingLeaves {
    first: Miss,
    others: Vec<PageId>,
}

/// Keys of one leaf from which on its whole page is copied before the keys are found.
const MANY_KEYS: usize = 4;

impl Tree {
    /// If the way to the first key ends at a page that is not in memory: that page, and those of the next keys, for [`Tree::fetch_leaves`].
    pub fn missing_leaves<'k>(&self, key: impl Fn(usize) -> Option<&'k [u8]>) -> Option<MissingLeaves> {
        let root = self.root_now()?;
        let miss = |key| match self.descend_to_read(root, Target::Key(key)) {
            Ok(Descent::Miss(miss)) => Some(miss),
            _ => None,
        };
        let first = miss(key(0)?)?;
        let mut others: Vec<PageId> = Vec::new();
        for key in (1..FETCH_KEYS_MAX).map_while(&key) {
            if let Some(missing) = miss(key)
                && others.last() != Some(&missing.page)
            {
                others.push(missing.page);
                if others.len() == FETCH_MAX {
                    break;
                }
            }
        }
        Some(MissingLeaves { first, others })
    }

    /// Brings pages into memory, with all reads in flight at once.
    ///
    /// # Errors
    /// Those of reading the first one.
    pub async fn fetch_leaves(&self, missing: MissingLeaves) -> Result<(), StorageError> {
        self.pool().fetch_all(missing.first, &missing.others).await
    }

    /// Copies the rows of the first keys out: of those that stand in one leaf. `key` gives the keys by their number, in ascending order. Says how many
    /// keys that are, at least one. None: a page is not in memory, or the tree is damaged: [`Tree::get`] will wait, or tell.
    pub fn try_pick<'k>(&self, key: impl Fn(usize) -> Option<&'k [u8]>, copy: &mut LeafCopy) -> Option<usize> {
        let (root, first) = (self.root_now()?, key(0)?);
        loop {
            let leaf = match self.descend_to_read(root, Target::Key(first)) {
                Ok(Descent::At(leaf, _)) => leaf,
                Ok(Descent::Miss(_) | Descent::Shallow) | Err(_) => return None,
            };
            match pick(&leaf, &key, copy) {
                Some(keys) => return Some(keys),
                None => self.pool().counters().read_restarts.add(1),
            }
        }
    }
}

/// None: the leaf changed meanwhile.
fn pick<'k>(leaf: &Optimistic<'_>, key: &impl Fn(usize) -> Option<&'k [u8]>, copy: &mut LeafCopy) -> Option<usize> {
    let node = Node(leaf.page);
    let many = key(MANY_KEYS - 1).is_some_and(|key| node.high_admits(key));
    if many {
        copy.take(node, 0..node.count());
    }
    let mut places = std::mem::take(&mut copy.places);
    places.clear();
    let mut keys = 0;
    while let Some(key) = key(keys) {
        match node.search(key) {
            Ok(index) => places.push(index as u16),
            // Behind the last row the key may be the next leaf's. The descent was for the first key.
            Err(index) if index >= node.count() && keys > 0 && !node.high_admits(key) => break,
            Err(_) => {}
        }
        keys += 1;
    }
    if !many {
        copy.take_some(node, &places);
    }
    copy.seen = Some(leaf.seen());
    let is_valid = leaf.validate();
    if is_valid {
        copy.decode(places.iter().map(|index| usize::from(*index)));
    }
    copy.places = places;
    is_valid.then_some(keys)
}
