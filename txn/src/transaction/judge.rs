//! Decides, under the latch of the row's leaf, whether a transaction may change or lock a row, has to wait, or fails.
//!
//! # Invariants
//! - TXN-3: a row that another transaction has locked is not changed. Before it changes a row in a page with the hint "has memory locks",
//!   a writer asks the lock table under the page's latch. A transaction that enters a row lock sets the hint under the same latch.
//! - TXN-7: under repeatable read a transaction inserts a key whose since-deleted row its snapshot still shows only if its readers expect two
//!   rows at a key (VER-4). For any other reader an index entry for the old row would lead to the new one. Each of its changes at the key is then
//!   marked, so that a reader that meets any of them looks beneath all of them.
//! - TXN-8: a lock on a row that has ended is released at once. A transaction that waited for the row learns that the row is gone and
//!   blocks no other transaction, which may insert another row at the key meanwhile.
//! - TXN-9: an insert waits for a transaction that is changing the row at its key, never for one that only locks the row: a committed row
//!   refuses the insert, whether it is locked or not.
//! - TXN-10: a transaction that keeps one snapshot for all its statements (repeatable read) leaves a row's queue once a version is committed
//!   that its snapshot does not show: it judges the row again after each commit of a holder, and fails then instead of waiting for the
//!   next holder.
//! - TXN-13: a transaction that has changed a row takes no lock FOR KEY SHARE of it: its change stops every transaction that the lock would, and is undone no sooner than
//!   the lock, which came later, would be given back. So foreign keys between rows of one transaction take no memory for locks.
//! - TXN-16: an insert waits once for a transaction that has replaced a row at its key: when that has ended, a committed row stood there, which refuses the insert, also if another
//!   transaction has replaced that row since.
//! - TXN-6: if a transaction changes a row repeatedly, the newest tag carries the strongest lock mode; a reader that may skip that change
//!   may skip the earlier ones.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use clearway_storage::btree::{Edit, LeafRow, Row, Tree};
use clearway_storage::ids::{Lsn, Tag};
use clearway_storage::record::{Before, BeforeImage};

use super::{Basis, Change, Changed, LockedRow, Since};
use crate::error::TxnError;
use crate::lockmgr::{IfTaken, Implicit, LockMark, LockMode, LockScope, LockTag, PendingLock, Request, RequestState};
use crate::mutation::{self, Mutation};
use crate::mvcc::book::{Link, Newest, View, Visible};
use crate::mvcc::fate::Fate;
use crate::mvcc::record::{NewUndo, UndoRecord};
use crate::mvcc::state::TxnState;
use crate::mvcc::undo::{Fetched, TagState};
use crate::transactions::Transactions;

/// The outcome of one attempt to change a row.
pub(super) enum Attempt<'m> {
    /// Done or refused; with the commit LSN of the version that was judged, and whether that version was the transaction's own.
    Finished {
        changed: Changed,
        record: Option<Arc<UndoRecord>>,
        judged: Lsn,
        over_own: bool,
    },
    Wait(PendingLock<'m>),
    Fetch(Tag),
    /// Judge the row again.
    Again,
    /// The row that was read has ended at its key (TXN-8).
    Ended,
    /// An insert has to wait for the end of this transaction (TXN-9). With the commit of the row that stood there before, if that is what it has only replaced (TXN-16).
    Writer(Implicit, Option<Lsn>),
    Refused,
}

/// What a change that may be made is to be kept with.
pub(super) struct Permit {
    pub(super) strength: LockMode,
    pub(super) over_shown: bool,
    pub(super) link: Link,
    /// The commit LSN of the version that was judged, and whether that version was the transaction's own.
    pub(super) judged: Lsn,
    pub(super) over_own: bool,
}

impl Permit {
    /// For a row of which every transaction sees the newest version, or its absence, and which none has: nothing that [`Judge::permit`] asks would object.
    /// Most rows are such. None: that has to be asked.
    #[inline]
    pub(super) fn at_once(leaf: &LeafRow<'_>, change: Change<'_>) -> Option<Permit> {
        let tag = leaf.row.map_or(Tag::SETTLED, |row| row.tag);
        let stands = leaf.row.is_some_and(|row| !row.ghost);
        let is_easy = tag.is_settled() && !leaf.memory_locks && stands != matches!(change, Change::Insert { .. });
        is_easy.then(|| Permit {
            strength: strength_of(change),
            over_shown: false,
            link: Link { prev: Tag::SETTLED, before_lsn: Lsn::ZERO, intact_since: Lsn::ZERO },
            judged: Lsn::ZERO,
            over_own: false,
        })
    }
}

