//! Pending frees: the trees and overflow chains that commits dropped or superseded, until their pages are free.
//!
//! # Life of a pending free
//! ```text
//!   in the log    the commit record names its trees; the before-images of its rows name the chains that it superseded
//!   in memory     a list, from the commit on                      a checkpoint saves what is on it
//!   settled       every snapshot is above the commit, and it is durable
//!   held          a temporary tree is named by the commit that creates it; it stays until its session ends
//!   freed         a chain: last pages first. A tree: marked as dropping, then leaves first, its root and entry last
//! ```
//!
//! # Invariants
//! - PND-1: from its commit until its last page is free, what is to be freed is on the list, in the directory as
//!   dropping, or both; and a crash brings it back there, from the checkpoint or from the log.
//! - PND-2: freeing again what was freed already does nothing: a page counts as the chain's or the tree's only while it
//!   says so itself, and neither numbers of chains nor ids of trees are used twice.
//! - PND-3: no record frees more than a batch of pages, however large the tree.
//!
//! # Crash safety
//! At every point between two records what is left of a chain or tree can be found from its beginning.

use crate::error::StorageError;
use crate::ids::{Lsn, TreeId};
use crate::recovery::{PendingChain, PendingDrop};
use crate::space::TreeState;
use crate::store::Store;
use clearway_base::sync::Mutex;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;

/// The list.
pub(crate) struct Pending {
    lists: Mutex<Lists>,
}

#[derive(Default)]
struct Lists {
    drops: Vec<PendingDrop>,
    /// Temporary trees: checkpoints save them as dropped, so that a crash drops them, but nothing frees them before they are released.
    held: Vec<PendingDrop>,
    chains: VecDeque<PendingChain>,
}

enum Next {
    Chain(PendingChain),
    Mark(TreeId),
    Dismantle(TreeId),
}

impl Pending {
    /// What recovery found. A tree in which an unfinished transaction has something to undo is held until that is done.
    pub(crate) fn new(drops: Vec<PendingDrop>, chains: Vec<PendingChain>, changed: &HashSet<TreeId>) -> Pending {
        let (held, drops) = drops.into_iter().partition(|drop| changed.contains(&drop.tree));
        Pending { lists: Mutex::new("storage/store/pending", Lists { drops, held, chains: chains.into() }) }
    }

    /// For a checkpoint.
    pub(crate) fn saved(&self) -> (Vec<PendingDrop>, Vec<PendingChain>) {
        let lists = self.lists.lock();
        (lists.drops.iter().chain(&lists.held).copied().collect(), lists.chains.iter().copied().collect())
    }

    fn next(&self, horizon: Lsn, dropping: impl FnOnce() -> Option<TreeId>) -> Option<Next> {
        let lists = self.lists.lock();
        let chain = lists.chains.front().filter(|chain| chain.commit <= horizon);
        let settled = || lists.drops.iter().find(|drop| drop.commit <= horizon);
        match chain {
            Some(chain) => Some(Next::Chain(*chain)),
            None => match settled() {
                Some(drop) => Some(Next::Mark(drop.tree)),
                None => dropping().map(Next::Dismantle),
            },
        }
    }
}

impl Store {
    /// The commit record at `commit` named these trees as dropped: they are freed once every snapshot is above it.
    /// Called in the commit section or right after it.
    pub fn dropped_at_commit(&self, trees: &[TreeId], commit: Lsn) {
        let mut lists = self.pending.lists.lock();
        lists.held.retain(|held| !trees.contains(&held.tree));
        lists.drops.extend(trees.iter().map(|tree| PendingDrop { tree: *tree, commit }));
        drop(lists);
        self.drops_changed();
    }

    /// The commit record at `commit` named these trees as dropped, but they live until [`Store::release_held`]: a crash drops them.
    pub fn held_at_commit(&self, trees: &[TreeId], commit: Lsn) {
        self.pending.lists.lock().held.extend(trees.iter().map(|tree| PendingDrop { tree: *tree, commit }));
    }

    /// Trees that are held.
    pub fn held_trees(&self) -> Vec<TreeId> {
        self.pending.lists.lock().held.iter().map(|held| held.tree).collect()
    }

