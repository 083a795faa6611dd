//! The rows of a query, batch by batch.

use std::sync::Arc;

use clearway_base::waits::with_session;

use crate::connection::AsyncConnection;
use crate::error::{Error, Result};
use crate::row::{Batch, Collector, Column, FromRow, Row, rows_of};
use crate::statement::{BATCH_ROWS, Step};
use crate::wait::wait;

/// A query that has begun, apart from its connection: for bindings of other languages, whose objects can't borrow. The connection's next
/// statement ends it.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// let mut query = connection.begin_query("SELECT g FROM generate_series(1, 3) g", ())?;
/// let mut seen = Vec::new();
/// while let Some(row) = query.buffered() {
///     seen.push(row.get::<i32>(0)?);
/// }
/// assert_eq!(seen, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
pub struct Query {
    columns: Arc<[Column]>,
    /// What the statement has given. In a place of its own, which goes from one query to the next; none: it has gone.
    out: Option<Box<Collector>>,
    next: usize,
    more: bool,
    /// Which of the connection's statements it is.
    number: u64,
}

impl Query {
    pub(crate) fn new(columns: Arc<[Column]>, out: Box<Collector>, more: bool, number: u64) -> Query {
        Query { columns, out: Some(out), next: 0, more, number }
    }

    /// What the rows were in, for the next ones.
    pub(crate) fn into_spare(self) -> Option<Box<Collector>> {
        self.out
    }

    fn batch(&self) -> &Batch {
        self.out.as_deref().map_or(const { &Batch::NONE }, |out| &out.batch)
    }

    /// The columns.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let query = connection.begin_query("SELECT 1 AS one", ())?;
    /// assert_eq!(query.columns()[0].name, "one");
    /// # Ok(())
    /// # }
    /// ```
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// PostgreSQL's command tag (`INSERT 0 1`), once the last row has been fetched.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let query = connection.begin_query("CREATE TABLE t (a int)", ())?;
    /// assert_eq!(query.tag(), "CREATE TABLE");
    /// # Ok(())
    /// # }
    /// ```
    pub fn tag(&self) -> &str {
        self.out.as_deref().map_or("", |out| &out.tag)
    }

    /// Whether rows may be left on the connection, beyond those of the batch that is here.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let query = connection.begin_query("SELECT g FROM generate_series(1, 100000) g", ())?;
    /// assert!(query.has_more());
    /// # Ok(())
    /// # }
    /// ```
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// The next row of the batch that is here.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut query = connection.begin_query("SELECT 7", ())?;
    /// assert_eq!(query.buffered().expect("a row").get::<i32>(0)?, 7);
    /// assert!(query.buffered().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffered(&mut self) -> Option<Row<'_>> {
        if self.next == self.batch().rows() {
            return None;
        }
        self.next += 1;
        Some(Row { columns: &self.columns, batch: self.batch(), number: self.next - 1 })
    }

    /// The row that [`Query::buffered`] gave last, as long as its batch is here.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut query = connection.begin_query("SELECT 7", ())?;
    /// query.buffered();
    /// assert_eq!(query.current().expect("the same row").get::<i32>(0)?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn current(&self) -> Option<Row<'_>> {
        let number = self.next.checked_sub(1)?;
        Some(Row { columns: &self.columns, batch: self.batch(), number })
    }

    /// Fetches the next batch; false: there was none.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut query = connection.begin_query("SELECT g FROM generate_series(1, 1000) g", ()).await?;
    /// let mut rows = 0;
    /// loop {
    ///     while query.buffered().is_some() {
    ///         rows += 1;
    ///     }
    ///     if !query.fetch(&mut connection).await? {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(rows, 1000);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; `Parameters` if the connection has run another statement since.
    pub async fn fetch(&mut self, connection: &mut AsyncConnection) -> Result<bool> {
        if !std::mem::take(&mut self.more) {
            return Ok(false);
        }
        let mut lease = connection.lease().await?;
        let live = lease.live();
        let step = if live.number == self.number {
            let waits = Arc::clone(&live.waits);
            with_session(waits, live.more(BATCH_ROWS, self.out.get_or_insert_default())).await
        } else {
            Err(Error::Parameters("the query has ended: its connection has run another statement since".to_owned()))
        };
        lease.done();
        self.next = 0;
        self.more = matches!(step?, Step::Part);
        Ok(true)
    }

    /// Ends the query; rows that have not been fetched are not read.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut query = connection.begin_query("SELECT g FROM generate_series(1, 1000000) g", ()).await?;
    /// query.end(&mut connection).await?;
    /// assert!(!query.has_more());
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The commit's, where the statement was a transaction of its own.
    pub async fn end(&mut self, connection: &mut AsyncConnection) -> Result<()> {
        if std::mem::take(&mut self.more) {
            let mut lease = connection.lease().await?;
            let live = lease.live();
            let ended = if live.number == self.number { live.finish().await } else { Ok(()) };
            lease.done();
            ended?;
        }
        Ok(())
    }
}

