//! The values of the queries, and the text that Prometheus reads.
//!
//! Source of the format: the Prometheus text exposition format 0.0.4, and OpenMetrics 1.0 for clients that ask for it.

use crate::custom::{Query, Usage, parse};
use crate::link::Table;
use crate::options::Queries;
use crate::sample::History;
use crate::source::{Kind, Source};
use clearway_base::sync::{Mutex, sleep};
use clearway_base::waits::now_ns;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

/// The classes of waits that active sessions have, and none.
const CLASSES: [&str; 7] = ["CPU", "Lock", "LWLock", "IO", "Scheduler", "IPC", "Timeout"];
/// Series that one query may have (CON-3).
const SERIES_MAX: usize = 10_000;

/// The queries that come with the program, by the kind of the server.
fn built_in(kind: Kind) -> Vec<Query> {
    let (name, text) = match kind {
        Kind::Clearway => ("clearway.yaml", include_str!("queries/clearway.yaml")),
        Kind::PostgreSql => ("postgresql.yaml", include_str!("queries/postgresql.yaml")),
        Kind::MariaDb | Kind::MySql => ("mysql.yaml", include_str!("queries/mysql.yaml")),
    };
    parse(name, text).unwrap_or_default()
}

/// What the latest run of a query gave.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// Its series as text, by metric.
    families: Vec<Family>,
    seconds: f64,
    errors: u64,
    error: Option<String>,
}

#[derive(Clone, Debug)]
struct Family {
    name: String,
    is_counter: bool,
    help: String,
    /// Labels and value.
    series: Vec<(String, f64)>,
}

/// All metrics.
pub(crate) struct Metrics {
    file: Option<Queries>,
    outcomes: Mutex<BTreeMap<String, Outcome>>,
}

impl Metrics {
    pub(crate) fn new(file: Option<Queries>) -> Metrics {
        Metrics { file, outcomes: Mutex::new("console/metrics", BTreeMap::new()) }
    }

    /// The queries of the next run: those that come along, and those of the file as it is now. A mistake in the file is told as the error
    /// of a query with the file's name, and the queries of `before` stay.
    fn queries(&self, kind: Kind, before: Vec<Query>) -> Vec<Query> {
        let Some(file) = &self.file else { return if before.is_empty() { built_in(kind) } else { before } };
        let queries: Vec<Query> = match file.parse() {
            Ok(own) => built_in(kind).into_iter().chain(own).collect(),
            Err(problem) => {
                let mut outcomes = self.outcomes.lock();
                let outcome = outcomes.entry(file.name.clone()).or_default();
                outcome.errors += 1;
                outcome.error = Some(problem.to_string());
                return if before.is_empty() { built_in(kind) } else { before };
            }
        };
        self.outcomes.lock().retain(|name, _| queries.iter().any(|query| query.name == *name));
        queries
    }

    /// What stands in the way of the queries, by query.
    pub(crate) fn errors(&self) -> Vec<(String, String)> {
        let outcomes = self.outcomes.lock();
        outcomes.iter().filter_map(|(name, o)| o.error.clone().map(|error| (name.clone(), error))).collect()
    }

    /// All series.
    pub(crate) fn text(&self, source: &Source, history: &History, open_metrics: bool) -> String {
        let mut out = Text { out: String::new(), open_metrics };
        out.one("clearway_watch_up", "1 if the watched server answers", f64::from(u8::from(source.seen().connected)));
        if let Some((classes, blocked, longest)) = history.newest() {
            // A class without sessions is 0: a series that comes and goes makes holes in a graph.
            let mut all: BTreeMap<&str, u32> = CLASSES.iter().map(|class| (*class, 0)).collect();
            all.extend(classes.iter().map(|(class, n)| (&**class, *n)));
            let by_class = all.iter().map(|(class, n)| (label("class", class), f64::from(*n))).collect();
            out.family(&Family {
                name: "clearway_watch_active_sessions".to_owned(),
                is_counter: false,
                help: "sessions at work in the newest second, by what they wait for".to_owned(),
                series: by_class,
            });
            out.one(
                "clearway_watch_blocked_sessions",
                "sessions that wait for a lock of another one",
                f64::from(blocked),
            );
            out.one("clearway_watch_longest_block_seconds", "the longest of these waits", longest);
        }
        let outcomes = self.outcomes.lock();
        let of = |value: fn(&Outcome) -> f64| outcomes.iter().map(|(n, o)| (label("query", n), value(o))).collect();
        out.family(&Family {
            name: "clearway_watch_query_seconds".to_owned(),
            is_counter: false,
            help: "how long the latest run of a query took".to_owned(),
            series: of(|o| o.seconds),
        });
        out.family(&Family {
            name: "clearway_watch_query_errors_total".to_owned(),
            is_counter: true,
            help: "runs of a query that failed".to_owned(),
            series: of(|o| o.errors as f64),
        });
        outcomes.values().flat_map(|o| &o.families).for_each(|family| out.family(family));
        if open_metrics {
            out.out.push_str("# EOF\n");
        }
        out.out
    }
}

