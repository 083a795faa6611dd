//! The open database: connections, transactions as closures, typed tables, closing.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

use clearway_base::sync::Mutex;
use clearway_base::vfs::{MemVfs, Vfs as _};
use clearway_engine::embedded as tables;
use clearway_engine::embedded::{Isolation, Txn, TxnOptions};
use clearway_storage::buffer::PoolOptions;
use clearway_storage::store::StoreOptions;

use crate::connection::{AsyncConnection, Connection};
use crate::error::{Error, Result};
use crate::sessions::{Sessions, Shared, Start};
use crate::transaction::Transaction;
use crate::typed::{Columns, Key, Outer, ReadTxn, Table, WriteTxn};
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

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Builder {
    cache_bytes: usize,
    user: String,
    database: String,
    settings: Vec<(String, String)>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            cache_bytes: 64 << 20,
            user: "postgres".to_owned(),
            database: "clearway".to_owned(),
            settings: Vec::new(),
        }
    }
}

/// A log segment of a new database, in bytes: small, so that an empty database is.
const SEGMENT_BYTES: u64 = 256 << 10;
/// Log that is prepared ahead, in bytes.
const AHEAD_BYTES: u64 = 384 << 10;
/// Log that ordinary work leaves for undo and commits, in bytes.
const FLOOR_BYTES: usize = 128 << 10;
/// Pages by which files grow.
const EXTENT_PAGES: u32 = 32;
/// Pages that only DELETE, TRUNCATE and DROP may take on a full disk: fewer than a server keeps, since a small database is to stay small.
const SPARE_PAGES: u32 = 16;

/// What tells a new database from every other: the standard library's hasher begins with random numbers.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Builder {
    /// Memory for the page cache in bytes; 64 MiB if nothing is said.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Builder {
        self.cache_bytes = bytes;
        self
    }

    /// The role of connections; `postgres` if nothing is said, which may do everything.
    #[must_use]
    pub fn user(mut self, role: impl Into<String>) -> Builder {
        self.user = role.into();
        self
    }

    /// The database of connections; `clearway` if nothing is said, in which typed tables stand, too.
    #[must_use]
    pub fn database(mut self, name: impl Into<String>) -> Builder {
        self.database = name.into();
        self
    }

    /// A setting with which connections begin (`SET name = value`).
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Builder {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Opens the database of a directory, or makes it.
    ///
    /// # Errors
    /// Another process has it open (it is named); damage; a newer format; a failed file operation.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Database> {
        let store = self.store();
        Ok(self.on(Some(tables::Database::open_with(path, store)?), None))
    }

    /// Opens the database of a directory, or makes it; where another process has it open, works through that process. The connections are the
    /// same either way. When the process that has the directory ends, the next connection of another one opens it and lets the others in; a
    /// statement that ran meanwhile fails with [`Error::Lost`], and the connection can be used again.
    ///
    /// The process that has the directory lets others in if it has opened it with this call too (with the feature `server`), or is
    /// `clearway serve`. They reach it through
    /// a Unix socket in the directory, so they need the rights of its owner.
    ///
    /// ```
    /// # #[cfg(feature = "server")]
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let path = std::env::temp_dir().join(format!("clearway-shared-{}", std::process::id()));
    /// let first = clearway::Database::open_or_connect(&path)?;
    /// let second = clearway::Database::open_or_connect(&path)?; // as from another process
    /// assert!(first.has_directory() && !second.has_directory());
    /// second.connect()?.execute_batch("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")?;
    /// assert_eq!(first.connect()?.query_row::<(i32,)>("SELECT a FROM t", ())?.0, 1);
    /// second.close()?;
    /// first.close()?;
    /// # std::fs::remove_dir_all(path).ok();
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "server"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// `Held` if the other process lets nobody in for half a minute; those of [`Builder::open`].
    pub fn open_or_connect(self, path: impl AsRef<Path>) -> Result<Database> {
        let shared = Shared::new(path.as_ref(), self.store());
        let db = self.on(None, Some(shared));
        // Opens or connects now, so that whatever stands in the way is told here.
        db.connect()?;
        Ok(db)
    }

    /// A database in memory; its contents are gone when it is closed.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn in_memory(self) -> Result<Database> {
        let (vfs, dir) = (MemVfs::new(), Path::new("/memory"));
        wait(vfs.create_dir(dir)).map_err(std::io::Error::other)?;
        let store = StoreOptions { database_seed: seed(), ..StoreOptions::default() };
        Ok(self.on(Some(tables::Database::open_on(Arc::new(vfs), dir, store)?), None))
    }

    /// A database that is open already and whose background loops run elsewhere: in a simulation. It is closed there, too.
    ///
    /// # Errors
    /// If its database `clearway` was dropped.
    #[doc(hidden)]
    pub fn on_engine(self, db: Arc<clearway_engine::db::Db>) -> Result<Database> {
        Ok(self.on(Some(tables::Database::on_engine(db)?), None))
    }

    fn store(&self) -> StoreOptions {
        let mut store = StoreOptions { pool: PoolOptions::for_budget(self.cache_bytes), ..StoreOptions::default() };
        store.wal.segment_bytes = SEGMENT_BYTES;
        store.wal.ahead_bytes = AHEAD_BYTES;
        store.wal.floor_bytes = FLOOR_BYTES;
        store.space.extent_pages = EXTENT_PAGES;
        store.space.spare_pages = SPARE_PAGES;
        store.database_seed = seed();
        store
    }

    fn on(self, tables: Option<tables::Database>, shared: Option<Shared>) -> Database {
        let start = Start { database: self.database, user: self.user, settings: self.settings };
        let sessions = Arc::new(Sessions::new(tables, shared, start));
        Database { inner: Arc::new(Inner { sessions, pool: Mutex::new("embedded/pool", Vec::new()) }) }
    }
}

impl Database {
    /// Opens the database of a directory, or makes it. [`Database::builder`] has options.
    ///
    /// # Errors
    /// Another process has it open (it is named); damage; a newer format; a failed file operation.
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open(path)
    }

    /// As [`Database::open`]; where another process has the directory open, works through that process: see [`Builder::open_or_connect`].
    ///
    /// # Errors
    /// As there.
    pub fn open_or_connect(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open_or_connect(path)
    }

    /// Whether this process has the directory open; else it works through the one that has ([`Database::open_or_connect`]). May change when
    /// that one ends.
    pub fn has_directory(&self) -> bool {
        self.inner.sessions.is_home()
    }

    /// A database in memory; its contents are gone when it is closed.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn in_memory() -> Result<Database> {
        Builder::default().in_memory()
    }

    /// Options for opening.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A connection. Each thread or task that works at the same time as others needs its own; there may be thousands.
    ///
    /// # Errors
    /// `Closed`; the role or the database of the builder does not exist.
    pub fn connect(&self) -> Result<Connection> {
        wait(self.connect_async()).map(Connection)
    }

    /// A connection whose calls are futures.
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

    /// The names of the tables that can be opened as typed tables: those of the database `clearway`, schema `public`.
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
        // Connections that are still there keep the database open, but nobody is let in any more.
        self.sessions.stop_servers();
    }
}
