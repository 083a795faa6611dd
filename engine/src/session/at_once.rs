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
use clearway_txn::transaction::{Basis, Change, Changed};

use super::{Durability, Session};
use crate::table::shape::TableShape;

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

impl Session {
    /// Replaces the value of a row, where neither its key nor an entry of an index nor a column of a unique index changes.
    ///
    /// # Errors
    /// It can't be done without waiting, or an error came; the way that waits finds it again.
    pub fn update_now(
        &mut self,
        shape: &TableShape,
        key: &[u8],
        value: &[u8],
        basis: Basis,
    ) -> Result<Changed, NotNow> {
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut().ok_or(NotNow::Other)?;
        let change = Change::Update { value, strength: LockMode::RowNoKeyUpdate };
        let changed = match at_once(pin!(txn.change(tree, key, change, basis, IfTaken::Fail))) {
            Some(Ok(changed)) => changed,
            Some(Err(TxnError::LockNotAvailable)) => return Err(NotNow::Taken),
            Some(Err(_)) | None => return Err(NotNow::Other),
        };
        if matches!(changed, Changed::Done) {
            self.used.updated(shape.oid, true);
        }
        Ok(changed)
    }

    /// Puts a row into a table without indexes: under its key, or under a new number if the table has none. None: it can't be done without
    /// waiting, or an error came.
    pub fn insert_now(&mut self, shape: &TableShape, key: Option<&[u8]>, value: &[u8]) -> Option<Changed> {
        let number;
        let key = match key {
            Some(key) => key,
            None => {
                number = self.row_ids.next_now(shape.tree)?;
                &number
            }
        };
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut()?;
        let change = Change::Insert { value };
        let inserted = at_once(pin!(txn.change(tree, key, change, Basis::Locked, IfTaken::Fail)))?.ok()?;
        if matches!(inserted, Changed::Done) {
            self.counted.note(self.db.statistics(), shape.oid);
            self.used.inserted(shape.oid);
        }
        Some(inserted)
    }

    /// Deletes a row of a table without indexes. None: it can't be done without waiting, or an error came.
    pub fn delete_now(&mut self, shape: &TableShape, key: &[u8], basis: Basis) -> Option<Changed> {
        let tree = shape.rows(self.db.transactions());
        let txn = self.txn.as_mut()?;
        let change = Change::Delete { moved_to: None };
        let deleted = at_once(pin!(txn.change(tree, key, change, basis, IfTaken::Fail)))?.ok()?;
        if matches!(deleted, Changed::Done) {
            self.counted.note(self.db.statistics(), shape.oid);
            self.used.deleted(shape.oid, 1);
        }
        Some(deleted)
    }

    /// As [`Session::commit_early`]: no client may hear of the commit before everything up to [`Session::dep_lsn`] is durable. False: it can't
    /// be done without waiting, and the transaction is as it was.
    pub fn commit_now(&mut self, durability: Durability) -> bool {
        // Advisory locks are released when the commit is durable, and the caller would not wait for that.
        if self.txn.is_none() || self.db.transactions().locks().holds_until_durable(&self.owner) {
            return false;
        }
        matches!(at_once(pin!(self.commit_early(durability))), Some(Ok(_)))
    }
}
