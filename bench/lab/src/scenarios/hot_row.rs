//! Scenario: all clients increment one row.

use crate::scenario::{Check, Flavour, Group, Limit, Point, Scenario, Step, rows};

/// `UPDATE t1 SET b = b + 1 WHERE a = 1` from every client, each statement a transaction.
pub struct HotRow;

impl Scenario for HotRow {
    fn name(&self) -> &'static str {
        "hot-row"
    }

    fn title(&self) -> &'static str {
        "One hot row"
    }

    fn about(&self) -> &'static str {
        "Every client runs `UPDATE t1 SET b = b + 1 WHERE a = 1`, each statement a transaction of its own. Servers that \
         search their whole wait graph, or wake every waiter, for each lock that is granted do less the more clients wait; \
         what is hoped for is a flat line."
    }

    fn remarks(&self) -> &'static str {
        "Clearway lets go of a row when the commit record is in the log's buffer and tells the client when it is on disk, so that \
         updates of one row share syncs, as MariaDB does without its binary log; PostgreSQL holds the row through the sync. A \
         waiter of Clearway is handed the row, one at a time, and nobody else wakes. With one client there is nothing to share: \
         every update waits for its own sync, and the device decides."
    }

    fn unit(&self) -> &'static str {
        "updates/s"
    }

    fn points(&self) -> &'static [u32] {
        &[1, 10, 100, 1000]
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        let mut all = vec!["CREATE TABLE t1 (a int PRIMARY KEY, b int NOT NULL)".to_owned()];
        all.extend(rows("t1", 100));
        all
    }

    fn reset(&self, _: Flavour, _: Point) -> Vec<String> {
        vec!["UPDATE t1 SET b = 0 WHERE a = 1".to_owned()]
    }

    fn load(&self, _: Flavour, at: Point) -> Vec<Group> {
        let script = vec![Step::run("UPDATE t1 SET b = b + 1 WHERE a = 1")];
        vec![Group::new("updates", at.x, script)]
    }

    fn check(&self) -> Option<Check> {
        Some(Check { sql: "SELECT b FROM t1 WHERE a = 1", group: "updates" })
    }

    fn limits(&self) -> &'static [Limit] {
        &[Limit::Syncs]
    }
}
