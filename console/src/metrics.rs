//! The values of the custom queries, and the text that Prometheus reads.
//!
//! Source of the format: the Prometheus text exposition format 0.0.4, and OpenMetrics 1.0 for clients that ask for it.

use crate::custom::{Query, Usage, parse};
use crate::link::Table;
use crate::options::Queries;
use crate::processors::Processors;
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
/// Buckets of a histogram.
const BUCKETS_MAX: usize = 200;

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

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Gauge,
    Counter,
    /// Its series end with `_bucket`, `_sum` and `_count`.
    Histogram,
}

#[derive(Clone, Debug)]
struct Family {
    name: String,
    shape: Shape,
    help: String,
    /// What follows the name in a series' own, labels and value.
    series: Vec<(&'static str, String, f64)>,
}

/// Series of the family's own name.
fn plain(series: impl IntoIterator<Item = (String, f64)>) -> Vec<(&'static str, String, f64)> {
    series.into_iter().map(|(labels, value)| ("", labels, value)).collect()
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

    /// The errors of the queries, by query.
    pub(crate) fn errors(&self) -> Vec<(String, String)> {
        let outcomes = self.outcomes.lock();
        outcomes.iter().filter_map(|(name, o)| o.error.clone().map(|error| (name.clone(), error))).collect()
    }

    /// All series.
    pub(crate) fn text(&self, source: &Source, history: &History, open_metrics: bool) -> String {
        let mut out = Text { out: String::new(), open_metrics };
        out.one("clearway_watch_up", "1 if the watched server answers", f64::from(u8::from(source.seen().connected)));
        if let Processors::Known(count) = source.processors() {
            out.one("clearway_watch_processors", "processors of the watched server", f64::from(count));
        }
        if let Some((classes, blocked, longest)) = history.newest() {
            // A class without sessions is 0: a series that comes and goes makes holes in a graph.
            let mut all: BTreeMap<&str, u32> = CLASSES.iter().map(|class| (*class, 0)).collect();
            all.extend(classes.iter().map(|(class, n)| (&**class, *n)));
            let by_class = all.iter().map(|(class, n)| (label("class", class), f64::from(*n)));
            out.family(&Family {
                name: "clearway_watch_active_sessions".to_owned(),
                shape: Shape::Gauge,
                help: "sessions at work in the newest second, by what they wait for".to_owned(),
                series: plain(by_class),
            });
            out.one(
                "clearway_watch_blocked_sessions",
                "sessions that wait for a lock of another one",
                f64::from(blocked),
            );
            out.one("clearway_watch_longest_block_seconds", "the longest of these waits", longest);
        }
        let outcomes = self.outcomes.lock();
        let of = |value: fn(&Outcome) -> f64| plain(outcomes.iter().map(|(n, o)| (label("query", n), value(o))));
        out.family(&Family {
            name: "clearway_watch_query_seconds".to_owned(),
            shape: Shape::Gauge,
            help: "how long the latest run of a query took".to_owned(),
            series: of(|o| o.seconds),
        });
        out.family(&Family {
            name: "clearway_watch_query_errors_total".to_owned(),
            shape: Shape::Counter,
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
        let series = plain([(String::new(), value)]);
        self.family(&Family { name: name.to_owned(), shape: Shape::Gauge, help: help.to_owned(), series });
    }

    fn family(&mut self, family: &Family) {
        let Family { name, shape, help, series } = family;
        // OpenMetrics wants `_total` at the end of a counter's name; a name that a user chose is kept, and its type is not said.
        let (shown, kind) = match (self.open_metrics, shape, name.strip_suffix("_total")) {
            (true, Shape::Counter, Some(stem)) => (stem, "counter"),
            (true, Shape::Counter, None) => (name.as_str(), "unknown"),
            (_, Shape::Counter, _) => (name.as_str(), "counter"),
            (_, Shape::Gauge, _) => (name.as_str(), "gauge"),
            (_, Shape::Histogram, _) => (name.as_str(), "histogram"),
        };
        let help =
            help.replace('\\', "\\\\").replace('\n', "\\n").replace('"', if self.open_metrics { "\\\"" } else { "\"" });
        // Writing to a string does not fail.
        _ = writeln!(self.out, "# HELP {shown} {help}\n# TYPE {shown} {kind}");
        for (end, labels, value) in series {
            let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            _ = match value {
                v if v.is_nan() => writeln!(self.out, "{name}{end}{braces} NaN"),
                v if v.is_infinite() => {
                    writeln!(self.out, "{name}{end}{braces} {}Inf", if *v > 0.0 { "+" } else { "-" })
                }
                v => writeln!(self.out, "{name}{end}{braces} {v}"),
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
        let of_histogram = match column.usage {
            Usage::Histogram => Some(Histogram::of(&column.name, *at, &place)?),
            _ => None,
        };
        for row in rows {
            if let Some(histogram) = &of_histogram {
                histogram.read(row, &labels(row), &mut series)?;
                continue;
            }
            let Some(text) = field(row, *at) else { continue };
            let value = match &column.usage {
                Usage::Label | Usage::Discard | Usage::Histogram => break,
                Usage::Mapped(numbers) => numbers.get(&text).copied().unwrap_or(f64::NAN),
                Usage::Gauge | Usage::Counter => {
                    number(&text).ok_or_else(|| format!("column \"{}\": \"{text}\" is no number", column.name))?
                }
            };
            series.push(("", labels(row), value));
        }
        if !matches!(column.usage, Usage::Label | Usage::Discard) {
            let (name, help) = (format!("{}_{}", query.name, column.name), column.description.clone());
            let shape = match column.usage {
                Usage::Counter => Shape::Counter,
                Usage::Histogram => Shape::Histogram,
                _ => Shape::Gauge,
            };
            families.push(Family { name, shape, help, series });
        }
    }
    if families.iter().map(|family| family.series.len()).sum::<usize>() > SERIES_MAX * query.columns.len() {
        return Err(format!("more buckets than the {SERIES_MAX} series that one query may give"));
    }
    Ok(families)
}

/// Where the parts of a histogram stand in a row, as postgres_exporter has them.
struct Histogram<'c> {
    column: &'c str,
    bounds: usize,
    buckets: usize,
    sum: usize,
    count: usize,
}

impl<'c> Histogram<'c> {
    fn of(column: &'c str, bounds: usize, place: &dyn Fn(&str) -> Option<usize>) -> Result<Self, String> {
        let part = |end: &str| {
            let name = format!("{column}{end}");
            place(&name).ok_or_else(|| format!("the histogram \"{column}\" needs a column \"{name}\""))
        };
        let (buckets, sum, count) = (part("_bucket")?, part("_sum")?, part("_count")?);
        Ok(Histogram { column, bounds, buckets, sum, count })
    }

    /// The series of a row; a row whose bounds are NULL has none.
    fn read(
        &self,
        row: &[Option<String>],
        labels: &str,
        series: &mut Vec<(&'static str, String, f64)>,
    ) -> Result<(), String> {
        let text = |at: usize| row.get(at).and_then(Option::as_deref);
        let wrong = |what: &str| format!("histogram \"{}\": {what}", self.column);
        let Some(bounds) = text(self.bounds) else { return Ok(()) };
        let bounds = numbers(bounds).ok_or_else(|| wrong("its bounds are no array of numbers"))?;
        let buckets =
            text(self.buckets).and_then(numbers).ok_or_else(|| wrong("its buckets are no array of numbers"))?;
        let one =
            |at: usize, what: &str| text(at).and_then(number).ok_or_else(|| wrong(&format!("its {what} is no number")));
        let (sum, count) = (one(self.sum, "sum")?, one(self.count, "count")?);
        if bounds.len() != buckets.len() {
            return Err(wrong(&format!("{} bounds, and {} buckets", bounds.len(), buckets.len())));
        }
        if bounds.len() > BUCKETS_MAX || !bounds.is_sorted_by(|a, b| a < b) {
            return Err(wrong(&format!("its bounds must rise, and be at most {BUCKETS_MAX}")));
        }
        // Each bucket has what is in those below it as well, and the last one has all.
        if !buckets.is_sorted() || buckets.last().is_some_and(|last| *last > count) {
            return Err(wrong("a bucket has fewer than the one below it, or more than the count"));
        }
        let with = |bound: &str| match labels {
            "" => label("le", bound),
            labels => format!("{labels},{}", label("le", bound)),
        };
        let finite = bounds.iter().zip(&buckets).filter(|(bound, _)| bound.is_finite());
        series.extend(finite.map(|(bound, value)| ("_bucket", with(&bound.to_string()), *value)));
        series.extend([
            ("_bucket", with("+Inf"), count),
            ("_sum", labels.to_owned(), sum),
            ("_count", labels.to_owned(), count),
        ]);
        Ok(())
    }
}

/// An array as PostgreSQL writes it, or a list with commas as MySQL's functions give it.
fn numbers(text: &str) -> Option<Vec<f64>> {
    let list = text.trim().trim_start_matches(['{', '[']).trim_end_matches(['}', ']']);
    if list.trim().is_empty() {
        return Some(Vec::new());
    }
    list.split(',').map(|one| one.trim().parse::<f64>().ok().filter(|one| !one.is_nan())).collect()
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
    fn a_histogram_is_what_the_exporter_makes_of_it() {
        let text = "h:\n  query: q\n  metrics:\n    - kind: {usage: LABEL}\n    - Age: {usage: HISTOGRAM}\n";
        let query = parse("q.yaml", text).expect("read").remove(0);
        let columns = ["kind", "age", "age_bucket", "age_sum", "age_count"].map(str::to_owned).to_vec();
        let of = |fields: [&str; 5]| {
            let rows = vec![fields.map(|field| Some(field.to_owned())).to_vec()];
            let families = values(&Table { columns: columns.clone(), rows }, &query)?;
            let mut out = Text { out: String::new(), open_metrics: true };
            families.iter().for_each(|family| out.family(family));
            Ok::<_, String>(out.out)
        };
        let told = of(["a", "{0.1,1,2.5}", "{1,4,4}", "9.5", "5"]).expect("a histogram");
        let wanted = "# TYPE h_Age histogram\nh_Age_bucket{kind=\"a\",le=\"0.1\"} 1\nh_Age_bucket{kind=\"a\",le=\"1\"} 4\n\
             h_Age_bucket{kind=\"a\",le=\"2.5\"} 4\nh_Age_bucket{kind=\"a\",le=\"+Inf\"} 5\nh_Age_sum{kind=\"a\"} 9.5\nh_Age_count{kind=\"a\"} 5\n";
        assert!(told.ends_with(wanted), "{told}");
        for (fields, why) in [
            (["a", "{1}", "{1,2}", "1", "2"], "1 bounds, and 2 buckets"),
            (["a", "{2,1}", "{1,2}", "1", "2"], "must rise"),
            (["a", "{1,2}", "{2,1}", "1", "2"], "fewer than the one below"),
            (["a", "{1,2}", "{1,3}", "1", "2"], "more than the count"),
            (["a", "{1,x}", "{1,2}", "1", "2"], "no array of numbers"),
            (["a", "{1}", "{1}", "", "2"], "its sum is no number"),
        ] {
            let said = of(fields).expect_err(why);
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn both_formats_spell_names_and_labels_as_they_must() {
        let family = |name: &str| Family {
            name: name.to_owned(),
            shape: Shape::Counter,
            help: "a \"b\"\nc".to_owned(),
            series: plain([(label("l", "x\"\\\ny"), 1.5), (String::new(), f64::INFINITY)]),
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
