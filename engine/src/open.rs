//! Opens a database directory, and creates one where there is none. For the order of the steps see `db.rs`, Life of a database.

use std::sync::Arc;

use clearway_storage::ids::Tag;
use clearway_storage::seams::{BoxFuture, Versions};
use clearway_storage::store::Store;
use clearway_txn::mvcc::book::VersionBook;
use clearway_txn::mvcc::spill::SpillFile;
use clearway_txn::transaction::Transaction;
use clearway_txn::transactions::Transactions;

use crate::background::guarded;
use crate::bootstrap::bootstrap;
use crate::catalog::CATALOG_TREE;
use crate::db::{Db, DbOptions, UNDO_BYTES_MIN};
use crate::error::EngineError;
use crate::kept::Kept;
use crate::upkeep::{run_deadlock_scan, run_upkeep};

/// A database whose log has been read.
struct Recovered {
    db: Arc<Db>,
    /// What has to run beside the sessions, by name.
    tasks: Vec<(&'static str, BoxFuture<'static, ()>)>,
    /// Transactions that changed the catalog and did not commit, not yet undone.
    losers: Vec<Transaction>,
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
        let Recovered { db, tasks, losers } = Db::recovered(options).await?;
        for (name, task) in tasks {
            spawn(name, task);
        }
        db.clone().finish_opening(losers).await?;
        Ok(db)
    }

    /// Boxed here, like the end of opening, so that the code of recovery and of the background work is in this crate alone.
    fn recovered(options: DbOptions) -> BoxFuture<'static, Result<Recovered, EngineError>> {
        Box::pin(Db::recover(options))
    }

    async fn recover(options: DbOptions) -> Result<Recovered, EngineError> {
        let book = Arc::new(VersionBook::new(Tag::SETTLED));
        let versions: Arc<dyn Versions> = book.clone();
        let spill = SpillFile::new(options.vfs.clone(), &options.dir);
        let (store, recovered) = Store::open(options.vfs.clone(), &options.dir, options.store, versions).await?;
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
        let (kept, damage) = match options.keep {
            true => Kept::open(options.vfs, &options.dir).await,
            false => (Kept::nothing(), None),
        };
        let db = Db::new(all, later.into_iter().map(|(_, txn)| txn).collect(), recovered.report, kept);
        db.background_errors().note("reading what was observed before", damage.map_or(Ok(()), Err));
        let restored = db.kept().keep_locks(db.transactions());
        db.background_errors().note("reading the lock waits of an earlier run", restored);
        if !recovered.report.clean {
            db.ghosts().begin(db.transactions().store());
        }
        let mut tasks = db.transactions().store().background();
        tasks.push(("upkeep", Box::pin(run_upkeep(Arc::downgrade(&db)))));
        tasks.push(("deadlock scan", Box::pin(run_deadlock_scan(Arc::downgrade(&db)))));
        let guard = |(name, task)| (name, guarded(db.transactions().store().wal().clone(), name, task));
        let tasks = tasks.into_iter().map(guard).collect();
        Ok(Recovered { losers: first.into_iter().map(|(_, txn)| txn).collect(), tasks, db })
    }

    /// The background loops run by now: undoing and bootstrapping wait for the log.
    fn finish_opening(self: Arc<Self>, losers: Vec<Transaction>) -> BoxFuture<'static, Result<(), EngineError>> {
        Box::pin(self.end_opening(losers))
    }

    async fn end_opening(self: Arc<Self>, losers: Vec<Transaction>) -> Result<(), EngineError> {
        for mut loser in losers {
            loser.roll_back().await?;
            self.transactions().locks().unregister(&loser.owner().clone());
        }
        if self.transactions().store().space().tree(CATALOG_TREE).is_none() {
            return bootstrap(&self).await;
        }
        self.load_catalog().await?;
        self.drop_orphans().await
    }
}
