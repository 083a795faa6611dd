//! An outcome as JSON: every run, nothing rounded away.

use std::fmt::Write as _;

use crate::outcome::{GroupFacts, Outcome, RunFacts};

/// The outcome as one JSON object.
pub fn json(outcome: &Outcome) -> String {
    let servers = outcome.servers.iter().map(|server| {
        let settings = server.settings.iter().map(|(name, value)| array([string(name), string(value)]));
        object([
            ("name", string(&server.name)),
            ("version", string(&server.version)),
            ("is_limit", server.is_limit.to_string()),
            ("settings", array(settings)),
        ])
    });
    let limit = outcome.limit.as_ref().map_or_else(
        || "null".to_owned(),
        |limit| object([("name", string(&limit.name)), ("per_second", array(limit.rates.iter().map(number)))]),
    );
    let whole = object([
        ("scenario", string(&outcome.scenario)),
        ("unit", string(&outcome.unit)),
        ("axis", string(&outcome.axis)),
        ("when", string(&outcome.when)),
        ("machine", string(&outcome.machine)),
        ("command", string(&outcome.command)),
        ("seconds", number(&outcome.seconds)),
        ("repeats", outcome.repeats.to_string()),
        ("servers", array(servers)),
        ("absent", array(outcome.absent.iter().map(|text| string(text)))),
        ("limit", limit),
        ("runs", format!("[\n{}\n]", outcome.runs.iter().map(run).collect::<Vec<_>>().join(",\n"))),
    ]);
    whole + "\n"
}

fn run(run: &RunFacts) -> String {
    object([
        ("server", string(&run.server)),
        ("variant", string(&run.variant)),
        ("x", run.x.to_string()),
        ("repeat", run.repeat.to_string()),
        ("failed", run.failed.as_ref().map_or_else(|| "null".to_owned(), |reason| string(reason))),
        ("value", number(&run.value)),
        ("server_cpu_us", option(run.cpu_us)),
        ("voluntary_switches", option(run.switches.map(|switches| switches.0))),
        ("involuntary_switches", option(run.switches.map(|switches| switches.1))),
        ("groups", array(run.groups.iter().map(group))),
    ])
}

fn option(value: Option<f64>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| number(&value))
}

fn group(group: &GroupFacts) -> String {
    let failures = group.failures.iter().map(|(what, count)| array([string(what), count.to_string()]));
    object([
        ("name", string(&group.name)),
        ("per_second", number(&group.rate)),
        ("p50_ms", number(&group.p50_ms)),
        ("p99_ms", number(&group.p99_ms)),
        ("greatest_ms", number(&group.greatest_ms)),
        ("slowest_tenth", number(&group.steadiness)),
        ("steps_ms", array(group.step_ms.iter().map(number))),
        ("least_of_a_client", group.least_most.0.to_string()),
        ("most_of_a_client", group.least_most.1.to_string()),
        ("failures", array(failures)),
    ])
}

fn object<const N: usize>(fields: [(&str, String); N]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{}: {value}", string(name))).collect();
    format!("{{{}}}", fields.join(", "))
}

fn array(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// JSON knows no infinity and no NaN.
fn number(value: &f64) -> String {
    if value.is_finite() { format!("{value:.3}") } else { "null".to_owned() }
}

fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c < ' ' => drop(write!(quoted, "\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_needs_care() {
        assert_eq!(string("a\"b\\c\nd\u{e9}"), "\"a\\\"b\\\\c\\u000ad\u{e9}\"");
        assert_eq!((number(&f64::NAN), number(&1.0)), ("null".to_owned(), "1.000".to_owned()));
        assert_eq!(object([("a", array(["1".to_owned(), "2".to_owned()]))]), "{\"a\": [1, 2]}");
    }
}
