//! A session's reads, scans, changes and locks of rows.

use std::sync::Arc;

use clearway_storage::btree::{Direction, KeyRange, Tree};
use clearway_storage::ids::Lsn;
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mutation::{self, Mutation};
use clearway_txn::mvcc::book::View;
use clearway_txn::mvcc::fate::End;
use clearway_txn::transaction::{Basis, Changed, LockedRow, Since};

use super::{Locked, Session};
use crate::catalog::Oid;
use crate::error::EngineError;
use crate::table::parts::{PartRead, Parts};
use crate::table::scan::{IndexScan, KeyedRow, TableScan};
use crate::table::shape::TableShape;
use crate::table::write;
use crate::value::Value;

impl Session {
    /// The row with this key.
    ///
    /// # Errors
    /// From the trees; `BadRow`.
    pub async fn get(
        &mut self,
        shape: &TableShape,
        view: &View,
        key: &[u8],
    ) -> Result<Option<Vec<Value>>, EngineError> {
        match self.find(shape, view, key).await? {
            Some(value) => shape.row(key, value).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Session::find`], without waiting; the outer `None`: it would have to.
    pub fn find_now(&mut self, shape: &TableShape, view: &View, key: &[u8]) -> Option<Option<&[u8]>> {
        let all = self.db.transactions();
        let found = self.reading.get_now(all.book(), shape.rows(all), key, view, &mut self.dep_lsn)?;
        self.used.looked_up(shape.oid, found);
        Some(found.then(|| self.reading.value()))
    }

    /// The value part of the row with this key, as [`Picker::read`](crate::table::pick::Picker::read) takes it.
    ///
    /// # Errors
    /// From the trees.
    pub async fn find(&mut self, shape: &TableShape, view: &View, key: &[u8]) -> Result<Option<&[u8]>, EngineError> {
        let all = self.db.transactions();
        let found = self.reading.get(all.book(), shape.rows(all), key, view, &mut self.dep_lsn).await?;
        self.used.looked_up(shape.oid, found);
        Ok(found.then(|| self.reading.value()))
    }

    /// Whether the snapshot shows another row at the key that was looked up last, which the transaction's own row there hides from a look-up
    /// (RDV-2). A walk over the key gives both.
    pub fn found_shown(&self) -> bool {
        self.reading.shown().is_some()
    }

    /// The value part of the row that was looked up last.
    pub fn found(&self) -> &[u8] {
        self.reading.value()
    }

    /// A walk over a table.
    pub fn scan(&self, shape: &Arc<TableShape>, range: KeyRange, direction: Direction, view: &View) -> TableScan {
        TableScan::new(self.db.transactions(), shape, range, direction, *view)
    }

    /// A walk over a table by the index at this place of `shape.indexes`.
    pub fn index_scan(
        &self,
        shape: &Arc<TableShape>,
        index: usize,
        range: KeyRange,
        direction: Direction,
        view: &View,
    ) -> IndexScan {
        IndexScan::new(self.db.transactions(), shape, index, range, direction, *view)
    }

    /// Has a walk by an index begin again, over other entries.
    pub fn index_scan_again(&self, walk: &mut IndexScan, ends: (&[u8], Option<&[u8]>)) {
        walk.begin_again(self.db.transactions(), ends);
    }

    /// The next row of a walk.
    ///
    /// # Errors
    /// From the trees; `BadRow`.
    pub async fn next(&mut self, scan: &mut TableScan) -> Result<Option<KeyedRow>, EngineError> {
        if !self.fill(scan).await? {
            return Ok(None);
        }
        scan.next(self.db.transactions(), &mut self.dep_lsn).await
    }

    /// Sees to it that a walk has its next row at hand (`TableScan::buffered`); false: there are no more.
    ///
    /// # Errors
    /// From the trees.
    pub async fn fill(&mut self, scan: &mut TableScan) -> Result<bool, EngineError> {
        if scan.has_buffered() {
            return Ok(true);
        }
        let begins = scan.begins();
        let more = scan.fill(self.db.transactions(), &mut self.dep_lsn).await?;
        let rows = scan.left() as u64;
        self.used.walked(scan.table(), begins, scan.is_whole(), rows);
        if scan.is_seeking() {
            self.used.sought(rows);
        }
        Ok(more)
    }

    /// Parts of a table were read apart from the session; `seeks`: only because no index leads to the rows that were sought.
    pub fn read_apart(&mut self, parts: &mut Parts, read: PartRead, seeks: bool) {
        let (whole, begins) = parts.begins();
        self.dep_lsn = self.dep_lsn.max(read.dep_lsn);
        self.used.walked_apart(parts.shape().oid, (begins, whole), read.rows, read.leaves);
        if seeks && whole {
            self.used.sought(read.rows);
        }
    }

    /// The next row of a walk by an index.
    ///
    /// # Errors
    /// From the trees; `BadRow`.
    pub async fn next_by_index(&mut self, scan: &mut IndexScan) -> Result<Option<KeyedRow>, EngineError> {
        let begins = scan.begins();
        let found = scan.next(self.db.transactions(), &mut self.dep_lsn).await?;
        self.used.walked_index(scan.table(), scan.index().oid, begins, found.is_some());
        self.used.went_on(scan.index().oid, scan.take_begun());
        Ok(found)
    }

    /// Goes to the next row of a walk by an index; false if there is none.
    ///
    /// # Errors
    /// From the trees.
    pub async fn advance(&mut self, scan: &mut IndexScan) -> Result<bool, EngineError> {
        let begins = scan.begins();
        let found = scan.advance(self.db.transactions(), &mut self.dep_lsn).await?;
        self.used.walked_index(scan.table(), scan.index().oid, begins, found);
        self.used.went_on(scan.index().oid, scan.take_begun());
        Ok(found)
    }

    /// Sees to it that a walk by an index has its next entry at hand (`IndexScan::buffered_entry`); false: there are no more.
    ///
    /// # Errors
    /// From the trees.
    pub async fn fill_entries(&mut self, scan: &mut IndexScan) -> Result<bool, EngineError> {
        if scan.has_buffered() {
            return Ok(true);
        }
        let begins = scan.begins();
        let more = scan.fill(self.db.transactions(), &mut self.dep_lsn).await?;
        self.used.walked_entries(scan.index().oid, begins, scan.left() as u64);
        self.used.went_on(scan.index().oid, scan.take_begun());
        Ok(more)
    }

    /// Looks the rows of a walk's next entries up without waiting (`IndexScan::buffered_row`), some `want` of them; false: `advance` goes on.
    ///
    /// # Errors
    /// From the trees; `BadRow`.
    pub async fn fill_by_index(&mut self, scan: &mut IndexScan, want: usize) -> Result<bool, EngineError> {
        let found = scan.fill_rows(self.db.transactions(), want, &mut self.dep_lsn).await?;
        self.used.went_on(scan.index().oid, scan.take_begun());
        let Some(ahead) = found else { return Ok(false) };
        self.used.fetched_by_index((scan.table(), scan.index().oid), scan.begins(), (ahead.rows, ahead.leaves));
        Ok(true)
    }

    /// Puts a row in and returns its key.
    ///
    /// # Errors
    /// `Duplicate`, `DoesNotFit`; go back to a mark then: the row may be half there.
    pub async fn insert(&mut self, shape: &TableShape, row: &[Value]) -> Result<Vec<u8>, EngineError> {
        shape.check_fit(row)?;
        let key = self.new_key(shape, row).await?;
        write::insert(self.txn(), shape, &key, row).await?;
        self.counted.note(self.db.statistics(), shape.oid);
        self.used.inserted(shape.oid);
        Ok(key)
    }

    /// The key of a row that is to be inserted.
    pub(super) async fn new_key(&mut self, shape: &TableShape, row: &[Value]) -> Result<Vec<u8>, EngineError> {
        if !shape.has_row_id() {
            return Ok(shape.key_of(row));
        }
        let all = self.db.transactions();
        Ok(self.db.row_ids().next(&mut self.row_ids, shape.rows(all)).await?.to_vec())
    }

    /// Replaces a row.
    ///
    /// # Errors
    /// As [`Session::insert`].
    pub async fn update(
        &mut self,
        shape: &TableShape,
        key: &[u8],
        old: &[Value],
        new: &[Value],
        basis: Basis,
    ) -> Result<Changed, EngineError> {
        shape.check_fit(new)?;
        let changed = write::update(self.txn(), shape, key, old, new, basis).await?;
        if matches!(changed, Changed::Done) {
            let in_place = !shape.indexes.iter().any(|index| index.is_touched(old, new));
            self.used.updated(shape.oid, in_place);
        }
        Ok(changed)
    }

    /// Whether the latest update replaced a version that this transaction had written.
    pub fn updated_own(&mut self) -> bool {
        self.txn().over_own()
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// From the transaction.
    pub async fn delete(
        &mut self,
        shape: &TableShape,
        key: &[u8],
        old: &[Value],
        basis: Basis,
    ) -> Result<Changed, EngineError> {
        let deleted = write::delete(self.txn(), shape, key, old, basis).await?;
        self.counted.note(self.db.statistics(), shape.oid);
        if matches!(deleted, Changed::Done) {
            self.used.deleted(shape.oid, 1);
        }
        Ok(deleted)
    }

    /// Locks the row that a view shows at a key, where it is by now, and returns that key and the newest version; `None` if it is gone.
    ///
    /// # Errors
    /// As [`Session::lock_row`]; `ConcurrentUpdate`, `ConcurrentDelete` if the transaction's snapshot shows a version that was replaced.
    pub async fn follow_row(
        &mut self,
        shape: &TableShape,
        view: &View,
        key: &[u8],
        mode: LockMode,
        if_taken: IfTaken,
    ) -> Result<Option<(Option<Vec<u8>>, Locked)>, EngineError> {
        let tree = shape.rows(self.db.transactions());
        let (mut since, mut moved) = (Since::from(view), None);
        loop {
            let at = moved.as_deref().unwrap_or(key);
            let Some(mut found) = self.txn().lock_row(tree, at, mode, if_taken, Some(&since)).await? else {
                return Ok(None);
            };
            match found.fate.end.take() {
                Some(End { moved_to: Some(_), .. }) if mutation::active(Mutation::VersionNotFollowed) => {
                    return Ok(None);
                }
                Some(End { at, moved_to: Some(to) }) => (since.moment, moved) = (at, Some(to.into_vec())),
                Some(_) => return Ok(None),
                None => {
                    let locked = locked(shape, tree, at, found).await?;
                    return Ok(Some((moved, locked)));
                }
            }
        }
    }

    /// Locks whatever row stands at a key and returns its newest version; `None` if there is none. A ghost is not locked.
    ///
    /// # Errors
    /// `LockNotAvailable`, `Deadlock`.
    pub async fn lock_row(
        &mut self,
        shape: &TableShape,
        key: &[u8],
        mode: LockMode,
        if_taken: IfTaken,
    ) -> Result<Option<Locked>, EngineError> {
        let tree = shape.rows(self.db.transactions());
        match self.txn().lock_row(tree, key, mode, if_taken, None).await? {
            Some(found) => locked(shape, tree, key, found).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether another transaction holds a lock on a row, by the lock table alone, that conflicts with a mode. A row that others have changed may be locked by its tag.
    pub fn is_taken(&self, shape: &TableShape, key: &Arc<[u8]>, mode: LockMode) -> bool {
        self.db.transactions().locks().is_taken(&self.owner, (shape.tree, key), mode)
    }

    /// The key of a row that has the values of this one in one of the unique indexes that are named, the primary key among them; waits for
    /// transactions that are putting one there or taking it away. No names: any unique index. `locks`: the caller locks that row (TAB-5).
    ///
    /// # Errors
    /// `Deadlock`; from the trees.
    pub async fn conflicting(
        &mut self,
        shape: &TableShape,
        (named, locks): (&[Oid], bool),
        row: &[Value],
    ) -> Result<Option<Vec<u8>>, EngineError> {
        shape.check_fit(row)?;
        write::conflicting(self.txn(), shape, (named, locks), row).await
    }

    /// When the newest version of a row was committed, once no transaction is changing it; `None` if there is no row.
    ///
    /// # Errors
    /// `Deadlock`; from the trees.
    pub async fn committed_at(&mut self, shape: &TableShape, key: &[u8]) -> Result<Option<Lsn>, EngineError> {
        let tree = shape.rows(self.db.transactions());
        Ok(write::occupant(self.txn(), tree, key).await?.map(|(_, commit)| commit))
    }
}

async fn locked(shape: &TableShape, tree: &Tree, key: &[u8], found: LockedRow) -> Result<Locked, EngineError> {
    let row = match (found.ghost, found.overflow) {
        (true, _) => Vec::new(),
        (false, false) => shape.row(key, &found.value)?,
        (false, true) => shape.row(key, &tree.read_chain(&found.value).await?)?,
    };
    let key_changed = found.fate.key_changed;
    let (ghost, commit, mine, moved_to) = (found.ghost, found.commit, found.mine, found.moved_to);
    Ok(Locked { row, ghost, commit, mine, moved_to, key_changed })
}