/// Rows that a future gives. The connection is borrowed until they are dropped; a query that was not read to its end holds its snapshot until
/// [`AsyncRows::close`] or the connection's next call.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect_async().await?;
/// let mut rows = connection.query("SELECT g FROM generate_series(1, 3) g", ()).await?;
/// while let Some(row) = rows.next().await? {
///     println!("{}", row.get::<i32>(0)?);
/// }
/// # Ok::<(), clearway::Error>(())
/// # }).expect("done");
/// ```
pub struct AsyncRows<'c> {
    connection: &'c mut AsyncConnection,
    query: Query,
}

impl Drop for AsyncRows<'_> {
    /// The next rows use the memory of these.
    fn drop(&mut self) {
        self.connection.keep_spare(self.query.out.take());
    }
}

impl<'c> AsyncRows<'c> {
    pub(crate) fn new(connection: &'c mut AsyncConnection, query: Query) -> AsyncRows<'c> {
        AsyncRows { connection, query }
    }

    /// The columns.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let rows = connection.query("SELECT 1 AS one", ()).await?;
    /// assert_eq!(rows.columns()[0].name, "one");
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    pub fn columns(&self) -> &[Column] {
        &self.query.columns
    }

    /// How many rows the statement has changed, once the last row has been read: what `INSERT ... RETURNING` reports.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// let mut rows = connection.query("INSERT INTO t VALUES (1), (2) RETURNING a", ()).await?;
    /// while rows.next().await?.is_some() {}
    /// assert_eq!(rows.changed(), 2);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    pub fn changed(&self) -> u64 {
        rows_of(self.query.tag())
    }

    /// The next row.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut rows = connection.query("SELECT 'Ada'", ()).await?;
    /// assert_eq!(rows.next().await?.expect("a row").get::<&str>(0)?, "Ada");
    /// assert!(rows.next().await?.is_none());
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub async fn next(&mut self) -> Result<Option<Row<'_>>> {
        while self.query.next == self.query.batch().rows() {
            if !self.query.fetch(self.connection).await? {
                return Ok(None);
            }
        }
        Ok(self.query.buffered())
    }

    /// Ends the query; rows that have not been read are not read.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut rows = connection.query("SELECT g FROM generate_series(1, 1000000) g", ()).await?;
    /// rows.next().await?;
    /// rows.close().await?;
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The commit's, where the statement was a transaction of its own.
    pub async fn close(mut self) -> Result<()> {
        self.end().await
    }

    async fn end(&mut self) -> Result<()> {
        self.query.end(self.connection).await
    }

    /// All rows that are left, converted.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let squares = connection.query("SELECT g * g FROM generate_series(1, 3) g", ()).await?.collect::<(i32,)>().await?;
    /// assert_eq!(squares, [(1,), (4,), (9,)]);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; `Conversion`.
    pub async fn collect<T: FromRow>(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(row) = self.next().await? {
            all.push(T::from_row(row)?);
        }
        Ok(all)
    }
}

