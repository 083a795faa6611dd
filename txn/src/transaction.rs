//! One transaction: what it sees, what it changes, how far it can go back.
//!
//! # Life of a transaction
//! begin -> reads (no id, nothing shared is written) -> first change: an id -> changes, savepoints -> commit, or roll back -> end.
//! Changing a row is one edit of its leaf: under the leaf's latch the newest version is judged, a conflicting writer is queued for, or the
//! new version is put in place with its undo; so nobody comes between judgement and change.
//!
//! # Invariants
//! - TXN-2: what a statement sees of its own transaction are the changes below its mark, so it never meets its own rows again.
//! - TXN-3: a row that another transaction has locked is not changed: whoever changes a row in a page that bears the hint "has memory locks"
//!   asks the lock table under the page's latch, and the hint is set, under the same latch, by whoever puts a row's lock there.
//! - TXN-4: changes are undone latest first, each with a compensation record, before the locks that protect them go.

use std::borrow::Cow;
use std::sync::Arc;

use clearway_storage::btree::{Edit, LeafRow, Tree};
use clearway_storage::ids::{Lsn, Tag, TreeId, TxnId};
use clearway_storage::record::{BeforeImage, TxnLog, UndoEntry};
use clearway_storage::recovery::{Loser, end_abort, undo_one};
use clearway_storage::space::TreeKind;

use crate::error::TxnError;
use crate::lockmgr::{Begun, IfTaken, Implicit, LockMark, LockMode, LockScope, LockTag, Owner, PendingLock, Request};
use crate::mvcc::book::{Newest, View};
use crate::mvcc::record::{NewUndo, UndoRecord};
use crate::mvcc::state::TxnState;
use crate::mvcc::undo::{Fetched, Look};
use crate::transactions::Transactions;

/// Why the caller believes that it knows the row that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// It has read the row in a view; if the newest version is another one, nothing is changed.
    Read(View),
    /// It has locked the row and read the newest version since.
    Locked,
}

/// A change of one row.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// A row where there is none.
    Insert {
        /// Its value.
        value: &'a [u8],
    },
    /// Another value.
    Update {
        /// The new value.
        value: &'a [u8],
        /// The lock that it amounts to.
        strength: LockMode,
    },
    /// No row any more.
    Delete {
        /// Where the row went, if its key was changed.
        moved_to: Option<&'a [u8]>,
    },
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is done.
    Done,
    /// Nothing was changed: the newest version is not the one that was read, or there is none. Lock the row and look again.
    Newer,
    /// Nothing was inserted: a row stands there. `mine`: this transaction put it there.
    Exists {
        /// Whether this transaction wrote it.
        mine: bool,
    },
    /// Nothing was changed: this statement changed the row already.
    Again,
}

/// The newest version of a row that is locked now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedRow {
    /// Its value; a reference if `overflow`. Empty for a ghost.
    pub value: Vec<u8>,
    /// The value is a reference to an overflow chain.
    pub overflow: bool,
    /// The row has been deleted.
    pub ghost: bool,
    /// When its newest version was committed; zero if everybody sees it or it is the transaction's own.
    pub commit: Lsn,
    /// The version is the transaction's own change at this position.
    pub mine: Option<u32>,
    /// If it was deleted by a change of its key: the new one.
    pub moved_to: Option<Box<[u8]>>,
}

/// A place in the transaction to which it can go back.
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
    dep_lsn: Lsn,
}

enum Attempt<'m> {
    Finished(Changed, Option<Arc<UndoRecord>>),
    Wait(PendingLock<'m>),
    Fetch(Tag),
    Refused,
}

impl Transaction {
    /// Begins; nothing is written before the first change.
    pub fn begin(all: Arc<Transactions>, owner: Arc<Owner>, read_only: bool) -> Transaction {
        owner.begin();
        Transaction { all, owner, state: None, log: TxnLog::default(), read_only, dep_lsn: Lsn::ZERO }
    }

