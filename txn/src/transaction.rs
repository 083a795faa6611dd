//! One transaction: its view, its changes of rows, its row locks, and its rollback.
//!
//! # Life of a transaction
//! begin -> reads (no id, nothing shared is written) -> first change: an id -> changes, savepoints -> commit, or roll back -> end.
//! A change of a row is one edit of its leaf. Under the leaf's latch the newest version is judged; then either the transaction enters the
//! wait queue of a conflicting writer, or the new version is put in place with its undo. No other transaction can act in between.
//!
//! # Invariants
//! - TXN-2: of its own transaction's changes a statement sees those below its mark. So it never sees a row that it has written itself.
//! - TXN-4: changes are undone latest first, each with a compensation record, before the locks that protect them are released.
//! - TXN-1 and 5 in mvcc/state.rs, TXN-3, 6 to 10, 13 and 16 in judge.rs, TXN-11 and 12 in run.rs, TXN-14 and 15 in first_place.rs.

mod created;
mod first_place;
mod judge;
pub mod load;
mod outcome;
mod run;
mod waits;

use std::sync::{Arc, OnceLock};

use clearway_base::sync::yield_now;
use clearway_storage::btree::{Edit, LeafRow, Tree};
use clearway_storage::ids::{Lsn, Tag, TxnId};
use clearway_storage::record::{TxnLog, UndoEntry};
use clearway_storage::recovery::Loser;
use clearway_storage::seams::BoxFuture;
use clearway_storage::undo::{end_abort, undo_one};

use crate::error::TxnError;
use crate::lockmgr::{IfTaken, Implicit, LockMark, LockMode, LockScope, LockTag, Owner, Request};
use crate::mutation::{self, Mutation};
use crate::mvcc::book::View;
use crate::mvcc::record::NewUndo;
use crate::mvcc::state::TxnState;
use crate::mvcc::undo::{Fetched, TagState};
use crate::transactions::Transactions;
use created::CreatedTrees;
pub use first_place::FirstPlace;
use first_place::InsertWaits;
use judge::{Attempt, Judge, LockAttempt};
pub use outcome::{Basis, Change, Changed, LockedRow, Since};
pub use run::RunChange;

/// So many rows are changed, or undone, before other tasks may go on.
const BREATH_ROWS: usize = 256;

/// A point in the transaction to which it can roll back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    changes: usize,
    locks: LockMark,
}

/// A transaction.
pub struct Transaction {
    all: Arc<Transactions>,
    owner: Arc<Owner>,
    state: Option<Arc<TxnState>>,
    log: TxnLog,
    read_only: bool,
    snapshot: Option<Lsn>,
    /// It may put a row over one that its snapshot shows (TXN-7).
    over_shown: bool,
    dep_lsn: Lsn,
    /// Spans read from the spill file, kept for the next rows.
    fetched: Fetched,
    /// The latest change replaced a version of its own transaction.
    over_own: bool,
    /// The trees that it has created.
    created: CreatedTrees,
}

impl Transaction {
    /// Begins a transaction. It writes nothing before its first change.
    pub fn begin(all: Arc<Transactions>, owner: Arc<Owner>, read_only: bool) -> Transaction {
        owner.begin();
        Transaction {
            all,
            owner,
            state: None,
            log: TxnLog::default(),
            read_only,
            snapshot: None,
            over_shown: false,
            dep_lsn: Lsn::ZERO,
            fetched: Fetched::default(),
            over_own: false,
            created: CreatedTrees::default(),
        }
    }

    /// Begins another transaction of the same session in the place of an ended one. Allocates nothing and touches no shared counter.
    pub fn begin_again(&mut self, read_only: bool, now_ns: u64) {
        assert!(self.state.is_none(), "it has ended");
        self.owner.begin_at(now_ns);
        self.log = TxnLog::default();
        self.snapshot = None;
        self.read_only = read_only;
        self.dep_lsn = Lsn::ZERO;
        self.created.clear();
    }

