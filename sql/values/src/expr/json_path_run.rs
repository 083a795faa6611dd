//! Runs a jsonpath over a document (src/backend/utils/adt/jsonpath_exec.c).

use super::from_char::moment;
use super::json_moment;
use super::pattern::{self, Pattern};
use crate::error::{Result, SqlError, code};
use crate::types::Numeric;
use crate::types::json::Json;
use crate::types::jsonpath::{JsonPath, Method, Node, Operand, PathOp, Step};
use clearway_base::{breath, memory, stack};
use jiff::tz::TimeZone;
use std::cmp::Ordering;
use std::sync::Arc;

/// What a path found.
pub type Found = Vec<Json>;

/// What a path is run with.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The variables: an object.
    pub variables: &'a Json,
    /// Whether errors of the path mean that nothing is found.
    pub silent: bool,
    /// The zone of times without one, for the functions that use it.
    pub zone: Option<&'a TimeZone>,
}

/// Why a path ends.
enum Stop {
    /// An error that `silent` and predicates take for nothing.
    Soft(SqlError),
    Hard(SqlError),
}

impl From<SqlError> for Stop {
    fn from(e: SqlError) -> Stop {
        Stop::Hard(e)
    }
}

impl From<clearway_base::breath::Stopped> for Stop {
    fn from(e: clearway_base::breath::Stopped) -> Stop {
        Stop::Hard(e.into())
    }
}

type Outcome<T> = std::result::Result<T, Stop>;

fn soft<T>(code: &'static str, message: impl Into<String>) -> Outcome<T> {
    Err(Stop::Soft(SqlError::new(code, message)))
}

/// Everything that a path finds.
///
/// # Errors
/// The path's own ones unless they are silent.
pub fn find(path: &JsonPath, json: &Json, options: Options<'_>) -> Result<Option<Found>> {
    let run = Run { strict: path.strict, root: json, variables: options.variables, zone: options.zone };
    let as_text = |item| match item {
        Json::Moment(_, text) => Json::String(text),
        other => other,
    };
    match run.node(&path.root, json, None, false) {
        Ok(found) => Ok(Some(found.into_iter().map(as_text).collect())),
        Err(Stop::Soft(_)) if options.silent => Ok(None),
        Err(Stop::Soft(e) | Stop::Hard(e)) => Err(e),
    }
}

/// Whether a path finds anything; none: unknown.
///
/// # Errors
/// As [`find`].
pub fn exists(path: &JsonPath, json: &Json, options: Options<'_>) -> Result<Option<bool>> {
    Ok(find(path, json, options)?.map(|found| !found.is_empty()))
}

/// What a path that is a predicate says.
///
/// # Errors
/// 22038 if it found anything but one boolean or null, unless silent; and as [`find`].
pub fn matches(path: &JsonPath, json: &Json, options: Options<'_>) -> Result<Option<bool>> {
    let found = find(path, json, options)?;
    match found.as_deref() {
        Some([Json::Bool(b)]) => Ok(Some(*b)),
        Some([Json::Null]) => Ok(None),
        _ if options.silent => Ok(None),
        _ => Err(SqlError::new("22038", "single boolean result is expected")),
    }
}

/// The pattern of like_regex with its flags.
fn regex(pattern: &str, flags: &str) -> Result<Pattern> {
    let options = super::are::Options {
        fold: flags.contains('i'),
        stops: !flags.contains('s'),
        lines: flags.contains('m'),
        quoted: flags.contains('q'),
        ..super::are::Options::default()
    };
    pattern::compile(pattern, options)
}

/// True, false or unknown.
type Truth = Option<bool>;

struct Run<'a> {
    strict: bool,
    root: &'a Json,
    variables: &'a Json,
    zone: Option<&'a TimeZone>,
}

