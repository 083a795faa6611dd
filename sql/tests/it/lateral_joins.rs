//! Conditions of a lateral query that name only what is to the left of it: they stay with the table that the query reads when it is taken into its level.

use std::sync::Arc;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

#[test]
fn a_table_of_a_lateral_query_is_read_behind_what_its_condition_names() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        session.value("CREATE TABLE few (id int PRIMARY KEY, d int)").await;
        session.value("CREATE TABLE flags (id int PRIMARY KEY, flag bool)").await;
        session.value("INSERT INTO few VALUES (1, 1), (2, 2), (3, 3)").await;
        session.value("INSERT INTO flags VALUES (1, true), (2, false), (3, false)").await;
        // The outer join's condition makes an inner join of the lateral one, whose sides may then change places.
        let query = "SELECT concat_ws(',', few.id, f.flag, l.c) FROM few LEFT JOIN (flags f LEFT JOIN LATERAL \
                     (SELECT g.id AS c FROM flags g WHERE f.flag = false) l ON l.c = f.id) ON few.d = l.c ORDER BY few.id";
        assert_eq!(session.run(query).await.expect("rows"), ["1", "2,f,2", "3,f,3"]);
        let grouped = "SELECT concat_ws(',', f.flag, l.c, count(*)) FROM few a RIGHT JOIN few b ON b.id = a.id LEFT JOIN (flags f LEFT JOIN LATERAL \
                       (SELECT g.id AS c FROM flags g WHERE f.flag = false) l ON l.c = f.id) ON b.d = l.c AND a.id > 2 GROUP BY f.flag, l.c ORDER BY 1";
        assert_eq!(session.run(grouped).await.expect("rows"), ["2", "f,3,1"]);
    });
}