    /// Adopts a transaction that a restart found unfinished, to roll it back. Each undo record is stored under the tag that its row carries.
    pub fn adopt(all: Arc<Transactions>, owner: Arc<Owner>, loser: Loser) -> Transaction {
        owner.begin();
        let state = TxnState::new(loser.log.txn, owner.clone());
        owner.set_txn(state.id());
        state.moved(&loser.log);
        // RSH-1
        for entries in loser.entries.chunk_by(|a, b| a.tag == b.tag && !a.tag.is_settled()) {
            let entry = &entries[0];
            let new = NewUndo {
                txn: state.clone(),
                tree: entry.tree,
                key: (&entry.key[..]).into(),
                before: entry.before.clone(),
                // RSH-2
                prev: if entries.len() > 1 { Tag::SETTLED } else { entry.prev_tag },
                before_lsn: Lsn::ZERO,
                // The strongest mode that the change may have implied.
                strength: LockMode::RowUpdate,
                deletes: false,
                rowless: entry.tag.is_settled(),
                over_shown: false,
                moved_to: None,
                intact_since: Lsn(u64::MAX),
            };
            if entry.tag.is_settled() {
                let (_, record) = all.book().undo().push(state.id().0 as usize, new);
                record.logged(entry.lsn, entry.undo_next);
            } else {
                all.book().undo().restore(entry.tag, entries, new);
            }
        }
        all.book().adopt(&state);
        let log = loser.log;
        Transaction {
            all,
            owner,
            state: Some(state),
            log,
            read_only: false,
            snapshot: None,
            over_shown: false,
            dep_lsn: Lsn::ZERO,
            fetched: Fetched::default(),
            over_own: false,
            created: CreatedTrees::default(),
        }
    }

    /// Its id, if it has changed something.
    pub fn id(&self) -> Option<TxnId> {
        self.state.as_ref().map(|s| s.id())
    }

    /// How many bytes of undo its changes have written.
    pub fn undo_bytes(&self) -> u64 {
        self.state.as_ref().map_or(0, |s| s.undo_bytes())
    }

    /// Its session.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Forbids the transaction further changes, or permits them again.
    pub fn set_read_only(&mut self, read_only: bool) {
        self.read_only = read_only;
    }

    /// Fixes the snapshot of the whole transaction. `over_shown`: whether it may insert a row at a key where the snapshot shows a row that was
    /// deleted since (TXN-7).
    pub fn set_snapshot(&mut self, read_lsn: Lsn, over_shown: bool) {
        self.snapshot = Some(read_lsn);
        self.over_shown = over_shown;
    }

    /// Whether all its statements read at one snapshot.
    pub fn keeps_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// All transactions.
    pub fn all(&self) -> &Arc<Transactions> {
        &self.all
    }

    /// The highest commit LSN on which a reply of this transaction depends; replies wait until it is durable.
    pub fn dep_lsn(&self) -> Lsn {
        self.dep_lsn
    }

    /// Notes that a reply depends on a commit.
    #[inline]
    pub fn depends_on(&mut self, lsn: Lsn) {
        self.dep_lsn = self.dep_lsn.max(lsn);
    }

    /// The view of a statement that reads at `read_lsn` (TXN-2).
    #[inline]
    pub fn view(&self, read_lsn: Lsn) -> View {
        let (txn, mark) = self.state.as_ref().map_or((TxnId::NONE, 0), |s| (s.id(), s.position()));
        View { read_lsn, txn, mark }
    }

    /// The transaction's state; the first call assigns the id.
    ///
    /// # Errors
    /// `ReadOnly`.
    pub fn assign(&mut self) -> Result<Arc<TxnState>, TxnError> {
        if self.read_only {
            return Err(TxnError::ReadOnly);
        }
        if self.state.is_none() {
            let state = self.all.assign(&self.owner);
            self.log = TxnLog::new(state.id());
            self.state = Some(state);
        }
        Ok(self.state.clone().expect("just assigned"))
    }

    /// The transaction's place in the log, for changes that the store makes on its behalf (it creates trees).
    pub fn log(&mut self) -> &mut TxnLog {
        &mut self.log
    }

    /// Whether the latest change replaced a version that this transaction had written.
    pub fn over_own(&self) -> bool {
        self.over_own
    }

    /// Sets what [`Transaction::over_own`] says: of the changes that make up one, the caller names the row's.
    pub fn set_over_own(&mut self, over_own: bool) {
        self.over_own = over_own;
    }

