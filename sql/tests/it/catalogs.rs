//! Rows of catalogs that two sessions change, and after a crash.

use std::sync::Arc;
use std::time::Duration;

use crate::sim::{Connection, connect, open, simulate, simulate_a_crash};
use clearway_base::sync::sleep;
use clearway_base::testkit;
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

const WHERE: &str = "WHERE objoid = 1 AND classoid = 2 AND objsubid = 3";

/// Two sessions, and a row of pg_description.
async fn two(seed: u64) -> (Connection, Connection) {
    let db = open(&SimDisk::new(seed)).await;
    let backends = Arc::new(Backends::default());
    let (mut first, second) = (connect(&db, &backends).await, connect(&db, &backends).await);
    first.value("INSERT INTO pg_description VALUES (1, 2, 3, 'old')").await;
    (first, second)
}

/// What a statement of the second session answers that waits for the first one, which then commits or rolls back.
async fn behind(
    (mut first, mut second): (Connection, Connection),
    change: String,
    end: &'static str,
    waiting: String,
) -> (Result<Vec<String>, String>, Connection) {
    first.value("BEGIN").await;
    first.run(&change).await.expect("changed");
    let other = testkit::spawn("second", async move {
        let ended = second.run(&waiting).await.map_err(|e| e.code().to_string());
        (ended, second)
    });
    sleep(Duration::from_millis(20)).await;
    first.value(end).await;
    let (ended, _) = other.await;
    (ended, first)
}

/// CHG-2, EXE-2: the second writer waits, and judges the row as it is then.
#[test]
fn a_second_writer_judges_the_newest_row() {
    simulate(1, || async {
        let append =
            format!("UPDATE pg_description SET description = description || '+' {WHERE} RETURNING description");
        let (ended, _) = behind(two(1).await, append.clone(), "COMMIT", append.clone()).await;
        assert_eq!(ended, Ok(vec!["old++".to_owned()]));
        let (ended, _) = behind(two(1).await, append.clone(), "ROLLBACK", append.clone()).await;
        assert_eq!(ended, Ok(vec!["old+".to_owned()]));
        let other = format!("UPDATE pg_description SET description = 'x' {WHERE} AND description = 'old' RETURNING 1");
        let (ended, mut left) = behind(two(1).await, append.clone(), "COMMIT", other).await;
        assert_eq!(ended, Ok(Vec::new()), "the row does not meet the condition any more");
        assert_eq!(left.value(&format!("SELECT description FROM pg_description {WHERE}")).await, "old+");
        let gone = format!("DELETE FROM pg_description {WHERE} RETURNING description");
        let (ended, _) = behind(two(1).await, gone.clone(), "COMMIT", append).await;
        assert_eq!(ended, Ok(Vec::new()), "the row is gone");
    });
}

/// Under repeatable read the second writer fails instead.
#[test]
fn repeatable_read_fails_where_the_row_has_changed() {
    simulate(2, || async {
        let change = format!("UPDATE pg_description SET description = 'x' {WHERE}");
        let (first, mut second) = two(2).await;
        second.value("SET default_transaction_isolation = 'repeatable read'").await;
        let (ended, _) = behind((first, second), change.clone(), "COMMIT", change).await;
        assert_eq!(ended, Err("40001".to_owned()));
    });
}

/// Two rows of one key can't come to be, and a role is changed by one session at a time.
#[test]
fn keys_and_roles_are_waited_for() {
    simulate(3, || async {
        let insert = "INSERT INTO pg_description VALUES (7, 8, 9, 'x')".to_owned();
        let (ended, _) = behind(two(3).await, insert.clone(), "COMMIT", insert.clone()).await;
        assert_eq!(ended, Err("23505".to_owned()));
        let (ended, _) = behind(two(3).await, insert.clone(), "ROLLBACK", insert).await;
        assert_eq!(ended, Ok(Vec::new()));
        let (mut first, second) = two(3).await;
        first.value("CREATE ROLE r CONNECTION LIMIT 1").await;
        let more = "UPDATE pg_authid SET rolconnlimit = rolconnlimit + 1 WHERE rolname = 'r' RETURNING rolconnlimit";
        let altered = "ALTER ROLE r CONNECTION LIMIT 10".to_owned();
        let (ended, mut left) = behind((first, second), altered, "COMMIT", more.to_owned()).await;
        assert_eq!(ended, Ok(vec!["11".to_owned()]), "what ALTER ROLE has set is not lost");
        assert_eq!(left.value("SELECT rolcreatedb FROM pg_roles WHERE rolname = 'r'").await, "f");
    });
}

