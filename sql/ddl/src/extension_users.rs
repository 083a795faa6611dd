//! What has the types of an extension that is about to be dropped: it prevents the DROP, or goes too.

use super::Ddl;
use super::cascade::{needed_by, shown, shown_attribute, shown_column, shown_constraint, shown_index, shown_type};
use super::composite::made_of_types;
use crate::error::{Result, SqlError};
use crate::types::{TypeFacts, extension};
use clearway_engine::catalog::{Catalog, Index, Object, Relation, RelationKind, Routine, TypeBody};
use clearway_txn::lockmgr::LockMode;
use std::collections::HashSet;

/// The types that an extension brings.
pub(super) fn types_of(extension: &str) -> impl Iterator<Item = &'static TypeFacts> {
    extension::TYPES.iter().filter(move |ty| ty.extension == extension).map(|ty| &ty.facts)
}

/// What has a type of an extension.
enum User {
    /// A column of a table.
    Column(u32, String),
    /// A view or an index.
    Whole(u32),
    /// Anything else: it is not dropped.
    Other,
}

/// Whether a stored text names one of the types: whatever else in it is of the type comes from there, or from a column.
fn names(text: &str, types: &[&TypeFacts]) -> bool {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    words.any(|word| types.iter().any(|ty| word.eq_ignore_ascii_case(ty.name)))
}

fn of_relation(r: &Relation, types: &[&TypeFacts], made: &HashSet<u32>, out: &mut Vec<(User, String)>) {
    let is_of = |ty: u32| made.contains(&ty);
    if r.kind != RelationKind::Table {
        let has = r.columns.iter().any(|c| is_of(c.type_oid)) || r.query.as_ref().is_some_and(|q| names(q, types));
        if has {
            out.push((User::Whole(r.oid), shown(r)));
        }
        return;
    }
    for c in r.columns.iter().filter(|c| !c.is_dropped()) {
        if is_of(c.type_oid) {
            out.push((User::Column(r.oid, c.name.clone()), shown_column(&c.name, r)));
        } else if c.default.as_ref().is_some_and(|text| names(text, types)) {
            out.push((User::Other, format!("default value for {}", shown_column(&c.name, r))));
        }
    }
    for check in r.checks.iter().filter(|check| names(&check.condition, types)) {
        out.push((User::Other, shown_constraint(&check.name, r)));
    }
}

fn of_index(i: &Index, types: &[&TypeFacts], made: &HashSet<u32>) -> bool {
    let mut expressions = i.columns.iter().filter_map(|c| c.expression.as_ref());
    let has = |e: &clearway_engine::catalog::IndexExpression| made.contains(&e.type_oid) || names(&e.text, types);
    expressions.any(has) || i.condition.as_ref().is_some_and(|text| names(text, types))
}

fn users(catalog: &Catalog, database: u32, types: &[&TypeFacts]) -> Vec<(User, String)> {
    let own: Vec<u32> = types.iter().flat_map(|ty| [ty.oid, ty.array]).collect();
    let made = made_of_types(catalog, &own);
    let mut out = Vec::new();
    let is_here = |i: &Index| catalog.relation(i.table).is_some_and(|r| r.database == database);
    let has = |r: &Routine| r.arguments.iter().map(|a| a.type_oid).chain([r.result]).any(|ty| made.contains(&ty));
    for object in catalog.objects() {
        match &**object {
            Object::Relation(r) if r.database == database => of_relation(r, types, &made, &mut out),
            Object::Index(i) if is_here(i) && of_index(i, types, &made) => {
                out.push((User::Whole(i.oid), shown_index(i)));
            }
            Object::Routine(r) if r.database == database && has(r) => {
                out.push((User::Other, format!("{} {}", r.kind.name(), super::routine::shown_plainly(r))));
            }
            Object::Type(t) if t.database == database => match &t.body {
                TypeBody::Domain(d) if made.contains(&d.base) => out.push((User::Other, shown_type(t))),
                TypeBody::Composite(c) => {
                    let attributes = c.attributes.iter().filter(|a| made.contains(&a.type_oid));
                    let shown = |a: &clearway_engine::catalog::Attribute| (User::Other, shown_attribute(&a.name, t));
                    out.extend(attributes.map(shown));
                }
                _ => {}
            },
            _ => {}
        }
    }
    out
}

impl Ddl<'_> {
    /// Drops what has a type of these extensions.
    ///
    /// # Errors
    /// 2BP01 without `cascade`, if there is anything; 0A000 if something is neither a column, an index nor a view.
    pub(super) async fn drop_users(&self, extensions: &[&str], cascade: bool) -> Result<()> {
        for name in extensions {
            let types: Vec<&TypeFacts> = types_of(name).collect();
            if types.is_empty() {
                continue;
            }
            let found = users(&self.catalog(), self.core.database, &types);
            let shown: Vec<&str> = found.iter().map(|(_, shown)| shown.as_str()).collect();
            if !cascade && !found.is_empty() {
                let on = types.first().map_or("", |ty| ty.name);
                return Err(needed_by(&shown, &format!("extension {name}"), &format!("type {on}")));
            }
            if found.iter().any(|(user, _)| matches!(user, User::Other)) {
                let what =
                    "DROP EXTENSION ... CASCADE while types, functions, defaults or checks are made of its types";
                return Err(SqlError::unsupported(what).detail(shown.join("\n")));
            }
            if !shown.is_empty() {
                self.tell_cascade(&shown);
            }
            for (user, _) in found {
                match user {
                    User::Whole(oid) => Box::pin(self.drop_one(oid, true, &[])).await?,
                    User::Column(table, column) => {
                        self.lock(table, LockMode::AccessExclusive).await?;
                        let Some(r) = self.catalog().relation(table).cloned() else { continue };
                        self.not_in_use("ALTER TABLE", table, &r.name)?;
                        Box::pin(self.drop_column(r, &column, true, true)).await?;
                    }
                    User::Other => {}
                }
            }
        }
        Ok(())
    }
}
