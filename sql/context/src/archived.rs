//! The policy `synchronous_commit = archive`: replies wait until the commits that they depend on are in the archive.
//!
//! # Life of a commit under this policy
//! The commit is durable in the server's own log -> the session asks the archiver to send the log up to there -> that part of the log is
//! durable in the archive -> the client gets its reply, and the listeners get what the transaction notified.
//!
//! # Invariants
//! - ARS-1: under this policy nothing leaves for the client before everything on which it depends is in the archive. It may depend on the
//!   session's own commits and on commits that the session has read; it may leave in a reply, in the part of a long result that is sent
//!   before the result's end, or in a notification. A cancel ends the wait with a warning, as it ends PostgreSQL's wait for a synchronous
//!   standby: the transaction is committed and can't be undone.

use super::core::Core;
use crate::errors::from_engine;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_storage::ids::Lsn;
use clearway_syntax::error::{Result, SqlError};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const DETAIL: &str = "The transaction has already committed locally, but might not be in the archive.";

/// The policy of the transaction that runs or ended last.
pub struct Archived {
    /// [`OTHER`], or the position up to which a cancel has waived the wait. Written by the session's own task alone.
    waived: AtomicU64,
}

/// The policy is another one: no position is so great.
const OTHER: u64 = u64::MAX;

impl Default for Archived {
    fn default() -> Self {
        Archived { waived: AtomicU64::new(OTHER) }
    }
}

impl Archived {
    fn waived(&self) -> Option<Lsn> {
        Some(self.waived.load(Relaxed)).filter(|waived| *waived != OTHER).map(Lsn)
    }

    fn waive(&self, due: Lsn) {
        self.waived.store(due.0, Relaxed);
    }

    /// Another policy from now on.
    pub fn end(&self) {
        self.waived.store(OTHER, Relaxed);
    }
}

/// A statement that waits for the archive. If it is cut off there, the wait is waived: its error would wait for the same.
struct Cut<'a> {
    core: &'a Core,
    due: Lsn,
    ended: bool,
}

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        if !self.ended && self.core.backend.interrupt.last().is_some_and(|reason| !reason.is_fatal()) {
            self.core.waive_archive(self.due);
        }
    }
}

impl Core {
    /// Takes the policy of the transaction that begins, or commits.
    ///
    /// # Errors
    /// The server has no archive for which commits could wait, or one that restores nothing of them (HOL-1).
    pub fn set_archived(&self, asked: bool) -> Result<()> {
        if !asked {
            self.archived.end();
            return Ok(());
        }
        self.archived.waive(self.archived.waived().unwrap_or(Lsn::ZERO));
        let archive = self.db.transactions().store().archive();
        if !archive.is_sync() {
            let message = "synchronous_commit is archive, and the server has no archive for which commits could wait";
            return Err(SqlError::new("55000", message).hint("Start it with archive = TARGET and archive_mode = sync."));
        }
        if let Some((from, to)) = archive.hole() {
            let message =
                format!("synchronous_commit is archive, and the archive lacks the log from LSN {from} to {to}");
            let detail = "No commit can be restored that comes after it, until a backup is taken.";
            let hint = "Take a backup into the target of the archive: clearway backup TARGET.";
            return Err(SqlError::new("55000", message).detail(detail).hint(hint));
        }
        Ok(())
    }

    /// Whether everything on which replies depend is in the archive, as far as the policy asks for it.
    pub fn may_tell(&self) -> bool {
        let Some(waived) = self.archived.waived() else { return true };
        let due = self.archive_due();
        due <= waived || self.db.transactions().store().archive().reached() >= due
    }

    /// Waits until everything on which replies depend is in the archive (ARS-1).
    ///
    /// # Errors
    /// The session ends.
    pub async fn wait_archived(&self) -> Result<()> {
        if self.may_tell() {
            return Ok(());
        }
        let due = self.archive_due();
        match self.backend.interrupt.guard(pin!(self.archive_wait(due))).await {
            Ok(()) => Ok(()),
            Err(error) if self.backend.interrupt.last().is_some_and(|reason| reason.is_fatal()) => {
                Err(error.detail(DETAIL))
            }
            Err(_) => {
                self.waive_archive(due);
                Ok(())
            }
        }
    }

    /// Waits until what a statement has told so far may leave before its end: it is durable, and in the archive if the policy asks for
    /// that (ARS-1). A statement that is cancelled here ends.
    ///
    /// # Errors
    /// The log is poisoned.
    pub async fn wait_told(&self) -> Result<()> {
        self.engine.take().wait_reply().await.map_err(from_engine)?;
        // Rare, and its state would lie in every session's memory.
        if self.may_tell() { Ok(()) } else { Box::pin(self.wait_cut()).await }
    }

    async fn wait_cut(&self) -> Result<()> {
        let mut cut = Cut { core: self, due: self.archive_due(), ended: false };
        self.archive_wait(cut.due).await;
        cut.ended = true;
        Ok(())
    }

    /// Replies depend on commits up to this one; so do notifications, which are told in their midst (NTF-4).
    fn archive_due(&self) -> Lsn {
        self.engine.take().dep_lsn().max(self.backend.inbox.heard())
    }

    async fn archive_wait(&self, due: Lsn) {
        let archive = self.db.transactions().store().archive();
        in_wait(WaitEvent::ArchiveDurable, Object::NONE, archive.wait(due)).await;
    }

    fn waive_archive(&self, due: Lsn) {
        self.archived.waive(due);
        let message = "canceling the wait for the archive due to user request";
        self.notice("WARNING", SqlError::new("01000", message).detail(DETAIL));
    }
}
