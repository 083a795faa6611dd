//! Credit: accounts of the room for records that are not appended yet, in the ring and in prepared segments.
//!
//! # Invariants
//! - WAL-6: credit held + bytes reserved for undo + bytes between the reader and the tail never exceed the room in the ring and in the
//!   prepared segments. A record is appended out of credit, so an append never waits, and its segment is always prepared. During an
//!   opening the bytes for the losers' undo may exceed that room until segments for them are prepared (`ready`).
//! - WAL-7: ordinary credit leaves alone `floor_bytes` of the prepared log, and the bytes that the splits of undo may take
//!   (WAL-20). Commits, ends of aborts and the splits of undo may use these bytes. So a rollback finds room on a full disk.
//!   Merging nodes and freeing pages use ordinary credit, since this work can wait.
//!
//! # Not here
//! Waiting for credit, and waking the waiters: [`super::Wal::credit`].

use crate::seams::{CreditBank, Purpose};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The two accounts.
pub struct Accounts {
    ring_bytes: i64,
    ring_free: AtomicI64,
    log_free: AtomicI64,
    undo_reserved: AtomicU64,
    floor_bytes: i64,
}

/// Which account is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// The ring: a flush will help.
    Ring,
    /// The prepared log: a new segment will help.
    Log,
}

impl Accounts {
    /// Accounts of an empty ring; prepared segments are added with [`Accounts::prepared`].
    pub fn new(ring_bytes: usize, floor_bytes: usize) -> Accounts {
        assert!(i64::try_from(ring_bytes).is_ok() && i64::try_from(floor_bytes).is_ok(), "WAL-4: sizes of a log");
        Accounts {
            ring_bytes: ring_bytes as i64,
            ring_free: AtomicI64::new(ring_bytes as i64),
            log_free: AtomicI64::new(0),
            undo_reserved: AtomicU64::new(0),
            floor_bytes: floor_bytes as i64,
        }
    }

    fn take(account: &AtomicI64, bytes: i64, floor: i64) -> bool {
        account
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |free| (free - bytes >= floor).then_some(free - bytes))
            .is_ok()
    }

    /// Takes `bytes` from both accounts, or from neither; ordinary credit leaves alone the floor and `for_splits` bytes.
    ///
    /// # Errors
    /// Which account is short.
    pub fn try_take(&self, bytes: usize, purpose: Purpose, for_splits: i64) -> Result<(), Short> {
        assert!(for_splits >= 0, "WAL-4: the room for splits is {for_splits}");
        let bytes = bytes as i64;
        if !Self::take(&self.ring_free, bytes, 0) {
            return Err(Short::Ring);
        }
        let floor = match purpose {
            Purpose::Undo => return Ok(()),
            Purpose::System => 0,
            Purpose::Change => self.floor_bytes + for_splits,
        };
        if !Self::take(&self.log_free, bytes, floor) {
            self.ring_free.fetch_add(bytes, Ordering::SeqCst);
            return Err(Short::Log);
        }
        Ok(())
    }

    fn ring_returns(&self, bytes: usize) {
        let free = self.ring_free.fetch_add(bytes as i64, Ordering::SeqCst) + bytes as i64;
        assert!(free <= self.ring_bytes, "WAL-4: {free} bytes of a ring of {} would be free", self.ring_bytes);
    }

    /// Returns unused credit to both accounts.
    pub fn give_back(&self, bytes: usize) {
        self.ring_returns(bytes);
        self.log_free.fetch_add(bytes as i64, Ordering::SeqCst);
    }

    /// The reader took `bytes` out of the ring.
    pub fn drained(&self, bytes: usize) {
        self.ring_returns(bytes);
    }

    /// A segment with room for `bytes` of the stream is ready.
    pub fn prepared(&self, bytes: u64) {
        self.log_free.fetch_add(bytes as i64, Ordering::SeqCst);
    }

    /// `bytes` of the caller's credit become a reserve for undo: their log space stays taken, their ring room returns.
    pub fn set_aside(&self, bytes: usize) {
        self.undo_reserved.fetch_add(bytes as u64, Ordering::SeqCst);
        self.ring_returns(bytes);
    }

    /// Takes log space for undo without waiting, even if none is left: for losers that recovery found.
    pub fn set_aside_by_force(&self, bytes: usize) {
        self.undo_reserved.fetch_add(bytes as u64, Ordering::SeqCst);
        self.log_free.fetch_sub(bytes as i64, Ordering::SeqCst);
    }

    /// `bytes` of reserve are free again: a compensation was logged, or a transaction ended.
    pub fn release_undo(&self, bytes: usize) {
        let before = self.undo_reserved.fetch_sub(bytes as u64, Ordering::SeqCst);
        assert!(before >= bytes as u64, "WAL-6: {bytes} bytes of undo reserve spent out of {before}");
        self.log_free.fetch_add(bytes as i64, Ordering::SeqCst);
    }

    /// Bytes of prepared log that no credit and no reserve has taken; may be negative after [`Accounts::set_aside_by_force`].
    pub fn log_free(&self) -> i64 {
        self.log_free.load(Ordering::SeqCst)
    }

    /// Bytes of the ring that no credit has taken.
    pub fn ring_free(&self) -> i64 {
        self.ring_free.load(Ordering::SeqCst)
    }

    /// Bytes set aside for undo.
    pub fn undo_reserved(&self) -> u64 {
        self.undo_reserved.load(Ordering::SeqCst)
    }

    /// What ordinary credit leaves alone.
    pub fn floor_bytes(&self) -> i64 {
        self.floor_bytes
    }
}

/// The bank of credit for undo. Its log space lies in the transaction's reserve until the record is appended.
impl CreditBank for Accounts {
    fn give_back(&self, bytes: usize) {
        self.drained(bytes);
    }

    fn spent(&self, bytes: usize) {
        self.log_free.fetch_sub(bytes as i64, Ordering::SeqCst);
    }
}
