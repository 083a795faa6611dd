//! Runs of changes: changes many rows in the order of their keys, leaf by leaf, up to the first change that needs a wait or a split or meets
//! a conflict.
//!
//! # Invariants
//! - TXN-11: a run makes exactly the changes that [`Transaction::change`] would make, in the same order, each with its own position in the log. Changes
//!   of neighbours that RSH-2 allows to share an undo record do so, with one tag and one position for all of them. A row that another
//!   transaction is changing or may have locked, a row whose undo was spilled, and a change that is refused end the run:
//!   [`Transaction::change`] judges such a row again, and waits or refuses.
//! - TXN-12: a tag whose record is gone stays gone (UND-1), and says of each row that carries it what no tag says: every snapshot sees it. So a run that has asked once
//!   judges the rows with that tag as settled ones. Rows that were put in together share their tag, and each would ask for it three times.
//!
//! # Crash safety
//! A run's changes in one leaf are in the log together or not at all (BTR-19). A restart that finds them undoes them one by one, as single changes (BTR-24).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use clearway_base::sync::yield_now;
use clearway_storage::btree::{Edit, LeafRow, Row, RunEdits, RunGhosts, RunPositions, RunPut, TagRoom, Tree};
use clearway_storage::ids::{Lsn, PageId, Tag};

use super::judge::{Judge, Permit};
use super::{BREATH_ROWS, Basis, Change, IfTaken, Transaction};
use crate::error::TxnError;
use crate::lockmgr::{LockMark, LockMode};
use crate::mutation::{self, Mutation};
use crate::mvcc::book::Newest;
use crate::mvcc::record::UndoRecord;
use crate::mvcc::rows::RunRows;
use crate::mvcc::state::TxnState;
use crate::mvcc::undo::{Fetched, TagState};
use crate::transactions::Transactions;

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
    /// A settled row becomes a ghost.
    Gone,
    /// A settled row gets another value, by a change that implies this lock mode.
    Replaced(LockMode),
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
            (Change::Delete { moved_to: None }, Some(row)) if !row.overflow && !row.ghost => Some(Alike::Gone),
            (Change::Update { .. }, Some(row)) if !row.overflow && !row.ghost => Some(Alike::Replaced(permit.strength)),
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
    /// The edits of its rows that are not logged yet, by number.
    waiting: Range<usize>,
    /// The positions of its first row's change and of the change before that; none: all of its rows wait.
    first: Option<(Lsn, Lsn)>,
    /// All of its rows, if they are several and the record does not have all of them yet; those that wait come last.
    rows: RunRows,
}

impl Open {
    /// A row joins that had this value (RSH-5).
    fn join(&mut self, key: &[u8], value: &[u8]) {
        self.begin_rows(0, 0);
        self.rows.note(key, value);
    }

    /// Rows join (BTR-27).
    fn join_ghosts(&mut self, ghosts: RunGhosts<'_>) {
        self.begin_rows(ghosts.count(), ghosts.bytes().len());
        self.rows.note_ghosts(ghosts);
    }

    /// Rows will join, so many with so many bytes, or an unknown number: the list has those before them.
    fn begin_rows(&mut self, rows: usize, bytes: usize) {
        if self.rows.len() == 0 {
            match (self.record.rows(), self.first) {
                // More rows of a leaf that took more than one run.
                (Some(rows), Some(_)) => self.rows = RunRows::clone(rows),
                (None, None) => {
                    let (key, value) = (&self.record.key, self.record.first_value());
                    self.rows.reserve(1 + rows, key.len() + value.len() + bytes);
                    self.rows.note(key, value);
                }
                (rows, first) => panic!("RSH-4: before the writer waited, a record had {rows:?} from {first:?} on"),
            }
        }
    }

    /// The edits that wait were logged; their run begins with number `from`.
    fn enter(&mut self, from: usize, positions: RunPositions) {
        let waiting = std::mem::replace(&mut self.waiting, 0..0);
        if waiting.is_empty() {
            return;
        }
        let of = |n: usize| positions.of(n - from);
        let Some(before) = self.rows.len().checked_sub(waiting.len()) else {
            assert!(self.first.is_none() && waiting.len() == 1, "RSH-5: {} rows that wait joined", waiting.len());
            self.first = Some(of(waiting.start));
            return;
        };
        let last = before.checked_sub(1).map(|last| self.rows.lsn(last).unwrap_or_default());
        assert_eq!(last.is_some(), self.first.is_some(), "RSH-4: before the writer waited, the record had its rows");
        assert!(last.is_none_or(|l| l == of(waiting.start).1), "RSH-1: consecutive changes of their transaction");
        self.first.get_or_insert(of(waiting.start));
        self.rows.logged_all(before, waiting.map(|n| of(n).0));
    }

    /// Gives the record its rows, if they are several.
    fn save(&mut self, all: &Transactions) {
        let (Some((_, previous)), true) = (self.first, self.rows.len() > 0) else { return };
        let mut rows = std::mem::take(&mut self.rows);
        rows.shrink();
        self.record = all.book().undo().put_rows(self.tag, &self.record, rows, previous);
    }

