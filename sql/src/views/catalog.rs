//! pg_class and its kin: the objects of the catalog as PostgreSQL's clients know them.

use super::activity::role_name;
use super::{INFORMATION_SCHEMA, PG_CATALOG, SystemView, all, opt, text};
use crate::exec::{Row, Run};
use crate::planner::names::quote;
use crate::types::datum::Array;
use crate::types::{Datum, TYPES, oid};
use clearway_engine::catalog::{Index, Object, Relation, RelationKind};

use oid::{BOOL, CHAR, FLOAT4, INT2, INT2VECTOR, INT4, NAME, OID, TEXT, TEXT_ARRAY, TIMESTAMPTZ};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[
    SystemView {
        oid: 1259,
        schema: "pg_catalog",
        name: "pg_class",
        columns: &[
            ("oid", OID),
            ("relname", NAME),
            ("relnamespace", OID),
            ("reltype", OID),
            ("reloftype", OID),
            ("relowner", OID),
            ("relam", OID),
            ("relfilenode", OID),
            ("reltablespace", OID),
            ("relpages", INT4),
            ("reltuples", FLOAT4),
            ("relallvisible", INT4),
            ("reltoastrelid", OID),
            ("relhasindex", BOOL),
            ("relisshared", BOOL),
            ("relpersistence", CHAR),
            ("relkind", CHAR),
            ("relnatts", INT2),
            ("relchecks", INT2),
            ("relhasrules", BOOL),
            ("relhastriggers", BOOL),
            ("relhassubclass", BOOL),
            ("relrowsecurity", BOOL),
            ("relforcerowsecurity", BOOL),
            ("relispopulated", BOOL),
            ("relreplident", CHAR),
            ("relispartition", BOOL),
            ("reloptions", TEXT_ARRAY),
        ],
        rows: pg_class,
    },
    SystemView {
        oid: 2615,
        schema: "pg_catalog",
        name: "pg_namespace",
        columns: &[("oid", OID), ("nspname", NAME), ("nspowner", OID)],
        rows: pg_namespace,
    },
    SystemView {
        oid: 1262,
        schema: "pg_catalog",
        name: "pg_database",
        columns: &[
            ("oid", OID),
            ("datname", NAME),
            ("datdba", OID),
            ("encoding", INT4),
            ("datcollate", TEXT),
            ("datctype", TEXT),
            ("datistemplate", BOOL),
            ("datallowconn", BOOL),
            ("daticulocale", TEXT),
            ("datlocprovider", CHAR),
            ("datcollversion", TEXT),
            ("dattablespace", OID),
            ("datacl", TEXT_ARRAY),
        ],
        rows: pg_database,
    },
    SystemView {
        oid: 1260,
        schema: "pg_catalog",
        name: "pg_roles",
        columns: &[
            ("rolname", NAME),
            ("rolsuper", BOOL),
            ("rolinherit", BOOL),
            ("rolcreaterole", BOOL),
            ("rolcreatedb", BOOL),
            ("rolcanlogin", BOOL),
            ("rolconnlimit", INT4),
            ("oid", OID),
            ("rolvaliduntil", TIMESTAMPTZ),
            ("rolreplication", BOOL),
            ("rolbypassrls", BOOL),
        ],
        rows: pg_roles,
    },
    SystemView {
        oid: 1247,
        schema: "pg_catalog",
        name: "pg_type",
        columns: &[
            ("oid", OID),
            ("typname", NAME),
            ("typnamespace", OID),
            ("typowner", OID),
            ("typlen", INT2),
            ("typtype", CHAR),
            ("typcategory", CHAR),
            ("typispreferred", BOOL),
            ("typdelim", CHAR),
            ("typrelid", OID),
            ("typelem", OID),
            ("typarray", OID),
            ("typbasetype", OID),
            ("typnotnull", BOOL),
            ("typcollation", OID),
        ],
        rows: pg_type,
    },
    SystemView {
        oid: 1249,
        schema: "pg_catalog",
        name: "pg_attribute",
        columns: &[
            ("attrelid", OID),
            ("attname", NAME),
            ("atttypid", OID),
            ("attnum", INT2),
            ("atttypmod", INT4),
            ("attnotnull", BOOL),
            ("atthasdef", BOOL),
            ("attidentity", CHAR),
            ("attgenerated", CHAR),
            ("attisdropped", BOOL),
            ("attcollation", OID),
            ("attlen", INT2),
        ],
        rows: pg_attribute,
    },
    SystemView {
        oid: 2610,
        schema: "pg_catalog",
        name: "pg_index",
        columns: &[
            ("indexrelid", OID),
            ("indrelid", OID),
            ("indnatts", INT2),
            ("indnkeyatts", INT2),
            ("indisunique", BOOL),
            ("indisprimary", BOOL),
            ("indisclustered", BOOL),
            ("indisvalid", BOOL),
            ("indisready", BOOL),
            ("indislive", BOOL),
            ("indisreplident", BOOL),
            ("indkey", INT2VECTOR),
        ],
        rows: pg_index,
    },
    SystemView {
        oid: 12_040,
        schema: "pg_catalog",
        name: "pg_indexes",
        columns: &[
            ("schemaname", NAME),
            ("tablename", NAME),
            ("indexname", NAME),
            ("tablespace", NAME),
            ("indexdef", TEXT),
        ],
        rows: pg_indexes,
    },
    SystemView {
        oid: 12_030,
        schema: "pg_catalog",
        name: "pg_tables",
        columns: &[
            ("schemaname", NAME),
            ("tablename", NAME),
            ("tableowner", NAME),
            ("tablespace", NAME),
            ("hasindexes", BOOL),
            ("hasrules", BOOL),
            ("hastriggers", BOOL),
            ("rowsecurity", BOOL),
        ],
        rows: pg_tables,
    },
    SystemView {
        oid: 2611,
        schema: "pg_catalog",
        name: "pg_inherits",
        columns: &[("inhrelid", OID), ("inhparent", OID), ("inhseqno", INT4)],
        rows: nothing,
    },
    SystemView {
        oid: 3350,
        schema: "pg_catalog",
        name: "pg_partitioned_table",
        columns: &[("partrelid", OID), ("partstrat", CHAR), ("partnatts", INT2)],
        rows: nothing,
    },
    SystemView {
        oid: 2601,
        schema: "pg_catalog",
        name: "pg_am",
        columns: &[("oid", OID), ("amname", NAME), ("amtype", CHAR)],
        rows: pg_am,
    },
    SystemView {
        oid: 12_900,
        schema: "information_schema",
        name: "tables",
        columns: &[("table_catalog", NAME), ("table_schema", NAME), ("table_name", NAME), ("table_type", TEXT)],
        rows: information_tables,
    },
];

