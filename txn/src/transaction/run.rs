//! Runs of changes: changes many rows in the order of their keys, leaf by leaf, up to the first change that needs a wait or a split or meets
//! a conflict.
//!
//! # Invariants
//! - TXN-11: a run makes exactly the changes that [`Transaction::change`] would make, in the same order, each with its own undo record and its own
//!   position. A row that another transaction is changing or may have locked, a row whose undo was spilled, and a change that is refused end
//!   the run: [`Transaction::change`] judges such a row again, and waits or refuses.
//!
//! # Crash safety
//! The log does not tell a run from single changes (BTR-19).

use std::sync::{Arc, OnceLock};

use clearway_storage::btree::{Edit, LeafRow, RunEdits, RunPut, Tree};
use clearway_storage::ids::{Lsn, Tag};
use clearway_storage::record::LsnRange;

use super::judge::{Attempt, Judge};
use super::{Basis, Change, Changed, IfTaken, Transaction};
use crate::error::TxnError;
use crate::mutation::{self, Mutation};
use crate::mvcc::book::Newest;
use crate::mvcc::record::UndoRecord;
use crate::mvcc::state::TxnState;
use crate::mvcc::undo::Fetched;
use crate::transactions::Transactions;
use std::borrow::Cow;

/// A change of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunChange<'a> {
    /// The row's key.
    pub key: &'a [u8],
    /// What becomes of it.
    pub change: Change<'a>,
}

impl<'a> RunChange<'a> {
    fn value(&self) -> &'a [u8] {
        match self.change {
            Change::Insert { value } | Change::Update { value, .. } => value,
            Change::Delete { .. } => &[],
        }
    }
}

struct Run<'a> {
    all: &'a Transactions,
    state: &'a Arc<TxnState>,
    tree: &'a Tree,
    changes: &'a [RunChange<'a>],
    basis: Basis,
    /// Whether versions of the transaction itself may be replaced.
    over_own: bool,
    fetched: &'a Fetched,
    snapshot: Option<Lsn>,
    over_shown: bool,
    /// The undo record of the change that is being logged.
    record: Option<Arc<UndoRecord>>,
    judged: Lsn,
}

impl<'a> RunEdits<'a> for Run<'a> {
    fn key(&self, n: usize) -> Option<(&'a [u8], usize)> {
        self.changes.get(n).map(|change| (change.key, change.value().len()))
    }

    fn decide(&mut self, n: usize, leaf: LeafRow<'_>) -> Option<RunPut<'a>> {
        let run = &self.changes[n];
        let tag = leaf.row.map_or(Tag::SETTLED, |row| row.tag);
        let is_easy = match self.all.book().newest(tag, self.state.id(), self.fetched) {
            Newest::Settled | Newest::Committed(_) => true,
            Newest::Mine(_) => self.over_own,
            Newest::Busy(_) | Newest::Spilled => false,
        };
        // TXN-11
        if leaf.memory_locks || !is_easy {
            return None;
        }
        let before = OnceLock::new();
        let judge = Judge {
            all: self.all,
            state: self.state,
            tree: self.tree,
            key: run.key,
            if_taken: IfTaken::Wait,
            fetched: self.fetched,
            snapshot: self.snapshot,
            over_shown: self.over_shown,
            since: None,
            before: &before,
        };
        let (edit, attempt) = judge.change(leaf, run.change, self.basis, run.value(), false);
        match (edit, attempt) {
            (
                Edit::Put { value: Cow::Borrowed(value), tag, ghost, .. },
                Attempt::Finished { changed: Changed::Done, record: Some(record), judged, .. },
            ) => {
                assert!(self.record.is_none(), "TXN-11: each change of a run is logged before the next is decided on");
                self.record = Some(record);
                self.judged = self.judged.max(judged);
                Some(RunPut { value, tag, ghost })
            }
            _ => None,
        }
    }

    fn logged(&mut self, _: usize, range: LsnRange, previous: Lsn) {
        let record = self.record.take().expect("TXN-11: the change that was decided on");
        record.logged(range.start, previous);
    }
}

impl Transaction {
    /// Makes changes from the first one on, until one of them takes a wait or a decision; says how many were made. With `over_own` they may
    /// replace versions that this transaction has written.
    ///
    /// # Errors
    /// From the tree.
    pub async fn change_run(
        &mut self,
        tree: &Tree,
        changes: &[RunChange<'_>],
        basis: Basis,
        over_own: bool,
    ) -> Result<usize, TxnError> {
        let state = self.assign()?;
        let all = self.all.clone();
        self.fetched.trim();
        let mut run = Run {
            all: &all,
            state: &state,
            tree,
            changes,
            basis,
            over_own,
            fetched: &self.fetched,
            snapshot: self.snapshot,
            over_shown: self.over_shown,
            record: None,
            judged: Lsn::ZERO,
        };
        let mut done = 0;
        while done < changes.len() {
            // BUD-1
            all.book().admit().await?;
            let made = tree.edit_run(&mut self.log, done, &mut run).await?;
            if made == 0 {
                break;
            }
            state.moved(&self.log);
            done += made;
        }
        assert!(done <= changes.len(), "TXN-11: {done} of {} changes were made", changes.len());
        assert!(run.record.is_none(), "TXN-11: a change that was decided on is logged");
        let judged = run.judged;
        if !mutation::active(Mutation::NoDepWaitErrors) {
            self.depends_on(judged);
        }
        Ok(done)
    }
}
