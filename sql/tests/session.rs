//! Sessions over a database in memory. Each `testdata/session/*.sql` has statements, one per line, whose results PostgreSQL 15 wrote into
//! the `.out` beside it (`psql -XAt`-like lines: values, then the tag or the error). A line that begins with `a:` or `b:` belongs to that
//! session; a statement that waits shows `<waiting>`, and its result when it has one.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests, no part of the database")]

mod memory;

use clearway_base::sync::{ClassStats, block_on, classes, spawn_thread, track_holders};
use clearway_base::waits::{SessionStats, now_ns};
use clearway_sql::SqlError;
use clearway_sql::session::client::{Client, ClientFuture, CopyIn};
use clearway_sql::session::{Backends, Bind, Session};
use memory::{open, session};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One test at a time: one of them counts the waits of the process. The standard library's mutex is not among those waits.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes what a session answers as lines.
#[derive(Default)]
struct Lines {
    out: String,
    copy: Vec<Vec<u8>>,
    /// psql says nothing when COPY has written to its output.
    copied_out: bool,
}

impl Client for Lines {
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let mut list = Vec::new();
        for i in 0..fields {
            let mut bytes = Vec::new();
            let some = write(i, &mut bytes);
            list.push(if some { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() });
        }
        self.out.push_str(&list.join("|"));
        self.out.push('\n');
    }
    fn command_complete(&mut self, tag: &str) {
        if !self.copied_out && !tag.starts_with("SELECT") && !tag.starts_with("SHOW") && !tag.starts_with("EXPLAIN") {
            self.out.push_str(tag);
            self.out.push('\n');
        }
    }
    fn notice(&mut self, severity: &'static str, message: &SqlError) {
        self.out.push_str(&format!("{severity}:  {}\n", message.message()));
    }
    fn copy_data(&mut self, data: &[u8]) {
        self.out.push_str(&String::from_utf8_lossy(data));
    }
    fn copy_out_done(&mut self) {
        self.copied_out = true;
    }
    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        let next = self.copy.pop().map_or(CopyIn::Done, CopyIn::Data);
        Box::pin(async move { Ok(next) })
    }
}

/// Runs the lines of a script and returns what came.
fn run(script: &str) -> String {
    let db = open();
    let backends = Arc::new(Backends::default());
    let mut one = session(&db, &backends, "postgres", &[]);
    let mut out = String::new();
    for line in script.lines().filter(|l| !l.trim().is_empty() && !l.starts_with("--")) {
        out.push_str(line);
        out.push('\n');
        let mut client = Lines::default();
        let (sql, data) = line.split_once(" <<< ").unwrap_or((line, ""));
        if !data.is_empty() {
            client.copy.push(data.replace("\\n", "\n").replace("\\t", "\t").into_bytes());
        }
        let done = block_on(one.simple(sql, &mut client));
        out.push_str(&client.out);
        if let Err(e) = done {
            out.push_str(&format!("ERROR:  {}: {}\n", e.code(), e.message()));
            if let Some(detail) = &e.fields().detail {
                out.push_str(&format!("DETAIL:  {detail}\n"));
            }
        }
    }
    out
}

