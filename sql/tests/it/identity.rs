//! A key does not identify a row for ever: which row a statement continues with after a wait, and for which transactions an insert waits;
//! in virtual time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::sync::sleep;
use clearway_base::testkit;
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::table::verify::verify;
use clearway_sql::session::Backends;

/// Runs a scene with three clients and a table `t (id, u, v)` with the rows 1 to 3, and a table `c` whose rows refer to it; afterwards
/// every index agrees with its table.
fn scene<F: Future<Output = ()> + Send + 'static>(play: impl FnOnce([Connection; 3]) -> F + Send + 'static) {
    simulate(5, move || async move {
        let db = open(&SimDisk::new(5)).await;
        let backends = Arc::new(Backends::default());
        let mut first = connect(&db, &backends).await;
        first.value("CREATE TABLE t (id int PRIMARY KEY, u int UNIQUE, v int)").await;
        first.value("INSERT INTO t SELECT g, g + 10, 0 FROM generate_series(1, 3) g").await;
        first
            .value("CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t ON UPDATE CASCADE ON DELETE CASCADE, v int)")
            .await;
        first.value("CREATE INDEX ON c (t); INSERT INTO c SELECT g, g, 0 FROM generate_series(1, 3) g").await;
        let (second, third) = (connect(&db, &backends).await, connect(&db, &backends).await);
        testkit::spawn("play", play([first, second, third])).await;
        let catalog = db.catalog();
        for relation in catalog.objects().filter(|o| o.kind() == "table") {
            let disagreements = verify(db.transactions(), &catalog, relation.oid()).await.expect("readable");
            assert_eq!(disagreements, [], "VFY-1");
        }
        assert!(db.transactions().locks().locks().is_empty(), "a lock is left");
    });
}

/// Begins `sql` in one session, runs `then` in another while the first waits, and returns both.
async fn beside(
    mut waits: Connection,
    sql: &'static str,
    mut other: Connection,
    then: &'static str,
) -> (Connection, Result<Vec<String>, String>, Connection) {
    let waiting = testkit::spawn("waiter", async move {
        let ended = waits.run(sql).await;
        (waits, ended.map_err(|e| e.code().to_owned()))
    });
    sleep(Duration::from_millis(5)).await;
    other.value(then).await;
    let (waits, ended) = waiting.await;
    (waits, ended, other)
}

#[test]
fn an_update_that_waited_follows_the_rows_that_it_read() {
    // FAT-1: 1 goes to 9 and 2 to 1.
    scene(|[mut a, b, mut viewer]| async move {
        a.value("BEGIN; UPDATE t SET id = 9 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 2").await;
        let (_, ended, _) = beside(b, "UPDATE t SET v = v + 100", a, "COMMIT").await;
        ended.expect("updated");
        let all = viewer.value("SELECT string_agg(id || ':' || v, ' ' ORDER BY id) FROM t").await;
        assert_eq!(all, "1:100 3:100 9:100");
    });
}

#[test]
fn a_row_that_was_deleted_is_gone_although_another_one_has_its_key() {
    scene(|[mut a, b, mut viewer]| async move {
        a.value("BEGIN; DELETE FROM c; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 77, 7)").await;
        let (b, ended, mut a) = beside(b, "UPDATE t SET v = 100 WHERE id = 1", a, "COMMIT").await;
        ended.expect("no row");
        assert_eq!(viewer.value("SELECT v FROM t WHERE id = 1").await, "7");
        // Nor is the new row's key locked by the transaction that waited for the old one.
        let mut b = b;
        b.value("BEGIN").await;
        a.value("BEGIN; DELETE FROM t WHERE id = 1").await;
        let (mut b, ended, _) = beside(b, "SELECT v FROM t WHERE id = 1 FOR UPDATE", a, "COMMIT").await;
        assert_eq!(ended.expect("no row"), Vec::<String>::new());
        viewer.value("INSERT INTO t VALUES (1, 78, 8)").await;
        b.value("COMMIT").await;
    });
}

#[test]
fn an_insert_waits_for_nobody_who_only_locks_the_row_in_its_way() {
    // TXN-9
    scene(|[mut a, mut b, _]| async move {
        a.value("BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE").await;
        let refused = b.run("INSERT INTO t VALUES (1, 50, 0)").await;
        assert_eq!(refused.expect_err("it is there").code(), "23505");
        b.value("INSERT INTO t VALUES (1, 50, 0) ON CONFLICT DO NOTHING").await;
        let refused = b.run("UPDATE t SET id = 1 WHERE id = 2").await;
        assert_eq!(refused.expect_err("it is there").code(), "23505");
        a.value("COMMIT").await;
    });
}

#[test]
fn on_conflict_looks_at_its_arbiter_before_other_unique_indexes() {
    scene(|[mut a, _, _]| async move {
        let sql = "INSERT INTO t VALUES (1, 12, 5) ON CONFLICT (u) DO UPDATE SET v = excluded.v RETURNING id";
        assert_eq!(a.value(sql).await, "2");
        let refused = a.run("INSERT INTO t VALUES (1, 50, 5) ON CONFLICT (u) DO NOTHING").await;
        assert_eq!(refused.expect_err("the primary key is not the arbiter").code(), "23505");
    });
}

