//! The page cleaner: writes dirty pages to disk in batches, off the commit path.
//!
//! # Life of a batch
//! ```text
//!   collect   short latch on each dirty page, copy out, rec_lsn -> writing
//!   wait      until the log is durable up to the highest page_lsn        BUF-8
//!   twice     the copies into the double-write area, sync; in place, sync BUF-9, BUF-19
//!   clean     writing -> 0; frames may be evicted
//! ```
//!
//! # What is written, and when
//! A page that is written early is often dirtied again, and then was written for nothing. Two things ask for the write of a page: the log, which is kept from
//! the oldest change on that is not on disk, and a lack of frames. The first is the checkpointer's business ([`Pool::write_older`]): it has a goal, and the pages that were dirty
//! before its checkpoint began are written once, whatever happened to them meanwhile. The cleaner's loop is there for frames alone (BUF-20). PostgreSQL divides the work in the same way between
//! its checkpointer and its background writer; InnoDB flushes by the age of the log, and from the end of its LRU list.
//!
//! # Invariants
//! - BUF-12: while a frame's `writing` LSN is set, `dirty_min_lsn` takes it into account, and no second copy of the page is written.
//! - BUF-14: after a failed write or sync the twins of that batch (its copies in the double-write area) are not overwritten.
//! - BUF-20: the cleaner's loop writes a page only if more pages are dirty than [`Pool::dirty_goal`], or a task waits for a frame, or the stock of free frames runs low and the page
//!   is one of those that the clock hand comes to next and was not used since the hand passed it. (Before, it wrote whatever was dirty as soon as an eighth of the pool was: 57,000 pages
//!   during a load and a DELETE that touched 15,000.)
//!
//! # Errors
//! A failed write or sync poisons the pool: the state of the pages on disk is unknown. No write is retried.

use super::guard::Latched;
use super::in_place::{Run, files_of, runs_of};
use super::page::{PAGE_BYTES, PageBytes, seal};
use super::pool::{NO_PAGE, Pool};
use super::table::Word;
use crate::error::StorageError;
use crate::ids::{Lsn, PageId};
use crate::mutation::{self, Mutation};
use crate::rest::{Pauses, Rest};
use crate::sync::first_of;
use clearway_base::sync::{timeout, yield_now};
use clearway_base::vfs::IoBuf;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::task::Poll;
use std::time::Duration;

/// Half a gigabyte: of a large pool no more pages may be dirty than this, or an eighth of them.
const DIRTY_MAX: usize = (512 << 20) / PAGE_BYTES;
/// The part of the pool before the clock hand in which the cleaner looks for pages to write, in stocks of free frames.
const AHEAD: usize = 4;

/// A page copied out, to be written.
struct Copied {
    frame: usize,
    id: PageId,
    bytes: Box<PageBytes>,
}

/// Copies that have not reached the disk yet. If this is dropped early, their pages become dirty again.
struct Batch<'p> {
    pool: &'p Pool,
    pages: Vec<Copied>,
    page_lsn_max: Lsn,
}

impl Batch<'_> {
    /// Copies the page in a frame out, if it is dirty since an LSN that is `wanted`, and no other task writes it.
    fn take(&mut self, frame: usize, wanted: impl Fn(u64) -> bool) {
        let meta = &self.pool.metas[frame];
        let rec_lsn = meta.rec_lsn.load(SeqCst);
        if rec_lsn == 0 || !wanted(rec_lsn) || meta.writing.load(SeqCst) != 0 {
            return;
        }
        let page = meta.page.load(Acquire);
        if page == NO_PAGE {
            return;
        }
        if let Some(copied) = self.pool.copy_for_write(frame, PageId(page)) {
            let lsn = u64::from_le_bytes(copied.bytes[8..16].try_into().expect("eight bytes"));
            self.page_lsn_max = self.page_lsn_max.max(Lsn(lsn));
            self.pages.push(copied);
        }
    }

    fn release(&mut self, written: bool) {
        for copied in self.pages.drain(..) {
            let meta = &self.pool.metas[copied.frame];
            if !written {
                // The older rec_lsn must win over a newer one that was set meanwhile.
                let old = meta.writing.load(SeqCst);
                let was = meta.rec_lsn.swap(old, SeqCst);
                if was == 0 {
                    self.pool.dirty.fetch_add(1, Relaxed);
                }
            }
            meta.writing.store(0, SeqCst);
        }
        self.pool.free.refilled.open();
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.release(false);
    }
}