#[test]
fn scripts_answer_as_postgresql_does() {
    let _alone = alone();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/session");
    let mut failures = Vec::new();
    let mut count = 0;
    let mut files: Vec<_> = std::fs::read_dir(&dir).expect("scripts").flatten().map(|e| e.path()).collect();
    files.sort();
    for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == "sql")) {
        count += 1;
        let script = std::fs::read_to_string(path).expect("a script");
        let got = run(&script);
        let expected = std::fs::read_to_string(path.with_extension("out")).unwrap_or_default();
        if got != expected {
            if std::env::var_os("REWRITE").is_some() {
                std::fs::write(path.with_extension("out"), &got).expect("written");
            }
            let first = got.lines().zip(expected.lines()).position(|(a, b)| a != b);
            let at = first.unwrap_or_else(|| got.lines().count().min(expected.lines().count()));
            let lines = |s: &str| s.lines().skip(at.saturating_sub(2)).take(6).collect::<Vec<_>>().join("\n");
            failures.push(format!("{}\n--- got\n{}\n--- expected\n{}", path.display(), lines(&got), lines(&expected)));
        }
    }
    assert!(count > 0, "no scripts");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn an_index_is_built_concurrently_or_leaves_nothing() {
    let _alone = alone();
    let script = "CREATE TABLE t (id int PRIMARY KEY, a int)\n\
                  INSERT INTO t SELECT i, i % 90 FROM generate_series(1, 100) AS i\n\
                  CREATE INDEX CONCURRENTLY by_a ON t (a)\n\
                  SELECT count(*) FROM t WHERE a = 5\n\
                  CREATE UNIQUE INDEX CONCURRENTLY just_one ON t (a)\n\
                  SELECT pg_sleep(0.5)\n\
                  SELECT relname FROM pg_class WHERE relname IN ('by_a', 'just_one')\n\
                  INSERT INTO t VALUES (101, 5)\n\
                  SELECT count(*) FROM t WHERE a = 5\n\
                  BEGIN\n\
                  CREATE INDEX CONCURRENTLY inside ON t (a)\n\
                  ROLLBACK\n\
                  DELETE FROM t WHERE id > 90\n\
                  CREATE UNIQUE INDEX CONCURRENTLY just_one ON t (a)\n\
                  INSERT INTO t VALUES (102, 5)\n";
    let answers: Vec<String> = run(script).lines().filter(|l| !script.contains(*l)).map(str::to_owned).collect();
    let expected = [
        "CREATE TABLE",
        "INSERT 0 100",
        "CREATE INDEX",
        "2",
        "ERROR:  23505: could not create unique index \"just_one\"",
        "DETAIL:  Key (a)=(1) is duplicated.",
        "",
        "by_a",
        "INSERT 0 1",
        "3",
        "ERROR:  25001: CREATE INDEX CONCURRENTLY cannot run inside a transaction block",
        "DELETE 11",
        "CREATE INDEX",
        "ERROR:  23505: duplicate key value violates unique constraint \"just_one\"",
        "DETAIL:  Key (a)=(5) already exists.",
    ];
    let expected: Vec<&str> = expected.iter().copied().filter(|l| !script.contains(*l)).collect();
    assert_eq!(answers, expected);
}

#[test]
fn rows_are_counted_and_undo_and_the_log_are_shown() {
    let _alone = alone();
    let script = "CREATE TABLE t (id int PRIMARY KEY)\n\
                  SELECT reltuples FROM pg_class WHERE relname = 't'\n\
                  INSERT INTO t SELECT generate_series(1, 1000)\n\
                  DELETE FROM t WHERE id > 900\n\
                  ANALYZE t\n\
                  SELECT reltuples, relpages > 0 FROM pg_class WHERE relname = 't'\n\
                  SELECT budget_bytes, spans, alarms FROM clearway_undo\n\
                  BEGIN\n\
                  DELETE FROM t WHERE id <= 10\n\
                  SELECT kind, pid > 0, bytes > 0, query LIKE '%clearway_undo_holders%' FROM clearway_undo_holders\n\
                  ROLLBACK\n\
                  SELECT count(*) FROM clearway_undo_alarms\n\
                  SELECT end_lsn >= durable_lsn, file_bytes > 0, recovery_bytes > 0, undo_reserved_bytes FROM clearway_log\n\
                  SELECT name, needs_lsn > 0, held_bytes > 0, limit_bytes, lost FROM clearway_log_holders\n";
    let answers: Vec<String> = run(script).lines().filter(|l| !script.contains(*l)).map(str::to_owned).collect();
    let expected = [
        "-1",
        "INSERT 0 1000",
        "DELETE 100",
        "900|t",
        "268435456|0|0",
        "DELETE 10",
        "transaction|t|t|t",
        "t|t|t|0",
        "recovery|t|t||f",
    ];
    assert_eq!(answers, expected);
}

/// No statement runs under a level that there is not, whether or not a block is opened.
#[test]
fn serializable_is_refused_as_a_default_too() {
    let _alone = alone();
    let refused = "ERROR:  0A000: the isolation level SERIALIZABLE is not supported\n";
    let said = run("set default_transaction_isolation = 'serializable'\nshow transaction_isolation\n");
    assert!(said.contains(refused) && said.ends_with("read committed\n"), "{said}");
    let said = run(
        "set serializable = 'snapshot'\nset default_transaction_isolation = 'serializable'\nshow transaction_isolation\n",
    );
    assert!(said.ends_with("serializable\n"), "{said}");
}

