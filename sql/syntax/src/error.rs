//! The one error type of this crate: the fields of the wire's ErrorResponse, with PostgreSQL's SQLSTATEs and wording.
//!
//! An error carries a byte offset into the text of the query; [`SqlError::position`] turns it into the 1-based character position that
//! clients print as `LINE 1: ... ^`.

use clearway_base::memory::Excess;
use std::fmt;
use std::panic::Location;

/// The result of everything in this crate that can refuse.
pub type Result<T> = std::result::Result<T, SqlError>;

/// A byte offset into the text of one Query or Parse message.
pub type Pos = u32;

/// SQLSTATE codes, named as in PostgreSQL's errcodes.txt.
#[allow(missing_docs)]
pub mod code {
    pub const SUCCESSFUL_COMPLETION: &str = "00000";
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    pub const DIVISION_BY_ZERO: &str = "22012";
    pub const NUMERIC_VALUE_OUT_OF_RANGE: &str = "22003";
    pub const STRING_DATA_RIGHT_TRUNCATION: &str = "22001";
    pub const SUBSTRING_ERROR: &str = "22011";
    pub const INVALID_TEXT_REPRESENTATION: &str = "22P02";
    pub const INVALID_BINARY_REPRESENTATION: &str = "22P03";
    pub const INVALID_DATETIME_FORMAT: &str = "22007";
    pub const DATETIME_FIELD_OVERFLOW: &str = "22008";
    pub const INVALID_PARAMETER_VALUE: &str = "22023";
    pub const RESERVED_NAME: &str = "42939";
    pub const INVALID_ESCAPE_SEQUENCE: &str = "22025";
    pub const INVALID_REGULAR_EXPRESSION: &str = "2201B";
    pub const INVALID_ARGUMENT_FOR_LOG: &str = "2201E";
    pub const INVALID_ARGUMENT_FOR_POWER: &str = "2201F";
    pub const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
    pub const ARRAY_SUBSCRIPT_ERROR: &str = "2202E";
    pub const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
    pub const TOO_MANY_COLUMNS: &str = "54011";
    pub const STATEMENT_TOO_COMPLEX: &str = "54001";
    pub const SYNTAX_ERROR: &str = "42601";
    pub const INVALID_NAME: &str = "42602";
    pub const UNDEFINED_COLUMN: &str = "42703";
    pub const AMBIGUOUS_COLUMN: &str = "42702";
    pub const UNDEFINED_TABLE: &str = "42P01";
    pub const UNDEFINED_OBJECT: &str = "42704";
    pub const UNDEFINED_FUNCTION: &str = "42883";
    pub const AMBIGUOUS_FUNCTION: &str = "42725";
    pub const UNDEFINED_PARAMETER: &str = "42P02";
    pub const INDETERMINATE_DATATYPE: &str = "42P18";
    pub const AMBIGUOUS_PARAMETER: &str = "42P08";
    pub const DATATYPE_MISMATCH: &str = "42804";
    pub const WRONG_OBJECT_TYPE: &str = "42809";
    pub const CANNOT_COERCE: &str = "42846";
    pub const GROUPING_ERROR: &str = "42803";
    pub const WINDOWING_ERROR: &str = "42P20";
    pub const INVALID_COLUMN_REFERENCE: &str = "42P10";
    pub const INVALID_SCHEMA_NAME: &str = "3F000";
    pub const INTERNAL_ERROR: &str = "XX000";
}

/// SQLSTATEs that users make.
pub mod state {
    use super::{Result, SqlError, code};
    use clearway_base::sync::Mutex;
    use std::collections::BTreeSet;
    use std::sync::OnceLock;

    /// How many of them a process keeps: they are never freed.
    const KEPT_MAX: usize = 10_000;

    /// An SQLSTATE that lives as long as the process.
    ///
    /// # Errors
    /// 54000 if users have made too many.
    pub fn intern(text: &str) -> Result<&'static str> {
        static KEPT: OnceLock<Mutex<BTreeSet<&'static str>>> = OnceLock::new();
        let mut kept = KEPT.get_or_init(|| Mutex::new("sql/states", BTreeSet::new())).lock();
        if let Some(known) = kept.get(text) {
            return Ok(known);
        }
        if kept.len() >= KEPT_MAX {
            return Err(SqlError::new(code::PROGRAM_LIMIT_EXCEEDED, "too many different SQLSTATEs were raised"));
        }
        let leaked: &'static str = Box::leak(text.to_owned().into_boxed_str());
        kept.insert(leaked);
        Ok(leaked)
    }
}

/// An error as the client sees it.
#[derive(Clone, PartialEq, Eq)]
pub struct SqlError(Box<Fields>);

/// The fields of a [`SqlError`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fields {
    /// SQLSTATE, five characters.
    pub code: &'static str,
    /// The primary message.
    pub message: String,
    /// The DETAIL line.
    pub detail: Option<String>,
    /// The HINT line.
    pub hint: Option<String>,
    /// Where in the text of the query, in bytes.
    pub at: Option<Pos>,
    /// Where in our own text it was made.
    pub source: Source,
    /// The objects that the error is about, by the byte of their field in an ErrorResponse: s schema, t table, c column,
    /// d data type, n constraint, W context.
    pub names: Vec<(u8, String)>,
}

/// A place in our own text. Two errors that differ in nothing else are the same.
#[derive(Clone, Copy)]
pub struct Source(&'static Location<'static>);

