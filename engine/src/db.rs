//! An open database directory: storage, transactions, the catalog in memory, and the background work.
//!
//! # Life of a database
//! open: storage recovers -> losers that touched the catalog are undone -> the catalog is read -> open for sessions; the other losers are
//! undone in the background while their rows stay locked. close: no session is left, everything goes to disk.
//!
//! # Invariants
//! - DB-2: the published form of an index that a transaction made public, or whose tree it replaced, is valid from that transaction's commit:
//!   a snapshot below it does not see the entries that it made, whatever its catalog says.
//! - DB-1: the published catalog holds exactly what committed transactions made; a transaction publishes its changes before its locks go.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use clearway_base::sync::{Mutex, sleep};
use clearway_base::vfs::Vfs;
use clearway_base::waits::{self, Object as WaitObject, WaitEvent};
use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::{Lsn, Tag};
use clearway_storage::recovery::RecoveryReport;
use clearway_storage::seams::{BoxFuture, Versions};
use clearway_storage::store::{Store, StoreOptions};
use clearway_txn::mvcc::book::{VersionBook, View};
use clearway_txn::mvcc::spill::SpillFile;
use clearway_txn::read::{RowBatch, Scan};
use clearway_txn::transaction::Transaction;
use clearway_txn::transactions::Transactions;

use crate::catalog::{
    CATALOG_TREE, Catalog, FIRST_USER_OID, Index, IndexState, Object, Oid, SEQUENCE_TREE, decode_object,
};
use crate::error::EngineError;
use crate::line::Lines;
use crate::sequence::Sequences;
use crate::session::Session;
use crate::table::ghosts::GhostSweep;
use crate::table::row_id::RowIds;
use crate::table::statistics::Statistics;

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
}

/// The memory for undo when nothing else is said, in bytes.
pub const UNDO_BYTES: u64 = 256 << 20;
/// The least memory for undo that is of use, in bytes: what the sessions' own chunks take.
pub const UNDO_BYTES_MIN: u64 = 1 << 20;

impl DbOptions {
    /// A directory with default sizes.
    pub fn new(vfs: Arc<dyn Vfs>, dir: &Path) -> DbOptions {
        DbOptions { vfs, dir: dir.to_owned(), store: StoreOptions::default(), undo_bytes: UNDO_BYTES }
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
    losers: Mutex<Vec<Transaction>>,
    ghosts: GhostSweep,
    statistics: Statistics,
    lines: Lines,
    /// Indexes whose building was given up.
    orphans: Mutex<Vec<Oid>>,
    recovery: RecoveryReport,
}

/// One change of the catalog by a transaction.
#[derive(Clone, Debug)]
pub struct CatalogChange {
    /// The object's number.
    pub oid: Oid,
    /// What it is from now on; `None` if it was dropped.
    pub object: Option<Arc<Object>>,
}

impl Db {
    /// Opens a directory, makes one where there is none, and recovers it after a crash. `spawn` is given everything that has to run
    /// beside the sessions, by name: on a thread of its own in production, as a task in a simulation. Each ends when the database is closed.
    ///
    /// # Errors
    /// Another process has it open (with its pid); damage; a newer format; a failed file operation.
    pub async fn open(
        options: DbOptions,
        mut spawn: impl FnMut(&'static str, BoxFuture<'static, ()>),
    ) -> Result<Arc<Db>, EngineError> {
        let book = Arc::new(VersionBook::new(Tag::SETTLED));
        let versions: Arc<dyn Versions> = book.clone();
        let spill = SpillFile::new(options.vfs.clone(), &options.dir);
        let (store, recovered) = Store::open(options.vfs, &options.dir, options.store, versions).await?;
        // The directory is ours from here on.
        spill.remove().await?;
        book.limit(options.undo_bytes.max(UNDO_BYTES_MIN), spill);
        book.undo().raise(recovered.tag_high_water);
        book.raise_txn(recovered.txn_high_water);
        let all = Arc::new(Transactions::new(store, book, recovered.visible_lsn));
        let losers = recovered.losers.into_iter().map(|loser| {
            let catalog = loser.entries.iter().any(|e| e.tree == CATALOG_TREE);
            let owner = all.locks().register(0);
            (catalog, Transaction::adopt(all.clone(), owner, loser))
        });
        let (first, later): (Vec<_>, Vec<_>) = losers.partition(|(catalog, _)| *catalog);
        let db = Db {
            transactions: all,
            catalog: Mutex::new("engine/catalog", Arc::default()),
            catalog_version: AtomicU64::new(1),
            next_oid: AtomicU32::new(FIRST_USER_OID),
            row_ids: RowIds::default(),
            sequences: Sequences::default(),
            losers: Mutex::new("engine/losers", later.into_iter().map(|(_, txn)| txn).collect()),
            ghosts: GhostSweep::default(),
            statistics: Statistics::default(),
            lines: Lines::default(),
            orphans: Mutex::new("engine/orphans", Vec::new()),
            recovery: recovered.report,
        };
        let db = Arc::new(db);
        if !recovered.report.clean {
            db.ghosts.begin(db.transactions.store());
        }
        for (name, task) in db.transactions.store().background() {
            spawn(name, task);
        }
        spawn("upkeep", Box::pin(run_upkeep(Arc::downgrade(&db))));
        spawn("deadlock scan", Box::pin(run_deadlock_scan(Arc::downgrade(&db))));
        db.clone().finish_opening(first.into_iter().map(|(_, txn)| txn).collect()).await?;
        Ok(db)
    }

