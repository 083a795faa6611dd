//! Reads that copy no value: a closure gets the row's columns as references into the bytes that were read.

use std::ops::{ControlFlow, RangeBounds};

use clearway_storage::btree::{Direction, KeyRange};

use super::columns::{Columns, Key};
use super::error::Error;
use super::rows::{Walked, key_of, with_columns};
use super::table::Table;
use super::transaction::AsyncTxn;
use crate::value::ValueRef;

impl AsyncTxn<'_> {
    /// Gives the value of a key to `f` where it is; what `f` returned, or `None` if there is no such key.
    ///
    /// # Errors
    /// From the engine; `Value`.
    pub async fn get_ref<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnOnce(V::Ref<'_>) -> R,
    ) -> Result<Option<R>, Error> {
        match self.get_now(table, key, |row| V::read_ref(row).map(f)) {
            Ok(found) => found,
            Err(read) => self.get_waiting(table, key, read).await,
        }
    }

    /// The value of a key, as `read` takes it from its columns.
    pub(super) async fn get_waiting<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        read: impl FnOnce(&[ValueRef<'_>]) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let shape = self.enter(table, false).await?;
        let key = table.key_bytes(&shape, key);
        let view = self.open(false);
        let found = match self.session.find(&shape, &view, &key).await {
            Ok(Some(value)) => with_columns(table, (&shape, None), (&key, value), read).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error.into()),
        };
        self.close();
        self.judge(found)
    }

    /// As [`AsyncTxn::scan`], with each value where it is.
    ///
    /// # Errors
    /// Those of [`AsyncTxn::scan`].
    pub async fn scan_ref<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
        direction: Direction,
        mut f: impl FnMut(K, V::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut each = |key, row: &[ValueRef<'_>]| V::read_ref(row).map(|value| f(key, value));
        let left = match self.scan_now(table, &range, direction, &mut each)? {
            Walked::Whole => return Ok(()),
            Walked::Nowhere => None,
            Walked::Left(left) => Some(left),
        };
        self.scan_waiting(table, (&range, left), direction, &mut each).await
    }

    /// Passes keys and columns of a range, or of what is left of it, to `each`.
    pub(super) async fn scan_waiting<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        (range, left): (&impl RangeBounds<K>, Option<KeyRange>),
        direction: Direction,
        each: &mut impl FnMut(K, &[ValueRef<'_>]) -> Option<ControlFlow<()>>,
    ) -> Result<(), Error> {
        let shape = self.enter(table, false).await?;
        let bytes = left.unwrap_or_else(|| table.range(&shape, range));
        if bytes.to.as_ref().is_some_and(|to| *to <= bytes.from) {
            return Ok(());
        }
        let view = self.open(false);
        let mut scan = self.session.scan(&shape, bytes, direction, &view);
        let mut keys = Vec::new();
        let walked = loop {
            match self.session.fill(&mut scan).await {
                Err(error) => break Err(Error::from(error)),
                Ok(false) => break Ok(()),
                Ok(true) => {}
            }
            let Some((key, value)) = scan.buffered() else { continue };
            let Some(typed) = key_of::<K>(&shape, key, &mut keys) else { break Err(table.bad_value()) };
            match with_columns(table, (&shape, None), (key, value), |row| each(typed, row)) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.close();
        self.judge(walked)
    }
}
