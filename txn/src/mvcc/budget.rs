//! The memory budget of undo: undo beyond the budget is moved to the spill file, oldest first, and an alarm names the greatest holder.
//!
//! # Life of a spilled record
//! in memory -> the budget is three quarters full: the record's chunk and its neighbours are written as a span -> the span is in the
//! directory -> its records are freed one by one -> most of the span is free: the rest is rewritten with neighbouring spans as a new span |
//! no record of the span is needed: the span is dropped.
//!
//! # Invariants
//! - BUD-1: while memory exceeds the budget, a writer spills before its change, or waits for the thread that spills. So memory exceeds the
//!   budget by no more than the chunks that writers are filling.
//! - BUD-2: one thread spills at a time. Meanwhile only pruning replaces records in memory; a batch with a replaced record is not spilled,
//!   and is tried again later.
//! - BUD-3: nothing in this module waits for a transaction.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clearway_base::sync::{Mutex, assert_no_latches, sleep};
use clearway_base::waits::{self, Object as WaitObject, WaitEvent};
use clearway_storage::error::StorageError;
use clearway_storage::ids::{Lsn, Tag};

use super::book::VersionBook;
use super::holders::{Alarm, Listeners};
use super::record::{UndoRecord, Writer};
use super::snapshots::Horizon;
use super::span::{Span, encode};
use super::spill::SpillFile;
use super::state::Status;
use super::undo::{Moved, SHARDS};

/// About how many bytes of memory make one span.
const SPAN_BYTES: usize = 48 << 10;
/// A span with fewer live bytes is joined with its neighbours.
const SMALL_BYTES: usize = 8 << 10;
/// How long a writer waits, while another thread spills, before it checks again.
const PAUSE: Duration = Duration::from_millis(1);

/// The spill file, the turn to spill, and the alarms.
#[derive(Debug)]
pub(super) struct Budget {
    spill: OnceLock<Arc<SpillFile>>,
    spilling: AtomicBool,
    /// The horizon's oldest LSN and its open snapshots when [`VersionBook::has_moved`] was last asked.
    swept: Mutex<(Lsn, Box<[Lsn]>)>,
    pub(super) alarms: Mutex<VecDeque<Alarm>>,
    pub(super) alarms_total: AtomicU64,
    pub(super) listeners: Listeners,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            spill: OnceLock::new(),
            spilling: AtomicBool::new(false),
            swept: Mutex::new("txn/mvcc/swept", (Lsn::ZERO, Box::default())),
            alarms: Mutex::new("txn/mvcc/alarms", VecDeque::new()),
            alarms_total: AtomicU64::new(0),
            listeners: Listeners::default(),
        }
    }
}

