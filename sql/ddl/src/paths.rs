//! Stores, with the texts of a definition, the search path on which they were written (USR-3) and the routines that they call (USR-4):
//! for defaults, generated columns, and conditions of tables, indexes and domains.

use super::operator_texts;
use crate::context::core::Core;
use crate::context::names::{own_path, split_name};
use crate::context::privileges::{Judge, denied};
use crate::context::routines::settle;
use crate::error::Result;
use crate::syntax::ast::{Expr, ExprKind, Literal};
use crate::syntax::ddl::CreateIndex;
use crate::syntax::lexer::{Tok, tokens};
use crate::types::{SqlType, user};
use clearway_engine::catalog::{Catalog, Check, Column, Domain, Object, Oid, Relation, TypeBody, TypeObject};
use std::sync::Arc;

/// Keeps the session's path with each text that is new.
pub(super) fn keep(core: &Core, catalog: &Arc<Catalog>, relation: &mut Relation) -> Result<()> {
    let old = catalog.relation(relation.oid);
    // Only where a text may name an operator of a user.
    let table = catalog.has_operators().then(|| relation.clone());
    let mut path: Option<Vec<Oid>> = None;
    let mut here = || Some(path.get_or_insert_with(|| schemas(core, catalog, relation.schema)).clone());
    for (at, c) in relation.columns.iter_mut().enumerate().filter(|(_, c)| c.default.is_some()) {
        // A generated column's expression changes only when a column that it names gets another name.
        let same = |o: &&Column| o.default == c.default || (o.generated && c.generated);
        match old.and_then(|old| old.columns.get(at)).filter(same) {
            Some(o) => c.path.clone_from(&o.path),
            None if old.is_none() && c.path.is_some() => {}
            None => {
                may_name(core, catalog, c.default.as_deref().unwrap_or_default())?;
                if let (Some(table), Some(text)) = (&table, &mut c.default) {
                    operator_texts::of_table(core, catalog, Some(table), text)?;
                }
                c.path = here();
                settle_default((core, catalog), c);
            }
        }
    }
    for c in relation.checks.iter_mut() {
        match old.and_then(|old| old.checks.iter().find(|o| o.name == c.name)) {
            Some(o) => c.path.clone_from(&o.path),
            None if c.path.is_some() => {}
            None => {
                may_name(core, catalog, &c.condition)?;
                if let Some(table) = &table {
                    operator_texts::of_table(core, catalog, Some(table), &mut c.condition)?;
                }
                c.path = here();
            }
        }
    }
    let database = relation.database;
    for c in &mut relation.columns {
        settle(catalog, database, &mut c.path, c.default.as_deref());
    }
    for c in &mut relation.checks {
        settle(catalog, database, &mut c.path, [c.condition.as_str()]);
    }
    Ok(())
}

/// A new default that is a bare null is none; one that is the next value of a sequence means that sequence, whatever it is called later.
/// A domain's null is kept: it takes the place of the domain's default. So is one with a length: PostgreSQL shows it.
fn settle_default((core, catalog): (&Core, &Catalog), column: &mut Column) {
    let Some(text) = column.default.as_deref().filter(|_| !column.generated) else { return };
    let Ok(expr) = crate::syntax::parse_expression(text) else { return };
    let ty = SqlType { oid: column.type_oid, modifier: column.type_mod };
    if ty.modifier < 0 && !user::is_domain(ty.oid) && is_null(&expr, ty) {
        (column.default, column.path) = (None, None);
    } else if let Some(sequence) = next_of((core, catalog), column.path.as_deref().unwrap_or_default(), &expr) {
        column.default = Some(format!("nextval('{sequence}'::regclass)"));
    }
}

/// NULL, or NULL as a value of this type.
fn is_null(expr: &Expr, ty: SqlType) -> bool {
    match &*expr.kind {
        ExprKind::Literal(Literal::Null) => true,
        ExprKind::Cast { arg, to } => {
            matches!(&*arg.kind, ExprKind::Literal(Literal::Null)) && crate::types::resolve(to).is_ok_and(|to| to == ty)
        }
        _ => false,
    }
}

/// The sequence of `nextval('name')` and of `nextval('name'::regclass)`.
fn next_of((core, catalog): (&Core, &Catalog), path: &[Oid], expr: &Expr) -> Option<Oid> {
    let ExprKind::Call(call) = &*expr.kind else { return None };
    let ([name], [arg]) = (call.name.parts.as_slice(), call.args.as_slice()) else { return None };
    let text = match &*arg.kind {
        ExprKind::Cast { arg, to } if to.name.name() == "regclass" => arg,
        _ => arg,
    };
    let ExprKind::Literal(Literal::Str(text)) = &*text.kind else { return None };
    if name != "nextval" || text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let found = match split_name(text).as_slice() {
        [name] => path.iter().find_map(|schema| catalog.in_schema(*schema, name))?,
        [schema, name] => catalog.in_schema(catalog.schema(core.database, schema)?.oid, name)?,
        _ => return None,
    };
    let own = catalog.temp_schema().map(|schema| schema.oid);
    // A temporary one is known to its session alone: the default says its name, as it was written.
    match &**found {
        Object::Sequence(s) if Some(s.schema) != own => Some(s.oid),
        _ => None,
    }
}