impl Source {
    /// The file, from the root of the repository.
    pub fn file(self) -> &'static str {
        self.0.file()
    }
    /// The line, from 1.
    pub fn line(self) -> u32 {
        self.0.line()
    }
    /// Crate and module: `exec::change` of `sql/exec/src/change.rs`, `session::run` of `sql/src/session/run.rs`.
    pub fn routine(self) -> String {
        let path = self.0.file();
        let inner = path.strip_prefix("sql/").unwrap_or(path).replacen("src/", "", 1);
        inner.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/lib").replace('/', "::")
    }
}

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Source {}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file(), self.line())
    }
}

impl SqlError {
    /// An error with a code and a message.
    #[track_caller]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        let (source, message) = (Source(Location::caller()), message.into());
        Self(Box::new(Fields { code, message, detail: None, hint: None, at: None, source, names: Vec::new() }))
    }
    /// The same with no place in the text.
    #[must_use]
    pub fn nowhere(mut self) -> Self {
        self.0.at = None;
        self
    }
    /// 0A000: `what is not supported`.
    #[track_caller]
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(code::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }
    /// XX000, for a state that other code was to exclude.
    #[track_caller]
    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, what)
    }
    /// With a place, unless it has one already.
    pub fn at(mut self, at: Pos) -> Self {
        self.0.at.get_or_insert(at);
        self
    }
    /// With another message.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }
    /// 0A000 with this message, at the place of this error.
    #[must_use]
    pub fn as_refused(mut self, message: impl Into<String>) -> Self {
        (self.0.code, self.0.message) = (code::FEATURE_NOT_SUPPORTED, message.into());
        (self.0.detail, self.0.hint) = (None, None);
        self
    }
    /// With a DETAIL line.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }
    /// With a HINT line.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }
    /// With the table that it is about.
    pub fn table(mut self, schema: impl Into<String>, table: impl Into<String>) -> Self {
        self.0.names.extend([(b's', schema.into()), (b't', table.into())]);
        self
    }
    /// With the column that it is about.
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.0.names.push((b'c', column.into()));
        self
    }
    /// With the constraint, or the index, that it is about.
    pub fn constraint(mut self, constraint: impl Into<String>) -> Self {
        self.0.names.push((b'n', constraint.into()));
        self
    }
    /// With a field of an ErrorResponse, by its byte.
    pub fn named(mut self, field: u8, text: impl Into<String>) -> Self {
        self.0.names.push((field, text.into()));
        self
    }
    /// With the data type that it is about.
    pub fn data_type(mut self, schema: impl Into<String>, name: impl Into<String>) -> Self {
        self.0.names.extend([(b's', schema.into()), (b'd', name.into())]);
        self
    }
    /// With a CONTEXT line.
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.0.names.push((b'W', context.into()));
        self
    }
    /// With one more CONTEXT line behind those that it has.
    pub fn within(mut self, context: impl Into<String>) -> Self {
        let context = context.into();
        match self.0.names.iter_mut().find(|(field, _)| *field == b'W') {
            Some((_, known)) => {
                known.push('\n');
                known.push_str(&context);
            }
            None => self.0.names.push((b'W', context)),
        }
        self
    }
    /// Its place is one in this text, which the client did not send.
    pub fn internal_to(mut self, text: &str) -> Self {
        if let Some(at) = self.0.at.take() {
            let position = char_position(text, at).to_string();
            self.0.names.extend([(b'p', position), (b'q', text.to_owned())]);
        }
        self
    }
    /// All fields.
    pub fn fields(&self) -> &Fields {
        &self.0
    }
    /// SQLSTATE.
    pub fn code(&self) -> &'static str {
        self.0.code
    }
    /// The primary message.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The 1-based position in characters within `sql`, the text that was parsed.
    pub fn position(&self, sql: &str) -> Option<u32> {
        self.0.at.map(|at| char_position(sql, at))
    }
}

/// The 1-based position in characters of byte `at` of `sql`; past the end counts as the end.
pub fn char_position(sql: &str, at: Pos) -> u32 {
    let at = at as usize;
    1 + sql.char_indices().take_while(|(i, _)| *i < at).count() as u32
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Debug for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SqlError {}

/// 53200, with the account that is used up.
impl From<Excess> for SqlError {
    #[track_caller]
    fn from(excess: Excess) -> Self {
        let mb = |bytes: i64| format!("{:.1} MB", bytes as f64 / f64::from(1 << 20));
        let mut detail = format!("The statement has {}", mb(excess.statement_bytes));
        if excess.more_bytes > 0 {
            detail += &format!(" and asked for {} more", mb(excess.more_bytes));
        }
        if let Some((kind, bytes)) = excess.most {
            detail += &format!("; most of it: {}, {}", kind.name(), mb(bytes));
        }
        let of = excess.of.map_or_else(String::new, |of| format!(" of {of}"));
        let message = format!("out of memory: {}{of} ({}) is used up", excess.limit.name(), mb(excess.bytes_max));
        Self::new("53200", message).detail(detail + ".")
    }
}

/// What stopped a computation from outside, as PostgreSQL says it; the numbers are those of `clearway_sql`'s `Reason`.
impl From<clearway_base::breath::Stopped> for SqlError {
    fn from(stopped: clearway_base::breath::Stopped) -> Self {
        let (code, message) = match stopped.0 {
            1 => ("57014", "canceling statement due to user request"),
            2 => ("57014", "canceling statement due to statement timeout"),
            3 => ("55P03", "canceling statement due to lock timeout"),
            4 => ("25P03", "terminating connection due to idle-in-transaction timeout"),
            5 => ("57P05", "terminating connection due to idle-session timeout"),
            _ => ("57P01", "terminating connection due to administrator command"),
        };
        SqlError::new(code, message)
    }
}
