//! What names mean in a query: the columns of its FROM, and the queries around it.

use super::bind_columns::WholeRow;
use super::bound::{Bound, BoundKind};
use super::collect::Aggregates;
use crate::error::Pos;
use crate::types::datum::RowShape;
use crate::types::{Oid, SqlType, user};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Which columns of a table the expressions of a statement read: what its rights are judged by.
#[derive(Debug)]
pub struct Reads(Vec<AtomicBool>);

impl Reads {
    /// None so far, of a table of this many columns.
    pub fn none(columns: usize) -> Reads {
        Reads((0..columns).map(|_| AtomicBool::new(false)).collect())
    }

    /// Notes one.
    pub fn note(&self, column: usize) {
        if let Some(read) = self.0.get(column) {
            read.store(true, Relaxed);
        }
    }

    /// Those that were noted.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, read)| read.load(Relaxed)).map(|(column, _)| column)
    }
}

/// A column that expressions may name.
#[derive(Clone, Debug)]
pub struct ScopeColumn {
    /// The table's alias or name.
    pub relation: Option<String>,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// Its slot in the row.
    pub index: usize,
    /// Hidden from unqualified names: the right side of JOIN USING, system columns.
    pub hidden: bool,
    /// An outer join may have no row of its relation.
    pub nullable: bool,
    /// Where it is noted that the column is read, and its place there.
    pub reads: Option<(Arc<Reads>, usize)>,
    /// The whole rows of its table or view, which have a type; none: they are of type record.
    pub row: Option<Arc<WholeRow>>,
    /// The fields of a column of type record, where its query tells them.
    pub shape: Option<Arc<RowShape>>,
    /// The value of a column that JOIN USING made of two, where it is not the slot alone; its columns are of this level.
    pub merged: Option<Arc<Bound>>,
    /// The table or view whose column it shows and the column's number from 1, through queries in FROM; zeros where there is none.
    pub origin: (Oid, i16),
}

impl ScopeColumn {
    /// The expression that reads it.
    pub fn read(&self, level: u16, pos: Pos) -> Bound {
        if let Some((reads, column)) = &self.reads {
            reads.note(*column);
        }
        if let Some(value) = &self.merged {
            let mut value = Bound { pos, ..Bound::clone(value) };
            value.sink(level);
            return value;
        }
        // What is stored in a column of a domain is a value of the type below it.
        let ty = user::base(self.ty);
        Bound { kind: BoundKind::Column { index: self.index, level }, ty, pos }
    }
}

/// Whether an aggregate over a level's columns may stand where a subquery of the level does.
#[derive(Clone, Copy, Debug)]
pub enum AggregateUse {
    /// It may.
    Allowed,
    /// It would stand in the arguments of another one.
    Nested,
    /// It may not in this place.
    Refused(&'static str),
}

impl Default for AggregateUse {
    /// Of a query in FROM.
    fn default() -> Self {
        Self::Refused("FROM clause of their own query level")
    }
}

/// What a subquery says; its id, the types of its columns, and whether it refers to rows of queries around it.
pub type Repeat = (String, (usize, Vec<SqlType>, bool));

/// What names mean in a query, and in the queries around it.
#[derive(Clone, Debug, Default)]
pub struct Scope<'p> {
    /// The columns, in order of FROM.
    pub columns: Vec<ScopeColumn>,
    /// The enclosing query.
    pub parent: Option<&'p Scope<'p>>,
    /// Where subqueries put aggregates over this level's columns, and the slot of the first; none: there may be none.
    pub aggregates: Option<(Aggregates, usize)>,
    /// What an aggregate over this level's columns is told that stands in the subquery that is being bound.
    pub aggregate_use: Cell<AggregateUse>,
    /// Columns that are there and may not be named in this place: those of MERGE's table where no row of it is.
    pub barred: Vec<ScopeColumn>,
    /// The subqueries of this level that were bound so far, each by what it says, where one that is said again is to be the same one.
    pub repeats: Option<RefCell<Vec<Repeat>>>,
    /// A division has four decimals, as in MySQL: FROM names one of its views.
    pub decimals: bool,
}

impl<'p> Scope<'p> {
    /// A scope over these columns.
    pub fn over(columns: Vec<ScopeColumn>, parent: Option<&'p Scope<'p>>) -> Self {
        Self { columns, parent, ..Self::default() }
    }
}