/// Checks that the session's role may use the schemas that a new text names: before functions, types and the names of relations in strings.
/// A role that evaluates the text later needs no right to them.
///
/// # Errors
/// 42501.
fn may_name(core: &Core, catalog: &Catalog, text: &str) -> Result<()> {
    let list = tokens(text).unwrap_or_default();
    let kind = |at: usize| list.get(at).map(|token| &token.kind);
    let judge = Judge::of(core, catalog);
    let may_use = |name: &str| match catalog.schema(core.database, name) {
        Some(schema) if !judge.may_with_schema(schema, 'U') => Err(denied("schema", name)),
        _ => Ok(()),
    };
    let is_word = |at: usize, words: &[&str]| matches!(kind(at), Some(Tok::Word(word)) if words.contains(&&**word));
    let is_name = |at: usize| matches!(kind(at), Some(Tok::Word(_) | Tok::Quoted(_)));
    let is_mark = |at: usize, mark: u8| matches!(kind(at), Some(Tok::Punct(punct)) if *punct == mark);
    for at in 0..list.len() {
        match kind(at) {
            Some(Tok::Word(name) | Tok::Quoted(name)) if is_mark(at + 1, b'.') && is_name(at + 2) => {
                let before = at.wrapping_sub(1);
                let of_type = matches!(kind(before), Some(Tok::Typecast)) || is_word(before, &["as"]);
                if !is_mark(before, b'.') && (of_type || is_mark(at + 3, b'(')) {
                    may_use(name)?;
                }
            }
            Some(Tok::Str(name)) => {
                let sequence = is_word(at.wrapping_sub(2), &["nextval", "currval", "setval"]);
                let cast = matches!(kind(at + 1), Some(Tok::Typecast)) && is_word(at + 2, &["regclass"]);
                if let (true, [schema, _]) = (sequence || cast, split_name(name).as_slice()) {
                    may_use(schema)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same for a domain's texts; for a routine's body and defaults, whose path is known already, the routines.
pub(super) fn keep_other(core: &Core, catalog: &Arc<Catalog>, object: &mut Object) -> Result<()> {
    match object {
        Object::Type(TypeObject { oid, schema, database, body: TypeBody::Domain(domain), .. }) => {
            let old = match catalog.get(*oid).map(|o| &**o) {
                Some(Object::Type(TypeObject { body: TypeBody::Domain(old), .. })) => Some(old),
                _ => None,
            };
            keep_domain((core, catalog), domain, old, || schemas(core, catalog, *schema))?;
            settle(catalog, *database, &mut domain.default_path, domain.default.as_deref());
            for c in &mut domain.checks {
                settle(catalog, *database, &mut c.path, [c.condition.as_str()]);
            }
        }
        Object::Routine(r) => {
            let body = r.atomic.then_some(r.body.as_str());
            let defaults = r.arguments.iter().filter_map(|a| a.default.as_deref());
            settle(catalog, r.database, &mut r.path, body.into_iter().chain(defaults));
        }
        _ => {}
    }
    Ok(())
}

fn keep_domain(
    (core, catalog): (&Core, &Arc<Catalog>),
    domain: &mut Domain,
    old: Option<&Domain>,
    here: impl Fn() -> Vec<Oid>,
) -> Result<()> {
    match old.filter(|old| old.default == domain.default) {
        Some(old) => domain.default_path.clone_from(&old.default_path),
        None if old.is_none() && domain.default_path.is_some() => {}
        None => {
            if let Some(text) = &mut domain.default {
                operator_texts::of_table(core, catalog, None, text)?;
            }
            domain.default_path = Some(here());
        }
    }
    let base = SqlType { oid: domain.base, modifier: domain.base_mod };
    let known = |c: &Check| old.and_then(|old| old.checks.iter().find(|o| o.name == c.name));
    for c in &mut domain.checks {
        match known(c) {
            Some(o) => c.path.clone_from(&o.path),
            None if c.path.is_some() => {}
            None => {
                operator_texts::of_domain(core, catalog, base, &mut c.condition)?;
                c.path = Some(here());
            }
        }
    }
    Ok(())
}

/// The same for the texts of a new index, if it has any.
pub(super) fn of_index(core: &Core, catalog: &Catalog, table: &Relation, s: &CreateIndex) -> Result<Option<Vec<Oid>>> {
    let expressions = s.keys.iter().filter(|k| !matches!(&*k.expr.kind, ExprKind::Column(_))).map(|k| &k.text);
    let texts: Vec<&str> = expressions.chain(s.filter.iter().map(|(_, text)| text)).map(String::as_str).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    texts.iter().try_for_each(|text| may_name(core, catalog, text))?;
    let mut path = Some(schemas(core, catalog, table.schema));
    settle(catalog, table.database, &mut path, texts);
    Ok(path)
}

/// The schemas of the session's path; those of temporary objects only for a table that is one.
fn schemas(core: &Core, catalog: &Catalog, of: Oid) -> Vec<Oid> {
    let temporary = catalog.temp_schema().map(|own| own.oid).filter(|own| *own == of);
    let path = core.path();
    let own = own_path(&path).filter_map(|name| Some(catalog.schema(core.database, name)?.oid));
    temporary.into_iter().chain(own).collect()
}
