//! Reads that use the order of keys: jumps from one leading value to the next (EXE-23, COV-2), and merge joins (EXE-24, EXE-25, MJN-1). Each
//! gives what the same query gives whose expressions no key has.

use std::sync::Arc;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::testkit::Rng;
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// The sorted rows of a query whose plan says a word, and those of a query whose plan does not.
async fn both(reader: &mut Connection, word: &str, with: &str, without: &str) -> (Vec<String>, Vec<String>) {
    let plan = reader.run(&format!("EXPLAIN {with}")).await.expect("a plan").join("\n");
    assert!(plan.contains(word), "{with}\n{plan}");
    let plan = reader.run(&format!("EXPLAIN {without}")).await.expect("a plan").join("\n");
    assert!(!plan.contains(word), "{without}\n{plan}");
    let mut ordered = reader.run(with).await.unwrap_or_else(|e| panic!("{with}: {e:?}"));
    let mut plain = reader.run(without).await.expect("rows");
    ordered.sort_unstable();
    plain.sort_unstable();
    (ordered, plain)
}

/// Pairs of queries: the first one jumps.
const JUMPS: [(&str, &str); 13] = [
    (
        "SELECT concat_ws(',', a, b, id) FROM t WHERE a BETWEEN 1 AND 2 AND b = 7",
        "SELECT concat_ws(',', a, b, id) FROM t WHERE a + 0 BETWEEN 1 AND 2 AND b + 0 = 7",
    ),
    (
        "SELECT concat_ws(',', a, b, id) FROM t WHERE a < 2 AND b BETWEEN 7 AND 8",
        "SELECT concat_ws(',', a, b, id) FROM t WHERE a + 0 < 2 AND b + 0 BETWEEN 7 AND 8",
    ),
    (
        "SELECT DISTINCT ON (a) concat_ws(',', a, b) FROM t ORDER BY a, b",
        "SELECT concat_ws(',', a, min(b)) FROM t GROUP BY a HAVING count(*) > 0",
    ),
    (
        "SELECT DISTINCT ON (a) concat_ws(',', a, b) FROM t WHERE a <> 1 ORDER BY a DESC, b DESC",
        "SELECT concat_ws(',', a, max(b)) FROM t WHERE a <> 1 GROUP BY a HAVING count(*) > 0",
    ),
    ("SELECT concat_ws(',', a, b, id) FROM t WHERE b = 7", "SELECT concat_ws(',', a, b, id) FROM t WHERE b + 0 = 7"),
    (
        "SELECT concat_ws(',', a, b, id, pad) FROM t WHERE b BETWEEN 20 AND 21",
        "SELECT concat_ws(',', a, b, id, pad) FROM t WHERE b + 0 BETWEEN 20 AND 21",
    ),
    (
        "SELECT concat_ws(',', a, b) FROM t WHERE b IN (3, 9) AND a IS NULL OR b = 11",
        "SELECT concat_ws(',', a, b) FROM t WHERE b + 0 IN (3, 9) AND a IS NULL OR b + 0 = 11",
    ),
    ("SELECT DISTINCT a FROM t", "SELECT a FROM t GROUP BY a HAVING count(*) > 0"),
    ("SELECT DISTINCT a FROM t WHERE a > 1", "SELECT a FROM t WHERE a + 0 > 1 GROUP BY a HAVING count(*) > 0"),
    ("SELECT a FROM t GROUP BY a", "SELECT a FROM t GROUP BY a HAVING count(*) > 0"),
    (
        "SELECT count(DISTINCT a) || ':' || max(a) FROM t",
        "SELECT count(DISTINCT a) || ':' || max(a) || left(count(*)::text, 0) FROM t",
    ),
    (
        "SELECT concat_ws(',', a, min(b)) FROM t GROUP BY a",
        "SELECT concat_ws(',', a, min(b)) FROM t GROUP BY a HAVING count(*) > 0",
    ),
    (
        "SELECT concat_ws(',', a, max(b)) FROM t GROUP BY a",
        "SELECT concat_ws(',', a, max(b)) FROM t GROUP BY a HAVING count(*) > 0",
    ),
];

