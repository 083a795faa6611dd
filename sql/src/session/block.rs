//! Transaction blocks: BEGIN, COMMIT, savepoints, and the state of a block after a statement has failed.

use super::client::Client;
use super::deferred;
use super::defining;
use super::session::{Block, Savepoint, Session};
use crate::context::backend::Mode;
use crate::context::core::LastSavepoint;
use crate::context::errors::from_engine;
use crate::context::modes;
use crate::error::{Result, SqlError, code};
use crate::exec::BoxFuture;
use crate::syntax::stmt::{Isolation as SqlIsolation, Statement, Transaction, TransactionModes};
use clearway_base::waits;
use clearway_engine::session::{Durability, Isolation, TxnOptions};
use std::sync::atomic::Ordering::Relaxed;

impl Session {
    pub(super) fn check_block(&self, statement: &Statement) -> Result<()> {
        let ends = matches!(
            statement,
            Statement::Transaction(
                Transaction::Commit { .. } | Transaction::Rollback { .. } | Transaction::RollbackTo(_)
            )
        );
        if self.block == Block::Failed && !ends {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new("25P02", message));
        }
        Ok(())
    }

    /// Whether the statement that is running shares its transaction with others, or as in PostgreSQL its text with others: the first one of a text
    /// would share its transaction with the next, and one behind a COMMIT is judged as that one.
    pub(super) fn shares_transaction(&self) -> bool {
        self.within_body || self.is_atomic()
    }

    /// Whether a body that the statement runs may not end the transaction.
    pub(super) fn is_atomic(&self) -> bool {
        self.block == Block::Open || self.in_batch > 1 || self.of_several
    }

    pub(super) fn begin_implicit(&mut self) {
        let now_ns = if self.block == Block::None { waits::now_ns() } else { 0 };
        self.begin_implicit_at(now_ns);
    }

    /// The same at this moment of the clock of wait events.
    pub(super) fn begin_implicit_at(&mut self, now_ns: u64) {
        if self.block == Block::None {
            self.open(TransactionModes::default(), now_ns);
            self.block = Block::Implicit;
            let mode = &self.core.backend.mode;
            mode.store(mode.load(Relaxed) & !Mode::BLOCK, Relaxed);
        }
        self.in_batch += 1;
    }

    pub(super) fn open(&mut self, modes: TransactionModes, now_ns: u64) {
        let mut settings = self.core.settings.lock();
        self.settings_at_begin = Some(settings.mark());
        let level = match modes.isolation {
            Some(SqlIsolation::ReadUncommitted) => "read uncommitted",
            Some(SqlIsolation::ReadCommitted) => "read committed",
            Some(SqlIsolation::RepeatableRead) => "repeatable read",
            Some(SqlIsolation::Serializable) => "serializable",
            None => settings.default_modes.0,
        };
        let read_only = modes.read_only.unwrap_or(settings.default_modes.1);
        settings.set_modes(level, read_only);
        let (relaxed, archived) = (settings.commits_later, settings.commits_archived);
        drop(settings);
        // What it asks for is refused when it commits.
        let _ = self.core.set_archived(archived);
        self.core.backend.mode.store(Mode::of(level, read_only) | Mode::BLOCK, Relaxed);
        self.core.transaction_begins(now_ns);
        let mut engine = self.core.engine.take();
        engine.set_relaxed(relaxed);
        engine.begin_at(TxnOptions { isolation: isolation_of(level), read_only }, now_ns);
        drop(engine);
        (self.in_batch, self.replies) = (0, false);
    }

    pub(super) fn check_modes(&self, modes: TransactionModes) -> Result<()> {
        let settings = self.core.settings.lock();
        let asked = modes.isolation == Some(SqlIsolation::Serializable)
            || (modes.isolation.is_none() && settings.default_modes.0 == "serializable");
        if asked && settings.get("serializable") != "snapshot" {
            return Err(SqlError::unsupported("the isolation level SERIALIZABLE")
                .hint("Set serializable = snapshot to run such transactions as REPEATABLE READ."));
        }
        Ok(())
    }

    pub(super) async fn transaction(&mut self, t: &Transaction) -> Result<String> {
        match t {
            Transaction::Begin { modes, start } => {
                self.check_modes(*modes)?;
                match self.block {
                    Block::Open => {
                        let message = "there is already a transaction in progress";
                        self.core.notice("WARNING", SqlError::new("25001", message));
                        self.set_modes(*modes)?;
                    }
                    Block::Implicit => {
                        self.set_modes(*modes)?;
                        self.block = Block::Open;
                    }
                    _ => {
                        self.open(*modes, waits::now_ns());
                        self.block = Block::Open;
                    }
                }
                Ok(if *start { "START TRANSACTION" } else { "BEGIN" }.to_owned())
            }
            Transaction::Commit { chain } => self.end_block(true, *chain).await,
            Transaction::Rollback { chain } => self.end_block(false, *chain).await,
            Transaction::Savepoint(name) => self.begin_savepoint(name),
            Transaction::Release(name) => {
                self.need_block("RELEASE SAVEPOINT")?;
                let at = self.savepoint(name)?;
                self.release_savepoint(at);
                Ok("RELEASE".to_owned())
            }
            Transaction::RollbackTo(name) => self.roll_back_to_savepoint(name).await,
            Transaction::Set(modes) => {
                if self.is_in_transaction()? {
                    self.set_modes(*modes)?;
                }
                Ok("SET".to_owned())
            }
            Transaction::SetSnapshot { id, local } => self.import_snapshot(id, *local),
            Transaction::SetSession(modes) => {
                if let Some(level) = modes.isolation {
                    let level = match level {
                        SqlIsolation::ReadUncommitted => "read uncommitted",
                        SqlIsolation::ReadCommitted => "read committed",
                        SqlIsolation::RepeatableRead => "repeatable read",
                        SqlIsolation::Serializable => "serializable",
                    };
                    self.core.set("default_transaction_isolation", Some(level), false)?;
                }
                if let Some(read_only) = modes.read_only {
                    let value = if read_only { "on" } else { "off" };
                    self.core.set("default_transaction_read_only", Some(value), false)?;
                }
                Ok("SET".to_owned())
            }
            Transaction::Prepare(_) | Transaction::CommitPrepared(_) | Transaction::RollbackPrepared(_) => {
                Err(SqlError::unsupported("a prepared transaction"))
            }
        }
    }

    /// The savepoint at `at` and those above it go.
    pub(super) fn release_savepoint(&mut self, at: usize) {
        let wrote = self.savepoints[at..].iter().any(|s| s.wrote);
        let read_only = self.savepoints[at].read_only;
        self.savepoints.truncate(at);
        self.restore_read_only(read_only);
        self.cursors.release(self.level(at));
        self.core.large_objects.lock().release(self.level(at));
        // PostgreSQL keeps a released subtransaction's id until the end; here the one below stands for it.
        if let Some(below) = self.savepoints.last_mut() {
            below.wrote |= wrote;
        }
        self.show_savepoints();
    }

    /// SET TRANSACTION READ ONLY after a savepoint ends with it, whether the savepoint is released or rolled back.
    fn restore_read_only(&self, read_only: bool) {
        let mut engine = self.core.engine.take();
        let mut options = engine.options();
        if options.read_only != read_only {
            options.read_only = read_only;
            engine.set_options(options);
            self.core.settings.lock().set_read_only(read_only);
        }
    }

    fn begin_savepoint(&mut self, name: &str) -> Result<String> {
        self.need_block("SAVEPOINT")?;
        self.push_savepoint(name);
        Ok("SAVEPOINT".to_owned())
    }

    /// A savepoint at the transaction's present point.
    pub(super) fn push_savepoint(&mut self, name: &str) {
        let (mark, read_only) = {
            let engine = self.core.engine.take();
            (engine.mark(), engine.options().read_only)
        };
        let settings = self.core.settings.lock().mark();
        let (notify, deferred) = (self.core.notifying.lock().mark(), self.core.deferred.lock().mark());
        self.add_savepoint(Savepoint {
            name: name.to_owned(),
            mark,
            settings,
            notify,
            deferred,
            wrote: false,
            read_only,
        });
    }

    async fn roll_back_to_savepoint(&mut self, name: &str) -> Result<String> {
        if self.block != Block::Failed {
            self.need_block("ROLLBACK TO SAVEPOINT")?;
        }
        let at = self.savepoint(name)?;
        self.portals.clear();
        self.undo_to_savepoint(at).await?;
        self.block = Block::Open;
        Ok("ROLLBACK".to_owned())
    }

    /// Undoes what has happened since the savepoint at `at`, which stays.
    pub(super) async fn undo_to_savepoint(&mut self, at: usize) -> Result<()> {
        self.cursors.roll_back(Some(self.level(at)));
        self.core.close_descriptors(Some(self.level(at)));
        self.core.notifying.lock().roll_back_to(self.savepoints[at].notify);
        self.core.deferred.lock().roll_back_to(&self.savepoints[at].deferred);
        self.savepoints.truncate(at + 1);
        self.savepoints[at].wrote = false;
        self.show_savepoints();
        let (mark, settings) = (self.savepoints[at].mark.clone(), self.savepoints[at].settings.clone());
        self.core.engine.take().roll_back_to(&mark).await.map_err(from_engine)?;
        self.core.roll_back_settings(&settings);
        self.restore_read_only(self.savepoints[at].read_only);
        Ok(())
    }

    /// Changes the modes of the transaction that is open.
    pub(super) fn set_modes(&mut self, modes: TransactionModes) -> Result<()> {
        if modes == TransactionModes::default() {
            return Ok(());
        }
        self.check_modes(modes)?;
        let mut engine = self.core.engine.take();
        let mut options = engine.options();
        if let Some(level) = modes.isolation {
            let (name, level) = match level {
                SqlIsolation::RepeatableRead => ("repeatable read", Isolation::RepeatableRead),
                SqlIsolation::Serializable => ("serializable", Isolation::RepeatableRead),
                SqlIsolation::ReadCommitted => ("read committed", Isolation::ReadCommitted),
                SqlIsolation::ReadUncommitted => ("read uncommitted", Isolation::ReadCommitted),
            };
            if name != self.core.settings.lock().modes().0 {
                modes::may_set_isolation(&engine)?;
            }
            options.isolation = level;
            self.core.settings.lock().set_modes(name, options.read_only);
        }
        if let Some(read_only) = modes.read_only {
            if options.read_only && !read_only {
                modes::may_write(&engine)?;
            }
            options.read_only = read_only;
            self.core.settings.lock().set_read_only(read_only);
        }
        engine.set_options(options);
        Ok(())
    }

    /// Whether SET TRANSACTION changes a transaction; if not, the client is warned. The first one of several statements in a text begins theirs.
    fn is_in_transaction(&mut self) -> Result<bool> {
        if self.block == Block::None && self.of_several {
            self.check_modes(TransactionModes::default())?;
            self.begin_implicit();
        }
        if self.block == Block::None {
            let message = "SET TRANSACTION can only be used in transaction blocks";
            self.core.notice("WARNING", SqlError::new("25P01", message));
        }
        Ok(self.block != Block::None)
    }

    /// SET TRANSACTION SNAPSHOT.
    fn import_snapshot(&mut self, id: &str, local: bool) -> Result<String> {
        if local {
            let message = "SET LOCAL TRANSACTION SNAPSHOT is not implemented";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        if !self.is_in_transaction()? {
            // Judged as within a block, in a transaction that ends with the statement.
            self.check_modes(TransactionModes::default())?;
            self.begin_implicit();
        }
        self.core.import_snapshot(id)?;
        Ok("SET".to_owned())
    }

    /// Tells the engine how far the transaction can go back.
    fn note_savepoint(&self) {
        let outer = || self.outer.as_ref().and_then(|outer| outer.mark.clone());
        let mark = self.savepoints.last().map(|s| s.mark.clone()).or_else(outer);
        self.core.engine.take().note_savepoint(mark.as_ref());
        *self.core.savepoint.lock() = LastSavepoint { mark, level: self.level(self.savepoints.len()) };
    }

    /// How many savepoints of the transaction there are below that at `at` of the session, which a function's session counts from its own first one.
    pub(super) fn level(&self, at: usize) -> usize {
        self.outer.as_ref().map_or(0, |outer| outer.level) + at
    }

    fn add_savepoint(&mut self, savepoint: Savepoint) {
        self.savepoints.push(savepoint);
        self.show_savepoints();
    }

    /// Tells pg_locks how many levels of the transaction would have an id of their own in PostgreSQL.
    pub(super) fn show_savepoints(&self) {
        self.note_savepoint();
        if self.is_nested() {
            return;
        }
        let levels = self.savepoints.iter().rposition(|s| s.wrote).map_or(0, |at| at + 1);
        let (backend, relaxed) = (&self.core.backend, std::sync::atomic::Ordering::Relaxed);
        backend.subtransactions.store(levels as u32, relaxed);
        backend.savepoints.store(self.savepoints.len() as u32, relaxed);
    }

    pub(super) fn need_block(&self, what: &str) -> Result<()> {
        if self.block == Block::Open {
            return Ok(());
        }
        Err(SqlError::new("25P01", format!("{what} can only be used in transaction blocks")))
    }

    pub(super) fn savepoint(&self, name: &str) -> Result<usize> {
        let at = self.savepoints.iter().rposition(|s| s.name == name);
        at.ok_or_else(|| SqlError::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    pub(super) async fn end_block(&mut self, commit: bool, chain: bool) -> Result<String> {
        let outside = matches!(self.block, Block::None | Block::Implicit);
        if outside && chain {
            return self
                .need_block(if commit { "COMMIT AND CHAIN" } else { "ROLLBACK AND CHAIN" })
                .map(|()| String::new());
        }
        if outside {
            self.core.notice("WARNING", SqlError::new("25P01", "there is no transaction in progress"));
        }
        let options = self.core.engine.take().options();
        let commit = commit && self.block != Block::Failed;
        if commit {
            self.commit().await?;
        } else {
            self.roll_back().await?;
        }
        if chain {
            self.core.engine.take().begin(options);
            self.block = Block::Open;
            self.settings_at_begin = Some(self.core.settings.lock().mark());
            self.core.transaction_begins(waits::now_ns());
        }
        Ok(if commit { "COMMIT" } else { "ROLLBACK" }.to_owned())
    }

    pub(super) async fn commit(&mut self) -> Result<()> {
        let (later, archived) = {
            let settings = self.core.settings.lock();
            (settings.commits_later, settings.commits_archived)
        };
        if let Err(e) = self.core.set_archived(archived) {
            self.core.archived.end();
            self.roll_back().await?;
            return Err(e);
        }
        let durability = if later { Durability::Async } else { Durability::Wait };
        if self.core.has_end_work()
            && let Err(e) = self.ending().await
        {
            // As a commit that fails: the transaction is gone.
            self.roll_back().await?;
            return Err(e);
        }
        {
            let mut engine = self.core.engine.take();
            if engine.is_open() {
                engine.commit(durability).await.map_err(from_engine)?;
            }
        }
        // ARS-1: before listeners hear of it. The commit stands, and they do, whatever becomes of the wait.
        let archived = self.core.wait_archived().await;
        if self.core.has_end_work() {
            self.core.deferred.lock().clear();
            self.notify_committed().await?;
        }
        self.committed(true);
        archived
    }

    /// The transaction is rolled back: what was left for its end goes.
    fn forget_end_work(&mut self) {
        if self.core.has_end_work() {
            self.cursors.roll_back(None);
            self.core.close_descriptors(None);
            self.core.notifying.lock().roll_back();
            self.core.deferred.lock().clear();
        }
    }

    /// The future of `before_commit`, whose code is generated in this crate alone.
    fn ending(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.before_commit())
    }

    /// What is still to be done in a transaction that is about to commit.
    async fn before_commit(&mut self) -> Result<()> {
        if !self.core.deferred.lock().is_empty() {
            Box::pin(deferred::settle(&self.core, None)).await?;
        }
        if !self.cursors.is_empty() {
            Box::pin(self.cursors.keep_held(&self.core)).await?;
        }
        // What a cursor WITH HOLD calls may have changed rows and deferred checks of its own (DFR-1).
        if !self.core.deferred.lock().is_empty() {
            Box::pin(deferred::settle(&self.core, None)).await?;
        }
        if self.core.engine.take().has_temporary() {
            Box::pin(defining::before_commit(&self.core)).await?;
        }
        self.core.close_descriptors(None); // DSC-1
        Ok(())
    }

    /// The transaction has ended well: what belonged to it goes. `has_local`: something was set for it alone.
    pub(super) fn committed(&mut self, has_local: bool) {
        self.portals.clear();
        if !self.savepoints.is_empty() {
            self.savepoints.clear();
            self.show_savepoints();
        }
        self.block = Block::None;
        self.in_batch = 0;
        self.settings_at_begin = None;
        if has_local {
            self.core.settings.lock().end_transaction();
        }
    }

    pub(super) async fn roll_back(&mut self) -> Result<()> {
        self.portals.clear();
        self.forget_end_work();
        self.savepoints.clear();
        self.show_savepoints();
        self.block = Block::None;
        self.in_batch = 0;
        if let Some(mark) = self.settings_at_begin.take() {
            self.core.roll_back_settings(&mark);
        }
        let undone = self.core.engine.take().roll_back().await;
        undone.map_err(from_engine)
    }

    pub(super) async fn end_implicit(&mut self) -> Result<()> {
        if self.block == Block::Implicit {
            self.commit().await?;
        }
        Ok(())
    }

    /// A statement has failed: its effects go, and the block is failed.
    pub(super) async fn failed<T>(&mut self, e: SqlError, client: &mut dyn Client) -> Result<T> {
        let e = self.core.limits.explain(&self.core, e);
        self.fail().await?;
        self.deliver(client);
        Err(e)
    }

    pub(super) async fn fail(&mut self) -> Result<()> {
        self.core.backend.interrupt.hear();
        self.told = true;
        self.row_turn.forget_statement();
        self.cursors.end_loops();
        match self.block {
            Block::None | Block::Failed => {}
            Block::Implicit => self.roll_back().await?,
            Block::Open => {
                self.forget_subtransactions();
                self.portals.fail();
                // A cursor outlives a failure if it was declared before the savepoint to which the client may go back.
                self.cursors.roll_back(self.savepoints.len().checked_sub(1));
                self.core.close_descriptors(self.savepoints.len().checked_sub(1));
                self.block = Block::Failed;
                match self.savepoints.last() {
                    // The locks since the last savepoint go; those before stay with what they protect.
                    Some(savepoint) => {
                        let (mark, settings) = (savepoint.mark.clone(), savepoint.settings.clone());
                        self.core.engine.take().roll_back_to(&mark).await.map_err(from_engine)?;
                        self.core.roll_back_settings(&settings);
                    }
                    None => {
                        self.core.engine.take().roll_back().await.map_err(from_engine)?;
                        // The client is told with the error, not when it ends the block.
                        if let Some(settings) = &self.settings_at_begin {
                            self.core.roll_back_settings(settings);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// The engine's isolation for a level of SQL.
fn isolation_of(level: &str) -> Isolation {
    match level {
        "repeatable read" | "serializable" => Isolation::RepeatableRead,
        _ => Isolation::ReadCommitted,
    }
}
