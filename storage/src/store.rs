//! One open database: log, pages, space, trees, and the background work that keeps them going.
//!
//! # Structure
//! ```text
//!   Store -> Wal -> segments          background: flusher, preparer, cleaner, checkpointer, dropper, tidier
//!         -> Pool -> Space -> files
//!         -> Tree (by id)
//! ```
//! The background loops are futures: threads drive them in production, the seed's scheduler in tests.
//!
//! # Invariants
//! - STO-1: no background loop waits for a transaction. A loop waits for the log, for the disk, and for loops behind it in
//!   the order tidier, dropper, checkpointer, cleaner, flusher.
//!
//! # Not here
//! Transactions, tags and what they mean ([`Versions`]).

use crate::archive::Archive;
use crate::btree::Tree;
use crate::buffer::Pool;
use crate::error::StorageError;
use crate::ids::{Lsn, TreeId};
use crate::leases::Leases;
use crate::options::interval;
pub use crate::options::{RECOVERY_TARGET, StoreOptions, redo_threads};
use crate::pending::Pending;
use crate::record::{TxnLog, UndoEntry};
use crate::recovery::{self, Checkpoints, Opened, Recovered, create};
use crate::rest::{Pauses, Rest};
use crate::seams::{BoxFuture, Versions};
use crate::space::{Space, TreeKind};
use crate::sync::{Bell, first_of};
use crate::temp_files::TempFiles;
use crate::wal::Wal;
use clearway_base::sync::{Mutex, sleep, timeout};
use clearway_base::vfs::{DirLock, LockError, Vfs};
use clearway_base::waits::{Object, WaitEvent, in_wait};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// After a checkpoint that found the disk full, the next one is tried so much later.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(1);
/// How often the durable mark is synced while it moves.
const MARK_PAUSE: Duration = Duration::from_secs(1);
/// An open database.
pub struct Store {
    vfs: Arc<dyn Vfs>,
    pub(crate) wal: Arc<Wal>,
    pool: Arc<Pool>,
    pub(crate) space: Arc<Space>,
    pub(crate) versions: Arc<dyn Versions>,
    checkpoints: Checkpoints,
    pub(crate) pending: Pending,
    options: StoreOptions,
    pub(crate) drop_bell: Bell,
    pub(crate) tidy_bell: Bell,
    pub(crate) dropping: crate::sync::Turn,
    closing: AtomicBool,
    /// The database is closing: a checkpoint that is under way hurries.
    hurry: AtomicBool,
    /// How often a caller said that there may be something to drop.
    pub(crate) drop_rings: AtomicU64,
    lock: Mutex<Option<DirLock>>,
    leases: Leases,
    archive: Archive,
    temp_files: Arc<TempFiles>,
    rest: Arc<Rest>,
}

impl Drop for Store {
    fn drop(&mut self) {
        // Space's pins own the pool, which owns space.
        self.space.detach();
    }
}

impl Store {
    /// Opens the database in `dir`, which exists, and recovers it. What has to be undone is in [`Recovered`]; the
    /// background loops have to run before anything is changed.
    ///
    /// # Errors
    /// Held by another process; damage; a newer format; a failed file operation.
    pub async fn open(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        options: StoreOptions,
        versions: Arc<dyn Versions>,
    ) -> Result<(Arc<Store>, Recovered), StorageError> {
        if create::contents_of(&vfs, dir).await? == create::Held::Nothing && !options.create {
            return Err(StorageError::Invalid(format!("there is no database in {}", dir.display()).into()));
        }
        let lock = vfs.lock(&dir.join("LOCK")).map_err(|err| match err {
            LockError::Held { pid } => StorageError::Held { dir: dir.display().to_string().into(), pid },
            LockError::Io(err) => StorageError::Io(Arc::new(err)),
        })?;
        let Opened { wal, space, pool, checkpoints, drops, chains, recovered } =
            recovery::open(&vfs, dir, &options, &versions).await?;
        let changed = recovered.losers.iter().flat_map(|loser| &loser.entries).map(|entry| entry.tree).collect();
        let archive = Archive::new(&wal, options.archive_bytes);
        let temp_files = Arc::new(TempFiles::new(vfs.clone(), dir));
        let store = Store {
            vfs,
            wal,
            pool,
            space,
            versions,
            checkpoints,
            pending: Pending::new(drops, chains, &changed),
            options,
            drop_bell: Bell::new("storage/store/drop_bell"),
            tidy_bell: Bell::new("storage/store/tidy_bell"),
            dropping: crate::sync::Turn::new("storage/store/dropping"),
            closing: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            drop_rings: AtomicU64::new(0),
            lock: Mutex::new("storage/store/dir_lock", Some(lock)),
            leases: Leases::new(),
            archive,
            temp_files,
            rest: Arc::default(),
        };
        Ok((Arc::new(store), recovered))
    }

