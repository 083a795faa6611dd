//! `statement_timeout` of a statement that comes as several messages. As in PostgreSQL, it counts from Parse to the end of Execute, through the
//! pauses that the client makes between them; it is told with the next message. Without Parse it counts from Execute.

use super::session::Session;
use crate::error::{Result, SqlError};
use clearway_base::waits::now_ns;

const MS: u64 = 1_000_000;

impl Session {
    /// Parse begins the time of a statement, unless that of one before has not ended.
    pub(super) fn begin_time(&mut self) {
        if self.parsed_ns == 0 && self.timeouts().statement_ms != 0 {
            self.parsed_ns = now_ns();
        }
    }

    /// How much of a timeout is left: at least a millisecond, so that the work is stopped where it can be.
    pub(super) fn time_left(&self, limit_ms: u64) -> u64 {
        if self.parsed_ns == 0 || limit_ms == 0 {
            return limit_ms;
        }
        limit_ms.saturating_sub(now_ns().saturating_sub(self.parsed_ns) / MS).max(1)
    }

    /// Whether the time that began with Parse has passed.
    pub(super) fn is_overdue(&self) -> bool {
        self.parsed_ns != 0 && {
            let limit_ms = self.core.settings.lock().statement_timeout_ms;
            let limit_ms = self.core.limits.statement_ms(&self.core, limit_ms);
            limit_ms != 0 && now_ns().saturating_sub(self.parsed_ns) / MS >= limit_ms
        }
    }

    /// Refuses a message that comes too late.
    ///
    /// # Errors
    /// 57014; the transaction has failed.
    pub(super) async fn in_time(&mut self) -> Result<()> {
        if !self.is_overdue() {
            return Ok(());
        }
        let late = SqlError::new("57014", "canceling statement due to statement timeout");
        let late = self.core.limits.explain(&self.core, late);
        Err(self.broken(late).await)
    }
}
