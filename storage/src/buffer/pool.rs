//! Pages by number: optimistic reads, exclusive latches, pins, and what happens on a miss.

use super::counters::Counters;
use super::double_write::DoubleWrite;
use super::evict::Ticket;
use super::gate::{Gates, Turn, TurnGuard};
use super::page::{self, PAGE_BYTES, PAGE_WORDS, Page, PageBytes, PageMut, kind};
use super::table::{FRAMES_MAX, State, Table, Word};
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId, TreeId};
use crate::seams::{BoxFuture, PageLog, PageSpace};
use clearway_base::vfs::IoBuf;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};

/// No page: the number that no frame and no link names.
pub(super) const NO_PAGE: u32 = u32::MAX;

/// How large the pool is and when it slows writers down.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Frames of 8 KiB.
    pub frames: usize,
    /// Pages that one step of the cleaner writes.
    pub batch_pages: usize,
    /// Free frames that the cleaner keeps in stock.
    pub free_target: usize,
}

impl PoolOptions {
    /// Options for a memory budget in bytes.
    pub fn for_budget(bytes: usize) -> PoolOptions {
        let frames = (bytes / PAGE_BYTES).clamp(64, FRAMES_MAX);
        PoolOptions { frames, batch_pages: 64.min(frames / 4), free_target: (frames / 64).clamp(8, 1024) }
    }
}

/// What the pool knows about a frame besides its words.
pub(super) struct Meta {
    /// The page in it, or `NO_PAGE`.
    pub(super) page: AtomicU32,
    /// Read since the clock hand last passed.
    pub(super) referenced: AtomicBool,
    /// Pins that keep it in place.
    pub(super) pins: AtomicU32,
    /// 0 if clean, else BUF-7.
    pub(super) rec_lsn: AtomicU64,
    /// The `rec_lsn` of the copy that the cleaner is writing, else 0.
    pub(super) writing: AtomicU64,
}

/// The page cache.
pub struct Pool {
    pub(super) words: Box<[[AtomicU64; PAGE_WORDS]]>,
    pub(super) metas: Box<[Meta]>,
    pub(super) table: Table,
    pub(super) log: Arc<dyn PageLog>,
    pub(super) space: Arc<dyn PageSpace>,
    pub(super) double_write: DoubleWrite,
    pub(super) gates: Gates,
    pub(super) free: super::gate::Stock,
    pub(super) hand: AtomicUsize,
    pub(super) clean_hand: AtomicUsize,
    pub(super) dirty: AtomicUsize,
    pub(super) options: PoolOptions,
    pub(super) counters: Counters,
    turn: Turn,
    poison: OnceLock<Arc<str>>,
    chains: AtomicU64,
}

/// A copy's place and version, to ask later whether it still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The page.
    pub page: PageId,
    pub(super) word: u64,
}

/// A resident page for reading without a latch. What is read counts only if `validate` says so afterwards.
#[derive(Clone, Copy)]
pub struct Optimistic<'p> {
    pool: &'p Pool,
    entry: &'p AtomicU64,
    word: Word,
    id: PageId,
    /// Its bytes.
    pub page: Page<'p>,
}

/// A page that this thread alone may change, until the guard goes. Never held across an await.
pub struct Latched<'p> {
    pool: &'p Pool,
    entry: &'p AtomicU64,
    word: Word,
    changed: bool,
    page: PageMut<'p>,
    // BUF-5: a latch stays with its thread.
    _not_send: PhantomData<*const ()>,
}

/// Keeps a page in its frame, across awaits.
pub struct Pin<'p> {
    pool: &'p Pool,
    frame: usize,
    id: PageId,
}

