//! A session: its open transaction, its snapshots, and the catalog as its transaction sees it.
//!
//! # Life of a statement
//! `begin` (or a block is open) -> `open_statement` gives a view -> reads and changes -> `close_statement` -> `wait_reply` or `commit`.
//! One that fails is rolled back to its mark.
//!
//! # Invariants
//! - SES-3: a statement reads at the durable LSN (or at the session's own last commit, if that is later) only if it is proven to read only and
//!   is outside a block or in a read-only block. Every other statement reads at the visible LSN, or at a snapshot that was imported (`crate::exported`),
//!   and notes the commits on which its results depend. So a session that is granted a lock sees what the previous holder committed.
//! - SES-4: rows, counts and errors leave only when everything on which they depend is durable; `wait_reply` and `commit` wait for that.
//! - SES-5: a name that is created or dropped stays locked until the transaction ends, so no two transactions publish the same name.
//! - SES-6: a statement that used the catalog depends on the commit that published that version of the catalog.
//! - SES-7, SES-8: an object does not change between its reading and its replacement, and no object names one that was dropped (`ddl`).

mod alone;
pub mod at_once;
mod basis;
pub mod batch;
mod build;
mod ddl;
mod exported;
pub mod few;
pub mod load;
pub mod online;
mod reply;
pub mod rewrite;
mod rows;
mod runs;
mod statements;
pub(crate) mod temporary;

use std::sync::Arc;

use clearway_base::waits::{self, Object as WaitObject, WaitEvent, in_wait};
use clearway_storage::ids::{Lsn, TreeId};
use clearway_storage::recovery::CommitBody;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::step_aside::StepAsideTerms;
use clearway_txn::lockmgr::{IfTaken, LockMark, LockMode, LockScope, LockTag, Owner, Request};
use clearway_txn::mutation::{self, Mutation};
use clearway_txn::mvcc::book::View;
use clearway_txn::mvcc::snapshots::{Reader, Snapshot};
use clearway_txn::read::Reading;
use clearway_txn::transaction::{Mark as TxnMark, Transaction};

use crate::catalog::{Catalog, Oid, change::CatalogChange};
use crate::db::Db;
use crate::error::EngineError;
use crate::exported::OwnExports;
use crate::progress::Progress;
use crate::table::row_id::RowIdRanges;
use crate::table::statistics::Changes;
use crate::table::usage::{Ended, Used};
use crate::table::use_tally::UseTally;
use crate::value::Value;

pub use exported::ImportRefused;
pub use reply::ReplyDue;

/// What a transaction sees of other transactions' commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees what was committed when the statement began.
    #[default]
    ReadCommitted,
    /// All statements see what was committed when the first one began; a change of a row that was changed since fails.
    RepeatableRead,
}

/// The properties of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxnOptions {
    /// What it sees of other transactions' commits.
    pub isolation: Isolation,
    /// Whether it may change nothing.
    pub read_only: bool,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// For its own durability.
    #[default]
    Wait,
    /// For nothing (`synchronous_commit = off`): a crash may lose the commit.
    Async,
}

/// Whether a statement may read at the durable LSN (SES-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementMode {
    /// The statement is proven to read only and to take no row lock, and stands outside a block or in a read-only block.
    ReadOnly,
    /// Any other statement.
    Write,
}

/// A running statement; it is ended by `close_statement`.
#[derive(Debug)]
pub struct Statement {
    /// The view at which it reads.
    pub view: View,
    snapshot: Option<Snapshot>,
}

/// A point in a transaction to which it can be rolled back.
#[derive(Clone, Debug)]
pub struct Mark {
    txn: Option<TxnMark>,
    locks: LockMark,
    changes: usize,
    dropped: usize,
    created: usize,
}

