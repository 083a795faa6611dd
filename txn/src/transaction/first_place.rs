//! The first place at a key: of the sessions that wait for the transaction which is putting a row there or taking it away, one waits for the transaction, the others for that one.
//!
//! A transaction's end wakes all that wait for it. Where many sessions put in one key and each takes its row away again or is rolled back, all but one of those that were woken
//! found the key taken anew: with 256 sessions a hundred wake-ups for one transaction.
//!
//! # Invariants
//! - TXN-14: a session has the first place at a key from before it waits for the transaction that is changing the key until it has put its own row there or knows that it can't. The next one then
//!   looks at the key. A session that has waited for the place looks before it waits for a transaction. So a key whose rows come and go wakes two sessions for each transaction, however many wait.
//! - TXN-15: while a session has the first place it waits for nothing but the transaction that is changing the key, for which those behind it wait, too. So the
//!   place adds no deadlock, and hides none.

use std::sync::Arc;

use clearway_storage::ids::TreeId;

use crate::error::TxnError;
use crate::lockmgr::{IfTaken, LockManager, LockMode, LockScope, LockTag, Owner, Request};

/// The first place at a key; given up when it is dropped.
pub struct FirstPlace {
    locks: Arc<LockManager>,
    owner: Arc<Owner>,
    tag: LockTag,
}

impl FirstPlace {
    /// Takes the first place at a key; and whether another session had it.
    ///
    /// # Errors
    /// `Deadlock`.
    pub(super) async fn take(
        locks: Arc<LockManager>,
        owner: Arc<Owner>,
        (tree, key): (TreeId, &[u8]),
    ) -> Result<(FirstPlace, bool), TxnError> {
        let tag = LockTag::Place { tree, key: key.into() };
        let request = Request {
            owner: &owner,
            tag: tag.clone(),
            mode: LockMode::Exclusive,
            scope: LockScope::Session,
            if_taken: IfTaken::Wait,
            implicit: None,
            looks: false,
        };
        let granted = locks.acquire(request).await?;
        Ok((FirstPlace { locks, owner, tag }, granted.waited))
    }
}

impl Drop for FirstPlace {
    fn drop(&mut self) {
        self.locks.release_one(&self.owner, &self.tag, LockMode::Exclusive);
    }
}

/// The waits of one insert.
#[derive(Default)]
pub(super) struct InsertWaits {
    pub(super) place: Option<FirstPlace>,
    /// It has waited.
    pub(super) waited: bool,
}
