//! Transactions on typed tables: `ReadTxn`, which can only read, and `WriteTxn`, which can also write.

use std::ops::{ControlFlow, Deref, DerefMut, RangeBounds};

use clearway_engine::embedded::{Columns, Direction, Error as TableError, Key, Table, Txn};

use super::rows::Rows;
use crate::error::{Error, Result};

/// A transaction that reads: one snapshot for all of it. It never waits for a writer, and no writer waits for it.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// let scores = db.table::<String, i64>("scores", &["player"], &["points"])?;
/// db.transact(|t| t.put(&scores, &"Ada".to_owned(), &7))?;
/// let points = db.read(|t| t.get(&scores, &"Ada".to_owned()))?;
/// assert_eq!(points, Some(7));
/// # Ok(())
/// # }
/// ```
pub struct ReadTxn<'t, 's> {
    txn: Txn<'t, 's>,
}

impl<'t, 's> ReadTxn<'t, 's> {
    pub(crate) fn new(txn: Txn<'t, 's>) -> ReadTxn<'t, 's> {
        ReadTxn { txn }
    }

    /// The value of a key.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| t.put(&t1, &1, &10))?;
    /// assert_eq!(db.read(|t| t.get(&t1, &1))?, Some(10));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The table is no longer as it was declared; a failed file operation.
    pub fn get<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K) -> Result<Option<V>> {
        Ok(self.txn.get(table, key)?)
    }

    /// Gives the value of a key to `f` where it is, uncopied: a `String` as `&str`, a `Vec<u8>` as `&[u8]`. What `f` returned; none if there is no
    /// such key.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let pages = db.table::<i64, (String, Vec<u8>)>("pages", &["id"], &["title", "body"])?;
    /// db.transact(|t| t.put(&pages, &1, &("Index".to_owned(), vec![7; 1000])))?;
    /// let length = db.read(|t| t.get_ref(&pages, &1, |(title, body)| title.len() + body.len()))?;
    /// assert_eq!(length, Some(1005));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn get_ref<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnOnce(V::Ref<'_>) -> R,
    ) -> Result<Option<R>> {
        Ok(self.txn.get_ref(table, key, f)?)
    }

    /// As [`ReadTxn::scan`], with each value where it is, uncopied.
    ///
    /// ```
    /// use clearway::typed::Direction;
    /// use std::ops::ControlFlow;
    ///
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let names = db.table::<i64, String>("names", &["id"], &["name"])?;
    /// db.transact(|t| (0..9).try_for_each(|id| t.put(&names, &id, &format!("name {id}"))))?;
    /// let mut bytes = 0;
    /// db.read(|t| {
    ///     bytes = 0; // the closure may run again
    ///     t.scan_ref(&names, 3.., Direction::Forward, |_, name| {
    ///         bytes += name.len();
    ///         ControlFlow::Continue(())
    ///     })
    /// })?;
    /// assert_eq!(bytes, 36);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn scan_ref<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
        direction: Direction,
        f: impl FnMut(K, V::Ref<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(self.txn.scan_ref(table, range, direction, f)?)
    }

    /// The rows whose keys lie in `range`, from either end: the iterator is double-ended. Rows are read in batches.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| (0..10).try_for_each(|k| t.put(&t1, &k, &(k * k))))?;
    /// let last_two: Vec<i64> =
    ///     db.read(|t| t.range(&t1, 3..9).rev().take(2).map(|row| row.map(|(_, v)| v)).collect::<clearway::Result<_>>())?;
    /// assert_eq!(last_two, [64, 49]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
    ) -> Rows<'_, 't, 's, K, V> {
        Rows::new(&mut self.txn, table, &range)
    }

    /// Passes the rows whose keys lie in `range` to `f`, in the order of the keys or in the reverse order, until `f` breaks off.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// use clearway::typed::Direction;
    /// use std::ops::ControlFlow;
    ///
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| (0..10).try_for_each(|k| t.put(&t1, &k, &k)))?;
    /// let mut last = Vec::new();
    /// db.read(|t| {
    ///     last.clear(); // the closure may run again
    ///     t.scan(&t1, .., Direction::Backward, |key, _| {
    ///         last.push(key);
    ///         if last.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    ///     })
    /// })?;
    /// assert_eq!(last, [9, 8, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn scan<K: Key, V: Columns>(
        &mut self,
        table: &Table<K, V>,
        range: impl RangeBounds<K>,
        direction: Direction,
        f: impl FnMut(K, V) -> ControlFlow<()>,
    ) -> Result<()> {
        Ok(self.txn.scan(table, range, direction, f)?)
    }

    /// The rows whose first columns of an index have these values, in the order of the index. SQL makes indexes (`CREATE INDEX`).
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let people = db.table::<i64, (String, i32)>("people", &["id"], &["name", "age"])?;
    /// db.connect()?.execute("CREATE INDEX people_age ON people (age)", ())?;
    /// db.transact(|t| t.put(&people, &1, &("Ada".to_owned(), 36)))?;
    /// assert_eq!(db.read(|t| t.by_index(&people, "people_age", &36))?, [(1, ("Ada".to_owned(), 36))]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The table has no index of this name, or its columns are of other types; as [`ReadTxn::get`].
    pub fn by_index<K: Key, V: Columns, I: Columns>(
        &mut self,
        table: &Table<K, V>,
        index: &str,
        values: &I,
    ) -> Result<Vec<(K, V)>> {
        let mut rows = Vec::new();
        self.txn.scan_index(table, index, values, |key, value| {
            rows.push((key, value));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }
}

/// A transaction that writes, too. It reads one snapshot; if another transaction has changed a row first that this one wants to change, the
/// closure runs again.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
/// db.transact(|t| {
///     let sum = t.range(&t1, ..).map(|row| row.map(|(_, v)| v)).sum::<clearway::Result<i64>>()?;
///     t.put(&t1, &1, &(sum + 1))
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct WriteTxn<'t, 's>(ReadTxn<'t, 's>);

impl<'t, 's> Deref for WriteTxn<'t, 's> {
    type Target = ReadTxn<'t, 's>;
    fn deref(&self) -> &ReadTxn<'t, 's> {
        &self.0
    }
}

impl<'t, 's> DerefMut for WriteTxn<'t, 's> {
    fn deref_mut(&mut self) -> &mut ReadTxn<'t, 's> {
        &mut self.0
    }
}

impl<'t, 's> WriteTxn<'t, 's> {
    pub(crate) fn new(txn: Txn<'t, 's>) -> WriteTxn<'t, 's> {
        WriteTxn(ReadTxn { txn })
    }

    /// The newest value of a key; the row stays locked against changes until the transaction ends.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| t.put(&t1, &1, &10))?;
    /// db.transact(|t| match t.get_for_update(&t1, &1)? {
    ///     Some(v) => t.put(&t1, &1, &(v + 1)), // it has not changed since
    ///     None => Ok(()),
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A conflict if the transaction's snapshot does not have the newest value; as [`ReadTxn::get`].
    pub fn get_for_update<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K) -> Result<Option<V>> {
        Ok(self.0.txn.get_for_update(table, key)?)
    }

    /// Inserts a new row.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| t.insert(&t1, &1, &10))?;
    /// let again = db.transact(|t| t.insert(&t1, &1, &11));
    /// assert!(again.is_err_and(|error: clearway::Error| error.is_duplicate()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_duplicate`] if the key stands there already; the transaction goes on then.
    pub fn insert<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K, value: &V) -> Result<()> {
        Ok(self.0.txn.insert(table, key, value)?)
    }

    /// Sets the value of a key, whether the key stands there or not.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| t.put(&t1, &1, &10))?;
    /// db.transact(|t| t.put(&t1, &1, &11))?;
    /// assert_eq!(db.read(|t| t.get(&t1, &1))?, Some(11));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_duplicate`] if a unique index refuses the value.
    pub fn put<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K, value: &V) -> Result<()> {
        Ok(self.0.txn.put(table, key, value)?)
    }

    /// Deletes a key; whether it stood there.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| t.put(&t1, &1, &10))?;
    /// assert!(db.transact(|t| t.delete(&t1, &1))?);
    /// assert!(!db.transact(|t| t.delete(&t1, &1))?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ReadTxn::get`].
    pub fn delete<K: Key, V: Columns>(&mut self, table: &Table<K, V>, key: &K) -> Result<bool> {
        Ok(self.0.txn.delete(table, key)?)
    }

    /// Runs `f` on the newest value of a key under the row's lock and stores what it leaves. What `f` returned; none if there is no such key.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| t.put(&t1, &1, &10))?;
    /// let old = db.transact(|t| t.update_with(&t1, &1, |v| std::mem::replace(v, 20)))?;
    /// assert_eq!(old, Some(10));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`WriteTxn::get_for_update`].
    pub fn update_with<K: Key, V: Columns, R>(
        &mut self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>> {
        Ok(self.0.txn.update_with(table, key, f)?)
    }

    /// Runs a closure; if it returns an error, what it did is undone and the transaction goes on without it.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let stock = db.table::<String, i64>("stock", &["item"], &["n"])?;
    /// db.transact(|t| {
    ///     t.put(&stock, &"pen".to_owned(), &1)?;
    ///     let ordered = t.savepoint(|t| {
    ///         t.update_with(&stock, &"pen".to_owned(), |n| *n -= 2)?;
    ///         match t.get(&stock, &"pen".to_owned())? {
    ///             Some(n) if n < 0 => Err(clearway::Error::NoRow),
    ///             _ => Ok(()),
    ///         }
    ///     });
    ///     assert!(ordered.is_err());
    ///     assert_eq!(t.get(&stock, &"pen".to_owned())?, Some(1));
    ///     Ok::<_, clearway::Error>(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// The closure's. After a conflict the transaction has failed as a whole.
    pub fn savepoint<T, E: From<Error>>(
        &mut self,
        f: impl FnOnce(&mut WriteTxn<'_, 's>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.0.txn.set_savepoint();
        let result = f(&mut WriteTxn::new(self.0.txn.again()));
        self.0.txn.end_savepoint(result.is_ok()).map_err(|error| E::from(error.into()))?;
        result
    }
}

/// A closure's error, to which the engine adds its own.
pub(crate) struct Outer<E>(pub(crate) E);

impl<E: From<Error>> From<TableError> for Outer<E> {
    fn from(error: TableError) -> Outer<E> {
        Outer(E::from(error.into()))
    }
}
