//! The list of the server's sessions. The system views show it; a cancel or a termination looks its session up in it.
//!
//! # Invariants
//! - BCK-1: a session is in the list exactly as long as its [`Listed`] lives.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use clearway_base::sync::{Mutex, MutexGuard};
use clearway_base::waits::{self, SessionStats};

use super::configuration::{Configuration, Defaults};
use super::interrupt::{Interrupt, Reason};
use super::limits::Groups;
use super::log_line::{Line, LogLevels, LogSink, Severity};
use super::notify_queue::{Channels, Inbox};
use super::recorded::{Recorded, Truncated};
use super::samples::Samples;
use super::setting_text::client_name;
use super::shared_plans::SharedPlanList;
use super::statements::{Statements, hash_of};
use clearway_engine::progress::Progress;
use clearway_txn::lockmgr::Owner;
use clearway_txn::lockmgr::history::Facts;
use clearway_values::types::Datum;

/// What a session is doing, as `pg_stat_activity.state` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendState {
    /// It waits for a command.
    #[default]
    Idle,
    /// It runs one.
    Active,
    /// It waits for a command within a transaction block.
    IdleInTransaction,
    /// The same after an error in the block.
    IdleInTransactionAborted,
    /// It runs a function call message.
    FunctionCall,
}

impl BackendState {
    /// Whether it runs something.
    pub fn is_active(self) -> bool {
        matches!(self, BackendState::Active | BackendState::FunctionCall)
    }

    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            BackendState::Idle => "idle",
            BackendState::Active => "active",
            BackendState::IdleInTransaction => "idle in transaction",
            BackendState::IdleInTransactionAborted => "idle in transaction (aborted)",
            BackendState::FunctionCall => "fastpath function call",
        }
    }
}

/// How long a session was in which state, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateTimes {
    /// Running statements.
    pub active_us: i64,
    /// Idle within a transaction.
    pub idle_us: i64,
}

/// What the sessions of a database that have ended add up to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended {
    /// How many there were.
    pub sessions: u64,
    /// From begin to end, in microseconds.
    pub session_us: i64,
    /// In which state.
    pub spent: StateTimes,
    /// Those that were terminated by another session.
    pub killed: u64,
    /// Statements that ended as the victims of deadlocks, of open sessions too.
    pub deadlocks: u64,
    /// Since when it counts: microseconds since 1970; 0: since the server began.
    pub reset_us: i64,
}

/// How a client's connection is encrypted.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The protocol, `TLSv1.3`.
    pub version: String,
    /// The cipher suite.
    pub cipher: String,
    /// Bits of the cipher's key.
    pub bits: i32,
}

/// What changes with every command. Times are microseconds since 1970; 0 stands for none.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// `application_name`.
    pub application_name: String,
    /// What it does.
    pub state: BackendState,
    /// The command that it runs, or the last one.
    pub query: Arc<str>,
    /// Its parameters.
    pub parameters: Option<Arc<[Datum]>>,
    /// When that command began.
    pub query_start_us: i64,
    /// When its transaction began.
    pub xact_start_us: i64,
    /// When `state` changed last.
    pub state_change_us: i64,
    /// How long it has been active in all, and idle in a transaction, up to the last change of `state`.
    pub spent: StateTimes,
}

/// The bits of [`Backend::mode`].
pub struct Mode;

impl Mode {
    /// READ ONLY.
    pub const READ_ONLY: u8 = 1;
    /// REPEATABLE READ.
    pub const REPEATABLE: u8 = 2;
    /// BEGIN began it; else it is a statement's own.
    pub const BLOCK: u8 = 4;

    /// Those of a transaction of this level, without `BLOCK`.
    pub fn of(level: &str, read_only: bool) -> u8 {
        let repeatable = matches!(level, "repeatable read" | "serializable");
        (u8::from(repeatable) * Mode::REPEATABLE) | (u8::from(read_only) * Mode::READ_ONLY)
    }
}

