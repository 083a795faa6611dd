//! Runs of changes: changes many rows in the order of their keys, leaf by leaf, up to the first change that needs a wait or a split or meets
//! a conflict.
//!
//! # Invariants
//! - TXN-11: a run makes exactly the changes that [`Transaction::change`] would make, in the same order, each with its own log record. Changes
//!   of neighbours that RSH-2 allows to share an undo record do so, with one tag and one position for all of them. A row that another
//!   transaction is changing or may have locked, a row whose undo was spilled, and a change that is refused end the run:
//!   [`Transaction::change`] judges such a row again, and waits or refuses.
//!
//! # Crash safety
//! The log tells a run from single changes only by the tags (BTR-19, RSH-1).

use std::sync::{Arc, OnceLock};

use clearway_base::sync::yield_now;
use clearway_storage::btree::{Edit, LeafRow, Row, RunEdits, RunPut, TagRoom, Tree};
use clearway_storage::ids::{Lsn, PageId, Tag};
use clearway_storage::record::LsnRange;

use super::judge::{Judge, Permit};
use super::{Basis, Change, IfTaken, Transaction};
use crate::error::TxnError;
use crate::mutation::{self, Mutation};
use crate::mvcc::book::Newest;
use crate::mvcc::record::UndoRecord;
use crate::mvcc::rows::RunRows;
use crate::mvcc::state::TxnState;
use crate::mvcc::undo::Fetched;
use crate::transactions::Transactions;

/// So many rows are changed before other tasks may go on.
const BREATH_ROWS: usize = 256;

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

/// What rows that share an undo record have in common (RSH-2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alike {
    /// There was no row.
    New,
    /// A settled row without a value becomes a ghost.
    Gone,
}

impl Alike {
    /// None: the row has a record of its own.
    fn of(row: Option<Row<'_>>, change: Change<'_>, permit: &Permit) -> Option<Alike> {
        let link = &permit.link;
        if !link.prev.is_settled() || link.before_lsn != Lsn::ZERO || permit.over_shown {
            return None;
        }
        match (change, row) {
            (Change::Insert { .. }, None) => Some(Alike::New),
            (Change::Delete { moved_to: None }, Some(row)) if row.value.is_empty() && !row.overflow => {
                Some(Alike::Gone)
            }
            _ => None,
        }
    }
}

/// An undo record to which further rows of its leaf may be added (RSH-4).
struct Open {
    tag: Tag,
    record: Arc<UndoRecord>,
    alike: Option<Alike>,
    page: PageId,
    rows: RunRows,
    /// How many of them the record has.
    saved: usize,
    /// The log record before that of the first row.
    previous: Lsn,
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
    /// The latest undo record.
    open: Option<Open>,
    /// A change was decided on and is not logged yet.
    decided: bool,
    judged: Lsn,
}

impl Run<'_> {
    /// Gives the latest record its rows. Called before any wait, so that checkpoints and a rollback find all of them.
    fn save(&mut self) {
        let Some(open) = &mut self.open else { return };
        if open.rows.len() > 1 && open.rows.len() > open.saved {
            open.record = self.all.book().undo().put_rows(open.tag, &open.record, open.rows.clone(), open.previous);
            open.saved = open.rows.len();
        }
        if open.rows.len() == 1 {
            self.close();
        }
    }

    /// No more rows share the latest record.
    fn close(&mut self) {
        if self.open.as_ref().is_some_and(|open| open.rows.len() > 1) {
            self.save();
        }
        if let Some(Open { record, rows, previous, .. }) = self.open.take() {
            record.logged(rows.first().expect("TXN-11: the change that was decided on is logged"), previous);
        }
    }
}

impl<'a> RunEdits<'a> for Run<'a> {
    fn key(&self, n: usize) -> Option<(&'a [u8], usize)> {
        self.changes.get(n).map(|change| (change.key, change.value().len()))
    }

    fn tag(&self) -> Option<Tag> {
        self.open.as_ref().filter(|open| open.alike.is_some()).map(|open| open.tag)
    }

    fn decide(&mut self, n: usize, leaf: LeafRow<'_>, fits: TagRoom) -> Option<RunPut<'a>> {
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
        let permit = judge.permit(&leaf, run.change, self.basis).ok()?;
        let alike = Alike::of(leaf.row, run.change, &permit);
        let (value, ghost) = (run.value(), matches!(run.change, Change::Delete { .. }));
        let judged = permit.judged;
        let joins = alike.is_some() && self.open.as_ref().is_some_and(|o| o.alike == alike && o.page == leaf.page);
        if !joins {
            // BTR-23
            if fits == TagRoom::Last || fits == TagRoom::Shared && alike.is_none() {
                return None;
            }
            self.close();
            let (edit, record) = judge.put(&leaf, run.change, (value, false), permit);
            let Edit::Put { tag, .. } = edit else { return None };
            let (page, rows) = (leaf.page, RunRows::default());
            self.open = Some(Open { tag, record, alike, page, rows, saved: 0, previous: Lsn::ZERO });
        }
        let tag = self.open.as_ref()?.tag;
        assert!(!self.decided, "TXN-11: each change of a run is logged before the next is decided on");
        self.decided = true;
        self.judged = self.judged.max(judged);
        Some(RunPut { value, tag, ghost, shares: alike.is_some() })
    }

    fn logged(&mut self, n: usize, range: LsnRange, previous: Lsn) {
        assert!(std::mem::take(&mut self.decided), "TXN-11: the change that was decided on");
        let open = self.open.as_mut().expect("TXN-11: the change that was decided on has a record");
        match open.rows.last() {
            None => open.previous = previous,
            Some(last) => assert_eq!(last, previous, "RSH-1: consecutive changes of their transaction"),
        }
        open.rows.push(self.changes[n].key, range.start);
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
            open: None,
            decided: false,
            judged: Lsn::ZERO,
        };
        let (mut done, mut breath) = (0, BREATH_ROWS);
        while done < changes.len() {
            // BUD-1
            all.book().admit().await?;
            let made = tree.edit_run(&mut self.log, done, &mut run).await?;
            run.save();
            if made == 0 {
                break;
            }
            state.moved(&self.log);
            done += made;
            if done >= breath {
                breath = done + BREATH_ROWS;
                yield_now().await;
            }
        }
        run.close();
        assert!(done <= changes.len(), "TXN-11: {done} of {} changes were made", changes.len());
        assert!(!run.decided, "TXN-11: a change that was decided on is logged");
        let judged = run.judged;
        if !mutation::active(Mutation::NoDepWaitErrors) {
            self.depends_on(judged);
        }
        Ok(done)
    }
}
