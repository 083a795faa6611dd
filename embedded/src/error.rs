//! The errors of the library, as one type.

use std::fmt;

use clearway_engine::embedded::Error as TableError;
use clearway_sql::SqlError;

/// An error of the library.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// match connection.execute("SELECT * FROM nowhere", ()) {
///     Err(clearway::Error::Sql(failure)) => assert_eq!(failure.code(), "42P01"), // undefined_table
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A statement failed.
    #[error("{0}")]
    Sql(Box<Failure>),
    /// The database was closed; it stays closed.
    #[error("the database is closed")]
    Closed,
    /// A query that must give a row gave none.
    #[error("the query returned no row")]
    NoRow,
    /// A value can't be converted to the type that was asked for.
    #[error("column {column}: {what}")]
    Conversion {
        /// The column: its name, or its number from 0 when there is no such column.
        column: String,
        /// What does not fit.
        what: String,
    },
    /// The parameters do not fit the statement.
    #[error("parameters: {0}")]
    Parameters(String),
    /// A future of this connection was dropped before it was ready; the transaction that was open is rolled back, and the connection can be
    /// used again.
    #[error("an earlier call was dropped before it was done: its transaction has been rolled back")]
    Dropped,
    /// Opening the directory, a typed table, or an operation on one.
    #[error(transparent)]
    Table(TableError),
    /// A file or a stream of the caller: COPY.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The process that has the directory has ended, or the connection to it. Whether the statement took effect is not known; the transaction
    /// that was open is rolled back unless this is the answer to its commit. The connection can be used again, in a transaction block after
    /// a rollback.
    #[error("the process that has the database has ended; whether the statement took effect is not known")]
    Lost,
    /// Something that only the process can do which has the directory: typed tables, serving, backups.
    #[error("{0} need the process that has the directory open; this one works through it")]
    Elsewhere(&'static str),
    /// A backup could not be taken.
    #[error("the backup failed: {0}")]
    Backup(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The listener could not be started.
    #[error("{0}")]
    Listen(String),
}

/// The result of everything here that can fail.
///
/// ```
/// fn count(connection: &mut clearway::Connection) -> clearway::Result<i64> {
///     connection.query_row::<(i64,)>("SELECT count(*) FROM pg_class", ()).map(|row| row.0)
/// }
/// # let _ = count;
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How a statement failed: the fields that PostgreSQL's clients know.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// # let db = clearway::Database::in_memory()?;
/// # let mut connection = db.connect()?;
/// connection.execute_batch("CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL CHECK (age > 0)); INSERT INTO people VALUES (1, 36)")?;
/// let Err(clearway::Error::Sql(failure)) = connection.execute("INSERT INTO people VALUES (1, 85)", ()) else { panic!() };
/// assert_eq!(failure.to_string(), r#"duplicate key value violates unique constraint "people_pkey" (SQLSTATE 23505): Key (id)=(1) already exists."#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(SqlError);

/// As `Display`: a program whose `main` returns the error shows it so.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Failure {
    /// The SQLSTATE: five characters, as in PostgreSQL's appendix A.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let Err(clearway::Error::Sql(failure)) = connection.execute("SELECT 1 / 0", ()) else { panic!() };
    /// assert_eq!(failure.code(), "22012");
    /// # Ok(())
    /// # }
    /// ```
    pub fn code(&self) -> &'static str {
        self.0.code()
    }

    /// The message.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let Err(clearway::Error::Sql(failure)) = connection.execute("SELECT 1 / 0", ()) else { panic!() };
    /// assert_eq!(failure.message(), "division by zero");
    /// # Ok(())
    /// # }
    /// ```
    pub fn message(&self) -> &str {
        self.0.message()
    }

    /// More about it.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute_batch("CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL CHECK (age > 0)); INSERT INTO people VALUES (1, 36)")?;
    /// let Err(clearway::Error::Sql(failure)) = connection.execute("INSERT INTO people VALUES (1, 85)", ()) else { panic!() };
    /// assert_eq!(failure.detail(), Some("Key (id)=(1) already exists."));
    /// # Ok(())
    /// # }
    /// ```
    pub fn detail(&self) -> Option<&str> {
        self.0.fields().detail.as_deref()
    }

    /// What to do.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// let Err(clearway::Error::Sql(failure)) = connection.execute("SELECT nothing(1)", ()) else { panic!() };
    /// assert!(failure.hint().is_some_and(|hint| hint.contains("explicit type casts")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hint(&self) -> Option<&str> {
        self.0.fields().hint.as_deref()
    }

    /// The constraint that was violated.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute_batch("CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL CHECK (age > 0)); INSERT INTO people VALUES (1, 36)")?;
    /// let Err(clearway::Error::Sql(failure)) = connection.execute("INSERT INTO people VALUES (2, -1)", ()) else { panic!() };
    /// assert_eq!(failure.constraint(), Some("people_age_check"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn constraint(&self) -> Option<&str> {
        self.name(b'n')
    }

    /// The table that it is about.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute_batch("CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL CHECK (age > 0)); INSERT INTO people VALUES (1, 36)")?;
    /// let Err(clearway::Error::Sql(failure)) = connection.execute("INSERT INTO people VALUES (2, -1)", ()) else { panic!() };
    /// assert_eq!(failure.table(), Some("people"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn table(&self) -> Option<&str> {
        self.name(b't')
    }

    /// The column that it is about.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute_batch("CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL CHECK (age > 0)); INSERT INTO people VALUES (1, 36)")?;
    /// let Err(clearway::Error::Sql(failure)) = connection.execute("INSERT INTO people VALUES (2, NULL)", ()) else { panic!() };
    /// assert_eq!(failure.column(), Some("age"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn column(&self) -> Option<&str> {
        self.name(b'c')
    }

    fn name(&self, field: u8) -> Option<&str> {
        let names = &self.0.fields().names;
        names.iter().find(|(byte, _)| *byte == field).map(|(_, name)| name.as_str())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message(), self.code())?;
        if let Some(detail) = self.detail() {
            write!(f, ": {detail}")?;
        }
        Ok(())
    }
}

