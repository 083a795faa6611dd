//! Statements that change one row do the same on the fast path (Bind, Execute; texts tried at once) as on the general path (the text with
//! its values in it), and they take the fast path exactly where they qualify for it.

use crate::memory::{self, Told, open, session, simple};
use clearway_base::sync::block_on;
use clearway_engine::db::Db;
use clearway_sql::context::log_line::Line;
use clearway_sql::session::{AtOnce, Backends, Bind, Session};
use std::future::Future as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Waker};

fn user(db: &Arc<Db>) -> Session {
    session(db, &Arc::new(Backends::default()), "postgres", &[])
}

/// As the server does: at once if that can be; says whether it was.
fn tried(session: &mut Session, sql: &str) -> (String, bool) {
    let mut lines = Told::default();
    let done = match session.try_simple(sql, &mut lines) {
        AtOnce::Nothing => {
            assert_eq!(lines.0, "", "nothing is told of what has not happened");
            return (simple(session, sql), false);
        }
        AtOnce::Uncommitted => block_on(session.sync()),
        AtOnce::Done => Ok(()),
    };
    done.and(block_on(session.before_send())).expect("it is durable");
    (lines.0, true)
}

/// Prepares anew, binds, executes; says whether the statement took the fast path.
fn prepared(session: &mut Session, sql: &str, values: &[Option<&str>]) -> (String, bool) {
    if let Err(e) = block_on(session.parse("", sql, &[])) {
        return (e.code().to_owned(), false);
    }
    execute(session, values)
}

/// The statement that was prepared last, once more.
fn execute(session: &mut Session, values: &[Option<&str>]) -> (String, bool) {
    let answer = memory::execute(session, values);
    block_on(session.before_send()).expect("it is durable");
    answer
}

/// A table by this name; two of them are changed by the two ways.
fn table(session: &mut Session, name: &str) {
    let statements = [
        "CREATE TABLE @ (a int PRIMARY KEY, b int, c char(5), d smallint NOT NULL, e float8, f boolean, g bigint, h text, i int UNIQUE, j int)",
        "CREATE INDEX ON @ (g) WHERE b > 0",
        "INSERT INTO @ VALUES (1, 10, 'ab', 1, 1.5, true, 100, 'text', 1), (2, NULL, NULL, 2, NULL, NULL, NULL, NULL, 2), (3, 2147483647, 'c', -3, 'NaN', false, -1, '', 3)",
        "INSERT INTO @ VALUES (4, 40, 'dd', 4, -0.25, false, 400, 'new', 4, 44), (5, 50, NULL, 5, 0, true, 500, 'x', NULL, NULL)",
    ];
    statements.iter().for_each(|sql| _ = simple(session, &sql.replace('@', name)));
}

/// Text with parameters, the values, and whether the statement can take the fast path where the row is plain.
const UPDATES: &[(&str, &[&str], bool)] = &[
    ("UPDATE @ SET e = e * 2 WHERE a = $1", &["1", "4", "9"], true),
    ("UPDATE @ SET d = d + 1, f = true WHERE a = $1", &["1", "3", "4"], true),
    ("UPDATE @ SET e = $2 WHERE a = $1", &["1,2.5", "4,-1e300", "4,NaN"], true),
    ("UPDATE @ SET d = $2 WHERE a = $1", &["1,-32768", "5,32767"], true),
    ("UPDATE @ SET d = d + $2 WHERE a = $1", &["4,100"], true),
    ("UPDATE @ SET j = -j WHERE a = $1", &["4"], true),
    ("UPDATE @ SET g = g + 1 WHERE a = $1", &["1", "2"], false),
    ("UPDATE @ SET b = b + 1 WHERE a = $1", &["1", "2"], false),
    ("UPDATE @ SET i = i + 10 WHERE a = $1", &["1", "5"], false),
    ("UPDATE @ SET a = a + 100 WHERE a = $1", &["5"], false),
    ("UPDATE @ SET h = 'other' WHERE a = $1", &["1", "2", "9"], true),
    ("UPDATE @ SET c = 'z', e = 4 WHERE a = $1", &["1", "5"], true),
    ("UPDATE @ SET h = NULL, e = 6 WHERE a = $1", &["1", "5"], true),
    ("UPDATE @ SET d = 9 WHERE a = $1 AND f", &["1"], false),
    ("UPDATE @ SET d = 8 WHERE a = $1 RETURNING d", &["1"], false),
    ("UPDATE @ SET d = (SELECT 6) WHERE a = $1", &["1"], false),
    ("UPDATE @ SET e = random() * 0 WHERE a = $1", &["1"], false),
    ("UPDATE @ SET d = 7 WHERE a > $1", &["1"], false),
];

