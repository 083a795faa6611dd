//! The names and types of the functions that the session answers at once from the catalog. Functions of the same name with other types
//! are listed together; the answering function distinguishes them by the values.

use super::host::HostFunction;
use super::statistics_functions;
use crate::builtin;
use crate::types::{Oid, oid};
use std::sync::LazyLock;

use oid::{
    ANY, BOOL, CHAR, INET, INT2, INT4, INT4_ARRAY, INT8, NAME, NAME_ARRAY, OID, PG_LSN, PG_SNAPSHOT, REGCLASS,
    REGCOLLATION, REGNAMESPACE, REGOPER, REGOPERATOR, REGPROC, REGPROCEDURE, REGROLE, REGTYPE, TEXT, TEXT_ARRAY,
    TIMESTAMPTZ, TXID_SNAPSHOT, XID, XID8,
};

/// A function: itself, its name, the types of its arguments and of its result, whether it is strict.
pub(super) type Row = (HostFunction, &'static str, &'static [Oid], Oid, bool);

/// (name, argument types, result type).
#[rustfmt::skip]
const FUNCTIONS: &[(&str, &[Oid], Oid)] = &[
    ("current_schemas", &[BOOL], NAME_ARRAY),
    ("to_regclass", &[TEXT], REGCLASS), ("to_regtype", &[TEXT], REGTYPE), ("to_regnamespace", &[TEXT], REGNAMESPACE),
    ("to_regproc", &[TEXT], REGPROC), ("to_regprocedure", &[TEXT], REGPROCEDURE), ("to_regoper", &[TEXT], REGOPER),
    ("to_regoperator", &[TEXT], REGOPERATOR), ("to_regrole", &[TEXT], REGROLE), ("to_regcollation", &[TEXT], REGCOLLATION),
    ("pg_get_serial_sequence", &[TEXT, TEXT], TEXT), ("pg_is_in_recovery", &[], BOOL),
    ("pg_is_wal_replay_paused", &[], BOOL), ("pg_get_wal_replay_pause_state", &[], TEXT), ("pg_last_xact_replay_timestamp", &[], TIMESTAMPTZ),
    ("pg_last_wal_receive_lsn", &[], PG_LSN), ("pg_last_wal_replay_lsn", &[], PG_LSN),
    ("pg_stat_get_numscans", &[OID], INT8), ("pg_stat_get_tuples_returned", &[OID], INT8), ("pg_stat_get_tuples_fetched", &[OID], INT8),
    ("pg_stat_get_tuples_inserted", &[OID], INT8), ("pg_stat_get_tuples_updated", &[OID], INT8), ("pg_stat_get_tuples_deleted", &[OID], INT8),
    ("pg_stat_get_tuples_hot_updated", &[OID], INT8), ("pg_stat_get_dead_tuples", &[OID], INT8),
    ("pg_relation_is_publishable", &[REGCLASS], BOOL),
    ("inet_client_addr", &[], INET), ("inet_client_port", &[], INT4), ("inet_server_addr", &[], INET), ("inet_server_port", &[], INT4),
    ("pg_postmaster_start_time", &[], TIMESTAMPTZ), ("pg_conf_load_time", &[], TIMESTAMPTZ),
    ("pg_my_temp_schema", &[], OID), ("pg_is_other_temp_schema", &[OID], BOOL),
    ("pg_relation_is_updatable", &[REGCLASS, BOOL], INT4), ("pg_column_is_updatable", &[REGCLASS, INT2, BOOL], BOOL),
    ("pg_get_partition_constraintdef", &[OID], TEXT), ("pg_get_statisticsobjdef", &[OID], TEXT), ("pg_get_functiondef", &[OID], TEXT),
    ("pg_get_function_sqlbody", &[OID], TEXT), ("pg_get_ruledef", &[OID], TEXT), ("pg_get_ruledef", &[OID, BOOL], TEXT),
    ("pg_get_viewdef", &[TEXT], TEXT), ("pg_get_viewdef", &[TEXT, BOOL], TEXT), ("pg_get_viewdef", &[OID, INT4], TEXT),
    ("pg_relation_filenode", &[REGCLASS], OID), ("pg_describe_object", &[OID, OID, INT4], TEXT),
    ("acldefault", &[CHAR, OID], TEXT_ARRAY), ("makeaclitem", &[OID, OID, TEXT, BOOL], TEXT),
    ("row_security_active", &[OID], BOOL), ("row_security_active", &[TEXT], BOOL),
    ("getpgusername", &[], NAME), ("pg_jit_available", &[], BOOL), ("pg_trigger_depth", &[], INT4),
    ("pg_safe_snapshot_blocking_pids", &[INT4], INT4_ARRAY), ("pg_collation_actual_version", &[OID], TEXT),
    ("pg_database_collation_actual_version", &[OID], TEXT), ("_pg_index_position", &[OID, INT2], INT4),
    ("pg_index_column_has_property", &[REGCLASS, INT4, TEXT], BOOL), ("pg_index_has_property", &[REGCLASS, TEXT], BOOL),
    ("pg_indexam_has_property", &[OID, TEXT], BOOL), ("txid_current_if_assigned", &[], INT8), ("pg_current_xact_id_if_assigned", &[], XID8),
    ("pg_current_snapshot", &[], PG_SNAPSHOT), ("txid_current_snapshot", &[], TXID_SNAPSHOT),
    ("pg_xact_status", &[XID8], TEXT), ("txid_status", &[INT8], TEXT),
    ("pg_filenode_relation", &[OID, OID], REGCLASS), ("pg_get_replica_identity_index", &[REGCLASS], REGCLASS),
    ("pg_xact_commit_timestamp", &[XID], TIMESTAMPTZ), ("mxid_age", &[XID], INT4),
    ("pg_stat_get_snapshot_timestamp", &[], TIMESTAMPTZ), ("pg_column_compression", &[ANY], TEXT),
    ("pg_relation_filepath", &[REGCLASS], TEXT), ("pg_partition_root", &[REGCLASS], REGCLASS),
];

