//! Changes of the catalog by a session: objects are put and dropped, trees created and dropped.
//!
//! # Invariants
//! - SES-7: an object is replaced only if no other transaction has changed or dropped it since the statement read it. Otherwise the other
//!   transaction's change would be lost.
//! - SES-8: a transaction that makes an object name a schema, a role or a type holds `AccessShare` on that other object, and a transaction that drops
//!   one holds `AccessExclusive` on it before it looks for objects that depend on it. So no committed object names one that was dropped.
//! - SES-9: the session's own version of the catalog has the first changes of the transaction, as many as it says. While the session keeps it, changes
//!   are only appended; a rollback to a mark takes changes back and drops the version. So the later changes alone make the next version: a statement
//!   over many objects does not apply all changes again for each of them.

use std::collections::HashMap;
use std::sync::Arc;

use clearway_storage::ids::TreeId;
use clearway_storage::seams::BoxFuture;
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};
use clearway_txn::mutation::{self, Mutation};
use clearway_txn::transaction::{Basis as ChangeBasis, Change};

use super::Session;
use super::basis::Basis;
use crate::catalog::change::{CatalogChange, apply};
use crate::catalog::{CATALOG_TREE, Catalog, Object, Oid, encode_object, object_key};
use crate::error::EngineError;

impl Session {
    /// A statement of DDL begins: it reads objects as they are published now (SES-7).
    pub fn begin_ddl(&mut self) {
        self.basis = Basis { catalog: Some(self.db.catalog()), later: HashMap::new() };
    }

    /// The statement has locked an object, and reads it again with its indexes, which the lock of their table protects (SES-7).
    pub fn read_again(&mut self, oid: Oid) {
        if self.basis.catalog.is_some() {
            let now = self.db.catalog();
            for oid in now.indexes(oid).map(|index| index.oid).chain([oid]) {
                self.basis.later.insert(oid, now.get(oid).cloned());
            }
        }
    }

    /// The published version of an object that the statement has read; none: there was none.
    fn read_version(&self, oid: Oid) -> Option<Arc<Object>> {
        match (self.basis.later.get(&oid), &self.basis.catalog) {
            (Some(later), _) => later.clone(),
            (None, Some(catalog)) => catalog.get(oid).cloned(),
            (None, None) => self.db.catalog().get(oid).cloned(),
        }
    }

    /// SES-7
    fn check_unchanged(&self, oid: Oid, read: Option<&Arc<Object>>) -> Result<(), EngineError> {
        let published = self.db.catalog();
        match (read, published.get(oid)) {
            (None, None) => Ok(()),
            (Some(read), Some(now)) if Arc::ptr_eq(read, now) => Ok(()),
            (read, now) => {
                let name = read.or(now).map_or_else(String::new, |o| format!("{} \"{}\"", o.kind(), o.name()));
                Err(EngineError::Overtaken { dropped: now.is_none(), object: name })
            }
        }
    }

    /// Locks a schema, a role, a type or a database as an object of the catalog (SES-8).
    ///
    /// # Errors
    /// Those of locks.
    pub async fn lock_object(&mut self, object: &Object, mode: LockMode) -> Result<(), EngineError> {
        let (database, class) = match object {
            Object::Role(_) => (0, 1260),
            Object::Database(_) => (0, 1262),
            Object::Schema(_) => (self.database, 2615),
            Object::Type(_) => (self.database, 1247),
            Object::Routine(_) => (self.database, 1255),
            Object::Operator(_) => (self.database, 2617),
            Object::Relation(_) | Object::Index(_) | Object::Sequence(_) | Object::Comment(_) => return Ok(()),
        };
        let tag = LockTag::Object { database, class, object: u64::from(object.oid()) };
        self.lock(tag, mode, LockScope::Transaction, IfTaken::Wait).await
    }