/// The newest version of a row, locked.
#[derive(Clone, Debug)]
pub struct Locked {
    /// All columns; empty if the row is deleted.
    pub row: Vec<Value>,
    /// Whether the row is deleted.
    pub ghost: bool,
    /// When that version was committed; zero if every snapshot sees it, or if it is the transaction's own.
    pub commit: Lsn,
    /// If the transaction itself made that version: the number of that change within the transaction.
    pub mine: Option<u32>,
    /// If the row's key was changed: the new key.
    pub moved_to: Option<Box<[u8]>>,
    /// Whether columns to which a foreign key may refer were changed since the LSN for which the caller asked.
    pub key_changed: bool,
}

/// A session.
pub struct Session {
    db: Arc<Db>,
    database: Oid,
    owner: Arc<Owner>,
    reader: Reader,
    txn: Option<Box<Transaction>>,
    /// The transaction that ended last; the next one reuses it.
    ended: Option<Box<Transaction>>,
    options: TxnOptions,
    /// A statement of the transaction has had a snapshot.
    queried: bool,
    /// The transaction has a savepoint.
    in_savepoint: bool,
    /// Repeatable read: the snapshot of the whole transaction.
    kept: Option<Snapshot>,
    exported: OwnExports,
    changes: Vec<CatalogChange>,
    basis: basis::Basis,
    private: Option<(Lsn, (u64, usize), Arc<Catalog>)>,
    temporary: temporary::Temporary,
    dropped: Vec<TreeId>,
    /// The last savepoint to which the transaction can go back.
    savepoint: Option<TxnMark>,
    /// Before a change that was left half made (HLF-1).
    half: Option<Mark>,
    row_ids: RowIdRanges,
    counted: Changes,
    pub(crate) used: Used,
    use_tally: Arc<UseTally>,
    reading: Reading,
    dep_lsn: Lsn,
    last_commit: Lsn,
    /// See [`Session::set_relaxed`].
    relaxed: bool,
    /// See [`Session::expect_two_rows`].
    two_rows: bool,
    progress: Arc<Progress>,
}

impl Db {
    /// Opens a session in a database; `pid` is the number by which other sessions know it.
    pub fn session(self: &Arc<Self>, pid: i32, database: Oid) -> Session {
        Session::new(self.clone(), pid, database)
    }
}

impl Session {
    pub(crate) fn new(db: Arc<Db>, pid: i32, database: Oid) -> Session {
        let owner = db.transactions().locks().register(pid);
        let reader = db.transactions().book().snapshots().reader_of(Some(owner.clone()));
        let use_tally = db.usage().tally(database);
        Session {
            db,
            database,
            owner,
            reader,
            txn: None,
            ended: None,
            options: TxnOptions::default(),
            queried: false,
            in_savepoint: false,
            kept: None,
            exported: OwnExports::default(),
            changes: Vec::new(),
            basis: basis::Basis::default(),
            private: None,
            temporary: temporary::Temporary::default(),
            dropped: Vec::new(),
            savepoint: None,
            half: None,
            row_ids: RowIdRanges::default(),
            counted: Changes::default(),
            used: Used::default(),
            use_tally,
            reading: Reading::default(),
            dep_lsn: Lsn::ZERO,
            last_commit: Lsn::ZERO,
            relaxed: false,
            two_rows: false,
            progress: Arc::default(),
        }
    }

    /// Sets whether this session acknowledges its commits before they are durable. If so, its reads outside a block see at once what other such
    /// sessions have acknowledged, and its replies wait until that is durable (SES-4). Other sessions may see the same one flush later.
    pub fn set_relaxed(&mut self, relaxed: bool) {
        self.relaxed = relaxed;
    }

    /// From now on this session's transactions under repeatable read may insert a key whose row their snapshot shows and another transaction has
    /// deleted since. Walks then give both rows ([`TableScan::next_shown`](crate::table::scan::TableScan::next_shown)), look-ups the new one
    /// ([`Session::found_shown`]). Without it such an insert is a `ConcurrentDelete`.
    pub fn expect_two_rows(&mut self) {
        self.two_rows = true;
    }

