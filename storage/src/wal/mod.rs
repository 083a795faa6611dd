//! The write-ahead log: one stream of bytes that holds every change before the change shows anywhere else.
//!
//! # Structure
//! ```text
//!   append ── credit ── Ring (fetch_add, parallel copy) ── flush ── segment files
//!                                                            │
//!   wait_durable ── Waiters (LSN order, chained wake-ups) ───┘ publishes `durable`
//!   preparer: segments ahead of the tail        Retention: which holders need old segments
//! ```
//! [`format`] defines the bytes, [`ring`] takes records in memory, [`flush`] brings them to disk, [`reader`] reads them
//! back, [`repair`] checks the end of the log at opening.
//!
//! # Invariants
//! WAL-1..2 in [`format`], WAL-3..5 in [`ring`], WAL-6..7 in [`credit`], WAL-8..9 in [`waiters`], WAL-10..11 in
//! [`segments`], WAL-12 in [`retention`], WAL-13..16 in [`flush`], WAL-17..18 in [`repair`], WAL-20 in [`undo_room`], WAL-21..22 in [`mark`],
//! WAL-23 in [`waiters`], WAL-24..26 in [`gather`], WAL-27 in [`quick`].
//!
//! # Latch order
//! The mutexes of this module are leaves: while one is held, no other latch is taken and no waker runs.
//!
//! # Not here
//! The meaning of records; checkpoints and redo ([`crate::recovery`]).

pub mod credit;
mod durable;
mod flush;
pub mod format;
mod gather;
pub mod mark;
mod prepare;
mod quick;
pub mod reader;
mod ready;
pub mod repair;
pub mod retention;
mod ring;
pub mod segments;
mod spares;
mod undo_room;
mod wait;
mod waiters;

use crate::error::StorageError;
use crate::ids::Lsn;
use crate::record::{LsnRange, Record, TxnLog};
use crate::seams::{BoxFuture, Credit, CreditBank, PageLog, Purpose};
use crate::sync::Bell;
use clearway_base::sync::Mutex;
use clearway_base::usage;
use clearway_base::vfs::VfsFile;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use credit::Accounts;
use flush::FlushState;
use gather::Arrivals;
use ring::Ring;
use segments::Segments;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use waiters::Waiters;

#[cfg(test)]
mod tests;

pub use retention::{Holder, HolderRow, Retention};
pub use undo_room::{RoomChange, RoomChanges, UndoRoom};
pub use wait::{WaitCredit, WaitDurable};

/// A lone committer yields to the scheduler only before every 16th flush, since each yield wakes the runtime's second worker
/// (6,200 commits/s with a yield before each flush, 8,000 with one before every 16th).
const YIELD_EVERY: u64 = 16;

/// The options of a log.
#[derive(Clone, Debug)]
pub struct WalOptions {
    /// The ring's size in bytes; a power of two.
    pub ring_bytes: usize,
    /// The size of a segment file in bytes, a multiple of 4096; fixed when the database is created.
    pub segment_bytes: u64,
    /// Prepared log that is kept ahead of the tail, in bytes: more than `floor_bytes`, or ordinary credit would never be given (WAL-7). It grows where
    /// writers have had to wait for it.
    pub ahead_bytes: u64,
    /// Prepared log that ordinary credit leaves for undo, commits and checkpoints, in bytes.
    pub floor_bytes: usize,
    /// Live log beyond which no segment is prepared for ordinary credit until a checkpoint has freed some, in bytes.
    pub log_bytes_max: u64,
    /// Whether a task that waits for durability flushes itself when no other session is at work, or flushes are quick (WAL-27). It blocks its thread
    /// for a write and a sync. Not for simulated disks.
    pub caller_flushes: bool,
}

impl Default for WalOptions {
    fn default() -> Self {
        WalOptions {
            ring_bytes: 16 << 20,
            segment_bytes: 16 << 20,
            ahead_bytes: 24 << 20,
            floor_bytes: 4 << 20,
            log_bytes_max: 4 << 30,
            caller_flushes: true,
        }
    }
}

/// Where an opened log continues.
pub struct StartAt {
    /// The end of the valid log.
    pub end: Lsn,
    /// What stands before `end` in its block.
    pub head: Vec<u8>,
    /// The epoch of what is appended from now on.
    pub epoch: u32,
    /// The durable mark; `None` in tests of the log alone, and if the disk was full.
    pub mark: Option<mark::DurableMark>,
}

