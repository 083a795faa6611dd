//! Generated columns, and unique constraints that are checked after the statement: their expressions, and which statements may give such
//! columns a value.

use super::Planner;
use clearway_context::deferred::Timing;
use clearway_context::immutable::is_immutable;
use clearway_engine::catalog::{Column, Index, Oid, Relation};
use clearway_syntax::ast::{Expr, ExprKind, QueryBody};
use clearway_syntax::error::{Result, SqlError, code};
use clearway_syntax::stmt::Insert;
use clearway_values::expr::{Bound, BoundKind, Params, Scope, is_system_column};
use clearway_values::types::SqlType;
use std::sync::Arc;

/// A unique constraint that is DEFERRABLE.
#[derive(Clone, Debug)]
pub struct LateUnique {
    /// The constraint.
    pub name: String,
    /// Its index.
    pub index: clearway_engine::catalog::Oid,
    /// The tree of that.
    pub tree: u64,
    /// Its columns.
    pub columns: Vec<usize>,
    /// Two nulls are the same value.
    pub nulls_not_distinct: bool,
    /// When it is checked.
    pub timing: Timing,
}

impl Planner<'_> {
    /// The generated columns of a table: place and expression.
    pub(super) fn generated_columns(&mut self, relation: &Relation, scope: &Scope<'_>) -> Result<Vec<(usize, Bound)>> {
        let mut out = Vec::new();
        for (at, c) in relation.columns.iter().enumerate().filter(|(_, c)| c.generated && !c.is_dropped()) {
            let e = clearway_syntax::parse_expression(c.default.as_deref().unwrap_or("NULL"))?;
            let ty = SqlType { oid: c.type_oid, modifier: c.type_mod };
            let params = &mut Params::default();
            let place = "column generation expressions";
            let bound = self.on_path(c.path.as_deref(), |p| {
                p.bind(scope, params, place, None, |b| b.bind_assigned(&e, ty, &c.name))
            })?;
            out.push((at, bound));
        }
        Ok(out)
    }

    /// The unique constraints of a table that are checked after the statement or later.
    pub(super) fn late_uniques(&self, relation: &Relation) -> Arc<[LateUnique]> {
        let late = self.env.catalog.indexes(relation.oid).filter(|index| index.deferrable);
        let unique = |index: &Index| LateUnique {
            name: index.name.clone(),
            index: index.oid,
            tree: index.tree,
            columns: index.columns.iter().map(|c| c.column).collect(),
            nulls_not_distinct: index.nulls_not_distinct,
            timing: Timing { deferrable: true, deferred: index.deferred },
        };
        late.map(unique).collect()
    }

    /// A unique constraint that is checked late decides no conflict.
    pub(super) fn refuse_late_arbiter(&self, relation: &Relation, columns: &[usize]) -> Result<()> {
        let late = self.late_uniques(relation);
        let same = |u: &&LateUnique| u.columns.len() == columns.len() && u.columns.iter().all(|c| columns.contains(c));
        late.iter().find(same).map_or(Ok(()), |u| Err(late_arbiter(&u.name)))
    }

    /// ON CONFLICT DO NOTHING without a target is about all unique indexes in the order of their oids, as in PostgreSQL: those before the first one
    /// that is checked late, and that one's name, which is an error for a row that conflicts with none of them. Without such a one: any index.
    pub(super) fn any_arbiter(&self, relation: &Relation) -> (Vec<Oid>, Option<String>) {
        let late = self.late_uniques(relation);
        let Some(first) = late.iter().min_by_key(|u| u.index) else { return (Vec::new(), None) };
        let before = self.env.catalog.indexes(relation.oid).filter(|i| i.unique && i.oid < first.index);
        (before.map(|i| i.oid).collect(), Some(first.name.clone()))
    }

    /// The default of a column, as it may be written: not with a subquery.
    ///
    /// # Errors
    /// 0A000, and what binding the expression gives.
    pub fn new_default(&mut self, relation: &Relation, column: usize) -> Result<Option<Bound>> {
        let bound = self.default_of(relation, column);
        bound.map_err(of_column)?.map(without_subquery).transpose()
    }

    /// The default of a domain over a type, as it may be written.
    ///
    /// # Errors
    /// As [`Planner::new_default`].
    pub fn new_domain_default(&mut self, text: &str, base: SqlType, name: &str) -> Result<()> {
        let bound = self.default_text(text, base, name).map_err(of_column)?;
        without_subquery(bound).map(drop)
    }

    /// Binds the text of a default.
    pub(super) fn default_text(&mut self, text: &str, ty: SqlType, name: &str) -> Result<Bound> {
        let e = clearway_syntax::parse_expression(text)?;
        let place = "DEFAULT expressions";
        let bound =
            self.bind(&Scope::default(), &mut Params::default(), place, None, |b| b.bind_assigned(&e, ty, name));
        // Places in the text of the default are none in the statement.
        bound.map_err(|e| match e.message().replace(" but expression is of", " but default expression is of") {
            message if e.code() == code::DATATYPE_MISMATCH => e.nowhere().saying(message),
            _ => e.nowhere(),
        })
    }

    /// Binds the checks of a relation, as they may be written: without a subquery.
    ///
    /// # Errors
    /// 0A000, and what binding them gives.
    pub fn new_checks(&mut self, relation: &Relation) -> Result<()> {
        let target = self.target(relation).map_err(|e| of_system_column(e).nowhere())?;
        let asks = |check: &Bound| check.any(&|e| matches!(e.kind, BoundKind::Subquery { .. }));
        if target.checks.iter().any(|(_, check)| asks(check)) {
            return Err(SqlError::new("0A000", "cannot use subquery in check constraint"));
        }
        Ok(())
    }

    /// Refuses expressions that a generated column can't have.
    pub fn check_generated(&mut self, relation: &Relation) -> Result<()> {
        let columns = super::leaf::table_columns(relation, &relation.name, 0);
        let scope = Scope::over(columns, None);
        for (_, bound) in self.generated_columns(relation, &scope).map_err(SqlError::nowhere)? {
            if bound.any(&|e| matches!(e.kind, BoundKind::Subquery { .. })) {
                let message = "cannot use subquery in column generation expression";
                return Err(SqlError::new("0A000", message));
            }
            if !is_immutable(&bound) {
                return Err(SqlError::new("42P17", "generation expression is not immutable"));
            }
            let mut of_generated = None;
            super::walk::each(&bound, &mut |e| {
                if let BoundKind::Column { index, level: 0 } = e.kind
                    && let Some(column) = relation.columns.get(index).filter(|c| c.generated)
                {
                    of_generated = Some(column.name.clone());
                }
            });
            if let Some(name) = of_generated {
                let message = format!("cannot use generated column \"{name}\" in column generation expression");
                let detail = "A generated column cannot reference another generated column.";
                return Err(SqlError::new("42P17", message).detail(detail));
            }
        }
        Ok(())
    }
}

