//! Compiles the expressions and conditions of indexes for the engine, which evaluates them when it writes, builds or checks index
//! entries.
//!
//! # Invariants
//! - IXT-1: only immutable expressions become terms of an index, and they are evaluated in a separate session with the default settings.
//!   So every session, and the check of a directory, computes the same entries (TRM-1 of the engine).
//! - IXT-2: a term has a function's body in the place of its call, for every role. So the right to call it is judged before: of a role that
//!   writes rows where its statement is planned, of the table's owner where an index is built.

use super::convert::{storage_of, to_datum, to_value};
use super::immutable::is_immutable;
use super::routines::definition_path;
use super::types::{NoSession, bare_binder, refresh};
use clearway_engine::catalog::{Catalog, Index, IndexExpression, Object, Relation};
use clearway_engine::error::EngineError;
use clearway_engine::table::shape::IndexShape;
use clearway_engine::table::terms::{self, Compiler, Terms};
use clearway_engine::value::Value;
use clearway_syntax::ast::{Expr, ExprKind, Literal};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::bind_routines::{with_called, without_inlining};
use clearway_values::expr::{Bound, BoundKind, Env, Params, Scope, ScopeColumn, eval};
use clearway_values::types::text::Conversion;
use clearway_values::types::user::{self, Slot};
use clearway_values::types::{Datum, Oid, SqlType, oid};
use std::any::Any;
use std::sync::Arc;

/// One column of an index.
#[derive(Debug)]
pub enum Key {
    /// A column of the table.
    Column(usize),
    /// An expression; its columns are slots from 0 on.
    Expression(Bound),
}

/// The terms of one index.
pub struct IndexTerms {
    /// Its columns.
    pub keys: Vec<Key>,
    /// What a row meets that has an entry.
    pub condition: Option<Bound>,
    /// The functions that they call: a role that changes a row of the table needs the right to (IXT-2).
    pub calls: Vec<Oid>,
    reads: Vec<usize>,
    columns: Vec<SqlType>,
    /// The types that users define, where a column has one.
    types: Option<Slot>,
}

impl std::fmt::Debug for IndexTerms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexTerms").field("keys", &self.keys).field("condition", &self.condition).finish()
    }
}

impl Terms for IndexTerms {
    fn values(&self, row: &[Value]) -> std::result::Result<Option<Vec<Value>>, EngineError> {
        let _types = self.types.clone().map(user::enter);
        self.of(row).map_err(|e| EngineError::Terms(Arc::new(e)))
    }

