//! The rows of pg_operator for operators that users define.

use super::catalog::{int_oid, local};
use super::text;
use clearway_context::views::SystemView;
use clearway_engine::catalog::{Object, Operator};
use clearway_exec::{Row, Run};
use clearway_values::types::{Datum, oid};

/// The rows of a relation for operators, behind those that PostgreSQL begins with.
pub fn extend(view: &SystemView, rows: &mut Vec<Row>, run: &Run<'_>) {
    if view.schema != "pg_catalog" || view.name != "pg_operator" || !run.names.catalog.has_operators() {
        return;
    }
    rows.extend(local(run).filter_map(|o| match o {
        Object::Operator(o) => Some(row(view, o)),
        _ => None,
    }));
}

fn row(view: &SystemView, o: &Operator) -> Row {
    let value = |(column, ty): (&str, u32)| match column {
        "oid" => int_oid(o.oid),
        "oprname" => text(&o.name),
        "oprnamespace" => int_oid(o.schema),
        "oprowner" => int_oid(o.owner),
        "oprkind" => text(if o.left == 0 { "l" } else { "b" }),
        "oprcanmerge" => Datum::Bool(o.merges),
        "oprcanhash" => Datum::Bool(o.hashes),
        "oprleft" => int_oid(o.left),
        "oprright" => int_oid(o.right),
        "oprresult" => int_oid(o.result),
        "oprcom" => int_oid(o.commutator),
        "oprnegate" => int_oid(o.negator),
        "oprcode" => function(o.function, ty),
        "oprrest" => function(o.restrict, ty),
        "oprjoin" => function(o.join, ty),
        _ => Datum::Null,
    };
    view.columns.iter().map(|column| value((column.0, column.1))).collect()
}

/// A function, of the type regproc.
fn function(function: u32, ty: u32) -> Datum {
    debug_assert_eq!(ty, oid::REGPROC);
    int_oid(function)
}
