//! An outcome as JSON: every run. Rates and times are rounded to three places.

use serde::{Serialize, Serializer};

use crate::outcome::{GroupFacts, Outcome, RunFacts, ServerFacts};

/// A figure. JSON knows no infinity and no NaN: they are null.
struct Figure(f64);

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = (self.0 * 1000.0).round() / 1000.0;
        if rounded.is_finite() { serializer.serialize_f64(rounded) } else { serializer.serialize_none() }
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    scenario: &'a str,
    unit: &'a str,
    axis: &'a str,
    when: &'a str,
    machine: &'a str,
    command: &'a str,
    seconds: Figure,
    repeats: u32,
    servers: Vec<Server<'a>>,
    absent: &'a [String],
    limit: Option<Limit<'a>>,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Server<'a> {
    name: &'a str,
    version: &'a str,
    is_limit: bool,
    settings: &'a [(String, String)],
}

#[derive(Serialize)]
struct Limit<'a> {
    name: &'a str,
    per_second: Vec<Figure>,
}

#[derive(Serialize)]
struct Run<'a> {
    server: &'a str,
    variant: &'a str,
    x: u32,
    repeat: u32,
    failed: Option<&'a str>,
    value: Figure,
    server_cpu_us: Option<Figure>,
    voluntary_switches: Option<Figure>,
    involuntary_switches: Option<Figure>,
    spin_us: Option<Figure>,
    unaccounted_percent: Option<Figure>,
    groups: Vec<Group<'a>>,
}

#[derive(Serialize)]
struct Group<'a> {
    name: &'a str,
    per_second: Figure,
    p50_ms: Figure,
    p99_ms: Figure,
    greatest_ms: Figure,
    slowest_tenth: Figure,
    steps_ms: Vec<Figure>,
    least_of_a_client: u64,
    most_of_a_client: u64,
    failures: &'a [(String, u64)],
}

/// The outcome as one JSON object, a run a line.
pub fn json(outcome: &Outcome) -> String {
    let whole = Whole {
        scenario: &outcome.scenario,
        unit: &outcome.unit,
        axis: &outcome.axis,
        when: &outcome.when,
        machine: &outcome.machine,
        command: &outcome.command,
        seconds: Figure(outcome.seconds),
        repeats: outcome.repeats,
        servers: outcome.servers.iter().map(server).collect(),
        absent: &outcome.absent,
        limit: outcome.limit.as_ref().map(|limit| Limit { name: &limit.name, per_second: figures(&limit.rates) }),
        runs: outcome.runs.iter().map(run).collect(),
    };
    // What is written has no maps with other keys than text, and no writer that fails.
    let text = serde_json::to_string(&whole).expect("an outcome is JSON");
    // A line for each run, so that two outcomes can be compared line by line.
    text.replace("{\"server\":", "\n{\"server\":") + "\n"
}

fn server(facts: &ServerFacts) -> Server<'_> {
    Server { name: &facts.name, version: &facts.version, is_limit: facts.is_limit, settings: &facts.settings }
}

fn figures(values: &[f64]) -> Vec<Figure> {
    values.iter().copied().map(Figure).collect()
}

fn run(run: &RunFacts) -> Run<'_> {
    Run {
        server: &run.server,
        variant: &run.variant,
        x: run.x,
        repeat: run.repeat,
        failed: run.failed.as_deref(),
        value: Figure(run.value),
        server_cpu_us: run.cpu_us.map(Figure),
        voluntary_switches: run.switches.map(|switches| Figure(switches.0)),
        involuntary_switches: run.switches.map(|switches| Figure(switches.1)),
        spin_us: run.spin_us.map(Figure),
        unaccounted_percent: run.unaccounted_percent.map(Figure),
        groups: run.groups.iter().map(group).collect(),
    }
}

fn group(group: &GroupFacts) -> Group<'_> {
    Group {
        name: &group.name,
        per_second: Figure(group.rate),
        p50_ms: Figure(group.p50_ms),
        p99_ms: Figure(group.p99_ms),
        greatest_ms: Figure(group.greatest_ms),
        slowest_tenth: Figure(group.steadiness),
        steps_ms: figures(&group.step_ms),
        least_of_a_client: group.least_most.0,
        most_of_a_client: group.least_most.1,
        failures: &group.failures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_and_what_is_none_is_null() {
        let text = serde_json::to_string(&[Figure(f64::NAN), Figure(1.0), Figure(2.0 / 3.0), Figure(f64::INFINITY)]);
        assert_eq!(text.expect("JSON"), "[null,1.0,0.667,null]");
    }
}
