//! The comments that COMMENT has set, appended to the rows with which pg_description begins.

use super::catalog::is_local;
use super::text;
use crate::context::names::{check_oid, check_oid_of};
use crate::exec::{Row, Run, SoughtRows};
use crate::types::{Datum, Oid};
use clearway_engine::catalog::{Comment, Object, Relation, TypeBody, TypeObject};

/// Numbers of catalogs of PostgreSQL's, which `classoid` tells.
const PG_TYPE: Oid = 1247;
const PG_PROC: Oid = 1255;
const PG_CLASS: Oid = 1259;
const PG_CONSTRAINT: Oid = 2606;
const PG_NAMESPACE: Oid = 2615;
const PG_EXTENSION: Oid = 3079;
const PG_POLICY: Oid = 3256;

/// Appends the comments on the objects of this database. Those on databases and roles are in pg_shdescription.
pub(super) fn append(run: &Run<'_>, sought: Option<&SoughtRows>, rows: &mut Vec<Row>) {
    let catalog = &run.names.catalog;
    for object in catalog.objects() {
        let Object::Comment(comment) = &**object else { continue };
        let of_extension = extension_of(run, comment).map(|oid| (oid, PG_EXTENSION, 0));
        let of_object = || {
            let of = catalog.get(comment.object).filter(|of| is_here(of, run.names.database))?;
            place(run, of, comment)
        };
        let Some((oid, class, part)) = of_extension.or_else(of_object) else { continue };
        let row = vec![Datum::Oid(oid), Datum::Oid(class), Datum::Int4(part), text(comment.text.as_str())];
        if sought.is_none_or(|sought| sought.keys.have(&row[sought.place])) {
            rows.push(row);
        }
    }
}

/// The extension that a comment is on.
fn extension_of(run: &Run<'_>, comment: &Comment) -> Option<Oid> {
    comment.part.strip_prefix("extension ").filter(|_| comment.object == run.names.database)?.parse().ok()
}

fn is_here(object: &Object, database: Oid) -> bool {
    is_local(object, database) || matches!(object, Object::Schema(schema) if schema.database == database)
}

/// `objoid`, `classoid` and `objsubid`.
fn place(run: &Run<'_>, of: &Object, comment: &Comment) -> Option<(Oid, Oid, i32)> {
    match of {
        Object::Relation(r) if !comment.part.is_empty() => part(run, r, &comment.part),
        Object::Relation(_) | Object::Index(_) | Object::Sequence(_) => Some((of.oid(), PG_CLASS, 0)),
        Object::Schema(_) => Some((of.oid(), PG_NAMESPACE, 0)),
        Object::Type(TypeObject { oid, body: TypeBody::Domain(d), .. }) if !comment.part.is_empty() => {
            let at = d.checks.iter().position(|check| check.name == comment.part)?;
            Some((check_oid_of(*oid, at), PG_CONSTRAINT, 0))
        }
        Object::Type(_) => Some((of.oid(), PG_TYPE, 0)),
        Object::Routine(_) => Some((of.oid(), PG_PROC, 0)),
        Object::Database(_) | Object::Role(_) | Object::Comment(_) => None,
    }
}

/// The same of a column, a policy or a constraint.
fn part(run: &Run<'_>, r: &Relation, part: &str) -> Option<(Oid, Oid, i32)> {
    if let Ok(column) = part.parse() {
        return Some((r.oid, PG_CLASS, column));
    }
    if let Some(policy) = part.strip_prefix("policy ").and_then(|oid| oid.parse().ok()) {
        return Some((policy, PG_POLICY, 0));
    }
    let key = || r.foreign_keys.iter().find(|key| key.name == part).map(|key| key.oid);
    let check = || r.checks.iter().position(|check| check.name == part).map(|at| check_oid(r, at));
    let index = || run.names.catalog.indexes(r.oid).find(|index| index.name == part).map(|index| index.oid);
    Some((key().or_else(check).or_else(index)?, PG_CONSTRAINT, 0))
}