#[test]
fn the_right_side_of_a_full_join_may_hold_a_lateral_query() {
    simulate(2, || async {
        let db = open(&SimDisk::new(2)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        session.value("CREATE TABLE few (id int PRIMARY KEY, d int)").await;
        session.value("INSERT INTO few VALUES (1, 1), (2, 3), (3, 4)").await;
        // A sub-select in FROM with an expression stays one, and lateral.
        let query = "SELECT concat_ws(',', a.id, b.id, l.s) FROM few a FULL JOIN (few b LEFT JOIN LATERAL \
                     (SELECT b.d + c.id AS s FROM few c WHERE c.id > 2) l ON l.s > 4) ON a.d = b.id ORDER BY 1";
        assert_eq!(session.run(query).await.expect("rows"), ["1,1", "2,3,7", "2,6", "3"]);
    });
}

/// What joins of the level, and the rows of `a` for which there are some, with the sum of their keys: as PostgreSQL 15 has them. `b` is joined with itself by a
/// condition that names the row of `a` in a subquery alone.
const NAMED_IN_A_SUBQUERY: [(&str, &str); 12] = [
    ("a WHERE EXISTS (SELECT 1 FROM b x JOIN b y ON y.id = x.id AND y.g = ANY (SELECT a.g FROM b))", "8|54"),
    ("a WHERE NOT EXISTS (SELECT 1 FROM b x JOIN b y ON y.id = x.id AND y.g = ANY (SELECT a.g FROM b))", "4|24"),
    (
        "a WHERE NOT EXISTS (SELECT 1 FROM b x JOIN b y ON y.id = x.id AND EXISTS (SELECT FROM b z WHERE z.g = a.g AND z.id = y.id))",
        "4|24",
    ),
    ("a WHERE EXISTS (SELECT 1 FROM b x JOIN b y ON y.id = x.id AND (SELECT a.g) = y.g)", "8|54"),
    (
        "a WHERE NOT EXISTS (SELECT 1 FROM b x LEFT JOIN b y ON y.id = x.id AND (SELECT a.g) = y.g WHERE y.id > 0)",
        "4|24",
    ),
    (
        "a WHERE EXISTS (SELECT 1 FROM b x LEFT JOIN b y ON y.id = x.id AND (SELECT a.g) = y.g WHERE y.id IS NULL AND x.id < 3)",
        "12|78",
    ),
    (
        "a WHERE NOT EXISTS (SELECT 1 FROM b x JOIN b y ON y.id = x.id AND (y.g = ANY (SELECT a.g FROM b) OR y.id < 0))",
        "4|24",
    ),
    ("a WHERE id IN (SELECT x.id FROM b x JOIN b y ON y.id = x.id AND y.g = ANY (SELECT a.g FROM b))", "2|3"),
    ("a WHERE id NOT IN (SELECT x.id FROM b x JOIN b y ON y.id = x.id AND y.g = ANY (SELECT a.g FROM b))", "10|75"),
    (
        "a LEFT JOIN LATERAL (SELECT x.id FROM b x JOIN b y ON y.id = x.id AND y.g = ANY (SELECT a.g FROM b)) l ON true",
        "36|240",
    ),
    (
        "a LEFT JOIN LATERAL (SELECT x.id FROM b x LEFT JOIN b y ON y.id = x.id AND y.g = (SELECT a.g) WHERE x.id < 4) l ON l.id < a.id",
        "31|225",
    ),
    (
        "a LEFT JOIN (b x JOIN b y ON y.id = x.id AND EXISTS (SELECT 1 FROM b z WHERE z.id = y.g)) ON x.id = a.g",
        "12|78",
    ),
];

/// A session with the tables `a` and `b`, of twelve rows each in five and three groups.
async fn of_a_and_b(seed: u64) -> Connection {
    let db = open(&SimDisk::new(seed)).await;
    let mut session = connect(&db, &Arc::new(Backends::default())).await;
    for (table, groups) in [("a", 5), ("b", 3)] {
        session.value(&format!("CREATE TABLE {table} (id int PRIMARY KEY, g int)")).await;
        let rows = format!("INSERT INTO {table} SELECT g, g % {groups} FROM generate_series(1, 12) g");
        session.value(&rows).await;
    }
    session.value("ANALYZE").await;
    session
}

#[test]
fn a_side_of_a_join_depends_on_the_other_by_what_its_subqueries_name() {
    simulate(3, || async {
        let mut session = of_a_and_b(3).await;
        for (from, wanted) in NAMED_IN_A_SUBQUERY {
            let query = format!("SELECT concat_ws('|', count(*), sum(a.id)) FROM {from}");
            assert_eq!(session.value(&query).await, wanted, "{from}");
        }
    });
}

/// PUL-7
#[test]
fn a_level_that_may_be_judged_again_shares_no_subquery_with_its_joins() {
    let within = "SELECT o.id AS c FROM b o WHERE";
    let queries = [
        (
            format!(
                "a CROSS JOIN LATERAL ({within} EXISTS (SELECT 1 FROM b x LEFT JOIN b y ON y.g = (SELECT o.g)) OFFSET 0) l"
            ),
            "144",
        ),
        (
            format!("a WHERE EXISTS ({within} EXISTS (SELECT 1 FROM b x JOIN b y ON y.g = (SELECT o.g + 1)) OFFSET 0)"),
            "12",
        ),
        (
            format!(
                "a WHERE a.id IN ({within} NOT EXISTS (SELECT 1 FROM b x JOIN b y ON y.id = x.id AND y.g + 1 = ANY (SELECT o.g)))"
            ),
            "4",
        ),
        (
            format!(
                "a LEFT JOIN LATERAL (SELECT DISTINCT c FROM ({within} NOT EXISTS (SELECT 1 FROM b x JOIN b y ON y.id = x.id \
                 AND y.g = ANY (SELECT o.g + 2))) i) l ON l.c = a.id WHERE l.c IS NULL"
            ),
            "4",
        ),
        (
            format!(
                "a, LATERAL ({within} EXISTS (SELECT 1 FROM b x, LATERAL (SELECT (SELECT o.g - x.g) d) y WHERE y.d = 2)) l"
            ),
            "48",
        ),
    ];
    simulate(4, move || async move {
        let mut session = of_a_and_b(4).await;
        for (from, wanted) in &queries {
            assert_eq!(session.value(&format!("SELECT count(*) FROM {from}")).await, *wanted, "{from}");
        }
        // An expression of WITH that a level has taken in, before another one refers to it.
        let with = "WITH w AS (SELECT x.id AS c FROM a x LEFT JOIN b y ON EXISTS (SELECT 1 FROM b z WHERE z.g = x.g))";
        for (from, wanted) in [
            ("(SELECT c FROM b CROSS JOIN w OFFSET 0) l, w", "120000"),
            ("(SELECT c FROM b CROSS JOIN w OFFSET 0) l JOIN (SELECT c FROM w OFFSET 0) m ON m.c < 3", "28800"),
            ("b CROSS JOIN w CROSS JOIN w v", "120000"),
        ] {
            assert_eq!(session.value(&format!("{with} SELECT count(*) FROM {from}")).await, wanted, "{from}");
        }
    });
}
