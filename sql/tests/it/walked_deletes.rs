//! A DELETE whose rows go to the engine as they are stored (DLW-1) deletes what one with RETURNING does, which makes lists of values.

use crate::memory::{Lines, open, session};
use clearway_base::sync::block_on;
use clearway_engine::catalog::Object;
use clearway_engine::db::Db;
use clearway_engine::table::verify::verify;
use clearway_sql::session::{Backends, Session};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

fn user(db: &Arc<Db>) -> Session {
    session(db, &Arc::new(Backends::default()), "postgres", &[])
}

/// The rows of a statement, or its SQLSTATE.
fn rows(session: &mut Session, sql: &str) -> Vec<String> {
    let mut lines = Lines::default();
    match block_on(session.simple(sql, &mut lines)) {
        Ok(()) => lines.0,
        Err(e) => vec![e.code().to_owned()],
    }
}

fn assert_sound(db: &Arc<Db>) {
    let catalog = db.catalog();
    for object in catalog.objects() {
        let Object::Relation(relation) = &**object else { continue };
        if !["w", "t"].contains(&&*relation.name) {
            continue;
        }
        let found = block_on(verify(db.transactions(), &catalog, relation.oid)).expect("read");
        assert!(found.is_empty(), "TAB-1: {found:?}");
    }
}

/// Tables of several forms, with the columns `n` and `b`.
const TABLES: [&str; 5] = [
    "create table # (n int primary key, b text); create index on # (b); create index on # (b desc, n)",
    "create table # (b text, n numeric, c float8, primary key (b, n)); create index on # (c desc nulls last); create index on # (n)",
    "create table # (gone int, n int, b text, c bool); create index on # (c, b); create index on # (n); alter table # drop column gone;
        insert into # (n, b) select i, 'old' || i from generate_series(1001, 1300) i; alter table # add column d int default 5; create index on # (d, n)",
    "create table # (n int, b text)",
    "create table # (n bigint, b varchar, primary key (n)); create unique index on # (b); create index on # (n)",
];

#[test]
fn rows_are_deleted_as_stored_as_by_their_values() {
    for definition in TABLES {
        let db = open();
        let user = &mut user(&db);
        for table in ["w", "t"] {
            let fill = format!(
                "insert into {table} (n, b) select i, case when i % 7 = 0 and {} then null else md5((i / 2)::text) || i end from generate_series(1, 900) i",
                !definition.contains("primary key (b, n)")
            );
            for statement in definition.replace('#', table).split(';').chain([&*fill]) {
                assert_eq!(rows(user, statement), [""; 0], "{statement}");
            }
        }
        let conditions = [
            "n % 2 = 0",
            "n between 300 and 400",
            "b is null",
            "n < 0",
            "n = 501",
            "n / (n - 777) = 3",
            "true",
            "true",
        ];
        for condition in conditions {
            let walked = rows(user, &format!("delete from w where {condition}"));
            let returned = rows(
                user,
                &format!("with gone as (delete from t where {condition} returning 1) select count(*) from gone"),
            );
            // Only an error gives a line to the first.
            assert_eq!(walked.is_empty(), returned[0].len() < 5, "{condition}: {walked:?}, {returned:?}");
            let left = |user: &mut Session, table: &str| rows(user, &format!("select * from {table} order by n, b"));
            assert_eq!(left(user, "w"), left(user, "t"), "{definition}: {condition}");
            let used = "select n_tup_del from pg_stat_all_tables where relname = ";
            assert_eq!(rows(user, &format!("{used} 'w'")), rows(user, &format!("{used} 't'")), "{condition}");
        }
        assert_sound(&db);
    }
}

/// Polls a statement until it waits for the other transaction, has that end, and gives what becomes of the statement.
fn behind(db: &Arc<Db>, sql: &str, other: &mut Session, end: &str) -> Vec<String> {
    let user = &mut user(db);
    let mut lines = Lines::default();
    let done = {
        let mut running = pin!(user.simple(sql, &mut lines));
        let mut cx = Context::from_waker(Waker::noop());
        let mut polls = 0;
        while db.transactions().locks().locks().iter().all(|lock| lock.granted) {
            assert!(running.as_mut().poll(&mut cx).is_pending(), "it waits for the other transaction");
            polls += 1;
            assert!(polls < 10_000, "it waits for the other transaction");
        }
        rows(other, end);
        block_on(running)
    };
    done.map_or_else(|e| vec![e.code().to_owned()], |()| lines.0)
}

#[test]
fn a_row_that_another_transaction_changes_meanwhile_is_judged_again() {
    for (end, left) in [("commit", "500"), ("rollback", "499")] {
        let db = open();
        let (one, other) = (&mut user(&db), &mut user(&db));
        rows(one, "create table w (n int primary key, a int)");
        rows(one, "create index on w (a)");
        rows(one, "insert into w select i, i from generate_series(1, 1000) i");
        rows(other, "begin");
        rows(other, "update w set a = 7 where n = 600");
        // One of the rows that the statement finds no longer meets its condition, if the other transaction commits.
        behind(&db, "delete from w where a % 2 = 0 or n = 5", other, end);
        let kept = rows(one, "select count(*) from w");
        assert_eq!(kept, [left], "{end}");
        assert_sound(&db);
        rows(other, "begin isolation level repeatable read");
        rows(other, "select 1");
        rows(one, "update w set a = 9 where n = 301");
        assert_eq!(rows(other, "delete from w"), ["40001"]);
        rows(other, "rollback");
        assert_eq!(rows(one, "select count(*) from w"), kept);
    }
}
