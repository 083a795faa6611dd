//! Translates the engine's errors to SQL errors: SQLSTATE and PostgreSQL's message, in one table.

use clearway_base::vfs::VfsError;
use clearway_engine::catalog::{Catalog, Oid};
use clearway_engine::error::EngineError;
use clearway_storage::error::StorageError;
use clearway_syntax::error::{SqlError, code};
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::LockTag;
use clearway_txn::lockmgr::report::{DeadlockReport, Participant};
use std::io::ErrorKind;

/// An engine's error as the client sees it, where nothing more is known of it.
pub fn from_engine(e: EngineError) -> SqlError {
    match e {
        EngineError::Txn(e) => from_txn(e),
        EngineError::Duplicate { .. } => SqlError::new("23505", e.to_string()),
        EngineError::Exists { kind, .. } => {
            let code = match kind {
                "database" => "42P04",
                "schema" => "42P06",
                "role" => "42710",
                _ => "42P07",
            };
            let message = e.to_string();
            let relation = matches!(kind, "table" | "view" | "materialized view" | "index" | "sequence");
            SqlError::new(code, if relation { message.replacen(kind, "relation", 1) } else { message })
        }
        EngineError::Missing { kind, .. } => {
            let code = match kind {
                "database" => "3D000",
                "schema" => code::INVALID_SCHEMA_NAME,
                "relation" => code::UNDEFINED_TABLE,
                _ => code::UNDEFINED_OBJECT,
            };
            SqlError::new(code, e.to_string())
        }
        EngineError::Overtaken { dropped, ref object } => {
            let did = if dropped { "dropped" } else { "changed" };
            SqlError::new(code::INTERNAL_ERROR, e.to_string())
                .detail(format!("Another transaction has {did} {object} since this statement read its definition."))
                .hint("Run the statement again.")
        }
        EngineError::DoesNotFit { .. } => SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, e.to_string()),
        EngineError::BadCatalog(_) | EngineError::BadRow { .. } => SqlError::new("XX001", e.to_string()),
        EngineError::Terms(e) => match e.downcast_ref::<SqlError>() {
            Some(e) => e.clone(),
            None => SqlError::internal(e.to_string()),
        },
        EngineError::NoCompiler(_) | EngineError::NamesTemporary { .. } => {
            SqlError::new(code::FEATURE_NOT_SUPPORTED, e.to_string())
        }
        EngineError::InUse(_) => SqlError::new("55006", e.to_string()),
        EngineError::Aborted => SqlError::new("25P02", e.to_string()),
    }
}

fn from_txn(e: TxnError) -> SqlError {
    let code = match &e {
        TxnError::ConcurrentUpdate | TxnError::ConcurrentDelete => "40001",
        TxnError::Deadlock(report) => return deadlock(report.as_deref()),
        TxnError::LockNotAvailable => "55P03",
        TxnError::LocksWithoutRoom { locks } => {
            let hint = "Lock or change fewer rows in one transaction, or give the server more server_memory.";
            return SqlError::new("53200", e.to_string())
                .detail(format!("The transaction has {locks} locks of rows and advisory locks."))
                .hint(hint);
        }
        TxnError::ReadOnly => "25006",
        TxnError::Canceled => "57014",
        TxnError::Storage(s) => storage_code(s),
    };
    SqlError::new(code, e.to_string())
}

fn storage_code(e: &StorageError) -> &'static str {
    match e {
        StorageError::Corruption(_) => "XX001",
        StorageError::NoSpace(_) => "53100",
        StorageError::KeyTooLong { .. } | StorageError::ValueTooLong { .. } => code::PROGRAM_LIMIT_EXCEEDED,
        StorageError::Io(_) => "58030",
        StorageError::Poisoned(_) => "08007",
        StorageError::Held { .. } => "55006",
        StorageError::NoSuchTree(_) | StorageError::Invalid(_) => code::INTERNAL_ERROR,
    }
}

/// A failed operation on a file of the server's machine: `what: the system's text`.
pub fn of_file(what: &str, e: &VfsError) -> SqlError {
    let state = match e.kind() {
        ErrorKind::NotFound => "58P01",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "42501",
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => "42809",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "53100",
        _ => "58030",
    };
    let system = e.source.to_string();
    let system = system.split(" (os error").next().unwrap_or_default();
    SqlError::new(state, format!("{what}: {system}"))
}

/// `Process N waits for ShareLock on transaction M; blocked by process K.`
pub fn deadlock(report: Option<&DeadlockReport>) -> SqlError {
    let error = SqlError::new("40P01", "deadlock detected");
    let Some(report) = report else { return error };
    let ring = &report.participants;
    let lines = ring.iter().enumerate().map(|(i, p)| {
        let next = &ring[(i + 1) % ring.len()];
        let (mode, what) = awaited(p, next);
        format!("Process {} waits for {mode} on {what}; blocked by process {}.", p.pid, next.pid)
    });
    let error = error.detail(lines.collect::<Vec<_>>().join("\n")).hint("See server log for query details.");
    if report.context.is_empty() { error } else { error.context(report.context.as_str()) }
}

/// What a participant waits for, as PostgreSQL names it: rows and unique keys are waited for as their writer's id.
fn awaited(p: &Participant, next: &Participant) -> (&'static str, String) {
    let txn = next.txn.map_or(0, |t| t.0);
    match &p.wanted {
        LockTag::Row { .. } | LockTag::UniqueKey { .. } | LockTag::Place { .. } => {
            ("ShareLock", format!("transaction {txn}"))
        }
        LockTag::Transaction(id) => ("ShareLock", format!("transaction {}", id.0)),
        LockTag::Relation { database, relation } => {
            (p.mode.name(), format!("relation {relation} of database {database}"))
        }
        LockTag::VirtualTransaction(v) => (p.mode.name(), format!("virtual transaction {v}")),
        LockTag::Object { database, class, object } => {
            (p.mode.name(), format!("object {object} of class {class} of database {database}"))
        }
        LockTag::Advisory { database, key } => {
            let (class, object, sub) = key.columns();
            (p.mode.name(), format!("advisory lock [{database},{class},{object},{sub}]"))
        }
    }
}

/// With the table that an error is about.
pub fn about(error: SqlError, catalog: &Catalog, table: Oid) -> SqlError {
    let Some(relation) = catalog.relation(table) else {
        return match super::views::by_oid(table) {
            Some(view) => error.table(view.schema, view.name),
            None => error,
        };
    };
    let schema = catalog.get(relation.schema).map_or("", |s| s.name());
    error.table(schema, relation.name.as_str())
}

/// 40001: a row that the transaction's snapshot does not see as it is now.
pub fn concurrent(deleted: bool) -> SqlError {
    let what = if deleted { "delete" } else { "update" };
    SqlError::new("40001", format!("could not serialize access due to concurrent {what}"))
}

/// PostgreSQL's words for a row that is to be locked are those of a change, also where it was deleted.
pub fn not_locked(e: SqlError) -> SqlError {
    if e.code() == "40001" { concurrent(false) } else { e }
}

/// Whether an error says that a lock was taken.
pub fn is_lock_not_available(e: &EngineError) -> bool {
    matches!(e, EngineError::Txn(TxnError::LockNotAvailable))
}

/// `VACUUM cannot run inside a transaction block`.
pub fn in_block(what: &str) -> SqlError {
    SqlError::new("25001", format!("{what} cannot run inside a transaction block"))
}