fn nothing(_: &Run<'_>) -> Vec<Row> {
    Vec::new()
}

fn int_oid(v: u32) -> Datum {
    Datum::Oid(v)
}

/// The schema's name of an oid.
fn schema_name(run: &Run<'_>, oid: u32) -> String {
    match run.names.catalog.get(oid).map(|o| &**o) {
        Some(Object::Schema(s)) => s.name.clone(),
        _ => String::new(),
    }
}

/// Objects of the session's database that live in schemas.
fn local<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Object> {
    let database = run.names.database;
    run.names.catalog.objects().map(|o| &**o).filter(move |o| match o {
        Object::Relation(r) => r.database == database,
        Object::Index(i) => i.database == database,
        Object::Sequence(s) => s.database == database,
        Object::Database(_) | Object::Schema(_) | Object::Role(_) => false,
    })
}

struct Class<'a> {
    oid: u32,
    name: &'a str,
    schema: u32,
    owner: u32,
    kind: &'static str,
    columns: usize,
    checks: usize,
    has_index: bool,
    has_rules: bool,
    populated: bool,
    options: &'a [String],
}

fn class_row(c: Class<'_>) -> Row {
    let options = if c.options.is_empty() {
        Datum::Null
    } else {
        let list = c.options.iter().map(|o| text(o)).collect();
        Datum::Array(Array::one_dimensional(TEXT, list).into())
    };
    let no = || Datum::Bool(false);
    vec![
        int_oid(c.oid),
        text(c.name),
        int_oid(c.schema),
        int_oid(0),
        int_oid(0),
        int_oid(c.owner),
        int_oid(if matches!(c.kind, "r" | "m") {
            2
        } else if c.kind == "i" {
            403
        } else {
            0
        }),
        int_oid(c.oid),
        int_oid(0),
        Datum::Int4(0),
        Datum::Float4(-1.0),
        Datum::Int4(0),
        int_oid(0),
        Datum::Bool(c.has_index),
        no(),
        text("p"),
        text(c.kind),
        Datum::Int2(c.columns as i16),
        Datum::Int2(c.checks as i16),
        Datum::Bool(c.has_rules),
        no(),
        no(),
        no(),
        no(),
        Datum::Bool(c.populated),
        text(if c.kind == "r" { "d" } else { "n" }),
        no(),
        options,
    ]
}

