//! The sweep for ghosts whose deletion had committed before a crash and which were not purged yet. The list of rows to purge is in memory
//! only, so after an unclean end all trees are searched once, in the background.
//!
//! # Invariants
//! - GHO-1: after an unclean end every ghost that was settled at that time is purged, except in a tree that can't be read. If the database
//!   ends uncleanly again before the sweep is done, the next sweep begins anew. The purge of later ghosts does not depend on the sweep.

use std::collections::VecDeque;
use std::sync::Arc;

use clearway_base::sync::{Mutex, yield_now};
use clearway_storage::btree::{Direction, KeyRange, Purged};
use clearway_storage::ids::TreeId;
use clearway_storage::seams::Versions;
use clearway_storage::space::TreeState;
use clearway_storage::store::Store;
use clearway_txn::transactions::Transactions;

use crate::error::EngineError;

/// Leaves that one step searches: at ten steps a second, 5 MB/s of reading beside the regular work.
const LEAVES: u64 = 64;

#[derive(Debug, Default)]
struct SweepState {
    trees: VecDeque<TreeId>,
    /// Where in the first of them to go on.
    from: Vec<u8>,
    leaves: u64,
    purged: u64,
}

/// The trees that are still to be searched.
#[derive(Debug)]
pub struct GhostSweep {
    left: Mutex<SweepState>,
}

impl Default for GhostSweep {
    fn default() -> Self {
        GhostSweep { left: Mutex::new("engine/ghosts", SweepState::default()) }
    }
}

impl GhostSweep {
    /// Queues all live trees for the search.
    pub(crate) fn begin(&self, store: &Arc<Store>) {
        let trees = store.space().trees().into_iter().filter(|entry| entry.state == TreeState::Live);
        self.left.lock().trees = trees.map(|entry| entry.tree).collect();
    }

    /// Trees that are not finished, leaves searched, ghosts purged.
    pub fn progress(&self) -> (usize, u64, u64) {
        let left = self.left.lock();
        (left.trees.len(), left.leaves, left.purged)
    }

    /// Searches some leaves; true if there is more to do. Only the upkeep loop calls it.
    ///
    /// # Errors
    /// Those of the trees: the next step goes on with the next tree.
    pub async fn step(&self, all: &Transactions) -> Result<bool, EngineError> {
        let next = {
            let left = self.left.lock();
            left.trees.front().map(|tree| (*tree, left.from.clone()))
        };
        let Some((id, from)) = next else { return Ok(false) };
        let swept = sweep(all, id, from).await;
        let mut left = self.left.lock();
        let (to, leaves, purged) =
            swept.as_ref().map_or((None, 0, 0), |(to, leaves, purged)| (to.clone(), *leaves, *purged));
        match to {
            Some(key) => left.from = key,
            None => {
                left.trees.pop_front();
                left.from.clear();
            }
        }
        left.leaves += leaves;
        left.purged += purged;
        let more = !left.trees.is_empty();
        drop(left);
        swept.map(|_| more)
    }
}

/// Searches some leaves of a tree. Returns the key at which to go on, if the tree goes on; the leaves searched; the ghosts purged.
async fn sweep(all: &Transactions, id: TreeId, from: Vec<u8>) -> Result<(Option<Vec<u8>>, u64, u64), EngineError> {
    // A tree that was dropped meanwhile has no ghosts.
    if all.store().space().tree(id).is_none_or(|entry| entry.state != TreeState::Live) {
        return Ok((None, 0, 0));
    }
    let (tree, book) = (all.store().tree(id), all.book());
    let mut cursor = tree.cursor(KeyRange { from, to: None }, Direction::Forward);
    let (mut last, mut leaves, mut purged) = (None, 0, 0);
    while leaves < LEAVES || last.is_none() {
        let Some(leaf) = cursor.next_leaf().await? else {
            return Ok((None, leaves, purged));
        };
        let mut ghosts: Vec<Vec<u8>> = Vec::new();
        for (key, row) in leaf.iter() {
            if row.ghost && (row.tag.is_settled() || book.is_settled(row.tag)) {
                ghosts.push(key.to_vec());
            }
            last = Some(key.to_vec());
        }
        let mut clean = Purged::default();
        for key in ghosts {
            if clean.count == 0 || !clean.reaches(&key) {
                clean = tree.purge(&key, &**book).await?;
                purged += clean.count as u64;
            }
        }
        leaves += 1;
        yield_now().await;
    }
    // The least key above the last one.
    let next = last.map(|mut key: Vec<u8>| {
        key.push(0);
        key
    });
    Ok((next, leaves, purged))
}
