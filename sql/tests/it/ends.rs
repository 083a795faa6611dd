//! The two ways in which the end of a statement is counted (WCH-1 in `session/watch.rs`) leave the same figures.

use crate::memory::{Lines, open, session};
use clearway_base::sync::block_on;
use clearway_sql::context::recorded::HISTORY_LONG;
use clearway_sql::session::client::Client;
use clearway_sql::session::{Backends, Bind, Session};
use std::sync::Arc;

/// Statements that are prepared: each with a value, and how often it is run with it.
const WORK: [(&str, &str, usize); 9] = [
    ("SELECT b FROM t WHERE a = $1", "1", 25),
    ("SELECT b FROM t WHERE a = $1", "77", 3),
    ("SELECT b FROM t WHERE a BETWEEN $1 AND 15", "4", 14),
    ("UPDATE t SET b = b + 1 WHERE a = $1", "5", 13),
    ("SELECT count(*) FROM t WHERE b > $1", "0", 3),
    ("SELECT b FROM t WHERE a = $1 LIMIT 1", "2", 2),
    ("SELECT 1 / $1::int", "0", 3),
    ("SELECT $1::int + 1", "3", 3),
    ("INSERT INTO log VALUES ($1)", "8", 12),
];

fn ask(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    block_on(session.simple(sql, &mut lines)).unwrap_or_else(|e| panic!("{sql}: {e}"));
    lines.0
}

/// As the server does: alone and at once where that is possible, else by the messages in turn. An error ends the batch.
fn run(session: &mut Session, name: &str, value: &str) {
    let values = [Some(value.as_bytes())];
    let bind = || Bind { formats: &[], values: &values, result_formats: &[] };
    let mut lines = Lines::default();
    let client: &mut dyn Client = &mut lines;
    if session.try_read(name, &bind(), client) {
        return;
    }
    let done = block_on(async {
        session.bind("", name, bind()).await?;
        session.execute("", 0, client).await
    });
    assert!(done.is_ok() || value == "0", "{name}");
    block_on(session.sync()).expect("the batch ends");
    block_on(session.before_send()).expect("it is durable");
}

/// What a session that does the work leaves in the books: the row of each digest without its times.
fn figures(session: &mut Session, application: &str) -> Vec<String> {
    ask(session, &format!("SET application_name = '{application}'"));
    for (at, (sql, ..)) in WORK.iter().enumerate() {
        block_on(session.parse(&format!("s{at}"), sql, &[])).expect("it is prepared");
    }
    for (at, (_, value, times)) in WORK.iter().enumerate() {
        (0..*times).for_each(|_| run(session, &format!("s{at}"), value));
    }
    (0..3).for_each(|_| drop(ask(session, "SET LOCAL work_mem = '1MB'"))); // each with a warning
    ask(
        session,
        &format!(
            "SELECT query, calls, errors, rows, rows_examined, full_scans, missed_indexes, n_plus_one_calls, n_plus_one_series, warnings,
                    total_ms > 0 AND max_ms >= p99_ms AND p50_ms >= min_ms AND sample <> '' FROM clearway_statements
             WHERE application_name = '{application}' AND query NOT LIKE '%clearway_statements%' ORDER BY query"
        ),
    )
}

#[test]
fn both_ways_leave_the_same_figures() {
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let mut one = session(&db, &backends, "postgres", &[]);
    ask(&mut one, "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE TABLE log (a int)");
    ask(&mut one, "INSERT INTO t SELECT i, 10 FROM generate_series(1, 20) i; ANALYZE");
    let usual = figures(&mut one, "usual");
    // While every execution is recorded, none is counted in the short way.
    assert!(backends.recorded.switch(HISTORY_LONG, true));
    let mut other = session(&db, &backends, "postgres", &[]);
    let otherwise = figures(&mut other, "otherwise");
    assert_eq!(usual, otherwise, "WCH-1");
    let point = |of: &[String]| of.iter().find(|line| line.starts_with("select b from t where a = $1|")).cloned();
    assert_eq!(point(&usual).as_deref(), Some("select b from t where a = $1|28|0|25|25|0|0|25|1|0|t"));
    let writes: Vec<_> = usual.iter().filter(|line| line.contains("|12|") || line.contains("|13|")).collect();
    assert_eq!(writes.len(), 2, "{usual:?}");
}
