//! Read-ahead: the pages that a scan will come to, with one read where they lie side by side in their file.
//!
//! The leaves of a table that was loaded in the order of its keys lie so: a scan of it reads a quarter of a megabyte at a time, and not each page by
//! itself, which costs a system call and a turn of the thread that performs it.
//!
//! # Invariants
//! - BUF-18: pages that are read together come into LOADING without a wait between the first and the last, so no task waits for a frame or a gate while
//!   it has pages in LOADING: tasks that read runs can't wait for each other in a circle.
//! - BUF-21: redo gets each page that it asks for, also one that can't be read: as [`Pool::pin_for_redo`] gives it, and named as such. A page that a read of several did not bring
//!   is read alone.

use super::evict::Ticket;
use super::load::{Load, Loading, Miss, ReadReason, not_ahead, verify};
use super::page::PAGE_BYTES;
use super::pool::Pool;
use super::table::{State, Word};
use crate::error::StorageError;
use crate::ids::PageId;
use crate::seams::BoxFuture;
use clearway_base::vfs::IoBuf;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The most pages that one read brings: a quarter of a megabyte.
const RUN_MAX: usize = 32;

/// So many pages are on their way at once for redo.
const FLIGHT_MAX: usize = 512;

/// Pages side by side that are in LOADING, with their frames.
struct Claimed<'p>(Vec<(Loading<'p>, Ticket<'p>)>);

impl Pool {
    /// Brings pages into memory, with all reads in flight at once, but never more than a quarter of the pool. Only an error of
    /// the missing page is returned; an error of another page shows when that page is read.
    pub async fn fetch_all(&self, miss: Miss, others: &[PageId]) -> Result<(), StorageError> {
        let mut missing: Vec<PageId> = others.iter().copied().take(self.frames() / 4).collect();
        missing.retain(|page| !Word(self.entry(*page).load(Relaxed)).is_resident());
        missing.sort_unstable_by_key(|page| page.0);
        missing.dedup();
        let first = async move { self.fetch_missing(miss, ReadReason::Path).await.map(|_| ()) };
        let mut reads: Vec<BoxFuture<'_, Result<(), StorageError>>> = vec![Box::pin(first)];
        for run in missing.chunk_by(|page, next| page.0 + 1 == next.0).flat_map(|run| run.chunks(RUN_MAX)) {
            reads.push(Box::pin(async move {
                self.fetch_run(run).await;
                Ok(())
            }));
        }
        super::cleaner::all(reads).await
    }

    /// Brings pages into memory for redo, which come in the order of their numbers and are at most a quarter of the pool. Returns those that were never written, or whose bytes are
    /// damaged: they are empty pages of kind FREE (BUF-21). Frames are free or clean: nothing is waited for but reads.
    ///
    /// # Errors
    /// A failed read; a page beyond the end of the log.
    pub async fn fetch_for_redo(&self, pages: &[PageId]) -> Result<HashSet<PageId>, StorageError> {
        let is_missing = |page: &PageId| !Word(self.entry(*page).load(Relaxed)).is_resident();
        let missing: Vec<PageId> = pages.iter().copied().filter(is_missing).collect();
        let mut unreadable = HashSet::new();
        for flight in missing.chunks(FLIGHT_MAX) {
            let runs = flight.chunk_by(|page, next| page.0 + 1 == next.0).flat_map(|run| run.chunks(RUN_MAX));
            let reads: Vec<BoxFuture<'_, Result<(), StorageError>>> = runs
                .filter_map(|run| self.claim(run))
                .map(|claimed| Box::pin(self.read_claimed(claimed)) as BoxFuture<'_, _>)
                .collect();
            // What a read did not bring is read again, for the error of its own.
            let _ = super::cleaner::all(reads).await;
            for page in flight.iter().filter(|page| is_missing(page)) {
                if !self.load(*page, Load::Redo, ReadReason::Ahead).await? {
                    unreadable.insert(*page);
                }
            }
        }
        Ok(unreadable)
    }

    /// Brings pages of successive numbers into memory, as far as that can be: they are hints, verified again when they are needed.
    async fn fetch_run(&self, mut run: &[PageId]) {
        while let [first, rest @ ..] = run {
            let Some(claimed) = self.claim(run) else {
                // In memory or on its way by now; or no frame is free, which a single page waits for.
                if Word(self.entry(*first).load(Relaxed)).state() == State::Absent {
                    let _ = self.fetch(*first, ReadReason::Ahead).await;
                }
                run = rest;
                continue;
            };
            run = &run[claimed.0.len()..];
            let _ = self.read_claimed(claimed).await;
        }
    }

    /// Puts pages from the first one on into LOADING, up to the first that is not absent, lies in another file, or finds no free frame (BUF-18);
    /// none: not even the first.
    fn claim(&self, run: &[PageId]) -> Option<Claimed<'_>> {
        let (file, offset) = self.space.locate(*run.first()?).ok()?;
        let mut claimed = Vec::with_capacity(run.len());
        for (n, id) in run.iter().enumerate() {
            let lies_behind = n == 0
                || self.space.locate(*id).is_ok_and(|(other, place)| {
                    Arc::ptr_eq(&other, &file) && place == offset + (n * PAGE_BYTES) as u64
                });
            if !lies_behind {
                break;
            }
            let entry = self.entry(*id);
            let word = Word(entry.load(Acquire));
            if word.state() != State::Absent {
                break;
            }
            let Some(ticket) = self.frame_now() else { break };
            let loading = word.with_state(State::Loading);
            if entry.compare_exchange(word.0, loading.0, AcqRel, Relaxed).is_err() {
                break;
            }
            claimed.push((Loading::new(self, entry, *id), ticket));
        }
        (!claimed.is_empty()).then_some(Claimed(claimed))
    }

    /// Reads pages that were claimed. What can't be read becomes absent again (BUF-13).
    async fn read_claimed(&self, claimed: Claimed<'_>) -> Result<(), StorageError> {
        let bytes = claimed.0.len() * PAGE_BYTES;
        let Some((first, _)) = claimed.0.first() else { return Ok(()) };
        let (file, offset) = self.space.locate(first.id())?;
        let buf = file.read_at(offset, IoBuf::with_capacity(bytes), bytes).await?;
        self.counters.ahead_runs.add(1);
        for ((loading, ticket), page) in claimed.0.into_iter().zip(buf.chunks(PAGE_BYTES)) {
            let id = loading.id();
            self.count_read(ReadReason::Ahead);
            let Ok(bytes) = verify(id, page) else { continue };
            if not_ahead(id, bytes, self.log.end_lsn()).is_ok() {
                self.install_read(loading, ticket, bytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
