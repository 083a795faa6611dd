//! The rows of pg_class and related catalogs: the objects of the catalog as PostgreSQL's clients know them.

use super::activity::role_name;
use super::{Columns, PickedOf, ViewOf, breathes, letter, text};
use clearway_context::names::acl_name;
use clearway_context::views::{INFORMATION_SCHEMA, PG_CATALOG, SystemView, all, by_oid, listed, named};
use clearway_engine::catalog::acl::LETTERS;
use clearway_engine::catalog::types::row_type;
use clearway_engine::catalog::{Acl, AclKind, Object, Relation, RelationKind, Schema, TypeBody, TypeObject};
use clearway_exec::{Keys, Row, Run, SoughtRows};
use clearway_values::types::datum::Array;
use clearway_values::types::{Datum, oid};

use oid::TEXT;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "pg_database", pg_database),
    ("pg_catalog", "pg_roles", pg_roles),
    ("pg_catalog", "pg_authid", pg_authid),
];

/// Those of whose rows only some columns are built.
pub const PICKED: &[PickedOf] = &[("pg_class", pg_class), ("pg_namespace", pg_namespace)];

pub(super) fn int_oid(v: u32) -> Datum {
    Datum::Oid(v)
}

/// Who may do what, as PostgreSQL shows it: `role=letters/by whom`, with a star behind what may be granted further; null while nothing has
/// been granted or revoked.
pub(super) fn acl(run: &Run<'_>, owner: u32, acl: &Acl, kind: AclKind) -> Datum {
    if acl.is_default() {
        return Datum::Null;
    }
    let name = |oid: u32| if oid == 0 { String::new() } else { acl_name(&role_name(run, oid)) };
    let items = acl.entries(owner, kind).into_iter().map(|e| {
        let letter = |c: char| if e.grantable.contains(c) { format!("{c}*") } else { c.to_string() };
        let letters: String = LETTERS.chars().filter(|c| e.privileges.contains(*c)).map(letter).collect();
        text(&format!("{}={letters}/{}", name(e.role), name(e.by)))
    });
    Datum::Array(Array::one_dimensional(TEXT, items.collect()).into())
}

/// The schema's name of an oid.
pub(super) fn schema_name(run: &Run<'_>, oid: u32) -> String {
    match run.names.catalog.get(oid).map(|o| &**o) {
        Some(Object::Schema(s)) => s.name.clone(),
        _ => String::new(),
    }
}

/// Objects of the session's database that live in schemas.
pub(super) fn local<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Object> {
    let database = run.names.database;
    run.names.catalog.objects().map_while(breathes(run)).map(|o| &**o).filter(move |o| is_local(o, database))
}

pub(super) fn is_local(object: &Object, database: u32) -> bool {
    match object {
        Object::Relation(r) => r.database == database,
        Object::Index(i) => i.database == database,
        Object::Sequence(s) => s.database == database,
        Object::Type(t) => t.database == database,
        Object::Routine(r) => r.database == database,
        Object::Operator(o) => o.database == database,
        Object::Database(_) | Object::Schema(_) | Object::Role(_) | Object::Comment(_) => false,
    }
}

/// Those of them that have one of these numbers, or are tables, views, indexes and sequences of one of these names; by number.
pub(super) fn sought<'r>(run: &'r Run<'_>, keys: &Keys) -> Vec<&'r Object> {
    let (catalog, database) = (&run.names.catalog, run.names.database);
    let mut found: Vec<&Object> = match keys {
        Keys::Oids(oids) => oids.iter().filter_map(|oid| catalog.get(*oid)).map(|o| &**o).collect(),
        Keys::Names(names) => {
            let in_schema = |schema: u32| names.iter().filter_map(move |name| catalog.in_schema(schema, name));
            catalog.schemas(database).flat_map(|s| in_schema(s.oid)).map(|o| &**o).collect()
        }
    };
    // Composite types stand in pg_class under a number of their own.
    let has_class = |t: &&TypeObject| match (&t.body, keys) {
        (TypeBody::Composite(c), Keys::Oids(oids)) => oids.contains(&c.class),
        (TypeBody::Composite(_), Keys::Names(names)) => names.contains(&t.name),
        _ => false,
    };
    found.extend(catalog.types().filter(has_class).filter_map(|t| catalog.get(t.oid)).map(|o| &**o));
    found.dedup_by_key(|o| o.oid());
    found.retain(|o| is_local(o, database));
    found.sort_unstable_by_key(|o| o.oid());
    found
}

