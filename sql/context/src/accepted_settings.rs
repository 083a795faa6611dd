//! PostgreSQL's settings that have no effect here. A setting of this list is accepted because there is nothing for it to control, or
//! because it supports one value only.
//!
//! A session stores a value of such a setting only if the session has set it; otherwise the value is the default.

use super::planner_settings::PLANNER;
use super::setting_table::{Kind, SETTINGS, Setting, s};

/// These settings, by name.
#[rustfmt::skip]
pub static ACCEPTED: &[Setting] = &[
    s("allow_in_place_tablespaces", "off", Kind::Only("off"), false, "Allows tablespaces directly inside pg_tblspc, for testing. No other value is supported."),
    s("allow_system_table_mods", "off", Kind::Only("off"), false, "Allows modifications of the structure of system tables. No other value is supported."),
    s("array_nulls", "on", Kind::Only("on"), false, "Enable input of NULL elements in arrays. No other value is supported."),
    s("backend_flush_after", "0", Kind::Blocks(0, 256), false, "Accepted; storage is organised otherwise."),
    s("backslash_quote", "safe_encoding", Kind::Only("safe_encoding"), false, "Sets whether '\'' is allowed in string literals. No other value is supported."),
    s("backtrace_functions", "", Kind::Only(""), false, "Log backtrace for errors in these functions. No other value is supported."),
    s("client_connection_check_interval", "0", Kind::Only("0"), false, "Sets the time interval between checks for disconnection while running queries. No other value is supported."),
    s("commit_delay", "0", Kind::Int(0, 100000), false, "Accepted; storage is organised otherwise."),
    s("commit_siblings", "5", Kind::Int(0, 1000), false, "Accepted; storage is organised otherwise."),
    s("compute_query_id", "auto", Kind::Enum(&["auto", "on"]), false, "Accepted; what it asks for is always done, or shown nowhere."),
    s("constraint_exclusion", "partition", Kind::Enum(&["partition", "on", "off"]), false, "Accepted; conditions are not compared with CHECK constraints, and there are no partitions."),
    s("debug_pretty_print", "on", Kind::Bool, false, "Accepted; what it asks for is always done, or shown nowhere."),
    s("debug_print_parse", "off", Kind::Only("off"), false, "Logs each query's parse tree. No other value is supported."),
    s("debug_print_plan", "off", Kind::Only("off"), false, "Logs each query's execution plan. No other value is supported."),
    s("debug_print_rewritten", "off", Kind::Only("off"), false, "Logs each query's rewritten parse tree. No other value is supported."),
    s("default_statistics_target", "100", Kind::Int(1, 10000), false, "Common values, and parts of a histogram, that ANALYZE keeps of a column."),
    s("default_text_search_config", "pg_catalog.simple", Kind::Text, false, "Accepted; there is no text search."),
    s("default_toast_compression", "pglz", Kind::Enum(&["pglz", "lz4"]), false, "Accepted; storage is organised otherwise."),
    s("dynamic_library_path", "$libdir", Kind::Only("$libdir"), false, "Sets the path for dynamically loadable modules. No other value is supported."),
    s("effective_cache_size", "4GB", Kind::Blocks(1, 2147483647), false, "Accepted; the planner does not estimate how many pages are cached."),
    s("effective_io_concurrency", "1", Kind::Int(0, 1000), false, "Accepted; storage is organised otherwise."),
    s("enable_async_append", "on", Kind::Bool, false, "Accepted; there are no foreign tables, whose scans it lets run at the same time."),
    s("enable_gathermerge", "on", Kind::Bool, false, "Accepted; threads never give rows in an order, so that nothing merges them."),
    s("enable_incremental_sort", "on", Kind::Bool, false, "Accepted; a sort always begins anew."),
    s("enable_memoize", "on", Kind::Bool, false, "Accepted; a nested loop keeps no results of its inner side."),
    s("enable_parallel_append", "on", Kind::Bool, false, "Accepted; the branches of a UNION ALL are read one after the other."),
    s("enable_parallel_hash", "on", Kind::Bool, false, "Accepted; one thread fills a hash table."),
    s("enable_partition_pruning", "on", Kind::Bool, false, "Accepted; there are no partitioned tables."),
    s("enable_partitionwise_aggregate", "off", Kind::Bool, false, "Accepted; there are no partitioned tables."),
    s("enable_partitionwise_join", "off", Kind::Bool, false, "Accepted; there are no partitioned tables."),
    s("escape_string_warning", "on", Kind::Bool, false, "Accepted; plain strings take backslashes literally, so that there is nothing to warn of."),
    s("exit_on_error", "off", Kind::Only("off"), false, "Terminate session on any error. No other value is supported."),
    s("geqo_effort", "5", Kind::Int(1, 10), false, "Accepted; many joins are ordered step by step, without a genetic search."),
    s("geqo_generations", "0", Kind::Int(0, 2147483647), false, "Accepted; many joins are ordered step by step, without a genetic search."),
    s("geqo_pool_size", "0", Kind::Int(0, 2147483647), false, "Accepted; many joins are ordered step by step, without a genetic search."),
    s("geqo_seed", "0", Kind::RealIn(0.0, 1.0), false, "Accepted; many joins are ordered step by step, without a genetic search."),
    s("geqo_selection_bias", "2", Kind::RealIn(1.5, 2.0), false, "Accepted; many joins are ordered step by step, without a genetic search."),
    s("gin_fuzzy_search_limit", "0", Kind::Int(0, 2147483647), false, "Accepted; storage is organised otherwise."),
    s("gin_pending_list_limit", "4MB", Kind::Kilobytes(64), false, "Accepted; storage is organised otherwise."),
    s("ignore_checksum_failure", "off", Kind::Only("off"), false, "Continues processing after a checksum failure. No other value is supported."),
    s("jit", "on", Kind::Bool, false, "Accepted; expressions are not compiled."),
    s("jit_above_cost", "100000", Kind::RealIn(-1.0, f64::MAX), false, "Accepted; expressions are not compiled."),
    s("jit_dump_bitcode", "off", Kind::Bool, false, "Accepted; expressions are not compiled."),
    s("jit_expressions", "on", Kind::Bool, false, "Accepted; expressions are not compiled."),
    s("jit_inline_above_cost", "500000", Kind::RealIn(-1.0, f64::MAX), false, "Accepted; expressions are not compiled."),
    s("jit_optimize_above_cost", "500000", Kind::RealIn(-1.0, f64::MAX), false, "Accepted; expressions are not compiled."),
    s("jit_tuple_deforming", "on", Kind::Bool, false, "Accepted; expressions are not compiled."),
    s("local_preload_libraries", "", Kind::Only(""), false, "Lists unprivileged shared libraries to preload into each backend. No other value is supported."),
    s("logical_decoding_work_mem", "64MB", Kind::Kilobytes(64), false, "Accepted; storage is organised otherwise."),
    s("maintenance_io_concurrency", "10", Kind::Int(0, 1000), false, "Accepted; storage is organised otherwise."),
    s("maintenance_work_mem", "64MB", Kind::Kilobytes(1024), false, "Accepted; storage is organised otherwise."),
    s("max_parallel_maintenance_workers", "2", Kind::Int(0, 1024), false, "Accepted; one thread builds an index."),
    s("max_stack_depth", "100kB", Kind::Kilobytes(100), false, "Accepted; nesting has limits of its own."),
    s("min_parallel_index_scan_size", "512kB", Kind::Blocks(0, 715827882), false, "Accepted; one thread reads an index."),
    s("parallel_leader_participation", "on", Kind::Bool, false, "Accepted; the session's thread always takes part."),
    s("parallel_setup_cost", "1000", Kind::RealIn(0.0, f64::MAX), false, "Accepted; the size of a table and idle processors decide how many threads read it, not costs."),
    s("parallel_tuple_cost", "0.1", Kind::RealIn(0.0, f64::MAX), false, "Accepted; the size of a table and idle processors decide how many threads read it, not costs."),
    s("password_encryption", "scram-sha-256", Kind::Only("scram-sha-256"), false, "Chooses the algorithm for encrypting passwords. No other value is supported."),
    s("quote_all_identifiers", "off", Kind::Only("off"), false, "When generating SQL fragments, quote all identifiers. No other value is supported."),
    s("session_preload_libraries", "", Kind::Only(""), false, "Lists shared libraries to preload into each backend. No other value is supported."),
    s("session_replication_role", "origin", Kind::Only("origin"), false, "Sets the session's behavior for triggers and rewrite rules. No other value is supported."),
    s("stats_fetch_consistency", "none", Kind::Only("none"), false, "Sets the consistency of accesses to statistics data. No other value is supported."),
    s("temp_buffers", "8MB", Kind::Blocks(100, 1073741823), false, "Accepted; storage is organised otherwise."),
    s("temp_file_limit", "-1", Kind::Only("-1"), false, "Limits the total size of all temporary files used by each process. No other value is supported."),
    s("temp_tablespaces", "", Kind::Only(""), false, "Sets the tablespace(s) to use for temporary tables and sort files. No other value is supported."),
    s("timezone_abbreviations", "Default", Kind::Only("Default"), false, "Selects a file of time zone abbreviations. No other value is supported."),
    s("trace_notify", "off", Kind::Only("off"), false, "Generates debugging output for LISTEN and NOTIFY. No other value is supported."),
    s("trace_sort", "off", Kind::Only("off"), false, "Emit information about resource usage in sorting. No other value is supported."),
    s("track_activities", "on", Kind::Only("on"), false, "Collects information about executing commands. No other value is supported."),
    s("track_counts", "on", Kind::Only("on"), false, "Collects statistics on database activity. No other value is supported."),
    s("track_functions", "none", Kind::Only("none"), false, "Collects function-level statistics on database activity. No other value is supported."),
    s("track_io_timing", "off", Kind::Bool, false, "Accepted; what it asks for is always done, or shown nowhere."),
    s("track_wal_io_timing", "off", Kind::Bool, false, "Accepted; what it asks for is always done, or shown nowhere."),
    s("transform_null_equals", "off", Kind::Only("off"), false, "Treats 'expr=NULL' as 'expr IS NULL'. No other value is supported."),
    s("update_process_title", "on", Kind::Bool, false, "Accepted; what it asks for is always done, or shown nowhere."),
    s("vacuum_cost_delay", "0", Kind::RealMilliseconds(100.0), false, "Accepted; storage is organised otherwise."),
    s("vacuum_cost_limit", "200", Kind::Int(1, 10000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_cost_page_dirty", "20", Kind::Int(0, 10000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_cost_page_hit", "1", Kind::Int(0, 10000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_cost_page_miss", "2", Kind::Int(0, 10000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_failsafe_age", "1600000000", Kind::Int(0, 2100000000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_freeze_min_age", "50000000", Kind::Int(0, 1000000000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_freeze_table_age", "150000000", Kind::Int(0, 2000000000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_multixact_failsafe_age", "1600000000", Kind::Int(0, 2100000000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_multixact_freeze_min_age", "5000000", Kind::Int(0, 1000000000), false, "Accepted; storage is organised otherwise."),
    s("vacuum_multixact_freeze_table_age", "150000000", Kind::Int(0, 2000000000), false, "Accepted; storage is organised otherwise."),
    s("wal_compression", "off", Kind::Enum(&["pglz", "lz4", "zstd", "on", "off"]), false, "Accepted; storage is organised otherwise."),
    s("wal_consistency_checking", "", Kind::Only(""), false, "Sets the WAL resource managers for which WAL consistency checks are done. No other value is supported."),
    s("wal_init_zero", "on", Kind::Bool, false, "Accepted; storage is organised otherwise."),
    s("wal_recycle", "on", Kind::Bool, false, "Accepted; storage is organised otherwise."),
    s("wal_skip_threshold", "2MB", Kind::Kilobytes(0), false, "Accepted; storage is organised otherwise."),
    s("xmlbinary", "base64", Kind::Only("base64"), false, "Sets how binary values are to be encoded in XML. No other value is supported."),
    s("zero_damaged_pages", "off", Kind::Only("off"), false, "Continues processing past damaged page headers. No other value is supported."),
];

/// Those that only superusers may set.
const OF_SUPERUSERS: &[&str] = &[
    "allow_in_place_tablespaces",
    "allow_system_table_mods",
    "backtrace_functions",
    "commit_delay",
    "compute_query_id",
    "dynamic_library_path",
    "ignore_checksum_failure",
    "jit_dump_bitcode",
    "lo_compat_privileges",
    "max_stack_depth",
    "session_preload_libraries",
    "session_replication_role",
    "temp_file_limit",
    "track_activities",
    "track_counts",
    "track_functions",
    "track_io_timing",
    "track_wal_io_timing",
    "update_process_title",
    "wal_compression",
    "wal_consistency_checking",
    "wal_init_zero",
    "wal_recycle",
    "zero_damaged_pages",
];

/// Whether only superusers may set a setting of this list.
pub(super) fn is_for_superusers(name: &str) -> bool {
    OF_SUPERUSERS.contains(&name)
}

/// The default of one of them, or of a setting of the planner.
pub(super) fn default_of(name: &str) -> &'static str {
    PLANNER.iter().chain(ACCEPTED).find(|setting| setting.name == name).map_or("", |setting| setting.default)
}

/// A setting by name, in any case.
pub fn find(name: &str) -> Option<&'static Setting> {
    all().find(|s| s.name.eq_ignore_ascii_case(name))
}

/// Every setting; those that nothing looks at come last.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().chain(PLANNER).chain(ACCEPTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_setting_stands_twice() {
        let mut names = BTreeSet::new();
        for setting in all() {
            assert!(names.insert(setting.name.to_lowercase()), "{}", setting.name);
        }
    }
}
