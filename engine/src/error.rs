//! What can go wrong in the engine.

use std::sync::Arc;

use clearway_storage::error::StorageError;
use clearway_txn::error::TxnError;

use crate::codec::row::RowDamage;
use crate::value::Value;

/// An error of the engine. The comment gives the SQLSTATE that it becomes.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// From a transaction: conflicts, deadlocks, storage.
    #[error(transparent)]
    Txn(#[from] TxnError),
    /// 23505: a row with this key stands there.
    #[error("duplicate key value violates unique constraint \"{index}\"")]
    Duplicate {
        /// The index's name.
        index: String,
        /// Its number.
        oid: u32,
        /// The row, where an index was being built from rows that stand; else the caller knows it, and this is empty.
        row: Vec<Value>,
    },
    /// 42710, 42P07, 42P04, 42P06: an object of the name exists.
    #[error("{kind} \"{name}\" already exists")]
    Exists {
        /// What it is.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// 42P01 and its kin: no such object.
    #[error("{kind} \"{name}\" does not exist")]
    Missing {
        /// What was looked for.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// 0A000: what other sessions see names a type that only this one has (TMP-3).
    #[error("{kind} \"{name}\" outlives this session and can't use type \"{ty}\", which is temporary")]
    NamesTemporary {
        /// What it is.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The type.
        ty: String,
    },
    /// XX000, as in PostgreSQL: another transaction has changed an object of the catalog since the statement read it.
    #[error("tuple concurrently {}", if *dropped { "deleted" } else { "updated" })]
    Overtaken {
        /// It has gone.
        dropped: bool,
        /// What and which.
        object: String,
    },
    /// 22003 and its kin: a value does not fit its column's storage.
    #[error("value does not fit column \"{column}\"")]
    DoesNotFit {
        /// The column.
        column: String,
    },
    /// XX001: the stored catalog is damaged.
    #[error("the catalog is damaged: {0}")]
    BadCatalog(String),
    /// XX001: a stored row is damaged.
    #[error("{table}: {damage}")]
    BadRow {
        /// The table.
        table: String,
        /// What is wrong.
        damage: RowDamage,
    },
    /// What the language says of it: an expression of an index has no value for a row.
    #[error("{0}")]
    Terms(Arc<dyn std::error::Error + Send + Sync>),
    /// 0A000: the index computes what only the layer above can.
    #[error("index \"{0}\" is over an expression, which needs the SQL layer")]
    NoCompiler(String),
    /// 55006: the object is in use.
    #[error("{0}")]
    InUse(String),
    /// 25P02: the transaction has failed and only takes ROLLBACK.
    #[error("current transaction is aborted, commands ignored until end of transaction block")]
    Aborted,
}

impl EngineError {
    /// A duplicate tells of this row.
    pub fn of_row(mut self, values: &[Value]) -> EngineError {
        if let EngineError::Duplicate { row, .. } = &mut self {
            *row = values.to_vec();
        }
        self
    }
}

impl From<StorageError> for EngineError {
    fn from(error: StorageError) -> EngineError {
        EngineError::Txn(error.into())
    }
}
