//! Templates: statements that differ only in integers share a plan. `UPDATE t SET n = n + 1 WHERE id = 17` runs by the plan that was made
//! for `id = 16`. Clients that write values into the text, rather than pass them as parameters, get the speed of prepared statements.
//!
//! # Life of a text
//! The integers are removed from the text ([`Skeleton`]); the rest is the key. A text whose key is new is parsed and planned as any
//! other. At the second text with that key, parameters replace the integers in its syntax tree, and the tree is planned: this plan is the
//! template, if it qualifies. Later texts with the key are neither parsed nor planned: they run by the template, with their integers as
//! parameters.
//!
//! # Invariants
//! - TPL-1: a template's plan reads one row by its whole key, or inserts the rows of a VALUES: no other value of an integer could have
//!   made the planner choose another plan.
//! - TPL-2: an integer becomes a parameter only where it is an operand beside a column, a value that is assigned, or a value that is
//!   inserted; and either all integers of a text become parameters or none. In other places the value of an integer can decide what a
//!   text means (`ORDER BY 1`, `numeric(10, 2)`), or an error would come at another time (`1 / 0`).
//! - TPL-3: the parameter has the type that the constant had, integer. A number beyond 32 bits makes no template.
//! - TPL-4: a template is used only while its plan is up to date. Otherwise the text is parsed and planned itself, so that an error of
//!   planning has the text's own position.
//!
//! # Source
//! What other systems call forced or simple parameterization; after SQL Server's documentation, "Simple parameterization", whose rule of
//! "safe" plans TPL-1 is.

use super::choice::Choice;
use super::run::{self, Cached};
use super::session::{CACHED_TEXT_MAX, Prepared};
use crate::context::core::Core;
use crate::context::statements::Digest;
use crate::expr::Params;
use crate::planner::plan::{Access, Action, Body, Node, Plan};
use crate::syntax::ast::{Expr, ExprKind, Literal, Query, QueryBody};
use crate::syntax::stmt::Statement;
use crate::syntax::{Parsed, parse};
use crate::types::{Datum, oid};
use clearway_base::sync::Mutex;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Keys that are remembered.
const TEMPLATES_MAX: usize = 200;
/// More integers make no template: a long list is planned once and read once.
const INTEGERS_MAX: usize = 64;
/// Stands in a key for an integer; no text with this byte has a key.
const GAP: u8 = 1;

/// A text without its integers.
#[derive(Default)]
struct Skeleton {
    key: Vec<u8>,
    /// Where each stood, and its value.
    integers: Vec<(u32, i32)>,
}

impl Skeleton {
    /// Takes a text apart; false: it has none, or something in it needs the lexer.
    fn read(&mut self, sql: &str) -> bool {
        self.key.clear();
        self.integers.clear();
        let text = sql.as_bytes();
        let (mut at, mut kept) = (0, 0);
        while let Some(&byte) = text.get(at) {
            let from = at;
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    at += run_of(&text[from..], |b| b.is_ascii_alphanumeric() || b == b'_')
                }
                b'0'..=b'9' => {
                    at += run_of(&text[from..], |b| b.is_ascii_digit());
                    self.key.extend_from_slice(&text[kept..from]);
                    kept = at;
                    if !self.integer(sql, from, at) {
                        return false;
                    }
                }
                quote @ (b'\'' | b'"') => {
                    // A letter before it gives the quotes another meaning: E'', B'', U&''.
                    let prefixed = from > 0 && (text[from - 1].is_ascii_alphanumeric() || text[from - 1] == b'&');
                    let Some(end) = text[from + 1..].iter().position(|b| *b == quote) else { return false };
                    if prefixed || !text[from..from + end].is_ascii() {
                        return false;
                    }
                    at = from + end + 2;
                }
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                b'$' | b'\\' | b';' => return false,
                b'-' | b'/' if matches!(text.get(from + 1), Some(b'-' | b'*')) => return false,
                b'!'..=b'~' => at += 1,
                _ => return false,
            }
        }
        self.key.extend_from_slice(&text[kept..]);
        !self.integers.is_empty()
    }

    /// Takes an integer out; false: the digits are part of something else, or too many.
    fn integer(&mut self, sql: &str, from: usize, to: usize) -> bool {
        let text = sql.as_bytes();
        let joins = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
        let joined = from > 0 && text[from - 1] == b'.' || text.get(to).is_some_and(|b| joins(*b));
        let (Ok(value), Ok(place)) = (sql[from..to].parse(), u32::try_from(from)) else { return false };
        self.key.push(GAP);
        self.integers.push((place, value));
        !joined && self.integers.len() <= INTEGERS_MAX
    }
}

