//! How many pages of each tree were read from disk.
//!
//! # Invariants
//! - TRR-1: at most [`TREES_MAX`] trees are counted in a shard; pages of further ones are counted for none.

use crate::ids::{PageId, TreeId};
use clearway_base::sync::Mutex;
use std::collections::HashMap;

const SHARDS: usize = 16;
const TREES_MAX: usize = 16_384;

/// The counts. Only a thread that has just read a page from disk counts here; a shard for each sixteenth of the pages keeps parallel reads apart.
pub(super) struct TreeReads([Mutex<HashMap<TreeId, u64>>; SHARDS]);

impl Default for TreeReads {
    fn default() -> Self {
        TreeReads(std::array::from_fn(|_| Mutex::new("storage/buffer/tree_reads", HashMap::new())))
    }
}

impl TreeReads {
    /// A page of a tree was read.
    pub(super) fn add(&self, page: PageId, tree: TreeId) {
        let mut shard = self.0[page.0 as usize % SHARDS].lock();
        if let Some(count) = shard.get_mut(&tree) {
            *count += 1;
        } else if shard.len() < TREES_MAX {
            shard.insert(tree, 1); // TRR-1
        }
    }

    /// The counts of all trees.
    pub(super) fn all(&self) -> HashMap<TreeId, u64> {
        let mut all = HashMap::new();
        for shard in &self.0 {
            shard.lock().iter().for_each(|(tree, count)| *all.entry(*tree).or_default() += count);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_counted_by_tree_and_bounded() {
        let reads = TreeReads::default();
        (0..100).for_each(|page| reads.add(PageId(page), TreeId(u64::from(page % 3))));
        assert_eq!(reads.all(), HashMap::from([(TreeId(0), 34), (TreeId(1), 33), (TreeId(2), 33)]));
        (0..2 * TREES_MAX as u64).for_each(|tree| reads.add(PageId(0), TreeId(tree + 9)));
        assert!(reads.0[0].lock().len() <= TREES_MAX, "TRR-1");
    }
}
