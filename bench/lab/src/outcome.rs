//! The outcome of a session of the lab: the figures of every run, and their medians.

use crate::scenario::Measure;

/// A session: one scenario against some servers.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The scenario's name.
    pub scenario: String,
    /// Its heading.
    pub title: String,
    /// What it does.
    pub about: String,
    /// Where Clearway loses, and why.
    pub remarks: String,
    /// What is drawn.
    pub unit: String,
    /// What the x axis counts.
    pub axis: String,
    /// What of a run is drawn; less is better of everything but a rate.
    pub measure: Measure,
    /// When the session began.
    pub when: String,
    /// Processors, memory, kernel, file system.
    pub machine: String,
    /// The command that repeats it.
    pub command: String,
    /// Seconds of a run.
    pub seconds: f64,
    /// Runs of each server at each point.
    pub repeats: u32,
    /// Points of the x axis, in order.
    pub points: Vec<u32>,
    /// Variants, the plain one first; one empty name where there is only one.
    pub variants: Vec<String>,
    /// The servers that took part, in order; a server that only speaks the protocol is the last.
    pub servers: Vec<ServerFacts>,
    /// The servers that were asked for and did not take part, with the reason.
    pub absent: Vec<String>,
    /// Every run, in the order in which they happened.
    pub runs: Vec<RunFacts>,
    /// What the machine can do at best: the name of the line and each measurement.
    pub limit: Option<LimitFacts>,
}

/// A limit that is one figure.
#[derive(Clone, Debug, Default)]
pub struct LimitFacts {
    /// What it is.
    pub name: String,
    /// Each measurement, per second.
    pub rates: Vec<f64>,
    /// Whether it has the unit of what is drawn.
    pub drawn: bool,
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
    /// It is a limit, no peer.
    pub is_limit: bool,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// The server.
    pub server: String,
    /// The variant.
    pub variant: String,
    /// The point of the x axis.
    pub x: u32,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Why the run does not count: the load or its check failed.
    pub failed: Option<String>,
    /// What is drawn.
    pub value: f64,
    /// Each group of clients, the measured one first.
    pub groups: Vec<GroupFacts>,
    /// The server's processor time per pass of the first group, microseconds; None of a server that the lab did not start.
    pub cpu_us: Option<f64>,
    /// Its context switches per pass, voluntary and involuntary.
    pub switches: Option<(f64, f64)>,
    /// By Clearway's own books: time spun at its latches per pass in microseconds, its sessions' elapsed time in milliseconds, and how much of
    /// that is unaccounted in percent.
    pub spin_us: Option<f64>,
    /// See there.
    pub elapsed_ms: Option<f64>,
    /// See there.
    pub unaccounted_percent: Option<f64>,
}

/// What a group did in a run.
#[derive(Clone, Debug, Default)]
pub struct GroupFacts {
    /// Its name.
    pub name: String,
    /// Passes, or rows, per second.
    pub rate: f64,
    /// Median latency, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
    /// The greatest latency, milliseconds.
    pub greatest_ms: f64,
    /// The slowest tenth of the window in terms of the median one.
    pub steadiness: f64,
    /// Mean duration of each step, milliseconds.
    pub step_ms: Vec<f64>,
    /// The fewest and most passes of one client.
    pub least_most: (u64, u64),
    /// Failed statements by SQLSTATE, lost clients by reason.
    pub failures: Vec<(String, u64)>,
}

