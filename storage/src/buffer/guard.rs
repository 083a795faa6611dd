//! The guards of a page: an optimistic view, an exclusive latch, a pin.
//!
//! # Invariants
//! - BUF-3, BUF-5, BUF-6, BUF-7 (see the module above and `table`).

use super::page::{Page, PageMut};
use super::pool::Pool;
use super::table::{State, Word};
use crate::ids::{Lsn, PageId};
use crate::interleave::AtomicU64;
use crate::mutation::{self, Mutation};
use clearway_base::usage;
use std::marker::PhantomData;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

/// A copy's place and version, to ask later whether it still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The page.
    pub page: PageId,
    pub(super) word: u64,
}

impl Seen {
    /// Page and version as one number.
    #[inline]
    pub(crate) fn fingerprint(&self) -> u64 {
        self.word.rotate_left(20) ^ u64::from(self.page.0)
    }
}

/// A resident page for reading without a latch. The bytes read are valid only if `validate` returns true afterwards.
#[derive(Clone, Copy)]
pub struct Optimistic<'p> {
    pub(super) pool: &'p Pool,
    pub(super) entry: &'p AtomicU64,
    pub(super) word: Word,
    pub(super) id: PageId,
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
    pub(super) pool: &'p Pool,
    pub(super) frame: usize,
    pub(super) id: PageId,
}

impl<'p> Optimistic<'p> {
    /// Whether all that was read since `Pool::read` was of one version.
    #[inline]
    pub fn validate(&self) -> bool {
        fence(Acquire);
        self.entry.load(Relaxed) == self.word.0 || mutation::active(Mutation::NoValidation)
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
        assert!(word.is_resident(), "a latch on a page that is not in memory");
        entry.compare_exchange(word.0, word.with_state(State::Latched).0, SeqCst, Relaxed).ok()?;
        // A reader that sees any store made under the latch sees the latch as well (BUF-3).
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

    /// Announces a change of the page, before the first store and before the record is appended (BUF-7).
    pub fn will_change(&mut self) {
        self.changed = true;
        let meta = &self.pool.metas[self.word.frame()];
        if meta.rec_lsn.load(Relaxed) == 0 {
            meta.rec_lsn.store(self.pool.log.end_lsn().0.max(1), SeqCst);
            self.pool.dirty.fetch_add(1, Relaxed);
            usage::page_dirtied();
        }
    }

    /// Notes that the page's bytes were rearranged without a change of content. Readers must read again; the page stays as clean or
    /// dirty as before.
    pub fn rearranged(&mut self) {
        self.changed = true;
    }

    /// Notes that the record of the change was appended and ends at this LSN.
    pub fn changed(&mut self, end: Lsn) {
        assert!(self.changed, "BUF-7: a record of a change that was not announced");
        assert!(self.page.lsn() <= end, "BUF-8: the page's LSN {} would fall to {end}", self.page.lsn());
        self.page.set_lsn(end);
    }

    /// For redo: the page is dirty since this record.
    pub fn redone(&mut self, start: Lsn, end: Lsn) {
        assert!(start < end, "BUF-7: redo is of a record, from {start} to {end}");
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
    /// Evicts the page; its entry gets a new version (BUF-3).
    pub(super) fn evict(mut self, state: State) {
        self.word = self.word.with_state(state);
        self.changed = true;
    }
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        if self.changed && std::thread::panicking() {
            // It is unknown how much of the change was made.
            self.pool.poison("a panic while a page was being changed");
        }
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
        let before = self.pool.metas[self.frame].pins.fetch_sub(1, SeqCst);
        assert!(before > 0, "BUF-6: page {:?} was unpinned twice", self.id);
    }
}
