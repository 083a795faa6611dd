//! Declares the set-returning functions over the catalog: their names, arguments and columns.
//!
//! # Not here
//! The rows (`clearway_views::functions`).

use super::{SystemView, find as find_view};
use clearway_values::types::text::CatalogRows;
use clearway_values::types::{Oid, oid};

use oid::{ANYARRAY, ANYELEMENT, BOOL, CHAR, INT4, INT8, OID, REGCLASS, TEXT, TEXT_ARRAY};

/// A function that gives rows.
#[derive(Debug)]
pub struct RowsFunction {
    /// Its schema.
    pub schema: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments.
    pub arguments: &'static [Oid],
    /// The columns of its rows; ANYELEMENT is the type of the elements of the first argument.
    pub columns: &'static [(&'static str, Oid)],
}

/// All of them.
#[rustfmt::skip]
pub static FUNCTIONS: &[RowsFunction] = &[
    RowsFunction { schema: "pg_catalog", name: "aclexplode", arguments: &[TEXT_ARRAY],
        columns: &[("grantor", OID), ("grantee", OID), ("privilege_type", TEXT), ("is_grantable", BOOL)] },
    RowsFunction { schema: "pg_catalog", name: "pg_get_keywords", arguments: &[],
        columns: &[("word", TEXT), ("catcode", CHAR), ("barelabel", BOOL), ("catdesc", TEXT), ("baredesc", TEXT)] },
    RowsFunction { schema: "pg_catalog", name: "pg_options_to_table", arguments: &[TEXT_ARRAY],
        columns: &[("option_name", TEXT), ("option_value", TEXT)] },
    RowsFunction { schema: "pg_catalog", name: "pg_sequence_parameters", arguments: &[OID],
        columns: &[("start_value", INT8), ("minimum_value", INT8), ("maximum_value", INT8), ("increment", INT8),
            ("cycle_option", BOOL), ("cache_size", INT8), ("data_type", OID)] },
    RowsFunction { schema: "pg_catalog", name: "pg_partition_tree", arguments: &[REGCLASS],
        columns: &[("relid", REGCLASS), ("parentrelid", REGCLASS), ("isleaf", BOOL), ("level", INT4)] },
    RowsFunction { schema: "pg_catalog", name: "pg_tablespace_databases", arguments: &[OID],
        columns: &[("pg_tablespace_databases", OID)] },
    RowsFunction { schema: "pg_catalog", name: "pg_stat_get_backend_idset", arguments: &[],
        columns: &[("pg_stat_get_backend_idset", INT4)] },
    RowsFunction { schema: "pg_catalog", name: "pg_identify_object", arguments: &[OID, OID, INT4],
        columns: &[("type", TEXT), ("schema", TEXT), ("name", TEXT), ("identity", TEXT)] },
    RowsFunction { schema: "pg_catalog", name: "pg_identify_object_as_address", arguments: &[OID, OID, INT4],
        columns: &[("type", TEXT), ("object_names", TEXT_ARRAY), ("object_args", TEXT_ARRAY)] },
    RowsFunction { schema: "pg_catalog", name: "pg_listening_channels", arguments: &[],
        columns: &[("pg_listening_channels", TEXT)] },
    RowsFunction { schema: "pg_catalog", name: "pg_ls_tmpdir", arguments: &[],
        columns: &[("name", TEXT), ("size", INT8), ("modification", oid::TIMESTAMPTZ)] },
    RowsFunction { schema: "pg_catalog", name: "pg_ls_tmpdir", arguments: &[OID],
        columns: &[("name", TEXT), ("size", INT8), ("modification", oid::TIMESTAMPTZ)] },
    RowsFunction { schema: "pg_catalog", name: "pg_get_publication_tables", arguments: &[TEXT],
        columns: &[("relid", OID), ("attrs", oid::INT2VECTOR), ("qual", TEXT)] },
    RowsFunction { schema: "information_schema", name: "_pg_expandarray", arguments: &[ANYARRAY],
        columns: &[("x", ANYELEMENT), ("n", INT4)] },
];

/// The function of this name that takes as many arguments.
pub fn find(schema: Option<&str>, name: &str, arguments: usize) -> Option<CatalogRows> {
    let at = FUNCTIONS.iter().position(|f| f.name == name && f.arguments.len() == arguments)?;
    let found = &FUNCTIONS[at];
    let named = schema.map_or(found.schema == "pg_catalog", |s| s == found.schema);
    named.then_some(CatalogRows { at, arguments: found.arguments, columns: found.columns })
}

/// The view whose rows a function without arguments gives.
pub fn view_of(function: &str) -> Option<&'static SystemView> {
    let name = match function {
        "pg_lock_status" => "pg_locks",
        "pg_show_all_settings" => "pg_settings",
        "pg_cursor" => "pg_cursors",
        "pg_prepared_statement" => "pg_prepared_statements",
        "pg_timezone_names" => "pg_timezone_names",
        "pg_timezone_abbrevs" => "pg_timezone_abbrevs",
        "pg_available_extensions" => "pg_available_extensions",
        "pg_available_extension_versions" => "pg_available_extension_versions",
        "pg_hba_file_rules" => "pg_hba_file_rules",
        "pg_show_all_file_settings" => "pg_file_settings",
        "pg_get_replication_slots" => "pg_replication_slots",
        "pg_show_replication_origin_status" => "pg_replication_origin_status",
        _ => return None,
    };
    find_view("pg_catalog", name)
}