/// Changes that begin on the fast path and leave it because of the row or the value.
const SENT_BACK: &[(&str, &str)] = &[
    ("UPDATE @ SET e = 1 WHERE a = $1", "2"),
    ("UPDATE @ SET e = NULL WHERE a = $1", "4"),
    ("UPDATE @ SET d = NULL WHERE a = $1", "4"),
    ("UPDATE @ SET d = d + 32767 WHERE a = $1", "4"),
    ("UPDATE @ SET d = d / 0 WHERE a = $1", "4"),
    ("UPDATE @ SET j = 70 WHERE a = $1", "1"),
    ("UPDATE @ SET f = NOT f WHERE a = $1", "1"),
    ("UPDATE @ SET h = 'x', d = NULL WHERE a = $1", "1"),
    ("UPDATE @ SET c = 'too long for it' WHERE a = $1", "1"),
];

fn list(text: &str) -> Vec<Option<&str>> {
    text.split(',').map(Some).collect()
}

fn with_values(sql: &str, values: &str) -> String {
    let (mut sql, mut n) = (sql.to_owned(), 0);
    values.split(',').for_each(|value| {
        n += 1;
        let text = if value == "NaN" { "'NaN'".to_owned() } else { value.to_owned() };
        sql = sql.replace(&format!("${n}"), &text);
    });
    sql
}

#[test]
fn the_short_way_changes_as_the_long_one() {
    let db = open();
    let one = &mut user(&db);
    table(one, "s");
    table(one, "l");
    let all = |one: &mut Session, name: &str| simple(one, &format!("SELECT * FROM {name} ORDER BY a"));
    assert_eq!(all(one, "s"), all(one, "l"));
    for (sql, values, short) in UPDATES {
        for values in *values {
            let expected = simple(one, &with_values(&sql.replace('@', "l"), values));
            let answer = prepared(one, &sql.replace('@', "s"), &list(values));
            assert_eq!(answer, (expected, *short), "{sql} with {values}");
            assert_eq!(all(one, "s"), all(one, "l"), "{sql} with {values}");
        }
    }
    for (sql, values) in SENT_BACK {
        let expected = simple(one, &with_values(&sql.replace('@', "l"), values));
        assert_eq!(prepared(one, &sql.replace('@', "s"), &list(values)), (expected, false), "{sql} with {values}");
        assert_eq!(all(one, "s"), all(one, "l"), "{sql} with {values}");
    }
    assert_eq!(prepared(one, "UPDATE s SET d = 1 WHERE a = $1", &[None]), ("UPDATE 0".to_owned(), true));
    simple(one, "ALTER TABLE s ADD COLUMN k int DEFAULT 7");
    let update = "UPDATE s SET e = e + 1 WHERE a = $1";
    let done = |short| ("UPDATE 1".to_owned(), short);
    assert_eq!(prepared(one, update, &[Some("105")]), done(false), "a row of the schema before");
    assert_eq!(execute(one, &[Some("105")]), done(true));
    assert_eq!(simple(one, "SELECT e, k FROM s WHERE a = 105"), "2|7|\nSELECT 1");
    let by_index = simple(one, "SELECT a FROM s WHERE i = 4");
    assert_eq!(by_index, "4|\nSELECT 1", "entries of indexes still lead to rows that were changed");
}

