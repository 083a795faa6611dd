//! The rows of pg_attribute and pg_sequence.

use super::catalog::{acl, int_oid, local, sought};
use super::{SoughtOf, ViewOf, letter, text};
use clearway_context::views::{SystemView, all, listed};
use clearway_engine::catalog::{AclKind, Column, Composite, Object, TypeBody};
use clearway_exec::{Keys, Row, Run, SoughtRows};
use clearway_values::types::{Datum, Oid, facts, oid};

use oid::{BOOL, INT8};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_attribute", pg_attribute), ("pg_catalog", "pg_sequence", pg_sequence)];

/// Those whose rows are found by a column.
pub const SOUGHT: &[SoughtOf] = &[("pg_attribute", sought_attributes), ("pg_sequence", sought_sequences)];

/// What pg_attribute says of one column.
struct Attribute<'a> {
    relation: Oid,
    name: &'a str,
    ty: Oid,
    modifier: i32,
    number: usize,
    not_null: bool,
    /// The column of a table that it is, for its default and identity.
    column: Option<&'a Column>,
    /// Its own access list.
    acl: Datum,
}

fn attribute_row(a: Attribute<'_>) -> Row {
    let kind = super::builtin::storage_of(a.ty);
    let mut bytes = [0; 4];
    let strategy = a.column.and_then(|c| c.strategy).map_or(kind.storage, |c| c.encode_utf8(&mut bytes));
    let len = facts(a.ty).map_or(-1, |f| f.len);
    let dropped = a.column.is_some_and(Column::is_dropped);
    let mut bytes = [0; 4];
    let identity = a.column.and_then(|c| c.identity).map_or("", |c| c.encode_utf8(&mut bytes));
    let has_default = a.column.is_some_and(|c| c.default.is_some() && c.identity.is_none());
    let is_array = clearway_values::types::element_of(a.ty).is_some();
    vec![
        int_oid(a.relation),
        text(a.name),
        int_oid(if dropped { 0 } else { a.ty }),
        Datum::Int4(a.column.and_then(|c| c.statistics).map_or(-1, i32::from)),
        Datum::Int2(len),
        Datum::Int2(a.number as i16 + 1),
        // A column whose definition did not write them, or of a directory that did not keep them, counts as one of one dimension.
        Datum::Int4(a.column.and_then(|c| c.dimensions).map_or(i32::from(is_array), i32::from)),
        Datum::Int4(-1),
        Datum::Int4(a.modifier),
        Datum::Bool(kind.by_value),
        letter(kind.align),
        letter(strategy),
        letter(""),
        Datum::Bool(a.not_null),
        Datum::Bool(has_default),
        Datum::Bool(false),
        letter(identity),
        letter(if a.column.is_some_and(|c| c.generated) { "s" } else { "" }),
        Datum::Bool(dropped),
        Datum::Bool(true),
        Datum::Int4(0),
        int_oid(a.column.and_then(|c| c.collation).unwrap_or(kind.collation)),
        a.acl,
        Datum::Null,
        Datum::Null,
        Datum::Null,
    ]
}

fn pg_attribute(run: &Run<'_>) -> Vec<Row> {
    attributes(run, all(), local(run))
}

fn sought_attributes(run: &Run<'_>, sought: &SoughtRows) -> Option<Vec<Row>> {
    let Keys::Oids(oids) = &sought.keys else { return None };
    let views = oids.iter().filter_map(|oid| listed(*oid));
    Some(attributes(run, views, self::sought(run, &sought.keys).into_iter()))
}

/// Rows of pg_attribute for the columns of these.
fn attributes<'r>(
    run: &Run<'_>,
    views: impl Iterator<Item = &'static SystemView>,
    objects: impl Iterator<Item = &'r Object>,
) -> Vec<Row> {
    let mut out = Vec::new();
    let plain = |relation, name, ty, number| {
        attribute_row(Attribute {
            relation,
            name,
            ty,
            modifier: -1,
            number,
            not_null: false,
            column: None,
            acl: Datum::Null,
        })
    };
    for view in views {
        out.extend(view.columns.iter().enumerate().map(|(i, (name, ty))| plain(view.oid, name, *ty, i)));
    }
    for object in objects {
        match object {
            Object::Relation(r) => out.extend(r.columns.iter().enumerate().map(|(number, c)| {
                let gone = c.is_dropped().then(|| format!("........pg.dropped.{}........", number + 1));
                attribute_row(Attribute {
                    relation: r.oid,
                    name: gone.as_deref().unwrap_or(&c.name),
                    ty: c.type_oid,
                    modifier: c.type_mod,
                    number,
                    not_null: c.not_null,
                    column: Some(c),
                    acl: acl(run, r.owner, &c.acl, AclKind::Column),
                })
            })),
            Object::Index(i) => {
                let Some(table) = run.names.catalog.relation(i.table) else { continue };
                out.extend(super::indexes::columns(table, i).iter().enumerate().map(|(number, (name, ty))| {
                    attribute_row(Attribute {
                        relation: i.oid,
                        name,
                        ty: ty.oid,
                        modifier: ty.modifier,
                        number,
                        not_null: false,
                        column: None,
                        acl: Datum::Null,
                    })
                }));
            }
            Object::Sequence(s) => {
                let columns = [("last_value", INT8), ("log_cnt", INT8), ("is_called", BOOL)];
                out.extend(columns.into_iter().enumerate().map(|(i, (name, ty))| plain(s.oid, name, ty, i)));
            }
            Object::Type(t) => {
                if let TypeBody::Composite(composite) = &t.body {
                    of_composite(composite, &mut out);
                }
            }
            Object::Database(_)
            | Object::Schema(_)
            | Object::Role(_)
            | Object::Comment(_)
            | Object::Routine(_)
            | Object::Operator(_) => {}
        }
    }
    out
}

/// The attributes of a composite type.
fn of_composite(composite: &Composite, out: &mut Vec<Row>) {
    out.extend(composite.attributes.iter().enumerate().map(|(number, a)| {
        attribute_row(Attribute {
            relation: composite.class,
            name: &a.name,
            ty: a.type_oid,
            modifier: a.type_mod,
            number,
            not_null: false,
            column: None,
            acl: Datum::Null,
        })
    }));
}

fn pg_sequence(run: &Run<'_>) -> Vec<Row> {
    sequences(local(run))
}

fn sought_sequences(run: &Run<'_>, sought: &SoughtRows) -> Option<Vec<Row>> {
    Some(sequences(self::sought(run, &sought.keys).into_iter()))
}

fn sequences<'r>(objects: impl Iterator<Item = &'r Object>) -> Vec<Row> {
    let sequences = objects.filter_map(|o| match o {
        Object::Sequence(s) => Some(s),
        _ => None,
    });
    let numbers = |s: &clearway_engine::catalog::Sequence| {
        let mut row = vec![int_oid(s.oid), int_oid(s.type_oid)];
        row.extend([s.start, s.increment, s.max, s.min, s.cache].map(Datum::Int8));
        row.push(Datum::Bool(s.cycle));
        row
    };
    sequences.map(numbers).collect()
}
