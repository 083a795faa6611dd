//! The flush: writes and syncs the complete records of the ring. At any time at most one task writes.
//!
//! # Life of a flush
//! take the state -> copy the complete records out of the ring behind what the last block already holds -> write
//! whole blocks -> put the state back -> sync -> mark -> publish `durable` -> release those that wait.
//! While one flush writes to the disk, commits gather in the ring, and the next flush takes them all. It may be written while the one before
//! it syncs ([`super::groups`]): when all committers that were lately at work are there, so that none is left to wait for. Before a flush
//! that begins alone, its task waits for the threads that the last one released ([`super::gather`]); where many sessions are at work, the
//! background flusher waits a moment for more commits (`await_siblings`).
//!
//! # Invariants
//! - WAL-13: `durable` is exclusive, only grows, and is stored after the sync of every byte below it has returned.
//! - WAL-14: a block that was synced partly filled is written again with the same bytes in front, so that a torn
//!   rewrite changes nothing that was durable.
//! - WAL-15: after a failed write or sync the log is poisoned, and this process never writes to it again.
//! - WAL-16: a task that puts the flush state back, and a task that publishes a flush, wakes the background flusher if more is wanted than is written
//!   and a flush may begin. So a waiter that says what it wants and then finds that none may begin need not wake it.
//!
//! # Errors
//! Every error poisons the log; waiters get the error.

use super::format::BLOCK_BYTES;
use super::groups::{Flush, UNDER_WAY_MAX};
use super::mark::DurableMark;
use super::{Wal, YIELD_EVERY};
use crate::error::StorageError;
use crate::ids::Lsn;
use crate::mutation::{self, Mutation};
use clearway_base::sync::pause;
use clearway_base::vfs::{IoBuf, IoMode, VfsFile, inline_io_here, io_mode};
use clearway_base::waits::{Object, WaitEvent, in_wait, now_ns};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The most that one flush takes out of the ring.
const FLUSH_BYTES_MAX: usize = 4 << 20;

/// The state that only the task that flushes touches.
pub struct FlushState {
    /// Everything below this LSN is written.
    flushed: Lsn,
    /// The filled part of the last block, followed by the records that are being flushed.
    buf: IoBuf,
    /// Bytes in use at the front of `buf`: the filled part of the block in which `flushed` lies.
    head: usize,
    file: Option<(u64, Arc<dyn VfsFile>)>,
}

impl FlushState {
    /// The state of a log that ends at `end`, whose last block holds `head` in front of `end`.
    pub fn new(end: Lsn, head: &[u8]) -> FlushState {
        assert!(head.len() as u64 == end.0 % BLOCK_BYTES as u64, "WAL-14: the head of the last block");
        let mut buf = IoBuf::with_capacity(64 << 10);
        buf.extend_from_slice(head);
        FlushState { flushed: end, head: head.len(), buf, file: None }
    }
}

/// Holds the flush state while a flush is written; the drop puts it back.
pub(super) struct Turn<'a> {
    wal: &'a Wal,
    state: Option<FlushState>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            *self.wal.flush.lock() = Some(state);
            self.wal.ring_if_due(); // WAL-16
        }
    }
}

/// A flush that has begun and is not synced; poisons if it is dropped before (WAL-15).
struct Begun<'a> {
    wal: &'a Wal,
    number: u64,
    is_synced: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.is_synced {
            self.wal.poison("the flusher was dropped during a flush");
        }
    }
}

/// The right to publish, and the mark that is written before.
pub(super) struct Publisher(pub(super) Option<DurableMark>);

/// Holds that right; the drop gives it back.
struct Publishing<'a> {
    wal: &'a Wal,
    publisher: Option<Publisher>,
    in_flight: bool,
}

impl Drop for Publishing<'_> {
    fn drop(&mut self) {
        if self.in_flight {
            self.wal.poison("the flusher was dropped while it wrote the mark");
        }
        *self.wal.publisher.lock() = self.publisher.take();
    }
}

/// With this many sessions at work, the flusher waits for more of them to commit; with fewer, a commit never waits for another. From 80
/// sessions on the wait was a gain (docs/measured/embedded-hot-row.md); at 40 to 64 clients of a server it cost 2 to 8 %.
const COMMIT_SIBLINGS: usize = 80;
/// The longest such wait, in nanoseconds.
const COMMIT_DELAY_MAX_NS: u64 = 100_000;
/// Sleeping for less costs more than it brings.
const COMMIT_DELAY_MIN_NS: u64 = 10_000;

