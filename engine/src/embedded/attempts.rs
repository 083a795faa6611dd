//! Attempts of a closure: it is run again while its transaction meets a conflict, at most `ATTEMPTS_MAX` times.

use super::error::Error;
use super::transaction::{AsyncTxn, Contended};
use crate::session::{Durability, Session};

/// How often a closure is run before its conflict is handed out as an error.
const ATTEMPTS_MAX: u32 = 1_000;
/// EMB-4: failed attempts after which the next one queues for its rows first.
const FAIR_AFTER: usize = 2;

/// How an attempt ended.
pub(super) struct End {
    pub(super) failed: bool,
    pub(super) retry: bool,
}

/// The attempts of one closure so far.
#[derive(Default)]
pub(super) struct Attempts {
    failed: usize,
    /// The rows on which others were faster, by table and key.
    lost: Vec<Contended>,
}

impl Attempts {
    /// Whether none has failed.
    pub(super) fn is_first(&self) -> bool {
        self.failed == 0
    }

    /// Whether the next one has to be prepared.
    pub(super) fn is_fair(&self) -> bool {
        self.failed >= FAIR_AFTER
    }

    /// EMB-4
    pub(super) async fn prepare(&self, txn: &mut AsyncTxn<'_>) -> Result<(), Error> {
        if self.is_fair() { txn.lock_first(&self.lost).await } else { Ok(()) }
    }

    pub(super) fn ended(&mut self, txn: &mut AsyncTxn<'_>) -> End {
        self.failed += 1;
        txn.end_unfinished();
        txn.end_alone();
        if let Some(row) = txn.take_lost()
            && let Err(at) = self.lost.binary_search(&row)
        {
            self.lost.insert(at, row);
        }
        End { failed: txn.failed(), retry: txn.wants_retry() && self.failed < ATTEMPTS_MAX as usize }
    }
}

/// Whether a transaction has ended, without waiting: it has changed nothing, and what its closure returned may go out.
pub(super) fn has_ended<T, E>(session: &mut Session, result: &Result<T, E>, end: &End) -> bool {
    result.is_ok() && !end.failed && (!session.is_open() || session.end_unchanged()) && session.may_reply()
}

/// Commits or rolls back; `None` if the closure is to be run again. What was committed is not durable yet: [`Session::dep_lsn`].
pub(super) async fn finish_early<T, E: From<Error>>(
    session: &mut Session,
    result: Result<T, E>,
    end: End,
) -> Option<Result<T, E>> {
    if result.is_ok() && !end.failed {
        if !session.is_open() {
            return Some(result); // EMB-8
        }
        let committed = session.commit_early(Durability::Wait).await;
        if let Err(error) = committed {
            // EMB-3: whatever is left of it goes.
            let _ = session.roll_back().await;
            return Some(Err(E::from(error.into())));
        }
        return Some(result);
    }
    // EMB-1: what the closure saw is durable when this returns. A transaction that was never begun is not rolled back.
    let undone = match session.is_open() {
        true => session.roll_back().await,
        false => session.wait_reply().await,
    };
    if let Err(error) = undone {
        return Some(Err(E::from(error.into())));
    }
    match result {
        _ if end.retry => None,
        // EMB-2
        Ok(_) => Some(Err(E::from(Error::Failed))),
        Err(error) => Some(Err(error)),
    }
}
