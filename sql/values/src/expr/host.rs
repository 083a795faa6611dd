//! The traits through which expressions ask the session that they run in.

use super::bound::SubqueryUse;
use crate::error::Result;
use crate::types::datetime::Format;
use crate::types::text::{Conversion, Names};
use crate::types::{Datum, Oid, oid};
use std::future::Future;
use std::pin::Pin;

/// Facts of the session, at hand without waiting.
pub trait Session: Sync {
    /// The formats of values.
    fn format(&self) -> &Format;
    /// Start of the transaction, microseconds since 2000-01-01 UTC.
    fn transaction_start(&self) -> i64;
    /// Start of the statement, the same.
    fn statement_start(&self) -> i64;
    /// The clock, the same.
    fn clock(&self) -> i64;
    /// current_user; an error if that role has been dropped.
    fn current_user(&self) -> Result<String>;
    /// session_user, the same.
    fn session_user(&self) -> Result<String>;
    /// current_database().
    fn database(&self) -> String;
    /// current_schema().
    fn schema(&self) -> Option<String>;
    /// version().
    fn version(&self) -> String;
    /// pg_backend_pid().
    fn backend_pid(&self) -> i32;
    /// A setting's value.
    fn setting(&self, name: &str) -> Option<String>;
    /// A uniform random number in [0, 1).
    fn random(&self) -> f64;
    /// setseed(): from now on random numbers follow from this one.
    fn seed_random(&self, seed: f64);
    /// current_query(): the text that the client sent.
    fn query(&self) -> String;
    /// Names of relations.
    fn names(&self) -> &dyn Names;
}

impl dyn Session + '_ {
    /// What conversions of values need.
    pub fn conversion(&self) -> Conversion<'_> {
        Conversion { format: self.format(), now: self.transaction_start(), names: self.names() }
    }
}

/// A future that may move between threads.
pub type HostFuture<'a> = Pin<Box<dyn Future<Output = Result<Datum>> + Send + 'a>>;

/// What can wait or change the session.
pub trait Host: Session {
    /// Calls a host function. NULL arguments reach it; strictness was applied where PostgreSQL's is.
    fn call(&self, function: HostFunction, args: Vec<Datum>) -> HostFuture<'_>;
    /// Runs a subquery; `args` begins with the left side of a quantified one.
    fn subquery<'a>(&'a self, id: usize, usage: &'a SubqueryUse, args: Vec<Datum>, row: &'a [Datum]) -> HostFuture<'a>;
}

macro_rules! host_functions {
    ($($variant:ident $name:literal ($($arg:ident),*) -> $ret:ident $strict:literal;)*) => {
        /// The host functions; several may share a name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum HostFunction {
            $($variant,)*
            /// A function that a user has defined.
            Sql(Oid),
            /// The same, called by an operator that a user has defined.
            Operator {
                operator: Oid,
                function: Oid,
            },
            /// A question about the catalog (`super::inquiries`), by its name.
            Catalog(&'static str),
        }

        impl HostFunction {
            /// The function that a user has defined, if it is one.
            pub fn routine(self) -> Option<Oid> {
                match self {
                    Self::Sql(function) | Self::Operator { function, .. } => Some(function),
                    _ => None,
                }
            }

            /// Whether it only tells what the catalog has of an object's definition, which is the same each time within a statement.
            pub fn tells_definitions(self) -> bool {
                matches!(
                    self,
                    Self::GetExpr
                        | Self::GetExprPretty
                        | Self::GetIndexdef
                        | Self::GetIndexdefColumn
                        | Self::GetConstraintdef
                        | Self::GetConstraintdefPretty
                        | Self::GetViewdef
                        | Self::GetViewdefPretty
                        | Self::GetUserById
                        | Self::TableIsVisible
                        | Self::ObjDescription
                        | Self::ObjDescriptionAny
                        | Self::ColDescription
                        | Self::Catalog("pg_column_is_updatable" | "pg_relation_is_updatable")
                )
            }
        }

        /// (function, name, argument types, result type, strict).
        #[rustfmt::skip]
        pub(super) static HOST_FUNCTIONS: &[(HostFunction, &str, &[Oid], Oid, bool)] = &[
            $((HostFunction::$variant, $name, &[$(oid::$arg),*], oid::$ret, $strict)),*
        ];
    };
}