impl Pool {
    /// A pool of empty frames.
    pub fn new(
        options: PoolOptions,
        log: Arc<dyn PageLog>,
        space: Arc<dyn PageSpace>,
        double_write: DoubleWrite,
    ) -> Arc<Pool> {
        let frames = options.frames;
        assert!((8..=FRAMES_MAX).contains(&frames), "a pool of {frames} frames");
        let words = (0..frames).map(|_| [const { AtomicU64::new(0) }; PAGE_WORDS]).collect();
        let meta = || Meta {
            page: AtomicU32::new(NO_PAGE),
            referenced: AtomicBool::new(false),
            pins: AtomicU32::new(0),
            rec_lsn: AtomicU64::new(0),
            writing: AtomicU64::new(0),
        };
        Arc::new(Pool {
            words,
            metas: (0..frames).map(|_| meta()).collect(),
            table: Table::new(),
            log,
            space,
            double_write,
            gates: Gates::new(),
            free: super::gate::Stock::new(frames),
            hand: AtomicUsize::new(0),
            clean_hand: AtomicUsize::new(0),
            dirty: AtomicUsize::new(0),
            options,
            counters: Counters::default(),
            turn: Turn::default(),
            poison: OnceLock::new(),
            chains: AtomicU64::new(0),
        })
    }

    /// The log that pages are protected by.
    pub fn log(&self) -> &Arc<dyn PageLog> {
        &self.log
    }

    /// The space that pages lie in.
    pub fn space(&self) -> &Arc<dyn PageSpace> {
        &self.space
    }

    /// What the pool and its trees have counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Frames in the pool.
    pub fn frames(&self) -> usize {
        self.metas.len()
    }

    /// Frames whose page is newer than on disk.
    pub fn dirty_pages(&self) -> usize {
        self.dirty.load(Relaxed)
    }

    /// The error that every later call gets, once a page write or sync has failed.
    pub fn poisoned(&self) -> Result<(), StorageError> {
        self.poison.get().map_or(Ok(()), |why| Err(StorageError::Poisoned(why.clone())))
    }

    /// Stops the pool: its pages on disk are in doubt.
    pub fn poison(&self, why: &str) {
        // The first reason stands.
        let _ = self.poison.set(why.into());
        self.free.refilled.open();
    }