    /// SES-8: locks what an object names and its version that was read does not.
    async fn lock_named(&mut self, object: &Object, read: Option<&Arc<Object>>) -> Result<(), EngineError> {
        let catalog = self.catalog();
        let before = read.map_or_else(Vec::new, |read| read.named_objects(&catalog));
        for oid in object.named_objects(&catalog) {
            // What is not there is damage of another kind, or the session's own.
            let Some(named) = catalog.get(oid).filter(|_| !before.contains(&oid)).cloned() else { continue };
            if catalog.is_temporary(&named) {
                // TMP-3
                let (name, ty) = (object.name().to_owned(), named.name().to_owned());
                return Err(EngineError::NamesTemporary { kind: object.kind(), name, ty });
            }
            self.lock_object(&named, LockMode::AccessShare).await?;
            if self.catalog().get(oid).is_none() {
                return Err(EngineError::Missing { kind: named.kind(), name: named.name().to_owned() });
            }
        }
        Ok(())
    }
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
        let of_first = match &self.private {
            Some((lsn, of, catalog)) if *lsn == published.lsn && of.0 == version.0 => Some((of.1, catalog)),
            _ => None,
        };
        let made = match of_first {
            Some((first, catalog)) if first == version.1 => return catalog.clone(),
            // SES-9
            Some((first, catalog)) => apply(catalog, &self.changes[first..]),
            // SES-5: names are locked, so the session's changes fit a catalog that others have published meanwhile.
            None => {
                let all: Vec<_> = self.temporary.changes().chain(self.changes.iter().cloned()).collect();
                apply(&published, &all)
            }
        };
        let Ok(catalog) = made.map(Arc::new) else {
            self.private = None;
            return published;
        };
        self.private = Some((published.lsn, version, catalog.clone()));
        catalog
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
    /// `Exists` if another object has the name; if another transaction is publishing that name, its end is awaited first. `Overtaken` if
    /// another transaction has changed the object since it was read. `Missing` if a schema, role or type that it names has gone.
    pub fn put_object(&mut self, object: Object) -> BoxFuture<'_, Result<(), EngineError>> {
        // Boxed, so that this code is in this crate alone; that of a future is generated in each crate that awaits it.
        Box::pin(self.putting_object(object))
    }

    async fn putting_object(&mut self, object: Object) -> Result<(), EngineError> {
        let read = self.read_version(object.oid());
        if !self.catalog().is_temporary(&object) {
            self.lock_named(&object, read.as_ref()).await?;
        }
        let (space, within) = object.name_space();
        self.lock_name(space, within, &object.unique_name()).await?;
        self.check_unchanged(object.oid(), read.as_ref())?;
        let catalog = self.catalog();
        let is_new = catalog.get(object.oid()).is_none();
        // CAT-1 is checked before anything is written.
        catalog.takes(&object)?;
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
        self.txn().change(&tree, &key, change, ChangeBasis::Locked, IfTaken::Wait).await?;
        // A statement that gave it another name had locked that one.
        self.check_unchanged(object.oid(), read.as_ref())?;
        self.changes.push(CatalogChange { oid: object.oid(), object: Some(Arc::new(object)), temporary: false });
        Ok(())
    }

    /// Removes an object from the catalog.
    ///
    /// # Errors
    /// `Missing`.
    pub fn drop_object(&mut self, oid: Oid) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(self.dropping_object(oid))
    }

    async fn dropping_object(&mut self, oid: Oid) -> Result<(), EngineError> {
        let catalog = self.catalog();
        let Some(object) = catalog.get(oid).cloned() else {
            return Err(EngineError::Missing { kind: "object", name: oid.to_string() });
        };
        if catalog.is_temporary(&object) {
            self.changes.push(CatalogChange { oid, object: None, temporary: true });
            return Ok(());
        }
        let (space, within) = object.name_space();
        self.lock_name(space, within, &object.unique_name()).await?;
        if self.catalog().get(oid).is_none() {
            return Err(EngineError::Missing { kind: object.kind(), name: object.name().to_owned() });
        }
        let tree = self.db.transactions().store().tree(CATALOG_TREE);
        let change = Change::Delete { moved_to: None };
        self.txn().change(&tree, &object_key(oid), change, ChangeBasis::Locked, IfTaken::Wait).await?;
        self.changes.push(CatalogChange { oid, object: None, temporary: false });
        Ok(())
    }

    /// Locks the name of an object: until the transaction ends no other one changes the object. It is read afterwards (SES-7).
    ///
    /// # Errors
    /// Those of locks.
    pub async fn lock_to_change(&mut self, object: &Object) -> Result<(), EngineError> {
        let (space, within) = object.name_space();
        self.lock_name(space, within, &object.unique_name()).await?;
        self.read_again(object.oid());
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
