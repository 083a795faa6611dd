//! The objects that keep a role from being dropped, as the error lists them.
//!
//! Source: PostgreSQL 15's checkSharedDependencies (src/backend/catalog/pg_shdepend.c) for the words and their order.

use crate::context::names::{Found, find, quote, schema_of};
use clearway_engine::catalog::{Catalog, DefaultAcl, Object, Role};
use std::collections::BTreeMap;

/// The lines that an error lists at most.
const LINES_MAX: usize = 100;

/// A line for each object of the database, and of all databases, that a role owns or that gives it rights; then one for each other database.
/// `large`: the lines of large objects, with their databases.
pub(super) fn of_role(
    catalog: &Catalog,
    (database, path): (u32, &[String]),
    role: u32,
    large: Vec<(u32, String)>,
) -> Vec<String> {
    let mut objects: Vec<&Object> = catalog.objects().map(|o| &**o).collect();
    objects.sort_by_key(|o| o.oid());
    let (mut lines, mut elsewhere) = (Vec::new(), BTreeMap::<u32, usize>::new());
    for object in objects {
        let found = about(object, role, &|| described(catalog, (database, path), object));
        match database_of(object) {
            Some(other) if other != database => *elsewhere.entry(other).or_default() += found.len(),
            _ => lines.extend(found),
        }
    }
    for owner in catalog.objects() {
        let Object::Role(owner) = &**owner else { continue };
        // A database that was dropped has taken its own along.
        for list in owner.defaults.iter().filter(|list| catalog.get(list.database).is_some()) {
            let how = match owner.oid == role {
                true => "owner of",
                false if list.acl.names(role) => "privileges for",
                false => continue,
            };
            if list.database == database {
                lines.push(format!("{how} {}", defaults(catalog, owner, list)));
            } else {
                *elsewhere.entry(list.database).or_default() += 1;
            }
        }
    }
    for (of, line) in large {
        if of == database {
            lines.push(line);
        } else {
            *elsewhere.entry(of).or_default() += 1;
        }
    }
    let more = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if more > 0 {
        lines.push(format!("and {more} other objects (see server log for list)"));
    }
    for (other, count) in elsewhere.into_iter().filter(|(_, count)| *count > 0) {
        let name = catalog.get(other).map_or("", |o| o.name());
        let s = if count == 1 { "" } else { "s" };
        lines.push(format!("{count} object{s} in database {name}"));
    }
    lines
}

fn database_of(object: &Object) -> Option<u32> {
    match object {
        Object::Schema(o) => Some(o.database),
        Object::Relation(o) => Some(o.database),
        Object::Index(o) => Some(o.database),
        Object::Sequence(o) => Some(o.database),
        Object::Type(o) => Some(o.database),
        Object::Routine(o) => Some(o.database),
        Object::Operator(o) => Some(o.database),
        Object::Database(_) | Object::Role(_) | Object::Comment(_) => None,
    }
}

/// How the role and the object hang together.
fn about(object: &Object, role: u32, name: &dyn Fn() -> String) -> Vec<String> {
    let mut lines = Vec::new();
    if object.owner() == Some(role) {
        lines.push(format!("owner of {}", name()));
    } else if object.acl().is_some_and(|(acl, _)| acl.names(role)) {
        lines.push(format!("privileges for {}", name()));
    }
    if let Object::Relation(r) = object {
        let columns = r.columns.iter().filter(|c| c.acl.names(role) && r.owner != role);
        lines.extend(columns.map(|c| format!("privileges for column {} of {}", quote(&c.name), name())));
        let policies = r.security.policies.iter().filter(|p| p.roles.contains(&role));
        lines.extend(policies.map(|p| format!("target of policy {} on {}", quote(&p.name), name())));
    }
    lines
}

/// Default privileges, in words.
fn defaults(catalog: &Catalog, owner: &Role, list: &DefaultAcl) -> String {
    let what = match list.kind {
        'r' => "relations",
        'S' => "sequences",
        'f' => "functions",
        'n' => "schemas",
        _ => "types",
    };
    let schema = catalog.get(list.schema).map(|schema| format!(" in schema {}", quote(schema.name())));
    format!("default privileges on new {what} belonging to role {}{}", quote(&owner.name), schema.unwrap_or_default())
}

/// The kind and the name of an object, with its schema where the name alone does not lead to it.
pub(super) fn described(catalog: &Catalog, (database, path): (u32, &[String]), object: &Object) -> String {
    let (kind, name) = (object.kind(), quote(object.name()));
    let signature = match object {
        Object::Routine(r) => Some((super::routine::shown_plainly(r), r.schema)),
        Object::Operator(o) => Some((crate::context::operators::shown(o), o.schema)),
        _ => None,
    };
    if let Some((shown, within)) = signature {
        let on_path = path.iter().any(|s| catalog.schema(database, s).is_some_and(|s| s.oid == within));
        return match catalog.get(within) {
            Some(schema) if !on_path => format!("{kind} {}.{shown}", quote(schema.name())),
            _ => format!("{kind} {shown}"),
        };
    }
    let visible = match object {
        Object::Type(ty) => path.iter().any(|s| catalog.schema(database, s).is_some_and(|s| s.oid == ty.schema)),
        _ => match find(catalog, database, path, None, object.name()) {
            Some(Found::Object(found)) => found.oid() == object.oid(),
            _ => false,
        },
    };
    match schema_of(object).and_then(|schema| catalog.get(schema)) {
        Some(schema) if !visible => format!("{kind} {}.{name}", quote(schema.name())),
        _ => format!("{kind} {name}"),
    }
}
