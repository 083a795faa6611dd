//! Pages and log of a database that runs, piece by piece.

use super::{LOG_BYTES_MAX, PAGES_MAX};
use crate::buffer::page::seal;
use crate::buffer::{PAGE_BYTES, not_ahead, verify};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::seams::PageSpace;
use crate::store::Store;
use clearway_base::sync::sleep;
use clearway_base::vfs::IoBuf;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use std::time::Duration;

/// A page that reads torn is being written. So often it is read again before it counts as damaged,
const READ_ATTEMPTS: usize = 50;
/// so long after the last time.
const READ_PAUSE: Duration = Duration::from_millis(2);

impl Store {
    /// The pages from `first` on, at most `count` and none beyond the file in which `first` lies, that changed after `since`: whole,
    /// one behind the other. Pages that were never written are left out.
    ///
    /// # Errors
    /// A damaged page, by name; no such lease; a failed read.
    pub async fn copy_pages(&self, lease: u64, first: PageId, count: u32, since: Lsn) -> Result<Vec<u8>, StorageError> {
        self.leases().touch(lease)?;
        let per_file = self.space().pages_per_file();
        let count = count.min(PAGES_MAX).min(per_file - first.0 % per_file);
        let (file, offset) = self.space().locate(first)?;
        let len = count as usize * PAGE_BYTES;
        let read = file.read_at(offset, IoBuf::with_capacity(len), len).await?;
        let mut out = Vec::with_capacity(if since == Lsn::ZERO { read.len() } else { 0 });
        for (at, bytes) in read.chunks(PAGE_BYTES).enumerate() {
            let id = PageId(first.0 + at as u32);
            if bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            match verify(id, bytes) {
                Ok(page) => self.take_page(id, page, since, &mut out)?,
                Err(_) => {
                    if let Some(page) = self.read_again(id).await? {
                        self.take_page(id, &page, since, &mut out)?;
                    }
                }
            }
        }
        Ok(out)
    }

    /// BAK-1
    fn take_page(
        &self,
        id: PageId,
        page: &[u8; PAGE_BYTES],
        since: Lsn,
        out: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        not_ahead(id, page, self.wal().end_lsn()).map_err(|damage| damage.in_file(self.space().file_name(id)))?;
        let lsn =
            Lsn(u64::from_le_bytes([page[8], page[9], page[10], page[11], page[12], page[13], page[14], page[15]]));
        if lsn > since || since == Lsn::ZERO {
            out.extend_from_slice(page);
        }
        Ok(())
    }

    /// A page that did not read whole: from memory if it is there, else from disk until it is whole. None: no tree uses it.
    async fn read_again(&self, id: PageId) -> Result<Option<Box<[u8; PAGE_BYTES]>>, StorageError> {
        let mut damage = Corruption::in_page(id, Lsn::ZERO, "a page", "none");
        for _ in 0..READ_ATTEMPTS {
            if let Some(pin) = self.pool().try_pin(id) {
                let mut bytes = Box::new([0; PAGE_BYTES]);
                pin.latch().page().copy_out(&mut bytes);
                seal(&mut bytes);
                return Ok(Some(bytes));
            }
            let (file, offset) = self.space().locate(id)?;
            let read = file.read_at(offset, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
            match verify(id, &read) {
                Ok(page) => return Ok(Some(Box::new(*page))),
                Err(found) => damage = found,
            }
            in_wait(WaitEvent::BaseBackupRead, Object::NONE, sleep(READ_PAUSE)).await;
        }
        if !self.space().in_use(id) {
            return Ok(None);
        }
        Err(damage.in_file(self.space().file_name(id)).into())
    }

    /// Ends the copying of pages: every change that any copied page has lies below the position that is returned, which is durable.
    ///
    /// # Errors
    /// No such lease; the database has stopped.
    pub async fn end_copy(&self, lease: u64) -> Result<Lsn, StorageError> {
        self.leases().touch(lease)?;
        let end = self.wal().end_lsn();
        in_wait(WaitEvent::WalFlush, Object::NONE, self.wal().wait_durable(end)).await?;
        Ok(end)
    }

    /// The log's bytes from `from` on, to `to` at most.
    ///
    /// # Errors
    /// No such lease; what is asked for is not durable, or gone.
    pub async fn copy_log(&self, lease: u64, from: Lsn, to: Lsn) -> Result<Vec<u8>, StorageError> {
        self.leases().touch(lease)?;
        self.wal().read_stream(from, to.min(Lsn(from.0.saturating_add(LOG_BYTES_MAX)))).await
    }
}
