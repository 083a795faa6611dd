//! Large tables that several threads read: the answers, the errors and the books are those of one thread (PAR-1 to PAR-6, APA-1, APA-2).

use std::sync::Arc;

use crate::memory::{self, Lines};
use crate::{Alone, alone};
use clearway_base::breath;
use clearway_base::memory::{self as accounting, Account, accounts, charged};
use clearway_base::sync::block_on;
use clearway_base::waits::with_session;
use clearway_engine::db::Db;
use clearway_sql::SqlError;
use clearway_sql::session::{Backends, Reason, Session};

fn run(session: &mut Session, sql: &str) -> Result<Vec<String>, SqlError> {
    let mut lines = Lines::default();
    block_on(session.simple(sql, &mut lines))?;
    Ok(lines.0)
}

fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    run(session, sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"))
}

/// A table of several parts, which helpers read for the session.
fn begin() -> ((Arc<Db>, Alone), Arc<Backends>, Session) {
    let one = alone();
    breath::install(|work| work(), 4);
    let (db, backends) = (memory::open(), Arc::new(Backends::default()));
    let mut session = memory::session(&db, &backends, "postgres", &[]);
    rows(&mut session, "CREATE TABLE big (id int PRIMARY KEY, k int, n numeric, f float8, t text)");
    let fill = "INSERT INTO big SELECT g, g % 7, g * 0.25, g / 3.0, repeat(chr(97 + g % 5), 60 + g % 9) FROM generate_series(1, 20000) g";
    rows(&mut session, fill);
    rows(&mut session, "ANALYZE big");
    rows(
        &mut session,
        "SET force_parallel_mode = on; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 3",
    );
    ((db, one), backends, session)
}

/// The answer with helpers, which must be that without them.
fn both(session: &mut Session, sql: &str) -> Vec<String> {
    let plan = rows(session, &format!("EXPLAIN {sql}")).join("\n");
    assert!(plan.contains("Gather") && plan.contains("Parallel Seq Scan"), "{plan}");
    let helped = rows(session, sql);
    rows(session, "SET max_parallel_workers_per_gather = 0");
    let plan = rows(session, &format!("EXPLAIN {sql}")).join("\n");
    assert!(!plan.contains("Gather"), "{plan}");
    let alone = rows(session, sql);
    rows(session, "SET max_parallel_workers_per_gather = 3");
    assert_eq!(helped, alone, "{sql}");
    helped
}

#[test]
fn the_answers_are_those_of_one_thread() {
    let (_db, _backends, mut session) = begin();
    let exact = "count(*), sum(id), avg(k), sum(n), avg(n), min(t), max(t), min(f), bool_and(id > 0), bool_or(k = 9), bit_or(k), bit_xor(id), stddev(n), var_pop(id)";
    // The order of groups is that in which one thread finds them (PAR-2).
    for sql in [
        format!("SELECT {exact} FROM big"),
        format!("SELECT {exact} FROM big WHERE t LIKE 'b%'"),
        format!("SELECT {exact} FROM big WHERE id + 0 < 0"),
        format!("SELECT k, {exact} FROM big GROUP BY k"),
        format!("SELECT k, length(t), {exact} FROM big WHERE id % 3 = 1 GROUP BY k, length(t) HAVING count(*) > 5"),
        "SELECT id + 0, count(*), max(t) FROM big GROUP BY id + 0".to_owned(),
        "SELECT k, count(*) FILTER (WHERE id % 2 = 0), sum(id) FROM big GROUP BY ROLLUP (k)".to_owned(),
        "SELECT id, t FROM big WHERE id % 17 = 3".to_owned(),
        "SELECT id FROM big WHERE t = 'none'".to_owned(),
        "SELECT id FROM big WHERE id + 0 > 10".to_owned(),
        "SELECT id FROM big WHERE n > 100 AND k = 3 LIMIT 5 OFFSET 2".to_owned(),
        "SELECT count(*), sum(a.id) FROM big a JOIN big b ON b.id = a.id + 1 WHERE a.k = 2 AND b.n > 10".to_owned(),
        "SELECT (SELECT count(*) FROM big WHERE k = v.x) FROM (VALUES (1), (2), (99)) v(x)".to_owned(),
    ] {
        both(&mut session, &sql);
    }
    let sums = both(&mut session, "SELECT count(*), sum(id) FROM big");
    assert_eq!(sums, ["20000|200010000"], "each row in exactly one part (PAR-1)");
    let float = rows(&mut session, "SELECT sum(f), avg(f) FROM big");
    for _ in 0..5 {
        // A sum from part to part differs from one from row to row, but not from time to time (PAR-2).
        assert_eq!(rows(&mut session, "SELECT sum(f), avg(f) FROM big"), float);
    }
}

