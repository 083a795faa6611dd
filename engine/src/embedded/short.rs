//! Reads and inserts without a future, and the first read of a transaction that only reads, for which no transaction is begun.
//!
//! # Life of a read
//! The table as the seat knows it (`seats`) -> a statement is opened -> the row is copied from its page -> the closure gets it, or its columns where the
//! copy is. Where that can't be done without waiting, nothing has been given to the closure, or the walk says from where on, and the way that waits goes on.
//!
//! # Life of an insert
//! The table's lock and a statement -> the row as bytes -> one attempt at the change. A `put` tries it where the last one into the table inserted a row: one over a
//! row that stands would look for its place twice.
//!
//! # Invariants
//! - EMB-8: a transaction under repeatable read that only reads is not begun before its second operation. The first one reads alone
//!   (`crate::session`, ALN-1): what it gives to the closure was confirmed before. Its snapshot stays open to the end, and is the transaction's if a second
//!   operation comes (ALN-4). If the table was locked or altered in between, that operation fails and the closure runs again, in a transaction that is
//!   begun at once. So all that a closure reads which runs to its end is of one snapshot and of tables that nothing altered under it.
//! - EMB-9: an operation that gives up leaves its transaction as it was, but for the lock of the table, which the way that waits takes as well.

use std::ops::{ControlFlow, RangeBounds};

use clearway_base::waits;
use clearway_storage::btree::Direction;
use clearway_txn::error::TxnError;
use clearway_txn::lockmgr::{LockMode, LockTag};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::Changed;

use super::columns::{Columns, Key};
use super::error::Error;
use super::index::find;
use super::rows::{Walked, key_of, with_columns};
use super::seats::{Alone, Kept};
use super::table::Table;
use super::transaction::AsyncTxn;
use crate::codec::key::prefix_end;
use crate::session::StatementMode;
use crate::session::few::FewWanted;
use crate::value::ValueRef;

/// Rows that a walk reads at once, at least and at most.
const STEP_ROWS: (usize, usize) = (8, 1024);
/// So many rows, and bytes, are read by an index before the closure gets the first of them.
const BY_INDEX_MOST: (usize, usize) = (128, 64 << 10);

