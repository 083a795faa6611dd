//! `pg_stat_get_*`: each gives one value of a statistics view, of the object, database or session of a number.

/// Which value: (function behind `pg_stat_get_`, view, the column of the number or "", the columns whose sum it is).
pub type Statistic = (&'static str, &'static str, &'static str, &'static [&'static str]);

const TABLES: &str = "pg_stat_all_tables";
const XACT: &str = "pg_stat_xact_all_tables";
const DATABASE: &str = "pg_stat_database";
const CONFLICTS: &str = "pg_stat_database_conflicts";
const WRITER: &str = "pg_stat_bgwriter";
const SESSIONS: &str = "pg_stat_activity";
const FUNCTIONS: &str = "pg_stat_user_functions";
const XACT_FUNCTIONS: &str = "pg_stat_xact_user_functions";

/// All of them. A session's number is its process id.
#[rustfmt::skip]
pub const STATISTICS: &[Statistic] = &[
    ("live_tuples", TABLES, "relid", &["n_live_tup"]), ("mod_since_analyze", TABLES, "relid", &["n_mod_since_analyze"]),
    ("ins_since_vacuum", TABLES, "relid", &["n_ins_since_vacuum"]), ("last_vacuum_time", TABLES, "relid", &["last_vacuum"]),
    ("last_autovacuum_time", TABLES, "relid", &["last_autovacuum"]), ("last_analyze_time", TABLES, "relid", &["last_analyze"]),
    ("last_autoanalyze_time", TABLES, "relid", &["last_autoanalyze"]), ("vacuum_count", TABLES, "relid", &["vacuum_count"]),
    ("autovacuum_count", TABLES, "relid", &["autovacuum_count"]), ("analyze_count", TABLES, "relid", &["analyze_count"]),
    ("autoanalyze_count", TABLES, "relid", &["autoanalyze_count"]),
    ("blocks_fetched", "pg_statio_all_tables", "relid", &["heap_blks_read", "heap_blks_hit"]), ("blocks_hit", "pg_statio_all_tables", "relid", &["heap_blks_hit"]),
    ("xact_numscans", XACT, "relid", &["seq_scan"]), ("xact_tuples_returned", XACT, "relid", &["seq_tup_read"]), ("xact_tuples_fetched", XACT, "relid", &["idx_tup_fetch"]),
    ("xact_tuples_inserted", XACT, "relid", &["n_tup_ins"]), ("xact_tuples_updated", XACT, "relid", &["n_tup_upd"]), ("xact_tuples_deleted", XACT, "relid", &["n_tup_del"]),
    ("xact_tuples_hot_updated", XACT, "relid", &["n_tup_hot_upd"]),
    ("db_numbackends", DATABASE, "datid", &["numbackends"]), ("db_xact_commit", DATABASE, "datid", &["xact_commit"]), ("db_xact_rollback", DATABASE, "datid", &["xact_rollback"]),
    ("db_blocks_fetched", DATABASE, "datid", &["blks_read", "blks_hit"]), ("db_blocks_hit", DATABASE, "datid", &["blks_hit"]),
    ("db_tuples_returned", DATABASE, "datid", &["tup_returned"]), ("db_tuples_fetched", DATABASE, "datid", &["tup_fetched"]), ("db_tuples_inserted", DATABASE, "datid", &["tup_inserted"]),
    ("db_tuples_updated", DATABASE, "datid", &["tup_updated"]), ("db_tuples_deleted", DATABASE, "datid", &["tup_deleted"]), ("db_conflict_all", DATABASE, "datid", &["conflicts"]),
    ("db_temp_files", DATABASE, "datid", &["temp_files"]), ("db_temp_bytes", DATABASE, "datid", &["temp_bytes"]), ("db_deadlocks", DATABASE, "datid", &["deadlocks"]),
    ("db_checksum_failures", DATABASE, "datid", &["checksum_failures"]), ("db_checksum_last_failure", DATABASE, "datid", &["checksum_last_failure"]),
    ("db_blk_read_time", DATABASE, "datid", &["blk_read_time"]), ("db_blk_write_time", DATABASE, "datid", &["blk_write_time"]), ("db_session_time", DATABASE, "datid", &["session_time"]),
    ("db_active_time", DATABASE, "datid", &["active_time"]), ("db_idle_in_transaction_time", DATABASE, "datid", &["idle_in_transaction_time"]), ("db_sessions", DATABASE, "datid", &["sessions"]),
    ("db_sessions_abandoned", DATABASE, "datid", &["sessions_abandoned"]), ("db_sessions_fatal", DATABASE, "datid", &["sessions_fatal"]),
    ("db_sessions_killed", DATABASE, "datid", &["sessions_killed"]), ("db_stat_reset_time", DATABASE, "datid", &["stats_reset"]),
    ("db_conflict_tablespace", CONFLICTS, "datid", &["confl_tablespace"]), ("db_conflict_lock", CONFLICTS, "datid", &["confl_lock"]),
    ("db_conflict_snapshot", CONFLICTS, "datid", &["confl_snapshot"]), ("db_conflict_bufferpin", CONFLICTS, "datid", &["confl_bufferpin"]),
    ("db_conflict_startup_deadlock", CONFLICTS, "datid", &["confl_deadlock"]),
    ("bgwriter_timed_checkpoints", WRITER, "", &["checkpoints_timed"]), ("bgwriter_requested_checkpoints", WRITER, "", &["checkpoints_req"]),
    ("bgwriter_buf_written_checkpoints", WRITER, "", &["buffers_checkpoint"]), ("bgwriter_buf_written_clean", WRITER, "", &["buffers_clean"]),
    ("bgwriter_maxwritten_clean", WRITER, "", &["maxwritten_clean"]), ("bgwriter_stat_reset_time", WRITER, "", &["stats_reset"]),
    ("buf_written_backend", WRITER, "", &["buffers_backend"]), ("buf_fsync_backend", WRITER, "", &["buffers_backend_fsync"]), ("buf_alloc", WRITER, "", &["buffers_alloc"]),
    ("checkpoint_write_time", WRITER, "", &["checkpoint_write_time"]), ("checkpoint_sync_time", WRITER, "", &["checkpoint_sync_time"]),
    ("backend_pid", SESSIONS, "pid", &["pid"]), ("backend_dbid", SESSIONS, "pid", &["datid"]), ("backend_userid", SESSIONS, "pid", &["usesysid"]),
    ("backend_activity", SESSIONS, "pid", &["query"]), ("backend_activity_start", SESSIONS, "pid", &["query_start"]), ("backend_start", SESSIONS, "pid", &["backend_start"]),
    ("backend_xact_start", SESSIONS, "pid", &["xact_start"]), ("backend_client_addr", SESSIONS, "pid", &["client_addr"]), ("backend_client_port", SESSIONS, "pid", &["client_port"]),
    ("backend_wait_event_type", SESSIONS, "pid", &["wait_event_type"]), ("backend_wait_event", SESSIONS, "pid", &["wait_event"]),
    ("function_calls", FUNCTIONS, "funcid", &["calls"]), ("function_total_time", FUNCTIONS, "funcid", &["total_time"]), ("function_self_time", FUNCTIONS, "funcid", &["self_time"]),
    ("xact_function_calls", XACT_FUNCTIONS, "funcid", &["calls"]), ("xact_function_total_time", XACT_FUNCTIONS, "funcid", &["total_time"]),
    ("xact_function_self_time", XACT_FUNCTIONS, "funcid", &["self_time"]),
];

/// The value that a function gives.
pub fn of(function: &str) -> Option<&'static Statistic> {
    let name = function.strip_prefix("pg_stat_get_")?;
    STATISTICS.iter().find(|(known, ..)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    #[test]
    fn functions_and_columns_are_those_of_postgresql() {
        for (name, view, key, columns) in STATISTICS {
            assert_eq!(builtin::procs_named(&format!("pg_stat_get_{name}")).len(), 1, "{name}");
            let Some(declared) = builtin::RELATIONS.lines().find(|line| line.split('\t').nth(1) == Some(view)) else {
                // It is declared by hand.
                assert_eq!(*view, SESSIONS, "{name}");
                continue;
            };
            let has =
                |column: &str| declared.contains(&format!("\t{column}:")) || declared.contains(&format!(" {column}:"));
            assert!((key.is_empty() || has(key)) && columns.iter().all(|column| has(column)), "{name}");
        }
    }
}
