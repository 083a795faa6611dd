//! The open database: connections, transactions as closures, typed tables, closing.

use std::path::Path;
use std::sync::Arc;

use clearway_base::sync::Mutex;
use clearway_engine::embedded as tables;
use clearway_engine::embedded::{Isolation, Txn, TxnOptions};

use crate::blocking::Connection;
use crate::builder::Builder;
use crate::connection::AsyncConnection;
use crate::error::{Error, Result};
use crate::sessions::Sessions;
use crate::transaction::Transaction;
use crate::typed::{Columns, Key, Named, Outer, ReadTxn, Table, WriteTxn};
use crate::wait::wait;

/// How often a closure is run again after a conflict before the conflict is told.
const ATTEMPTS_MAX: u32 = 1_000;

/// An open database. Clones share it; it is closed by [`Database::close`], or when the last clone and the last connection are gone.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// let db = clearway::Database::in_memory()?;
/// db.connect()?.execute_batch("CREATE TABLE counter (id int PRIMARY KEY, n bigint); INSERT INTO counter VALUES (1, 0)")?;
/// let n = db.transaction(|t| {
///     t.execute("UPDATE counter SET n = n + 1 WHERE id = 1", ())?;
///     t.query_row::<(i64,)>("SELECT n FROM counter WHERE id = 1", ())
/// })?;
/// assert_eq!(n.0, 1);
/// db.close()
/// # }
/// ```
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    sessions: Arc<Sessions>,
    /// Connections of closures that have ended.
    pool: Mutex<Vec<Connection>>,
}

impl Database {
    pub(crate) fn new(sessions: Sessions) -> Database {
        let pool = Mutex::new("embedded/pool", Vec::new());
        Database { inner: Arc::new(Inner { sessions: Arc::new(sessions), pool }) }
    }

