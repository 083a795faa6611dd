//! Set-returning functions: which exist, and their bound calls.
//!
//! `generate_series` is read value by value (`sql/exec/src/series.rs`); the other functions give all their rows at once
//! ([`SetFunction::rows`]).

use super::bind::Binder;
use super::bound::{Bound, BoundKind, Unplaced};
use super::host::Session;
use super::json_populate;
use super::resolve::{self, Choice};
use super::set_table::{SETS, SetRow, is_set};
use super::{bind_calls, bind_named};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::Call;
use crate::types::cast::Context;
use crate::types::datum::{Array, RowShape};
use crate::types::{Datum, Oid, SqlType, array_of, element_of, extension, oid, range, user};
use clearway_base::{breath, memory};
use std::cell::Cell;
use std::sync::Arc;

/// A function that gives rows.
#[derive(Clone, Copy, Debug)]
pub enum SetFunction {
    /// generate_series.
    GenerateSeries,
    /// unnest of one array.
    Unnest,
    /// generate_subscripts.
    Subscripts,
    /// A function of the table.
    Table(&'static SetRow),
    /// A function over the catalog, by its number among those that the planner knows.
    Catalog(usize),
    /// Any scalar function: one row.
    Scalar,
    /// A function that a user has defined.
    Sql {
        /// Its number.
        oid: Oid,
        /// The type of its rows; 0: they are single values.
        row: Oid,
        /// Its columns have names of their own.
        named: bool,
        /// It gives rows; else one.
        gives_rows: bool,
    },
    /// A function whose value is a row or an array of rows.
    Rows,
}

/// A call of a function that gives rows.
#[derive(Clone, Debug)]
pub struct SetCall {
    /// The function.
    pub function: SetFunction,
    /// Its arguments.
    pub args: Vec<Bound>,
    /// Its columns: names and types; a function of one column gives its own name.
    pub columns: Vec<(String, SqlType)>,
}

impl SetCall {
    pub(super) fn same(&self, other: &SetCall) -> bool {
        let alike = match (self.function, other.function) {
            (SetFunction::Table(a), SetFunction::Table(b)) => std::ptr::eq(a, b),
            (SetFunction::Catalog(a), SetFunction::Catalog(b)) => a == b,
            (SetFunction::Sql { oid: a, .. }, SetFunction::Sql { oid: b, .. }) => a == b,
            (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(&b),
        };
        alike && self.args.len() == other.args.len() && self.args.iter().zip(&other.args).all(|(a, b)| a.same(b))
    }

    /// Whether its columns have names of their own, which no alias of the item replaces.
    pub fn names_columns(&self) -> bool {
        match self.function {
            SetFunction::Table(row) => row.columns.iter().any(|c| !c.0.is_empty()),
            SetFunction::Sql { named, .. } => named,
            _ => self.columns.len() != 1,
        }
    }

    /// The shape of its rows, if they have several columns.
    pub fn shape(&self) -> Option<Arc<RowShape>> {
        let names = Some(self.columns.iter().map(|c| c.0.clone()).collect());
        let types = self.columns.iter().map(|c| c.1).collect();
        let row = self.row_type().unwrap_or(oid::RECORD);
        (self.columns.len() != 1 || row != oid::RECORD).then(|| Arc::new(RowShape { oid: row, names, types }))
    }

    /// The composite type of its rows.
    fn row_type(&self) -> Option<Oid> {
        match (self.function, self.args.get(1)) {
            (SetFunction::Rows, Some(nulls)) => Some(nulls.ty.oid),
            (SetFunction::Sql { row, .. }, _) if row != 0 => Some(row),
            _ => None,
        }
    }

    /// The type of its value in an expression.
    pub fn ty(&self) -> SqlType {
        match self.columns.as_slice() {
            _ if self.row_type().is_some() => self.row_type().unwrap_or(oid::RECORD).into(),
            [(_, ty)] => *ty,
            _ => oid::RECORD.into(),
        }
    }
}

/// Whether a name is that of a function that gives rows.
pub fn gives_rows(name: &str) -> bool {
    matches!(name, "generate_series" | "unnest" | "generate_subscripts" | "pg_partition_ancestors")
        || is_set(name)
        || json_populate::gives_rows(name)
}

impl SetFunction {
    /// The rows for these arguments.
    ///
    /// # Errors
    /// 53200; XX000 for a series, which is read value by value.
    pub fn rows(self, args: Vec<Datum>, session: &dyn Session) -> Result<Vec<Vec<Datum>>> {
        Ok(match self {
            SetFunction::Scalar => vec![args],
            SetFunction::Rows => records(args),
            SetFunction::Unnest => match args.first() {
                Some(Datum::Array(a)) => {
                    memory::claim(a.values.len() * (size_of::<Vec<Datum>>() + size_of::<Datum>()))?;
                    breath::step_bytes(64 * a.values.len())?;
                    a.values.iter().map(|v| vec![v.clone()]).collect()
                }
                Some(Datum::Multirange(m)) => m.ranges.iter().map(|r| vec![range::datum(r.clone())]).collect(),
                _ => Vec::new(),
            },
            SetFunction::Subscripts => subscripts(&args),
            SetFunction::Table(row) if row.strict && args.iter().any(Datum::is_null) => Vec::new(),
            SetFunction::Table(row) => {
                memory::claim(2 * args.iter().map(Datum::heap_bytes).sum::<usize>())?;
                (row.body)(&args, session)?
            }
            SetFunction::GenerateSeries | SetFunction::Catalog(_) | SetFunction::Sql { .. } => {
                return Err(SqlError::internal("a function whose rows are found elsewhere"));
            }
        })
    }
}

/// The rows of an array of rows, or of one row; behind it stand a row of nulls, which NULL stands for, and whether NULL has no rows instead.
fn records(args: Vec<Datum>) -> Vec<Vec<Datum>> {
    let values = |d: &Datum| match d {
        Datum::Row(row) => row.values.clone(),
        _ => Vec::new(),
    };
    match &args[..] {
        [Datum::Array(rows), nulls, _] => {
            let row = |d: &Datum| if d.is_null() { values(nulls) } else { values(d) };
            rows.values.iter().map(row).collect()
        }
        [row @ Datum::Row(_), ..] => vec![values(row)],
        [_, nulls, Datum::Bool(false)] => vec![values(nulls)],
        _ => Vec::new(),
    }
}

/// A call whose value is a row, or an array of rows, as a function that gives rows of these fields.
pub fn of_rows(call: Bound, shape: &Arc<RowShape>) -> SetCall {
    let columns = shape.types.iter().enumerate().map(|(i, ty)| (shape.name(i), *ty)).collect();
    let nulls = Bound::constant(super::bind_rows::nulls(shape), shape.oid, call.pos);
    let none = Bound::constant(Datum::Bool(element_of(call.ty.oid).is_some()), oid::BOOL, call.pos);
    SetCall { function: SetFunction::Rows, args: vec![call, nulls, none], columns }
}

/// Binds a call that gives rows of the fields that a column definition list names; none: its rows have a type of their own.
///
/// # Errors
/// 42601.
pub fn defined(b: &mut Binder<'_>, call: &Call, shape: &Arc<RowShape>, pos: Pos) -> Result<Option<SetCall>> {
    let name = call.name.name();
    if !json_populate::is_one(name) {
        return Ok(None);
    }
    let args: Vec<Bound> = call.args.iter().map(|a| b.bind_unsettled(a)).collect::<Result<_>>()?;
    if let Some(base) = args.first()
        && !json_populate::wants_definitions(name)
        && base.ty.oid != oid::RECORD
    {
        return Ok(None);
    }
    let bound = json_populate::bind(b, name, &args, Some(shape.clone()), pos)?;
    Ok(bound.map(|bound| of_rows(bound, shape)))
}

fn subscripts(args: &[Datum]) -> Vec<Vec<Datum>> {
    let (Some(Datum::Array(a)), Some(dim)) = (args.first(), args.get(1).and_then(Datum::as_i64)) else {
        return Vec::new();
    };
    let reverse = match args.get(2) {
        None => false,
        Some(Datum::Bool(b)) => *b,
        Some(_) => return Vec::new(),
    };
    let Some((len, low)) = usize::try_from(dim - 1).ok().and_then(|d| a.dims.get(d)) else { return Vec::new() };
    let mut out: Vec<_> = (0..*len).map(|i| vec![Datum::Int4(low + i)]).collect();
    if reverse {
        out.reverse();
    }
    out
}

fn no_function(name: &str, args: &[Bound], pos: Pos) -> SqlError {
    let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
    bind_calls::no_function(name, &types, pos)
}

/// A function of unknown rows needs a column definition list.
pub fn definitions_wanted(pos: Pos) -> SqlError {
    let message = "a column definition list is required for functions returning \"record\"";
    SqlError::new(code::SYNTAX_ERROR, message).at(pos)
}

/// Binds a call that gives rows.
///
/// # Errors
/// 42883.
pub fn bind(b: &mut Binder<'_>, call: &Call, pos: Pos) -> Result<SetCall> {
    if let Some(call) = bind_named::positional(call)? {
        return bind(b, &call, pos);
    }
    let name = call.name.name();
    let decorated = call.star || call.distinct || !call.order_by.is_empty() || call.filter.is_some();
    if decorated {
        let message = format!("DISTINCT, ORDER BY, FILTER or * specified, but {name} is not an aggregate function");
        return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
    }
    let args: Vec<Bound> = call.args.iter().map(|a| b.bind_unsettled(a)).collect::<Result<_>>()?;
    let one = |function, args, ty: SqlType| SetCall { function, args, columns: vec![(name.to_owned(), ty)] };
    match name {
        "unnest" => {
            let [array] = args.as_slice() else { return Err(no_function(name, &args, pos)) };
            if let Some(kind) = range::of_multirange(array.ty.oid) {
                return Ok(one(SetFunction::Unnest, args, kind.range.into()));
            }
            let element = element_of(array.ty.oid).ok_or_else(|| no_function(name, &args, pos))?;
            if let Some(shape) = user::shape(element) {
                return Ok(of_rows(array.clone(), &shape));
            }
            Ok(one(SetFunction::Unnest, args, element.into()))
        }
        "generate_subscripts" => {
            let fits = (2..=3).contains(&args.len()) && element_of(args[0].ty.oid).is_some();
            if !fits {
                return Err(no_function(name, &args, pos));
            }
            let shown = args.clone();
            let wanted = [oid::ANYARRAY, oid::INT4, oid::BOOL];
            let cast = |(a, to): (Bound, u32)| match to {
                oid::ANYARRAY => Ok(a),
                to => b.coerce(a, to.into(), Context::Implicit)?.ok_or_else(|| no_function(name, &shown, pos)),
            };
            let args = args.into_iter().zip(wanted).map(cast).collect::<Result<_>>()?;
            Ok(one(SetFunction::Subscripts, args, oid::INT4.into()))
        }
        "pg_partition_ancestors" => {
            // Nothing is partitioned.
            let [table] = args.as_slice() else { return Err(no_function(name, &args, pos)) };
            b.coerce(table.clone(), oid::REGCLASS.into(), Context::Implicit)?
                .ok_or_else(|| no_function(name, &args, pos))?;
            let nobody = Datum::Array(Array::one_dimensional(oid::REGCLASS, Vec::new()).into());
            let nobody = Bound::constant(nobody, array_of(oid::REGCLASS).unwrap_or(oid::OID), pos);
            Ok(one(SetFunction::Unnest, vec![nobody], oid::REGCLASS.into()))
        }
        "_pg_expandarray" => of_array(call, args, pos),
        _ if json_populate::is_one(name) => {
            let nobody = |args: &[Bound]| no_function(name, args, pos);
            if json_populate::wants_definitions(name) {
                return Err(definitions_wanted(pos));
            }
            let bound = json_populate::bind(b, name, &args, None, pos)?.ok_or_else(|| nobody(&args))?;
            let shape = b.shape_of(&args[0]).ok_or_else(|| nobody(&args))?;
            Ok(of_rows(bound, &shape))
        }
        _ if is_set(name) => of_table(b, name, args, pos),
        _ => series(b, name, args, pos),
    }
}

/// A function of any array, whose first column has the type of its elements.
fn of_array(call: &Call, args: Vec<Bound>, pos: Pos) -> Result<SetCall> {
    let row = SETS.iter().find(|s| s.name == call.name.name());
    let element = args.first().filter(|_| args.len() == 1).and_then(|array| element_of(array.ty.oid));
    let (Some(row), Some(element)) = (row, element) else {
        return Err(no_function(&call.name.dotted(), &args, pos));
    };
    let column = |(i, (own, ty)): (usize, &(&str, Oid))| ((*own).to_owned(), if i == 0 { element } else { *ty }.into());
    let columns = row.columns.iter().enumerate().map(column).collect();
    Ok(SetCall { function: SetFunction::Table(row), args, columns })
}

fn of_table(b: &mut Binder<'_>, name: &str, args: Vec<Bound>, pos: Pos) -> Result<SetCall> {
    let there = |s: &&SetRow| s.name == name && extension::is_there(s.args, oid::VOID);
    let rows: Vec<&'static SetRow> = SETS.iter().filter(there).collect();
    let candidates: Vec<&[Oid]> = rows.iter().map(|r| r.args).collect();
    let types: Vec<Oid> = args.iter().map(|a| a.ty.oid).collect();
    let Choice::One(at) = resolve::choose(&types, &candidates) else { return Err(no_function(name, &args, pos)) };
    let row = rows[at];
    let args = args.into_iter().zip(row.args).map(|(a, t)| b.argument(a, *t)).collect::<Result<_>>()?;
    let column = |(own, ty): &(&str, Oid)| (if own.is_empty() { name } else { own }.to_owned(), (*ty).into());
    let columns = row.columns.iter().map(column).collect();
    Ok(SetCall { function: SetFunction::Table(row), args, columns })
}

fn series(b: &mut Binder<'_>, name: &str, args: Vec<Bound>, pos: Pos) -> Result<SetCall> {
    let has = |list: &[u32]| args.iter().any(|a| list.contains(&a.ty.oid));
    let ty = if has(&[oid::TIMESTAMPTZ, oid::DATE]) {
        oid::TIMESTAMPTZ
    } else if has(&[oid::TIMESTAMP]) {
        oid::TIMESTAMP
    } else if has(&[oid::NUMERIC]) {
        oid::NUMERIC
    } else if has(&[oid::INT8]) {
        oid::INT8
    } else {
        oid::INT4
    };
    let timed = matches!(ty, oid::TIMESTAMP | oid::TIMESTAMPTZ);
    if !(2..=3).contains(&args.len()) || (timed && args.len() < 3) {
        return Err(no_function(name, &args, pos));
    }
    let shown = args.clone();
    let cast = |(i, a): (usize, Bound)| {
        let to = if timed && i == 2 { oid::INTERVAL } else { ty };
        b.coerce(a, to.into(), Context::Implicit)?.ok_or_else(|| no_function(name, &shown, pos))
    };
    let args = args.into_iter().enumerate().map(cast).collect::<Result<_>>()?;
    Ok(SetCall { function: SetFunction::GenerateSeries, args, columns: vec![(name.to_owned(), ty.into())] })
}

/// The hint of functions that give rows where none may stand.
pub(super) const MOVE_TO_LATERAL: &str =
    "You might be able to move the set-returning function into a LATERAL FROM item.";

/// Refuses functions that give rows in an expression that does not evaluate all of its parts.
pub(super) fn refuse_in<'b>(list: impl IntoIterator<Item = &'b Bound>, construct: &str) -> Result<()> {
    let last: Cell<Option<Pos>> = Cell::new(None);
    let note = |e: &Bound| {
        if is_placed(e) {
            last.set(last.get().max(Some(e.pos)));
        }
        false
    };
    for e in list {
        e.any(&note);
    }
    let Some(pos) = last.get() else { return Ok(()) };
    let message = format!("set-returning functions are not allowed in {construct}");
    Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).hint(MOVE_TO_LATERAL).at(pos))
}

/// Whether an expression holds a function that gives rows.
pub fn holds_set(e: &Bound) -> bool {
    e.any(&is_placed)
}

fn is_placed(e: &Bound) -> bool {
    matches!(e.kind, BoundKind::Unplaced(Unplaced::Set(_)))
}
