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

use clearway_storage::ids::{Lsn, TreeId};

use super::Transaction;
use crate::error::TxnError;
use crate::lockmgr::{IfTaken, Implicit, LockManager, LockMode, LockScope, LockTag, Owner, Request};

/// The first place at a key; given up when it is dropped.
pub struct FirstPlace {
    locks: Arc<LockManager>,
    owner: Arc<Owner>,
    tag: LockTag,
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
    waited: bool,
}

impl Transaction {
    /// Waits for a transaction that is changing the key of a row that is to be inserted; `replaced`: the commit of the row which stood there before, if it has only replaced that.
    /// True: that row refuses the insert (TXN-16).
    pub(super) async fn wait_to_insert(
        &mut self,
        at: (TreeId, &[u8]),
        waits: &mut InsertWaits,
        (writer, replaced): (Implicit, Option<Lsn>),
    ) -> Result<bool, TxnError> {
        match replaced {
            Some(commit) if waits.waited => {
                self.depends_on(commit);
                return Ok(true);
            }
            Some(_) => self.wait_for(writer).await?,
            None => self.wait_at(at, &mut waits.place, writer).await?, // TXN-14
        }
        waits.waited = true;
        Ok(false)
    }

    /// Waits for the end of a transaction that is changing a key, at the first place there. Without that place it waits for it, and if another session had it, for nothing else: the
    /// caller looks at the key again (TXN-14). The caller gives the place up before it waits for anything else (TXN-15).
    ///
    /// # Errors
    /// `Deadlock`.
    pub async fn wait_at(
        &mut self,
        (tree, key): (TreeId, &[u8]),
        place: &mut Option<FirstPlace>,
        writer: Implicit,
    ) -> Result<(), TxnError> {
        if place.is_none() {
            let (locks, owner) = (self.all.locks().clone(), self.owner.clone());
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
            *place = Some(FirstPlace { locks, owner, tag });
            if granted.waited {
                return Ok(());
            }
        }
        self.wait_for(writer).await
    }
}
