//! The segments that are kept for reuse, on a full disk.

use super::Wal;
use crate::error::StorageError;
use std::sync::atomic::Ordering::Relaxed;

impl Wal {
    /// Notes whether the disk had no room for a file of the database since the last checkpoint that a statement asked for.
    pub(crate) fn note_full(&self, full: bool) {
        self.full.store(full, Relaxed);
    }

    /// What was noted.
    pub(crate) fn was_full(&self) -> bool {
        self.full.load(Relaxed)
    }

    /// Gives the segments that are kept for reuse back to the disk, if that was full. A later segment is made anew then.
    ///
    /// # Errors
    /// A failed removal, which poisons.
    pub(crate) async fn give_back_spares(&self) -> Result<(), StorageError> {
        if !self.was_full() {
            return Ok(());
        }
        let removed = self.segments.remove_spares().await;
        removed.map_err(|err| self.poison(&format!("spare log segments could not be removed: {err}")))
    }
}