    /// The opened database directory.
    pub fn db(&self) -> &Arc<Db> {
        &self.db
    }

    /// The database in which it works.
    pub fn database(&self) -> Oid {
        self.database
    }

    /// The session's identity in the lock manager.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Whether the session's catalog is the published one with this [`Db::catalog_version`].
    #[inline]
    pub fn sees_catalog(&self, version: u64) -> bool {
        self.changes.is_empty() && self.temporary.is_empty() && self.db.catalog_version() == version
    }

    /// Begins a transaction.
    ///
    /// # Panics
    /// If one is open.
    pub fn begin(&mut self, options: TxnOptions) {
        self.begin_at(options, waits::now_ns());
    }

    /// The same at this moment of the clock of wait events.
    ///
    /// # Panics
    /// If one is open.
    pub fn begin_at(&mut self, options: TxnOptions, now_ns: u64) {
        assert!(self.txn.is_none(), "one transaction at a time");
        self.db.transactions().store().rest().end();
        self.txn = Some(match self.ended.take() {
            Some(mut txn) => {
                txn.begin_again(options.read_only, now_ns);
                txn
            }
            None => Box::new(Transaction::begin(self.db.transactions().clone(), self.owner.clone(), options.read_only)),
        });
        self.options = options;
        self.queried = false;
        self.in_savepoint = false;
    }

    /// Whether a transaction is open.
    pub fn is_open(&self) -> bool {
        self.txn.is_some()
    }

    /// How the open transaction began.
    pub fn options(&self) -> TxnOptions {
        self.options
    }

    /// Changes the properties of the open transaction, before its first statement.
    pub fn set_options(&mut self, options: TxnOptions) {
        self.options = options;
        if let Some(txn) = &mut self.txn {
            txn.set_read_only(options.read_only);
        }
    }

    /// Lets the statement that runs write in a read-only transaction, or no longer: REINDEX and ANALYZE change nothing that a query sees.
    pub fn lift_read_only(&mut self, lifted: bool) {
        let read_only = self.options.read_only && !lifted;
        if let Some(txn) = &mut self.txn {
            txn.set_read_only(read_only);
        }
    }

    /// Whether a statement of the transaction has had a snapshot.
    pub fn has_queried(&self) -> bool {
        self.queried
    }

    /// Whether the transaction has a savepoint.
    pub fn has_savepoint(&self) -> bool {
        self.in_savepoint
    }

    /// Whether the transaction has taken the snapshot that it keeps (repeatable read).
    pub fn has_snapshot(&self) -> bool {
        self.kept.is_some()
    }

    /// The open transaction.
    ///
    /// # Panics
    /// If none is open: the caller that runs a statement has begun one.
    pub fn txn(&mut self) -> &mut Transaction {
        self.txn.as_mut().expect("a transaction is open")
    }

    /// Commits the transaction. Returns when its changes, and everything that the session was told of, are durable.
    ///
    /// # Errors
    /// `Storage` if the log is poisoned. If the commit record was already reserved, it is then unknown whether the transaction committed.
    pub async fn commit(&mut self, durability: Durability) -> Result<(), EngineError> {
        let changed = self.commit_early(durability).await?;
        if !changed && mutation::active(Mutation::NoDepWaitCounts) {
            return Ok(());
        }
        self.wait_reply().await
    }

