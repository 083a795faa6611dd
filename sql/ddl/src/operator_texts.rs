//! Definitions that are stored name the operators of users with their schemas (OPR-2). The statement that makes one may leave the schemas out.
//!
//! A name with its schema binds its operands as `||` does, whatever the name. So the operands of one that SQL gives another precedence get
//! parentheses.

use super::Ddl;
use crate::context::core::Core;
use crate::context::names::quote;
use crate::context::operators::{known, shown};
use crate::context::types::bind_condition;
use crate::error::{Pos, Result, SqlError};
use crate::expr::{Params, Scope};
use crate::planner::environment::with_env;
use crate::planner::{Planner, leaf};
use crate::syntax::ast::Expr;
use crate::syntax::ddl::CreateIndex;
use crate::syntax::lexer::{Tok, tokens};
use crate::syntax::policy::Condition;
use crate::syntax::stmt::Statement;
use crate::types::{Oid, SqlType, operator};
use clearway_engine::catalog::{Catalog, Relation, Routine};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Operators whose precedence OPERATOR(...) does not have.
const OTHERWISE: [&str; 12] = ["<", ">", "=", "<=", ">=", "<>", "+", "-", "*", "/", "%", "^"];

/// A text with the schemas of its operators, which stand at these places.
fn qualified(catalog: &Catalog, text: &str, met: &[(Pos, Oid)], is_expression: bool) -> Result<String> {
    let places: BTreeMap<Pos, Oid> = met.iter().copied().collect();
    let operations = crate::syntax::operations(text, is_expression)?;
    // At a byte what is written there before the text goes on: what ends first, then the operator, then what begins.
    let mut written: BTreeMap<usize, String> = BTreeMap::new();
    let mut left_out: BTreeSet<(usize, usize)> = BTreeSet::new();
    let list = tokens(text)?;
    for (pos, oid) in places {
        let token = list.iter().find(|token| token.start == pos).map(|token| &token.kind);
        let Some(o) = catalog.operator(oid) else { continue };
        let schema = known(catalog, o).schema;
        match token {
            Some(Tok::Word(word)) if word == "operator" => continue,
            Some(Tok::Op(_)) => {}
            _ => {
                let what = format!("operator {} where it is not written, in a definition that is stored", shown(o));
                return Err(SqlError::unsupported(what));
            }
        }
        let end = list.iter().find(|token| token.start == pos).map_or(pos, |token| token.end) as usize;
        let name = format!("OPERATOR({}.{})", quote(&schema), o.name);
        left_out.insert((pos as usize, end));
        let of = operations.iter().find(|(at, _)| *at == pos).map(|(_, range)| range);
        match of.filter(|_| OTHERWISE.contains(&o.name.as_str())) {
            Some(range) => {
                let prefix = range.start == pos as usize;
                let (before, behind) = if prefix { ("(", " (") } else { ("((", " (") };
                let entry = written.entry(range.start).or_default();
                // An operator before its operand may begin at the same byte.
                if prefix {
                    entry.push_str(before)
                } else {
                    entry.insert_str(0, before)
                }
                let entry = written.entry(pos as usize).or_default();
                entry.push_str(&format!("{}{name}{behind}", if prefix { "" } else { ") " }));
                let entry = written.entry(range.end).or_default();
                entry.insert_str(0, "))");
            }
            None => written.entry(pos as usize).or_default().push_str(&name),
        }
    }
    let (mut out, mut copied) = (String::with_capacity(text.len() + 32), 0);
    let mut left_out = left_out.into_iter().peekable();
    for (at, what) in written {
        out.push_str(text.get(copied..at).unwrap_or_default());
        out.push_str(&what);
        copied = copied.max(at);
        if let Some((_, end)) = left_out.next_if(|(start, _)| *start == at) {
            copied = end;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(out)
}

/// An expression's text. What is wrong with the expression itself is told where it is bound for good.
fn expression(
    core: &Core,
    catalog: &Arc<Catalog>,
    text: &str,
    bind: impl FnOnce(&mut Planner<'_>, &Expr) -> Result<()>,
) -> Result<Option<String>> {
    if !catalog.has_operators() {
        return Ok(None);
    }
    let Ok(expr) = crate::syntax::parse_expression(text) else { return Ok(None) };
    let (bound, met) =
        operator::collect(|| with_env(core, catalog, |env| bind(&mut Planner::new(env).exempt(), &expr)));
    match bound.is_ok() && !met.is_empty() {
        true => qualified(catalog, text, &met, true).map(Some),
        false => Ok(None),
    }
}

/// The text of a default, of a condition or of a key, over the columns of a table, or over none.
pub(super) fn of_table(core: &Core, catalog: &Arc<Catalog>, r: Option<&Relation>, text: &mut String) -> Result<()> {
    let scope = match r {
        Some(r) => Scope::over(leaf::table_columns(r, &r.name, 0), None),
        None => Scope::default(),
    };
    let params = &mut Params::default();
    let changed = expression(core, catalog, text, |planner, expr| {
        planner.bind(&scope, params, "definitions", None, |b| b.bind_unsettled(expr).map(drop))
    })?;
    *text = changed.unwrap_or_else(|| std::mem::take(text));
    Ok(())
}

/// The text of a condition of a domain.
pub(super) fn of_domain(core: &Core, catalog: &Arc<Catalog>, base: SqlType, text: &mut String) -> Result<()> {
    let condition = text.clone();
    let changed = expression(core, catalog, text, |_, _| bind_condition(&condition, base).map(drop))?;
    *text = changed.unwrap_or_else(|| std::mem::take(text));
    Ok(())
}

/// The body of a function as the standard has it.
pub(super) fn of_body(d: &Ddl<'_>, catalog: &Arc<Catalog>, r: &mut Routine) -> Result<()> {
    if !catalog.has_operators() || !r.atomic {
        return Ok(());
    }
    let (judged, met) = operator::collect(|| d.server.judge_body(d.core, catalog, r));
    if judged.is_err() || met.is_empty() {
        return Ok(());
    }
    let (text, range) = crate::syntax::atomic_text(&r.body)?;
    let changed = qualified(catalog, &text, &met, false)?;
    let is_return = r.body.get(range.start..range.start + 6).is_some_and(|word| word.eq_ignore_ascii_case("return"));
    let changed = if is_return { changed.replacen("SELECT", "RETURN", 1) } else { changed };
    r.body.replace_range(range, &changed);
    Ok(())
}

impl Ddl<'_> {
    /// The query of a new view, with its text.
    pub(super) fn query_to_store<'t>(&self, text: &'t str) -> Result<Cow<'t, str>> {
        let catalog = self.catalog();
        if !catalog.has_operators() {
            return Ok(Cow::Borrowed(text));
        }
        let Ok(parsed) = crate::syntax::parse(text) else { return Ok(Cow::Borrowed(text)) };
        let Some(Statement::Query(query)) = parsed.first().map(|p| &p.statement) else {
            return Ok(Cow::Borrowed(text));
        };
        let plan = || with_env(self.core, &catalog, |env| Planner::new(env).plan_view(query, text));
        let (planned, met) = operator::collect(plan);
        match planned.is_ok() && !met.is_empty() {
            true => qualified(&catalog, text, &met, false).map(Cow::Owned),
            false => Ok(Cow::Borrowed(text)),
        }
    }

    /// The expressions of a new index.
    pub(super) fn index_to_store(&self, s: &mut CreateIndex, table: &Relation) -> Result<()> {
        let catalog = self.catalog();
        let keys = s.keys.iter_mut().map(|k| (&mut k.expr, &mut k.text));
        for (expr, text) in keys.chain(s.filter.iter_mut().map(|(expr, text)| (expr, text))) {
            self.one_to_store(&catalog, table, expr, text)?;
        }
        Ok(())
    }

    /// The condition of a policy.
    pub(super) fn condition_to_store(&self, r: &Relation, (expr, text): &Condition) -> Result<Condition> {
        let (mut expr, mut text) = (expr.clone(), text.clone());
        self.one_to_store(&self.catalog(), r, &mut expr, &mut text)?;
        Ok((expr, text))
    }

    fn one_to_store(&self, catalog: &Arc<Catalog>, r: &Relation, expr: &mut Expr, text: &mut String) -> Result<()> {
        let before = text.clone();
        of_table(self.core, catalog, Some(r), text)?;
        if *text != before {
            *expr = crate::syntax::parse_expression(text)?;
        }
        Ok(())
    }
}
