//! Changes of the catalog by a transaction.

use std::collections::HashMap;
use std::sync::Arc;

use clearway_storage::ids::Lsn;

use super::Catalog;
use super::index::{Index, IndexState};
use super::object::{Object, Oid};
use crate::error::EngineError;

/// One change of the catalog by a transaction.
#[derive(Clone, Debug)]
pub struct CatalogChange {
    /// The object's number.
    pub oid: Oid,
    /// What it is from now on; `None` if it was dropped.
    pub object: Option<Arc<Object>>,
    /// It is seen by its session alone and is not stored.
    pub temporary: bool,
}

/// The change as it is published by the commit at `lsn` (DB-2).
pub(crate) fn valid_from(before: &Catalog, change: &CatalogChange, lsn: Lsn) -> CatalogChange {
    let Some(Object::Index(index)) = change.object.as_deref() else { return change.clone() };
    let was = before.index(change.oid).filter(|was| was.state == IndexState::Public && was.tree == index.tree);
    // What concerns its name or its owner leaves its entries alone.
    let valid_from_lsn = was.map_or(lsn.0, |was| was.valid_from_lsn);
    let index = Index { valid_from_lsn, ..index.clone() };
    CatalogChange { object: Some(Arc::new(Object::Index(index))), ..change.clone() }
}

/// A catalog with changes applied.
pub(crate) fn apply(catalog: &Catalog, changes: &[CatalogChange]) -> Result<Catalog, EngineError> {
    let mut next = catalog.clone();
    // What goes first: a name may have moved from one object to another.
    for change in changes {
        next = next.without(change.oid);
    }
    let last: HashMap<Oid, &CatalogChange> = changes.iter().map(|c| (c.oid, c)).collect();
    let mut added: Vec<&&CatalogChange> = last.values().collect();
    added.sort_by_key(|c| c.oid);
    for change in added {
        if let Some(object) = &change.object {
            next = next.with(Object::clone(object))?;
        }
    }
    Ok(next)
}
