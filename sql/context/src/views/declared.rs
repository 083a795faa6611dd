//! Declares, from data, the relations of pg_catalog and information_schema that are not declared in code. Their rows come from data, from
//! a query (`texts`), or there are none because nothing of that kind exists here ([`EMPTY`]).

use super::SystemView;
use clearway_values::builtin;
use clearway_values::types::{Oid, facts, oid};
use std::sync::LazyLock;

/// Relations without rows, because nothing that they list can be made: publications, triggers, foreign tables, text search
/// configurations, partitions, security labels and so on.
#[rustfmt::skip]
pub const EMPTY: &[&str] = &[
    "pg_available_extension_versions", "pg_conversion", "pg_event_trigger",
    "pg_foreign_data_wrapper", "pg_foreign_server", "pg_foreign_table", "pg_ident_file_mappings", "pg_inherits",
    "pg_init_privs", "pg_parameter_acl", "pg_partitioned_table",
    "pg_prepared_xacts", "pg_publication", "pg_publication_namespace", "pg_publication_rel", "pg_publication_tables",
    "pg_replication_origin", "pg_replication_origin_status", "pg_replication_slots", "pg_seclabel", "pg_seclabels", "pg_shseclabel",
    "pg_statistic_ext", "pg_statistic_ext_data", "pg_stats_ext", "pg_stats_ext_exprs", "pg_subscription", "pg_subscription_rel",
    "pg_transform", "pg_trigger", "pg_ts_config", "pg_ts_config_map", "pg_ts_dict", "pg_ts_parser", "pg_ts_template",
    "pg_user_mapping", "pg_user_mappings", 
    "pg_stat_progress_basebackup", "pg_stat_progress_cluster",
    "pg_stat_progress_vacuum", "pg_stat_recovery_prefetch", "pg_stat_replication", "pg_stat_replication_slots", "pg_stat_slru",
    "pg_stat_subscription", "pg_stat_subscription_stats", "pg_stat_user_functions", "pg_stat_wal_receiver",
    "pg_stat_xact_user_functions",
    "_pg_foreign_data_wrappers", "_pg_foreign_servers", "_pg_foreign_table_columns", "_pg_foreign_tables", "_pg_user_mappings",
    "check_constraint_routine_usage", "column_column_usage", "column_options", "foreign_data_wrapper_options",
    "foreign_data_wrappers", "foreign_server_options", "foreign_servers", "foreign_table_options", "foreign_tables",
    "routine_column_usage", "routine_routine_usage", "routine_sequence_usage", "routine_table_usage", "transforms",
    "triggered_update_columns", "triggers", "user_mapping_options", "user_mappings", "view_routine_usage",
];

/// Relations whose rows are read from tables (`clearway_exec`), not made of the catalog.
pub const STORED: &[&str] = &["pg_largeobject", "pg_largeobject_metadata"];

/// Relations of PostgreSQL that Clearway has not: they tell of files and memory that are PostgreSQL's own, or of features by number.
#[rustfmt::skip]
pub const ABSENT: &[&str] = &[
    "pg_backend_memory_contexts", "pg_config", "pg_shmem_allocations", "sql_features", "sql_implementation_info", "sql_parts",
    "sql_sizing",
];

/// The relations.
pub fn all() -> impl Iterator<Item = &'static SystemView> {
    static VIEWS: LazyLock<Vec<SystemView>> = LazyLock::new(|| builtin::RELATIONS.lines().filter_map(read).collect());
    VIEWS.iter()
}

fn read(line: &'static str) -> Option<SystemView> {
    let mut parts = line.split('\t');
    let (schema, name, number) = (parts.next()?, parts.next()?, parts.next()?);
    if ABSENT.contains(&name) {
        return None;
    }
    let columns = parts.nth(1)?.split(' ').filter_map(|column| {
        let (name, ty) = column.split_once(':')?;
        Some((name, known(ty.parse().ok()?)))
    });
    let columns: &'static [(&'static str, Oid)] = columns.collect::<Vec<_>>().leak();
    Some(SystemView { oid: number.parse().ok()?, schema, name, columns })
}

/// A type, or the one in which a value of it is shown.
fn known(ty: Oid) -> Oid {
    if facts(ty).is_some() { ty } else { oid::TEXT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_name_relations_of_postgresql() {
        for name in EMPTY.iter().chain(ABSENT) {
            assert!(builtin::RELATIONS.lines().any(|l| l.split('\t').nth(1) == Some(name)), "{name}");
        }
    }
}
