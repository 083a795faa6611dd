//! The table of the settings that change something here: their names, defaults and permitted values.
//!
//! # Structure
//! One row per setting, in the order of PostgreSQL's names. `planner_settings` has the settings that steer the planner, `accepted_settings` those
//! without effect; `settings` has the operations on values.

use super::log_line::LOG_STATEMENT;
use super::setting_text::ISOLATION;

/// Names of the only locale that there is.
const LOCALES: &[&str] = &["C.UTF-8", "C", "POSIX"];

/// What `server_version` says: the reference that clients adapt to.
pub const SERVER_VERSION: &str = "15.0 (Clearway 0.1.0)";

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// on, off.
    Bool,
    /// A number of milliseconds, with an optional unit.
    Milliseconds,
    /// The same, or -1.
    MillisecondsOrOff,
    /// A number of bytes, with an optional unit; without one they are kilobytes.
    Bytes,
    /// A number of kilobytes, this one at least, with an optional unit.
    Kilobytes(i64),
    /// A number from a range.
    Int(i64, i64),
    /// One of these words.
    Enum(&'static [&'static str]),
    /// Any text.
    Text,
    /// A number from a range.
    RealIn(f64, f64),
    /// A number of milliseconds up to this one, which may have a fraction.
    RealMilliseconds(f64),
    /// A number of blocks of 8 kB from a range, or of bytes with a unit.
    Blocks(i64, i64),
    /// This value and no other.
    Only(&'static str),
    /// The name of an encoding.
    Encoding,
    /// It can be read only.
    Fixed,
}

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name as SHOW ALL has it.
    pub name: &'static str,
    /// Its value at the start.
    pub default: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Whether clients are told of changes.
    pub reported: bool,
    /// One sentence.
    pub about: &'static str,
}

pub(super) const fn s(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    reported: bool,
    about: &'static str,
) -> Setting {
    Setting { name, default, kind, reported, about }
}

const LEVELS: &[&str] = &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];

