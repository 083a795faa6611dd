//! An open database directory: storage, transactions, the catalog in memory, and what sessions share.
//!
//! # Life of a database
//! open (`open.rs`): storage recovers -> losers that touched the catalog are undone -> the catalog is read -> open for sessions; the
//! other losers are undone in the background (`upkeep.rs`) while their rows stay locked. close: once no session is left, everything is
//! written to disk.
//!
//! # Invariants
//! - DB-1: the published catalog holds exactly the changes of committed transactions; a transaction publishes its changes before its locks
//!   are released.
//! - DB-2: if a transaction makes an index public or replaces the index's tree, the published index is valid from that transaction's commit
//!   on (`valid_from_lsn`). A snapshot below that commit does not read the index, even if its statement uses a catalog that has it.
//! - DB-3: if a transaction moves a table's rows to a tree with another key, snapshots below that commit see none of them there (`rows_from_lsn`): a statement of a
//!   transaction that keeps such a snapshot fails instead of reading the table as empty.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use clearway_base::sync::Mutex;
use clearway_base::vfs::Vfs;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::{Lsn, TreeId};
use clearway_storage::recovery::RecoveryReport;
use clearway_storage::store::StoreOptions;
use clearway_storage::sync::{Turn, TurnGuard};
use clearway_txn::mvcc::book::View;
use clearway_txn::read::{RowBatch, Scan};
use clearway_txn::transaction::Transaction;
use clearway_txn::transactions::Transactions;

use crate::background::BackgroundErrors;
use crate::catalog::change::{CatalogChange, apply, valid_from};
use crate::catalog::{CATALOG_TREE, Catalog, FIRST_USER_OID, IndexState, Object, Oid, SEQUENCE_TREE, decode_object};
use crate::error::EngineError;
use crate::exported::Exported;
use crate::kept::Kept;
use crate::line::Lines;
use crate::row_turn::RowTurns;
use crate::sequence::Sequences;
use crate::session::temporary::release;
use crate::table::ghosts::GhostSweep;
use crate::table::row_id::RowIds;
use crate::table::shape::TableShape;
use crate::table::statistics::Statistics;
use crate::table::stored;
use crate::table::usage::Usage;

/// What to open, and how.
#[derive(Clone)]
pub struct DbOptions {
    /// Where files live: real ones, or memory.
    pub vfs: Arc<dyn Vfs>,
    /// The directory.
    pub dir: PathBuf,
    /// Sizes of log, page cache and files.
    pub store: StoreOptions,
    /// Bytes of memory for undo; what is beyond goes to a file.
    pub undo_bytes: u64,
    /// Keeps over restarts what was observed (`kept`).
    pub keep: bool,
}

/// The memory for undo when nothing else is said, in bytes.
pub const UNDO_BYTES: u64 = 256 << 20;
/// The least memory for undo that is of use, in bytes: what the sessions' own chunks take.
pub const UNDO_BYTES_MIN: u64 = 1 << 20;

impl DbOptions {
    /// A directory with default sizes.
    pub fn new(vfs: Arc<dyn Vfs>, dir: &Path) -> DbOptions {
        DbOptions { vfs, dir: dir.to_owned(), store: StoreOptions::default(), undo_bytes: UNDO_BYTES, keep: false }
    }
}

/// An open database directory.
pub struct Db {
    transactions: Arc<Transactions>,
    catalog: Mutex<Arc<Catalog>>,
    /// Rises, under the mutex, with each catalog that is put there.
    catalog_version: AtomicU64,
    next_oid: AtomicU32,
    row_ids: RowIds,
    sequences: Sequences,
    /// The shapes of the tables of large objects, pages first, once they are known to exist. They are never altered or dropped.
    large_objects: OnceLock<(Arc<TableShape>, Arc<TableShape>)>,
    losers: Mutex<Vec<Transaction>>,
    /// How many of them are being undone and are not in the list. Changed while the list is locked, or after a transaction went back there.
    undoing: AtomicUsize,
    ghosts: GhostSweep,
    statistics: Statistics,
    usage: Usage,
    exported: Exported,
    opened_at: Lsn,
    lines: Lines,
    row_turns: Arc<RowTurns>,
    /// Temporary trees of sessions that ended with a transaction open, or at a crash: released when that is undone (TMP-2).
    left_trees: Mutex<Vec<TreeId>>,
    /// Indexes whose building was given up.
    orphans: Mutex<Vec<Oid>>,
    recovery: RecoveryReport,
    background: BackgroundErrors,
    /// Held by a pass of the upkeep, and by closing (BG-3).
    upkeep: Turn,
    pub(crate) kept: Kept,
}