    /// The double-write area holds one batch at a time (BUF-9).
    pub(super) async fn double_write_turn(&self) -> TurnGuard<'_> {
        self.turn.take().await
    }

    /// A number that no overflow chain has had: at or above every LSN so far, which grow faster than chains.
    pub(crate) fn next_chain(&self) -> u64 {
        let end = self.log.end_lsn().0;
        let before = self.chains.fetch_update(SeqCst, SeqCst, |last| Some(end.max(last + 1)));
        let (Ok(before) | Err(before)) = before;
        end.max(before + 1)
    }

    /// Slows a writer down, the more the closer the pool is to having no clean frame: a page's write is then paid
    /// for by those who make pages dirty, bit by bit, and nobody meets a wall.
    pub async fn throttle(&self) -> Result<(), StorageError> {
        self.poisoned()
    }

    #[inline]
    pub(super) fn entry(&self, page: PageId) -> &AtomicU64 {
        self.table.entry(page)
    }

    /// The page, if it is in memory. Waits out a latch (some hundred nanoseconds), never I/O.
    #[inline]
    pub fn read(&self, id: PageId) -> Option<Optimistic<'_>> {
        let entry = self.entry(id);
        let mut word = Word(entry.load(Acquire));
        if !word.is_resident() {
            word = self.settle(entry)?;
        }
        let frame = word.frame();
        let referenced = &self.metas[frame].referenced;
        // Tested first: a store on every read would make the line bounce between processors.
        if !referenced.load(Relaxed) {
            referenced.store(true, Relaxed);
        }
        Some(Optimistic { pool: self, entry, word, id, page: Page::new(&self.words[frame]) })
    }

    /// Waits out a latch; none if the page is not in memory.
    #[cold]
    fn settle(&self, entry: &AtomicU64) -> Option<Word> {
        let mut spin = super::gate::Spin::new(&self.counters);
        loop {
            let word = Word(entry.load(Acquire));
            match word.state() {
                State::Resident => return Some(word),
                State::Latched => spin.turn(),
                State::Absent | State::Loading => return None,
            }
        }
    }

    /// Whether the page is as it was when `seen` was made.
    #[inline]
    pub fn still(&self, seen: &Seen) -> bool {
        fence(Acquire);
        self.entry(seen.page).load(Relaxed) == seen.word
    }

    /// Brings a page into memory. It may be gone again, or be another page by then: look again.
    pub async fn fetch(&self, id: PageId) -> Result<(), StorageError> {
        self.load(id, Load::Existing).await.map(|_| ())
    }

    /// Brings pages into memory, all reads in flight at once, but never more than a quarter of the pool. The first
    /// page counts; that others can't be read shows when they are asked for.
    pub async fn fetch_all(&self, pages: &[PageId]) -> Result<(), StorageError> {
        let Some((first, others)) = pages.split_first() else { return Ok(()) };
        let mut reads: Vec<BoxFuture<'_, Result<(), StorageError>>> = vec![Box::pin(self.fetch(*first))];
        for page in others.iter().take(self.frames() / 4) {
            let page = *page;
            if !Word(self.entry(page).load(Relaxed)).is_resident() {
                reads.push(Box::pin(async move {
                    // A hint may be out of date; the page is verified when it is needed.
                    let _ = self.fetch(page).await;
                    Ok(())
                }));
            }
        }
        super::cleaner::all(reads).await
    }

    /// Pins a page, reading it if need be.
    pub async fn pin(&self, id: PageId) -> Result<Pin<'_>, StorageError> {
        loop {
            if let Some(pin) = self.try_pin(id) {
                return Ok(pin);
            }
            self.load(id, Load::Existing).await?;
        }
    }

    /// Pins the frame of a page that is about to be formatted: nothing is read.
    pub async fn pin_new(&self, id: PageId) -> Result<Pin<'_>, StorageError> {
        loop {
            if let Some(pin) = self.try_pin(id) {
                return Ok(pin);
            }
            self.load(id, Load::New).await?;
        }
    }

    /// Pins a page for redo. One that was never written, or whose bytes are damaged, comes as an empty page of
    /// kind FREE with LSN 0, and false: the first operation must format it.
    pub async fn pin_for_redo(&self, id: PageId) -> Result<(Pin<'_>, bool), StorageError> {
        let mut whole = true;
        loop {
            if let Some(pin) = self.try_pin(id) {
                return Ok((pin, whole));
            }
            whole = self.load(id, Load::Redo).await?;
        }
    }

    /// Pins a page that is in memory.
    pub fn try_pin(&self, id: PageId) -> Option<Pin<'_>> {
        let entry = self.entry(id);
        let mut word = Word(entry.load(Acquire));
        loop {
            if !word.is_resident() {
                word = self.settle(entry)?;
            }
            let frame = word.frame();
            // BUF-6: the evictor latches first and looks at the pins then; we pin first and look at the latch then.
            self.metas[frame].pins.fetch_add(1, SeqCst);
            let after = Word(entry.load(SeqCst));
            let pin = Pin { pool: self, frame, id };
            if after.is_resident() && after.frame() == frame {
                return Some(pin);
            }
            drop(pin);
            word = after;
        }
    }

    /// Loads a page unless it is in memory. False: it was damaged or never written (only for redo).
    async fn load(&self, id: PageId, how: Load) -> Result<bool, StorageError> {
        let entry = self.entry(id);
        let ticket = loop {
            let word = Word(entry.load(Acquire));
            match word.state() {
                State::Resident | State::Latched => return Ok(true),
                State::Loading => {
                    let gate = self.gates.of(id);
                    let waiting = gate.listen();
                    if Word(entry.load(SeqCst)).state() == State::Loading {
                        waiting.await;
                    }
                }
                State::Absent => {
                    let ticket = self.take_frame().await?;
                    let word = Word(entry.load(Acquire));
                    let loading = word.with_state(State::Loading);
                    if word.state() == State::Absent
                        && entry.compare_exchange(word.0, loading.0, AcqRel, Relaxed).is_ok()
                    {
                        break ticket;
                    }
                }
            }
        };
        // From here on dropping this future makes the entry absent again.
        let loading = Loading { pool: self, entry, id, done: false };
        if how == Load::New {
            self.counters.new_pages.add(1);
            self.install(loading, ticket, None);
            return Ok(true);
        }
        let (place, offset) = self.space.locate(id)?;
        let buf = place.read_at(offset, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).await?;
        self.counters.misses.add(1);
        match verify(id, &buf) {
            Ok(bytes) => {
                self.install(loading, ticket, Some(bytes));
                Ok(true)
            }
            Err(_) if how == Load::Redo => {
                self.install(loading, ticket, None);
                Ok(false)
            }
            Err(corruption) => Err(corruption.in_file(self.space.file_name(id)).into()),
        }
    }

    /// Makes the page resident with these bytes, or as an empty page of kind FREE.
    fn install(&self, mut loading: Loading<'_>, ticket: Ticket<'_>, bytes: Option<&PageBytes>) {
        let frame = ticket.into_frame();
        let page = PageMut::new(&self.words[frame]);
        // A frame's words may still be read by someone who holds an old word; the version tells him (BUF-3).
        fence(Release);
        match bytes {
            Some(bytes) => page.copy_in(bytes),
            None => page.format(loading.id, TreeId(0), 0, kind::FREE),
        }
        let meta = &self.metas[frame];
        meta.page.store(loading.id.0, Relaxed);
        meta.referenced.store(true, Relaxed);
        let word = Word(loading.entry.load(Relaxed)).with_frame(frame).with_state(State::Resident).bumped();
        loading.entry.store(word.0, SeqCst);
        loading.done = true;
        self.gates.of(loading.id).open();
    }

    /// The lowest LSN from which redo must start for the pages in memory; the end of the log if none is dirty.
    pub fn dirty_min_lsn(&self) -> Lsn {
        // BUF-7: the end first, then the frames.
        let mut min = self.log.end_lsn().0;
        fence(SeqCst);
        for meta in &self.metas {
            // `writing` after `rec_lsn`: the cleaner moves the value in that direction.
            for lsn in [meta.rec_lsn.load(SeqCst), meta.writing.load(SeqCst)] {
                if lsn != 0 {
                    min = min.min(lsn);
                }
            }
        }
        Lsn(min)
    }
}

