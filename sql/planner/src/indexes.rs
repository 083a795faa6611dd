//! Indexes over expressions, and partial indexes: which expression of a statement is one of an index, when a partial index may be read,
//! and which index ON CONFLICT means.
//!
//! # Invariants
//! - PIX-1: a partial index is read only where the query's conditions imply the index's condition (`implies`): then the rows that are
//!   missing from the index would not be in the result.
//! - PIX-2: the uniqueness of a partial index is used only for rows that meet the index's condition; it says nothing about other rows.

use super::Planner;
use super::checks::same_set;
use super::dml::column_of;
use super::implies::{implied, same};
use super::leaf::table_columns;
use super::plan::{TableSlot, split};
use super::select::label_of;
use clearway_base::stack;
use clearway_context::index_terms::{self, IndexTerms, Key};
use clearway_engine::catalog::{Index, IndexColumn, Relation};
use clearway_engine::table::shape::{IndexShape, TableShape};
use clearway_syntax::ast::{Expr, ExprKind};
use clearway_syntax::ddl::IndexKey;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::expr::{Bound, BoundKind, Params, Scope};
use clearway_values::types::SqlType;

/// A term with its columns in the slots of a table.
pub fn placed(e: &Bound, base: usize) -> Bound {
    let mut e = e.clone();
    shift(&mut e, base);
    e
}

fn shift(e: &mut Bound, base: usize) {
    if let BoundKind::Column { index, .. } = &mut e.kind {
        *index += base;
    }
    stack::deeper(|| e.children_mut().into_iter().for_each(|c| shift(c, base)));
}

/// The expressions of a table's indexes by their positions (SHP-3), the first of each.
fn expressions(shape: &TableShape) -> impl Iterator<Item = (usize, &Bound)> {
    let with_terms = shape.indexes.iter().filter_map(|i| Some((i, index_terms::of(i)?)));
    with_terms.flat_map(|(index, terms)| {
        index.columns.iter().zip(&terms.keys).filter_map(|(at, key)| match key {
            Key::Expression(e) => Some((*at, e)),
            Key::Column(_) => None,
        })
    })
}

/// The position of the index expression that an expression is.
pub fn term(e: &Bound, table: &TableSlot) -> Option<usize> {
    if table.shape.expressions.is_empty() {
        return None;
    }
    let alike = |of: &Bound| of.ty == e.ty && std::mem::discriminant(&of.kind) == std::mem::discriminant(&e.kind);
    expressions(&table.shape).find(|(_, of)| alike(of) && same(e, &placed(of, table.base))).map(|(at, _)| at)
}

/// The expression at a position, in the slots of the table.
pub fn expression_at(table: &TableSlot, at: usize) -> Option<Bound> {
    expressions(&table.shape).find(|(place, _)| *place == at).map(|(_, e)| placed(e, table.base))
}

/// The type of a column of the table, or of an expression of its indexes.
pub fn type_of(table: &TableSlot, at: usize) -> SqlType {
    let expression = || expressions(&table.shape).find(|(place, _)| *place == at).map(|(_, e)| e.ty);
    table.types.get(at).copied().or_else(expression).unwrap_or_else(|| clearway_values::types::oid::UNKNOWN.into())
}

/// The condition of a partial index, taken apart.
pub fn condition_of(table: &TableSlot, index: &IndexShape) -> Option<Vec<Bound>> {
    let condition = index_terms::of(index)?.condition.as_ref()?;
    Some(split(placed(condition, table.base)))
}

/// PIX-1.
pub fn is_usable(table: &TableSlot, index: &IndexShape, conditions: &[Bound]) -> bool {
    index.is_plain() || condition_of(table, index).is_none_or(|list| list.iter().all(|w| implied(conditions, w)))
}

/// PIX-2: whether no two rows of the table have the same values in its columns, nulls aside.
pub fn is_unique_of_all(index: &IndexShape) -> bool {
    index.unique && (index.is_plain() || index_terms::of(index).is_some_and(|terms| terms.condition.is_none()))
}

/// What the columns of an index are called.
pub fn column_names(relation: &Relation, columns: &[IndexColumn]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in columns {
        let name = match &c.expression {
            None => relation.columns.get(c.column).map_or_else(String::new, |column| column.name.clone()),
            Some(e) => clearway_syntax::parse_expression(&e.text)
                .map(|e| label_of(&e))
                .ok()
                .filter(|label| label != "?column?")
                .unwrap_or_else(|| "expr".to_owned()),
        };
        let mut free = name.clone();
        let mut n = 0;
        while out.contains(&free) {
            n += 1;
            free = format!("{name}{n}");
        }
        out.push(free);
    }
    out
}

impl Planner<'_> {
    /// The unique indexes that ON CONFLICT names by columns and expressions, and by a condition that implies theirs.
    pub(super) fn inferred(
        &mut self,
        keys: &[IndexKey],
        filter: Option<&Expr>,
        relation: &Relation,
    ) -> Result<Vec<u32>> {
        let (mut columns, mut expressions) = (Vec::new(), Vec::new());
        let scope = Scope::over(table_columns(relation, &relation.name, 0), None);
        for key in keys {
            match &*key.expr.kind {
                ExprKind::Column(name) => {
                    if name.parts.len() > 1 {
                        let params = &mut Params::default();
                        self.bind(&scope, params, "index expressions", None, |b| b.bind(&key.expr))?;
                    }
                    columns.push(column_of(relation, name.name(), name.pos)?);
                }
                _ => {
                    let params = &mut Params::default();
                    expressions.push(self.bind(&scope, params, "index expressions", None, |b| b.bind(&key.expr))?);
                }
            }
        }
        if expressions.is_empty() {
            self.refuse_late_arbiter(relation, &columns)?;
        }
        let given = match filter {
            Some(e) => {
                let params = &mut Params::default();
                let bound = self.bind(&scope, params, "index predicates", None, |b| b.bind_condition(e, "WHERE"))?;
                self.note(&bound);
                split(bound)
            }
            None => Vec::new(),
        };
        let shape = self.slot(relation)?.shape;
        let fits = |i: &Index| {
            let plain: Vec<usize> = i.columns.iter().filter(|c| c.expression.is_none()).map(|c| c.column).collect();
            i.unique
                && same_set(&plain, &columns)
                && match shape.indexes.iter().find(|s| s.oid == i.oid).and_then(index_terms::of) {
                    None => expressions.is_empty(),
                    Some(terms) => has_terms(terms, &expressions, &given),
                }
        };
        let found: Vec<u32> = self.env.catalog.indexes(relation.oid).filter(|i| fits(i)).map(|i| i.oid).collect();
        if found.is_empty() {
            let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            return Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message));
        }
        Ok(found)
    }
}

/// Whether an index has these expressions, and its condition follows from these.
fn has_terms(terms: &IndexTerms, expressions: &[Bound], given: &[Bound]) -> bool {
    let own = || {
        terms.keys.iter().filter_map(|key| match key {
            Key::Expression(e) => Some(e),
            Key::Column(_) => None,
        })
    };
    own().all(|e| expressions.iter().any(|x| same(x, e)))
        && expressions.iter().all(|x| own().any(|e| same(x, e)))
        && terms.condition.iter().cloned().flat_map(split).all(|w| implied(given, &w))
}