    /// Changes a row, after waiting for transactions that are changing it or have locked it.
    ///
    /// # Errors
    /// `LockNotAvailable` if told not to wait; `Deadlock`; errors of the tree.
    pub async fn change(
        &mut self,
        tree: &Tree,
        key: &[u8],
        change: Change<'_>,
        basis: Basis,
        if_taken: IfTaken,
    ) -> Result<Changed, TxnError> {
        let state = self.assign()?;
        // BUD-1
        self.all.book().admit().await?;
        let value = match change {
            Change::Insert { value } | Change::Update { value, .. } => value,
            Change::Delete { .. } => &[],
        };
        if value.len() <= Tree::inline_max(key.len()) {
            return self.put(&state, tree, key, change, basis, if_taken, (value, false)).await;
        }
        let before = state.changes();
        let reference = self.write_chain(&state, tree, value).await?;
        let done = self.put(&state, tree, key, change, basis, if_taken, (&reference, true)).await;
        // A chain to which no row refers is freed at once: a commit would leak it.
        if !matches!(done, Ok(Changed::Done)) {
            self.undo_changes(before).await?;
        }
        done
    }

    /// Makes the change. `value` is what then stands in the leaf: the row's value, or with `overflow` the reference to its chain.
    #[allow(clippy::too_many_arguments, reason = "the parts of one change, from one caller")]
    async fn put(
        &mut self,
        state: &Arc<TxnState>,
        tree: &Tree,
        key: &[u8],
        change: Change<'_>,
        basis: Basis,
        if_taken: IfTaken,
        (value, overflow): (&[u8], bool),
    ) -> Result<Changed, TxnError> {
        let all = self.all.clone();
        self.fetched.trim();
        let (since, before, mut waits) = (None, OnceLock::new(), InsertWaits::default());
        loop {
            let judge = Judge {
                all: &all,
                state,
                tree,
                key,
                if_taken,
                fetched: &self.fetched,
                snapshot: self.snapshot,
                over_shown: self.over_shown,
                since,
                before: &before,
            };
            let prev_lsn = self.log.last_lsn;
            let (attempt, logged) = tree
                .edit(&mut self.log, key, value.len(), |leaf| judge.change(leaf, change, basis, value, overflow))
                .await?;
            match attempt {
                Attempt::Finished { changed, record, judged, over_own } => {
                    self.over_own = over_own;
                    // A refusal is a reply, too, and depends on the version that was judged.
                    if !mutation::active(Mutation::NoDepWaitErrors) {
                        self.depends_on(judged);
                    }
                    if let (Some(record), Some(range)) = (record, logged) {
                        record.logged(range.start, prev_lsn);
                        state.moved(&self.log);
                    }
                    return Ok(changed);
                }
                Attempt::Wait(mut pending) => loop {
                    waits.place = None; // TXN-15
                    if let Some(granted) = pending.next().await? {
                        self.depends_on(granted.dep_lsn);
                        break;
                    }
                    // TXN-10: a place in the queue that the row's present version makes useless is given up.
                    let look = |leaf: LeafRow<'_>| (Edit::Keep, judge.settles_change(&leaf, basis));
                    if tree.edit(&mut self.log, key, value.len(), look).await?.0 {
                        break;
                    }
                },
                Attempt::Fetch(tag) => all.book().fetch(tag, &mut self.fetched).await?,
                Attempt::Again => {}
                Attempt::Ended => break,
                Attempt::Writer(writer, replaced) => {
                    if self.wait_to_insert((tree.id(), key), &mut waits, (writer, replaced)).await? {
                        return Ok(Changed::Exists { mine: false });
                    }
                }
                Attempt::Refused => return Err(TxnError::LockNotAvailable),
            }
        }
        self.give_back(&before);
        Ok(Changed::Newer)
    }

    /// Writes a value too long for a leaf into a chain of pages, which a rollback frees.
    async fn write_chain(&mut self, state: &Arc<TxnState>, tree: &Tree, value: &[u8]) -> Result<[u8; 16], TxnError> {
        let all = self.all.clone();
        // Undo is kept for each piece: a checkpoint may come between two pieces, and after a failure the earlier pieces are undone.
        let mut keep = |log: &TxnLog, entry: UndoEntry| {
            keep_undo(&all, state, entry);
            state.moved(log);
        };
        Ok(tree.write_overflow(&mut self.log, Tag::SETTLED, value, &mut keep).await?)
    }

    /// Releases the locks taken since this mark (TXN-8).
    fn give_back(&self, before: &OnceLock<LockMark>) {
        if let Some(mark) = before.get() {
            self.all.locks().release_to(&self.owner, *mark);
        }
    }