fn pg_class(run: &Run<'_>) -> Vec<Row> {
    let catalog = &run.names.catalog;
    let mut out: Vec<Row> = all()
        .map(|v| {
            class_row(Class {
                oid: v.oid,
                name: v.name,
                schema: if v.schema == "pg_catalog" { PG_CATALOG } else { INFORMATION_SCHEMA },
                owner: 10,
                kind: if v.oid < 12_000 { "r" } else { "v" },
                columns: v.columns.len(),
                checks: 0,
                has_index: false,
                has_rules: false,
                populated: true,
                options: &[],
            })
        })
        .collect();
    for object in local(run) {
        let class = match object {
            Object::Relation(r) => Class {
                oid: r.oid,
                name: &r.name,
                schema: r.schema,
                owner: r.owner,
                kind: kind_of(r),
                columns: r.columns.len(),
                checks: r.checks.len(),
                has_index: catalog.indexes(r.oid).next().is_some(),
                has_rules: r.kind == RelationKind::View || !r.insert_nothing_rules.is_empty(),
                populated: r.kind != RelationKind::MaterializedView || r.populated,
                options: &r.options,
            },
            Object::Index(i) => Class {
                oid: i.oid,
                name: &i.name,
                schema: i.schema,
                owner: catalog.relation(i.table).map_or(10, |r| r.owner),
                kind: "i",
                columns: i.columns.len(),
                checks: 0,
                has_index: false,
                has_rules: false,
                populated: true,
                options: &[],
            },
            Object::Sequence(s) => Class {
                oid: s.oid,
                name: &s.name,
                schema: s.schema,
                owner: s.owner,
                kind: "S",
                columns: 3,
                checks: 0,
                has_index: false,
                has_rules: false,
                populated: true,
                options: &[],
            },
            Object::Database(_) | Object::Schema(_) | Object::Role(_) => continue,
        };
        out.push(class_row(class));
    }
    out
}

fn kind_of(r: &Relation) -> &'static str {
    match r.kind {
        RelationKind::Table => "r",
        RelationKind::View => "v",
        RelationKind::MaterializedView => "m",
    }
}

fn pg_namespace(run: &Run<'_>) -> Vec<Row> {
    let mut out = vec![
        vec![int_oid(PG_CATALOG), text("pg_catalog"), int_oid(10)],
        vec![int_oid(INFORMATION_SCHEMA), text("information_schema"), int_oid(10)],
    ];
    for o in run.names.catalog.objects() {
        if let Object::Schema(s) = &**o
            && s.database == run.names.database
        {
            out.push(vec![int_oid(s.oid), text(&s.name), int_oid(s.owner)]);
        }
    }
    out
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
            text("C.UTF-8"),
            text("C.UTF-8"),
            Datum::Bool(false),
            Datum::Bool(true),
            Datum::Null,
            text("c"),
            Datum::Null,
            int_oid(1663),
            Datum::Null,
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
            Datum::Bool(true),
            Datum::Bool(r.create_role),
            Datum::Bool(r.create_db),
            Datum::Bool(r.login),
            Datum::Int4(r.connection_limit),
            int_oid(r.oid),
            Datum::Null,
            Datum::Bool(r.superuser),
            Datum::Bool(r.superuser),
        ]
    };
    roles.map(row).collect()
}

fn pg_type(_: &Run<'_>) -> Vec<Row> {
    let row = |t: &crate::types::TypeFacts| {
        vec![
            int_oid(t.oid),
            text(t.name),
            int_oid(PG_CATALOG),
            int_oid(10),
            Datum::Int2(t.len),
            text(if t.category == b'P' { "p" } else { "b" }),
            text(&char::from(t.category).to_string()),
            Datum::Bool(t.preferred),
            text(","),
            int_oid(0),
            int_oid(t.element),
            int_oid(t.array),
            int_oid(0),
            Datum::Bool(false),
            int_oid(if matches!(t.oid, TEXT | oid::VARCHAR | oid::BPCHAR | NAME) { 100 } else { 0 }),
        ]
    };
    TYPES.iter().map(row).collect()
}