    /// A transaction that a restart found unfinished: to be rolled back. Its undo is put where its rows' tags lead.
    pub fn adopt(all: Arc<Transactions>, owner: Arc<Owner>, loser: Loser) -> Transaction {
        owner.begin();
        let state = TxnState::new(loser.log.txn, owner.clone());
        owner.set_txn(state.id());
        state.moved(&loser.log);
        for entry in &loser.entries {
            let new = NewUndo {
                txn: state.clone(),
                tree: entry.tree,
                key: entry.key.clone(),
                before: entry.before.clone(),
                prev: entry.prev_tag,
                before_lsn: Lsn::ZERO,
                // The strongest that it may have been.
                strength: LockMode::RowUpdate,
                deletes: false,
                rowless: entry.tag.is_settled(),
                moved_to: None,
            };
            if entry.tag.is_settled() {
                let (_, record) = all.book().undo().push(state.id().0 as usize, new);
                record.logged(entry.lsn, entry.undo_next);
            } else {
                all.book().undo().restore(entry.tag, entry, new);
            }
        }
        all.book().adopt(&state);
        let dep_lsn = Lsn::ZERO;
        Transaction { all, owner, state: Some(state), log: loser.log, read_only: false, dep_lsn }
    }

    /// Creates an empty tree; it goes if the transaction is rolled back.
    ///
    /// # Errors
    /// From the store.
    pub async fn create_tree(&mut self) -> Result<TreeId, TxnError> {
        let state = self.assign()?;
        let store = self.all.store().clone();
        let (tree, entry) = store.create_tree(&mut self.log, TreeKind::Logged).await?;
        self.keep_undo(&state, entry);
        state.moved(&self.log);
        Ok(tree)
    }

    /// Keeps the undo of something that is no row.
    fn keep_undo(&self, state: &Arc<TxnState>, entry: UndoEntry) {
        let new = NewUndo {
            txn: state.clone(),
            tree: entry.tree,
            key: entry.key,
            before: entry.before,
            prev: entry.prev_tag,
            before_lsn: Lsn::ZERO,
            strength: LockMode::RowNoKeyUpdate,
            deletes: false,
            rowless: true,
            moved_to: None,
        };
        let (_, record) = self.all.book().undo().push(state.id().0 as usize, new);
        record.logged(entry.lsn, entry.undo_next);
    }

    /// Its id, if it has changed something.
    pub fn id(&self) -> Option<TxnId> {
        self.state.as_ref().map(|s| s.id())
    }

    /// Its session.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Changes nothing any more, or may again.
    pub fn set_read_only(&mut self, read_only: bool) {
        self.read_only = read_only;
    }

    /// All transactions.
    pub fn all(&self) -> &Arc<Transactions> {
        &self.all
    }

    /// The highest commit that anything it was told depends on; replies wait until that is durable.
    pub fn dep_lsn(&self) -> Lsn {
        self.dep_lsn
    }

    /// Notes that a reply depends on a commit.
    pub fn depends_on(&mut self, lsn: Lsn) {
        self.dep_lsn = self.dep_lsn.max(lsn);
    }

    /// What a statement sees that reads at `read_lsn`: TXN-2.
    pub fn view(&self, read_lsn: Lsn) -> View {
        let (txn, mark) = self.state.as_ref().map_or((TxnId::NONE, 0), |s| (s.id(), s.position()));
        View { read_lsn, txn, mark }
    }

    /// An id, at the first change.
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

    /// The transaction's place in the log, for what the store itself changes on its behalf (trees created).
    pub fn log(&mut self) -> &mut TxnLog {
        &mut self.log
    }