async fn compare_jumps(reader: &mut Connection, when: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (with, without) in JUMPS {
        let (ordered, plain) = both(reader, "Skip Key", with, without).await;
        assert_eq!(ordered, plain, "{when}: {with}");
        all.push(ordered);
    }
    all
}

#[test]
fn jumps_miss_no_value_in_any_snapshot() {
    for seed in 1..4 {
        simulate(seed, move || async move {
            let db = open(&SimDisk::new(seed)).await;
            let backends = Arc::new(Backends::default());
            let mut writer = connect(&db, &backends).await;
            let mut reader = connect(&db, &backends).await;
            writer.value("CREATE TABLE t (id int PRIMARY KEY, a int, b int NOT NULL, pad text)").await;
            let rows =
                "INSERT INTO t SELECT g, nullif(g % 4, 3), g % 50, repeat('p', 30) FROM generate_series(0, 1999) g";
            writer.value(rows).await;
            writer.value("CREATE INDEX ON t (a, b)").await;
            writer.value("ANALYZE t").await;
            let mut random = Rng::new(seed);
            for _ in 0..4 {
                reader.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
                let before = compare_jumps(&mut reader, "before").await;
                writer.value("BEGIN").await;
                for _ in 0..3 {
                    let (id, a) = (random.below(2000), random.below(9));
                    let change = match random.below(5) {
                        0 => format!("UPDATE t SET a = {a} WHERE id = {id}"),
                        1 => format!("DELETE FROM t WHERE a = {a}"),
                        2 => format!("UPDATE t SET b = b + 1 WHERE id % 7 = {a}"),
                        3 => format!("INSERT INTO t VALUES ({id} + 5000, {a} - 3, 7, 'i') ON CONFLICT DO NOTHING"),
                        _ => format!("UPDATE t SET a = NULL WHERE id < {id} AND a = 1"),
                    };
                    writer.value(&change).await;
                    compare_jumps(&mut writer, "its own changes").await;
                    assert_eq!(compare_jumps(&mut reader, "of the snapshot").await, before, "seed {seed}: {change}");
                }
                writer.value(if random.below(3) == 0 { "ROLLBACK" } else { "COMMIT" }).await;
                assert_eq!(compare_jumps(&mut reader, "the snapshot stays").await, before, "seed {seed}");
                reader.value("COMMIT").await;
            }
        });
    }
}

