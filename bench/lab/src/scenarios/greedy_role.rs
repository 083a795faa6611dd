//! Scenario: the sessions of one role aggregate a table all the time, beside another role's point reads.

use crate::scenario::{Argument, Flavour, Group, Measure, Point, Scenario, Step, rows};

/// Rows of the table.
const ROWS: u32 = 20_000;

/// Two clients that read rows, and those of a role that takes what it gets.
pub struct GreedyRole;

impl Scenario for GreedyRole {
    fn name(&self) -> &'static str {
        "greedy-role"
    }

    fn title(&self) -> &'static str {
        "A greedy role"
    }

    fn about(&self) -> &'static str {
        "Two clients read rows by key. In `idle` they are alone. In `no limits` as many clients as the x axis says, of another role, \
         group a table of 20,000 rows at the same time, over and over. In `limits` this role has `limit_processor_share = 10` and \
         `limit_statements = 4` by ALTER ROLE: four of its transactions run at a time, and together they have a tenth of the processors' \
         time. Drawn is the 99th percentile of the reads' latency."
    }

    fn remarks(&self) -> &'static str {
        "PostgreSQL and MariaDB have no such limits: there `limits` is the same load as `no limits`. The load generator's own clients, which share the \
         processors, are in the latencies of all three variants."
    }

    fn unit(&self) -> &'static str {
        "ms p99 of reads"
    }

    fn axis(&self) -> &'static str {
        "greedy clients"
    }

    fn points(&self) -> &'static [u32] {
        &[64]
    }

    fn variants(&self) -> &'static [&'static str] {
        &["no limits", "limits", "idle"]
    }

    fn measure(&self) -> Measure {
        Measure::P99
    }

    fn setup(&self, to: Flavour) -> Vec<String> {
        let mut all = vec!["CREATE TABLE t1 (a int PRIMARY KEY, b int NOT NULL)".to_owned()];
        all.extend(rows("t1", ROWS));
        if to != Flavour::MySql {
            all.extend(["CREATE ROLE greedy LOGIN", "GRANT SELECT ON t1 TO greedy"].map(str::to_owned));
        }
        all
    }

    fn reset(&self, to: Flavour, at: Point) -> Vec<String> {
        let limits = ["limit_processor_share", "limit_statements"];
        match (to, at.variant) {
            (Flavour::Clearway, "limits") => limits
                .iter()
                .zip([10, 4])
                .map(|(name, value)| format!("ALTER ROLE greedy SET {name} = {value}"))
                .collect(),
            (Flavour::Clearway, _) => limits.map(|name| format!("ALTER ROLE greedy RESET {name}")).to_vec(),
            _ => Vec::new(),
        }
    }

    fn load(&self, _: Flavour, at: Point) -> Vec<Group> {
        let read = Step::with("SELECT b FROM t1 WHERE a = $1", &[Argument::Any(1, ROWS as i32)]);
        let mut groups = vec![Group::new("reads", 2, vec![read])];
        if at.variant != "idle" {
            let group = Step::run("SELECT a % 100, count(*), sum(b), max(a) FROM t1 GROUP BY 1");
            groups.push(Group { role: Some("greedy"), ..Group::new("greedy", at.x, vec![group]) });
        }
        groups
    }
}
