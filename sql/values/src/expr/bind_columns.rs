//! What names of columns mean, and whole rows by the names of their tables.

use super::bind::{Binder, Scope, ScopeColumn};
use super::bound::{Bound, BoundKind};
use super::nearest_column;
use super::system_columns::{self, SystemColumns, is_system_column};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::QualName;
use crate::types::datum::RowShape;
use crate::types::{Oid, SqlType, oid, user};
use std::sync::Arc;

/// The whole rows of a table or view.
#[derive(Debug)]
pub struct WholeRow {
    /// Their type.
    ty: Oid,
    /// The slots and types of their columns, also of those that a stored text does not know.
    columns: Vec<(usize, SqlType)>,
    /// The columns beside them; none: there are none in this place, or the relation is no table.
    pub(super) system: Option<SystemColumns>,
}

impl WholeRow {
    /// Notes in the columns of a relation that its whole rows have this type, and which columns they have beside their own.
    pub fn note(ty: Option<Oid>, system: Option<SystemColumns>, columns: &mut [ScopeColumn]) {
        let Some(ty) = ty else { return };
        let own = columns.iter().filter(|c| !is_system_column(&c.name)).map(|c| (c.index, c.ty));
        let row = Arc::new(WholeRow { ty, columns: own.collect(), system });
        columns.iter_mut().for_each(|c| c.row = Some(row.clone()));
    }

    /// Notes that all of its columns are read; `column` is one of them.
    pub(super) fn note_all(&self, column: &ScopeColumn) {
        let Some((reads, place)) = &column.reads else { return };
        // Its own slot less its own place is where the row begins.
        self.columns.iter().for_each(|(index, _)| reads.note(index + place - column.index));
    }
}

impl Binder<'_> {
    pub(super) fn column(&self, name: &QualName) -> Result<Bound> {
        self.column_or_variable(name, Self::column_of_scope)
    }

    fn column_of_scope(&self, name: &QualName) -> Result<Bound> {
        let column = name.name();
        let relation = name.schema();
        let mut scope = Some(self.scope);
        let mut level = 0;
        let mut relation_seen = false;
        // The nearest relation of a name is meant, and the nearest column of a name before any row.
        while let Some(s) = scope.filter(|_| !relation_seen) {
            relation_seen = relation.is_some() && s.columns.iter().any(|c| c.relation.as_deref() == relation);
            let mut hits = s.columns.iter().filter(|c| {
                c.name == column
                    && match relation {
                        Some(_) => c.relation.as_deref() == relation,
                        None => !c.hidden || is_system_column(column),
                    }
            });
            if let Some(hit) = hits.next() {
                if hits.next().is_some() {
                    let message = format!("column reference \"{}\" is ambiguous", column);
                    return Err(SqlError::new(code::AMBIGUOUS_COLUMN, message).at(name.pos));
                }
                return Ok(hit.read(level, name.pos));
            }
            if let Some(system) = system_columns::find(s, relation, column, level, name.pos)? {
                if self.place == "MERGE WHEN conditions" && column != "tableoid" {
                    let message = format!("cannot use system column \"{column}\" in MERGE WHEN condition");
                    return Err(SqlError::new("42P10", message).at(name.pos));
                }
                return Ok(system);
            }
            scope = s.parent;
            level += 1;
        }
        if relation.is_none() {
            let scopes = std::iter::successors(Some(self.scope), |scope| scope.parent);
            let mut rows = (0..).zip(scopes).filter_map(|(level, s)| whole_row(s, column, level, name.pos));
            if let Some(row) = rows.next() {
                return Ok(row);
            }
        }
        if let Some(argument) = self.argument_named(&name.parts, name.pos) {
            return Ok(argument);
        }
        Err(match relation {
            Some(r) if relation_seen => {
                let error = SqlError::new(code::UNDEFINED_COLUMN, format!("column {r}.{column} does not exist"));
                self.with_nearest(error, relation, column)
            }
            _ => self.unknown_column(relation, column),
        }
        .at(name.pos))
    }

    fn with_nearest(&self, error: SqlError, relation: Option<&str>, column: &str) -> SqlError {
        match nearest_column::hint(self.scope, relation, column) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// The error for a column that no scope has.
    fn unknown_column(&self, relation: Option<&str>, column: &str) -> SqlError {
        let scopes = std::iter::successors(Some(self.scope), |scope| scope.parent);
        let mut barred = scopes.flat_map(|scope| &scope.barred);
        let elsewhere = "but it cannot be referenced from this part of the query.";
        let Some(relation) = relation else {
            let error = SqlError::new(code::UNDEFINED_COLUMN, format!("column \"{column}\" does not exist"));
            let table = barred.find(|c| c.name == column).and_then(|c| c.relation.as_deref());
            return match table {
                None => self.with_nearest(error, None, column),
                Some(table) => {
                    error.hint(format!("There is a column named \"{column}\" in table \"{table}\", {elsewhere}"))
                }
            };
        };
        if barred.any(|c| c.relation.as_deref() == Some(relation)) {
            let message = format!("invalid reference to FROM-clause entry for table \"{relation}\"");
            return SqlError::new(code::UNDEFINED_TABLE, message)
                .hint(format!("There is an entry for table \"{relation}\", {elsewhere}"));
        }
        SqlError::new(code::UNDEFINED_TABLE, format!("missing FROM-clause entry for table \"{relation}\""))
    }
}