    /// Waits for the end of a transaction by a share lock on its id, released at once.
    ///
    /// # Errors
    /// `Deadlock`.
    pub async fn wait_for(&mut self, writer: Implicit) -> Result<(), TxnError> {
        let (owner, all) = (self.owner.clone(), self.all.clone());
        let tag = LockTag::Transaction(writer.txn);
        let request = Request {
            owner: &owner,
            tag: tag.clone(),
            mode: LockMode::Share,
            scope: LockScope::Session,
            if_taken: IfTaken::Wait,
            implicit: Some(writer),
            looks: false,
        };
        let granted = all.locks().acquire(request).await?;
        all.locks().release_one(&owner, &tag, LockMode::Share);
        self.depends_on(granted.dep_lsn);
        Ok(())
    }

    /// Locks a row and returns its newest version; `None` if no row stands at the key. Neither an absent nor a deleted row stays locked
    /// (TXN-8). With `since`, the row that stood at the key then is meant; without it, any row that stands there.
    ///
    /// # Errors
    /// `LockNotAvailable` if told not to wait; `Deadlock`; errors of the tree.
    pub async fn lock_row(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        if_taken: IfTaken,
        since: Option<&Since>,
    ) -> Result<Option<LockedRow>, TxnError> {
        if let Some(locks) = self.owner.locks_without_room() {
            return Err(TxnError::LocksWithoutRoom { locks });
        }
        let state = self.assign()?;
        let all = self.all.clone();
        self.fetched.trim();
        let before = OnceLock::new();
        loop {
            let judge = Judge {
                all: &all,
                state: &state,
                tree,
                key,
                if_taken,
                fetched: &self.fetched,
                snapshot: self.snapshot.filter(|_| since.is_some()),
                over_shown: false,
                since,
                before: &before,
            };
            let (attempt, _) = tree.edit(&mut self.log, key, 0, |leaf| judge.lock(leaf, mode)).await?;
            match attempt {
                LockAttempt::Locked(row, dep_lsn) => {
                    self.depends_on(dep_lsn);
                    let left_out = if row.ghost { Mutation::NoDepWaitGhosts } else { Mutation::NoDepWaitRows };
                    if !mutation::active(left_out) {
                        self.depends_on(row.commit);
                    }
                    if row.fate.unknown {
                        return Err(TxnError::ConcurrentUpdate);
                    }
                    if row.ghost && row.mine.is_none() || row.fate.end.is_some() {
                        self.give_back(&before);
                    }
                    return Ok(Some(row));
                }
                LockAttempt::Absent => return Ok(None),
                LockAttempt::Wait(mut pending) => loop {
                    if let Some(granted) = pending.next().await? {
                        self.depends_on(granted.dep_lsn);
                        break;
                    }
                    // TXN-10
                    let look = |leaf: LeafRow<'_>| (Edit::Keep, judge.settles_lock(&leaf, mode));
                    if tree.edit(&mut self.log, key, 0, look).await?.0 {
                        break;
                    }
                },
                LockAttempt::Fetch(tag) => all.book().fetch(tag, &mut self.fetched).await?,
                LockAttempt::Refused => return Err(TxnError::LockNotAvailable),
                LockAttempt::Doomed(error, judged) => {
                    self.depends_on(judged);
                    return Err(error);
                }
            }
        }
    }

    /// The current point of the transaction, for a savepoint.
    pub fn mark(&self) -> Mark {
        let (changes, position) = self.state.as_ref().map_or((0, 0), |s| (s.changes(), s.position()));
        Mark { changes, locks: self.owner.mark().after_changes(position) }
    }

    /// Rolls back to a mark: undoes changes, latest first, then releases the locks taken since (TXN-4).
    ///
    /// # Errors
    /// From the trees. A rollback has its log space set aside, so an error means that the database is unusable.
    pub async fn roll_back_to(&mut self, mark: Mark) -> Result<(), TxnError> {
        self.undo_changes(mark.changes).await?;
        self.all.locks().release_to(&self.owner, mark.locks);
        Ok(())
    }

    async fn undo_changes(&mut self, left: usize) -> Result<(), TxnError> {
        let Some(state) = self.state.clone() else {
            return Ok(());
        };
        assert!(left <= state.changes(), "TXN-4: {left} changes are to stay of {}", state.changes());
        self.undo_down_to(state, left).await
    }

