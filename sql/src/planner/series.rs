//! Functions that give rows: what they are called with, and their way from the select list into FROM.

use super::plan::TableFunction;
use super::select::label_of;
use crate::error::{Pos, Result, SqlError, code};
use crate::expr::{Binder, Bound};
use crate::syntax::ast::{Alias, Call, Expr, ExprKind, FromItem, QualName, Select, Target};
use crate::types::cast::Context;
use crate::types::datum::Array;
use crate::types::{Datum, SqlType, format_type, oid};

/// Behind the name of an item of FROM that came out of the select list: no name of a text ends like this (a trailing
/// blank would have to be quoted on purpose), and `*` leaves such items out.
const HIDDEN: char = '\u{1}';

/// Whether an item of FROM came out of the select list.
pub fn is_hidden(relation: Option<&str>) -> bool {
    relation.is_some_and(|r| r.ends_with(HIDDEN))
}

/// Whether a function gives rows.
pub fn gives_rows(call: &Call) -> bool {
    matches!(call.name.name(), "generate_series" | "unnest" | "pg_partition_ancestors")
}

/// The calls in an expression of the select list that give rows.
fn find<'e>(e: &'e mut Expr, found: &mut Vec<&'e mut Expr>) {
    if matches!(&*e.kind, ExprKind::Call(call) if gives_rows(call)) {
        found.push(e);
        return;
    }
    match &mut *e.kind {
        ExprKind::Unary { arg, .. } | ExprKind::Cast { arg, .. } => find(arg, found),
        ExprKind::Binary { left, right, .. } => {
            find(left, found);
            find(right, found);
        }
        ExprKind::Call(call) => call.args.iter_mut().for_each(|a| find(a, found)),
        ExprKind::Array(list) | ExprKind::Row(list) => list.iter_mut().for_each(|a| find(a, found)),
        _ => {}
    }
}

/// `SELECT generate_series(1, 3)`: the function becomes the last item of FROM, lateral to all the others. None: the
/// select list gives no rows.
///
/// # Errors
/// 0A000 for several of them.
pub fn out_of_targets(s: &Select) -> Result<Option<Select>> {
    let any = s.targets.iter().any(|t| match t {
        Target::Expr { expr, .. } => {
            let mut copy = expr.clone();
            let mut found = Vec::new();
            find(&mut copy, &mut found);
            !found.is_empty()
        }
        _ => false,
    });
    if !any {
        return Ok(None);
    }
    let mut out = s.clone();
    for target in &mut out.targets {
        let Target::Expr { expr, alias } = target else { continue };
        let label = label_of(expr);
        let mut found = Vec::new();
        find(expr, &mut found);
        if found.is_empty() {
            continue;
        }
        alias.get_or_insert(label);
        for call in found {
            if out.from.len() > s.from.len() {
                return Err(SqlError::unsupported("more than one set-returning function in a select list").at(call.pos));
            }
            let name = format!("{}{HIDDEN}", label_of(call));
            let column = QualName { parts: vec![name.clone()], pos: call.pos };
            let reference = Expr { kind: Box::new(ExprKind::Column(column)), pos: call.pos, height: 1 };
            let pos = call.pos;
            let call = std::mem::replace(call, reference);
            let alias = Some(Alias { name: name.clone(), columns: vec![name] });
            out.from.push(FromItem::Function { call, lateral: true, ordinality: false, alias, pos });
        }
    }
    Ok(Some(out))
}

fn no_function(name: &str, args: &[Bound], pos: Pos) -> SqlError {
    let types: Vec<String> = args.iter().map(|a| format_type(SqlType::new(a.ty.oid)).to_string()).collect();
    SqlError::new(code::UNDEFINED_FUNCTION, format!("function {name}({}) does not exist", types.join(", ")))
        .hint("No function matches the given name and argument types. You might need to add explicit type casts.")
        .at(pos)
}

/// Binds a call that gives rows; the function, its arguments, and the type of its column.
///
/// # Errors
/// 42883.
pub fn bind(b: &mut Binder<'_>, call: &Call, pos: Pos) -> Result<(TableFunction, Vec<Bound>, SqlType)> {
    let name = call.name.name();
    let args: Vec<Bound> = call.args.iter().map(|a| b.bind_unsettled(a)).collect::<Result<_>>()?;
    if name == "unnest" {
        let [array] = args.as_slice() else {
            return Err(SqlError::unsupported("unnest of several arrays").at(pos));
        };
        let Some(element) = crate::types::element_of(array.ty.oid) else {
            return Err(no_function(name, &args, pos));
        };
        return Ok((TableFunction::Unnest, args, element.into()));
    }
    if name == "pg_partition_ancestors" {
        // Nothing is partitioned.
        let [table] = args.as_slice() else { return Err(no_function(name, &args, pos)) };
        b.coerce(table.clone(), oid::REGCLASS.into(), Context::Implicit)?
            .ok_or_else(|| no_function(name, &args, pos))?;
        let nobody = Datum::Array(Array::one_dimensional(oid::REGCLASS, Vec::new()).into());
        let nobody = Bound::constant(nobody, crate::types::array_of(oid::REGCLASS).unwrap_or(oid::OID), pos);
        return Ok((TableFunction::Unnest, vec![nobody], oid::REGCLASS.into()));
    }
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
    Ok((TableFunction::GenerateSeries, args, ty.into()))
}
