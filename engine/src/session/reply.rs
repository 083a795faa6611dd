//! What a session's replies wait for.

use clearway_base::waits::{Object as WaitObject, WaitEvent, in_wait};
use clearway_storage::ids::Lsn;
use clearway_txn::transaction::Transaction;

use super::Session;
use crate::db::Db;
use crate::error::EngineError;

/// What has to be durable before a reply may leave (SES-4).
#[derive(Clone, Copy, Debug)]
pub struct ReplyDue {
    /// Everything before this LSN.
    pub dep_lsn: Lsn,
    /// Whether that LSN is the session's own last commit.
    pub own: bool,
}

impl ReplyDue {
    /// Waits until that LSN is durable.
    ///
    /// # Errors
    /// The log is poisoned.
    pub async fn wait(self, db: &Db) -> Result<(), EngineError> {
        let wal = db.transactions().store().wal();
        if self.dep_lsn > wal.durable_lsn() {
            let event = if self.own { WaitEvent::CommitDurable } else { WaitEvent::ReplyDurable };
            in_wait(event, WaitObject::NONE, wal.wait_durable(self.dep_lsn)).await?;
        }
        Ok(())
    }
}

impl Session {
    /// Notes that replies depend on a commit.
    pub fn depends_on(&mut self, lsn: Lsn) {
        self.dep_lsn = self.dep_lsn.max(lsn);
    }

    /// The LSN up to which replies depend on commits.
    pub fn dep_lsn(&self) -> Lsn {
        self.dep_lsn.max(self.txn.as_deref().map_or(Lsn::ZERO, Transaction::dep_lsn))
    }

    /// Whether everything that the session was told of is durable (SES-4).
    pub fn may_reply(&self) -> bool {
        self.dep_lsn() <= self.db.transactions().store().wal().durable_lsn()
    }

    /// Waits until everything that the session was told of is durable (SES-4).
    ///
    /// # Errors
    /// The log is poisoned.
    pub async fn wait_reply(&mut self) -> Result<(), EngineError> {
        self.reply_due().wait(&self.db).await
    }

    /// What has to be durable before others hear of the session's last commit, whatever the session itself waits for.
    pub fn commit_durable(&self) -> ReplyDue {
        ReplyDue { dep_lsn: self.dep_lsn().max(self.last_commit), own: true }
    }

    /// What `wait_reply` waits for, as a value that can be awaited without the session.
    pub fn reply_due(&self) -> ReplyDue {
        let dep_lsn = self.dep_lsn();
        ReplyDue { dep_lsn, own: dep_lsn == self.last_commit }
    }
}
