//! Transactions as guards: a guard that is dropped without a commit rolls its transaction back.

use std::ops::{Deref, DerefMut};

use crate::blocking::Connection;
use crate::connection::{AsyncConnection, Undo};
use crate::error::Result;
use crate::savepoint::{AsyncSavepoint, Savepoint};
use crate::wait::wait;

/// A transaction that is rolled back when the guard is dropped without [`AsyncTransaction::commit`]; the rollback runs before the
/// connection's next call.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect_async().await?;
/// connection.execute("CREATE TABLE t (a int)", ()).await?;
/// {
///     let mut transaction = connection.transaction().await?;
///     transaction.execute("INSERT INTO t VALUES (1)", ()).await?;
/// } // no commit: rolled back before the next call
/// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ()).await?.0, 0);
/// # Ok::<(), clearway::Error>(())
/// # }).expect("done");
/// ```
pub struct AsyncTransaction<'c> {
    connection: &'c mut AsyncConnection,
    open: bool,
}

impl<'c> AsyncTransaction<'c> {
    pub(crate) async fn begin(connection: &'c mut AsyncConnection, how: &str) -> Result<AsyncTransaction<'c>> {
        refuse_nested(connection)?;
        connection.execute(how, ()).await?;
        Ok(AsyncTransaction { connection, open: true })
    }

    /// Commits; returns when the commit is durable.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// let mut transaction = connection.transaction().await?;
    /// transaction.execute("INSERT INTO t VALUES (1)", ()).await?;
    /// transaction.commit().await?;
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// 40001 and others: the transaction is rolled back. A transaction in which a statement has failed can't commit: 25P02.
    pub async fn commit(mut self) -> Result<()> {
        // A connection that is lost with the transaction is told so until the guard has rolled back.
        refuse_failed(self.connection).await?;
        self.open = false;
        self.connection.execute("COMMIT", ()).await.map(drop)
    }

    /// Rolls back.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// let mut transaction = connection.transaction().await?;
    /// transaction.execute("INSERT INTO t VALUES (1)", ()).await?;
    /// transaction.roll_back().await?;
    /// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ()).await?.0, 0);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub async fn roll_back(mut self) -> Result<()> {
        self.open = false;
        self.connection.execute("ROLLBACK", ()).await.map(drop)
    }

    /// A savepoint. Dropping the guard without [`AsyncSavepoint::release`] rolls back to it before the connection's next call, also after a
    /// statement has failed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int PRIMARY KEY)", ()).await?;
    /// let mut transaction = connection.transaction().await?;
    /// transaction.execute("INSERT INTO t VALUES (1)", ()).await?;
    /// {
    ///     let mut savepoint = transaction.savepoint().await?;
    ///     assert!(savepoint.execute("INSERT INTO t VALUES (1)", ()).await.is_err());
    /// } // the transaction goes on without it
    /// transaction.execute("INSERT INTO t VALUES (2)", ()).await?;
    /// transaction.commit().await?;
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// 25P02 in a failed transaction; `Closed`.
    pub async fn savepoint(&mut self) -> Result<AsyncSavepoint<'_>> {
        AsyncSavepoint::begin(self.connection).await
    }
}

fn refuse_nested(connection: &AsyncConnection) -> Result<()> {
    if connection.in_transaction()? {
        let text = "there is already a transaction in progress";
        return Err(clearway_sql::SqlError::new("25001", text).hint("Use a savepoint.").into());
    }
    Ok(())
}

/// COMMIT of a failed transaction rolls it back and says so by its tag only; here it is an error.
async fn refuse_failed(connection: &mut AsyncConnection) -> Result<()> {
    use clearway_sql::session::TransactionStatus;
    let mut lease = connection.lease().await?;
    let failed = lease.live().link.status() == TransactionStatus::Failed;
    lease.done();
    if !failed {
        return Ok(());
    }
    connection.execute("ROLLBACK", ()).await?;
    let text = "the transaction is rolled back: one of its statements failed";
    Err(clearway_sql::SqlError::new("25P02", text).into())
}

impl Deref for AsyncTransaction<'_> {
    type Target = AsyncConnection;
    fn deref(&self) -> &AsyncConnection {
        self.connection
    }
}

impl DerefMut for AsyncTransaction<'_> {
    fn deref_mut(&mut self) -> &mut AsyncConnection {
        self.connection
    }
}

impl Drop for AsyncTransaction<'_> {
    fn drop(&mut self) {
        if self.open {
            self.connection.undo = Undo::Transaction;
        }
    }
}

/// A transaction that is rolled back when the guard is dropped without [`Transaction::commit`].
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// let db = clearway::Database::in_memory()?;
/// let mut connection = db.connect()?;
/// connection.execute_batch("CREATE TABLE t (a int PRIMARY KEY)")?;
/// let mut transaction = connection.transaction()?;
/// transaction.execute("INSERT INTO t VALUES (1)", ())?;
/// {
///     let mut savepoint = transaction.savepoint()?;
///     savepoint.execute("INSERT INTO t VALUES (2)", ())?;
/// } // rolled back to the savepoint
/// transaction.commit()?;
/// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 1);
/// # Ok(())
/// # }
/// ```
pub struct Transaction<'c> {
    connection: &'c mut Connection,
    open: bool,
}

impl<'c> Transaction<'c> {
    pub(crate) fn begin(connection: &'c mut Connection, how: &str) -> Result<Transaction<'c>> {
        refuse_nested(&connection.0)?;
        connection.execute(how, ())?;
        Ok(Transaction { connection, open: true })
    }

    /// Commits; returns when the commit is durable.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int)", ())?;
    /// let mut transaction = connection.transaction()?;
    /// transaction.execute("INSERT INTO t VALUES (1)", ())?;
    /// assert!(transaction.execute("SELECT 1 / 0", ()).is_err());
    /// assert_eq!(transaction.commit().unwrap_err().code(), Some("25P02"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 40001 and others: the transaction is rolled back. A transaction in which a statement has failed can't commit: 25P02.
    pub fn commit(mut self) -> Result<()> {
        // A connection that is lost with the transaction is told so until the guard has rolled back.
        wait(refuse_failed(&mut self.connection.0))?;
        self.open = false;
        self.connection.execute("COMMIT", ()).map(drop)
    }

    /// Rolls back.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int)", ())?;
    /// let mut transaction = connection.transaction()?;
    /// transaction.execute("INSERT INTO t VALUES (1)", ())?;
    /// transaction.roll_back()?;
    /// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed`.
    pub fn roll_back(mut self) -> Result<()> {
        self.open = false;
        self.connection.execute("ROLLBACK", ()).map(drop)
    }

    /// A savepoint. Dropping the guard without [`Savepoint::release`] rolls back to it, also after a statement has failed.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int PRIMARY KEY)", ())?;
    /// let mut transaction = connection.transaction()?;
    /// transaction.execute("INSERT INTO t VALUES (1)", ())?;
    /// {
    ///     let mut savepoint = transaction.savepoint()?;
    ///     assert!(savepoint.execute("INSERT INTO t VALUES (1)", ()).is_err());
    /// } // the transaction goes on without it
    /// transaction.execute("INSERT INTO t VALUES (2)", ())?;
    /// transaction.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 25P02 in a failed transaction; `Closed`.
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Savepoint::begin(self.connection)
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.open {
            // Only a closed database refuses, and one that is lost: both have rolled back.
            let _ = self.connection.execute("ROLLBACK", ());
        }
    }
}
