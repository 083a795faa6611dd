//! One state of the modelled database: what memory holds, what the disk holds, what the sessions are doing, and the ground
//! truth that no part of the protocol may read.

use super::short::Short;

/// A position in the log: the number of records up to and including the one that ends there; 0 is the beginning.
pub type Lsn = u8;
/// An address in the undo store, 0 for none. A row's tag is the address of the undo record of its newest change.
pub type Addr = u8;
/// A transaction's id, 0 for none. Fixed per session and position in its program, so that interleavings share states.
pub type TxnId = u8;

/// Rows 0 to 2 belong to the table; row 3 is the catalog's entry for that table.
pub const ROWS: usize = 4;
/// The catalog's row.
pub const CATALOG: usize = 3;
/// Pages 0 and 1 hold the table, page 2 the catalog.
pub const PAGES: usize = 3;
/// Sessions that run at once.
pub const SESSIONS: usize = 3;
/// Transactions that one program may begin.
pub const TXNS_PER_PROGRAM: usize = 3;
/// Transaction ids, id 0 unused; the fourth program is the one that runs after the first recovery.
pub const TXNS: usize = 4 * TXNS_PER_PROGRAM + 1;
/// No snapshot is held.
pub const NO_SNAPSHOT: Lsn = Lsn::MAX;

/// What stands in a row's place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, PartialOrd, Ord)]
pub enum Body {
    /// The key is not in the page.
    #[default]
    Absent,
    /// A deleted row whose ghost still stands.
    Ghost,
    /// A live row.
    Value(u8),
}

impl Body {
    /// What a reader is told of such a row.
    pub fn seen(self) -> Option<u8> {
        match self {
            Body::Value(value) => Some(value),
            Body::Absent | Body::Ghost => None,
        }
    }
}

/// A row's body with its tag; tag 0 means settled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Version {
    /// What stands there.
    pub body: Body,
    /// The undo record of the change that put it there.
    pub tag: Addr,
}

/// One record of the log; its LSN is its index plus one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Record {
    /// Fills unused slots.
    #[default]
    None,
    /// A change: redo, before-image and row identity in one, with the tag that it writes.
    Change {
        /// The transaction.
        txn: TxnId,
        /// Which row.
        row: u8,
        /// The version before.
        before: Version,
        /// The version after.
        after: Version,
    },
    /// A redo-only compensation record.
    Compensation {
        /// The transaction.
        txn: TxnId,
        /// Which row.
        row: u8,
        /// The version put back.
        restored: Version,
        /// The next undo record of the transaction that is still to be undone, 0 for none.
        undo_next: Addr,
    },
    /// The transaction committed; the end of this record is its commit LSN.
    Commit {
        /// The transaction.
        txn: TxnId,
    },
    /// The transaction has been rolled back completely.
    Aborted {
        /// The transaction.
        txn: TxnId,
    },
    /// A ghost was purged.
    Purge {
        /// Which row.
        row: u8,
    },
}

/// One undo record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Undo {
    /// Where it lies.
    pub addr: Addr,
    /// Whose change it takes back.
    pub txn: TxnId,
    /// Of which row.
    pub row: u8,
    /// The version before the change.
    pub before: Version,
    /// The change has been taken back already.
    pub undone: bool,
    /// It stands in the spill file; reading it is an await.
    pub spilled: bool,
    /// Sessions that could have copied its tag before it was undone and are still in that epoch.
    pub readers: u8,
}

/// A transaction's slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Slot {
    /// Not in use. To a reader that finds a tag of it: retired, hence committed.
    #[default]
    Free,
    /// In progress.
    Active,
    /// Its commit LSN is stored.
    Committed(Lsn),
    /// Every change has been taken back.
    RolledBack,
}

/// A lock object: the table lock or an advisory lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Lock {
    /// Session number plus one, 0 when free.
    pub holder: u8,
    /// The highest commit LSN of its earlier holders.
    pub lsn: Lsn,
    /// The holder has committed; the lock goes when this is durable. 0 before.
    pub goes_at: Lsn,
}

/// What a statement was told about one row, in terms that can be checked against the history of commits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, PartialOrd, Ord)]
pub struct Fact {
    /// Which row.
    pub row: u8,
    /// The commit that put it there, in truth; 0 for the initial contents.
    pub lsn: Lsn,
    /// What the statement was told.
    pub seen: Option<u8>,
}

