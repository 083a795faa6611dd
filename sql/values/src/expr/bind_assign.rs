//! Assignments to parts of columns: elements and slices of arrays, fields of rows, members of jsonb documents, and parts of parts.

use super::bind::Binder;
use super::bind_rows::{self, SET_FIELD};
use super::bound::{Bound, BoundKind};
use super::{geometry_subscript, hstore_functions};
use crate::error::{Pos, Result, SqlError, code};
use crate::syntax::ast::{Expr, Index};
use crate::types::cast::Context;
use crate::types::{self, Datum, SqlType, format_type, oid};
use clearway_base::stack;

/// Whether an expression is a column with some of its parts set.
pub fn sets_part(e: &Bound) -> bool {
    let BoundKind::Call { function, .. } = &e.kind else { return false };
    function.name.starts_with("array_set_")
        || function.name == SET_FIELD.name
        || matches!(function.name, JSON_SET | hstore_functions::SET_NAME | geometry_subscript::SET_NAME)
}

/// What jsonb's assignment is called.
pub const JSON_SET: &str = "jsonb_set_element";

impl Binder<'_> {
    /// The whole of a column one part of which is set to a value.
    ///
    /// # Errors
    /// 42804 for a column that has no such part, or a value of another type.
    pub fn with_part(&mut self, whole: Bound, part: &[Index], value: &Expr, name: &str) -> Result<Bound> {
        let ty = whole.ty;
        let below = types::user::base(ty);
        let Some(first) = part.first() else {
            return self.bind_assigned(value, ty, name);
        };
        if let Index::Field(field) = first {
            return stack::deeper(|| self.with_field((whole, below), field, &part[1..], value, name));
        }
        if below.oid == oid::HSTORE {
            let (ty, pos) = (whole.ty, whole.pos);
            let key = self.hstore_key(part)?;
            let value = self.bind_assigned(value, oid::TEXT.into(), name)?;
            let kind = BoundKind::Call { function: &hstore_functions::SET, args: vec![whole, value, key] };
            return Ok(Bound { kind, ty, pos });
        }
        if below.oid == oid::JSONB {
            return self.with_member(whole, part, value, name);
        }
        if let Some(of) = geometry_subscript::part_type(below.oid) {
            return self.with_geometry_part((whole, of), part, value, name);
        }
        let subscripts = part.iter().take_while(|i| !matches!(i, Index::Field(..))).count();
        let (own, rest) = part.split_at(subscripts);
        if rest.is_empty() {
            return self.array_with_part(whole, own, value, name);
        }
        let Some(element) = types::element_of(below.oid).filter(|_| own.iter().all(|i| matches!(i, Index::At(_))))
        else {
            return Err(no_subscripts(ty, whole.pos));
        };
        let mut index = Vec::new();
        for i in own {
            if let Index::At(e) = i {
                index.push(self.array_index(e)?);
            }
        }
        let pos = whole.pos;
        let kind = BoundKind::Subscript { arg: Box::new(whole.clone()), index: index.clone() };
        let old = Bound { kind, ty: SqlType { oid: element, modifier: below.modifier }, pos };
        let value = stack::deeper(|| self.with_part(old, rest, value, name))?;
        let mut args = vec![whole, value, Bound::constant(Datum::Oid(element), oid::OID, pos)];
        args.extend(index);
        Ok(Bound { kind: BoundKind::Call { function: &super::array_assign::ELEMENT, args }, ty, pos })
    }

    /// Binds what is assigned to elements of a column.
    pub(super) fn bind_assigned_part(&mut self, value: &Expr, to: SqlType, name: &str, pos: Pos) -> Result<Bound> {
        let bound = self.node(value)?;
        let from = bound.ty;
        self.coerce(bound, to, Context::Assignment)?.ok_or_else(|| {
            let message = format!(
                "subscripted assignment to \"{name}\" requires type {} but expression is of type {}",
                format_type(SqlType::new(to.oid)),
                format_type(SqlType::new(from.oid))
            );
            SqlError::new(code::DATATYPE_MISMATCH, message)
                .hint("You will need to rewrite or cast the expression.")
                .at(pos)
        })
    }

    fn with_field(
        &mut self,
        (whole, below): (Bound, SqlType),
        field: &str,
        rest: &[Index],
        value: &Expr,
        name: &str,
    ) -> Result<Bound> {
        let (ty, pos) = (whole.ty, whole.pos);
        let Some(shape) = types::user::shape(below.oid) else {
            let shown = format_type(ty);
            let message = format!(
                "cannot assign to field \"{field}\" of column \"{name}\" because its type {shown} is not a composite type"
            );
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message).at(pos));
        };
        let Some(found) = (0..shape.types.len()).find(|i| shape.name(*i) == field) else {
            let message = format!(
                "cannot assign to field \"{field}\" of column \"{name}\" because there is no such column in data type {}",
                format_type(below)
            );
            return Err(SqlError::new(code::UNDEFINED_COLUMN, message).at(pos));
        };
        let number = Bound::constant(Datum::Int4(found as i32), oid::INT4, pos);
        let args = vec![whole.clone(), number.clone()];
        let kind = BoundKind::Call { function: &bind_rows::FIELD, args };
        let old = Bound { kind, ty: shape.types[found], pos };
        let value = self.with_part(old, rest, value, field)?;
        let empty = Bound::constant(bind_rows::nulls(&shape), below, pos);
        let args = vec![whole, number, value, empty];
        Ok(Bound { kind: BoundKind::Call { function: &SET_FIELD, args }, ty, pos })
    }

    /// `document[a][b] = value`.
    fn with_member(&mut self, whole: Bound, part: &[Index], value: &Expr, name: &str) -> Result<Bound> {
        let (ty, pos) = (whole.ty, whole.pos);
        let value = self.bind_assigned(value, oid::JSONB.into(), name)?;
        let mut args = vec![whole, value];
        for i in part {
            let Index::At(e) = i else {
                return Err(SqlError::new(code::DATATYPE_MISMATCH, "jsonb subscript does not support slices").at(pos));
            };
            args.push(self.json_key(e)?);
        }
        Ok(Bound { kind: BoundKind::Call { function: &super::json_assign::SET, args }, ty, pos })
    }

    fn array_with_part(&mut self, column: Bound, part: &[Index], value: &Expr, name: &str) -> Result<Bound> {
        let (ty, pos) = (column.ty, column.pos);
        let array = types::user::base(ty);
        let Some(element) = types::element_of(array.oid) else {
            return Err(no_subscripts(ty, pos));
        };
        let element_type = Bound::constant(Datum::Oid(element), oid::OID, pos);
        let modifier = array.modifier;
        if part.iter().all(|i| matches!(i, Index::At(_))) {
            let value = self.bind_assigned_part(value, SqlType { oid: element, modifier }, name, pos)?;
            let mut args = vec![column, value, element_type];
            for i in part {
                if let Index::At(e) = i {
                    args.push(self.array_index(e)?);
                }
            }
            let kind = BoundKind::Call { function: &super::array_assign::ELEMENT, args };
            return Ok(Bound { kind, ty, pos });
        }
        let value = self.bind_assigned_part(value, array, name, pos)?;
        const BOOL_ARRAY: types::Oid = 1000;
        let bounds = self.slice_bounds(part)?;
        let left_out = |b: &Bound| matches!(b.kind, BoundKind::Const(Datum::Null)) && b.ty.oid == oid::UNKNOWN;
        let given = bounds.iter().map(|b| Datum::Bool(!left_out(b))).collect();
        let given = Datum::Array(types::datum::Array::one_dimensional(oid::BOOL, given).into());
        let mut args = vec![column, value, element_type, Bound::constant(given, BOOL_ARRAY, pos)];
        args.extend(bounds);
        Ok(Bound { kind: BoundKind::Call { function: &super::array_assign::SLICE, args }, ty, pos })
    }
}

fn no_subscripts(ty: SqlType, pos: Pos) -> SqlError {
    let message = format!("cannot subscript type {} because it does not support subscripting", format_type(ty));
    SqlError::new(code::DATATYPE_MISMATCH, message).at(pos)
}
