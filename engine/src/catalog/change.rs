//! Changes of the catalog by a transaction.

use std::collections::HashMap;
use std::sync::Arc;

use clearway_storage::ids::Lsn;

use super::Catalog;
use super::index::{Index, IndexState};
use super::object::{Object, Oid, ROWS_MOVE, Relation};
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
    let index = match change.object.as_deref() {
        Some(Object::Index(index)) => index,
        Some(Object::Relation(relation)) if relation.rows_from_lsn == ROWS_MOVE => {
            let is_new = before.relation(change.oid).is_none();
            let relation = Relation { rows_from_lsn: if is_new { 0 } else { lsn.0 }, ..relation.clone() };
            return CatalogChange { object: Some(Arc::new(Object::Relation(relation))), ..change.clone() };
        }
        _ => return change.clone(),
    };
    let was = before.index(change.oid).filter(|was| was.state == IndexState::Public && was.tree == index.tree);
    // What concerns its name or its owner leaves its entries alone.
    let valid_from_lsn = was.map_or(lsn.0, |was| was.valid_from_lsn);
    let index = Index { valid_from_lsn, ..index.clone() };
    CatalogChange { object: Some(Arc::new(Object::Index(index))), ..change.clone() }
}

/// A catalog with changes applied.
///
/// # Errors
/// Those of `Catalog::put`.
pub(crate) fn apply(catalog: &Catalog, changes: &[CatalogChange]) -> Result<Catalog, EngineError> {
    let mut next = catalog.clone();
    // What goes first: a name may have moved from one object to another.
    for change in changes {
        next.remove(change.oid);
    }
    let last: HashMap<Oid, &CatalogChange> = changes.iter().map(|c| (c.oid, c)).collect();
    let mut added: Vec<&&CatalogChange> = last.values().collect();
    added.sort_by_key(|c| c.oid);
    for change in added {
        if let Some(object) = &change.object {
            next.put(object.clone())?;
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(oid: Oid, name: &str, references: Option<Oid>) -> Object {
        let key = references.map(|oid| {
            format!(
                r#"{{"oid":1,"name":"f","columns":[0],"references":{oid},"referenced":[0],"on_delete":"NoAction","on_update":"NoAction","validated":true}}"#
            )
        });
        let text = format!(
            r#"{{"oid":{oid},"database":2,"schema":3,"name":"{name}","owner":4,"kind":"Table","columns":[],"tree":9,"key":[],"version":1,"checks":[],"foreign_keys":[{}],"query":null}}"#,
            key.unwrap_or_default()
        );
        let relation: Relation = serde_json::from_str(&text).expect("fields that are left out have defaults");
        Object::Relation(relation)
    }

    fn names(catalog: &Catalog) -> Vec<(Oid, String)> {
        catalog.objects().map(|o| (o.oid(), o.name().to_owned())).collect()
    }

    /// SES-9: a version that is made step by step is the one that all changes make at once, also where names move between objects.
    #[test]
    fn changes_in_steps_make_what_they_make_at_once() {
        let put =
            |object: Object| CatalogChange { oid: object.oid(), object: Some(Arc::new(object)), temporary: false };
        let gone = |oid| CatalogChange { oid, object: None, temporary: false };
        let mut before = Catalog::default();
        for object in [table(20, "a", None), table(21, "b", Some(20)), table(22, "c", Some(20))] {
            before.put(Arc::new(object)).expect("the names differ");
        }
        let changes = [
            put(table(20, "x", None)),
            put(table(21, "a", Some(20))),
            put(table(20, "b", None)),
            put(table(23, "d", Some(21))),
            gone(22),
            put(table(24, "c", Some(23))),
            gone(24),
            put(table(23, "c", None)),
        ];
        for split in 0..=changes.len() {
            let first = apply(&before, &changes[..split]).expect("names are unique after each change");
            let in_steps = apply(&first, &changes[split..]).expect("names are unique after each change");
            let at_once = apply(&before, &changes).expect("names are unique after each change");
            assert_eq!(names(&in_steps), names(&at_once), "{split}");
            assert_eq!(names(&at_once), [(20, "b".into()), (21, "a".into()), (23, "c".into())]);
            for oid in 20..25 {
                let referring = |catalog: &Catalog| catalog.referring(oid).map(|r| r.oid).collect::<Vec<_>>();
                assert_eq!(referring(&in_steps), referring(&at_once), "{split}: keys to {oid}");
            }
            assert_eq!(at_once.referring(20).map(|r| r.oid).collect::<Vec<_>>(), [21]);
            assert!(in_steps.in_schema(3, "c").is_some_and(|o| o.oid() == 23) && in_steps.in_schema(3, "x").is_none());
        }
        let taken = put(table(25, "a", None));
        assert!(apply(&before, &[taken]).is_err(), "CAT-1");
    }
}
