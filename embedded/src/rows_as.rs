//! Converted rows that a future gives.

use std::marker::PhantomData;

use crate::error::Result;
use crate::row::FromRow;
use crate::rows::AsyncRows;

/// The rows of [`crate::AsyncConnection::query_as`]. The connection is borrowed until they are dropped, as by [`AsyncRows`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect_async().await?;
/// let mut rows = connection.query_as::<(i32,)>("SELECT g FROM generate_series(1, 1000) g", ()).await?;
/// let mut sum = 0;
/// while let Some((g,)) = rows.next().await? {
///     sum += g;
/// }
/// assert_eq!(sum, 500_500);
/// # Ok::<(), clearway::Error>(())
/// # }).expect("done");
/// ```
pub struct AsyncRowsAs<'c, T> {
    rows: AsyncRows<'c>,
    of: PhantomData<fn() -> T>,
}

impl<'c, T: FromRow> AsyncRowsAs<'c, T> {
    pub(crate) fn of(rows: AsyncRows<'c>) -> AsyncRowsAs<'c, T> {
        AsyncRowsAs { rows, of: PhantomData }
    }

    /// The next row, converted.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut rows = connection.query_as::<(i32,)>("SELECT 7", ()).await?;
    /// assert_eq!(rows.next().await?, Some((7,)));
    /// assert_eq!(rows.next().await?, None);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The statement's; `Conversion`; `Closed`.
    pub async fn next(&mut self) -> Result<Option<T>> {
        self.rows.next().await?.map(T::from_row).transpose()
    }

    /// All rows that are left.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let squares = connection.query_as::<(i32,)>("SELECT g * g FROM generate_series(1, 3) g", ()).await?;
    /// assert_eq!(squares.collect().await?, [(1,), (4,), (9,)]);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// As for [`AsyncRowsAs::next`].
    pub async fn collect(self) -> Result<Vec<T>> {
        self.rows.collect().await
    }

    /// Ends the query; rows that have not been read are not read.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// let mut rows = connection.query_as::<(i64,)>("SELECT g FROM generate_series(1, 1000000) g", ()).await?;
    /// rows.next().await?;
    /// rows.close().await?;
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// The commit's, where the statement was a transaction of its own.
    pub async fn close(self) -> Result<()> {
        self.rows.close().await
    }
}