/// All settings, by name.
#[rustfmt::skip]
pub static SETTINGS: &[Setting] = &[
    s("application_name", "", Kind::Text, true, "Sets the application name to be reported in statistics and logs."),
    s("autovacuum", "off", Kind::Fixed, false, "Nothing has to be vacuumed; shows off."),
    s("autovacuum_max_workers", "0", Kind::Fixed, false, "Nothing has to be vacuumed; shows 0."),
    s("block_size", "8192", Kind::Fixed, false, "Shows the size of a page."),
    s("bytea_output", "hex", Kind::Enum(&["hex", "escape"]), false, "Sets the output format for bytea."),
    s("check_function_bodies", "on", Kind::Bool, false, "The bodies of functions are checked when they are created."),
    s("cluster_name", "", Kind::Fixed, false, "Shows the name of the server; it has none."),
    s("client_encoding", "UTF8", Kind::Encoding, true, "Sets the client's character set encoding."),
    s("client_min_messages", "notice", Kind::Enum(LEVELS), false, "Sets the message levels that are sent to the client."),
    s("DateStyle", "ISO, MDY", Kind::Text, true, "Sets the display format for date and time values."),
    s("ddl_block_rounds", "-1", Kind::Int(-1, 1_000_000), false, "How often a waiting DDL statement lets others pass; -1 for ever."),
    s("ddl_block_then", "wait", Kind::Enum(&["wait", "error"]), false, "What a DDL statement does after the last round: wait in the queue, or fail."),
    s("ddl_block_window", "50", Kind::Int(-1, 3_600_000), false, "Milliseconds for which a waiting DDL statement holds back others before it lets them pass; 0 holds nobody back, -1 for ever."),
    s("debug_assertions", "off", Kind::Fixed, false, "Shows whether PostgreSQL's assertions are compiled in; they are not."),
    s("deadlock_timeout", "1s", Kind::Milliseconds, false, "Accepted; deadlocks are found when a wait begins."),
    s("default_table_access_method", "heap", Kind::Enum(&["heap"]), false, "Sets the default table access method for new tables."),
    s("default_tablespace", "", Kind::Enum(&["", "pg_default"]), false, "Sets the default tablespace to create tables and indexes in."),
    s("default_transaction_deferrable", "off", Kind::Bool, false, "Accepted; only serializable transactions wait to be deferrable, and there are none."),
    s("default_transaction_isolation", "read committed", Kind::Enum(ISOLATION), false, "Sets the transaction isolation level of each new transaction."),
    s("default_transaction_read_only", "off", Kind::Bool, true, "Sets the default read-only status of new transactions."),
    s("extra_float_digits", "1", Kind::Int(-15, 3), false, "Sets the number of digits displayed for floating-point values."),
    s("fsync", "on", Kind::Fixed, false, "Shows whether the log is synced; it always is."),
    s("full_page_writes", "off", Kind::Fixed, false, "Shows whether the log has images of whole pages; it has none."),
    s("hash_mem_multiplier", "2", Kind::RealIn(1.0, 1000.0), false, "Multiple of work_mem to use for hash tables."),
    s("idle_in_transaction_session_timeout", "0", Kind::Milliseconds, false, "Sets the maximum allowed idle time between queries, when in a transaction."),
    s("idle_session_timeout", "0", Kind::Milliseconds, false, "Sets the maximum allowed idle time between queries, when not in a transaction."),
    s("data_checksums", "on", Kind::Fixed, false, "Shows whether pages have checksums; they always have."),
    s("data_directory", "", Kind::Fixed, false, "Shows the server's data directory, to superusers."),
    s("in_hot_standby", "off", Kind::Fixed, true, "Shows whether hot standby is currently active."),
    s("integer_datetimes", "on", Kind::Fixed, true, "Shows whether datetimes are integer based."),
    s("IntervalStyle", "postgres", Kind::Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]), true, "Sets the display format for interval values."),
    s("is_superuser", "on", Kind::Fixed, true, "Shows whether the current user is a superuser."),
    s("lc_collate", "C.UTF-8", Kind::Fixed, false, "Shows the collation order locale."),
    s("lc_ctype", "C.UTF-8", Kind::Fixed, false, "Shows the character classification and case conversion locale."),
    s("lc_messages", "C.UTF-8", Kind::Text, false, "Accepted; messages are in English."),
    s("lc_monetary", "C.UTF-8", Kind::Enum(LOCALES), false, "Sets the locale for formatting monetary amounts."),
    s("lc_numeric", "C.UTF-8", Kind::Enum(LOCALES), false, "Sets the locale for formatting numbers."),
    s("lc_time", "C.UTF-8", Kind::Enum(LOCALES), false, "Sets the locale for formatting date and time values."),
    s("limit_memory", "0", Kind::Bytes, false, "Kept for a role or a database: the memory that all its sessions may have together; 0 is no limit."),
    s("limit_processor_share", "0", Kind::Int(0, 100), false, "Kept for a role or a database: percent of the time of all processors that its sessions may use together; 0 is no limit."),
    s("limit_statement_time", "0", Kind::Milliseconds, false, "Kept for a role or a database: the longest time of any statement, whatever statement_timeout is; 0 is no limit."),
    s("limit_statements", "0", Kind::Int(0, 1_000_000), false, "Kept for a role or a database: how many of its sessions may run a statement or have a transaction open; others wait; 0 is no limit."),
    s("limit_undo", "0", Kind::Bytes, false, "Kept for a role or a database: the undo that the open transactions of its sessions may have written; 0 is no limit."),
    s("log_checkpoints", "on", Kind::Fixed, false, "Shows whether checkpoints are logged; they are."),
    s("log_duration", "off", Kind::Fixed, false, "Shows whether the duration of each statement is logged; see log_min_duration_statement."),
    s("log_min_duration_statement", "-1", Kind::MillisecondsOrOff, false, "Sets the minimum execution time above which statements are logged; -1 is never, 0 always."),
    s("log_statement", "none", Kind::Enum(LOG_STATEMENT), false, "Sets the type of statements logged."),
    s("lo_compat_privileges", "off", Kind::Bool, false, "Enables backward compatibility mode for privilege checks on large objects."),
    s("lock_timeout", "0", Kind::Milliseconds, false, "Sets the maximum allowed duration of any wait for a lock."),
    s("max_function_args", "100", Kind::Fixed, false, "Shows the maximum number of function arguments."),
    s("max_identifier_length", "63", Kind::Fixed, false, "Shows the maximum identifier length."),
    s("max_index_keys", "32", Kind::Fixed, false, "Shows the maximum number of index keys."),
    s("max_logical_replication_workers", "0", Kind::Fixed, false, "There is no logical replication; shows 0."),
    s("max_prepared_transactions", "0", Kind::Fixed, false, "There are no prepared transactions; shows 0."),
    s("max_replication_slots", "0", Kind::Fixed, false, "There are no replication slots; shows 0."),
    s("max_wal_senders", "0", Kind::Fixed, false, "There are no replicas; shows 0."),
    s("max_worker_processes", "0", Kind::Fixed, false, "There are no worker processes; shows 0."),
    s("max_parallel_workers", "8", Kind::Int(0, 1024), false, "Sets the maximum number of threads beside a session's that read a large table for one statement."),
    s("max_parallel_workers_per_gather", "2", Kind::Int(0, 1024), false, "Sets the maximum number of threads beside a session's that read a large table for one statement; 0: the session's thread reads it alone."),
    s("min_parallel_table_scan_size", "8MB", Kind::Blocks(0, 715827882), false, "Sets the size of the smallest table that several threads read for one statement."),
    s("force_parallel_mode", "off", Kind::Enum(&["off", "on", "regress"]), false, "Sets whether a large table is read by several threads though processors are not idle, to test that."),
    s("plan_cache_mode", "auto", Kind::Enum(&["auto", "force_generic_plan", "force_custom_plan"]), false, "Controls the planner's selection of custom or generic plan."),
    s("processors", "1", Kind::Fixed, false, "Shows how many processors the server may use."),
    s("role", "none", Kind::Text, false, "Sets the current role."),
    s("row_security", "on", Kind::Bool, false, "Enable row security."),
    s("search_path", "\"$user\", public", Kind::Text, false, "Sets the schema search order for names that are not schema-qualified."),
    s("serializable", "off", Kind::Enum(&["off", "snapshot"]), false, "Whether serializable transactions run as repeatable read."),
    s("server_encoding", "UTF8", Kind::Fixed, true, "Shows the server (database) character set encoding."),
    s("server_version", SERVER_VERSION, Kind::Fixed, true, "Shows the server version."),
    s("server_version_num", "150000", Kind::Fixed, false, "Shows the server version as an integer."),
    s("session_authorization", "postgres", Kind::Text, true, "Shows the session's user."),
    s("shared_preload_libraries", "pg_stat_statements", Kind::Fixed, false, "Shows what is always loaded."),
    s("standard_conforming_strings", "on", Kind::Enum(&["on"]), true, "Causes '...' strings to treat backslashes literally."),
    s("statement_memory", "0", Kind::Bytes, false, "Sets the memory that a statement may have, with what its session keeps; 0 is no limit of its own."),
    s("statement_timeout", "0", Kind::Milliseconds, false, "Sets the maximum allowed duration of any statement."),
    s("synchronize_seqscans", "on", Kind::Bool, false, "Accepted; a scan never joins another one."),
    s("synchronous_commit", "on", Kind::Enum(&["local", "remote_write", "remote_apply", "on", "off", "archive"]), false, "Sets the current transaction's synchronization level."),
    s("TimeZone", "Etc/UTC", Kind::Text, true, "Sets the time zone for displaying and interpreting time stamps."),
    s("track_commit_timestamp", "off", Kind::Fixed, false, "Shows whether the times of commits are kept; they are not."),
    s("transaction_deferrable", "off", Kind::Bool, false, "Accepted; only serializable transactions wait to be deferrable, and there are none."),
    s("transaction_isolation", "read committed", Kind::Enum(ISOLATION), false, "Sets the current transaction's isolation level."),
    s("transaction_read_only", "off", Kind::Bool, false, "Sets the current transaction's read-only status."),
    s("wal_level", "replica", Kind::Fixed, false, "Shows the level of information written to the log."),
    s("wal_log_hints", "off", Kind::Fixed, false, "Shows whether the log has images of whole pages; it has none."),
    s("work_mem", "64MB", Kind::Kilobytes(64), false, "Sets the maximum memory to be used for query workspaces."),
    s("xmloption", "content", Kind::Enum(&["content", "document"]), false, "Accepted; there is no type xml."),
];
