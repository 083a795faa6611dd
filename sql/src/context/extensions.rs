//! The extensions that CREATE EXTENSION takes. What they add is in the server's own tables of functions and views, and is there without
//! the statement too; the statement puts the functions into a schema, where calls by that schema's name find them.

use clearway_engine::catalog::{Catalog, Extension, Object, Oid};

/// An extension.
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Its version: that of PostgreSQL 15.
    pub version: &'static str,
    /// What it is for.
    pub comment: &'static str,
    /// Whether a role with the right to create in the database may make it; else a superuser.
    pub trusted: bool,
    /// Its functions.
    pub functions: &'static [&'static str],
}

/// The extensions.
pub static KNOWN: &[Known] = &[
    Known {
        name: "pg_stat_statements",
        version: "1.10",
        comment: "track planning and execution statistics of all SQL statements executed",
        trusted: false,
        functions: &["pg_stat_statements_reset"],
    },
    Known {
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
        trusted: true,
        functions: &["digest", "hmac", "gen_random_bytes", "gen_random_uuid"],
    },
    Known {
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        trusted: true,
        functions: &[
            "uuid_nil",
            "uuid_ns_dns",
            "uuid_ns_url",
            "uuid_ns_oid",
            "uuid_ns_x500",
            "uuid_generate_v1",
            "uuid_generate_v1mc",
            "uuid_generate_v3",
            "uuid_generate_v4",
            "uuid_generate_v5",
        ],
    },
];

/// The extension of a name.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// The extensions of a database.
pub fn of(catalog: &Catalog, database: Oid) -> &[Extension] {
    match catalog.get(database).map(|object| &**object) {
        Some(Object::Database(database)) => &database.extensions,
        _ => &[],
    }
}

/// What of its database a comment on an extension is about.
pub fn comment_part(extension: Oid) -> String {
    format!("extension {extension}")
}

/// The schema into which an extension of the database has put a function.
pub fn schema_of(catalog: &Catalog, database: Oid, function: &str) -> Option<Oid> {
    let here = |e: &&Extension| known(&e.name).is_some_and(|known| known.functions.contains(&function));
    of(catalog, database).iter().find(here).map(|e| e.schema)
}

/// Whether an extension of the database has put a function into a schema.
pub fn has_function(catalog: &Catalog, database: Oid, schema: &str, function: &str) -> bool {
    let found = schema_of(catalog, database, function);
    found.is_some_and(|oid| catalog.schema(database, schema).is_some_and(|s| s.oid == oid))
}