#[test]
fn rows_are_inserted_as_by_the_long_way() {
    let db = open();
    let one = &mut user(&db);
    for name in ["s", "l"] {
        simple(
            one,
            &format!(
                "CREATE TABLE {name} (n int, t text DEFAULT 'd', w timestamptz, x smallint NOT NULL DEFAULT 3, v varchar(3))"
            ),
        );
    }
    let cases: &[(&str, &str, bool)] = &[
        // The first takes the table's row ids, for which it may wait.
        ("INSERT INTO @ VALUES ($1, 'a', NULL, 1, 'abc')", "1", false),
        ("INSERT INTO @ VALUES ($1, 'b', NULL, 1, 'abc')", "2", true),
        ("INSERT INTO @ (n) VALUES ($1)", "3", true),
        ("INSERT INTO @ (x, n) VALUES (4, $1 + 1)", "4", true),
        ("INSERT INTO @ (x, n) VALUES (40000, $1)", "5", false),
        ("INSERT INTO @ (x, n) VALUES (NULL, $1)", "6", false),
        ("INSERT INTO @ (n, v) VALUES ($1, 'long')", "7", false),
        ("INSERT INTO @ (n, v) VALUES ($1, 'ok   ')", "8", true),
        ("INSERT INTO @ (n) VALUES ($1), (9)", "9", false),
        ("INSERT INTO @ (n) SELECT $1::int", "10", false),
        ("INSERT INTO @ (n) VALUES ($1) RETURNING n", "11", false),
    ];
    for (sql, value, short) in cases {
        let expected = simple(one, &with_values(&sql.replace('@', "l"), value));
        assert_eq!(prepared(one, &sql.replace('@', "s"), &[Some(*value)]), (expected, *short), "{sql}");
    }
    assert_eq!(simple(one, "SELECT * FROM s"), simple(one, "SELECT * FROM l"));
    simple(one, "BEGIN");
    assert_eq!(
        prepared(one, "INSERT INTO s (n, w) VALUES ($1, now())", &[Some("12")]),
        ("INSERT 0 1".to_owned(), true)
    );
    assert_eq!(simple(one, "SELECT w = now() FROM s WHERE n = 12"), "t|\nSELECT 1");
    simple(one, "ROLLBACK");
    assert_eq!(simple(one, "SELECT count(*) FROM s WHERE n = 12"), "0|\nSELECT 1", "a rollback undoes it");
    // Far more rows than a session takes row ids at once.
    for n in 100..300 {
        assert_eq!(prepared(one, "INSERT INTO s (n) VALUES ($1)", &[Some(&n.to_string())]).0, "INSERT 0 1");
    }
    assert_eq!(simple(one, "SELECT count(*), count(DISTINCT n) FROM s WHERE n >= 100"), "200|200|\nSELECT 1");
}

