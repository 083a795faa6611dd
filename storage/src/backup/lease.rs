//! The beginning and the end of a copy: its lease (`crate::leases`) is taken and given back.

use super::start::Start;
use crate::buffer::PAGE_BYTES;
use crate::error::StorageError;
use crate::recovery::saved;
use crate::store::Store;
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, VfsFile};
use std::io::ErrorKind;
use std::sync::Arc;

/// The log that one lease may keep, in bytes; beyond it the copy is lost and the log goes on.
const LEASE_LOG_BYTES: u64 = 256 << 30;

/// The most that a checkpoint for the sake of a copy may write, in bytes of pages: what is dirty at rest in a cache of 256 MB at most (BUF-20).
const DIRTY_BYTES_MAX: u64 = 128 << 20;

impl Store {
    /// Whether a checkpoint now costs less than the log that a copy is spared by it. A copy takes the log from the begin of the
    /// checkpoint before the last one on (REC-2): after work that has come to rest, that is far more than what is still dirty.
    pub fn checkpoint_spares_log(&self) -> bool {
        let control = self.checkpoints().control();
        let spared = control.begin.0.saturating_sub(control.scan.0);
        let dirty = (self.pool().dirty_pages() * PAGE_BYTES) as u64;
        spared > control.segment_bytes / 4 && dirty < spared.min(DIRTY_BYTES_MAX)
    }

    /// Begins a copy: from now on the log that it needs is kept, until [`Store::leave_copy`] or until no request came for five minutes.
    ///
    /// # Errors
    /// The database has ended; a failed read.
    pub async fn begin_copy(&self) -> Result<Start, StorageError> {
        loop {
            if self.ended() {
                return Err(self
                    .wal()
                    .poisoned()
                    .unwrap_or_else(|| StorageError::Invalid("the database is closed".into())));
            }
            self.leases().expire();
            let lease = self.leases().number();
            // BAK-2: with the control block in hand, before a newer one can release what this one needs.
            let held = self.checkpoints().with_control(|control| {
                let holder = self.wal().retention().hold(&format!("backup {lease}"), control.scan, LEASE_LOG_BYTES);
                holder.map(|holder| {
                    self.leases().put(lease, holder, control.scan);
                    *control
                })
            });
            let Some(control) = held else { continue };
            let read = async {
                if control.checkpoint == 0 {
                    return Ok(Vec::new());
                }
                let path = saved::path(self.checkpoints().dir(), control.checkpoint);
                let file: Arc<dyn VfsFile> = self.vfs().open(&path, OpenHow::existing(FileKind::Checkpoint)).await?;
                let len = control.checkpoint_len as usize;
                Ok(file.read_exact_at(0, IoBuf::zeroed(len), len).await?.to_vec())
            };
            match read.await {
                Ok(checkpoint) => {
                    return Ok(Start { lease, files: self.space().file_pages(), control, checkpoint });
                }
                // A checkpoint ended meanwhile and took the file of the one before with it.
                Err(StorageError::Io(err)) if err.kind() == ErrorKind::NotFound => self.leases().end(lease),
                Err(err) => {
                    self.leases().end(lease);
                    return Err(err);
                }
            }
        }
    }

    /// Ends a copy; what was kept for it goes.
    pub fn leave_copy(&self, lease: u64) {
        self.leases().end(lease);
    }
}
