//! EXISTS that can't become a join: its rows are read once, where reading the subquery for each row costs more (HSE-1 to HSE-3).

use std::sync::Arc;

use crate::sim::{connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// A query, whether the rows of its EXISTS are read once, and what it answers.
const QUERIES: [(&str, bool, &str); 8] = [
    ("SELECT count(*) FROM d WHERE o = 1 OR EXISTS (SELECT FROM s WHERE s.x = d.id AND s.y = 3)", true, "203"),
    ("SELECT count(*) FROM d WHERE o = 1 OR NOT EXISTS (SELECT FROM s WHERE s.x = d.id AND s.z = d.o)", true, "1324"),
    (
        "SELECT count(*) FROM d WHERE CASE WHEN EXISTS (SELECT FROM s WHERE s.x = d.id) THEN true ELSE o = 1 END",
        true,
        "1499",
    ),
    (
        "SELECT count(*) FROM d WHERE EXISTS (SELECT FROM s WHERE s.x = d.id AND (s.y = 3 OR EXISTS (SELECT FROM s t WHERE t.z = s.y)))",
        true,
        "1499",
    ),
    // An index finds the rows for each row.
    ("SELECT count(*) FROM d WHERE o = 1 OR EXISTS (SELECT FROM k WHERE k.id = d.id AND k.y = 3)", false, "203"),
    // More looks out of it than comparisons, it is volatile, and its rows are few.
    ("SELECT count(*) FROM d WHERE o = 1 OR EXISTS (SELECT FROM s WHERE s.x = d.id AND s.y < d.o)", false, "1423"),
    ("SELECT count(*) FROM d WHERE o = 1 OR EXISTS (SELECT FROM s WHERE s.x = d.id AND random() >= 0)", false, "1499"),
    (
        "SELECT count(*) FROM (SELECT * FROM d WHERE id = 5) d WHERE o = 1 OR EXISTS (SELECT FROM s WHERE s.x = d.id)",
        false,
        "1",
    ),
];

#[test]
fn exists_that_stays_is_looked_up_in_rows_that_are_read_once() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        for statement in [
            "CREATE TABLE d (id int PRIMARY KEY, o int)",
            "CREATE TABLE s (x bigint, y int, z int)",
            "CREATE TABLE k (id int PRIMARY KEY, y int)",
            "INSERT INTO d SELECT g, g % 100 FROM generate_series(1, 1499) g",
            "INSERT INTO s SELECT g, g % 8, nullif(g % 90, 3) FROM generate_series(1, 1500) g",
            "INSERT INTO k SELECT g, g % 8 FROM generate_series(1, 1500) g",
            "ANALYZE",
        ] {
            session.value(statement).await;
        }
        let mut wrong = String::new();
        for (query, once, answer) in QUERIES {
            let plan = session.plan(query).await;
            let found = session.value(query).await;
            if plan.contains("hashed SubPlan") != once || found != answer {
                wrong += &format!("{query}\n{found}\n{plan}\n");
            }
        }
        assert!(wrong.is_empty(), "HSE:\n{wrong}");
    });
}