/// What a load expects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Existing,
    New,
    Redo,
}

/// The duty to bring an entry out of LOADING.
struct Loading<'p> {
    pool: &'p Pool,
    entry: &'p AtomicU64,
    id: PageId,
    done: bool,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        if !self.done {
            let word = Word(self.entry.load(Relaxed)).with_state(State::Absent).bumped();
            self.entry.store(word.0, SeqCst);
            self.pool.gates.of(self.id).open();
        }
    }
}

/// Whether these bytes are the page `id` as it was written.
fn verify(id: PageId, bytes: &[u8]) -> Result<&PageBytes, Corruption> {
    let whole: Result<&PageBytes, _> = bytes.try_into();
    let Ok(bytes) = whole else {
        let found = format!("{} bytes", bytes.len());
        return Err(Corruption::in_page(id, Lsn::ZERO, format!("a page of {PAGE_BYTES} bytes"), found));
    };
    let field = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let lsn = Lsn(u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")));
    let (stored, computed) = (field(page::AT_CHECKSUM), page::checksum(bytes));
    if stored != computed {
        let found = if bytes.iter().all(|byte| *byte == 0) {
            "a page of zeros (never written)".to_owned()
        } else {
            format!("{stored:#010x}")
        };
        return Err(Corruption::in_page(id, lsn, format!("checksum {computed:#010x}"), found));
    }
    if field(4) != id.0 {
        return Err(Corruption::in_page(id, lsn, format!("page {id}"), format!("page {}", field(4))));
    }
    Ok(bytes)
}

impl<'p> Optimistic<'p> {
    /// Whether all that was read since `Pool::read` was of one version.
    #[inline]
    pub fn validate(&self) -> bool {
        fence(Acquire);
        self.entry.load(Relaxed) == self.word.0
    }

    /// The page's number.
    pub fn id(&self) -> PageId {
        self.id
    }

    /// Its place and version.
    pub fn seen(&self) -> Seen {
        Seen { page: self.id, word: self.word.0 }
    }

    /// The latch, if the page is still of this version.
    #[inline]
    pub fn latch(&self) -> Option<Latched<'p>> {
        Latched::take(self.pool, self.entry, self.word)
    }
}

