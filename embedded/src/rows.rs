//! The rows of a query, batch by batch.

use std::sync::Arc;

use clearway_base::waits::with_session;

use crate::connection::AsyncConnection;
use crate::error::Result;
use crate::row::{Collector, Column, FromRow, Row, rows_of};
use crate::statement::{BATCH_ROWS, Step};
use crate::wait::wait;

/// Rows that a future gives. The connection is borrowed until they are dropped; a query that was not read to its end holds its snapshot until
/// [`AsyncRows::close`] or the connection's next call.
pub struct AsyncRows<'c> {
    connection: &'c mut AsyncConnection,
    columns: Arc<[Column]>,
    out: Collector,
    next: usize,
    more: bool,
}

impl<'c> AsyncRows<'c> {
    pub(crate) fn new(
        connection: &'c mut AsyncConnection,
        columns: Arc<[Column]>,
        out: Collector,
        more: bool,
    ) -> AsyncRows<'c> {
        AsyncRows { connection, columns, out, next: 0, more }
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many rows the statement has changed, once the last row has been read: what `INSERT ... RETURNING` reports.
    pub fn changed(&self) -> u64 {
        rows_of(&self.out.tag)
    }

    /// The next row.
    ///
    /// # Errors
    /// The statement's; `Closed`.
    pub async fn next(&mut self) -> Result<Option<Row<'_>>> {
        while self.next == self.out.batch.rows() {
            if !self.more {
                return Ok(None);
            }
            self.fetch().await?;
        }
        self.next += 1;
        Ok(Some(Row { columns: &self.columns, batch: &self.out.batch, number: self.next - 1 }))
    }

    async fn fetch(&mut self) -> Result<()> {
        self.more = false;
        let mut lease = self.connection.lease().await?;
        let waits = Arc::clone(&lease.live().waits);
        let step = with_session(waits, lease.live().more(BATCH_ROWS, &mut self.out)).await;
        lease.done();
        self.next = 0;
        self.more = matches!(step?, Step::Part);
        Ok(())
    }

    /// Ends the query; rows that have not been read are not read.
    ///
    /// # Errors
    /// The commit's, where the statement was a transaction of its own.
    pub async fn close(mut self) -> Result<()> {
        self.end().await
    }

    async fn end(&mut self) -> Result<()> {
        if std::mem::take(&mut self.more) {
            let mut lease = self.connection.lease().await?;
            let ended = lease.live().finish().await;
            lease.done();
            ended?;
        }
        Ok(())
    }

    /// All rows that are left, converted.
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
pub struct Rows<'c>(pub(crate) AsyncRows<'c>);

impl Rows<'_> {
    /// The columns.
    pub fn columns(&self) -> &[Column] {
        self.0.columns()
    }

    /// How many rows the statement has changed, once the last row has been read.
    pub fn changed(&self) -> u64 {
        self.0.changed()
    }

    /// The next row. It borrows from these rows, so that texts and bytes need not be copied.
    ///
    /// # Errors
    /// The statement's; `Closed`.
    #[allow(clippy::should_implement_trait, reason = "a row borrows from the rows, which an iterator's item can't")]
    pub fn next(&mut self) -> Result<Option<Row<'_>>> {
        if self.0.next < self.0.out.batch.rows() {
            self.0.next += 1;
            return Ok(Some(Row { columns: &self.0.columns, batch: &self.0.out.batch, number: self.0.next - 1 }));
        }
        wait(self.0.next())
    }

    /// Calls a function for each row that is left.
    ///
    /// # Errors
    /// The statement's, and the function's.
    pub fn for_each(mut self, f: impl FnMut(Row<'_>) -> Result<()>) -> Result<()> {
        each(&mut self, f)
    }

    /// All rows that are left, converted.
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
        // A commit that fails here had nothing to say yet: whoever wants to know reads to the end.
        let _ = wait(self.0.end());
    }
}

/// Calls a function for each row.
fn each(rows: &mut Rows<'_>, mut f: impl FnMut(Row<'_>) -> Result<()>) -> Result<()> {
    while let Some(row) = rows.next()? {
        f(row)?;
    }
    Ok(())
}