/// One session as others see it. What each statement touches of it stands in its first cache line, apart from `activity`.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Backend {
    /// Its wait events.
    pub waits: Arc<SessionStats>,
    /// What the log is told of its statements.
    pub log: Arc<LogLevels>,
    /// Itself as the lock manager sees it, once it has begun.
    pub owner: OnceLock<Arc<Owner>>,
    /// The digest of its statement, or of the last one.
    pub digest: AtomicU64,
    /// A hash of `application_name`.
    pub application: AtomicU64,
    /// The number of its role; 0 before it has logged in.
    pub role: AtomicU32,
    /// Levels of savepoints in which its transaction has written; each shows as a transaction id of its own.
    pub subtransactions: AtomicU32,
    /// Savepoints of the transaction.
    pub savepoints: AtomicU32,
    /// How its open transaction began: see [`Mode`].
    pub mode: AtomicU8,
    /// Stops it.
    pub interrupt: Interrupt,
    /// What it does.
    pub activity: Mutex<Activity>,
    /// Notifications for its client.
    pub inbox: Inbox,
    /// What its long statement has done so far, once it has begun.
    pub progress: OnceLock<Arc<Progress>>,
    /// Its number in every view; the same as the id of `waits`.
    pub pid: i32,
    /// What a cancel request must know.
    pub secret: i32,
    /// The role that it logged in as.
    pub user: String,
    /// Its database.
    pub database: String,
    /// Address and port of the client; None for a Unix socket or an embedded session.
    pub client: Option<std::net::SocketAddr>,
    /// The server's own address on that connection.
    pub server: Option<std::net::SocketAddr>,
    /// How its connection is encrypted; none: it is not.
    pub tls: Option<Tls>,
    /// When it began, in microseconds since 1970.
    pub started_us: i64,
}

const _: () = assert!(std::mem::offset_of!(Backend, mode) < 64, "one cache line");

/// All sessions of a server or an embedded database.
#[derive(Debug)]
pub struct Backends {
    list: Mutex<BTreeMap<i32, Arc<Backend>>>,
    /// Who listens to what.
    pub channels: Channels,
    log: OnceLock<Log>,
    /// When the server or the embedded database began, in microseconds since 2000.
    pub started: i64,
    /// What statements have cost.
    pub statements: Statements,
    /// What the sessions of roles and databases have together.
    pub limits: Groups,
    /// What sessions were doing, second by second.
    pub samples: Samples,
    /// The data directory of a server.
    pub directory: OnceLock<String>,
    /// Statements that are recorded one by one.
    pub recorded: Recorded,
    /// Since when performance_schema counts; none: since the server began.
    pub truncated: Mutex<Option<Truncated>>,
    /// Sessions that have ended, by the names of their databases.
    pub ended: Mutex<BTreeMap<String, Ended>>,
    /// Figures of the whole server at their last reset, by the names of their views, and when that was.
    pub baselines: Mutex<BTreeMap<&'static str, (Vec<f64>, i64)>>,
    /// What every session begins with, on memory of its own: it is looked at with each statement, and the list above changes often.
    pub defaults: Arc<Defaults>,
    configuration: OnceLock<Configured>,
    /// The plans that sessions share.
    pub shared_plans: OnceLock<Arc<dyn SharedPlanList>>,
}

/// The server's configuration.
struct Configured(Arc<dyn Configuration>);

impl fmt::Debug for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Configured")
    }
}

/// Where lines of the server's log go.
struct Log(Box<dyn LogSink>);

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl Default for Backends {
    fn default() -> Self {
        Self {
            list: Mutex::new("sql/backends", BTreeMap::new()),
            channels: Channels::default(),
            log: OnceLock::new(),
            started: super::core::now(),
            statements: Statements::default(),
            limits: Groups::default(),
            samples: Samples::default(),
            directory: OnceLock::new(),
            recorded: Recorded::default(),
            truncated: Mutex::new("sql/truncated", None),
            ended: Mutex::new("sql/ended_sessions", BTreeMap::new()),
            baselines: Mutex::new("sql/baselines", BTreeMap::new()),
            defaults: Arc::default(),
            configuration: OnceLock::new(),
            shared_plans: OnceLock::new(),
        }
    }
}

/// Keeps a session listed; dropping it takes the session off the list.
#[derive(Debug)]
pub struct Listed {
    backends: Arc<Backends>,
    backend: Arc<Backend>,
}

impl Listed {
    /// The session.
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.backends.note_end(&self.backend);
        self.backends.list.lock().remove(&self.backend.pid);
        if self.backends.channels.in_use() {
            self.backends.channels.leave(&self.backend);
        }
    }
}

/// Who begins a session.
#[derive(Clone, Debug, Default)]
pub struct ClientIdentity {
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// The client's address.
    pub client: Option<std::net::SocketAddr>,
    /// The server's own address on that connection.
    pub server: Option<std::net::SocketAddr>,
    /// How that connection is encrypted.
    pub tls: Option<Tls>,
    /// `application_name` as the client gave it at the start.
    pub application_name: String,
}

