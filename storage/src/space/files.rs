//! The files of the space: opened, grown and cut in extents.
//!
//! # Invariants
//! - SPC-13: a file grows by a quarter of itself, at least by an extent, and at most by the larger of an extent and 8 MiB, in whole extents. A cut leaves as much
//!   free behind the last page in use. Each growth is a system call that allocates and a sync, for which the task waits that changes rows: by extents of 32 pages alone
//!   the load of an empty database waited every 2,000 rows.

use super::{Space, pages, survey};
use crate::buffer::{OwnedPin, PAGE_BYTES, Pool};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use clearway_base::vfs::{FileKind, OpenHow, VfsFile};
use std::path::PathBuf;
use std::sync::Arc;

/// One file and the picture of its pages in memory.
pub struct SpaceFile {
    file: Arc<dyn VfsFile>,
    /// Pages that the file is long enough for (SPC-5).
    pages: u32,
    /// One bit per page: allocated, set aside or withheld.
    busy: Vec<u64>,
    free: u32,
    /// Where to look first.
    hint: u32,
    /// End of the last record that freed a page here.
    pub(super) freed_lsn: Lsn,
}

impl SpaceFile {
    fn new(file: Arc<dyn VfsFile>, pages: u32) -> SpaceFile {
        let words = vec![u64::MAX; pages::BITS_MAX as usize / 64];
        SpaceFile { file, pages, busy: words, free: 0, hint: 0, freed_lsn: Lsn::ZERO }
    }

    /// Its handle.
    pub fn file(&self) -> Arc<dyn VfsFile> {
        self.file.clone()
    }

    /// Pages that the file is long enough for.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Free pages.
    pub fn free(&self) -> u32 {
        self.free
    }

    fn is_busy(&self, index: u32) -> bool {
        self.busy[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// Takes the first free page from the hint on.
    pub fn take(&mut self) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        let words = self.busy.len();
        for step in 0..=words {
            let word = (self.hint as usize / 64 + step) % words;
            if self.busy[word] != u64::MAX {
                let bit = (!self.busy[word]).trailing_zeros();
                self.busy[word] |= 1 << bit;
                self.free -= 1;
                self.hint = word as u32 * 64;
                let index = word as u32 * 64 + bit;
                assert!(index < self.pages, "SPC-2: page {index} of a file of {}", self.pages);
                return Some(index);
            }
        }
        panic!("SPC-2: {} pages are free, and the bitmap has none", self.free)
    }

    /// Makes a page free.
    pub fn release(&mut self, index: u32) {
        assert!(self.is_busy(index), "SPC-2: page {index} is given back twice");
        assert!(index < self.pages, "SPC-2: page {index} of a file of {} is given back", self.pages);
        self.busy[index as usize / 64] &= !(1 << (index % 64));
        self.free += 1;
        assert!(self.free <= self.pages, "SPC-2: more pages are free than there are");
        self.hint = self.hint.min(index);
    }

    /// Pages `from..to` exist now and are free.
    pub(super) fn add(&mut self, from: u32, to: u32) {
        assert!(from <= to, "SPC-2: a file grows from {from} to {to} pages");
        self.pages = to;
        (from..to).for_each(|index| self.release(index));
    }

    /// Pages behind `keep` are gone.
    fn cut(&mut self, keep: u32) {
        assert!(keep <= self.pages, "SPC-2: a file of {} pages is cut to {keep}", self.pages);
        for index in keep..self.pages {
            if !self.is_busy(index) {
                self.busy[index as usize / 64] |= 1 << (index % 64);
                self.free -= 1;
            }
        }
        self.pages = keep;
    }
}

/// A file grows by this part of itself, at least by an extent,
const GROWTH_PART: u32 = 4;
/// and at most, where an extent is less, by so many pages: 8 MiB.
const GROWTH_PAGES_MAX: u32 = 1024;

/// By how many pages a file of so many grows (SPC-13).
fn growth(pages: u32, extent: u32) -> u32 {
    (pages / GROWTH_PART / extent * extent).clamp(extent, extent.max(GROWTH_PAGES_MAX))
}

/// How data files are opened.
fn how() -> OpenHow {
    OpenHow::existing(FileKind::Data).direct()
}

impl Space {
    /// The path of a file.
    pub(super) fn path(&self, number: usize) -> PathBuf {
        survey::path(&self.dir, number)
    }

    /// Opens the files that exist. Their pages count as busy until [`Space::load`] has read the bitmaps.
    ///
    /// # Errors
    /// A failed file operation; a hole in the numbers.
    pub async fn open_files(&self) -> Result<(), StorageError> {
        let mut files = Vec::new();
        for (number, entry) in survey::listed(&self.vfs, &self.dir).await?.into_iter().enumerate() {
            let file = self.vfs.open(&self.path(number), how()).await?;
            let pages = (entry.size / PAGE_BYTES as u64).min(u64::from(self.options.pages_per_file));
            files.push(SpaceFile::new(file, pages as u32));
        }
        self.state.lock().files = files;
        Ok(())
    }