    /// The background loops run by now: undoing and bootstrapping wait for the log.
    async fn finish_opening(self: Arc<Self>, losers: Vec<Transaction>) -> Result<(), EngineError> {
        for mut loser in losers {
            loser.roll_back().await?;
            self.transactions.locks().unregister(&loser.owner().clone());
        }
        if self.transactions.store().space().tree(CATALOG_TREE).is_none() {
            return crate::bootstrap::bootstrap(&self).await;
        }
        let catalog = self.read_catalog().await?;
        let highest = catalog.objects().map(|o| o.oid()).max().unwrap_or(0);
        self.next_oid.fetch_max(highest + 1, Ordering::Relaxed);
        let unfinished = |o: &&Arc<Object>| matches!(&***o, Object::Index(i) if i.state == IndexState::WriteOnly);
        self.orphans.lock().extend(catalog.objects().filter(unfinished).map(|o| o.oid()));
        self.put(&mut self.catalog.lock(), catalog);
        self.drop_orphans().await
    }

    /// The building of an index was given up: it goes, in the background if need be.
    pub(crate) fn orphaned(&self, index: Oid) {
        self.orphans.lock().push(index);
    }

    /// Drops the indexes whose building was given up or cut off by a crash.
    ///
    /// # Errors
    /// From the catalog and the trees; what is left is tried again.
    pub async fn drop_orphans(self: &Arc<Self>) -> Result<(), EngineError> {
        loop {
            let Some(index) = self.orphans.lock().last().copied() else { return Ok(()) };
            self.session(0, 0).drop_unfinished(index).await?;
            self.orphans.lock().retain(|oid| *oid != index);
        }
    }

