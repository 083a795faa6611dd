//! EXPLAIN (ANALYZE, BUFFERS, WAL): pages, temporary files and records of the log are those of the statement, of whichever thread (USG-1, USG-2).

use std::sync::Arc;

use crate::alone;
use crate::memory::{self, Lines, figure};
use clearway_base::breath;
use clearway_base::memory::{Account, charged};
use clearway_base::sync::block_on;
use clearway_sql::session::{Backends, Session};

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    let account = Account::open(1);
    block_on(charged(account, session.simple(sql, &mut lines))).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    lines.0
}

fn explained(session: &mut Session, sql: &str) -> Vec<String> {
    rows(session, &format!("EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING OFF, SUMMARY OFF) {sql}"))
}

#[test]
fn what_a_statement_has_used_is_shown() {
    let _alone = alone();
    breath::install(|work| work(), 4);
    let (db, backends) = (memory::open(), Arc::new(Backends::default()));
    let mut session = memory::session(&db, &backends, "postgres", &[]);
    rows(&mut session, "CREATE TABLE big (id int PRIMARY KEY, t text)");
    let plan = explained(&mut session, "INSERT INTO big SELECT g, repeat('x', 90) FROM generate_series(1, 20000) g");
    let (records, bytes) = (figure(&plan, "records"), figure(&plan, "bytes"));
    assert!(records > 0 && bytes > 20_000 * 90, "the rows are in the log: {plan:?}");
    rows(&mut session, "ANALYZE big");

    // A page holds less than a hundred of these rows; each is looked up once.
    let alone = explained(&mut session, "SELECT count(*) FROM big WHERE t > 'w'");
    let hits = figure(&alone, "hit");
    assert!((200..2_000).contains(&hits), "each leaf once, not each row: {alone:?}");
    assert_eq!((figure(&alone, "records"), figure(&alone, "written")), (0, 0), "it changes nothing: {alone:?}");

    rows(&mut session, "SET force_parallel_mode = on; SET min_parallel_table_scan_size = 0");
    let helped = explained(&mut session, "SELECT count(*) FROM big WHERE t > 'w'");
    assert!(helped.iter().any(|line| line.contains("Workers Launched")), "{helped:?}");
    let by_all = figure(&helped, "hit");
    assert!(10 * by_all >= 9 * hits && by_all <= 3 * hits, "USG-2: the pages of helpers count: {hits} and {helped:?}");
    rows(&mut session, "SET force_parallel_mode = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '64kB'");

    let sorted = explained(&mut session, "SELECT * FROM big ORDER BY t, id DESC");
    let written = figure(&sorted, "written");
    assert!(written * 8192 > 20_000 * 90, "the rows go to files: {sorted:?}");
    assert!(sorted.iter().any(|line| line.contains("Sort Method: external merge  Disk: ")), "{sorted:?}");
    let grouped = explained(&mut session, "SELECT t || id, count(*) FROM big GROUP BY 1");
    assert!(figure(&grouped, "written") > 0, "{grouped:?}");
    assert!(grouped.iter().any(|line| line.contains("Batches: ") && line.contains("Disk Usage: ")), "{grouped:?}");
}
