//! Templates: statements that differ only in integers and strings share a plan. `UPDATE t SET n = n + 1 WHERE id = 17` runs by the plan that was
//! made for `id = 16`. Clients that write values into the text, rather than pass them as parameters, get the speed of prepared statements.
//!
//! # Life of a text
//! The constants are removed from the text ([`Skeleton`]); the rest is the key. A text whose key is new is parsed and planned as any
//! other. At the second text with that key, parameters replace the constants in its syntax tree, and the tree is planned: this plan is the
//! template, if it qualifies. Later texts with the key are neither parsed nor planned: they run by the template, with their constants as
//! parameters. A text with strings that make no template is tried once more with its strings in the key.
//!
//! # Invariants
//! - TPL-1: a template's plan reads one row by its whole key, or inserts the rows of a VALUES: no other value of a constant could have
//!   made the planner choose another plan.
//! - TPL-2: a constant becomes a parameter only where it is an operand beside a column, a value that is assigned, or a value that is
//!   inserted; and either all constants of a text become parameters or none. In other places the value of a constant can decide what a
//!   text means (`ORDER BY 1`, `numeric(10, 2)`), or an error would come at another time (`1 / 0`).
//! - TPL-3: the parameter for an integer has the type that the constant had, integer. A number beyond 32 bits makes no template. The parameter
//!   for a string has the type that its place asks for, as a string of unknown type has; one of [`of_strings`], whose values depend on nothing
//!   but the text and the session's formats.
//! - TPL-4: a template is used only while its plan is up to date, and for strings that are values of their types. Otherwise the text is parsed
//!   and planned itself, so that an error has the text's own position.
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
use crate::types::text::{Conversion, input};
use crate::types::{Datum, Oid, oid};
use clearway_base::sync::Mutex;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Keys that are remembered.
const TEMPLATES_MAX: usize = 200;
/// More constants make no template: a long list is planned once and read once.
const CONSTANTS_MAX: usize = 64;
/// Stand in a key for an integer and for a string; no text with these bytes outside of its strings has a key.
const INTEGER: u8 = 1;
const STRING: u8 = 2;

/// A constant that was taken out of a text.
#[derive(Clone, Copy, Debug)]
enum Constant {
    Integer(i32),
    /// A string: where its content begins and ends, and whether a quote is doubled in it.
    String {
        from: u32,
        to: u32,
        has_quotes: bool,
    },
}

/// A text without its constants.
#[derive(Default)]
struct Skeleton {
    key: Vec<u8>,
    /// Where each stood.
    constants: Vec<(u32, Constant)>,
    /// The text has strings.
    has_strings: bool,
}

impl Skeleton {
    /// Takes a text apart; false: it has no constant, or something in it needs the lexer. Strings stay in the key unless they are asked for.
    fn read(&mut self, sql: &str, takes_strings: bool) -> bool {
        self.key.clear();
        self.constants.clear();
        self.has_strings = false;
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
                    let Some((end, has_quotes)) = closing(&text[from + 1..], quote) else { return false };
                    at = from + end + 2;
                    let takes = takes_strings && quote == b'\'';
                    if prefixed || !takes && !text[from..at].is_ascii() {
                        return false;
                    }
                    self.has_strings |= quote == b'\'';
                    if takes {
                        self.key.extend_from_slice(&text[kept..from]);
                        self.key.push(STRING);
                        kept = at;
                        let (Ok(place), Ok(to)) = (u32::try_from(from), u32::try_from(at - 1)) else { return false };
                        self.constants.push((place, Constant::String { from: place + 1, to, has_quotes }));
                    }
                }
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                b'$' | b'\\' | b';' => return false,
                b'-' | b'/' if matches!(text.get(from + 1), Some(b'-' | b'*')) => return false,
                b'!'..=b'~' => at += 1,
                _ => return false,
            }
        }
        self.key.extend_from_slice(&text[kept..]);
        (1..=CONSTANTS_MAX).contains(&self.constants.len())
    }

    /// Takes an integer out; false: the digits are part of something else.
    fn integer(&mut self, sql: &str, from: usize, to: usize) -> bool {
        let text = sql.as_bytes();
        let joins = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
        let joined = from > 0 && text[from - 1] == b'.' || text.get(to).is_some_and(|b| joins(*b));
        let (Ok(value), Ok(place)) = (sql[from..to].parse(), u32::try_from(from)) else { return false };
        self.key.push(INTEGER);
        self.constants.push((place, Constant::Integer(value)));
        !joined
    }
}

