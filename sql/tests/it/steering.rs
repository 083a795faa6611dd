//! The settings that steer the planner: each changes a plan, none changes an answer, and no plan is carried out under other settings than those by
//! which its text is planned (STR-2, CHO-4, PSH-1, COL-1).

use std::sync::Arc;

use crate::sim::{Connection, Values, connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::{Backends, Bind};

async fn fill(session: &mut Connection) {
    fill_with(session, 5_000).await;
}

async fn fill_with(session: &mut Connection, rows: u32) {
    let of_a = format!(
        "INSERT INTO a SELECT g, g * 37 % 500, g * 91 % 4000, g % 40, 'row ' || g FROM generate_series(1, {rows}) g"
    );
    let of_b = format!("INSERT INTO b SELECT g, g * 7 % {rows}, g % 10 FROM generate_series(1, {rows} * 3 / 5) g");
    for sql in [
        "CREATE TABLE a (id int PRIMARY KEY, k int, v int, w int, t text)",
        &of_a,
        "CREATE INDEX a_k ON a (k)",
        "CREATE INDEX a_v ON a (v)",
        "CREATE INDEX a_w ON a (w)",
        "CREATE TABLE b (id int PRIMARY KEY, a_id int, n int)",
        &of_b,
        "CREATE INDEX b_n ON b (n)",
        "CREATE TABLE c (id int PRIMARY KEY, b_id int)",
        "INSERT INTO c SELECT g, g * 3 FROM generate_series(1, 20) g",
        "ANALYZE",
    ] {
        session.value(sql).await;
    }
}

/// The numbers of a plan's first line: what it costs before the first row, and in all.
async fn costs_of(session: &mut Connection, query: &str) -> (f64, f64) {
    let line = session.run(&format!("EXPLAIN {query}")).await.expect("a plan").remove(0);
    let costs = line.split_once("cost=").and_then(|(_, rest)| rest.split_once(" rows")).expect("costs").0;
    let (first, all) = costs.split_once("..").expect("two costs");
    (first.parse().expect("a number"), all.parse().expect("a number"))
}

/// Settings; a query; what its plan has without them and lacks with them; what it has with them.
const CASES: [(&str, &str, &str, &str); 24] = [
    ("enable_indexscan = off", "SELECT * FROM a WHERE k = 7", "Index Scan using a_k", "Seq Scan on a"),
    ("enable_indexscan = off", "SELECT * FROM a WHERE id = 7", "Index Scan using a_pkey", "Seq Scan on a"),
    ("enable_indexscan = off", "SELECT k FROM a WHERE k = 7", "Index Only Scan using a_k", "Seq Scan on a"),
    ("enable_indexscan = off", "SELECT DISTINCT w FROM a", "Index Only Scan using a_w", "Seq Scan on a"),
    ("enable_seqscan = off", "SELECT * FROM a WHERE w > 3", "Seq Scan on a", "Index Scan using a_w"),
    ("enable_seqscan = off", "SELECT count(t) FROM a WHERE v > 1", "Seq Scan on a", "Index Scan using a_v"),
    ("enable_indexonlyscan = off", "SELECT k FROM a WHERE k = 7", "Index Only Scan using a_k", "Index Scan using a_k"),
    ("enable_indexonlyscan = off", "SELECT count(*) FROM a", "Index Only Scan", "Seq Scan on a"),
    ("enable_indexonlyscan = off", "SELECT DISTINCT w FROM a", "Index Only Scan using a_w", "Seq Scan on a"),
    ("enable_bitmapscan = off", "SELECT * FROM a WHERE k = 7 OR v = 9", "using a_k, a_v on a", "Seq Scan on a"),
    ("enable_tidscan = off", "SELECT * FROM a WHERE ctid = '(0,1)'", "Tid Scan on a", "Seq Scan on a"),
    ("enable_hashjoin = off", "SELECT * FROM c JOIN a ON a.k + 0 = c.b_id", "Hash Join", "Nested Loop"),
    ("enable_hashjoin = off", "SELECT count(*) FROM a JOIN b ON a.w + 0 = b.n + 0", "Hash Join", "Join Filter"),
    ("enable_mergejoin = off", "SELECT * FROM a x JOIN a y ON x.id = y.id", "Merge Join", "Nested Loop"),
    ("enable_nestloop = off", "SELECT * FROM c JOIN a ON a.id = c.b_id", "Nested Loop", "Hash Join"),
    ("enable_material = off", "SELECT count(*) FROM c x JOIN c y ON x.id < y.id", "Materialize", "Nested Loop"),
    ("enable_sort = off", "SELECT * FROM a ORDER BY v", "Sort Key", "Index Scan using a_v"),
    ("enable_hashagg = off", "SELECT v, count(t) FROM a GROUP BY v", "HashAggregate", "GroupAggregate"),
    ("random_page_cost = 400", "SELECT * FROM a WHERE k < 20", "Index Scan using a_k", "Seq Scan on a"),
    ("seq_page_cost = 100", "SELECT * FROM a WHERE v < 2500", "Seq Scan on a", "Index Scan using a_v"),
    ("cpu_index_tuple_cost = 5", "SELECT * FROM a WHERE k < 20", "Index Scan using a_k", "Seq Scan on a"),
    ("cpu_tuple_cost = 1", "SELECT * FROM a WHERE v < 2500", "Seq Scan on a", "Index Scan using a_v"),
    ("cpu_operator_cost = 1", "SELECT * FROM a ORDER BY v", "Sort Key", "Index Scan using a_v"),
    ("cpu_operator_cost = 1", "SELECT * FROM c JOIN b ON b.n = c.id", "Hash Join", "Nested Loop"),
];

#[test]
fn each_setting_changes_a_plan() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut one).await;
        let mut wrong = Vec::new();
        for (setting, query, without, with) in CASES {
            let before = one.plan(query).await;
            one.value("BEGIN").await;
            one.value(&format!("SET LOCAL {setting}")).await;
            let then = one.plan(query).await;
            one.value("COMMIT").await;
            if !before.contains(without) || then.contains(without) || !then.contains(with) {
                wrong.push(format!("{setting}: {query}\nbefore:\n{before}\nthen:\n{then}\n"));
            }
            assert_eq!(one.plan(query).await, before, "after SET LOCAL {setting}");
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

/// A way that is not wanted is taken where there is no other, and costs ten thousand millions more, once for each step.
#[test]
fn what_has_no_other_way_is_done_by_one_that_is_not_wanted() {
    simulate(2, || async {
        let db = open(&SimDisk::new(2)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut one).await;
        for (setting, query, has) in [
            ("enable_seqscan = off", "SELECT * FROM a", "Seq Scan"),
            ("enable_sort = off", "SELECT * FROM a ORDER BY t", "Sort"),
            ("enable_hashagg = off", "SELECT DISTINCT t FROM a", "Aggregate"),
            ("enable_nestloop = off", "SELECT count(*) FROM c x JOIN c y ON x.id < y.id", "Nested Loop"),
            ("enable_hashjoin = off", "SELECT count(*) FROM a FULL JOIN c ON c.b_id = a.v", "Hash Full Join"),
        ] {
            let (_, before) = costs_of(&mut one, query).await;
            one.value(&format!("SET {setting}")).await;
            assert!(one.plan(query).await.contains(has), "{setting}: {query}");
            let (first, all) = costs_of(&mut one, query).await;
            assert!((all - before - 1e10).abs() < before + 1.0, "{setting}: {query} costs {before}, then {all}");
            assert!(first >= 1e10 || has != "Sort", "{setting}: {query} begins at {first}");
            one.value("RESET ALL").await;
        }
    });
}

/// COL-1
#[test]
fn joins_keep_the_order_of_the_text() {
    simulate(3, || async {
        let db = open(&SimDisk::new(3)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut one).await;
        // By its costs c is joined first, which has few rows. The condition of the topmost join is the first of the plan.
        one.value("SET enable_nestloop = off").await;
        one.value("SET enable_mergejoin = off").await;
        let joined = "SELECT count(*) FROM (a JOIN b ON a.id = b.a_id) JOIN c ON c.b_id = b.id";
        let listed = "SELECT count(*) FROM a, b, c WHERE a.id = b.a_id AND c.b_id = b.id";
        let query = "SELECT count(*) FROM (SELECT b.id FROM a, b WHERE a.id = b.a_id) x, c WHERE c.b_id = x.id";
        let free = one.plan(joined).await;
        assert_eq!(one.plan(listed).await, free);
        assert_eq!(one.plan(query).await, free);
        let top = |plan: &str| plan.lines().find(|line| line.contains("Hash Cond")).map(str::to_owned).expect("a join");
        assert!(top(&free).contains("b.a_id"), "{free}");
        let answer = one.value(joined).await;
        for (setting, kept, others) in [
            ("join_collapse_limit = 1", joined, [listed, query]),
            ("join_collapse_limit = 2", joined, [listed, query]),
            ("from_collapse_limit = 1", query, [listed, joined]),
        ] {
            one.value(&format!("SET {setting}")).await;
            let plan = one.plan(kept).await;
            assert!(top(&plan).contains("c.b_id"), "{setting}:\n{plan}");
            assert_eq!(one.value(kept).await, answer, "{setting}");
            for other in others {
                assert_eq!(one.plan(other).await, free, "{setting}: {other}");
            }
            one.value("RESET join_collapse_limit").await;
            one.value("RESET from_collapse_limit").await;
        }
        one.value("SET join_collapse_limit = 3").await;
        assert_eq!(one.plan(joined).await, free);
    });
}

/// Many joins are ordered step by step from `geqo_threshold` on: the next step is the cheapest, which may be a bad beginning.
#[test]
fn joins_are_searched_in_full_below_a_number() {
    simulate(4, || async {
        let db = open(&SimDisk::new(4)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut one).await;
        // Tables of few rows seem to be the cheapest next step, though nothing joins them.
        let query =
            "SELECT count(*) FROM c x, c y, c z, b WHERE x.id = b.a_id + 0 AND y.id = b.n + 0 AND z.id = b.n + b.a_id";
        let full = one.plan(query).await;
        let answer = one.value(query).await;
        one.value("SET geqo_threshold = 2").await;
        let by_steps = one.plan(query).await;
        assert_ne!(by_steps, full);
        assert_eq!(one.value(query).await, answer);
        one.value("SET geqo = off").await;
        assert_eq!(one.plan(query).await, full);
    });
}

#[test]
fn a_recursive_query_is_expected_to_have_so_many_rows() {
    simulate(5, || async {
        let db = open(&SimDisk::new(5)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut one).await;
        let query =
            "WITH RECURSIVE r AS (SELECT id FROM c UNION ALL SELECT id + 1 FROM r WHERE id < 30) SELECT * FROM r";
        let rows =
            |line: String| line.split_once("rows=").and_then(|(_, r)| r.split_once(' ')).expect("rows").0.to_owned();
        let before = rows(one.run(&format!("EXPLAIN {query}")).await.expect("a plan").remove(0));
        one.value("SET recursive_worktable_factor = 3").await;
        let then = rows(one.run(&format!("EXPLAIN {query}")).await.expect("a plan").remove(0));
        assert_eq!((&*before, &*then), ("200", "60"));
    });
}

#[test]
fn a_cursor_is_read_in_part() {
    simulate(11, || async {
        let db = open(&SimDisk::new(11)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut one).await;
        let query = "SELECT * FROM a ORDER BY v";
        let cursor = format!("DECLARE c CURSOR FOR {query}");
        assert!(one.plan(query).await.contains("Sort Key"));
        assert!(one.plan(&cursor).await.contains("Index Scan using a_v"));
        let before = full_scans(&mut one).await;
        for (fraction, scans) in [("0.1", 0), ("1", 1)] {
            one.value(&format!("SET cursor_tuple_fraction = {fraction}")).await;
            assert_eq!(one.plan(&cursor).await.contains("Sort Key"), scans == 1, "{fraction}");
            one.value("BEGIN").await;
            one.value(&cursor).await;
            assert_eq!(one.run("FETCH 5 FROM c").await.expect("rows").len(), 5);
            one.value("COMMIT").await;
            assert_eq!(full_scans(&mut one).await, before + scans, "{fraction}");
        }
    });
}

/// Whatever is switched off, the rows are the same.
#[test]
fn no_setting_changes_an_answer() {
    simulate(6, || async {
        let db = open(&SimDisk::new(6)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        fill_with(&mut one, 250).await;
        let ways = [
            "seqscan",
            "indexscan",
            "indexonlyscan",
            "bitmapscan",
            "hashjoin",
            "mergejoin",
            "nestloop",
            "material",
            "sort",
            "hashagg",
        ];
        let queries = [
            "SELECT a.id, b.n FROM a JOIN b ON a.id = b.a_id WHERE a.k < 30 ORDER BY 1, 2",
            "SELECT c.id, b.id, a.t FROM c LEFT JOIN b ON b.id = c.b_id LEFT JOIN a ON a.id = b.a_id AND a.w < 20 ORDER BY 1",
            "SELECT c.id, b.id FROM b FULL JOIN c ON c.id = b.id WHERE coalesce(b.id, c.id) < 30 ORDER BY 1, 2",
            "SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE b.a_id = a.id AND b.n < 4) AND NOT EXISTS (SELECT FROM c WHERE c.b_id = a.k)",
            "SELECT n, count(*), sum(a.v) FROM b JOIN a ON a.id = b.a_id GROUP BY n ORDER BY n",
            "SELECT k, min(v), max(v) FROM a WHERE k = 3 OR v = 700 OR w = 2 GROUP BY k ORDER BY k LIMIT 20",
            "SELECT DISTINCT w FROM a WHERE v > 100 ORDER BY w",
            "SELECT x.id, y.id FROM c x, c y WHERE x.id < y.id AND x.b_id > 50 ORDER BY 1, 2",
        ];
        let mut expected = Vec::new();
        for query in queries {
            expected.push(one.run(query).await.unwrap_or_else(|e| panic!("{query}: {e:?}")));
        }
        // One way, all others, all, and of the joins each two; tests/plans.py has more of them.
        let all = (1u32 << ways.len()) - 1;
        let single = (0..ways.len()).map(|at| 1 << at);
        let of_joins = [0b0011_0000, 0b0101_0000, 0b0110_0000];
        let sets: Vec<u32> = single.flat_map(|one| [one, all & !one]).chain(of_joins).chain([all]).collect();
        for off in sets {
            for (at, way) in ways.iter().enumerate() {
                let value = if off >> at & 1 == 1 { "off" } else { "on" };
                one.value(&format!("SET enable_{way} = {value}")).await;
            }
            for (query, rows) in queries.iter().zip(&expected) {
                let told = one.run(query).await.unwrap_or_else(|e| panic!("{off:b}: {query}: {e:?}"));
                assert_eq!(&told, rows, "{off:b}: {query}");
            }
        }
    });
}

const READ: &str = "SELECT t FROM a WHERE k = 7 ORDER BY id LIMIT 1";

/// How many walks over whole tables the session has made for its statements so far.
async fn full_scans(one: &mut Connection) -> i64 {
    one.value("SELECT pg_stat_clear_snapshot()").await;
    let scans = one.value("SELECT coalesce(seq_scan, 0) FROM pg_stat_user_tables WHERE relname = 'a'").await;
    scans.parse().expect("a number")
}

async fn extended(one: &mut Connection, sql: &str) {
    let mut values = Values::default();
    one.session.parse("", sql, &[]).await.expect("parsed");
    one.session.bind("", "", Bind { values: &[], formats: &[], result_formats: &[] }).await.expect("bound");
    one.session.execute("", 0, &mut values).await.expect("ran");
    one.session.sync().await.expect("synced");
}

/// PSH-1, STR-2: neither another session's plan nor an earlier one of the session's own.
#[test]
fn a_text_is_planned_by_the_settings_of_its_session() {
    simulate(7, || async {
        let db = open(&SimDisk::new(7)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        fill(&mut one).await;
        for _ in 0..3 {
            let mut other = connect(&db, &backends).await;
            other.value(READ).await;
            extended(&mut other, READ).await;
        }
        let before = full_scans(&mut one).await;
        one.value(READ).await;
        extended(&mut one, READ).await;
        assert_eq!(full_scans(&mut one).await, before, "by the index");
        one.value("SET enable_indexscan = off").await;
        one.value(READ).await;
        assert_eq!(full_scans(&mut one).await, before + 1, "by the simple protocol");
        extended(&mut one, READ).await;
        assert_eq!(full_scans(&mut one).await, before + 2, "by the extended protocol");
        one.value("RESET enable_indexscan").await;
        one.value(READ).await;
        extended(&mut one, READ).await;
        assert_eq!(full_scans(&mut one).await, before + 2, "after RESET");
        one.value("SET enable_indexscan = off").await;
        for at in 0..3 {
            let mut other = connect(&db, &backends).await;
            other.value("SET enable_indexscan = off").await;
            other.value(READ).await;
            assert_eq!(full_scans(&mut one).await, before + 3 + at, "a session with the same settings");
        }
        // A statement by its key, too.
        let by_key = "SELECT t FROM a WHERE id = 70";
        one.value("RESET ALL").await;
        one.value(by_key).await;
        one.value(by_key).await;
        let before = full_scans(&mut one).await;
        one.value("SET enable_indexscan = off").await;
        one.value(by_key).await;
        assert_eq!(full_scans(&mut one).await, before + 1, "by the key");
    });
}

/// CHO-4, as PostgreSQL 15 does it.
#[test]
fn a_prepared_statement_keeps_the_plan_by_which_it_has_run() {
    simulate(8, || async {
        let db = open(&SimDisk::new(8)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut one).await;
        one.value(&format!("PREPARE kept AS {READ}")).await;
        one.value(&format!("PREPARE late AS {READ}")).await;
        one.value("EXECUTE kept").await;
        let before = full_scans(&mut one).await;
        one.value("SET enable_indexscan = off").await;
        one.value("EXECUTE kept").await;
        assert_eq!(full_scans(&mut one).await, before, "it has run by the index");
        assert!(one.plan("EXECUTE kept").await.contains("a_k"));
        assert!(!one.plan(READ).await.contains("a_k"));
        one.value("EXECUTE late").await;
        assert_eq!(full_scans(&mut one).await, before + 1, "it has not run before");
        one.value("RESET enable_indexscan").await;
        one.value("EXECUTE late").await;
        assert_eq!(full_scans(&mut one).await, before + 2, "it keeps its plan, too");
        // What drops a plan has it made by the settings of the moment.
        one.value("ANALYZE a").await;
        one.value("EXECUTE late").await;
        assert_eq!(full_scans(&mut one).await, before + 2, "planned anew");
    });
}

/// ALTER ROLE and ALTER DATABASE, and a function's own settings.
#[test]
fn settings_of_roles_databases_and_functions_steer() {
    simulate(9, || async {
        let db = open(&SimDisk::new(9)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        fill(&mut one).await;
        let query = "SELECT * FROM a WHERE k = 7";
        for (set, reset) in [
            ("ALTER ROLE postgres SET enable_indexscan = off", "ALTER ROLE postgres RESET enable_indexscan"),
            ("ALTER DATABASE postgres SET random_page_cost = 4000", "ALTER DATABASE postgres RESET random_page_cost"),
        ] {
            one.value(set).await;
            let mut other = connect(&db, &backends).await;
            assert!(other.plan(query).await.contains("Seq Scan"), "{set}");
            assert!(one.plan(query).await.contains("a_k"), "{set}");
            one.value(reset).await;
        }
    });
}

/// A value that was set for a transaction alone goes with it, also that of a setting which the session had never set.
#[test]
fn a_value_of_a_transaction_goes_with_it() {
    simulate(10, || async {
        let db = open(&SimDisk::new(10)).await;
        let mut one = connect(&db, &Arc::new(Backends::default())).await;
        for (name, value) in [("random_page_cost", "1.5"), ("commit_delay", "7"), ("enable_sort", "off")] {
            let before = one.value(&format!("SHOW {name}")).await;
            for end in ["COMMIT", "ROLLBACK"] {
                one.value("BEGIN").await;
                one.value(&format!("SET LOCAL {name} = {value}")).await;
                assert_eq!(one.value(&format!("SHOW {name}")).await, value);
                one.value(end).await;
                assert_eq!(one.value(&format!("SHOW {name}")).await, before, "{name} after {end}");
            }
        }
        for (setting, message) in [
            ("seq_page_cost = -1", "-1 is outside the valid range for parameter \"seq_page_cost\" (0 .. 1.79769e+308)"),
            (
                "cursor_tuple_fraction = 2",
                "2 is outside the valid range for parameter \"cursor_tuple_fraction\" (0 .. 1)",
            ),
        ] {
            let refused = one.run(&format!("SET {setting}")).await.expect_err(setting);
            assert_eq!((refused.code(), refused.message()), ("22023", message));
        }
    });
}
