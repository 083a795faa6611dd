//! Everything that a session of the lab found, and its medians.

/// A session: one scenario against some servers.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The scenario's name.
    pub scenario: String,
    /// Its heading.
    pub title: String,
    /// What it does.
    pub about: String,
    /// What is counted.
    pub unit: String,
    /// When the session began.
    pub when: String,
    /// Processors, memory, kernel, file system.
    pub machine: String,
    /// The command that repeats it.
    pub command: String,
    /// Seconds of a run.
    pub seconds: f64,
    /// Runs of each server at each client count.
    pub repeats: u32,
    /// Client counts, in order.
    pub clients: Vec<u32>,
    /// The servers that took part, in order.
    pub servers: Vec<ServerFacts>,
    /// Who was asked for and did not take part, with the reason.
    pub absent: Vec<String>,
    /// Every run, in the order in which they happened.
    pub runs: Vec<RunFacts>,
    /// What the machine can do at best: the name of the line and each measurement.
    pub limit: Option<(String, Vec<f64>)>,
}

/// A server that took part.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    /// Its name.
    pub name: String,
    /// What it says it is.
    pub version: String,
    /// Settings that differ from its defaults, and its answers about isolation and durability.
    pub settings: Vec<(String, String)>,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// The server.
    pub server: String,
    /// Clients of the x axis.
    pub clients: u32,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Why the run does not count: the load or its check failed.
    pub failed: Option<String>,
    /// Each group of clients, the measured one first.
    pub groups: Vec<GroupFacts>,
}

/// What a group did in a run.
#[derive(Clone, Debug, Default)]
pub struct GroupFacts {
    /// Its name.
    pub name: String,
    /// Passes per second.
    pub rate: f64,
    /// Median latency, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
    /// The greatest latency, milliseconds.
    pub greatest_ms: f64,
    /// The fewest and most passes of one client.
    pub least_most: (u64, u64),
    /// Failed statements by SQLSTATE, lost clients by reason.
    pub failures: Vec<(String, u64)>,
}

/// The equal runs of a server at a client count, brought together.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Median of the runs' rates.
    pub rate: f64,
    /// The lowest of them.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
    /// Every rate, in the order of the runs.
    pub rates: Vec<f64>,
    /// Median of the runs' median latencies, milliseconds.
    pub p50_ms: f64,
    /// Median of the runs' 99th percentiles, milliseconds.
    pub p99_ms: f64,
    /// The fewest and the most passes of one client in any of the runs.
    pub least_most: (u64, u64),
}

/// The middle of some figures; of an even number the mean of the two in the middle. None of none.
pub fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

impl Outcome {
    /// The runs of a server at a client count that count; None if none does.
    pub fn cell(&self, server: &str, clients: u32) -> Option<Cell> {
        self.group_cell(server, clients, 0)
    }

    /// The same of another group than the measured one.
    pub fn group_cell(&self, server: &str, clients: u32, group: usize) -> Option<Cell> {
        let equal =
            self.runs.iter().filter(|run| run.server == server && run.clients == clients && run.failed.is_none());
        let groups: Vec<&GroupFacts> = equal.filter_map(|run| run.groups.get(group)).collect();
        let rates: Vec<f64> = groups.iter().map(|group| group.rate).collect();
        let of = |figure: fn(&GroupFacts) -> f64| median(&groups.iter().map(|group| figure(group)).collect::<Vec<_>>());
        Some(Cell {
            rate: median(&rates)?,
            lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
            highest: rates.iter().copied().fold(0.0, f64::max),
            p50_ms: of(|group| group.p50_ms)?,
            p99_ms: of(|group| group.p99_ms)?,
            least_most: (
                groups.iter().map(|group| group.least_most.0).min()?,
                groups.iter().map(|group| group.least_most.1).max()?,
            ),
            rates,
        })
    }

    /// The names of the groups of clients, the measured one first.
    pub fn group_names(&self) -> Vec<&str> {
        let run = self.runs.iter().find(|run| !run.groups.is_empty());
        run.map(|run| run.groups.iter().map(|group| group.name.as_str()).collect()).unwrap_or_default()
    }

    /// Failures and failed statements, a line each.
    pub fn failures(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for run in &self.runs {
            let place = format!("{}, {} clients, run {}", run.server, run.clients, run.repeat);
            if let Some(reason) = &run.failed {
                lines.push(format!("{place}: does not count: {reason}"));
            }
            for group in &run.groups {
                for (what, count) in &group.failures {
                    lines.push(format!("{place}, {}: {count} x {what}", group.name));
                }
            }
        }
        lines
    }

    /// The best other server than Clearway at a client count, with its cell.
    pub fn best_peer(&self, clients: u32) -> Option<(&str, Cell)> {
        let peers = self.servers.iter().filter(|server| server.name != "clearway");
        let cells = peers.filter_map(|server| Some((server.name.as_str(), self.cell(&server.name, clients)?)));
        cells.max_by(|a, b| a.1.rate.total_cmp(&b.1.rate))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two servers at 1 and 100 clients, three runs each; one of Clearway's failed.
    pub(crate) fn example() -> Outcome {
        let mut outcome = Outcome {
            scenario: "hot-row".into(),
            title: "One hot row".into(),
            unit: "updates/s".into(),
            clients: vec![1, 100],
            repeats: 3,
            limit: Some(("fdatasync".into(), vec![9000.0, 10_000.0, 11_000.0])),
            ..Outcome::default()
        };
        for (name, rates) in [("clearway", [8000.0, 90_000.0]), ("postgres", [9000.0, 2000.0])] {
            outcome.servers.push(ServerFacts { name: name.into(), version: format!("{name} <1>"), settings: vec![] });
            for (at, rate) in rates.into_iter().enumerate() {
                for repeat in 1..=3 {
                    let failed =
                        (name == "clearway" && at == 1 && repeat == 3).then(|| "a \"quoted\" reason".to_owned());
                    let group = GroupFacts {
                        name: "updates".into(),
                        rate: rate * f64::from(repeat) / 2.0,
                        p50_ms: 0.1,
                        least_most: (u64::from(repeat), 10),
                        ..GroupFacts::default()
                    };
                    outcome.runs.push(RunFacts {
                        server: name.into(),
                        clients: [1, 100][at],
                        repeat,
                        failed,
                        groups: vec![group],
                    });
                }
            }
        }
        outcome
    }

    #[test]
    fn medians_leave_out_what_failed_and_name_it() {
        let outcome = example();
        let cell = outcome.cell("clearway", 100).expect("two runs count");
        assert_eq!((cell.rate, cell.lowest, cell.highest), (67_500.0, 45_000.0, 90_000.0));
        assert_eq!(cell.least_most, (1, 10));
        assert_eq!(outcome.cell("postgres", 1).map(|cell| cell.rate), Some(9000.0));
        assert_eq!(outcome.cell("postgres", 7), None);
        assert_eq!(outcome.failures().len(), 1);
        assert_eq!(outcome.best_peer(100).map(|(name, _)| name), Some("postgres"));
        assert_eq!((median(&[]), median(&[3.0, 1.0, 2.0])), (None, Some(2.0)));
    }
}
