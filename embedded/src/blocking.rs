//! Connections whose calls park the thread until they are done.

use crate::connection::AsyncConnection;
use crate::error::{Error, Result};
use crate::params::Params;
use crate::row::{FromRow, rows_of};
use crate::rows::{AsyncRows, Query, Rows};
use crate::slot::CancelHandle;
use crate::transaction::Transaction;
use crate::wait::wait;

/// A connection. Its calls park the thread until they are done.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// let db = clearway::Database::in_memory()?;
/// let mut connection = db.connect()?;
/// connection.execute_batch("CREATE TABLE people (id bigint PRIMARY KEY, name text NOT NULL)")?;
/// connection.execute("INSERT INTO people VALUES ($1, $2), ($3, $4)", (1, "Ada", 2, "Grace"))?;
/// let name: (String,) = connection.query_row("SELECT name FROM people WHERE id = $1", [2])?;
/// assert_eq!(name.0, "Grace");
/// # Ok(())
/// # }
/// ```
pub struct Connection(pub(crate) AsyncConnection);

impl Connection {
    /// Runs a statement; how many rows it has changed (or returned, where it returns rows).
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int, b text)", ())?;
    /// assert_eq!(connection.execute("INSERT INTO t VALUES ($1, $2), ($3, $4)", (1, "one", 2, "two"))?, 2);
    /// assert_eq!(connection.execute("UPDATE t SET b = ? WHERE a = ?", ("zwei", 2))?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub fn execute(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<u64> {
        if let Some(query) = self.0.try_query(sql, &params) {
            let query = query?;
            let changed = rows_of(query.tag());
            self.0.keep_spare(query.into_spare());
            return Ok(changed);
        }
        wait(self.0.execute(sql, params))
    }

    /// Runs all statements of a text, separated by semicolons, as one transaction unless the text begins one itself. Rows are passed over.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute_batch("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")?;
    /// // One transaction: the second statement fails, so the first has no effect.
    /// assert!(connection.execute_batch("INSERT INTO t VALUES (2); INSERT INTO t VALUES (1)").is_err());
    /// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first statement's that fails; `Closed`.
    pub fn execute_batch(&mut self, sql: &str) -> Result<()> {
        wait(self.0.execute_batch(sql))
    }

    /// Runs a statement and streams its rows.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut rows = connection.query("SELECT g, g * g AS square FROM generate_series(1, $1) g", [3])?;
    /// while let Some(row) = rows.next()? {
    ///     println!("{} {}", row.get::<i32>(0)?, row.get::<i32>("square")?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub fn query(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Rows<'_>> {
        if let Some(query) = self.0.try_query(sql, &params) {
            return Ok(Rows(AsyncRows::new(&mut self.0, query?)));
        }
        wait(self.0.query(sql, params)).map(Rows)
    }

    /// As [`Connection::query`], without borrowing the connection: see [`Query`].
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut query = connection.begin_query("SELECT g FROM generate_series(1, 1000) g", ())?;
    /// let mut sum = 0;
    /// loop {
    ///     while let Some(row) = query.buffered() {
    ///         sum += row.get::<i64>(0)?;
    ///     }
    ///     if !connection.fetch(&mut query)? {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(sum, 500_500);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub fn begin_query(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Query> {
        if let Some(query) = self.0.try_query(sql, &params) {
            return query;
        }
        wait(self.0.begin_query(sql, params))
    }

    /// See [`Query::fetch`].
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut query = connection.begin_query("SELECT g FROM generate_series(1, 1000) g", ())?;
    /// let mut rows = 0;
    /// while query.buffered().is_some() || connection.fetch(&mut query)? && query.buffered().is_some() {
    ///     rows += 1;
    /// }
    /// assert_eq!(rows, 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Query::fetch`].
    pub fn fetch(&mut self, query: &mut Query) -> Result<bool> {
        wait(query.fetch(&mut self.0))
    }

    /// See [`Query::end`].
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut query = connection.begin_query("SELECT g FROM generate_series(1, 1000000) g", ())?;
    /// assert!(query.has_more());
    /// connection.end_query(&mut query)?;
    /// assert!(!query.has_more());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Query::end`].
    pub fn end_query(&mut self, query: &mut Query) -> Result<()> {
        wait(query.end(&mut self.0))
    }

    /// Runs a statement; its rows, converted, as an iterator.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let pairs = connection.query_as::<(i32, String)>("SELECT g, 'row ' || g FROM generate_series(1, 2) g", ())?;
    /// let pairs = pairs.collect::<clearway::Result<Vec<_>>>()?;
    /// assert_eq!(pairs[1], (2, "row 2".to_owned()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub fn query_as<T: FromRow>(
        &mut self,
        sql: &str,
        params: impl Params + Send + Sync,
    ) -> Result<impl Iterator<Item = Result<T>>> {
        let mut rows = self.query(sql, params)?;
        Ok(std::iter::from_fn(move || rows.next().and_then(|row| row.map(T::from_row).transpose()).transpose()))
    }

    /// The first row, converted; further rows are not read.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let (n,): (i64,) = connection.query_row("SELECT count(*) FROM generate_series(1, 10)", ())?;
    /// assert_eq!(n, 10);
    /// assert!(matches!(connection.query_row::<(i32,)>("SELECT 1 WHERE false", ()), Err(clearway::Error::NoRow)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NoRow`; the statement's; `Conversion`.
    pub fn query_row<T: FromRow>(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<T> {
        self.query_opt(sql, params)?.ok_or(Error::NoRow)
    }

    /// The first row, converted, if there is one.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// assert_eq!(connection.query_opt::<(i32,)>("SELECT 1 WHERE $1", [false])?, None);
    /// assert_eq!(connection.query_opt::<(i32,)>("SELECT 1 WHERE $1", [true])?, Some((1,)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; `Conversion`.
    pub fn query_opt<T: FromRow>(&mut self, sql: &str, params: impl Params + Send + Sync) -> Result<Option<T>> {
        let mut rows = self.query(sql, params)?;
        let found = rows.next()?.map(T::from_row).transpose()?;
        rows.close()?;
        Ok(found)
    }

    /// Begins a transaction. Dropping the guard without [`Transaction::commit`] rolls it back.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int)", ())?;
    /// {
    ///     let mut transaction = connection.transaction()?;
    ///     transaction.execute("INSERT INTO t VALUES (1)", ())?;
    /// } // no commit: rolled back
    /// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 25001 if one is open already; `Closed`.
    pub fn transaction(&mut self) -> Result<Transaction<'_>> {
        Transaction::begin(self, "BEGIN")
    }

    /// As [`Connection::transaction`], at repeatable read: one snapshot for all of it.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int)", ())?;
    /// let mut reader = db.connect()?;
    /// let mut snapshot = reader.transaction_repeatable_read()?;
    /// assert_eq!(snapshot.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 0);
    /// connection.execute("INSERT INTO t VALUES (1)", ())?;
    /// assert_eq!(snapshot.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Connection::transaction`].
    pub fn transaction_repeatable_read(&mut self) -> Result<Transaction<'_>> {
        Transaction::begin(self, "BEGIN ISOLATION LEVEL REPEATABLE READ")
    }

    /// From now on dates, times and uuids come in their text form, as `ValueRef::Text`: for bindings whose language has no types for them.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.dates_as_text()?;
    /// let (day,): (String,) = connection.query_row("SELECT date '2024-02-29'", ())?;
    /// assert_eq!(day, "2024-02-29");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub fn dates_as_text(&mut self) -> Result<()> {
        let mut lease = wait(self.0.lease())?;
        lease.live().texts = true;
        lease.live().forget_statements();
        lease.done();
        Ok(())
    }

    /// Stops what the connection runs, from any thread.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let cancel = connection.cancel_handle();
    /// std::thread::spawn(move || loop {
    ///     cancel.cancel();
    ///     std::thread::sleep(std::time::Duration::from_millis(10));
    /// });
    /// let stopped = connection.execute("SELECT pg_sleep(600)", ()).unwrap_err();
    /// assert_eq!(stopped.code(), Some("57014"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel_handle(&self) -> CancelHandle {
        self.0.cancel_handle()
    }

    /// Whether a transaction block is open: a guard, or a BEGIN of the program's own.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("BEGIN", ())?;
    /// assert!(connection.in_transaction()?);
    /// connection.execute("COMMIT", ())?;
    /// assert!(!connection.in_transaction()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub fn in_transaction(&self) -> Result<bool> {
        self.0.in_transaction()
    }
}
