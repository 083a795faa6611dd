//! Typed tables: keys and values of Rust types on the same data that SQL sees.
//!
//! A table is opened by [`Database::table`](crate::Database::table). [`Database::read`](crate::Database::read) runs a closure with a [`ReadTxn`],
//! which can only read; [`Database::transact`](crate::Database::transact) one with a [`WriteTxn`], which can do all that a [`ReadTxn`] can, and
//! write. A closure may run again after a conflict, so it should do nothing but work on the database.
//!
//! Keys and values are a column, a tuple of up to eight, or a structure with `#[derive(Key)]` or `#[derive(Columns)]`. Columns are `bool`, `i16`, `i32`,
//! `i64`, `String`, `Vec<u8>`; in values also `f64` and `Option`; and every type that implements [`Cell`].
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

//!
//! With structures, whose fields name the columns ([`Database::table_of`](crate::Database::table_of)):
//!
//! ```
//! # #[cfg(feature = "derive")]
//! # fn main() -> Result<(), clearway::Error> {
//! use clearway::typed::{Columns, Key};
//!
//! #[derive(Key)]
//! struct PersonId {
//!     id: i64,
//! }
//! #[derive(Columns, Debug, PartialEq)]
//! struct Person {
//!     name: String,
//!     #[clearway(rename = "years")]
//!     age: Option<i32>,
//! }
//!
//! let db = clearway::Database::in_memory()?;
//! let people = db.table_of::<PersonId, Person>("people")?;
//! db.transact(|t| t.put(&people, &PersonId { id: 1 }, &Person { name: "Ada".to_owned(), age: Some(36) }))?;
//! assert_eq!(db.connect()?.query_row::<(i32,)>("SELECT years FROM people WHERE id = 1", ())?.0, 36);
//! assert_eq!(db.read(|t| t.get(&people, &PersonId { id: 1 }))?.expect("a row").age, Some(36));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "derive"))]
//! # fn main() {}
//! ```
//!
//! A type of your own as a column:
//!
//! ```
//! use clearway::typed::{Cell, Storage, Value, ValueRef};
//!
//! #[derive(Debug, PartialEq)]
//! struct Cents(i64);
//! impl Cell for Cents {
//!     const STORAGE: Storage = Storage::Int(8);
//!     const TYPE_OID: u32 = 20; // bigint
//!     type Ref<'a> = Cents;
//!     fn to_value(&self) -> Value {
//!         Value::Int(self.0)
//!     }
//!     fn from_value(value: &Value) -> Option<Cents> {
//!         Cents::from_ref(value.borrow())
//!     }
//!     fn from_ref(value: ValueRef<'_>) -> Option<Cents> {
//!         match value {
//!             ValueRef::Int(cents) => Some(Cents(cents)),
//!             _ => None,
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), clearway::Error> {
//! let db = clearway::Database::in_memory()?;
//! let prices = db.table::<String, Cents>("prices", &["item"], &["price"])?;
//! db.transact(|t| t.put(&prices, &"pen".to_owned(), &Cents(150)))?;
//! assert_eq!(db.read(|t| t.get(&prices, &"pen".to_owned()))?, Some(Cents(150)));
//! # Ok(())
//! # }
//! ```

mod rows;
mod transaction;

#[cfg(feature = "derive")]
pub use clearway_derive::{Columns, Key};
#[doc(inline)]
pub use clearway_engine::embedded::{
    Cell, ColumnKind, Columns, Direction, Error, Key, KeyCell, Storage, Table, Value, ValueRef,
};
pub use rows::Rows;
pub use transaction::{ReadTxn, WriteTxn};

pub(crate) use transaction::Outer;

/// A structure whose fields name columns: `#[derive(Key)]` and `#[derive(Columns)]` implement it. See [`Database::table_of`](crate::Database::table_of).
///
/// ```
/// # #[cfg(feature = "derive")] {
/// use clearway::typed::{Columns, Named};
///
/// #[derive(Columns)]
/// struct Person {
///     name: String,
///     age: i32,
/// }
/// assert_eq!(Person::COLUMNS, ["name", "age"]);
/// # }
/// ```
pub trait Named {
    /// The columns' names, in their order.
    const COLUMNS: &'static [&'static str];
}
