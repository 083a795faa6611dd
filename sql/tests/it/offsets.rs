//! OFFSET steps over rows without reading them where it can (EXE-29): what is left is what the whole answer has behind them.

use std::sync::Arc;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

const QUERIES: [&str; 14] = [
    "SELECT id FROM t ORDER BY id",
    "SELECT concat_ws(',', id, pad) FROM t ORDER BY id DESC",
    "SELECT concat_ws(',', id, a, pad) FROM t ORDER BY a, id",
    "SELECT concat_ws(',', id, a, pad) FROM t ORDER BY a DESC, id DESC",
    "SELECT concat_ws(',', a, id) FROM t ORDER BY a, id",
    "SELECT concat_ws(',', id, pad) FROM t WHERE a = 3 ORDER BY id",
    "SELECT concat_ws(',', a, id) FROM t WHERE a BETWEEN 2 AND 4 ORDER BY a, id",
    "SELECT concat_ws(',', a, id, pad) FROM t WHERE a BETWEEN 2 AND 4 AND length(pad) > 3 ORDER BY a, id",
    "SELECT concat_ws(',', a, id, pad) FROM t WHERE a IN (1, 2, 6) ORDER BY a, id",
    "SELECT concat_ws(',', a, id, pad) FROM t WHERE id BETWEEN 100 AND 900 ORDER BY id",
    "SELECT concat_ws(',', t.id, s.id) FROM t JOIN t s ON s.id = t.id + 1 WHERE t.a = 2 ORDER BY t.id",
    "SELECT x FROM (SELECT concat_ws(',', id, pad) x FROM t ORDER BY id OFFSET 7) s",
    "SELECT DISTINCT a FROM t ORDER BY a",
    "SELECT concat_ws(',', id, pad) FROM t WHERE id = 77",
];

async fn compare(reader: &mut Connection, when: &str) {
    for query in QUERIES {
        let all = reader.run(query).await.expect("rows");
        for offset in [1, 2, 50, 333, 2_000, 5_000] {
            let left = reader.run(&format!("{query} OFFSET {offset}")).await.expect("rows");
            assert_eq!(left, all[offset.min(all.len())..], "{when}: {query} OFFSET {offset}");
            let some = reader.run(&format!("{query} LIMIT 3 OFFSET {offset}")).await.expect("rows");
            let from = offset.min(all.len());
            assert_eq!(some, all[from..(from + 3).min(all.len())], "{when}: {query} LIMIT 3 OFFSET {offset}");
        }
    }
}

#[test]
fn what_is_left_is_what_stands_behind() {
    simulate(3, || async {
        let db = open(&SimDisk::new(3)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        let mut other = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY, a int, pad text)").await;
        let rows = "INSERT INTO t SELECT g, nullif(g * 7 % 9, 8), repeat('p', g % 20) FROM generate_series(1, 2000) g";
        one.value(rows).await;
        one.value("CREATE INDEX t_a ON t (a)").await;
        one.value("ANALYZE t").await;
        compare(&mut one, "at first").await;
        // Two rows at a key, of which one is shown, are two.
        other.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        other.value("SELECT count(*) FROM t").await;
        one.value("UPDATE t SET a = 9 - a WHERE id % 5 = 0").await;
        one.value("DELETE FROM t WHERE id % 11 = 0").await;
        compare(&mut other, "in the older snapshot").await;
        other.value("INSERT INTO t SELECT g + 3000, 4, 'new' FROM generate_series(1, 40) g").await;
        other.value("INSERT INTO t SELECT g, 4, 'again' FROM generate_series(1, 2000) g WHERE g % 11 = 0").await;
        compare(&mut other, "beside its own rows").await;
        other.value("COMMIT").await;
        compare(&mut one, "at last").await;
    });
}

#[test]
fn what_has_effects_is_evaluated_for_each_row() {
    simulate(4, || async {
        let db = open(&SimDisk::new(4)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY)").await;
        one.value("CREATE SEQUENCE q").await;
        one.value("INSERT INTO t SELECT generate_series(1, 20)").await;
        assert_eq!(one.value("SELECT nextval('q') FROM t ORDER BY id OFFSET 9 LIMIT 1").await, "10");
        let failed = one.run("SELECT 1 / (id - 3) FROM t ORDER BY id OFFSET 9 LIMIT 1").await;
        assert_eq!(failed.expect_err("the third row fails").code(), "22012");
        let plan =
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM t ORDER BY id LIMIT 2 OFFSET 9";
        let plan = one.run(plan).await.expect("a plan").join("\n");
        assert!(plan.contains("actual rows=11 "), "{plan}");
    });
}
