//! One open database: log, pages, space, trees, and the background work that keeps them going.
//!
//! # Structure
//! ```text
//!   Store -> Wal -> segments          background: flusher, preparer, cleaner, checkpointer, dropper
//!         -> Pool -> Space -> files
//!         -> Tree (by id)
//! ```
//! The background loops are futures: threads drive them in production, the seed's scheduler in tests.
//!
//! # Invariants
//! - STO-1: no background loop waits for a transaction: what they wait for is the log, the disk, and each other in
//!   the order dropper, checkpointer, cleaner, flusher.
//!
//! # Not here
//! Transactions, tags and what they mean ([`Versions`]).

use crate::btree::Tree;
use crate::buffer::{Pool, PoolOptions};
use crate::error::StorageError;
use crate::ids::TreeId;
use crate::pending::Pending;
use crate::record::{TxnLog, UndoEntry};
use crate::recovery::{self, Checkpoints, Opened, Recovered};
use crate::seams::{BoxFuture, Versions};
use crate::space::{Space, SpaceOptions, TreeKind};
use crate::sync::Bell;
use crate::wal::{Wal, WalOptions};
use clearway_base::sync::{Mutex, timeout};
use clearway_base::vfs::{DirLock, LockError, Vfs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Sizes and habits of a database.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The log.
    pub wal: WalOptions,
    /// The page cache.
    pub pool: PoolOptions,
    /// Data files.
    pub space: SpaceOptions,
    /// Live log at which a checkpoint is taken, in bytes: what recovery may have to read. The default is what one
    /// core reads and applies in about the recovery target of 10 seconds, divided by two, since reading starts at
    /// the checkpoint before.
    pub checkpoint_bytes: u64,
    /// Make a database where there is none.
    pub create: bool,
    /// A random number that tells the files of two databases apart; used when one is made.
    pub database_seed: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            wal: WalOptions::default(),
            pool: PoolOptions::for_budget(256 << 20),
            space: SpaceOptions::default(),
            checkpoint_bytes: 256 << 20,
            create: true,
            database_seed: 1,
        }
    }
}

/// After a checkpoint that found the disk full, the next one is tried so much later.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(1);

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
    checkpoint_bell: Bell,
    pub(crate) dropping: crate::sync::Turn,
    closing: AtomicBool,
    /// How often somebody said that there may be something to drop.
    pub(crate) drop_rings: AtomicU64,
    lock: Mutex<Option<DirLock>>,
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
        let lock = vfs.lock(&dir.join("LOCK")).map_err(|err| match err {
            LockError::Held { pid } => StorageError::Held { dir: dir.display().to_string().into(), pid },
            LockError::Io(err) => StorageError::Io(Arc::new(err)),
        })?;
        let Opened { wal, space, pool, checkpoints, pending, recovered } =
            recovery::open(&vfs, dir, &options, &versions).await?;
        let store = Store {
            vfs,
            wal,
            pool,
            space,
            versions,
            checkpoints,
            pending,
            options,
            drop_bell: Bell::new("storage/store/drop_bell"),
            checkpoint_bell: Bell::new("storage/store/checkpoint_bell"),
            dropping: crate::sync::Turn::new("storage/store/dropping"),
            closing: AtomicBool::new(false),
            drop_rings: AtomicU64::new(0),
            lock: Mutex::new("storage/store/dir_lock", Some(lock)),
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

    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
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
    pub async fn create_tree(&self, log: &mut TxnLog, kind: TreeKind) -> Result<(TreeId, UndoEntry), StorageError> {
        self.space.create_tree(log, kind).await
    }

    /// Whether it was closed, or has stopped after an error.
    pub fn ended(&self) -> bool {
        self.closing.load(Ordering::SeqCst) || self.wal.poisoned().is_some()
    }

    /// Lets others run between the batches of a checkpoint.
    pub(crate) async fn pace(&self) {
        crate::sync::yield_now().await;
    }

    /// Looks at whether a checkpoint is due. Called by whoever makes log, now and then.
    pub fn tick(&self) {
        if self.checkpoint_is_due() {
            self.checkpoint_bell.ring();
        }
    }

    fn checkpoint_is_due(&self) -> bool {
        let control = self.checkpoints.control();
        self.wal.end_lsn().0 - control.begin.0 > self.options.checkpoint_bytes / 2
    }

    async fn run_cleaner(self: Arc<Self>) {
        if let Err(err) = self.pool.run_cleaner(|| self.ended()).await {
            self.wal.poison(&format!("the page cleaner failed: {err}"));
        }
    }

    async fn run_checkpointer(self: Arc<Self>) {
        loop {
            self.checkpoint_bell.wait_until(|| self.checkpoint_is_due() || self.ended()).await;
            if self.ended() {
                return;
            }
            match self.checkpoint().await {
                Ok(()) => {}
                // Whoever waits for this checkpoint to free log learns of the full disk; the rest goes on.
                Err(StorageError::NoSpace(_)) => {
                    self.wal.refuse_waiting();
                    let ended = self.checkpoint_bell.wait_until(|| self.ended());
                    let _elapsed = timeout(FULL_DISK_PAUSE, ended).await;
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
        ]
    }

    /// Closes properly: everything goes to disk, and the next opening has nothing to recover. No transaction may be
    /// active. The background loops end, and the directory is free, also after an error.
    ///
    /// # Errors
    /// A failed file operation or sync, a full disk; the next opening recovers.
    pub async fn close(&self) -> Result<(), StorageError> {
        // The first checkpoint's file becomes needless with the second, which nothing runs beside.
        let first = self.take_checkpoint(false).await;
        self.closing.store(true, Ordering::SeqCst);
        self.drop_bell.ring();
        self.checkpoint_bell.ring();
        let _turn = self.dropping.take().await;
        let closed = match first {
            Ok(()) => self.take_checkpoint(true).await,
            Err(err) => Err(err),
        };
        self.wal.close();
        // The background loops may still hold the store for a moment; another may open the directory now.
        drop(self.lock.lock().take());
        closed
    }
}
