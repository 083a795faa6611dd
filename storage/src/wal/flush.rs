//! The flush: writes and syncs the complete records of the ring. At any time at most one task flushes.
//!
//! # Life of a flush
//! take the state -> copy the complete records out of the ring behind what the last block already holds -> write
//! whole blocks -> sync -> mark -> publish `durable` -> wake the first few waiters -> put the state back.
//! While one flush writes to the disk, commits gather in the ring, and the next flush takes them all. Before a flush, its task waits for the
//! threads that the last one released ([`super::gather`]); where many sessions are at work, the background flusher waits a moment for more
//! commits (`await_siblings`).
//!
//! # Invariants
//! - WAL-13: `durable` is exclusive, only grows, and is stored after the sync of every byte below it has returned.
//! - WAL-14: a block that was synced partly filled is written again with the same bytes in front, so that a torn
//!   rewrite changes nothing that was durable.
//! - WAL-15: after a failed write or sync the log is poisoned, and this process never writes to it again.
//! - WAL-16: a task that puts the flush state back while a flush beyond `durable` is wanted wakes the background flusher. So a waiter that says
//!   what it wants and then finds the state taken need not wake it.
//!
//! # Errors
//! Every error poisons the log; waiters get the error.

use super::format::BLOCK_BYTES;
use super::gather::Rhythm;
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
    /// Everything below this LSN is written and synced.
    flushed: Lsn,
    /// The filled part of the last block, followed by the records that are being flushed.
    buf: IoBuf,
    /// Bytes in use at the front of `buf`: the filled part of the block in which `flushed` lies.
    head: usize,
    file: Option<(u64, Arc<dyn VfsFile>)>,
    /// A write or sync has begun and not ended.
    in_flight: bool,
    mark: Option<DurableMark>,
    rhythm: Rhythm,
}

impl FlushState {
    /// The state of a log that ends at `end`, whose last block holds `head` in front of `end`.
    pub fn new(end: Lsn, head: &[u8], mark: Option<DurableMark>) -> FlushState {
        assert!(head.len() as u64 == end.0 % BLOCK_BYTES as u64, "WAL-14: the head of the last block");
        let mut buf = IoBuf::with_capacity(64 << 10);
        buf.extend_from_slice(head);
        let rhythm = Rhythm::default();
        FlushState { flushed: end, head: head.len(), buf, file: None, in_flight: false, mark, rhythm }
    }
}

#[cfg(test)]
impl FlushState {
    /// As after a flush that carried so many committers, where the next may wait so long.
    pub fn carried(&mut self, committers: u64, wait_ns: u64) {
        self.rhythm.ended(0, committers, now_ns(), now_ns());
        self.rhythm.wait_ns = wait_ns;
    }
}

