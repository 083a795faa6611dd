//! Semi joins that are carried out as inner joins, because the right side is unique or made distinct (SEM-2 to SEM-4), and how many rows semi
//! and anti joins are expected to give (SEM-1).

use std::sync::Arc;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// `a` is large and has indexes; `s` is small, with each value several times and nulls; `u` has no value twice.
async fn fill(session: &mut Connection) {
    session
        .value("CREATE TABLE a (id int PRIMARY KEY, k int, big bigint, n numeric, c char(6), t text, f float8)")
        .await;
    let rows = "INSERT INTO a SELECT g, nullif(g % 2500, 7), g % 1000, g / 10.0, 'c' || g % 400, 't' || g % 700, (g - 20) / 4.0 FROM generate_series(1, 5000) g";
    session.value(rows).await;
    for column in ["k", "big", "n", "c", "t", "f"] {
        session.value(&format!("CREATE INDEX a_{column} ON a ({column})")).await;
    }
    session.value("CREATE TABLE s (x int, y int, n numeric, c char(9), v varchar(20), f float8)").await;
    let rows = "INSERT INTO s SELECT nullif(g % 20 * 100, 300), g % 10, CASE g % 2 WHEN 0 THEN (g % 9) || '.0' ELSE (g % 9) || '.00' END::numeric, 'c' || g % 5, 't' || g % 5, CASE g % 3 WHEN 0 THEN '-0' ELSE '0' END::float8 FROM generate_series(1, 60) g";
    session.value(rows).await;
    session.value("CREATE TABLE u (x int PRIMARY KEY, z int UNIQUE DEFERRABLE, w int, p int)").await;
    session.value("CREATE UNIQUE INDEX u_w ON u (w) WHERE p = 1").await;
    session.value("INSERT INTO u SELECT g * 50, g * 50, g * 50, 1 FROM generate_series(1, 40) g").await;
    session.value("INSERT INTO u SELECT g * 50 + 1, g * 50 + 1, g * 50, 2 FROM generate_series(1, 40) g").await;
    session.value("ANALYZE").await;
}

async fn sorted(session: &mut Connection, query: &str) -> Vec<String> {
    let mut rows = session.run(query).await.unwrap_or_else(|e| panic!("{query}: {e:?}"));
    rows.sort_unstable();
    rows
}

/// A query, what its plan has, and what it does not have.
const PLANS: [(&str, &[&str], &[&str]); 13] = [
    (
        "SELECT sum(id) FROM a WHERE k IN (SELECT x FROM s WHERE y < 5)",
        &["Nested Loop\n", "HashAggregate", "Group Key: s.x", "using a_k on a", "Index Cond: (k = s.x)"],
        &["Semi", "Subquery Scan"],
    ),
    ("SELECT sum(id) FROM a WHERE k = ANY (SELECT x FROM s)", &["HashAggregate", "Index Cond: (k = s.x)"], &["Semi"]),
    ("SELECT sum(id) FROM a WHERE EXISTS (SELECT FROM s WHERE s.x = a.k)", &["Group Key: s.x", "a_k"], &["Semi"]),
    ("SELECT sum(id) FROM a WHERE big IN (SELECT x FROM s)", &["Group Key: s.x", "a_big"], &["Semi"]),
    (
        "SELECT sum(id) FROM a WHERE (k, big) IN (SELECT x, y FROM s)",
        &["Group Key: s.x, s.y", "using a_"],
        &["Semi", "SubPlan"],
    ),
    // Unique: by a key, by DISTINCT, by GROUP BY.
    ("SELECT sum(id) FROM a WHERE k IN (SELECT x FROM u)", &["Index Cond: (k = u.x)"], &["Semi", "HashAggregate"]),
    (
        "SELECT sum(id) FROM a WHERE k IN (SELECT y * 9 FROM s GROUP BY y * 9)",
        &["Nested Loop\n", "Group Key: (y * 9)"],
        &["Semi"],
    ),
    ("SELECT sum(id) FROM a WHERE k IN (SELECT DISTINCT x FROM s)", &["Nested Loop\n", "Group Key"], &["Semi"]),
    // Neither a constraint that may be broken for a while nor an index of a part of the rows says that values are unique.
    ("SELECT sum(id) FROM a WHERE k IN (SELECT z FROM u)", &["Group Key: u.z"], &["Semi"]),
    ("SELECT sum(id) FROM a WHERE k IN (SELECT w FROM u)", &["Group Key: u.w"], &["Semi"]),
    // Another comparison than an equality can't be made of distinct rows.
    ("SELECT sum(id) FROM a WHERE EXISTS (SELECT FROM s WHERE s.x = a.k AND s.y <> a.id)", &["Semi Join"], &[]),
    // Of a few rows each looks for the other side.
    ("SELECT * FROM s WHERE y = 3 AND EXISTS (SELECT FROM a WHERE a.k = s.x)", &["Semi Join", "a_k"], &["Group"]),
    // The small side leads through a third table.
    (
        "SELECT count(*) FROM a JOIN u ON u.x = a.k WHERE a.big IN (SELECT x FROM s WHERE y = 1)",
        &["HashAggregate", "Index Cond: (big = s.x)"],
        &["Semi"],
    ),
];

