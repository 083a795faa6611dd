//! Two indexes together (SIV-1, RGS-2), unions of ranges that are read ahead, and walks in the order of an index that look their rows up ahead: each gives
//! what the same query gives whose expressions no index has, in every snapshot and beside the transaction's own changes.

use std::sync::Arc;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::testkit::Rng;
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// Words of a plan, and a query with `{}` in the place of what keeps a column from being one of an index.
const QUERIES: [(&str, &str); 12] = [
    ("using t_b, t_a on", "SELECT concat_ws(',', id, a, b, pad) FROM t WHERE a{} = 3 AND b{} BETWEEN 10 AND 14"),
    ("using t_b, t_a on", "SELECT concat_ws(',', id, a, b) FROM t WHERE a{} IN (3, 5) AND b{} < 4 AND id % 3 <> 1"),
    ("using t_b, t_a on", "SELECT count(*) FROM t WHERE b{} > 53 AND a{} = 2"),
    ("using t_c, t_a on", "SELECT concat_ws(',', id, c) FROM t WHERE a{} IN (3, 5, 7, 9) AND c{t} LIKE 'k1%'"),
    ("using t_b, t_a on", "SELECT concat_ws(',', id, a) FROM t WHERE a{} = 4 AND b{} IN (5, 6, 7, 8)"),
    ("using t_a, t_b on", "SELECT concat_ws(',', id, a, b, c) FROM t WHERE a{} = 6 OR b{} = 9"),
    ("using t_b on", "SELECT concat_ws(',', id, a, b, c) FROM t WHERE b{} IN (1, 4, 9) OR b{} BETWEEN 20 AND 21"),
    ("using t_c on", "SELECT concat_ws(',', id, a, c) FROM t WHERE c{t} LIKE 'k12%'"),
    ("using t_c on", "SELECT count(*) FROM t WHERE c{t} LIKE 'k3%'"),
    ("using t_c on", "SELECT concat_ws(',', id, c) FROM t WHERE c{t} LIKE 'k1_%'"),
    ("using t_c on", "SELECT concat_ws(',', id, c) FROM t WHERE c{t} LIKE 'k1%2%'"),
    ("using t_b on", "SELECT sum(id) FROM t WHERE b{} BETWEEN 17 AND 19"),
];

fn with(query: &str) -> String {
    query.replace("{}", "").replace("{t}", "")
}

fn without(query: &str) -> String {
    query.replace("{}", " + 0").replace("{t}", " || ''")
}

async fn sorted(reader: &mut Connection, query: &str) -> Vec<String> {
    let mut rows = reader.run(query).await.unwrap_or_else(|e| panic!("{query}: {e:?}"));
    rows.sort_unstable();
    rows
}

async fn compare(reader: &mut Connection, when: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for (_, query) in QUERIES {
        let by_index = sorted(reader, &with(query)).await;
        assert_eq!(by_index, sorted(reader, &without(query)).await, "{when}: {query}");
        all.push(by_index);
    }
    // In the order of an index, whose rows are found ahead: a filter lets few of them pass.
    for (order, condition) in [("b, id", "a + 0 = 3"), ("b DESC, id DESC", "true"), ("c, id", "b % 7 = 2")] {
        let query = |plus: &str, rows: u32| {
            let order = if plus.is_empty() { order.to_owned() } else { order.replacen(',', &format!("{plus},"), 1) };
            format!("SELECT concat_ws(',', b, c, id, pad) FROM t WHERE {condition} ORDER BY {order} LIMIT {rows}")
        };
        let plus = if order.starts_with('c') { " || ''" } else { " + 0" };
        let plus = if order.starts_with("b DESC") { "" } else { plus };
        for rows in [1, 10, 200] {
            let ordered = reader.run(&query("", rows)).await.expect("rows");
            let mut plain = reader.run(&query(plus, rows)).await.expect("rows");
            if plus.is_empty() {
                let all = "SELECT concat_ws(',', b, c, id, pad) FROM (SELECT * FROM t ORDER BY b + 0 DESC, id DESC) t";
                plain = reader.run(&format!("{all} LIMIT {rows}")).await.expect("rows");
            }
            assert_eq!(ordered, plain, "{when}: {}", query("", rows));
        }
    }
    all
}

async fn fill(writer: &mut Connection) {
    writer.value("CREATE TABLE t (id int PRIMARY KEY, a int, b int, c text COLLATE \"C\", pad text)").await;
    let rows = "INSERT INTO t SELECT g, nullif(g * 31 % 40, 39), g / 100, 'k' || g * 7 % 40, repeat('p', 30 + g % 9) \
                FROM generate_series(0, 5999) g";
    writer.value(rows).await;
    for column in ["a", "b", "c"] {
        writer.value(&format!("CREATE INDEX t_{column} ON t ({column})")).await;
    }
    writer.value("ANALYZE t").await;
}

