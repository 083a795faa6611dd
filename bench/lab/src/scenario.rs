//! The definition of a scenario: tables, clients with scripts, the group that is measured, what the chart shows, the limit line.
//!
//! A scenario is data: it contains nothing about protocols, threads or clocks and runs against every server in the same way. Where
//! servers need different SQL for the same thing, [`Flavour`] says which server it is.

use std::time::Duration;

/// Whose words a server understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Clearway.
    Clearway,
    /// PostgreSQL.
    Postgres,
    /// MariaDB and MySQL.
    MySql,
    /// A server that only speaks the protocol: whatever it is asked, it has an answer at once.
    WireOnly,
}

/// A point of a scenario's x axis in one of its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Clients, or what else the axis counts.
    pub x: u32,
    /// One of [`Scenario::variants`].
    pub variant: &'static str,
}

/// What of a run is drawn and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Passes, or rows, of the first group per second.
    Rate,
    /// The server's context switches per pass.
    SwitchesPerPass,
    /// How long a step of the script (counted from 0) takes, in terms of another one.
    StepShare {
        /// The step.
        of: usize,
        /// The one that is 1.
        to: usize,
    },
    /// The 99th percentile of the first group's latencies, in milliseconds.
    P99,
    /// The answer to [`Scenario::question`], divided by x.
    Answer,
}

/// One experiment.
pub trait Scenario: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;
    /// A heading.
    fn title(&self) -> &'static str;
    /// What is done, and which collapse it looks for; one or two sentences.
    fn about(&self) -> &'static str;
    /// Where Clearway loses, or does not do what was hoped for, and why; what else the reader should know.
    fn remarks(&self) -> &'static str;
    /// What is drawn: "updates/s".
    fn unit(&self) -> &'static str;
    /// What the x axis counts.
    fn axis(&self) -> &'static str {
        "clients"
    }
    /// Points of the x axis when none are asked for.
    fn points(&self) -> &'static [u32];
    /// What is compared within a server, each drawn as a line of its own; the first one is the plain one.
    fn variants(&self) -> &'static [&'static str] {
        &[""]
    }
    /// What of a run is drawn.
    fn measure(&self) -> Measure {
        Measure::Rate
    }
    /// Statements that make the tables, once per server.
    fn setup(&self, to: Flavour) -> Vec<String>;
    /// Statements before every run, so that each begins alike.
    fn reset(&self, _to: Flavour, _at: Point) -> Vec<String> {
        Vec::new()
    }
    /// The clients of a run; the first group is the one that is measured. None: [`Scenario::reset`] was all.
    fn load(&self, to: Flavour, at: Point) -> Vec<Group>;
    /// What must hold after every run.
    fn check(&self) -> Option<Check> {
        None
    }
    /// For [`Measure::Answer`]: a query that yields one number.
    fn question(&self, _to: Flavour) -> String {
        String::new()
    }
    /// The lines that show what the machine itself can do.
    fn limits(&self) -> &'static [Limit] {
        &[]
    }
}

/// Clients that do the same.
#[derive(Clone, Debug)]
pub struct Group {
    /// What the report calls them.
    pub name: &'static str,
    /// How many.
    pub clients: u32,
    /// Statements that each client runs once, before it begins.
    pub prologue: Vec<String>,
    /// What each does over and over.
    pub script: Vec<Step>,
    /// What a pass counts for: 1, or the rows that it writes.
    pub weight: u32,
    /// The role that the clients log in as, where that is another one than the lab's; by PostgreSQL's protocol only.
    pub role: Option<&'static str>,
}

impl Group {
    /// Clients without a prologue whose passes count for one.
    pub fn new(name: &'static str, clients: u32, script: Vec<Step>) -> Self {
        Self { name, clients, prologue: Vec::new(), script, weight: 1, role: None }
    }
}