/// Figures for views.
#[derive(Clone, Copy, Debug, Default)]
pub struct WalStats {
    /// Flushes since the log was opened.
    pub flushes: u64,
    /// Bytes of the ring that no credit has taken.
    pub ring_free_bytes: i64,
    /// Bytes of prepared log that no credit and no reserve has taken.
    pub log_free_bytes: i64,
    /// Bytes set aside for undo.
    pub undo_reserved_bytes: u64,
    /// Bytes of all segment files.
    pub file_bytes: u64,
}

/// A reserved position whose record is not copied yet. The caller fills it without an await in between (WAL-5).
#[must_use = "a reserved position that is never filled stops the log"]
#[derive(Debug)]
pub struct Reservation {
    range: LsnRange,
}

impl Reservation {
    /// The position of the record; its end is the LSN of a commit.
    pub fn range(&self) -> LsnRange {
        self.range
    }
}

/// The log.
pub struct Wal {
    options: WalOptions,
    epoch: u32,
    ring: Ring,
    accounts: Accounts,
    undo_room: UndoRoom,
    segments: Segments,
    retention: Arc<Retention>,
    flush: Mutex<Option<FlushState>>,
    durable: AtomicU64,
    wanted: AtomicU64,
    unwaited: AtomicU64,
    /// Sessions that have a statement in progress.
    sessions_busy: AtomicUsize,
    /// Flushes in a row by a waiter that was alone; the wait yields before every [`YIELD_EVERY`]th of them.
    flushes_alone: AtomicU64,
    flushes: AtomicU64,
    quickness: quick::Quickness,
    /// The lowest position from which recovery may start; older segments are free.
    needed: AtomicU64,
    arrivals: Arrivals,
    durable_waiters: Waiters,
    credit_waiters: Waiters,
    flusher_bell: Bell,
    preparer_bell: Bell,
    /// Rung when the log is durable up to `milestone`.
    milestone_bell: Bell,
    milestone: AtomicU64,
    /// The durable mark's file, and the LSN up to which it was synced.
    mark: Option<(Arc<dyn VfsFile>, AtomicU64)>,
    prepare_failures: AtomicU64,
    /// See [`prepare`].
    ahead: prepare::Ahead,
    closing: AtomicBool,
    full: AtomicBool,
    poison: OnceLock<Arc<str>>,
}

thread_local! {
    // Records are encoded here before their position is reserved.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(16 << 10));
}

impl Wal {
    /// A log over `segments` (already adopted up to `prepared`) that goes on at `start`.
    ///
    /// # Panics
    /// If a size breaks a rule of [`WalOptions`].
    pub fn start(options: WalOptions, segments: Segments, start: StartAt, prepared: u64, needed: Lsn) -> Wal {
        let layout = segments.layout();
        assert!(layout.segment_bytes % 4096 == 0 && layout.segment_bytes >= 8192, "segments of whole blocks");
        assert!(needed <= start.end, "recovery needs the log from {needed}, which ends at {}", start.end);
        // Otherwise nothing is prepared any more while all of it is the floor, and ordinary credit is waited for without end.
        assert!(
            options.ahead_bytes > options.floor_bytes as u64,
            "WAL-7: the log that is kept ready is more than its floor"
        );
        let accounts = Accounts::new(options.ring_bytes, options.floor_bytes);
        accounts.prepared(layout.first_lsn(prepared).0.saturating_sub(start.end.0));
        let mark = start.mark.as_ref().map(|mark| (Arc::clone(mark.file()), AtomicU64::new(start.end.0)));
        Wal {
            mark,
            ring: Ring::new(options.ring_bytes, start.end),
            epoch: start.epoch,
            accounts,
            undo_room: UndoRoom::default(),
            segments,
            retention: Arc::default(),
            flush: Mutex::new("storage/wal/flush", Some(FlushState::new(start.end, &start.head, start.mark))),
            durable: AtomicU64::new(start.end.0),
            wanted: AtomicU64::new(start.end.0),
            unwaited: AtomicU64::new(start.end.0),
            sessions_busy: AtomicUsize::new(0),
            flushes_alone: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            quickness: quick::Quickness::default(),
            needed: AtomicU64::new(needed.0),
            arrivals: Arrivals::default(),
            durable_waiters: Waiters::default(),
            credit_waiters: Waiters::default(),
            flusher_bell: Bell::new("storage/wal/flusher_bell"),
            preparer_bell: Bell::new("storage/wal/preparer_bell"),
            milestone_bell: Bell::new("storage/wal/milestone_bell"),
            milestone: AtomicU64::new(u64::MAX),
            prepare_failures: AtomicU64::new(0),
            ahead: prepare::Ahead::new(&options),
            closing: AtomicBool::new(false),
            full: AtomicBool::new(false),
            poison: OnceLock::new(),
            options,
        }
    }