#[test]
fn a_small_side_leads_to_the_rows_of_a_large_one() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut session).await;
        let mut wrong = String::new();
        for (query, with, without) in PLANS {
            let plan = session.plan(query).await;
            let has = |word: &&str| plan.contains(*word);
            if !with.iter().all(has) || without.iter().any(has) {
                wrong += &format!("{query}\n{plan}\n");
            }
        }
        assert!(wrong.is_empty(), "SEM-2:\n{wrong}");
    });
}

/// A condition with IN or EXISTS, and the number of rows that must not be 0 for it.
const CONDITIONS: [(&str, &str); 19] = [
    ("a.k IN (SELECT x FROM s WHERE y < 5)", "SELECT count(*) FROM s WHERE y < 5 AND s.x = a.k"),
    ("a.big IN (SELECT x FROM s)", "SELECT count(*) FROM s WHERE s.x = a.big"),
    ("a.n IN (SELECT n FROM s)", "SELECT count(*) FROM s WHERE s.n = a.n"),
    ("a.n IN (SELECT x FROM s)", "SELECT count(*) FROM s WHERE s.x = a.n"),
    ("a.id IN (SELECT n FROM s)", "SELECT count(*) FROM s WHERE s.n = a.id"),
    ("a.c IN (SELECT c FROM s)", "SELECT count(*) FROM s WHERE s.c = a.c"),
    ("a.t IN (SELECT v FROM s)", "SELECT count(*) FROM s WHERE s.v = a.t"),
    ("a.t IN (SELECT replace(c, 'c', 't') FROM s)", "SELECT count(*) FROM s WHERE replace(s.c, 'c', 't') = a.t"),
    ("a.f IN (SELECT f FROM s)", "SELECT count(*) FROM s WHERE s.f = a.f"),
    ("-a.f IN (SELECT f FROM s)", "SELECT count(*) FROM s WHERE s.f = -a.f"),
    (
        "EXISTS (SELECT FROM s WHERE s.x = a.k AND s.y = a.id % 10)",
        "SELECT count(*) FROM s WHERE s.x = a.k AND s.y = a.id % 10",
    ),
    (
        "EXISTS (SELECT FROM s JOIN u ON u.x = s.x WHERE s.x = a.k)",
        "SELECT count(*) FROM s JOIN u ON u.x = s.x WHERE s.x = a.k",
    ),
    (
        "EXISTS (SELECT FROM u WHERE u.x = a.k AND u.p > a.id % 2)",
        "SELECT count(*) FROM u WHERE u.x = a.k AND u.p > a.id % 2",
    ),
    ("(a.k, a.id % 10) IN (SELECT x, y FROM s)", "SELECT count(*) FROM s WHERE s.x = a.k AND s.y = a.id % 10"),
    ("(a.k, a.id % 3.0) IN (SELECT x, p FROM u)", "SELECT count(*) FROM u WHERE u.x = a.k AND u.p = a.id % 3.0"),
    ("a.k IN (SELECT w FROM u)", "SELECT count(*) FROM u WHERE u.w = a.k"),
    ("a.k IN (SELECT z FROM u)", "SELECT count(*) FROM u WHERE u.z = a.k"),
    (
        "a.k IN (SELECT x FROM u WHERE p IN (SELECT y FROM s WHERE y < 2))",
        "SELECT count(*) FROM u WHERE u.x = a.k AND u.p = 1",
    ),
    (
        "a.k IN (SELECT x FROM s UNION SELECT x FROM u)",
        "SELECT count(*) FROM (SELECT x FROM s UNION SELECT x FROM u) v WHERE v.x = a.k",
    ),
];