impl Db {
    /// A database over recovered storage; `losers` are undone in the background.
    pub(crate) fn new(
        transactions: Arc<Transactions>,
        losers: Vec<Transaction>,
        recovery: RecoveryReport,
        kept: Kept,
    ) -> Arc<Db> {
        Arc::new(Db {
            opened_at: transactions.store().wal().end_lsn(),
            transactions,
            catalog: Mutex::new("engine/catalog", Arc::new(Catalog::with_predefined_roles())),
            catalog_version: AtomicU64::new(1),
            next_oid: AtomicU32::new(FIRST_USER_OID),
            row_ids: RowIds::default(),
            sequences: Sequences::default(),
            large_objects: OnceLock::new(),
            losers: Mutex::new("engine/losers", losers),
            undoing: AtomicUsize::new(0),
            ghosts: GhostSweep::default(),
            statistics: Statistics::default(),
            usage: Usage::default(),
            exported: Exported::default(),
            lines: Lines::default(),
            row_turns: Arc::default(),
            left_trees: Mutex::new("engine/left_trees", Vec::new()),
            orphans: Mutex::new("engine/orphans", Vec::new()),
            recovery,
            background: BackgroundErrors::default(),
            upkeep: Turn::new("engine/upkeep"),
            kept,
        })
    }

    /// Publishes the catalog that the directory holds.
    ///
    /// # Errors
    /// From the tree; an object that does not decode.
    pub(crate) async fn load_catalog(&self) -> Result<(), EngineError> {
        let catalog = self.read_catalog().await?;
        let highest = catalog.objects().map(|o| o.oid()).max().unwrap_or(0).max(self.highest_sequence().await?);
        self.next_oid.fetch_max(highest + 1, Ordering::Relaxed);
        let unfinished = |o: &&Arc<Object>| matches!(&***o, Object::Index(i) if i.state == IndexState::WriteOnly);
        self.orphans.lock().extend(catalog.objects().filter(unfinished).map(|o| o.oid()));
        self.statistics.load(&self.transactions, &catalog).await?;
        self.put(&mut self.catalog.lock(), catalog);
        self.left_trees.lock().extend(self.transactions.store().held_trees());
        Ok(())
    }

    /// The highest number under which the state of a sequence, or what is known of a table, was ever kept: an object that is made anew must not
    /// find it.
    async fn highest_sequence(&self) -> Result<Oid, EngineError> {
        let all = &self.transactions;
        let view = View { read_lsn: all.visible_lsn(), ..View::default() };
        let mut scan = Scan::new(&all.store().tree(SEQUENCE_TREE), KeyRange::all(), Direction::Backward, view);
        let (mut batch, mut dep) = (RowBatch::default(), Lsn::ZERO);
        let mut highest = 0;
        if scan.next(all.book(), &mut dep, &mut batch).await? {
            highest = batch.iter().filter_map(|(key, _)| stored::oid_of_key(key)).max().unwrap_or(0);
        }
        Ok(highest)
    }

    async fn read_catalog(&self) -> Result<Catalog, EngineError> {
        let all = &self.transactions;
        let view = View { read_lsn: all.visible_lsn(), ..View::default() };
        let mut scan = Scan::new(&all.store().tree(CATALOG_TREE), KeyRange::all(), Direction::Forward, view);
        let (mut batch, mut dep, mut catalog) = (RowBatch::default(), Lsn::ZERO, Catalog::with_predefined_roles());
        while scan.next(all.book(), &mut dep, &mut batch).await? {
            for (_, value) in batch.iter() {
                catalog.put(Arc::new(decode_object(value)?))?;
            }
        }
        Ok(catalog)
    }

    /// The building of an index was given up: it goes, in the background if need be.
    pub(crate) fn orphaned(&self, index: Oid) {
        self.orphans.lock().push(index);
    }

    /// Whether there is such an index.
    pub(crate) fn has_orphans(&self) -> bool {
        !self.orphans.lock().is_empty()
    }

    /// One of the indexes whose building was given up or cut off by a crash.
    pub(crate) fn an_orphan(&self) -> Option<Oid> {
        self.orphans.lock().last().copied()
    }

    /// The index has been dropped.
    pub(crate) fn orphan_dropped(&self, index: Oid) {
        self.orphans.lock().retain(|oid| *oid != index);
    }

    /// Reads the catalog from its pages as any statement would.
    ///
    /// # Errors
    /// From the trees, or an object that can't be decoded.
    pub async fn reads_its_catalog(&self) -> Result<(), EngineError> {
        self.read_catalog().await.map(drop)
    }

    /// Transactions, locks, versions and storage.
    pub fn transactions(&self) -> &Arc<Transactions> {
        &self.transactions
    }