    /// Takes credit of `bytes` without waiting.
    pub fn try_credit(&self, purpose: Purpose, bytes: usize) -> Option<Credit<'_>> {
        let taken = self.poisoned().is_none() && self.accounts.try_take(bytes, purpose, self.for_splits()).is_ok();
        self.ring_preparer_if_short();
        taken.then(|| self.credit_of(purpose, bytes))
    }

    /// Credit that was taken from the accounts.
    fn credit_of(&self, purpose: Purpose, bytes: usize) -> Credit<'_> {
        match purpose {
            Purpose::Undo => Credit::new(&self.accounts, bytes),
            Purpose::Change | Purpose::System => Credit::new(self, bytes),
        }
    }

    /// Waits for credit of `bytes`. The caller takes it before the first latch of a mini-transaction.
    ///
    /// # Errors
    /// Poisoned; no space for ordinary credit; more bytes than the ring holds.
    pub async fn credit(&self, purpose: Purpose, bytes: usize) -> Result<Credit<'_>, StorageError> {
        if bytes > self.options.ring_bytes / 2 {
            let what = format!("one record of {bytes} bytes in a log buffer of {}", self.options.ring_bytes);
            return Err(StorageError::NoSpace(what.into()));
        }
        if let Some(credit) = self.try_credit(purpose, bytes) {
            return Ok(credit);
        }
        in_wait(WaitEvent::WalCredit, Object::NONE, WaitCredit::new(self, bytes, purpose)).await
    }

    /// Credit for a compensation record; [`Wal::undo_spent`] pays for it out of the transaction's reserve.
    ///
    /// # Errors
    /// Poisoned.
    pub async fn credit_for_undo(&self, bytes: usize) -> Result<Credit<'_>, StorageError> {
        self.credit(Purpose::Undo, bytes).await
    }

    /// A compensation record was appended out of [`Wal::credit_for_undo`]: `bytes` leave the reserve of `log`.
    pub fn undo_spent(&self, log: &mut TxnLog, bytes: usize) {
        let reserved = bytes.min(log.undo_reserved);
        // If the estimate was too low, the difference comes out of the floor (WAL-7).
        self.accounts.set_aside_by_force(bytes - reserved);
        self.accounts.release_undo(bytes);
        log.undo_reserved -= reserved;
    }

    /// Turns `bytes` of credit into a reserve for undoing the change in progress.
    pub fn set_aside(&self, credit: &mut Credit<'_>, log: &mut TxnLog, bytes: usize) {
        credit.spend(bytes);
        self.accounts.set_aside(bytes);
        log.undo_reserved += bytes;
    }

    /// Sets log space aside for undoing a loser that recovery found, even if none is free.
    pub fn set_aside_for_loser(&self, log: &mut TxnLog, bytes: usize) {
        self.accounts.set_aside_by_force(bytes);
        log.undo_reserved += bytes;
        self.ring_preparer_if_short();
    }

    /// Releases the undo reserve of a transaction that has committed or has been undone.
    pub fn release_undo(&self, log: &mut TxnLog) {
        self.accounts.release_undo(std::mem::take(&mut log.undo_reserved));
        self.undo_room.released(log);
        self.credit_waiters.wake(u64::MAX, waiters::FIRST_BATCH);
    }

    /// The claims on room in leaves that undo may need back.
    pub fn undo_room(&self) -> &UndoRoom {
        &self.undo_room
    }

    /// The bytes that `record` takes in the log, which credit has to cover.
    pub fn record_bytes(record: &Record<'_>) -> usize {
        format::encoded_len(record)
    }

    /// Appends one record. Does not wait, and does not fail.
    ///
    /// # Panics
    /// If the credit does not cover the record; no position is taken then.
    pub fn append(&self, credit: &mut Credit<'_>, record: &Record<'_>) -> LsnRange {
        SCRATCH.with_borrow_mut(|scratch| {
            let crc = format::encode(record, self.epoch, scratch);
            credit.spend(scratch.len());
            let range = self.ring.reserve(scratch.len());
            self.put(range, crc, scratch);
            range
        })
    }

    /// Reserves the position of a record of `len` bytes ([`Wal::record_bytes`]): the first half of an append, for the
    /// commit section, after [`Wal::make_room`]. Between this call and [`Wal::fill`] nothing may wait, allocate or panic.
    pub fn reserve(&self, credit: &mut Credit<'_>, len: usize) -> Reservation {
        assert!(len % 8 == 0 && len >= format::HEADER_BYTES, "no record has {len} bytes");
        credit.spend(len);
        assert!(SCRATCH.with_borrow(|scratch| scratch.capacity() >= len), "WAL-5: no room was made for {len} bytes");
        Reservation { range: self.ring.reserve(len) }
    }

    /// Fills a reserved position with its record.
    pub fn fill(&self, reservation: Reservation, record: &Record<'_>) -> LsnRange {
        let range = reservation.range;
        SCRATCH.with_borrow_mut(|scratch| {
            let crc = format::encode(record, self.epoch, scratch);
            let reserved = range.end.0 - range.start.0;
            assert_eq!(scratch.len() as u64, reserved, "WAL-4: filled with a record of another length");
            self.put(range, crc, scratch);
        });
        range
    }

    fn put(&self, range: LsnRange, crc: u32, bytes: &mut [u8]) {
        usage::log_record(bytes.len());
        format::place(bytes, crc, range.start, self.durable_lsn());
        self.ring.copy(range, bytes);
    }

    /// The durable LSN: all bytes below it are durable.
    #[inline]
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    /// Where the next record will begin.
    pub fn end_lsn(&self) -> Lsn {
        self.ring.tail()
    }

    /// The epoch of the records that are appended.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Waits until `durable_lsn >= lsn`. `lsn` must not lie beyond the end of the log.
    pub fn wait_durable(&self, lsn: Lsn) -> WaitDurable<'_> {
        WaitDurable::new(self, lsn)
    }

    /// A session begins to work on a statement, or (`false`) has sent its reply. Waiting for a lock counts as work, an
    /// open block between two statements does not. A task that waits for durability flushes itself only while no other
    /// session is at work, or a flush is quick: otherwise it would keep the others from getting their records into the same flush.
    #[inline]
    pub fn session_busy(&self, begins: bool) {
        if begins {
            self.sessions_busy.fetch_add(1, Ordering::SeqCst);
        } else {
            let before = self.sessions_busy.fetch_sub(1, Ordering::SeqCst);
            assert!(before > 0, "a session ends what it has begun");
        }
    }

    /// Notes that commits up to `lsn` were acknowledged before they are durable; [`Wal::flush_unwaited`] flushes them.
    pub fn flush_later(&self, lsn: Lsn) {
        self.unwaited.fetch_max(lsn.0, Ordering::SeqCst);
    }

    /// Asks for a flush of the commits that no task waits for, if there are any. Calling it regularly bounds what a crash can lose.
    pub fn flush_unwaited(&self) {
        let unwaited = self.unwaited.load(Ordering::SeqCst);
        if unwaited > self.durable.load(Ordering::SeqCst) {
            self.ask_flush(Lsn(unwaited));
        }
    }

    /// Asks for a flush up to `lsn`, without waiting.
    pub fn ask_flush(&self, lsn: Lsn) {
        self.wanted.fetch_max(lsn.0.min(self.ring.tail().0), Ordering::SeqCst);
        self.flusher_bell.ring();
    }

    /// Has the milestone's bell rung when the log is durable up to `lsn`. So a task that acts on the log's growth need not poll.
    pub(crate) fn set_milestone(&self, lsn: Lsn) {
        self.milestone.store(lsn.0, Ordering::SeqCst);
    }

    /// See [`Wal::set_milestone`].
    pub(crate) fn milestone_bell(&self) -> &Bell {
        &self.milestone_bell
    }

    /// The holders of old log.
    pub fn retention(&self) -> &Arc<Retention> {
        &self.retention
    }

    /// The segment files.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Notes that recovery needs no log before `lsn`, and recycles the segments that no holder needs either.
    ///
    /// # Errors
    /// A failed file operation, which poisons.
    ///
    /// # Panics
    /// If `lsn` is not durable: recovery could still need the log that is released.
    pub async fn release_below(&self, lsn: Lsn) -> Result<(), StorageError> {
        assert!(lsn <= self.durable_lsn(), "WAL-1: {lsn} is released, and {} is durable", self.durable_lsn());
        self.needed.fetch_max(lsn.0, Ordering::SeqCst);
        let oldest = lsn.min(self.retention.oldest(self.durable_lsn()));
        self.ahead.relax();
        let recycled = self.segments.recycle(oldest).await;
        self.preparer_bell.ring();
        recycled.map_err(|err| self.poison(&format!("log segments could not be recycled: {err}")))
    }

    /// Bytes of live log that recovery would read.
    pub fn live_bytes(&self) -> u64 {
        self.ring.tail().0 - self.needed.load(Ordering::SeqCst)
    }

    /// Poisons the log: from now on no commit is acknowledged. Returns the error for the caller.
    pub fn poison(&self, why: &str) -> StorageError {
        let why = self.poison.get_or_init(|| why.into()).clone();
        self.flusher_bell.ring();
        self.preparer_bell.ring();
        self.fail_waiters();
        StorageError::Poisoned(why)
    }

    /// The error that poisoned the log, if one did.
    pub fn poisoned(&self) -> Option<StorageError> {
        self.poison.get().map(|why| StorageError::Poisoned(why.clone()))
    }

    fn fail_waiters(&self) {
        self.durable_waiters.wake(u64::MAX, usize::MAX);
        self.credit_waiters.wake(u64::MAX, usize::MAX);
    }

    /// Tells the background tasks to end once everything appended is durable.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.flusher_bell.ring();
        self.preparer_bell.ring();
    }

    /// Figures for views.
    pub fn stats(&self) -> WalStats {
        WalStats {
            flushes: self.flushes.load(Ordering::Relaxed),
            ring_free_bytes: self.accounts.ring_free(),
            log_free_bytes: self.accounts.log_free(),
            undo_reserved_bytes: self.accounts.undo_reserved(),
            file_bytes: self.segments.bytes(),
        }
    }
}

