//! The segments that are kept for reuse, on a full disk.

use super::Wal;
use crate::error::StorageError;
use std::sync::atomic::Ordering::Relaxed;

impl Wal {
    /// Whether the disk had no room when a file of the database was last to grow.
    pub(crate) fn note_full(&self, full: bool) {
        self.full.store(full, Relaxed);
    }

    /// Gives the segments that are kept for reuse back to the disk, if that is full. A later segment is made anew then.
    ///
    /// # Errors
    /// A failed removal, which poisons.
    pub(crate) async fn give_back_spares(&self) -> Result<(), StorageError> {
        if !self.full.load(Relaxed) {
            return Ok(());
        }
        let removed = self.segments.remove_spares().await;
        removed.map_err(|err| self.poison(&format!("spare log segments could not be removed: {err}")))
    }
}