/// How many bytes from the first one on are such.
fn run_of(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|b| !is(*b)).unwrap_or(bytes.len())
}

/// What is known of a key.
enum KeyState {
    /// One text with it was seen.
    Once,
    /// Such texts share no plan.
    Apart,
    /// Their template.
    Shared(Box<Template>),
}

struct Template {
    statement: Arc<Statement>,
    digest: Arc<Digest>,
    cached: Arc<Cached>,
}

/// A session's templates.
#[derive(Default)]
pub(super) struct Templates {
    known: HashMap<Box<[u8]>, KeyState, RandomState>,
    skeleton: Skeleton,
    /// `skeleton` is that of the text that was looked for last.
    has_key: bool,
}

impl Templates {
    /// Forgets everything: constants that are no integers may mean something else from now on.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// The text as a statement that is planned already, if it has a template.
    pub(super) fn statement(&mut self, core: &Core, sql: &str) -> Option<Prepared> {
        let text = trimmed(sql);
        self.has_key = may_begin(text) && self.skeleton.read(text);
        if !self.has_key {
            return None;
        }
        match self.known.get(&*self.skeleton.key) {
            Some(KeyState::Shared(template)) if run::is_fresh(core, &template.cached) => {
                Some(template.with(text, &self.skeleton.integers))
            }
            _ => None, // TPL-4
        }
    }

    /// The plan and the digest of a text that has a template, and its constants; none: it has none (TPL-4), or its plan is old.
    pub(super) fn shared(
        &mut self,
        core: &Core,
        sql: &str,
        constants: &mut Vec<Datum>,
    ) -> Option<(Arc<Cached>, Arc<Digest>)> {
        let text = trimmed(sql);
        if sql.len() > CACHED_TEXT_MAX || !may_begin(text) || !self.skeleton.read(text) {
            return None;
        }
        let Some(KeyState::Shared(template)) = self.known.get(&*self.skeleton.key) else { return None };
        constants.clear();
        constants.extend(self.skeleton.integers.iter().map(|(_, value)| Datum::Int4(*value)));
        run::is_fresh(core, &template.cached).then(|| (template.cached.clone(), template.digest.clone()))
    }

    /// The text as it is shown.
    pub(super) fn text(&self, sql: &str) -> Arc<str> {
        trimmed(sql).into()
    }

    /// The text that `statement` has just looked for in vain is about to be parsed.
    pub(super) fn learn(&mut self, core: &Core, sql: &str) {
        if !self.has_key {
            return;
        }
        let Some(known) = self.known.get_mut(&*self.skeleton.key) else {
            if self.known.len() >= TEMPLATES_MAX {
                self.known.clear();
            }
            self.known.insert(self.skeleton.key.as_slice().into(), KeyState::Once);
            return;
        };
        match known {
            KeyState::Apart => {}
            KeyState::Shared(_) => *known = KeyState::Once,
            KeyState::Once => {
                let template = Template::of(core, trimmed(sql), &self.skeleton.integers);
                *known = template.map_or(KeyState::Apart, |template| KeyState::Shared(Box::new(template)));
            }
        }
    }
}

fn trimmed(sql: &str) -> &str {
    sql.trim().trim_end_matches(';').trim_end()
}

/// Whether the text may be of a statement that has a template; looked at first, since it costs nothing.
fn may_begin(text: &str) -> bool {
    matches!(text.as_bytes().first(), Some(b's' | b'S' | b'u' | b'U' | b'd' | b'D' | b'i' | b'I'))
}

