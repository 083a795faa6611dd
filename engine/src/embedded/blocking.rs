//! The synchronous calls: each parks the thread until its future is done.

use std::ops::{ControlFlow, RangeBounds};

use clearway_base::sync::block_on;
use clearway_base::vfs::inline_io_here;
use clearway_storage::btree::Direction;

use super::columns::{Columns, Key};
use super::error::Error;
use super::rows::Walked;
use super::table::Table;
use super::transaction::AsyncTxn;
use crate::value::ValueRef;

/// Drives a future on this thread, which performs its own I/O: handing it to another one and parking costs more.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    let _inline = inline_io_here();
    block_on(future)
}

/// An open transaction; what the closure of [`super::Database::transact`] works with.
pub struct Txn<'t, 's>(pub(super) &'t mut AsyncTxn<'s>);

impl<'s> Txn<'_, 's> {
    /// The same transaction, for a while.
    pub fn again(&mut self) -> Txn<'_, 's> {
        Txn(self.0)
    }

    /// As [`AsyncTxn::set_savepoint`].
    pub fn set_savepoint(&mut self) {
        self.0.set_savepoint();
    }

    /// As [`AsyncTxn::end_savepoint`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::end_savepoint`].
    pub fn end_savepoint(&mut self, keep: bool) -> Result<(), Error> {
        wait(self.0.end_savepoint(keep))
    }

    /// As [`AsyncTxn::scan_index`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::scan_index`].
    pub fn scan_index<K: Key, V: Columns, I: Columns>(
        &mut self,
        table: &Table<K, V>,
        index: &str,
        values: &I,
        mut f: impl FnMut(K, V) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut each = |key, row: &[ValueRef<'_>]| V::read_copied(row).map(|value| f(key, value));
        if self.0.scan_index_now(table, index, values, &mut each)? {
            return Ok(());
        }
        wait(self.0.scan_index_waiting(table, index, values, f))
    }

    /// As [`AsyncTxn::get`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::get`].
    pub fn get<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K) -> Result<Option<V>, Error> {
        match self.0.get_now(table, key, V::read_copied) {
            Ok(found) => found,
            Err(read) => wait(self.0.get_waiting(table, key, read)),
        }
    }

    /// As [`AsyncTxn::get_ref`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::get_ref`].
    pub fn get_ref<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnOnce(V::Ref<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        match self.0.get_now(table, key, |row| V::read_ref(row).map(f)) {
            Ok(found) => found,
            Err(read) => wait(self.0.get_waiting(table, key, read)),
        }
    }

    /// As [`AsyncTxn::scan_ref`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::scan_ref`].
    pub fn scan_ref<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
        direction: Direction,
        mut f: impl FnMut(K, V::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.each(table, &range, direction, &mut |key, row| V::read_ref(row).map(|value| f(key, value)))
    }

    /// As [`AsyncTxn::get_for_update`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::get_for_update`].
    pub fn get_for_update<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K) -> Result<Option<V>, Error> {
        wait(self.0.get_for_update(table, key))
    }

    /// As [`AsyncTxn::insert`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::insert`].
    pub fn insert<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K, value: &V) -> Result<(), Error> {
        if self.0.insert_now(table, key, value) {
            return Ok(());
        }
        wait(self.0.insert_waiting(table, key, value))
    }

    /// As [`AsyncTxn::put`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::put`].
    pub fn put<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K, value: &V) -> Result<(), Error> {
        if self.0.put_now(table, key, value) {
            return Ok(());
        }
        wait(self.0.put_waiting(table, key, value))
    }

    /// As [`AsyncTxn::delete`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::delete`].
    pub fn delete<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K) -> Result<bool, Error> {
        wait(self.0.delete(table, key))
    }

    /// As [`AsyncTxn::update_with`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::update_with`].
    pub fn update_with<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, Error> {
        wait(self.0.update_with(table, key, f))
    }

    /// As [`AsyncTxn::scan`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::scan`].
    pub fn scan<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
        direction: Direction,
        mut f: impl FnMut(K, V) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.each(table, &range, direction, &mut |key, row| V::read_copied(row).map(|value| f(key, value)))
    }

    fn each<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: &impl RangeBounds<K>,
        direction: Direction,
        each: &mut impl FnMut(K, &[ValueRef<'_>]) -> Option<ControlFlow<()>>,
    ) -> Result<(), Error> {
        let left = match self.0.scan_now(table, range, direction, each)? {
            Walked::Whole => return Ok(()),
            Walked::Nowhere => None,
            Walked::Left(left) => Some(left),
        };
        wait(self.0.scan_waiting(table, (range, left), direction, each))
    }

    /// As [`AsyncTxn::range`]; the call parks the thread until it is done.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::range`].
    pub fn range<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
    ) -> Result<Vec<(K, V)>, Error> {
        let mut rows = Vec::new();
        self.scan(table, range, Direction::Forward, |key, value| {
            rows.push((key, value));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }
}
