//! Values on their way into variables.

use super::compile::Kind;
use super::evaluate::settled;
use super::frame::Frame;
use crate::error::{Result, SqlError, code};
use crate::exec::Row;
use crate::expr::array_assign::{with_element, with_slice};
use crate::expr::json_assign::with_member;
use crate::planner::plan::OutputColumn;
use crate::syntax::plpgsql::names::Slot;
use crate::syntax::plpgsql::tree::{Part, Target};
use crate::types::cast::{self, Context};
use crate::types::datum::{Array, Record, RowShape};
use crate::types::text::{self, Conversion};
use crate::types::{Datum, SqlType, element_of, format_type, oid, user};
use std::sync::Arc;

/// A subscript with its type: what it may be depends on what stands before it.
type Subscript = (Datum, SqlType);

/// A part of a variable with its subscripts evaluated.
enum Step {
    Field(String),
    Elements(Vec<Subscript>),
    /// Which bounds are given, and the bounds.
    Slice(Vec<Datum>, Vec<Subscript>),
}

impl Frame<'_> {
    fn with_conversion<T>(&self, f: impl FnOnce(&Conversion<'_>) -> T) -> T {
        let core = &self.session.core;
        let (format, names) = (core.format(), core.names(&core.catalog()));
        f(&Conversion { format: &format, now: core.transaction_started(), names: &names })
    }

    /// A value as a text; none for NULL.
    pub(super) fn shown(&self, value: &Datum, ty: SqlType) -> Option<String> {
        if value.is_null() {
            return None;
        }
        if let Datum::Text(text) = value {
            return Some(text.to_string());
        }
        Some(self.with_conversion(|c| text::output(ty, value, c)))
    }

    /// A value as one of another type: by the casts of assignments, or through its text.
    pub(super) fn converted(&self, value: Datum, from: SqlType, to: SqlType) -> Result<Datum> {
        if from.oid == to.oid && to.modifier < 0 && !user::is_domain(to.oid) {
            return Ok(value);
        }
        self.with_conversion(|c| converted(value, from, to, c))
    }

    /// Assigns a value to a variable.
    pub(super) fn assign(&mut self, slot: Slot, value: Datum, from: SqlType) -> Result<()> {
        let value = match self.code.kinds[slot] {
            Kind::Of(to) => self.converted(value, from, to)?,
            Kind::Any => {
                self.types[slot] = from;
                value
            }
            Kind::Record => match value {
                Datum::Row(_) | Datum::Null => value,
                _ => {
                    let message = "cannot assign non-composite value to a record variable";
                    return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
                }
            },
        };
        if value.is_null() && self.code.body.variables[slot].not_null {
            let message =
                format!("null value cannot be assigned to variable \"{}\" declared NOT NULL", self.name_of(slot));
            return Err(SqlError::new("22004", message));
        }
        self.values[slot] = value;
        Ok(())
    }

    /// Assigns a value to a part of a variable.
    pub(super) async fn assign_part(&mut self, slot: Slot, parts: &[Part], value: Datum, from: SqlType) -> Result<()> {
        let mut steps: Vec<Step> = Vec::new();
        for part in parts {
            match part {
                Part::Field(name) => steps.push(Step::Field(name.clone())),
                Part::Element(f) => {
                    let at = self.evaluate(f).await?;
                    match steps.last_mut() {
                        Some(Step::Elements(list)) => list.push(at),
                        Some(Step::Slice(given, bounds)) => {
                            given.extend([Datum::Bool(true), Datum::Bool(true)]);
                            bounds.extend([(Datum::Int4(1), oid::INT4.into()), at]);
                        }
                        _ => steps.push(Step::Elements(vec![at])),
                    }
                }
                Part::Slice(low, high) => {
                    let (mut given, mut bounds) = (Vec::new(), Vec::new());
                    for bound in [low, high] {
                        given.push(Datum::Bool(bound.is_some()));
                        bounds.push(match bound {
                            Some(f) => self.evaluate(f).await?,
                            None => (Datum::Null, oid::INT4.into()),
                        });
                    }
                    match steps.pop() {
                        Some(Step::Slice(mut all_given, mut all_bounds)) => {
                            all_given.extend(given);
                            all_bounds.extend(bounds);
                            steps.push(Step::Slice(all_given, all_bounds));
                        }
                        before => {
                            steps.extend(before);
                            steps.push(Step::Slice(given, bounds));
                        }
                    }
                }
            }
        }
        let (old, ty) = (std::mem::replace(&mut self.values[slot], Datum::Null), self.types[slot]);
        let kept = old.clone();
        let changed = self.with_steps(old, ty, &steps, value, from, slot);
        self.values[slot] = kept;
        let changed = changed?;
        if user::is_domain(ty.oid) {
            user::check(ty.oid, &changed)?;
        }
        self.values[slot] = changed;
        Ok(())
    }

    /// A subscript of an array.
    fn place(&self, (value, ty): &Subscript) -> Result<Datum> {
        if value.is_null() {
            return Err(SqlError::new("22004", "array subscript in assignment must not be null"));
        }
        self.converted(value.clone(), *ty, oid::INT4.into())
    }

    /// A jsonb document with another value at some subscripts.
    fn with_member(&self, whole: Datum, at: &[Subscript], value: Datum, from: SqlType) -> Result<Datum> {
        let mut args = vec![whole, self.converted(value, from, oid::JSONB.into())?];
        for (key, ty) in at {
            let base = user::base(*ty).oid;
            args.push(match base {
                oid::INT2 | oid::INT4 | oid::INT8 => self.converted(key.clone(), *ty, oid::INT4.into())?,
                oid::UNKNOWN | oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME => {
                    self.converted(key.clone(), *ty, oid::TEXT.into())?
                }
                _ => {
                    let message = format!("subscript type {} is not supported", format_type(*ty));
                    let hint = "jsonb subscript must be coercible to either integer or text.";
                    return Err(SqlError::new(code::DATATYPE_MISMATCH, message).hint(hint));
                }
            });
        }
        with_member(&args)
    }

    fn with_steps(
        &self,
        whole: Datum,
        ty: SqlType,
        steps: &[Step],
        value: Datum,
        from: SqlType,
        slot: Slot,
    ) -> Result<Datum> {
        let below = user::base(ty);
        let Some((step, rest)) = steps.split_first() else { return self.converted(value, from, ty) };
        if let Step::Field(name) = step {
            return self.with_field(whole, below, (name, rest), value, from, slot);
        }
        let Some(element) = element_of(below.oid) else {
            match step {
                Step::Elements(at) if below.oid == oid::JSONB && rest.is_empty() => {
                    return self.with_member(whole, at, value, from);
                }
                Step::Slice(..) if below.oid == oid::JSONB => {
                    let message = "jsonb subscript does not support slices";
                    return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
                }
                _ => {}
            }
            let message = format!("cannot subscript type {} because it does not support subscripting", format_type(ty));
            return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
        };
        let element_type = SqlType { oid: element, modifier: below.modifier };
        match step {
            Step::Elements(at) => {
                let at = at.iter().map(|at| self.place(at)).collect::<Result<Vec<Datum>>>()?;
                let new = match rest.is_empty() {
                    true => self.converted(value, from, element_type)?,
                    false => self.with_steps(element_at(&whole, &at), element_type, rest, value, from, slot)?,
                };
                let mut args = vec![whole, new, Datum::Oid(element)];
                args.extend(at);
                with_element(&args)
            }
            Step::Slice(given, bounds) => {
                let new = self.converted(value, from, below)?;
                let mut places = Vec::with_capacity(bounds.len());
                for (bound, is_given) in bounds.iter().zip(given) {
                    places.push(if matches!(is_given, Datum::Bool(true)) { self.place(bound)? } else { Datum::Null });
                }
                let given = Datum::Array(Array::one_dimensional(oid::BOOL, given.clone()).into());
                let mut args = vec![whole, new, Datum::Oid(element), given];
                args.extend(places);
                with_slice(&args)
            }
            Step::Field(_) => Err(SqlError::internal("a field that is no field")),
        }
    }

    fn with_field(
        &self,
        whole: Datum,
        ty: SqlType,
        (name, rest): (&str, &[Step]),
        value: Datum,
        from: SqlType,
        slot: Slot,
    ) -> Result<Datum> {
        let (shape, mut values) = match whole {
            Datum::Row(row) => (row.shape.clone(), row.values.clone()),
            _ => {
                let shown = self.name_of(slot);
                let Some(shape) = user::shape(ty.oid) else {
                    if ty.oid != oid::RECORD {
                        let message = format!("cannot assign to field \"{name}\" of variable \"{shown}\"");
                        return Err(SqlError::new(code::DATATYPE_MISMATCH, message));
                    }
                    let detail = "The tuple structure of a not-yet-assigned record is indeterminate.";
                    return Err(
                        SqlError::new("55000", format!("record \"{shown}\" is not assigned yet")).detail(detail)
                    );
                };
                let nulls = vec![Datum::Null; shape.types.len()];
                (shape, nulls)
            }
        };
        let Some(at) = (0..shape.types.len()).find(|i| shape.name(*i) == name) else {
            let message = format!("record \"{}\" has no field \"{name}\"", self.name_of(slot));
            return Err(SqlError::new(code::UNDEFINED_COLUMN, message));
        };
        let old = std::mem::replace(&mut values[at], Datum::Null);
        values[at] = self.with_steps(old, shape.types[at], rest, value, from, slot)?;
        Ok(Datum::Row(Arc::new(Record::new(shape, values)?)))
    }

    /// Assigns a value to a variable or a field of one.
    pub(super) async fn assign_target(&mut self, target: &Target, value: Datum, from: SqlType) -> Result<()> {
        if target.fields.is_empty() {
            return self.assign(target.slot, value, from);
        }
        let parts: Vec<Part> = target.fields.iter().cloned().map(Part::Field).collect();
        self.assign_part(target.slot, &parts, value, from).await
    }

    /// Whether a variable takes a row as a whole.
    fn takes_row(&self, target: &Target) -> bool {
        target.fields.is_empty()
            && match self.code.kinds[target.slot] {
                Kind::Record => true,
                Kind::Of(ty) => user::is_composite(user::base(ty).oid),
                Kind::Any => false,
            }
    }

    /// Assigns a row to variables; none: NULLs.
    pub(super) async fn assign_row(
        &mut self,
        targets: &[Target],
        row: Option<Row>,
        columns: &[OutputColumn],
    ) -> Result<()> {
        let row = row.unwrap_or_else(|| vec![Datum::Null; columns.len()]);
        if let [only] = targets
            && self.takes_row(only)
        {
            return self.assign_record(only.slot, row, columns);
        }
        let mut given = row.into_iter().zip(columns);
        for target in targets {
            let (value, ty) = match given.next() {
                Some((value, column)) => (value, settled(column.ty)),
                None => (Datum::Null, oid::TEXT.into()),
            };
            self.assign_target(target, value, ty).await?;
        }
        Ok(())
    }

    fn assign_record(&mut self, slot: Slot, row: Row, columns: &[OutputColumn]) -> Result<()> {
        let types: Vec<SqlType> = columns.iter().map(|c| settled(c.ty)).collect();
        let Kind::Of(ty) = self.code.kinds[slot] else {
            let names = Some(columns.iter().map(|c| c.name.clone()).collect());
            let fresh = RowShape { oid: oid::RECORD, names, types };
            // The same shape is kept, so that plans stay.
            let shape = match &self.values[slot] {
                Datum::Row(old) if *old.shape == fresh => old.shape.clone(),
                _ => Arc::new(fresh),
            };
            self.values[slot] = Datum::Row(Arc::new(Record::new(shape, row)?));
            return Ok(());
        };
        let shape = user::shape(user::base(ty).oid).ok_or_else(|| SqlError::internal("a row without a shape"))?;
        let mut given = row.into_iter().zip(types);
        let mut values = Vec::with_capacity(shape.types.len());
        for to in &shape.types {
            values.push(match given.next() {
                Some((value, from)) => self.converted(value, from, *to)?,
                None => Datum::Null,
            });
        }
        let value = Datum::Row(Arc::new(Record::new(shape, values)?));
        self.assign(slot, value, user::base(ty))
    }
}