struct Class<'a> {
    oid: u32,
    /// The type of its rows, or 0.
    row_type: u32,
    name: &'a str,
    schema: u32,
    owner: u32,
    kind: &'static str,
    columns: usize,
    persistence: &'static str,
    options: &'a [String],
    acl: Option<(&'a Acl, AclKind)>,
    /// The table or view that it is.
    relation: Option<&'a Relation>,
    /// It is an object of the catalog, about which ANALYZE may know something.
    is_object: bool,
}

/// The tablespace of what all databases share.
const SHARED_TABLESPACE: u32 = 1664;

/// A column of pg_class.
fn class_column(run: &Run<'_>, c: &Class<'_>, at: usize) -> Datum {
    let catalog = &run.names.catalog;
    let holds_rows = matches!(c.kind, "r" | "m");
    let counted = || run.core.db.statistics().of(c.oid).filter(|_| c.is_object);
    let system = || by_oid(c.oid).filter(|_| !c.is_object);
    let says = |f: &dyn Fn(&Relation) -> bool| Datum::Bool(c.relation.is_some_and(f));
    match at {
        0 => int_oid(c.oid),
        7 => int_oid(if c.kind == "v" || system().is_some_and(SystemView::is_mapped) { 0 } else { c.oid }),
        8 if system().is_some_and(SystemView::is_shared) => int_oid(SHARED_TABLESPACE),
        1 => text(c.name),
        2 => int_oid(c.schema),
        3 => int_oid(c.row_type),
        5 => int_oid(c.owner),
        6 if holds_rows => int_oid(2),
        6 if c.kind == "i" => int_oid(403),
        4 | 6 | 8 | 12 | 27 | 28 | 29 => int_oid(0),
        9 => Datum::Int4(counted().map_or(0, |counted| i32::try_from(counted.leaves).unwrap_or(i32::MAX))),
        10 => Datum::Float4(counted().map_or(-1.0, |counted| counted.rows as f32)),
        11 => Datum::Int4(0),
        13 => says(&|r| catalog.indexes(r.oid).next().is_some()),
        14 => Datum::Bool(system().is_some_and(SystemView::is_shared)),
        15 => letter(c.persistence),
        16 => letter(c.kind),
        17 => Datum::Int2(c.columns as i16),
        18 => Datum::Int2(c.relation.map_or(0, |r| r.checks.len()) as i16),
        19 => says(&|r| r.kind != RelationKind::Table || !r.insert_nothing_rules.is_empty()),
        // PostgreSQL's foreign keys are triggers, on both sides; clients look for foreign keys only where there are any.
        20 => says(&|r| !r.foreign_keys.is_empty() || catalog.referring(r.oid).next().is_some()),
        22 => says(&|r| r.security.enabled),
        23 => says(&|r| r.security.forced),
        24 => Datum::Bool(c.relation.is_none_or(|r| r.kind != RelationKind::MaterializedView || r.populated)),
        25 => match c.relation.and_then(|r| r.replica_identity) {
            Some(identity) => text(&identity.to_string()),
            None => letter(if holds_rows { "d" } else { "n" }),
        },
        30 => c.acl.map_or(Datum::Null, |(list, kind)| acl(run, c.owner, list, kind)),
        31 if !c.options.is_empty() => {
            let list = c.options.iter().map(|o| text(o)).collect();
            Datum::Array(Array::one_dimensional(TEXT, list).into())
        }
        31 | 32 => Datum::Null,
        _ => Datum::Bool(false),
    }
}

fn pg_class(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    let Some(sought) = sought else { return classes(run, columns, all(), local(run)) };
    let objects = self::sought(run, &sought.keys).into_iter();
    match &sought.keys {
        Keys::Oids(oids) => classes(run, columns, oids.iter().filter_map(|oid| listed(*oid)), objects),
        Keys::Names(names) => classes(run, columns, names.iter().flat_map(|name| named(name)).copied(), objects),
    }
}