    /// Reads bitmaps and directory, after redo. Pins their pages.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub async fn load(&self) -> Result<(), StorageError> {
        let pool = self.pool()?;
        let count = self.state.lock().files.len();
        for number in 0..count {
            let id = self.page_id(number, 0);
            // Files that a crash left without their bitmaps were never used; their names are all there is.
            let Some(pin) = self.pin_bitmap(&pool, id).await? else {
                self.expect_never_used(number + 1..count).await?;
                self.state.lock().files.truncate(number);
                break;
            };
            survey::refuse_newer(&self.path(number), id, pages::version(pin.latch().page()))?;
            let words = pages::bits(pin.latch().page());
            let mut state = self.state.lock();
            let file = &mut state.files[number];
            let set = |index: u32| words[index as usize / 64] >> (index % 64) & 1 == 1;
            let used = pages::used(pin.latch().page());
            file.pages = file.pages.max(used);
            file.freed_lsn = self.wal.end_lsn();
            let pages = file.pages;
            (0..pages).filter(|index| !set(*index)).for_each(|index| file.release(index));
            state.bitmaps.push(Arc::new(pin));
        }
        self.lengthen().await?;
        self.load_directory(&pool).await
    }

    /// Makes the files as long as SPC-12 says. Redo of a copy allocates pages behind a file's end, which get their bytes when they are written.
    async fn lengthen(&self) -> Result<(), StorageError> {
        let wanted: Vec<(Arc<dyn VfsFile>, u32)> = {
            let state = self.state.lock();
            let last = state.files.len().saturating_sub(1);
            let pages = |number, file: &SpaceFile| if number < last { self.options.pages_per_file } else { file.pages };
            state.files.iter().enumerate().map(|(number, file)| (file.file(), pages(number, file))).collect()
        };
        for (file, pages) in wanted {
            let bytes = u64::from(pages) * PAGE_BYTES as u64;
            if file.len().await? < bytes {
                file.set_len(bytes).await?;
                file.sync_data().await?;
            }
        }
        Ok(())
    }

    /// The bitmap page of a file; none if no page of the file was ever written.
    async fn pin_bitmap(&self, pool: &Arc<Pool>, id: PageId) -> Result<Option<OwnedPin>, StorageError> {
        let (pin, _whole) = pool.pin_for_redo(id).await?;
        let found = pin.latch().page().kind();
        if found == crate::buffer::page::kind::BITMAP {
            return Ok(Some(OwnedPin::existing(pool, id).await?));
        }
        if id.0 != 0 && found == crate::buffer::page::kind::FREE && self.never_written(id).await? {
            return Ok(None);
        }
        let what = Corruption::in_page(id, Lsn::ZERO, "an allocation bitmap", format!("a page of kind {found}"));
        Err(what.in_file(self.path(self.split(id).0).display().to_string()).into())
    }

    async fn expect_never_used(&self, files: std::ops::Range<usize>) -> Result<(), StorageError> {
        for number in files {
            let id = self.page_id(number, 0);
            if !self.never_written(id).await? {
                let expected = "nothing, since the file before it has no bitmap";
                let what = Corruption::in_page(id, Lsn::ZERO, expected, "a page");
                return Err(what.in_file(self.path(number).display().to_string()).into());
            }
        }
        Ok(())
    }

    async fn never_written(&self, id: PageId) -> Result<bool, StorageError> {
        let (file, offset) = crate::seams::PageSpace::locate(self, id)?;
        let bytes = file.read_at(offset, clearway_base::vfs::IoBuf::zeroed(PAGE_BYTES), PAGE_BYTES).await?;
        Ok(bytes.iter().all(|byte| *byte == 0))
    }

    /// Makes at least one more extent of pages free. One caller at a time.
    pub(super) async fn grow(&self) -> Result<(), StorageError> {
        let last = {
            let state = self.state.lock();
            state.files.last().map(|file| (state.files.len() - 1, file.pages, file.file.clone()))
        };
        match last {
            Some((number, pages, file)) if pages < self.options.pages_per_file => {
                let to = (pages + growth(pages, self.options.extent_pages)).min(self.options.pages_per_file);
                self.extend(&file, pages, to).await?;
                self.state.lock().files[number].add(pages, to);
                Ok(())
            }
            last => self.add_file(last.map_or(0, |(number, ..)| number + 1)).await,
        }
    }

