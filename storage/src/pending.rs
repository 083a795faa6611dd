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
//! - PND-1: from its commit until its last page is free, a tree or chain that is to be freed is on the list, or marked as dropping in the
//!   directory, or both. After a crash recovery puts it on the list again, from the checkpoint or from the log.
//! - PND-2: freeing a page a second time does nothing: a page is freed only while its own header names the chain or the tree, and
//!   neither numbers of chains nor ids of trees are used twice.
//! - PND-3: no record frees more than a batch of pages, however large the tree.
//!
//! # Crash safety
//! Between any two records, the rest of a chain or tree can be found from its beginning.

use crate::error::StorageError;
use crate::ids::{Lsn, TreeId};
use crate::recovery::{PendingChain, PendingDrop};
use crate::space::TreeState;
use crate::store::Store;
use clearway_base::sync::Mutex;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The list.
pub(crate) struct Pending {
    lists: Mutex<Lists>,
    /// There was no space for the last step.
    stuck: AtomicBool,
}

#[derive(Default)]
struct Lists {
    drops: Vec<PendingDrop>,
    /// Temporary trees: checkpoints save them as dropped, so that a crash drops them, but nothing frees them before they are released.
    held: Vec<PendingDrop>,
    chains: VecDeque<Chain>,
}

/// The commit of a chain on the list whose transaction has not committed yet.
const NOT_YET: u64 = u64::MAX;

/// A superseded chain: on the list before its transaction commits, so that the commit section need not put it there.
struct Chain {
    tree: TreeId,
    reference: [u8; 16],
    commit: Arc<AtomicU64>,
}

impl Chain {
    /// As it is saved and freed, once its transaction has committed.
    fn committed(&self) -> Option<PendingChain> {
        let commit = self.commit.load(Ordering::SeqCst);
        (commit != NOT_YET).then_some(PendingChain { tree: self.tree, reference: self.reference, commit: Lsn(commit) })
    }
}

impl From<PendingChain> for Chain {
    fn from(chain: PendingChain) -> Chain {
        let PendingChain { tree, reference, commit } = chain;
        Chain { tree, reference, commit: Arc::new(AtomicU64::new(commit.0)) }
    }
}

/// The chains on the list of a transaction that is about to commit.
#[must_use = "the chains are never freed if their commit is not told"]
pub struct Superseded {
    commit: Arc<AtomicU64>,
}

impl Superseded {
    /// The transaction commits at `commit`. Called in the commit section: in the step from which on
    /// [`crate::seams::Versions::for_checkpoint`] does not report the transaction any more (PND-1). It stores one word.
    pub fn committed(&self, commit: Lsn) {
        self.commit.store(commit.0, Ordering::SeqCst);
    }
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
        let chains = chains.into_iter().map(Chain::from).collect();
        let lists = Mutex::new("storage/store/pending", Lists { drops, held, chains });
        Pending { lists, stuck: AtomicBool::new(false) }
    }

    /// For a checkpoint.
    pub(crate) fn saved(&self) -> (Vec<PendingDrop>, Vec<PendingChain>) {
        let lists = self.lists.lock();
        (
            lists.drops.iter().chain(&lists.held).copied().collect(),
            lists.chains.iter().filter_map(Chain::committed).collect(),
        )
    }

    fn next(&self, horizon: Lsn, dropping: impl FnOnce() -> Option<TreeId>) -> Option<Next> {
        let lists = self.lists.lock();
        let chain = lists.chains.iter().find_map(Chain::committed).filter(|chain| chain.commit <= horizon);
        let settled = || lists.drops.iter().find(|drop| drop.commit <= horizon);
        match chain {
            Some(chain) => Some(Next::Chain(chain)),
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
        assert!(commit > Lsn::ZERO, "a tree is dropped by a commit");
        let mut lists = self.pending.lists.lock();
        lists.held.retain(|held| !trees.contains(&held.tree));
        lists.drops.extend(trees.iter().map(|tree| PendingDrop { tree: *tree, commit }));
        drop(lists);
        self.drops_changed();
    }

    /// The commit record at `commit` named these trees as dropped, but they live until [`Store::release_held`]: a crash drops them.
    pub fn held_at_commit(&self, trees: &[TreeId], commit: Lsn) {
        assert!(commit > Lsn::ZERO, "a temporary tree is made by a commit");
        self.pending.lists.lock().held.extend(trees.iter().map(|tree| PendingDrop { tree: *tree, commit }));
    }

    /// Trees that are held.
    pub fn held_trees(&self) -> Vec<TreeId> {
        self.pending.lists.lock().held.iter().map(|held| held.tree).collect()
    }

    /// These held trees are no longer used: they are freed once every snapshot is above `last`.
    pub fn release_held(&self, trees: &[TreeId], last: Lsn) {
        let mut lists = self.pending.lists.lock();
        let (released, held) = std::mem::take(&mut lists.held).into_iter().partition(|held| trees.contains(&held.tree));
        lists.held = held;
        let released: Vec<PendingDrop> = released;
        lists.drops.extend(released.into_iter().map(|held| PendingDrop { commit: held.commit.max(last), ..held }));
        drop(lists);
        self.drops_changed();
    }

    /// A transaction that is about to commit superseded these overflow chains, given with their trees: they are freed once it has
    /// committed and every snapshot is above its commit. They are those of the before-images of all changes that it did not roll back.
    /// Called before the commit section; from here on the commit can't fail.
    pub fn chains_superseded(&self, chains: &[(TreeId, [u8; 16])]) -> Superseded {
        let commit = Arc::new(AtomicU64::new(NOT_YET));
        let of_list = |(tree, reference): &(TreeId, [u8; 16])| Chain {
            tree: *tree,
            reference: *reference,
            commit: commit.clone(),
        };
        self.pending.lists.lock().chains.extend(chains.iter().map(of_list));
        Superseded { commit }
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

    /// Frees one chain or one tree that no snapshot can see any more; false if there is none.
    ///
    /// # Errors
    /// A failed read, no space for the records, poisoned. What was begun is gone on with at the next call.
    pub async fn drop_step(&self) -> Result<bool, StorageError> {
        let step = self.drop_one().await;
        self.pending.stuck.store(matches!(step, Err(StorageError::NoSpace(_))), Ordering::SeqCst);
        step
    }

    /// Whether there was no space for the records of the last step; the dropper tries again when it is rung.
    pub fn drop_is_stuck(&self) -> bool {
        self.pending.stuck.load(Ordering::SeqCst)
    }

    async fn drop_one(&self) -> Result<bool, StorageError> {
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
                self.pending.lists.lock().chains.retain(|other| other.committed() != Some(chain));
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
