//! The minimal transaction layer that storage needs above it: the active transactions, their undo, and which tags are settled. It has no
//! locks: every task of the workload has keys of its own.

use clearway_storage::btree::{Edit, LeafRow, Row, RowBuf, RunEdits, RunGhosts, RunPositions, RunPut, TagRoom, Tree};
use clearway_storage::error::StorageError;
use clearway_storage::ids::{Lsn, PageId, Tag, TreeId, TxnId};
use clearway_storage::record::{BeforeImage, Record, RecordKind, TxnLog, UndoEntry};
use clearway_storage::recovery::{CommitBody, Loser, Recovered};
use clearway_storage::seams::{ActiveTxn, ActiveTxns, Purpose, Versions};
use clearway_storage::space::TreeKind;
use clearway_storage::store::Store;
use clearway_storage::undo;
use clearway_storage::wal::Wal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The active transactions and the settled tags.
#[derive(Default)]
pub struct Book {
    inner: Mutex<Inner>,
    wal: OnceLock<Arc<Wal>>,
}

#[derive(Default)]
struct Inner {
    active: BTreeMap<TxnId, ActiveTxn>,
    /// Tags of transactions that have not committed, and of commits by their LSN.
    open_tags: BTreeSet<Tag>,
    committed: BTreeMap<Tag, Lsn>,
    last_txn: u64,
    last_tag: u64,
    /// Snapshots that are held, by number.
    held: BTreeMap<u64, Lsn>,
    last_held: u64,
}

/// Holds the horizon back, as a long reader does, until it goes.
pub struct Held {
    book: Arc<Book>,
    number: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.book.inner().held.remove(&self.number);
    }
}

impl Book {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no test panics under it")
    }

    /// Tells the book its log.
    pub fn attach(&self, wal: &Arc<Wal>) {
        let _ = self.wal.set(wal.clone());
    }

    fn durable(&self) -> Lsn {
        self.wal.get().map_or(Lsn::ZERO, |wal| wal.durable_lsn())
    }

    /// A snapshot of what is durable now.
    pub fn hold(self: &Arc<Self>) -> Held {
        let snapshot = self.horizon();
        let mut inner = self.inner();
        inner.last_held += 1;
        let number = inner.last_held;
        inner.held.insert(number, snapshot);
        Held { book: self.clone(), number }
    }

    /// Takes over what recovery found.
    pub fn adopt(&self, recovered: &Recovered) {
        let mut inner = self.inner();
        inner.last_txn = recovered.txn_high_water.0;
        inner.last_tag = recovered.tag_high_water.0;
        for loser in &recovered.losers {
            inner.open_tags.extend(loser.entries.iter().map(|entry| entry.tag));
            let active = ActiveTxn { log: loser.log.clone(), undo: loser.entries.clone() };
            inner.active.insert(loser.log.txn, active);
        }
    }

    fn set(&self, log: &TxnLog, undo: &[UndoEntry]) {
        self.inner().active.insert(log.txn, ActiveTxn { log: log.clone(), undo: undo.to_vec() });
    }

    fn end(&self, txn: TxnId, tags: &[Tag], commit: Option<Lsn>) {
        let mut inner = self.inner();
        inner.active.remove(&txn);
        for tag in tags {
            inner.open_tags.remove(tag);
            if let Some(commit) = commit {
                inner.committed.insert(*tag, commit);
            }
        }
    }
}

impl Versions for Book {
    fn is_settled(&self, tag: Tag) -> bool {
        let horizon = self.horizon();
        let inner = self.inner();
        !inner.open_tags.contains(&tag) && inner.committed.get(&tag).is_none_or(|commit| *commit <= horizon)
    }

    fn horizon(&self) -> Lsn {
        let durable = self.durable();
        self.inner().held.values().copied().min().map_or(durable, |held| held.min(durable))
    }

    fn for_checkpoint(&self, previous: Lsn) -> ActiveTxns {
        let inner = self.inner();
        let mut txns: Vec<ActiveTxn> =
            inner.active.values().filter(|txn| txn.log.first_lsn != Lsn::ZERO).cloned().collect();
        for txn in &mut txns {
            if txn.log.first_lsn >= previous {
                txn.undo.clear();
            }
        }
        ActiveTxns { txns, tag_high_water: Tag(inner.last_tag), txn_high_water: TxnId(inner.last_txn) }
    }
}

/// A row to be put in place, or a ghost.
pub type Wanted = (Vec<u8>, Option<Vec<u8>>);

/// Rows that are written by runs, with the undo of those that are logged.
struct Written<'v> {
    tree: TreeId,
    rows: &'v [Wanted],
    tags: Vec<Tag>,
    /// The tag of the last row, if the next one in its leaf may share it.
    shared: Option<(PageId, Tag)>,
    /// Tags and images before of rows that are not logged yet.
    decided: Vec<(Tag, Tag, BeforeImage)>,
    undo: Vec<UndoEntry>,
}

