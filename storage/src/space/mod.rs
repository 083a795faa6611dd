//! Space: keeps which pages are in use, where they lie, and where each tree begins.
//!
//! # Structure
//! ```text
//!   page id = file number * pages_per_file + index         data/<file number, 6 digits>.dat
//!   file      [bitmap page][pages ...]                     grown and cut in extents
//!   page 1    the first directory page -> next -> ...      TreeId -> root page
//! ```
//! Bitmaps and directory are pages of the pool, pinned while the database is open; [`pages`] says what is in them.
//! A map in memory says which pages are *busy*: allocated, set aside for a mini-transaction, or freed so recently that they are
//! withheld (SPC-4).
//!
//! # Life of a page
//! free -> set aside (`reserve`, in memory) -> allocated (bit and first content in one record) -> freed (bit and
//! unlinking in one record) -> withheld until that record is durable and below the horizon -> free.
//!
//! # Invariants
//! - SPC-2: a page is handed out to one mini-transaction at a time: setting it aside marks it busy under the mutex.
//! - SPC-3: a bit changes in the record that links or unlinks the page, so a crash leaks nothing.
//! - SPC-4: a freed page is not handed out before the freeing record is durable and every snapshot is above it.
//! - SPC-5: a file is long enough, on disk, for every page that is handed out.
//! - SPC-6: a file is cut only behind its last allocated page, and only at pages that recovery does not touch: they were freed before the
//!   point where redo would start.
//! - SPC-12: while the control file is the one that a checkpoint wrote, the files are on disk as long as its [`Reach`] says: all of them have
//!   every page except the last one, which has those that were allocated when the checkpoint began. So a shorter file has lost pages.
//! - SPC-7: ordinary work leaves free pages for undo: a fixed number ([`SpaceOptions::undo_pages`]), and as many as undoing the changes of
//!   active transactions may take (WAL-20). It is refused if they are missing and files can't grow. So a rollback that has to split a node
//!   finds pages. The fixed number also covers what several threads change at the same moment, each without the others in its sum.
//!
//! # Latch order
//! Space's pages are latched last, directory before bitmaps, in order of their numbers. The mutex is a leaf.
//!
//! # Not here
//! What a tree's pages contain (trees); freeing a dropped tree's pages (`crate::pending`).

mod directory;
mod files;
pub mod pages;
mod reservation;
mod spare;
mod survey;

use crate::buffer::{OwnedPin, PAGE_BYTES, Pool};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId, TreeId};
use crate::record::{PageOp, Record};
use crate::seams::{BoxFuture, FreeReservation, PageReservation, PageSpace, Place, Purpose, Versions};
use crate::wal::{RoomChange, Wal};
use clearway_base::sync::Mutex;
use clearway_base::vfs::Vfs;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

pub use directory::DIRECTORY_TREE;
pub use files::SpaceFile;
pub use pages::{Entry, SpaceRedo, TreeKind, TreeState};
pub use spare::giving_back;
pub use survey::{Expected, Reach, survey};

/// Sizes of the space.
#[derive(Clone, Debug)]
pub struct SpaceOptions {
    /// Pages per file, at most 32,768 (256 MiB); fixed when the database is created.
    pub pages_per_file: u32,
    /// Files grow and are cut by multiples of so many pages (SPC-13).
    pub extent_pages: u32,
    /// Free pages kept for undo (SPC-7).
    pub undo_pages: u32,
    /// Free pages kept for what gives space back (SPC-11).
    pub spare_pages: u32,
}

impl Default for SpaceOptions {
    fn default() -> Self {
        SpaceOptions { pages_per_file: pages::BITS_MAX, extent_pages: 1024, undo_pages: 64, spare_pages: 256 }
    }
}

/// The space of one database.
pub struct Space {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    options: SpaceOptions,
    wal: Arc<Wal>,
    versions: Arc<dyn Versions>,
    pool: OnceLock<Weak<Pool>>,
    state: Mutex<State>,
    growing: crate::sync::Turn,
    growing_directory: crate::sync::Turn,
}

