//! Queries whose results become metrics: the YAML that the exporters for PostgreSQL and MySQL read.
//!
//! ```yaml
//! mysql_mutex:
//!   query: "SELECT EVENT_NAME, COUNT_STAR FROM ..."
//!   metrics:
//!     - EVENT_NAME:
//!         usage: "LABEL"
//!         description: "which"
//! ```
//! A series is named after the query and the column, as the file spells them, although SQL folds a column's name.

use marked_yaml::{Node, Span};
use std::collections::{HashMap, HashSet};

/// What a column is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Usage {
    /// A label of the other columns' series.
    Label,
    /// A value that rises and falls.
    Gauge,
    /// A value that only rises.
    Counter,
    /// Nothing.
    Discard,
    /// A text that is mapped to a number.
    Mapped(HashMap<String, f64>),
    /// Upper bounds of buckets, as an array; the columns of the same name with `_bucket` (an array, each with those below it), `_sum` and
    /// `_count` have the figures.
    Histogram,
}

/// A column of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// As the file spells it.
    pub name: String,
    /// What it is for.
    pub usage: Usage,
    /// For people.
    pub description: String,
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The first part of the series' names.
    pub name: String,
    /// One statement.
    pub sql: String,
    /// The columns.
    pub columns: Vec<Column>,
}

/// What is wrong with a file of queries, and where.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}:{line}: {what}")]
pub struct Problem {
    /// The file's name.
    pub file: String,
    /// From 1; 0 if the parser does not know.
    pub line: usize,
    /// In a sentence.
    pub what: String,
}

struct Reader<'f> {
    file: &'f str,
}

/// Reads a file of queries.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(file: &str, text: &str) -> Result<Vec<Query>, Problem> {
    let reader = Reader { file };
    if text.trim().is_empty() {
        return Err(reader.problem(1, "the file is empty"));
    }
    let root = marked_yaml::parse_yaml(0, text).map_err(|error| {
        let (line, what) = place_of(&error.to_string());
        reader.problem(line, format!("not YAML: {what}"))
    })?;
    let mut queries: Vec<Query> = Vec::new();
    for (name, body) in reader.pairs(&root, "the file is no mapping of names to queries")? {
        if !is_metric_name(&name) {
            return Err(reader.at(body, format!("\"{name}\" is no name for a metric: letters, digits, _ and :")));
        }
        if queries.iter().any(|known| known.name == name) {
            return Err(reader.at(body, format!("there are two queries named \"{name}\"")));
        }
        queries.push(reader.query(name, body)?);
    }
    Ok(queries)
}

/// The line that an error of the parser begins with (`LINE:COLUMN: text`), and the rest.
fn place_of(error: &str) -> (usize, String) {
    let parts: Vec<&str> = error.splitn(3, ':').collect();
    match (parts.first().and_then(|line| line.trim().parse().ok()), parts.get(2)) {
        (Some(line), Some(what)) => (line, what.trim().to_owned()),
        _ => (0, error.to_owned()),
    }
}

fn line_of(span: &Span) -> usize {
    span.start().map_or(0, marked_yaml::Marker::line)
}

fn is_metric_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