/// The rows of a query. The connection is borrowed until they are dropped.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// let mut rows = connection.query("SELECT g FROM generate_series(1, 3) g", ())?;
/// while let Some(row) = rows.next()? {
///     println!("{}", row.get::<i32>(0)?);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Rows<'c>(pub(crate) AsyncRows<'c>);

impl Rows<'_> {
    /// The columns.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let rows = connection.query("SELECT 1 AS one", ())?;
    /// assert_eq!(rows.columns()[0].name, "one");
    /// # Ok(())
    /// # }
    /// ```
    pub fn columns(&self) -> &[Column] {
        self.0.columns()
    }

    /// How many rows the statement has changed, once the last row has been read.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int)", ())?;
    /// let mut rows = connection.query("INSERT INTO t VALUES (1), (2) RETURNING a", ())?;
    /// while rows.next()?.is_some() {}
    /// assert_eq!(rows.changed(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn changed(&self) -> u64 {
        self.0.changed()
    }

    /// The next row. It borrows from these rows, so that texts and bytes need not be copied.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut rows = connection.query("SELECT 'Ada'", ())?;
    /// assert_eq!(rows.next()?.expect("a row").get::<&str>(0)?, "Ada");
    /// assert!(rows.next()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; `Closed`.
    #[allow(clippy::should_implement_trait, reason = "a row borrows from the rows, which an iterator's item can't")]
    pub fn next(&mut self) -> Result<Option<Row<'_>>> {
        if self.0.query.next < self.0.query.batch().rows() || !self.0.query.more {
            return Ok(self.0.query.buffered());
        }
        wait(self.0.next())
    }

    /// Ends the query; rows that have not been read are not read.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut rows = connection.query("SELECT g FROM generate_series(1, 1000000) g", ())?;
    /// rows.next()?;
    /// rows.close()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The commit's, where the statement was a transaction of its own.
    pub fn close(mut self) -> Result<()> {
        if self.0.query.more { wait(self.0.end()) } else { Ok(()) }
    }

    /// Calls a function for each row that is left.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut sum = 0;
    /// connection.query("SELECT g FROM generate_series(1, 10) g", ())?.for_each(|row| {
    ///     sum += row.get::<i32>(0)?;
    ///     Ok(())
    /// })?;
    /// assert_eq!(sum, 55);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's, and the function's.
    pub fn for_each(mut self, f: impl FnMut(Row<'_>) -> Result<()>) -> Result<()> {
        each(&mut self, f)
    }

    /// All rows that are left, converted.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let squares: Vec<(i32,)> = connection.query("SELECT g * g FROM generate_series(1, 3) g", ())?.collect()?;
    /// assert_eq!(squares, [(1,), (4,), (9,)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The statement's; `Conversion`.
    pub fn collect<T: FromRow>(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        each(&mut self, |row| {
            all.push(T::from_row(row)?);
            Ok(())
        })?;
        Ok(all)
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if self.0.query.more {
            // A commit that fails here had nothing to say yet: a caller that wants to know reads to the end.
            let _ = wait(self.0.end());
        }
    }
}

/// Calls a function for each row.
fn each(rows: &mut Rows<'_>, mut f: impl FnMut(Row<'_>) -> Result<()>) -> Result<()> {
    while let Some(row) = rows.next()? {
        f(row)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_rows_of_a_statement_use_the_memory_of_those_before() -> Result<(), crate::Error> {
        let db = crate::Database::in_memory()?;
        let mut connection = db.connect()?;
        for _ in 0..3 {
            let mut rows = connection.query("SELECT repeat('x', 100) WHERE $1 > 0", (1,))?;
            assert_eq!(rows.next()?.expect("a row").get::<&str>(0)?.len(), 100);
            drop(rows);
            assert!(
                connection.0.spare.as_ref().is_some_and(|out| out.batch.bytes_held() >= 100),
                "dropped rows leave their memory to the next ones"
            );
        }
        Ok(())
    }
}