impl<'v> RunEdits<'v> for Written<'v> {
    fn key(&self, n: usize) -> Option<(&'v [u8], usize)> {
        self.rows.get(n).map(|(key, value)| (&key[..], value.as_ref().map_or(0, Vec::len)))
    }

    fn tag(&self) -> Option<Tag> {
        self.shared.map(|(_, tag)| tag)
    }

    fn decide(&mut self, n: usize, leaf: LeafRow<'_>, fits: TagRoom) -> Option<RunPut<'v>> {
        let value = self.rows[n].1.as_deref();
        let gone = |row: Row<'_>| value.is_none() && row.tag.is_settled() && !row.ghost && !row.overflow;
        let shares = leaf.row.map_or(value.is_some(), gone);
        let joined = self.shared.filter(|(page, _)| shares && *page == leaf.page).map(|(_, tag)| tag);
        if joined.is_none() && (fits == TagRoom::Last || fits == TagRoom::Shared && !shares) {
            return None;
        }
        let tag = joined.unwrap_or(self.tags[n]);
        self.shared = shares.then_some((leaf.page, tag));
        let before = leaf.row.map_or(BeforeImage::Absent, |row| BeforeImage::Row {
            ghost: row.ghost,
            overflow: row.overflow,
            value: row.value.into(),
        });
        self.decided.push((tag, leaf.row.map_or(Tag::SETTLED, |row| row.tag), before));
        Some(RunPut { value: value.unwrap_or_default(), tag, ghost: value.is_none(), shares })
    }

    fn ghost(&self, n: usize) -> Option<&'v [u8]> {
        self.rows.get(n).filter(|(_, value)| value.is_none()).map(|(key, _)| &key[..])
    }

    fn join_ghosts(&mut self, _n: usize, ghosts: RunGhosts<'_>) {
        let (_, tag) = self.shared.expect("BTR-27: a row before");
        for value in ghosts.values() {
            let before = BeforeImage::Row { ghost: false, overflow: false, value: value.into() };
            self.decided.push((tag, Tag::SETTLED, before));
        }
    }

    fn logged(&mut self, from: usize, count: usize, positions: RunPositions) {
        assert_eq!(self.decided.len(), count, "BTR-19");
        for (n, (tag, prev_tag, before)) in self.decided.drain(..).enumerate() {
            let (lsn, undo_next) = positions.of(n);
            let key = self.rows[from + n].0.as_slice().into();
            self.undo.push(UndoEntry { lsn, undo_next, tree: self.tree, key, tag, prev_tag, before });
        }
    }
}

/// A transaction.
pub struct Txn {
    store: Arc<Store>,
    book: Arc<Book>,
    log: TxnLog,
    undo: Vec<UndoEntry>,
    tags: Vec<Tag>,
    dropped: Vec<TreeId>,
    /// Its commit record is reserved, or the end of its abort is logged.
    over: bool,
}

impl Txn {
    /// A new transaction.
    pub fn begin(store: &Arc<Store>, book: &Arc<Book>) -> Txn {
        let txn = {
            let mut inner = book.inner();
            inner.last_txn += 1;
            TxnId(inner.last_txn)
        };
        Txn {
            store: store.clone(),
            book: book.clone(),
            log: TxnLog::new(txn),
            undo: Vec::new(),
            tags: Vec::new(),
            dropped: Vec::new(),
            over: false,
        }
    }

    fn next_tag(&mut self) -> Tag {
        let mut inner = self.book.inner();
        inner.last_tag += 1;
        let tag = Tag(inner.last_tag);
        inner.open_tags.insert(tag);
        self.tags.push(tag);
        tag
    }

    /// Puts a row, or a ghost; a value too long for a leaf into a chain.
    pub async fn write(&mut self, tree: TreeId, key: &[u8], value: Option<&[u8]>) -> Result<(), StorageError> {
        let tag = self.next_tag();
        let handle = self.store.tree(tree);
        let ghost = value.is_none();
        let long = value.filter(|value| value.len() > Tree::inline_max(key.len()));
        let overflow = long.is_some();
        let reference = match long {
            None => [0; 16],
            Some(value) => {
                // Piece by piece: what was written before it failed has to be undone, and checkpoints come in between.
                let (book, undo) = (&self.book, &mut self.undo);
                let mut keep = |log: &TxnLog, entry| {
                    undo.push(entry);
                    book.set(log, undo);
                };
                handle.write_overflow(&mut self.log, tag, value, &mut keep).await?
            }
        };
        let value = if overflow { &reference[..] } else { value.unwrap_or_default() };
        let undo_next = self.log.last_lsn;
        let edit = handle.edit(&mut self.log, key, value.len(), |leaf| {
            let before = leaf.row.map(|row| {
                let image = BeforeImage::Row { ghost: row.ghost, overflow: row.overflow, value: row.value.into() };
                (image, row.tag)
            });
            (Edit::Put { value: value.into(), tag, ghost, overflow }, before)
        });
        let (before, range) = edit.await?;
        let Some(range) = range else { return Ok(()) };
        let (before, prev_tag) = before.unwrap_or((BeforeImage::Absent, Tag::SETTLED));
        let lsn = range.start;
        self.undo.push(UndoEntry { lsn, undo_next, tree, key: key.into(), tag, prev_tag, before });
        self.book.set(&self.log, &self.undo);
        Ok(())
    }

