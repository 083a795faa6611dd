//! Row ids for tables without a primary key: 8 bytes, big-endian. Sessions take them in ranges, so that inserting sessions share no counter.
//!
//! # Invariants
//! - RID-1: no two rows in a tree have the same id: ranges do not overlap, and the first range after an opening begins above the highest id in
//!   the tree.
//! - RID-2: ids of one session rise, so its rows keep their order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::Mutex;
use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_storage::ids::TreeId;

use crate::error::EngineError;

/// Ids that a session takes at once; those that it has not used when it ends stay unused.
const RANGE: u64 = 64;

/// The next free id of each table.
#[derive(Debug)]
pub struct RowIds {
    next: Mutex<HashMap<TreeId, Arc<AtomicU64>>>,
}

impl Default for RowIds {
    fn default() -> Self {
        RowIds { next: Mutex::new("engine/row_id", HashMap::new()) }
    }
}

/// A session's ranges.
#[derive(Debug)]
pub struct RowIdRanges {
    /// That of the table to which the last row went: many rows in a row go to one.
    latest: (TreeId, (u64, u64)),
    /// Those of the others.
    of: HashMap<TreeId, (u64, u64)>,
}

impl Default for RowIdRanges {
    fn default() -> Self {
        RowIdRanges { latest: (TreeId(0), (0, 0)), of: HashMap::new() }
    }
}

impl RowIdRanges {
    /// A table's range, which becomes the latest one.
    #[inline]
    fn range(&mut self, tree: TreeId) -> &mut (u64, u64) {
        if self.latest.0 != tree {
            let own = self.of.remove(&tree).unwrap_or_default();
            let (other, range) = std::mem::replace(&mut self.latest, (tree, own));
            if range.0 < range.1 {
                self.of.insert(other, range);
            }
        }
        &mut self.latest.1
    }

    /// The next id for a row of a table, if it is at hand, as a key; it is not taken.
    pub fn peek(&mut self, tree: TreeId) -> Option<[u8; 8]> {
        let range = self.range(tree);
        (range.0 < range.1).then(|| range.0.to_be_bytes())
    }

    /// Takes the next id for a row of a table, if it is at hand.
    pub fn next_now(&mut self, tree: TreeId) -> Option<[u8; 8]> {
        let range = self.range(tree);
        (range.0 < range.1).then(|| {
            range.0 += 1;
            (range.0 - 1).to_be_bytes()
        })
    }
}

impl RowIds {
    /// Takes a range of ids for a table.
    async fn take(&self, tree: &Tree) -> Result<(u64, u64), EngineError> {
        let known = self.next.lock().get(&tree.id()).cloned();
        let next = match known {
            Some(next) => next,
            None => {
                // RID-1
                let first = highest(tree).await?.map_or(1, |id| id + 1);
                self.next.lock().entry(tree.id()).or_insert_with(|| Arc::new(AtomicU64::new(first))).clone()
            }
        };
        // RID-2: a later range lies above all earlier ones.
        let from = next.fetch_add(RANGE, Ordering::Relaxed);
        Ok((from, from + RANGE))
    }

    /// Gives a session that has used up its range another one, if that needs no search in the tree.
    pub fn refill_now(&self, ranges: &mut RowIdRanges, tree: TreeId) {
        let known = self.next.lock().get(&tree).cloned();
        let range = ranges.range(tree);
        if let Some(next) = known.filter(|_| range.0 >= range.1) {
            // RID-2
            let from = next.fetch_add(RANGE, Ordering::Relaxed);
            *range = (from, from + RANGE);
        }
    }

    /// The next id for a session's row in a table, as a key.
    ///
    /// # Errors
    /// From the tree, at the table's first use.
    pub async fn next(&self, ranges: &mut RowIdRanges, tree: &Tree) -> Result<[u8; 8], EngineError> {
        if let Some(id) = ranges.next_now(tree.id()) {
            return Ok(id);
        }
        let (id, end) = self.take(tree).await?;
        *ranges.range(tree.id()) = (id + 1, end);
        Ok(id.to_be_bytes())
    }
}

async fn highest(tree: &Tree) -> Result<Option<u64>, EngineError> {
    let mut cursor = tree.cursor(KeyRange::all(), Direction::Backward);
    while let Some(leaf) = cursor.next_leaf().await? {
        if let Some((key, _)) = leaf.iter().next_back() {
            let id = key.try_into().map(u64::from_be_bytes).unwrap_or(u64::MAX - 1);
            return Ok(Some(id));
        }
    }
    Ok(None)
}
