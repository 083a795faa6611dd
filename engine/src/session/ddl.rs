//! Changes of the catalog by a session: objects are put and dropped, trees created and dropped.

use std::sync::Arc;

use clearway_storage::ids::TreeId;
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};
use clearway_txn::mutation::{self, Mutation};
use clearway_txn::transaction::{Basis, Change};

use super::Session;
use crate::catalog::change::{CatalogChange, apply};
use crate::catalog::{CATALOG_TREE, Catalog, Object, Oid, encode_object, object_key};
use crate::error::EngineError;

impl Session {
    /// The catalog with the changes of the open transaction.
    pub fn catalog(&mut self) -> Arc<Catalog> {
        let published = self.db.catalog();
        // SES-6
        if !mutation::active(Mutation::NoDepWaitCatalog) {
            self.dep_lsn = self.dep_lsn.max(published.lsn);
        }
        if self.changes.is_empty() && self.temporary.is_empty() {
            return published;
        }
        let version = (self.temporary.version(), self.changes.len());
        match &self.private {
            Some((lsn, of, catalog)) if *lsn == published.lsn && *of == version => catalog.clone(),
            _ => {
                // SES-5: names are locked, so the session's changes fit a catalog that others have published meanwhile.
                let all: Vec<_> = self.temporary.changes().chain(self.changes.iter().cloned()).collect();
                let catalog = apply(&published, &all).map_or_else(|_| published.clone(), Arc::new);
                self.private = Some((published.lsn, version, catalog.clone()));
                catalog
            }
        }
    }

    /// Creates an empty tree.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn create_tree(&mut self) -> Result<TreeId, EngineError> {
        Ok(self.txn().create_tree().await?)
    }

    /// Creates an empty tree that lives as long as the session, if the transaction commits (TMP-1).
    ///
    /// # Errors
    /// Those of the store.
    pub async fn create_temporary_tree(&mut self) -> Result<TreeId, EngineError> {
        let tree = self.create_tree().await?;
        self.temporary.created(tree);
        Ok(tree)
    }

    /// Whether the session has temporary objects.
    pub fn has_temporary(&self) -> bool {
        !self.temporary.is_empty() || self.changes.iter().any(|change| change.temporary)
    }

    /// The numbers of the session's temporary objects, in their order.
    pub fn temporary_objects(&self) -> Vec<Oid> {
        let own = self.changes.iter().filter(|change| change.temporary);
        let all: std::collections::BTreeSet<Oid> = own.map(|c| c.oid).chain(self.temporary.oids()).collect();
        all.into_iter().collect()
    }

    /// Drops a tree when the transaction commits.
    pub fn drop_tree_at_commit(&mut self, tree: TreeId) {
        self.dropped.push(tree);
    }

    /// Adds an object to the catalog, or replaces the object of the same oid.
    ///
    /// # Errors
    /// `Exists` if another object has the name; if another transaction is publishing that name, its end is awaited first.
    pub async fn put_object(&mut self, object: Object) -> Result<(), EngineError> {
        let (space, within) = object.name_space();
        self.lock_name(space, within, object.name()).await?;
        let catalog = self.catalog();
        let is_new = catalog.get(object.oid()).is_none();
        // CAT-1 is checked before anything is written.
        catalog.with(object.clone())?;
        if catalog.is_temporary(&object) {
            self.changes.push(CatalogChange { oid: object.oid(), object: Some(Arc::new(object)), temporary: true });
            return Ok(());
        }
        let bytes = encode_object(&object)?;
        let key = object_key(object.oid());
        let tree = self.db.transactions().store().tree(CATALOG_TREE);
        let change = match is_new {
            true => Change::Insert { value: &bytes },
            false => Change::Update { value: &bytes, strength: LockMode::RowNoKeyUpdate },
        };
        self.txn().change(&tree, &key, change, Basis::Locked, IfTaken::Wait).await?;
        self.changes.push(CatalogChange { oid: object.oid(), object: Some(Arc::new(object)), temporary: false });
        Ok(())
    }

    /// Removes an object from the catalog.
    ///
    /// # Errors
    /// `Missing`.
    pub async fn drop_object(&mut self, oid: Oid) -> Result<(), EngineError> {
        let catalog = self.catalog();
        let Some(object) = catalog.get(oid).cloned() else {
            return Err(EngineError::Missing { kind: "object", name: oid.to_string() });
        };
        if catalog.is_temporary(&object) {
            self.changes.push(CatalogChange { oid, object: None, temporary: true });
            return Ok(());
        }
        let (space, within) = object.name_space();
        self.lock_name(space, within, object.name()).await?;
        let tree = self.db.transactions().store().tree(CATALOG_TREE);
        let change = Change::Delete { moved_to: None };
        self.txn().change(&tree, &object_key(oid), change, Basis::Locked, IfTaken::Wait).await?;
        self.changes.push(CatalogChange { oid, object: None, temporary: false });
        Ok(())
    }

    /// SES-5: locks a name until the transaction ends.
    async fn lock_name(&mut self, space: u8, within: Oid, name: &str) -> Result<(), EngineError> {
        let mut key = vec![space];
        key.extend_from_slice(&within.to_be_bytes());
        key.extend_from_slice(name.as_bytes());
        let tag = LockTag::UniqueKey { tree: CATALOG_TREE, key: key.into() };
        self.lock(tag, LockMode::Exclusive, LockScope::Transaction, IfTaken::Wait).await
    }
}