    /// The log.
    pub fn wal(&self) -> &Arc<Wal> {
        &self.wal
    }

    /// The page cache.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The space.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// The layer above.
    pub fn versions(&self) -> &Arc<dyn Versions> {
        &self.versions
    }

    /// Its temporary files.
    pub fn temp_files(&self) -> &Arc<TempFiles> {
        &self.temp_files
    }

    /// The rest of the background loops while the database is not in use.
    pub fn rest(&self) -> &Arc<Rest> {
        &self.rest
    }

    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }

    /// The archive.
    pub(crate) fn archive_state(&self) -> &Archive {
        &self.archive
    }

    /// The takers of copies.
    pub(crate) fn leases(&self) -> &Leases {
        &self.leases
    }

    pub(crate) fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// A handle of a tree; whether there is one shows when it is used.
    pub fn tree(&self, id: TreeId) -> Tree {
        Tree::new(id, self.pool.clone(), self.versions.clone())
    }

    /// Creates an empty tree within a transaction; its undo entry belongs to the transaction's undo.
    ///
    /// # Errors
    /// No space, a failed file operation, poisoned.
    pub fn create_tree<'a>(
        &'a self,
        log: &'a mut TxnLog,
        kind: TreeKind,
    ) -> BoxFuture<'a, Result<(TreeId, UndoEntry), StorageError>> {
        Box::pin(self.space.create_tree(log, kind))
    }

    /// Whether it was closed, or has stopped after an error.
    pub fn ended(&self) -> bool {
        self.closing.load(Ordering::SeqCst) || self.wal.poisoned().is_some()
    }

    /// Whether closing has begun: what can be left for the next opening is.
    pub(crate) fn ends_soon(&self) -> bool {
        self.hurry.load(Ordering::SeqCst) || self.ended()
    }

    /// Lets others run between the batches of a checkpoint. One that is `paced` pauses, unless it is behind: it has written a smaller part
    /// of its pages than the log has grown of what it may grow meanwhile. So pages go out evenly while the log grows evenly, and where the
    /// log stands still they go out all the same.
    pub(crate) async fn pace(&self, paced: bool, written: f64, log_grown: u64) {
        let part = log_grown as f64 / (interval(self.options.checkpoint_bytes) / 2).max(1) as f64;
        let pause = self.options.checkpoint_pause;
        if !paced || part > written || pause.is_zero() || self.hurry.load(Ordering::SeqCst) {
            crate::sync::yield_now().await;
        } else {
            in_wait(WaitEvent::CheckpointPace, Object::NONE, sleep(pause)).await;
        }
    }

    /// Looks at whether a checkpoint is due; the log's growth does the same.
    pub fn tick(&self) {
        if self.checkpoint_is_due() {
            self.wal.milestone_bell().ring();
        }
    }

    fn checkpoint_due_at(&self) -> Lsn {
        Lsn(self.checkpoints.control().begin.0 + interval(self.options.checkpoint_bytes) + 1)
    }

    fn checkpoint_is_due(&self) -> bool {
        self.wal.end_lsn() >= self.checkpoint_due_at()
    }

    async fn run_cleaner(self: Arc<Self>) {
        if let Err(err) = self.pool.run_cleaner_and_rest(&self.rest, || self.ended()).await {
            self.wal.poison(&format!("the page cleaner failed: {err}"));
        }
        // No frame is cleaned any more: a task that waits for one learns why, instead of waiting for ever.
        if let Some(StorageError::Poisoned(why)) = self.wal.poisoned() {
            self.pool.poison(&why);
        }
    }

    async fn run_checkpointer(self: Arc<Self>) {
        loop {
            self.wal.set_milestone(self.checkpoint_due_at());
            let due = self.wal.milestone_bell().wait_until(|| self.checkpoint_is_due() || self.ended());
            let resting = self.rest.is_resting();
            let due = async {
                if resting {
                    // The mark is where it was when the loops went to rest.
                    first_of(due, self.rest.ended(Pauses::Checkpointer)).await;
                    Ok(())
                } else {
                    timeout(MARK_PAUSE, due).await
                }
            };
            let due = in_wait(WaitEvent::CheckpointerMain, Object::NONE, due).await;
            if self.ended() {
                return;
            }
            if resting && !self.checkpoint_is_due() {
                continue;
            }
            if due.is_err() {
                if self.wal.sync_mark().await.is_err() {
                    return;
                }
                continue;
            }
            match self.take_checkpoint(false, true).await {
                Ok(()) => {}
                // A writer that waits for this checkpoint to free log learns of the full disk; the rest goes on.
                Err(StorageError::NoSpace(_)) => {
                    self.wal.refuse_waiting();
                    let ended = self.wal.milestone_bell().wait_until(|| self.ended());
                    let retry = timeout(FULL_DISK_PAUSE, ended);
                    let _elapsed = in_wait(WaitEvent::CheckpointPace, Object::NONE, retry).await;
                }
                Err(_) => return,
            }
        }
    }

    /// The background loops, by name; they end when the store is closed, most of them already when it is poisoned.
    pub fn background(self: &Arc<Self>) -> Vec<(&'static str, BoxFuture<'static, ()>)> {
        let (flusher, preparer) = (self.wal.clone(), self.wal.clone());
        vec![
            ("flusher", Box::pin(async move { flusher.run_flusher().await })),
            ("preparer", Box::pin(async move { preparer.run_preparer().await })),
            ("cleaner", Box::pin(self.clone().run_cleaner())),
            ("checkpointer", Box::pin(self.clone().run_checkpointer())),
            ("dropper", Box::pin(self.clone().run_dropper())),
            ("tidier", Box::pin(self.clone().run_tidier())),
        ]
    }

    /// Closes properly: everything goes to disk, and the next opening has nothing to recover. No transaction may be
    /// active. The background loops end, and the directory is free, also after an error.
    ///
    /// # Errors
    /// A failed file operation or sync, a full disk; the next opening recovers.
    pub async fn close(&self) -> Result<(), StorageError> {
        self.rest.end();
        // The first checkpoint's file becomes needless with the second, which nothing runs beside.
        self.hurry.store(true, Ordering::SeqCst);
        let first = self.take_checkpoint(false, false).await;
        // The thread that frees or packs pages ends its step first: it may need a frame, which only the cleaner can give while all are dirty (STO-2).
        let _turn = self.dropping.take().await;
        self.closing.store(true, Ordering::SeqCst);
        self.rest.end();
        self.drop_bell.ring();
        self.wal.milestone_bell().ring();
        self.tidy_bell.ring();
        let closed = match first {
            Ok(()) => self.take_checkpoint(true, false).await,
            Err(err) => Err(err),
        };
        self.wal.close();
        // The background loops may still hold the store for a moment; another may open the directory now.
        drop(self.lock.lock().take());
        closed
    }
}