#[test]
fn an_extreme_is_read_by_jumps_only_where_it_comes_first() {
    simulate(5, || async {
        let db = open(&SimDisk::new(5)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE x (id int PRIMARY KEY, a int, b int)").await;
        one.value("INSERT INTO x SELECT g, g % 3, nullif(g % 40, 0) FROM generate_series(1, 3000) g").await;
        one.value("CREATE INDEX ON x (a, b)").await;
        one.value("ANALYZE x").await;
        let jumps = |of: Vec<String>| of.join("\n").contains("Skip Key: a\n") || of.join("\n").ends_with("Skip Key: a");
        // Nulls stand behind every value: from there the greatest value is not the first.
        assert!(jumps(one.run("EXPLAIN (COSTS OFF) SELECT a, min(b) FROM x GROUP BY a").await.expect("a plan")));
        for other in [
            "SELECT a, max(b) FROM x GROUP BY a",
            "SELECT a, min(b), max(b) FROM x GROUP BY a",
            "SELECT a, min(b) FROM x WHERE b > 5 GROUP BY a",
            "SELECT a, b, min(b) FROM x GROUP BY a, b",
            "SELECT a, min(b) FILTER (WHERE b > 3) FROM x GROUP BY a",
            "SELECT a, count(b) FROM x GROUP BY a",
            "SELECT a, random() FROM x GROUP BY a, random()",
            "SELECT DISTINCT ON (a) a, b FROM x WHERE b > 5 ORDER BY a, b",
        ] {
            assert!(!jumps(one.run(&format!("EXPLAIN (COSTS OFF) {other}")).await.expect("a plan")), "{other}");
        }
        let greatest = one.run("SELECT a || ':' || max(b) FROM x GROUP BY a ORDER BY 1").await.expect("rows");
        assert_eq!(greatest, ["0:39", "1:39", "2:39"]);
    });
}

/// Conditions that compare rows, with `{}` in the place of what keeps a column from being one of a key.
const ROWS: [&str; 11] = [
    "(a{}, b) > (1, 40)",
    "(a{}, b) >= (1, 40) AND (a{}, b) < (2, 3)",
    "(a{}, b) <= (2, 10)",
    "(a{}, b, id) > (0, 48, 1000)",
    "(a{}, b) > (1, NULL)",
    "(a{}, b) < (1, NULL) AND b > 3",
    "(a{}, b) > (1, 3000000000)",
    "(a{}, b) <= (1, -3000000000)",
    "(a{}, b) >= (-3000000000, 1) AND (a{}, b) < (1, 5)",
    "(b{}, a) > (45, 0)",
    "a{} > 1 OR a{} = 1 AND b >= 47",
];

#[test]
fn rows_are_compared_by_a_range_of_an_index() {
    for index in ["(a, b)", "(a DESC, b DESC)", "(a, b DESC)"] {
        simulate(11, move || async move {
            let db = open(&SimDisk::new(11)).await;
            let backends = Arc::new(Backends::default());
            let mut one = connect(&db, &backends).await;
            one.value("CREATE TABLE t (id int PRIMARY KEY, a int, b int, pad text)").await;
            let rows = "INSERT INTO t SELECT g, nullif(g % 4, 3), nullif(g % 50, 49), repeat('p', 60) \
                        FROM generate_series(0, 3999) g";
            one.value(rows).await;
            one.value(&format!("CREATE INDEX ON t {index}")).await;
            one.value("CREATE INDEX ON t (b, a)").await;
            one.value("ANALYZE t").await;
            for condition in ROWS {
                let query = |plus: &str| {
                    format!("SELECT concat_ws(',', a, b, id) FROM t WHERE {}", condition.replace("{}", plus))
                };
                // A comparison with NULL is not one of rows any more when the range is chosen.
                let word = if condition.contains("NULL") { "Scan" } else { "Index Cond: (" };
                let with = query("");
                let plan = one.run(&format!("EXPLAIN {with}")).await.expect("a plan").join("\n");
                assert!(plan.contains(word), "{with}\n{plan}");
                let (mut by_range, mut plain) =
                    (one.run(&with).await.expect("rows"), one.run(&query(" + 0")).await.expect("rows"));
                by_range.sort_unstable();
                plain.sort_unstable();
                assert_eq!(by_range, plain, "{condition} by {index}");
            }
        });
    }
}

/// RWE-1, with values that are known only when the plan is carried out: NULL, and what no column holds.
#[test]
fn rows_are_compared_with_values_that_come_late() {
    simulate(16, || async {
        let db = open(&SimDisk::new(16)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY, a int, b int)").await;
        one.value("INSERT INTO t SELECT g, nullif(g % 4, 3), nullif(g % 50, 49) FROM generate_series(0, 1999) g").await;
        one.value("CREATE INDEX ON t (a, b)").await;
        one.value("CREATE INDEX ON t (b DESC, a DESC)").await;
        one.value("ANALYZE t").await;
        one.value("SET plan_cache_mode = force_generic_plan").await;
        for (at, (columns, op)) in
            [("a, b", ">"), ("a, b", "<="), ("b, a", "<"), ("b, a", ">=")].into_iter().enumerate()
        {
            let query =
                |columns: &str| format!("SELECT concat_ws(',', a, b, id) FROM t WHERE ({columns}) {op} ($1, $2)");
            let (by_range, plain) = (query(columns), query(&columns.replacen(',', " + 0,", 1)));
            one.value(&format!("PREPARE r{at}(bigint, bigint) AS {by_range}")).await;
            one.value(&format!("PREPARE p{at}(bigint, bigint) AS {plain}")).await;
            for values in
                ["1, 40", "1, NULL", "NULL, 3", "1, 3000000000", "1, -3000000000", "3000000000, 1", "-3000000000, 1"]
            {
                let mut rows = Vec::new();
                for name in ["r", "p"] {
                    let mut found = one.run(&format!("EXECUTE {name}{at}({values})")).await.expect("rows");
                    found.sort_unstable();
                    rows.push(found);
                }
                assert_eq!(rows[0], rows[1], "({columns}) {op} ({values})");
            }
        }
    });
}

/// COV-3: what is jumped over is judged by the filter, also where a query around reads fewer columns.
#[test]
fn jumps_read_what_their_filter_names() {
    simulate(17, || async {
        let db = open(&SimDisk::new(17)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY, a int, b int, c int, d int, pad text)").await;
        let rows = "INSERT INTO t SELECT g, g % 3, g % 4, g, -g, repeat('p', 60) FROM generate_series(1, 4000) g";
        one.value(rows).await;
        one.value("CREATE INDEX ON t (a, b, c, d)").await;
        one.value("ANALYZE t").await;
        let inner = "SELECT DISTINCT ON (b) b, c, d FROM t WHERE a = 1 ORDER BY b, c";
        let plan = one.run(&format!("EXPLAIN {inner}")).await.expect("a plan").join("\n");
        assert!(plan.contains("Skip Key: a"), "{plan}");
        assert_eq!(one.run(&format!("SELECT s.b FROM ({inner}) s")).await.expect("rows"), ["0", "1", "2", "3"]);
        assert_eq!(one.run("SELECT count(*) FROM t WHERE a = 1 AND b = 2").await.expect("a count"), ["333"]);
    });
}

#[test]
fn the_first_rows_behind_a_row_are_read_alone() {
    simulate(12, || async {
        let db = open(&SimDisk::new(12)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, pad text)").await;
        one.value("INSERT INTO t SELECT g, g % 10, g, repeat('p', 60) FROM generate_series(1, 5000) g").await;
        one.value("CREATE INDEX ON t (a, b)").await;
        one.value("ANALYZE t").await;
        for (order, op, expected) in
            [("a, b", ">", ["4,2004", "4,2014"]), ("a DESC, b DESC", "<", ["4,1984", "4,1974"])]
        {
            let query = format!("SELECT a || ',' || b FROM t WHERE (a, b) {op} (4, 1994) ORDER BY {order} LIMIT 2");
            let plan = one.run(&format!("EXPLAIN (ANALYZE, COSTS OFF) {query}")).await.expect("a plan").join("\n");
            assert!(
                plan.contains(&format!("Index Cond: (ROW(a, b) {op} ROW(4, 1994))")) && !plan.contains("Sort"),
                "{plan}"
            );
            assert_eq!(one.run(&query).await.expect("rows"), expected, "{query}");
        }
    });
}

#[test]
fn few_rows_in_the_order_of_the_key_are_found_along_it() {
    simulate(13, || async {
        let db = open(&SimDisk::new(13)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY, a int, b int, pad text)").await;
        one.value("INSERT INTO t SELECT g, g % 5, g, repeat('p', 60) FROM generate_series(1, 20000) g").await;
        one.value("CREATE INDEX ON t (a)").await;
        one.value("CREATE INDEX ON t (b) WHERE a = 3").await;
        one.value("ANALYZE t").await;
        let plan =
            one.run("EXPLAIN (COSTS OFF) SELECT id FROM t WHERE a < 3 ORDER BY id LIMIT 5").await.expect("a plan");
        assert!(plan.iter().all(|line| !line.contains("Sort")), "{plan:?}");
        // An index of few rows that has all columns is read instead of rows.
        let plan = one.run("EXPLAIN (COSTS OFF) SELECT sum(b) FROM t WHERE a = 3").await.expect("a plan").join("\n");
        assert!(plan.contains("Index Only Scan using t_b_idx"), "{plan}");
        // The order of an index saves the sort of all rows where its entries alone are read.
        let plan = one.run("EXPLAIN (COSTS OFF) SELECT a, id FROM t ORDER BY a, id").await.expect("a plan").join("\n");
        assert!(plan.contains("Index Only Scan using t_a_idx") && !plan.contains("Sort"), "{plan}");
    });
}

#[test]
fn short_functions_of_constants_are_called_when_a_statement_is_planned() {
    simulate(14, || async {
        let db = open(&SimDisk::new(14)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY, pad text)").await;
        let plan = async |one: &mut Connection, condition: &str| {
            one.run(&format!("EXPLAIN (COSTS OFF) SELECT id FROM t WHERE {condition}"))
                .await
                .expect("a plan")
                .join("\n")
        };
        for (condition, shown) in [
            ("pad = 'k-' || md5('7')", "(pad = 'k-8f14e45fceea167a5a36dedd4bea2543'::text)"),
            ("pad = upper(left('abc', 2))", "(pad = 'AB'::text)"),
            // What may take long waits for the execution.
            ("pad = repeat('x', 3)", "(pad = repeat('x'::text, 3))"),
        ] {
            let plan = plan(&mut one, condition).await;
            assert!(plan.contains(shown), "{condition}\n{plan}");
        }
    });
}

#[test]
fn a_snapshot_older_than_an_index_gets_the_same_rows_in_the_same_order() {
    simulate(18, || async {
        let db = open(&SimDisk::new(18)).await;
        let backends = Arc::new(Backends::default());
        let mut writer = connect(&db, &backends).await;
        let mut reader = connect(&db, &backends).await;
        writer.value("CREATE TABLE t (id int PRIMARY KEY, a int, b int, pad text)").await;
        writer
            .value("INSERT INTO t SELECT g, g % 7, g * 7919 % 1009, repeat('p', 60) FROM generate_series(1, 3000) g")
            .await;
        writer.value("ANALYZE t").await;
        let queries = [
            "SELECT DISTINCT ON (a) a || ',' || b FROM t ORDER BY a, b",
            "SELECT a || ',' || b FROM t ORDER BY a, b, id",
            "SELECT a || ',' || b FROM t WHERE (a, b) > (3, 900) ORDER BY a, b, id LIMIT 9",
            "SELECT a || ',' || b FROM t WHERE a BETWEEN 2 AND 4 AND b = 12 ORDER BY 1",
            "SELECT count(*) FROM t WHERE a = 5",
        ];
        reader.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        let mut before = Vec::new();
        for query in queries {
            before.push(reader.run(query).await.expect("rows"));
        }
        reader.value("COMMIT").await;
        reader.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        assert_eq!(reader.run("SELECT count(*) FROM t").await.expect("a count"), ["3000"]);
        writer.value("CREATE INDEX ON t (a, b)").await;
        for (query, before) in queries.iter().zip(&before) {
            let plan = reader.run(&format!("EXPLAIN {query}")).await.expect("a plan").join("\n");
            assert!(plan.contains("t_a_b_idx"), "{query}\n{plan}");
            assert_eq!(&reader.run(query).await.expect("rows"), before, "{query}");
        }
    });
}

/// RGS-1: many values, and patterns that begin with nothing, were read from the whole table in the order of its key.
#[test]
fn an_order_that_is_relied_on_is_kept_where_ranges_say_little() {
    simulate(15, || async {
        let db = open(&SimDisk::new(15)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY, a int, c text, pad text)").await;
        let rows = "INSERT INTO t SELECT g, g * 7919 % 1009, 'k' || g * 7919 % 1009, repeat('x', 200) FROM generate_series(1, 400) g";
        one.value(rows).await;
        one.value("CREATE INDEX ON t (a)").await;
        one.value("CREATE INDEX ON t (c)").await;
        one.value("ANALYZE t").await;
        one.value("SET plan_cache_mode = force_generic_plan").await;
        one.value("PREPARE alike(text) AS SELECT c FROM t WHERE c LIKE $1 ORDER BY c LIMIT 50").await;
        for (query, ordered) in [
            ("SELECT a FROM t WHERE a = ANY (ARRAY(SELECT generate_series(0, 500))) ORDER BY a", "a"),
            ("EXECUTE alike('%9')", "c"),
        ] {
            let found = one.run(query).await.expect("rows");
            assert!(found.len() > 20, "{query}: {found:?}");
            let sorted = match ordered {
                "a" => found.is_sorted_by_key(|a| a.parse::<i32>().expect("a number")),
                _ => found.is_sorted(),
            };
            assert!(sorted, "{query}: {found:?}");
        }
    });
}

/// A join of every kind; the conditions name no key if `plus` is `+ 0`.
fn joins(plus: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (l, r) in [("l.k", "r.k"), ("li.k", "ri.k")] {
        let (left, right) = (l.trim_end_matches(".k"), r.trim_end_matches(".k"));
        let on = format!("{l}{plus} = {r}");
        let pair = format!("concat_ws(',', {l}, {left}.n, '|', {r}, {right}.n)");
        // The index of ri finds the few rows that have both.
        let all = ["", " AND l.n <> r.n", " AND l.n = r.n"];
        for more in &all[..if l == "l.k" { 3 } else { 2 }] {
            let on = format!("{on}{}", more.replace("l.", &format!("{left}.")).replace("r.", &format!("{right}.")));
            for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN"] {
                out.push(format!("SELECT {pair} FROM {left} {kind} {right} ON {on}"));
            }
            let one = format!("concat_ws(',', {l}, {left}.n)");
            for kind in ["EXISTS", "NOT EXISTS"] {
                out.push(format!("SELECT {one} FROM {left} WHERE {kind} (SELECT FROM {right} WHERE {on})"));
            }
        }
        out.push(format!("SELECT {pair} FROM {left} FULL JOIN {right} ON {on}"));
        out.push(format!("SELECT {pair} FROM {left} FULL JOIN {right} ON {on} AND {left}.n = {right}.n"));
    }
    out
}

