//! Writes EXPLAIN's tree in its four formats, laid out as in PostgreSQL.

use super::actual::Actual;
use super::used;
use clearway_base::stack;
use clearway_values::types::json::escape;

/// A value of a property.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text.
    Text(String),
    /// Several texts.
    List(Vec<String>),
    /// A whole number.
    Int(i64),
    /// A number with so many digits after the point.
    Float(f64, usize),
    /// A truth value.
    Bool(bool),
    /// A line of FORMAT TEXT, and the properties that the other formats have of it.
    Line(String, Vec<(&'static str, Value)>),
}

/// A node of the plan.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// What it is: `Index Scan`.
    pub kind: String,
    /// How FORMAT TEXT begins its line: `Index Scan using i on t`.
    pub head: String,
    /// Further properties that FORMAT TEXT has in `head`.
    pub identity: Vec<(&'static str, Value)>,
    /// Cost before the first row, whole cost, rows, bytes of a row.
    pub estimate: (f64, f64, f64, u32),
    /// What was measured.
    pub actual: Option<Actual>,
    /// What its rows have, if that is to be told.
    pub output: Vec<String>,
    /// Conditions and keys.
    pub details: Vec<(&'static str, Value)>,
    /// Several threads share it.
    pub parallel: bool,
    /// Its inputs, each with its part and, for subqueries, a name.
    pub children: Vec<(&'static str, Option<String>, Shown)>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ExplainOptions {
    /// The statement is carried out.
    pub analyze: bool,
    /// All there is to say.
    pub verbose: bool,
    /// Estimates.
    pub costs: bool,
    /// Times of nodes.
    pub timing: bool,
    /// Times of the statement.
    pub summary: bool,
    /// Pages and temporary files of each node.
    pub buffers: bool,
    /// Records of the log.
    pub wal: bool,
    /// What the statement has waited for.
    pub waits: bool,
    /// Parameters have no values.
    pub generic: bool,
    /// The form.
    pub format: Format,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// XML.
    Xml,
}

/// A property of a structured format.
enum Property {
    Value(Value),
    Group(Vec<(String, Property)>),
    Plans(Vec<Vec<(String, Property)>>),
}

/// The plan and the properties behind it, as lines.
pub fn lines(plan: &Shown, behind: &[(&'static str, Value)], asked: &ExplainOptions) -> Vec<String> {
    if asked.format == Format::Text {
        let mut out = Vec::new();
        text(plan, 0, true, asked, &mut out);
        for (name, value) in behind {
            let unit = if name.ends_with("Time") { " ms" } else { "" };
            out.push(format!("{name}: {}{unit}", plain(value)));
        }
        return out;
    }
    let mut all = vec![("Plan".to_owned(), Property::Group(structured(plan, None, None, asked)))];
    for (name, value) in behind {
        if *name == "Execution Time" {
            all.push(("Triggers".to_owned(), Property::Plans(Vec::new())));
        }
        all.push(((*name).to_owned(), Property::Value(value.clone())));
    }
    if asked.analyze && !asked.summary {
        all.push(("Triggers".to_owned(), Property::Plans(Vec::new())));
    }
    let mut out = String::new();
    match asked.format {
        Format::Json => {
            out.push_str("[\n  {\n");
            json(&all, 2, &mut out);
            out.push_str("  }\n]");
        }
        Format::Yaml => yaml(&all, 0, "- ", &mut out),
        _ => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n");
            xml(&all, 2, &mut out);
            out.push_str("  </Query>\n</explain>");
        }
    }
    vec![out.trim_end_matches('\n').to_owned()]
}

fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::List(list) => list.join(", "),
        Value::Int(n) => n.to_string(),
        Value::Float(n, digits) => format!("{n:.digits$}"),
        Value::Bool(b) => b.to_string(),
        Value::Line(line, _) => line.clone(),
    }
}

fn text(node: &Shown, indent: usize, first: bool, asked: &ExplainOptions, out: &mut Vec<String>) {
    let mut line = format!("{}{}{}", " ".repeat(indent), if first { "" } else { "->  " }, node.head);
    let (startup, total, rows, width) = node.estimate;
    if asked.costs {
        line.push_str(&format!("  (cost={startup:.2}..{total:.2} rows={rows:.0} width={width})"));
    }
    match &node.actual {
        Some(a) if a.loops > 0 && asked.timing => line.push_str(&format!(
            " (actual time={:.3}..{:.3} rows={:.0} loops={})",
            a.first_ms(),
            a.total_ms(),
            a.rows_each(),
            a.loops
        )),
        Some(a) if a.loops > 0 => line.push_str(&format!(" (actual rows={:.0} loops={})", a.rows_each(), a.loops)),
        Some(_) => line.push_str(" (never executed)"),
        None => {}
    }
    out.push(line);
    let inner = if first { indent + 2 } else { indent + 6 };
    if !node.output.is_empty() {
        out.push(format!("{}Output: {}", " ".repeat(inner), node.output.join(", ")));
    }
    for (name, value) in &node.details {
        match value {
            Value::Line(line, _) => out.push(format!("{}{line}", " ".repeat(inner))),
            Value::Float(rows, _) if name.starts_with("Rows Removed") && *rows == 0.0 => {}
            value => out.push(format!("{}{name}: {}", " ".repeat(inner), plain(value))),
        }
    }
    let used = node.actual.map(|actual| used::lines(&actual.usage, (asked.buffers, asked.wal))).unwrap_or_default();
    out.extend(used.iter().map(|line| format!("{}{line}", " ".repeat(inner))));
    for (_, name, child) in &node.children {
        match name {
            Some(name) => {
                out.push(format!("{}{name}", " ".repeat(inner)));
                stack::deeper(|| text(child, inner + 2, false, asked, out));
            }
            None => stack::deeper(|| text(child, inner, false, asked, out)),
        }
    }
}

fn structured(node: &Shown, part: Option<&str>, name: Option<&str>, asked: &ExplainOptions) -> Vec<(String, Property)> {
    let mut out: Vec<(String, Property)> = Vec::new();
    let mut put = |name: &str, value: Value| out.push((name.to_owned(), Property::Value(value)));
    put("Node Type", Value::Text(node.kind.clone()));
    for (key, value) in node.identity.iter().filter(|i| matches!(i.0, "Strategy" | "Operation" | "Partial Mode")) {
        put(key, value.clone());
    }
    if let Some(part) = part {
        put("Parent Relationship", Value::Text(part.to_owned()));
    }
    if let Some(name) = name {
        let name = name.split(" (").next().unwrap_or(name);
        put("Subplan Name", Value::Text(name.to_owned()));
    }
    put("Parallel Aware", Value::Bool(node.parallel));
    put("Async Capable", Value::Bool(false));
    for (key, value) in node.identity.iter().filter(|i| !matches!(i.0, "Strategy" | "Operation" | "Partial Mode")) {
        put(key, value.clone());
    }
    let (startup, total, rows, width) = node.estimate;
    if asked.costs {
        put("Startup Cost", Value::Float(startup, 2));
        put("Total Cost", Value::Float(total, 2));
        put("Plan Rows", Value::Float(rows, 0));
        put("Plan Width", Value::Int(i64::from(width)));
    }
    if let Some(a) = &node.actual {
        if asked.timing {
            put("Actual Startup Time", Value::Float(a.first_ms(), 3));
            put("Actual Total Time", Value::Float(a.total_ms(), 3));
        }
        put("Actual Rows", Value::Float(a.rows_each(), 0));
        put("Actual Loops", Value::Int(i64::try_from(a.loops).unwrap_or(i64::MAX)));
    }
    if !node.output.is_empty() {
        put("Output", Value::List(node.output.clone()));
    }
    for (key, value) in &node.details {
        match value {
            Value::Line(_, parts) => parts.iter().for_each(|(key, value)| put(key, value.clone())),
            value => put(key, value.clone()),
        }
    }
    for (key, count) in
        node.actual.iter().flat_map(|actual| used::properties(&actual.usage, (asked.buffers, asked.wal)))
    {
        put(key, Value::Int(count.cast_signed()));
    }
    if !node.children.is_empty() {
        let plans =
            node.children.iter().map(|(part, name, child)| structured(child, Some(part), name.as_deref(), asked));
        out.push(("Plans".to_owned(), Property::Plans(plans.collect())));
    }
    out
}

/// A string of JSON, which is one of YAML, too.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    escape(text, &mut out);
    out
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Text(text) => escaped(text),
        Value::List(list) => format!("[{}]", list.iter().map(|t| escaped(t)).collect::<Vec<_>>().join(", ")),
        other => plain(other),
    }
}

