//! SQL sessions on a database in memory whose background tasks run on threads of their own.

#![allow(dead_code, reason = "each test uses its part")]

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{MemVfs, Vfs};
use clearway_base::waits::SessionStats;
use clearway_engine::db::{Db, DbOptions};
use clearway_sql::SqlError;
use clearway_sql::session::client::Client;
use clearway_sql::session::{AtOnce, Backends, Bind, Session, SessionStart};
use std::path::Path;
use std::sync::Arc;

/// Keeps every row, its columns between bars.
#[derive(Default)]
pub struct Lines(pub Vec<String>);

impl Client for Lines {
    fn row(&mut self, columns: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let column = |at| {
            let mut bytes = Vec::new();
            if write(at, &mut bytes) { String::from_utf8_lossy(&bytes).into_owned() } else { "null".to_owned() }
        };
        self.0.push((0..columns).map(column).collect::<Vec<_>>().join("|"));
    }
}

/// Writes what a session answers as lines in one text; NULL is `~`.
#[derive(Default)]
pub struct Told(pub String);

impl Client for Told {
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        for i in 0..fields {
            let mut bytes = Vec::new();
            let some = write(i, &mut bytes);
            self.0.push_str(if some { std::str::from_utf8(&bytes).expect("text") } else { "~" });
            self.0.push('|');
        }
        self.0.push('\n');
    }
    fn command_complete(&mut self, tag: &str) {
        self.0.push_str(tag);
    }
}

/// What the general path answers to a text, or the code of its error.
pub fn simple(session: &mut Session, sql: &str) -> String {
    let mut told = Told::default();
    match block_on(session.simple(sql, &mut told)) {
        Ok(()) => told.0,
        Err(e) => e.code().to_owned(),
    }
}

/// The rows of a text as the server asks for them: at once if that can be.
pub fn as_served(session: &mut Session, sql: &str) -> Result<Vec<String>, SqlError> {
    let mut lines = Lines::default();
    let done = match session.try_simple(sql, &mut lines) {
        AtOnce::Nothing => block_on(session.simple(sql, &mut lines)),
        AtOnce::Uncommitted => block_on(session.sync()),
        AtOnce::Done => Ok(()),
    };
    done.and(block_on(session.before_send())).map(|()| lines.0)
}

pub fn open() -> Arc<Db> {
    open_with(|_| true)
}

/// One whose tables are never counted in the background: no plan becomes old but by what the test does.
pub fn open_without_upkeep() -> Arc<Db> {
    open_with(|task| task != "upkeep")
}

/// A database of whose background tasks, by name, those run that are wanted.
fn open_with(wanted: fn(&str) -> bool) -> Arc<Db> {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    block_on(async {
        let dir = Path::new("/db");
        let _ = vfs.create_dir(dir).await;
        let spawn = |name, task| {
            if wanted(name) {
                drop(spawn_thread(name, move || block_on(task)).expect("a thread"));
            }
        };
        let mut options = DbOptions::new(vfs.clone(), dir);
        // Its background tasks keep it to the end of the program, which has many of them: a log of the usual size would be most of its memory.
        options.store.wal.ring_bytes = 4 << 20;
        options.store.wal.segment_bytes = 4 << 20;
        options.store.wal.ahead_bytes = 6 << 20;
        options.store.wal.floor_bytes = 1 << 20;
        Db::open(options, spawn).await.expect("a database")
    })
}

pub fn session(db: &Arc<Db>, backends: &Arc<Backends>, user: &str, options: &[(&str, &str)]) -> Session {
    session_in(SessionStats::new("client"), db, backends, user, options)
}

/// The same, of which the caller polls what it does as work of `waits`.
pub fn session_in(
    waits: Arc<SessionStats>,
    db: &Arc<Db>,
    backends: &Arc<Backends>,
    user: &str,
    options: &[(&str, &str)],
) -> Session {
    let listed = backends.list(waits, 1, Default::default());
    let backend = listed.backend().clone();
    // The list outlives the test.
    std::mem::forget(listed);
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (database, user) = ("postgres".to_owned(), user.to_owned());
    let start = SessionStart { backend, backends: backends.clone(), database, user, options };
    block_on(Session::new(db, start)).expect("a session")
}

/// The figure of this name in the first line of a plan that has it.
pub fn figure(plan: &[String], name: &str) -> u64 {
    let begin = format!("{name}=");
    let word = plan.iter().flat_map(|line| line.split([' ', ','])).find_map(|word| word.strip_prefix(&begin));
    word.map_or(0, |digits| digits.parse().expect("a number"))
}

/// Binds the statement that was prepared last and executes it: its answer or SQLSTATE, and whether it took the fast path.
pub fn execute(session: &mut Session, values: &[Option<&str>]) -> (String, bool) {
    let values: Vec<Option<&[u8]>> = values.iter().map(|v| v.map(str::as_bytes)).collect();
    let bind = Bind { formats: &[], values: &values, result_formats: &[] };
    let mut lines = Told::default();
    let bound = block_on(session.bind("", "", bind));
    let short = bound.is_ok() && session.try_execute("", &mut lines);
    let done = match bound {
        Ok(()) if !short => block_on(session.execute("", 0, &mut lines)),
        other => other,
    };
    if !session.try_sync() {
        block_on(session.sync()).expect("the batch ends");
    }
    match done {
        Ok(()) => (lines.0, short),
        Err(e) => (e.code().to_owned(), short),
    }
}
