//! The place of a comment in pg_description or pg_shdescription, and the object that keeps it.
//!
//! # Structure
//! COMMENT keeps a comment beside its object: by the object's number and what of it is meant. A row that is put into the catalog directly may
//! be at any place, also where no object is; such a comment is kept by the database (or by number 0, for all databases) under a name
//! made of its place.
//!
//! # Invariants
//! - CMT-1: a comment on an object that is there, or on a part of it, is kept beside the object, whether COMMENT or INSERT has made it. So
//!   it goes with the object, and COMMENT replaces it.
//! - CMT-2: of two comments at one place only that beside the object is found. (The other is older than the object.)

use super::extensions;
use super::names::{check_oid, check_oid_of, schema_of};
use clearway_engine::catalog::{Catalog, Comment, Extension, Object, Oid, Relation, TypeBody, TypeObject};

/// Numbers of PostgreSQL's catalogs, which `classoid` tells.
const PG_TYPE: Oid = 1247;
const PG_PROC: Oid = 1255;
const PG_CLASS: Oid = 1259;
const PG_AUTHID: Oid = 1260;
const PG_DATABASE: Oid = 1262;
const PG_CONSTRAINT: Oid = 2606;
const PG_NAMESPACE: Oid = 2615;
const PG_OPERATOR: Oid = 2617;
const PG_EXTENSION: Oid = 3079;
const PG_POLICY: Oid = 3256;

/// How the part of a comment begins whose place is said by numbers.
const ROW: &str = "row ";

/// `objoid`, `classoid` and `objsubid`; the last is 0 in pg_shdescription, which does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The object.
    pub object: Oid,
    /// The catalog that has the object.
    pub class: Oid,
    /// The column; 0: the whole object.
    pub part: i32,
}

/// What keeps a comment: an object, and what of it is meant.
pub type Home = (Oid, String);

fn place(object: Oid, class: Oid, part: i32) -> Place {
    Place { object, class, part }
}

/// The part under which a comment is kept that belongs to no object.
fn row_part(place: Place) -> String {
    format!("{ROW}{} {} {}", place.object, place.class, place.part)
}

fn of_row_part(part: &str) -> Option<Place> {
    let mut numbers = part.strip_prefix(ROW)?.split(' ');
    let (object, class, part) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some(place(object.parse().ok()?, class.parse().ok()?, part.parse().ok()?))
}

fn is_here(catalog: &Catalog, object: &Object, database: Oid) -> bool {
    let schema = match object {
        Object::Schema(schema) => return schema.database == database,
        other => schema_of(other).and_then(|schema| catalog.get(schema)),
    };
    matches!(schema.map(|o| &**o), Some(Object::Schema(schema)) if schema.database == database)
}

/// CMT-2: whether no comment is beside the object that has come to a place.
fn is_not_hidden(catalog: &Catalog, home: Option<Home>) -> bool {
    home.is_none_or(|home| kept(catalog, &home).is_none())
}

/// The place in pg_description of a database; none: the comment is of another database, or in pg_shdescription.
pub fn place_of(catalog: &Catalog, database: Oid, comment: &Comment) -> Option<Place> {
    if comment.object == database
        && let Some(found) = of_row_part(&comment.part)
    {
        return is_not_hidden(catalog, home_of_object(catalog, database, found)).then_some(found);
    }
    let of_extension = comment.part.strip_prefix("extension ").filter(|_| comment.object == database);
    if let Some(extension) = of_extension.and_then(|oid| oid.parse().ok()) {
        return Some(place(extension, PG_EXTENSION, 0));
    }
    let of = catalog.get(comment.object).filter(|of| is_here(catalog, of, database))?;
    match &**of {
        Object::Relation(r) if !comment.part.is_empty() => place_of_part(catalog, r, &comment.part),
        Object::Relation(_) | Object::Index(_) | Object::Sequence(_) => Some(place(of.oid(), PG_CLASS, 0)),
        Object::Schema(_) => Some(place(of.oid(), PG_NAMESPACE, 0)),
        Object::Type(TypeObject { oid, body: TypeBody::Domain(d), .. }) if !comment.part.is_empty() => {
            let at = d.checks.iter().position(|check| check.name == comment.part)?;
            Some(place(check_oid_of(*oid, at), PG_CONSTRAINT, 0))
        }
        Object::Type(_) => Some(place(of.oid(), PG_TYPE, 0)),
        Object::Routine(_) => Some(place(of.oid(), PG_PROC, 0)),
        Object::Operator(_) => Some(place(of.oid(), PG_OPERATOR, 0)),
        Object::Database(_) | Object::Role(_) | Object::Comment(_) => None,
    }
}

/// The same of a column, a policy or a constraint.
fn place_of_part(catalog: &Catalog, r: &Relation, part: &str) -> Option<Place> {
    if let Ok(column) = part.parse() {
        return Some(place(r.oid, PG_CLASS, column));
    }
    if let Some(policy) = part.strip_prefix("policy ").and_then(|oid| oid.parse().ok()) {
        return Some(place(policy, PG_POLICY, 0));
    }
    let key = || r.foreign_keys.iter().find(|key| key.name == part).map(|key| key.oid);
    let check = || r.checks.iter().position(|check| check.name == part).map(|at| check_oid(r, at));
    let index = || catalog.indexes(r.oid).find(|index| index.name == part).map(|index| index.oid);
    Some(place(key().or_else(check).or_else(index)?, PG_CONSTRAINT, 0))
}