/// The forms that `.datetime()` reads without a template.
const FORMS: [&str; 10] = [
    "yyyy-mm-dd",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// `.datetime()`
fn datetime(template: Option<&str>, item: &Json) -> Outcome<Json> {
    let Json::String(text) = item else {
        return soft("22031", "jsonpath item method .datetime() can only be applied to a string");
    };
    if let Some(template) = template {
        return moment(text, template).map(json_moment::item).map_err(Stop::Soft);
    }
    if let Some(found) = FORMS.iter().find_map(|form| moment(text, form).ok()) {
        return Ok(json_moment::item(found));
    }
    let error = SqlError::new(code::INVALID_DATETIME_FORMAT, format!("datetime format is not recognized: \"{text}\""));
    Err(Stop::Soft(error.hint("Use a datetime template argument to specify the input data format.")))
}

impl Run<'_> {
    /// The items that a node gives; `last` is the length of the array whose subscript is computed.
    fn node(&self, n: &Node, current: &Json, last: Option<usize>, unwrap: bool) -> Outcome<Found> {
        breath::step(32)?;
        memory::check().map_err(|e| Stop::Hard(e.into()))?;
        let found = stack::deeper(|| match n {
            Node::Chain(operand, steps) => self.chain(operand, steps, current, last),
            Node::Binary(op, l, r) if op.priority() >= 3 => self.arithmetic(*op, l, r, current, last).map(|v| vec![v]),
            Node::Signed(minus, arg) => self.signed(*minus, arg, current, last),
            _ => Ok(vec![self.truth(n, current, last)?.map_or(Json::Null, Json::Bool)]),
        })?;
        Ok(if unwrap && !self.strict { unwrapped(found) } else { found })
    }

    fn chain(&self, operand: &Operand, steps: &[Step], current: &Json, last: Option<usize>) -> Outcome<Found> {
        let first = match operand {
            Operand::Root => vec![self.root.clone()],
            Operand::Current => vec![current.clone()],
            Operand::Null => vec![Json::Null],
            Operand::Bool(b) => vec![Json::Bool(*b)],
            Operand::Number(n) => vec![Json::Number(n.clone())],
            Operand::String(s) => vec![Json::String(s.clone())],
            Operand::Last => {
                let n = last.map_or(0, |n| n as i64 - 1);
                vec![Json::number(Numeric::from(n))]
            }
            Operand::Variable(name) => match self.variables.member(name) {
                Some(v) => vec![v.clone()],
                None => {
                    let message = format!("could not find jsonpath variable \"{name}\"");
                    return Err(Stop::Hard(SqlError::new(code::UNDEFINED_OBJECT, message)));
                }
            },
            Operand::Inner(inner) => self.node(inner, current, last, false)?,
        };
        let mut items = first;
        for step in steps {
            let mut next = Vec::new();
            for item in &items {
                breath::step(16)?;
                self.step(step, item, &mut next)?;
            }
            memory::check().map_err(|e| Stop::Hard(e.into()))?;
            items = next;
        }
        Ok(items)
    }

    fn step(&self, step: &Step, item: &Json, out: &mut Found) -> Outcome<()> {
        // In lax mode an array stands for its elements where an object or a scalar is wanted.
        let opens = match step {
            Step::Member(_) | Step::AnyMember | Step::Filter(_) | Step::DateTime(_) => true,
            Step::Method(m) => !matches!(m, Method::Type | Method::Size),
            _ => false,
        };
        if let (Json::Array(list), true, false) = (item, opens, self.strict) {
            return list.iter().try_for_each(|v| self.one(step, v, out));
        }
        self.one(step, item, out)
    }

    fn one(&self, step: &Step, item: &Json, out: &mut Found) -> Outcome<()> {
        match step {
            Step::Member(name) => match (item, item.member(name)) {
                (_, Some(v)) => out.push(v.clone()),
                (_, None) if !self.strict => {}
                (Json::Object(_), None) => {
                    return soft("2203A", format!("JSON object does not contain key \"{name}\""));
                }
                _ => return soft("2203A", "jsonpath member accessor can only be applied to an object"),
            },
            Step::AnyMember => match item {
                Json::Object(members) => out.extend(members.iter().map(|m| m.1.clone())),
                _ if !self.strict => {}
                _ => return soft("2203C", "jsonpath wildcard member accessor can only be applied to an object"),
            },
            Step::AnyElement => match item {
                Json::Array(list) => out.extend(list.iter().cloned()),
                other if !self.strict => out.push(other.clone()),
                _ => return soft("22039", "jsonpath wildcard array accessor can only be applied to an array"),
            },
            Step::Levels(first, last) => levels(item, 0, *first, *last, out)?,
            Step::Elements(list) => self.elements(list, item, out)?,
            Step::Filter(condition) => {
                if self.truth(condition, item, None)? == Some(true) {
                    out.push(item.clone());
                }
            }
            Step::Method(method) => self.method(*method, item, out)?,
            Step::DateTime(template) => out.push(datetime(template.as_deref(), item)?),
        }
        Ok(())
    }

    fn elements(&self, list: &[(Node, Option<Node>)], item: &Json, out: &mut Found) -> Outcome<()> {
        let single = std::slice::from_ref(item);
        let elements = match item {
            Json::Array(elements) => elements.as_slice(),
            _ if !self.strict => single,
            _ => return soft("22039", "jsonpath array accessor can only be applied to an array"),
        };
        let len = elements.len() as i64;
        for (from, to) in list {
            let from = self.subscript(from, item, elements.len())?;
            let to = match to {
                Some(to) => self.subscript(to, item, elements.len())?,
                None => from,
            };
            if self.strict && (from < 0 || from > to || to >= len) {
                return soft("22033", "jsonpath array subscript is out of bounds");
            }
            for at in from.max(0)..=to.min(len - 1) {
                out.push(elements[at as usize].clone());
            }
        }
        Ok(())
    }

    fn subscript(&self, n: &Node, item: &Json, len: usize) -> Outcome<i64> {
        let found = self.node(n, item, Some(len), false)?;
        match found.as_slice() {
            [Json::Number(n)] => match n.trunc(0).to_i64("integer").ok().and_then(|n| i32::try_from(n).ok()) {
                Some(n) => Ok(i64::from(n)),
                None => soft("22033", "jsonpath array subscript is out of integer range"),
            },
            _ => soft("22033", "jsonpath array subscript is not a single numeric value"),
        }
    }

    fn method(&self, method: Method, item: &Json, out: &mut Found) -> Outcome<()> {
        let name = method.name();
        let number = |f: fn(&Numeric) -> Numeric| match item {
            Json::Number(n) => Ok(Json::number(f(n))),
            _ => {
                let message = format!("jsonpath item method .{name}() can only be applied to a numeric value");
                soft("22036", message)
            }
        };
        out.push(match method {
            Method::Type => Json::string(item.type_name()),
            Method::Size => match item {
                Json::Array(list) => Json::number(Numeric::from(list.len() as i64)),
                _ if !self.strict => Json::number(Numeric::from(1i64)),
                _ => return soft("22039", "jsonpath item method .size() can only be applied to an array"),
            },
            Method::Abs => number(|n| if n.signum() < 0 { n.negate() } else { n.clone() })?,
            Method::Floor => number(Numeric::floor)?,
            Method::Ceiling => number(Numeric::ceil)?,
            Method::Double => self.double(item)?,
            Method::KeyValue => {
                let Json::Object(members) = item else {
                    return soft("2203C", "jsonpath item method .keyvalue() can only be applied to an object");
                };
                let object = |(k, v): &(Arc<str>, Json)| {
                    Json::object(vec![
                        ("id".into(), Json::number(Numeric::from(0i64))),
                        ("key".into(), Json::String(k.clone())),
                        ("value".into(), v.clone()),
                    ])
                };
                out.extend(members.iter().map(object));
                return Ok(());
            }
        });
        Ok(())
    }

    fn double(&self, item: &Json) -> Outcome<Json> {
        let text = match item {
            Json::Number(n) => n.to_string(),
            Json::String(s) => s.to_string(),
            _ => {
                let message = "jsonpath item method .double() can only be applied to a string or numeric value";
                return soft("22036", message);
            }
        };
        let what = if matches!(item, Json::Number(_)) { "numeric" } else { "string" };
        let value = crate::types::float::parse(&text, "double precision").ok().filter(|v| v.is_finite());
        let Some(value) = value else {
            let message = format!(
                "{what} argument of jsonpath item method .double() is not a valid representation of a double precision number"
            );
            return soft("22036", message);
        };
        let shown = crate::types::float::format8(value);
        match Numeric::parse(&shown) {
            Some(Ok(n)) => Ok(Json::number(n)),
            _ => soft("22036", "the number is out of range"),
        }
    }

    fn operand(&self, n: &Node, side: &str, op: PathOp, current: &Json, last: Option<usize>) -> Outcome<Arc<Numeric>> {
        match self.node(n, current, last, true)?.as_slice() {
            [Json::Number(n)] => Ok(n.clone()),
            _ => {
                let symbol = op.symbol();
                soft("22038", format!("{side} operand of jsonpath operator {symbol} is not a single numeric value"))
            }
        }
    }

    fn arithmetic(&self, op: PathOp, l: &Node, r: &Node, current: &Json, last: Option<usize>) -> Outcome<Json> {
        let a = self.operand(l, "left", op, current, last)?;
        let b = self.operand(r, "right", op, current, last)?;
        let value = match op {
            PathOp::Add => Ok(a.add(&b)),
            PathOp::Sub => Ok(a.sub(&b)),
            PathOp::Mul => Ok(a.mul(&b)),
            PathOp::Div => a.div(&b),
            _ => a.rem(&b),
        };
        value.and_then(Numeric::within_limits).map(Json::number).map_err(Stop::Soft)
    }

    fn signed(&self, minus: bool, arg: &Node, current: &Json, last: Option<usize>) -> Outcome<Found> {
        let mut out = Vec::new();
        for item in self.node(arg, current, last, true)? {
            match item {
                Json::Number(n) => out.push(if minus { Json::number(n.negate()) } else { Json::Number(n) }),
                _ => {
                    let symbol = if minus { "-" } else { "+" };
                    let message = format!("operand of unary jsonpath operator {symbol} is not a numeric value");
                    return soft("2203B", message);
                }
            }
        }
        Ok(out)
    }

    fn truth(&self, n: &Node, current: &Json, last: Option<usize>) -> Outcome<Truth> {
        Ok(match n {
            Node::Binary(PathOp::And, l, r) => match self.truth(l, current, last)? {
                Some(false) => Some(false),
                left => match (left, self.truth(r, current, last)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                },
            },
            Node::Binary(PathOp::Or, l, r) => match self.truth(l, current, last)? {
                Some(true) => Some(true),
                left => match (left, self.truth(r, current, last)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), right) => right,
                    _ => None,
                },
            },
            Node::Not(arg) => self.truth(arg, current, last)?.map(|b| !b),
            Node::IsUnknown(arg) => Some(self.truth(arg, current, last)?.is_none()),
            Node::Exists(arg) => match self.node(arg, current, last, false) {
                Ok(found) => Some(!found.is_empty()),
                Err(Stop::Soft(_)) => None,
                Err(hard) => return Err(hard),
            },
            Node::LikeRegex(arg, pattern, flags) => {
                let pattern = regex(pattern, flags)?;
                let one = [Json::Null];
                self.pairs(arg, None, current, last, &one, |item, _| match item {
                    Json::String(s) => Ok(Some(pattern.is_match(s)?)),
                    _ => Ok(None),
                })?
            }
            Node::Binary(op, l, r) if op.priority() == 2 => {
                self.pairs(l, Some(r), current, last, &[], |a, b| compared(*op, a, b, self.zone))?
            }
            Node::Chain(operand, steps) if steps.is_empty() => match &**operand {
                Operand::Inner(inner) => return self.truth(inner, current, last),
                Operand::Bool(b) => Some(*b),
                _ => return self.value_as_truth(n, current, last),
            },
            _ => return self.value_as_truth(n, current, last),
        })
    }

    fn value_as_truth(&self, n: &Node, current: &Json, last: Option<usize>) -> Outcome<Truth> {
        Ok(match self.node(n, current, last, false)?.as_slice() {
            [Json::Bool(b)] => Some(*b),
            _ => None,
        })
    }

    /// A predicate over every pair of two sequences.
    fn pairs(
        &self,
        l: &Node,
        r: Option<&Node>,
        current: &Json,
        last: Option<usize>,
        without: &[Json],
        test: impl Fn(&Json, &Json) -> Result<Truth>,
    ) -> Outcome<Truth> {
        let items = |n: &Node| match self.node(n, current, last, true) {
            Ok(found) => Ok(Some(found)),
            Err(Stop::Soft(_)) => Ok(None),
            Err(hard) => Err(hard),
        };
        let Some(left) = items(l)? else { return Ok(None) };
        let right = match r {
            None => without.to_vec(),
            Some(r) => match items(r)? {
                Some(right) => right,
                None => return Ok(None),
            },
        };
        let (mut found, mut unknown) = (false, false);
        for a in &left {
            for b in &right {
                breath::step(16)?;
                match test(a, b)? {
                    None if self.strict => return Ok(None),
                    None => unknown = true,
                    Some(true) if !self.strict => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(if found {
            Some(true)
        } else if unknown {
            None
        } else {
            Some(false)
        })
    }
}

fn unwrapped(found: Found) -> Found {
    if !found.iter().any(|v| matches!(v, Json::Array(_))) {
        return found;
    }
    let mut out = Vec::new();
    for item in found {
        match item {
            Json::Array(list) => out.extend(list),
            other => out.push(other),
        }
    }
    out
}

fn levels(item: &Json, level: u32, first: u32, last: u32, out: &mut Found) -> Outcome<()> {
    breath::step(16)?;
    memory::check().map_err(|e| Stop::Hard(e.into()))?;
    let leaf = item.is_scalar();
    // `last` as the first level means the leaves.
    if level >= first && level <= last || first == u32::MAX && leaf {
        out.push(item.clone());
    }
    if level >= last {
        return Ok(());
    }
    let mut below = |v: &Json| stack::deeper(|| levels(v, level + 1, first, last, out));
    match item {
        Json::Array(list) => list.iter().try_for_each(&mut below),
        Json::Object(members) => members.iter().try_for_each(|m| below(&m.1)),
        _ => Ok(()),
    }
}

fn compared(op: PathOp, a: &Json, b: &Json, zone: Option<&TimeZone>) -> Result<Truth> {
    let order = match (a, b) {
        (Json::String(x), Json::String(y)) if op == PathOp::StartsWith => return Ok(Some(x.starts_with(&**y))),
        _ if op == PathOp::StartsWith => return Ok(None),
        (Json::Null, Json::Null) => Ordering::Equal,
        (Json::Null, _) | (_, Json::Null) => return Ok(Some(op == PathOp::Ne)),
        (Json::Moment(x, _), Json::Moment(y, _)) => match json_moment::compare(*x, *y, zone)? {
            Some(order) => order,
            None => return Ok(None),
        },
        (Json::Bool(x), Json::Bool(y)) => x.cmp(y),
        (Json::Number(x), Json::Number(y)) => x.compare(y),
        (Json::String(x), Json::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        _ => return Ok(None),
    };
    Ok(Some(match op {
        PathOp::Eq => order.is_eq(),
        PathOp::Ne => order.is_ne(),
        PathOp::Lt => order.is_lt(),
        PathOp::Gt => order.is_gt(),
        PathOp::Le => order.is_le(),
        _ => order.is_ge(),
    }))
}