/// The text under construction.
struct Text {
    out: String,
    open_metrics: bool,
}

impl Text {
    fn one(&mut self, name: &str, help: &str, value: f64) {
        let series = vec![(String::new(), value)];
        self.family(&Family { name: name.to_owned(), is_counter: false, help: help.to_owned(), series });
    }

    fn family(&mut self, family: &Family) {
        let Family { name, is_counter, help, series } = family;
        // OpenMetrics wants `_total` at the end of a counter's name; a name that a user chose is kept, and its type is not said.
        let (shown, kind) = match (self.open_metrics, is_counter, name.strip_suffix("_total")) {
            (true, true, Some(stem)) => (stem, "counter"),
            (true, true, None) => (name.as_str(), "unknown"),
            (_, true, _) => (name.as_str(), "counter"),
            (_, false, _) => (name.as_str(), "gauge"),
        };
        let help =
            help.replace('\\', "\\\\").replace('\n', "\\n").replace('"', if self.open_metrics { "\\\"" } else { "\"" });
        // Writing to a string does not fail.
        _ = writeln!(self.out, "# HELP {shown} {help}\n# TYPE {shown} {kind}");
        for (labels, value) in series {
            let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            _ = match value {
                v if v.is_nan() => writeln!(self.out, "{name}{braces} NaN"),
                v if v.is_infinite() => writeln!(self.out, "{name}{braces} {}Inf", if *v > 0.0 { "+" } else { "-" }),
                v => writeln!(self.out, "{name}{braces} {v}"),
            };
        }
    }
}

fn label(name: &str, value: &str) -> String {
    format!("{name}=\"{}\"", value.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\""))
}

/// Runs all queries at the interval until the process ends.
pub(crate) async fn run(source: &Source, metrics: &Metrics, interval: Duration) {
    loop {
        let (mut link, kind) = source.attach().await;
        let (mut queries, mut is_there) = (Vec::new(), true);
        while is_there {
            queries = metrics.queries(kind, queries);
            for query in &queries {
                let began = now_ns();
                let ran = match link.table(&query.sql, SERIES_MAX + 1).await {
                    Ok(table) => values(&table, query),
                    Err(error) => {
                        is_there &= error.code.is_some_and(|code| !code.starts_with("57P"));
                        Err(error.text)
                    }
                };
                let mut outcomes = metrics.outcomes.lock();
                let outcome = outcomes.entry(query.name.clone()).or_default();
                outcome.seconds = now_ns().saturating_sub(began) as f64 / 1e9;
                match ran {
                    Ok(families) => (outcome.families, outcome.error) = (families, None),
                    Err(error) => {
                        // Old values would look like new ones.
                        outcome.families = Vec::new();
                        outcome.errors += 1;
                        outcome.error = Some(error);
                    }
                }
            }
            sleep(interval).await;
        }
    }
}

