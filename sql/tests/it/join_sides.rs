//! Hash joins whose table has the rows of the left side, what a hash join carries (PLN-9), and groups whose rows come one after the other: each
//! gives what the same query gives in another way.

use std::sync::Arc;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// `few` has rows without a key, with keys that `many` lacks, and several with one key; `many` likewise.
async fn fill(session: &mut Connection) {
    session.value("CREATE TABLE few (id int PRIMARY KEY, k int, t text)").await;
    session.value("CREATE TABLE many (id int PRIMARY KEY, k int, v int, pad text)").await;
    session.value("INSERT INTO few SELECT g, nullif(g % 23, 5), 't' || g % 7 FROM generate_series(1, 40) g").await;
    let rows = "INSERT INTO many SELECT g, nullif(g % 19, 3), g % 11, 'p' || g % 5 FROM generate_series(1, 1200) g";
    session.value(rows).await;
    session.value("ANALYZE").await;
}

async fn sorted(session: &mut Connection, query: &str) -> Vec<String> {
    let mut rows = session.run(query).await.unwrap_or_else(|e| panic!("{query}: {e:?}"));
    rows.sort_unstable();
    rows
}

/// A join, what its plan says, and what an equality of keys stands for in it.
const JOINS: [(&str, &str); 8] = [
    ("SELECT concat_ws(',', s.id, b.id) FROM few s JOIN many b ON {}", "Hash Join"),
    (
        "SELECT concat_ws(',', s.id, b.id, b.v) FROM few s JOIN many b ON {} AND b.v > s.id WHERE b.pad <> 'p3'",
        "Hash Join",
    ),
    ("SELECT concat_ws(',', s.id, b.id) FROM few s LEFT JOIN many b ON {}", "Hash Right Join"),
    (
        "SELECT concat_ws(',', s.t, coalesce(b.v, -1)) FROM few s LEFT JOIN many b ON {} AND b.v < s.id % 5",
        "Hash Right Join",
    ),
    ("SELECT s.t FROM few s LEFT JOIN many b ON {} AND b.pad <> 'p3' WHERE s.id > 3", "Hash Right Join"),
    ("SELECT s.id FROM few s WHERE EXISTS (SELECT 1 FROM many b WHERE {} AND b.v + s.id > 45)", "Hash Right Semi Join"),
    (
        "SELECT s.id FROM few s WHERE NOT EXISTS (SELECT 1 FROM many b WHERE {} AND b.v + s.id > 45)",
        "Hash Right Anti Join",
    ),
    ("SELECT count(*) FROM few s WHERE NOT EXISTS (SELECT 1 FROM many b WHERE {})", "Hash Right Anti Join"),
];

#[test]
fn a_table_of_the_left_side_gives_what_a_nested_loop_gives() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut session).await;
        for (query, word) in JOINS {
            let hashed = query.replace("{}", "s.k = b.k");
            let plan = session.run(&format!("EXPLAIN {hashed}")).await.expect("a plan").join("\n");
            assert!(plan.contains(word) && plan.contains("Hash Cond: (b.k = s.k)"), "{hashed}\n{plan}");
            let looped = query.replace("{}", "s.k <= b.k AND s.k >= b.k");
            let plan = session.run(&format!("EXPLAIN {looped}")).await.expect("a plan").join("\n");
            assert!(!plan.contains("Hash Cond"), "{looped}\n{plan}");
            let (hashed_rows, looped_rows) = (sorted(&mut session, &hashed).await, sorted(&mut session, &looped).await);
            assert!(!looped_rows.is_empty(), "{looped}");
            assert_eq!(hashed_rows, looped_rows, "{hashed}");
        }
    });
}

#[test]
fn a_table_of_the_left_side_that_does_not_fit_gives_the_same() {
    simulate(2, || async {
        let db = open(&SimDisk::new(2)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut session).await;
        session.value("INSERT INTO few SELECT g, g % 200, repeat('x', 300) || g FROM generate_series(41, 320) g").await;
        session.value("ANALYZE").await;
        for (query, word) in JOINS {
            let query = query.replace("{}", "s.k = b.k").replace("s.id,", "s.id, s.t,");
            let plan = session.run(&format!("EXPLAIN {query}")).await.expect("a plan").join("\n");
            assert!(plan.contains(word) && plan.contains("Hash Cond: (b.k = s.k)"), "{query}\n{plan}");
            session.value("SET work_mem = '16MB'").await;
            let fits = sorted(&mut session, &query).await;
            session.value("SET work_mem = '64kB'").await;
            assert_eq!(fits, sorted(&mut session, &query).await, "{query}");
        }
    });
}

