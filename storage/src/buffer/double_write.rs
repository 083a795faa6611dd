//! The double-write area: holds copies (twins) of pages that are about to be overwritten in place, so that a torn page has a
//! whole twin.
//!
//! # Structure
//! The file is an array of pages, each with its number and checksum; a batch fills it from the start. Twins that an
//! earlier, larger batch left behind do no harm: a twin is used only if the page in place is torn or has the same LSN (BUF-15), then the
//! twin with the highest LSN, and only if that LSN is beyond the point where redo starts. A page that was being written at the
//! crash was dirty, so its LSN is beyond that point. An older twin may lack changes that redo does not repeat. It is
//! not used; the page in place is then damaged, and reported when it is read.
//!
//! # Invariants
//! - BUF-15: a page that reads well after a crash may still not be on disk: if the sync of its batch failed, later syncs
//!   may succeed without it. No batch was written after the failed one (BUF-14), so only the pages of its twins can be
//!   concerned. These twins are written in place again before recovery relies on the pages.
//!
//! # Crash safety
//! - While the area is written: the pages in place are whole; torn twins fail their checksum and are ignored.
//! - After the area's sync, while pages are written in place: each page is whole or has a whole twin (BUF-9).
//!
//! # Not here
//! The time of a restore (before redo): recovery decides it, and reads the twins ([`Twins::read`]) before it changes anything.

use super::page::{self, PAGE_BYTES, PageBytes};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::seams::PageSpace;
use clearway_base::vfs::{IoBuf, VfsFile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The area.
pub struct DoubleWrite {
    file: Option<Arc<dyn VfsFile>>,
}

/// The counts of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Whole twins in the area.
    pub twins: usize,
    /// Pages that were torn in place, or whose batch may not have been synced (BUF-15); written again.
    pub pages: Vec<PageId>,
}

/// The twins that a restore may use: the newest one of each page, and where it stands in the area.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Twins {
    newest: BTreeMap<PageId, (Lsn, u64)>,
    found: usize,
}

impl Twins {
    /// Reads the area in `file`. Redo starts at `redo`, and the log ends at `end`.
    ///
    /// # Errors
    /// A twin of a change behind `end` (BUF-16); a failed read.
    pub async fn read(file: &Arc<dyn VfsFile>, redo: Lsn, end: Lsn) -> Result<Twins, StorageError> {
        let mut twins = Twins::default();
        let pages = file.len().await? / PAGE_BYTES as u64;
        for index in 0..pages {
            let offset = index * PAGE_BYTES as u64;
            let buf = file.read_at(offset, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
            let Some((id, lsn)) = whole(&buf) else {
                continue;
            };
            twins.found += 1;
            if lsn > end {
                let expected = format!("a change at or before LSN {end}, where the log ends");
                let found = format!("one of LSN {lsn}: the end of the log is lost");
                let twin = Corruption { offset: Some(offset), ..Corruption::in_page(id, lsn, expected, found) };
                return Err(twin.in_file("double-write").into());
            }
            if lsn <= redo {
                continue;
            }
            let best = twins.newest.entry(id).or_insert((lsn, offset));
            if lsn >= best.0 {
                *best = (lsn, offset);
            }
        }
        Ok(twins)
    }

    /// Whether there is one of this page.
    pub fn has(&self, id: PageId) -> bool {
        self.newest.contains_key(&id)
    }
}

/// The bytes of a page with a good checksum, its number and LSN.
pub(crate) fn whole(bytes: &[u8]) -> Option<(PageId, Lsn)> {
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

    /// No area: the device writes pages atomically, or the data need not survive.
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

    /// Writes twins over torn pages and over pages with the same content (BUF-15), and syncs. Idempotent. Called before redo,
    /// while no other task uses the pages.
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn restore(&self, space: &dyn PageSpace, twins: Twins) -> Result<Restored, StorageError> {
        let mut restored = Restored { twins: twins.found, ..Restored::default() };
        let Some(file) = &self.file else {
            return Ok(restored);
        };
        let mut files: Vec<Arc<dyn VfsFile>> = Vec::new();
        for (id, (lsn, offset)) in twins.newest {
            // A twin beyond the space is of a page that was given back since.
            let Ok((place, at)) = space.locate(id) else {
                continue;
            };
            let in_place = place.read_at(at, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
            if whole(&in_place).is_some_and(|(found, there)| found == id && there != lsn) {
                continue;
            }
            let twin = file.read_at(offset, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
            place.write_at(at, twin).await?;
            if !files.iter().any(|known| Arc::ptr_eq(known, &place)) {
                files.push(place);
            }
            restored.pages.push(id);
        }
        for file in files {
            file.sync_data().await?;
        }
        Ok(restored)
    }
}