fn pg_attribute(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for object in local(run) {
        let Object::Relation(r) = object else { continue };
        for (i, c) in r.columns.iter().enumerate() {
            let name = if c.is_dropped() { format!("........pg.dropped.{}........", i + 1) } else { c.name.clone() };
            let identity = c.identity.map_or(String::new(), |c| c.to_string());
            let collated = matches!(c.type_oid, TEXT | oid::VARCHAR | oid::BPCHAR | NAME);
            out.push(vec![
                int_oid(r.oid),
                text(&name),
                int_oid(if c.is_dropped() { 0 } else { c.type_oid }),
                Datum::Int2(i as i16 + 1),
                Datum::Int4(c.type_mod),
                Datum::Bool(c.not_null),
                Datum::Bool(c.default.is_some() && c.identity.is_none()),
                text(&identity),
                text(""),
                Datum::Bool(c.is_dropped()),
                int_oid(if collated { 100 } else { 0 }),
                Datum::Int2(crate::types::facts(c.type_oid).map_or(-1, |f| f.len)),
            ]);
        }
    }
    out
}

fn pg_index(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for object in local(run) {
        let Object::Index(i) = object else { continue };
        let columns = i.columns.iter().map(|c| c.column).chain(i.include.iter().copied());
        let keys = columns.map(|c| Datum::Int2(c as i16 + 1)).collect();
        let mut keys = Array::one_dimensional(INT2, keys);
        keys.dims.iter_mut().for_each(|d| d.1 = 0);
        let n = Datum::Int2(i.columns.len() as i16);
        let public = i.state == clearway_engine::catalog::IndexState::Public;
        out.push(vec![
            int_oid(i.oid),
            int_oid(i.table),
            Datum::Int2((i.columns.len() + i.include.len()) as i16),
            n,
            Datum::Bool(i.unique),
            Datum::Bool(i.primary),
            Datum::Bool(i.clustered),
            Datum::Bool(public),
            Datum::Bool(true),
            Datum::Bool(true),
            Datum::Bool(false),
            Datum::Array(keys.into()),
        ]);
    }
    out
}

/// The statement that makes an index.
pub fn index_definition(run: &Run<'_>, i: &Index) -> String {
    let Some(table) = run.names.catalog.relation(i.table) else { return String::new() };
    let column = |c: &clearway_engine::catalog::IndexColumn| {
        let mut shown = quote(&table.columns[c.column].name);
        if c.descending {
            shown.push_str(" DESC");
        }
        if c.nulls_first != c.descending {
            shown.push_str(if c.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
        shown
    };
    let columns: Vec<String> = i.columns.iter().map(column).collect();
    let include: Vec<String> = i.include.iter().map(|c| quote(&table.columns[*c].name)).collect();
    format!(
        "CREATE {}INDEX {} ON {}.{} USING btree ({}){}",
        if i.unique { "UNIQUE " } else { "" },
        quote(&i.name),
        quote(&schema_name(run, table.schema)),
        quote(&table.name),
        columns.join(", "),
        if include.is_empty() { String::new() } else { format!(" INCLUDE ({})", include.join(", ")) }
    )
}

fn pg_indexes(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for object in local(run) {
        let Object::Index(i) = object else { continue };
        let Some(table) = run.names.catalog.relation(i.table) else { continue };
        out.push(vec![
            text(&schema_name(run, table.schema)),
            text(&table.name),
            text(&i.name),
            Datum::Null,
            text(&index_definition(run, i)),
        ]);
    }
    out
}

fn tables<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Relation> {
    local(run).filter_map(|o| match o {
        Object::Relation(r) => Some(r),
        _ => None,
    })
}

fn pg_tables(run: &Run<'_>) -> Vec<Row> {
    let row = |r: &Relation| {
        vec![
            text(&schema_name(run, r.schema)),
            text(&r.name),
            text(&role_name(run, r.owner)),
            Datum::Null,
            Datum::Bool(run.names.catalog.indexes(r.oid).next().is_some()),
            Datum::Bool(!r.insert_nothing_rules.is_empty()),
            Datum::Bool(false),
            Datum::Bool(false),
        ]
    };
    tables(run).filter(|r| r.kind == RelationKind::Table).map(row).collect()
}

fn pg_am(_: &Run<'_>) -> Vec<Row> {
    vec![vec![int_oid(2), text("heap"), text("t")], vec![int_oid(403), text("btree"), text("i")]]
}

fn information_tables(run: &Run<'_>) -> Vec<Row> {
    let row = |r: &Relation| {
        let kind = if r.kind == RelationKind::View { "VIEW" } else { "BASE TABLE" };
        vec![opt(Some(&run.core.database_name)), text(&schema_name(run, r.schema)), text(&r.name), text(kind)]
    };
    tables(run).filter(|r| r.kind != RelationKind::MaterializedView).map(row).collect()
}
