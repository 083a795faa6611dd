//! Functions that give rows: which exist, and what they are called with.
//!
//! `generate_series` is read value by value (`sql/src/exec/series.rs`); the other functions give all their rows at once
//! ([`SetFunction::rows`]).

use super::bind::Binder;
use super::bind_calls;
use super::bound::{Bound, BoundKind};
use super::resolve::{self, Choice};
use super::set_table::{SETS, SetRow, is_set};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::Call;
use crate::types::cast::Context;
use crate::types::datum::{Array, RowShape};
use crate::types::{Datum, Oid, SqlType, array_of, element_of, oid};
use clearway_base::{breath, memory};
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
            (a, b) => std::mem::discriminant(&a) == std::mem::discriminant(&b),
        };
        alike && self.args.len() == other.args.len() && self.args.iter().zip(&other.args).all(|(a, b)| a.same(b))
    }

    /// Whether its columns have names of their own, which no alias of the item replaces.
    pub fn names_columns(&self) -> bool {
        match self.function {
            SetFunction::Table(row) => row.columns.iter().any(|c| !c.0.is_empty()),
            _ => self.columns.len() != 1,
        }
    }

    /// The shape of its rows, if they have several columns.
    pub fn shape(&self) -> Option<Arc<RowShape>> {
        let names = Some(self.columns.iter().map(|c| c.0.clone()).collect());
        let types = self.columns.iter().map(|c| c.1).collect();
        (self.columns.len() != 1).then(|| Arc::new(RowShape { oid: oid::RECORD, names, types }))
    }

    /// The type of its value in an expression.
    pub fn ty(&self) -> SqlType {
        match self.columns.as_slice() {
            [(_, ty)] => *ty,
            _ => oid::RECORD.into(),
        }
    }
}

/// Whether a name is that of a function that gives rows.
pub fn gives_rows(name: &str) -> bool {
    matches!(name, "generate_series" | "unnest" | "generate_subscripts" | "pg_partition_ancestors") || is_set(name)
}

impl SetFunction {
    /// The rows for these arguments.
    ///
    /// # Errors
    /// 53200; XX000 for a series, which is read value by value.
    pub fn rows(self, args: Vec<Datum>) -> Result<Vec<Vec<Datum>>> {
        Ok(match self {
            SetFunction::Scalar => vec![args],
            SetFunction::Unnest => match args.first() {
                Some(Datum::Array(a)) => {
                    memory::claim(a.values.len() * (size_of::<Vec<Datum>>() + size_of::<Datum>()))?;
                    breath::step_bytes(64 * a.values.len())?;
                    a.values.iter().map(|v| vec![v.clone()]).collect()
                }
                _ => Vec::new(),
            },
            SetFunction::Subscripts => subscripts(&args),
            SetFunction::Table(row) if row.strict && args.iter().any(Datum::is_null) => Vec::new(),
            SetFunction::Table(row) => {
                memory::claim(2 * args.iter().map(Datum::heap_bytes).sum::<usize>())?;
                (row.body)(&args)?
            }
            SetFunction::GenerateSeries | SetFunction::Catalog(_) => {
                return Err(SqlError::internal("a function whose rows are found elsewhere"));
            }
        })
    }
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

/// Binds a call that gives rows.
///
/// # Errors
/// 42883.
pub fn bind(b: &mut Binder<'_>, call: &Call, pos: Pos) -> Result<SetCall> {
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
            let element = element_of(array.ty.oid).ok_or_else(|| no_function(name, &args, pos))?;
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
        _ if is_set(name) => of_table(b, name, args, pos),
        _ => series(b, name, args, pos),
    }
}

fn of_table(b: &mut Binder<'_>, name: &str, args: Vec<Bound>, pos: Pos) -> Result<SetCall> {
    let rows: Vec<&'static SetRow> = SETS.iter().filter(|s| s.name == name).collect();
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

/// Whether an expression holds a function that gives rows.
pub fn holds_set(e: &Bound) -> bool {
    e.any(&|e| matches!(e.kind, BoundKind::Late(super::bound::Late::Set(_))))
}