impl Template {
    fn of(core: &Core, text: &str, integers: &[(u32, i32)]) -> Option<Template> {
        let Parsed { mut statement, params: 0, .. } = only(parse(text).ok()?)? else { return None };
        let mut left = integers.len();
        statement_operands(&mut statement, &mut |e| left -= usize::from(parametrize(e, text, integers)))?;
        if left > 0 {
            return None; // TPL-2
        }
        let mut params = Params { types: vec![Some(oid::INT4); integers.len()], ..Params::default() };
        let cached = run::plan(core, &statement, &mut params).ok()??;
        let template = Template { statement: Arc::new(statement), digest: Digest::of(text), cached: Arc::new(cached) };
        is_safe(&template.cached.plan).then_some(template)
    }

    fn with(&self, text: &str, integers: &[(u32, i32)]) -> Prepared {
        Prepared {
            text: text.into(),
            statement: Some(self.statement.clone()),
            types: vec![oid::INT4; integers.len()],
            columns: None,
            digest: self.digest.clone(),
            constants: integers.iter().map(|(_, value)| Datum::Int4(*value)).collect(),
            described: OnceLock::new(),
            choice: Choice::default(),
            shared: None,
            plan: Mutex::new("sql/plan", Some(self.cached.clone())),
        }
    }
}

fn only<T>(list: Vec<T>) -> Option<T> {
    <[T; 1]>::try_from(list).ok().map(|[one]| one)
}

/// TPL-1
fn is_safe(plan: &Plan) -> bool {
    let by_key = |node: &Node| match node {
        Node::Scan(scan) => matches!(&scan.access, Access::Keys(keys) if keys.len() == 1),
        _ => false,
    };
    let simple = plan.changes.is_empty() && plan.subqueries.is_empty();
    simple
        && match &plan.action {
            Action::Select(query) => matches!(&query.body, Body::Select(select) if by_key(&select.source)),
            Action::Insert(insert) => matches!(&insert.source.body, Body::Values(_)),
            Action::Update(update) => by_key(&update.source),
            Action::Delete(delete) => by_key(&delete.source),
            Action::Merge(_) | Action::Settings(_) => false,
        }
}

/// Gives each expression of a statement that may be an integer of a template; none: the statement is of another kind.
fn statement_operands(statement: &mut Statement, give: &mut dyn FnMut(&mut Expr)) -> Option<()> {
    match statement {
        Statement::Query(query) => {
            let Query { with: None, body: QueryBody::Select(select), order_by, limit: None, offset: None, .. } =
                &mut **query
            else {
                return None;
            };
            let plain = order_by.is_empty() && select.group_by.is_empty() && select.having.is_none();
            (plain && select.distinct.is_none() && select.windows.is_empty()).then_some(())?;
            select.filter.iter_mut().for_each(|filter| operands(filter, give));
        }
        Statement::Insert(insert) => {
            let query =
                insert.source.as_deref_mut().filter(|_| insert.with.is_none() && insert.on_conflict.is_none())?;
            let Query { with: None, body: QueryBody::Values(rows), order_by, limit: None, offset: None, .. } = query
            else {
                return None;
            };
            order_by.is_empty().then_some(())?;
            rows.iter_mut().flatten().for_each(give);
        }
        Statement::Update(update) => {
            (update.with.is_none() && update.from.is_empty()).then_some(())?;
            for assignment in &mut update.set {
                match is_integer(&assignment.value) {
                    true => give(&mut assignment.value),
                    false => operands(&mut assignment.value, give),
                }
            }
            update.filter.iter_mut().for_each(|filter| operands(filter, give));
        }
        Statement::Delete(delete) => {
            (delete.with.is_none() && delete.using.is_empty()).then_some(())?;
            delete.filter.iter_mut().for_each(|filter| operands(filter, give));
        }
        _ => return None,
    }
    Some(())
}

fn is_integer(e: &Expr) -> bool {
    matches!(*e.kind, ExprKind::Literal(Literal::Int(_)))
}

/// Gives the constants beside a column in an expression: `n + 1`, `id = 17`, `id between 1 and 9`.
fn operands(e: &mut Expr, give: &mut dyn FnMut(&mut Expr)) {
    let is_column = |e: &Expr| matches!(*e.kind, ExprKind::Column(_));
    match &mut *e.kind {
        ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter_mut().for_each(|part| operands(part, give)),
        ExprKind::Not(part) => operands(part, give),
        ExprKind::Binary { left, right, .. } if is_column(left) => give(right),
        ExprKind::Binary { left, right, .. } if is_column(right) => give(left),
        ExprKind::Between { arg, low, high, .. } if is_column(arg) => {
            give(low);
            give(high);
        }
        _ => {}
    }
}