host_functions! {
    PgSleep "pg_sleep"(FLOAT8) -> VOID true;
    PgSleepFor "pg_sleep_for"(INTERVAL) -> VOID true;
    PgSleepUntil "pg_sleep_until"(TIMESTAMPTZ) -> VOID true;
    Nextval "nextval"(REGCLASS) -> INT8 true;
    Currval "currval"(REGCLASS) -> INT8 true;
    Setval "setval"(REGCLASS, INT8) -> INT8 true;
    SetvalCalled "setval"(REGCLASS, INT8, BOOL) -> INT8 true;
    Lastval "lastval"() -> INT8 true;
    SequenceLastValue "pg_sequence_last_value"(REGCLASS) -> INT8 true;
    SequenceState "clearway_sequence_state"(OID) -> TEXT_ARRAY true;
    SetConfig "set_config"(TEXT, TEXT, BOOL) -> TEXT false;
    TxidCurrent "txid_current"() -> INT8 true;
    CurrentXactId "pg_current_xact_id"() -> XID8 true;
    ExportSnapshot "pg_export_snapshot"() -> TEXT true;
    ReloadConf "pg_reload_conf"() -> BOOL true;
    AdvisoryLock "pg_advisory_lock"(INT8) -> VOID true;
    AdvisoryLock2 "pg_advisory_lock"(INT4, INT4) -> VOID true;
    AdvisoryLockShared "pg_advisory_lock_shared"(INT8) -> VOID true;
    AdvisoryLockShared2 "pg_advisory_lock_shared"(INT4, INT4) -> VOID true;
    AdvisoryXactLock "pg_advisory_xact_lock"(INT8) -> VOID true;
    AdvisoryXactLock2 "pg_advisory_xact_lock"(INT4, INT4) -> VOID true;
    AdvisoryXactLockShared "pg_advisory_xact_lock_shared"(INT8) -> VOID true;
    AdvisoryXactLockShared2 "pg_advisory_xact_lock_shared"(INT4, INT4) -> VOID true;
    TryAdvisoryLock "pg_try_advisory_lock"(INT8) -> BOOL true;
    TryAdvisoryLock2 "pg_try_advisory_lock"(INT4, INT4) -> BOOL true;
    TryAdvisoryLockShared "pg_try_advisory_lock_shared"(INT8) -> BOOL true;
    TryAdvisoryLockShared2 "pg_try_advisory_lock_shared"(INT4, INT4) -> BOOL true;
    TryAdvisoryXactLock "pg_try_advisory_xact_lock"(INT8) -> BOOL true;
    TryAdvisoryXactLock2 "pg_try_advisory_xact_lock"(INT4, INT4) -> BOOL true;
    TryAdvisoryXactLockShared "pg_try_advisory_xact_lock_shared"(INT8) -> BOOL true;
    TryAdvisoryXactLockShared2 "pg_try_advisory_xact_lock_shared"(INT4, INT4) -> BOOL true;
    AdvisoryUnlock "pg_advisory_unlock"(INT8) -> BOOL true;
    AdvisoryUnlock2 "pg_advisory_unlock"(INT4, INT4) -> BOOL true;
    AdvisoryUnlockShared "pg_advisory_unlock_shared"(INT8) -> BOOL true;
    AdvisoryUnlockShared2 "pg_advisory_unlock_shared"(INT4, INT4) -> BOOL true;
    AdvisoryUnlockAll "pg_advisory_unlock_all"() -> VOID true;
    BlockingPids "pg_blocking_pids"(INT4) -> INT4_ARRAY true;
    TestSessionIsBlocked "pg_isolation_test_session_is_blocked"(INT4, INT4_ARRAY) -> BOOL true;
    CancelBackend "pg_cancel_backend"(INT4) -> BOOL true;
    TerminateBackend "pg_terminate_backend"(INT4) -> BOOL true;
    TerminateBackendWithin "pg_terminate_backend"(INT4, INT8) -> BOOL true;
    GetExpr "pg_get_expr"(TEXT, OID) -> TEXT true;
    GetExprPretty "pg_get_expr"(TEXT, OID, BOOL) -> TEXT true;
    GetIndexdef "pg_get_indexdef"(OID) -> TEXT true;
    GetIndexdefColumn "pg_get_indexdef"(OID, INT4, BOOL) -> TEXT true;
    GetConstraintdef "pg_get_constraintdef"(OID) -> TEXT true;
    GetConstraintdefPretty "pg_get_constraintdef"(OID, BOOL) -> TEXT true;
    TableIsVisible "pg_table_is_visible"(OID) -> BOOL true;
    GetUserById "pg_get_userbyid"(OID) -> NAME true;
    RelationSize "pg_relation_size"(REGCLASS) -> INT8 true;
    RelationForkSize "pg_relation_size"(REGCLASS, TEXT) -> INT8 true;
    TotalRelationSize "pg_total_relation_size"(REGCLASS) -> INT8 true;
    TableSize "pg_table_size"(REGCLASS) -> INT8 true;
    IndexesSize "pg_indexes_size"(REGCLASS) -> INT8 true;
    DatabaseSizeNamed "pg_database_size"(NAME) -> INT8 true;
    DatabaseSize "pg_database_size"(OID) -> INT8 true;
    TablespaceSizeNamed "pg_tablespace_size"(NAME) -> INT8 true;
    TablespaceSize "pg_tablespace_size"(OID) -> INT8 true;
    GetViewdef "pg_get_viewdef"(OID) -> TEXT true;
    GetViewdefPretty "pg_get_viewdef"(OID, BOOL) -> TEXT true;
    ObjDescription "obj_description"(OID, NAME) -> TEXT true;
    ObjDescriptionAny "obj_description"(OID) -> TEXT true;
    ShobjDescription "shobj_description"(OID, NAME) -> TEXT true;
    ColDescription "col_description"(OID, INT4) -> TEXT true;
    PgNotify "pg_notify"(TEXT, TEXT) -> VOID false;
    NotificationQueueUsage "pg_notification_queue_usage"() -> FLOAT8 true;
    Backup "clearway_backup"(TEXT) -> BYTEA true;
    CreateRestorePoint "pg_create_restore_point"(TEXT) -> INT8 true;
    CurrentWalLsn "pg_current_wal_lsn"() -> PG_LSN false;
    CurrentWalInsertLsn "pg_current_wal_insert_lsn"() -> PG_LSN false;
    CurrentWalFlushLsn "pg_current_wal_flush_lsn"() -> PG_LSN false;
    StatReset "pg_stat_reset"() -> VOID false;
    StatResetShared "pg_stat_reset_shared"(TEXT) -> VOID true;
    StatResetTable "pg_stat_reset_single_table_counters"(OID) -> VOID true;
    StatResetFunction "pg_stat_reset_single_function_counters"(OID) -> VOID true;
    StatResetSlru "pg_stat_reset_slru"(TEXT) -> VOID false;
    StatClearSnapshot "pg_stat_clear_snapshot"() -> VOID false;
    StatForceNextFlush "pg_stat_force_next_flush"() -> VOID false;
    RecordSlow "record_slow"(INTERVAL, INTERVAL, INT8) -> VOID true;
    LoCreat "lo_creat"(INT4) -> OID true;
    LoCreate "lo_create"(OID) -> OID true;
    LoOpen "lo_open"(OID, INT4) -> INT4 true;
    LoClose "lo_close"(INT4) -> INT4 true;
    LoRead "loread"(INT4, INT4) -> BYTEA true;
    LoWrite "lowrite"(INT4, BYTEA) -> INT4 true;
    LoSeek "lo_lseek"(INT4, INT4, INT4) -> INT4 true;
    LoSeek64 "lo_lseek64"(INT4, INT8, INT4) -> INT8 true;
    LoTell "lo_tell"(INT4) -> INT4 true;
    LoTell64 "lo_tell64"(INT4) -> INT8 true;
    LoTruncate "lo_truncate"(INT4, INT4) -> INT4 true;
    LoTruncate64 "lo_truncate64"(INT4, INT8) -> INT4 true;
    LoUnlink "lo_unlink"(OID) -> INT4 true;
    LoGet "lo_get"(OID) -> BYTEA true;
    LoGetFragment "lo_get"(OID, INT8, INT4) -> BYTEA true;
    LoPut "lo_put"(OID, INT8, BYTEA) -> VOID true;
    LoFromBytea "lo_from_bytea"(OID, BYTEA) -> OID true;
    LoImport "lo_import"(TEXT) -> OID true;
    LoImportAs "lo_import"(TEXT, OID) -> OID true;
    LoExport "lo_export"(OID, TEXT) -> INT4 true;
    StatementsReset "pg_stat_statements_reset"() -> VOID false;
    StatementsResetOf "pg_stat_statements_reset"(OID, OID, INT8) -> VOID true;
}