#[test]
fn a_merge_join_gives_what_a_hash_join_gives() {
    for (seed, work_mem) in [(1, "64MB"), (2, "64kB")] {
        simulate(seed, move || async move {
            let db = open(&SimDisk::new(seed)).await;
            let backends = Arc::new(Backends::default());
            let mut one = connect(&db, &backends).await;
            one.value(&format!("SET work_mem = '{work_mem}'")).await;
            let mut random = Rng::new(seed);
            for table in ["l", "r"] {
                one.value(&format!("CREATE TABLE {table} (k int, n int, PRIMARY KEY (k, n))")).await;
                one.value(&format!("CREATE TABLE {table}i (id int PRIMARY KEY, k int, n int)")).await;
                let (every, from) = (1 + random.below(4), random.below(30));
                one.value(&format!(
                    "INSERT INTO {table} SELECT g / 4 * {every} + {from}, g % 4 FROM generate_series(0, 199) g"
                ))
                .await;
                // One key has so many rows that they exceed a small work_mem; others have none or several, and some are null.
                let many = if table == "r" { 1500 } else { 3 };
                one.value(&format!(
                    "INSERT INTO {table}i SELECT g, CASE WHEN g < {many} THEN 50 ELSE nullif(g % 60, 13) END, g % 5 \
                     FROM generate_series(1, {many} + 150) g"
                ))
                .await;
                one.value(&format!("CREATE INDEX ON {table}i (k, n)")).await;
            }
            one.value("ANALYZE").await;
            for (with, without) in joins("").iter().zip(&joins(" + 0")) {
                let (merged, hashed) = both(&mut one, "Merge", with, without).await;
                assert_eq!(merged, hashed, "{with}");
            }
            // The order of the left side stays, and an order that it lacks is not taken for granted.
            let ordered = "SELECT l.k FROM l JOIN r ON l.k = r.k ORDER BY l.k, l.n";
            let plan = one.run(&format!("EXPLAIN {ordered} DESC")).await.expect("a plan").join("\n");
            assert!(plan.contains("Merge Join") && plan.contains("Sort Key"), "{plan}");
            let backward =
                "SELECT concat_ws(',', l.k, l.n, r.n) FROM l JOIN r ON l.k = r.k ORDER BY l.k DESC, l.n DESC, r.n";
            let forward =
                "SELECT concat_ws(',', l.k, l.n, r.n) FROM l JOIN r ON l.k + 0 = r.k ORDER BY l.k DESC, l.n DESC, r.n";
            assert_eq!(one.run(backward).await.expect("rows"), one.run(forward).await.expect("rows"));
        });
    }
}

