//! The pool: gives pages by number for optimistic reads, exclusive latches and pins, and loads missing pages.

use super::counters::Counters;
use super::double_write::DoubleWrite;
use super::gate::{Gates, Spin, Turn, TurnGuard};
use super::guard::{Optimistic, Pin, Seen};
use super::page::{PAGE_BYTES, PAGE_WORDS, Page};
use super::table::{FRAMES_MAX, State, Table, Word};
use super::tree_reads::TreeReads;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId, TreeId};
use crate::interleave::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, AtomicWord};
use crate::seams::{PageLog, PageSpace};
use crate::zeroed;
use clearway_base::memory::ask_for_huge_pages;
use clearway_base::sync::{Mutex, sleep};
use clearway_base::usage;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

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
    /// Whether the system is asked to back the frames by huge pages.
    pub huge_pages: bool,
}

/// Pools from this size on have huge pages. A smaller one gains little, and the first page of a database would take 2 MiB of memory.
const HUGE_FROM_BYTES: usize = 128 << 20;

impl PoolOptions {
    /// Options for a memory budget in bytes.
    pub fn for_budget(bytes: usize) -> PoolOptions {
        let frames = (bytes / PAGE_BYTES).clamp(64, FRAMES_MAX);
        PoolOptions {
            frames,
            batch_pages: 64.min(frames / 4),
            free_target: (frames / 64).clamp(8, 1024),
            huge_pages: frames * PAGE_BYTES >= HUGE_FROM_BYTES,
        }
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
    pub(super) words: Box<[[AtomicWord; PAGE_WORDS]]>,
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
    pub(super) tree_reads: TreeReads,
    turn: Turn,
    poison: OnceLock<Arc<str>>,
    chains: AtomicU64,
    hints: Box<[AtomicU32]>,
    untidy: Mutex<BTreeSet<TreeId>>,
    // The tree noted last, so that one which is noted again and again takes no mutex.
    untidy_last: AtomicU64,
}

/// The number of places for hints. Trees that share a place overwrite each other's hint; a wrong hint costs one page read.
const HINTS: usize = 256;

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
        let meta = || Meta {
            page: AtomicU32::new(NO_PAGE),
            referenced: AtomicBool::new(false),
            pins: AtomicU32::new(0),
            rec_lsn: AtomicU64::new(0),
            writing: AtomicU64::new(0),
        };
        let (mut words, mut metas) = (zeroed::pages(frames), Vec::with_capacity(frames));
        if options.huge_pages {
            ask_for_huge_pages(&mut words);
            ask_for_huge_pages(metas.spare_capacity_mut());
        }
        metas.extend((0..frames).map(|_| meta()));
        Arc::new(Pool {
            words,
            metas: metas.into_boxed_slice(),
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
            tree_reads: TreeReads::default(),
            turn: Turn::default(),
            poison: OnceLock::new(),
            chains: AtomicU64::new(0),
            hints: (0..HINTS).map(|_| AtomicU32::new(0)).collect(),
            untidy: Mutex::new("storage/buffer/untidy", BTreeSet::new()),
            untidy_last: AtomicU64::new(u64::MAX),
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

    /// How many pages of each tree were read from disk.
    pub fn reads_by_tree(&self) -> HashMap<TreeId, u64> {
        self.tree_reads.all()
    }

    /// Frames in the pool.
    pub fn frames(&self) -> usize {
        self.metas.len()
    }

    /// Frames whose page is newer than on disk.
    pub fn dirty_pages(&self) -> usize {
        self.dirty.load(Relaxed)
    }

    /// A page number that users of a tree keep for each other, for as long as the pool lives; 0 at first. It may be
    /// any other tree's.
    #[inline]
    pub(crate) fn hint(&self, tree: TreeId) -> &AtomicU32 {
        &self.hints[tree.0 as usize % HINTS]
    }

    /// Notes that a tree has split or grown sparse: background work should look at it.
    pub(crate) fn note_untidy(&self, tree: TreeId) {
        if self.untidy_last.load(Relaxed) != tree.0 {
            self.untidy.lock().insert(tree);
            self.untidy_last.store(tree.0, Relaxed);
        }
    }

    /// The trees that were noted since the last call.
    pub(crate) fn take_untidy(&self) -> BTreeSet<TreeId> {
        self.untidy_last.store(u64::MAX, Relaxed);
        std::mem::take(&mut *self.untidy.lock())
    }

    /// The error that every later call gets, once a page write or sync has failed.
    #[inline]
    pub fn poisoned(&self) -> Result<(), StorageError> {
        self.poison.get().map_or(Ok(()), |why| Err(StorageError::Poisoned(why.clone())))
    }

    /// Poisons the pool: the state of its pages on disk is unknown.
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

    /// Slows a writer down, the more the fewer clean frames the pool has. So writers that make pages dirty pay for the page
    /// writes in small steps, and no task suddenly waits long for a frame.
    pub async fn throttle(&self) -> Result<(), StorageError> {
        self.poisoned()?;
        if let Some(delay) = self.throttle_delay().filter(|_| !cfg!(feature = "interleave")) {
            self.free.wanted.open();
            self.counters.throttled.add(1);
            in_wait(WaitEvent::WriteThrottle, Object::NONE, sleep(delay)).await;
        }
        Ok(())
    }

    /// Nothing below five eighths of the pool dirty; then rising without a step, 30 us at three quarters, 120 us at seven eighths,
    /// 2 ms at most. (The cleaner has begun long before, at [`Pool::dirty_goal`].)
    fn throttle_delay(&self) -> Option<Duration> {
        let (dirty, frames) = (self.dirty.load(Relaxed), self.metas.len());
        let over = dirty.checked_sub(frames * 5 / 8).filter(|over| *over > 0)?;
        let left = frames.saturating_sub(dirty).max(1);
        Some(Duration::from_micros((60 * over / left).clamp(1, 2000) as u64))
    }

    /// Whether a page is newer than on disk, so that the cleaner will write it anyway. A hint.
    pub fn is_dirty(&self, page: &Optimistic<'_>) -> bool {
        self.metas[page.word.frame()].rec_lsn.load(Relaxed) != 0
    }

    #[inline]
    pub(super) fn entry(&self, page: PageId) -> &AtomicU64 {
        self.table.entry(page)
    }

    /// The page, if it is in memory. Waits out a latch (some hundred nanoseconds), never I/O.
    #[inline(always)]
    pub fn read(&self, id: PageId) -> Option<Optimistic<'_>> {
        let entry = self.entry(id);
        let mut word = Word(entry.load(Acquire));
        if !word.is_resident() {
            word = self.settle(entry)?;
        }
        let frame = word.frame();
        let referenced = &self.metas[frame].referenced;
        // Tested first: a store on every read would move the cache line between processors.
        if !referenced.load(Relaxed) {
            referenced.store(true, Relaxed);
        }
        usage::page_hit();
        Some(Optimistic { pool: self, entry, word, id, page: Page::new(&self.words[frame]) })
    }

    /// Waits out a latch; none if the page is not in memory.
    #[cold]
    fn settle(&self, entry: &AtomicU64) -> Option<Word> {
        let mut spin = Spin::new(&self.counters);
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

    /// Pins a page that is in memory.
    pub fn try_pin(&self, id: PageId) -> Option<Pin<'_>> {
        let entry = self.entry(id);
        let mut word = Word(entry.load(Acquire));
        loop {
            if !word.is_resident() {
                word = self.settle(entry)?;
            }
            let frame = word.frame();
            // BUF-6: the evictor latches first and reads the pins afterwards; this thread pins first and reads the latch afterwards.
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