impl Pool {
    /// One step of the cleaner: writes at most a batch of dirty pages and refills the stock of free frames.
    /// Gives the number of pages written.
    pub async fn clean_step(&self) -> Result<usize, StorageError> {
        self.poisoned()?;
        let batch = self.collect(self.options.batch_pages, |_| true);
        let written = self.write_batch(batch).await?;
        self.refill_stock();
        Ok(written)
    }

    /// Writes every page that is dirty now: after it, `dirty_min_lsn` is at or above the end of the log at the
    /// call. For checkpoints at leisure and for closing.
    pub async fn write_all(&self) -> Result<usize, StorageError> {
        let until = self.log.end_lsn().0;
        let mut total = 0;
        loop {
            self.poisoned()?;
            let batch = self.collect(self.options.batch_pages, |rec_lsn| rec_lsn <= until);
            let written = self.write_batch(batch).await?;
            total += written;
            if written == 0 && self.dirty_min_lsn().0 >= until {
                return Ok(total);
            }
            if written == 0 {
                // Pages that another task is writing, or that were latched just now.
                yield_now().await;
            }
        }
    }

    /// Writes at most a batch of the pages that have been dirty since before `than`; for a checkpoint that takes its time. Gives the
    /// number of pages written, which may be 0 while others write or hold them.
    pub async fn write_older(&self, than: Lsn) -> Result<usize, StorageError> {
        self.poisoned()?;
        let batch = self.collect(self.options.batch_pages, |rec_lsn| rec_lsn < than.0);
        self.write_batch(batch).await
    }

    /// The cleaner's loop, until the pool is poisoned or `stop` says so; looks at `stop` at least every 50 ms.
    pub async fn run_cleaner(&self, stop: impl Fn() -> bool) -> Result<(), StorageError> {
        self.run_cleaner_and_rest(&Rest::default(), stop).await
    }

    /// The same; during a rest it looks at `stop` when the rest ends.
    pub(crate) async fn run_cleaner_and_rest(&self, rest: &Rest, stop: impl Fn() -> bool) -> Result<(), StorageError> {
        while !stop() {
            // BUF-11: before the look at what is wanted.
            let wanted = self.free.wanted.listen();
            if self.clean_if_wanted().await? > 0 {
                continue;
            }
            if rest.is_resting() {
                in_wait(WaitEvent::CleanerMain, Object::NONE, first_of(wanted, rest.ended(Pauses::Cleaner))).await;
                continue;
            }
            // Frames that are wanted but can't be had from dirty pages come from pins and reads that end.
            let wanted = timeout(Duration::from_millis(50), wanted);
            if in_wait(WaitEvent::CleanerMain, Object::NONE, wanted).await.is_ok() {
                self.clean_step().await?;
            }
        }
        Ok(())
    }

    /// A step of the cleaner that is due although no task waits (BUF-20): writes at most a batch, and refills the stock of free frames. Gives the number of pages written.
    pub(crate) async fn clean_if_wanted(&self) -> Result<usize, StorageError> {
        self.poisoned()?;
        if self.wants_cleaning() {
            return self.clean_step().await;
        }
        if self.free.len() >= self.options.free_target / 2 {
            return Ok(0);
        }
        let written = self.write_batch(self.collect_ahead()).await?;
        self.refill_stock();
        // What is left can't be had without writing it.
        if self.free.len() == 0 { Ok(written + self.clean_step().await?) } else { Ok(written) }
    }

    /// Whether more pages are dirty than [`Pool::dirty_goal`].
    pub fn wants_cleaning(&self) -> bool {
        self.dirty.load(Relaxed) > self.dirty_goal()
    }

    /// So many pages may be dirty without the cleaner writing any: half of the pool, or what a checkpoint and a closing write within some seconds
    /// ([`DIRTY_MAX`]), but at least an eighth. Writers are slowed down from five eighths on ([`Pool::throttle`]).
    pub fn dirty_goal(&self) -> usize {
        let frames = self.metas.len();
        (frames / 2).min(DIRTY_MAX.max(frames / 8))
    }