fn json(list: &[(String, Property)], level: usize, out: &mut String) {
    for (i, (name, property)) in list.iter().enumerate() {
        let pad = "  ".repeat(level);
        out.push_str(&format!("{pad}{}: ", escaped(name)));
        match property {
            Property::Value(value) => out.push_str(&scalar(value)),
            Property::Group(inner) => {
                out.push_str("{\n");
                stack::deeper(|| json(inner, level + 1, out));
                out.push_str(&format!("{pad}}}"));
            }
            Property::Plans(plans) => {
                out.push_str("[\n");
                for (j, plan) in plans.iter().enumerate() {
                    out.push_str(&format!("{pad}  {{\n"));
                    stack::deeper(|| json(plan, level + 2, out));
                    out.push_str(&format!("{pad}  }}{}\n", if j + 1 < plans.len() { "," } else { "" }));
                }
                out.push_str(&format!("{pad}]"));
            }
        }
        out.push_str(if i + 1 < list.len() { ",\n" } else { "\n" });
    }
}

/// `first`: the text before the first property, in place of blanks.
fn yaml(list: &[(String, Property)], level: usize, first: &str, out: &mut String) {
    for (i, (name, property)) in list.iter().enumerate() {
        let pad = if i == 0 && !first.is_empty() {
            format!("{}{first}", "  ".repeat(level))
        } else {
            "  ".repeat(level + usize::from(!first.is_empty()))
        };
        let inner = level + usize::from(!first.is_empty());
        match property {
            Property::Value(Value::List(items)) => {
                out.push_str(&format!("{pad}{name}: \n"));
                for item in items {
                    out.push_str(&format!("{}- {}\n", "  ".repeat(inner + 1), escaped(item)));
                }
            }
            Property::Value(value) => out.push_str(&format!("{pad}{name}: {}\n", scalar(value))),
            Property::Group(group) => {
                out.push_str(&format!("{pad}{name}: \n"));
                stack::deeper(|| yaml(group, inner + 1, "", out));
            }
            Property::Plans(plans) => {
                out.push_str(&format!("{pad}{name}: \n"));
                plans.iter().for_each(|plan| stack::deeper(|| yaml(plan, inner + 1, "- ", out)));
            }
        }
    }
}

