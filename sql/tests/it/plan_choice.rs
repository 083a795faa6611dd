//! Which plan a prepared statement runs by (CHO-1 to CHO-3), and that the rows are those of the statement with its values written out.

use std::sync::Arc;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

async fn fill(session: &mut Connection) {
    session.value("CREATE TABLE t (id int PRIMARY KEY, kind text, n int)").await;
    let rows = "INSERT INTO t SELECT g, CASE g % 1000 WHEN 0 THEN 'rare' ELSE 'common' END, g % 50 FROM generate_series(1, 4000) g";
    session.value(rows).await;
    session.value("CREATE INDEX t_kind ON t (kind)").await;
    session.value("CREATE INDEX t_rare ON t (n) WHERE kind = 'rare'").await;
    session.value("ANALYZE t").await;
}

/// Executions by the generic plan, and by custom ones.
async fn counts(session: &mut Connection, name: &str) -> String {
    let query =
        format!("SELECT generic_plans || ' ' || custom_plans FROM pg_prepared_statements WHERE name = '{name}'");
    session.value(&query).await
}

#[test]
fn custom_plans_read_what_the_values_ask_for() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        fill(&mut one).await;
        one.value("PREPARE by_kind(text) AS SELECT count(n) FROM t WHERE kind = $1").await;
        one.value("PREPARE maybe(int, text) AS SELECT count(n) FROM t WHERE ($1 IS NULL OR id < $1) AND ($2 IS NULL OR kind = $2)").await;
        for turn in 0..8 {
            assert_eq!(one.value("EXECUTE by_kind('rare')").await, "4", "turn {turn}");
            assert_eq!(one.value("EXECUTE maybe(2500, 'rare')").await, "2", "turn {turn}");
        }
        // The generic plan reads the whole table, and costs more than planning.
        assert_eq!(counts(&mut one, "by_kind").await, "0 8");
        assert_eq!(counts(&mut one, "maybe").await, "0 8");
        for (execute, has) in [
            ("EXECUTE by_kind('rare')", "t_rare on t"),
            ("EXECUTE by_kind('common')", "Seq Scan on t"),
            ("EXECUTE maybe(10, NULL)", "Index Cond: (id < 10)"),
            ("EXECUTE maybe(NULL, 'rare')", "t_rare on t"),
        ] {
            let plan = one.plan(execute).await;
            assert!(plan.contains(has), "{execute}:\n{plan}");
        }
        // CHO-1
        assert_eq!(one.value("EXECUTE by_kind('common')").await, "3996");
        assert_eq!(one.value("EXECUTE maybe(NULL, NULL)").await, "4000");
        one.value("SET plan_cache_mode = force_generic_plan").await;
        let plan = one.plan("EXECUTE by_kind('rare')").await;
        assert!(plan.contains("(kind = $1)"), "{plan}");
        assert_eq!(one.value("EXECUTE by_kind('rare')").await, "4");
        assert_eq!(one.value("EXECUTE by_kind('common')").await, "3996");
    });
}

#[test]
fn statements_that_gain_nothing_are_not_planned_anew() {
    simulate(2, || async {
        let db = open(&SimDisk::new(2)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        fill(&mut one).await;
        one.value("PREPARE by_key(int) AS SELECT kind FROM t WHERE id = $1").await;
        one.value("PREPARE adding(int) AS INSERT INTO t VALUES ($1, 'new', 1)").await;
        // The generic plan counts on a fifth of the table, a custom one on few rows.
        one.value("PREPARE part(int) AS SELECT count(n) FROM t WHERE id > $1").await;
        for at in 0..7 {
            one.value(&format!("EXECUTE by_key({})", at + 1)).await;
            one.value(&format!("EXECUTE adding({})", -at - 1)).await;
            assert_eq!(one.value(&format!("EXECUTE part({})", 3990 + at)).await, (10 - at).to_string());
        }
        assert_eq!(counts(&mut one, "by_key").await, "7 0"); // CHO-2
        assert_eq!(counts(&mut one, "adding").await, "7 0");
        assert_eq!(counts(&mut one, "part").await, "2 5"); // CHO-3
    });
}

/// A change whose conditions no row meets reads nothing, and its expressions keep their slots.
#[test]
fn a_change_that_no_row_is_for_reads_nothing() {
    simulate(3, || async {
        let db = open(&SimDisk::new(3)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        fill(&mut one).await;
        one.value("CREATE TABLE s (x int, y int)").await;
        one.value("INSERT INTO s VALUES (1, 2), (3, 4)").await;
        one.value("CREATE VIEW v AS SELECT id, n FROM t WHERE kind = 'rare'").await;
        for change in [
            "UPDATE t SET n = n + 1 WHERE kind = 'rare' AND false",
            "UPDATE t SET n = t.n + s.y FROM s WHERE s.x = t.id AND 1 = 2 RETURNING t.id, s.y",
            "UPDATE v SET n = n * 2 WHERE id > 5 AND NULL RETURNING id, n",
            "DELETE FROM t WHERE n < 7 AND 2 + 2 = 5 RETURNING *",
            "DELETE FROM t USING s WHERE t.n = s.x AND false",
            "UPDATE t SET n = (SELECT max(y) FROM s WHERE s.x = t.n) WHERE false",
        ] {
            let plan = one.plan(change).await;
            assert!(plan.contains("Result") && plan.contains("One-Time Filter: false"), "{change}:\n{plan}");
            assert!(!plan.contains("Scan on t"), "{change}:\n{plan}");
            assert_eq!(one.run(change).await.expect("no rows"), Vec::<String>::new(), "{change}");
        }
        assert_eq!(one.value("SELECT count(*) || ' ' || sum(n) FROM t").await, "4000 98000");
        let merge = "MERGE INTO t USING s ON s.x = t.id AND false WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (x + 9000, 'new', y)";
        one.value(merge).await;
        assert_eq!(
            one.value("SELECT count(*) || ' ' || sum(n) FROM t").await,
            "4002 98006",
            "a row of MERGE is put in"
        );
    });
}

#[test]
fn a_scan_is_cheaper_where_its_conditions_are_judged_on_stored_rows() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE u (id int PRIMARY KEY, n int, t text)").await;
        one.value("INSERT INTO u SELECT g, g * 7919 % 4001, 't' || g FROM generate_series(1, 4000) g").await;
        one.value("CREATE INDEX ON u (n)").await;
        one.value("ANALYZE u").await;
        for (condition, access) in [
            ("n < 300", "Index Scan"),
            // A fifth of the rows: each of them by the index costs as much as three that are read and judged by their values, or nine that are turned away.
            ("n < 800", "Seq Scan"),
            ("n < 800 AND length(t) > 1", "Seq Scan"),
            // What may fail is not passed over.
            ("10 / id < 3 AND n < 800", "Index Scan"),
        ] {
            let plan = one.plan(&format!("SELECT max(t) FROM u WHERE {condition}")).await;
            assert!(plan.contains(access), "{condition}:\n{plan}");
        }
    });
}
