//! A client that sleeps between its update and its commit, and everybody who waits behind it.

use std::time::Duration;

use crate::scenario::{Argument, Check, Group, Scenario, Step, rows};

/// How long the holder sleeps, and then rests.
const NAP: Duration = Duration::from_millis(500);

/// One holder of a row, many who want it, and eight who have nothing to do with it.
pub struct Convoy;

impl Scenario for Convoy {
    fn name(&self) -> &'static str {
        "convoy"
    }

    fn title(&self) -> &'static str {
        "Convoy behind a sleeping holder"
    }

    fn about(&self) -> &'static str {
        "One client updates a row, sleeps for half a second, commits, and rests for half a second; all clients of the \
         x axis want the same row the whole time. Counted are the updates of eight clients on rows of another table, each \
         on a row of its own: with a holder asleep they should not notice how many wait."
    }

    fn unit(&self) -> &'static str {
        "updates/s of bystanders"
    }

    fn clients(&self) -> &'static [u32] {
        &[1, 10, 100, 1000]
    }

    fn setup(&self) -> Vec<String> {
        let make = |table: &str| format!("CREATE TABLE {table} (a int PRIMARY KEY, b int NOT NULL)");
        let mut all = vec![make("t1"), make("t2")];
        all.extend(rows("t1", 100));
        all.extend(rows("t2", 100));
        all
    }

    fn reset(&self) -> Vec<String> {
        vec!["UPDATE t1 SET b = 0".to_owned(), "UPDATE t2 SET b = 0".to_owned()]
    }

    fn load(&self, clients: u32) -> Vec<Group> {
        let hot = "UPDATE t1 SET b = b + 1 WHERE a = 1";
        let aside = Step::with("UPDATE t2 SET b = b + 1 WHERE a = $1", &[Argument::Client]);
        let hold = vec![Step::run("BEGIN"), Step::run(hot), Step::Sleep(NAP), Step::run("COMMIT"), Step::Sleep(NAP)];
        vec![
            Group { name: "bystanders", clients: 8, script: vec![aside] },
            Group { name: "waiters", clients, script: vec![Step::run(hot)] },
            Group { name: "holder", clients: 1, script: hold },
        ]
    }

    fn check(&self) -> Option<Check> {
        Some(Check { sql: "SELECT sum(b) FROM t2", group: "bystanders" })
    }
}
