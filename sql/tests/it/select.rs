//! Queries in a session over a database in memory, compared with PostgreSQL 15's own answers (`testdata/select*.out`).

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{MemVfs, Vfs};
use clearway_base::waits::SessionStats;
use clearway_engine::db::{Db, DbOptions};
use clearway_sql::SqlError;
use clearway_sql::session::client::{Client, Column};
use clearway_sql::session::{Backends, Session, SessionStart};
use std::path::Path;
use std::sync::Arc;

/// Keeps what a statement answers.
#[derive(Default)]
struct Answer {
    types: Vec<String>,
    rows: Vec<String>,
}

impl Client for Answer {
    fn row_description(&mut self, columns: &[Column<'_>]) {
        self.types = columns.iter().map(|c| c.ty.oid.to_string()).collect();
    }
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let field = |i| {
            let mut bytes = Vec::new();
            if write(i, &mut bytes) { String::from_utf8_lossy(&bytes).into_owned() } else { "NULL".to_owned() }
        };
        self.rows.push((0..fields).map(field).collect::<Vec<_>>().join(","));
    }
}

fn session() -> Session {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    block_on(async {
        let dir = Path::new("/db");
        vfs.create_dir(dir).await.expect("a directory");
        let spawn = |name, task| {
            spawn_thread(name, move || block_on(task)).expect("a thread");
        };
        let db = Db::open(DbOptions::new(vfs.clone(), dir), spawn).await.expect("a database");
        let backends = Arc::new(Backends::default());
        let listed = backends.list(SessionStats::new("client"), 1, Default::default());
        let start = SessionStart {
            backend: listed.backend().clone(),
            backends,
            database: "postgres".to_owned(),
            user: "postgres".to_owned(),
            options: Vec::new(),
        };
        Session::new(&db, start).await.expect("a session")
    })
}

async fn shown(session: &mut Session, sql: &str) -> String {
    let mut answer = Answer::default();
    if let Err(e) = session.simple(sql, &mut answer).await {
        return error(&e, sql);
    }
    if answer.types.is_empty() {
        return "ok".to_owned();
    }
    format!("{} | {}", answer.types.join(","), answer.rows.join(" ; "))
}

fn error(e: &SqlError, sql: &str) -> String {
    let position = e.position(sql).map_or("-".to_owned(), |p| p.to_string());
    let mut out = format!("ERROR {} {position} {}", e.code(), e.message());
    for (label, text) in [("DETAIL", &e.fields().detail), ("HINT", &e.fields().hint)] {
        if let Some(text) = text {
            out += &format!(" | {label}: {text}");
        }
    }
    out
}

/// What is refused with 0A000, or answered otherwise than by PostgreSQL, with the reason.
const KNOWN: &[(&str, &str)] = &[
    // The number of the type of a table's rows follows from the table's.
    ("SELECT t FROM t WHERE id = 1", "1073758208 | (1,10,one,1.50,\"2024-01-01 00:00:00\")"),
];

fn compare(sql: &str, expected: &str) {
    let mut session = session();
    let mut wrong = Vec::new();
    assert_eq!(sql.lines().count(), expected.lines().count(), "regenerate.py has not been run");
    block_on(async {
        for (sql, expected) in sql.lines().zip(expected.lines()).filter(|(sql, _)| !sql.is_empty()) {
            let shown = shown(&mut session, sql).await;
            let known = KNOWN.iter().find(|k| k.0 == sql).map_or(expected, |k| k.1);
            if shown != known {
                wrong.push(format!("{sql}\n  expected {known}\n       got {shown}"));
            }
        }
    });
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn queries_answer_as_postgresql() {
    compare(include_str!("../../testdata/select.sql"), include_str!("../../testdata/select.out"));
}

#[test]
fn access_paths_give_the_same_rows() {
    compare(include_str!("../../testdata/select_paths.sql"), include_str!("../../testdata/select_paths.out"));
}

#[test]
fn orders_of_keys_and_indexes_need_no_sort() {
    let mut session = session();
    block_on(async {
        for ddl in
            ["CREATE TABLE o (a int, b int, c int, d int, PRIMARY KEY (a, b))", "CREATE INDEX o_c ON o (c DESC, d)"]
        {
            assert_eq!(shown(&mut session, ddl).await, "ok");
        }
        for (query, sorts) in [
            ("SELECT * FROM o ORDER BY a, b", false),
            ("SELECT * FROM o ORDER BY a DESC, b DESC", false),
            ("SELECT * FROM o ORDER BY a, b DESC", true),
            ("SELECT * FROM o WHERE a = 1 ORDER BY b DESC", false),
            ("SELECT * FROM o WHERE a = 1 AND b = 2 ORDER BY d", false),
            ("SELECT * FROM o ORDER BY a, b, d", false),
            ("SELECT * FROM o ORDER BY b", true),
            ("SELECT * FROM o ORDER BY c DESC, d LIMIT 3", false),
            ("SELECT * FROM o ORDER BY c, d DESC LIMIT 3", false),
            ("SELECT * FROM o ORDER BY c LIMIT 3", false),
            ("SELECT * FROM o ORDER BY c NULLS FIRST LIMIT 3", true),
            ("SELECT * FROM o WHERE c = 1 ORDER BY d", false),
            ("SELECT * FROM o WHERE c = 1 ORDER BY d, a, b", false),
            ("SELECT * FROM o JOIN o p ON p.a = o.c ORDER BY o.a, o.b", false),
            ("SELECT * FROM o JOIN o p ON p.a = o.c ORDER BY o.a, o.b, p.b", true),
            ("SELECT * FROM o FULL JOIN o p ON p.a = o.c ORDER BY o.a, o.b", true),
        ] {
            let plan = shown(&mut session, &format!("EXPLAIN {query}")).await;
            assert_eq!(plan.contains("Sort"), sorts, "{query}: {plan}");
        }
    });
}