/// The element at some subscripts; NULL: there is none.
fn element_at(array: &Datum, at: &[Datum]) -> Datum {
    let Datum::Array(array) = array else { return Datum::Null };
    if array.dims.len() != at.len() {
        return Datum::Null;
    }
    let mut place = 0_usize;
    for ((length, low), n) in array.dims.iter().zip(at) {
        let offset = n.as_i64().map(|n| n - i64::from(*low)).and_then(|n| usize::try_from(n).ok());
        let Some(offset) = offset.filter(|n| *n < *length as usize) else { return Datum::Null };
        place = place * *length as usize + offset;
    }
    array.values.get(place).cloned().unwrap_or(Datum::Null)
}

/// A value as one of another type.
pub(super) fn converted(value: Datum, from: SqlType, to: SqlType, c: &Conversion<'_>) -> Result<Datum> {
    let below = user::base(to);
    if let (Datum::Row(row), Some(shape)) = (&value, user::shape(below.oid))
        && row.shape.oid != below.oid
    {
        let value = row_as(row, &shape, c)?;
        if user::is_domain(to.oid) {
            user::check(to.oid, &value)?;
        }
        return Ok(value);
    }
    if from.oid == to.oid && to.modifier < 0 && !user::is_domain(to.oid) {
        return Ok(value);
    }
    let plain = user::base(from);
    if value.is_null() || plain.oid == below.oid || cast::can(plain.oid, below.oid, Context::Assignment) {
        return cast::convert(value, from, to, false, c);
    }
    let text = text::output(from, &value, c);
    let value = text::input(below, &text, c)?;
    if user::is_domain(to.oid) {
        user::check(to.oid, &value)?;
    }
    Ok(value)
}

fn row_as(row: &Record, shape: &Arc<RowShape>, c: &Conversion<'_>) -> Result<Datum> {
    if row.values.len() != shape.types.len() {
        let message = "returned record type does not match expected record type";
        let (given, wanted) = (row.values.len(), shape.types.len());
        let detail = format!("Number of returned columns ({given}) does not match expected column count ({wanted}).");
        return Err(SqlError::new(code::DATATYPE_MISMATCH, message).detail(detail));
    }
    let mut values = Vec::with_capacity(row.values.len());
    for ((value, from), to) in row.values.iter().zip(&row.shape.types).zip(&shape.types) {
        values.push(converted(value.clone(), settled(*from), *to, c)?);
    }
    Ok(Datum::Row(Arc::new(Record::new(shape.clone(), values)?)))
}