/// The functions about rights whose object goes by its name or its oid.
#[rustfmt::skip]
const RIGHTS: &[&str] = &[
    "has_table_privilege", "has_sequence_privilege", "has_any_column_privilege", "has_schema_privilege", "has_database_privilege",
    "has_function_privilege", "has_type_privilege", "has_language_privilege", "has_tablespace_privilege", "has_server_privilege",
    "has_foreign_data_wrapper_privilege", "pg_has_role",
];

fn row(name: &'static str, arguments: Vec<Oid>, result: Oid) -> Row {
    (HostFunction::Catalog(name), name, arguments.leak(), result, true)
}

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
        let mut rows: Vec<Row> =
            FUNCTIONS.iter().map(|(name, args, result)| row(name, args.to_vec(), *result)).collect();
        let values = statistics_functions::STATISTICS.iter();
        let named = values.filter_map(|(name, ..)| builtin::procs_named(&format!("pg_stat_get_{name}")).first());
        rows.extend(named.map(|p| row(p.name, p.arguments.clone(), p.result)));
        // The role goes by its name or its oid too, or is left out: then it is the session's.
        let users: [Option<Oid>; 3] = [None, Some(NAME), Some(OID)];
        for user in users {
            rows.push(row("has_parameter_privilege", user.into_iter().chain([TEXT, TEXT]).collect(), BOOL));
            for name in RIGHTS {
                let named = if *name == "pg_has_role" { NAME } else { TEXT };
                for object in [named, OID] {
                    rows.push(row(name, user.into_iter().chain([object, TEXT]).collect(), BOOL));
                }
            }
            for object in [TEXT, OID] {
                for column in [TEXT, INT2] {
                    rows.push(row(
                        "has_column_privilege",
                        user.into_iter().chain([object, column, TEXT]).collect(),
                        BOOL,
                    ));
                }
            }
        }
        rows
    });
    ROWS.iter()
}