/// A row of a relation of the query: `t` where no column has that name.
fn whole_row(scope: &Scope<'_>, relation: &str, level: u16, pos: Pos) -> Option<Bound> {
    let columns =
        scope.columns.iter().filter(|c| c.relation.as_deref() == Some(relation) && !is_system_column(&c.name));
    let columns: Vec<&ScopeColumn> = columns.collect();
    let first = columns.first()?;
    let typed = first.row.as_ref().and_then(|row| Some((row, user::shape(row.ty)?)));
    if let Some((row, shape)) = typed
        && shape.types.len() == row.columns.len()
    {
        // By an alias, and in a text that is older than a name, the columns have other names, by which fields are asked for.
        let all_known = columns.len() == row.columns.len();
        let named = || {
            Arc::new(RowShape {
                names: Some(columns.iter().map(|c| c.name.clone()).collect()),
                ..RowShape::clone(&shape)
            })
        };
        let shape = if all_known { named() } else { shape.clone() };
        row.note_all(first);
        let column = |(index, ty): &(usize, SqlType)| Bound {
            kind: BoundKind::Column { index: *index, level },
            ty: user::base(*ty),
            pos,
        };
        let items: Vec<Bound> = row.columns.iter().map(column).collect();
        let absent = absent(first, &items, level);
        return Some(Bound { kind: BoundKind::Record { items, shape, absent }, ty: row.ty.into(), pos });
    }
    let items: Vec<Bound> = columns.iter().map(|c| c.read(level, pos)).collect();
    let absent = absent(first, &items, level);
    let names = Some(columns.iter().map(|c| c.name.clone()).collect());
    let shape = RowShape { oid: oid::RECORD, names, types: items.iter().map(|i| i.ty).collect() };
    Some(Bound { kind: BoundKind::Record { items, shape: shape.into(), absent }, ty: oid::RECORD.into(), pos })
}

/// What holds where an outer join has no row of the relation that `first` is a column of: a table's row has a key. Another relation's row is taken for absent if all of its
/// columns are NULL.
fn absent(first: &ScopeColumn, items: &[Bound], level: u16) -> Option<Box<Bound>> {
    if !first.nullable {
        return None;
    }
    let null = |arg: Bound| {
        let pos = arg.pos;
        Bound { kind: BoundKind::IsNull { arg: Box::new(arg), negated: false }, ty: oid::BOOL.into(), pos }
    };
    let table = first.row.as_ref().and_then(|row| row.system.as_ref());
    Some(Box::new(match table {
        Some(table) => {
            let pos = items.first().map_or(0, |e| e.pos);
            null(Bound { kind: BoundKind::Column { index: table.key, level }, ty: oid::BYTEA.into(), pos })
        }
        None => Bound {
            kind: BoundKind::And(items.iter().cloned().map(null).collect()),
            ty: oid::BOOL.into(),
            pos: items.first().map_or(0, |e| e.pos),
        },
    }))
}

impl ScopeColumn {
    /// A column of which nothing else is known.
    pub fn plain(relation: Option<String>, name: String, ty: SqlType, index: usize) -> ScopeColumn {
        ScopeColumn {
            relation,
            name,
            ty,
            index,
            hidden: false,
            nullable: false,
            reads: None,
            row: None,
            shape: None,
            merged: None,
            origin: (0, 0),
        }
    }
}
