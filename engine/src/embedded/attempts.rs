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
    /// EMB-4
    pub(super) async fn prepare(&self, txn: &mut AsyncTxn<'_>) -> Result<(), Error> {
        if self.failed < FAIR_AFTER { Ok(()) } else { txn.lock_first(&self.lost).await }
    }

    pub(super) fn ended(&mut self, txn: &mut AsyncTxn<'_>) -> End {
        self.failed += 1;
        txn.end_unfinished();
        if let Some(row) = txn.take_lost()
            && let Err(at) = self.lost.binary_search(&row)
        {
            self.lost.insert(at, row);
        }
        End { failed: txn.failed(), retry: txn.wants_retry() && self.failed < ATTEMPTS_MAX as usize }
    }
}

/// Commits or rolls back; `None` if the closure is to be run again. What was committed is not durable yet: [`Session::dep_lsn`].
pub(super) async fn finish_early<T, E: From<Error>>(
    session: &mut Session,
    result: Result<T, E>,
    end: End,
) -> Option<Result<T, E>> {
    if result.is_ok() && !end.failed {
        let committed = session.commit_early(Durability::Wait).await;
        if let Err(error) = committed {
            // EMB-3: whatever is left of it goes.
            let _ = session.roll_back().await;
            return Some(Err(E::from(error.into())));
        }
        return Some(result);
    }
    // EMB-1: what the closure saw is durable when this returns.
    if let Err(error) = session.roll_back().await {
        return Some(Err(E::from(error.into())));
    }
    match result {
        _ if end.retry => None,
        // EMB-2
        Ok(_) => Some(Err(E::from(Error::Failed))),
        Err(error) => Some(Err(error)),
    }
}