    fn reads(&self) -> &[usize] {
        &self.reads
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl IndexTerms {
    /// Whether they name one of these columns.
    pub fn has_any(&self, columns: &[usize]) -> bool {
        self.reads.iter().any(|column| columns.contains(column))
    }

    fn of(&self, row: &[Value]) -> Result<Option<Vec<Value>>> {
        let mut datums = vec![Datum::Null; self.columns.len()];
        for c in &self.reads {
            datums[*c] = to_datum(&row[*c], self.columns[*c])?;
        }
        let env = Env { row: &datums, outer: &[], params: &[], aggregates: &[], session: &NoSession };
        if let Some(condition) = &self.condition
            && eval(condition, &env)?.as_bool() != Some(true)
        {
            return Ok(None);
        }
        let value = |key: &Key| match key {
            Key::Column(c) => Ok(row[*c].clone()),
            Key::Expression(e) => Ok(to_value(&eval(e, &env)?)),
        };
        self.keys.iter().map(value).collect::<Result<_>>().map(Some)
    }
}

/// The terms of an index, if it has any.
pub fn of(index: &IndexShape) -> Option<&IndexTerms> {
    index.terms.as_ref()?.as_any().downcast_ref()
}

struct SqlCompiler;

/// Has the engine compile terms by this module, and sort keys by the forms of [`super::sort_form`].
pub fn install() {
    super::sort_form::install();
    terms::install(&SqlCompiler);
}

impl Compiler for SqlCompiler {
    fn compile(
        &self,
        catalog: &Catalog,
        table: &Relation,
        index: &Index,
    ) -> std::result::Result<Arc<dyn Terms>, EngineError> {
        match compile(catalog, table, index) {
            Ok(terms) => Ok(Arc::new(terms)),
            Err(e) => Err(EngineError::Terms(Arc::new(e))),
        }
    }
}

/// The functions that the terms of an index call.
///
/// # Errors
/// As [`bind`].
pub fn calls(catalog: &Catalog, table: &Relation, index: &Index) -> Result<Vec<Oid>> {
    let plain = index.condition.is_none() && index.columns.iter().all(|c| c.expression.is_none());
    if plain || !catalog.has_routines() { Ok(Vec::new()) } else { Ok(compile(catalog, table, index)?.calls) }
}

fn compile(catalog: &Catalog, table: &Relation, index: &Index) -> Result<IndexTerms> {
    let (terms, calls) = with_called(|| compile_texts(catalog, table, index));
    terms.map(|terms| IndexTerms { calls, ..terms })
}

fn compile_texts(catalog: &Catalog, table: &Relation, index: &Index) -> Result<IndexTerms> {
    let types = types_for(catalog, table);
    let _types = types.clone().map(user::enter);
    let bound = |text: &str, place| on_path(catalog, index.path.as_deref(), || bind(table, text, place));
    let (mut keys, mut reads) = (Vec::new(), Vec::new());
    for c in &index.columns {
        match &c.expression {
            None => {
                reads.push(c.column);
                keys.push(Key::Column(c.column));
            }
            Some(expression) => {
                let bound = bound(&expression.text, Place::Key)?;
                reads.extend(columns_of(&bound));
                keys.push(Key::Expression(bound));
            }
        }
    }
    let condition = index.condition.as_ref().map(|text| bound(text, Place::Condition)).transpose()?;
    reads.extend(condition.iter().flat_map(columns_of));
    reads.sort_unstable();
    reads.dedup();
    let columns = column_types(table);
    Ok(IndexTerms { keys, condition, calls: Vec::new(), reads, columns, types })
}

/// With the names of a text where its stored path leads them (USR-3, USR-4).
fn on_path<R>(catalog: &Catalog, path: Option<&[Oid]>, f: impl FnOnce() -> R) -> R {
    match path {
        Some(path) => user::on_path(definition_path(catalog, path), f),
        None => f(),
    }
}

/// All types of the table's database, if one of its columns has such a type. The path is the same in every session: `public`, then the
/// others by name. It is that of indexes which are older than their path.
fn types_for(catalog: &Catalog, table: &Relation) -> Option<Slot> {
    if table.columns.iter().all(|c| c.type_oid < user::FIRST_OID) && !catalog.has_routines() {
        return None;
    }
    let mut path: Vec<String> = catalog
        .objects()
        .filter_map(|o| match &**o {
            Object::Schema(s) if s.database == table.database => Some(s.name.clone()),
            _ => None,
        })
        .collect();
    path.sort_by_key(|name| (name != "public", name.clone()));
    let slot = user::slot();
    refresh(&slot, &Arc::new(catalog.clone()), (table.database, None), &path);
    Some(slot)
}

fn column_types(table: &Relation) -> Vec<SqlType> {
    table.columns.iter().map(|c| SqlType { oid: c.type_oid, modifier: c.type_mod }).collect()
}

/// The part of the statement in which a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// An expression in the place of a column.
    Key,
    /// The condition.
    Condition,
    /// The default of a column of this type, or what it is computed from.
    Value(Oid),
    /// A check of a table.
    Check,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Key => "index expressions",
            Place::Condition => "index predicates",
            Place::Value(_) => "DEFAULT expressions",
            Place::Check => "check constraints",
        }
    }
}

