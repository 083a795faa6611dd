//! UPDATE and DELETE with WHERE CURRENT OF: the row on which a cursor stands takes the place of the condition.
//!
//! # Life of a condition
//! A cursor over one table gives beside its columns what tells its rows apart: the ctid, or where the table has none its primary key. The statement is
//! run with a condition on these, which is made anew each time, so that no plan is kept of it.
//!
//! # Invariants
//! - CUO-1: the planner refuses a statement with WHERE CURRENT OF: a plan is made of the statement whose condition names the row.
//!
//! Source: PostgreSQL 15's src/backend/executor/execCurrent.c, for what is refused.

use super::cursors::no_cursor;
use super::session::Session;
use crate::context::core::Core;
use crate::error::{Result, SqlError};
use crate::planner::environment::with_env;
use crate::planner::plan::OutputColumn;
use crate::planner::system_columns::has_ctid;
use crate::syntax::ast::{Expr, FromItem, Query, QueryBody, Select, TableRef};
use crate::syntax::parse;
use crate::syntax::stmt::Statement;
use crate::types::text::{self, Conversion};
use crate::types::{Datum, Oid, SqlType};
use clearway_engine::catalog::{Relation, RelationKind};

/// What tells the rows of a cursor's table apart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Identity {
    /// The table.
    pub(super) table: Oid,
    /// The columns that tell its rows apart, which stand behind those of the query.
    pub(super) columns: Vec<String>,
}

/// Where a cursor stands, for WHERE CURRENT OF.
pub(super) struct Standing {
    pub(super) identity: Option<Identity>,
    /// Their values in the row on which it stands; none: it stands on no row.
    pub(super) row: Option<Vec<(Datum, SqlType)>>,
    /// It was kept from an earlier transaction.
    pub(super) held: bool,
    /// It is a query, and whether that locks the rows.
    pub(super) locks: Option<bool>,
}