fn xml(list: &[(String, Property)], level: usize, out: &mut String) {
    let quoted = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    for (name, property) in list {
        let (pad, tag) = ("  ".repeat(level), name.replace(' ', "-"));
        match property {
            Property::Value(Value::List(items)) => {
                out.push_str(&format!("{pad}<{tag}>\n"));
                for item in items {
                    out.push_str(&format!("{pad}  <Item>{}</Item>\n", quoted(item)));
                }
                out.push_str(&format!("{pad}</{tag}>\n"));
            }
            Property::Value(value) => out.push_str(&format!("{pad}<{tag}>{}</{tag}>\n", quoted(&plain(value)))),
            Property::Group(group) => {
                out.push_str(&format!("{pad}<{tag}>\n"));
                stack::deeper(|| xml(group, level + 1, out));
                out.push_str(&format!("{pad}</{tag}>\n"));
            }
            Property::Plans(plans) => {
                out.push_str(&format!("{pad}<{tag}>\n"));
                for plan in plans {
                    out.push_str(&format!("{pad}  <Plan>\n"));
                    stack::deeper(|| xml(plan, level + 2, out));
                    out.push_str(&format!("{pad}  </Plan>\n"));
                }
                out.push_str(&format!("{pad}</{tag}>\n"));
            }
        }
    }
}