#[test]
fn a_merge_join_sorts_where_an_index_is_younger_than_the_snapshot() {
    simulate(7, || async {
        let db = open(&SimDisk::new(7)).await;
        let backends = Arc::new(Backends::default());
        let (mut old, mut one) = (connect(&db, &backends).await, connect(&db, &backends).await);
        one.value("CREATE TABLE p (id int PRIMARY KEY, k int); CREATE TABLE q (k int PRIMARY KEY)").await;
        one.value("INSERT INTO p SELECT g, (g * 37) % 500 FROM generate_series(1, 900) g").await;
        one.value("INSERT INTO q SELECT g FROM generate_series(100, 400) g").await;
        old.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        assert_eq!(old.value("SELECT count(*) FROM q").await, "301");
        one.value("CREATE INDEX ON p (k)").await;
        one.value("ANALYZE").await;
        let join = "SELECT count(*) || ':' || sum(p.k) FROM p JOIN q ON p.k = q.k";
        let hashed = one.value("SELECT count(*) || ':' || sum(p.k) FROM p JOIN q ON p.k + 0 = q.k").await;
        let plan = one.run(&format!("EXPLAIN {join}")).await.expect("a plan").join("\n");
        assert!(plan.contains("Merge Join"), "{plan}");
        assert_eq!(one.value(join).await, hashed);
        assert_eq!(old.value(join).await, hashed);
        old.value("COMMIT").await;
    });
}

