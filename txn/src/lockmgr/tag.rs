//! Lock tags: what can be locked. Virtual transaction ids: the names of transactions without an id.

use std::fmt;
use std::sync::Arc;

use clearway_storage::ids::{TreeId, TxnId};

/// The thing that a lock protects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockTag {
    /// A table, index, view or sequence of a database, by its object id.
    Relation {
        /// The database; 0 for what all databases share.
        database: u32,
        /// The relation's object id.
        relation: u64,
    },
    /// A row, by its tree and full key.
    Row {
        /// The table's tree.
        tree: TreeId,
        /// The row's key bytes.
        key: Arc<[u8]>,
    },
    /// A key of a unique index while its uniqueness is being decided.
    UniqueKey {
        /// The index's tree.
        tree: TreeId,
        /// The key without the primary key that follows it in the entry.
        key: Arc<[u8]>,
    },
    /// The first place among those that wait for the transaction which is changing a key (TXN-14).
    Place {
        /// The tree of the table or index.
        tree: TreeId,
        /// The key; of an index, without the primary key that follows it in the entry.
        key: Arc<[u8]>,
    },
    /// The end of a transaction that has an id.
    Transaction(TxnId),
    /// The end of whatever transaction a session runs now.
    VirtualTransaction(VirtualId),
    /// An object that is no relation: a database, a role, a schema.
    Object {
        /// The database; 0 for what all databases share.
        database: u32,
        /// The catalog in which the object stands.
        class: u32,
        /// The object's id.
        object: u64,
    },
    /// A number that applications agree on.
    Advisory {
        /// The database.
        database: u32,
        /// The key's form and value.
        key: AdvisoryKey,
    },
}

/// A virtual transaction id: session number and a counter of that session's transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualId {
    /// The session's slot number, from 1.
    pub session: u32,
    /// How many transactions the session had begun.
    pub local: u64,
}

impl fmt::Display for VirtualId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.session, self.local)
    }
}

/// An advisory key: the two forms are separate key spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdvisoryKey {
    /// One 64-bit key.
    One(i64),
    /// Two 32-bit keys.
    Two(i32, i32),
}

impl AdvisoryKey {
    /// The columns `classid`, `objid` and `objsubid` of `pg_locks`.
    pub fn columns(self) -> (u32, u32, u16) {
        match self {
            // A cast to u32 takes the bit pattern: that is what pg_locks shows for negative keys.
            AdvisoryKey::One(key) => ((key as u64 >> 32) as u32, key as u32, 1),
            AdvisoryKey::Two(a, b) => (a as u32, b as u32, 2),
        }
    }
}

impl LockTag {
    /// The column `locktype` of `pg_locks`; a unique key is shown as the transaction that is waited for.
    pub fn kind(&self) -> &'static str {
        match self {
            LockTag::Relation { .. } => "relation",
            LockTag::Row { .. } => "tuple",
            LockTag::UniqueKey { .. } | LockTag::Place { .. } => "unique key",
            LockTag::Transaction(_) => "transactionid",
            LockTag::VirtualTransaction(_) => "virtualxid",
            LockTag::Object { .. } => "object",
            LockTag::Advisory { .. } => "advisory",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advisory_keys_show_as_in_pg_locks() {
        assert_eq!(AdvisoryKey::One(1).columns(), (0, 1, 1));
        assert_eq!(AdvisoryKey::One(-1).columns(), (u32::MAX, u32::MAX, 1));
        assert_eq!(AdvisoryKey::One((7 << 32) | 9).columns(), (7, 9, 1));
        assert_eq!(AdvisoryKey::Two(-1, 5).columns(), (u32::MAX, 5, 2));
    }
}