/// The columns that a bound text names.
pub fn columns_of(e: &Bound) -> Vec<usize> {
    let mut out = Vec::new();
    let mut left = vec![e];
    while let Some(e) = left.pop() {
        if let BoundKind::Column { index, .. } = e.kind {
            out.push(index);
        }
        left.extend(e.children());
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Binds a text over the columns of a table, which are slots from 0 on.
///
/// # Errors
/// Whatever is wrong with the text; 42P17 if it is not immutable (IXT-1).
pub fn bind(table: &Relation, text: &str, place: Place) -> Result<Bound> {
    bind_expr(table, None, &clearway_syntax::parse_expression(text)?, place)
}

/// As [`bind`], of what a statement says. A text that names its table is refused: the table may get another name.
fn bind_new(table: &Relation, expr: &Expr, place: Place) -> Result<Bound> {
    if place == Place::Key && matches!(*expr.kind, ExprKind::Literal(Literal::Str(_) | Literal::Null)) {
        let message = "data type unknown has no default operator class for access method \"btree\"";
        let hint =
            "You must specify an operator class for the index or define a default operator class for the data type.";
        return Err(SqlError::new(clearway_syntax::error::code::UNDEFINED_OBJECT, message).hint(hint));
    }
    let bound = bind_expr(table, Some(table.name.as_str()), expr, place)?;
    match bind_expr(table, None, expr, place) {
        Ok(_) => Ok(bound),
        Err(_) => Err(SqlError::unsupported("an index that names its table in an expression").at(expr.pos)),
    }
}

fn bind_expr(table: &Relation, called: Option<&str>, expr: &Expr, place: Place) -> Result<Bound> {
    let bound = bind_any(table, called, expr, place)?;
    if bound.may_wait() {
        let what = "an index over a function whose body is more than one expression";
        return Err(SqlError::unsupported(what));
    }
    Ok(bound)
}

fn bind_any(table: &Relation, called: Option<&str>, expr: &Expr, place: Place) -> Result<Bound> {
    let column = |(index, c): (usize, &clearway_engine::catalog::Column)| {
        let ty = SqlType { oid: c.type_oid, modifier: c.type_mod };
        ScopeColumn::plain(called.map(str::to_owned), c.name.clone(), ty, index)
    };
    let live = table.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped());
    let scope = Scope::over(live.map(column).collect(), None);
    let mut params = Params::default();
    let mut binder = bare_binder(&scope, &mut params, place.name());
    let bound = match place {
        Place::Key => {
            let bound = binder.bind(expr)?;
            binder.settle(bound)?
        }
        Place::Condition => binder.bind_condition(expr, "WHERE")?,
        Place::Check => binder.bind_condition(expr, "CHECK")?,
        // A literal takes the column's type, and anything else keeps its own: the cast to the column's type is not shown.
        Place::Value(ty) if matches!(*expr.kind, ExprKind::Literal(Literal::Str(_) | Literal::Null)) => {
            binder.bind_assigned(expr, SqlType::new(ty), "")?
        }
        Place::Value(_) => binder.bind(expr)?,
    };
    // TRM-1
    let message = match place {
        Place::Key => "functions in index expression must be marked IMMUTABLE",
        Place::Condition => "functions in index predicate must be marked IMMUTABLE",
        Place::Value(_) | Place::Check => return Ok(bound),
    };
    if !is_immutable(&bound) {
        return Err(SqlError::new("42P17", message));
    }
    Ok(bound)
}

/// Binds a text with the types of the table's database, for a definition that is shown: calls of functions stay calls.
///
/// # Errors
/// As [`bind`].
pub fn bind_shown(
    catalog: &Catalog,
    table: &Relation,
    path: Option<&[Oid]>,
    text: &str,
    place: Place,
) -> Result<Bound> {
    let _types = types_for(catalog, table).map(user::enter);
    let expr = clearway_syntax::parse_expression(text)?;
    on_path(catalog, path, || without_inlining(|| bind_any(table, None, &expr, place)))
}

/// How the constants of definitions are shown.
pub fn bare_conversion() -> Conversion<'static> {
    super::types::bare_conversion()
}

/// The values of an index's columns for a row, each with its type.
///
/// # Errors
/// Those of the expressions.
pub fn shown_values(terms: &IndexTerms, row: &[Datum]) -> Result<Vec<(Datum, SqlType)>> {
    let env = Env { row, outer: &[], params: &[], aggregates: &[], session: &NoSession };
    let value = |key: &Key| match key {
        Key::Column(c) => Ok((row[*c].clone(), terms.columns[*c])),
        Key::Expression(e) => Ok((eval(e, &env)?, e.ty)),
    };
    terms.keys.iter().map(value).collect()
}

/// An expression as the catalog keeps it, with the columns that it names; `text` is its text.
///
/// # Errors
/// As [`bind`]; 0A000 for a type by which no index can be sorted.
pub fn expression(
    catalog: &Catalog,
    table: &Relation,
    path: Option<&[Oid]>,
    (expr, text): (&Expr, &str),
) -> Result<(IndexExpression, Vec<usize>)> {
    let _types = types_for(catalog, table).map(user::enter);
    let bound = on_path(catalog, path, || bind_new(table, expr, Place::Key))?;
    let SqlType { oid: type_oid, modifier: type_mod } = bound.ty;
    if type_oid == oid::RECORD {
        return Err(SqlError::new("42P16", "column \"row\" has pseudo-type record"));
    }
    let storage = storage_of(type_oid).ok_or_else(|| super::convert::not_storable(bound.ty))?;
    let reads = columns_of(&bound);
    Ok((IndexExpression { text: text.to_owned(), storage: storage.code(), type_oid, type_mod }, reads))
}

/// The columns that a condition names.
///
/// # Errors
/// As [`bind`].
pub fn condition(catalog: &Catalog, table: &Relation, path: Option<&[Oid]>, expr: &Expr) -> Result<Vec<usize>> {
    let _types = types_for(catalog, table).map(user::enter);
    let bound = on_path(catalog, path, || bind_new(table, expr, Place::Condition));
    bound.map(|bound| columns_of(&bound))
}
