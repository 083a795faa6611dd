//! The search path on which the texts of a table's definition were written (USR-3): defaults, generated columns, conditions.

use crate::context::core::Core;
use crate::context::names::own_path;
use clearway_engine::catalog::{Catalog, Column, Oid, Relation};

/// Keeps the session's path with each text that is new.
pub(super) fn keep(core: &Core, catalog: &Catalog, relation: &mut Relation) {
    let old = catalog.relation(relation.oid);
    let mut path: Option<Vec<Oid>> = None;
    let mut here = || Some(path.get_or_insert_with(|| schemas(core, catalog, relation.schema)).clone());
    for (at, c) in relation.columns.iter_mut().enumerate().filter(|(_, c)| c.default.is_some()) {
        // A generated column's expression changes only when a column that it names gets another name.
        let same = |o: &&Column| o.default == c.default || (o.generated && c.generated);
        match old.and_then(|old| old.columns.get(at)).filter(same) {
            Some(o) => c.path.clone_from(&o.path),
            None if old.is_none() && c.path.is_some() => {}
            None => c.path = here(),
        }
    }
    for c in relation.checks.iter_mut() {
        match old.and_then(|old| old.checks.iter().find(|o| o.name == c.name)) {
            Some(o) => c.path.clone_from(&o.path),
            None if c.path.is_some() => {}
            None => c.path = here(),
        }
    }
}

/// The schemas of the session's path; those of temporary objects only for a table that is one.
fn schemas(core: &Core, catalog: &Catalog, of: Oid) -> Vec<Oid> {
    let temporary = catalog.temp_schema().map(|own| own.oid).filter(|own| *own == of);
    let path = core.path();
    let own = own_path(&path).filter_map(|name| Some(catalog.schema(core.database, name)?.oid));
    temporary.into_iter().chain(own).collect()
}
