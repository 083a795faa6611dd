//! The errors of the embedded library.

use std::path::PathBuf;

use clearway_storage::error::StorageError;
use clearway_txn::error::TxnError;

use crate::error::EngineError;

/// An error of the embedded library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has the directory open; or this one, a second time.
    #[error("{} is open in process {pid}; one process at a time can have it, others reach it through its listener", dir.display())]
    Held {
        /// The directory.
        dir: PathBuf,
        /// The process; 0 if its lock file does not tell.
        pid: u32,
    },
    /// A table of the name is there, with other columns or another key.
    #[error("table \"{table}\" is not as declared: {what}")]
    Mismatch {
        /// The table.
        table: String,
        /// What is different.
        what: String,
    },
    /// The declaration of a table names too few columns, or too many, or one twice.
    #[error("table \"{table}\" is badly declared: {what}")]
    Declaration {
        /// The table.
        table: String,
        /// What is wrong.
        what: String,
    },
    /// A stored value is none of the type that the table was declared with.
    #[error("a row of table \"{table}\" has a value that its declared type cannot hold")]
    Value {
        /// The table.
        table: String,
    },
    /// The transaction has failed and can only end; an earlier error was ignored.
    #[error("the transaction has failed: the closure ignored an error of one of its operations")]
    Failed,
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
    /// A directory or a thread could not be made.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: String,
    },
    /// From the engine.
    #[error(transparent)]
    Engine(EngineError),
}

impl Error {
    /// Whether the transaction may succeed if it is run again from its beginning: SQLSTATE 40001 or 40P01. The closures given to
    /// `transact` are run again without being asked; this is for programs that begin and commit by hand.
    pub fn is_retryable(&self) -> bool {
        let Error::Engine(EngineError::Txn(error)) = self else { return false };
        matches!(error, TxnError::ConcurrentUpdate | TxnError::ConcurrentDelete | TxnError::Deadlock(_))
    }

    /// Whether a row with the key, or with the values of a unique index, stands there already: SQLSTATE 23505.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Error::Engine(EngineError::Duplicate { .. }))
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Error {
        match error {
            EngineError::Txn(TxnError::Storage(StorageError::Held { dir, pid })) => {
                Error::Held { dir: PathBuf::from(&*dir), pid }
            }
            error => Error::Engine(error),
        }
    }
}

impl From<TxnError> for Error {
    fn from(error: TxnError) -> Error {
        EngineError::from(error).into()
    }
}
