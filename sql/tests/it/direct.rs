//! Changes of one row that are called with values (`change_known`) and those of the ordinary way leave the same rows, answers, errors and books; and a
//! call that gives up has done nothing.

use crate::memory::{Told, open_without_upkeep as open, session, simple};
use clearway_base::for_each_seed;
use clearway_base::sync::block_on;
use clearway_base::testkit::Rng;
use clearway_engine::db::Db;
use clearway_sql::session::{Backends, Bind, Called, Known, Reason, Session};
use clearway_values::types::Datum;
use std::sync::Arc;

/// What a statement of the ordinary way answers.
fn ordinary(session: &mut Session, name: &str, values: &[Datum]) -> String {
    let bytes: Vec<Option<Vec<u8>>> = values
        .iter()
        .map(|value| match value {
            Datum::Int4(v) => Some(v.to_be_bytes().to_vec()),
            Datum::Text(text) => Some(text.as_bytes().to_vec()),
            _ => None,
        })
        .collect();
    let bytes: Vec<Option<&[u8]>> = bytes.iter().map(Option::as_deref).collect();
    let bind = Bind { formats: &[1], values: &bytes, result_formats: &[] };
    let mut lines = Told::default();
    let work = async {
        session.bind("", name, bind).await?;
        if !session.try_execute("", &mut lines) {
            session.execute("", 0, &mut lines).await?;
        }
        session.sync().await
    };
    match block_on(work) {
        Ok(()) => lines.0,
        Err(e) => {
            block_on(session.sync()).expect("the batch ends");
            e.code().to_owned()
        }
    }
}

/// The same by a call with values, and by the ordinary way where that gives up (DCT-1); whether the call did it.
fn called(session: &mut Session, known: Option<&Known>, name: &str, values: &[Datum]) -> (String, bool) {
    let mut lines = Told::default();
    let done = known.is_some_and(|known| session.change_known(known, values, &mut lines) == Called::Done);
    if !done {
        assert_eq!(lines.0, "", "DCT-1");
        session.give_turn_back();
        return (ordinary(session, name, values), false);
    }
    if !session.try_sync() {
        block_on(session.sync()).expect("the batch ends");
    }
    (lines.0, true)
}

/// Statements by their names.
const STATEMENTS: &[(&str, &str)] = &[
    ("insert", "INSERT INTO t VALUES ($1, $2, $3)"),
    ("defaults", "INSERT INTO t (a) VALUES ($1)"),
    ("upsert", "INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT (a) DO UPDATE SET b = excluded.b"),
    ("nothing", "INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"),
    ("set", "UPDATE t SET b = $2, c = $3 WHERE a = $1"),
    ("add", "UPDATE t SET b = b + $2 WHERE a = $1"),
    ("divide", "UPDATE t SET b = 100 / b WHERE a = $1"),
    ("move", "UPDATE t SET a = a + $2 WHERE a = $1"),
    ("delete", "DELETE FROM t WHERE a = $1"),
    ("number", "INSERT INTO numbered VALUES ($1)"),
    ("checked", "INSERT INTO checked VALUES ($1)"),
    ("child", "INSERT INTO child VALUES ($1, $2)"),
];

const TABLES: &str = "
    CREATE TABLE t (a int PRIMARY KEY, b int DEFAULT 7, c text NOT NULL DEFAULT 'none');
    CREATE TABLE numbered (n int);
    CREATE TABLE checked (n int PRIMARY KEY CHECK (n > 2));
    CREATE TABLE child (n int PRIMARY KEY, a int REFERENCES t (a))";

/// Statements of the simple protocol between them.
const OTHERS: &[&str] = &[
    "BEGIN",
    "BEGIN READ ONLY",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "COMMIT",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "SELECT count(*) FROM t",
    "ALTER TABLE t ADD COLUMN d int",
    "ALTER TABLE t DROP COLUMN IF EXISTS d",
    "CREATE INDEX IF NOT EXISTS i ON t (b)",
    "DROP INDEX IF EXISTS i",
    "ALTER TABLE t ADD CONSTRAINT small CHECK (b < 1000)",
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS small",
    "SET default_transaction_read_only = on",
    "SET default_transaction_read_only = off",
];