impl Backends {
    /// Lists a new session whose waits are counted in `waits`.
    pub fn list(self: &Arc<Self>, waits: Arc<SessionStats>, secret: i32, who: ClientIdentity) -> Listed {
        // Ids count from 1 and are not given out again; a server that has seen two thousand million sessions begins anew.
        let pid = i32::try_from(waits.id() & 0x7fff_ffff).unwrap_or(i32::MAX);
        let now_us = wall_us();
        let activity = Activity {
            application_name: client_name(&who.application_name),
            state_change_us: now_us,
            query: Arc::from(""),
            ..Activity::default()
        };
        let backend = Arc::new(Backend {
            pid,
            secret,
            interrupt: Interrupt::default(),
            waits,
            user: who.user,
            role: AtomicU32::new(0),
            database: who.database,
            client: who.client,
            server: who.server,
            tls: who.tls,
            started_us: now_us,
            subtransactions: AtomicU32::new(0),
            savepoints: AtomicU32::new(0),
            digest: AtomicU64::new(0),
            application: AtomicU64::new(0),
            mode: AtomicU8::new(0),
            log: Arc::default(),
            owner: OnceLock::new(),
            progress: OnceLock::new(),
            activity: Mutex::new("sql/activity", activity),
            inbox: Inbox::default(),
        });
        self.list.lock().insert(pid, Arc::clone(&backend));
        Listed { backends: Arc::clone(self), backend } // BCK-1
    }

    /// Adds a session that ends to its database's sums. One that has not begun is none.
    fn note_end(&self, backend: &Backend) {
        if backend.owner.get().is_none() {
            return;
        }
        let spent = backend.spent();
        let killed = backend.interrupt.pending() == Some(Reason::Terminate);
        let mut ended = self.ended.lock();
        let sum = ended.entry(backend.database.clone()).or_default();
        sum.sessions += 1;
        sum.session_us += wall_us() - backend.started_us.max(sum.reset_us);
        sum.spent.active_us += spent.active_us;
        sum.spent.idle_us += spent.idle_us;
        sum.killed += u64::from(killed);
    }

    /// What the sessions of a database add up to, those that are open included.
    pub fn sessions_of(&self, database: &str) -> Ended {
        let mut sum = self.ended.lock().get(database).copied().unwrap_or_default();
        let now_us = wall_us();
        for backend in self.all().iter().filter(|b| b.database == database && b.owner.get().is_some()) {
            let spent = backend.spent();
            sum.sessions += u64::from(backend.started_us >= sum.reset_us);
            sum.session_us += now_us - backend.started_us.max(sum.reset_us);
            sum.spent.active_us += spent.active_us;
            sum.spent.idle_us += spent.idle_us;
        }
        sum
    }

    /// A statement in a database was the victim of a deadlock.
    pub fn note_deadlock(&self, database: &str) {
        self.ended.lock().entry(database.to_owned()).or_default().deadlocks += 1;
    }

    /// Counts the sessions of a database anew.
    pub fn reset_sessions_of(&self, database: &str) {
        for backend in self.all().iter().filter(|b| b.database == database) {
            let mut activity = backend.activity.lock();
            activity.spent = StateTimes::default();
        }
        self.ended.lock().insert(database.to_owned(), Ended { reset_us: wall_us(), ..Ended::default() });
    }

    /// Where the sessions' lines for the log go; the first call counts.
    pub fn log_to(&self, log: impl LogSink + 'static) {
        let _ = self.log.set(Log(Box::new(log)));
    }

    /// The server is configured by this; the first call counts.
    pub fn configured_by(&self, configuration: Arc<dyn Configuration>) {
        let _ = self.configuration.set(Configured(configuration));
    }

    /// The server's configuration; an embedded database has none.
    pub fn configuration(&self) -> Option<&Arc<dyn Configuration>> {
        self.configuration.get().map(|configured| &configured.0)
    }

    /// Writes to the log, if there is one.
    pub fn log_line(&self, line: Line) {
        if let Some(log) = self.log.get() {
            log.0.line(line);
        }
    }

    /// Whether the log keeps lines of this severity: asked before a line is made at some cost.
    pub fn logs(&self, severity: Severity, lock_wait: bool) -> bool {
        self.log.get().is_some_and(|log| log.0.keeps(severity, lock_wait))
    }

    /// Every session, by pid.
    pub fn all(&self) -> Vec<Arc<Backend>> {
        self.list.lock().values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.lock().len()
    }

    /// The session of a pid.
    pub fn get(&self, pid: i32) -> Option<Arc<Backend>> {
        self.list.lock().get(&pid).cloned()
    }

    /// A cancel request from the wire: nothing happens unless the secret fits.
    pub fn cancel(&self, pid: i32, secret: i32) {
        if let Some(backend) = self.get(pid).filter(|backend| backend.secret == secret) {
            backend.interrupt.raise(Reason::Cancel);
        }
    }

    /// `pg_cancel_backend` and `pg_terminate_backend`; false if there is no such session.
    pub fn raise(&self, pid: i32, reason: Reason) -> bool {
        let backend = self.get(pid);
        if let Some(backend) = &backend {
            backend.interrupt.raise(reason);
        }
        backend.is_some()
    }
}