/// How many bytes from the first one on are such.
fn run_of(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|b| !is(*b)).unwrap_or(bytes.len())
}

/// Where the quote stands that ends what a quote has begun, and whether there are doubled ones before it.
fn closing(text: &[u8], quote: u8) -> Option<(usize, bool)> {
    let (mut at, mut has_quotes) = (0, false);
    loop {
        at += text[at..].iter().position(|b| *b == quote)?;
        if text.get(at + 1) != Some(&quote) {
            return Some((at, has_quotes));
        }
        (at, has_quotes) = (at + 2, true);
    }
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
}

impl Templates {
    /// Forgets everything: constants that are no integers may mean something else from now on.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// The text as a statement that is planned already, if it has a template.
    pub(super) fn statement(&mut self, core: &Core, sql: &str) -> Option<Prepared> {
        let (text, mut constants) = (trimmed(sql), Vec::new());
        let template = self.find(core, text, &mut constants)?;
        Some(template.with(text, constants))
    }

    /// The plan and the digest of a text that has a template, and its constants; none: it has none (TPL-4), or its plan is old.
    pub(super) fn shared(
        &mut self,
        core: &Core,
        sql: &str,
        constants: &mut Vec<Datum>,
    ) -> Option<(Arc<Cached>, Arc<Digest>)> {
        if sql.len() > CACHED_TEXT_MAX {
            return None;
        }
        let template = self.find(core, trimmed(sql), constants)?;
        Some((template.cached.clone(), template.digest.clone()))
    }

    /// The template of a text, and the values of its constants.
    fn find(&mut self, core: &Core, text: &str, values: &mut Vec<Datum>) -> Option<&Template> {
        if !may_begin(text) {
            return None;
        }
        for takes_strings in [true, false] {
            if self.skeleton.read(text, takes_strings)
                && let Some(KeyState::Shared(template)) = self.known.get(&*self.skeleton.key)
                && run::is_fresh(core, &template.cached)
                && template.values(core, text, &self.skeleton.constants, values)
            {
                break;
            }
            if !takes_strings || !self.skeleton.has_strings {
                return None; // TPL-4
            }
        }
        match self.known.get(&*self.skeleton.key) {
            Some(KeyState::Shared(template)) => Some(template),
            _ => None,
        }
    }

    /// The text as it is shown.
    pub(super) fn text(&self, sql: &str) -> Arc<str> {
        trimmed(sql).into()
    }

    /// A text that `statement` has looked for in vain is about to be parsed.
    pub(super) fn learn(&mut self, core: &Core, sql: &str) {
        let text = trimmed(sql);
        if !may_begin(text) {
            return;
        }
        for takes_strings in [true, false] {
            let may_share = self.skeleton.read(text, takes_strings) && self.learn_key(core, text);
            if may_share || !self.skeleton.has_strings {
                return;
            }
        }
    }

