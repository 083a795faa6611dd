//! Redo, the second pass over the log: applies every page operation again that the page on disk does not contain.
//!
//! # Structure
//! Redo takes the log in batches. The steps of a batch are put in the order of their pages, so that a page is brought into memory, found and latched once for all its
//! changes in the batch (InnoDB hashes the records of its log by page for the same reason). Pages are independent of each other, so threads share the work.
//!
//! # Life of a batch
//! ```text
//!   the opening task                                         the threads
//!   records read and gathered, up to REC-16
//!   the batch before has ended: its left-over steps applied  <- parts applied, until none is left
//!   dirty pages written, if there are many
//!   missing pages fetched, many reads at once
//!   threads started                                          -> parts applied ...
//!   the next batch is read                                      ...
//! ```
//!
//! # Invariants
//! - REC-5: the operations of a record on a page are applied, all of them, if and only if the page's LSN is below the
//!   record's end. The last of these operations sets the page's LSN to that end. So a crash in the middle of redo, with some
//!   pages written, changes nothing for the next redo.
//! - REC-6: an operation on a page that can't be read is damage, and the opening fails, unless the first operation of its record on that page
//!   formats the page anew. From there on operations are applied to the page.
//! - REC-14: the operations on a page are applied in the order of the log: those of a batch by one thread, one after the other under one latch, and those of the next batch
//!   after all of this one. An operation reads and changes its own page alone, so operations on different pages need no order, also those of one record.
//! - REC-15: each step of a batch was applied, or found in its page, before the next batch begins; else the opening fails. A thread that finds a page no longer in
//!   memory leaves its steps to the opening task, which may wait for the page; a thread that can't be started leaves all of them.
//! - REC-16: a batch has at most [`BATCH_BYTES`] of log and a record more, and names no more pages than a quarter of the pool. There are at most two batches at a time.
//!   While a batch begins at most half of the pool is dirty, so its pages find frames without a wait for the cleaner, which does not run yet.
//!
//! # Errors
//! Of several errors of a batch that of the page with the lowest number, as far as the threads had come.

use super::redo_batch::{Batch, Done, Place, Work};
use crate::buffer::Pool;
use crate::error::{Corruption, StorageError};
use crate::ids::{Lsn, PageId};
use crate::mutation::{self, Mutation};
use crate::record::LsnRange;
use crate::wal::format;
use clearway_base::sync::{JoinHandle, spawn_thread};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of log from which on a batch takes no more records.
pub(super) const BATCH_BYTES: usize = 16 << 20;

/// A batch that is being applied.
struct Running {
    work: Arc<Work>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// Helps until nothing is left to take, then waits for the threads.
    fn end(mut self) -> Result<Arc<Work>, StorageError> {
        self.work.run();
        let threads = std::mem::take(&mut self.threads);
        // Each of them is waited for: none may change a page later.
        let panicked = threads.into_iter().map(JoinHandle::join).filter(Result::is_err).count();
        match panicked {
            0 => Ok(self.work.clone()),
            _ => Err(StorageError::Poisoned("a panic while the log was applied to pages".into())),
        }
    }
}

impl Drop for Running {
    /// After an error of the opening task.
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The pass.
pub struct RedoPass {
    pool: Arc<Pool>,
    place: Place,
    /// So many threads apply a batch while the next one is read; 0: the opening task does all.
    threads: usize,
    bytes_max: usize,
    batch: Batch,
    running: Option<Running>,
    /// The LSNs of pages that have later changes than the batches before. Only this pass changes pages, so such a page need not be read again for records below.
    ahead: HashMap<PageId, Lsn>,
    pages: Vec<PageId>,
    /// Operations read.
    pub seen: u64,
    /// Operations applied.
    pub applied: u64,
}

impl RedoPass {
    /// A pass over the pages of `pool`; `place` names places in the log for errors.
    pub fn new(pool: Arc<Pool>, threads: usize, bytes_max: usize, place: Place) -> RedoPass {
        RedoPass {
            pool,
            place,
            threads,
            bytes_max,
            batch: Batch::default(),
            running: None,
            ahead: HashMap::new(),
            pages: Vec::new(),
            seen: 0,
            applied: 0,
        }
    }

    /// Takes the next record in.
    ///
    /// # Errors
    /// Damage, a failed read or write.
    pub async fn take(&mut self, lsn: LsnRange, record: &[u8]) -> Result<(), StorageError> {
        self.pages.clear();
        if format::pages_of(record, &mut self.pages).is_none() {
            let (file, offset) = (self.place)(lsn.start);
            format::decode(record, lsn.start, &file, offset)?;
            let (expected, found) = ("a log record whose parts fill its length".to_owned(), "another".to_owned());
            return Err(
                Corruption { file, offset: Some(offset), page: None, lsn: Some(lsn.start), expected, found }.into()
            );
        }
        self.seen += self.pages.len() as u64;
        let wanted = |page: PageId| {
            // REC-5
            mutation::active(Mutation::RedoAlways) || self.ahead.get(&page).is_none_or(|has| *has < lsn.end)
        };
        self.batch.push(lsn, record, &self.pages, wanted);
        // REC-16
        if self.batch.bytes() >= self.bytes_max || self.batch.pages() >= (self.pool.frames() / 4).max(1) {
            self.begin_batch().await?;
        }
        Ok(())
    }

    /// All records were taken in: ends when all of them are applied.
    ///
    /// # Errors
    /// As [`RedoPass::take`].
    pub async fn finish(&mut self) -> Result<(), StorageError> {
        self.begin_batch().await?;
        self.end_batch().await
    }

    /// The batch that was gathered begins, when the one before has ended.
    async fn begin_batch(&mut self) -> Result<(), StorageError> {
        self.end_batch().await?;
        let mut work = std::mem::take(&mut self.batch).sorted(self.pool.clone(), self.place.clone());
        while self.pool.wants_cleaning() && self.pool.clean_step().await? > 0 {}
        work.unreadable = self.pool.fetch_for_redo(&work.pages()).await?;
        let work = Arc::new(work);
        let mut running = Running { work: work.clone(), threads: Vec::new() };
        for _ in 0..self.threads.min(work.parts()) {
            let work = work.clone();
            // REC-15
            let Ok(thread) = spawn_thread("redo", move || work.run()) else { break };
            running.threads.push(thread);
        }
        self.running = Some(running);
        Ok(())
    }

    /// REC-15: ends the batch that is being applied.
    async fn end_batch(&mut self) -> Result<(), StorageError> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let work = running.end()?;
        let mut done = std::mem::take(&mut *work.done.lock());
        if let Some(error) = done.error() {
            return Err(error);
        }
        self.apply_left(&work, &mut done).await?;
        assert_eq!(done.steps, work.steps(), "REC-15: steps of a batch that were applied");
        self.applied += done.applied;
        self.ahead.extend(done.ahead);
        Ok(())
    }

    /// Applies what the threads have left, page by page.
    async fn apply_left(&self, work: &Work, done: &mut Done) -> Result<(), StorageError> {
        for steps in std::mem::take(&mut done.left) {
            if self.pool.wants_cleaning() {
                self.pool.clean_step().await?;
            }
            let (pin, whole) = self.pool.pin_for_redo(work.page_of(steps.start)).await?;
            work.apply(&pin, whole, steps, done)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "redo_tests.rs"]
mod tests;