    async fn read_catalog(&self) -> Result<Catalog, EngineError> {
        let all = &self.transactions;
        let view = View { read_lsn: all.visible_lsn(), ..View::default() };
        let mut scan = Scan::new(&all.store().tree(CATALOG_TREE), KeyRange::all(), Direction::Forward, view);
        let (mut batch, mut dep, mut catalog) = (RowBatch::default(), Lsn::ZERO, Catalog::default());
        while scan.next(all.book(), &mut dep, &mut batch).await? {
            for (_, value) in batch.iter() {
                catalog = catalog.with(decode_object(value)?)?;
            }
        }
        Ok(catalog)
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

    /// What sequences stand at.
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// A session in a database; `pid` is the number by which others know it.
    pub fn session(self: &Arc<Self>, pid: i32, database: Oid) -> Session {
        Session::new(self.clone(), pid, database)
    }

    /// DB-1: a transaction that changed the catalog has committed.
    pub(crate) fn publish(&self, changes: &[CatalogChange], lsn: Lsn) {
        let mut catalog = self.catalog.lock();
        let changes: Vec<CatalogChange> = changes.iter().map(|change| valid_from(&catalog, change, lsn)).collect();
        let mut next = apply(&catalog, &changes).expect("names are locked from their creation to the commit");
        next.lsn = lsn;
        self.put(&mut catalog, next);
    }

    fn put(&self, place: &mut Arc<Catalog>, catalog: Catalog) {
        *place = Arc::new(catalog);
        self.catalog_version.fetch_add(1, Ordering::Release);
    }

    /// Undoes what a crash left unfinished; called once in the background after opening.
    ///
    /// # Errors
    /// From the trees.
    pub async fn undo_losers(&self) -> Result<usize, EngineError> {
        let losers = std::mem::take(&mut *self.losers.lock());
        let count = losers.len();
        for mut loser in losers {
            loser.roll_back().await?;
            self.transactions.locks().unregister(&loser.owner().clone());
        }
        Ok(count)
    }

    /// How many rows tables have.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
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
    pub(crate) fn leave(&self, txn: Transaction) {
        self.losers.lock().push(txn);
    }

    /// Closes: everything goes to disk, and the next opening has nothing to recover. No session may have a transaction open.
    ///
    /// # Errors
    /// A failed file operation; the next opening recovers.
    pub async fn close(&self) -> Result<(), EngineError> {
        self.undo_losers().await?;
        if let Some(file) = self.transactions.book().spill_file() {
            file.remove().await?;
        }
        self.transactions.store().close().await?;
        Ok(())
    }
}

/// DB-2
fn valid_from(before: &Catalog, change: &CatalogChange, lsn: Lsn) -> CatalogChange {
    let Some(Object::Index(index)) = change.object.as_deref() else { return change.clone() };
    let was = before.index(change.oid).filter(|was| was.state == IndexState::Public && was.tree == index.tree);
    // What concerns its name or its owner leaves its entries alone.
    let valid_from_lsn = was.map_or(lsn.0, |was| was.valid_from_lsn);
    let index = Index { valid_from_lsn, ..index.clone() };
    CatalogChange { oid: change.oid, object: Some(Arc::new(Object::Index(index))) }
}

/// A catalog with changes applied.
pub(crate) fn apply(catalog: &Catalog, changes: &[CatalogChange]) -> Result<Catalog, EngineError> {
    let mut next = catalog.clone();
    // What goes first: a name may have moved from one object to another.
    for change in changes {
        next = next.without(change.oid);
    }
    let last: HashMap<Oid, &CatalogChange> = changes.iter().map(|c| (c.oid, c)).collect();
    let mut added: Vec<&&CatalogChange> = last.values().collect();
    added.sort_by_key(|c| c.oid);
    for change in added {
        if let Some(object) = &change.object {
            next = next.with(Object::clone(object))?;
        }
    }
    Ok(next)
}

/// How often old versions are looked through when nobody commits, and how long a commit that nobody waits for stays unflushed at most.
const UPKEEP_PAUSE: Duration = Duration::from_millis(100);
/// How often the safety net of the deadlock search looks.
const SCAN_PAUSE: Duration = Duration::from_secs(1);

async fn run_upkeep(db: std::sync::Weak<Db>) {
    loop {
        waits::in_wait(WaitEvent::Pause, WaitObject::NONE, sleep(UPKEEP_PAUSE)).await;
        let Some(db) = db.upgrade() else { return };
        if db.transactions.store().ended() {
            return;
        }
        db.transactions.store().wal().flush_unwaited();
        db.lines.dissolve(UPKEEP_PAUSE.as_nanos() as u64);
        db.lines.wake_durable(db.transactions.store().wal().durable_lsn());
        // Errors of losers' undo and of purges come from below, where they have poisoned the database or will come again.
        let _ = db.undo_losers().await;
        let _ = db.transactions.upkeep_step().await;
        let _ = db.drop_orphans().await;
        let _ = db.statistics.step(&db.transactions, &db.catalog()).await;
        let _ = db.ghosts.step(&db.transactions).await;
        let store = db.transactions.store();
        if store.pending_chains() > 0 || !store.pending_drops().is_empty() {
            store.drops_changed();
        }
        store.tick();
    }
}

async fn run_deadlock_scan(db: std::sync::Weak<Db>) {
    loop {
        waits::in_wait(WaitEvent::DeadlockScanMain, WaitObject::NONE, sleep(SCAN_PAUSE)).await;
        let Some(db) = db.upgrade() else { return };
        if db.transactions.store().ended() {
            return;
        }
        db.transactions.locks().background_scan(SCAN_PAUSE.as_nanos() as u64);
    }
}

/// The trees that a new directory has.
pub(crate) const SYSTEM_TREES: [clearway_storage::ids::TreeId; 2] = [CATALOG_TREE, SEQUENCE_TREE];