/// Rows of pg_class for these.
fn classes<'r>(
    run: &Run<'_>,
    columns: &Columns<'_>,
    views: impl Iterator<Item = &'static SystemView>,
    objects: impl Iterator<Item = &'r Object>,
) -> Vec<Row> {
    let of_view = |v: &'static SystemView| Class {
        oid: v.oid,
        row_type: 0,
        name: v.name,
        schema: if v.schema == "pg_catalog" { PG_CATALOG } else { INFORMATION_SCHEMA },
        owner: 10,
        kind: if v.oid < 12_000 { "r" } else { "v" },
        columns: v.columns.len(),
        persistence: "p",
        options: &[],
        acl: None,
        relation: None,
        is_object: false,
    };
    let row = |class: Class<'_>| columns.row(|at| class_column(run, &class, at));
    let mut out: Vec<Row> = views.map(|v| row(of_view(v))).collect();
    out.extend(objects.filter_map(|object| class_of(run, object)).map(row));
    out
}

/// How long an object lasts: `relpersistence`.
fn persistence(run: &Run<'_>, object: &Object, unlogged: bool) -> &'static str {
    match unlogged {
        _ if run.names.catalog.is_temporary(object) => "t",
        true => "u",
        false => "p",
    }
}

/// What pg_class says of an object; none: pg_class does not list such objects.
fn class_of<'a>(run: &Run<'_>, object: &'a Object) -> Option<Class<'a>> {
    let catalog = &run.names.catalog;
    Some(match object {
        Object::Relation(r) => Class {
            oid: r.oid,
            row_type: row_type(r.oid).unwrap_or(0),
            name: &r.name,
            schema: r.schema,
            owner: r.owner,
            kind: kind_of(r),
            columns: r.columns.len(),
            persistence: persistence(run, object, r.unlogged),
            options: &r.options,
            acl: Some((&r.acl, AclKind::Table)),
            relation: Some(r),
            is_object: true,
        },
        Object::Index(i) => Class {
            oid: i.oid,
            row_type: 0,
            name: &i.name,
            schema: i.schema,
            owner: catalog.relation(i.table).map_or(10, |r| r.owner),
            kind: "i",
            columns: i.columns.len() + i.include.len(),
            persistence: persistence(run, object, catalog.relation(i.table).is_some_and(|r| r.unlogged)),
            options: &i.options,
            acl: None,
            relation: None,
            is_object: true,
        },
        Object::Sequence(s) => Class {
            oid: s.oid,
            row_type: 0,
            name: &s.name,
            schema: s.schema,
            owner: s.owner,
            kind: "S",
            columns: 3,
            persistence: persistence(run, object, false),
            options: &[],
            acl: Some((&s.acl, AclKind::Sequence)),
            relation: None,
            is_object: true,
        },
        Object::Type(t) => return class_of_type(t),
        Object::Database(_)
        | Object::Schema(_)
        | Object::Role(_)
        | Object::Comment(_)
        | Object::Routine(_)
        | Object::Operator(_) => return None,
    })
}

/// What pg_class says of a composite type; any other type does not stand there.
fn class_of_type(t: &TypeObject) -> Option<Class<'_>> {
    let TypeBody::Composite(composite) = &t.body else { return None };
    Some(Class {
        oid: composite.class,
        row_type: t.oid,
        name: &t.name,
        schema: t.schema,
        owner: t.owner,
        kind: "c",
        columns: composite.attributes.len(),
        persistence: "p",
        options: &[],
        acl: None,
        relation: None,
        is_object: true,
    })
}

fn kind_of(r: &Relation) -> &'static str {
    match r.kind {
        RelationKind::Table => "r",
        RelationKind::View => "v",
        RelationKind::MaterializedView => "m",
    }
}

/// The schemas of the system that every database has.
const SYSTEM_SCHEMAS: [(u32, &str); 2] = [(PG_CATALOG, "pg_catalog"), (INFORMATION_SCHEMA, "information_schema")];