/// Groups by the leading columns of the key, and the same by expressions of which nothing is known.
const GROUPS: [(&str, &str); 6] = [
    (
        "SELECT concat_ws(',', a, count(*), sum(v)) FROM g GROUP BY a",
        "SELECT concat_ws(',', a + 0, count(*), sum(v)) FROM g GROUP BY a + 0",
    ),
    (
        "SELECT concat_ws(',', a, count(*)) FROM g GROUP BY a HAVING sum(v) > 40",
        "SELECT concat_ws(',', a + 0, count(*)) FROM g GROUP BY a + 0 HAVING sum(v) > 40",
    ),
    (
        "SELECT concat_ws(',', b, a, string_agg(t, '-' ORDER BY v DESC, c)) FROM g GROUP BY b, a",
        "SELECT concat_ws(',', b + 0, a + 0, string_agg(t, '-' ORDER BY v DESC, c)) FROM g GROUP BY b + 0, a + 0",
    ),
    (
        "SELECT concat_ws(',', a, count(DISTINCT t)) FROM g WHERE v % 3 = 1 GROUP BY a ORDER BY count(DISTINCT t) DESC, a LIMIT 50",
        "SELECT concat_ws(',', a + 0, count(DISTINCT t)) FROM g WHERE v % 3 = 1 GROUP BY a + 0 ORDER BY count(DISTINCT t) DESC, a + 0 LIMIT 50",
    ),
    (
        "SELECT concat_ws(',', b, max(v)) FROM g WHERE a = 7 GROUP BY b",
        "SELECT concat_ws(',', b + 0, max(v)) FROM g WHERE a = 7 GROUP BY b + 0",
    ),
    (
        "SELECT concat_ws(',', a, sum(v), rank() OVER (ORDER BY sum(v), a)) FROM g GROUP BY a",
        "SELECT concat_ws(',', a + 0, sum(v), rank() OVER (ORDER BY sum(v), a + 0)) FROM g GROUP BY a + 0",
    ),
];

#[test]
fn groups_that_come_one_after_the_other_are_the_same_groups() {
    simulate(3, || async {
        let db = open(&SimDisk::new(3)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        session.value("CREATE TABLE g (a int, b int, c int, v int, t text, PRIMARY KEY (a, b, c))").await;
        session
            .value("INSERT INTO g SELECT i % 211, i % 3, i, i % 13, 't' || i % 4 FROM generate_series(1, 1500) i")
            .await;
        session.value("ANALYZE g").await;
        for (ordered, plain) in GROUPS {
            let plan = session.run(&format!("EXPLAIN {ordered}")).await.expect("a plan").join("\n");
            assert!(plan.contains("GroupAggregate"), "{ordered}\n{plan}");
            let plan = session.run(&format!("EXPLAIN {plain}")).await.expect("a plan").join("\n");
            assert!(plan.contains("HashAggregate"), "{plain}\n{plan}");
            let (of_order, of_hash) = (sorted(&mut session, ordered).await, sorted(&mut session, plain).await);
            assert!(of_hash.len() > 1, "{plain}");
            assert_eq!(of_order, of_hash, "{ordered}");
        }
        // A group's row is kept where something above names it.
        let rows =
            session.run("SELECT concat_ws(',', a, b, c, t) FROM g GROUP BY a, b, c HAVING a = 5 AND v > 3").await;
        let plain = session.run("SELECT concat_ws(',', a, b, c, t) FROM g WHERE a = 5 AND v > 3").await;
        assert_eq!(rows.expect("rows"), plain.expect("rows"));
        // Spilled or not, in memory or not: the groups of a hash are the same too.
        session.value("SET work_mem = '64kB'").await;
        for (ordered, plain) in &GROUPS[..3] {
            assert_eq!(sorted(&mut session, ordered).await, sorted(&mut session, plain).await, "{ordered}");
        }
    });
}

/// Queries that are taken into the level around them, whose own order of tables is not that of the text and whose condition has a subquery that
/// names one of them; the last `{}` keeps the query apart.
const TAKEN_IN: [&str; 3] = [
    "SELECT x.id FROM few x WHERE x.k IN (SELECT m.v FROM many m, few f WHERE m.k = f.id AND f.t = 't1' AND m.v > (SELECT avg(b.v) FROM many b WHERE b.id = m.id - 1) {})",
    "SELECT m.id FROM few x, (SELECT m.* FROM many m, few f WHERE m.k = f.id AND f.t = 't1' AND m.v > (SELECT avg(b.v) FROM many b WHERE b.id = m.id - 1) {}) m WHERE m.v = x.id AND x.t = 't2'",
    "SELECT x.id FROM few x WHERE x.k IN (SELECT m.v FROM many m, few f WHERE m.k = f.id AND f.t = 't1' AND EXISTS (SELECT 1 FROM many b WHERE b.id = m.id - 1 AND b.v < (SELECT max(c.v) FROM many c WHERE c.id = m.id + b.v)) {})",
];

#[test]
fn a_query_that_is_taken_in_keeps_what_its_subqueries_name() {
    simulate(5, || async {
        let db = open(&SimDisk::new(5)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        fill(&mut session).await;
        session.value("CREATE INDEX ON many (k)").await;
        session.value("ANALYZE many").await;
        for query in TAKEN_IN {
            let (taken, apart) = (query.replace("{}", ""), query.replace("{}", "OFFSET 0"));
            let (rows, expected) = (sorted(&mut session, &taken).await, sorted(&mut session, &apart).await);
            assert!(!expected.is_empty(), "{apart}");
            assert_eq!(rows, expected, "PUL-4: {taken}");
        }
    });
}
