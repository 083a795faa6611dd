//! Building an index while other transactions write to its table: CREATE INDEX CONCURRENTLY.
//!
//! # Life of an online build
//! ```text
//! begin    the index is committed as write-only: from then on every transaction that changes the table also changes the index
//! drain    the transactions that began to write before that commit have ended: no transaction writes without the index any more
//! fill     in batches, each a transaction of its own: a row is locked, and an entry is made for its newest version
//! publish  the index is committed as public; `valid_from_lsn` is that commit
//! ```
//! If a build is given up or a crash interrupts it, its index is dropped: by the session itself, by the upkeep loop, or during the next
//! opening.
//!
//! # Invariants
//! - ONL-1: the builder makes an entry only for the newest version of a row, and only while it holds the row's lock. A writer that changes the
//!   row later finds that entry; a writer that changed it earlier has made the entry itself.
//! - ONL-2: the builder waits for no transaction while it holds a row: a row or a key that is taken ends the batch first. So no writer waits
//!   for longer than one batch, and no cycle of waits goes through the builder's rows.
//! - ONL-3: no snapshot below an index's `valid_from_lsn`, the commit that made it public, reads the index: below it an entry may be missing
//!   that a version needs (DB-2).
//! - ONL-4: a table has at most one builder at a time and is not dropped meanwhile: the session holds `ShareUpdateExclusive` on it.

use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::{sleep, timeout};
use clearway_base::waits::{self, Object as WaitObject, WaitEvent};
use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::TreeId;
use clearway_storage::seams::BoxFuture;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{IfTaken, Implicit, LockMode, LockScope, LockTag, Owner, Request};
use clearway_txn::mvcc::book::View;

use super::{Durability, Session};
use crate::catalog::{Index, IndexState, Object, Oid};
use crate::db::Db;
use crate::error::EngineError;
use crate::table::scan::{KeyedRow, TableScan};
use crate::table::shape::TableShape;
use crate::table::write;

/// Rows of one batch. The builder locks that many rows for the time that it takes to make their entries.
const BATCH: usize = 64;
/// How long the drop of an unfinished index waits for the table's lock, and so holds other requests back, before it gives up.
const STEP_ASIDE: Duration = Duration::from_millis(50);
/// How often the drain checks whether a transaction without an id has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// An index that is being built; dropping this value gives the build up.
pub struct Building {
    db: Arc<Db>,
    owner: Arc<Owner>,
    table_lock: LockTag,
    index: Index,
    is_done: bool,
}

impl Drop for Building {
    fn drop(&mut self) {
        if !self.is_done {
            self.db.orphaned(self.index.oid);
        }
        // ONL-4
        self.db.transactions().locks().release_one(&self.owner, &self.table_lock, LockMode::ShareUpdateExclusive);
    }
}

/// Why a batch ends before it is full: a row that is locked, or a key that another transaction is changing.
enum BatchEnd {
    None,
    Row,
    Key(Implicit),
}

impl Session {
    /// Commits the open transaction with the new index as write-only, and begins another. `index.tree` is filled in.
    ///
    /// # Errors
    /// Those of the catalog, of the store, and of the wait for the table's lock; nothing is left behind then.
    pub async fn begin_index(&mut self, mut index: Index) -> Result<Building, EngineError> {
        let table_lock = LockTag::Relation { database: index.database, relation: u64::from(index.table) };
        self.lock(table_lock.clone(), LockMode::ShareUpdateExclusive, LockScope::Session, IfTaken::Wait).await?;
        let (db, owner) = (self.db.clone(), self.owner.clone());
        // Until the index is committed there is nothing to give up.
        let mut building = Building { db, owner, table_lock, index: index.clone(), is_done: true };
        index.tree = self.create_tree().await?.0;
        index.state = IndexState::WriteOnly;
        building.index = index.clone();
        self.put_object(Object::Index(index)).await?;
        building.is_done = false;
        self.next_transaction(Durability::Wait).await?;
        Ok(building)
    }

