//! Texts that differ in constants only run by one plan (TPL-1 to TPL-4): the third text with other constants than the first has the answer, or the
//! error, that it has in a session that has seen no other.

use std::sync::Arc;

use crate::memory::{self, as_served};
use clearway_engine::db::Db;
use clearway_sql::session::{Backends, Session};

/// The rows of a text, or its error with its place; as the server does, at once if that can be.
fn answer(session: &mut Session, sql: &str) -> Result<Vec<String>, (String, String, Option<u32>)> {
    as_served(session, sql).map_err(|e| (e.code().to_owned(), e.message().to_owned(), e.position(sql)))
}

fn fresh(db: &Arc<Db>, backends: &Arc<Backends>) -> Session {
    memory::session(db, backends, "postgres", &[])
}

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v varchar(5), c char(4), x text, n numeric(6, 2), d date, ts timestamptz, \
                     b bool, j jsonb, i8 bigint, f float8, u uuid, e interval)";

/// Lists of texts with the same key; `@` stands for a number that is new in each text.
const LISTS: &[&[&str]] = &[
    &[
        "'a', 'b', 'c'",
        "'it''s', 'q', ''",
        "'é', 'ä', 'long text'",
        "'i''s', '''', 'a''b'",
        "'abcdef', 'b', 'c'",
        "'a', 'bcdefg', 'c'",
        "'', '', '\\n'",
    ],
    &["'x', 'y', '1.5'", "'x', 'y', '12345.678'", "'x', 'y', 'word'", "'x', 'y', '-2'"],
];

#[test]
fn each_text_has_its_own_answer() {
    let (db, backends) = (memory::open(), Arc::new(Backends::default()));
    let mut session = fresh(&db, &backends);
    answer(&mut session, TABLE).expect("a table");
    let mut id = 0;
    for (columns, list) in ["id, v, c, x", "id, v, c, n"].iter().zip(LISTS) {
        let texts: Vec<String> =
            list.iter().map(|values| format!("INSERT INTO t ({columns}) VALUES (@, {values})")).collect();
        both(&mut session, (&db, &backends), &texts, &mut id);
    }
    let one = |column: &str, values: &[&str]| -> Vec<String> {
        values.iter().map(|value| format!("INSERT INTO t (id, {column}) VALUES (@, '{value}')")).collect()
    };
    let columns = [
        ("d", &["2000-01-01", "2000-02-29", "1999-13-01", "infinity", "2001-02-30"][..]),
        ("ts", &["2000-01-01 10:00", "2000-01-01 10:00+05", "nonsense", "-infinity"][..]),
        ("b", &["t", "no", "perhaps", "on"][..]),
        ("j", &["{\"a\": 1}", "[1, 2]", "{", "null"][..]),
        ("i8", &["1", "99999999999", "999999999999999999999", "1.5"][..]),
        ("f", &["1.5", "1e300", "NaN", "1e400"][..]),
        ("u", &["00000000-0000-0000-0000-000000000001", "zz", "00000000-0000-0000-0000-000000000002"][..]),
        ("e", &["1 day", "2 hours", "x"][..]),
    ];
    for (column, values) in columns {
        both(&mut session, (&db, &backends), &one(column, values), &mut id);
    }
    let changes = ["UPDATE t SET x = 'a', n = 1 WHERE id = 1", "UPDATE t SET x = 'b''s', n = 2 WHERE id = 2"];
    let reads = ["SELECT v FROM t WHERE id = 1 AND x = 'a'", "SELECT v FROM t WHERE id = 2 AND x = 'b''s'"];
    for texts in [
        &changes[..],
        &reads[..],
        &["SELECT x FROM t WHERE id = 2 AND v LIKE 'i%'", "SELECT x FROM t WHERE id = 2 AND v LIKE 'x%'"][..],
    ] {
        let texts: Vec<String> = texts.iter().cycle().take(5).map(|text| (*text).to_owned()).collect();
        both(&mut session, (&db, &backends), &texts, &mut id);
    }
    let rest = answer(&mut session, "SELECT count(*), count(x), count(n), count(d), count(ts) FROM t").expect("a row");
    assert_eq!(rest, ["28|5|4|3|3"], "the rows that were taken");
}

/// Carries out texts one after the other in the session, and each in a new session; in the second table rows have numbers of their own.
fn both(session: &mut Session, (db, backends): (&Arc<Db>, &Arc<Backends>), texts: &[String], id: &mut i32) {
    for text in texts {
        *id += 1;
        let by_template = answer(session, &text.replace('@', &id.to_string()));
        let written = answer(session, &format!("SELECT * FROM t WHERE id = {id} OR id <= 2 ORDER BY id"));
        let mut alone = fresh(db, backends);
        if by_template.is_ok() && text.starts_with("INSERT") {
            answer(&mut alone, &format!("DELETE FROM t WHERE id = {id}")).expect("the row goes");
        }
        assert_eq!(by_template, answer(&mut alone, &text.replace('@', &id.to_string())), "TPL: {text}");
        let again = answer(&mut alone, &format!("SELECT * FROM t WHERE id = {id} OR id <= 2 ORDER BY id"));
        assert_eq!(written, again, "TPL: {text}");
    }
}

#[test]
fn a_word_that_means_a_moment_means_that_of_its_own_text() {
    let (db, backends) = (memory::open(), Arc::new(Backends::default()));
    let mut session = fresh(&db, &backends);
    answer(&mut session, "CREATE TABLE t (id int PRIMARY KEY, ts timestamptz, begun timestamptz DEFAULT now())")
        .expect("a table");
    for id in 0..4 {
        answer(&mut session, &format!("INSERT INTO t (id, ts) VALUES ({id}, '2000-01-01')")).expect("a row");
    }
    for id in 4..8 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        answer(&mut session, &format!("INSERT INTO t (id, ts) VALUES ({id}, 'now')")).expect("a row");
    }
    let count = answer(&mut session, "SELECT count(DISTINCT ts) FROM t WHERE ts = begun");
    assert_eq!(count.expect("a row"), ["4"], "TPL-4");
}

#[test]
fn keys_of_text_are_looked_up() {
    let (db, backends) = (memory::open(), Arc::new(Backends::default()));
    let mut session = fresh(&db, &backends);
    answer(&mut session, "CREATE TABLE k (name text PRIMARY KEY, n int)").expect("a table");
    for (n, name) in ["a", "b", "it''s", "é", ""].iter().enumerate() {
        answer(&mut session, &format!("INSERT INTO k VALUES ('{name}', {n})")).expect("a row");
    }
    for (n, name) in ["a", "b", "it''s", "é", ""].iter().enumerate() {
        let found = answer(&mut session, &format!("SELECT n FROM k WHERE name = '{name}'"));
        assert_eq!(found.expect("a row"), [n.to_string()], "{name}");
    }
    assert_eq!(answer(&mut session, "SELECT n FROM k WHERE name = 'none'").expect("rows"), [""; 0]);
}