/// A temporary function goes with its session, so no text that stays may call it; one that goes with it may.
#[test]
fn what_stays_calls_no_temporary_function() {
    let _alone = alone();
    let made =
        "create function pg_temp.f(a int) returns int language sql immutable as 'select a'\ncreate table t (a int)\n";
    for (refused, of) in [
        ("create table d (a int default pg_temp.f(1))", "default value for column a of table d"),
        ("create table c (a int constraint c check (pg_temp . f(a) > 0))", "constraint c on table c"),
        ("alter table t alter a set default pg_temp.f(2)", "default value for column a of table t"),
        ("create view v as select pg_temp.f(a) from t", "view v"),
        ("create index i on t (pg_temp.f(a))", "index i"),
        ("create function g() returns int return pg_temp.f(1)", "function g()"),
        ("create domain n as int check (pg_temp.f(value) > 0)", "type n"),
    ] {
        let said = run(&format!("{made}{refused}\nselect 'on'\n"));
        let expected = format!("ERROR:  0A000: a call of a temporary function in the {of} is not supported\n");
        assert!(said.contains(&expected) && said.ends_with("on\n"), "{refused}: {said}");
    }
    let said = run(&format!("{made}create temp view v as select pg_temp.f(a) from t\nselect count(*) from v\n"));
    assert!(said.ends_with("0\n"), "{said}");
}

/// The figures of a mutex that many take: what sessions are doing.
fn activity_mutex() -> ClassStats {
    classes().into_iter().find(|class| class.name == "sql/activity").expect("it is listed")
}

/// A mutex that is held for long is named, with its waiters, where it was taken, and what waiting for it took.
#[test]
fn a_hot_latch_is_named() {
    let _alone = alone();
    track_holders(true);
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let listed = backends.list(SessionStats::new("client"), 1, Default::default());
    let (end, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let mut victim = session(&db, &backends, "postgres", &[]);
    let is_over = (end.clone(), ended.clone());
    // Its list of sessions needs the mutex of each.
    let looking = move || {
        while !is_over.0.load(Relaxed) {
            let looked = block_on(victim.simple("SELECT count(*) FROM pg_stat_activity", &mut Lines::default()));
            looked.expect("it waits and goes on");
        }
        is_over.1.store(true, Relaxed);
    };
    spawn_thread("victim", looking).expect("a thread");
    let (before, mut planted_ns, mut at_most_ns, mut named) = (activity_mutex(), 0, 0, 0);
    let mut rounds = 0;
    while rounds < 10 || (named < 5 && rounds < 100) {
        rounds += 1;
        let first_ns = now_ns();
        let held = listed.backend().activity.lock();
        while activity_mutex().waiting == 0 {
            std::thread::yield_now();
        }
        let began_ns = now_ns();
        std::thread::sleep(Duration::from_millis(30));
        // Of a class with many mutexes one holder is remembered, and the background takes others of this class now and then.
        named += u64::from(activity_mutex().holder.is_some_and(|holder| holder.site.contains("session.rs")));
        planted_ns += now_ns() - began_ns;
        drop(held);
        while activity_mutex().waiting > 0 {
            std::thread::yield_now();
        }
        at_most_ns += now_ns() - first_ns;
    }
    end.store(true, Relaxed);
    while !ended.load(Relaxed) {
        std::thread::yield_now();
    }
    let after = activity_mutex();
    let waited_ns = after.spin_ns + after.park_ns - before.spin_ns - before.park_ns;
    assert!(named >= 5, "{named}");
    // What the waiter was charged lies between what was certainly planted and what the holder saw in all; a second waiter is the background.
    assert!((planted_ns..=2 * at_most_ns).contains(&waited_ns), "{planted_ns} {waited_ns} {at_most_ns}");
    let mut viewer = session(&db, &backends, "postgres", &[]);
    let mut shown = Lines::default();
    let hottest = "SELECT name, waits >= 10, spin_ms + park_ms >= 300 FROM clearway_latches ORDER BY spin_ms + park_ms DESC LIMIT 1";
    block_on(viewer.simple(hottest, &mut shown)).expect("shown");
    assert_eq!(shown.out, "sql/activity|t|t\n");
    let mut shown = Lines::default();
    block_on(viewer.simple("SHOW ENGINE INNODB MUTEX", &mut shown)).expect("shown");
    let waits = shown.out.lines().find_map(|line| line.strip_prefix("InnoDB|sql_activity|os_waits="));
    assert!(waits.and_then(|n| n.parse::<u64>().ok()).is_some_and(|n| n >= rounds), "{}", shown.out);
}

#[test]
fn execute_and_call_give_the_formats_that_the_portal_asks_for() {
    let _alone = alone();
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[]);
    for sql in
        ["PREPARE p AS SELECT 1212501060, 'x'", "CREATE PROCEDURE q(OUT n int) LANGUAGE sql AS 'SELECT 1212501060'"]
    {
        block_on(session.simple(sql, &mut Lines::default())).expect(sql);
    }
    // In binary form the number is the letters HELD.
    for (sql, binary, expected) in [
        ("EXECUTE p", &[1][..], "HELD|x\n"),
        ("EXECUTE p", &[0][..], "1212501060|x\n"),
        ("EXECUTE p", &[1, 0][..], "HELD|x\n"),
        ("CALL q(NULL)", &[1][..], "HELD\nCALL\n"),
        ("CALL q(NULL)", &[][..], "1212501060\nCALL\n"),
    ] {
        let mut client = Lines::default();
        block_on(session.parse("", sql, &[])).expect(sql);
        let bind = Bind { formats: &[], values: &[], result_formats: binary };
        block_on(session.bind("", "", bind)).expect(sql);
        block_on(session.execute("", 0, &mut client)).expect(sql);
        block_on(session.sync()).expect(sql);
        assert_eq!(client.out, expected, "{sql} {binary:?}");
    }
    let mut client = Lines::default();
    block_on(session.simple("EXECUTE p", &mut client)).expect("the simple protocol has texts");
    assert_eq!(client.out, "1212501060|x\n");
}