/// Puts a parameter in place of a constant that is one of the integers, or such a one with its sign; whether it was. TPL-3
fn parametrize(e: &mut Expr, text: &str, integers: &[(u32, i32)]) -> bool {
    let ExprKind::Literal(Literal::Int(value)) = *e.kind else { return false };
    let Some(at) = integers.iter().position(|(place, _)| *place >= e.pos) else { return false };
    let (place, unsigned) = integers[at];
    let parameter = ExprKind::Param(at as u32 + 1);
    if place == e.pos && value == i64::from(unsigned) {
        *e.kind = parameter;
        return true;
    }
    // The parser takes the sign into the constant.
    let sign = text.get(e.pos as usize..place as usize).map(str::trim_end);
    if sign != Some("-") || value != -i64::from(unsigned) {
        return false;
    }
    let arg = Expr { kind: Box::new(parameter), pos: place, height: e.height };
    *e.kind = ExprKind::Unary { op: "-".to_owned(), arg };
    e.height += 1;
    true
}

/// Whether a text may hold a literal such as 'now' or 'today': its plan holds the moment that the literal meant, and serves once only.
pub(super) fn names_a_day(sql: &str) -> bool {
    let words = ["now", "today", "tomorrow", "yesterday"];
    let lower = sql.to_ascii_lowercase();
    lower.split('\'').skip(1).step_by(2).any(|quoted| words.iter().any(|word| quoted.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<(String, Vec<i32>)> {
        let mut skeleton = Skeleton::default();
        let read = skeleton.read(text);
        let integers = skeleton.integers.iter().map(|i| i.1).collect();
        read.then(|| (String::from_utf8_lossy(&skeleton.key).replace('\u{1}', "?"), integers))
    }

    #[test]
    fn integers_are_taken_out_and_nothing_else() {
        let shared = key("UPDATE t1 SET \"n 1\" = n+-3, s = 'it''s 5' WHERE id=17");
        assert_eq!(shared, Some(("UPDATE t1 SET \"n 1\" = n+-?, s = 'it''s 5' WHERE id=?".to_owned(), vec![3, 17])));
        let texts = [
            "select 1.5 from t where id = 1",
            "select t.5 from t where id = 1",
            "select 1e5",
            "select 0x1F",
            "select 5::text, 99999999999",
            "select E'\\n' from t where id = 1",
            "select e'x' from t where id = 1",
            "select 1 -- 2",
            "select 1 /* 2 */",
            "select $1 + 1",
            "select $$a$$, 1",
            "select 1; select 2",
            "select 'é' from t where id = 1",
            "select '1",
            "select a from t",
            "select \u{1} from t where id = 1",
        ];
        for text in texts {
            assert_eq!(key(text), None, "{text}");
        }
    }

    fn operands_of(text: &str) -> Option<usize> {
        let mut skeleton = Skeleton::default();
        assert!(skeleton.read(text), "{text}");
        let mut parsed = only(parse(text).expect("parses")).expect("one");
        let mut found = 0;
        let mut give = |e: &mut Expr| found += usize::from(parametrize(e, text, &skeleton.integers));
        statement_operands(&mut parsed.statement, &mut give)?;
        Some(found)
    }

    #[test]
    fn only_operands_beside_a_column_become_parameters() {
        assert_eq!(operands_of("update t set n = n + -3, m = 4 where id = 17 and 5 > k"), Some(4));
        assert_eq!(operands_of("insert into t values (1, - 2), (3, n + 4)"), Some(3));
        assert_eq!(operands_of("delete from t where id between 1 and 9"), Some(2));
        assert_eq!(operands_of("select 5 from t where id = 7"), Some(1));
        assert_eq!(operands_of("select a from t where id = 7 and 1 / 0 > 2"), Some(1));
        assert_eq!(operands_of("select a from t where id = 7 and x[1] = 2"), Some(1));
        for text in ["select a from t where id = 7 order by 1", "select a from t where id = 7 limit 1", "values (1)"] {
            assert_eq!(operands_of(text), None, "{text}");
        }
    }
}
