//! MIN and MAX for each group by the ends of the groups in an index (GRE-1, GRE-2): the same as by all rows.

use std::sync::Arc;

use crate::sim::{connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// Queries in which `@` is the column; each is compared with itself over `@ + 0`, of which no index has an order. Whether ends are read.
const QUERIES: [(&str, bool); 13] = [
    ("SELECT g, min(@), max(@) FROM t GROUP BY g", true),
    ("SELECT max(@) - min(@), g + 1 FROM t GROUP BY g ORDER BY g DESC", true),
    ("SELECT min(@), max(@), min(@) FROM t GROUP BY g HAVING max(@) > 100 ORDER BY 1, 2", true),
    ("SELECT g, min(@), max(@) FROM t WHERE g BETWEEN 2 AND 5 GROUP BY g", true),
    ("SELECT g, max(@), min(@) FROM t GROUP BY 1 ORDER BY max(@), 1 LIMIT 3", true),
    ("SELECT sum(a), sum(b) FROM (SELECT min(@) a, max(@) b FROM t GROUP BY g) q", true),
    ("SELECT g, min(@), max(@), row_number() OVER (ORDER BY min(@), g) FROM t GROUP BY g", true),
    ("SELECT DISTINCT max(@) - min(@) FROM t GROUP BY g", true),
    ("SELECT g, min(@), max(@), count(*) FROM t GROUP BY g", false),
    ("SELECT g, min(@), max(@), sum(@) FROM t GROUP BY g", false),
    ("SELECT g, min(@) FILTER (WHERE @ > 50), max(@) FROM t GROUP BY g", false),
    ("SELECT g, min(@), max(@) FROM t GROUP BY ROLLUP (g)", false),
    ("SELECT g, min(@), max(k) FROM t GROUP BY g", false),
];

#[test]
fn ends_are_those_of_all_rows() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let backends = Arc::new(Backends::default());
        let mut one = connect(&db, &backends).await;
        one.value("CREATE TABLE t (id int PRIMARY KEY, g int, h int NOT NULL, d int NOT NULL, n int, k int)").await;
        let rows = "INSERT INTO t SELECT i, nullif(i % 7, 6), i * 7919 % 1000, i * 104729 % 1000, \
                    CASE WHEN i % 7 <> 3 AND i % 5 > 0 THEN i * 31 % 1000 END, i FROM generate_series(1, 6000) i";
        one.value(rows).await;
        for index in ["g, h", "g, d DESC", "g, n"] {
            one.value(&format!("CREATE INDEX ON t ({index})")).await;
        }
        one.value("ANALYZE t").await;
        for (query, by_ends) in QUERIES {
            for column in ["h", "d", "n"] {
                let (asked, plain) = (query.replace('@', column), query.replace('@', &format!("({column} + 0)")));
                let row = |sql: &str| format!("SELECT q::text FROM ({sql}) q");
                let mut found = one.run(&row(&asked)).await.unwrap_or_else(|e| panic!("{asked}: {e:?}"));
                let mut expected = one.run(&row(&plain)).await.unwrap_or_else(|e| panic!("{plain}: {e:?}"));
                if !query.contains("ORDER BY") {
                    found.sort_unstable();
                    expected.sort_unstable();
                }
                assert_eq!(found, expected, "{asked}");
                let plan = one.run(&format!("EXPLAIN {asked}")).await.expect("a plan").join("\n");
                // Backward the nulls of `n` would come first.
                assert_eq!(plan.contains("Append"), by_ends && column != "n", "{asked}\n{plan}");
                assert!(!plan.contains("Key: \n"), "what is grouped has a name: {asked}\n{plan}");
            }
        }
        // Rows that come and go.
        one.value("BEGIN").await;
        one.value("UPDATE t SET h = h + 5000 WHERE id % 100 = 1").await;
        one.value("DELETE FROM t WHERE g = 2 OR h < 20").await;
        let all = "SELECT string_agg(q::text, ' ' ORDER BY q) FROM (SELECT g, min(@), max(@) FROM t GROUP BY g) q";
        let asked = one.value(&all.replace('@', "h")).await;
        assert_eq!(asked, one.value(&all.replace('@', "(h + 0)")).await);
        one.value("ROLLBACK").await;
    });
}
