//! Savepoints as guards: a guard that is dropped rolls back to its savepoint.

use std::ops::{Deref, DerefMut};

use crate::blocking::Connection;
use crate::connection::{AsyncConnection, Undo};
use crate::error::Result;

/// Savepoints of one name hide each other like the guards' scopes, so one name is enough.
const NAME: &str = "clearway_guard";

/// The statements that roll back to the innermost guard's savepoint. The savepoint itself goes too, or it would hide an outer one of the name.
pub(crate) fn undo() -> String {
    format!("{}; {}", back(), release())
}

fn back() -> String {
    format!("ROLLBACK TO SAVEPOINT {NAME}")
}

fn release() -> String {
    format!("RELEASE SAVEPOINT {NAME}")
}

/// A part of a transaction that can be taken back.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// connection.execute("CREATE TABLE t (a int)", ())?;
/// let mut transaction = connection.transaction()?;
/// let mut savepoint = transaction.savepoint()?;
/// savepoint.execute("INSERT INTO t VALUES (1)", ())?;
/// savepoint.release()?; // kept
/// transaction.commit()?;
/// # Ok(())
/// # }
/// ```
pub struct Savepoint<'c> {
    connection: &'c mut Connection,
    open: bool,
}

impl<'c> Savepoint<'c> {
    pub(crate) fn begin(connection: &'c mut Connection) -> Result<Savepoint<'c>> {
        connection.execute(&format!("SAVEPOINT {NAME}"), ())?;
        Ok(Savepoint { connection, open: true })
    }

    /// Keeps what has been done since.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int)", ())?;
    /// let mut transaction = connection.transaction()?;
    /// let mut savepoint = transaction.savepoint()?;
    /// savepoint.execute("INSERT INTO t VALUES (1)", ())?;
    /// savepoint.release()?;
    /// assert_eq!(transaction.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// 25P02 after a statement of it has failed: drop the guard instead.
    pub fn release(mut self) -> Result<()> {
        self.connection.execute(&release(), ())?;
        self.open = false;
        Ok(())
    }

    /// A savepoint within this one.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute("CREATE TABLE t (a int)", ())?;
    /// let mut transaction = connection.transaction()?;
    /// let mut outer = transaction.savepoint()?;
    /// outer.execute("INSERT INTO t VALUES (1)", ())?;
    /// outer.savepoint()?.execute("INSERT INTO t VALUES (2)", ())?; // dropped: taken back
    /// outer.release()?;
    /// assert_eq!(transaction.query_row::<(i64,)>("SELECT sum(a) FROM t", ())?.0, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::savepoint`].
    pub fn savepoint(&mut self) -> Result<Savepoint<'_>> {
        Savepoint::begin(self.connection)
    }
}

impl Deref for Savepoint<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl DerefMut for Savepoint<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        if self.open {
            // Only a closed database refuses, one that is lost, and a block that the program has ended itself: all have rolled back.
            let _ = self.connection.execute(&back(), ()).and_then(|_| self.connection.execute(&release(), ()));
        }
    }
}

/// As [`Savepoint`], with futures. A guard that is dropped without [`AsyncSavepoint::release`] is rolled back before the connection's next call.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect_async().await?;
/// connection.execute("CREATE TABLE t (a int)", ()).await?;
/// let mut transaction = connection.transaction().await?;
/// let mut savepoint = transaction.savepoint().await?;
/// savepoint.execute("INSERT INTO t VALUES (1)", ()).await?;
/// savepoint.release().await?; // kept
/// transaction.commit().await?;
/// # Ok::<(), clearway::Error>(())
/// # }).expect("done");
/// ```
pub struct AsyncSavepoint<'c> {
    connection: &'c mut AsyncConnection,
    open: bool,
}

impl<'c> AsyncSavepoint<'c> {
    pub(crate) async fn begin(connection: &'c mut AsyncConnection) -> Result<AsyncSavepoint<'c>> {
        connection.execute(&format!("SAVEPOINT {NAME}"), ()).await?;
        Ok(AsyncSavepoint { connection, open: true })
    }

    /// Keeps what has been done since.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// let mut transaction = connection.transaction().await?;
    /// let mut savepoint = transaction.savepoint().await?;
    /// savepoint.execute("INSERT INTO t VALUES (1)", ()).await?;
    /// savepoint.release().await?;
    /// assert_eq!(transaction.query_row::<(i64,)>("SELECT count(*) FROM t", ()).await?.0, 1);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// 25P02 after a statement of it has failed: drop the guard instead.
    pub async fn release(mut self) -> Result<()> {
        self.connection.execute(&release(), ()).await?;
        self.open = false;
        Ok(())
    }

    /// A savepoint within this one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// let mut transaction = connection.transaction().await?;
    /// let mut outer = transaction.savepoint().await?;
    /// outer.execute("INSERT INTO t VALUES (1)", ()).await?;
    /// outer.savepoint().await?.execute("INSERT INTO t VALUES (2)", ()).await?; // dropped: taken back
    /// outer.release().await?;
    /// assert_eq!(transaction.query_row::<(i64,)>("SELECT sum(a) FROM t", ()).await?.0, 1);
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// As [`AsyncTransaction::savepoint`](crate::AsyncTransaction::savepoint).
    pub async fn savepoint(&mut self) -> Result<AsyncSavepoint<'_>> {
        AsyncSavepoint::begin(self.connection).await
    }
}

impl Deref for AsyncSavepoint<'_> {
    type Target = AsyncConnection;
    fn deref(&self) -> &AsyncConnection {
        self.connection
    }
}

impl DerefMut for AsyncSavepoint<'_> {
    fn deref_mut(&mut self) -> &mut AsyncConnection {
        self.connection
    }
}

impl Drop for AsyncSavepoint<'_> {
    fn drop(&mut self) {
        if self.open {
            let undo = &mut self.connection.undo;
            *undo = match *undo {
                Undo::Nothing => Undo::Savepoints(1),
                Undo::Savepoints(count) => Undo::Savepoints(count + 1),
                Undo::Transaction => Undo::Transaction,
            };
        }
    }
}
