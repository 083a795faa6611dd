//! Point reads and short ranges that are transactions of their own (`try_read`): they give up where something is in the way, and leave in the
//! books what the ordinary way leaves. That they give the same answers is shown in `points`.

use crate::memory::{open, session};
use clearway_base::sync::block_on;
use clearway_engine::db::Db;
use clearway_sql::context::recorded::Recorders;
use clearway_sql::session::client::Client;
use clearway_sql::session::{Backends, Bind, Column, Reason, Session};
use std::sync::Arc;

const READ: &str = "SELECT b FROM t WHERE a = $1";

/// The values that a session answers.
#[derive(Default)]
struct Values(Vec<String>);

impl Client for Values {
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        for i in 0..fields {
            let mut bytes = Vec::new();
            let some = write(i, &mut bytes);
            self.0.push(if some { String::from_utf8(bytes).expect("text") } else { "~".to_owned() });
        }
    }
}

fn simple(session: &mut Session, sql: &str) -> Vec<String> {
    let mut values = Values::default();
    block_on(session.simple(sql, &mut values)).unwrap_or_else(|e| panic!("{sql}: {e}"));
    values.0
}

/// A read alone of row 1 by the statement `get`; none: it gives up.
fn alone(session: &mut Session) -> Option<Vec<String>> {
    let bind = Bind { formats: &[], values: &[Some(b"1")], result_formats: &[] };
    let mut values = Values::default();
    let done = session.try_read("get", &bind, &mut values);
    assert!(done || values.0.is_empty(), "LONE-1");
    if done {
        assert!(session.may_send(), "all of it is durable");
    }
    done.then_some(values.0)
}

/// The same by the messages of the ordinary way; the code of its error.
fn ordinary(session: &mut Session) -> Result<Vec<String>, String> {
    let bind = Bind { formats: &[], values: &[Some(b"1")], result_formats: &[] };
    let mut values = Values::default();
    let work = async {
        session.bind("", "get", bind).await?;
        session.execute("", 0, &mut values).await
    };
    let done = block_on(work);
    block_on(session.sync()).expect("the batch ends");
    done.map(|()| values.0).map_err(|e| e.code().to_owned())
}

/// Two sessions, and a table of one row, which the first one has prepared to read.
fn opened() -> (Arc<Db>, Arc<Backends>, Session, Session) {
    let (db, backends) = (open(), Arc::new(Backends::default()));
    let (mut one, mut other) = (session(&db, &backends, "postgres", &[]), session(&db, &backends, "postgres", &[]));
    simple(&mut other, "CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 10), (2, 20)");
    block_on(one.parse("get", READ, &[])).expect("it is prepared");
    assert_eq!(alone(&mut one), Some(vec!["10".to_owned()]));
    (db, backends, one, other)
}

fn ten() -> Option<Vec<String>> {
    Some(vec!["10".to_owned()])
}

#[test]
fn ddl_of_another_session_makes_the_plan_old() {
    let (_db, _, mut one, mut other) = opened();
    simple(&mut other, "ALTER TABLE t ADD COLUMN c int");
    assert_eq!(alone(&mut one), None);
    assert_eq!(ordinary(&mut one), Ok(vec!["10".to_owned()]));
    assert_eq!(alone(&mut one), ten(), "planned anew");
    simple(&mut other, "BEGIN; TRUNCATE t");
    assert_eq!(alone(&mut one), None, "the table is locked");
    simple(&mut other, "ROLLBACK");
    assert_eq!(alone(&mut one), ten());
    simple(&mut other, "DROP TABLE t");
    assert_eq!(alone(&mut one), None);
    assert_eq!(ordinary(&mut one), Err("42P01".to_owned()));
    assert_eq!(alone(&mut one), None);
}