impl CreditBank for Wal {
    fn give_back(&self, bytes: usize) {
        self.accounts.give_back(bytes);
        self.credit_waiters.wake(u64::MAX, 1);
    }
}

impl PageLog for Wal {
    fn try_credit(&self, purpose: Purpose, bytes: usize) -> Option<Credit<'_>> {
        Wal::try_credit(self, purpose, bytes)
    }

    fn credit(&self, purpose: Purpose, bytes: usize) -> BoxFuture<'_, Result<Credit<'_>, StorageError>> {
        Box::pin(Wal::credit(self, purpose, bytes))
    }

    fn set_aside(&self, credit: &mut Credit<'_>, log: &mut TxnLog, bytes: usize) {
        Wal::set_aside(self, credit, log, bytes);
    }

    fn credit_for_undo(&self, bytes: usize) -> BoxFuture<'_, Result<Credit<'_>, StorageError>> {
        Box::pin(Wal::credit_for_undo(self, bytes))
    }

    fn undo_spent(&self, log: &mut TxnLog, bytes: usize) {
        Wal::undo_spent(self, log, bytes);
    }

    fn undo_room(&self) -> Option<&UndoRoom> {
        Some(Wal::undo_room(self))
    }

    fn append(&self, credit: &mut Credit<'_>, record: &Record<'_>) -> LsnRange {
        Wal::append(self, credit, record)
    }

    fn overhead_bytes(&self) -> (usize, usize) {
        (format::HEADER_BYTES + format::UNDO_BYTES + 8, format::OP_BYTES)
    }

    #[inline]
    fn durable_lsn(&self) -> Lsn {
        Wal::durable_lsn(self)
    }

    fn end_lsn(&self) -> Lsn {
        Wal::end_lsn(self)
    }

    fn wait_durable(&self, lsn: Lsn) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(Wal::wait_durable(self, lsn))
    }
}