#[derive(Default)]
struct State {
    files: Vec<SpaceFile>,
    /// Pins of bitmap pages, by file, and of directory pages, in order of the chain.
    bitmaps: Vec<Arc<OwnedPin>>,
    directory: Vec<Arc<OwnedPin>>,
    trees: BTreeMap<TreeId, Seat>,
    tree_high_water: u64,
    withheld: VecDeque<(Lsn, Vec<PageId>)>,
}

impl State {
    /// Pages that are free, in all files.
    fn free(&self) -> u64 {
        self.files.iter().map(|file| u64::from(file.free())).sum()
    }
}

/// Where a tree's entry stands.
#[derive(Clone, Copy, Debug)]
struct Seat {
    entry: Entry,
    page: usize,
    slot: u32,
}

impl Space {
    /// The space in `dir`, which exists; files are opened by [`Space::open_files`].
    pub fn new(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        options: SpaceOptions,
        wal: Arc<Wal>,
        versions: Arc<dyn Versions>,
    ) -> Arc<Space> {
        assert!((8..=pages::BITS_MAX).contains(&options.pages_per_file), "{} pages a file", options.pages_per_file);
        assert!(options.extent_pages > 0, "a file grows by one page at least");
        Arc::new(Space {
            vfs,
            dir: dir.to_path_buf(),
            options,
            wal,
            versions,
            pool: OnceLock::new(),
            state: Mutex::new("storage/space/state", State::default()),
            growing: crate::sync::Turn::new("storage/space/growing"),
            growing_directory: crate::sync::Turn::new("storage/space/growing_directory"),
        })
    }

    /// Tells the space its pool.
    pub fn attach(&self, pool: &Arc<Pool>) {
        assert!(self.pool.set(Arc::downgrade(pool)).is_ok(), "a space has one pool");
    }

    fn pool(&self) -> Result<Arc<Pool>, StorageError> {
        let pool = self.pool.get().and_then(Weak::upgrade);
        pool.ok_or_else(|| StorageError::Invalid("the database is closed".into()))
    }

    /// Lets go of the pool's pages, so that both can be dropped.
    pub fn detach(&self) {
        let mut state = self.state.lock();
        let pins = (std::mem::take(&mut state.bitmaps), std::mem::take(&mut state.directory));
        drop(state);
        drop(pins);
    }

    fn split(&self, page: PageId) -> (usize, u32) {
        ((page.0 / self.options.pages_per_file) as usize, page.0 % self.options.pages_per_file)
    }

    fn page_id(&self, file: usize, index: u32) -> PageId {
        assert!(index < self.options.pages_per_file, "SPC-2: page {index} of file {file}");
        let first = u32::try_from(file).ok().and_then(|file| file.checked_mul(self.options.pages_per_file));
        let first = first.and_then(|first| first.checked_add(index));
        PageId(first.expect("SPC-2: the pages of all files have numbers of four bytes"))
    }

    /// How many pages are not free: allocated, set aside, or freed too recently; the maps of the files included.
    pub fn pages_in_use(&self) -> u64 {
        let state = self.state.lock();
        let pages: u64 = state.files.iter().map(|file| u64::from(file.pages())).sum();
        pages.saturating_sub(state.free())
    }

    /// Pages that are allocated, by number; the bitmap pages themselves included.
    pub fn allocated(&self) -> Vec<PageId> {
        let bitmaps = self.state.lock().bitmaps.clone();
        let mut all = Vec::new();
        for (file, pin) in bitmaps.iter().enumerate() {
            let words = pages::bits(pin.latch().page());
            let set = (0..self.options.pages_per_file).filter(|bit| words[*bit as usize / 64] >> (bit % 64) & 1 == 1);
            all.extend(set.map(|bit| self.page_id(file, bit)));
        }
        all
    }

    /// Pages that each file is long enough for, by number of the file.
    pub fn file_pages(&self) -> Vec<u32> {
        self.state.lock().files.iter().map(files::SpaceFile::pages).collect()
    }

