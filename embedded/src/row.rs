//! Rows: a batch of rows as the session returned it, and views of single rows in it.

use std::sync::Arc;

use clearway_sql::session::client::ClientFuture;
use clearway_sql::session::client::Column as Described;
use clearway_sql::session::{Client, CopyIn};
use clearway_values::types::Oid;

use crate::error::Result;
use crate::value::{FromSql, ValueRef, conversion, is_binary, is_plain};

/// A column of a result.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// let rows = connection.query("SELECT 1 AS one, 'x'::text AS letter", ())?;
/// let names: Vec<&str> = rows.columns().iter().map(|column| column.name.as_str()).collect();
/// assert_eq!(names, ["one", "letter"]);
/// assert_eq!(rows.columns()[1].type_oid, 25); // text
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The number of its type, as in `pg_type`.
    pub type_oid: u32,
    /// Whether its values are asked for in the binary form.
    pub(crate) is_binary: bool,
}

/// A column as it is asked for.
pub(crate) fn column(name: &str, type_oid: Oid, texts: bool) -> Column {
    let is_binary = if texts { is_plain(type_oid) } else { is_binary(type_oid) };
    Column { name: name.to_owned(), type_oid, is_binary }
}

/// Rows of one call into the session, field after field.
#[derive(Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Where each field ends; `NULL` for those that are NULL.
    ends: Vec<usize>,
    rows: usize,
}

/// Instead of the end of a field.
const NULL: usize = usize::MAX;

impl Batch {
    /// No row.
    pub(crate) const NONE: Batch = Batch { bytes: Vec::new(), ends: Vec::new(), rows: 0 };

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.rows = 0;
    }

    /// Memory that it has.
    pub(crate) fn bytes_held(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a row; fields are written in the order of their numbers.
    fn push(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        for at in 0..fields {
            let there = write(at, &mut self.bytes);
            self.ends.push(if there { self.bytes.len() } else { NULL });
        }
        self.rows += 1;
    }

    fn field(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        if end == NULL {
            return None;
        }
        let before = self.ends[..at].iter().rev().find(|end| **end != NULL);
        self.bytes.get(before.copied().unwrap_or(0)..end)
    }
}

/// Takes what a statement gives: rows, its tag, and what it says of its parameters and columns.
#[derive(Default)]
pub(crate) struct Collector {
    pub(crate) batch: Batch,
    pub(crate) tag: String,
    pub(crate) suspended: bool,
    pub(crate) parameters: Vec<Oid>,
    pub(crate) columns: Option<Vec<Column>>,
    /// Dates, times and uuids are asked for as texts.
    pub(crate) texts: bool,
}

impl Client for Collector {
    fn row_description(&mut self, columns: &[Described<'_>]) {
        self.columns = Some(columns.iter().map(|c| column(c.name, c.ty.oid, self.texts)).collect());
    }
    fn parameter_description(&mut self, types: &[Oid]) {
        self.parameters = types.to_vec();
    }
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        self.batch.push(fields, write);
    }
    fn command_complete(&mut self, tag: &str) {
        self.tag.clear();
        self.tag.push_str(tag);
    }
    fn portal_suspended(&mut self) {
        self.suspended = true;
    }
    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        Box::pin(async { Ok(CopyIn::Failed("data for COPY FROM STDIN are given to copy_in".to_owned())) })
    }
}

/// Rows in a tag: `INSERT 0 3`, `UPDATE 3`, `SELECT 3`.
pub(crate) fn rows_of(tag: &str) -> u64 {
    let digits = tag.bytes().rev().take_while(u8::is_ascii_digit).count();
    tag.get(tag.len() - digits..).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// One row. Texts and bytes are borrowed from it.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// let mut rows = connection.query("SELECT 1 AS one, 'x'::text AS letter", ())?;
/// let row = rows.next()?.expect("a row");
/// let (one, letter): (i32, &str) = (row.get("one")?, row.get(1)?);
/// assert_eq!((one, letter), (1, "x"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub(crate) columns: &'a Arc<[Column]>,
    pub(crate) batch: &'a Batch,
    pub(crate) number: usize,
}