/// A database with a session of it that has the statements.
struct Side {
    _db: Arc<Db>,
    session: Session,
    known: Vec<Option<Known>>,
}

impl Side {
    fn new() -> Side {
        let db = open();
        let mut session = session(&db, &Arc::new(Backends::default()), "postgres", &[]);
        assert_eq!(simple(&mut session, TABLES), "CREATE TABLE".repeat(4));
        let mut side = Side { _db: db, session, known: Vec::new() };
        side.prepare();
        side
    }

    fn prepare(&mut self) {
        self.known.clear();
        for (name, sql) in STATEMENTS {
            self.session.close_statement(name);
            let _ = block_on(self.session.parse(name, sql, &[]));
            let _ = block_on(self.session.sync());
            self.known.push(self.session.known(name));
        }
    }

    fn rows(&mut self) -> String {
        simple(&mut self.session, "SELECT * FROM t ORDER BY a") + &simple(&mut self.session, "SELECT * FROM numbered")
    }

    /// What the books say of the statements and the table, but of rows that were looked at: an attempt in vain looks at one more (DCT-1).
    fn books(&mut self) -> String {
        let sql = "SELECT query, calls, rows, errors FROM clearway_statements
                   WHERE query LIKE 'insert into t %' OR query LIKE 'update t %' OR query LIKE 'delete from t %' ORDER BY query";
        let table = "SELECT n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE relname = 't'";
        simple(&mut self.session, sql) + &simple(&mut self.session, table)
    }
}

#[test]
fn calls_with_values_do_what_the_ordinary_way_does() {
    let mut done = 0;
    for_each_seed!(30, |seed| {
        let mut rng = Rng::new(seed);
        let (mut one, mut other) = (Side::new(), Side::new());
        for step in 0..120 {
            if rng.below(5) == 0 {
                let sql = OTHERS[rng.below(OTHERS.len() as u64) as usize];
                assert_eq!(simple(&mut one.session, sql), simple(&mut other.session, sql), "step {step}: {sql}");
                continue;
            }
            if rng.below(40) == 0 {
                one.prepare();
                other.prepare();
            }
            let at = rng.below(STATEMENTS.len() as u64) as usize;
            let (name, sql) = STATEMENTS[at];
            let number = |n: u64| if n == 0 { Datum::Null } else { Datum::Int4(n as i32) };
            let large = if rng.below(9) == 0 { i32::MAX } else { rng.below(5) as i32 };
            let text = if rng.below(9) == 0 { Datum::Null } else { Datum::text("text") };
            let mut values = vec![number(rng.below(12)), Datum::Int4(large), text];
            values.truncate((1..=3).filter(|n| sql.contains(&format!("${n}"))).max().unwrap_or(0));
            let expected = ordinary(&mut other.session, name, &values);
            let (found, by_call) = called(&mut one.session, one.known[at].as_ref(), name, &values);
            assert_eq!(found, expected, "step {step}: {sql} with {values:?}, by the call: {by_call}");
            done += u32::from(by_call);
            assert_eq!(one.session.transaction_status(), other.session.transaction_status(), "step {step}: {sql}");
            if step % 10 == 0 {
                assert_eq!(one.rows(), other.rows(), "after step {step}: {sql}");
            }
        }
        for side in [&mut one, &mut other] {
            simple(&mut side.session, "COMMIT");
        }
        assert_eq!(one.rows(), other.rows());
        assert_eq!(one.books(), other.books());
    });
    assert!(done > 300, "only {done} changes went the way that is tested");
}

/// Two sessions of a database; the first one has a statement that counts a row up.
fn opened() -> (Arc<Backends>, Session, Session, Known) {
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let (mut one, mut other) = (session(&db, &backends, "postgres", &[]), session(&db, &backends, "postgres", &[]));
    simple(&mut other, "CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 10), (2, 20)");
    block_on(one.parse("add", "UPDATE t SET b = b + 1 WHERE a = $1", &[])).expect("it is prepared");
    let known = one.known("add").expect("it is there");
    (backends, one, other, known)
}

fn add(session: &mut Session, known: &Known) -> Called {
    let called = session.change_known(known, &[Datum::Int4(1)], &mut Told::default());
    assert!(called != Called::Done || session.try_sync());
    called
}

