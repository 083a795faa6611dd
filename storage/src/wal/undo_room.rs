//! Room in leaves that active transactions gave up and may need back, and a bound for the pages that undoing them takes.
//!
//! # Life of a claim
//! A change that makes a row shorter claims the bytes that it gave up, under the leaf's latch, for its transaction. The compensation of
//! the change, or the end of the transaction, releases the claim. While there is any claim, the bytes that other changes put into leaves
//! are counted, too, since only these can take the room that undo needs.
//!
//! # Invariants
//! - WAL-20: undoing all changes with claims splits no more nodes than [`UndoRoom::pages`] says.
//!
//! Why: a leaf has room for every row that undo puts back unless rows came into the leaf since the room was given up. So the leaves that
//! lack room are at most as many as the claims, and at most as many as the rows that came in. Each of them may split, with its ancestors:
//! `LEVELS` new nodes each, and in all no more than there are nodes. After a split both halves have a third of a page free, since a row
//! has a sixth of a page at most. So a leaf splits again only after another third of a page of rows was put back into it: three leaves per
//! page of rows. A parent takes at least seven separators, so a fourth page per page of rows covers the splits of parents. These rows have
//! at most as many bytes as were given up, and at most as many as came in.
//!
//! # Not here
//! The guarantee that the pages are free: space gives it (SPC-7).

use crate::buffer::PAGE_BYTES;
use crate::record::TxnLog;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Levels on which a single row that is put back may split a node.
const LEVELS: u64 = 4;
/// Larger than any real count. It stands for the bytes that came into leaves before a crash, which are not known.
const UNKNOWN: u64 = 1 << 50;

/// What a row's change does to the room in its leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomChange {
    /// Bytes given up, which the undo of the change needs back.
    pub given_up: usize,
    /// Bytes taken.
    pub taken: usize,
}

impl RoomChange {
    /// The change of a row from one length to another; a row that is put in, or taken out, has none before, or after. A row
    /// of the same length has its tag in place of the one before.
    pub fn of(key_len: usize, before: Option<usize>, after: Option<usize>) -> RoomChange {
        // Slot, lengths and tag.
        const AROUND: usize = 24;
        match (before, after) {
            (Some(before), Some(after)) if before > after => RoomChange { given_up: before - after + AROUND, taken: 0 },
            (Some(before), Some(after)) => RoomChange { given_up: 0, taken: after - before + AROUND },
            // Without this row the other rows of the leaf may share a longer prefix.
            (Some(_), None) => RoomChange { given_up: PAGE_BYTES, taken: 0 },
            (None, Some(after)) => RoomChange { given_up: 0, taken: key_len + after + AROUND },
            (None, None) => RoomChange::default(),
        }
    }
}

/// What changes of several rows do to the room in their leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomChanges {
    /// Rows that give bytes up, and how many.
    given_rows: u64,
    given_up: usize,
    /// Rows that take bytes, and how many.
    taken_rows: u64,
    taken: usize,
}

impl RoomChanges {
    /// One change more.
    #[inline]
    pub fn add(&mut self, change: RoomChange) {
        self.given_rows += u64::from(change.given_up > 0);
        self.given_up += change.given_up;
        self.taken_rows += u64::from(change.taken > 0);
        self.taken += change.taken;
    }
}

impl From<RoomChange> for RoomChanges {
    fn from(change: RoomChange) -> RoomChanges {
        let mut changes = RoomChanges::default();
        changes.add(change);
        changes
    }
}

/// All claims. They are changed by atomic additions, under the latch of the leaf.
#[derive(Default)]
pub struct UndoRoom {
    /// Transactions with claims.
    holders: AtomicU64,
    /// Claims, and their bytes.
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Rows that came into leaves while there were claims, and their bytes; and how many there were when the oldest
    /// transaction with claims made its first.
    taken_rows: AtomicU64,
    taken_bytes: AtomicU64,
    base_rows: AtomicU64,
    base_bytes: AtomicU64,
    /// What space says: pages that are free for undo, and pages in use.
    free_pages: AtomicU64,
    used_pages: AtomicU64,
}

impl UndoRoom {
    /// Notes a change that was made.
    pub fn changed(&self, log: &mut TxnLog, change: RoomChange) {
        if change.given_up > 0 {
            self.claim(log, 1, change.given_up as u64);
        } else if change.taken > 0 {
            self.taken(1, change.taken);
        }
    }