#[test]
fn a_repeatable_read_cascade_leaves_changed_children_alone() {
    scene(|[mut a, mut b, _]| async move {
        a.value("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM c").await;
        b.value("UPDATE c SET v = 7 WHERE id = 1").await;
        let refused = a.run("DELETE FROM t WHERE id = 1").await;
        assert_eq!(refused.expect_err("first updater wins").code(), "40001");
        a.value("ROLLBACK").await;
        assert_eq!(b.value("SELECT v FROM c WHERE id = 1").await, "7");
    });
}

#[test]
fn an_index_is_not_built_beside_a_cascade() {
    // EXE-3, EXE-4
    scene(|[mut a, b, mut viewer]| async move {
        a.value("BEGIN; UPDATE t SET id = 8 WHERE id = 1").await;
        let (_, ended, _) = beside(b, "CREATE UNIQUE INDEX ci ON c (t)", a, "COMMIT").await;
        ended.expect("built");
        assert_eq!(viewer.value("SELECT id FROM c WHERE t = 8").await, "1");
        viewer.value("REINDEX INDEX ci").await;
        assert_eq!(viewer.value("SELECT id FROM c WHERE t = 8").await, "1");
    });
}

#[test]
fn a_sequence_that_began_anew_goes_on_after_a_rollback() {
    // SEQ-2
    scene(|[mut a, _, _]| async move {
        a.value("CREATE TABLE s (id serial PRIMARY KEY, v int); INSERT INTO s (v) VALUES (0), (0)").await;
        a.value("BEGIN; TRUNCATE s RESTART IDENTITY").await;
        assert_eq!(a.value("INSERT INTO s (v) VALUES (1) RETURNING id").await, "1");
        a.value("ROLLBACK").await;
        assert_eq!(a.value("INSERT INTO s (v) VALUES (1) RETURNING id").await, "3");
        a.value("TRUNCATE s RESTART IDENTITY").await;
        assert_eq!(a.value("INSERT INTO s (v) VALUES (1) RETURNING id").await, "1");
        let refused = a.run("DROP SEQUENCE s_id_seq").await;
        assert_eq!(refused.expect_err("a default uses it").code(), "2BP01");
    });
}

#[test]
fn a_read_only_transaction_stays_so_after_its_first_query() {
    scene(|[mut a, _, _]| async move {
        a.value("BEGIN READ ONLY; SET TRANSACTION READ WRITE; INSERT INTO t VALUES (7, 7, 7); COMMIT").await;
        a.value("BEGIN READ ONLY; SELECT v FROM t WHERE id = 7").await;
        let refused = a.run("SET TRANSACTION READ WRITE").await;
        assert_eq!(refused.expect_err("after a query").code(), "25001");
        a.value("ROLLBACK").await;
    });
}

#[test]
fn a_partial_unique_index_waits_for_whoever_takes_a_row_out_of_it() {
    // TAB-2 with TRM-2: whether row 1 stands in the index depends on how the first transaction ends.
    for (end, expected) in [("COMMIT", Ok(())), ("ROLLBACK", Err("23505"))] {
        scene(move |[mut a, b, mut viewer]| async move {
            a.value("CREATE UNIQUE INDEX live ON t ((u % 100)) WHERE v = 0").await;
            a.value("BEGIN; UPDATE t SET v = 1 WHERE id = 1").await;
            let (_, ended, _) = beside(b, "INSERT INTO t VALUES (9, 111, 0)", a, end).await;
            assert_eq!(ended.map(|_| ()).map_err(|e| e.to_string()), expected.map_err(str::to_owned), "{end}");
            let found = viewer.value("SELECT string_agg(id::text, ' ') FROM t WHERE u % 100 = 11 AND v = 0").await;
            assert_eq!(found, if end == "COMMIT" { "9" } else { "1" });
        });
    }
}

#[test]
fn entries_of_partial_indexes_follow_savepoints_and_keys_that_move() {
    scene(|[mut a, mut b, mut viewer]| async move {
        a.value("CREATE INDEX low ON t ((v + 1), u) WHERE v < 2; CREATE UNIQUE INDEX ON t ((id * 2)) WHERE v > 0")
            .await;
        a.value("BEGIN; UPDATE t SET v = 5 WHERE id = 1; SAVEPOINT s; UPDATE t SET v = id").await;
        a.value("UPDATE t SET id = id + 50, v = 1 WHERE id = 2").await;
        assert_eq!(a.value("SELECT count(*) FROM t WHERE v + 1 = 2 AND v < 2").await, "2");
        assert_eq!(b.value("SELECT count(*) FROM t WHERE v + 1 = 1 AND v < 2").await, "3");
        a.value("ROLLBACK TO s; UPDATE t SET v = 1, id = 70 WHERE id = 3; DELETE FROM t WHERE id = 2; COMMIT").await;
        assert_eq!(b.value("SELECT string_agg(id::text, ' ') FROM t WHERE v + 1 = 2 AND v < 2").await, "70");
        assert_eq!(viewer.value("SELECT count(*) FROM t WHERE v + 1 = 1 AND v < 2").await, "0");
    });
}