#[test]
fn a_right_that_was_taken_away_does_not_count() {
    let (db, backends, _one, mut other) = opened();
    simple(&mut other, "CREATE ROLE poor LOGIN; GRANT SELECT ON t TO poor");
    let mut poor = session(&db, &backends, "poor", &[]);
    block_on(poor.parse("get", READ, &[])).expect("it is prepared");
    assert_eq!(alone(&mut poor), ten());
    simple(&mut other, "REVOKE SELECT ON t FROM poor");
    assert_eq!(alone(&mut poor), None);
    assert_eq!(ordinary(&mut poor), Err("42501".to_owned()));
    simple(
        &mut other,
        "GRANT SELECT ON t TO poor; CREATE POLICY p ON t USING (a > 1); ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    );
    assert_eq!(alone(&mut poor), None);
    assert_eq!(ordinary(&mut poor), Ok(Vec::new()));
    assert_eq!(alone(&mut poor), None, "a policy filters");
    // A role that the session takes on has rights of its own.
    simple(&mut other, "ALTER TABLE t DISABLE ROW LEVEL SECURITY; CREATE ROLE other");
    assert_eq!((ordinary(&mut poor).is_ok(), alone(&mut poor)), (true, ten()));
    simple(&mut other, "GRANT other TO poor");
    assert!(ordinary(&mut poor).is_ok());
    simple(&mut poor, "SET ROLE other");
    assert_eq!(alone(&mut poor), None);
    assert_eq!(ordinary(&mut poor), Err("42501".to_owned()));
}

#[test]
fn it_sees_what_was_committed() {
    let (_db, _, mut one, mut other) = opened();
    simple(&mut other, "BEGIN; UPDATE t SET b = 11 WHERE a = 1");
    assert_eq!(alone(&mut one), ten());
    simple(&mut other, "ROLLBACK");
    assert_eq!(alone(&mut one), ten());
    simple(&mut other, "UPDATE t SET b = 11 WHERE a = 1");
    assert_eq!(alone(&mut one), Some(vec!["11".to_owned()]));
    simple(&mut other, "DELETE FROM t WHERE a = 1");
    assert_eq!(alone(&mut one), Some(Vec::new()));
    simple(&mut one, "SET default_transaction_isolation = 'repeatable read'");
    simple(&mut other, "INSERT INTO t VALUES (1, 12)");
    assert_eq!(alone(&mut one), Some(vec!["12".to_owned()]), "one statement has one snapshot under any isolation");
}

#[test]
fn the_end_of_a_statement_is_told_once() {
    let (_db, backends, mut one, _other) = opened();
    one.take_ended_ns();
    let before_ns = clearway_base::waits::now_ns();
    for read in [|s: &mut Session| _ = ordinary(s), |s: &mut Session| assert_eq!(alone(s), ten(), "alone")] {
        read(&mut one);
        let ended_ns = one.take_ended_ns();
        assert!((before_ns..=clearway_base::waits::now_ns()).contains(&ended_ns), "{ended_ns}");
        assert_eq!(one.take_ended_ns(), 0);
    }
    backends.recorded.run(Recorders { statements: false, ..Recorders::default() });
    assert_eq!(alone(&mut one), ten());
    assert!(one.take_ended_ns() >= before_ns, "also where nothing is recorded of it");
}

#[test]
fn nothing_reads_alone_within_a_transaction() {
    // LONE-2
    let (_db, _, mut one, mut other) = opened();
    simple(&mut one, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(alone(&mut one), None);
    assert_eq!(ordinary(&mut one), Ok(vec!["10".to_owned()]));
    simple(&mut other, "UPDATE t SET b = 11 WHERE a = 1");
    assert_eq!(alone(&mut one), None);
    assert_eq!(ordinary(&mut one), Ok(vec!["10".to_owned()]), "the snapshot of the transaction");
    simple(&mut one, "COMMIT");
    assert_eq!(alone(&mut one), Some(vec!["11".to_owned()]));
    let bind = Bind { formats: &[], values: &[Some(b"1")], result_formats: &[] };
    let mut values = Values::default();
    assert!(one.try_bind("", "get", &bind) && one.try_execute("", &mut values), "the batch goes on");
    assert_eq!(alone(&mut one), None, "it is not the first of its batch");
    assert!(one.try_sync());
    simple(&mut one, "BEGIN");
    block_on(one.simple("SELECT 1 / 0", &mut values)).expect_err("a failed block");
    assert_eq!(alone(&mut one), None);
    simple(&mut one, "ROLLBACK");
    assert!(alone(&mut one).is_some());
}

#[test]
fn what_stops_the_session_or_its_settings_send_it_the_ordinary_way() {
    let (_db, backends, mut one, mut other) = opened();
    let pid: i32 = simple(&mut one, "SELECT pg_backend_pid()")[0].parse().expect("a number");
    let backend = backends.get(pid).expect("it is listed");
    backend.interrupt.raise(Reason::Cancel);
    assert_eq!(alone(&mut one), None, "cancelled");
    backend.interrupt.forget();
    assert_eq!(alone(&mut one), ten());
    simple(
        &mut other,
        "CREATE SCHEMA first; CREATE TABLE first.t (a int PRIMARY KEY, b int); INSERT INTO first.t VALUES (1, 77)",
    );
    assert_eq!(ordinary(&mut one), Ok(vec!["10".to_owned()]));
    assert_eq!(alone(&mut one), ten());
    simple(&mut one, "SET search_path = first, public");
    assert_eq!(alone(&mut one), None, "another table has the name");
    assert_eq!(ordinary(&mut one), Ok(vec!["77".to_owned()]));
    assert_eq!(alone(&mut one), Some(vec!["77".to_owned()]));
    simple(&mut one, "SET search_path = public; SET search_path = first, public");
    assert_eq!(alone(&mut one), Some(vec!["77".to_owned()]), "the same path again");
    let too_many = Bind { formats: &[], values: &[Some(b"1"), None], result_formats: &[] };
    assert!(!one.try_read("get", &too_many, &mut Values::default()), "Bind tells the error");
    let not_a_number = Bind { formats: &[], values: &[Some(b"x")], result_formats: &[] };
    assert!(!one.try_read("get", &not_a_number, &mut Values::default()));
    assert!(!one.try_read("set", &not_a_number, &mut Values::default()), "there is no such statement");
    // A cursor leaves work for the ends of transactions.
    simple(&mut one, "BEGIN; DECLARE c CURSOR FOR SELECT 1; COMMIT");
    assert_eq!(alone(&mut one), None);
}

/// All that a client is told, in turn.
#[derive(Default)]
struct Told(Vec<String>);

impl Client for Told {
    fn row_description(&mut self, columns: &[Column<'_>]) {
        self.0.extend(columns.iter().map(|c| format!("{} of {} binary {}", c.name, c.table, c.binary)));
    }
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let mut row = Vec::new();
        (0..fields).for_each(|i| assert!(write(i, &mut row)));
        self.0.push(format!("{row:?}"));
    }
    fn command_complete(&mut self, tag: &str) {
        self.0.push(tag.to_owned());
    }
}

/// Bind, Describe, Execute and Sync in one call tell the client what they tell it one after the other.
#[test]
fn a_batch_that_reads_is_told_as_its_messages_are() {
    let (_db, _backends, mut one, _) = opened();
    for (key, formats) in [("1", &[][..]), ("2", &[1]), ("9", &[0])] {
        let bind = Bind { formats: &[], values: &[Some(key.as_bytes())], result_formats: formats };
        for describes in [true, false] {
            let (mut whole, mut apart) = (Told::default(), Told::default());
            assert!(one.try_read_batch("get", &bind, describes, &mut whole) && one.try_sync() && one.may_send());
            assert!(one.try_bind("", "get", &bind));
            assert!(!describes || one.try_describe_portal("", &mut apart));
            assert!(one.try_execute_last(&mut apart) && one.try_sync() && one.may_send());
            assert_eq!(whole.0, apart.0);
            assert_eq!(whole.0.len(), usize::from(describes) + usize::from(key != "9") + 1);
        }
    }
    let mut told = Told::default();
    let bind = Bind { formats: &[], values: &[Some(b"1")], result_formats: &[] };
    block_on(one.parse("set", "UPDATE t SET b = 1 WHERE a = $1", &[])).expect("it is prepared");
    assert!(!one.try_read_batch("get", &bind, true, &mut told), "another was bound last, for all that is known");
    assert!(one.try_bind("", "set", &bind) && !one.try_read_batch("set", &bind, true, &mut told), "it changes rows");
    assert!(one.try_sync() && one.try_bind("", "get", &bind) && one.try_sync());
    simple(&mut one, "BEGIN");
    assert!(!one.try_read_batch("get", &bind, true, &mut told), "LONE-2: in a block");
    simple(&mut one, "ROLLBACK");
    assert!(told.0.is_empty(), "LONE-1");
    assert!(one.try_read_batch("get", &bind, true, &mut told));
    assert_eq!(told.0[1..], ["[49, 48]", "SELECT 1"]);
}

/// A client that is told by bytes, which are written again for the next execution.
#[derive(Default)]
struct Wire(Vec<u8>);

impl Client for Wire {
    fn output(&mut self) -> Option<&mut Vec<u8>> {
        Some(&mut self.0)
    }
    fn row_description(&mut self, columns: &[Column<'_>]) {
        columns.iter().for_each(|c| self.0.extend(format!("({} {})", c.name, c.binary).bytes()));
    }
    fn row(&mut self, _: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        assert!(write(0, &mut self.0));
    }
}

#[test]
fn columns_are_told_again_as_they_were_told_first_in_the_forms_that_are_asked_for() {
    let (_db, _backends, mut one, _) = opened();
    let mut told = |formats: &[i16]| {
        let mut wire = Wire(b"before".to_vec());
        let bind = Bind { formats: &[], values: &[Some(b"1")], result_formats: formats };
        assert!(one.try_read_batch("get", &bind, true, &mut wire) && one.try_sync() && one.may_send());
        wire.0
    };
    for _ in 0..2 {
        assert_eq!(told(&[]), b"before(b false)10");
        assert_eq!(told(&[1]), b"before(b true)\0\0\0\x0a");
    }
}

/// What the books say after so many reads.
fn books(session: &mut Session) -> Vec<u64> {
    let sql = "SELECT (SELECT calls FROM clearway_statements WHERE query LIKE 'select b from t %'),
                      (SELECT rows FROM clearway_statements WHERE query LIKE 'select b from t %'),
                      (SELECT rows_examined FROM clearway_statements WHERE query LIKE 'select b from t %'),
                      (SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 't'),
                      (SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 't')";
    simple(session, sql).iter().map(|n| n.parse().expect("a number")).collect()
}

#[test]
fn the_books_say_the_same_of_both_ways() {
    // LONE-3
    let (_db, _, mut one, mut other) = opened();
    let commits = |session: &mut Session| {
        let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
        simple(session, sql)[0].parse::<u64>().expect("a number")
    };
    let mut figures = Vec::new();
    for read in [|s: &mut Session| _ = ordinary(s), |s: &mut Session| assert_eq!(alone(s), ten(), "alone")] {
        let before = (books(&mut other), commits(&mut other));
        (0..10).for_each(|_| read(&mut one));
        let after = (books(&mut other), commits(&mut other));
        let counts: Vec<u64> = after.0.iter().zip(&before.0).map(|(after, before)| after - before).collect();
        figures.push((counts, after.1 - before.1));
    }
    assert_eq!(figures[0], figures[1]);
    assert_eq!(figures[1].0, [10, 10, 10, 10, 10]);
    let pid = simple(&mut one, "SELECT pg_backend_pid()").remove(0);
    assert_eq!(alone(&mut one), ten());
    let shown = simple(&mut other, &format!("SELECT query FROM pg_stat_activity WHERE pid = {pid}"));
    assert_eq!(shown, [READ]);
    let locks =
        simple(&mut other, &format!("SELECT count(*) FROM pg_locks WHERE pid = {pid} AND relation IS NOT NULL"));
    assert_eq!(locks, ["0"], "nothing stays locked");
}
