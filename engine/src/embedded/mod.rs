//! The embedded library: a database inside the program, with typed tables.
//!
//! ```
//! use clearway_engine::embedded::{Database, Error};
//!
//! # fn main() -> Result<(), Error> {
//! let db = Database::in_memory()?;
//! let accounts = db.table::<i64, (String, i64)>("accounts", &["id"], &["owner", "balance"])?;
//! db.transact(|txn| {
//!     txn.put(&accounts, &1, &("Ada".to_owned(), 100))?;
//!     txn.put(&accounts, &2, &("Grace".to_owned(), 0))
//! })?;
//! let moved = db.transact(|txn| {
//!     let Some((_, balance)) = txn.get(&accounts, &1)? else { return Ok(0) };
//!     let amount = balance / 2;
//!     txn.update_with(&accounts, &1, |a| a.1 -= amount)?;
//!     txn.update_with(&accounts, &2, |a| a.1 += amount)?;
//!     Ok::<_, Error>(amount)
//! })?;
//! assert_eq!(moved, 50);
//! db.close()
//! # }
//! ```
//!
//! # Structure
//! ```text
//!   Database   opens, closes, keeps sessions; the synchronous calls park the thread, the `_async` ones are futures
//!   Table      a pair of types as a table of the catalog (columns: which types)
//!   Txn        operations inside a transaction; AsyncTxn the same as futures
//!   seats      what transactions use, kept from one to the next: sessions, tables as they were looked up
//!   short      reads without a future, and the first read of a transaction that only reads
//!   update     a closure on one row, a transaction of its own; concurrent updates of one row share a transaction (crate::line)
//!   attempts   how often a closure is run, and how each run ends
//!   engine()   the engine's database; a server's listener in the same process can work on it
//! ```
//!
//! # Invariants
//! - EMB-3: a closure is run again only after its transaction has been rolled back, and a session returns to the pool only without an open
//!   transaction. A transaction that a panic or a dropped future leaves open is dropped with its session and undone in the background.
//!
//! - EMB-6: closing is final for every clone. From its start no transaction begins ([`Error::Closed`]); it waits for the open transactions, and
//!   only then writes the clean end of the log and releases the directory.
//!
//! # Errors
//! [`Error`]; closures may return an error type of their own that implements `From<Error>`.
//!
//! # Not here
//! SQL, and listening for clients: the layers above.

mod attempts;
mod blocking;
mod borrowed;
mod columns;
mod error;
mod index;
mod rows;
mod seats;
mod short;
mod table;
mod transaction;
mod update;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use clearway_base::sync::{JoinHandle, Mutex, block_on, spawn_thread};
use clearway_base::vfs::{MemVfs, RealVfs, Vfs, VfsError, inline_io_here};
use clearway_storage::seams::BoxFuture;
use clearway_storage::store::StoreOptions;

pub use crate::value::{Storage, Value, ValueRef};
pub use blocking::Txn;
pub use clearway_storage::btree::Direction;
pub use columns::{Cell, ColumnKind, Columns, Key, KeyCell};
pub use error::Error;
pub use table::{Table, TableNames};
pub use transaction::AsyncTxn;

pub use crate::session::{Isolation, TxnOptions};

use crate::catalog::{Object, Oid, Relation, RelationKind};
use crate::db::{Db, DbOptions};
use crate::error::EngineError;
use attempts::{Attempts, finish_early, has_ended};
use blocking::wait;
use seats::{Open, Seat, Seats};
use transaction::Texts;

/// The database of a directory in which typed tables stand, and its schema.
pub const DATABASE: &str = "clearway";
/// See [`DATABASE`].
pub const SCHEMA: &str = "public";

/// Threads that run the file operations of asynchronous calls.
const IO_THREADS: usize = 4;

/// Process ids of embedded sessions in lock views; a listener's sessions have others.
const FIRST_PID: i32 = 1_000_000;

/// The default of a transaction: one snapshot for all of it. So what it read still holds when it commits what it wrote over it, or else the
/// closure runs again.
const DEFAULT_OPTIONS: TxnOptions = TxnOptions { isolation: Isolation::RepeatableRead, read_only: false };

/// An open database. Clones share it; it is closed by [`Database::close`], or when the last clone is dropped.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    db: Arc<Db>,
    database: Oid,
    schema: Oid,
    texts: Texts,
    next_pid: AtomicI32,
    seats: Seats,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Database")
    }
}

fn system(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::System { what, error: error.to_string() }
}