    /// The same for the key at hand; false: such texts share no plan.
    fn learn_key(&mut self, core: &Core, text: &str) -> bool {
        let Some(known) = self.known.get_mut(&*self.skeleton.key) else {
            if self.known.len() >= TEMPLATES_MAX {
                self.known.clear();
            }
            self.known.insert(self.skeleton.key.as_slice().into(), KeyState::Once);
            return true;
        };
        match known {
            KeyState::Apart => {}
            KeyState::Shared(_) => *known = KeyState::Once,
            KeyState::Once => {
                let template = Template::of(core, text, &self.skeleton.constants);
                *known = template.map_or(KeyState::Apart, |template| KeyState::Shared(Box::new(template)));
            }
        }
        !matches!(known, KeyState::Apart)
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
    fn of(core: &Core, text: &str, constants: &[(u32, Constant)]) -> Option<Template> {
        let Parsed { mut statement, params: 0, .. } = only(parse(text).ok()?)? else { return None };
        let mut left = constants.len();
        statement_operands(&mut statement, &mut |e| left -= usize::from(parametrize(e, text, constants)))?;
        if left > 0 {
            return None; // TPL-2
        }
        let own = |(_, constant): &(u32, Constant)| matches!(constant, Constant::Integer(_)).then_some(oid::INT4);
        let mut params = Params { types: constants.iter().map(own).collect(), open: true, ..Params::default() };
        let cached = run::plan(core, &statement, &mut params, None).ok()??;
        // TPL-3
        let types = cached.plan.params.iter().zip(constants);
        let fits = types.len() == constants.len()
            && types.into_iter().all(|(ty, (_, constant))| match constant {
                Constant::Integer(_) => *ty == oid::INT4,
                Constant::String { .. } => of_strings(*ty),
            });
        let template = Template { statement: Arc::new(statement), digest: Digest::of(text), cached: Arc::new(cached) };
        (fits && is_safe(&template.cached.plan)).then_some(template)
    }

    /// Puts in place of `out` the values of constants; false: a string is no value of its type.
    fn values(&self, core: &Core, text: &str, constants: &[(u32, Constant)], out: &mut Vec<Datum>) -> bool {
        out.clear();
        constants.iter().zip(&*self.cached.plan.params).all(|((_, constant), ty)| {
            out.extend(value_of(core, text, *constant, *ty));
            out.len() <= constants.len()
        }) && out.len() == constants.len()
    }

    fn with(&self, text: &str, constants: Vec<Datum>) -> Prepared {
        Prepared {
            text: text.into(),
            statement: Some(self.statement.clone()),
            types: self.cached.plan.params.to_vec(),
            columns: None,
            digest: self.digest.clone(),
            constants: constants.into(),
            described: OnceLock::new(),
            choice: Choice::default(),
            shared: None,
            plan: Mutex::new("sql/plan", Some(self.cached.clone())),
        }
    }
}

/// The types of strings that become parameters (TPL-3).
fn of_strings(ty: Oid) -> bool {
    let texts = matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::JSON | oid::JSONB | oid::UUID | oid::BOOL);
    let numbers = matches!(ty, oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC);
    texts || numbers || matches!(ty, oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ)
}