    /// Changes a row, waiting for whoever is changing or has locked it.
    ///
    /// # Errors
    /// `LockNotAvailable` if told not to wait; `Deadlock`; what the tree says.
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
        // A chain to which no row leads goes at once: a commit would leave it behind.
        if !matches!(done, Ok(Changed::Done)) {
            self.undo_changes(before).await?;
        }
        done
    }

    /// The change with what stands in the leaf afterwards: the value, or a reference to its chain.
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
        let mut fetched = Fetched::default();
        loop {
            let judge = Judge { all: &all, state, tree, key, if_taken, fetched: &fetched };
            let prev_lsn = self.log.last_lsn;
            let (attempt, logged) = tree
                .edit(&mut self.log, key, value.len(), |leaf| judge.change(leaf, change, basis, value, overflow))
                .await?;
            match attempt {
                Attempt::Finished(changed, record) => {
                    if let (Some(record), Some(range)) = (record, logged) {
                        record.logged(range.start, prev_lsn);
                        state.moved(&self.log);
                    }
                    return Ok(changed);
                }
                Attempt::Wait(pending) => {
                    let granted = pending.wait().await?;
                    self.depends_on(granted.dep_lsn);
                }
                Attempt::Fetch(tag) => all.book().fetch(tag, &mut fetched).await?,
                Attempt::Refused => return Err(TxnError::LockNotAvailable),
            }
        }
    }

    /// Writes a value too long for a leaf into a chain of pages, which a rollback frees.
    async fn write_chain(&mut self, state: &Arc<TxnState>, tree: &Tree, value: &[u8]) -> Result<[u8; 16], TxnError> {
        let mut undo = Vec::new();
        let written = tree.write_overflow(&mut self.log, Tag::SETTLED, value, &mut undo).await;
        // Also what was written before it failed has to be undone.
        for entry in undo {
            self.keep_undo(state, entry);
        }
        state.moved(&self.log);
        Ok(written?)
    }

    /// Locks a row and returns its newest version; `None` if there is no row with this key. An absent row is not locked.
    ///
    /// # Errors
    /// `LockNotAvailable` if told not to wait; `Deadlock`; what the tree says.
    pub async fn lock_row(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        if_taken: IfTaken,
    ) -> Result<Option<LockedRow>, TxnError> {
        let state = self.assign()?;
        let all = self.all.clone();
        let mut fetched = Fetched::default();
        loop {
            let judge = Judge { all: &all, state: &state, tree, key, if_taken, fetched: &fetched };
            let (attempt, _) = tree.edit(&mut self.log, key, 0, |leaf| judge.lock(leaf, mode)).await?;
            match attempt {
                LockAttempt::Locked(row, dep_lsn) => {
                    self.depends_on(dep_lsn);
                    self.depends_on(row.commit);
                    return Ok(Some(row));
                }
                LockAttempt::Absent => return Ok(None),
                LockAttempt::Wait(pending) => {
                    let granted = pending.wait().await?;
                    self.depends_on(granted.dep_lsn);
                }
                LockAttempt::Fetch(tag) => all.book().fetch(tag, &mut fetched).await?,
                LockAttempt::Refused => return Err(TxnError::LockNotAvailable),
            }
        }
    }

    /// Where the transaction stands.
    pub fn mark(&self) -> Mark {
        Mark { changes: self.state.as_ref().map_or(0, |s| s.changes()), locks: self.owner.mark() }
    }

    /// Goes back to a mark: undoes changes, latest first, then gives up the locks taken since (TXN-4).
    ///
    /// # Errors
    /// From the trees; the database is then unusable, since a rollback has what it needs set aside.
    pub async fn roll_back_to(&mut self, mark: Mark) -> Result<(), TxnError> {
        self.undo_changes(mark.changes).await?;
        self.all.locks().release_to(&self.owner, mark.locks);
        Ok(())
    }

    async fn undo_changes(&mut self, left: usize) -> Result<(), TxnError> {
        let Some(state) = self.state.clone() else {
            return Ok(());
        };
        let book = self.all.book().clone();
        let mut fetched = Fetched::default();
        while state.changes() > left {
            let Some(tag) = state.last_change() else {
                break;
            };
            match book.undo().look_with(tag, &fetched) {
                Look::Gone => _ = state.pop_change(),
                Look::Spilled(_) => {
                    // The changes of one transaction lie side by side.
                    fetched.clear();
                    book.fetch(tag, &mut fetched).await?;
                }
                Look::Here(record) => {
                    if record.lsn() != Lsn::ZERO {
                        undo_one(self.all.store(), &mut self.log, &record.entry(tag)).await?;
                        state.moved(&self.log);
                    }
                    state.pop_change();
                    if !record.rowless {
                        state.restored(&record.before);
                    }
                    book.forget(tag, &record).await?;
                }
            }
        }
        Ok(())
    }

    /// Ends it for good: everybody sees its changes from now on, and its locks are gone. Returns the commit LSN if it changed
    /// anything; a client may hear of it when the log is durable up to that.
    ///
    /// # Errors
    /// If the log takes no more; the transaction is then still to be rolled back.
    ///
    /// `publish` is called with the commit LSN before the locks go.
    pub async fn commit(&mut self, body: &[u8], publish: impl FnOnce(Lsn) + Send) -> Result<Option<Lsn>, TxnError> {
        let Some(state) = self.state.clone() else {
            self.all.locks().release_transaction(&self.owner, self.dep_lsn);
            return Ok(None);
        };
        let lsn = self.all.commit(&state, &mut self.log, body, publish).await?;
        self.state = None;
        Ok(Some(lsn))
    }

    /// Undoes everything and ends it.
    ///
    /// # Errors
    /// As [`Transaction::roll_back_to`].
    pub async fn roll_back(&mut self) -> Result<(), TxnError> {
        self.undo_changes(0).await?;
        if let Some(state) = self.state.take() {
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

/// Judges the newest version of a row under its leaf's latch.
struct Judge<'m, 'a> {
    all: &'m Transactions,
    state: &'a Arc<TxnState>,
    tree: &'a Tree,
    key: &'a [u8],
    if_taken: IfTaken,
    fetched: &'a Fetched,
}

enum LockAttempt<'m> {
    Locked(LockedRow, Lsn),
    Absent,
    Wait(PendingLock<'m>),
    Fetch(Tag),
    Refused,
}

impl<'m> Judge<'m, '_> {
    /// Asks the lock table for the row, on behalf of a writer whom only the row's tag names as well.
    fn ask(&self, mode: LockMode, busy: Option<&UndoRecord>) -> Result<Begun<'m>, ()> {
        let implicit = busy.map(|record| Implicit {
            owner: record.live().owner().clone(),
            txn: record.live().id(),
            mode: record.strength,
            change: record.position,
        });
        let request = Request {
            owner: self.state.owner(),
            tag: LockTag::Row { tree: self.tree.id(), key: self.key.into() },
            mode,
            scope: LockScope::Transaction,
            if_taken: self.if_taken,
            implicit,
        };
        self.all.locks().begin(&request).map_err(|_| ())
    }

    fn change<'v>(
        &self,
        leaf: LeafRow<'_>,
        change: Change<'_>,
        basis: Basis,
        value: &'v [u8],
        overflow: bool,
    ) -> (Edit<'v>, Attempt<'m>) {
        let strength = match change {
            Change::Insert { .. } => LockMode::RowNoKeyUpdate,
            Change::Update { strength, .. } => strength,
            Change::Delete { .. } => LockMode::RowUpdate,
        };
        let tag = leaf.row.map_or(Tag::SETTLED, |r| r.tag);
        let newest = self.all.book().newest(tag, self.state.id(), self.fetched);
        let busy = match &newest {
            Newest::Spilled => return (Edit::Keep, Attempt::Fetch(tag)),
            Newest::Busy(record) => Some(&**record),
            _ => None,
        };
        // TXN-3
        if leaf.memory_locks || busy.is_some() {
            match self.ask(strength, busy) {
                Err(()) => return (Edit::Keep, Attempt::Refused),
                Ok(Begun::Queued(pending)) => {
                    return (Edit::SetMemoryLockHint, Attempt::Wait(pending));
                }
                // The writer ended between the look at its status and the request.
                Ok(Begun::Granted(_)) if busy.is_some() => {
                    return (Edit::SetMemoryLockHint, Attempt::Finished(Changed::Newer, None));
                }
                Ok(Begun::Granted(_)) => {}
            }
        }
        if let Some(no) = self.refuse(&leaf, change, basis, &newest) {
            return (Edit::Keep, Attempt::Finished(no, None));
        }
        let (prev, before_lsn) = match self.all.book().link(tag, self.fetched) {
            Ok(link) => link,
            Err(spilled) => return (Edit::Keep, Attempt::Fetch(spilled)),
        };
        let (deletes, moved_to) = match change {
            Change::Delete { moved_to } => (true, moved_to.map(Into::into)),
            _ => (false, None),
        };
        let before = leaf.row.map_or(BeforeImage::Absent, |r| BeforeImage::Row {
            ghost: r.ghost,
            overflow: r.overflow,
            value: r.value.into(),
        });
        self.state.superseded(self.tree.id(), &before);
        let (new_tag, record) = self.all.book().undo().push(
            self.state.id().0 as usize,
            NewUndo {
                txn: self.state.clone(),
                tree: self.tree.id(),
                key: self.key.into(),
                before,
                prev,
                before_lsn,
                strength,
                deletes,
                rowless: false,
                moved_to,
            },
        );
        let edit = Edit::Put { value: Cow::Borrowed(value), tag: new_tag, ghost: deletes, overflow };
        (edit, Attempt::Finished(Changed::Done, Some(record)))
    }

    /// Why nothing is to be changed, if so.
    fn refuse(&self, leaf: &LeafRow<'_>, change: Change<'_>, basis: Basis, newest: &Newest) -> Option<Changed> {
        let live = leaf.row.is_some_and(|r| !r.ghost);
        if let Change::Insert { .. } = change {
            return live.then_some(Changed::Exists { mine: matches!(newest, Newest::Mine(_)) });
        }
        match (basis, newest) {
            (Basis::Read(view), Newest::Mine(position)) if *position >= view.mark => Some(Changed::Again),
            (Basis::Read(view), Newest::Committed(lsn)) if *lsn > view.read_lsn => Some(Changed::Newer),
            _ if !live => Some(Changed::Newer),
            _ => None,
        }
    }

    fn lock(&self, leaf: LeafRow<'_>, mode: LockMode) -> (Edit<'static>, LockAttempt<'m>) {
        let Some(row) = leaf.row else {
            return (Edit::Keep, LockAttempt::Absent);
        };
        let book = self.all.book();
        let newest = book.newest(row.tag, self.state.id(), self.fetched);
        let busy = match &newest {
            Newest::Spilled => return (Edit::Keep, LockAttempt::Fetch(row.tag)),
            Newest::Busy(record) => Some(&**record),
            _ => None,
        };
        let dep_lsn = match self.ask(mode, busy) {
            Err(()) => return (Edit::Keep, LockAttempt::Refused),
            Ok(Begun::Queued(pending)) => {
                return (Edit::SetMemoryLockHint, LockAttempt::Wait(pending));
            }
            Ok(Begun::Granted(granted)) => granted.dep_lsn,
        };
        let mut locked = LockedRow {
            value: row.value.to_vec(),
            overflow: row.overflow,
            ghost: row.ghost,
            commit: Lsn::ZERO,
            mine: None,
            moved_to: None,
        };
        match book.newest(row.tag, self.state.id(), self.fetched) {
            // Spilled between the two looks: the lock is held by now, and is granted at once the next time.
            Newest::Spilled => return (Edit::SetMemoryLockHint, LockAttempt::Fetch(row.tag)),
            Newest::Committed(lsn) => {
                locked.commit = lsn;
                if let Look::Here(record) = book.undo().look_with(row.tag, self.fetched) {
                    locked.moved_to = record.moved_to.clone();
                }
            }
            Newest::Mine(position) => locked.mine = Some(position),
            Newest::Settled => {}
            // A writer whose change is compatible with the lock: what it changes is not what the lock protects; the version
            // before its change is the newest committed one.
            Newest::Busy(record) => before_of(&record, &mut locked),
        }
        (Edit::SetMemoryLockHint, LockAttempt::Locked(locked, dep_lsn))
    }
}

/// The version before a change that is still in progress.
fn before_of(record: &UndoRecord, locked: &mut LockedRow) {
    match &record.before {
        BeforeImage::Absent => locked.ghost = true,
        BeforeImage::Row { ghost, overflow, value } => {
            locked.value = value.to_vec();
            locked.ghost = *ghost;
            locked.overflow = *overflow;
            locked.commit = record.before_lsn;
        }
    }
}
