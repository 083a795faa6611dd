//! What a scenario is: tables, clients with scripts, the group that is measured, the limit line.
//!
//! Everything is data, so that a scenario says nothing of protocols, threads or clocks and runs against every server alike.

use std::time::Duration;

use crate::LabError;
use crate::scenarios::{CommitScaling, Convoy, HotRow, ReadOnly};

/// One experiment.
pub trait Scenario: Sync {
    /// The name on the command line.
    fn name(&self) -> &'static str;
    /// A heading.
    fn title(&self) -> &'static str;
    /// What is done, and which collapse it looks for; one or two sentences.
    fn about(&self) -> &'static str;
    /// What is counted, for axes and columns: "updates/s".
    fn unit(&self) -> &'static str;
    /// Client counts when none are asked for.
    fn clients(&self) -> &'static [u32];
    /// Statements that make the tables, once per server.
    fn setup(&self) -> Vec<String>;
    /// Statements before every run, so that each begins alike.
    fn reset(&self) -> Vec<String> {
        Vec::new()
    }
    /// The clients of a run; the first group is the one that is measured.
    fn load(&self, clients: u32) -> Vec<Group>;
    /// What must hold after every run.
    fn check(&self) -> Option<Check> {
        None
    }
    /// The line that shows what the machine itself can do.
    fn limit(&self) -> Option<Limit> {
        None
    }
}

/// Clients that do the same.
#[derive(Clone, Debug)]
pub struct Group {
    /// What the report calls them.
    pub name: &'static str,
    /// How many.
    pub clients: u32,
    /// What each does over and over; one pass is counted as one.
    pub script: Vec<Step>,
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
}

/// Every scenario there is.
pub fn all() -> &'static [&'static dyn Scenario] {
    &[&HotRow, &Convoy, &ReadOnly, &CommitScaling]
}

/// A scenario by its name.
///
/// # Errors
/// [`LabError::Unknown`].
pub fn find(name: &str) -> Result<&'static dyn Scenario, LabError> {
    let known = || all().iter().map(|scenario| scenario.name()).collect::<Vec<_>>().join(", ");
    let found = all().iter().find(|scenario| scenario.name() == name).copied();
    found.ok_or_else(|| LabError::Unknown { kind: "scenario", name: name.to_owned(), known: known() })
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

    #[test]
    fn every_scenario_is_sound() {
        for (at, scenario) in all().iter().enumerate() {
            let name = scenario.name();
            assert!(all()[..at].iter().all(|other| other.name() != name), "{name} twice");
            assert!(find(name).is_ok());
            assert!(!scenario.setup().is_empty() && !scenario.clients().is_empty());
            for &clients in scenario.clients() {
                let groups = scenario.load(clients);
                assert!(groups.iter().all(|group| group.clients > 0 && !group.script.is_empty()), "{name}");
                if let Some(check) = scenario.check() {
                    assert!(groups.iter().any(|group| group.name == check.group), "{name}: {}", check.group);
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
