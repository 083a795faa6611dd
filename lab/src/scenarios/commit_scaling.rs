//! Commits that contend for nothing but the log.

use crate::scenario::{Argument, Check, Group, Limit, Scenario, Step, rows};

/// Rows, and with them the most clients.
const ROWS: u32 = 4000;

/// Every client increments a row of its own.
pub struct CommitScaling;

impl Scenario for CommitScaling {
    fn name(&self) -> &'static str {
        "commit-scaling"
    }

    fn title(&self) -> &'static str {
        "Commits without conflicts"
    }

    fn about(&self) -> &'static str {
        "Every client runs `UPDATE t1 SET b = b + 1 WHERE a = $1` on a row of its own, each statement a transaction, each made \
         durable before its reply. With one client the device's syncs are the limit; with many, what the commits share \
         besides them."
    }

    fn unit(&self) -> &'static str {
        "commits/s"
    }

    fn clients(&self) -> &'static [u32] {
        &[1, 4, 16, 64, 256, 1000]
    }

    fn setup(&self) -> Vec<String> {
        let mut all = vec!["CREATE TABLE t1 (a int PRIMARY KEY, b int NOT NULL)".to_owned()];
        all.extend(rows("t1", ROWS));
        all
    }

    fn reset(&self) -> Vec<String> {
        vec!["UPDATE t1 SET b = 0".to_owned()]
    }

    fn load(&self, clients: u32) -> Vec<Group> {
        let script = vec![Step::with("UPDATE t1 SET b = b + 1 WHERE a = $1", &[Argument::Client])];
        vec![Group { name: "commits", clients: clients.min(ROWS), script }]
    }

    fn check(&self) -> Option<Check> {
        Some(Check { sql: "SELECT sum(b) FROM t1", group: "commits" })
    }

    fn limit(&self) -> Option<Limit> {
        Some(Limit::Syncs)
    }
}
