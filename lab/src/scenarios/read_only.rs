//! Point reads, each a transaction.

use crate::scenario::{Argument, Group, Scenario, Step, rows};

/// Rows of the table: all in memory everywhere.
const ROWS: u32 = 100_000;

/// `SELECT b FROM t1 WHERE a = ?` with a random key.
pub struct ReadOnly;

impl Scenario for ReadOnly {
    fn name(&self) -> &'static str {
        "read-only"
    }

    fn title(&self) -> &'static str {
        "Point reads"
    }

    fn about(&self) -> &'static str {
        "Every client runs `SELECT b FROM t1 WHERE a = $1` with a random key of 100,000, each statement a transaction of its \
         own. Servers that make a list of the active transactions for every snapshot do less the more sessions there are."
    }

    fn unit(&self) -> &'static str {
        "reads/s"
    }

    fn clients(&self) -> &'static [u32] {
        &[1, 10, 100, 1000]
    }

    fn setup(&self) -> Vec<String> {
        let mut all = vec!["CREATE TABLE t1 (a int PRIMARY KEY, b int NOT NULL)".to_owned()];
        all.extend(rows("t1", ROWS));
        all
    }

    fn load(&self, clients: u32) -> Vec<Group> {
        let script = vec![Step::with("SELECT b FROM t1 WHERE a = $1", &[Argument::Any(1, ROWS as i32)])];
        vec![Group { name: "reads", clients, script }]
    }
}