#[test]
fn rows_are_inserted_under_their_keys_as_by_the_long_way() {
    let db = open();
    let (one, other) = (&mut user(&db), &mut user(&db));
    for name in ["s", "l"] {
        simple(one, &format!("CREATE TABLE {name} (a int, b text, n int DEFAULT 1, PRIMARY KEY (b, a))"));
    }
    simple(one, "CREATE TABLE indexed (a int PRIMARY KEY, n int)");
    simple(one, "CREATE INDEX ON indexed (n)");
    simple(one, "CREATE TABLE computed_indexed (a int PRIMARY KEY, n int)");
    simple(one, "CREATE INDEX ON computed_indexed ((n + 1))");
    let (update, nothing) = ("ON CONFLICT (b, a) DO UPDATE SET n = @.n + 1", "ON CONFLICT DO NOTHING");
    let cases: &[(&str, &str, bool)] = &[
        ("INSERT INTO @ VALUES ($1, 'a')", "1", true),
        ("INSERT INTO @ VALUES ($1, 'a')", "1", false),
        ("INSERT INTO @ VALUES ($1, 'b')", "1", true),
        ("INSERT INTO @ VALUES ($1, NULL)", "1", false),
        ("INSERT INTO @ VALUES ($1, repeat('x', 9000))", "1", false),
        ("INSERT INTO @ VALUES ($1, 'c') DO_NOTHING", "1", true),
        ("INSERT INTO @ VALUES ($1, 'c') DO_NOTHING", "1", true),
        ("INSERT INTO @ VALUES ($1, 'd') DO_UPDATE", "1", true),
        ("INSERT INTO @ VALUES ($1, 'd') DO_UPDATE", "1", false),
        ("INSERT INTO @ VALUES ($1, 'd') DO_UPDATE RETURNING n", "1", false),
        ("INSERT INTO indexed VALUES ($1, 1)", "1", true),
        ("INSERT INTO computed_indexed VALUES ($1, 1)", "1", false),
    ];
    for (sql, value, short) in cases {
        let sql = sql.replace("DO_UPDATE", update).replace("DO_NOTHING", nothing);
        let to = |name: &str| if sql.contains("indexed") { format!("{sql} -- {name}") } else { sql.replace('@', name) };
        let expected = simple(one, &with_values(&to("l").replace("($1, 1)", "(2, 1)"), value));
        assert_eq!(prepared(one, &to("s"), &[Some(*value)]), (expected, *short), "{sql}");
    }
    let all = |one: &mut Session, name: &str| simple(one, &format!("SELECT * FROM {name}"));
    assert_eq!(all(one, "s"), all(one, "l"));
    // A row that an older snapshot does not show, one that is being inserted, and one that was deleted.
    let insert = "INSERT INTO s VALUES ($1, 'e') ON CONFLICT DO NOTHING";
    simple(one, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    simple(one, "SELECT 1");
    simple(other, &with_values(insert, "1"));
    assert_eq!(prepared(one, insert, &[Some("1")]), ("40001".to_owned(), false));
    simple(one, "ROLLBACK");
    simple(one, "SET lock_timeout = '20ms'");
    simple(other, "BEGIN");
    simple(other, &with_values(insert, "2"));
    assert_eq!(prepared(one, insert, &[Some("2")]), ("55P03".to_owned(), false));
    simple(other, "ROLLBACK");
    // The text that met a row is the same statement when it comes again, and does not try.
    assert_eq!(prepared(one, insert, &[Some("3")]), ("INSERT 0 1".to_owned(), false));
    let anew = &format!("{insert} -- anew");
    assert_eq!(prepared(one, anew, &[Some("2")]), ("INSERT 0 1".to_owned(), true));
    simple(one, "DELETE FROM s WHERE a = 2");
    assert_eq!(prepared(one, anew, &[Some("2")]), ("INSERT 0 1".to_owned(), true));
    // After a row in the way the next executions do not try, and then they do again.
    let upsert = "INSERT INTO s VALUES ($1, 'f') ON CONFLICT (b, a) DO UPDATE SET n = s.n + 1";
    assert!(prepared(one, upsert, &[Some("1")]).1);
    for n in 0..17 {
        assert_eq!(execute(one, &[Some("1")]), ("INSERT 0 1".to_owned(), false), "{n}");
    }
    assert_eq!(simple(one, "SELECT n FROM s WHERE b = 'f'"), "18|\nSELECT 1");
}

#[test]
fn rows_are_deleted_as_by_the_long_way() {
    let db = open();
    let (one, other) = (&mut user(&db), &mut user(&db));
    for sql in [
        "CREATE TABLE plain (a int PRIMARY KEY, b text)",
        "CREATE TABLE two (a int, b int, PRIMARY KEY (a, b))",
        "CREATE TABLE indexed (a int PRIMARY KEY, b int)",
        "CREATE INDEX ON indexed (b)",
        "CREATE TABLE computed (a int PRIMARY KEY, b int)",
        "CREATE INDEX ON computed ((b + 1))",
        "CREATE TABLE parent (a int PRIMARY KEY)",
        "CREATE TABLE child (a int PRIMARY KEY REFERENCES parent)",
        "INSERT INTO plain SELECT g, repeat('x', 20000 * (g / 5)) FROM generate_series(1, 5) g",
        "INSERT INTO two VALUES (1, 1), (1, 2)",
        "INSERT INTO indexed VALUES (1, 1), (2, 2)",
        "INSERT INTO computed VALUES (1, 1), (2, 2)",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO child VALUES (1)",
    ] {
        assert!(simple(one, sql).len() > 5, "{sql}");
    }
    for (sql, key, answer, short) in [
        ("DELETE FROM plain WHERE a = $1", "1", "DELETE 1", true),
        ("DELETE FROM plain WHERE a = $1", "1", "DELETE 0", true),
        ("DELETE FROM plain WHERE a = $1 AND b = ''", "2", "DELETE 1", false),
        ("DELETE FROM plain WHERE a = $1 RETURNING a", "3", "3|\nDELETE 1", false),
        ("DELETE FROM two WHERE b = 2 AND a = $1", "1", "DELETE 1", true),
        ("DELETE FROM two WHERE a = $1", "1", "DELETE 1", false),
        ("DELETE FROM indexed WHERE a = $1", "1", "DELETE 1", true),
        ("DELETE FROM computed WHERE a = $1", "1", "DELETE 1", false),
        ("DELETE FROM parent WHERE a = $1", "1", "23503", false),
        ("DELETE FROM parent WHERE a = $1", "2", "DELETE 1", false),
        ("DELETE FROM child WHERE a = $1", "1", "DELETE 1", true),
    ] {
        assert_eq!(prepared(one, sql, &[Some(key)]), (answer.to_owned(), short), "{sql} with {key}");
    }
    assert_eq!(simple(one, "SELECT a FROM plain ORDER BY a"), "4|\n5|\nSELECT 2");
    // A long value goes with its row, and both come back.
    let delete = "DELETE FROM plain WHERE a = $1";
    simple(one, "BEGIN");
    assert_eq!(prepared(one, delete, &[Some("5")]).0, "DELETE 1");
    assert_eq!(simple(one, "SELECT count(*) FROM plain; ROLLBACK"), "1|\nSELECT 1ROLLBACK");
    assert_eq!(simple(one, "SELECT length(b) FROM plain WHERE a = 5"), "20000|\nSELECT 1");
    // One snapshot for all of the transaction: the row has been changed since.
    simple(one, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM plain");
    simple(other, "UPDATE plain SET b = 'new' WHERE a = 4");
    assert_eq!(prepared(one, delete, &[Some("4")]), ("40001".to_owned(), false));
    simple(one, "ROLLBACK");
    assert_eq!(prepared(one, delete, &[None]), ("DELETE 0".to_owned(), true));
    assert_eq!(prepared(one, delete, &[Some("4")]), ("DELETE 1".to_owned(), true));
    assert_eq!(simple(other, "SELECT a FROM plain"), "5|\nSELECT 1");
}

#[test]
fn what_else_checks_rows_keeps_its_tables_from_the_short_way() {
    let db = open();
    let one = &mut user(&db);
    let statements = [
        "CREATE DOMAIN small AS int CHECK (VALUE < 10)",
        "CREATE TABLE parent (a int PRIMARY KEY)",
        "INSERT INTO parent VALUES (1), (2)",
        "CREATE TABLE checked (a int PRIMARY KEY, b int CHECK (b < 10))",
        "CREATE TABLE refers (a int PRIMARY KEY, b int REFERENCES parent)",
        "CREATE TABLE computed (a int PRIMARY KEY, b int, c int GENERATED ALWAYS AS (b * 2) STORED)",
        "CREATE TABLE typed (a int PRIMARY KEY, b small)",
        "CREATE TABLE late (a int PRIMARY KEY, b int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TABLE plain (a int PRIMARY KEY, b int)",
        "CREATE VIEW narrow AS SELECT * FROM plain WHERE b < 10 WITH CHECK OPTION",
    ];
    statements.iter().for_each(|sql| assert!(simple(one, sql).len() > 5, "{sql}"));
    for (name, code) in [("checked", "23514"), ("refers", "23503"), ("typed", "23514"), ("narrow", "44000")] {
        assert_eq!(simple(one, &format!("INSERT INTO {name} (a, b) VALUES (1, 1)")), "INSERT 0 1", "{name}");
        let sql = format!("UPDATE {name} SET b = 11 WHERE a = $1");
        assert_eq!(prepared(one, &sql, &[Some("1")]), (code.to_owned(), false), "{name}");
    }
    simple(one, "INSERT INTO computed (a, b) VALUES (1, 1)");
    let update = "UPDATE computed SET b = 5 WHERE a = $1";
    assert_eq!(prepared(one, update, &[Some("1")]), ("UPDATE 1".to_owned(), false));
    assert_eq!(simple(one, "SELECT c FROM computed"), "10|\nSELECT 1");
    simple(one, "INSERT INTO late VALUES (1, 1), (2, 2)");
    assert_eq!(prepared(one, "UPDATE late SET b = 3 WHERE a = $1", &[Some("1")]), ("UPDATE 1".to_owned(), false));
    assert_eq!(prepared(one, "UPDATE plain SET b = 2 WHERE a = $1", &[Some("1")]), ("UPDATE 1".to_owned(), true));
}

#[test]
fn rights_and_modes_hold_for_the_short_way() {
    let db = open();
    let (one, other) = (&mut user(&db), &mut user(&db));
    simple(one, "CREATE TABLE t (a int PRIMARY KEY, b int)");
    simple(one, "INSERT INTO t VALUES (1, 10)");
    simple(one, "CREATE ROLE poor LOGIN");
    let poor = &mut session(&db, &Arc::new(Backends::default()), "poor", &[]);
    let (sql, key) = ("UPDATE t SET b = b + 1 WHERE a = $1", [Some("1")]);
    assert_eq!(prepared(poor, sql, &key).0, "42501");
    simple(one, "GRANT SELECT, UPDATE ON t TO poor");
    assert_eq!(prepared(poor, sql, &key), ("UPDATE 1".to_owned(), true));
    simple(one, "REVOKE UPDATE ON t FROM poor");
    assert_eq!(execute(poor, &key).0, "42501", "what was granted at Parse does not count");
    assert_eq!(prepared(one, sql, &key), ("UPDATE 1".to_owned(), true));
    simple(other, "ALTER TABLE t ADD COLUMN c int");
    assert_eq!(execute(one, &key), ("UPDATE 1".to_owned(), false), "the plan is old");
    simple(one, "BEGIN READ ONLY");
    assert_eq!(execute(one, &key).0, "25006");
    assert_eq!(execute(one, &key).0, "25P02", "a failed block");
    simple(one, "ROLLBACK");
    simple(one, "BEGIN");
    simple(one, "SAVEPOINT s");
    assert_eq!(execute(one, &key), ("UPDATE 1".to_owned(), false), "a savepoint notes that there is something to undo");
    simple(one, "ROLLBACK TO s");
    simple(one, "COMMIT");
    assert_eq!(simple(one, "SELECT b FROM t"), "13|\nSELECT 1");
}

#[test]
fn a_row_that_another_transaction_has_or_has_changed_is_judged_the_long_way() {
    let db = open();
    let (one, other) = (&mut user(&db), &mut user(&db));
    simple(one, "CREATE TABLE t (a int PRIMARY KEY, b int)");
    simple(one, "INSERT INTO t VALUES (1, 10)");
    let (sql, key) = ("UPDATE t SET b = b + 1 WHERE a = $1", [Some("1")]);
    simple(one, "SET lock_timeout = '20ms'");
    for change in [sql.replace("$1", "1"), "SELECT b FROM t WHERE a = 1 FOR UPDATE".to_owned()] {
        simple(other, "BEGIN");
        simple(other, &change);
        assert_eq!(prepared(one, sql, &key), ("55P03".to_owned(), false), "{change}");
        simple(other, "ROLLBACK");
        assert_eq!(prepared(one, sql, &key).0, "UPDATE 1");
    }
    assert_eq!(simple(one, "SELECT b FROM t"), "12|\nSELECT 1");
    simple(one, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    simple(one, "SELECT 1");
    simple(other, "UPDATE t SET b = 50 WHERE a = 1");
    assert_eq!(prepared(one, sql, &key), ("40001".to_owned(), false));
    simple(one, "ROLLBACK");
    simple(one, "BEGIN");
    assert_eq!(prepared(one, sql, &key).0, "UPDATE 1");
    assert_eq!(prepared(one, sql, &key), ("UPDATE 1".to_owned(), true), "its own version is the newest");
    assert_eq!(simple(other, "SELECT b FROM t"), "50|\nSELECT 1");
    simple(one, "COMMIT");
    assert_eq!(simple(other, "SELECT b FROM t"), "52|\nSELECT 1");
}

#[test]
fn texts_are_tried_at_once() {
    let db = open();
    let (one, other) = (&mut user(&db), &mut user(&db));
    simple(one, "CREATE TABLE t (a int PRIMARY KEY, b int)");
    simple(one, "CREATE TABLE log (n int, at timestamptz)");
    simple(one, "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    let round = |session: &mut Session, n: i32| {
        let texts = [
            "BEGIN;".to_owned(),
            format!("UPDATE t SET b = b + {n} WHERE a = {n};"),
            format!("SELECT b FROM t WHERE a = {n};"),
            format!("INSERT INTO log (n, at) VALUES ({n}, CURRENT_TIMESTAMP);"),
            "END;".to_owned(),
        ];
        texts.map(|text| tried(session, &text))
    };
    // The first two rounds teach the session that the texts differ in their integers alone.
    round(one, 1);
    round(one, 2);
    let third = round(one, 3);
    let expected =
        [("BEGIN", true), ("UPDATE 1", true), ("33|\nSELECT 1", true), ("INSERT 0 1", true), ("COMMIT", true)];
    assert_eq!(third, expected.map(|(text, at_once)| (text.to_owned(), at_once)));
    assert_eq!(simple(other, "SELECT b FROM t ORDER BY a"), "11|\n22|\n33|\nSELECT 3");
    assert_eq!(simple(other, "SELECT count(*) FROM log"), "3|\nSELECT 1");
    assert_eq!(tried(one, "UPDATE t SET b = b + 1 WHERE a = 1"), ("UPDATE 1".to_owned(), true), "without a block");
    assert_eq!(simple(other, "SELECT b FROM t WHERE a = 1"), "12|\nSELECT 1", "it is committed");
    assert_eq!(tried(one, "COMMIT").0, "COMMIT", "outside of a block, with a warning");
    tried(one, "BEGIN");
    assert_eq!(tried(one, "SELECT 1 / 0").0, "22012");
    assert_eq!(tried(one, "UPDATE t SET b = b + 2 WHERE a = 1").0, "25P02");
    assert_eq!(tried(one, "COMMIT").0, "ROLLBACK", "of a failed block");
    simple(one, "BEGIN");
    simple(one, "SET LOCAL work_mem = '1MB'");
    assert_eq!(tried(one, "COMMIT").0, "COMMIT");
    assert_eq!(
        simple(one, "SELECT current_setting('work_mem') = '1MB'"),
        "f|\nSELECT 1",
        "it held for the transaction"
    );
}

#[test]
fn a_statement_that_is_sent_back_is_logged_once() {
    let db = open();
    let backends = Arc::new(Backends::default());
    let lines = Arc::new(AtomicUsize::new(0));
    let of_log = lines.clone();
    backends.log_to(move |line: Line| _ = of_log.fetch_add(usize::from(line.message.contains("UPDATE")), Relaxed));
    let one = &mut session(&db, &backends, "postgres", &[]);
    simple(one, "CREATE TABLE t (a int PRIMARY KEY, b int)");
    simple(one, "INSERT INTO t VALUES (1, NULL)");
    simple(one, "SET log_statement = 'all'");
    assert_eq!(prepared(one, "UPDATE t SET b = 1 WHERE a = $1", &[Some("1")]).0, "UPDATE 1");
    assert_eq!(lines.load(Relaxed), 1);
    assert_eq!(prepared(one, "UPDATE t SET b = b + 1 WHERE a = $1", &[Some("1")]).0, "UPDATE 1");
    assert_eq!(lines.load(Relaxed), 2);
}

/// What PostgreSQL 15 answers. Rows of three schema versions, with nulls, a dropped column, decimals and blanks at the end, are walked over, changed,
/// deleted and entered into new indexes.
#[test]
fn walks_that_change_rows_and_builds_of_indexes_read_rows_of_all_versions() {
    let db = open();
    let mut user = user(&db);
    let script = "create table t (id int primary key, gone text, a numeric, b char(5), d text); create index on t (d);
        insert into t select i, 'gone', i + 0.5, case when i % 3 = 0 then 'x' end, 'd' || i from generate_series(1, 300) i;
        alter table t drop column gone; alter table t add column c int default 7;
        insert into t select i, i, 'y', null, i % 5 from generate_series(301, 600) i;
        update t set a = a + 1, d = d || b where c = 7 and b = 'x';
        update t set b = 'z' where d is null and c > 2;
        delete from t where c = 7 and a::int % 2 = 0; delete from t where b = 'z' and id % 4 = 1;
        create index on t (a, c); create unique index on t (d, id) where b is not null";
    for statement in script.split(';') {
        let said = simple(&mut user, statement);
        assert!(said.contains(' '), "{statement}: {said}");
    }
    let all = "select count(*), sum(id), sum(a), sum(c), count(b), count(d), min(d), max(length(d)) from t";
    assert_eq!(simple(&mut user, all), "420|144120|144245.0|1545|320|150|d10|5|\nSELECT 1");
    simple(&mut user, "set enable_seqscan = off");
    let by_pair = "select count(*), sum(id) from t where a > 100 and c = 7";
    assert_eq!(simple(&mut user, by_pair), "101|20098|\nSELECT 1");
    let by_partial = "select count(*), min(d) from t where d > 'd2' and b is not null";
    assert_eq!(simple(&mut user, by_partial), "33|d201x|\nSELECT 1");
    // Without a condition, so that all columns are read at once.
    assert_eq!(simple(&mut user, "update t set a = a + 1"), "UPDATE 420");
    assert_eq!(simple(&mut user, all), "420|144120|144665.0|1545|320|150|d10|5|\nSELECT 1");
}

#[test]
fn rows_that_a_change_returns_are_read_as_far_as_they_are_asked_for() {
    // As in PostgreSQL: what is wrong about a later row is not met.
    let db = open();
    let mut session = user(&db);
    simple(&mut session, "create table gone (a int primary key)");
    simple(&mut session, "insert into gone select generate_series(1, 200)");
    let some = "with d as (delete from gone returning a) select a from d where 10 / (a - 150) < 5 limit 3";
    assert_eq!(simple(&mut session, some), "1|\n2|\n3|\nSELECT 3");
    assert_eq!(simple(&mut session, "select count(*) from gone"), "0|\nSELECT 1");
    let all = "with i as (insert into gone select generate_series(1, 200) returning a) \
               select count(*), sum(a), min(a), max(a) from i where a % 3 <> 0";
    assert_eq!(simple(&mut session, all), "134|13467|1|200|\nSELECT 1");
    let crossed = "with d as (delete from gone returning a) select count(*) from d, d e where d.a = e.a + 1";
    assert_eq!(simple(&mut session, crossed), "199|\nSELECT 1");
    let recursive = "with recursive r as (select n from generate_series(1, 150) n union all select n + 150 from r where n % 3 = 0 and n < 600) \
                     select count(*), sum(n) from r";
    assert_eq!(simple(&mut session, recursive), "349|100875|\nSELECT 1");
}

/// TRN-2 and TRN-3: a short change of a row that another session is changing so waits for its turn before its transaction begins, and is made on
/// the fast path then. It is one execution. A session that leaves the fast path gives its turn back.
#[test]
fn short_changes_of_one_row_take_turns() {
    let db = open();
    let backends = Arc::new(Backends::default());
    let mut sessions: Vec<Session> = (0..2).map(|_| session(&db, &backends, "postgres", &[])).collect();
    simple(&mut sessions[0], "CREATE TABLE hot (id int PRIMARY KEY, v int)");
    simple(&mut sessions[0], "INSERT INTO hot VALUES (1, 0), (2, 0)");
    for session in &mut sessions {
        session.takes_turns();
        block_on(session.parse("", "UPDATE hot SET v = v + 1 WHERE id = $1", &[])).expect("it is prepared");
    }
    let change = |session: &mut Session, id: &str| {
        let bind = Bind { formats: &[], values: &[Some(id.as_bytes())], result_formats: &[] };
        session.try_bind("", "", &bind) && session.try_execute("", &mut Told::default())
    };
    let [a, b] = sessions.as_mut_slice() else { unreachable!("two sessions") };
    assert!(change(a, "1"));
    assert!(!change(b, "1") && b.wants_turn());
    {
        let mut waits = std::pin::pin!(b.wait_for_turn());
        let mut poll = || waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending(), "TRN-1");
        assert!(a.try_sync());
        assert!(poll().is_ready());
    }
    assert!(b.try_execute("", &mut Told::default()), "on the fast path");
    assert!(b.try_sync());
    assert!(change(a, "2"));
    a.give_turn_back();
    assert!(!change(b, "2") && !b.wants_turn(), "the row itself is taken");
    assert!(a.try_sync());
    block_on(b.execute("", 0, &mut Told::default())).expect("it is free");
    block_on(b.sync()).expect("it commits");
    assert_eq!(simple(a, "SELECT v FROM hot ORDER BY id"), "2|\n2|\nSELECT 2");
    let calls = "SELECT calls FROM clearway_statements WHERE query LIKE 'update hot%'";
    assert_eq!(simple(a, calls), "4|\nSELECT 1");
}