#[test]
fn a_text_in_binary_form_has_the_encoding_of_the_client() {
    let _alone = alone();
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[]);
    // The bytes of one character in UTF-8 are those of two in LATIN1.
    for (encoding, characters) in [("UTF8", "1\n"), ("LATIN1", "2\n"), ("UTF8", "1\n")] {
        block_on(session.simple(&format!("SET client_encoding TO {encoding}"), &mut Lines::default())).expect("set");
        let mut client = Lines::default();
        block_on(session.parse("", "SELECT length($1::text)", &[])).expect("parsed");
        let bind = Bind { formats: &[1], values: &[Some(b"\xc3\xa9")], result_formats: &[] };
        block_on(session.bind("", "", bind)).expect("bound");
        block_on(session.execute("", 0, &mut client)).expect("executed");
        block_on(session.sync()).expect("ended");
        assert_eq!(client.out, characters, "{encoding}");
    }
}

#[test]
fn statement_timeout_counts_from_parse_to_the_end_of_execute() {
    let _alone = alone();
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[("statement_timeout", "20")]);
    let bind = || Bind { formats: &[], values: &[], result_formats: &[] };
    let late = |what: &str, ended: Result<(), SqlError>| assert_eq!(ended.expect_err(what).code(), "57014", "{what}");
    let parse = |session: &mut Session| {
        block_on(session.parse("", "SELECT 1", &[])).expect("in time");
        std::thread::sleep(Duration::from_millis(25));
    };
    parse(&mut session);
    late("Describe", block_on(session.describe_statement("", &mut Lines::default())));
    block_on(session.sync()).expect("ended");
    parse(&mut session);
    assert!(!session.try_bind("", "", &bind()), "not on the spot");
    late("Bind", block_on(session.bind("", "", bind())));
    block_on(session.sync()).expect("ended");
    // In a block it is an error of the transaction.
    block_on(session.simple("BEGIN", &mut Lines::default())).expect("begun");
    parse(&mut session);
    late("Bind", block_on(session.bind("", "", bind())));
    block_on(session.sync()).expect("ended");
    let failed = block_on(session.simple("SELECT 1", &mut Lines::default()));
    assert_eq!(failed.expect_err("failed").code(), "25P02");
    block_on(session.simple("ROLLBACK; SET statement_timeout = '1min'", &mut Lines::default())).expect("rolled back");
    // What is left for Execute.
    parse(&mut session);
    assert!((1..60_000).contains(&session.timeouts().statement_ms), "{}", session.timeouts().statement_ms);
    block_on(session.bind("", "", bind())).expect("bound");
    block_on(session.execute("", 0, &mut Lines::default())).expect("executed");
    assert_eq!(session.timeouts().statement_ms, 60_000, "the next statement has its own time");
}

/// Prepares, binds and executes without parameters.
fn extended(session: &mut Session, sql: &str, result_formats: &[i16], client: &mut dyn Client) {
    block_on(session.parse("", sql, &[])).expect(sql);
    block_on(session.bind("", "", Bind { formats: &[], values: &[], result_formats })).expect(sql);
    block_on(session.execute("", 0, client)).expect(sql);
}