    async fn extend(&self, file: &Arc<dyn VfsFile>, from: u32, to: u32) -> Result<(), StorageError> {
        let (offset, end) = (u64::from(from) * PAGE_BYTES as u64, u64::from(to) * PAGE_BYTES as u64);
        let grown = async {
            file.preallocate(offset, end - offset).await?;
            file.sync_data().await
        };
        grown.await.map_err(|err| self.refused(err))?;
        Ok(())
    }

    /// What a failed growth means: a full disk refuses, everything else is handed on; a failed sync poisons.
    fn refused(&self, err: clearway_base::vfs::VfsError) -> StorageError {
        if err.is_sync() {
            return self.wal.poison(&format!("the space of pages could not be synced: {err}"));
        }
        if !err.is_full() {
            return err.into();
        }
        self.wal.note_full(true);
        StorageError::NoSpace("pages".into())
    }

    /// Opens a new last file and makes its first extent; none of its pages is free yet. Returns how many it has.
    pub(super) async fn start_file(&self, number: usize) -> Result<u32, StorageError> {
        let opened = self.vfs.open(&self.path(number), OpenHow::create(FileKind::Data).direct()).await;
        let file = opened.map_err(|err| self.refused(err))?;
        let pages = self.options.extent_pages.max(2).min(self.options.pages_per_file);
        self.extend(&file, 0, pages).await?;
        self.vfs.sync_dir(&self.dir).await.map_err(|err| self.refused(err))?;
        self.state.lock().files.push(SpaceFile::new(file, 1));
        Ok(pages)
    }

    /// Adds a file, its bitmap page, and an extent of free pages.
    async fn add_file(&self, number: usize) -> Result<(), StorageError> {
        let pool = self.pool()?;
        let pages = self.start_file(number).await?;
        let id = self.page_id(number, 0);
        let made = async {
            let pin = Arc::new(OwnedPin::new_page(&pool, id).await?);
            let init = pages::op(id, pages::BITMAP_INIT, &[]);
            self.change_own(std::slice::from_ref(&pin), &[init]).await?;
            Ok(pin)
        };
        let pin = match made.await {
            Ok(pin) => pin,
            Err(err) => {
                self.state.lock().files.truncate(number);
                return Err(err);
            }
        };
        let mut state = self.state.lock();
        state.files[number].add(1, pages);
        state.bitmaps.push(pin);
        Ok(())
    }

    /// Cuts the last file behind its last busy page, in extents. `redo` is where recovery would start (SPC-6).
    ///
    /// # Errors
    /// A failed file operation.
    pub async fn cut_step(&self, redo: Lsn) -> Result<bool, StorageError> {
        let _turn = self.growing.take().await;
        let for_undo = u32::try_from(self.wal.undo_room().pages()).unwrap_or(u32::MAX);
        let (file, keep, was) = {
            let mut state = self.state.lock();
            let extent = self.options.extent_pages;
            let Some(file) = state.files.last_mut().filter(|file| file.freed_lsn <= redo) else { return Ok(false) };
            let used = (0..file.pages).rev().find(|index| file.is_busy(*index)).map_or(0, |last| last + 1);
            // What the file would grow by stays free, so that growing and cutting do not alternate (SPC-13); more if undo may need it (SPC-7).
            let spare = for_undo.max(growth(used, extent)).checked_next_multiple_of(extent).unwrap_or(u32::MAX);
            let keep = used.next_multiple_of(extent).saturating_add(spare);
            if keep >= file.pages {
                return Ok(false);
            }
            let (was, handle) = (file.pages, file.file.clone());
            file.cut(keep);
            self.tell_undo(&state);
            (handle, keep, was)
        };
        let cut = file.set_len(u64::from(keep) * PAGE_BYTES as u64).await;
        if cut.is_err() {
            // The pages are there still.
            let mut state = self.state.lock();
            if let Some(last) = state.files.last_mut() {
                last.add(keep, was);
            }
        }
        cut?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPC-13
    #[test]
    fn a_file_grows_in_few_steps_and_by_no_more_than_a_quarter() {
        let (mut pages, mut steps) = (32, 0);
        while pages < 1 << 14 {
            let by = growth(pages, 32);
            assert!(by >= 32 && by % 32 == 0 && by <= GROWTH_PAGES_MAX, "{by} pages more than {pages}");
            assert!(by == 32 || by <= pages / GROWTH_PART, "{by} pages more than {pages}");
            (pages, steps) = (pages + by, steps + 1);
        }
        assert!(steps <= 40, "{steps} steps to 128 MiB");
        assert_eq!(growth(100, 1024), 1024, "an extent at least");
        assert_eq!(growth(30_000, 4096), 4096, "and no less than an extent at most");
    }
}