/// Pairs of queries: the first one reads rows by an index over many of them.
const BY_INDEX: [(&str, &str); 5] = [
    (
        "SELECT concat_ws(',', id, k, n) FROM t WHERE k BETWEEN 100 AND 1100",
        "SELECT concat_ws(',', id, k, n) FROM t WHERE k + 0 BETWEEN 100 AND 1100",
    ),
    (
        "SELECT concat_ws(',', id, pad) FROM t WHERE k BETWEEN 100 AND 1100 AND n < 3",
        "SELECT concat_ws(',', id, pad) FROM t WHERE k + 0 BETWEEN 100 AND 1100 AND n < 3",
    ),
    (
        "SELECT concat_ws(',', id, t) FROM t WHERE k > 8000 AND n > (SELECT avg(n) FROM t)",
        "SELECT concat_ws(',', id, t) FROM t WHERE k + 0 > 8000 AND n + 0.0 > (SELECT avg(n) FROM t)",
    ),
    (
        "SELECT concat_ws(',', id, pad) FROM t WHERE k > 8000 AND n IS DISTINCT FROM (SELECT n FROM t WHERE id = -1)",
        "SELECT concat_ws(',', id, pad) FROM t WHERE k + 0 > 8000 AND n IS NOT NULL",
    ),
    (
        "SELECT concat_ws(',', id, n) FROM t WHERE k < 1000 FOR UPDATE",
        "SELECT concat_ws(',', id, n) FROM t WHERE k + 0 < 1000",
    ),
];

