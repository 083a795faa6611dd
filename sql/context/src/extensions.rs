//! The extensions that CREATE EXTENSION takes. What they add is in the server's own tables of functions and views. Types, and functions and operators
//! over them, are there where the extension is (EXN-2); other functions and views are there without the statement too. The statement puts the types and
//! functions into a schema, where that schema's name finds them.

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
        name: "citext",
        version: "1.6",
        comment: "data type for case-insensitive character strings",
        trusted: true,
        functions: &[
            "citext",
            "citext_cmp",
            "citext_eq",
            "citext_ge",
            "citext_gt",
            "citext_larger",
            "citext_le",
            "citext_lt",
            "citext_ne",
            "citext_pattern_cmp",
            "citext_pattern_ge",
            "citext_pattern_gt",
            "citext_pattern_le",
            "citext_pattern_lt",
            "citext_smaller",
            "max",
            "min",
            "regexp_match",
            "regexp_matches",
            "regexp_replace",
            "regexp_split_to_array",
            "regexp_split_to_table",
            "replace",
            "split_part",
            "strpos",
            "texticlike",
            "texticnlike",
            "texticregexeq",
            "texticregexne",
            "translate",
        ],
    },
    Known {
        name: "hstore",
        version: "1.8",
        comment: "data type for storing sets of (key, value) pairs",
        trusted: true,
        functions: &[
            "akeys",
            "avals",
            "defined",
            "delete",
            "each",
            "exist",
            "exists_all",
            "exists_any",
            "fetchval",
            "hs_concat",
            "hs_contained",
            "hs_contains",
            "hstore",
            "hstore_cmp",
            "hstore_eq",
            "hstore_ge",
            "hstore_gt",
            "hstore_le",
            "hstore_lt",
            "hstore_ne",
            "hstore_to_array",
            "hstore_to_json",
            "hstore_to_json_loose",
            "hstore_to_jsonb",
            "hstore_to_jsonb_loose",
            "hstore_to_matrix",
            "isdefined",
            "isexists",
            "populate_record",
            "skeys",
            "slice",
            "slice_array",
            "svals",
            "tconvert",
        ],
    },
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
        functions: &["crypt", "digest", "hmac", "gen_random_bytes", "gen_random_uuid", "gen_salt"],
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