/// How many more flushes a task does that found others' records when it had flushed its own, where flushes are quick: it has its client to answer.
const FOLLOWING_MAX: u32 = 2;

/// When the previous flush ended, and how long it took.
#[derive(Default)]
struct Ended {
    at_ns: u64,
    took_ns: u64,
}

impl Wal {
    /// The flush state, if a flush may begin now.
    pub(super) fn take_turn(&self) -> Option<Turn<'_>> {
        let mut state = self.flush.lock();
        // Under the mutex: a task that has the state counts its flush as under way before it puts the state back.
        let state = self.may_begin().then(|| state.take()).flatten()?;
        Some(Turn { wal: self, state: Some(state) })
    }

    /// Whether a flush may begin, if no other is being written: none is under way, or one is that is not over in a moment, and no committer is left that
    /// could still join the next (WAL-28, WAL-31).
    fn may_begin(&self) -> bool {
        match self.groups.under_way() {
            0 => true,
            under_way => under_way < UNDER_WAY_MAX && self.arrivals.all_here() && !self.quickness.is_quick(),
        }
    }

    /// Whether the caller may flush. It may if its thread performs its own I/O, so that it blocks no other task (an embedded caller's
    /// own thread), if no session but its own has a statement in progress, or if a flush is over before another thread could begin it (WAL-27).
    pub(super) fn may_flush(&self) -> bool {
        if !self.options.caller_flushes {
            return false;
        }
        let alone = self.sessions_busy.load(Ordering::SeqCst) <= 1;
        if !alone {
            self.flushes_alone.store(0, Ordering::Relaxed);
        }
        alone || io_mode() == IoMode::Inline || self.quickness.is_quick()
    }

    /// Whether a waiter that is alone should let others run first, because it may only seem to be alone.
    pub(super) fn yield_is_due(&self) -> bool {
        let alone = io_mode() == IoMode::Pooled && !self.quickness.is_quick();
        alone && self.flushes_alone.fetch_add(1, Ordering::Relaxed) % YIELD_EVERY == 0
    }

    /// Flushes on this thread; whether it did. None: no flush may begin, and the task because of which finds whatever was wanted before this
    /// call (WAL-16). Never awaits, so a dropped caller can't leave a flush half done.
    pub(super) fn flush_here(&self) -> Option<bool> {
        let turn = self.take_turn()?;
        let _inline = inline_io_here();
        self.gather();
        let flushed = self.flush_now(turn);
        // What came meanwhile found a flush under way. Where a flush is quick, waking the flusher for it takes longer than it does.
        let mut more = FOLLOWING_MAX;
        while flushed && more > 0 && self.quickness.is_quick() && self.is_wanted() {
            if !self.take_turn().is_some_and(|turn| self.flush_now(turn)) {
                break;
            }
            more -= 1;
        }
        self.ring_if_due();
        Some(flushed)
    }

    fn flush_now(&self, turn: Turn<'_>) -> bool {
        let step = pin!(self.flush_once(turn));
        match step.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            // The file system can't work inline. The dropped turn then poisons, so the options must not ask for this.
            Poll::Pending => false,
        }
    }

    /// Whether a flush beyond what is written is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > self.written.load(Ordering::SeqCst)
    }

    /// WAL-16
    fn ring_if_due(&self) {
        if self.is_wanted() && self.may_begin() {
            self.flusher_bell.ring();
        }
    }

    /// Does one flush: take, write, sync, publish, wake. False if no record was complete, or the log is poisoned.
    pub(super) async fn flush_once(&self, mut turn: Turn<'_>) -> bool {
        let Some(state) = turn.state.as_mut() else { return false };
        if self.poisoned().is_some() {
            return false;
        }
        let (began_ns, arrived) = (now_ns(), self.arrivals.count());
        let from = state.flushed;
        state.buf.resize(state.head);
        let end = {
            let buf = &mut state.buf;
            self.ring.take(from, FLUSH_BYTES_MAX, |bytes| buf.extend_from_slice(bytes))
        };
        if end == from {
            return false;
        }
        assert_eq!((state.buf.len() - state.head) as u64, end.0 - from.0, "WAL-13: what was taken is what is written");
        assert!(end <= self.ring.tail(), "WAL-13: {end} was not reserved");
        self.accounts.drained((end.0 - from.0) as usize);
        self.credit_waiters.wake(u64::MAX, super::waiters::FIRST_BATCH);
        self.written.store(end.0, Ordering::SeqCst);
        let number = self.groups.begin(end.0, arrived);
        let mut begun = Begun { wal: self, number, is_synced: false };
        let file = match self.write(state, from, end).await {
            Ok(file) => file,
            Err(err) => return self.could_not(&err),
        };
        state.flushed = end;
        drop(turn);
        if !mutation::active(Mutation::SkipLogSync)
            && let Err(err) = file.sync_data().await
        {
            return self.could_not(&err.into());
        }
        // Before the committers are released, the first of which may be back at once.
        let ended_ns = now_ns();
        self.quickness.took(ended_ns.saturating_sub(began_ns));
        self.rhythm.lock().ended(arrived, self.arrivals.count(), began_ns, ended_ns);
        self.groups.synced(begun.number);
        begun.is_synced = true;
        self.publish_synced().await
    }

    /// WAL-15
    fn could_not(&self, err: &StorageError) -> bool {
        self.poison(&format!("the log could not be flushed: {err}"));
        false
    }

    /// Publishes the flushes that are synced, in their order; false if the log is poisoned. A flush that stands behind another, or that was synced while
    /// another task publishes, is published by the task that syncs the other, or by that which publishes.
    async fn publish_synced(&self) -> bool {
        while self.groups.due().is_some() {
            let Some(publisher) = self.publisher.lock().take() else { return true };
            let mut publishing = Publishing { wal: self, publisher: Some(publisher), in_flight: false };
            while let Some((number, flush)) = self.groups.due() {
                let end = Lsn(flush.end);
                if let Some(Publisher(Some(mark))) = &mut publishing.publisher {
                    publishing.in_flight = true;
                    let written = mark.write(end).await; // WAL-21, and WAL-22: before it is published
                    publishing.in_flight = false;
                    if let Err(err) = written {
                        return self.could_not(&err);
                    }
                }
                if self.poisoned().is_some() {
                    return false;
                }
                self.publish(number, flush);
            }
        }
        true
    }

    fn publish(&self, number: u64, flush: Flush) {
        let end = flush.end;
        let before = self.durable.swap(end, Ordering::SeqCst);
        assert!(before <= end, "WAL-13: durable LSN {before} would fall to {end}");
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.arrivals.released(flush.arrived);
        self.groups.published(number);
        if end >= self.milestone.load(Ordering::SeqCst) {
            self.milestone_bell.ring();
        }
        // The next flush first. Where it is quick, the caller does it.
        if !self.quickness.is_quick() {
            self.ring_if_due();
        }
        self.groups.tick(number);
        // Waiters that enter the queue later are woken by the next flush.
        self.durable_waiters.wake(end, super::waiters::FIRST_BATCH);
    }

    /// Writes the blocks from `from` to `end`; returns the segment that is left to sync.
    async fn write(&self, state: &mut FlushState, from: Lsn, end: Lsn) -> Result<Arc<dyn VfsFile>, StorageError> {
        let layout = self.segments.layout();
        let begin = Lsn(from.0 - state.head as u64);
        assert!(begin.0 % BLOCK_BYTES as u64 == 0, "WAL-14: a flush begins with a whole block, not at {begin}");
        let used = state.buf.len();
        state.buf.resize(used.next_multiple_of(BLOCK_BYTES));
        state.buf[used..].fill(0);
        let mut buf = std::mem::replace(&mut state.buf, IoBuf::zeroed(0));
        let mut at = begin;
        let mut file = self.segment_for(state, layout.number(begin))?;
        while at < end {
            let number = layout.number(at);
            if at > begin && !mutation::active(Mutation::SkipLogSync) {
                file.sync_data().await?;
            }
            file = self.segment_for(state, number)?;
            let in_segment = (layout.first_lsn(number + 1).0 - at.0) as usize;
            let done = (at.0 - begin.0) as usize;
            if done == 0 && buf.len() <= in_segment {
                buf = file.write_at(layout.offset(at), buf).await?;
                at = Lsn(begin.0 + buf.len() as u64);
            } else {
                let piece = IoBuf::from_slice(&buf[done..buf.len().min(done + in_segment)]);
                at = Lsn(at.0 + piece.len() as u64);
                file.write_at(layout.offset(Lsn(begin.0 + done as u64)), piece).await?;
            }
        }
        // Keep the last block's filled part at the front (WAL-14).
        let head = (end.0 % BLOCK_BYTES as u64) as usize;
        buf.copy_within(used - head..used, 0);
        buf.resize(head);
        state.buf = buf;
        state.head = head;
        Ok(file)
    }

    fn segment_for(&self, state: &mut FlushState, number: u64) -> Result<Arc<dyn VfsFile>, StorageError> {
        match &state.file {
            Some((current, file)) if *current == number => Ok(file.clone()),
            _ => {
                // WAL-6: the segment of every record that was appended out of credit is prepared.
                let file = self.segments.file(number).ok_or_else(|| {
                    StorageError::Invalid(format!("log segment {number} is needed and not prepared").into())
                })?;
                state.file = Some((number, file.clone()));
                Ok(file)
            }
        }
    }

    /// Whether so many sessions are at work that waking them and letting them in, not the disk, decides how long commits take.
    pub(super) fn is_crowded(&self) -> bool {
        self.sessions_busy.load(Ordering::SeqCst) >= COMMIT_SIBLINGS
    }

    /// Where many sessions are at work, delays the next flush for a moment, so that the sessions woken by the last flush can commit in
    /// it. Otherwise one flush after the other would occupy a processor for the few sessions that came first. The delay of a commit is
    /// at most half of a flush (docs/measured/log-commit.md).
    fn await_siblings(&self, last: &Ended) {
        // A flusher that shares its thread with sessions must not hold them up.
        if !self.is_crowded() || io_mode() != IoMode::Inline {
            return;
        }
        let until_ns = last.at_ns + (last.took_ns / 2).min(COMMIT_DELAY_MAX_NS);
        let left_ns = until_ns.saturating_sub(now_ns());
        if left_ns >= COMMIT_DELAY_MIN_NS {
            pause(Duration::from_nanos(left_ns), WaitEvent::CommitDelay);
        }
    }

    /// Waits for the committers that the next flush should carry (WAL-24, WAL-25), where that blocks no task but this one. A closing log waits
    /// for none, and a flush that makes room for writers does not wait.
    fn gather(&self) {
        let is_urgent = self.closing.load(Ordering::SeqCst) || self.credit_waiters.len() > 0;
        // A flush beside another one begins when all are there.
        if io_mode() != IoMode::Inline || is_urgent || self.groups.under_way() > 0 {
            return;
        }
        let goal = self.rhythm.lock().goal(self.arrivals.count(), now_ns());
        if let Some((goal, deadline_ns)) = goal {
            let complete = self.arrivals.gather(goal, deadline_ns);
            self.rhythm.lock().gathered(complete);
        }
    }

    /// Runs the background flusher until the log is closed and flushed, or poisoned.
    pub async fn run_flusher(&self) {
        let mut ended = Ended::default();
        loop {
            // While no flush may begin: the task because of which rings the bell (WAL-16).
            let asked = self.flusher_bell.wait_until(|| {
                let asked = self.is_wanted() && self.may_begin() && self.flush.lock().is_some();
                asked || self.closing.load(Ordering::SeqCst) || self.poisoned().is_some()
            });
            in_wait(WaitEvent::WalFlusherMain, Object::NONE, asked).await;
            if self.poisoned().is_some() {
                self.fail_waiters();
                return;
            }
            let end = self.ring.tail().0;
            if self.closing.load(Ordering::SeqCst) {
                if self.durable.load(Ordering::SeqCst) == end {
                    return;
                }
                self.wanted.fetch_max(end, Ordering::SeqCst);
            }
            let Some(mut turn) = self.take_turn() else {
                crate::sync::yield_now().await;
                continue;
            };
            while self.is_wanted() {
                self.await_siblings(&ended);
                self.gather();
                let began_ns = now_ns();
                let flushed = self.flush_once(turn).await;
                let at_ns = now_ns();
                ended = Ended { at_ns, took_ns: at_ns.saturating_sub(began_ns) };
                if !flushed {
                    if self.poisoned().is_some() {
                        break;
                    }
                    // A record is reserved and its copy not complete: no await lies between, so it soon is.
                    crate::sync::yield_now().await;
                }
                // Before the next flush, wake every covered waiter that no chain of wake-ups reaches (WAL-8).
                if self.wanted.load(Ordering::SeqCst) <= self.durable.load(Ordering::SeqCst) {
                    self.durable_waiters.wake(self.durable.load(Ordering::SeqCst), usize::MAX);
                }
                // Another task may have begun a flush, or it is not time for one.
                match self.take_turn() {
                    Some(next) => turn = next,
                    None => break,
                }
            }
        }
    }
}
