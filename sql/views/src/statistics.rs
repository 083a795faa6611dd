//! The rows of pg_statistic: what ANALYZE has found about columns and about the expressions of indexes
//! (`clearway_engine::table::sample`).
//!
//! Values are shown as text: the columns that have PostgreSQL's type anyarray are of type text here.

use super::builtin::{equality, less, storage_of};
use super::catalog::local;
use super::indexes::columns;
use super::{ViewOf, text};
use clearway_context::convert::to_datum;
use clearway_context::sort_form::can_be_key;
use clearway_engine::catalog::{Index, Object, Relation};
use clearway_engine::table::sample::{ColumnStatistics, Spread};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_exec::{Row, Run};
use clearway_values::types::datum::Array;
use clearway_values::types::text::{Conversion, output};
use clearway_values::types::{Datum, SqlType, array_of, facts, oid};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_statistic", pg_statistic)];

/// Slots of a row of pg_statistic: kind, operator, collation, numbers, values of each.
const SLOTS: usize = 5;

fn pg_statistic(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for object in local(run) {
        match object {
            Object::Relation(r) if r.tree != 0 => of_columns(run, r, &mut out),
            Object::Index(i) if i.columns.iter().any(|c| c.expression.is_some()) => of_expressions(run, i, &mut out),
            _ => {}
        }
    }
    out
}

/// The rows of a table's columns.
fn of_columns(run: &Run<'_>, r: &Relation, out: &mut Vec<Row>) {
    let Some(spread) = run.core.db.statistics().spread(r.oid) else { return };
    for (at, column) in r.columns.iter().enumerate().filter(|(_, c)| !c.is_dropped()) {
        let known = spread.columns.get(at).and_then(Option::as_ref);
        if let Some(known) = known.filter(|known| known.storage == column.storage()) {
            let ty = SqlType { oid: column.type_oid, modifier: column.type_mod };
            out.push(row(run, (r.oid, at + 1), ty, known));
        }
    }
}

/// The rows of the expressions of an index.
fn of_expressions(run: &Run<'_>, i: &Index, out: &mut Vec<Row>) {
    let Some(spread) = run.core.db.statistics().spread(i.table) else { return };
    let catalog = &run.names.catalog;
    let (Some(table), Ok(shape)) = (catalog.relation(i.table), TableShape::new(catalog, i.table)) else { return };
    let Some(own) = shape.indexes.iter().find(|own| own.oid == i.oid) else { return };
    let types = columns(table, i);
    for (at, column) in own.columns.iter().enumerate().filter(|(_, c)| **c >= shape.columns.len()) {
        if let (Some(known), Some((_, ty))) = (Spread::at(&spread, &shape, *column), types.get(at)) {
            out.push(row(run, (i.oid, at + 1), *ty, known));
        }
    }
}

/// One slot.
struct Slot {
    kind: i16,
    operator: u32,
    numbers: Datum,
    values: Datum,
}

fn row(run: &Run<'_>, (relation, number): (u32, usize), ty: SqlType, known: &ColumnStatistics) -> Row {
    let fixed = facts(ty.oid).map(|f| f.len).filter(|len| *len > 0);
    let mut out = vec![
        Datum::Oid(relation),
        Datum::Int2(i16::try_from(number).unwrap_or(i16::MAX)),
        Datum::Bool(false),
        Datum::Float4(known.null_fraction as f32),
        Datum::Int4(fixed.map_or(known.width as i32, i32::from)),
        Datum::Float4(known.distinct as f32),
    ];
    let slots = slots(run, ty, known);
    let collation = storage_of(ty.oid).collation;
    let each = |of: &dyn Fn(Option<&Slot>) -> Datum| (0..SLOTS).map(|i| of(slots.get(i))).collect::<Vec<_>>();
    out.extend(each(&|slot| Datum::Int2(slot.map_or(0, |s| s.kind))));
    out.extend(each(&|slot| Datum::Oid(slot.map_or(0, |s| s.operator))));
    out.extend(each(&|slot| Datum::Oid(slot.map_or(0, |_| collation))));
    out.extend(each(&|slot| slot.map_or(Datum::Null, |s| s.numbers.clone())));
    out.extend(each(&|slot| slot.map_or(Datum::Null, |s| s.values.clone())));
    out
}

/// Common values, histogram, correlation. A type by which no key sorts has the first alone.
fn slots(run: &Run<'_>, ty: SqlType, known: &ColumnStatistics) -> Vec<Slot> {
    let mut out = Vec::new();
    let (equal, less) = (equality(ty.oid, ty.oid), less(ty.oid));
    if !known.common.is_empty() {
        let shares = known.common.iter().map(|c| c.1);
        let values = values(run, ty, known.common.iter().map(|c| &c.0));
        out.push(Slot { kind: 1, operator: equal, numbers: numbers(shares), values });
    }
    if !can_be_key(ty.oid) {
        return out;
    }
    if !known.histogram.is_empty() {
        let values = values(run, ty, known.histogram.iter());
        out.push(Slot { kind: 2, operator: less, numbers: Datum::Null, values });
    }
    if let Some(correlation) = known.correlation {
        out.push(Slot { kind: 3, operator: less, numbers: numbers([correlation].into_iter()), values: Datum::Null });
    }
    out
}

fn numbers(list: impl Iterator<Item = f64>) -> Datum {
    let list = list.map(|n| Datum::Float4(n as f32)).collect();
    Datum::Array(Array::one_dimensional(oid::FLOAT4, list).into())
}

/// Values as the text of an array; null where one can't be read by now.
fn values<'v>(run: &Run<'_>, ty: SqlType, list: impl Iterator<Item = &'v Value>) -> Datum {
    let Ok(list) = list.map(|value| to_datum(value, ty)).collect::<Result<Vec<_>, _>>() else { return Datum::Null };
    let conversion = Conversion { format: &run.format, now: run.transaction_started, names: &run.names };
    let array = Datum::Array(Array::one_dimensional(ty.oid, list).into());
    let of = SqlType { oid: array_of(ty.oid).unwrap_or(oid::TEXT), modifier: ty.modifier };
    text(&output(of, &array, &conversion))
}
