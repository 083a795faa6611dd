//! LISTEN, UNLISTEN and NOTIFY (sql/context/src/notify.rs).

use super::session::Session;
use crate::context::errors::from_engine;
use crate::error::{Result, SqlError};
use crate::syntax::stmt::Statement;

impl Session {
    /// Runs one of them; the command tag.
    pub(super) fn notifying(&mut self, statement: &Statement) -> Result<&'static str> {
        let core = self.core.clone();
        core.ends_with_work();
        let mut notifying = core.notifying.lock();
        match statement {
            Statement::Listen { channel } => {
                notifying.listen(channel);
                Ok("LISTEN")
            }
            Statement::Unlisten { channel } => {
                notifying.unlisten(channel.as_deref());
                Ok("UNLISTEN")
            }
            Statement::Notify { channel, payload } => {
                let payload = payload.as_deref().unwrap_or("");
                notifying.notify(&core.backends.channels, core.backend.pid, channel, payload)?;
                Ok("NOTIFY")
            }
            _ => Err(SqlError::internal("no NOTIFY")),
        }
    }

    /// NTF-1: the transaction has committed; what it notifies goes out when that is durable, whatever the session waits for.
    pub(super) async fn notify_committed(&mut self) -> Result<()> {
        if self.core.notifying.lock().is_empty() {
            return Ok(());
        }
        let core = self.core.clone();
        let durable = core.engine.take().commit_durable();
        let commit = durable.dep_lsn;
        durable.wait(&core.db).await.map_err(from_engine)?;
        core.notifying.lock().committed(&core.backends.channels, core.database, &core.backend, commit);
        Ok(())
    }
}
