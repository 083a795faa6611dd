//! Commits that wait for the archive: `synchronous_commit = archive`.
//!
//! # Life of such a commit
//! durable in the server's own log -> the session asks the archiver to send up to there -> the piece is durable in the archive -> the
//! client hears of the commit.
//!
//! # Invariants
//! - ARS-1: under this policy nothing is told before what it depends on is in the archive: the session's own commits and those that it
//!   has read. A cancel ends the wait with a warning, as it does PostgreSQL's wait for a synchronous standby: the commit stands, and
//!   nothing can take it back.

use super::session::Session;
use crate::error::{Result, SqlError};
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_storage::ids::Lsn;
use std::pin::pin;

const DETAIL: &str = "The transaction has already committed locally, but might not be in the archive.";

impl Session {
    /// Takes the policy of the transaction that begins, or commits.
    ///
    /// # Errors
    /// The server has no archive for which commits could wait.
    pub(super) fn set_archived(&mut self, asked: bool) -> Result<()> {
        self.archived = asked.then(|| self.archived.unwrap_or(Lsn::ZERO));
        if asked && !self.core.db.transactions().store().archive().is_sync() {
            let message = "synchronous_commit is archive, and the server has no archive for which commits could wait";
            return Err(SqlError::new("55000", message).hint("Start it with archive = TARGET and archive_mode = sync."));
        }
        Ok(())
    }

    /// Whether everything on which replies depend is in the archive, as far as the policy asks for it.
    pub(super) fn may_tell(&self) -> bool {
        let Some(waived) = self.archived else { return true };
        let due = self.core.engine.take().dep_lsn();
        due <= waived || self.core.db.transactions().store().archive().reached() >= due
    }

    /// Waits until everything on which replies depend is in the archive (ARS-1).
    ///
    /// # Errors
    /// The session ends.
    pub(super) async fn wait_archived(&mut self) -> Result<()> {
        if self.may_tell() {
            return Ok(());
        }
        let core = self.core.clone();
        let due = core.engine.take().dep_lsn();
        let store = core.db.transactions().store();
        let wait = in_wait(WaitEvent::ArchiveDurable, Object::NONE, store.archive().wait(due));
        match core.backend.interrupt.guard(pin!(wait)).await {
            Ok(()) => Ok(()),
            Err(error) if core.backend.interrupt.last().is_some_and(|reason| reason.is_fatal()) => {
                Err(error.detail(DETAIL))
            }
            Err(_) => {
                self.archived = Some(due);
                let message = "canceling the wait for the archive due to user request";
                core.notice("WARNING", SqlError::new("01000", message).detail(DETAIL));
                Ok(())
            }
        }
    }
}