impl AsyncTxn<'_> {
    /// Begins the transaction, where that has not been done.
    ///
    /// # Errors
    /// A conflict: what was read before does not hold any more (EMB-8).
    pub(super) fn begin_due(&mut self) -> Result<(), Error> {
        if self.session.is_open() {
            return Ok(());
        }
        self.open.works();
        let Some(Alone { statement, place }) = self.alone.take() else {
            self.session.begin(self.options);
            return Ok(());
        };
        let known = self.kept.at(place);
        let (oid, at) = (known.shape.oid, (&self.texts.read, &known.tag, known.version));
        if self.session.go_on_from(statement, at, waits::now_ns()) {
            self.locked.push((oid, false));
            return Ok(());
        }
        self.judge(Err(TxnError::ConcurrentUpdate.into()))
    }

    /// Closes the statement of a transaction that was never begun.
    pub(super) fn end_alone(&mut self) {
        if let Some(alone) = self.alone.take() {
            self.session.end_alone(alone.statement);
        }
    }

    /// Opens a statement that reads a table: the table's place among those that the seat knows, and the view. None: the way that waits has to.
    fn open_now<K: Key, V: Columns>(&mut self, table: &Table<K, V>) -> Option<(usize, View)> {
        if self.failed() || self.is_unfinished() {
            return None;
        }
        if self.session.is_open() || self.alone.is_some() {
            return self.open_in_transaction(table, false);
        }
        let place = self.kept.look_up(table, self.session).ok()?;
        let known = self.kept.at(place);
        self.session.depends_on(known.lsn); // SEA-2
        let statement = self.session.open_alone(&known.tag, known.version, false, waits::now_ns())?;
        let view = statement.view;
        self.alone = Some(Alone { statement, place });
        Some((place, view))
    }

    fn open_in_transaction<K: Key, V: Columns>(&mut self, table: &Table<K, V>, writes: bool) -> Option<(usize, View)> {
        self.begin_due().ok()?;
        let now_ns = waits::now_ns();
        let tag = LockTag::Relation { database: table.database(), relation: u64::from(table.oid()) };
        let (text, mode) = match writes {
            true => (&self.texts.write, LockMode::RowExclusive),
            false => (&self.texts.read, LockMode::AccessShare),
        };
        if !self.session.begin_short(text, &tag, mode, now_ns) {
            return None;
        }
        if !self.locked.iter().any(|(oid, for_writing)| *oid == table.oid() && (*for_writing || !writes)) {
            self.locked.push((table.oid(), writes));
        }
        // After the lock is there.
        let place = self.kept.look_up(table, self.session).ok()?;
        self.session.depends_on(self.kept.at(place).lsn); // SEA-2
        let mode = if self.session.options().read_only { StatementMode::ReadOnly } else { StatementMode::Write };
        let statement = self.session.open_short(mode, now_ns);
        let view = statement.view;
        self.set_unfinished(statement);
        Some((place, view))
    }

    /// Whether what was read may be given to the closure. If not, and it reads alone, no statement is open any more.
    fn counts(&mut self, place: usize) -> bool {
        if self.alone.is_none() {
            return true;
        }
        let known = self.kept.at(place);
        self.session.confirm_alone(&known.tag, known.version) // ALN-1
    }

    /// Nothing that was read alone has been given to the closure.
    fn forget_alone(&mut self) {
        if let Some(alone) = self.alone.take() {
            self.session.close_statement(alone.statement);
        }
    }

    /// The value of a key, as `read` takes it from its columns. Without a result it is given back: the way that waits has to.
    pub(super) fn get_now<K: Key, V: Columns, R, F>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        read: F,
    ) -> Result<Result<Option<R>, Error>, F>
    where
        F: FnOnce(&[ValueRef<'_>]) -> Option<R>,
    {
        let Some((place, view)) = self.open_now(table) else { return Err(read) };
        let Kept { known, key: memory, .. } = &mut *self.kept;
        let shape = &known[place].shape;
        let key = memory.write(shape, key);
        let Some(found) = self.session.find_now(shape, &view, key).map(|value| value.is_some()) else {
            self.close();
            return Err(read);
        };
        if !self.counts(place) {
            self.forget_alone();
            return Err(read);
        }
        let Kept { known, key: memory, .. } = &*self.kept;
        let row = (memory.bytes(), self.session.found());
        let found = match found {
            true => with_columns(table, known[place].columns(), row, read).map(Some),
            false => Ok(None),
        };
        self.close();
        Ok(self.judge(found))
    }

    /// Inserts a row into a table without indexes. False: that has to wait, or there is an error, and nothing was changed (EMB-9).
    pub(super) fn insert_now<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K, value: &V) -> bool {
        if self.failed() || self.is_unfinished() || self.options.read_only {
            return false;
        }
        let Some((place, _)) = self.open_in_transaction(table, true) else { return false };
        let Kept { known, new, .. } = &mut *self.kept;
        let shape = &known[place].shape;
        let inserted = shape.indexes.is_empty()
            && new.write(table, shape, key, value)
            && matches!(
                self.session.insert_now(shape, (Some(&new.key), &new.value), None, &mut new.entries),
                Some(Changed::Done)
            );
        self.close();
        inserted
    }

    /// The same for a `put`, where the last one into the table inserted a row.
    pub(super) fn put_now<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K, value: &V) -> bool {
        self.kept.inserts(table) && self.insert_now(table, key, value)
    }

    /// Passes keys and columns of a range to `each`, as far as that can be done without waiting.
    ///
    /// # Errors
    /// `Value`, if `each` gives none; a conflict (EMB-8).
    pub(super) fn scan_now<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: &impl RangeBounds<K>,
        direction: Direction,
        each: &mut impl FnMut(K, &[ValueRef<'_>]) -> Option<ControlFlow<()>>,
    ) -> Result<Walked, Error> {
        let Some((place, view)) = self.open_now(table) else { return Ok(Walked::Nowhere) };
        let shape = &self.kept.at(place).shape;
        let range = table.range(shape, range);
        if range.to.as_ref().is_some_and(|to| *to <= range.from) {
            self.close();
            return Ok(Walked::Whole);
        }
        let Kept { known, walk, .. } = &mut *self.kept;
        self.session.begin_walk(&known[place].shape, &view, &range, direction, walk);
        let mut wanted = self.kept.walked.clamp(STEP_ROWS.0, STEP_ROWS.1);
        let (mut given, mut values) = (0, Vec::new());
        let walked = loop {
            let Some(more) = self.session.step_now(&mut self.kept.walk, wanted) else {
                break Ok(Walked::Left(self.kept.walk.rest()));
            };
            if !self.counts(place) {
                if given == 0 {
                    self.forget_alone();
                    return Ok(Walked::Nowhere);
                }
                break Err(TxnError::ConcurrentUpdate.into());
            }
            if !more {
                break Ok(Walked::Whole);
            }
            let Kept { known, walk, .. } = &*self.kept;
            let known = &known[place];
            let stopped = walk.each(|key, value| {
                given += 1;
                let Some(typed) = key_of::<K>(&known.shape, key, &mut values) else {
                    return ControlFlow::Break(Err(table.bad_value()));
                };
                match with_columns(table, known.columns(), (key, value), |row| each(typed, row)) {
                    Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                    Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(Walked::Whole)),
                    Err(error) => ControlFlow::Break(Err(error)),
                }
            });
            if let ControlFlow::Break(end) = stopped {
                break end;
            }
            wanted = (2 * wanted).min(STEP_ROWS.1);
        };
        let Kept { known, walk, .. } = &*self.kept;
        self.session.end_walk(&known[place].shape, walk);
        self.kept.walked = given;
        self.close();
        self.judge(walked)
    }

    /// Passes the rows whose first columns of an index have these values to `each`. False: nothing was passed, and the way that waits has to.
    ///
    /// # Errors
    /// `Value`, if `each` gives none.
    pub(super) fn scan_index_now<K: Key, V: Columns, I: Columns>(
        &mut self,
        table: &Table<K, V>,
        index: &str,
        values: &I,
        each: &mut impl FnMut(K, &[ValueRef<'_>]) -> Option<ControlFlow<()>>,
    ) -> Result<bool, Error> {
        let Some((place, view)) = self.open_now(table) else { return Ok(false) };
        let Kept { known, few, .. } = &mut *self.kept;
        let shape = &known[place].shape;
        let mut given = Vec::new();
        values.write(&mut given);
        let found = find::<I>(shape, index).ok().and_then(|at| {
            let from = shape.indexes[at].prefix(&given);
            let to = prefix_end(&from);
            let (direction, enough, most) = (Direction::Forward, usize::MAX, BY_INDEX_MOST);
            let wanted = FewWanted { from: &from, to: to.as_deref(), direction, enough, most };
            self.session.few_by_index_now((shape, at), &view, &wanted, few)
        });
        if found != Some(true) {
            self.close();
            return Ok(false);
        }
        if !self.counts(place) {
            self.forget_alone();
            return Ok(false);
        }
        let Kept { known, few, .. } = &*self.kept;
        let (known, mut values) = (&known[place], Vec::new());
        let given = few.iter().try_for_each(|(key, value)| {
            let Some(typed) = key_of::<K>(&known.shape, key, &mut values) else { return Err(Some(table.bad_value())) };
            match with_columns(table, known.columns(), (key, value), |row| each(typed, row)) {
                Ok(ControlFlow::Continue(())) => Ok(()),
                Ok(ControlFlow::Break(())) => Err(None),
                Err(error) => Err(Some(error)),
            }
        });
        self.close();
        self.judge(match given {
            Ok(()) | Err(None) => Ok(true),
            Err(Some(error)) => Err(error),
        })
    }
}