/// The name of the cursor in WHERE CURRENT OF.
pub(super) fn cursor_of(statement: &Statement) -> Option<&str> {
    match statement {
        Statement::Update(u) => u.current_of.as_deref(),
        Statement::Delete(d) => d.current_of.as_deref(),
        _ => None,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What a table is called in its statement.
fn called(table: &TableRef) -> &str {
    table.alias.as_ref().map_or_else(|| table.name.name(), |alias| &alias.name)
}

/// The only table of a query that gives its rows as they are.
fn only_table(query: &Query) -> Option<&TableRef> {
    let QueryBody::Select(select) = &query.body else { return None };
    let Select { distinct: None, having: None, from, group_by, windows, .. } = &**select else { return None };
    match from.as_slice() {
        [FromItem::Table(table)] if group_by.is_empty() && windows.is_empty() && query.with.is_none() => Some(table),
        _ => None,
    }
}

impl Identity {
    /// Whether its values stand behind the columns of a query.
    pub(super) fn is_behind(&self, columns: &[OutputColumn]) -> bool {
        let Some(before) = columns.len().checked_sub(self.columns.len()) else { return false };
        columns[before..].iter().enumerate().all(|(n, column)| column.name == label(n))
    }
}

/// The label of a column that stands behind those of the query.
fn label(n: usize) -> String {
    format!("?row {n}?")
}

fn identity_of(relation: &Relation) -> Identity {
    let columns = match has_ctid(relation) {
        true => vec!["ctid".to_owned()],
        false => relation.key.iter().map(|column| relation.columns[*column].name.clone()).collect(),
    };
    Identity { table: relation.oid, columns }
}

/// A query with what tells the rows of its table apart behind its columns; none: it is no query of one table, or the role may not read those
/// columns.
pub(super) fn with_identity(core: &Core, query: &Query) -> Option<(Query, Identity)> {
    let table = only_table(query)?;
    // A list of columns behind the alias gives them other names.
    if table.alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
        return None;
    }
    let catalog = core.catalog();
    let identity = with_env(core, &catalog, |env| {
        let relation = env.relation(&table.name).ok()?;
        // The cursor needs no right that its query does not need.
        let may = match has_ctid(relation) {
            true => catalog.get(relation.oid).is_some_and(|object| env.judge.may_with(object, 'r')),
            false => relation.key.iter().all(|column| env.judge.may_with_column(relation, *column, 'r')),
        };
        (may && relation.kind == RelationKind::Table).then(|| identity_of(relation))
    })?;
    let list: Vec<String> = identity
        .columns
        .iter()
        .enumerate()
        .map(|(n, column)| format!("{}.{} AS {}", quoted(called(table)), quoted(column), quoted(&label(n))))
        .collect();
    let mut wanted = select_of(&format!("SELECT {}", list.join(", ")))?;
    let mut query = query.clone();
    let QueryBody::Select(select) = &mut query.body else { return None };
    select.targets.append(&mut wanted.targets);
    Some((query, identity))
}

fn select_of(text: &str) -> Option<Box<Select>> {
    match parse(text).ok()?.pop()?.statement {
        Statement::Query(query) => match query.body {
            QueryBody::Select(select) => Some(select),
            _ => None,
        },
        _ => None,
    }
}

/// The statement with another condition.
fn with_condition(statement: &Statement, condition: &str) -> Result<Statement> {
    let filter: Option<Expr> = select_of(&format!("SELECT 1 WHERE {condition}")).and_then(|select| select.filter);
    if filter.is_none() {
        return Err(SqlError::internal("a condition on a row that can't be read"));
    }
    let mut statement = statement.clone();
    match &mut statement {
        Statement::Update(u) => (u.filter, u.current_of) = (filter, None),
        Statement::Delete(d) => (d.filter, d.current_of) = (filter, None),
        _ => {}
    }
    Ok(statement)
}

/// The statement as it is planned before a cursor is known.
pub(super) fn of_no_row(statement: &Statement) -> Result<Option<Statement>> {
    cursor_of(statement).map(|_| with_condition(statement, "false")).transpose()
}

fn invalid(message: String) -> SqlError {
    SqlError::new("24000", message)
}

impl Session {
    /// An UPDATE or DELETE with WHERE CURRENT OF as one of the row on which the cursor stands; none: it is another statement.
    ///
    /// # Errors
    /// 34000; 24000: the cursor stands on no row of the table.
    pub(super) fn at_cursor(&self, statement: &Statement, name: Option<&str>) -> Result<Option<Statement>> {
        let Some(written) = cursor_of(statement) else { return Ok(None) };
        let table = match statement {
            Statement::Update(u) => &u.table,
            Statement::Delete(d) => &d.table,
            _ => return Ok(None),
        };
        let name = name.unwrap_or(written);
        let catalog = self.core.catalog();
        let (kind, target, target_name) = with_env(&self.core, &catalog, |env| {
            env.relation(&table.name).map(|relation| (relation.kind, relation.oid, relation.name.clone()))
        })?;
        if kind == RelationKind::View {
            return Err(SqlError::new("0A000", "WHERE CURRENT OF on a view is not implemented"));
        }
        let standing = self.cursors.standing(name).ok_or_else(|| no_cursor(name))?;
        let Some(locks) = standing.locks else {
            return Err(invalid(format!("cursor \"{name}\" is not a SELECT query")));
        };
        if standing.held {
            return Err(invalid(format!("cursor \"{name}\" is held from a previous transaction")));
        }
        let Some(identity) = standing.identity.filter(|identity| identity.table == target) else {
            let table = target_name;
            return Err(invalid(match locks {
                true => format!("cursor \"{name}\" does not have a FOR UPDATE/SHARE reference to table \"{table}\""),
                false => format!("cursor \"{name}\" is not a simply updatable scan of table \"{table}\""),
            }));
        };
        let Some(row) = standing.row else {
            return Err(invalid(format!("cursor \"{name}\" is not positioned on a row")));
        };
        let (format, names) = (self.core.format(), self.core.names(&catalog));
        let conversion = Conversion { format: &format, now: self.core.transaction_started(), names: &names };
        let one = |(column, (value, ty)): (&String, (Datum, SqlType))| {
            let shown = text::output(ty, &value, &conversion).replace('\'', "''");
            format!("{}.{} = '{shown}'", quoted(called(table)), quoted(column))
        };
        let conditions: Vec<String> = identity.columns.iter().zip(row).map(one).collect();
        with_condition(statement, &conditions.join(" AND ")).map(Some)
    }
}