/// A step of a script.
#[derive(Clone, Debug)]
pub enum Step {
    /// A statement, prepared once per client.
    Run {
        /// With `$1`, `$2`, ... for the arguments, all of type integer.
        sql: String,
        /// Drawn anew for each execution.
        arguments: Vec<Argument>,
    },
    /// The client does nothing for a while (whatever it holds it keeps).
    Sleep(Duration),
}

impl Step {
    /// A statement without arguments.
    pub fn run(sql: &str) -> Self {
        Self::Run { sql: sql.to_owned(), arguments: Vec::new() }
    }

    /// A statement with arguments.
    pub fn with(sql: &str, arguments: &[Argument]) -> Self {
        Self::Run { sql: sql.to_owned(), arguments: arguments.to_vec() }
    }
}

/// An argument of a statement.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// A number between the two, both included, each as likely.
    Any(i32, i32),
    /// The client's number within its group, from 1.
    Client,
    /// A number that no other client and no other pass draws, the client's first one at `client * range`; each pass moves on by the
    /// second number.
    Unique {
        /// Numbers that belong to a client.
        range: i32,
        /// Numbers that a pass uses.
        step: i32,
    },
}

/// What is asked after a run: a query whose one number equals the passes that a group was told have succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Yields one number.
    pub sql: &'static str,
    /// The group whose passes are counted, warm-up and end included.
    pub group: &'static str,
}

/// What the machine can do at best, measured in the same session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `fdatasync` after each block of 4 KiB, one after the other, on the scratch directory's device: the most commits
    /// that can be made durable one by one.
    Syncs,
    /// A server that only speaks the protocol, under the same load.
    Wire,
    /// Context switches per second when all that threads do is to take turns.
    Switches,
}

/// `INSERT` statements that fill `table(a, b)` with `(1, 0)` to `(rows, 0)`, of at most 500 rows each.
pub fn rows(table: &str, rows: u32) -> Vec<String> {
    let numbers: Vec<u32> = (1..=rows).collect();
    let insert = |part: &[u32]| {
        let values: Vec<String> = part.iter().map(|a| format!("({a}, 0)")).collect();
        format!("INSERT INTO {table} (a, b) VALUES {}", values.join(", "))
    };
    numbers.chunks(500).map(insert).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LabError;
    use crate::scenarios::{all, find};

    #[test]
    fn every_scenario_is_sound() {
        for (at, scenario) in all().iter().enumerate() {
            let name = scenario.name();
            assert!(all()[..at].iter().all(|other| other.name() != name), "{name} twice");
            assert!(find(name).is_ok());
            assert!(!scenario.points().is_empty() && !scenario.variants().is_empty(), "{name}");
            for to in [Flavour::Clearway, Flavour::Postgres, Flavour::MySql] {
                for (&x, &variant) in
                    scenario.points().iter().flat_map(|x| scenario.variants().iter().map(move |v| (x, v)))
                {
                    let at = Point { x, variant };
                    let groups = scenario.load(to, at);
                    assert!(groups.iter().all(|group| group.clients > 0 && !group.script.is_empty()), "{name}");
                    assert_eq!(groups.is_empty(), scenario.measure() == Measure::Answer, "{name}");
                    assert!(scenario.setup(to).len() + scenario.reset(to, at).len() > 0, "{name}");
                    if let Some(check) = scenario.check() {
                        assert!(groups.iter().any(|group| group.name == check.group), "{name}: {}", check.group);
                    }
                }
            }
        }
        assert!(matches!(find("hot-dog"), Err(LabError::Unknown { .. })));
    }

    #[test]
    fn rows_are_inserted_once_each() {
        let all = rows("t", 1001);
        assert_eq!(all.len(), 3);
        assert_eq!(all[2], "INSERT INTO t (a, b) VALUES (1001, 0)");
        assert_eq!(all.iter().map(|text| text.matches(", 0)").count()).sum::<usize>(), 1001);
    }
}
