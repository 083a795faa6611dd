//! The double-write area: copies of pages that are about to be overwritten in place, so that a torn page has a
//! whole twin.
//!
//! # Structure
//! The file is an array of pages, each with its number and checksum; a batch fills it from the start. What an
//! earlier, larger batch left behind does no harm: a twin is used only where the page in place is torn, and then
//! it is the one with the highest LSN; and only if that lies behind the point where redo starts. A page that was
//! being written at the crash was dirty, so its LSN does. An older twin may lack changes that redo will not bring
//! back: what is damaged in place then is damaged, and told when it is read.
//!
//! # Crash safety
//! - While the area is written: pages in place are whole; torn twins fail their checksum and are ignored.
//! - After its sync, while pages are written in place: each is whole or has a whole twin (BUF-9).
//!
//! # Not here
//! When to restore (before redo; recovery's).

use super::page::{self, PAGE_BYTES, PageBytes};
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::seams::PageSpace;
use clearway_base::vfs::{IoBuf, VfsFile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The area.
pub struct DoubleWrite {
    file: Option<Arc<dyn VfsFile>>,
}

/// What a restore did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Whole twins found.
    pub twins: usize,
    /// Pages that were torn in place and written again.
    pub pages: Vec<PageId>,
}

/// The bytes of a page with a good checksum, its number and LSN.
fn whole(bytes: &[u8]) -> Option<(PageId, Lsn)> {
    let bytes: &PageBytes = bytes.try_into().ok()?;
    let stored = u32::from_le_bytes(bytes[..4].try_into().ok()?);
    if stored != page::checksum(bytes) {
        return None;
    }
    let id = PageId(u32::from_le_bytes(bytes[4..8].try_into().ok()?));
    Some((id, Lsn(u64::from_le_bytes(bytes[8..16].try_into().ok()?))))
}

impl DoubleWrite {
    /// The area in this file.
    pub fn new(file: Arc<dyn VfsFile>) -> DoubleWrite {
        DoubleWrite { file: Some(file) }
    }

    /// No area: the device writes whole pages by itself, or nothing is to survive.
    pub fn none() -> DoubleWrite {
        DoubleWrite { file: None }
    }

    /// Makes the twins of a batch durable; gives the buffer back.
    pub(super) async fn write(&self, batch: IoBuf) -> Result<IoBuf, StorageError> {
        let Some(file) = &self.file else {
            return Ok(batch);
        };
        let batch = file.write_at(0, batch).await?;
        file.sync_data().await?;
        Ok(batch)
    }

    /// Writes the twins of torn pages over them and syncs. Idempotent; before redo, which starts at `redo`, with nobody
    /// else about.
    pub async fn restore(&self, space: &dyn PageSpace, redo: Lsn) -> Result<Restored, StorageError> {
        let mut restored = Restored::default();
        let Some(file) = &self.file else {
            return Ok(restored);
        };
        let pages = file.len().await? / PAGE_BYTES as u64;
        let mut newest: BTreeMap<PageId, (Lsn, u64)> = BTreeMap::new();
        for index in 0..pages {
            let offset = index * PAGE_BYTES as u64;
            let buf = file.read_at(offset, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
            let Some((id, lsn)) = whole(&buf) else {
                continue;
            };
            restored.twins += 1;
            if lsn <= redo {
                continue;
            }
            let best = newest.entry(id).or_insert((lsn, offset));
            if lsn >= best.0 {
                *best = (lsn, offset);
            }
        }
        for (id, (_, offset)) in newest {
            // A twin beyond the space is of a page that was given back since.
            let Ok((place, at)) = space.locate(id) else {
                continue;
            };
            let in_place = place.read_at(at, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
            if whole(&in_place).is_some_and(|(found, _)| found == id) {
                continue;
            }
            let twin = file.read_at(offset, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
            place.write_at(at, twin).await?;
            place.sync_data().await?;
            restored.pages.push(id);
        }
        Ok(restored)
    }
}
