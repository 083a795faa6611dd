//! Scenario: the cost of rolling a transaction back.

use crate::scenario::{Flavour, Group, Measure, Point, Scenario, Step, rows};

/// Rows of the table, and with them the largest transaction.
const ROWS: u32 = 100_000;

/// One client changes many rows and rolls back.
pub struct Rollback;

impl Scenario for Rollback {
    fn name(&self) -> &'static str {
        "rollback"
    }

    fn title(&self) -> &'static str {
        "Rollback"
    }

    fn about(&self) -> &'static str {
        "One client runs `BEGIN; UPDATE t1 SET b = b + 1 WHERE a <= $1; ROLLBACK` for 100 to 100,000 rows, with and without an \
         index on `b`. Drawn is how long the rollback takes in terms of the update that it takes back; the published complaint \
         is a rollback that takes up to thirty times as long as the change."
    }

    fn remarks(&self) -> &'static str {
        "PostgreSQL leaves the new versions where they are, for vacuum to find: its rollback costs next to nothing, and so it is \
         below every server that restores rows in place, Clearway among them. Clearway undoes row by row, logged, as the change \
         was made; hoped for is at most 1.0."
    }

    fn unit(&self) -> &'static str {
        "rollback time / update time"
    }

    fn axis(&self) -> &'static str {
        "rows changed"
    }

    fn points(&self) -> &'static [u32] {
        &[100, 10_000, 100_000]
    }

    fn variants(&self) -> &'static [&'static str] {
        &["no index", "index"]
    }

    fn measure(&self) -> Measure {
        Measure::StepShare { of: 2, to: 1 }
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        let make = |table: &str| format!("CREATE TABLE {table} (a int PRIMARY KEY, b int NOT NULL)");
        let mut all = vec![make("t1"), make("t2"), "CREATE INDEX t2_b ON t2 (b)".to_owned()];
        all.extend(rows("t1", ROWS));
        all.extend(rows("t2", ROWS));
        all
    }

    fn load(&self, _: Flavour, at: Point) -> Vec<Group> {
        let table = if at.variant == "index" { "t2" } else { "t1" };
        let update = format!("UPDATE {table} SET b = b + 1 WHERE a <= {}", at.x.min(ROWS));
        vec![Group::new("batches", 1, vec![Step::run("BEGIN"), Step::run(&update), Step::run("ROLLBACK")])]
    }
}
