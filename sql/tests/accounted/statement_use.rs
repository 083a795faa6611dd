//! The pages, temporary files and log records of a statement's entry in pg_stat_statements are those of its executions, each of them and no
//! others (USG-3).

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::alone;
use crate::memory::{self, Lines, Told, as_served, figure, simple};
use clearway_base::memory::{Account, charged};
use clearway_base::sync::block_on;
use clearway_base::waits::{SessionStats, with_session};
use clearway_engine::db::Db;
use clearway_sql::session::{Backends, Session};

/// A database without work in the background.
struct Place {
    db: Arc<Db>,
    backends: Arc<Backends>,
}

impl Place {
    fn new() -> Place {
        Place { db: memory::open_without_upkeep(), backends: Arc::new(Backends::default()) }
    }

    fn session(&self) -> Session {
        memory::session(&self.db, &self.backends, "postgres", &[])
    }

    /// These columns of the entry whose text begins so.
    fn entry(&self, columns: &str, text: &str) -> Vec<u64> {
        let asked = format!("SELECT {columns} FROM pg_stat_statements WHERE query ILIKE '{text}%'");
        let rows = as_served(&mut self.session(), &asked).expect("an entry");
        let [row] = rows.as_slice() else { panic!("one entry of {text}: {rows:?}") };
        row.split('|').map(|figure| figure.parse().expect("a number")).collect()
    }
}

fn explained(session: &mut Session, sql: &str) -> Vec<String> {
    rows(session, &format!("EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING OFF, SUMMARY OFF) {sql}"))
}

/// The rows of a text that is run with an account, by which a sort knows how large it is.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    block_on(charged(Account::open(1), session.simple(sql, &mut lines))).expect("rows");
    lines.0
}

#[test]
fn an_entry_has_what_explain_shows_of_each_execution() {
    let _alone = alone();
    let place = Place::new();
    let mut session = place.session();
    simple(&mut session, "CREATE TABLE t (id int PRIMARY KEY, n int, s text)");
    simple(&mut session, "INSERT INTO t SELECT g, g, repeat('x', 90) FROM generate_series(1, 20000) g");

    let hits = figure(&explained(&mut session, "SELECT n FROM t WHERE id = 7"), "hit");
    assert!(hits > 0, "a row is read from pages");
    for _ in 0..3 {
        as_served(&mut session, "SELECT n FROM t WHERE id = 7").expect("a row");
    }
    let columns = "calls, shared_blks_hit, shared_blks_dirtied, wal_records, wal_bytes";
    assert_eq!(place.entry(columns, "SELECT n FROM t WHERE id"), [3, 3 * hits, 0, 0, 0]);

    let plan = explained(&mut session, "INSERT INTO t VALUES (20001, 1, 'x')");
    let [records, bytes] = ["records", "bytes"].map(|name| figure(&plan, name));
    assert!(records > 0 && bytes > 0, "{plan:?}");
    as_served(&mut session, "INSERT INTO t VALUES (20002, 1, 'x')").expect("a row");
    let columns = "calls, wal_records, wal_fpi, (wal_bytes BETWEEN 0.8 * {} AND 1.2 * {})::int";
    let columns = columns.replace("{}", &bytes.to_string());
    assert_eq!(place.entry(&columns, "INSERT INTO t VALUES"), [1, records, 0, 1]);

    as_served(&mut session, "SET work_mem = '64kB'").expect("a setting");
    let query = "SELECT id FROM t ORDER BY s, id DESC";
    let plan = explained(&mut session, query);
    let written = figure(&plan, "written");
    assert!(written > 0, "{plan:?}");
    rows(&mut session, query);
    let columns = "temp_blks_written, (temp_blks_read > 0)::int";
    assert_eq!(place.entry(columns, "SELECT id FROM t ORDER BY"), [written, 1]);
    let own = as_served(
        &mut session,
        "SELECT temp_bytes_written / 8192 > 0 FROM clearway_statements WHERE query ILIKE 'SELECT id FROM t ORDER%'",
    );
    assert_eq!(own.expect("an entry"), ["t"]);
}

/// An UPDATE waits for a row while other sessions read, polled by the same thread: what they read is not in it.
#[test]
fn a_statement_that_waits_has_only_its_own() {
    let _alone = alone();
    let place = Place::new();
    let (mut holder, mut reader) = (place.session(), place.session());
    simple(&mut holder, "CREATE TABLE t (id int PRIMARY KEY, n int)");
    simple(&mut holder, "INSERT INTO t SELECT g, g FROM generate_series(1, 5000) g");
    let waits = SessionStats::new("client");
    let mut waiting = memory::session_in(waits.clone(), &place.db, &place.backends, "postgres", &[]);
    simple(&mut holder, "BEGIN");
    simple(&mut holder, "UPDATE t SET n = 0 WHERE id = 7");
    let mut told = Told::default();
    let mut update =
        pin!(with_session(waits, async { waiting.simple("UPDATE t SET n = n + 1 WHERE id = 7", &mut told).await }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(update.as_mut().poll(&mut cx).is_pending(), "the row is locked");
    for _ in 0..20 {
        as_served(&mut reader, "SELECT sum(n) FROM t").expect("a sum");
        assert!(update.as_mut().poll(&mut cx).is_pending(), "the row is locked");
    }
    let read = place.entry("shared_blks_hit", "SELECT sum")[0];
    simple(&mut holder, "COMMIT");
    let ended = loop {
        if let Poll::Ready(ended) = update.as_mut().poll(&mut cx) {
            break ended;
        }
        std::thread::yield_now();
    };
    ended.expect("the update");
    let [hits, records, dirtied] =
        place.entry("shared_blks_hit, wal_records, shared_blks_dirtied", "UPDATE t SET n = n +")[..]
    else {
        panic!("three figures")
    };
    assert!(hits > 0 && hits < 100 && read > 200, "USG-3: {hits} pages of its own, {read} of the reader");
    assert!(records > 0 && dirtied <= 3, "USG-3: {records} records, {dirtied} pages");
}
