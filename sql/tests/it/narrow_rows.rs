//! Rows that have only the slots that are read (PLN-10): a query over tables of many columns, few of which it names, gives what it gives over tables
//! that have no other columns.

use std::sync::Arc;

use crate::sim::{connect, open, simulate};
use clearway_base::testkit::Rng;
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// A column of a table, at random.
fn column(random: &mut Rng, of: &str) -> String {
    format!("{of}.{}", ["a", "b", "c", "k"][random.below(4) as usize])
}

/// A condition that tells of two tables.
fn joined(random: &mut Rng, left: &str, right: &str) -> String {
    let (l, r) = (column(random, left), column(random, right));
    match random.below(4) {
        0 => format!("{l} = {r} AND {}.t <> {}.t", left, right),
        1 => format!("{l} = {r} + 1"),
        2 => format!("{l} < {r} AND {left}.k = {right}.k"),
        _ => format!("{l} = {r}"),
    }
}

/// A query with `W` before the names of its tables.
fn query(random: &mut Rng) -> String {
    let (x, y, z) = (column(random, "x"), column(random, "y"), column(random, "z"));
    let on = joined(random, "x", "y");
    let more = joined(random, "y", "z");
    let kind = ["JOIN", "LEFT JOIN", "JOIN", "LEFT JOIN"][random.below(4) as usize];
    match random.below(14) {
        0 => format!("SELECT {x}, y.t FROM Wp x {kind} Wq y ON {on}"),
        1 => format!("SELECT {x}, z.t FROM Wp x {kind} Wq y ON {on} {kind} Wr z ON {more} WHERE x.a < 9"),
        2 => format!("SELECT {x}, count(*), max(y.t), sum({y}) FROM Wp x JOIN Wq y ON {on} GROUP BY {x}"),
        3 => format!("SELECT x.t, (SELECT max(y.t) FROM Wq y WHERE {on} AND y.c < x.c) FROM Wp x"),
        4 => format!(
            "SELECT {x} FROM Wp x WHERE EXISTS (SELECT 1 FROM Wq y JOIN Wr z ON {more} WHERE {on} AND z.c < x.b)"
        ),
        5 => format!(
            "SELECT s.m FROM (SELECT {x} AS g, max(x.t) AS m, sum(x.c) AS s FROM Wp x GROUP BY {x}) s JOIN Wq y ON y.k = s.g"
        ),
        6 => format!(
            "SELECT x.t, l.u FROM Wp x, LATERAL (SELECT {y} AS v, y.t || x.t AS u FROM Wq y WHERE {on}) l WHERE l.v > 1"
        ),
        7 => format!(
            "WITH s AS (SELECT x.a, x.b AS k, x.t, y.c FROM Wp x JOIN Wq y ON {on}) SELECT one.t, two.c FROM s one JOIN s two ON one.a = two.k \
             WHERE one.c < (SELECT max(s.c) FROM s WHERE s.a = one.a)"
        ),
        8 => format!("SELECT {x}, row_number() OVER (PARTITION BY {x} ORDER BY x.t, y.t) FROM Wp x JOIN Wq y ON {on}"),
        9 => format!("SELECT x.t FROM Wp x FULL JOIN Wq y ON x.k = y.k WHERE {x} > 1 OR {y} > 3"),
        10 => format!("SELECT x.t, {x} FROM Wp x UNION SELECT y.t, {y} FROM Wq y WHERE y.k IN (SELECT {z} FROM Wr z)"),
        11 => format!(
            "SELECT x.a, y.b, count(z.t) FROM Wp x, Wq y, Wr z WHERE {on} AND {more} GROUP BY ROLLUP (x.a, y.b)"
        ),
        12 => format!("SELECT DISTINCT ON ({x}) {x}, x.t, y.t FROM Wp x JOIN Wq y ON {on} ORDER BY {x}, x.t, y.t"),
        _ => format!(
            "SELECT x.t FROM Wp x WHERE {x} > (SELECT avg({y}) FROM Wq y WHERE {on} AND EXISTS (SELECT 1 FROM Wr z WHERE z.a = x.c AND {more}))"
        ),
    }
}

#[test]
fn columns_that_a_query_does_not_name_make_no_difference() {
    for seed in 1..4 {
        simulate(seed, move || async move {
            let db = open(&SimDisk::new(seed)).await;
            let backends = Arc::new(Backends::default());
            let mut client = connect(&db, &backends).await;
            for name in ["p", "q", "r"] {
                let pad = |n: u32| format!("{0}{n} text DEFAULT 'pad', {0}_{n} int DEFAULT {n}", "pad");
                let wide = format!(
                    "CREATE TABLE wide_{name} ({}, b int, {}, t text, {}, a int PRIMARY KEY, {}, c int, k int, {})",
                    pad(1),
                    pad(2),
                    pad(3),
                    pad(4),
                    pad(5)
                );
                client.value(&wide).await;
                client
                    .value(&format!("CREATE TABLE narrow_{name} (a int PRIMARY KEY, b int, c int, k int, t text)"))
                    .await;
                for table in ["wide", "narrow"] {
                    let rows = format!(
                        "INSERT INTO {table}_{name} (a, b, c, k, t) SELECT g, g % 5, nullif(g % 4, 3), g % 7, '{name}' || g FROM generate_series(1, 30) g"
                    );
                    client.value(&rows).await;
                    client.value(&format!("CREATE INDEX ON {table}_{name} (k, b)")).await;
                    client.value(&format!("ANALYZE {table}_{name}")).await;
                }
            }
            let mut random = Rng::new(seed);
            let mut given = 0;
            for _ in 0..120 {
                let text = query(&mut random);
                let mut rows = Vec::new();
                for table in ["wide_", "narrow_"] {
                    let asked = text.replace(" Wp", &format!(" {table}p")).replace(" Wq", &format!(" {table}q"));
                    let asked = asked.replace(" Wr", &format!(" {table}r"));
                    let mut all = client.run(&asked).await.unwrap_or_else(|e| panic!("seed {seed}: {asked}: {e:?}"));
                    all.sort_unstable();
                    rows.push(all);
                }
                given += rows[0].len();
                assert_eq!(rows[0], rows[1], "seed {seed}: {text}");
            }
            assert!(given > 500, "seed {seed}: {given} rows");
        });
    }
}