/// The turn to spill (BUD-2).
struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    fn take(flag: &'a AtomicBool) -> Option<Turn<'a>> {
        // Constructed only when the flag was free: the drop of another `Turn` would end the holder's turn.
        (!flag.swap(true, Ordering::Acquire)).then(|| Turn(flag))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl VersionBook {
    /// Sets the memory budget in bytes and the spill file, at the opening of the database.
    pub fn limit(&self, bytes: u64, file: SpillFile) {
        self.undo.set_ceiling(bytes);
        let _ = self.budget.spill.set(Arc::new(file));
    }

    /// Sets another memory budget, in bytes.
    pub fn set_budget(&self, bytes: u64) {
        self.undo.set_ceiling(bytes);
    }

    /// The spill file.
    pub fn spill_file(&self) -> Option<&Arc<SpillFile>> {
        self.budget.spill.get()
    }

    /// Makes room for a writer's next change if memory exceeds the budget (BUD-1). The caller holds no latch.
    ///
    /// # Errors
    /// From the file; `NoSpace` if no spill file is set.
    pub async fn admit(&self) -> Result<(), StorageError> {
        if self.undo.is_over() { self.make_room().await } else { Ok(()) }
    }

    async fn make_room(&self) -> Result<(), StorageError> {
        assert_no_latches();
        while self.undo.measure() > self.undo.ceiling() {
            match Turn::take(&self.budget.spilling) {
                Some(turn) => return self.spill(&turn).await.map(|_| ()),
                None => waits::in_wait(WaitEvent::UndoBudget, WaitObject::NONE, sleep(PAUSE)).await,
            }
        }
        Ok(())
    }

    /// A step of upkeep: drops and joins spans, and spills if the budget is three quarters full. Returns how many records were freed and
    /// how many were spilled.
    ///
    /// # Errors
    /// From the file.
    pub async fn tend(&self) -> Result<(usize, usize), StorageError> {
        let Some(turn) = Turn::take(&self.budget.spilling) else {
            return Ok((0, 0));
        };
        let freed = self.sweep_spans(&turn).await?;
        let spilled = if self.undo.measure() > self.undo.ceiling() / 4 * 3 { self.spill(&turn).await? } else { 0 };
        if let Some(file) = self.spill_file() {
            file.cut().await?;
        }
        Ok((freed, spilled))
    }

    /// Whether snapshots have ended since the last call; the records that were kept for them should then be rechecked.
    pub fn has_moved(&self) -> bool {
        let horizon = self.snapshots.horizon();
        let mut swept = self.budget.swept.lock();
        let ended = swept.1.iter().any(|lsn| horizon.active().binary_search(lsn).is_err());
        let moved = ended || horizon.oldest() != swept.0;
        *swept = (horizon.oldest(), horizon.active().into());
        moved
    }

    /// Spills the oldest chunks until memory is at half the budget (UND-5).
    async fn spill(&self, _turn: &Turn<'_>) -> Result<usize, StorageError> {
        let Some(file) = self.spill_file() else {
            return Err(StorageError::NoSpace("undo: there is no spill file".into()));
        };
        self.raise_alarm();
        let (mut skip, mut spilled) = ([false; SHARDS], 0);
        while self.undo.measure() > self.undo.ceiling() / 2 {
            let Some(index) = self.undo.oldest_shard(&skip) else { break };
            let batch = self.undo.gather(index, SPAN_BYTES);
            let (Some(first), Some(last)) = (batch.chunks.first(), batch.chunks.last()) else {
                skip[index] = true;
                continue;
            };
            let encoded = encode(file.next_span(), &batch.records);
            let offset = file.write(&encoded.bytes).await?;
            let span = Arc::new(Span::new(encoded, (*first, *last), file.clone(), offset));
            match self.undo.spilled(index, &batch, span) {
                true => spilled += batch.records.len(),
                // BUD-2
                false => skip[index] = true,
            }
        }
        Ok(spilled)
    }

    /// Drops spans that no snapshot and no rollback needs, and joins neighbouring spans that are small or mostly free.
    async fn sweep_spans(&self, _turn: &Turn<'_>) -> Result<usize, StorageError> {
        let horizon = self.snapshots.horizon();
        let (mut freed, mut run) = (0, Run::default());
        for (index, span) in self.undo.spans() {
            let (live, count) = span.records();
            if horizon.covers(span.through()) || live == 0 {
                for (_, record) in if span.deletes() > 0 { span.all(false).await? } else { Vec::new() } {
                    if record.deletes {
                        self.pruner.purge_later(&record);
                    }
                }
                self.undo.respan(index, &[span], None);
                freed += live as usize;
                continue;
            }
            let dead = span.keeps && !horizon.needs(span.from, span.through());
            let is_due = dead || live * 2 <= count;
            let is_small = span.live_bytes() < SMALL_BYTES;
            let joins = (is_due || is_small)
                && run.takes(index, &span, |run| self.undo.has_chunks(index, run.last(), span.first));
            if !joins {
                freed += self.rewrite(std::mem::take(&mut run), &horizon).await?;
            }
            if is_due || is_small {
                run.push(index, span, is_due);
            }
        }
        Ok(freed + self.rewrite(run, &horizon).await?)
    }

    /// Rewrites the records of a run of spans that are still needed as one span. Returns how many records were freed.
    async fn rewrite(&self, run: Run, horizon: &Horizon) -> Result<usize, StorageError> {
        let Some(file) = self.spill_file().filter(|_| run.is_due || run.spans.len() > 1) else { return Ok(0) };
        let (Some(first), Some(last)) = (run.spans.first(), run.spans.last()) else { return Ok(0) };
        let chunks = (first.first, last.last);
        let (mut records, mut spots, mut freed) = (Vec::new(), Vec::new(), 0);
        for span in &run.spans {
            for (tag, record) in span.all(false).await? {
                let Some(spot) = record.spot() else { continue };
                match self.still_needed(&record, horizon) {
                    Some(record) => {
                        records.push((tag, record));
                        spots.push(spot);
                    }
                    None => freed += 1,
                }
            }
        }
        if records.is_empty() {
            self.undo.respan(run.index, &run.spans, None);
            return Ok(freed);
        }
        let span = self.write_span(file, &records, chunks).await?;
        let moved = Moved { span, records: &records, spots: &spots };
        self.undo.respan(run.index, &run.spans, Some(moved));
        Ok(freed)
    }

    async fn write_span(
        &self,
        file: &Arc<SpillFile>,
        records: &[(Tag, Arc<UndoRecord>)],
        chunks: (u64, u64),
    ) -> Result<Arc<Span>, StorageError> {
        let encoded = encode(file.next_span(), records);
        let offset = file.write(&encoded.bytes).await?;
        Ok(Arc::new(Span::new(encoded, chunks, file.clone(), offset)))
    }

    /// The form in which a spilled record is kept; `None` if it is not needed.
    fn still_needed(&self, record: &Arc<UndoRecord>, horizon: &Horizon) -> Option<Arc<UndoRecord>> {
        let commit = match record.status() {
            Status::Active => return Some(record.clone()),
            Status::Aborted => return None,
            Status::Committed(commit) => commit,
        };
        if horizon.covers(commit) || (record.rowless && horizon.reaches(commit)) {
            if record.deletes {
                self.pruner.purge_later(record);
            }
            return None;
        }
        if !horizon.reaches(commit) {
            return Some(record.clone());
        }
        Some(match (record.is_needed(commit, horizon), &record.writer) {
            // PRU-2
            (false, _) if !record.dropped => {
                Arc::new(record.link(commit, record.prev, record.passed().cloned().map(Box::new)))
            }
            (true, Writer::Live(_)) => Arc::new(record.ended(commit)),
            _ => record.clone(),
        })
    }
}

/// Neighbouring spans of one shard that are to be joined.
#[derive(Default)]
struct Run {
    index: usize,
    spans: Vec<Arc<Span>>,
    bytes: usize,
    is_due: bool,
}

impl Run {
    fn last(&self) -> u64 {
        self.spans.last().map_or(0, |span| span.last)
    }

    fn takes(&self, index: usize, span: &Span, is_apart: impl Fn(&Run) -> bool) -> bool {
        let fits = || index == self.index && self.bytes + span.live_bytes() <= SPAN_BYTES;
        self.spans.is_empty() || (fits() && !is_apart(self))
    }

    fn push(&mut self, index: usize, span: Arc<Span>, is_due: bool) {
        assert!(self.spans.is_empty() || self.index == index, "UND-4: a span has the chunks of one shard");
        assert!(self.spans.last().is_none_or(|last| last.last < span.first), "UND-4: spans are joined in their order");
        self.index = index;
        self.bytes += span.live_bytes();
        self.is_due |= is_due;
        self.spans.push(span);
    }
}

#[cfg(test)]
mod tests {
    use super::{AtomicBool, Turn};

    #[test]
    fn who_does_not_get_the_turn_does_not_end_it() {
        // BUD-2
        let flag = AtomicBool::new(false);
        let turn = Turn::take(&flag);
        assert!(turn.is_some());
        for _ in 0..3 {
            assert!(Turn::take(&flag).is_none(), "one spills at a time");
        }
        drop(turn);
        assert!(Turn::take(&flag).is_some());
    }
}