fn pg_namespace(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    let (catalog, database) = (&run.names.catalog, run.names.database);
    let Some(sought) = sought else {
        // Most statements about tables ask for schemas too: no walk over all objects.
        return namespaces(run, columns, SYSTEM_SCHEMAS.into_iter(), catalog.schemas(database).collect());
    };
    let of_system = |(oid, name): &(u32, &str)| match &sought.keys {
        Keys::Oids(oids) => oids.contains(oid),
        Keys::Names(names) => names.iter().any(|known| known == name),
    };
    let schemas = match &sought.keys {
        Keys::Oids(oids) => {
            let found = oids.iter().filter_map(|oid| match &**catalog.get(*oid)? {
                Object::Schema(s) => Some(s),
                _ => None,
            });
            found.filter(|s| s.database == database).collect()
        }
        Keys::Names(names) => names.iter().filter_map(|name| catalog.schema(database, name)).collect(),
    };
    namespaces(run, columns, SYSTEM_SCHEMAS.into_iter().filter(of_system), schemas)
}

/// Rows of pg_namespace for these.
fn namespaces(
    run: &Run<'_>,
    columns: &Columns<'_>,
    of_system: impl Iterator<Item = (u32, &'static str)>,
    mut schemas: Vec<&Schema>,
) -> Vec<Row> {
    schemas.sort_unstable_by_key(|s| s.oid);
    let row = |oid: u32, name: &str, owner: u32, list: Option<&Acl>| {
        columns.row(|at| match at {
            0 => int_oid(oid),
            1 => text(name),
            2 => int_oid(owner),
            _ => list.map_or(Datum::Null, |list| acl(run, owner, list, AclKind::Schema)),
        })
    };
    let of_system = of_system.map(|(oid, name)| row(oid, name, 10, None));
    of_system.chain(schemas.iter().map(|s| row(s.oid, &s.name, s.owner, Some(&s.acl)))).collect()
}

fn pg_database(run: &Run<'_>) -> Vec<Row> {
    let databases = run.names.catalog.objects().filter_map(|o| match &**o {
        Object::Database(d) => Some(d),
        _ => None,
    });
    let row = |d: &clearway_engine::catalog::Database| {
        vec![
            int_oid(d.oid),
            text(&d.name),
            int_oid(d.owner),
            Datum::Int4(6),
            text("c"),
            Datum::Bool(false),
            Datum::Bool(true),
            Datum::Int4(d.connection_limit),
            // Transactions never grow too old here: nothing is frozen.
            int_oid(0),
            int_oid(0),
            int_oid(1663),
            text("C.UTF-8"),
            text("C.UTF-8"),
            Datum::Null,
            Datum::Null,
            acl(run, d.owner, &d.acl, AclKind::Database),
        ]
    };
    databases.map(row).collect()
}

fn pg_roles(run: &Run<'_>) -> Vec<Row> {
    let roles = run.names.catalog.objects().filter_map(|o| match &**o {
        Object::Role(r) => Some(r),
        _ => None,
    });
    let row = |r: &clearway_engine::catalog::Role| {
        vec![
            text(&r.name),
            Datum::Bool(r.superuser),
            Datum::Bool(r.inherit),
            Datum::Bool(r.create_role),
            Datum::Bool(r.create_db),
            Datum::Bool(r.login),
            Datum::Bool(r.has_replication()),
            Datum::Int4(r.connection_limit),
            text("********"),
            r.valid_until.map_or(Datum::Null, Datum::TimestampTz),
            Datum::Bool(r.bypass_rls),
            super::rights::settings_of(r.settings.iter().filter(|s| s.0 == 0).map(|s| (&s.1, &s.2))),
            int_oid(r.oid),
        ]
    };
    roles.map(row).collect()
}

/// pg_roles with the verifiers of passwords; only superusers get here.
fn pg_authid(run: &Run<'_>) -> Vec<Row> {
    let roles = run.names.catalog.objects().filter_map(|o| match &**o {
        Object::Role(r) => Some(r),
        _ => None,
    });
    let row = |r: &clearway_engine::catalog::Role| {
        vec![
            int_oid(r.oid),
            text(&r.name),
            Datum::Bool(r.superuser),
            Datum::Bool(r.inherit),
            Datum::Bool(r.create_role),
            Datum::Bool(r.create_db),
            Datum::Bool(r.login),
            Datum::Bool(r.has_replication()),
            Datum::Bool(r.bypass_rls),
            Datum::Int4(r.connection_limit),
            super::opt(r.password.as_deref()),
            r.valid_until.map_or(Datum::Null, Datum::TimestampTz),
        ]
    };
    roles.map(row).collect()
}