    /// Notes changes of rows of one leaf.
    pub fn changed_all(&self, log: &mut TxnLog, changes: &RoomChanges) {
        if changes.given_rows > 0 {
            self.claim(log, changes.given_rows, changes.given_up as u64);
        }
        if changes.taken_rows > 0 {
            self.taken(changes.taken_rows, changes.taken);
        }
    }

    /// Notes that so many rows with so many bytes came into a leaf.
    pub fn taken(&self, rows: u64, bytes: usize) {
        if self.rows.load(SeqCst) > 0 {
            self.taken_rows.fetch_add(rows, SeqCst);
            self.taken_bytes.fetch_add(bytes as u64, SeqCst);
        }
    }

    fn claim(&self, log: &mut TxnLog, rows: u64, bytes: u64) {
        if log.room_rows == 0 {
            // Read first: what comes in meanwhile counts, at worst twice.
            let (rows, bytes) = (self.taken_rows.load(SeqCst), self.taken_bytes.load(SeqCst));
            if self.holders.fetch_add(1, SeqCst) == 0 {
                self.base_rows.store(rows, SeqCst);
                self.base_bytes.store(bytes, SeqCst);
            }
        }
        assert!(rows > 0, "WAL-20: a claim is of one row at least");
        log.room_rows += rows;
        log.room_bytes += bytes;
        self.rows.fetch_add(rows, SeqCst);
        self.bytes.fetch_add(bytes, SeqCst);
    }

    /// Claims for a loser that recovery found.
    pub fn claim_for_loser(&self, log: &mut TxnLog, rows: u64, bytes: u64) {
        if rows > 0 {
            self.claim(log, rows, bytes);
            self.taken(UNKNOWN, UNKNOWN as usize);
        }
    }

    /// A change was undone.
    pub fn undone(&self, log: &mut TxnLog, change: RoomChange) {
        if change.given_up > 0 && log.room_rows > 0 {
            self.release(log, 1, change.given_up as u64);
        }
    }

    /// The transaction is over.
    pub fn released(&self, log: &mut TxnLog) {
        if log.room_rows > 0 {
            self.release(log, log.room_rows, log.room_bytes);
        }
    }

    fn release(&self, log: &mut TxnLog, rows: u64, bytes: u64) {
        // The last claim takes along what an estimate for a loser left over.
        assert!(rows <= log.room_rows, "WAL-20: {rows} claims of a transaction that has {}", log.room_rows);
        let bytes = if rows == log.room_rows { log.room_bytes } else { bytes.min(log.room_bytes) };
        log.room_rows -= rows;
        log.room_bytes -= bytes;
        let before = self.rows.fetch_sub(rows, SeqCst);
        assert!(before >= rows, "WAL-20: {rows} claims released out of {before}");
        let before = self.bytes.fetch_sub(bytes, SeqCst);
        assert!(before >= bytes, "WAL-20: {bytes} bytes of claims released out of {before}");
        if log.room_rows == 0 {
            let before = self.holders.fetch_sub(1, SeqCst);
            assert!(before > 0, "WAL-20: a transaction without claims gives them back");
        }
    }

    fn pages_with(&self, more: &RoomChanges) -> u64 {
        let rows = self.rows.load(SeqCst);
        if rows == 0 {
            return 0;
        }
        let came_in = |taken: &AtomicU64, base: &AtomicU64| taken.load(SeqCst).saturating_sub(base.load(SeqCst));
        let came = came_in(&self.taken_rows, &self.base_rows) + more.taken_rows;
        let came_bytes = came_in(&self.taken_bytes, &self.base_bytes) + more.taken as u64;
        let at_once = LEVELS * (rows + more.given_rows).min(came);
        let later = LEVELS * (self.bytes.load(SeqCst) + more.given_up as u64).min(came_bytes);
        at_once.min(self.used_pages.load(SeqCst)) + later.div_ceil(PAGE_BYTES as u64)
    }

    /// Pages that undoing everything that is claimed may take (WAL-20).
    pub fn pages(&self) -> u64 {
        self.pages_with(&RoomChanges::default())
    }

    /// Whether there are pages for everything that is claimed, and for this change besides.
    pub fn allows(&self, change: RoomChange) -> bool {
        self.allows_all(&change.into())
    }

    /// The same of several changes.
    pub fn allows_all(&self, changes: &RoomChanges) -> bool {
        self.rows.load(SeqCst) == 0 || self.pages_with(changes) <= self.free_pages.load(SeqCst)
    }

    /// Space says how many pages are free for undo, and how many are in use.
    pub fn told(&self, free: u64, used: u64) {
        self.free_pages.store(free, SeqCst);
        self.used_pages.store(used, SeqCst);
    }
}
