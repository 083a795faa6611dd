//! The trees that a transaction has created, and which of them it has loaded rows into (LOD-1, LOD-3 in load.rs).

use clearway_storage::error::StorageError;
use clearway_storage::ids::TreeId;

use crate::error::TxnError;

#[derive(Clone, Copy, Debug)]
struct Created {
    tree: TreeId,
    /// How many changes stood before the creation, and after the first row of the latest load into it.
    changes: usize,
    loaded: usize,
    /// LOD-3
    spoiled: bool,
}

/// Those whose creation stands.
#[derive(Debug, Default)]
pub(super) struct CreatedTrees {
    all: Vec<Created>,
}

impl CreatedTrees {
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// A tree was created when so many changes stood.
    pub(super) fn add(&mut self, tree: TreeId, changes: usize) {
        self.all.push(Created { tree, changes, loaded: 0, spoiled: false });
    }

    /// Whether the tree was created when at least so many changes stood.
    pub(super) fn has(&self, tree: TreeId, changes: usize) -> bool {
        self.all.iter().any(|c| c.tree == tree && c.changes >= changes)
    }

    /// A load begins whose first row is the latest of so many changes.
    pub(super) fn loaded(&mut self, tree: TreeId, changes: usize) {
        let created = self.all.iter_mut().find(|c| c.tree == tree).expect("LOD-1: a tree of this transaction");
        created.loaded = changes;
    }

    /// Changes are undone until `left` of them stand.
    pub(super) fn back_to(&mut self, left: usize) {
        self.all.retain(|c| c.changes < left);
        self.all.iter_mut().for_each(|c| c.spoiled |= c.loaded > left);
    }

    /// LOD-3
    pub(super) fn check(&self) -> Result<(), TxnError> {
        if self.all.iter().any(|c| c.spoiled) {
            let what = "the transaction went back to a point between the creation of a tree and a load into it";
            return Err(StorageError::Invalid(what.into()).into());
        }
        Ok(())
    }
}
