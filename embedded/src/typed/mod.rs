//! Typed tables: keys and values of Rust types on the same data that SQL sees.
//!
//! A table is opened by [`Database::table`](crate::Database::table). [`Database::read`](crate::Database::read) runs a closure with a [`ReadTxn`],
//! which can only read; [`Database::transact`](crate::Database::transact) one with a [`WriteTxn`], which can do all that a [`ReadTxn`] can, and
//! write. A closure may run again after a conflict, so it should do nothing but work on the database.
//!
//! Keys and values are a column or a tuple of up to eight: `bool`, `i16`, `i32`, `i64`, `String`, `Vec<u8>`; in values also `f64` and `Option`.
//!
//! ```
//! use clearway::typed::Table;
//!
//! # fn main() -> Result<(), clearway::Error> {
//! let db = clearway::Database::in_memory()?;
//! let people: Table<i64, (String, i32)> = db.table("people", &["id"], &["name", "age"])?;
//! db.connect()?.execute_batch("CREATE INDEX people_age ON people (age)")?;
//! db.transact(|t| {
//!     t.insert(&people, &1, &("Ada".to_owned(), 36))?;
//!     t.insert(&people, &2, &("Grace".to_owned(), 85))?;
//!     t.insert(&people, &3, &("Alan".to_owned(), 36))
//! })?;
//! let (oldest, alike) = db.read(|t| {
//!     let last = t.range(&people, ..).next_back().transpose()?;
//!     Ok::<_, clearway::Error>((last, t.by_index(&people, "people_age", &36)?))
//! })?;
//! assert_eq!(oldest, Some((3, ("Alan".to_owned(), 36))));
//! assert_eq!(alike.len(), 2);
//! # Ok(())
//! # }
//! ```

mod rows;
mod transaction;

pub use clearway_engine::embedded::{Cell, Columns, Direction, Error, Key, KeyCell, Table};
pub use rows::Rows;
pub use transaction::{ReadTxn, WriteTxn};

pub(crate) use transaction::Outer;
