//! The book of versions: finds the version of a row that a view sees, and the newest version for a writer.
//!
//! # Life of a version
//! A version is written with a tag -> its transaction commits -> every snapshot sees it: its undo record is freed, the tag is settled ->
//! the next change of the page strips the tag from the row, or purges the ghost.
//!
//! # Invariants
//! - VER-1: a reader walks the versions of a row newest first. It sees the first version that its own transaction wrote below its mark,
//!   or that was committed at or below its snapshot.
//! - VER-2: tags are stripped and ghosts purged only for commits at or below min(every open snapshot, durable_lsn). The image of a version is
//!   dropped only if the commit of its successor is durable and no open snapshot is between the two commits.
//! - VER-3: a writer treats a version committed above `visible_lsn` as one whose transaction still runs. So the next statement of the
//!   writer's transaction sees every version on which the writer has acted.
//! - VER-4: a transaction that keeps a snapshot may put a row at a key where the snapshot shows a row that another transaction has deleted
//!   since (TXN-7). Its reader then sees two rows there: the version that VER-1 gives, and besides the one that its snapshot shows beneath
//!   the transaction's changes. No other row has more than one version for one reader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clearway_base::sync::{Bare, Mutex, assert_no_latches};
use clearway_storage::error::StorageError;
use clearway_storage::ids::{Lsn, Tag, TxnId};
use clearway_storage::record::{BeforeImage, UndoEntry};
use clearway_storage::seams::{ActiveTxn, ActiveTxns, BoxFuture, Versions};

use super::budget::Budget;
use super::ended::Ended;
use super::fate::{Passed, intact_behind};
use super::prune::{Pruner, Purgeable};
use super::record::UndoRecord;
use super::snapshots::Snapshots;
use super::span::Span;
use super::state::{Status, TxnState};
use super::undo::{Fetched, TagState, UndoStore};
use crate::lockmgr::Owner;

/// The records of a span.
type Decoded = Vec<(Tag, Arc<UndoRecord>)>;

/// The state of a row's newest version, for a transaction that wants to change or check the row.
#[derive(Clone, Debug)]
pub enum Newest {
    /// Every snapshot sees it.
    Settled,
    /// Committed at this LSN.
    Committed(Lsn),
    /// The asking transaction's own change at this position.
    Mine(u32),
    /// Another transaction that still runs wrote it.
    Busy(Arc<UndoRecord>),
    /// Its undo record stands in the spill file: fetch the record, then ask again.
    Spilled,
}

/// What a reader may see: a snapshot, and its own transaction's changes up to a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Commits at or below this are seen.
    pub read_lsn: Lsn,
    /// The reader's own transaction, if it has an id.
    pub txn: TxnId,
    /// Of its own changes, those below this position are seen.
    pub mark: u32,
}

/// What a reader sees of a row.
#[derive(Debug)]
pub enum Visible {
    /// The version in the leaf.
    Current,
    /// The older version that this record keeps.
    Older(Arc<UndoRecord>),
    /// Two rows (VER-4): the transaction's own version, which the record keeps or, without one, the leaf, and which may be a ghost; and the row
    /// that the snapshot shows besides, kept by the record of the change that ended its version.
    Both {
        /// The transaction's own version.
        own: Option<Arc<UndoRecord>>,
        /// The row of the snapshot.
        shown: Arc<UndoRecord>,
    },
    /// No version.
    Nothing,
    /// The undo record with this tag stands in the spill file: fetch it, then read the row again.
    Spilled(Tag),
}

/// What a new version points back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The tag of the version before.
    pub prev: Tag,
    /// When the version that it replaces was committed.
    pub before_lsn: Lsn,
    /// No change of the row that was committed after this moment ended the row or changed its key columns (FAT-3).
    pub intact_since: Lsn,
}

/// Undo records and snapshots together.
#[derive(Debug)]
pub struct VersionBook {
    pub(super) undo: UndoStore,
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) pruner: Pruner,
    pub(super) budget: Budget,
    pub(super) active: Mutex<Active>,
    next_txn: AtomicU64,
    section: Mutex<()>,
    visible_lsn: AtomicU64,
}

/// The transactions that change something, and how the latest others have ended (EIT-1).
#[derive(Debug)]
pub(super) struct Active {
    pub(super) states: BTreeMap<TxnId, Arc<TxnState>>,
    pub(super) ended: Ended,
}