impl Error {
    /// The SQLSTATE of a failed statement; 08006 for [`Error::Lost`].
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// assert_eq!(connection.execute("SELEC 1", ()).unwrap_err().code(), Some("42601"));
    /// assert_eq!(clearway::Error::Closed.code(), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Error::Sql(failure) => Some(failure.code()),
            Error::Lost => Some("08006"),
            _ => None,
        }
    }

    /// Whether the transaction may succeed when it is run again from its beginning: 40001 (another transaction changed what it read) or 40P01
    /// (deadlock). `Database::transaction` does so without being asked.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute_batch("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")?;
    /// let mut other = db.connect()?;
    /// let mut transaction = other.transaction_repeatable_read()?;
    /// transaction.query_row::<(i32,)>("SELECT a FROM t", ())?;
    /// connection.execute("UPDATE t SET a = 2", ())?;
    /// assert!(transaction.execute("UPDATE t SET a = 3", ()).unwrap_err().is_retryable());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Sql(failure) => matches!(failure.code(), "40001" | "40P01"),
            Error::Table(error) => error.is_retryable(),
            _ => false,
        }
    }

    /// Whether a row with the same key stands there already: SQLSTATE 23505.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// # let db = clearway::Database::in_memory()?;
    /// # let mut connection = db.connect()?;
    /// connection.execute_batch("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1)")?;
    /// assert!(connection.execute("INSERT INTO t VALUES (1)", ()).unwrap_err().is_duplicate());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_duplicate(&self) -> bool {
        match self {
            Error::Sql(failure) => failure.code() == "23505",
            Error::Table(error) => error.is_duplicate(),
            _ => false,
        }
    }
}

impl From<TableError> for Error {
    fn from(error: TableError) -> Error {
        match error {
            TableError::Closed => Error::Closed,
            error => Error::Table(error),
        }
    }
}

impl From<SqlError> for Error {
    fn from(error: SqlError) -> Error {
        Error::Sql(Box::new(Failure(error)))
    }
}