    /// How far the data files reach for certain: frees that are logged from now on cut nothing off before the next checkpoint (SPC-12).
    pub fn reach(&self) -> Reach {
        let (files, last) = {
            let state = self.state.lock();
            (state.bitmaps.len(), state.bitmaps.last().cloned())
        };
        let last_pages = last.map_or(0, |pin| pages::used(pin.latch().page()));
        Reach { files: u32::try_from(files).expect("SPC-2: files have numbers of four bytes"), last_pages }
    }

    /// The greatest number of pages in one file.
    pub fn pages_per_file(&self) -> u32 {
        self.options.pages_per_file
    }

    /// Pages that belong to space itself.
    pub fn own_pages(&self) -> Vec<PageId> {
        let state = self.state.lock();
        state.bitmaps.iter().chain(&state.directory).map(|pin| pin.id()).collect()
    }

    /// The freeing record of the pages that wait the longest for SPC-4 to hold.
    pub fn withheld_since(&self) -> Option<Lsn> {
        self.state.lock().withheld.front().map(|(lsn, _)| *lsn)
    }

    /// Gives back freed pages whose time has come (SPC-4).
    pub fn release_withheld(&self) {
        let settled = self.wal.durable_lsn().min(self.versions.horizon());
        let mut state = self.state.lock();
        while state.withheld.front().is_some_and(|(lsn, _)| *lsn <= settled) {
            let Some((_, pages)) = state.withheld.pop_front() else { break };
            for page in pages {
                let (file, index) = self.split(page);
                state.files[file].release(index);
            }
        }
    }

    /// Sets `count` pages aside, in memory (SPC-2); none if there are not enough, beside what is kept for undo (SPC-7)
    /// unless it is for that.
    fn take_free(&self, count: usize, purpose: Purpose) -> Option<Vec<PageId>> {
        self.release_withheld();
        let mut state = self.state.lock();
        let keep = match purpose {
            Purpose::Change => {
                let spare = if spare::gives_back() { 0 } else { self.options.spare_pages };
                u64::from(self.options.undo_pages) + u64::from(spare) + self.wal.undo_room().pages() // SPC-11
            }
            Purpose::System | Purpose::Undo => 0,
        };
        if state.free() < count as u64 + keep {
            self.tell_undo(&state);
            return None;
        }
        let mut taken = Vec::with_capacity(count);
        for (number, file) in state.files.iter_mut().enumerate() {
            while taken.len() < count {
                match file.take() {
                    Some(index) => taken.push(self.page_id(number, index)),
                    None => break,
                }
            }
        }
        assert_eq!(taken.len(), count, "SPC-2: the bitmaps have the pages that the counts promise");
        self.tell_undo(&state);
        Some(taken)
    }

    /// Says how many pages there are for undo.
    fn tell_undo(&self, state: &State) {
        let pages: u64 = state.files.iter().map(|file| u64::from(file.pages())).sum();
        let free = state.free();
        self.wal.undo_room().told(free.saturating_sub(u64::from(self.options.undo_pages)), pages.saturating_sub(free));
    }

    /// Grows until there are pages for the undo of what active transactions did, and of one change more (SPC-7).
    async fn assure_undo(&self) -> Result<(), StorageError> {
        let look = || {
            self.release_withheld();
            self.tell_undo(&self.state.lock());
            self.wal.undo_room().allows(RoomChange { given_up: PAGE_BYTES, taken: PAGE_BYTES })
        };
        if look() {
            return Ok(());
        }
        let _turn = self.growing.take().await;
        while !look() {
            self.grow().await?;
        }
        Ok(())
    }

    fn give_back(&self, pages: &[PageId]) {
        let mut state = self.state.lock();
        for page in pages {
            let (file, index) = self.split(*page);
            state.files[file].release(index);
        }
    }

    /// Sets `count` pages aside, growing files if need be.
    async fn set_aside(&self, count: usize, purpose: Purpose) -> Result<Vec<PageId>, StorageError> {
        loop {
            if let Some(pages) = self.take_free(count, purpose) {
                return Ok(pages);
            }
            let _turn = self.growing.take().await;
            if let Some(pages) = self.take_free(count, purpose) {
                return Ok(pages);
            }
            self.grow().await?;
        }
    }