/// CHG-3: a join finds the row twice, and it is changed once. CMT-2: the comment beside a column hides one that was there before the column.
#[test]
fn a_row_is_changed_once_and_shown_once() {
    simulate(6, || async {
        let (mut one, _) = two(6).await;
        let twice = "UPDATE pg_description SET description = description || x FROM (VALUES ('a'), ('b')) v(x) WHERE objoid = 1 RETURNING 1";
        assert_eq!(one.run(twice).await.expect("changed").len(), 1);
        one.value("CREATE TABLE t (a int)").await;
        one.value("INSERT INTO pg_description VALUES ('t'::regclass, 'pg_class'::regclass, 2, 'before')").await;
        one.value("ALTER TABLE t ADD COLUMN b int").await;
        let shown = "SELECT description FROM pg_description WHERE objoid = 't'::regclass";
        assert_eq!(one.run(shown).await.expect("rows"), ["before"]);
        one.value("COMMENT ON COLUMN t.b IS 'beside'").await;
        assert_eq!(one.run(shown).await.expect("rows"), ["beside"]);
        assert_eq!(one.value("SELECT col_description('t'::regclass, 2)").await, "beside");
    });
}

/// CMT-1: what was acknowledged is there after a crash, and what was not committed is not.
#[test]
fn changed_rows_are_durable() {
    let disk = SimDisk::new(4);
    let first = disk.clone();
    simulate_a_crash(4, move || async move {
        let (db, backends) = (open(&first).await, Arc::new(Backends::default()));
        let mut one = connect(&db, &backends).await;
        for sql in [
            "CREATE TABLE t (a int)",
            "CREATE ROLE r",
            "INSERT INTO pg_description VALUES (1, 2, 3, 'kept'), (1, 2, 4, 'gone')",
            "INSERT INTO pg_description VALUES ('t'::regclass, 'pg_class'::regclass, 0, 'of t')",
            "DELETE FROM pg_description WHERE description = 'gone'",
            "UPDATE pg_authid SET rolconnlimit = 7 WHERE rolname = 'r'",
            "UPDATE pg_database SET datconnlimit = 70 WHERE datname = 'postgres'",
            "INSERT INTO pg_db_role_setting SELECT 0, oid, '{work_mem=7MB}' FROM pg_authid WHERE rolname = 'r'",
            "BEGIN",
            "UPDATE pg_description SET description = 'open' WHERE description = 'kept'",
        ] {
            one.value(sql).await;
        }
        first.power_off();
        sleep(Duration::from_secs(1)).await;
    });
    let disk = disk.restart();
    simulate(4, move || async move {
        let (db, backends) = (open(&disk).await, Arc::new(Backends::default()));
        let mut one = connect(&db, &backends).await;
        let found = one.run(
            "SELECT description FROM pg_description WHERE description IN ('kept', 'gone', 'of t', 'open') ORDER BY 1",
        );
        assert_eq!(found.await.expect("rows"), ["kept", "of t"]);
        assert_eq!(one.value("SELECT rolconnlimit FROM pg_authid WHERE rolname = 'r'").await, "7");
        assert_eq!(one.value("SELECT datconnlimit FROM pg_database WHERE datname = 'postgres'").await, "70");
        assert_eq!(one.value("SELECT rolconfig FROM pg_roles WHERE rolname = 'r'").await, "{work_mem=7MB}");
        one.value("DROP TABLE t").await;
        assert_eq!(one.value("SELECT count(*) FROM pg_description WHERE description = 'of t'").await, "0");
    });
}

/// CHG-1: what DDL alone changes is refused with the name of the catalog and of the statement.
#[test]
fn other_catalogs_are_refused() {
    simulate(5, || async {
        let (mut one, _) = two(5).await;
        let refused = [
            ("UPDATE pg_class SET relname = 'x'", "UPDATE of the catalog \"pg_class\"", "ALTER TABLE"),
            ("DELETE FROM pg_authid", "DELETE from the catalog \"pg_authid\"", "DROP ROLE"),
            (
                "UPDATE pg_authid SET rolname = 'x'",
                "UPDATE of the column \"rolname\" of the catalog \"pg_authid\"",
                "ALTER ROLE",
            ),
            (
                "INSERT INTO pg_database (datname) VALUES ('x')",
                "INSERT into the catalog \"pg_database\"",
                "CREATE DATABASE",
            ),
            (
                "UPDATE pg_description SET description = 'x' WHERE objoid = 1242",
                "a change of a comment that comes with the system",
                "",
            ),
            (
                "UPDATE pg_authid SET rolpassword = 'plain'",
                "a rolpassword that is no verifier of SCRAM-SHA-256",
                "ALTER ROLE",
            ),
        ];
        for (sql, message, hint) in refused {
            let error = one.run(sql).await.expect_err(sql);
            assert_eq!(
                (error.code(), error.message()),
                ("0A000", format!("{message} is not supported").as_str()),
                "{sql}"
            );
            assert!(error.fields().hint.as_deref().unwrap_or("").contains(hint), "{sql}: {error:?}");
        }
        one.value("CREATE VIEW v AS SELECT * FROM pg_description").await;
        assert_eq!(one.code("UPDATE v SET description = 'x'").await, "0A000");
        assert_eq!(one.code("UPDATE pg_authid SET rolinherit = false WHERE rolname = 'pg_monitor'").await, "42939");
    });
}