#[test]
fn a_binary_cursor_has_the_formats_that_bind_asks_for() {
    let _alone = alone();
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[]);
    // In binary form the number is the letters HELD.
    let declare = "BEGIN; DECLARE c BINARY CURSOR FOR SELECT 1212501060 FROM generate_series(1, 4)";
    block_on(session.simple(declare, &mut Lines::default())).expect("declared");
    for (formats, expected) in [(&[][..], "1212501060"), (&[0][..], "1212501060"), (&[1][..], "HELD")] {
        let mut client = Lines::default();
        extended(&mut session, "FETCH c", formats, &mut client);
        block_on(session.sync()).expect("the batch ends");
        assert_eq!(client.out, format!("{expected}\nFETCH 1\n"), "{formats:?}");
    }
    let mut client = Lines::default();
    block_on(session.simple("FETCH c", &mut client)).expect("fetched");
    assert_eq!(client.out, "HELD\nFETCH 1\n", "the simple protocol has no word in it");
}

#[test]
fn named_portals_are_listed_with_the_cursors() {
    let _alone = alone();
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[]);
    let bind = || Bind { formats: &[], values: &[], result_formats: &[] };
    let listed = |session: &mut Session| {
        let mut client = Lines::default();
        let sql = "SELECT name, statement, is_holdable, is_binary, is_scrollable FROM pg_cursors ORDER BY name";
        block_on(session.simple(sql, &mut client)).expect("listed");
        client.out
    };
    block_on(session.simple("BEGIN", &mut Lines::default())).expect("begun");
    block_on(session.simple("DECLARE d CURSOR FOR SELECT 1", &mut Lines::default())).expect("declared");
    block_on(session.parse("s", "SELECT generate_series(1, 9)", &[])).expect("parsed");
    block_on(session.bind("C_1", "s", bind())).expect("bound");
    block_on(session.execute("C_1", 2, &mut Lines::default())).expect("executed");
    let declared = "d|DECLARE d CURSOR FOR SELECT 1|f|f|t\n";
    assert_eq!(listed(&mut session), format!("C_1|SELECT generate_series(1, 9)|f|f|f\n{declared}"));
    session.close_portal("C_1");
    assert_eq!(listed(&mut session), declared);
    block_on(session.bind("C_2", "s", bind())).expect("bound");
    block_on(session.simple("COMMIT", &mut Lines::default())).expect("committed");
    block_on(session.sync()).expect("the batch ends");
    assert_eq!(listed(&mut session), "", "a portal ends with its transaction");
    block_on(session.simple("BEGIN; DECLARE d CURSOR FOR SELECT 1", &mut Lines::default())).expect("begun");
    let taken = block_on(session.bind("d", "s", bind())).expect_err("the name is that of a cursor");
    assert_eq!((taken.code(), taken.message()), ("42P03", "cursor \"d\" already exists"));
}

#[test]
fn the_client_is_told_of_settings_at_the_end_of_an_implicit_transaction() {
    /// What it was told of one setting.
    #[derive(Default)]
    struct Told(Vec<String>);
    impl Client for Told {
        fn row(&mut self, _fields: usize, _write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {}
        fn command_complete(&mut self, _tag: &str) {}
        fn parameter_status(&mut self, _name: &str, value: &str) {
            self.0.push(value.to_owned());
        }
    }
    let _alone = alone();
    let db = open();
    let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[("application_name", "before")]);
    let mut told = Told::default();
    extended(&mut session, "SET LOCAL application_name = 'local'", &[], &mut told);
    assert!(told.0.is_empty(), "the transaction can still take it back: {:?}", told.0);
    // The end of the batch is not the one on the spot, which tells nothing.
    assert!(!session.try_sync());
    block_on(session.sync_and_tell(&mut told)).expect("the batch ends");
    assert!(told.0.iter().all(|value| value == "before"), "{:?}", told.0);
    told.0.clear();
    extended(&mut session, "SET application_name = 'after'", &[], &mut told);
    block_on(session.sync_and_tell(&mut told)).expect("the batch ends");
    assert_eq!(told.0, ["after"]);
    // Without a client to tell, the next batches end on the spot again.
    extended(&mut session, "SET application_name = 'quiet'", &[], &mut told);
    block_on(session.sync()).expect("the batch ends");
    extended(&mut session, "SELECT 1", &[], &mut told);
    assert!(session.try_sync());
    assert_eq!(told.0, ["after"]);
}
