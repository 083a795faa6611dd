//! Free frames: the stock, eviction by a clock hand, and the wait for the cleaner when no frame can be freed.
//!
//! # Invariants
//! - BUF-6 and BUF-10 (see the module above).

use super::guard::Latched;
use super::pool::{NO_PAGE, Pool};
use super::table::{State, Word};
use crate::error::StorageError;
use crate::ids::PageId;
use clearway_base::sync::latches_held;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// A free frame. If it is dropped unused, it returns to the stock.
pub(super) struct Ticket<'p> {
    pool: &'p Pool,
    frame: usize,
    used: bool,
}

impl Ticket<'_> {
    /// Uses the frame.
    pub(super) fn into_frame(mut self) -> usize {
        self.used = true;
        self.frame
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.pool.free.put(self.frame);
        }
    }
}

impl Pool {
    /// Gets a free frame: from the stock, by eviction, or after waiting for the cleaner.
    pub(super) async fn take_frame(&self) -> Result<Ticket<'_>, StorageError> {
        if latches_held() != 0 {
            self.counters.io_under_latch.add(1);
        }
        loop {
            if let Some(ticket) = self.frame_now() {
                return Ok(ticket);
            }
            let waiting = self.free.refilled.listen();
            // BUF-11: checked again after registering.
            if let Some(ticket) = self.frame_now() {
                return Ok(ticket);
            }
            self.poisoned()?;
            self.counters.frame_waits.add(1);
            self.free.wanted.open();
            in_wait(WaitEvent::FreeFrame, Object::NONE, waiting).await;
        }
    }

    /// The same without waiting.
    pub(super) fn frame_now(&self) -> Option<Ticket<'_>> {
        let frame = self.free.take().or_else(|| self.evict_one())?;
        Some(Ticket { pool: self, frame, used: false })
    }

    /// Moves the clock hand until it finds a frame to empty; at most two rounds.
    pub(super) fn evict_one(&self) -> Option<usize> {
        for _ in 0..2 * self.metas.len() {
            let frame = self.hand.fetch_add(1, Relaxed) % self.metas.len();
            let meta = &self.metas[frame];
            let page = meta.page.load(Acquire);
            if page == NO_PAGE || meta.pins.load(Relaxed) != 0 {
                continue;
            }
            // Of dirty pages too: those that nothing uses until the hand comes again are written before it comes (BUF-20).
            if meta.referenced.swap(false, Relaxed) || !self.evictable(frame) {
                continue;
            }
            if self.evict(frame, PageId(page)) {
                return Some(frame);
            }
        }
        None
    }

    fn evictable(&self, frame: usize) -> bool {
        let meta = &self.metas[frame];
        meta.pins.load(SeqCst) == 0 && meta.rec_lsn.load(SeqCst) == 0 && meta.writing.load(SeqCst) == 0
    }

    /// Empties a frame, if its page may go (BUF-6).
    fn evict(&self, frame: usize, page: PageId) -> bool {
        let entry = self.entry(page);
        let word = Word(entry.load(Acquire));
        if !word.is_resident() || word.frame() != frame {
            return false;
        }
        let Some(latched) = Latched::take(self, entry, word) else {
            return false;
        };
        if !self.evictable(frame) {
            return false;
        }
        self.metas[frame].page.store(NO_PAGE, Release);
        latched.evict(State::Absent);
        self.counters.evictions.add(1);
        true
    }

    /// Evicts until the stock is as large as the options ask. The cleaner calls this.
    pub(super) fn refill_stock(&self) {
        while self.free.len() < self.options.free_target {
            match self.evict_one() {
                Some(frame) => self.free.put(frame),
                None => return,
            }
        }
    }
}