    /// Puts rows, or ghosts, whose keys ascend: as many as possible by runs.
    pub async fn write_run(&mut self, tree: TreeId, rows: &[Wanted]) -> Result<(), StorageError> {
        let tags = rows.iter().map(|_| self.next_tag()).collect();
        let mut written = Written { tree, rows, tags, shared: None, decided: Vec::new(), undo: Vec::new() };
        let (handle, mut done) = (self.store.tree(tree), 0);
        while done < rows.len() {
            let made = handle.edit_run(&mut self.log, done, &mut written).await?;
            if made > 0 {
                self.undo.append(&mut written.undo);
                self.book.set(&self.log, &self.undo);
                done += made;
                continue;
            }
            let (key, value) = &rows[done];
            self.write(tree, key, value.as_deref()).await?;
            (written.shared, done) = (None, done + 1);
        }
        Ok(())
    }

    /// The row with this key, ghosts excluded.
    pub async fn read(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let mut row = RowBuf::default();
        let found = self.store.tree(tree).get(key, &mut row).await?;
        let live = matches!(found, clearway_storage::btree::Lookup::Found(_)) && !row.row().ghost;
        Ok(live.then(|| row.row().value.to_vec()))
    }

    /// Creates a tree.
    pub async fn create_tree(&mut self) -> Result<TreeId, StorageError> {
        let (tree, entry) = self.store.create_tree(&mut self.log, TreeKind::Logged).await?;
        self.undo.push(entry);
        self.book.set(&self.log, &self.undo);
        Ok(tree)
    }

    /// Drops a tree when this commits.
    pub fn drop_tree(&mut self, tree: TreeId) {
        self.dropped.push(tree);
    }

    /// A mark to roll back to.
    pub fn savepoint(&self) -> usize {
        self.undo.len()
    }

    /// Undoes everything after the mark.
    pub async fn rollback_to(&mut self, mark: usize) -> Result<(), StorageError> {
        while self.undo.len() > mark {
            let Some(entry) = self.undo.last().cloned() else { break };
            undo::undo_one(&self.store, &mut self.log, &entry).await?;
            self.undo.pop();
            self.book.set(&self.log, &self.undo);
        }
        Ok(())
    }

    /// Whether there is nothing left to be rolled back or committed.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Undoes everything and ends; after an error it may be called again.
    pub async fn abort(&mut self) -> Result<(), StorageError> {
        self.rollback_to(0).await?;
        if self.log.first_lsn != Lsn::ZERO {
            undo::end_abort(self.store.wal(), &mut self.log).await?;
        }
        self.book.end(self.log.txn, &self.tags, None);
        self.over = true;
        Ok(())
    }

    fn superseded(&self) -> Vec<(TreeId, [u8; 16])> {
        let chains = self.undo.iter().filter_map(|entry| match &entry.before {
            BeforeImage::Row { overflow: true, value, .. } => {
                Some((entry.tree, value.as_ref().try_into().expect("a reference of 16 bytes")))
            }
            _ => None,
        });
        chains.collect()
    }

    /// Commits: `at` is told the commit's LSN as soon as it is in the log; returns once it is durable.
    pub async fn commit(&mut self, at: impl FnOnce(Lsn)) -> Result<(), StorageError> {
        let body = CommitBody { dropped: self.dropped.clone(), ..CommitBody::default() };
        let bytes = body.encode();
        let record = Record {
            kind: RecordKind::Commit,
            txn: self.log.txn,
            undo_next: Lsn::ZERO,
            undo: None,
            ops: &[],
            body: &bytes,
        };
        let wal = self.store.wal().clone();
        let len = Wal::record_bytes(&record);
        let mut credit = wal.credit(Purpose::System, len).await?;
        // The commit section.
        Wal::make_room(len);
        // The commit section.
        let reservation = wal.reserve(&mut credit, len);
        let commit = reservation.range().end;
        self.over = true;
        // Before a checkpoint learns that it is not active any more.
        self.store.chains_superseded(&self.superseded()).committed(commit);
        self.book.end(self.log.txn, &self.tags, Some(commit));
        at(commit);
        wal.fill(reservation, &record);
        drop(credit);
        wal.release_undo(&mut self.log);
        if !body.dropped.is_empty() {
            self.store.dropped_at_commit(&body.dropped, commit);
        }
        wal.wait_durable(commit).await
    }
}

/// Undoes a loser, as the layer above does after recovery.
///
/// # Errors
/// As [`undo::undo_one`].
pub async fn undo_loser(store: &Arc<Store>, book: &Arc<Book>, mut loser: Loser) -> Result<(), StorageError> {
    let tags: Vec<Tag> = loser.entries.iter().map(|entry| entry.tag).collect();
    while let Some(entry) = loser.entries.last().cloned() {
        undo::undo_one(store, &mut loser.log, &entry).await?;
        loser.entries.pop();
        book.set(&loser.log, &loser.entries);
    }
    undo::end_abort(store.wal(), &mut loser.log).await?;
    book.end(loser.log.txn, &tags, None);
    Ok(())
}