/// The value of a constant as one of a type; none: it is none.
fn value_of(core: &Core, text: &str, constant: Constant, ty: Oid) -> Option<Datum> {
    let (from, to, has_quotes) = match constant {
        Constant::Integer(value) => return Some(Datum::Int4(value)),
        Constant::String { from, to, has_quotes } => (from as usize, to as usize, has_quotes),
    };
    let content = text.get(from..to)?;
    let single = has_quotes.then(|| content.replace("''", "'"));
    let content = single.as_deref().unwrap_or(content);
    match ty {
        oid::TEXT | oid::VARCHAR => Some(Datum::text(content)),
        oid::BPCHAR => Some(Datum::Bpchar(content.into())),
        // The moment that such a word means is not known before the statement's transaction begins.
        oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ if is_a_day(&content.to_ascii_lowercase()) => None,
        _ => {
            let (catalog, format) = (core.catalog(), core.settings.lock().format.clone());
            let names = core.names(&catalog);
            let conversion = Conversion { format: &format, now: core.transaction_started(), names: &names };
            input(ty.into(), content, &conversion).ok()
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

/// Gives each expression of a statement that may be a constant of a template; none: the statement is of another kind.
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
                match is_constant(&assignment.value) {
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

fn is_constant(e: &Expr) -> bool {
    matches!(*e.kind, ExprKind::Literal(Literal::Int(_) | Literal::Str(_)))
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

/// Puts a parameter in place of a constant that is one of those that were taken out, an integer with its sign; whether it was. TPL-3
fn parametrize(e: &mut Expr, text: &str, constants: &[(u32, Constant)]) -> bool {
    let ExprKind::Literal(literal) = &*e.kind else { return false };
    let Some(at) = constants.iter().position(|(place, _)| *place >= e.pos) else { return false };
    let parameter = ExprKind::Param(at as u32 + 1);
    let (value, (place, unsigned)) = match (literal, constants[at]) {
        (Literal::Int(value), (place, Constant::Integer(unsigned))) => (*value, (place, unsigned)),
        (Literal::Str(content), (place, Constant::String { from, to, has_quotes })) => {
            // A string that goes on in a further line is several of them.
            let is_whole = has_quotes || text.get(from as usize..to as usize) == Some(content);
            let is_it = place == e.pos && is_whole;
            if is_it {
                *e.kind = parameter;
            }
            return is_it;
        }
        _ => return false,
    };
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
    sql.to_ascii_lowercase().split('\'').skip(1).step_by(2).any(is_a_day)
}

/// Whether a string in small letters has a word that means another moment at another time.
fn is_a_day(content: &str) -> bool {
    ["now", "today", "tomorrow", "yesterday"].iter().any(|word| content.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<(String, Vec<i32>)> {
        let mut skeleton = Skeleton::default();
        let read = skeleton.read(text, false);
        let integer = |constant: &(u32, Constant)| if let Constant::Integer(n) = constant.1 { Some(n) } else { None };
        let integers = skeleton.constants.iter().filter_map(integer).collect();
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

    #[test]
    fn strings_are_taken_out_where_they_are_asked_for() {
        let mut skeleton = Skeleton::default();
        let text = "insert into \"t'5\" values ('it''s', 'é', '', 7)";
        assert!(skeleton.read(text, true));
        let key = "insert into \"t'5\" values (\u{2}, \u{2}, \u{2}, \u{1})";
        assert_eq!(String::from_utf8_lossy(&skeleton.key), key);
        let contents = skeleton.constants.iter().filter_map(|(_, constant)| match *constant {
            Constant::String { from, to, has_quotes } => Some((&text[from as usize..to as usize], has_quotes)),
            Constant::Integer(_) => None,
        });
        assert_eq!(contents.collect::<Vec<_>>(), [("it''s", true), ("é", false), ("", false)]);
        for text in ["insert into t values (E'x')", "insert into t values ('x", "insert into t values ('x''"] {
            assert!(!skeleton.read(text, true), "{text}");
        }
    }

    fn operands_of(text: &str) -> Option<usize> {
        let mut skeleton = Skeleton::default();
        assert!(skeleton.read(text, true), "{text}");
        let mut parsed = only(parse(text).expect("parses")).expect("one");
        let mut found = 0;
        let mut give = |e: &mut Expr| found += usize::from(parametrize(e, text, &skeleton.constants));
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
        assert_eq!(operands_of("insert into t values (1, 'it''s', ''), (3, 'x', -4)"), Some(6));
        assert_eq!(operands_of("update t set a = 'x', b = 2 where name = 'y'"), Some(3));
        assert_eq!(operands_of("update t set a = date '2000-01-01' where id = 7"), Some(1));
        assert_eq!(operands_of("insert into t values ('a'\n'b')"), Some(0));
        for text in ["select a from t where id = 7 order by 1", "select a from t where id = 7 limit 1", "values (1)"] {
            assert_eq!(operands_of(text), None, "{text}");
        }
    }
}