    /// Waits for the transactions that are changing a table now; transactions that begin later are not delayed.
    ///
    /// # Errors
    /// `Deadlock`.
    pub async fn wait_for_writers(&mut self, database: Oid, table: Oid) -> Result<(), EngineError> {
        let locks = self.db.transactions().locks().clone();
        let on_table = LockTag::Relation { database, relation: u64::from(table) };
        let conflicting = LockMode::Share.conflicts();
        let writers = || {
            let rows =
                locks.locks().into_iter().filter(|l| l.granted && l.tag == on_table && conflicting.contains(l.mode));
            let others = rows.filter(|l| l.virtual_id.session != self.owner.id());
            others.map(|l| (l.virtual_id, l.txn)).collect::<Vec<_>>()
        };
        let mut left = writers();
        while let Some((writer, txn)) = left.pop() {
            let owner = locks.owners().into_iter().find(|o| o.virtual_id() == writer);
            let (Some(owner), Some(txn)) = (owner, txn) else {
                // The transaction may still write, but has no id yet for which to wait.
                let now = writers();
                if now.iter().any(|(id, _)| *id == writer) {
                    left.extend(now.into_iter().filter(|(id, _)| *id == writer).take(1));
                    waits::in_wait(WaitEvent::LockVirtualxid, WaitObject::NONE, sleep(PAUSE)).await;
                }
                continue;
            };
            let tag = LockTag::VirtualTransaction(writer);
            let request = Request {
                owner: &self.owner,
                tag: tag.clone(),
                mode: LockMode::Share,
                scope: LockScope::Session,
                if_taken: IfTaken::Wait,
                implicit: Some(Implicit { owner, txn, mode: LockMode::Exclusive, change: 0, earlier: None }),
                looks: false,
            };
            let granted = locks.acquire(request).await.map_err(TxnError::from)?;
            locks.release_one(&self.owner, &tag, LockMode::Share);
            self.dep_lsn = self.dep_lsn.max(granted.dep_lsn);
        }
        Ok(())
    }

