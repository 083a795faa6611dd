//! The numbers that name positions in the log, pages, trees, transactions and undo records, each a type of its own.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A byte position in the log stream; never reused. A commit's LSN is the end of its record, and
    /// `durable_lsn` is exclusive, so a commit is durable when `durable_lsn >= commit_lsn`.
    Lsn(u64), "lsn:");
id!(
    /// The number of an 8 KiB page in the database's page space.
    PageId(u32), "page:");
id!(
    /// A tree (table or index), unique across all databases of a directory; never reused.
    TreeId(u64), "tree:");
id!(
    /// A transaction that changed something; 64 bits, never reused, no wraparound.
    TxnId(u64), "txn:");
id!(
    /// What a row with live history carries: the address of its undo record. Monotonic, never reused; opaque to storage.
    Tag(u64), "tag:");

impl Lsn {
    /// Before every record.
    pub const ZERO: Lsn = Lsn(0);
    /// After every record.
    pub const MAX: Lsn = Lsn(u64::MAX);
}

impl TxnId {
    /// No transaction: structure changes and purges.
    pub const NONE: TxnId = TxnId(0);
}

impl Tag {
    /// The row has no live history: every snapshot sees it.
    pub const SETTLED: Tag = Tag(0);

    /// Whether the row carries no tag.
    pub fn is_settled(self) -> bool {
        self == Tag::SETTLED
    }
}