    /// Appends a structure record with these operations on pinned pages of space, and applies them.
    async fn change_own(&self, pins: &[Arc<OwnedPin>], ops: &[crate::seams::SpaceOp]) -> Result<Lsn, StorageError> {
        assert!(
            ops.iter().all(|op| pins.iter().any(|pin| pin.id() == op.page)),
            "SPC-1: a page that is changed is latched"
        );
        let payloads: Vec<[&[u8]; 1]> = ops.iter().map(|op| [op.payload()]).collect();
        let page_ops: Vec<PageOp<'_>> =
            ops.iter().zip(&payloads).map(|(op, p)| PageOp { page: op.page, op: op.op, payload: p }).collect();
        let record = Record::structure(&page_ops);
        let mut credit = self.wal.credit(Purpose::System, Wal::record_bytes(&record)).await?;
        let mut latched: Vec<_> = pins.iter().map(|pin| pin.latch()).collect();
        latched.iter_mut().for_each(|page| page.will_change());
        let range = self.wal.append(&mut credit, &record);
        for op in ops {
            for page in latched.iter_mut().filter(|page| page.page().id() == op.page) {
                pages::apply(page.page(), op.op, op.payload()).expect("SPC-1: a change made here fits its page");
            }
        }
        latched.iter_mut().for_each(|page| page.changed(range.end));
        Ok(range.end)
    }
}

impl PageSpace for Space {
    fn locate(&self, page: PageId) -> Result<Place, StorageError> {
        let (number, index) = self.split(page);
        let state = self.state.lock();
        match state.files.get(number) {
            Some(file) => Ok((file.file(), u64::from(index) * crate::buffer::PAGE_BYTES as u64)),
            None => {
                let what = Corruption::in_page(page, Lsn::ZERO, "the data file that holds the page", "no such file");
                Err(what.in_file(self.path(number).display().to_string()).into())
            }
        }
    }

    fn file_name(&self, page: PageId) -> String {
        self.path(self.split(page).0).display().to_string()
    }

    fn reserve(&self, pages: usize) -> BoxFuture<'_, Result<Box<dyn PageReservation + '_>, StorageError>> {
        self.reserve_for(pages, Purpose::Change)
    }

    fn reserve_for(
        &self,
        pages: usize,
        purpose: Purpose,
    ) -> BoxFuture<'_, Result<Box<dyn PageReservation + '_>, StorageError>> {
        Box::pin(async move {
            let pages = self.set_aside(pages, purpose).await?;
            Ok(Box::new(reservation::Reservation::new(self, pages)) as Box<dyn PageReservation + '_>)
        })
    }

    fn room_for_undo(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.assure_undo())
    }

    fn reserve_free(&self, _pages: usize) -> BoxFuture<'_, Result<Box<dyn FreeReservation + '_>, StorageError>> {
        // All bitmap pages are pinned: nothing has to be brought in.
        Box::pin(async { Ok(Box::new(reservation::Freeing::new(self)) as Box<dyn FreeReservation + '_>) })
    }

    fn in_use(&self, page: PageId) -> bool {
        let (file, index) = self.split(page);
        let bitmap = self.state.lock().bitmaps.get(file).cloned();
        bitmap.is_some_and(|pin| pages::is_allocated(pin.latch().page(), index))
    }

    fn root_now(&self, tree: TreeId) -> Option<PageId> {
        // One that is being dropped, too: the dropper reads it to find its pages, and no other thread knows it any more.
        let state = self.state.lock();
        state.trees.get(&tree).map(|seat| seat.entry.root).filter(|root| root.0 != 0)
    }

    fn root(&self, tree: TreeId) -> BoxFuture<'_, Result<PageId, StorageError>> {
        Box::pin(async move { self.root_now(tree).ok_or(StorageError::NoSuchTree(tree)) })
    }
}
