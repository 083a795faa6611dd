//! A transaction of the embedded library: typed operations, each a statement of its own.
//!
//! # Life of an operation
//! Lock the table -> begin a statement -> read or change the row -> end the statement. After `Duplicate` the operation's changes are undone and
//! the transaction goes on; after any other error the transaction has failed and can only be rolled back.
//!
//! # Invariants
//! - EMB-1: what an operation returns inside a transaction is provisional: it may depend on commits that are not durable yet. What `transact`
//!   and `update_with` return is final: they wait until it is durable (SES-4), also before they return an error of the closure.
//! - EMB-2: a failed transaction does not commit, even if the closure ignores the error and returns `Ok`.
//! - EMB-4: after two failed attempts, the next attempt first waits for the locks of the rows on which earlier attempts met a conflict or a
//!   deadlock, in the order of table and key, and takes its snapshot once it holds them. No other transaction changes those rows then. So each
//!   attempt that still meets a conflict adds a row, and a closure that changes n rows loses a number of attempts that n bounds. Since all
//!   transactions take these locks in the same order, they do not deadlock over them.
//! - EMB-5: an operation whose future is dropped leaves no part of its changes behind: its transaction can only be rolled back, and its
//!   snapshot is closed.

use std::ops::{ControlFlow, RangeBounds};
use std::sync::Arc;

use clearway_storage::btree::Direction;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};

use super::columns::{Columns, Key};
use super::error::Error;
use super::rows::Walked;
use super::seats::{Alone, Kept, Open, Seat};
use super::table::Table;
use crate::catalog::Oid;
use crate::error::EngineError;
use crate::line::{Lead, TransactionSpoilt};
use crate::session::{Isolation, Mark, Session, Statement, StatementMode, TxnOptions};
use crate::table::shape::TableShape;
use crate::value::{Value, ValueRef};

/// An open transaction, for asynchronous code.
pub struct AsyncTxn<'s> {
    pub(super) session: &'s mut Session,
    pub(super) kept: &'s mut Kept,
    pub(super) texts: &'s Texts,
    pub(super) open: &'s Open<'s>,
    pub(super) options: TxnOptions,
    /// What it reads before it is begun (EMB-8).
    pub(super) alone: Option<Alone>,
    /// Tables that the transaction has locked, each with whether the lock is for writing.
    pub(super) locked: Vec<(Oid, bool)>,
    /// The savepoints that are open, each with the number of tables that were locked before it.
    pub(super) savepoints: Vec<(Mark, usize)>,
    /// The statement of the running operation.
    unfinished: Option<Statement>,
    failed: bool,
    /// The transaction failed for a reason that another attempt may not meet.
    retry: bool,
    /// The row that another transaction has changed first.
    lost: Option<Contended>,
}

/// A row on which a transaction has met a conflict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Contended {
    database: Oid,
    table: Oid,
    key: Vec<u8>,
}

/// The texts of operations in lock views and deadlock reports.
pub(super) struct Texts {
    pub(super) read: Arc<str>,
    pub(super) write: Arc<str>,
}

impl Texts {
    pub(super) fn new() -> Texts {
        Texts { read: "embedded read".into(), write: "embedded write".into() }
    }
}

/// The newest version of a row that the transaction may change.
struct Current {
    row: Vec<Value>,
    basis: Basis,
}