#[test]
fn rows_that_an_index_gives_leaf_by_leaf_are_the_same_rows() {
    simulate(11, || async {
        let db = open(&SimDisk::new(11)).await;
        let backends = Arc::new(Backends::default());
        let (mut one, mut other) = (connect(&db, &backends).await, connect(&db, &backends).await);
        one.value("CREATE TABLE t (id int PRIMARY KEY, k int, n int NOT NULL, pad text)").await;
        one.value(
            "INSERT INTO t SELECT g, g * 1999 % 9001, g % 7, CASE WHEN g % 500 = 3 THEN repeat('long', 2000) ELSE repeat('p', g % 40) END \
             FROM generate_series(0, 8999) g",
        )
        .await;
        one.value("CREATE INDEX ON t (k)").await;
        one.value("ANALYZE t").await;
        one.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        let mut before = Vec::new();
        for round in ["settled", "changed by itself", "changed by others"] {
            for (at, (with, without)) in BY_INDEX.iter().enumerate() {
                let (found, plain) = both(&mut one, "Index Scan", with, without).await;
                assert_eq!(found, plain, "{round}: {with}");
                assert!(found.len() > 100, "{round}: {with}");
                match round {
                    "settled" => before.push(found),
                    "changed by itself" => before[at] = found,
                    // A snapshot stays what it is.
                    _ => assert_eq!(found, before[at], "{round}: {with}"),
                }
            }
            match round {
                "settled" => {
                    one.value("UPDATE t SET k = k + 1, pad = 'own' WHERE id % 40 = 1").await;
                    one.value("DELETE FROM t WHERE id % 50 = 2").await;
                }
                "changed by itself" => {
                    other
                        .value(
                            "UPDATE t SET n = n + 1 WHERE id % 31 = 3 AND id % 40 <> 1 AND id % 50 <> 2 AND k >= 1500",
                        )
                        .await;
                    other.value("INSERT INTO t SELECT g, g, 1, 'new' FROM generate_series(10000, 10500) g").await;
                }
                _ => {}
            }
        }
        one.value("COMMIT").await;
        let failed = one.run("SELECT id FROM t WHERE k > 8000 AND n > (SELECT n FROM t WHERE id < 5)").await;
        assert!(failed.is_err(), "a subquery of several rows");
    });
}

