//! Changes and commits without a wait: one attempt each.
//!
//! # Life of an attempt
//! polled once -> ready: it is done; pending (a page is not in memory, the log has no room, another transaction has the row): its future is
//! dropped, the attempt returns `None` or false, and the caller uses the call that waits.
//!
//! # Invariants
//! - NOW-1: an attempt that returns `None`, [`NotNow`] or false has changed nothing. A change is one edit of a leaf, which a future that is
//!   dropped while it waits has not made; a commit waits only before its record is reserved.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::transaction::{Basis, Change, Changed, Transaction};

use super::{Durability, Mark, Session};
use crate::error::EngineError;
use crate::table::entry_moves::{EntryKeys, EntryMoves};
use crate::table::shape::{IndexShape, TableShape};

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// Another transaction is changing the row, or has locked it.
    Taken,
    /// Anything else.
    Other,
}

/// One attempt (NOW-1). The future stays where it was made: to move it took as long as a search of the tree.
fn at_once<F: Future>(work: Pin<&mut F>) -> Option<F::Output> {
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Makes or deletes an entry, as `put_entry` and `remove_entry` of [`crate::table::write`] do; false: it can't be done without waiting, or an error came.
fn change_entry(txn: &mut Transaction, index: &IndexShape, entry: &[u8], change: Change<'_>) -> bool {
    let tree = index.entries(txn.all());
    match at_once(pin!(txn.change(tree, entry, change, Basis::Locked, IfTaken::Fail))) {
        Some(Ok(Changed::Done | Changed::Exists { .. })) => true,
        // The index is being built, and the builder has not reached this row yet.
        Some(Ok(Changed::Newer | Changed::Again)) => matches!(change, Change::Delete { .. }),
        Some(Err(_)) | None => false,
    }
}

impl Session {
    /// Replaces the value of a row, where neither its key nor a column of a unique index changes, and moves these entries. `if_taken`: how it fails if the row is taken.
    ///
    /// # Errors
    /// It can't be done without waiting, or an error came; the way that waits finds it again (HLF-1).
    pub fn update_now(
        &mut self,
        shape: &TableShape,
        (key, value): (&[u8], &[u8]),
        (basis, if_taken): (Basis, IfTaken),
        entries: &EntryMoves,
    ) -> Result<Changed, NotNow> {
        let before = self.before_half(entries);
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut().ok_or(NotNow::Other)?;
        let change = Change::Update { value, strength: LockMode::RowNoKeyUpdate };
        let changed = match at_once(pin!(txn.change(tree, key, change, basis, if_taken))) {
            Some(Ok(changed)) => changed,
            Some(Err(TxnError::LockNotAvailable)) => return Err(NotNow::Taken),
            Some(Err(_)) | None => return Err(NotNow::Other),
        };
        if matches!(changed, Changed::Done) {
            if !self.move_now(shape, entries, before) {
                return Err(NotNow::Other);
            }
            self.used.updated(shape.oid, entries.iter().next().is_none());
        }
        Ok(changed)
    }

    /// Puts a row into a table: under its key, or under a new number if the table has none. `keys` makes its entries. None: it can't be done without
    /// waiting, or an error came (HLF-1).
    pub fn insert_now(
        &mut self,
        shape: &TableShape,
        (key, value): (Option<&[u8]>, &[u8]),
        keys: Option<&EntryKeys>,
        entries: &mut EntryMoves,
    ) -> Option<Changed> {
        let number;
        let key = match key {
            Some(key) => key,
            None => {
                number = self.row_ids.next_now(shape.tree)?;
                &number
            }
        };
        entries.clear();
        if !keys.is_none_or(|keys| entries.come(keys, shape, (key, value))) {
            return None;
        }
        let before = self.before_half(entries);
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut()?;
        let change = Change::Insert { value };
        let inserted = at_once(pin!(txn.change(tree, key, change, Basis::Locked, IfTaken::Fail)))?.ok()?;
        if matches!(inserted, Changed::Done) {
            if !self.move_now(shape, entries, before) {
                return None;
            }
            self.counted.note(self.db.statistics(), shape.oid);
            self.used.inserted(shape.oid);
        }
        Some(inserted)
    }

    /// Deletes a row, and these entries, which are all that it has. None: it can't be done without waiting, or an error came (HLF-1).
    pub fn delete_now(
        &mut self,
        shape: &TableShape,
        key: &[u8],
        (basis, if_taken): (Basis, IfTaken),
        entries: &EntryMoves,
    ) -> Option<Changed> {
        let before = self.before_half(entries);
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut()?;
        let change = Change::Delete { moved_to: None };
        let deleted = at_once(pin!(txn.change(tree, key, change, basis, if_taken)))?.ok()?;
        if matches!(deleted, Changed::Done) {
            if !self.move_now(shape, entries, before) {
                return None;
            }
            self.counted.note(self.db.statistics(), shape.oid);
            self.used.deleted(shape.oid, 1);
        }
        Some(deleted)
    }

    /// Where to go back to if the entries do not all move.
    fn before_half(&self, entries: &EntryMoves) -> Option<Mark> {
        entries.iter().next().map(|_| self.mark())
    }

    /// Moves the entries of a row that was changed just now (TAB-3); false: HLF-1.
    fn move_now(&mut self, shape: &TableShape, entries: &EntryMoves, before: Option<Mark>) -> bool {
        let moved = self.txn.as_mut().is_some_and(|txn| {
            entries.iter().all(|entry| {
                let index = &shape.indexes[entry.index];
                let gone =
                    entry.old.is_empty() || change_entry(txn, index, &entry.old, Change::Delete { moved_to: None });
                gone && (entry.new.is_empty() || change_entry(txn, index, &entry.new, Change::Insert { value: &[] }))
            })
        });
        if !moved {
            self.half = before;
        }
        moved
    }

    /// Undoes a change that was left half made (HLF-1), if there is one.
    ///
    /// # Errors
    /// Those of the trees.
    pub async fn undo_half(&mut self) -> Result<(), EngineError> {
        match self.half.take() {
            Some(mark) => Box::pin(self.roll_back_to(&mark)).await,
            None => Ok(()),
        }
    }

    /// As [`Session::commit_early`]: no client may hear of the commit before everything up to [`Session::dep_lsn`] is durable. False: it can't
    /// be done without waiting, and the transaction is as it was.
    pub fn commit_now(&mut self, durability: Durability) -> bool {
        // Advisory locks are released when the commit is durable, and the caller would not wait for that.
        assert!(self.half.is_none(), "HLF-1: half a change is not committed");
        if self.txn.is_none() || self.db.transactions().locks().holds_until_durable(&self.owner) {
            return false;
        }
        matches!(at_once(pin!(self.commit_early(durability))), Some(Ok(_)))
    }
}
