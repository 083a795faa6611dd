//! Scenarios of reads, each a transaction of its own, by more and more sessions.

use crate::scenario::{Argument, Flavour, Group, Limit, Point, Scenario, Step, rows};

/// Rows of the table: all in memory everywhere.
const ROWS: u32 = 100_000;
/// Rows of a range.
const RANGE: i32 = 100;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// One row.
    Points,
    /// A hundred rows that stand together.
    Ranges,
    /// One row, and one time in ten one is written.
    Mixed,
}

impl Scenario for Reads {
    fn name(&self) -> &'static str {
        match self {
            Self::Points => "read-only",
            Self::Ranges => "ranges",
            Self::Mixed => "mixed",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Points => "Point reads",
            Self::Ranges => "Ranges of a hundred rows",
            Self::Mixed => "Nine reads and one write",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Points => {
                "Every client runs `SELECT b FROM t1 WHERE a = $1` with a random key of 100,000, each statement a transaction \
                 of its own. Servers that make a list of the active transactions for every snapshot do less the more sessions \
                 there are; a process or thread per connection costs more the more there are."
            }
            Self::Ranges => {
                "Every client runs `SELECT b FROM t1 WHERE a BETWEEN $1 AND $1 + 99` from a random key of 100,000, each \
                 statement a transaction of its own."
            }
            Self::Mixed => {
                "Every client reads nine random rows of 100,000 and then increments one, each statement a durable transaction \
                 of its own; counted are rounds of ten statements."
            }
        }
    }

    fn remarks(&self) -> &'static str {
        match self {
            Self::Points => {
                "The dotted line is a server that parses nothing, looks nothing up and answers every message at once: what the \
                 sockets, the kernel and the load generator leave. From it to Clearway's line is what Clearway does per \
                 statement: its parameters decoded, a snapshot, a descent, a reply encoded; nothing is awaited. MariaDB runs a statement with less \
                 work than Clearway at few clients; Clearway's line stays flat where a thread per connection or a process per \
                 connection falls, since an idle session of Clearway is a task, not a thread."
            }
            Self::Ranges => {
                "Clearway decodes of a row only the columns that are looked at, but sends each row through the same executor as any \
                 other plan; PostgreSQL and MariaDB have narrower inner loops for a scan of one table. With few clients that \
                 decides; with many, what a connection costs besides."
            }
            Self::Mixed => {
                "With few clients each round waits for one sync, and the device decides. The writes go to random rows, so that \
                 locks are hardly ever contended."
            }
        }
    }

    fn unit(&self) -> &'static str {
        match self {
            Self::Points | Self::Ranges => "reads/s",
            Self::Mixed => "rounds/s",
        }
    }

    fn points(&self) -> &'static [u32] {
        &[1, 10, 100, 1000, 4000]
    }

    fn setup(&self, _: Flavour) -> Vec<String> {
        let mut all = vec!["CREATE TABLE t1 (a int PRIMARY KEY, b int NOT NULL)".to_owned()];
        all.extend(rows("t1", ROWS));
        all
    }

    fn load(&self, _: Flavour, at: Point) -> Vec<Group> {
        let any = Argument::Any(1, ROWS as i32);
        let point = || Step::with("SELECT b FROM t1 WHERE a = $1", &[any]);
        let script = match self {
            Self::Points => vec![point()],
            Self::Ranges => {
                let from = Argument::Any(1, ROWS as i32 - RANGE);
                vec![Step::with("SELECT b FROM t1 WHERE a BETWEEN $1 AND $1 + 99", &[from])]
            }
            Self::Mixed => {
                let mut script: Vec<Step> = (0..9).map(|_| point()).collect();
                script.push(Step::with("UPDATE t1 SET b = b + 1 WHERE a = $1", &[any]));
                script
            }
        };
        vec![Group::new("reads", at.x, script)]
    }

    fn limits(&self) -> &'static [Limit] {
        match self {
            Self::Points => &[Limit::Wire],
            Self::Ranges | Self::Mixed => &[],
        }
    }
}