/// Creates a directory and those of its ancestors that do not exist.
async fn make_dirs(vfs: &dyn Vfs, dir: &Path) -> Result<(), Error> {
    let missing: Vec<&Path> = dir.ancestors().filter(|d| !d.as_os_str().is_empty()).collect();
    for (at, path) in missing.iter().enumerate().rev() {
        match vfs.create_dir(path).await {
            Ok(()) => {
                if let Some(above) = missing.get(at + 1) {
                    vfs.sync_dir(above).await.map_err(no_dir)?;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            // An ancestor may exist without being writable for us; only the directory itself counts.
            Err(_) if at > 0 => {}
            Err(error) => return Err(no_dir(error)),
        }
    }
    Ok(())
}

fn no_dir(error: VfsError) -> Error {
    Error::System { what: "the directory could not be made", error: error.to_string() }
}

impl Database {
    /// Opens the database in a directory and recovers it after a crash; creates both if they do not exist.
    ///
    /// # Errors
    /// `Held` if another process has it open; damage; a failed file operation.
    pub fn open(path: impl AsRef<Path>) -> Result<Database, Error> {
        Database::open_with(path, StoreOptions::default())
    }

    /// As [`Database::open`], with other sizes of log, page cache and files.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_with(path: impl AsRef<Path>, store: StoreOptions) -> Result<Database, Error> {
        let path = path.as_ref();
        let vfs = RealVfs::pooled(IO_THREADS).map_err(system("no thread for I/O"))?;
        wait(make_dirs(&vfs, path))?;
        Database::open_on(Arc::new(vfs), path, store)
    }

    /// Creates a database in memory; its contents are lost when it is closed.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn in_memory() -> Result<Database, Error> {
        let vfs = Arc::new(MemVfs::new());
        let dir = PathBuf::from("/memory");
        wait(make_dirs(&*vfs, &dir))?;
        Database::open_on(vfs, &dir, StoreOptions::default())
    }

    /// Opens an existing directory of any file system; each background loop gets a thread.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_on(vfs: Arc<dyn Vfs>, dir: &Path, store: StoreOptions) -> Result<Database, Error> {
        let mut threads = Vec::new();
        let mut refused = None;
        let start = |name: &'static str, task: BoxFuture<'static, ()>| {
            let started = spawn_thread(name, move || {
                let _inline = inline_io_here();
                block_on(task);
            });
            match started {
                // These two loops poll the clock and hold only a weak reference to the database, so nothing waits for their ends.
                Ok(_) if ["upkeep", "deadlock scan"].contains(&name) => {}
                Ok(thread) => threads.push(thread),
                Err(error) => refused = Some(error),
            }
        };
        let options = DbOptions { store, ..DbOptions::new(vfs, dir) };
        let db = wait(Db::open(options, start))?;
        if let Some(error) = refused {
            // Without its background loops the database would sooner or later stop.
            let _ = wait(db.close());
            return Err(system("no thread for a background loop")(error));
        }
        Database::on(db, threads)
    }

    /// The embedded interface of a database that is already open and whose background loops run elsewhere (in a server, in a simulation).
    ///
    /// # Errors
    /// If its database `clearway` was dropped.
    pub fn on_engine(db: Arc<Db>) -> Result<Database, Error> {
        Database::on(db, Vec::new())
    }

    fn on(db: Arc<Db>, threads: Vec<JoinHandle<()>>) -> Result<Database, Error> {
        let catalog = db.catalog();
        let missing = |kind: &'static str, name: &str| EngineError::Missing { kind, name: name.to_owned() };
        let database = catalog.database(DATABASE).ok_or_else(|| missing("database", DATABASE))?.oid;
        let schema = catalog.schema(database, SCHEMA).ok_or_else(|| missing("schema", SCHEMA))?.oid;
        let inner = Inner {
            db,
            database,
            schema,
            texts: Texts::new(),
            next_pid: AtomicI32::new(FIRST_PID),
            seats: Seats::new(),
            threads: Mutex::new("engine/background_threads", threads),
        };
        Ok(Database { inner: Arc::new(inner) })
    }

    /// The engine's database: for SQL, and for a listener in this process.
    pub fn engine(&self) -> &Arc<Db> {
        &self.inner.db
    }

    /// Opens the typed table of that name, or creates it; SQL sees the same names.
    ///
    /// # Errors
    /// `Mismatch` if it exists with other columns; `Declaration`.
    pub fn table<K: Key, V: Columns>(&self, table: &str, key: &[&str], value: &[&str]) -> Result<Table<K, V>, Error> {
        wait(self.table_async(TableNames { table, key, value }))
    }

    /// The same as a future.
    ///
    /// # Errors
    /// As [`Database::table`].
    pub async fn table_async<K: Key, V: Columns>(&self, names: TableNames<'_>) -> Result<Table<K, V>, Error> {
        let open = self.open_one()?;
        open.works();
        let mut seat = self.seat();
        let opened = Table::open(&mut seat.session, self.inner.database, self.inner.schema, &names).await;
        self.give_back(seat);
        opened
    }

    /// The names of the tables that typed tables can be, in their order: those of the schema `public`.
    pub fn tables(&self) -> Vec<String> {
        let catalog = self.inner.db.catalog();
        let relations = catalog.objects().filter_map(|object| match &**object {
            Object::Relation(relation) => Some(relation),
            _ => None,
        });
        let is_here =
            |relation: &&Relation| relation.kind == RelationKind::Table && relation.schema == self.inner.schema;
        let mut names: Vec<String> = relations.filter(is_here).map(|relation| relation.name.clone()).collect();
        names.sort();
        names
    }

    /// Runs a closure in a transaction and commits it; returns when the commit is durable. If the transaction meets a conflict or a deadlock,
    /// it is undone and the closure is run again, so the closure should do nothing but work on the database. If the closure returns an error,
    /// the transaction is undone.
    ///
    /// # Errors
    /// The closure's; `Failed` if it ignored an error; a conflict that did not go away in a thousand attempts.
    pub fn transact<T, E: From<Error>>(&self, mut f: impl FnMut(&mut Txn<'_, '_>) -> Result<T, E>) -> Result<T, E> {
        self.transact_with(DEFAULT_OPTIONS, &mut f)
    }

    /// As [`Database::transact`], with another isolation.
    ///
    /// # Errors
    /// As [`Database::transact`].
    pub fn transact_with<T, E: From<Error>>(
        &self,
        options: TxnOptions,
        mut f: impl FnMut(&mut Txn<'_, '_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let open = self.open_one()?;
        let mut seat = self.seat();
        let mut attempts = Attempts::default();
        loop {
            let mut txn = self.attempt(&mut seat, &open, options, &attempts);
            let prepared = if attempts.is_fair() { wait(attempts.prepare(&mut txn)) } else { Ok(()) };
            let result = match prepared {
                Ok(()) => f(&mut Txn(&mut txn)),
                Err(error) => Err(E::from(error)),
            };
            let end = attempts.ended(&mut txn);
            if has_ended(&mut seat.session, &result, &end) {
                self.give_back(seat);
                return result;
            }
            if let Some(ended) = wait(finish_early(&mut seat.session, result, end)) {
                return wait(self.reply_of(seat, ended));
            }
        }
    }

    fn attempt<'s>(
        &'s self,
        seat: &'s mut Seat,
        open: &'s Open<'s>,
        options: TxnOptions,
        attempts: &Attempts,
    ) -> AsyncTxn<'s> {
        let texts = &self.inner.texts;
        if attempts.is_first() {
            return AsyncTxn::begin_late(seat, texts, open, options);
        }
        AsyncTxn::begin(seat, texts, open, options)
    }

    /// [`Database::transact`] as a future; `f` makes the future of one attempt.
    ///
    /// # Errors
    /// Those of [`Database::transact`].
    pub async fn transact_async<T, E: From<Error>>(
        &self,
        options: TxnOptions,
        mut f: impl for<'t, 's> FnMut(&'t mut AsyncTxn<'s>) -> BoxFuture<'t, Result<T, E>>,
    ) -> Result<T, E> {
        let open = self.open_one()?;
        let mut seat = self.seat();
        let mut attempts = Attempts::default();
        loop {
            let mut txn = self.attempt(&mut seat, &open, options, &attempts);
            let result = match attempts.prepare(&mut txn).await {
                Ok(()) => f(&mut txn).await,
                Err(error) => Err(E::from(error)),
            };
            let end = attempts.ended(&mut txn);
            if let Some(ended) = finish_early(&mut seat.session, result, end).await {
                return self.reply_of(seat, ended).await;
            }
        }
    }

    /// Closes the database for every clone: refuses new transactions ([`Error::Closed`]), waits for the transactions that other threads have
    /// open, and writes everything to disk, so that the next opening has nothing to recover. Must not be called within a transaction: it would
    /// wait for that transaction for ever.
    ///
    /// # Errors
    /// A failed file operation; the next opening recovers.
    pub fn close(self) -> Result<(), Error> {
        self.inner.close()
    }

    /// Counts a transaction as in progress until the guard is dropped.
    ///
    /// # Errors
    /// `Closed` (EMB-6).
    fn open_one(&self) -> Result<Open<'_>, Error> {
        self.inner.seats.open(self.inner.db.transactions().store().wal())
    }

    fn seat(&self) -> Box<Seat> {
        self.inner.seats.take().unwrap_or_else(|| {
            let pid = self.inner.next_pid.fetch_add(1, Ordering::Relaxed);
            Seat::new(self.inner.db.session(pid, self.inner.database))
        })
    }

    /// Returns a transaction's result once everything on which it depends is durable (SES-4). The session is returned to the pool before that
    /// wait: the next transaction then finds it in the processor's caches.
    async fn reply_of<T, E: From<Error>>(&self, seat: Box<Seat>, ended: Result<T, E>) -> Result<T, E> {
        let due = seat.session.reply_due();
        self.give_back(seat);
        if ended.is_ok() {
            due.wait(&self.inner.db).await.map_err(|error| E::from(error.into()))?;
        }
        ended
    }

    /// EMB-3
    fn give_back(&self, seat: Box<Seat>) {
        if !seat.session.is_open() {
            self.inner.seats.give_back(seat);
        }
    }
}

impl Inner {
    fn close(&self) -> Result<(), Error> {
        let threads = std::mem::take(&mut *self.threads.lock());
        if threads.is_empty() {
            return Ok(()); // closed already, or another call's
        }
        wait(self.seats.close()); // EMB-6
        let closed = wait(self.db.close());
        for thread in threads {
            // A loop that panicked has poisoned the database, which closing reports.
            let _ = thread.join();
        }
        Ok(closed?)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A caller that wants the error calls `close`; the next opening recovers what did not reach the disk.
        let _ = self.close();
    }
}