impl<'s> AsyncTxn<'s> {
    /// A transaction that begins at once.
    pub(super) fn begin(seat: &'s mut Seat, texts: &'s Texts, open: &'s Open<'s>, options: TxnOptions) -> AsyncTxn<'s> {
        open.works();
        seat.session.begin(options);
        AsyncTxn::not_begun(seat, texts, open, options)
    }

    /// A transaction that is begun by its second operation, if it reads only; else at once (EMB-8).
    pub(super) fn begin_late(
        seat: &'s mut Seat,
        texts: &'s Texts,
        open: &'s Open<'s>,
        options: TxnOptions,
    ) -> AsyncTxn<'s> {
        if options == (TxnOptions { isolation: Isolation::RepeatableRead, read_only: true }) {
            return AsyncTxn::not_begun(seat, texts, open, options);
        }
        AsyncTxn::begin(seat, texts, open, options)
    }

    fn not_begun(seat: &'s mut Seat, texts: &'s Texts, open: &'s Open<'s>, options: TxnOptions) -> AsyncTxn<'s> {
        let Seat { session, kept } = seat;
        let (locked, savepoints, alone) = (Vec::new(), Vec::new(), None);
        let (unfinished, failed, retry, lost) = (None, false, false, None);
        AsyncTxn { session, kept, texts, open, options, alone, locked, savepoints, unfinished, failed, retry, lost }
    }

    pub(super) fn failed(&self) -> bool {
        self.failed
    }

    pub(super) fn wants_retry(&self) -> bool {
        self.retry
    }

    /// The row on which it met a conflict.
    pub(super) fn take_lost(&mut self) -> Option<Contended> {
        self.lost.take()
    }

    /// EMB-4: queues for the locks of these rows before the transaction takes its snapshot, which then has their newest versions.
    ///
    /// # Errors
    /// A deadlock; those of the engine.
    pub(super) async fn lock_first(&mut self, rows: &[Contended]) -> Result<(), Error> {
        self.begin_due()?;
        for row in rows {
            let locked = self.lock_contended(row).await;
            self.judge(locked)?;
        }
        Ok(())
    }

    async fn lock_contended(&mut self, row: &Contended) -> Result<(), Error> {
        let tag = LockTag::Relation { database: row.database, relation: u64::from(row.table) };
        self.session.lock(tag, LockMode::RowExclusive, LockScope::Transaction, IfTaken::Wait).await?;
        let catalog = self.session.catalog();
        // If the table was dropped meanwhile, the closure finds that out.
        let Ok(shape) = TableShape::new(&catalog, row.table) else { return Ok(()) };
        self.session.lock_row(&shape, &row.key, LockMode::RowUpdate, IfTaken::Wait).await?;
        Ok(())
    }

    fn lost(&mut self, shape: &TableShape, key: &[u8]) {
        self.lost = Some(Contended { database: shape.database, table: shape.oid, key: key.to_vec() });
    }

    /// Notes the row if the operation failed with a conflict on it.
    fn lost_if<T>(&mut self, shape: &TableShape, key: &[u8], result: &Result<T, Error>) {
        if result.as_ref().is_err_and(Error::is_retryable) {
            self.lost(shape, key);
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// From the engine; `Value`.
    pub async fn get<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K) -> Result<Option<V>, Error> {
        match self.get_now(table, key, V::read_copied) {
            Ok(found) => found,
            Err(read) => self.get_waiting(table, key, read).await,
        }
    }

    /// The newest value of a key; the row stays locked against changes until the transaction ends.
    ///
    /// # Errors
    /// A conflict if the transaction's snapshot does not have the newest value.
    pub async fn get_for_update<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
    ) -> Result<Option<V>, Error> {
        let shape = self.enter(table, true).await?;
        let key = table.key_bytes(&shape, key);
        let view = self.open(true);
        let found = self.lock(&shape, &view, &key, LockMode::RowUpdate).await;
        self.close();
        match self.judge(found)? {
            Some(current) => table.value_of(&current.row).map(Some),
            None => Ok(None),
        }
    }

    /// Inserts a new row.
    ///
    /// # Errors
    /// `Duplicate` if the key exists; the transaction goes on then.
    pub async fn insert<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K, value: &V) -> Result<(), Error> {
        if self.insert_now(table, key, value) {
            return Ok(());
        }
        self.insert_waiting(table, key, value).await
    }

    pub(super) async fn insert_waiting<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        value: &V,
    ) -> Result<(), Error> {
        let shape = self.enter(table, true).await?;
        let row = table.row(&shape, key, value);
        self.open(true);
        let mark = self.session.mark();
        let mut inserted = self.session.insert(&shape, &row).await.map(|_| ()).map_err(Error::from);
        if inserted.as_ref().is_err_and(Error::is_duplicate)
            && let Err(error) = self.session.roll_back_to(&mark).await
        {
            inserted = Err(error.into());
        }
        self.close();
        self.lost_if(&shape, &shape.key_of(&row), &inserted);
        self.judge(inserted)
    }

    /// Sets the value of a key, whether the key exists or not.
    ///
    /// # Errors
    /// `Duplicate` if a unique index refuses the value.
    pub async fn put<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K, value: &V) -> Result<(), Error> {
        if self.put_now(table, key, value) {
            return Ok(());
        }
        self.put_waiting(table, key, value).await
    }

    pub(super) async fn put_waiting<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        value: &V,
    ) -> Result<(), Error> {
        let shape = self.enter(table, true).await?;
        let bytes = table.key_bytes(&shape, key);
        loop {
            if self.change(table, &shape, &bytes, |_| Some(value)).await?.is_some() {
                self.kept.note_put(table, false);
                return Ok(());
            }
            match self.insert_waiting(table, key, value).await {
                Err(error) if error.is_duplicate() => match self.isolation() {
                    Isolation::ReadCommitted if self.stands(&shape, &bytes).await? => {}
                    // Either the snapshot lacks a row that exists, or a unique index refuses the value.
                    Isolation::RepeatableRead if self.stands(&shape, &bytes).await? => {
                        self.lost(&shape, &bytes);
                        return self.judge(Err(TxnError::ConcurrentUpdate.into()));
                    }
                    _ => return Err(error),
                },
                done => {
                    self.kept.note_put(table, done.is_ok());
                    return done;
                }
            }
        }
    }

    /// Deletes a key; returns whether it existed.
    ///
    /// # Errors
    /// From the engine.
    pub async fn delete<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K) -> Result<bool, Error> {
        let shape = self.enter(table, true).await?;
        let key = table.key_bytes(&shape, key);
        Ok(self.change(table, &shape, &key, |_| None).await?.is_some())
    }

    /// Runs `f` on the newest value of a key under the row's lock and stores the changed value. Returns what `f` returned, or `None` if there
    /// is no such key.
    ///
    /// # Errors
    /// A conflict if the transaction's snapshot does not have the newest value.
    pub async fn update_with<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, Error> {
        self.update_leading(table, key, f, None).await
    }

    /// As `update_with`; while it holds the row it also runs the closures of the updates in line behind it.
    pub(super) async fn update_leading<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnOnce(&mut V) -> R,
        lead: Option<&mut Lead<'_>>,
    ) -> Result<Option<R>, Error> {
        let shape = self.enter(table, true).await?;
        let key = table.key_bytes(&shape, key);
        let view = self.open(true);
        let updated = self.update_locked(table, &shape, &view, &key, (f, lead)).await;
        self.close();
        self.judge(updated)
    }

    async fn update_locked<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        shape: &TableShape,
        view: &View,
        key: &[u8],
        (f, lead): (impl FnOnce(&mut V) -> R, Option<&mut Lead<'_>>),
    ) -> Result<Option<R>, Error> {
        let Some(current) = self.lock(shape, view, key, LockMode::RowNoKeyUpdate).await? else { return Ok(None) };
        let mut value = table.value_of(&current.row)?;
        let result = f(&mut value);
        // With a unique index, each value that a closure leaves would have to be checked against the index.
        if let Some(lead) = lead.filter(|_| shape.indexes.is_empty()) {
            let fits = |value: &V| shape.check_fit(&table.with_value(&current.row, value)).is_ok();
            lead.serve(&mut value, fits).map_err(|TransactionSpoilt| Error::Failed)?;
        }
        let new = table.with_value(&current.row, &value);
        match self.session.update(shape, key, &current.row, &new, Basis::Locked).await? {
            Changed::Done => Ok(Some(result)),
            other => unreachable!("a locked row is as it was read: {other:?}"),
        }
    }

    /// Passes the rows whose keys lie in `range` to `f`, in the order of the keys or in the reverse order, until `f` breaks off.
    ///
    /// # Errors
    /// From the engine; `Value`.
    pub async fn scan<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
        direction: Direction,
        mut f: impl FnMut(K, V) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut each = |key, row: &[ValueRef<'_>]| V::read_copied(row).map(|value| f(key, value));
        let left = match self.scan_now(table, &range, direction, &mut each)? {
            Walked::Whole => return Ok(()),
            Walked::Nowhere => None,
            Walked::Left(left) => Some(left),
        };
        self.scan_waiting(table, (&range, left), direction, &mut each).await
    }

    /// The rows whose keys lie in `range`, in the order of the keys.
    ///
    /// # Errors
    /// As [`AsyncTxn::scan`].
    pub async fn range<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
    ) -> Result<Vec<(K, V)>, Error> {
        let mut rows = Vec::new();
        self.scan(table, range, Direction::Forward, |key, value| {
            rows.push((key, value));
            ControlFlow::Continue(())
        })
        .await?;
        Ok(rows)
    }

    fn isolation(&self) -> Isolation {
        self.session.options().isolation
    }

    /// EMB-2: notes whether an error fails the transaction.
    pub(super) fn judge<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result
            && !error.is_duplicate()
        {
            self.failed = true;
            self.retry = error.is_retryable();
        }
        result
    }

    /// Takes the table's lock, once per transaction, and then looks up the table's present shape.
    pub(super) async fn enter<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        writes: bool,
    ) -> Result<Arc<TableShape>, Error> {
        self.end_unfinished();
        if self.failed {
            return Err(Error::Failed);
        }
        self.begin_due()?;
        if !self.locked.iter().any(|(oid, for_writing)| *oid == table.oid() && (*for_writing || !writes)) {
            let tag = LockTag::Relation { database: table.database(), relation: u64::from(table.oid()) };
            let mode = if writes { LockMode::RowExclusive } else { LockMode::AccessShare };
            let taken = self.session.lock(tag, mode, LockScope::Transaction, IfTaken::Wait).await;
            self.judge(taken.map_err(Error::from))?;
            self.locked.push((table.oid(), writes));
        }
        let looked_up = self.kept.look_up(table, self.session);
        let place = self.judge(looked_up)?;
        let known = self.kept.at(place);
        self.session.depends_on(known.lsn); // SEA-2
        Ok(known.shape.clone())
    }

    pub(super) fn open(&mut self, writes: bool) -> View {
        let text = if writes { &self.texts.write } else { &self.texts.read };
        let mode = if self.session.options().read_only { StatementMode::ReadOnly } else { StatementMode::Write };
        let statement = self.session.open_statement(text, mode);
        let view = statement.view;
        self.unfinished = Some(statement);
        view
    }

    pub(super) fn close(&mut self) {
        if let Some(statement) = self.unfinished.take() {
            self.session.close_statement(statement);
        }
    }

    /// Whether the future of an operation was dropped.
    pub(super) fn is_unfinished(&self) -> bool {
        self.unfinished.is_some()
    }

    pub(super) fn set_unfinished(&mut self, statement: Statement) {
        self.unfinished = Some(statement);
    }

    /// EMB-5: closes the statement of an operation whose future was dropped, and fails the transaction.
    pub(super) fn end_unfinished(&mut self) {
        if self.unfinished.is_some() {
            self.close();
            self.failed = true;
        }
    }

    /// Locks a row and returns its newest version; a conflict if the snapshot has another version.
    async fn lock(
        &mut self,
        shape: &TableShape,
        view: &View,
        key: &[u8],
        mode: LockMode,
    ) -> Result<Option<Current>, Error> {
        let locked = self.session.lock_row(shape, key, mode, IfTaken::Wait).await.map_err(Error::from);
        self.lost_if(shape, key, &locked);
        let Some(locked) = locked? else { return Ok(None) };
        if self.isolation() == Isolation::RepeatableRead && locked.commit > view.read_lsn {
            self.lost(shape, key);
            let error = if locked.ghost { TxnError::ConcurrentDelete } else { TxnError::ConcurrentUpdate };
            return Err(error.into());
        }
        Ok((!locked.ghost).then_some(Current { row: locked.row, basis: Basis::Locked }))
    }

    /// Whether the newest version of a key is a row.
    async fn stands(&mut self, shape: &TableShape, key: &[u8]) -> Result<bool, Error> {
        let locked = self.session.lock_row(shape, key, LockMode::RowKeyShare, IfTaken::Wait).await;
        Ok(self.judge(locked.map_err(Error::from))?.is_some_and(|l| !l.ghost))
    }

    /// Replaces the row by what `f` makes of it, or deletes it; `None` if there is no row.
    async fn change<'v, K: Key, V: Columns + 'v>(
        &mut self,
        table: &Table<K, V>,
        shape: &TableShape,
        key: &[u8],
        f: impl Fn(&[Value]) -> Option<&'v V>,
    ) -> Result<Option<()>, Error> {
        let view = self.open(true);
        let mark = self.session.mark();
        let mut changed = self.change_in(table, shape, &view, key, f).await;
        if changed.as_ref().is_err_and(Error::is_duplicate)
            && let Err(error) = self.session.roll_back_to(&mark).await
        {
            changed = Err(error.into());
        }
        self.close();
        self.judge(changed)
    }

    async fn change_in<'v, K: Key, V: Columns + 'v>(
        &mut self,
        table: &Table<K, V>,
        shape: &TableShape,
        view: &View,
        key: &[u8],
        f: impl Fn(&[Value]) -> Option<&'v V>,
    ) -> Result<Option<()>, Error> {
        let Some(row) = self.session.get(shape, view, key).await? else { return Ok(None) };
        let mut current = Current { row, basis: Basis::Read(*view) };
        loop {
            let changed = match f(&current.row) {
                Some(value) => {
                    let new = table.with_value(&current.row, value);
                    self.session.update(shape, key, &current.row, &new, current.basis).await
                }
                None => self.session.delete(shape, key, &current.row, current.basis).await,
            };
            let changed = changed.map_err(Error::from);
            self.lost_if(shape, key, &changed);
            match changed? {
                Changed::Done => return Ok(Some(())),
                Changed::Newer => {}
                other => unreachable!("each operation is a statement of its own: {other:?}"),
            }
            if self.isolation() == Isolation::RepeatableRead {
                self.lost(shape, key);
                return Err(EngineError::from(TxnError::ConcurrentUpdate).into());
            }
            // Read committed: the newest version counts.
            match self.lock(shape, view, key, LockMode::RowUpdate).await? {
                Some(newest) => current = newest,
                None => return Ok(None),
            }
        }
    }
}