    /// Makes the entries of all rows. It commits after each batch and leaves a transaction open.
    ///
    /// # Errors
    /// `Duplicate`; those of the trees. The caller then gives the build up.
    pub fn fill_index<'a>(&'a mut self, building: &'a Building) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(self.fill_all(building))
    }

    async fn fill_all(&mut self, building: &Building) -> Result<(), EngineError> {
        assert!(!building.is_done, "ONL-1: an index is filled before it is public");
        let shape = TableShape::new(&self.catalog(), building.index.table)?;
        let missing = || EngineError::Missing { kind: "index", name: building.index.name.clone() };
        let place = shape.indexes.iter().position(|i| i.oid == building.index.oid).ok_or_else(missing)?;
        let mut from = Vec::new();
        let known = self.db.statistics().of(shape.oid).map_or(0, |counted| counted.rows);
        self.progress.phase("building index: scanning table", known);
        loop {
            let (last, hurdle) = self.fill_batch(&shape, place, from.clone()).await?;
            self.next_transaction(Durability::Async).await?;
            match hurdle {
                BatchEnd::Row => self.wait_for_row(&shape, &last).await?,
                BatchEnd::Key(writer) => self.txn().wait_for(writer).await?,
                BatchEnd::None if last.is_empty() => return Ok(()),
                BatchEnd::None => {}
            }
            from = last;
        }
    }

    /// ONL-2: waits until no transaction is changing the row, and then gives up the row's lock.
    async fn wait_for_row(&mut self, shape: &TableShape, key: &[u8]) -> Result<(), EngineError> {
        self.lock_row(shape, key, LockMode::RowForShare, IfTaken::Wait).await?;
        self.next_transaction(Durability::Async).await
    }

    /// Makes the entries of one batch, beginning at the key `from`. Returns the key at which to go on, empty at the end of the table, and what
    /// to wait for before that.
    async fn fill_batch(
        &mut self,
        shape: &Arc<TableShape>,
        place: usize,
        from: Vec<u8>,
    ) -> Result<(Vec<u8>, BatchEnd), EngineError> {
        let all = self.db.transactions().clone();
        // Rows that are inserted after this snapshot get their entries from their writers (ONL-1).
        let snapshot = self.reader.begin(|| all.visible_lsn());
        let view = View { read_lsn: snapshot.read_lsn, ..View::default() };
        let mut scan = TableScan::new(&all, shape, KeyRange { from, to: None }, Direction::Forward, view);
        let mut batch = Vec::with_capacity(BATCH);
        let read = loop {
            match self.next(&mut scan).await {
                Ok(Some(found)) if batch.len() < BATCH => batch.push(found),
                Ok(next) => break Ok(next.map(|found| found.key)),
                Err(error) => break Err(error),
            }
        };
        self.reader.end(snapshot);
        let next = read?.unwrap_or_default();
        for found in batch {
            self.progress.add(1);
            match self.fill_row(shape, place, &found).await? {
                BatchEnd::None => {}
                hurdle => return Ok((found.key, hurdle)),
            }
        }
        Ok((next, BatchEnd::None))
    }

    /// Makes the entry of one row (ONL-1, ONL-2).
    async fn fill_row(&mut self, shape: &TableShape, place: usize, found: &KeyedRow) -> Result<BatchEnd, EngineError> {
        match self.lock_row(shape, &found.key, LockMode::RowForShare, IfTaken::Fail).await {
            Ok(Some(locked)) if !locked.ghost => {
                let busy = write::build_entry(self.txn(), &shape.indexes[place], &found.key, &locked.row).await?;
                Ok(busy.map_or(BatchEnd::None, BatchEnd::Key))
            }
            Ok(_) => Ok(BatchEnd::None),
            Err(EngineError::Txn(TxnError::LockNotAvailable)) => Ok(BatchEnd::Row),
            Err(error) => Err(error),
        }
    }

    /// Makes the index public and commits that.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn publish_index(&mut self, building: &mut Building) -> Result<(), EngineError> {
        assert!(
            !building.is_done && building.index.state == IndexState::WriteOnly,
            "ONL-1: an index is made public once, after its build"
        );
        let valid_from_lsn = self.db.transactions().visible_lsn().0;
        let index = Index { state: IndexState::Public, valid_from_lsn, ..building.index.clone() };
        self.put_object(Object::Index(index)).await?;
        self.next_transaction(Durability::Wait).await?;
        building.is_done = true;
        Ok(())
    }

    async fn next_transaction(&mut self, durability: Durability) -> Result<(), EngineError> {
        let options = self.options;
        self.commit(durability).await?;
        self.begin(options);
        Ok(())
    }

    /// Drops an index whose build was given up, in a transaction of its own; locks the table exclusively for that moment.
    ///
    /// # Errors
    /// `LockNotAvailable` if other transactions do not release the table soon; those of the catalog and the store. Nothing has changed then.
    pub(crate) async fn drop_unfinished(&mut self, oid: Oid) -> Result<(), EngineError> {
        self.begin(super::TxnOptions::default());
        let dropped = self.drop_unfinished_in(oid).await;
        match dropped {
            Ok(()) => self.commit(Durability::Wait).await,
            Err(error) => {
                self.roll_back().await?;
                Err(error)
            }
        }
    }

    async fn drop_unfinished_in(&mut self, oid: Oid) -> Result<(), EngineError> {
        let unfinished =
            |session: &mut Session| session.catalog().index(oid).filter(|i| i.state == IndexState::WriteOnly).cloned();
        let Some(index) = unfinished(self) else { return Ok(()) };
        let tag = LockTag::Relation { database: index.database, relation: u64::from(index.table) };
        let lock = self.lock(tag, LockMode::AccessExclusive, LockScope::Transaction, IfTaken::Wait);
        timeout(STEP_ASIDE, lock).await.map_err(|_| TxnError::LockNotAvailable)??;
        if let Some(index) = unfinished(self) {
            self.drop_object(oid).await?;
            self.drop_tree_at_commit(TreeId(index.tree));
        }
        Ok(())
    }
}
