//! Prepares ahead of need: log space for the undo of losers, and the buffer in which a thread encodes a record.

use super::Wal;
use crate::error::StorageError;

impl Wal {
    /// Has this thread's buffer, in which [`Wal::fill`] encodes, hold a record of `len` bytes. The caller does so before the commit section,
    /// which allocates nothing.
    pub fn make_room(len: usize) {
        super::SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            scratch.reserve(len);
        });
    }

    /// Prepares the log space that the undo of losers was promised by force. After a crash the space is normally there, since it was set
    /// aside with each change (WAL-7). A restored directory, or one whose prepared segments were lost in a crash, lacks it.
    ///
    /// # Errors
    /// A full disk, a failed file operation: the database does not open.
    pub(crate) async fn prepare_for_undo(&self) -> Result<(), StorageError> {
        while self.accounts.log_free() < 0 {
            let made = self.segments.prepare(self.segments.end_number(), 1).await?;
            self.accounts.prepared(made * self.segments.layout().payload());
        }
        Ok(())
    }
}
