//! What bodies in PL/pgSQL need of the session: blocks that can be undone (PLS-1), transactions that follow each other within one statement, and
//! messages that leave before it ends.

use super::client::Client;
use super::cursors::Cursors;
use super::session::{Block, Session};
use crate::context::core::Core;
use crate::context::settings::HiddenMessages;
use crate::error::Result;
use crate::syntax::stmt::TransactionModes;
use clearway_base::waits;
use std::sync::Arc;

/// The name of a savepoint that no statement can name.
const UNNAMED: &str = "";

impl Session {
    /// A session over the transaction of a statement that runs: for a function that it calls.
    pub(super) fn nested(core: &Arc<Core>) -> Session {
        let mut session = Session::over(core.clone(), 0);
        session.block = Block::Open;
        session.outer = Some(core.savepoint.lock().clone());
        if let Some(shared) = Cursors::shared(core) {
            session.cursors = shared;
        }
        session
    }

    /// Whether it is that of a function.
    pub(super) fn is_nested(&self) -> bool {
        self.outer.is_some()
    }

    /// Whether a block that can be undone is open in a transaction that a body may end.
    pub(super) fn in_subtransaction(&self) -> bool {
        !self.savepoints.is_empty()
    }

    /// Begins a block that can be undone; its place, for the other functions.
    pub(super) fn begin_subtransaction(&mut self) -> usize {
        self.push_savepoint(UNNAMED);
        self.savepoints.len() - 1
    }

    /// What happened in the block stays.
    pub(super) fn release_subtransaction(&mut self, at: usize) {
        assert!(at < self.savepoints.len(), "a block of PL/pgSQL ends its own savepoint: {at}");
        self.release_savepoint(at);
    }

    /// What happened in the block is undone (PLS-1).
    pub(super) async fn undo_subtransaction(&mut self, at: usize) -> Result<()> {
        assert!(at < self.savepoints.len(), "a block of PL/pgSQL undoes its own savepoint: {at}");
        // A handler may go on after a cancel.
        self.core.backend.interrupt.hear();
        self.undo_to_savepoint(at).await?;
        self.release_savepoint(at);
        Ok(())
    }

    /// A statement has failed, and may have been dropped in the middle of a wait: the savepoints of blocks of PL/pgSQL have gone with it, and what
    /// is undone goes back to a savepoint of the client (PLS-1).
    pub(super) fn forget_subtransactions(&mut self) {
        if let Some(at) = self.savepoints.iter().position(|s| s.name == UNNAMED) {
            self.savepoints.truncate(at);
        }
        self.within_body = false;
        self.show_savepoints();
    }

    /// A statement of a body has begun to run.
    pub(super) fn ran_within(&mut self, read_only: bool) {
        if read_only {
            return;
        }
        self.changes += 1;
        if let Some(savepoint) = self.savepoints.last_mut()
            && !savepoint.wrote
        {
            savepoint.wrote = true;
            self.show_savepoints();
        }
    }

    /// The statement's transaction ends, and another one begins for the rest of the statement.
    pub(super) async fn next_transaction(&mut self, commit: bool, chain: bool) -> Result<()> {
        let modes = chain.then(|| self.core.engine.take().options());
        self.cursors.keep_pinned(&self.core).await?;
        if commit {
            self.commit().await?;
        } else {
            self.roll_back().await?;
        }
        self.open(TransactionModes::default(), waits::now_ns());
        self.block = Block::Implicit;
        self.in_batch = 1;
        if let Some(modes) = modes {
            self.core.engine.take().set_options(modes);
        }
        Ok(())
    }

    /// Sends the messages so far.
    pub(super) fn deliver_notices(&self, client: &mut dyn Client) {
        let hides = self.core.settings.lock().hides;
        for (severity, message) in self.core.take_notices() {
            let hidden = match hides {
                HiddenMessages::Warnings => true,
                HiddenMessages::Notices => severity != "WARNING",
                HiddenMessages::Nothing => false,
            };
            if !hidden {
                client.notice(severity, &message);
            }
        }
    }
}