/// The error of a default that names a column.
fn of_column(e: SqlError) -> SqlError {
    let of_column = e.code() == code::UNDEFINED_COLUMN
        || e.code() == code::UNDEFINED_TABLE && e.message().starts_with("missing FROM-clause entry");
    if of_column { e.as_refused("cannot use column reference in DEFAULT expression") } else { e }
}

fn without_subquery(bound: Bound) -> Result<Bound> {
    if bound.any(&|e| matches!(e.kind, BoundKind::Subquery { .. })) {
        return Err(SqlError::new("0A000", "cannot use subquery in DEFAULT expression"));
    }
    Ok(bound)
}

/// The system column that an error calls missing, since the expressions of a table do not see it.
pub fn missing_system_column(error: &SqlError) -> Option<&str> {
    let name = error.message().strip_prefix("column \"").and_then(|rest| rest.strip_suffix("\" does not exist"));
    name.filter(|name| is_system_column(name))
}

/// The error of a check that names a system column: PostgreSQL takes `tableoid` alone.
fn of_system_column(error: SqlError) -> SqlError {
    match missing_system_column(&error).filter(|name| *name != "tableoid") {
        Some(name) => {
            let message = format!("system column \"{name}\" reference in check constraint is invalid");
            SqlError::new(code::INVALID_COLUMN_REFERENCE, message)
        }
        None => error,
    }
}