    /// Undoes changes, the latest first, until `left` are there. The future is boxed, so that its code is compiled in this crate only.
    fn undo_down_to(&mut self, state: Arc<TxnState>, left: usize) -> BoxFuture<'_, Result<(), TxnError>> {
        Box::pin(self.undo_one_by_one(state, left))
    }

    async fn undo_one_by_one(&mut self, state: Arc<TxnState>, left: usize) -> Result<(), TxnError> {
        let book = self.all.book().clone();
        self.created.back_to(left);
        let mut breath = BREATH_ROWS;
        while state.changes() > left {
            let Some(tag) = state.last_change() else {
                break;
            };
            match book.undo().state_with(tag, &self.fetched) {
                TagState::Gone => _ = state.pop_change(),
                TagState::Spilled(_) => {
                    // The changes of one transaction lie side by side.
                    self.fetched.clear();
                    book.fetch(tag, &mut self.fetched).await?;
                }
                TagState::InMemory(record) => {
                    let is_run = record.rows().is_some();
                    for entry in record.entries(tag).iter().rev() {
                        // A rollback that was broken off has undone the later rows of the run.
                        if entry.lsn != Lsn::ZERO && !(is_run && entry.lsn > self.log.last_lsn) {
                            undo_one(self.all.store(), &mut self.log, entry).await?;
                            state.moved(&self.log);
                            breath = breath.saturating_sub(1);
                        }
                    }
                    state.pop_change();
                    if !record.rowless {
                        record.restored_chain(&state);
                    }
                    book.forget(tag, &record).await?;
                    // Pages that are in memory give no wait in which others could run.
                    if breath == 0 {
                        breath = BREATH_ROWS;
                        yield_now().await;
                    }
                }
            }
        }
        Ok(())
    }

    /// Commits: makes the changes visible and releases the locks. Returns the commit LSN if the transaction changed anything; a client is
    /// told only when the log is durable up to that LSN.
    ///
    /// # Errors
    /// If the log accepts no more records. The caller then has to roll back.
    ///
    /// `publish` is called with the commit LSN before the locks are released.
    pub async fn commit(&mut self, body: &[u8], publish: impl FnOnce(Lsn) + Send) -> Result<Option<Lsn>, TxnError> {
        self.fetched.clear();
        self.created.check()?;
        let Some(state) = self.state.clone() else {
            self.all.locks().release_transaction(&self.owner, self.dep_lsn);
            return Ok(None);
        };
        assert!(self.log.txn == state.id(), "{:?} commits with the log of {:?}", state.id(), self.log.txn);
        let lsn = self.all.commit(&state, &mut self.log, body, publish).await?;
        self.state = None;
        Ok(Some(lsn))
    }

    /// Ends a transaction that changed nothing, without a wait.
    ///
    /// # Panics
    /// If the transaction has an id.
    pub fn end_unchanged(&mut self) {
        assert!(self.state.is_none(), "nothing was changed");
        self.all.locks().release_transaction(&self.owner, self.dep_lsn);
    }

    /// Undoes all changes and ends the transaction.
    ///
    /// # Errors
    /// As [`Transaction::roll_back_to`].
    pub async fn roll_back(&mut self) -> Result<(), TxnError> {
        self.undo_changes(0).await?;
        self.fetched.clear();
        if let Some(state) = self.state.take() {
            assert_eq!(state.changes(), 0, "TXN-4: what is aborted has been undone");
            if self.log.first_lsn != Lsn::ZERO {
                end_abort(self.all.store().wal(), &mut self.log).await?;
            }
            state.aborted();
            self.all.book().end(state.id());
        }
        self.all.locks().release_transaction(&self.owner, self.dep_lsn);
        Ok(())
    }
}

/// Keeps the undo of a change that no row's tag names (a tree, a chain of pages).
fn keep_undo(all: &Transactions, state: &Arc<TxnState>, entry: UndoEntry) {
    let new = NewUndo {
        txn: state.clone(),
        tree: entry.tree,
        key: entry.key.into(),
        before: entry.before,
        prev: entry.prev_tag,
        before_lsn: Lsn::ZERO,
        strength: LockMode::RowNoKeyUpdate,
        deletes: false,
        rowless: true,
        over_shown: false,
        moved_to: None,
        intact_since: Lsn(u64::MAX),
    };
    let (_, record) = all.book().undo().push(state.id().0 as usize, new);
    record.logged(entry.lsn, entry.undo_next);
}