/// What became of one row of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// A row for the result.
    Row,
    /// The row may be written.
    Write,
    /// Nothing to write: the count goes without it.
    Skip,
    /// Duplicate key, serialization failure.
    Fail,
    /// Its writer is in progress.
    Wait(TxnId),
}

/// A resolved row: the outcome, what it depends on, and the fact it tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Resolved {
    /// What becomes of the row.
    pub outcome: Outcome,
    /// The commit LSN that the outcome depends on.
    pub dep: Lsn,
    /// What it tells of other transactions' commits, if anything.
    pub fact: Option<Fact>,
}

/// Where a session stands within its operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Phase {
    /// Before the next operation of its program.
    #[default]
    Ready,
    /// Has loaded the position its snapshot will have.
    SnapshotLoaded(Lsn),
    /// Has stored it where the pruner looks, and fenced.
    SnapshotStored(Lsn),
    /// About to copy the row of the current item.
    AtItem,
    /// Has copied the row.
    Copied(Version),
    /// Waits for an undo record in the spill file.
    Loading(Version, Addr),
    /// Has resolved the row's tag; the page is still to be validated.
    Resolved(Resolved),
    /// Waits for a row's writer.
    WaitFor(TxnId),
    /// Takes back its changes, newest first, down to an address.
    Undo {
        /// Changes at or below stay.
        down_to: Addr,
        /// What ends when that is done.
        scope: Scope,
    },
    /// Its commit record is reserved in the log.
    Reserved,
    /// Its commit LSN stands in its slot.
    Stored,
    /// The reply is ready and waits for durability as far as it must.
    Reply(Reply),
    /// Its program has ended.
    Done,
}

/// What a rollback takes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scope {
    /// The changes since the savepoint.
    Savepoint,
    /// The changes of the statement that failed.
    Statement,
    /// Everything, by the client's wish.
    Transaction,
    /// Everything, since an autocommit statement failed.
    Autocommit,
}

/// The kinds of reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// Rows of a SELECT.
    Rows,
    /// The count of an autocommit statement that changed nothing.
    Count,
    /// An error.
    Error,
    /// A commit that changed something.
    Commit,
    /// The end of a transaction that changed nothing, or of a rollback.
    End,
}

/// The kind of block a session is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Block {
    /// None: each statement commits by itself.
    #[default]
    Auto,
    /// BEGIN, read committed.
    ReadCommitted,
    /// BEGIN ISOLATION LEVEL REPEATABLE READ.
    RepeatableRead,
    /// BEGIN READ ONLY.
    ReadOnly,
}

/// One session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Session {
    /// Which program it runs; 3 is the one after recovery.
    pub program: u8,
    /// The next operation.
    pub op: u8,
    /// The item of the operation.
    pub item: u8,
    /// Where it stands in it.
    pub phase: Phase,
    /// The kind of block.
    pub block: Block,
    /// Transactions begun so far.
    pub txns_begun: u8,
    /// The current transaction, 0 before its first change.
    pub txn: TxnId,
    /// The statement's or transaction's snapshot; what the pruner sees as active read LSN.
    pub snapshot: Lsn,
    /// Inside a reader epoch: it holds a copy of a row.
    pub in_epoch: bool,
    /// The page changed since the copy was taken.
    pub stale: bool,
    /// The undo record came from the spill file after the copy was taken (planted mutations only).
    pub awaited: bool,
    /// `dep_lsn` of the statement.
    pub dep: Lsn,
    /// `dep_lsn` of the transaction so far.
    pub txn_dep: Lsn,
    /// The session's own last commit.
    pub own_commit: Lsn,
    /// The highest LSN of a lock that was handed to it.
    pub lock_lsn: Lsn,
    /// The commit LSN of the transaction that is being committed.
    pub commit_lsn: Lsn,
    /// The last undo address given out before the savepoint: the transaction's changes above it come after.
    pub savepoint: Addr,
    /// The same at the statement's start.
    pub mark: Addr,
    /// Truth: facts of the statement that are not told yet.
    pub facts: Short<Fact, 6>,
    /// Truth: facts of bare command tags, told when the transaction ends.
    pub txn_facts: Short<Fact, 6>,
    /// Truth: what the transaction has written.
    pub writes: Short<(u8, Body), 4>,
    /// Truth: how many of them were there at the savepoint.
    pub writes_at_savepoint: u8,
    /// Truth: how many of them were there at the statement's start.
    pub writes_at_mark: u8,
    /// Truth: the commit of the newest version of each row that the session was told of.
    pub newest_seen: [Lsn; ROWS],
}