/// Whether the expression of a generated column says a name.
pub fn names_column(c: &Column, name: &str) -> bool {
    c.default.as_deref().is_some_and(|text| says(text, name))
}

/// Whether the text of an expression says a name as a word.
pub fn says(text: &str, name: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).any(|w| w == name || w.to_lowercase() == name)
}

fn is_generated(c: &Column) -> String {
    format!("Column \"{}\" is a generated column.", c.name)
}

/// INSERT gives a generated column nothing but DEFAULT.
pub(super) fn check_given(c: &Column, e: &Expr) -> Result<()> {
    if !c.generated || matches!(&*e.kind, ExprKind::Default) {
        return Ok(());
    }
    Err(non_default(c).detail(is_generated(c)))
}

/// A query gives no values to generated columns, nor to those GENERATED ALWAYS AS IDENTITY without OVERRIDING.
pub(super) fn check_source(relation: &Relation, given: &[usize], s: &Insert) -> Result<()> {
    let Some(source) = &s.source else { return Ok(()) };
    if matches!(source.body, QueryBody::Values(_)) {
        return Ok(());
    }
    given.iter().map(|c| &relation.columns[*c]).try_for_each(|c| match c.generated {
        true => Err(non_default(c).detail(is_generated(c))),
        false => check_identity(c, s),
    })
}

/// A column GENERATED ALWAYS AS IDENTITY takes a value only where the statement overrides the sequence.
pub(super) fn check_identity(c: &Column, s: &Insert) -> Result<()> {
    if c.identity != Some('a') || s.overriding_system.is_some() {
        return Ok(());
    }
    Err(non_default(c)
        .detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", c.name))
        .hint("Use OVERRIDING SYSTEM VALUE to override."))
}

fn non_default(c: &Column) -> SqlError {
    SqlError::new("428C9", format!("cannot insert a non-DEFAULT value into column \"{}\"", c.name))
}

/// UPDATE sets a generated column to nothing but DEFAULT.
pub(super) fn check_set(c: &Column, to_default: bool) -> Result<()> {
    if !c.generated || to_default {
        return Ok(());
    }
    let message = format!("column \"{}\" can only be updated to DEFAULT", c.name);
    Err(SqlError::new("428C9", message).detail(is_generated(c)))
}

/// A generated column can't be named for COPY.
pub fn check_copied(c: &Column) -> Result<()> {
    if !c.generated {
        return Ok(());
    }
    let message = format!("column \"{}\" is a generated column", c.name);
    Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message).detail("Generated columns cannot be used in COPY."))
}

/// Whether OVERRIDING USER VALUE puts the sequence's value in the place of what is given for a column.
pub fn is_overridden(c: &Column, s: &Insert) -> bool {
    s.overriding_system == Some(false) && c.identity.is_some()
}

/// The text of an expression over a table, with the table's name taken off its columns: the table may get another name.
pub fn without_table(text: &str, table: &str) -> String {
    use clearway_syntax::lexer::Tok;
    let Ok(tokens) = clearway_syntax::lexer::tokens(text) else { return text.to_owned() };
    let name = |at: usize| match tokens.get(at).map(|t| &t.kind) {
        Some(Tok::Word(w)) => Some(w.as_ref()),
        Some(Tok::Quoted(w)) => Some(w.as_ref()),
        _ => None,
    };
    let punct = |at: usize, c: u8| matches!(tokens.get(at).map(|t| &t.kind), Some(Tok::Punct(p)) if *p == c);
    let (mut out, mut copied) = (String::new(), 0);
    for at in 0..tokens.len() {
        let is_qualified = name(at) == Some(table) && punct(at + 1, b'.') && name(at + 2).is_some();
        // Not the name of a schema, before the table's or a function's.
        let is_schema = punct(at + 3, b'.') || punct(at + 3, b'(');
        if is_qualified && !is_schema && (at == 0 || !punct(at - 1, b'.')) {
            out.push_str(text.get(copied..tokens[at].start as usize).unwrap_or_default());
            copied = tokens[at + 2].start as usize;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

/// 55000: a unique constraint that is checked late is to decide a conflict.
pub fn late_arbiter(constraint: &str) -> SqlError {
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
    SqlError::new("55000", message).constraint(constraint)
}
