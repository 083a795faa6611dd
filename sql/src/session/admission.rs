//! Applies the limits of a session's role and database to a statement, before and after it runs.

use super::session::{Block, Session};
use crate::error::Result;
use std::pin::pin;

impl Session {
    /// Waits until the limits let a statement begin, for so long at most (0: without an end).
    ///
    /// # Errors
    /// 53400; those of an interrupt.
    pub(super) async fn admit(&self, limit_ms: u64) -> Result<()> {
        let core = &self.core;
        if !core.limits.must_wait(core) {
            return Ok(());
        }
        let in_block = self.block == Block::Open && self.in_batch > 0;
        let admitted = Box::pin(core.limits.admit(core, in_block));
        let interrupt = &core.backend.interrupt;
        interrupt.timed(limit_ms, pin!(interrupt.guard(admitted))).await?
    }

    /// The session may have no transaction any more.
    pub(super) fn rest(&self) {
        if self.block == Block::None {
            self.core.limits.rest(&self.core);
        }
    }
}
