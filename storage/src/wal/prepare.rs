//! The preparer: keeps segments ready ahead of the tail, so that no commit waits for a file to be made.
//!
//! How much log is kept ready follows the demand: it doubles when a writer had to wait for log, and is halved again by each checkpoint. An
//! embedded database begins with 384 KiB, since an empty one is to be small. That is less than 64 threads take as credit at a time, and a
//! segment takes several syncs to prepare.

use super::{Wal, WalOptions};
use crate::buffer::PAGE_BYTES;
use crate::error::StorageError;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most log that is kept ready because writers have waited.
const AHEAD_BYTES_MAX: u64 = 16 << 20;
/// The same, in relation to what the options ask for.
const AHEAD_FACTOR_MAX: u64 = 32;
/// Segments whose names share a sync of the directory,
const SEGMENTS_AT_ONCE: u64 = 8;
/// and as many while a writer waits for the first of them.
const SEGMENTS_AT_ONCE_IN_HASTE: u64 = 2;

/// How much prepared log is kept ahead of the tail.
pub(super) struct Ahead {
    bytes: AtomicU64,
    /// Polls that found too little log since the last growth.
    waits: AtomicU64,
    least: u64,
    most: u64,
}

impl Ahead {
    pub(super) fn new(options: &WalOptions) -> Ahead {
        let least = options.ahead_bytes;
        let most = (least * AHEAD_FACTOR_MAX).min(AHEAD_BYTES_MAX).min(options.log_bytes_max / 4).max(least);
        Ahead { bytes: AtomicU64::new(least), waits: AtomicU64::new(0), least, most }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A writer has found too little log.
    pub(super) fn waited(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Only the preparer, the checkpointer and tests change the size, so that a lost update costs a step at most.
    fn grow_if_waited(&self) {
        if self.waits.swap(0, Ordering::Relaxed) > 0 {
            self.bytes.store((self.bytes() * 2).min(self.most), Ordering::Relaxed);
        }
    }

    /// A checkpoint has released log.
    pub(super) fn relax(&self) {
        self.bytes.store((self.bytes() / 2).max(self.least), Ordering::Relaxed);
    }

    /// The disk is full.
    fn reset(&self) {
        self.bytes.store(self.least, Ordering::Relaxed);
    }
}

impl Wal {
    /// Fails the tasks that wait for log space with `NoSpace`, when nothing will free log soon.
    pub fn refuse_waiting(&self) {
        self.prepare_failures.fetch_add(1, Ordering::SeqCst);
        self.credit_waiters.wake(u64::MAX, usize::MAX);
    }

    fn gap_is_short(&self) -> bool {
        self.accounts.log_free() < (self.ahead.bytes() as i64).saturating_add(self.for_splits())
    }

    /// Log bytes that the splits of undo may take (WAL-20): for each split, a new node and the operations that link it.
    pub(super) fn for_splits(&self) -> i64 {
        const SPLIT_BYTES: u64 = PAGE_BYTES as u64 * 5 / 4;
        i64::try_from(self.undo_room.pages() * SPLIT_BYTES).unwrap_or(i64::MAX / 2)
    }

    /// Whether there is as much live log as allowed. Log that undo has a claim on is prepared all the same.
    fn at_limit(&self) -> bool {
        self.live_bytes() > self.options.log_bytes_max && self.accounts.log_free() > 0
    }

    pub(super) fn ring_preparer_if_short(&self) {
        if self.gap_is_short() {
            self.preparer_bell.ring();
        }
    }

    /// Prepares segments if too few are ready; false if nothing was to be done.
    ///
    /// # Errors
    /// The disk is full, which tasks that wait for credit are told; any other failure poisons.
    pub async fn prepare_step(&self) -> Result<bool, StorageError> {
        if !self.gap_is_short() || self.at_limit() {
            return Ok(false);
        }
        self.ahead.grow_if_waited();
        let payload = self.segments.layout().payload();
        let short = (self.ahead.bytes() as i64).saturating_add(self.for_splits()) - self.accounts.log_free();
        let most = if self.credit_waiters.len() > 0 { SEGMENTS_AT_ONCE_IN_HASTE } else { SEGMENTS_AT_ONCE };
        let count = u64::try_from(short).unwrap_or(0).div_ceil(payload).clamp(1, most);
        let prepared = self.segments.prepare(self.segments.end_number(), count).await;
        match prepared {
            Ok(count) => {
                self.accounts.prepared(count * payload);
                self.credit_waiters.wake(u64::MAX, usize::MAX);
                Ok(true)
            }
            Err(StorageError::Io(err)) if err.is_full() => {
                self.ahead.reset();
                self.note_full(true);
                self.prepare_failures.fetch_add(1, Ordering::SeqCst);
                self.credit_waiters.wake(u64::MAX, usize::MAX);
                Err(StorageError::NoSpace("a segment of the log".into()))
            }
            Err(err) => Err(self.poison(&format!("a log segment could not be prepared: {err}"))),
        }
    }

    /// Runs the background preparer until the log is closed or poisoned.
    pub async fn run_preparer(&self) {
        let mut failures = 0;
        loop {
            self.preparer_bell
                .wait_until(|| {
                    let asked = self.gap_is_short() && !self.at_limit();
                    // After a failure, only if a task waits for log space.
                    let asked = asked && (failures == 0 || self.credit_waiters.len() > 0);
                    asked || self.closing.load(Ordering::SeqCst) || self.poisoned().is_some()
                })
                .await;
            if self.closing.load(Ordering::SeqCst) || self.poisoned().is_some() {
                return;
            }
            match self.prepare_step().await {
                // Also if meanwhile nothing is to be done any more: the next shortage is a new one.
                Ok(_) => failures = 0,
                // The disk is full: wait until a task asks again.
                Err(_) => {
                    failures += 1;
                    crate::sync::yield_now().await;
                }
            }
        }
    }
}