/// The place in pg_shdescription; none: the comment is in pg_description.
pub fn shared_place_of(catalog: &Catalog, comment: &Comment) -> Option<Place> {
    if comment.object == 0 {
        return of_row_part(&comment.part).filter(|found| is_not_hidden(catalog, home_of_shared(catalog, *found)));
    }
    let class = match &**catalog.get(comment.object)? {
        Object::Database(_) if comment.part.is_empty() => PG_DATABASE,
        Object::Role(_) => PG_AUTHID,
        _ => return None,
    };
    Some(place(comment.object, class, 0))
}

/// What keeps a comment at a place in pg_description (CMT-1).
pub fn home(catalog: &Catalog, database: Oid, place: Place) -> Home {
    home_of_object(catalog, database, place).unwrap_or_else(|| (database, row_part(place)))
}

/// What keeps a comment at a place in pg_shdescription.
pub fn shared_home(catalog: &Catalog, place: Place) -> Home {
    home_of_shared(catalog, place).unwrap_or_else(|| (0, row_part(place)))
}

fn home_of_shared(catalog: &Catalog, place: Place) -> Option<Home> {
    let is_there = match &**catalog.get(place.object)? {
        Object::Database(_) => place.class == PG_DATABASE,
        Object::Role(_) => place.class == PG_AUTHID,
        _ => false,
    };
    is_there.then(|| (place.object, String::new()))
}

/// The object of this database, or the part of one, that is at a place.
fn home_of_object(catalog: &Catalog, database: Oid, place: Place) -> Option<Home> {
    let object = || catalog.get(place.object).filter(|of| is_here(catalog, of, database));
    match (place.class, place.part) {
        (PG_CLASS, 0) => {
            let of = object()?;
            let is_one = matches!(&**of, Object::Relation(_) | Object::Index(_) | Object::Sequence(_));
            is_one.then(|| (place.object, String::new()))
        }
        (PG_CLASS, column) => match &**object()? {
            Object::Relation(r) => {
                let at = usize::try_from(column).ok()?.checked_sub(1)?;
                r.columns.get(at).filter(|c| !c.is_dropped()).map(|_| (r.oid, column.to_string()))
            }
            _ => None,
        },
        (PG_TYPE, 0) => matches!(&**object()?, Object::Type(_)).then(|| (place.object, String::new())),
        (PG_PROC, 0) => matches!(&**object()?, Object::Routine(_)).then(|| (place.object, String::new())),
        (PG_OPERATOR, 0) => matches!(&**object()?, Object::Operator(_)).then(|| (place.object, String::new())),
        (PG_NAMESPACE, 0) => matches!(&**object()?, Object::Schema(_)).then(|| (place.object, String::new())),
        (PG_CONSTRAINT, 0) => constraint(catalog, database, place.object),
        (PG_POLICY, 0) => policy(catalog, database, place.object),
        (PG_EXTENSION, 0) => match &**catalog.get(database)? {
            Object::Database(d) => {
                let is_one = |e: &Extension| e.oid == place.object;
                d.extensions.iter().any(is_one).then(|| (database, extensions::comment_part(place.object)))
            }
            _ => None,
        },
        _ => None,
    }
}

fn constraint(catalog: &Catalog, database: Oid, oid: Oid) -> Option<Home> {
    let of_index = || catalog.index(oid).filter(|index| index.constraint && index.database == database);
    if let Some(index) = of_index() {
        return Some((index.table, index.name.clone()));
    }
    catalog.objects().find_map(|o| match &**o {
        Object::Relation(r) if r.database == database => {
            let key = r.foreign_keys.iter().find(|k| k.oid == oid).map(|k| &k.name);
            let mut checks = r.checks.iter().enumerate();
            let check = || checks.find(|(at, _)| check_oid(r, *at) == oid).map(|(_, check)| &check.name);
            key.or_else(check).map(|name| (r.oid, name.clone()))
        }
        Object::Type(TypeObject { oid: domain, body: TypeBody::Domain(d), database: of, .. }) if *of == database => {
            let mut checks = d.checks.iter().enumerate();
            let found = checks.find(|(at, _)| check_oid_of(*domain, *at) == oid);
            found.map(|(_, check)| (*domain, check.name.clone()))
        }
        _ => None,
    })
}

fn policy(catalog: &Catalog, database: Oid, oid: Oid) -> Option<Home> {
    catalog.objects().find_map(|o| match &**o {
        Object::Relation(r) if r.database == database && r.security.policies.iter().any(|p| p.oid == oid) => {
            Some((r.oid, format!("policy {oid}")))
        }
        _ => None,
    })
}

/// The comment that a home has.
pub fn kept<'c>(catalog: &'c Catalog, (object, part): &Home) -> Option<&'c Comment> {
    catalog.comments(*object).find(|comment| comment.part == *part)
}

/// The comment at a place in pg_description; beside the object first (CMT-2).
pub fn find(catalog: &Catalog, database: Oid, place: Place) -> Option<&Comment> {
    kept(catalog, &home(catalog, database, place)).or_else(|| kept(catalog, &(database, row_part(place))))
}

/// The same in pg_shdescription.
pub fn find_shared(catalog: &Catalog, place: Place) -> Option<&Comment> {
    kept(catalog, &shared_home(catalog, place)).or_else(|| kept(catalog, &(0, row_part(place))))
}

/// The comments at places of any catalog that are about the whole of what has a number: `obj_description` without a catalog.
pub fn find_any(catalog: &Catalog, database: Oid, object: Oid) -> Option<&Comment> {
    let is_one = |comment: &&Comment| {
        place_of(catalog, database, comment).is_some_and(|found| (found.object, found.part) == (object, 0))
    };
    catalog.comments(object).chain(catalog.comments(database)).find(is_one)
}