    /// Opens the database of a directory, or makes it. [`Database::builder`] has options.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let dir = std::env::temp_dir().join(format!("clearway-doc-database-open-{}", std::process::id()));
    /// let path = dir.as_path();
    /// let db = clearway::Database::open(path)?;
    /// db.connect()?.execute_batch("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")?;
    /// db.close()?;
    /// let db = clearway::Database::open(path)?;
    /// assert_eq!(db.connect()?.query_row::<(i32,)>("SELECT a FROM t", ())?.0, 1);
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Another process has it open (it is named); damage; a newer format; a failed file operation.
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open(path)
    }

    /// As [`Database::open`]; where another process has the directory open, works through that process: see [`Builder::open_or_connect`].
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let dir = std::env::temp_dir().join(format!("clearway-doc-database-open_or_connect-{}", std::process::id()));
    /// let path = dir.as_path();
    /// let db = clearway::Database::open_or_connect(path)?;
    /// assert!(db.has_directory()); // no other process has it
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::open`].
    pub fn open_or_connect(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open_or_connect(path)
    }

    /// Whether this process has the directory open; else it works through the one that has ([`Database::open_or_connect`]). May change when
    /// that one ends.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// assert!(db.has_directory());
    /// # Ok(())
    /// # }
    /// ```
    pub fn has_directory(&self) -> bool {
        self.inner.sessions.is_home()
    }

    /// A database in memory; its contents are gone when it is closed.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// assert_eq!(db.connect()?.query_row::<(i32,)>("SELECT 1", ())?.0, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn in_memory() -> Result<Database> {
        Builder::default().in_memory()
    }

    /// Options for opening.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::builder().cache_bytes(16 << 20).in_memory()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A connection. Each thread or task that works at the same time as others needs its own; there may be thousands.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| db.connect()?.execute("SELECT 1", ()));
    ///     }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed`; the role or the database of the builder does not exist.
    pub fn connect(&self) -> Result<Connection> {
        wait(self.connect_async()).map(Connection)
    }

    /// A connection whose calls are futures.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
    /// # let db = clearway::Database::in_memory()?;
    /// let mut connection = db.connect_async().await?;
    /// connection.execute("CREATE TABLE t (a int)", ()).await?;
    /// # Ok::<(), clearway::Error>(())
    /// # }).expect("done");
    /// ```
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub async fn connect_async(&self) -> Result<AsyncConnection> {
        let sessions = &self.inner.sessions;
        let (slot, cancel) = sessions.open().await?;
        Ok(AsyncConnection::new(slot, Arc::clone(sessions), cancel))
    }

    /// Runs a closure in a transaction at repeatable read and commits it; returns when the commit is durable. After a conflict or a deadlock
    /// (40001, 40P01) the transaction is rolled back and the closure is run again, so it should do nothing but work on the database. An
    /// error of the closure rolls back.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// db.connect()?.execute_batch("CREATE TABLE accounts (id int PRIMARY KEY, balance int); INSERT INTO accounts VALUES (1, 10), (2, 0)")?;
    /// db.transaction(|t| {
    ///     let (balance,): (i32,) = t.query_row("SELECT balance FROM accounts WHERE id = 1", ())?;
    ///     t.execute("UPDATE accounts SET balance = balance - $1 WHERE id = 1", [balance])?;
    ///     t.execute("UPDATE accounts SET balance = balance + $1 WHERE id = 2", [balance])
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The closure's; the commit's; a conflict that did not go away in a thousand attempts.
    pub fn transaction<T>(&self, mut f: impl FnMut(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        let pooled = self.inner.pool.lock().pop();
        let mut connection = match pooled {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let mut attempts = 0;
        let result = loop {
            attempts += 1;
            let mut attempt = |connection: &mut Connection| {
                let mut transaction = connection.transaction_repeatable_read()?;
                let value = f(&mut transaction)?;
                transaction.commit()?;
                Ok(value)
            };
            match attempt(&mut connection) {
                Err(error) if Error::is_retryable(&error) && attempts < ATTEMPTS_MAX => {}
                ended => break ended,
            }
        };
        if !matches!(result, Err(Error::Closed)) {
            self.inner.pool.lock().push(connection);
        }
        result
    }

    /// Opens the typed table of that name, or creates it; SQL sees the same names.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// let people = db.table::<i64, (String, i32)>("people", &["id"], &["name", "age"])?;
    /// db.transact(|t| t.put(&people, &1, &("Ada".to_owned(), 36)))?;
    /// let age: (i32,) = db.connect()?.query_row("SELECT age FROM people WHERE name = 'Ada'", ())?;
    /// assert_eq!(age.0, 36);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The table exists with other columns; the declaration does not fit the types.
    pub fn table<K: Key, V: Columns>(&self, table: &str, key: &[&str], value: &[&str]) -> Result<Table<K, V>> {
        Ok(self.inner.sessions.home("typed tables")?.tables.table(table, key, value)?)
    }

    /// As [`Database::table`], with structures whose fields name the columns: `#[derive(Key)]`, `#[derive(Columns)]`.
    ///
    /// ```
    /// # #[cfg(feature = "derive")]
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// use clearway::typed::{Columns, Key};
    ///
    /// #[derive(Key)]
    /// struct Place { shelf: i32, slot: i32 }
    /// #[derive(Columns)]
    /// struct Box { label: String }
    ///
    /// let boxes = db.table_of::<Place, Box>("boxes")?;
    /// db.transact(|t| t.insert(&boxes, &Place { shelf: 1, slot: 2 }, &Box { label: "pens".to_owned() }))?;
    /// let (label,): (String,) = db.connect()?.query_row("SELECT label FROM boxes WHERE shelf = 1 AND slot = 2", ())?;
    /// assert_eq!(label, "pens");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "derive"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// As [`Database::table`].
    pub fn table_of<K: Key + Named, V: Columns + Named>(&self, table: &str) -> Result<Table<K, V>> {
        self.table(table, K::COLUMNS, V::COLUMNS)
    }

    /// The names of the tables that can be opened as typed tables: those of the database `clearway`, schema `public`.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// db.connect()?.execute("CREATE TABLE t (k bigint PRIMARY KEY, v text)", ())?;
    /// assert_eq!(db.tables()?, ["t"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Elsewhere`.
    pub fn tables(&self) -> Result<Vec<String>> {
        Ok(self.inner.sessions.home("typed tables")?.tables.tables())
    }

    /// Drops a typed table with its rows and indexes, as `DROP TABLE` does; whether it was there.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// assert_eq!(db.tables()?, ["t"]);
    /// assert!(db.drop_table("t")? && !db.drop_table("t")?);
    /// assert!(db.tables()?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Another table or a view depends on it (2BP01); `Elsewhere`; `Closed`.
    pub fn drop_table(&self, table: &str) -> Result<bool> {
        let (slot, cancel) = wait(self.inner.sessions.open_typed())?;
        let mut connection = Connection(AsyncConnection::new(slot, Arc::clone(&self.inner.sessions), cancel));
        let name = table.replace('"', "\"\"");
        match connection.execute_batch(&format!("DROP TABLE {}.\"{name}\"", tables::SCHEMA)) {
            Err(error) if error.code() == Some("42P01") => Ok(false),
            dropped => dropped.map(|()| true),
        }
    }

    /// Runs a closure that reads typed tables in one snapshot.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let t1 = db.table::<i64, i64>("t", &["k"], &["v"])?;
    /// db.transact(|t| t.put(&t1, &1, &10))?;
    /// let both = db.read(|t| Ok::<_, clearway::Error>((t.get(&t1, &1)?, t.get(&t1, &2)?)))?;
    /// assert_eq!(both, (Some(10), None));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The closure's; `Elsewhere`; `Closed`.
    pub fn read<T, E: From<Error>>(
        &self,
        mut f: impl FnMut(&mut ReadTxn<'_, '_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let options = TxnOptions { isolation: Isolation::RepeatableRead, read_only: true };
        let tables = &self.inner.sessions.home("typed tables").map_err(E::from)?.tables;
        let mut attempt = |txn: &mut Txn<'_, '_>| f(&mut ReadTxn::new(txn.again())).map_err(Outer);
        tables.transact_with(options, &mut attempt).map_err(|Outer(error)| error)
    }

    /// Runs a closure on typed tables in a transaction, as [`Database::transaction`] does for SQL.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let stock = db.table::<String, i64>("stock", &["item"], &["n"])?;
    /// let moved = db.transact(|t| {
    ///     t.put(&stock, &"pen".to_owned(), &3)?;
    ///     t.get(&stock, &"pen".to_owned())
    /// })?;
    /// assert_eq!(moved, Some(3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The closure's; the commit's; `Elsewhere`; `Closed`.
    pub fn transact<T, E: From<Error>>(
        &self,
        mut f: impl FnMut(&mut WriteTxn<'_, '_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let tables = &self.inner.sessions.home("typed tables").map_err(E::from)?.tables;
        let mut attempt = |txn: &mut Txn<'_, '_>| f(&mut WriteTxn::new(txn.again())).map_err(Outer);
        tables.transact(&mut attempt).map_err(|Outer(error)| error)
    }

    /// Runs `f` on the newest value of a key under the row's lock, stores what it leaves, and commits; what `f` returned, or none if there is no
    /// such key. For a row that many threads change this is faster than [`Database::transact`]: the row's lock is held for the change alone.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// let counters = db.table::<String, i64>("counters", &["name"], &["n"])?;
    /// db.transact(|t| t.put(&counters, &"visits".to_owned(), &0))?;
    /// let n = db.update_with(&counters, &"visits".to_owned(), |n| {
    ///     *n += 1;
    ///     *n
    /// })?;
    /// assert_eq!(n, Some(1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Elsewhere`; `Closed`; a failed file operation.
    pub fn update_with<K: Key, V: Columns, R>(
        &self,
        table: &Table<K, V>,
        key: &K,
        f: impl FnMut(&mut V) -> R,
    ) -> Result<Option<R>> {
        Ok(self.inner.sessions.home("typed tables")?.tables.update_with(table, key, f)?)
    }

    /// Closes the database for every clone and every connection: statements that run are stopped, open transactions are rolled back, listeners
    /// end, and everything is written to disk. What comes later answers [`Error::Closed`].
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// let mut connection = db.connect()?;
    /// db.clone().close()?;
    /// assert!(matches!(connection.execute("SELECT 1", ()), Err(clearway::Error::Closed)));
    /// assert!(matches!(db.connect(), Err(clearway::Error::Closed)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A failed file operation; the next opening recovers.
    pub fn close(self) -> Result<()> {
        self.inner.close()
    }

    #[cfg(feature = "server")]
    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.inner.sessions
    }
}

impl Inner {
    fn close(&self) -> Result<()> {
        // EMD-1
        wait(self.sessions.end());
        // A listener waits until no session is left, so those of the program end first.
        #[cfg(feature = "server")]
        self.sessions.stop_servers();
        self.pool.lock().clear();
        match self.sessions.home("closing") {
            Ok(home) => Ok(home.tables.clone().close()?),
            Err(_) => Ok(()),
        }
    }
}

#[cfg(feature = "server")]
impl Drop for Inner {
    fn drop(&mut self) {
        // Connections that are still there keep the database open, but no new one is let in.
        self.sessions.stop_servers();
    }
}
