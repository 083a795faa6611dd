//! The binder for rows: ROW(...), fields, all fields at once, comparisons of whole rows, and their casts.

use super::bind::Binder;
use super::bound::{Bound, BoundKind, Unplaced};
use super::eval::Env;
use super::functions::Function;
use super::operators::Op;
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{Expr, ExprKind};
use crate::types::cast::Context;
use crate::types::datum::{Record, RowShape};
use crate::types::{Datum, Oid, SqlType, format_type, oid, routine, user};
use std::sync::Arc;

/// `(row).field`: (row, the number of the field from 0).
pub static FIELD: Function = function("row_field", field_of);
/// A row with one of its fields set: (row, the number of the field, the value, a row of nulls of the type).
pub static SET_FIELD: Function = function("row_set_field", with_field);

const fn function(name: &'static str, body: super::functions::Body) -> Function {
    const ARGS: &[Oid] = &[oid::RECORD, oid::INT4];
    Function { name, args: ARGS, result: oid::RECORD, strict: false, variadic: false, volatile: false, body }
}

fn place(d: &Datum) -> usize {
    d.as_i64().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX)
}

fn field_of(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    match &a[0] {
        Datum::Row(row) => Ok(row.values.get(place(&a[1])).cloned().unwrap_or(Datum::Null)),
        _ => Ok(Datum::Null),
    }
}

fn with_field(a: &[Datum], _: &Env<'_>) -> Result<Datum> {
    let Datum::Row(old) = (if a[0].is_null() { &a[3] } else { &a[0] }) else {
        return Err(SqlError::internal("an assignment to a field of what is no row"));
    };
    let (mut row, at) = ((**old).clone(), place(&a[1]));
    *row.values.get_mut(at).ok_or_else(|| SqlError::internal("an assignment to a field that a row lacks"))? =
        a[2].clone();
    Ok(Datum::Row(row.into()))
}

/// Whether values of a type are rows.
pub fn is_row(ty: Oid) -> bool {
    ty == oid::RECORD || user::is_composite(ty)
}

/// Rows are compared if their fields have the same types.
fn same_fields(l: &RowShape, r: &RowShape) -> Result<()> {
    for (i, (a, b)) in l.types.iter().zip(&r.types).enumerate() {
        let (a, b) = (user::base(*a), user::base(*b));
        if a.oid != b.oid {
            let (a, b, at) = (format_type(a.oid.into()), format_type(b.oid.into()), i + 1);
            let message = format!("cannot compare dissimilar column types {a} and {b} at record column {at}");
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
        }
    }
    if l.types.len() == r.types.len() {
        return Ok(());
    }
    Err(SqlError::new(code::DATATYPE_MISMATCH, "cannot compare record types with different numbers of columns"))
}

/// A row of nulls.
pub fn nulls(shape: &Arc<RowShape>) -> Datum {
    Datum::Row(Record::of_nulls(shape.clone()).into())
}

/// A field of a row by its number.
pub(super) fn field_at(row: &Bound, at: usize, shape: &RowShape, pos: Pos) -> Bound {
    let number = Bound::constant(Datum::Int4(at as i32), oid::INT4, pos);
    let kind = BoundKind::Call { function: &FIELD, args: vec![row.clone(), number] };
    Bound { kind, ty: user::base(shape.types[at]), pos }
}

fn refused_plainly(to: SqlType) -> SqlError {
    SqlError::new(code::CANNOT_COERCE, format!("cannot cast type record to {}", format_type(to)))
}