impl<'p> Latched<'p> {
    #[inline]
    pub(super) fn take(pool: &'p Pool, entry: &'p AtomicU64, word: Word) -> Option<Self> {
        debug_assert!(word.is_resident());
        entry.compare_exchange(word.0, word.with_state(State::Latched).0, SeqCst, Relaxed).ok()?;
        // Readers that see any of our stores see the latch as well (BUF-3).
        fence(Release);
        super::gate::latch_taken();
        let page = PageMut::new(&pool.words[word.frame()]);
        Some(Latched { pool, entry, word, changed: false, page, _not_send: PhantomData })
    }

    /// The page, for changes. `will_change` comes first.
    pub fn page(&self) -> &PageMut<'p> {
        &self.page
    }

    /// Its place and the version it had when it was latched.
    pub fn seen(&self) -> Seen {
        Seen { page: PageId(self.pool.metas[self.word.frame()].page.load(Relaxed)), word: self.word.0 }
    }

    /// Its place and the version it will have when this latch goes.
    pub fn seen_after(&self) -> Seen {
        let word = if self.changed { self.word.bumped() } else { self.word };
        Seen { word: word.0, ..self.seen() }
    }

    /// Says that the page will be changed, before the first change and before the record is appended (BUF-7).
    pub fn will_change(&mut self) {
        self.changed = true;
        let meta = &self.pool.metas[self.word.frame()];
        if meta.rec_lsn.load(Relaxed) == 0 {
            meta.rec_lsn.store(self.pool.log.end_lsn().0.max(1), SeqCst);
            self.pool.dirty.fetch_add(1, Relaxed);
        }
    }

    /// The bytes were rearranged, what they say stays the same: readers must look again, the page is as clean or
    /// dirty as before.
    pub fn rearranged(&mut self) {
        self.changed = true;
    }

    /// The record that describes the change was appended; it ends here.
    pub fn changed(&mut self, end: Lsn) {
        debug_assert!(self.changed, "BUF-7");
        self.page.set_lsn(end);
    }

    /// For redo: the page is dirty since this record.
    pub fn redone(&mut self, start: Lsn, end: Lsn) {
        self.changed = true;
        let meta = &self.pool.metas[self.word.frame()];
        if meta.rec_lsn.load(Relaxed) == 0 {
            meta.rec_lsn.store(start.0.max(1), SeqCst);
            self.pool.dirty.fetch_add(1, Relaxed);
        }
        self.page.set_lsn(end);
    }
}

impl Latched<'_> {
    /// The evictor lets the page go (BUF-3: with a new version).
    pub(super) fn evict(mut self, state: State) {
        self.word = self.word.with_state(state);
        self.changed = true;
    }
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        let word = if self.changed { self.word.bumped() } else { self.word };
        self.entry.store(word.0, SeqCst);
        super::gate::latch_given_back();
    }
}

impl<'p> Pin<'p> {
    /// The page's number.
    pub fn id(&self) -> PageId {
        self.id
    }

    /// For reading without a latch.
    pub fn read(&self) -> Optimistic<'p> {
        self.pool.read(self.id).expect("a pinned page stays in its frame (BUF-6)")
    }

    /// Latches it, waiting out other latches.
    pub fn latch(&self) -> Latched<'p> {
        let mut spin = super::gate::Spin::new(&self.pool.counters);
        loop {
            if let Some(latched) = self.read().latch() {
                return latched;
            }
            spin.turn();
        }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.pool.metas[self.frame].pins.fetch_sub(1, SeqCst);
    }
}