#[test]
fn each_row_comes_once_however_often_it_is_met() {
    simulate(2, || async {
        let db = open(&SimDisk::new(2)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut session).await;
        for (condition, count) in CONDITIONS {
            let query = format!("SELECT a.id FROM a WHERE {condition}");
            let mut rows = sorted(&mut session, &query).await;
            // Counting is slow: for a part of the rows, which the query itself does not know of.
            rows.retain(|id| id.parse::<u32>().is_ok_and(|id| id <= 1200));
            let expected = format!("SELECT a.id FROM a WHERE id <= 1200 AND ({count}) > 0");
            let expected = sorted(&mut session, &expected).await;
            assert!(!expected.is_empty(), "{condition}");
            assert_eq!(rows, expected, "{condition}\n{}", session.plan(&query).await);
            // With a third table beside it, whose order is searched with the others.
            let beside = format!("SELECT a.id FROM a, u WHERE u.x = a.id AND {condition}");
            let counted = format!("SELECT a.id FROM a, u WHERE u.x = a.id AND ({count}) > 0");
            assert_eq!(sorted(&mut session, &beside).await, sorted(&mut session, &counted).await, "{beside}");
        }
    });
}

/// The rows that EXPLAIN expects of the first node whose line has a word.
fn expected_rows(plan: &str, word: &str) -> f64 {
    let line = plan.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}\n{plan}"));
    let rows = line.split("rows=").nth(1).and_then(|rest| rest.split(' ').next());
    rows.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn semi_and_anti_joins_are_estimated_by_different_values() {
    simulate(3, || async {
        let db = open(&SimDisk::new(3)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut session).await;
        // `big` has 1000 values, `k` 2500, `x` 19 and nulls; without an index nothing but a hash is left.
        session.value("CREATE TABLE b AS SELECT id, k, big FROM a").await;
        session.value("ANALYZE b").await;
        for (query, word, about) in [
            // An inner join with the different values of `x`, of which 13 are expected among 60 rows.
            ("SELECT id FROM b WHERE k IN (SELECT x FROM s)", "Join", 27.0),
            ("SELECT id FROM b WHERE EXISTS (SELECT FROM s WHERE s.x = b.big AND s.y <> b.id)", "Semi Join", 95.0),
            ("SELECT id FROM b WHERE NOT EXISTS (SELECT FROM a WHERE a.big = b.k)", "Anti Join", 3000.0),
            ("SELECT id FROM b WHERE NOT EXISTS (SELECT FROM s WHERE s.x = b.big)", "Anti Join", 4905.0),
        ] {
            let plan = session.explained("COSTS on", query).await;
            let rows = expected_rows(&plan, word);
            assert!((about * 0.8..about * 1.2).contains(&rows), "SEM-1: {query}: {rows}, not about {about}\n{plan}");
        }
    });
}