impl Reader<'_> {
    fn problem(&self, line: usize, what: impl Into<String>) -> Problem {
        Problem { file: self.file.to_owned(), line, what: what.into() }
    }

    fn at(&self, node: &Node, what: impl Into<String>) -> Problem {
        self.problem(line_of(node.span()), what)
    }

    /// The pairs of a mapping.
    fn pairs<'n>(&self, node: &'n Node, otherwise: &str) -> Result<Vec<(String, &'n Node)>, Problem> {
        let mapping = node.as_mapping().ok_or_else(|| self.at(node, otherwise))?;
        Ok(mapping.iter().map(|(key, value)| (key.as_str().to_owned(), value)).collect())
    }

    fn text(&self, node: &Node, what: &str) -> Result<String, Problem> {
        node.as_scalar().map(|s| s.as_str().to_owned()).ok_or_else(|| self.at(node, format!("{what} is no text")))
    }

    fn query(&self, name: String, body: &Node) -> Result<Query, Problem> {
        let (mut sql, mut columns) = (None, None);
        for (key, value) in self.pairs(body, "a query has the parts query and metrics")? {
            match key.as_str() {
                "query" => sql = Some(self.text(value, "query")?),
                "metrics" => columns = Some(self.columns(value)?),
                // The exporters' switches that change nothing here: the console runs everything at its own interval.
                "master" | "primary" | "cache_seconds" | "runonserver" => {}
                other => return Err(self.at(value, format!("\"{other}\" is no part of a query: query, metrics"))),
            }
        }
        let sql = sql.filter(|sql| !sql.trim().is_empty());
        let sql = sql.ok_or_else(|| self.at(body, format!("the query of \"{name}\" is missing")))?;
        let columns = columns.ok_or_else(|| self.at(body, format!("the metrics of \"{name}\" are missing")))?;
        let values = columns.iter().filter(|c| !matches!(c.usage, Usage::Label | Usage::Discard));
        if values.count() == 0 {
            return Err(self.at(
                body,
                format!("\"{name}\" has no column that is a value: GAUGE, COUNTER, MAPPEDMETRIC or HISTOGRAM"),
            ));
        }
        Ok(Query { name, sql, columns })
    }

    fn columns(&self, node: &Node) -> Result<Vec<Column>, Problem> {
        let list = node.as_sequence().ok_or_else(|| self.at(node, "metrics is no list of columns"))?;
        let (mut columns, mut names) = (Vec::new(), HashSet::new());
        for item in list.iter() {
            for (name, body) in self.pairs(item, "a column is a mapping of its name to usage and description")? {
                if !is_metric_name(&name) {
                    return Err(
                        self.at(body, format!("\"{name}\" is no name for a label or metric: letters, digits and _"))
                    );
                }
                if !names.insert(name.to_lowercase()) {
                    return Err(self.at(body, format!("the column \"{name}\" is listed twice")));
                }
                columns.push(self.column(name, body)?);
            }
        }
        Ok(columns)
    }

    fn column(&self, name: String, body: &Node) -> Result<Column, Problem> {
        let (mut usage, mut description, mut mapping) = (None, String::new(), HashMap::new());
        for (key, value) in self.pairs(body, "a column has the parts usage and description")? {
            match key.as_str() {
                "usage" => usage = Some((self.text(value, "usage")?, value)),
                "description" => description = self.text(value, "description")?,
                "metric_mapping" => mapping = self.mapping(value)?,
                other => {
                    return Err(self
                        .at(value, format!("\"{other}\" is no part of a column: usage, description, metric_mapping")));
                }
            }
        }
        let (word, place) = usage.ok_or_else(|| self.at(body, format!("the usage of \"{name}\" is missing")))?;
        let usage = match word.as_str() {
            "LABEL" => Usage::Label,
            "GAUGE" => Usage::Gauge,
            "COUNTER" => Usage::Counter,
            "DISCARD" => Usage::Discard,
            "MAPPEDMETRIC" if mapping.is_empty() => {
                return Err(self.at(place, format!("\"{name}\" is a MAPPEDMETRIC without metric_mapping")));
            }
            "MAPPEDMETRIC" => Usage::Mapped(mapping),
            "HISTOGRAM" => Usage::Histogram,
            "DURATION" => return Err(self.at(place, format!("the usage {word} is not supported"))),
            other => {
                return Err(self.at(
                    place,
                    format!("\"{other}\" is no usage: LABEL, GAUGE, COUNTER, DISCARD, MAPPEDMETRIC, HISTOGRAM"),
                ));
            }
        };
        Ok(Column { name, usage, description })
    }

    fn mapping(&self, node: &Node) -> Result<HashMap<String, f64>, Problem> {
        let pairs = self.pairs(node, "metric_mapping is no mapping of texts to numbers")?;
        let numbers = pairs.into_iter().map(|(text, value)| {
            let number = self.text(value, "a number of metric_mapping")?.parse::<f64>();
            number.map(|n| (text, n)).map_err(|_| self.at(value, "metric_mapping maps texts to numbers"))
        });
        numbers.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTEX: &str = r#"
mysql_global_status_innodb_mutex:
  query: "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM t"
  metrics:
    - EVENT_NAME:
        usage: "LABEL"
        description: "the mutex"
    - COUNT_STAR:
        usage: "COUNTER"
        description: "calls"
    - SUM_TIMER_WAIT:
        usage: "GAUGE"
        description: "picoseconds"
"#;

    #[test]
    fn the_exporters_file_is_read_with_its_spelling() {
        let queries = parse("q.yaml", MUTEX).expect("read");
        assert_eq!((queries.len(), queries[0].columns.len()), (1, 3));
        assert_eq!(
            (queries[0].columns[1].name.as_str(), &queries[0].columns[1].usage),
            ("COUNT_STAR", &Usage::Counter)
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (wrong, line, what) in [
            (MUTEX.replace("COUNTER", "COUNTR"), 9, "\"COUNTR\" is no usage"),
            (
                MUTEX.replace("  query: \"SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM t\"\n", ""),
                3,
                "the query of",
            ),
            (MUTEX.replace("COUNTER", "DURATION"), 9, "the usage DURATION is not supported"),
            (MUTEX.replace("- SUM_TIMER_WAIT", "- count_star"), 12, "is listed twice"),
            (MUTEX.replace("mysql_global_status_innodb_mutex", "my-mutex"), 3, "is no name for a metric"),
            ("a: b\nc: [".to_owned(), 3, "not YAML: while parsing"),
            ("- 1".to_owned(), 1, "not YAML: Top level must be a mapping"),
            (String::new(), 1, "empty"),
        ] {
            let problem = parse("q.yaml", &wrong).expect_err("refused");
            assert!(problem.what.contains(what), "{problem}");
            assert!(line == 0 || problem.line == line, "{problem}, expected at line {line}");
        }
    }
}
