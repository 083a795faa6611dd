//! Temporary objects: only one session sees them, and they end with the session.
//!
//! Their definitions are not stored in the catalog's tree: the session adds them to its own view of the published catalog. So a definition
//! costs no log record, and other sessions keep their plans.
//!
//! # Invariants
//! - TMP-1: the commit record that creates a temporary tree also names it as dropped, and the store holds it while its session lives. So a
//!   crash at any point drops the tree, and the end of the session needs no transaction.
//! - TMP-2: a temporary tree is released only when no transaction has changes in it that may have to be undone.
//! - TMP-3: no object outside of the temporary schema names a temporary type, as other sessions could not read it.

use std::collections::BTreeMap;
use std::sync::Arc;

use clearway_storage::ids::{Lsn, TreeId};
use clearway_storage::store::Store;

use crate::catalog::change::{CatalogChange, valid_from};
use crate::catalog::{Catalog, Object, Oid};

/// The temporary objects of a session.
#[derive(Default)]
pub(super) struct Temporary {
    /// What committed transactions of the session left.
    objects: BTreeMap<Oid, Arc<Object>>,
    /// Their trees, and those of objects that were dropped, as long as the store holds them.
    trees: Vec<TreeId>,
    /// Trees that the open transaction has created.
    created: Vec<TreeId>,
    /// Rises with each change of `objects`.
    version: u64,
}

impl Temporary {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The objects as changes of the published catalog.
    pub(super) fn changes(&self) -> impl Iterator<Item = CatalogChange> + '_ {
        let change = |(oid, object): (&Oid, &Arc<Object>)| (*oid, object.clone());
        self.objects.iter().map(change).map(|(oid, object)| CatalogChange {
            oid,
            object: Some(object),
            temporary: true,
        })
    }

    pub(super) fn oids(&self) -> impl Iterator<Item = Oid> + '_ {
        self.objects.keys().copied()
    }

    pub(super) fn created(&mut self, tree: TreeId) {
        self.created.push(tree);
    }

    pub(super) fn created_now(&self) -> &[TreeId] {
        &self.created
    }

    /// A rollback to a mark: trees that were created since are gone.
    pub(super) fn truncate(&mut self, created: usize) {
        self.created.truncate(created);
    }

    /// The transaction has committed at `lsn` (DB-2 holds for temporary indexes, too).
    pub(super) fn committed(&mut self, before: &Catalog, changes: &[CatalogChange], dropped: &[TreeId], lsn: Lsn) {
        self.trees.append(&mut self.created);
        self.trees.retain(|tree| !dropped.contains(tree));
        for change in changes.iter().filter(|change| change.temporary) {
            self.version += 1;
            match valid_from(before, change, lsn).object {
                Some(object) => drop(self.objects.insert(change.oid, object)),
                None => drop(self.objects.remove(&change.oid)),
            }
        }
    }

    /// The transaction has ended without a commit.
    pub(super) fn rolled_back(&mut self) {
        self.created.clear();
    }

    /// The session ends: its trees, which are no longer its own. The caller keeps TMP-2.
    pub(super) fn end(&mut self) -> Vec<TreeId> {
        self.objects.clear();
        self.created.clear();
        std::mem::take(&mut self.trees)
    }
}

/// Releases the trees of sessions that have ended.
pub(crate) fn release(store: &Store, trees: &[TreeId], last: Lsn) {
    if !trees.is_empty() {
        store.release_held(trees, last);
    }
}