    /// Nobody uses these held trees any more: they are freed once every snapshot is above `last`.
    pub fn release_held(&self, trees: &[TreeId], last: Lsn) {
        let mut lists = self.pending.lists.lock();
        let (released, held) = std::mem::take(&mut lists.held).into_iter().partition(|held| trees.contains(&held.tree));
        lists.held = held;
        let released: Vec<PendingDrop> = released;
        lists.drops.extend(released.into_iter().map(|held| PendingDrop { commit: held.commit.max(last), ..held }));
        drop(lists);
        self.drops_changed();
    }

    /// The commit at `commit` superseded these overflow chains, given with their trees: they are freed once every
    /// snapshot is above it. They are those of the before-images of all changes that it did not roll back. Called in
    /// the commit section: in the step from which on [`crate::seams::Versions::for_checkpoint`] does not report the
    /// transaction any more (PND-1).
    pub fn chains_superseded(&self, chains: &[(TreeId, [u8; 16])], commit: Lsn) {
        let chains = chains.iter().map(|(tree, reference)| PendingChain { tree: *tree, reference: *reference, commit });
        self.pending.lists.lock().chains.extend(chains);
    }

    /// Drops that are not begun.
    pub fn pending_drops(&self) -> Vec<PendingDrop> {
        self.pending.lists.lock().drops.clone()
    }

    /// How many superseded chains are not freed.
    pub fn pending_chains(&self) -> usize {
        self.pending.lists.lock().chains.len()
    }

    /// A tree was marked as dropping, or the horizon moved: the dropper should look.
    pub fn drops_changed(&self) {
        self.drop_rings.fetch_add(1, Ordering::SeqCst);
        self.drop_bell.ring();
    }

    /// Keeps the dropper and the tidier away from all trees until the guard goes: for a check, which is meant for trees at
    /// rest. Closing waits for the guard.
    pub async fn trees_at_rest(&self) -> impl Drop + '_ {
        self.dropping.take().await
    }

    /// Frees one chain or one tree that nobody can see any more; false if there is none.
    ///
    /// # Errors
    /// A failed read, no space for the records, poisoned. What was begun is gone on with at the next call.
    pub async fn drop_step(&self) -> Result<bool, StorageError> {
        let _turn = self.dropping.take().await;
        // Not "there is none": a tree may stand half dismantled.
        if let Some(err) = self.wal.poisoned() {
            return Err(err);
        }
        if self.ended() {
            return Ok(false);
        }
        // STO-1: what some transaction may still see is left for a later ring, not waited for.
        let horizon = self.versions.horizon().min(self.wal.durable_lsn());
        let dropping = || self.space.trees().iter().find(|entry| entry.state == TreeState::Dropping).map(|e| e.tree);
        match self.pending.next(horizon, dropping) {
            None => Ok(false),
            Some(Next::Chain(chain)) => {
                self.tree(chain.tree).free_overflow(&chain.reference).await?;
                // PND-1: only now.
                self.pending.lists.lock().chains.retain(|other| *other != chain);
                Ok(true)
            }
            Some(Next::Mark(tree)) => {
                self.space.begin_drop(tree).await?;
                self.pending.lists.lock().drops.retain(|pending| pending.tree != tree);
                Ok(true)
            }
            Some(Next::Dismantle(tree)) => {
                if let Some(root) = self.tree(tree).dismantle(|| self.ends_soon()).await? {
                    self.space.free_pages(&[root], Some(tree)).await?;
                }
                Ok(true)
            }
        }
    }

    pub(crate) async fn run_dropper(self: std::sync::Arc<Self>) {
        loop {
            let rings = self.drop_rings.load(Ordering::SeqCst);
            match self.drop_step().await {
                Ok(true) => crate::sync::yield_now().await,
                // Without room for the records: after the next ring.
                Ok(false) | Err(StorageError::NoSpace(_)) => {
                    let rung = || self.drop_rings.load(Ordering::SeqCst) != rings;
                    self.drop_bell.wait_until(|| rung() || self.ended()).await;
                }
                Err(err) => {
                    self.wal.poison(&format!("what was dropped could not be freed: {err}"));
                }
            }
            if self.ended() {
                return;
            }
        }
    }
}