/// A column's name or its number from 0.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// let mut rows = connection.query("SELECT 1 AS one", ())?;
/// let row = rows.next()?.expect("a row");
/// assert_eq!(row.get::<i32>(0)?, row.get::<i32>("one")?);
/// assert!(row.get::<i32>("two").is_err());
/// # Ok(())
/// # }
/// ```
pub trait ColumnIndex {
    /// The number, if there is such a column.
    fn find(&self, columns: &[Column]) -> Option<usize>;
    /// As it stands in messages.
    fn name(&self) -> String;
}

impl ColumnIndex for usize {
    fn find(&self, columns: &[Column]) -> Option<usize> {
        Some(*self).filter(|at| *at < columns.len())
    }
    fn name(&self) -> String {
        self.to_string()
    }
}

impl ColumnIndex for &str {
    fn find(&self, columns: &[Column]) -> Option<usize> {
        columns.iter().position(|column| column.name == *self)
    }
    fn name(&self) -> String {
        format!("\"{self}\"")
    }
}

impl<'a> Row<'a> {
    /// The columns of the result.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut rows = connection.query("SELECT 1 AS one", ())?;
    /// let row = rows.next()?.expect("a row");
    /// assert_eq!(row.columns()[0].name, "one");
    /// # Ok(())
    /// # }
    /// ```
    pub fn columns(&self) -> &'a [Column] {
        self.columns
    }

    /// A value, converted.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let mut rows = connection.query("SELECT NULL::int AS n, 'Ada' AS name", ())?;
    /// let row = rows.next()?.expect("a row");
    /// assert_eq!(row.get::<Option<i32>>("n")?, None);
    /// assert_eq!(row.get::<&str>("name")?, "Ada");
    /// assert!(row.get::<i32>("n").is_err()); // NULL does not fit i32
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such column; the value does not fit the type.
    pub fn get<T: FromSql<'a>>(&self, column: impl ColumnIndex) -> Result<T> {
        let Some(at) = column.find(self.columns) else {
            return Err(conversion(column.name(), "there is no such column"));
        };
        let value = self.value(at)?;
        T::from_sql(value).map_err(|what| conversion(format!("\"{}\"", self.columns[at].name), what))
    }

    /// A value as it is.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// use clearway::ValueRef;
    /// let mut rows = connection.query("SELECT 7", ())?;
    /// assert_eq!(rows.next()?.expect("a row").value(0)?, ValueRef::Int(7));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such column.
    pub fn value(&self, at: usize) -> Result<ValueRef<'a>> {
        let Some(column) = self.columns.get(at) else {
            return Err(conversion(at.to_string(), "there is no such column"));
        };
        match self.batch.field(self.number * self.columns.len() + at) {
            None => Ok(ValueRef::Null),
            Some(bytes) if !column.is_binary => {
                let text = std::str::from_utf8(bytes);
                text.map(ValueRef::Text).map_err(|_| conversion(column.name.clone(), "a text that is not UTF-8"))
            }
            Some(bytes) => ValueRef::read(column.type_oid, bytes).map_err(|what| conversion(column.name.clone(), what)),
        }
    }
}

/// A type that is made of a whole row: tuples by position, structures by `#[derive(FromRow)]` by name.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// use clearway::{FromRow, Result, Row};
/// struct Point(f64, f64);
/// impl FromRow for Point {
///     fn from_row(row: Row<'_>) -> Result<Point> {
///         Ok(Point(row.get("x")?, row.get("y")?))
///     }
/// }
/// let point: Point = connection.query_row("SELECT 0.5::float8 AS x, 1.5::float8 AS y", ())?;
/// assert_eq!(point.0 + point.1, 2.0);
/// # Ok(())
/// # }
/// ```
pub trait FromRow: Sized {
    /// Converts.
    ///
    /// # Errors
    /// A column is missing or does not fit.
    fn from_row(row: Row<'_>) -> Result<Self>;
}

macro_rules! rows {
    ($($($ty:ident $at:tt),+;)*) => {$(
        impl<$($ty: for<'a> FromSql<'a>),+> FromRow for ($($ty,)+) {
            fn from_row(row: Row<'_>) -> Result<Self> {
                Ok(($(row.get::<$ty>($at)?,)+))
            }
        }
    )*};
}
rows! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11;
}