/// The standing changes of a transaction that is changing a row.
struct Writing<'n> {
    first: Arc<UndoRecord>,
    newest: &'n Arc<UndoRecord>,
    /// The position of the first of them that is as strong as the newest.
    strong: u32,
}

/// Judges the newest version of a row under its leaf's latch.
pub(super) struct Judge<'m, 'a> {
    pub(super) all: &'m Transactions,
    pub(super) state: &'a Arc<TxnState>,
    pub(super) tree: &'a Tree,
    pub(super) key: &'a [u8],
    pub(super) if_taken: IfTaken,
    pub(super) fetched: &'a Fetched,
    pub(super) snapshot: Option<Lsn>,
    /// A row may be put over one that the snapshot shows (TXN-7).
    pub(super) over_shown: bool,
    /// For a lock: which row at the key is meant.
    pub(super) since: Option<&'a Since>,
    /// The mark of the transaction's locks before its first request for this row.
    pub(super) before: &'a OnceLock<LockMark>,
}

/// The outcome of one attempt to lock a row.
pub(super) enum LockAttempt<'m> {
    Locked(LockedRow, Lsn),
    Absent,
    Wait(PendingLock<'m>),
    Fetch(Tag),
    Refused,
    /// The transaction's snapshot shows a version that has been replaced: no wait can change that.
    Doomed(TxnError, Lsn),
}