/// Truth: one committed transaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Commit {
    /// Its commit LSN.
    pub lsn: Lsn,
    /// What it left behind, in the order it was written.
    pub writes: Short<(u8, Body), 4>,
}

/// Pages in memory or on disk: contents and page LSNs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Pages {
    /// The newest version of every row, in place.
    pub rows: [Version; ROWS],
    /// The last record applied to each page.
    pub lsn: [Lsn; PAGES],
}

/// The last completed checkpoint, on disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Checkpoint {
    /// Its position.
    pub lsn: Lsn,
    /// The position of the one before: the analysis starts behind it.
    pub previous_lsn: Lsn,
    /// The first record that redo may need.
    pub redo_lsn: Lsn,
    /// Transactions active at its position, as a set of ids.
    pub active: u16,
    /// The highest undo address given out at its position.
    pub mark: Addr,
    /// Undo of the transactions that were active at the previous checkpoint.
    pub saved: Short<Undo, 6>,
}

/// Where the checkpointer stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Checkpointing {
    /// Idle.
    #[default]
    Idle,
    /// Position, dirty pages and active transactions are noted.
    Begun(Checkpoint),
    /// The undo is saved; the log must be durable up to the position given before it counts.
    Saved(Checkpoint, Lsn),
}

/// Where the pruner stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Pruner {
    /// Idle.
    #[default]
    Idle,
    /// Has published the target it aims at.
    Published(Lsn),
    /// Has looked at every active snapshot: it may prune up to the first position, and what lies between snapshots up to
    /// the second, its target.
    Scanned(Lsn, Lsn),
}

/// Whether the database runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Life {
    /// The first run.
    #[default]
    Running,
    /// Crashed, not yet recovered.
    Down,
    /// Redone; losers may still have changes to take back.
    Recovered,
}

/// A whole state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct State {
    /// Whether the database runs.
    pub life: Life,
    /// Crashes so far.
    pub crashes: u8,
    /// Checkpoints begun so far.
    pub checkpoints: u8,
    /// Spills so far.
    pub spills: u8,
    /// The pages in memory.
    pub memory: Pages,
    /// The first record since each page was last written, 0 when it is clean.
    pub first_dirty: [Lsn; PAGES],
    /// The pages on disk.
    pub disk: Pages,
    /// The undo store.
    pub undo: Short<Undo, 12>,
    /// The last undo address that was given out.
    pub last_addr: Addr,
    /// The transactions' slots.
    pub slots: [Slot; TXNS],
    /// Transactions that recovery has to take back, as a set of ids.
    pub losers: u16,
    /// Commits up to here are visible.
    pub visible_lsn: Lsn,
    /// The log is durable up to here, as far as the database believes.
    pub durable_lsn: Lsn,
    /// The log is on disk up to here for sure.
    pub synced_lsn: Lsn,
    /// The horizon that the pruner has published.
    pub horizon: Lsn,
    /// Where the pruner stands.
    pub pruner: Pruner,
    /// The table lock and the advisory lock.
    pub locks: [Lock; 2],
    /// The log.
    pub log: Short<Record, 20>,
    /// The last completed checkpoint.
    pub master: Checkpoint,
    /// The checkpoint in progress.
    pub checkpointing: Checkpointing,
    /// The sessions.
    pub sessions: [Session; SESSIONS],
    /// Truth (MODEL-5): commits in their order.
    pub history: Short<Commit, 6>,
    /// Truth: facts that clients were told and that a crash could still belie.
    pub told: Short<Fact, 10>,
    /// Truth: the highest commit LSN that a client was told of.
    pub acknowledged: Lsn,
}

impl State {
    /// The end of the log.
    pub fn end_lsn(&self) -> Lsn {
        self.log.len() as Lsn
    }

    /// The undo record at `addr`, if it is still there.
    pub fn undo_at(&self, addr: Addr) -> Option<&Undo> {
        self.undo.iter().find(|undo| undo.addr == addr)
    }
}