    /// No more rows share the record; all that do are logged.
    fn end(mut self, all: &Transactions) {
        self.save(all);
        let (first, previous) = self.first.expect("TXN-11: the change that was decided on is logged");
        self.record.logged(first, previous);
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
    /// The tag that was asked for last, and whether its record was gone (TXN-12).
    asked: (Tag, bool),
    /// The latest undo record.
    open: Option<Open>,
    /// Records before it whose changes are not logged yet.
    closed: Vec<Open>,
    /// So many changes were decided on and are not logged yet.
    decided: usize,
    judged: Lsn,
}

impl<'a> Run<'a> {
    fn judge<'j>(&self, n: usize, before: &'j OnceLock<LockMark>) -> Judge<'a, 'j>
    where
        'a: 'j,
    {
        Judge {
            all: self.all,
            state: self.state,
            tree: self.tree,
            key: self.changes[n].key,
            if_taken: IfTaken::Wait,
            fetched: self.fetched,
            snapshot: self.snapshot,
            over_shown: self.over_shown,
            since: None,
            before,
        }
    }

    /// TXN-11: whether the row needs no wait for another transaction, and no undo from the spill file.
    fn may_judge(&self, leaf: &LeafRow<'_>) -> bool {
        let tag = leaf.row.map_or(Tag::SETTLED, |row| row.tag);
        !leaf.memory_locks
            && match self.all.book().newest(tag, self.state.id(), self.fetched) {
                Newest::Settled | Newest::Committed(_) => true,
                Newest::Mine(_) => self.over_own,
                Newest::Busy(_) | Newest::Spilled => false,
            }
    }

    /// TXN-12: the row as it is to be judged.
    fn settled<'r>(&mut self, mut leaf: LeafRow<'r>) -> LeafRow<'r> {
        let Some(row) = leaf.row.as_mut().filter(|row| !row.tag.is_settled()) else { return leaf };
        if row.tag != self.asked.0 {
            self.asked = (row.tag, matches!(self.all.book().undo().state_with(row.tag, self.fetched), TagState::Gone));
        }
        if self.asked.1 {
            row.tag = Tag::SETTLED;
        }
        leaf
    }

    /// Gives the latest record its rows. Called before any wait, so that checkpoints and a rollback find all of them.
    fn save(&mut self) {
        assert!(self.closed.is_empty(), "RSH-4: {} records have changes that are not logged", self.closed.len());
        let Some(open) = &mut self.open else { return };
        open.save(self.all);
        if open.record.rows().is_none() {
            self.close();
        }
    }

    /// No more rows share the latest record.
    fn close(&mut self) {
        match self.open.take() {
            Some(open) if open.waiting.is_empty() => open.end(self.all),
            Some(open) => self.closed.push(open),
            None => {}
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
        let before = OnceLock::new();
        let leaf = self.settled(leaf);
        let permit = match Permit::at_once(&leaf, run.change) {
            Some(permit) => permit,
            None if self.may_judge(&leaf) => self.judge(n, &before).permit(&leaf, run.change, self.basis).ok()?,
            None => return None,
        };
        let alike = Alike::of(leaf.row, run.change, &permit);
        let (value, ghost) = (run.value(), matches!(run.change, Change::Delete { .. }));
        let judged = permit.judged;
        // RSH-1: behind a row with a higher key, as a join may give them, a record begins anew.
        let ascends = n.checked_sub(1).is_some_and(|before| self.changes[before].key < run.key);
        let shares = |o: &Open| o.alike == alike && o.page == leaf.page;
        let joins = alike.is_some() && ascends && self.open.as_ref().is_some_and(shares);
        if !joins {
            // BTR-23
            if fits == TagRoom::Last || fits == TagRoom::Shared && alike.is_none() {
                return None;
            }
            self.close();
            let (edit, record) = self.judge(n, &before).put(&leaf, run.change, (value, false), permit);
            let Edit::Put { tag, .. } = edit else { return None };
            let (page, rows) = (leaf.page, RunRows::default());
            self.open = Some(Open { tag, record, alike, page, waiting: n..n, first: None, rows });
        }
        let open = self.open.as_mut()?;
        if joins {
            open.join(run.key, leaf.row.map_or(&[][..], |row| row.value));
        }
        if open.waiting.is_empty() {
            open.waiting = n..n;
        }
        assert_eq!(open.waiting.end, n, "RSH-1: consecutive changes of their transaction");
        open.waiting.end = n + 1;
        self.decided += 1;
        self.judged = self.judged.max(judged);
        Some(RunPut { value, tag: open.tag, ghost, shares: alike.is_some() })
    }

    fn ghost(&self, n: usize) -> Option<&'a [u8]> {
        let open = self.open.as_ref()?;
        let RunChange { key, change: Change::Delete { moved_to: None } } = *self.changes.get(n)? else { return None };
        (open.alike == Some(Alike::Gone)).then_some(key)
    }

    fn join_ghosts(&mut self, n: usize, ghosts: RunGhosts<'_>) {
        let open = self.open.as_mut().expect("BTR-27: the last edit has a record");
        assert!(open.alike == Some(Alike::Gone) && open.waiting.end == n, "RSH-1: consecutive changes of one kind");
        open.join_ghosts(ghosts);
        open.waiting.end = n + ghosts.count();
        self.decided += ghosts.count();
    }

    fn logged(&mut self, from: usize, count: usize, positions: RunPositions) {
        assert_eq!(std::mem::take(&mut self.decided), count, "TXN-11: the changes that were decided on");
        for mut closed in self.closed.drain(..) {
            closed.enter(from, positions);
            closed.end(self.all);
        }
        let open = self.open.as_mut().expect("TXN-11: a change that was decided on has a record");
        open.enter(from, positions);
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
            asked: (Tag::SETTLED, true),
            open: None,
            closed: Vec::new(),
            decided: 0,
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
        assert_eq!(run.decided, 0, "TXN-11: a change that was decided on is logged");
        let judged = run.judged;
        if !mutation::active(Mutation::NoDepWaitErrors) {
            self.depends_on(judged);
        }
        Ok(done)
    }
}
