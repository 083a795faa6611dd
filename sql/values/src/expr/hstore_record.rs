//! hstore and rows: `hstore(record)`, `populate_record`, and the operator `#=`.
//!
//! The binder adds an argument to each call, a row of nulls of the row's type.

use super::bind::Binder;
use super::bind_rows;
use super::bound::{Bound, BoundKind};
use super::eval::Env;
use super::functions::Function;
use super::hstore_functions::{datum, value};
use crate::error::{Pos, Result, SqlError, code};
use crate::types::datum::{Record, RowShape};
use crate::types::hstore::Hstore;
use crate::types::{Datum, Oid, SqlType, extension, oid, size, text, user};
use clearway_base::{breath, memory};
use std::sync::Arc;

static OF_ROW: Function = function("hstore", &[oid::RECORD, oid::RECORD], oid::HSTORE, of_row);
static POPULATE: Function =
    function("populate_record", &[oid::ANYELEMENT, oid::HSTORE, oid::RECORD], oid::ANYELEMENT, populate);

const fn function(name: &'static str, args: &'static [Oid], result: Oid, body: super::functions::Body) -> Function {
    Function { name, args, result, strict: false, variadic: false, volatile: false, body }
}

/// Binds a call of one of these functions, or of the operator; none: it is none of them.
///
/// # Errors
/// 42804, 0A000.
pub(super) fn bind(b: &mut Binder<'_>, name: &str, args: &[Bound], pos: Pos) -> Result<Option<Bound>> {
    if !matches!(name, "hstore" | "populate_record" | "#=") || !extension::is_there(&[oid::HSTORE], oid::HSTORE) {
        return Ok(None);
    }
    let unknown_shape = || SqlError::unsupported("hstore of a row whose fields are not known").at(pos);
    match (name, args) {
        ("hstore", [row]) if bind_rows::is_row(row.ty.oid) => {
            let shape = b.shape_of(row).ok_or_else(unknown_shape)?;
            let nulls = Bound::constant(bind_rows::nulls(&shape), shape.oid, pos);
            let kind = BoundKind::Call { function: &OF_ROW, args: vec![row.clone(), nulls] };
            Ok(Some(Bound { kind, ty: oid::HSTORE.into(), pos }))
        }
        ("populate_record" | "#=", [base, given]) if matches!(given.ty.oid, oid::HSTORE | oid::UNKNOWN) => {
            if base.ty.oid == oid::UNKNOWN {
                let message = "could not determine polymorphic type because input has type unknown";
                return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
            }
            if !bind_rows::is_row(base.ty.oid) {
                let message = "first argument must be a rowtype";
                return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
            }
            let shape = b.shape_of(base).ok_or_else(unknown_shape)?;
            let nulls = Bound::constant(bind_rows::nulls(&shape), shape.oid, pos);
            let given = b.argument(given.clone(), oid::HSTORE)?;
            let kind = BoundKind::Call { function: &POPULATE, args: vec![base.clone(), given, nulls] };
            Ok(Some(Bound { kind, ty: base.ty, pos }))
        }
        _ => Ok(None),
    }
}

fn shape_of(nulls: &Datum) -> Result<&Arc<RowShape>> {
    match nulls {
        Datum::Row(row) => Ok(&row.shape),
        _ => Err(SqlError::internal("a row without a shape")),
    }
}

/// Each field under its name, as text.
fn of_row(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let shape = match &a[0] {
        Datum::Row(row) => &row.shape,
        _ => shape_of(&a[1])?,
    };
    let names = shape_of(&a[1])?;
    let mut pairs = Vec::new();
    for (at, ty) in shape.types.iter().enumerate() {
        breath::step(16)?;
        memory::check()?;
        let field = match &a[0] {
            Datum::Row(row) => &row.values[at],
            _ => &Datum::Null,
        };
        size::fits(field)?;
        let shown = (!field.is_null()).then(|| text::output(*ty, field, &e.session.conversion()).into());
        pairs.push((names.name(at).into(), shown));
    }
    Ok(datum(Hstore::new(pairs)))
}

/// The row with the fields that the pairs name.
fn populate(a: &[Datum], e: &Env<'_>) -> Result<Datum> {
    let shape = shape_of(&a[2])?;
    let base = match &a[0] {
        Datum::Row(row) => Some(row),
        _ => None,
    };
    if a[1].is_null() {
        return Ok(a[0].clone());
    }
    let given = value(a, 1)?;
    if given.pairs().is_empty() && base.is_some() {
        return Ok(a[0].clone());
    }
    let mut values = Vec::with_capacity(shape.types.len());
    for (at, ty) in shape.types.iter().enumerate() {
        breath::step(16)?;
        let old = base.and_then(|row| row.values.get(at));
        values.push(match (given.get(&shape.name(at)), old) {
            (Some(Some(new)), _) => text::input(*ty, new, &e.session.conversion())?,
            (None, Some(old)) => old.clone(),
            _ => null(*ty)?,
        });
    }
    Ok(Datum::Row(Record::new(shape.clone(), values)?.into()))
}

fn null(ty: SqlType) -> Result<Datum> {
    if user::is_domain(ty.oid) {
        user::check(ty.oid, &Datum::Null)?;
    }
    Ok(Datum::Null)
}