#[test]
fn a_walk_backward_gives_the_rows_of_each_leaf_backward() {
    // Rows that the view sees as they stand in their leaf are given from there; others are copied.
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let backends = Arc::new(Backends::default());
        let (mut one, mut other) = (connect(&db, &backends).await, connect(&db, &backends).await);
        one.value("CREATE TABLE walked (id int PRIMARY KEY, t text)").await;
        one.value("INSERT INTO walked SELECT g, 't' || g FROM generate_series(1, 900) g").await;
        for round in 0..2 {
            for (condition, from, to) in [("true", 1, 900), ("id BETWEEN 17 AND 61", 17, 61), ("id > 880", 881, 900)] {
                for prepared in ["", "id + 0 > 0 AND "] {
                    let query = format!("SELECT id FROM walked WHERE {prepared}{condition} ORDER BY id");
                    let ids: Vec<String> = (from..=to).map(|id| id.to_string()).collect();
                    assert_eq!(one.run(&query).await.expect("rows"), ids, "round {round}: {query}");
                    let backward: Vec<String> = ids.into_iter().rev().collect();
                    let query = format!("{query} DESC");
                    assert_eq!(one.run(&query).await.expect("rows"), backward, "round {round}: {query}");
                }
            }
            // In the second round the rows of some leaves are not those that this snapshot sees.
            one.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
            one.value("SELECT count(*) FROM walked").await;
            other.value("DELETE FROM walked WHERE id % 5 = 1").await;
        }
    });
}