impl VersionBook {
    /// An empty book whose tags lie above `high_water`.
    pub fn new(high_water: Tag) -> VersionBook {
        VersionBook {
            undo: UndoStore::new(high_water),
            snapshots: Arc::new(Snapshots::new()),
            pruner: Pruner::default(),
            budget: Budget::default(),
            active: Mutex::new("txn/mvcc/active", Active { states: BTreeMap::new(), ended: Ended::new() }),
            next_txn: AtomicU64::new(1),
            section: Mutex::new("txn/commit/section", ()),
            visible_lsn: AtomicU64::new(0),
        }
    }

    /// The commit section: under it one transaction at a time reserves its commit record and stores its status. A checkpoint lists the
    /// active transactions under it, too. The code under it keeps to COM-2.
    pub fn section(&self) -> &Mutex<()> {
        &self.section
    }

    /// Commits at or below this are visible to readers that do not insist on durability.
    #[inline]
    pub fn visible_lsn(&self) -> Lsn {
        Lsn(self.visible_lsn.load(Ordering::Acquire))
    }

    /// Makes commits up to `lsn` visible. Called inside the commit section, or while nothing else uses the book.
    ///
    /// # Panics
    /// If the visible LSN would go back: commits become visible in the order of the log.
    pub fn publish(&self, lsn: Lsn) {
        let before = self.visible_lsn.load(Ordering::Relaxed);
        assert!(before <= lsn.0, "COM-1: {lsn} becomes visible after {before}");
        self.visible_lsn.store(lsn.0, Ordering::Release);
    }

    /// No id at or below this is given out again.
    pub fn raise_txn(&self, high_water: TxnId) {
        self.next_txn.fetch_max(high_water.0 + 1, Ordering::Relaxed);
    }

    /// The id that the next transaction that changes something gets.
    pub fn next_txn(&self) -> TxnId {
        TxnId(self.next_txn.load(Ordering::Relaxed))
    }

    /// Begins a writing transaction. Checkpoints know it before it writes its first log record.
    pub fn begin(&self, owner: &Arc<Owner>) -> Arc<TxnState> {
        let mut active = self.active.lock();
        let state = TxnState::new(TxnId(self.next_txn.fetch_add(1, Ordering::Relaxed)), owner.clone());
        let before = active.states.insert(state.id(), state.clone());
        assert!(before.is_none(), "TXN-1: {:?} is active already", state.id());
        active.ended.begin(state.id());
        state
    }

    /// Adds a transaction that a restart found unfinished to the active ones.
    pub fn adopt(&self, state: &Arc<TxnState>) {
        let before = self.active.lock().states.insert(state.id(), state.clone());
        assert!(before.is_none(), "TXN-1: {:?} is active already", state.id());
    }

    /// Removes a transaction that has ended from the active ones.
    pub fn end(&self, txn: TxnId) {
        let mut active = self.active.lock();
        // The state may be freed: after the mutex.
        let state = active.states.remove(&txn);
        let status = state.as_ref().map_or(Status::Active, |state| state.status());
        active.ended.end(txn, status, self.next_txn()); // EIT-1
        drop(active);
        assert!(status != Status::Active, "TXN-1: {txn:?} ends once, after its status has changed");
    }

    /// The transactions that change something now, oldest first.
    pub fn active(&self) -> Vec<Arc<TxnState>> {
        self.active.lock().states.values().cloned().collect()
    }

    /// How many deleted rows can be removed from their trees.
    pub fn purgeable(&self) -> usize {
        self.pruner.purgeable()
    }

    /// Takes up to `count` of them off the list, those first that have waited longest.
    pub fn take_purgeable(&self, count: usize) -> Vec<Purgeable> {
        self.pruner.take_purgeable(count)
    }

    /// Puts rows on the list again that were not removed.
    pub fn purge_again(&self, rows: impl Iterator<Item = Purgeable>) {
        self.pruner.purge_again(rows);
    }

    /// The undo records.
    pub fn undo(&self) -> &UndoStore {
        &self.undo
    }

    /// The snapshots.
    pub fn snapshots(&self) -> &Arc<Snapshots> {
        &self.snapshots
    }

    /// The state of the newest version. The caller has the row's page latched, or re-validates the page afterwards.
    pub fn newest(&self, tag: Tag, me: TxnId, fetched: &Fetched) -> Newest {
        if tag.is_settled() {
            return Newest::Settled;
        }
        // UND-1: under the latch the row's tag is current, so a record that is gone belonged to a settled version.
        let record = match self.undo.state_with(tag, fetched) {
            TagState::Gone => return Newest::Settled,
            TagState::Spilled(_) => return Newest::Spilled,
            TagState::InMemory(record) => record,
        };
        match record.status() {
            // VER-3: a transaction still holds its locks between the storing of its status and the publishing of `visible_lsn`.
            Status::Committed(lsn) if lsn <= self.visible_lsn() => Newest::Committed(lsn),
            Status::Active if record.live().id() == me && me != TxnId::NONE => Newest::Mine(record.position),
            _ => Newest::Busy(record),
        }
    }

