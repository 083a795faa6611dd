//! Index-only reads return what reads of the rows return: in each snapshot, while other transactions change rows, and after changes of
//! the reader's own transaction (IXO-1, COV-1).

use std::sync::Arc;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::testkit::Rng;
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// The values of an index-only read, after EXPLAIN has said that it is one, and those of the rows.
async fn both(reader: &mut Connection, condition: &str) -> (Vec<String>, Vec<String>) {
    let alone = format!("SELECT a || ':' || b FROM t WHERE {condition}");
    let plan = reader.run(&format!("EXPLAIN {alone}")).await.expect("a plan").join("\n");
    assert!(plan.contains("Index Only Scan"), "{plan}");
    let mut entries = reader.run(&alone).await.expect("entries");
    let rows = format!("SELECT a || ':' || b, pad FROM t WHERE {condition}");
    let plan = reader.run(&format!("EXPLAIN {rows}")).await.expect("a plan").join("\n");
    assert!(!plan.contains("Index Only Scan"), "{plan}");
    let mut of_rows = reader.run(&rows).await.expect("rows");
    entries.sort_unstable();
    of_rows.sort_unstable();
    (entries, of_rows)
}

async fn change(writer: &mut Connection, random: &mut Rng) {
    let (id, a) = (random.below(300), random.below(60));
    let statement = match random.below(9) {
        0 | 1 => format!("UPDATE t SET a = {a} WHERE id = {id}"),
        2 => format!("UPDATE t SET b = 'n{a}' WHERE id = {id}"),
        3 => format!("UPDATE t SET pad = 'q' WHERE id = {id}"),
        4 => format!("DELETE FROM t WHERE id = {id}"),
        5 => format!("INSERT INTO t VALUES ({id}, {a}, 'i{a}', 'p') ON CONFLICT DO NOTHING"),
        6 => format!("UPDATE t SET id = id + 1000 WHERE id = {id}"),
        7 => format!("SAVEPOINT s; UPDATE t SET a = a + 1 WHERE id < {id}; ROLLBACK TO s"),
        _ => format!("DELETE FROM t WHERE id = {id}; INSERT INTO t VALUES ({id}, {a}, 'again', 'p')"),
    };
    writer.run(&statement).await.unwrap_or_else(|e| panic!("{statement}: {e:?}"));
}

#[test]
fn entries_and_rows_agree_in_every_snapshot() {
    for seed in 1..6 {
        simulate(seed, move || async move {
            let db = open(&SimDisk::new(seed)).await;
            let backends = Arc::new(Backends::default());
            let mut writer = connect(&db, &backends).await;
            let mut reader = connect(&db, &backends).await;
            writer.value("CREATE TABLE t (id int PRIMARY KEY, a int, b text, pad text)").await;
            let rows = "INSERT INTO t SELECT g, g % 60, 'b' || g, repeat('p', 100) FROM generate_series(0, 299) g";
            writer.value(rows).await;
            writer.value("CREATE INDEX ON t (a, b)").await;
            writer.value("ANALYZE t").await;
            let mut random = Rng::new(seed);
            for _ in 0..6 {
                reader.value("BEGIN ISOLATION LEVEL REPEATABLE READ").await;
                let before = both(&mut reader, "a BETWEEN 5 AND 9").await;
                assert_eq!(before.0, before.1, "seed {seed}");
                writer.value("BEGIN").await;
                for _ in 0..random.below(12) {
                    change(&mut writer, &mut random).await;
                    let condition = format!("a BETWEEN {} AND 40", random.below(40));
                    let own = both(&mut writer, &condition).await;
                    assert_eq!(own.0, own.1, "seed {seed}: its own changes");
                    let old = both(&mut reader, &condition).await;
                    assert_eq!(old.0, old.1, "seed {seed}: of the snapshot");
                }
                writer.value(if random.below(3) == 0 { "ROLLBACK" } else { "COMMIT" }).await;
                let after = both(&mut reader, "a BETWEEN 5 AND 9").await;
                assert_eq!(after, before, "seed {seed}: the snapshot stays");
                reader.value("COMMIT").await;
                let now = both(&mut reader, "a IN (1, 7, 30)").await;
                assert_eq!(now.0, now.1, "seed {seed}");
            }
        });
    }
}

#[test]
fn what_was_analyzed_is_known_after_the_next_opening() {
    // STA-5, STT-3
    simulate(9, || async {
        let disk = SimDisk::new(9);
        let tell = "SELECT string_agg(attname || ' ' || n_distinct || ' ' || coalesce(most_common_vals::text, '-'), ';' ORDER BY attname) \
                    FROM pg_stats WHERE tablename IN ('k', 'gone', 'k_lower')";
        let before = {
            let db = open(&disk).await;
            let backends = Arc::new(Backends::default());
            let mut one = connect(&db, &backends).await;
            one.value("CREATE TABLE k (id int PRIMARY KEY, n numeric, t text)").await;
            one.value("CREATE INDEX k_lower ON k (lower(t))").await;
            one.value("CREATE TABLE gone (g int); INSERT INTO gone SELECT 1 FROM generate_series(1, 9); ANALYZE gone")
                .await;
            one.value("INSERT INTO k SELECT g, g % 3, 'T' || g % 2 FROM generate_series(1, 100) g; ANALYZE k").await;
            one.value("DROP TABLE gone").await;
            let told = one.value(tell).await;
            drop(one);
            db.close().await.expect("closed");
            told
        };
        assert_eq!(before, "id -1 -;lower 2 {t0,t1};n 3 {1,0,2};t 2 {T0,T1}");
        let db = open(&disk).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        assert_eq!(one.value(tell).await, before);
        // A table that is made now has nothing of those that have gone.
        one.value("CREATE TABLE next (g int)").await;
        assert_eq!(one.value("SELECT count(*) FROM pg_stats WHERE tablename = 'next'").await, "0");
    });
}

/// The filter of a partial index's condition is evaluated where the index is read by anything but one range in its own direction: its columns are
/// read, too (COV-3).
#[test]
fn a_partial_index_that_is_not_read_by_one_range_has_the_columns_of_its_filter() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        session.value("CREATE TABLE p (id int, name text, f int, pad text)").await;
        let rows = "INSERT INTO p SELECT g, 'n' || g, g % 10 - 5, repeat('p', 100) FROM generate_series(1, 50) g";
        session.value(rows).await;
        let of_table =
            ["id < 15", "id IN (8, 9, 11)", "id > 7 AND id < 20", "name LIKE 'n1%'", "(id, name) > (17, 'n2')"];
        let mut wanted = Vec::new();
        for condition in of_table {
            let query = format!("SELECT id FROM p WHERE f > 2 AND {condition} ORDER BY id");
            wanted.push(session.run(&query).await.expect("rows"));
            assert!(!wanted.last().expect("it was put").is_empty(), "{condition}");
        }
        for keys in ["id", "id DESC", "id, name", "id DESC, name", "name, id", "name DESC, id"] {
            session.value(&format!("CREATE INDEX part ON p ({keys}) WHERE f > 2")).await;
            session.value("ANALYZE p").await;
            for (condition, wanted) in of_table.iter().zip(&wanted) {
                let query = format!("SELECT id FROM p WHERE f > 2 AND {condition} ORDER BY id");
                assert_eq!(&session.run(&query).await.expect("rows"), wanted, "({keys}): {condition}");
            }
            session.value("DROP INDEX part").await;
        }
    });
}