#[test]
fn explain_says_how_many_helped() {
    let (_db, _backends, mut session) = begin();
    let mut plan = rows(
        &mut session,
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k, count(*) FROM big GROUP BY k HAVING count(*) > 1",
    );
    plan.retain(|line| !line.contains("Memory Usage"));
    let partial = plan[3]
        .split("rows=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .and_then(|n| n.parse::<u32>().ok())
        .unwrap_or(0);
    let shape = [
        "Finalize HashAggregate (actual rows=7 loops=1)",
        "  Group Key: k",
        "  Filter: (count(*) > 1)",
        &format!("  ->  Gather (actual rows={partial} loops=1)"),
        "        Workers Planned: 3",
        "        Workers Launched: 3",
        &format!("        ->  Partial HashAggregate (actual rows={partial} loops=1)"),
        "              Group Key: k",
        "              ->  Parallel Seq Scan on big (actual rows=20000 loops=1)",
    ];
    assert!(partial > 7 && partial % 7 == 0, "seven groups of each part");
    assert_eq!(plan, shape);
    let plan = rows(
        &mut session,
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM big WHERE k = 1 AND t > 'a'",
    );
    let at = plan.iter().position(|line| line.contains("Workers Launched: 3"));
    assert!(
        at.is_some() && plan[at.unwrap_or(0) + 1].contains("Parallel Seq Scan on big (actual rows=2858 loops=1)"),
        "{plan:?}"
    );
}

#[test]
fn several_threads_group_only_where_there_are_few_groups() {
    let (_db, _backends, mut session) = begin();
    rows(&mut session, "SET force_parallel_mode = off");
    // In a complete plan the slots are those of the wanted columns alone (PLN-10): the first one is `k`, or `n`, and not the table's first column, of
    // which each row has another value. The second one is `n`, or `f`, and not `k`, of which there are seven.
    for (sql, are_few) in [
        ("SELECT k, count(*) FROM big GROUP BY k", true),
        ("SELECT k, max(n) FROM big GROUP BY k", true),
        ("SELECT k, t, max(f) FROM big GROUP BY t, k", true),
        ("SELECT n, count(*) FROM big GROUP BY n", false),
        ("SELECT n, max(k) FROM big GROUP BY n", false),
        ("SELECT k, f, min(t) FROM big GROUP BY k, f", false),
    ] {
        let plan = rows(&mut session, &format!("EXPLAIN {sql}")).join("\n");
        assert_eq!(plan.contains("Partial HashAggregate"), are_few, "{sql}: {plan}");
    }
}

#[test]
fn what_the_transaction_has_done_itself_is_seen_once() {
    let (_db, _backends, mut session) = begin();
    rows(&mut session, "BEGIN; UPDATE big SET k = 100 WHERE id % 1000 = 0; DELETE FROM big WHERE id % 1000 = 1");
    rows(&mut session, "INSERT INTO big SELECT g, 101, 0, 0, 'new' FROM generate_series(20001, 20010) g");
    let counts = both(
        &mut session,
        "SELECT count(*), count(*) FILTER (WHERE k = 100), count(*) FILTER (WHERE k = 101) FROM big",
    );
    assert_eq!(counts, ["19990|20|10"], "PAR-1");
    assert_eq!(both(&mut session, "SELECT id FROM big WHERE k = 101 AND id + 0 > 20008"), ["20009", "20010"]);
    rows(&mut session, "ROLLBACK");
    assert_eq!(both(&mut session, "SELECT count(*) FROM big WHERE k < 100"), ["20000"]);
}

#[test]
fn a_snapshot_holds_while_others_change_the_table() {
    let ((db, _one), backends, mut session) = begin();
    let mut writer = memory::session(&db, &backends, "postgres", &[]);
    rows(&mut session, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    let before = both(&mut session, "SELECT count(*), sum(n), sum(k) FROM big WHERE id + 0 > 0");
    rows(
        &mut writer,
        "UPDATE big SET k = k + 1 WHERE id % 3 = 0; DELETE FROM big WHERE id % 11 = 0; INSERT INTO big SELECT -g, 1, 1, 1, 'x' FROM generate_series(1, 3000) g",
    );
    assert_eq!(
        both(&mut session, "SELECT count(*), sum(n), sum(k) FROM big WHERE id + 0 > 0"),
        before,
        "one view for all parts (PAR-1)"
    );
    rows(&mut session, "COMMIT");
    assert_ne!(both(&mut session, "SELECT count(*), sum(n), sum(k) FROM big WHERE id + 0 > 0"), before);
}

#[test]
fn the_first_error_is_given_behind_the_rows_before_it() {
    let (_db, _backends, mut session) = begin();
    for _ in 0..5 {
        let failed = run(
            &mut session,
            "SELECT sum(1000 / (CASE WHEN id IN (10000, 19000) THEN 10000 - id ELSE 1 END)) FROM big",
        );
        assert_eq!(failed.map_err(|e| e.code().to_string()), Err("22012".to_owned()));
        // The text of row 15000 is no number, row 17500 divides by zero: the first is the answer (PAR-3).
        let two = "SELECT count(*) FROM big WHERE (CASE id WHEN 15000 THEN t WHEN 17500 THEN (id / (id - 17500))::text ELSE '1' END)::int > 0";
        assert_eq!(run(&mut session, two).map_err(|e| e.code().to_string()), Err("22P02".to_owned()));
    }
    let mut lines = Lines::default();
    let ended = block_on(session.simple("SELECT id FROM big WHERE k = 1 AND 1 / (id - 15002) > -5", &mut lines));
    assert_eq!(ended.map_err(|e| e.code().to_string()), Err("22012".to_owned()));
    let before = rows(&mut session, "SELECT count(*) FROM big WHERE k = 1 AND id < 15002");
    // A batch that the error ends may stay with it.
    assert!(lines.0.len() + 64 > before[0].parse().expect("a count"), "{} of {before:?} rows (EXE-17)", lines.0.len());
    assert_eq!(
        both(&mut session, "SELECT id FROM big WHERE k = 1 AND 1 / (id - 15002) > -5 LIMIT 3"),
        ["1", "8", "15"]
    );
}

#[test]
fn statements_that_change_lock_or_are_random_are_carried_out_by_one_thread() {
    let (_db, _backends, mut session) = begin();
    rows(&mut session, "CREATE SEQUENCE s; CREATE TABLE other (id int, k int)");
    for sql in [
        "SELECT id FROM big WHERE k = 1 FOR UPDATE",
        "SELECT count(*) FROM big WHERE random() < 2",
        "SELECT count(*) FROM big WHERE nextval('s') > 0",
        "SELECT count(*) FROM big WHERE id IN (SELECT k FROM big b WHERE b.id = big.k LIMIT 1) OR EXISTS (SELECT 1 FROM other o WHERE o.id = big.id AND o.k < big.k)",
        "UPDATE big SET k = 1 WHERE t = 'none'",
        "DELETE FROM big WHERE t = 'none'",
        "INSERT INTO other SELECT id, k FROM big WHERE t = 'none'",
        "SELECT array_agg(id) FROM big",
        "SELECT count(DISTINCT k) FROM big",
        "SELECT string_agg(t, ',' ORDER BY id) FROM big",
        "SELECT stddev(f) FROM big",
    ] {
        let plan = rows(&mut session, &format!("EXPLAIN {sql}")).join("\n");
        assert!(!plan.contains("Gather"), "{sql} (APA-1, APA-2):\n{plan}");
    }
    rows(&mut session, "SET min_parallel_table_scan_size = '1GB'");
    let plan = rows(&mut session, "EXPLAIN SELECT count(*) FROM big").join("\n");
    assert!(!plan.contains("Gather"), "a table below the limit: {plan}");
}

#[test]
fn groups_beyond_the_memory_go_to_files_as_with_one_thread() {
    let (_db, _backends, mut session) = begin();
    let account = Account::open(1);
    block_on(charged(account, async {
        let mut one = async |sql: &str| -> Result<Vec<String>, SqlError> {
            let mut lines = Lines::default();
            session.simple(sql, &mut lines).await?;
            Ok(lines.0)
        };
        let grouped = "SELECT count(*), sum(c), min(m), max(m) FROM (SELECT t || id AS g, count(*) AS c, max(n) AS m FROM big GROUP BY t || id) x";
        let mut peaks = Vec::new();
        for work_mem in ["1MB", "64MB"] {
            one(&format!("SET work_mem = '{work_mem}'")).await.expect("a setting");
            assert_eq!(one(grouped).await.expect("groups"), ["20000|20000|0.25|5000.00"], "PAR-6");
            peaks.push(accounts().iter().find(|a| a.pid == 1).map_or(0, |a| a.peak_bytes));
        }
        assert!(4 * peaks[0] < 3 * peaks[1], "{peaks:?} bytes (PAR-6)");
        one("SET work_mem = '64MB'; SET statement_memory = '2MB'").await.expect("settings");
        let refused = one("SELECT t || id, count(*) FROM big GROUP BY t || id").await;
        assert_eq!(refused.map_err(|e| e.code().to_string()), Err("53200".to_owned()), "PAR-6");
    }));
    account.close();
}

/// By how many bytes the session's account grows while some statements run.
async fn growth(session: &mut Session, workers: u32) -> i64 {
    let bytes = || accounts().iter().find(|a| a.pid == 2).map_or(0, |a| a.bytes);
    let mut before = 0;
    for turn in 0..12 {
        let mut lines = Lines::default();
        // Patterns are compiled by each thread, and kept until it ends.
        let sql = "SELECT count(*) FROM big WHERE t ~ '(ab|cd|ef){2,9}[[:alpha:]]x' OR t LIKE '%a_b%c%'";
        let sql = format!("SET max_parallel_workers_per_gather = {workers}; {sql}");
        session.simple(&sql, &mut lines).await.expect("an answer");
        // What the thread has not entered yet is.
        accounting::begin_statement(0);
        if turn == 1 {
            before = bytes();
        }
    }
    bytes() - before
}

#[test]
fn helpers_leave_nothing_in_the_account() {
    let (_db, _backends, mut session) = begin();
    let account = Account::open(2);
    let (alone, helped) =
        block_on(charged(account, async { (growth(&mut session, 0).await, growth(&mut session, 3).await) }));
    assert!((helped - alone).abs() < 50_000, "{helped} bytes of 10 statements, alone {alone} (PAR-6)");
    account.close();
}

#[test]
fn a_limit_reads_no_more_than_it_asks_for() {
    let (_db, backends, mut session) = begin();
    let read = |session: &mut Session| -> i64 {
        rows(session, "SELECT pg_stat_force_next_flush()");
        rows(session, "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'big'")[0].parse().expect("a count")
    };
    let before = read(&mut session);
    assert_eq!(rows(&mut session, "SELECT id FROM big WHERE n > 1 AND k = 3 LIMIT 2"), ["10", "17"]);
    let after = read(&mut session);
    assert!(after > before && after - before < 1_000, "{} rows for two of the first leaf", after - before);
    drop(backends);
}

#[test]
fn types_of_users_are_found_by_helpers() {
    let (_db, _backends, mut session) = begin();
    rows(&mut session, "CREATE TYPE mood AS ENUM ('low', 'high', 'above')");
    let sql = "SELECT (CASE k % 3 WHEN 0 THEN 'low' WHEN 1 THEN 'high' ELSE 'above' END)::mood, count(*), max((CASE k WHEN 2 THEN 'above' ELSE 'high' END)::mood) FROM big GROUP BY 1";
    assert_eq!(both(&mut session, sql), ["high|5715|high", "above|5714|above", "low|8571|high"]);
}

#[test]
fn a_cancel_ends_all_parts_and_the_session_goes_on() {
    let (_db, backends, mut session) = begin();
    let backend = backends.all().into_iter().next().expect("a session");
    for _ in 0..10 {
        let canceller = {
            let backend = backend.clone();
            clearway_base::sync::spawn_thread("canceller", move || backend.interrupt.raise(Reason::Cancel))
        };
        let ended =
            run(&mut session, "SELECT count(*), sum(length(t) * k) FROM big WHERE t LIKE '%a%a%b%' OR t LIKE '%c%d%'");
        drop(canceller.expect("a thread").join());
        if let Err(error) = ended {
            assert_eq!(error.code(), "57014", "PAR-4");
        }
        backend.interrupt.forget();
        assert_eq!(rows(&mut session, "SELECT count(*) FROM big"), ["20000"]);
    }
}

#[test]
fn what_parts_read_is_in_the_books() {
    let (_db, backends, mut session) = begin();
    let read = "SELECT seq_scan, seq_tup_read, idx_scan FROM pg_stat_user_tables WHERE relname = 'big'";
    rows(&mut session, "SELECT pg_stat_force_next_flush()");
    let before = rows(&mut session, read);
    rows(
        &mut session,
        "SELECT count(*) FROM big WHERE k >= 0; SELECT id FROM big WHERE k = 3; SELECT id FROM big WHERE k < 6",
    );
    rows(&mut session, "SELECT pg_stat_force_next_flush()");
    let figures = |line: &[String]| -> Vec<i64> { line[0].split('|').filter_map(|n| n.parse().ok()).collect() };
    let (before, after) = (figures(&before), figures(&rows(&mut session, read)));
    let added: Vec<i64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    // The third scan keeps most rows: one thread reads the rest of it.
    assert_eq!(added, [3, 60_000, 0], "PAR-5");
    let waits = backends.all().into_iter().next().expect("a session").waits.clone();
    let cpu = || waits.time(0).cpu_ns;
    let (start, sql) = (cpu(), "SELECT count(*), sum(n) FROM big WHERE t LIKE '%b%'");
    block_on(with_session(waits.clone(), async {
        let mut lines = Lines::default();
        session.simple(sql, &mut lines).await.expect("an answer");
    }));
    assert!(cpu() > start, "BRE-9");
}
