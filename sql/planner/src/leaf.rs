//! The leaves of FROM: their slots in the layout, and the names of their columns.

use super::from::{Item, Layout, Leaf, Placed};
use super::plan::{KeptRows, OutputColumn, Query};
use clearway_engine::catalog::types::row_type;
use clearway_engine::catalog::{Column, Relation};
use clearway_syntax::ast::Alias;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_values::expr::{ScopeColumn, WholeRow};
use clearway_values::types::SqlType;
use std::sync::Arc;

/// Scope columns under a relation's name, renamed by its alias.
pub(super) fn named(
    columns: Vec<(&str, SqlType, usize)>,
    relation: &str,
    alias: Option<&Alias>,
) -> Result<Vec<ScopeColumn>> {
    let given = alias.map_or(&[][..], |a| &a.columns);
    if given.len() > columns.len() {
        let message = format!(
            "table \"{relation}\" has {} columns available but {} columns specified",
            columns.len(),
            given.len()
        );
        return Err(SqlError::new(code::INVALID_COLUMN_REFERENCE, message));
    }
    let column = |(i, (name, ty, index)): (usize, (&str, SqlType, usize))| {
        let name = given.get(i).map_or(name, String::as_str).to_owned();
        ScopeColumn::plain(Some(relation.to_owned()), name, ty, index)
    };
    Ok(columns.into_iter().enumerate().map(column).collect())
}

/// The columns of a table or view, whose first has slot `base`, say whose they are.
pub(super) fn note_origin(columns: &mut [ScopeColumn], relation: u32, width: usize, base: usize) {
    for c in columns {
        if let Some(at) = c.index.checked_sub(base).filter(|at| *at < width) {
            c.origin = (relation, at as i16 + 1);
        }
    }
}

/// The rows that the last turn of a recursive query gave, or a change in WITH.
pub(super) fn work_leaf(
    out: &mut Layout,
    id: usize,
    columns: &[OutputColumn],
    alias: Option<&Alias>,
    name: &str,
) -> Result<Placed> {
    let base = out.width;
    out.width += columns.len();
    let list = columns.iter().enumerate().map(|(i, c)| (c.name.as_str(), c.ty, base + i)).collect();
    let name = alias.map_or(name, |a| &a.name);
    let mut named = named(list, name, alias)?;
    named.iter_mut().zip(columns).for_each(|(column, c)| column.origin = c.origin);
    out.others.push(name.to_owned());
    Ok((Item::Leaf { kind: Leaf::Work(id), base, end: out.width, filters: Vec::new() }, named))
}

pub(super) fn derived_leaf(
    out: &mut Layout,
    query: Arc<Query>,
    alias: Option<&Alias>,
    name: &str,
    kept: Option<Arc<KeptRows>>,
    lateral: bool,
) -> Result<Placed> {
    let base = out.width;
    out.width += query.columns.len();
    let columns = query.columns.iter().enumerate().map(|(i, c)| (c.name.as_str(), c.ty, base + i)).collect();
    let mut columns = named(columns, name, alias)?;
    for (column, c) in columns.iter_mut().zip(&query.columns) {
        (column.shape, column.origin) = (c.shape.clone(), c.origin);
    }
    out.others.push(name.to_owned());
    Ok((
        Item::Leaf { kind: Leaf::Derived { query, kept, lateral }, base, end: out.width, filters: Vec::new() },
        columns,
    ))
}

/// A table's columns as names, from a slot on.
pub fn table_columns(relation: &Relation, name: &str, base: usize) -> Vec<ScopeColumn> {
    let live = relation.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped());
    let column = |(i, c): (usize, &Column)| {
        let ty = SqlType { oid: c.type_oid, modifier: c.type_mod };
        let plain = ScopeColumn::plain(Some(name.to_owned()), c.name.clone(), ty, base + i);
        ScopeColumn { origin: (relation.oid, i as i16 + 1), ..plain }
    };
    let mut columns: Vec<ScopeColumn> = live.map(column).collect();
    WholeRow::note(row_type(relation.oid), None, &mut columns);
    columns
}
