//! Foreign keys that refer to a table, index or column that is about to be dropped: they prevent the DROP, or are dropped with it.

use super::Ddl;
use super::cascade::{needed_by, shown_column, shown_constraint, shown_index};
use super::drop::named_by_default;
use crate::error::{Result, SqlError, code};
use crate::planner::environment::with_env;
use clearway_engine::catalog::{Catalog, ForeignKey, Index, Object, Relation};
use clearway_txn::lockmgr::{IfTaken, LockMode};

/// What is about to go.
#[derive(Clone, Copy)]
pub(super) enum DroppedPart<'a> {
    /// The column at this place.
    Column(usize),
    /// An index, alone or with its constraint.
    Index(&'a Index),
}

/// The index by which a table keeps unique what a foreign key leads to.
fn index_of(catalog: &Catalog, key: &ForeignKey) -> Option<u32> {
    let fits = |i: &&Index| {
        i.unique
            && !i.deferrable
            && i.columns.len() == key.referenced.len()
            && i.columns.iter().all(|c| key.referenced.contains(&c.column))
    };
    let mut all = catalog.indexes(key.references).filter(fits);
    let first = all.next()?;
    if first.primary {
        return Some(first.oid);
    }
    Some(all.find(|i| i.primary).map_or(first.oid, |i| i.oid))
}

impl DroppedPart<'_> {
    fn concerns(self, catalog: &Catalog, key: &ForeignKey) -> bool {
        match self {
            DroppedPart::Column(at) => key.referenced.contains(&at),
            DroppedPart::Index(index) => index_of(catalog, key) == Some(index.oid),
        }
    }

    /// What a foreign key depends on, and what is dropped.
    fn named(self, r: &Relation) -> (String, String) {
        match self {
            DroppedPart::Column(at) => {
                let column = shown_column(&r.columns[at].name, r);
                (column.clone(), column)
            }
            DroppedPart::Index(index) if index.constraint => (shown_index(index), shown_constraint(&index.name, r)),
            DroppedPart::Index(index) => (shown_index(index), shown_index(index)),
        }
    }
}

impl Ddl<'_> {
    /// Locks the sequences that a column's new default names: they must not go meanwhile.
    pub(super) async fn lock_default(&self, r: &Relation, column: usize) -> Result<()> {
        let catalog = self.catalog();
        let named = with_env(self.core, &catalog, |env| named_by_default(self.core, env, r, column));
        for oid in named {
            self.core.lock_relation(oid, LockMode::AccessShare, IfTaken::Wait).await?;
            if catalog.get(oid).is_some() && self.catalog().get(oid).is_none() {
                return Err(SqlError::new(code::UNDEFINED_OBJECT, "referenced relation was concurrently dropped"));
            }
        }
        Ok(())
    }

    /// Drops the foreign keys that lead to what goes. Returns the table as it is then.
    ///
    /// # Errors
    /// 2BP01 without `cascade`, if there is one.
    pub(super) async fn drop_referrers(&self, r: Relation, going: DroppedPart<'_>, cascade: bool) -> Result<Relation> {
        let catalog = self.catalog();
        let leads = |k: &ForeignKey| k.references == r.oid && going.concerns(&catalog, k);
        let children: Vec<&Relation> = catalog.referring(r.oid).filter(|c| c.foreign_keys.iter().any(&leads)).collect();
        if children.is_empty() {
            return Ok(r);
        }
        let keys = children.iter().flat_map(|c| c.foreign_keys.iter().filter(|k| leads(k)).map(|k| (*c, k)));
        let shown: Vec<String> = keys.map(|(c, k)| shown_constraint(&k.name, c)).collect();
        if !cascade {
            let (on, dropped) = going.named(&r);
            return Err(needed_by(&shown, &dropped, &on));
        }
        self.tell_cascade(&shown);
        for child in children {
            self.lock(child.oid, LockMode::AccessExclusive).await?;
            let Some(mut child) = self.catalog().relation(child.oid).cloned() else { continue };
            child.foreign_keys.retain(|k| !leads(k));
            self.put(Object::Relation(child)).await?;
        }
        Ok(self.catalog().relation(r.oid).cloned().unwrap_or(r))
    }
}
