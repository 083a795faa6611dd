//! Exported snapshots: transactions of other sessions read under the snapshot of the transaction that exported it.
//!
//! # Life of an exported snapshot
//! A transaction exports a snapshot: a reader of its own holds it, and an id names it -> other transactions import it, each as the snapshot that it
//! keeps -> the transaction that exported it ends, in whatever way: the id is forgotten. Transactions that have imported the snapshot keep it.
//!
//! # Invariants
//! - XPT-1: a snapshot that an id names is open (SNP-4): snapshots are imported and ids forgotten under one mutex.
//! - XPT-2: an open database gives an id to one snapshot only, also after it is forgotten: a late import gets no other snapshot.
//! - XPT-3: replies of a transaction that has imported a snapshot wait until everything that the snapshot shows is durable (SES-4).
//! - XPT-4: an exported snapshot is nothing but an LSN: changes of the transaction that exported it are not seen through it, whether that transaction
//!   commits or not.

use std::collections::HashMap;

use clearway_base::sync::Mutex;
use clearway_txn::mvcc::snapshots::Reader;

use crate::catalog::Oid;

/// The snapshots that are exported from a database directory.
#[derive(Debug)]
pub(crate) struct Exported {
    registry: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    /// How many transactions have exported snapshots.
    transactions: u64,
    snapshots: HashMap<String, Export>,
}

/// An exported snapshot, and what its transaction was then.
#[derive(Debug)]
pub(crate) struct Export {
    /// Holds the snapshot, and nothing else.
    pub(crate) reader: Reader,
    pub(crate) database: Oid,
    pub(crate) serializable: bool,
    pub(crate) read_only: bool,
}

/// What a session's open transaction has exported.
#[derive(Debug, Default)]
pub(crate) struct OwnExports {
    /// Its number among the transactions that have exported snapshots.
    transaction: u64,
    count: u32,
}

impl OwnExports {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The id of one of them, in PostgreSQL's form.
    fn id(&self, session: u32, number: u32) -> String {
        format!("{session:08X}-{:08X}-{number}", self.transaction)
    }
}

impl Default for Exported {
    fn default() -> Self {
        Exported { registry: Mutex::new("engine/exported_snapshots", Registry::default()) }
    }
}

impl Exported {
    /// Adds a snapshot to those of a session's transaction; its id.
    pub(crate) fn add(&self, own: &mut OwnExports, session: u32, export: Export) -> String {
        let mut registry = self.registry.lock();
        if own.is_empty() {
            registry.transactions += 1; // XPT-2
            own.transaction = registry.transactions;
        }
        own.count += 1;
        let id = own.id(session, own.count);
        registry.snapshots.insert(id.clone(), export);
        id
    }

    /// Imports a snapshot, which stays open meanwhile (XPT-1); none: the id names none.
    pub(crate) fn import<T>(&self, id: &str, import: impl FnOnce(&Export) -> T) -> Option<T> {
        self.registry.lock().snapshots.get(id).map(import)
    }

    /// Forgets what a session's transaction has exported.
    #[cold]
    pub(crate) fn withdraw(&self, own: OwnExports, session: u32) {
        let mut registry = self.registry.lock();
        for number in 1..=own.count {
            registry.snapshots.remove(&own.id(session, number));
        }
    }
}