    fn collect(&self, pages_max: usize, wanted: impl Fn(u64) -> bool) -> Batch<'_> {
        let mut batch = Batch { pool: self, pages: Vec::new(), page_lsn_max: Lsn::ZERO };
        for _ in 0..self.metas.len() {
            if batch.pages.len() == pages_max {
                break;
            }
            let frame = self.clean_hand.fetch_add(1, Relaxed) % self.metas.len();
            batch.take(frame, &wanted);
        }
        batch
    }

    /// Dirty pages that the clock hand would have to pass over, though nothing has used them since it passed last (BUF-20).
    fn collect_ahead(&self) -> Batch<'_> {
        let mut batch = Batch { pool: self, pages: Vec::new(), page_lsn_max: Lsn::ZERO };
        let (hand, frames) = (self.hand.load(Relaxed), self.metas.len());
        for ahead in 0..frames.min(AHEAD * self.options.free_target) {
            if batch.pages.len() == self.options.batch_pages {
                break;
            }
            let frame = hand.wrapping_add(ahead) % frames;
            let meta = &self.metas[frame];
            if !meta.referenced.load(Relaxed) && meta.pins.load(Relaxed) == 0 {
                batch.take(frame, |_| true);
            }
        }
        batch
    }

    fn copy_for_write(&self, frame: usize, id: PageId) -> Option<Copied> {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        let entry = self.entry(id);
        let word = Word(entry.load(Acquire));
        if !word.is_resident() || word.frame() != frame {
            return None;
        }
        let latched = Latched::take(self, entry, word)?;
        let meta = &self.metas[frame];
        // BUF-12: under the latch, so no other thread makes the page dirty in between.
        let rec_lsn = meta.rec_lsn.load(SeqCst);
        if rec_lsn == 0 || meta.writing.compare_exchange(0, rec_lsn, SeqCst, SeqCst).is_err() {
            return None;
        }
        latched.page().copy_out(&mut bytes);
        let page = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
        assert_eq!(page, id.0, "a frame holds another page than its entry says");
        meta.rec_lsn.store(0, SeqCst);
        drop(latched);
        self.dirty.fetch_sub(1, Relaxed);
        seal(&mut bytes);
        Some(Copied { frame, id, bytes })
    }

    async fn write_batch(&self, mut batch: Batch<'_>) -> Result<usize, StorageError> {
        if batch.pages.is_empty() {
            return Ok(0);
        }
        if !mutation::active(Mutation::PageBeforeLog) {
            in_wait(WaitEvent::WalFlush, Object::NONE, self.log.wait_durable(batch.page_lsn_max)).await?;
            assert!(self.log.durable_lsn() >= batch.page_lsn_max, "BUF-8");
        }
        // In the order of the files: the disk moves one way, and neighbours go out together.
        batch.pages.sort_unstable_by_key(|copied| copied.id);
        let mut twins = IoBuf::with_capacity(batch.pages.len() * PAGE_BYTES);
        for copied in &batch.pages {
            twins.extend_from_slice(&copied.bytes[..]);
        }
        let _turn = self.double_write_turn().await;
        // BUF-14: during the wait another batch may have failed. Its twins may then be the only whole copies of its pages.
        self.poisoned()?;
        let result = self.write_twice(&batch, twins).await;
        if let Err(error) = &result {
            self.poison(&format!("pages could not be written: {error}"));
        }
        result?;
        let written = batch.pages.len();
        batch.release(true);
        self.counters.pages_written.add(written as u64);
        self.counters.double_writes.add(1);
        Ok(written)
    }

    async fn write_twice(&self, batch: &Batch<'_>, mut twins: IoBuf) -> Result<(), StorageError> {
        let runs = runs_of(batch.pages.iter().map(|copied| copied.id), |page| self.space.locate(page))?;
        if !mutation::active(Mutation::NoTwins) {
            twins = self.double_write.write(twins).await?;
        }
        // BUF-19
        let write = |run: &Run| run.file.write_at(run.offset, IoBuf::from_slice(&twins[run.bytes()]));
        all(runs.iter().map(write).collect()).await?;
        self.counters.write_runs.add(runs.len() as u64);
        Ok(all(files_of(&runs).into_iter().map(|file| file.sync_data()).collect()).await?)
    }
}

/// Runs futures side by side until all have ended; the first error, if any.
pub(super) async fn all<T, E, F>(futures: Vec<F>) -> Result<(), E>
where
    F: Future<Output = Result<T, E>> + Unpin,
{
    let mut pending = futures;
    let mut failed = None;
    std::future::poll_fn(|cx| {
        pending.retain_mut(|future| match Pin::new(future).poll(cx) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                if let Err(error) = result {
                    failed.get_or_insert(error);
                }
                false
            }
        });
        if pending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
#[path = "cleaner_tests.rs"]
mod tests;