#[test]
fn two_indexes_find_what_one_finds_in_any_snapshot() {
    for seed in 1..3 {
        simulate(seed, move || async move {
            let db = open(&SimDisk::new(seed)).await;
            let backends = Arc::new(Backends::default());
            let mut writer = connect(&db, &backends).await;
            let mut reader = connect(&db, &backends).await;
            fill(&mut writer).await;
            for (word, query) in QUERIES {
                let plan = reader.run(&format!("EXPLAIN {}", with(query))).await.expect("a plan").join("\n");
                assert!(plan.contains(word), "{query}\n{plan}");
                let plan = reader.run(&format!("EXPLAIN {}", without(query))).await.expect("a plan").join("\n");
                assert!(!plan.contains("Index Cond"), "{query}\n{plan}");
            }
            let mut random = Rng::new(seed);
            for _ in 0..1 {
                reader.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
                let before = compare(&mut reader, "before").await;
                writer.value("BEGIN").await;
                for _ in 0..2 {
                    let (id, a) = (random.below(6000), random.below(9));
                    let change = match random.below(6) {
                        0 => format!("UPDATE t SET a = {a} WHERE id % 50 = {a}"),
                        1 => format!("DELETE FROM t WHERE a = {a} AND b < 20"),
                        2 => format!("UPDATE t SET b = b + 1 WHERE id % 7 = {a}"),
                        3 => format!("UPDATE t SET a = 3, b = 12, c = 'k12' WHERE id BETWEEN {id} AND {id} + 30"),
                        4 => format!(
                            "INSERT INTO t SELECT g + 7000, 3, 12, 'k12', 'i' FROM generate_series({id}, {id} + 9) g ON CONFLICT DO NOTHING"
                        ),
                        _ => format!("UPDATE t SET id = id + 20000 WHERE id < 6000 AND id % 90 = {a}"),
                    };
                    writer.value(&change).await;
                    compare(&mut writer, "its own changes").await;
                    assert_eq!(compare(&mut reader, "of the snapshot").await, before, "seed {seed}: {change}");
                }
                writer.value(if random.below(3) == 0 { "ROLLBACK" } else { "COMMIT" }).await;
                assert_eq!(compare(&mut reader, "the snapshot stays").await, before, "seed {seed}");
                reader.value("COMMIT").await;
            }
        });
    }
}

/// RGS-2: an index that is younger than the snapshot holds nothing back.
#[test]
fn an_index_that_is_younger_than_the_snapshot_is_no_sieve() {
    simulate(5, || async {
        let db = open(&SimDisk::new(5)).await;
        let backends = Arc::new(Backends::default());
        let mut writer = connect(&db, &backends).await;
        let mut reader = connect(&db, &backends).await;
        fill(&mut writer).await;
        writer.value("DROP INDEX t_a").await;
        reader.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        let before = compare(&mut reader, "before").await;
        writer.value("UPDATE t SET a = a + 1, b = b + 1 WHERE id % 2 = 0").await;
        writer.value("CREATE INDEX t_a ON t (a)").await;
        writer.value("ANALYZE t").await;
        assert_eq!(compare(&mut reader, "with a younger index").await, before);
        reader.value("COMMIT").await;
        compare(&mut reader, "in a new snapshot").await;
    });
}

#[test]
fn changes_find_their_rows_by_two_indexes() {
    simulate(7, || async {
        let db = open(&SimDisk::new(7)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        fill(&mut one).await;
        let condition = "a = 3 AND b BETWEEN 10 AND 14";
        let plan = one.run(&format!("EXPLAIN UPDATE t SET a = 4 WHERE {condition}")).await.expect("a plan").join("\n");
        assert!(plan.contains("using t_b, t_a on"), "{plan}");
        let there = one.value(&format!("SELECT count(*) FROM t WHERE {}", condition.replace('a', "a + 0"))).await;
        assert_ne!(there, "0");
        one.value(&format!("UPDATE t SET a = 4, b = 11, pad = 'changed' WHERE {condition}")).await;
        assert_eq!(one.value("SELECT count(*) FROM t WHERE pad = 'changed'").await, there);
        one.value("DELETE FROM t WHERE a = 4 AND b = 11 AND pad = 'changed'").await;
        assert_eq!(
            one.value("SELECT count(*) FROM t").await,
            (6000 - there.parse::<i32>().expect("a number")).to_string()
        );
    });
}