/// Holds the flush state during a flush; the drop puts it back.
pub(super) struct Turn<'a> {
    wal: &'a Wal,
    state: Option<FlushState>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            if state.in_flight {
                self.wal.poison("the flusher was dropped while it wrote");
            }
            *self.wal.flush.lock() = Some(state);
            if self.wal.is_wanted() {
                self.wal.flusher_bell.ring(); // WAL-16
            }
        }
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
    pub(super) fn take_turn(&self) -> Option<Turn<'_>> {
        let state = self.flush.lock().take()?;
        Some(Turn { wal: self, state: Some(state) })
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

    /// Flushes on this thread; whether it did. None: another task is flushing, and when it has ended it finds whatever was wanted before this
    /// call (WAL-16). Never awaits, so a dropped caller can't leave a flush half done.
    pub(super) fn flush_here(&self) -> Option<bool> {
        let mut turn = self.take_turn()?;
        let _inline = inline_io_here();
        self.gather(&mut turn);
        let flushed = self.flush_now(&mut turn);
        // What came meanwhile found the state taken. Where a flush is quick, waking the flusher for it takes longer than it does.
        let mut more = FOLLOWING_MAX;
        while flushed && more > 0 && self.quickness.is_quick() && self.is_wanted() && self.flush_now(&mut turn) {
            more -= 1;
        }
        Some(flushed)
    }

    fn flush_now(&self, turn: &mut Turn<'_>) -> bool {
        let step = pin!(self.flush_once(turn));
        match step.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            // The file system can't work inline. The dropped turn then poisons, so the options must not ask for this.
            Poll::Pending => false,
        }
    }

    /// Whether a flush beyond what is durable is wanted.
    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > self.durable.load(Ordering::SeqCst)
    }

    /// Does one flush: take, write, sync, publish, wake. False if no record was complete, or the log is poisoned.
    async fn flush_once(&self, turn: &mut Turn<'_>) -> bool {
        let Some(state) = turn.state.as_mut() else { return false };
        if self.poisoned().is_some() {
            return false;
        }
        assert!(!state.in_flight, "WAL-15: a flush that was dropped while it wrote poisons");
        let (began_ns, arrivals) = (now_ns(), self.arrivals.count());
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
        state.in_flight = true;
        let mut written = self.write_and_sync(state, from, end).await;
        if let (Ok(()), Some(mark)) = (&written, &mut state.mark) {
            written = mark.write(end).await; // WAL-21, and WAL-22: before it is published
        }
        state.in_flight = false;
        if let Err(err) = written {
            self.poison(&format!("the log could not be flushed: {err}")); // WAL-15
            return false;
        }
        state.flushed = end;
        // Before the committers are released, the first of which may be back at once.
        let ended_ns = now_ns();
        self.quickness.took(ended_ns.saturating_sub(began_ns));
        state.rhythm.ended(arrivals, self.arrivals.count(), began_ns, ended_ns);
        self.publish(end);
        true
    }

    fn publish(&self, end: Lsn) {
        let before = self.durable.swap(end.0, Ordering::SeqCst);
        assert!(before <= end.0, "WAL-13: durable LSN {before} would fall to {end}");
        self.flushes.fetch_add(1, Ordering::Relaxed);
        if end.0 >= self.milestone.load(Ordering::SeqCst) {
            self.milestone_bell.ring();
        }
        // Waiters that enter the queue later are woken by the next flush.
        self.durable_waiters.wake(end.0, super::waiters::FIRST_BATCH);
    }

    async fn write_and_sync(&self, state: &mut FlushState, from: Lsn, end: Lsn) -> Result<(), StorageError> {
        let layout = self.segments.layout();
        let begin = Lsn(from.0 - state.head as u64);
        assert!(begin.0 % BLOCK_BYTES as u64 == 0, "WAL-14: a flush begins with a whole block, not at {begin}");
        let used = state.buf.len();
        state.buf.resize(used.next_multiple_of(BLOCK_BYTES));
        state.buf[used..].fill(0);
        let mut buf = std::mem::replace(&mut state.buf, IoBuf::zeroed(0));
        let mut at = begin;
        while at < end {
            let number = layout.number(at);
            let file = self.segment_for(state, number)?;
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
            if !mutation::active(Mutation::SkipLogSync) {
                file.sync_data().await?;
            }
        }
        // Keep the last block's filled part at the front (WAL-14).
        let head = (end.0 % BLOCK_BYTES as u64) as usize;
        buf.copy_within(used - head..used, 0);
        buf.resize(head);
        state.buf = buf;
        state.head = head;
        Ok(())
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
    fn gather(&self, turn: &mut Turn<'_>) {
        let is_urgent = self.closing.load(Ordering::SeqCst) || self.credit_waiters.len() > 0;
        let may = io_mode() == IoMode::Inline && !is_urgent;
        let Some(state) = turn.state.as_mut().filter(|_| may) else { return };
        if let Some((goal, deadline_ns)) = state.rhythm.goal(self.arrivals.count(), now_ns()) {
            let complete = self.arrivals.gather(goal, deadline_ns);
            state.rhythm.gathered(complete);
        }
    }

    /// Runs the background flusher until the log is closed and flushed, or poisoned.
    pub async fn run_flusher(&self) {
        let mut ended = Ended::default();
        loop {
            // While another task has the turn: it rings the bell when it puts the state back (WAL-16).
            let asked = self.flusher_bell.wait_until(|| {
                let durable = self.durable.load(Ordering::SeqCst);
                let asked = self.wanted.load(Ordering::SeqCst) > durable && self.flush.lock().is_some();
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
                self.gather(&mut turn);
                let began_ns = now_ns();
                let flushed = self.flush_once(&mut turn).await;
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
            }
        }
    }
}
