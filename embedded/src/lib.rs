//! A transactional SQL database inside your program: PostgreSQL's language, thousands of writers at once, and no caller is ever told
//! "database is locked".
//!
//! ```
//! use clearway::Database;
//!
//! # fn main() -> Result<(), clearway::Error> {
//! # let dir = std::env::temp_dir().join(format!("clearway-doc-{}", std::process::id()));
//! # let path = dir.as_path();
//! let db = Database::open(path)?;
//! let mut connection = db.connect()?;
//! connection.execute_batch("CREATE TABLE IF NOT EXISTS visits (page text PRIMARY KEY, n bigint NOT NULL)")?;
//! let upsert = "INSERT INTO visits VALUES ($1, 1) ON CONFLICT (page) DO UPDATE SET n = visits.n + 1";
//! connection.execute(upsert, ["/index"])?;
//! let mut rows = connection.query("SELECT page, n FROM visits WHERE n >= $1 ORDER BY page", [1])?;
//! while let Some(row) = rows.next()? {
//!     println!("{}: {}", row.get::<&str>("page")?, row.get::<i64>("n")?);
//! }
//! # drop(rows);
//! # drop(connection);
//! # db.close()?;
//! # std::fs::remove_dir_all(dir).ok();
//! # Ok(())
//! # }
//! ```
//!
//! # What there is
//! - [`Database`]: opens a directory or memory, gives connections, runs closures as transactions that are repeated after conflicts, closes.
//! - [`Connection`] parks the thread; [`AsyncConnection`] gives futures that are `Send` and need no particular runtime.
//! - Parameters: `$1` or `?` with tuples, arrays and slices; `:name` with [`Named`] or `#[derive(Params)]`. Statements are prepared once and kept.
//! - Rows: [`Row::get`] by name or number, texts and bytes borrowed; whole rows as tuples or by `#[derive(FromRow)]`.
//! - [`typed`] tables: keys and values of Rust types on the same data.
//! - Feature `server`: [`Database::serve`](Database::serve) opens the same live database to psql and every other PostgreSQL client.
//! - Features `jiff`, `uuid`, `serde_json`: their types as parameters and results.
//!
//! # Threads and processes
//! A `Database` may be shared by all threads; a connection belongs to one thread at a time. One process at a time has a directory open. In
//! another process, [`Database::open`] fails with an error that names the first, and [`Database::open_or_connect`] works through the first
//! process with the same calls.
//!
//! # Errors
//! [`Error`]; the error of a failed statement has PostgreSQL's SQLSTATE ([`Error::code`]).
#![forbid(unsafe_code)]

mod backup;
mod blocking;
mod builder;
mod connection;
mod copy;
mod copy_async;
mod database;
mod error;
mod guest;
mod link;
mod notifications;
mod param;
mod params;
mod row;
mod rows;
mod rows_as;
mod savepoint;
#[cfg(feature = "server")]
mod serve;
mod sessions;
mod slot;
mod statement;
mod transaction;
pub mod typed;
mod value;
mod wait;
mod wire;

pub use blocking::Connection;
pub use builder::Builder;
pub use connection::AsyncConnection;
pub use database::Database;
pub use error::{Error, Failure, Result};
pub use notifications::Notification;
pub use param::{Array, Param, ToSql, Value};
pub use params::{Named, Params};
pub use row::{Column, ColumnIndex, FromRow, Row};
pub use rows::{AsyncRows, Query, Rows};
pub use rows_as::AsyncRowsAs;
pub use savepoint::{AsyncSavepoint, Savepoint};
#[cfg(feature = "server")]
pub use serve::Server;
pub use slot::CancelHandle;
pub use transaction::{AsyncTransaction, Transaction};
pub use value::{FromSql, ValueRef};

#[cfg(feature = "derive")]
pub use clearway_derive::{FromRow, Params};

/// The programs of the guide are compiled.
#[cfg(doctest)]
#[cfg(feature = "derive")]
#[doc = include_str!("../../docs/embedding.md")]
mod guide {}
