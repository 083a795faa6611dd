//! Scenario: inserts of many rows in one statement, with and without a primary key.

use crate::scenario::{Argument, Check, Flavour, Group, Point, Scenario, Step};

/// Inserts of 500 rows each into a table that has a primary key, and into one that has none.
pub struct BulkLoad;

/// Rows of a statement.
const ROWS: i32 = 500;
/// Keys that belong to a client.
const RANGE: i32 = 20_000_000;

impl Scenario for BulkLoad {
    fn name(&self) -> &'static str {
        "bulk-load"
    }

    fn title(&self) -> &'static str {
        "Bulk load with and without a primary key"
    }

    fn about(&self) -> &'static str {
        "Every client inserts 500 rows `(a, b)` per statement, each statement a durable transaction, into a table with \
         `a int PRIMARY KEY` and into the same table without a key. The published complaint is a bulk load that takes twice as \
         long without a key at 16 to 64 threads."
    }

    fn remarks(&self) -> &'static str {
        "A statement of 500 rows costs Clearway a descent, an undo record and a log record per row; PostgreSQL appends to the end \
         of a heap and writes one log record for a whole page of rows, MariaDB inserts neighbours into the leaf that it has at \
         hand. That, not contention, is why Clearway loads fewer rows a second; the comparison of key and no key is the point \
         of this scenario."
    }

    fn unit(&self) -> &'static str {
        "rows/s"
    }

    fn points(&self) -> &'static [u32] {
        &[4, 16, 32]
    }

    fn variants(&self) -> &'static [&'static str] {
        &["key", "no key"]
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        vec!["CREATE TABLE t1 (a int)".to_owned()]
    }

    fn reset(&self, _: Flavour, at: Point) -> Vec<String> {
        let key = if at.variant == "key" { "PRIMARY KEY" } else { "NOT NULL" };
        vec!["DROP TABLE t1".to_owned(), format!("CREATE TABLE t1 (a int {key}, b int NOT NULL)")]
    }

    fn load(&self, _: Flavour, at: Point) -> Vec<Group> {
        let rows: Vec<String> = (0..ROWS).map(|row| format!("($1 + {row}, 0)")).collect();
        let insert = format!("INSERT INTO t1 (a, b) VALUES {}", rows.join(", "));
        let script = vec![Step::with(&insert, &[Argument::Unique { range: RANGE, step: ROWS }])];
        vec![Group { weight: ROWS as u32, ..Group::new("loaders", at.x, script) }]
    }

    fn check(&self) -> Option<Check> {
        Some(Check { sql: "SELECT count(*) FROM t1", group: "loaders" })
    }
}
