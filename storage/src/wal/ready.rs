//! Log that is made ready before anybody asks for it: what undo was promised.

use super::Wal;
use crate::error::StorageError;

impl Wal {
    /// Makes ready what the undo of losers was promised without looking whether there is any. After a crash it is there, since it was set
    /// aside with each change (WAL-7); a directory that was restored, or whose prepared segments a crash took, has none.
    ///
    /// # Errors
    /// A full disk, a failed file operation: the database does not open.
    pub(crate) async fn prepare_for_undo(&self) -> Result<(), StorageError> {
        while self.accounts.log_free() < 0 {
            self.segments.prepare(self.segments.end_number()).await?;
            self.accounts.prepared(self.segments.layout().payload());
        }
        Ok(())
    }
}
