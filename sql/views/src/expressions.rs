//! The texts of defaults, generated columns and checks.

use clearway_context::index_terms::Place;
use clearway_engine::catalog::types::{Domain, TypeObject};
use clearway_engine::catalog::{Check, Column, Relation};
use clearway_exec::Run;
use clearway_planner::explain::definition::shown;
use clearway_values::types::text::Names as _;
use clearway_values::types::{Oid, SqlType, oid, user};

/// The default of a column, or what it is computed from: `nextval('16384'::regclass)` has the sequence's name.
pub fn default(run: &Run<'_>, table: &Relation, (column, text): (&Column, &str), pretty: bool) -> String {
    let number = text.strip_prefix("nextval('").and_then(|t| t.strip_suffix("'::regclass)"));
    if let Some(name) = number.and_then(|n| n.parse().ok()).and_then(|oid| run.names.relation_name(oid)) {
        return format!("nextval('{name}'::regclass)");
    }
    let ty = user::base(SqlType::new(column.type_oid)).oid;
    let found = shown(&run.names.catalog, table, column.path.as_deref(), (text, Place::Value(ty)), pretty);
    found.unwrap_or_else(|| as_written(text, ty))
}

/// The condition of a check.
pub fn check(run: &Run<'_>, table: &Relation, check: &Check, pretty: bool) -> String {
    let found = shown(&run.names.catalog, table, check.path.as_deref(), (&check.condition, Place::Check), pretty);
    found.unwrap_or_else(|| check.condition.clone())
}

/// The default of a domain.
pub fn domain_default(run: &Run<'_>, (ty, domain): (&TypeObject, &Domain)) -> Option<String> {
    let text = domain.default.as_deref()?;
    let nothing = Relation::table(ty.oid, ty.database, ty.schema, &ty.name, Vec::new(), 0);
    let of = (text, Place::Value(domain.base));
    let found = shown(&run.names.catalog, &nothing, domain.default_path.as_deref(), of, false);
    Some(found.unwrap_or_else(|| as_written(text, domain.base)))
}

/// The condition of a domain's check, in which `VALUE` is the value.
pub fn domain_check(run: &Run<'_>, (ty, domain): (&TypeObject, &Domain), check: &Check, pretty: bool) -> String {
    let (type_oid, type_mod) = (domain.base, domain.base_mod);
    let value = Column { name: "value".to_owned(), type_oid, type_mod, ..Column::default() };
    let values = Relation::table(ty.oid, ty.database, ty.schema, &ty.name, vec![value], 0);
    let found = shown(&run.names.catalog, &values, check.path.as_deref(), (&check.condition, Place::Check), pretty);
    let text = found.unwrap_or_else(|| check.condition.clone());
    let Ok(tokens) = clearway_syntax::lexer::tokens(&text) else { return text };
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for token in tokens.iter().filter(|t| matches!(&t.kind, clearway_syntax::lexer::Tok::Word(w) if w == "value")) {
        let (from, to) = (token.start as usize, token.end as usize);
        out.push_str(&text[copied..from]);
        out.push_str("VALUE");
        copied = to;
    }
    out.push_str(&text[copied..]);
    out
}

/// With few parentheses: what pg_attrdef or pg_constraint has as `text` of a table.
pub fn pretty(run: &Run<'_>, text: &str, table: Oid) -> Option<String> {
    let table = run.names.catalog.relation(table)?;
    let with_default = table.columns.iter().filter(|c| !c.is_dropped());
    let mut defaults = with_default.filter_map(|c| Some((c, c.default.as_deref()?)));
    if let Some(found) = defaults.find(|of| default(run, table, *of, false) == text) {
        return Some(default(run, table, found, true));
    }
    let found = table.checks.iter().find(|c| check(run, table, c, false) == text)?;
    Some(check(run, table, found, true))
}

/// A string with its type; anything else as it is.
fn as_written(text: &str, ty: Oid) -> String {
    let inner = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
    let is_string = inner.is_some_and(|t| !t.replace("''", "").contains('\''));
    match clearway_values::types::facts(ty)
        .filter(|_| is_string && matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR))
    {
        Some(facts) => format!("{text}::{}", if ty == oid::BPCHAR { "bpchar" } else { facts.sql_name }),
        None => text.to_owned(),
    }
}