#[test]
fn what_stands_in_the_way_sends_a_change_the_ordinary_way() {
    let (backends, mut one, mut other, known) = opened();
    assert_eq!(add(&mut one, &known), Called::Done);
    // Another transaction has the row.
    simple(&mut other, "BEGIN; UPDATE t SET b = 0 WHERE a = 1");
    assert_eq!(add(&mut one, &known), Called::GivenUp);
    simple(&mut other, "ROLLBACK");
    assert_eq!(add(&mut one, &known), Called::Done);
    // The table is locked.
    simple(&mut other, "BEGIN; LOCK TABLE t IN SHARE MODE");
    assert_eq!(add(&mut one, &known), Called::GivenUp);
    simple(&mut other, "ROLLBACK");
    let pid: i32 = memory_pid(&mut one);
    let backend = backends.get(pid).expect("it is listed");
    backend.interrupt.raise(Reason::Cancel);
    assert_eq!(add(&mut one, &known), Called::GivenUp, "cancelled");
    backend.interrupt.forget();
    assert_eq!(one.change_known(&known, &[], &mut Told::default()), Called::Other, "Bind tells the error");
    simple(&mut one, "BEGIN READ ONLY");
    assert_eq!(add(&mut one, &known), Called::GivenUp);
    simple(&mut one, "COMMIT; BEGIN; SELECT 1 / 0");
    assert_eq!(add(&mut one, &known), Called::GivenUp, "a failed block");
    simple(&mut one, "ROLLBACK");
    assert_eq!(simple(&mut other, "SELECT b FROM t WHERE a = 1"), "12|\nSELECT 1", "two of them have run");
}

fn memory_pid(session: &mut Session) -> i32 {
    let pid = simple(session, "SELECT pg_backend_pid()");
    pid.split('|').next().expect("a column").parse().expect("a number")
}

#[test]
fn rights_and_policies_are_asked_each_time() {
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let mut owner = session(&db, &backends, "postgres", &[]);
    simple(&mut owner, "CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 10)");
    simple(&mut owner, "CREATE ROLE poor LOGIN; GRANT SELECT, UPDATE ON t TO poor");
    let mut poor = session(&db, &backends, "poor", &[]);
    block_on(poor.parse("add", "UPDATE t SET b = b + 1 WHERE a = $1", &[])).expect("it is prepared");
    let known = poor.known("add").expect("it is there");
    assert_eq!(add(&mut poor, &known), Called::Done);
    simple(&mut owner, "REVOKE UPDATE ON t FROM poor");
    assert_ne!(add(&mut poor, &known), Called::Done);
    assert_eq!(ordinary(&mut poor, "add", &[Datum::Int4(1)]), "42501");
    simple(
        &mut owner,
        "GRANT UPDATE ON t TO poor; CREATE POLICY p ON t USING (a > 1); ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    );
    assert_ne!(add(&mut poor, &known), Called::Done);
    assert_eq!(ordinary(&mut poor, "add", &[Datum::Int4(1)]), "UPDATE 0");
    assert_ne!(add(&mut poor, &known), Called::Done, "a policy filters");
    assert_eq!(simple(&mut owner, "SELECT b FROM t"), "11|\nSELECT 1");
}

#[test]
fn a_handle_of_a_forgotten_statement_is_refused() {
    // DCT-3
    let (_backends, mut one, _other, known) = opened();
    block_on(one.parse("else", "UPDATE t SET b = 0 WHERE a = $1", &[])).expect("it is prepared");
    simple(&mut one, "DEALLOCATE \"else\"");
    assert_eq!(add(&mut one, &known), Called::Done, "another one was forgotten");
    simple(&mut one, "DEALLOCATE add");
    assert_eq!(add(&mut one, &known), Called::Other);
    block_on(one.parse("add", "UPDATE t SET b = 99 WHERE a = $1", &[])).expect("it is prepared");
    assert_eq!(add(&mut one, &known), Called::Other, "another statement has its name");
    let known = one.known("add").expect("it is there");
    assert_eq!(add(&mut one, &known), Called::Done);
    simple(&mut one, "DISCARD ALL");
    assert_eq!(add(&mut one, &known), Called::Other);
    assert_eq!(simple(&mut one, "SELECT b FROM t WHERE a = 1"), "99|\nSELECT 1");
}
