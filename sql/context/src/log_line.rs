//! One line of the server's log, with every field that its formats may show; and which statements a session logs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use clearway_base::waits;

use super::backend::Backend;
use super::units::milliseconds;

/// How much a line matters, in PostgreSQL's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Reports to operators.
    Log,
    /// Something that may become a problem.
    Warning,
    /// A statement failed.
    Error,
    /// A session ended.
    Fatal,
}

impl Severity {
    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Log => "LOG",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        }
    }
}

/// What of its statements a session tells the log; shared by its settings and the code that runs its statements.
#[derive(Debug)]
pub struct LogLevels {
    /// `log_min_duration_statement` in nanoseconds; `u64::MAX`: none.
    pub min_ns: AtomicU64,
    /// `log_statement`: 0 none, 1 ddl, 2 mod, 3 all.
    pub statements: AtomicU8,
}

impl Default for LogLevels {
    fn default() -> Self {
        LogLevels { min_ns: AtomicU64::new(u64::MAX), statements: AtomicU8::new(0) }
    }
}

impl LogLevels {
    /// Takes a setting as it is kept.
    pub fn set(&self, name: &str, value: &str) {
        if name == "log_statement" {
            let level = LOG_STATEMENT.iter().position(|word| *word == value).unwrap_or(0);
            self.statements.store(level as u8, Relaxed);
        } else {
            let ns = milliseconds(value).map_or(u64::MAX, |ms| ms.saturating_mul(1_000_000));
            self.min_ns.store(ns, Relaxed);
        }
    }
}

/// What `log_statement` may be.
pub const LOG_STATEMENT: &[&str] = &["none", "ddl", "mod", "all"];

/// The least `log_statement` with which a statement of this digest is logged.
pub fn level_of(digest: &str) -> u8 {
    let word = digest.split_whitespace().next().unwrap_or("");
    match word {
        "insert" | "update" | "delete" | "truncate" | "copy" | "merge" => 2,
        "create" | "alter" | "drop" | "grant" | "revoke" | "comment" | "reindex" | "cluster" | "refresh" => 1,
        _ => 3,
    }
}

/// One line, before it has a format.
#[derive(Clone, Debug)]
pub struct Line {
    /// When: wall clock, microseconds since 1970.
    pub at_us: i64,
    /// How much it matters.
    pub severity: Severity,
    /// SQLSTATE.
    pub code: &'static str,
    /// The message.
    pub message: String,
    /// DETAIL, or empty; the same of the following.
    pub detail: String,
    /// HINT.
    pub hint: String,
    /// CONTEXT.
    pub context: String,
    /// STATEMENT.
    pub statement: String,
    /// The digest of the statement; 0: none.
    pub query_id: i64,
    /// How long the statement took, in nanoseconds; 0: it does not tell of that.
    pub duration_ns: u64,
    /// What the slow log shows of a statement; none: it is no line for it.
    pub slow: Option<Slow>,
    /// It tells of a wait for a lock, which `log_lock_waits` may switch off.
    pub lock_wait: bool,
    /// The session that it is about.
    pub session: Option<Session>,
}

/// What writes the log.
pub trait LogSink: Send + Sync {
    /// Whether it keeps lines of this severity; `lock_wait` as in [`Line`].
    fn keeps(&self, severity: Severity, lock_wait: bool) -> bool;
    /// Writes a line, if it is one that is kept.
    fn line(&self, line: Line);
}

impl<F: Fn(Line) + Send + Sync> LogSink for F {
    fn keeps(&self, _severity: Severity, _lock_wait: bool) -> bool {
        true
    }

    fn line(&self, line: Line) {
        self(line);
    }
}

/// What the slow log shows of a statement, in MySQL's terms.
#[derive(Clone, Debug)]
pub struct Slow {
    /// Its text.
    pub text: Arc<str>,
    /// How long it waited for locks.
    pub lock_ns: u64,
    /// Rows given,
    pub sent: u64,
    /// and changed.
    pub affected: u64,
    /// Rows looked at.
    pub examined: u64,
    /// It has walked over a whole table.
    pub full_scan: bool,
}

/// Of a session what a line may show.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its number.
    pub pid: i32,
    /// The role that logged in.
    pub user: String,
    /// The database.
    pub database: String,
    /// `application_name`.
    pub application: String,
    /// The client's address.
    pub client: Option<std::net::SocketAddr>,
    /// When it began, in microseconds since 1970.
    pub started_us: i64,
    /// It has logged in.
    pub logged_in: bool,
    /// The command's first word, or `idle`.
    pub command: String,
}

impl Line {
    /// A line of now.
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Line {
        let none = String::new;
        Line {
            at_us: waits::wall_us(),
            severity,
            code,
            message: message.into(),
            detail: none(),
            hint: none(),
            context: none(),
            statement: none(),
            query_id: 0,
            duration_ns: 0,
            slow: None,
            lock_wait: false,
            session: None,
        }
    }

    /// The same about a session.
    #[must_use]
    pub fn of(mut self, backend: &Arc<Backend>) -> Line {
        let activity = backend.activity.lock().clone();
        let first = activity.query.split_whitespace().next().unwrap_or("idle");
        let command = first.trim_end_matches(';').chars().take(20).collect::<String>().to_ascii_uppercase();
        self.session = Some(Session {
            pid: backend.pid,
            user: backend.user.clone(),
            database: backend.database.clone(),
            application: activity.application_name,
            client: backend.client,
            started_us: backend.started_us,
            logged_in: backend.role.load(Relaxed) != 0,
            command,
        });
        self
    }

    /// The line in one plain form: for a host that has no formats.
    pub fn plain(&self) -> String {
        let mut out = format!("{}:  {}", self.severity.name(), self.message);
        for (name, text) in
            [("DETAIL", &self.detail), ("HINT", &self.hint), ("CONTEXT", &self.context), ("STATEMENT", &self.statement)]
        {
            if !text.is_empty() {
                out.push_str(&format!("\n{name}:  {}", text.replace('\n', "\n\t")));
            }
        }
        out
    }
}