impl<'m> Judge<'m, '_> {
    /// Asks the lock table for the row. `busy`: the writer that so far only the row's tag names is entered as a holder first.
    fn ask(&self, mode: LockMode, busy: Option<&Writing<'_>>) -> Result<RequestState<'m>, ()> {
        self.before.get_or_init(|| self.state.owner().mark().after_changes(self.state.position()));
        let implicit = busy.map(|writing| Implicit {
            owner: writing.newest.live().owner().clone(),
            txn: writing.newest.live().id(),
            mode: writing.newest.strength,
            change: writing.strong,
            earlier: (writing.first.position < writing.strong)
                .then_some((writing.first.strength, writing.first.position)),
        });
        let request = Request {
            owner: self.state.owner(),
            tag: LockTag::Row { tree: self.tree.id(), key: self.key.into() },
            mode,
            scope: LockScope::Transaction,
            if_taken: self.if_taken,
            implicit,
            looks: self.snapshot.is_some(),
        };
        self.all.locks().begin(&request).map_err(|_| ())
    }

    pub(super) fn change<'v>(
        &self,
        leaf: LeafRow<'_>,
        change: Change<'_>,
        basis: Basis,
        value: &'v [u8],
        overflow: bool,
    ) -> (Edit<'v>, Attempt<'m>) {
        match self.permit(&leaf, change, basis) {
            Ok(permit) => {
                let (judged, over_own) = (permit.judged, permit.over_own);
                let (edit, record) = self.put(&leaf, change, (value, overflow), permit);
                (edit, Attempt::Finished { changed: Changed::Done, record: Some(record), judged, over_own })
            }
            Err(outcome) => outcome,
        }
    }

    /// Whether a change may be made now; else what is to be done instead.
    pub(super) fn permit(
        &self,
        leaf: &LeafRow<'_>,
        change: Change<'_>,
        basis: Basis,
    ) -> Result<Permit, (Edit<'static>, Attempt<'m>)> {
        let strength = strength_of(change);
        let tag = leaf.row.map_or(Tag::SETTLED, |r| r.tag);
        if let Some(permit) = Permit::at_once(leaf, change) {
            return Ok(permit);
        }
        let newest = self.all.book().newest(tag, self.state.id(), self.fetched);
        let judged = match &newest {
            Newest::Spilled => return Err((Edit::Keep, Attempt::Fetch(tag))),
            Newest::Committed(lsn) => *lsn,
            _ => Lsn::ZERO,
        };
        let busy = match self.busy(&newest) {
            Ok(busy) => busy,
            Err(spilled) => return Err((Edit::Keep, Attempt::Fetch(spilled))),
        };
        let outcome = match (change, basis) {
            (Change::Insert { .. }, _) => self.in_the_way(leaf, &newest, busy.as_ref()),
            (_, Basis::Read(view)) => self.superseded(tag, &view, &newest, busy.as_ref()),
            _ => None,
        };
        if let Some(outcome) = outcome {
            return Err((Edit::Keep, outcome));
        }
        // TXN-3. What no transaction has locked or waits for needs no holder in the lock table either: a transaction that asks for the row comes under this
        // latch, later, and finds the tag.
        let in_table = leaf.memory_locks && self.all.locks().knows_row(self.tree.id(), self.key);
        if in_table || busy.is_some() {
            match self.ask(strength, busy.as_ref()) {
                Err(()) => return Err((Edit::Keep, Attempt::Refused)),
                Ok(RequestState::Queued(pending)) => return Err((Edit::SetMemoryLockHint, Attempt::Wait(pending))),
                // The writer ended between the reading of its status and the request.
                Ok(RequestState::Granted(_)) if busy.is_some() => {
                    return Err((Edit::SetMemoryLockHint, Attempt::Again));
                }
                Ok(RequestState::Granted(_)) => {}
            }
        }
        match self.refuse(leaf, change, basis, &newest) {
            Ok(Some(no)) => return Err((Edit::Keep, refused(no, judged))),
            Ok(None) => {}
            Err(spilled) => return Err((Edit::Keep, Attempt::Fetch(spilled))),
        }
        let mine = match self.own_change(&newest, tag) {
            Ok(mine) => mine,
            Err(spilled) => return Err((Edit::Keep, Attempt::Fetch(spilled))),
        };
        let strength = self.strength_with(strength, mine.as_deref(), in_table);
        let over_shown = match (&mine, change) {
            (Some(mine), _) => Ok(mine.over_shown),
            (None, Change::Insert { .. }) => self.shows_a_row(leaf, &newest),
            (None, _) => Ok(false),
        };
        let over_shown = match over_shown {
            Ok(over_shown) => over_shown,
            Err(spilled) => return Err((Edit::Keep, Attempt::Fetch(spilled))),
        };
        let link = match self.all.book().link(tag, self.fetched) {
            Ok(link) => link,
            Err(spilled) => return Err((Edit::Keep, Attempt::Fetch(spilled))),
        };
        let over_own = matches!(newest, Newest::Mine(_));
        Ok(Permit { strength, over_shown, link, judged, over_own })
    }

    /// Whether a change that stands in the row's queue has its outcome (TXN-10): it would not enter the queue any more.
    pub(super) fn settles_change(&self, leaf: &LeafRow<'_>, basis: Basis) -> bool {
        let (Basis::Read(view), Some(row)) = (basis, leaf.row) else { return false };
        let newest = self.all.book().newest(row.tag, self.state.id(), self.fetched);
        match self.busy(&newest) {
            Ok(busy) => self.superseded(row.tag, &view, &newest, busy.as_ref()).is_some(),
            Err(_) => true,
        }
    }

    /// The same for a lock.
    pub(super) fn settles_lock(&self, leaf: &LeafRow<'_>, mode: LockMode) -> bool {
        let Some(row) = leaf.row else { return true };
        let newest = self.all.book().newest(row.tag, self.state.id(), self.fetched);
        match self.busy(&newest) {
            Ok(busy) => !matches!(self.judge_fate(&row, mode, &newest, busy.as_ref()), Ok(None)),
            Err(_) => true,
        }
    }

    /// The changes of the transaction that is changing the row.
    fn busy<'n>(&self, newest: &'n Newest) -> Result<Option<Writing<'n>>, Tag> {
        match newest {
            Newest::Busy(newest) => {
                let (first, strong) = self.all.book().changes_of(newest, self.fetched)?;
                Ok(Some(Writing { first, newest, strong }))
            }
            _ => Ok(None),
        }
    }

    /// Keeps the undo of the change and returns the edit that puts the new version in place.
    pub(super) fn put<'v>(
        &self,
        leaf: &LeafRow<'_>,
        change: Change<'_>,
        (value, overflow): (&'v [u8], bool),
        Permit { strength, over_shown, link, .. }: Permit,
    ) -> (Edit<'v>, Arc<UndoRecord>) {
        let (deletes, moved_to) = match change {
            Change::Delete { moved_to } => (true, moved_to.map(Into::into)),
            _ => (false, None),
        };
        let stands = leaf.row.is_some_and(|row| !row.ghost);
        assert!(
            stands != matches!(change, Change::Insert { .. }),
            "TXN-3: an insert finds no row at its key, an update or a delete finds one"
        );
        let before = image_of(leaf);
        self.state.superseded(self.tree.id(), &before);
        let (new_tag, record) = self.all.book().undo().push(
            self.state.id().0 as usize,
            NewUndo {
                txn: self.state.clone(),
                tree: self.tree.id(),
                key: self.key.into(),
                before,
                prev: link.prev,
                before_lsn: link.before_lsn,
                strength,
                deletes,
                rowless: false,
                over_shown,
                moved_to,
                intact_since: link.intact_since,
            },
        );
        let edit = Edit::Put { value: Cow::Borrowed(value), tag: new_tag, ghost: deletes, overflow };
        (edit, record)
    }

    /// Why an insert cannot proceed regardless of locks: a running writer at the key, or a committed row (TXN-9).
    fn in_the_way(&self, leaf: &LeafRow<'_>, newest: &Newest, busy: Option<&Writing<'_>>) -> Option<Attempt<'m>> {
        match newest {
            Newest::Busy(record) => {
                let stands = leaf.row.is_some_and(|row| !row.ghost);
                let over_row =
                    |first: &UndoRecord| matches!(first.before_of(self.key), Before::Row { ghost: false, .. });
                let replaced = busy.filter(|writing| stands && over_row(&writing.first));
                let writer = Implicit {
                    owner: record.live().owner().clone(),
                    txn: record.live().id(),
                    mode: LockMode::Exclusive,
                    change: record.position,
                    earlier: None,
                };
                Some(Attempt::Writer(writer, replaced.map(|writing| writing.first.before_lsn)))
            }
            Newest::Settled | Newest::Committed(_) if mutation::active(Mutation::InsertWaitsForLocker) => None,
            Newest::Settled | Newest::Committed(_) if leaf.row.is_some_and(|r| !r.ghost) => {
                let judged = if let Newest::Committed(lsn) = newest { *lsn } else { Lsn::ZERO };
                Some(refused(Changed::Exists { mine: false }, judged))
            }
            _ => None,
        }
    }

    /// The outcome of a change that is settled without a request for a lock: the row that was read has ended, or the transaction's own
    /// snapshot shows a version that was replaced, which no wait can make current again.
    fn superseded(&self, tag: Tag, view: &View, newest: &Newest, busy: Option<&Writing<'_>>) -> Option<Attempt<'m>> {
        if !self.is_replaced(newest, busy, view.read_lsn) {
            return None;
        }
        match self.fate(tag, &view.into()) {
            Err(spilled) => Some(Attempt::Fetch(spilled)),
            Ok(fate) if fate.end.is_some() => Some(Attempt::Ended),
            Ok(_) if self.snapshot.is_some() => {
                let judged = if let Newest::Committed(lsn) = newest { *lsn } else { Lsn::ZERO };
                Some(refused(Changed::Newer, judged))
            }
            Ok(_) => None,
        }
    }

    /// Whether a change may have been committed over the version that stood there at `since`.
    fn may_have_changed(&self, tag: Tag, since: &Since) -> bool {
        match self.all.book().newest(tag, self.state.id(), self.fetched) {
            Newest::Committed(lsn) => lsn >= since.moment.commit,
            Newest::Settled | Newest::Mine(_) => false,
            Newest::Busy(_) | Newest::Spilled => true,
        }
    }

    fn fate(&self, tag: Tag, since: &Since) -> Result<Fate, Tag> {
        self.all.book().fate(tag, since.moment, (self.state.id(), since.mark), self.fetched)
    }

    /// Whether the newest committed version is younger than a snapshot.
    fn is_replaced(&self, newest: &Newest, busy: Option<&Writing<'_>>, read_lsn: Lsn) -> bool {
        match (newest, busy) {
            (Newest::Committed(lsn), _) => *lsn > read_lsn,
            (_, Some(writing)) => writing.first.before_lsn > read_lsn,
            _ => false,
        }
    }

    /// The transaction's own change that the new one replaces.
    ///
    /// # Errors
    /// The tag of its record if the record has to be fetched from the spill file first.
    fn own_change(&self, newest: &Newest, tag: Tag) -> Result<Option<Arc<UndoRecord>>, Tag> {
        if !matches!(newest, Newest::Mine(_)) {
            return Ok(None);
        }
        match self.all.book().undo().state_with(tag, self.fetched) {
            TagState::InMemory(mine) => Ok(Some(mine)),
            TagState::Spilled(_) => Err(tag),
            TagState::Gone => Ok(None),
        }
    }

    /// The lock mode for the new tag (TXN-6). The transaction's own lock counts: after FOR UPDATE, a change of the row is as strong as that.
    fn strength_with(&self, strength: LockMode, mine: Option<&UndoRecord>, memory_locks: bool) -> LockMode {
        let locked = || self.all.locks().holds_row(self.state.owner(), self.tree.id(), self.key, LockMode::RowUpdate);
        if memory_locks && strength < LockMode::RowUpdate && locked() {
            return LockMode::RowUpdate;
        }
        match mine {
            Some(mine) if !mutation::active(Mutation::LatestStrength) => strength.max(mine.strength),
            _ => strength,
        }
    }

    /// Why the change is refused, if it is.
    ///
    /// # Errors
    /// The tag of a record that has to be fetched from the spill file first.
    fn refuse(
        &self,
        leaf: &LeafRow<'_>,
        change: Change<'_>,
        basis: Basis,
        newest: &Newest,
    ) -> Result<Option<Changed>, Tag> {
        let live = leaf.row.is_some_and(|r| !r.ghost);
        if let Change::Insert { .. } = change {
            return match live {
                true => Ok(Some(Changed::Exists { mine: matches!(newest, Newest::Mine(_)) })),
                false if self.over_shown => Ok(None),
                false => self.shows_a_row(leaf, newest).map(|shows| shows.then_some(Changed::Newer)),
            };
        }
        Ok(match (basis, newest) {
            (Basis::Read(view), Newest::Mine(position)) if *position >= view.mark => Some(Changed::Again),
            (Basis::Read(view), Newest::Committed(lsn)) if *lsn > view.read_lsn => Some(Changed::Newer),
            _ if !live => Some(Changed::Newer),
            _ => None,
        })
    }

    /// Whether the transaction's snapshot shows a row where the ghost of another transaction stands (TXN-7).
    fn shows_a_row(&self, leaf: &LeafRow<'_>, newest: &Newest) -> Result<bool, Tag> {
        let (Some(read_lsn), Some(row), Newest::Committed(deleted)) = (self.snapshot, leaf.row, newest) else {
            return Ok(false);
        };
        let view = View { read_lsn, ..View::default() };
        if *deleted <= read_lsn || mutation::active(Mutation::RowOverDeleted) {
            return Ok(false);
        }
        match self.all.book().resolve(row.tag, &view, &mut Lsn::default(), self.fetched) {
            Visible::Older(record) => Ok(record.keeps_live_row()),
            Visible::Spilled(tag) => Err(tag),
            _ => Ok(false),
        }
    }

    pub(super) fn lock(&self, leaf: LeafRow<'_>, mode: LockMode) -> (Edit<'static>, LockAttempt<'m>) {
        let Some(row) = leaf.row else {
            return (Edit::Keep, LockAttempt::Absent);
        };
        let book = self.all.book();
        let newest = book.newest(row.tag, self.state.id(), self.fetched);
        if matches!(newest, Newest::Spilled) {
            return (Edit::Keep, LockAttempt::Fetch(row.tag));
        }
        let busy = match self.busy(&newest) {
            Ok(busy) => busy,
            Err(spilled) => return (Edit::Keep, LockAttempt::Fetch(spilled)),
        };
        match self.judge_fate(&row, mode, &newest, busy.as_ref()) {
            Ok(None) => {}
            Ok(Some(outcome)) => return (Edit::Keep, outcome),
            Err(spilled) => return (Edit::Keep, LockAttempt::Fetch(spilled)),
        }
        let has_tag = mode == LockMode::RowKeyShare && matches!(newest, Newest::Mine(_)); // TXN-13
        let edit = if has_tag { Edit::Keep } else { Edit::SetMemoryLockHint };
        let asked = if has_tag { None } else { Some(self.ask(mode, busy.as_ref())) };
        let dep_lsn = match asked {
            None => Lsn::ZERO,
            Some(Err(())) => return (Edit::Keep, LockAttempt::Refused),
            Some(Ok(RequestState::Queued(pending))) => return (edit, LockAttempt::Wait(pending)),
            Some(Ok(RequestState::Granted(granted))) => granted.dep_lsn,
        };
        let mut locked = LockedRow {
            value: row.value.to_vec(),
            overflow: row.overflow,
            ghost: row.ghost,
            commit: Lsn::ZERO,
            mine: None,
            moved_to: None,
            fate: Fate::default(),
        };
        if let Some(since) = self.since.filter(|since| !row.tag.is_settled() && self.may_have_changed(row.tag, since)) {
            match self.fate(row.tag, since) {
                Ok(fate) => locked.fate = fate,
                Err(spilled) => return (edit, LockAttempt::Fetch(spilled)),
            }
        }
        match book.newest(row.tag, self.state.id(), self.fetched) {
            // The record was spilled since the first look. The lock is held already, so the next attempt is granted at once.
            Newest::Spilled => return (edit, LockAttempt::Fetch(row.tag)),
            Newest::Committed(lsn) => {
                locked.commit = lsn;
                if let TagState::InMemory(record) = book.undo().state_with(row.tag, self.fetched) {
                    locked.moved_to = record.moved_to().map(Into::into);
                }
            }
            Newest::Mine(position) => locked.mine = Some(position),
            Newest::Settled => {}
            // A running writer whose change is compatible with the lock: the change does not touch what the lock protects.
            // The version before that change is the newest committed one.
            Newest::Busy(record) => match book.first_of(&record, self.fetched) {
                Ok(first) => before_of(&first, self.key, &mut locked),
                Err(spilled) => return (edit, LockAttempt::Fetch(spilled)),
            },
        }
        (edit, LockAttempt::Locked(locked, dep_lsn))
    }

    /// The outcome of a lock that needs no request: the row that was meant has ended, or the transaction's snapshot shows a replaced version.
    fn judge_fate(
        &self,
        row: &Row<'_>,
        mode: LockMode,
        newest: &Newest,
        busy: Option<&Writing<'_>>,
    ) -> Result<Option<LockAttempt<'m>>, Tag> {
        let at_same = |since: &Since| u64::from(since.moment.position < u32::MAX);
        let Some(since) = self.since else { return Ok(None) };
        // If the row was moved to this key, later changes by the commit that moved it count, too.
        if !self.is_replaced(newest, busy, Lsn(since.moment.commit.0 - at_same(since))) {
            return Ok(None);
        }
        let fate = self.fate(row.tag, since)?;
        let replaced = self.snapshot.is_some_and(|snapshot| self.is_replaced(newest, busy, snapshot));
        if replaced && (mode != LockMode::RowKeyShare || fate.key_changed) {
            let judged = if let Newest::Committed(lsn) = newest { *lsn } else { Lsn::ZERO };
            let deleted = fate.end.is_some_and(|end| end.moved_to.is_none());
            let error = if deleted { TxnError::ConcurrentDelete } else { TxnError::ConcurrentUpdate };
            return Ok(Some(LockAttempt::Doomed(error, judged)));
        }
        if fate.end.is_none() {
            return Ok(None);
        }
        let commit = if let Newest::Committed(lsn) = newest { *lsn } else { Lsn::ZERO };
        let (value, overflow, ghost, mine, moved_to) = (Vec::new(), false, true, None, None);
        Ok(Some(LockAttempt::Locked(LockedRow { value, overflow, ghost, commit, mine, moved_to, fate }, Lsn::ZERO)))
    }
}

/// Nothing was changed.
fn refused<'m>(changed: Changed, judged: Lsn) -> Attempt<'m> {
    Attempt::Finished { changed, record: None, judged, over_own: false }
}

/// The mode of the lock that a change implies.
fn strength_of(change: Change<'_>) -> LockMode {
    match change {
        Change::Insert { .. } => LockMode::RowNoKeyUpdate,
        Change::Update { strength, .. } => strength,
        Change::Delete { .. } => LockMode::RowUpdate,
    }
}

/// The before-image of what stands in the leaf.
fn image_of(leaf: &LeafRow<'_>) -> BeforeImage {
    leaf.row.map_or(BeforeImage::Absent, |r| BeforeImage::Row {
        ghost: r.ghost,
        overflow: r.overflow,
        value: r.value.into(),
    })
}

/// Fills `locked` with the version before a change that is still in progress.
fn before_of(record: &UndoRecord, key: &[u8], locked: &mut LockedRow) {
    match record.before_of(key) {
        Before::Absent => locked.ghost = true,
        Before::Row { ghost, overflow, value } => {
            locked.value = value.to_vec();
            locked.ghost = ghost;
            locked.overflow = overflow;
            locked.commit = record.before_lsn;
        }
    }
}