impl Binder<'_> {
    /// ROW(...): whatever stands as `x.*` in it gives all its fields.
    pub(super) fn row(&mut self, items: &[Expr], pos: Pos) -> Result<Bound> {
        let mut out = Vec::new();
        for item in items {
            match &*item.kind {
                ExprKind::AllFields(row) => out.extend(self.all_fields(row)?.into_iter().map(|(_, field)| field)),
                _ => out.push(self.node(item)?),
            }
        }
        Ok(Bound { kind: BoundKind::Row(out), ty: oid::RECORD.into(), pos })
    }

    /// `t.*` where one value is wanted: the whole row of a relation.
    pub(super) fn all_as_one(&mut self, row: &Expr, pos: Pos) -> Result<Bound> {
        if matches!(&*row.kind, ExprKind::Column(_)) {
            return self.node(row);
        }
        let message = "row expansion via \"*\" is not supported here";
        Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message).at(pos))
    }

    /// What the fields of a bound row are, as far as the text tells.
    pub fn shape_of(&self, row: &Bound) -> Option<Arc<RowShape>> {
        match &row.kind {
            BoundKind::Record { shape, .. } => Some(shape.clone()),
            BoundKind::Row(items) => {
                let types = items.iter().map(|i| i.ty).collect();
                Some(Arc::new(RowShape { oid: oid::RECORD, names: None, types }))
            }
            BoundKind::Unplaced(Unplaced::Set(at)) if row.ty.oid == oid::RECORD => {
                self.collected.as_deref().and_then(|c| c.sets.get(*at)?.shape())
            }
            BoundKind::Column { index, level } if row.ty.oid == oid::RECORD => {
                let scope = (0..*level).try_fold(self.scope, |scope, _| scope.parent)?;
                scope.columns.iter().find(|c| c.index == *index)?.shape.clone()
            }
            BoundKind::Const(Datum::Row(value)) => Some(value.shape.clone()),
            BoundKind::Param(n) if row.ty.oid == oid::RECORD => self.shape_of_variable(*n),
            BoundKind::Host { function, .. } if row.ty.oid == oid::RECORD => {
                routine::of_oid(function.routine()?)?.outputs.clone()
            }
            _ => user::shape(row.ty.oid),
        }
    }

    /// `(row).*`: names and values.
    ///
    /// # Errors
    /// 42809 for what is no row.
    pub fn all_fields(&mut self, row: &Expr) -> Result<Vec<(String, Bound)>> {
        let (bound, pos) = (self.bind(row)?, row.pos);
        let Some(shape) = self.shape_of(&bound) else {
            if bound.ty.oid == oid::RECORD {
                let message = "record type has not been registered";
                return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
            }
            let message = format!("type {} is not composite", format_type(bound.ty));
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
        };
        let names = (0..shape.types.len()).map(|i| shape.name(i));
        Ok(match bound.kind {
            BoundKind::Record { items, .. } | BoundKind::Row(items) => names.zip(items).collect(),
            _ => names.enumerate().map(|(i, name)| (name, field_at(&bound, i, &shape, pos))).collect(),
        })
    }

    /// A field of a row by its name; none: it has no such field.
    pub(super) fn field_named(&self, row: Bound, name: &str, pos: Pos) -> Option<Bound> {
        let shape = self.shape_of(&row)?;
        let at = (0..shape.types.len()).find(|i| shape.name(*i) == name)?;
        Some(field_at(&row, at, &shape, pos))
    }

    /// `(row).name`.
    pub(super) fn field(&mut self, arg: &Expr, name: &str) -> Result<Bound> {
        let (row, pos) = (self.node(arg)?, arg.pos);
        let ty = row.ty;
        // A whole row of a relation, or of a subquery in FROM.
        let is_whole = ty.oid == oid::RECORD || matches!(row.kind, BoundKind::Record { .. });
        let missing = || {
            let message = match &*arg.kind {
                ExprKind::Column(relation) if is_whole => {
                    format!("column {}.{name} does not exist", relation.dotted())
                }
                _ if ty.oid == oid::RECORD => format!("could not identify column \"{name}\" in record data type"),
                _ => format!("column \"{name}\" not found in data type {}", format_type(ty)),
            };
            SqlError::new(code::UNDEFINED_COLUMN, message).at(pos)
        };
        let Some(shape) = self.shape_of(&row) else {
            if ty.oid == oid::RECORD {
                return Err(missing());
            }
            let shown = format_type(ty);
            let message = format!("column notation .{name} applied to type {shown}, which is not a composite type");
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message).at(pos));
        };
        let found = (0..shape.types.len()).find(|i| shape.name(*i) == name).ok_or_else(missing)?;
        Ok(match row.kind {
            BoundKind::Record { mut items, .. } | BoundKind::Row(mut items) => items.swap_remove(found),
            _ => field_at(&row, found, &shape, pos),
        })
    }

    /// A row of unknown type as one of a composite type, field by field; none: it is not written as a row.
    pub(super) fn row_as(&mut self, row: &Bound, to: SqlType, allowed: Context) -> Result<Option<Bound>> {
        let Some(shape) = user::shape(to.oid) else { return Ok(None) };
        let pos = row.pos;
        let refused = |detail: String| refused_plainly(to).detail(detail);
        let (BoundKind::Row(items) | BoundKind::Record { items, .. }) = &row.kind else {
            let constant = matches!(row.kind, BoundKind::Const(Datum::Null));
            return if constant { Ok(Some(Bound { ty: to, ..row.clone() })) } else { Err(refused_plainly(to)) };
        };
        if items.len() != shape.types.len() {
            let what = if items.len() < shape.types.len() { "few" } else { "many" };
            return Err(refused(format!("Input has too {what} columns.")));
        }
        let mut out = Vec::new();
        for (i, (item, ty)) in items.iter().zip(&shape.types).enumerate() {
            let from = item.ty;
            let cast = self.coerce(item.clone(), *ty, allowed)?;
            out.push(cast.ok_or_else(|| {
                let (from, to) = (format_type(from), format_type(*ty));
                refused(format!("Cannot cast type {from} to {to} in column {}.", i + 1))
            })?);
        }
        Ok(Some(Bound { kind: BoundKind::Record { items: out, shape, absent: None }, ty: to, pos }))
    }

    /// A comparison of two rows as a whole, whose fields the text does not show; none: it is another operator.
    pub(super) fn whole_rows(&mut self, op: Op, left: &Bound, right: &Bound, pos: Pos) -> Result<Option<Bound>> {
        let (l, r) = (left.ty.oid, right.ty.oid);
        let fits = |one: Oid, other: Oid| is_row(one) && (is_row(other) || other == oid::UNKNOWN);
        if !op.is_comparison() || !(fits(l, r) || fits(r, l)) {
            return Ok(None);
        }
        let known = if l == oid::UNKNOWN { r } else { l };
        let mut sides = Vec::new();
        for side in [left, right] {
            sides.push(if side.ty.oid == oid::UNKNOWN { self.argument(side.clone(), known)? } else { side.clone() });
        }
        let (Some(right), Some(left)) = (sides.pop(), sides.pop()) else { return Ok(None) };
        if let (Some(l), Some(r)) = (self.shape_of(&left), self.shape_of(&right)) {
            same_fields(&l, &r)?;
        }
        let kind = BoundKind::Binary { op, left: Box::new(left), right: Box::new(right) };
        Ok(Some(Bound { kind, ty: oid::BOOL.into(), pos }))
    }

    /// `(a, b) op ANY/ALL (query)`: the left sides, each of the type of its column.
    pub(super) fn row_among(
        &mut self,
        op: Op,
        fields: Vec<Bound>,
        (id, columns): (usize, &[SqlType]),
        pos: Pos,
    ) -> Result<Vec<Bound>> {
        if fields.len() != columns.len() {
            let what = if columns.len() < fields.len() { "few" } else { "many" };
            return Err(SqlError::new(code::SYNTAX_ERROR, format!("subquery has too {what} columns")).at(pos));
        }
        if !op.is_comparison() {
            return Err(
                SqlError::unsupported(format!("operator {} of a row and the rows of a query", op.name())).at(pos)
            );
        }
        let (mut left_sides, mut types) = (Vec::new(), Vec::new());
        for (field, column) in fields.into_iter().zip(columns) {
            let stand_in = Bound::constant(Datum::Null, *column, pos);
            let BoundKind::Binary { left, right, .. } = self.binary(op.name(), field, stand_in, pos)?.kind else {
                return Err(SqlError::unsupported("a subquery that compares rows of rows").at(pos));
            };
            types.push(if right.ty.oid == column.oid { *column } else { right.ty });
            left_sides.push(*left);
        }
        if types != columns
            && let Some(binder) = self.subqueries.as_deref_mut()
        {
            binder.cast_columns(id, &types);
        }
        Ok(left_sides)
    }

    /// ROW(a, b) IS DISTINCT FROM ROW(c, d).
    pub(super) fn rows_distinct(&mut self, left: &Expr, right: &Expr, negated: bool, pos: Pos) -> Result<Bound> {
        let (l, r) = (self.node(left)?, self.node(right)?);
        let (BoundKind::Row(l), BoundKind::Row(r)) = (l.kind, r.kind) else {
            return Err(SqlError::unsupported("IS DISTINCT FROM with this operator").at(pos));
        };
        let mut out = Vec::new();
        for (a, b) in l.into_iter().zip(r) {
            let BoundKind::Binary { left, right, .. } = self.binary("=", a, b, pos)?.kind else {
                return Err(SqlError::unsupported("IS DISTINCT FROM of rows of rows").at(pos));
            };
            let kind = BoundKind::IsDistinct { left, right, negated };
            out.push(Bound { kind, ty: oid::BOOL.into(), pos });
        }
        let kind = if negated { BoundKind::And(out) } else { BoundKind::Or(out) };
        Ok(Bound { kind, ty: oid::BOOL.into(), pos })
    }
}
