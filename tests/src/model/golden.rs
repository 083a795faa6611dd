//! Writes the results of the searches as text: `docs/design/protocol-model-traces.md` is made of it and checked against it.

use std::fmt::Write;

use super::explore::{Coverage, Trace, explore};
use super::mutation::{Mutation, Planted};
use super::program::Scenario;
use super::scenarios::{SCENARIOS, killer_of};

/// Seed of the fingerprints; any will do.
pub const SEED: u64 = 1;

/// The scenario in which the pair of mutations is planted that are harmless alone.
pub const PAIR: (&str, [Mutation; 2]) = ("retiring", [Mutation::NoPageRevalidation, Mutation::RetireBeforeEpochs]);

/// One line of the table of scenarios.
pub fn line(scenario: &Scenario, seen: &Coverage) -> String {
    let kills: Vec<String> = scenario.kills.iter().map(|mutation| format!("{mutation:?}")).collect();
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        scenario.name,
        seen.states,
        seen.transitions,
        seen.crashes,
        seen.finished,
        seen.depth,
        kills.join(", ")
    )
}

/// One trace.
pub fn section(planted: &[Mutation], scenario: &Scenario, trace: &Trace) -> String {
    let names: Vec<String> = planted.iter().map(|mutation| format!("{mutation:?}")).collect();
    let mut text = format!("## {}\n\nScenario \"{}\".\n\n", names.join(" and "), scenario.name);
    for (number, step) in trace.steps.iter().enumerate() {
        let _ = writeln!(text, "{}. {step}", number + 1);
    }
    let _ = writeln!(text, "\n**{}**\n", trace.violation);
    text
}

/// The whole file, by running every search.
///
/// # Panics
/// When the design fails, or a mutation is not found.
pub fn whole() -> String {
    let mut text = String::from(HEAD);
    for scenario in SCENARIOS {
        let seen = explore(scenario, Planted::NONE, SEED).expect("the design passes");
        text.push_str(&line(scenario, &seen));
    }
    text.push('\n');
    for mutation in Mutation::ALL {
        let Some(scenario) = killer_of(mutation) else {
            continue;
        };
        let trace = explore(scenario, Planted::of(&[mutation]), SEED).expect_err("a mutation is found");
        text.push_str(&section(&[mutation], scenario, &trace));
    }
    let scenario = super::scenarios::named(PAIR.0);
    let trace = explore(scenario, Planted::of(&PAIR.1), SEED).expect_err("the pair is found");
    text.push_str(&section(&PAIR.1, scenario, &trace));
    format!("{}\n", text.trim_end())
}

const HEAD: &str = "\
# What the model of the protocol found

Written by `CLEARWAY_REWRITE=1 cargo test -p clearway-tests --test protocol_model golden`, and checked by every run of
that test binary. Sessions are A, B and C; the session that runs after recovery is A. An LSN is the number of records up to
the end of the one it names. Each trace is a shortest one.

| scenario | states | transitions | states after a crash | states with all work done | depth | must find |
|---|---|---|---|---|---|---|
";