    /// The first standing change that a running transaction made to one row; `record` is its latest. The version before that first change
    /// is the newest that any other transaction may see.
    ///
    /// # Errors
    /// The tag of a record in the spill file that has to be fetched first.
    pub fn first_of(&self, record: &Arc<UndoRecord>, fetched: &Fetched) -> Result<Arc<UndoRecord>, Tag> {
        self.changes_of(record, fetched).map(|(first, _)| first)
    }

    /// The same, and the position of the first of these changes that is as strong as the latest (TXN-6).
    ///
    /// # Errors
    /// As [`Book::first_of`].
    pub fn changes_of(&self, record: &Arc<UndoRecord>, fetched: &Fetched) -> Result<(Arc<UndoRecord>, u32), Tag> {
        let (mut first, mut strong) = (record.clone(), record.position);
        loop {
            match self.undo.state_with(first.prev, fetched) {
                TagState::InMemory(before) if before.is_of(record) => {
                    assert!(before.position < first.position, "UND-3: {before:?}, then {first:?}");
                    if before.strength >= record.strength {
                        strong = before.position;
                    }
                    first = before;
                }
                TagState::Spilled(_) => return Err(first.prev),
                _ => return Ok((first, strong)),
            }
        }
    }

    /// Finds the version that `view` sees (VER-1). Raises `dep_lsn` to that version's commit LSN, or to a bound at or above it. The caller
    /// re-validates the page afterwards.
    pub fn resolve(&self, head: Tag, view: &View, dep_lsn: &mut Lsn, fetched: &Fetched) -> Visible {
        'again: loop {
            let mut tag = head;
            let mut last: Option<(Tag, Arc<UndoRecord>)> = None;
            let mut own = None;
            while !tag.is_settled() {
                let record = match self.undo.state_with(tag, fetched) {
                    TagState::InMemory(record) => record,
                    TagState::Gone if self.was_moved(last.as_ref().map(|(tag, record)| (tag, record))) => {
                        continue 'again;
                    }
                    TagState::Gone => break,
                    // SPN-2: in the common case the record itself need not be read.
                    TagState::Spilled(span) if span.through() <= view.read_lsn => {
                        *dep_lsn = span.through().max(*dep_lsn);
                        break;
                    }
                    TagState::Spilled(_) => return Visible::Spilled(tag),
                };
                match record.status() {
                    Status::Committed(lsn) if lsn <= view.read_lsn => {
                        *dep_lsn = lsn.max(*dep_lsn);
                        break;
                    }
                    Status::Active if record.live().id() == view.txn && record.position < view.mark => {
                        if record.over_shown {
                            own = Some(record);
                        }
                        break;
                    }
                    _ => {}
                }
                if record.before == BeforeImage::Absent && !record.dropped {
                    return Visible::Nothing;
                }
                last = Some((tag, record));
                tag = last.as_ref().map_or(Tag::SETTLED, |(_, record)| record.prev);
            }
            let older = last.map(|(_, older)| older);
            if let Some(older) = &older {
                assert!(!older.dropped, "PRU-2: {view:?} reads what {head:?} leads past: {older:?}");
            }
            return match (own, older) {
                (Some(own), older) => self.with_shown(&own, older, view, dep_lsn, fetched),
                (None, Some(older)) => Visible::Older(older),
                (None, None) => Visible::Current,
            };
        }
    }

    /// Adds to a version of the view's own transaction the row that the snapshot shows beneath its changes (VER-4). `change`: one of these
    /// changes; `older`: what keeps the version, unless it stands in the leaf.
    fn with_shown(
        &self,
        change: &Arc<UndoRecord>,
        older: Option<Arc<UndoRecord>>,
        view: &View,
        dep_lsn: &mut Lsn,
        fetched: &Fetched,
    ) -> Visible {
        let first = match self.first_of(change, fetched) {
            Ok(first) => first,
            Err(spilled) => return Visible::Spilled(spilled),
        };
        let beneath = View { read_lsn: view.read_lsn, ..View::default() };
        match self.resolve(first.prev, &beneath, dep_lsn, fetched) {
            Visible::Spilled(spilled) => Visible::Spilled(spilled),
            Visible::Older(shown) if matches!(shown.before, BeforeImage::Row { ghost: false, .. }) => {
                Visible::Both { own: older, shown }
            }
            // The view sees the ghost: it reads later than the transaction's snapshot.
            _ => older.map_or(Visible::Current, Visible::Older),
        }
    }

    /// Whether the record that led to a missing one was itself replaced or freed since, so that the row's chain must be walked again (PRU-3).
    pub(super) fn was_moved(&self, last: Option<(&Tag, &Arc<UndoRecord>)>) -> bool {
        last.is_some_and(|(tag, record)| {
            record.spot().is_none()
                && !matches!(self.undo.state(*tag), TagState::InMemory(now) if Arc::ptr_eq(&now, record))
        })
    }

    /// Reads the span with the record of a tag from the spill file into `fetched`. The caller holds no latch.
    ///
    /// # Errors
    /// From the file.
    pub async fn fetch(&self, tag: Tag, fetched: &mut Fetched) -> Result<(), StorageError> {
        if let TagState::Spilled(span) = self.undo.state_with(tag, fetched) {
            assert_no_latches();
            fetched.keep(&span, span.bytes().await?);
        }
        Ok(())
    }

    /// Frees a record whose change has been undone, in memory or in the spill file.
    ///
    /// # Errors
    /// From the file.
    pub async fn forget(&self, tag: Tag, record: &Arc<UndoRecord>) -> Result<(), StorageError> {
        if matches!(record.before, BeforeImage::Row { ghost: true, .. }) {
            // The change that put a row over the ghost has also taken away the record by which the ghost would have been purged.
            self.pruner.purge_later(record);
        }
        let mut fetched = Fetched::default();
        let mut record = record.clone();
        while !self.undo.free(tag, &record) {
            self.fetch(tag, &mut fetched).await?;
            match self.undo.state_with(tag, &fetched) {
                TagState::InMemory(now) => record = now,
                TagState::Spilled(_) => {}
                TagState::Gone => break,
            }
        }
        Ok(())
    }

    /// What a new version points back to when it replaces the version with `tag`. The link leads past versions that no snapshot can read,
    /// so a row's chain stays short however old the oldest snapshot is.
    ///
    /// # Errors
    /// The tag of a record in the spill file that has to be fetched first; nothing has been changed then.
    pub fn link(&self, head: Tag, fetched: &Fetched) -> Result<Link, Tag> {
        // All writers share the mutex of the horizon, and for most rows it is not needed.
        let mut horizon = None;
        let mut tag = head;
        let mut committed = Lsn::ZERO;
        let mut passed: Vec<(Tag, Lsn, Arc<UndoRecord>)> = Vec::new();
        let mut intact = None;
        let end = loop {
            if tag.is_settled() {
                break Tag::SETTLED;
            }
            let record = match self.undo.state_with(tag, fetched) {
                TagState::Gone if self.was_moved(passed.last().map(|(tag, _, record)| (tag, record))) => {
                    tag = passed.pop().map_or(Tag::SETTLED, |(at, _, _)| at);
                    continue;
                }
                TagState::Gone => break Tag::SETTLED,
                TagState::Spilled(_) => return Err(tag),
                TagState::InMemory(record) => record,
            };
            intact.get_or_insert_with(|| intact_behind(&record));
            let Status::Committed(lsn) = record.status() else {
                break tag;
            };
            committed = committed.max(lsn);
            let horizon = horizon.get_or_insert_with(|| self.snapshots.horizon());
            if horizon.covers(lsn) {
                break Tag::SETTLED;
            }
            if !horizon.reaches(lsn) || record.is_needed(lsn, horizon) {
                break tag;
            }
            let prev = record.prev;
            passed.push((tag, lsn, record));
            tag = prev;
        };
        // A version that every snapshot sees tells nothing about the row.
        let intact_since = intact.unwrap_or(Lsn::ZERO);
        // The new version may be rolled back, and the row then has the tag to which it points: what must be remembered stays where it is, and
        // the pruner sums it up in a committed record (FAT-2).
        if Passed::of(None, passed.iter().map(|(_, lsn, record)| (*lsn, &**record))).is_some() {
            return Ok(Link { prev: head, before_lsn: committed, intact_since });
        }
        for (at, _, record) in &passed {
            assert!(record.rows().is_none(), "RSH-2: other rows need {record:?}");
            // PRU-3: the pruner has replaced this record first; the new version points to the record that stands there now.
            if !self.undo.free(*at, record) {
                return Ok(Link { prev: *at, before_lsn: committed, intact_since });
            }
        }
        Ok(Link { prev: end, before_lsn: committed, intact_since })
    }

    /// The undo of a transaction up to a log record, oldest first; a spilled record is given as its span.
    fn undo_of(&self, state: &TxnState, last: Lsn) -> Vec<Undo> {
        let undo = |tag| match self.undo.state(tag) {
            TagState::Gone => Vec::new(),
            TagState::InMemory(record) => record.entries(tag).into_iter().map(Undo::Entry).collect(),
            TagState::Spilled(span) => vec![Undo::Spilled(tag, span)],
        };
        let logged = |undo: &Undo| match undo {
            Undo::Entry(entry) => entry.lsn != Lsn::ZERO && entry.lsn <= last,
            Undo::Spilled(..) => true,
        };
        state.all_changes().into_iter().flat_map(undo).filter(logged).collect()
    }

    /// The transactions that are active at one moment, each with its undo up to a log record that is no older than the checkpoint's begin
    /// or that was its last at that moment. Later records are found in the log (REC-2). Reads no file, so spilled records are read
    /// afterwards.
    ///
    /// The undo is gathered before the moment, outside the commit section: a transaction with a million changes would hold up every
    /// commit. If the transaction ends meanwhile, what was gathered may have gaps; it is thrown away.
    fn active_with_undo(&self, previous: Lsn) -> (ActiveTxns, Vec<Vec<Undo>>) {
        let mut gathered = Vec::new();
        for state in self.active() {
            let log = state.log();
            if state.status() != Status::Active || log.first_lsn == Lsn::ZERO {
                continue;
            }
            let undo = if log.first_lsn < previous { self.undo_of(&state, log.last_lsn) } else { Vec::new() };
            gathered.push((state, log, undo, false));
        }
        {
            let _section = self.section.lock();
            let _bare = Bare::begin("a checkpoint in the commit section"); // COM-2
            for (state, _, _, runs) in &mut gathered {
                *runs = state.status() == Status::Active;
            }
        }
        let still = gathered.into_iter().filter(|(_, _, _, runs)| *runs);
        let (txns, undos) = still.map(|(_, log, undo, _)| (ActiveTxn { log, undo: Vec::new() }, undo)).unzip();
        let next = self.next_txn().0;
        let txn_high_water = TxnId(next - 1);
        (ActiveTxns { txns, tag_high_water: self.undo.high_water(), txn_high_water }, undos)
    }

    async fn save_undo(&self, previous: Lsn) -> Result<ActiveTxns, StorageError> {
        let (mut active, undos) = self.active_with_undo(previous);
        let mut fetched: Option<(u64, Decoded)> = None;
        for (txn, undos) in active.txns.iter_mut().zip(undos) {
            for undo in undos {
                let (tag, span) = match undo {
                    Undo::Entry(entry) => {
                        txn.undo.push(entry);
                        continue;
                    }
                    Undo::Spilled(tag, span) => (tag, span),
                };
                if fetched.as_ref().is_none_or(|(id, _)| *id != span.id) {
                    // Freed records, too: they still stood at the moment that the checkpoint saves.
                    fetched = Some((span.id, span.all(true).await?));
                }
                let records = fetched.as_ref().map_or(&[][..], |(_, records)| records);
                if let Ok(at) = records.binary_search_by_key(&tag, |(tag, _)| *tag) {
                    txn.undo.extend(records[at].1.entries(tag));
                }
            }
        }
        Ok(active)
    }
}

/// One change of an active transaction, for a checkpoint.
enum Undo {
    Entry(UndoEntry),
    Spilled(Tag, Arc<Span>),
}

impl Versions for VersionBook {
    fn is_settled(&self, tag: Tag) -> bool {
        match self.undo.state(tag) {
            TagState::Gone => true,
            TagState::InMemory(record) => match record.status() {
                Status::Committed(lsn) => self.snapshots.horizon().covers(lsn),
                Status::Active | Status::Aborted => false,
            },
            // SPN-2
            TagState::Spilled(span) => self.snapshots.horizon().covers(span.through()),
        }
    }

    fn horizon(&self) -> Lsn {
        self.snapshots.horizon().oldest()
    }

    fn read_for_checkpoint(&self, previous: Lsn) -> BoxFuture<'_, Result<ActiveTxns, StorageError>> {
        Box::pin(self.save_undo(previous))
    }
}
