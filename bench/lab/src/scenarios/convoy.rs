//! Scenario: a client sleeps between its update and its commit, and other clients wait for its row.

use std::time::Duration;

use crate::scenario::{Argument, Check, Flavour, Group, Point, Scenario, Step, rows};

/// How long the holder sleeps.
const NAP: Duration = Duration::from_secs(1);

/// One holder of a row, many clients that want it, and eight that do not.
pub struct Convoy;

impl Scenario for Convoy {
    fn name(&self) -> &'static str {
        "convoy"
    }

    fn title(&self) -> &'static str {
        "Convoy behind a sleeping holder"
    }

    fn about(&self) -> &'static str {
        "One client updates a row, sleeps for a second, commits, and does so again at once; all clients of the x axis want the \
         same row the whole time. Counted are the updates of eight clients on rows of another table, each on a row of its own: \
         with a holder asleep they should not notice how many wait, and when the holder commits the queue should drain as fast \
         as a hot row can be updated."
    }

    fn remarks(&self) -> &'static str {
        "The waiters' own rate is bounded by the scenario: each of them gets the row once between two naps of the holder. What the \
         bystanders lose at a thousand waiters is the processor time in which the queue drains; the waiting itself costs them \
         nothing where nobody walks the queue."
    }

    fn unit(&self) -> &'static str {
        "updates/s of bystanders"
    }

    fn points(&self) -> &'static [u32] {
        &[1, 10, 100, 1000]
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        let make = |table: &str| format!("CREATE TABLE {table} (a int PRIMARY KEY, b int NOT NULL)");
        let mut all = vec![make("t1"), make("t2")];
        all.extend(rows("t1", 100));
        all.extend(rows("t2", 100));
        all
    }

    fn reset(&self, _: Flavour, _: Point) -> Vec<String> {
        vec!["UPDATE t1 SET b = 0".to_owned(), "UPDATE t2 SET b = 0".to_owned()]
    }

    fn load(&self, _: Flavour, at: Point) -> Vec<Group> {
        let hot = "UPDATE t1 SET b = b + 1 WHERE a = 1";
        let aside = Step::with("UPDATE t2 SET b = b + 1 WHERE a = $1", &[Argument::Client]);
        let hold = vec![Step::run("BEGIN"), Step::run(hot), Step::Sleep(NAP), Step::run("COMMIT")];
        vec![
            Group::new("bystanders", 8, vec![aside]),
            Group::new("waiters", at.x, vec![Step::run(hot)]),
            Group::new("holder", 1, hold),
        ]
    }

    fn check(&self) -> Option<Check> {
        Some(Check { sql: "SELECT sum(b) FROM t2", group: "bystanders" })
    }
}
