//! What can go wrong in a transaction.

use std::sync::Arc;

use clearway_storage::error::StorageError;

use crate::lockmgr::LockError;
use crate::lockmgr::report::DeadlockReport;

/// An error of the transaction layer. The comment gives the SQLSTATE that it becomes.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TxnError {
    /// 40001: the row was changed by a transaction that the snapshot does not see.
    #[error("could not serialize access due to concurrent update")]
    ConcurrentUpdate,
    /// 40001: the row was deleted by a transaction that the snapshot does not see.
    #[error("could not serialize access due to concurrent delete")]
    ConcurrentDelete,
    /// 40P01: waiting for the lock closed a cycle in the waits-for graph.
    #[error("deadlock detected")]
    Deadlock(Option<Arc<DeadlockReport>>),
    /// 55P03: the lock is taken and the statement does not wait.
    #[error("could not obtain lock on row")]
    LockNotAvailable,
    /// 53200: the transaction has so many locks that the server has no memory for another one.
    #[error("out of memory: server_memory is used up")]
    LocksWithoutRoom {
        /// How many it has.
        locks: usize,
    },
    /// 25006: the transaction is read-only.
    #[error("cannot change data in a read-only transaction")]
    ReadOnly,
    /// 57014: the wait was cancelled.
    #[error("canceling statement")]
    Canceled,
    /// From below: I/O, space, corruption, poison.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<LockError> for TxnError {
    fn from(error: LockError) -> TxnError {
        match error {
            LockError::NotAvailable => TxnError::LockNotAvailable,
            LockError::Deadlock(report) => TxnError::Deadlock(report),
            LockError::Abandoned => TxnError::Canceled,
        }
    }
}