    /// What opening had to do.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// The catalog as committed transactions left it.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.catalog.lock().clone()
    }

    /// A number that changes with each committed change of the catalog. What was made of a catalog that was taken after the number was
    /// read is up to date while the number is the same.
    #[inline]
    pub fn catalog_version(&self) -> u64 {
        self.catalog_version.load(Ordering::Acquire)
    }

    /// A number for a new object.
    pub fn new_oid(&self) -> Oid {
        self.next_oid.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn row_ids(&self) -> &RowIds {
        &self.row_ids
    }

    /// Where the shapes of the tables of large objects are kept, pages first.
    pub(crate) fn large_objects(&self) -> &OnceLock<(Arc<TableShape>, Arc<TableShape>)> {
        &self.large_objects
    }

    /// What sequences stand at.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// DB-1: a transaction that changed the catalog has committed.
    pub(crate) fn publish(&self, changes: &[CatalogChange], lsn: Lsn) {
        let mut catalog = self.catalog.lock();
        let changes = changes.iter().filter(|change| !change.temporary);
        let changes: Vec<CatalogChange> = changes.map(|change| valid_from(&catalog, change, lsn)).collect();
        let mut next = apply(&catalog, &changes).expect("names are locked from their creation to the commit");
        next.lsn = lsn;
        self.put(&mut catalog, next);
    }

    fn put(&self, place: &mut Arc<Catalog>, catalog: Catalog) {
        *place = Arc::new(catalog);
        self.catalog_version.fetch_add(1, Ordering::Release);
    }

    /// Undoes what a crash or a session left unfinished. One that can't be undone stays, does not keep the others from it, and is tried
    /// again by the next call.
    ///
    /// # Errors
    /// The first one's, from the trees.
    pub async fn undo_losers(&self) -> Result<usize, EngineError> {
        let (count, mut done, mut failed) = (self.losers.lock().len(), 0, None);
        for _ in 0..count {
            let mut undoing = {
                let mut losers = self.losers.lock();
                if losers.is_empty() {
                    break;
                }
                self.undoing.fetch_add(1, Ordering::Relaxed);
                Undoing { db: self, txn: Some(losers.remove(0)) }
            };
            let Some(loser) = &mut undoing.txn else { continue };
            match loser.roll_back().await {
                Ok(()) => {
                    self.transactions.locks().unregister(&loser.owner().clone());
                    undoing.txn = None;
                    done += 1;
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.release_left();
        failed.map_or(Ok(done), |error| Err(error.into()))
    }

    /// Transactions that are still to be undone; their rows stay locked.
    pub fn losers_left(&self) -> usize {
        self.losers.lock().len()
    }

    /// What was observed and is kept over restarts.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// What has gone wrong where no session was told.
    pub fn background_errors(&self) -> &BackgroundErrors {
        &self.background
    }

    /// How many rows tables have.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Where the log ended when the database was opened.
    pub fn opened_at(&self) -> Lsn {
        self.opened_at
    }

    /// How tables and indexes are used.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The snapshots that transactions have exported.
    pub(crate) fn exported(&self) -> &Exported {
        &self.exported
    }

    /// The turns of short transactions at rows.
    pub fn row_turns(&self) -> &Arc<RowTurns> {
        &self.row_turns
    }

    pub(crate) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// How many updates by a closure were done in the transaction of another one that had the row.
    pub fn updates_served(&self) -> u64 {
        self.lines.served()
    }

    /// The sweep for ghosts that a crash left behind.
    pub fn ghosts(&self) -> &GhostSweep {
        &self.ghosts
    }

    /// A session has ended with a transaction open: it is undone in the background.
    pub(crate) fn leave(&self, txn: Transaction, trees: Vec<TreeId>) {
        self.left_trees.lock().extend(trees);
        self.losers.lock().push(txn);
    }

    /// Waits until neither a pass of the upkeep nor closing goes on (BG-3).
    pub(crate) async fn upkeep_turn(&self) -> TurnGuard<'_> {
        self.upkeep.take().await
    }

    /// TMP-2: trees that wait for transactions to be undone are released when none is left.
    fn release_left(&self) {
        let all = &self.transactions;
        let losers = self.losers.lock();
        if losers.is_empty() && self.undoing.load(Ordering::Relaxed) == 0 {
            let trees = std::mem::take(&mut *self.left_trees.lock());
            release(all.store(), &trees, all.visible_lsn());
        }
    }

    /// Closes: everything goes to disk, and the next opening has nothing to recover. No session may have a transaction open.
    ///
    /// # Errors
    /// A failed file operation; the next opening recovers.
    pub async fn close(&self) -> Result<(), EngineError> {
        // BG-3
        let _turn = self.upkeep.take().await;
        // Whatever fails, the background ends and the directory is free; the next opening undoes what is left.
        let undone = self.undo_losers().await;
        self.background.note("saving what was observed", self.kept.save().await);
        let removed = match self.transactions.book().spill_file() {
            Some(file) if undone.is_ok() => file.remove().await.map_err(EngineError::from),
            _ => Ok(()),
        };
        let closed = self.transactions.store().close().await.map_err(EngineError::from);
        undone.map(drop).and(removed).and(closed)
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // RST-2: the loops that rest end.
        self.transactions.store().rest().end();
    }
}

/// A transaction that is being undone; it goes back to the others if that fails or is given up.
struct Undoing<'a> {
    db: &'a Db,
    txn: Option<Transaction>,
}

impl Drop for Undoing<'_> {
    fn drop(&mut self) {
        if let Some(txn) = self.txn.take() {
            self.db.losers.lock().push(txn);
        }
        self.db.undoing.fetch_sub(1, Ordering::Relaxed);
    }
}