    /// Commits without waiting for durability: no client may hear of the commit before everything up to [`Session::dep_lsn`] is durable
    /// (SES-4). Returns whether there was anything to commit.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub async fn commit_early(&mut self, durability: Durability) -> Result<bool, EngineError> {
        assert!(self.half.is_none(), "HLF-1: half a change is not committed");
        // A transaction without an id has changed nothing, so it writes no commit record.
        let body = match self.txn().id() {
            Some(_) => self.commit_body().encode(),
            None => Vec::new(),
        };
        let (db, changes, dropped, held) = (&self.db, &self.changes, &self.dropped, self.temporary.created_now());
        let publish = |lsn| {
            if changes.iter().any(|change| !change.temporary) {
                db.publish(changes, lsn);
            }
            if !held.is_empty() {
                db.transactions().store().held_at_commit(held, lsn); // TMP-1
            }
            if !dropped.is_empty() {
                db.transactions().store().dropped_at_commit(dropped, lsn);
            }
        };
        // `self.txn` keeps the transaction until it has ended: a commit whose future is dropped while it waits for log credit is undone.
        let txn = self.txn.as_mut().expect("a transaction is open");
        let committed = txn.commit(&body, publish).await?;
        let txn = self.txn.take().expect("it was there");
        self.dep_lsn = self.dep_lsn.max(txn.dep_lsn());
        self.ended = Some(txn);
        if self.changes.iter().any(|change| change.temporary) || !self.temporary.created_now().is_empty() {
            let (lsn, before) = (committed.unwrap_or(self.last_commit), self.db.catalog());
            self.temporary.committed(&before, &self.changes, &self.dropped, lsn);
        }
        self.end_transaction(Ended::Committed);
        if let Some(lsn) = committed {
            assert!(lsn > self.last_commit, "a session's commits follow each other");
            self.last_commit = lsn;
            match durability {
                Durability::Wait => self.dep_lsn = self.dep_lsn.max(lsn),
                Durability::Async => self.db.transactions().store().wal().flush_later(lsn),
            }
            self.release_late(lsn).await?;
        }
        Ok(committed.is_some())
    }

    /// Ends a transaction that has changed nothing, as `commit` does, but without waiting for what the session was told of (see `may_reply`).
    /// False if there is something to commit; the transaction then stays open.
    pub fn end_unchanged(&mut self) -> bool {
        match &mut self.txn {
            Some(txn) if txn.id().is_none() && self.changes.is_empty() && self.dropped.is_empty() => {
                txn.end_unchanged()
            }
            _ => return false,
        }
        let txn = self.txn.take().expect("it was there");
        self.dep_lsn = self.dep_lsn.max(txn.dep_lsn());
        self.ended = Some(txn);
        self.end_transaction(Ended::Committed);
        true
    }

    fn commit_body(&self) -> CommitBody {
        CommitBody {
            wall_clock_us: waits::wall_us(),
            origin: 0,
            database: self.database,
            catalog_changed: self.changes.iter().any(|change| !change.temporary),
            // TMP-1
            dropped: self.dropped.iter().chain(self.temporary.created_now()).copied().collect(),
        }
    }

    /// Releases the transaction's advisory locks once its commit is durable, whatever the client waits for.
    async fn release_late(&mut self, lsn: Lsn) -> Result<(), EngineError> {
        let all = self.db.transactions();
        if all.locks().holds_for_transaction(&self.owner) {
            in_wait(WaitEvent::CommitDurable, WaitObject::NONE, all.store().wal().wait_durable(lsn)).await?;
            all.locks().release_transaction(&self.owner, lsn);
        }
        Ok(())
    }

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// Those of the trees.
    pub async fn roll_back(&mut self) -> Result<(), EngineError> {
        self.half = None;
        let Some(txn) = &mut self.txn else {
            return Ok(());
        };
        let undone = txn.roll_back().await;
        self.dep_lsn = self.dep_lsn.max(txn.dep_lsn());
        self.txn = None;
        self.end_transaction(Ended::RolledBack);
        undone?;
        if mutation::active(Mutation::NoDepWaitErrors) {
            return Ok(());
        }
        self.wait_reply().await
    }

    fn end_transaction(&mut self, ended: Ended) {
        self.tell_use(ended);
        if let Some(kept) = self.kept.take() {
            self.reader.end(kept);
        }
        self.withdraw_exports();
        self.changes.clear();
        self.basis = basis::Basis::default();
        self.dropped.clear();
        self.savepoint = None;
        self.temporary.rolled_back();
        // What was made with changes of the transaction is no use to the next one.
        self.private = self.private.take().filter(|(_, (_, changes), _)| *changes == 0);
    }

    /// Adds what the transaction has done to the totals.
    fn tell_use(&mut self, ended: Ended) {
        self.db.usage().add(&mut self.used, &self.use_tally, ended, || self.db.catalog());
    }

    /// What the session has done with tables and indexes.
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// What its long statement has done so far.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// A mark at the transaction's present point.
    pub fn mark(&self) -> Mark {
        Mark {
            txn: self.txn.as_deref().map(Transaction::mark),
            locks: self.owner.mark(),
            changes: self.changes.len(),
            dropped: self.dropped.len(),
            created: self.temporary.created_now().len(),
        }
    }

    /// Rolls back to a mark of this transaction.
    ///
    /// # Errors
    /// Those of the trees.
    pub async fn roll_back_to(&mut self, mark: &Mark) -> Result<(), EngineError> {
        self.half = None;
        if let (Some(txn), Some(to)) = (&mut self.txn, mark.txn) {
            txn.roll_back_to(to).await?;
        } else {
            self.db.transactions().locks().release_to(&self.owner, mark.locks);
        }
        assert!(mark.changes <= self.changes.len(), "changes of the catalog since a mark are those behind it");
        assert!(mark.dropped <= self.dropped.len(), "trees dropped since a mark are those behind it");
        assert!(mark.created <= self.temporary.created_now().len(), "trees made since a mark are those behind it");
        self.changes.truncate(mark.changes);
        self.dropped.truncate(mark.dropped);
        self.temporary.truncate(mark.created);
        self.private = None;
        Ok(())
    }

    /// Takes a lock of any kind.
    ///
    /// # Errors
    /// `LockNotAvailable`, `Deadlock`; for an advisory lock `LocksWithoutRoom`.
    pub async fn lock(
        &mut self,
        tag: LockTag,
        mode: LockMode,
        scope: LockScope,
        if_taken: IfTaken,
    ) -> Result<(), EngineError> {
        // LKM-16. A statement takes any number of these; what it takes of other objects is counted by the rows or the catalog.
        if matches!(tag, LockTag::Advisory { .. })
            && let Some(locks) = self.owner.locks_without_room()
        {
            return Err(TxnError::LocksWithoutRoom { locks }.into());
        }
        let request = Request { owner: &self.owner, tag, mode, scope, if_taken, implicit: None, looks: false };
        let granted = self.db.transactions().locks().acquire(request).await.map_err(TxnError::from)?;
        self.dep_lsn = self.dep_lsn.max(granted.dep_lsn);
        Ok(())
    }

    /// Takes a lock until the transaction ends, and lets other requests pass while it waits.
    ///
    /// # Errors
    /// As [`Session::lock`]; `LockNotAvailable` after the last round if `terms` asks for that.
    pub async fn lock_stepping_aside(
        &mut self,
        tag: LockTag,
        mode: LockMode,
        terms: StepAsideTerms,
    ) -> Result<(), EngineError> {
        let (scope, if_taken) = (LockScope::Transaction, IfTaken::Wait);
        let request = Request { owner: &self.owner, tag, mode, scope, if_taken, implicit: None, looks: false };
        let granted =
            self.db.transactions().locks().acquire_stepping_aside(request, terms).await.map_err(TxnError::from)?;
        self.dep_lsn = self.dep_lsn.max(granted.dep_lsn);
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.counted.report_to(self.db.statistics());
        self.end_transaction(if self.txn.is_some() { Ended::RolledBack } else { Ended::Not });
        self.db.usage().leave(&self.use_tally, || self.db.catalog());
        let trees = self.temporary.end();
        match self.txn.take() {
            // The database takes over the open transaction and undoes it in the background.
            Some(txn) => self.db.leave(*txn, trees),
            None => {
                let all = self.db.transactions();
                all.locks().unregister(&self.owner);
                temporary::release(all.store(), &trees, all.visible_lsn());
            }
        }
    }
}
