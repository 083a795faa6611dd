//! The handles that C code holds: numbers, each the name of a connection or a statement.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::{Arc, LazyLock};

use clearway::{CancelHandle, Query, Value};
use clearway_base::sync::Mutex;

/// A connection of C's.
pub(crate) struct Connection {
    pub(crate) inner: clearway::Connection,
    /// The statement whose rows are being stepped through.
    pub(crate) stepping: usize,
    pub(crate) changes: i64,
}

/// What the functions may look at while a call is at work with the connection.
pub(crate) struct ConnectionEntry {
    /// None while a call has it, or if opening failed.
    pub(crate) free: Option<Box<Connection>>,
    pub(crate) opened: bool,
    pub(crate) cancel: Option<CancelHandle>,
    pub(crate) message: Arc<CString>,
    pub(crate) sqlstate: Arc<CString>,
    pub(crate) changes: i64,
    /// The directory that it shares with others; none: a database of its own.
    pub(crate) path: Option<String>,
    pub(crate) database: Option<clearway::Database>,
}

/// A statement of C's.
pub(crate) struct Statement {
    pub(crate) sql: String,
    pub(crate) values: Vec<Value>,
    pub(crate) query: Option<Query>,
    pub(crate) on_row: bool,
    /// Texts of the current row and names of columns that C has asked for, until the next step.
    pub(crate) texts: HashMap<usize, Vec<u8>>,
    pub(crate) names: HashMap<usize, CString>,
}

/// A statement, and whose it is.
pub(crate) struct StatementEntry {
    /// None while a call has it.
    pub(crate) free: Option<Box<Statement>>,
    pub(crate) connection: usize,
}

/// Everything that C has handles of.
#[derive(Default)]
pub(crate) struct Handles {
    last: usize,
    pub(crate) connections: BTreeMap<usize, ConnectionEntry>,
    pub(crate) statements: BTreeMap<usize, StatementEntry>,
    /// Directories, and how many connections share each.
    pub(crate) databases: BTreeMap<String, (clearway::Database, usize)>,
}

impl Handles {
    /// A number that was never given before (CAPI-1). Numbers are odd: no address of C's objects looks like one.
    pub(crate) fn number(&mut self) -> usize {
        self.last += 1;
        2 * self.last + 1
    }
}

static HANDLES: LazyLock<Mutex<Handles>> = LazyLock::new(|| Mutex::new("c/handles", Handles::default()));

/// Looks at the handles; nothing here waits.
pub(crate) fn with<T>(f: impl FnOnce(&mut Handles) -> T) -> T {
    f(&mut HANDLES.lock())
}
