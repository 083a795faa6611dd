//! The builder of a database: its options, and the ways to open it: a directory, alone or shared with other processes; memory; an engine that
//! is open already.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

use clearway_base::vfs::{MemVfs, Vfs as _};
use clearway_engine::embedded as tables;
use clearway_storage::buffer::PoolOptions;
use clearway_storage::store::{StoreOptions, redo_threads};

use crate::database::Database;
use crate::error::Result;
use crate::sessions::{Sessions, Shared, Start};
use crate::wait::wait;

/// How a database is opened.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// let builder = clearway::Database::builder().cache_bytes(16 << 20).setting("work_mem", "16MB");
/// let db = builder.in_memory()?;
/// db.close()?;
/// # Ok(())
/// # }
/// ```
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
/// Pages by which files grow at first.
const EXTENT_PAGES: u32 = 32;
/// Pages that only DELETE, TRUNCATE and DROP may take on a full disk: fewer than a server keeps, since a small database is to stay small.
const SPARE_PAGES: u32 = 16;

/// What tells a new database from every other: the standard library's hasher begins with random numbers.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Builder {
    /// Memory for the page cache in bytes; 64 MiB if nothing is said. From 128 MiB on the system is asked to back it by huge pages.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::builder().cache_bytes(256 << 20).in_memory()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Builder {
        self.cache_bytes = bytes;
        self
    }

    /// The role of connections; `postgres` if nothing is said, which may do everything.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let dir = std::env::temp_dir().join(format!("clearway-doc-builder-user-{}", std::process::id()));
    /// let path = dir.as_path();
    /// let db = clearway::Database::open(path)?;
    /// db.connect()?.execute_batch("CREATE ROLE reader LOGIN; CREATE TABLE t (a int); GRANT SELECT ON t TO reader")?;
    /// db.close()?;
    /// let db = clearway::Database::builder().user("reader").open(path)?;
    /// let mut connection = db.connect()?;
    /// assert_eq!(connection.query_row::<(i64,)>("SELECT count(*) FROM t", ())?.0, 0);
    /// assert_eq!(connection.execute("DELETE FROM t", ()).unwrap_err().code(), Some("42501"));
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn user(mut self, role: impl Into<String>) -> Builder {
        self.user = role.into();
        self
    }

    /// The database of connections; `clearway` if nothing is said, in which typed tables stand, too.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let dir = std::env::temp_dir().join(format!("clearway-doc-builder-database-{}", std::process::id()));
    /// let path = dir.as_path();
    /// let db = clearway::Database::open(path)?;
    /// db.connect()?.execute("CREATE DATABASE archive", ())?;
    /// db.close()?;
    /// let db = clearway::Database::builder().database("archive").open(path)?;
    /// let (name,): (String,) = db.connect()?.query_row("SELECT current_database()", ())?;
    /// assert_eq!(name, "archive");
    /// # drop(db);
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn database(mut self, name: impl Into<String>) -> Builder {
        self.database = name.into();
        self
    }

    /// A setting with which connections begin (`SET name = value`).
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::builder().setting("statement_timeout", "10s").in_memory()?;
    /// let (limit,): (String,) = db.connect()?.query_row("SHOW statement_timeout", ())?;
    /// assert_eq!(limit, "10s");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Builder {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Opens the database of a directory, or makes it.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let dir = std::env::temp_dir().join(format!("clearway-doc-builder-open-{}", std::process::id()));
    /// let path = dir.as_path();
    /// let db = clearway::Database::builder().cache_bytes(16 << 20).open(path)?;
    /// let second = clearway::Database::open(path); // the directory is open: the error names the process
    /// assert!(second.is_err());
    /// db.close()?;
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
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
    /// `Held` if the other process lets no guest in for half a minute; those of [`Builder::open`].
    pub fn open_or_connect(self, path: impl AsRef<Path>) -> Result<Database> {
        let shared = Shared::new(path.as_ref(), self.store());
        let db = self.on(None, Some(shared));
        // Opens or connects now, so that whatever stands in the way is told here.
        db.connect()?;
        Ok(db)
    }

    /// A database in memory; its contents are gone when it is closed.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::builder().setting("timezone", "Europe/Paris").in_memory()?;
    /// let (zone,): (String,) = db.connect()?.query_row("SHOW timezone", ())?;
    /// assert_eq!(zone, "Europe/Paris");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn in_memory(self) -> Result<Database> {
        let (vfs, dir) = (MemVfs::new(), Path::new("/memory"));
        wait(vfs.create_dir(dir)).map_err(std::io::Error::other)?;
        let tables = tables::Database::open_on(Arc::new(vfs), dir, self.store())?;
        Ok(self.on(Some(tables), None))
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
        store.redo_threads = redo_threads();
        store
    }

    fn on(self, tables: Option<tables::Database>, shared: Option<Shared>) -> Database {
        let start = Start { database: self.database, user: self.user, settings: self.settings };
        Database::new(Sessions::new(tables, shared, start))
    }
}