/// SEM-2: what a unique index says of the rows now it does not say of those that an older snapshot sees.
#[test]
fn a_snapshot_older_than_a_unique_index_may_see_two_rows_with_one_value() {
    simulate(7, || async {
        let db = open(&SimDisk::new(7)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        let mut reader = connect(&db, &backends).await;
        one.value("CREATE TABLE d (id int PRIMARY KEY, x int)").await;
        one.value("INSERT INTO d VALUES (1, 5), (2, 5), (3, 6)").await;
        one.value("CREATE TABLE e (k int)").await;
        one.value("INSERT INTO e VALUES (5), (7)").await;
        reader.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        assert_eq!(reader.run("SELECT count(*) FROM e").await.expect("a count"), ["2"]);
        one.value("DELETE FROM d WHERE id = 2").await;
        one.value("CREATE UNIQUE INDEX ON d (x)").await;
        for query in [
            "SELECT count(*) FROM e WHERE k IN (SELECT x FROM d)",
            "SELECT count(*) FROM e WHERE EXISTS (SELECT FROM d WHERE x = k)",
        ] {
            assert_eq!(reader.run(query).await.expect("a count"), ["1"], "{query}");
        }
        reader.value("COMMIT").await;
    });
}

/// PUL-5, PUL-6: conditions that become joins though the query around takes in a query of FROM, or though they have a LIMIT and the like; each with a
/// form of it that stays a subquery.
const JOINED: [(&str, &str); 12] = [
    ("FROM (SELECT k, id FROM a) q WHERE EXISTS (SELECT 1 FROM s WHERE s.x = q.k)", "s.x = q.k OFFSET 0"),
    (
        "FROM (SELECT k + 1 AS k, id FROM a WHERE id > 9) q WHERE NOT EXISTS (SELECT FROM s WHERE s.x = q.k AND s.y < q.id)",
        "q.id OFFSET 0",
    ),
    (
        "FROM v q WHERE EXISTS (SELECT 1 FROM s JOIN u ON u.x = s.x WHERE s.x = q.k AND u.z > q.id - 4000)",
        "4000 OFFSET 0",
    ),
    ("FROM v q JOIN u ON u.x = q.k WHERE EXISTS (SELECT 1 FROM s WHERE s.x = q.k AND s.y = u.w % 10)", "10 OFFSET 0"),
    (
        "FROM v q LEFT JOIN u ON u.x = q.k WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.x = q.k AND s.y < coalesce(u.w, 3))",
        "3) OFFSET 0",
    ),
    ("FROM (SELECT k, id FROM a) q WHERE q.k IN (SELECT x FROM s WHERE s.y < q.id)", "q.id OFFSET 0"),
    ("FROM a q WHERE EXISTS (SELECT 1 FROM s WHERE s.x = q.k LIMIT 1)", "q.k LIMIT 1 OFFSET 0"),
    ("FROM a q WHERE EXISTS (SELECT DISTINCT y FROM s WHERE s.x = q.k ORDER BY y)", "y OFFSET 0"),
    ("FROM v q WHERE NOT EXISTS (SELECT y FROM s WHERE s.x = q.k GROUP BY y ORDER BY 1 LIMIT 3)", "3 OFFSET 0"),
    (
        "FROM a q WHERE EXISTS (SELECT * FROM (SELECT x, y FROM s) r WHERE r.x = q.k ORDER BY y LIMIT ALL)",
        "ALL OFFSET 0",
    ),
    (
        "FROM (SELECT k, id FROM (SELECT k, id FROM a) p) q WHERE EXISTS (SELECT 1 FROM s WHERE s.x = q.k)",
        "q.k OFFSET 0",
    ),
    (
        "FROM (SELECT v.k, v.id FROM v JOIN u ON u.x = v.k) q WHERE EXISTS (SELECT 1 FROM s WHERE s.x = q.k AND s.y <> q.id % 10)",
        "10 OFFSET 0",
    ),
];

#[test]
fn views_and_limits_do_not_keep_a_condition_from_being_a_join() {
    simulate(31, || async {
        let db = open(&SimDisk::new(31)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        fill(&mut one).await;
        one.value("CREATE VIEW v AS SELECT k, id, t FROM a WHERE id % 3 > 0").await;
        for (text, kept) in JOINED {
            let query = format!("SELECT count(*) || ' ' || coalesce(sum(q.id), 0) {text}");
            let joined = one.plan(&query).await;
            assert!(!joined.contains("SubPlan"), "{query}\n{joined}");
            // OFFSET keeps it a subquery.
            let end = kept.trim_end_matches(" OFFSET 0");
            let at = query.rfind(end).unwrap_or_else(|| panic!("{end} in {query}"));
            let plain = format!("{}{kept}{}", &query[..at], &query[at + end.len()..]);
            let planned = one.plan(&plain).await;
            assert!(planned.contains("SubPlan"), "{plain}\n{planned}");
            assert_eq!(one.value(&query).await, one.value(&plain).await, "{query}");
        }
        // What gives a row in any case, or none, is as it was.
        for (condition, count) in [
            ("EXISTS (SELECT count(*) FROM s WHERE s.x = q.k)", "5000"),
            ("EXISTS (SELECT 1 FROM s WHERE s.x = q.k LIMIT 0)", "0"),
            ("EXISTS (SELECT y FROM s WHERE s.x = q.k GROUP BY y HAVING count(*) > 1000)", "0"),
        ] {
            assert_eq!(one.value(&format!("SELECT count(*) FROM a q WHERE {condition}")).await, count, "{condition}");
        }
    });
}

/// A nested loop reads its right side by an index in the memory of one walk, of values with rows on many leaves, and of ones without any. Walks end early
/// where one row decides, when more have been read.
#[test]
fn a_walk_that_begins_again_gives_what_a_new_one_would() {
    simulate(34, || async {
        let db = open(&SimDisk::new(34)).await;
        let backends = Arc::new(Backends::default());
        let mut session = connect(&db, &backends).await;
        session.value("CREATE TABLE b (id int PRIMARY KEY, v int, pad text)").await;
        session.value("INSERT INTO b SELECT g, g / 400, repeat('x', 50) FROM generate_series(1, 40000) g").await;
        session.value("CREATE INDEX b_v ON b (v)").await;
        session.value("CREATE TABLE r (n int, v int)").await;
        session
            .value("INSERT INTO r VALUES (1, 0), (2, 300), (3, 1), (4, NULL), (5, 0), (6, 700), (7, 2), (8, 2)")
            .await;
        session.value("ANALYZE").await;
        session.value("SET enable_hashjoin = off").await;
        session.value("SET enable_mergejoin = off").await;
        for query in [
            "SELECT concat_ws(',', r.n, count(*), sum(b.id + length(b.pad))) FROM r JOIN b ON KEY = r.v GROUP BY r.n",
            "SELECT concat_ws(',', r.n, count(b.id), sum(b.id + length(b.pad))) FROM r LEFT JOIN b ON KEY = r.v AND b.id % 5 = 0 GROUP BY r.n",
            "SELECT n::text FROM r WHERE EXISTS (SELECT FROM b WHERE KEY = r.v AND b.id % 2 = 0)",
            "SELECT n::text FROM r WHERE EXISTS (SELECT FROM b WHERE KEY = r.v AND b.id % 400 > 250 AND b.pad > 'x')",
            "SELECT n::text FROM r WHERE NOT EXISTS (SELECT FROM b WHERE KEY = r.v AND b.id % 400 > 250 AND b.pad > 'x')",
            "SELECT n::text FROM r WHERE NOT EXISTS (SELECT FROM b WHERE KEY = r.v AND b.id % 400 = 399)",
        ] {
            let (by_index, plain) = (query.replace("KEY", "b.v"), query.replace("KEY", "b.v + 0"));
            let plan = session.plan(&by_index).await;
            assert!(plan.contains("Nested Loop") && plan.contains("Index Cond: (v = r.v)"), "{by_index}\n{plan}");
            let plan = session.plan(&plain).await;
            assert!(!plan.contains("Index Cond"), "{plain}\n{plan}");
            assert_eq!(sorted(&mut session, &by_index).await, sorted(&mut session, &plain).await, "AGN-1: {query}");
        }
    });
}