/// The equal runs of a server at a point, brought together.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Median of what is drawn; of other groups than the first: of the rates.
    pub value: f64,
    /// The lowest of them.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
    /// Every one, in the order of the runs.
    pub values: Vec<f64>,
    /// Median of the runs' rates.
    pub rate: f64,
    /// Median of the runs' median latencies, milliseconds.
    pub p50_ms: f64,
    /// Median of the runs' 99th percentiles, milliseconds.
    pub p99_ms: f64,
    /// Median steadiness.
    pub steadiness: f64,
    /// Median processor time of the server per pass, microseconds.
    pub cpu_us: Option<f64>,
    /// Median context switches of the server per pass because a thread waited, and because its time was up.
    pub voluntary: Option<f64>,
    /// See there.
    pub involuntary: Option<f64>,
    /// Median time spun at the server's latches per pass, microseconds.
    pub spin_us: Option<f64>,
    /// Median of what its books leave open, percent.
    pub unaccounted_percent: Option<f64>,
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
    /// Whether more is better.
    pub fn more_is_better(&self) -> bool {
        self.measure == Measure::Rate
    }

    /// The runs of a server at a point that count; None if none does.
    pub fn cell(&self, server: &str, variant: &str, x: u32) -> Option<Cell> {
        self.group_cell(server, variant, x, 0)
    }

    /// The same of another group than the measured one.
    pub fn group_cell(&self, server: &str, variant: &str, x: u32, group: usize) -> Option<Cell> {
        let equal = |run: &&RunFacts| run.server == server && run.variant == variant && run.x == x;
        let runs: Vec<&RunFacts> = self.runs.iter().filter(equal).filter(|run| run.failed.is_none()).collect();
        let values: Vec<f64> = match group {
            0 => runs.iter().map(|run| run.value).collect(),
            _ => runs.iter().filter_map(|run| run.groups.get(group)).map(|group| group.rate).collect(),
        };
        let groups: Vec<&GroupFacts> = runs.iter().filter_map(|run| run.groups.get(group)).collect();
        let of = |figure: fn(&GroupFacts) -> f64| {
            median(&groups.iter().map(|group| figure(group)).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        let used = |figure: fn(&RunFacts) -> Option<f64>| {
            median(&runs.iter().filter_map(|run| figure(run)).collect::<Vec<_>>()).filter(|_| group == 0)
        };
        Some(Cell {
            value: median(&values)?,
            lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
            highest: values.iter().copied().fold(0.0, f64::max),
            rate: of(|group| group.rate),
            p50_ms: of(|group| group.p50_ms),
            p99_ms: of(|group| group.p99_ms),
            steadiness: of(|group| group.steadiness),
            cpu_us: used(|run| run.cpu_us),
            voluntary: used(|run| run.switches.map(|(voluntary, _)| voluntary)),
            involuntary: used(|run| run.switches.map(|(_, involuntary)| involuntary)),
            spin_us: used(|run| run.spin_us),
            unaccounted_percent: used(|run| run.unaccounted_percent),
            least_most: (
                groups.iter().map(|group| group.least_most.0).min().unwrap_or(0),
                groups.iter().map(|group| group.least_most.1).max().unwrap_or(0),
            ),
            values,
        })
    }

    /// The names of the groups of clients, the measured one first; the longest list of any run.
    pub fn group_names(&self) -> Vec<&str> {
        let run = self.runs.iter().max_by_key(|run| run.groups.len());
        run.map(|run| run.groups.iter().map(|group| group.name.as_str()).collect()).unwrap_or_default()
    }

    /// Failures and failed statements, a line each.
    pub fn failures(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for run in &self.runs {
            let place = format!("{}, {} {}, run {}", label(&run.server, &run.variant), run.x, self.axis, run.repeat);
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

    /// The best other server than Clearway at a point, with its cell; limits are no peers.
    pub fn best_peer(&self, variant: &str, x: u32) -> Option<(&str, Cell)> {
        let peers = self.servers.iter().filter(|server| server.name != "clearway" && !server.is_limit);
        let cells = peers.filter_map(|server| Some((server.name.as_str(), self.cell(&server.name, variant, x)?)));
        let by_value = |a: &(&str, Cell), b: &(&str, Cell)| a.1.value.total_cmp(&b.1.value);
        if self.more_is_better() { cells.max_by(by_value) } else { cells.min_by(by_value) }
    }
}

/// What a line of the chart is called.
pub fn label(server: &str, variant: &str) -> String {
    if variant.is_empty() { server.to_owned() } else { format!("{server}, {variant}") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two servers at 1 and 100 clients, three runs each; one of Clearway's failed.
    pub(crate) fn example() -> Outcome {
        let mut outcome = Outcome {
            scenario: "hot-row".into(),
            title: "One hot row".into(),
            about: String::new(),
            remarks: "Why it is so.".into(),
            unit: "updates/s".into(),
            axis: "clients".into(),
            measure: Measure::Rate,
            when: String::new(),
            machine: String::new(),
            command: String::new(),
            seconds: 2.0,
            repeats: 3,
            points: vec![1, 100],
            variants: vec![String::new()],
            servers: Vec::new(),
            absent: Vec::new(),
            runs: Vec::new(),
            limit: Some(LimitFacts { name: "fdatasync".into(), rates: vec![9000.0, 10_000.0, 11_000.0], drawn: true }),
        };
        for (name, rates) in [("clearway", [8000.0, 90_000.0]), ("postgres", [9000.0, 2000.0])] {
            let facts = ServerFacts { name: name.into(), version: format!("{name} <1>"), ..ServerFacts::default() };
            outcome.servers.push(facts);
            for (at, rate) in rates.into_iter().enumerate() {
                for repeat in 1..=3 {
                    let failed =
                        (name == "clearway" && at == 1 && repeat == 3).then(|| "a \"quoted\" reason".to_owned());
                    let rate = rate * f64::from(repeat) / 2.0;
                    let group = GroupFacts {
                        name: "updates".into(),
                        rate,
                        p50_ms: 0.1,
                        least_most: (u64::from(repeat), 10),
                        ..GroupFacts::default()
                    };
                    outcome.runs.push(RunFacts {
                        server: name.into(),
                        x: [1, 100][at],
                        repeat,
                        failed,
                        value: rate,
                        groups: vec![group],
                        ..RunFacts::default()
                    });
                }
            }
        }
        outcome
    }

    #[test]
    fn medians_leave_out_what_failed_and_name_it() {
        let mut outcome = example();
        let cell = outcome.cell("clearway", "", 100).expect("two runs count");
        assert_eq!((cell.value, cell.lowest, cell.highest), (67_500.0, 45_000.0, 90_000.0));
        assert_eq!(cell.least_most, (1, 10));
        assert_eq!(outcome.cell("postgres", "", 1).map(|cell| cell.value), Some(9000.0));
        assert_eq!(outcome.cell("postgres", "", 7), None);
        assert_eq!(outcome.cell("postgres", "other", 1), None);
        assert_eq!(outcome.failures().len(), 1);
        assert_eq!(outcome.best_peer("", 100).map(|(name, _)| name), Some("postgres"));
        outcome.servers[1].is_limit = true;
        assert_eq!(outcome.best_peer("", 100), None);
        assert_eq!((median(&[]), median(&[3.0, 1.0, 2.0])), (None, Some(2.0)));
    }
}