impl Activity {
    /// Adds the time since the last change of `state` to what was spent in it.
    fn leaves_state(&mut self, now_us: i64) {
        let spent_us = (now_us - self.state_change_us).max(0);
        match self.state {
            BackendState::Active | BackendState::FunctionCall => self.spent.active_us += spent_us,
            BackendState::Idle => {}
            BackendState::IdleInTransaction | BackendState::IdleInTransactionAborted => self.spent.idle_us += spent_us,
        }
    }
}

impl Backend {
    /// How long it was in which state until now.
    pub fn spent(&self) -> StateTimes {
        let mut now = self.activity.lock().clone();
        now.leaves_state(wall_us());
        now.spent
    }

    /// Tells the lock manager who the session is.
    pub fn tell_owner(&self) {
        let application = self.activity.lock().application_name.clone();
        self.application.store(hash_of(&application), Relaxed);
        let facts = Facts { application, user: self.user.clone(), database: self.database.clone(), ..Facts::default() };
        if let Some(owner) = self.owner.get() {
            owner.known_as(facts);
        }
    }

    /// A command begins; the text holds no password (`redacted`).
    pub fn runs(&self, query: Arc<str>) {
        self.runs_with(query, None);
    }

    /// The same with parameters.
    pub fn runs_with(&self, query: Arc<str>, parameters: Option<Arc<[Datum]>>) {
        let mut activity = self.begins(waits::now_ns());
        (activity.query, activity.parameters) = (query, parameters);
    }

    /// The same of a command of a fast path, which begins at this moment of the clock of wait events. A session that runs one command again
    /// and again allocates nothing here.
    pub fn runs_from(&self, now_ns: u64, query: &Arc<str>, parameters: Option<&[Datum]>) {
        let mut activity = self.begins(now_ns);
        if !Arc::ptr_eq(&activity.query, query) {
            activity.query = query.clone();
        }
        let known = activity.parameters.as_mut().and_then(Arc::get_mut);
        match (known, parameters) {
            (Some(known), Some(now)) if known.len() == now.len() => known.clone_from_slice(now),
            (_, parameters) => activity.parameters = parameters.map(Arc::from),
        }
    }

    fn begins(&self, now_ns: u64) -> MutexGuard<'_, Activity> {
        let now_us = waits::wall_us_at(now_ns);
        if let Some(owner) = self.owner.get() {
            owner.runs(now_ns);
        }
        let mut activity = self.activity.lock();
        activity.leaves_state(now_us);
        activity.state = BackendState::Active;
        activity.query_start_us = now_us;
        activity.state_change_us = now_us;
        if activity.xact_start_us == 0 {
            activity.xact_start_us = now_us;
        }
        activity
    }

    /// It runs a function call message; as in PostgreSQL the text shown stays that of the statement before.
    pub fn calls(&self) {
        self.begins(waits::now_ns()).state = BackendState::FunctionCall;
    }

    /// It waits for a command from this moment of the clock of wait events; `state` says where.
    pub fn rests(&self, state: BackendState, now_ns: u64) {
        let now_us = waits::wall_us_at(now_ns);
        let mut activity = self.activity.lock();
        if activity.state != state {
            activity.leaves_state(now_us);
            activity.state = state;
            activity.state_change_us = now_us;
        }
        if state == BackendState::Idle {
            activity.xact_start_us = 0;
        } else if let Some(owner) = self.owner.get() {
            owner.idles(now_ns);
        }
    }
}

/// A text of SQL as it may be shown and kept: without the quoted text behind the word PASSWORD.
pub fn redacted(sql: &str) -> std::borrow::Cow<'_, str> {
    const WORD: &[u8] = b"password";
    let bytes = sql.as_bytes();
    let is_quote = |b: u8| matches!(b, b'\'' | b'$');
    let is_word = |w: &[u8]| w[0] | 0x20 == b'p' && w.eq_ignore_ascii_case(WORD);
    // A loop, and each byte is looked at once: a text may have the word a million times.
    let mut at = 0;
    let from = loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(word) = rest.windows(WORD.len()).position(is_word) else { return sql.into() };
        let end = at + word + WORD.len();
        // Whatever literal follows in the same statement, however it is written: nothing else does in CREATE and ALTER ROLE.
        let Some(found) = bytes[end..].iter().position(|b| is_quote(*b) || *b == b';') else { return sql.into() };
        if is_quote(bytes[end + found]) {
            break end + found;
        }
        at = end + found;
    };
    // Up to the statement's last quote: a quote that is doubled or a semicolon within the literal can't cut it short.
    // One that has no end is taken out whole.
    let last = bytes.iter().rposition(|b| is_quote(*b)).filter(|last| *last > from);
    let to = last.map_or(bytes.len(), |at| at + 1);
    format!("{}<redacted>{}", &sql[..from], sql.get(to..).unwrap_or("")).into()
}

fn wall_us() -> i64 {
    waits::wall_us()
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