fn values(table: &Table, query: &Query) -> Result<Vec<Family>, String> {
    let rows = &table.rows;
    if rows.len() > SERIES_MAX {
        return Err(format!("more rows than the {SERIES_MAX} that one query may give"));
    }
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let place = |name: &str| table.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
    let field = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten();
    let mut places = Vec::new();
    for column in &query.columns {
        let at = place(&column.name).ok_or_else(|| format!("the query gives no column \"{}\"", column.name))?;
        places.push((column, at));
    }
    let labels = |row: &[Option<String>]| {
        let labels = places.iter().filter(|(column, _)| column.usage == Usage::Label);
        labels
            .map(|(column, at)| label(&column.name, &field(row, *at).unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(",")
    };
    // Prometheus refuses a page on which one series has two values.
    let mut known = HashSet::new();
    if let Some(row) = rows.iter().find(|row| !known.insert(labels(row))) {
        return Err(format!("two rows have the same labels: {{{}}}", labels(row)));
    }
    let mut families = Vec::new();
    for (column, at) in &places {
        let mut series = Vec::new();
        for row in rows {
            let Some(text) = field(row, *at) else { continue };
            let value = match &column.usage {
                Usage::Label | Usage::Discard => break,
                Usage::Mapped(numbers) => numbers.get(&text).copied().unwrap_or(f64::NAN),
                Usage::Gauge | Usage::Counter => {
                    number(&text).ok_or_else(|| format!("column \"{}\": \"{text}\" is no number", column.name))?
                }
            };
            series.push((labels(row), value));
        }
        if !matches!(column.usage, Usage::Label | Usage::Discard) {
            let (name, help) = (format!("{}_{}", query.name, column.name), column.description.clone());
            families.push(Family { name, is_counter: column.usage == Usage::Counter, help, series });
        }
    }
    Ok(families)
}

fn number(text: &str) -> Option<f64> {
    match text {
        "t" => Some(1.0),
        "f" => Some(0.0),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queries_that_come_along_are_read() {
        for kind in [Kind::Clearway, Kind::PostgreSql, Kind::MariaDb, Kind::MySql] {
            assert!(!built_in(kind).is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn a_mistake_in_the_file_leaves_the_queries_that_ran() {
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        let reads = AtomicUsize::new(0);
        let read = Box::new(move || match reads.fetch_add(1, Relaxed) {
            0 => Ok("mine:\n  query: select 1 as a\n  metrics:\n    - a: {usage: GAUGE}\n".to_owned()),
            1 => Ok("mine: [".to_owned()),
            _ => Ok("other:\n  query: select 1 as a\n  metrics:\n    - a: {usage: GAUGE}\n".to_owned()),
        });
        let metrics = Metrics::new(Some(Queries { name: "q.yaml".to_owned(), read }));
        let has = |queries: &[Query], name: &str| queries.iter().any(|query| query.name == name);
        let first = metrics.queries(Kind::Clearway, Vec::new());
        assert!(has(&first, "mine") && has(&first, "clearway_wait"));
        let second = metrics.queries(Kind::Clearway, first);
        assert!(has(&second, "mine"));
        assert_eq!(metrics.errors().first().map(|(name, _)| name.as_str()), Some("q.yaml"));
        let third = metrics.queries(Kind::Clearway, second);
        assert!(has(&third, "other") && !has(&third, "mine"));
        assert!(metrics.errors().is_empty());
    }

    #[test]
    fn both_formats_spell_names_and_labels_as_they_must() {
        let family = |name: &str| Family {
            name: name.to_owned(),
            is_counter: true,
            help: "a \"b\"\nc".to_owned(),
            series: vec![(label("l", "x\"\\\ny"), 1.5), (String::new(), f64::INFINITY)],
        };
        let text = |name: &str, open_metrics: bool| {
            let mut out = Text { out: String::new(), open_metrics };
            out.family(&family(name));
            out.out
        };
        assert_eq!(
            text("q_COUNT_STAR", false),
            "# HELP q_COUNT_STAR a \"b\"\\nc\n# TYPE q_COUNT_STAR counter\nq_COUNT_STAR{l=\"x\\\"\\\\\\ny\"} 1.5\nq_COUNT_STAR +Inf\n"
        );
        assert!(text("q_COUNT_STAR", true).contains("# TYPE q_COUNT_STAR unknown\n"));
        assert!(text("q_total", true).contains("# TYPE q counter\nq_total{"));
    }
}
