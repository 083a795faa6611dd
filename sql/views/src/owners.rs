//! The rows of pg_shdepend: which roles an object needs, as its owner, in its rights or in its policies.

use super::catalog::{int_oid, local};
use super::{ViewOf, text};
use clearway_engine::catalog::acl::PUBLIC;
use clearway_engine::catalog::{Acl, Object};
use clearway_exec::{Row, Run};
use clearway_values::types::{Datum, Oid};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_shdepend", pg_shdepend)];

const PG_AUTHID: Oid = 1260;
const PG_POLICY: Oid = 3256;
/// Roles below this number are the system's: nothing is noted of them (PostgreSQL's FirstUnpinnedObjectId).
const FIRST_NOTED: Oid = 12_000;

/// The catalog in which an object stands; none: it needs no role by itself.
fn class_of(object: &Object) -> Option<Oid> {
    match object {
        Object::Relation(_) | Object::Sequence(_) => Some(1259),
        Object::Type(_) => Some(1247),
        Object::Routine(_) => Some(1255),
        Object::Operator(_) => Some(2617),
        Object::Schema(_) => Some(2615),
        Object::Database(_) => Some(1262),
        Object::Index(_) | Object::Role(_) | Object::Comment(_) => None,
    }
}

fn pg_shdepend(run: &Run<'_>) -> Vec<Row> {
    let catalog = &run.names.catalog;
    let databases = catalog.objects().filter(|o| matches!(&***o, Object::Database(_))).map(|o| &**o);
    let schemas = catalog.schemas(run.names.database).filter_map(|s| catalog.get(s.oid)).map(|o| &**o);
    let others = local(run).filter(|o| !matches!(o, Object::Database(_) | Object::Schema(_)));
    let mut out = Vec::new();
    for object in databases.chain(schemas).chain(others) {
        let Some(class) = class_of(object) else { continue };
        let database = if matches!(object, Object::Database(_)) { 0 } else { run.names.database };
        let mut note = |class: Oid, (oid, part): (Oid, usize), role: Oid, kind: &str| {
            if role >= FIRST_NOTED && role != PUBLIC {
                let place = [int_oid(database), int_oid(class), int_oid(oid), Datum::Int4(part as i32)];
                out.push(place.into_iter().chain([int_oid(PG_AUTHID), int_oid(role), text(kind)]).collect());
            }
        };
        let owner = object.owner().unwrap_or(0);
        note(class, (object.oid(), 0), owner, "o");
        let mut of_acl = |acl: &Acl, part: usize| {
            let mut roles: Vec<Oid> = acl.roles().filter(|role| *role != owner).collect();
            roles.sort_unstable();
            roles.dedup();
            roles.into_iter().for_each(|role| note(class, (object.oid(), part), role, "a"));
        };
        if let Some((acl, _)) = object.acl() {
            of_acl(acl, 0);
        }
        if let Object::Relation(r) = object {
            r.columns.iter().enumerate().for_each(|(at, c)| of_acl(&c.acl, at + 1));
            for p in &r.security.policies {
                p.roles.iter().for_each(|role| note(PG_POLICY, (p.oid, 0), *role, "r"));
            }
        }
    }
    out
}
