//! Columns and indexes as PostgreSQL's clients know them, sequences, and what belongs to what.

use super::catalog::{acl, int_oid, local, schema_name};
use super::{ViewOf, text};
use crate::context::names::quote;
use crate::context::views::all;
use crate::exec::{Row, Run};
use crate::types::datum::Array;
use crate::types::text::Names as _;
use crate::types::{Datum, Oid, facts, oid};
use clearway_engine::catalog::{AclKind, Column, Index, Object};

use oid::{BOOL, INT2, INT8, OID, TEXT};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[
    ("pg_catalog", "pg_attribute", pg_attribute),
    ("pg_catalog", "pg_index", pg_index),
    ("pg_catalog", "pg_sequence", pg_sequence),
];

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
    let len = facts(a.ty).map_or(-1, |f| f.len);
    let dropped = a.column.is_some_and(Column::is_dropped);
    let identity = a.column.and_then(|c| c.identity).map_or(String::new(), |c| c.to_string());
    let has_default = a.column.is_some_and(|c| c.default.is_some() && c.identity.is_none());
    vec![
        int_oid(a.relation),
        text(a.name),
        int_oid(if dropped { 0 } else { a.ty }),
        Datum::Int4(-1),
        Datum::Int2(len),
        Datum::Int2(a.number as i16 + 1),
        Datum::Int4(i32::from(crate::types::element_of(a.ty).is_some())),
        Datum::Int4(-1),
        Datum::Int4(a.modifier),
        Datum::Bool(kind.by_value),
        text(kind.align),
        text(kind.storage),
        text(""),
        Datum::Bool(a.not_null),
        Datum::Bool(has_default),
        Datum::Bool(false),
        text(&identity),
        text(if a.column.is_some_and(|c| c.generated) { "s" } else { "" }),
        Datum::Bool(dropped),
        Datum::Bool(true),
        Datum::Int4(0),
        int_oid(kind.collation),
        a.acl,
        Datum::Null,
        Datum::Null,
        Datum::Null,
    ]
}

fn pg_attribute(run: &Run<'_>) -> Vec<Row> {
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
    for view in all() {
        out.extend(view.columns.iter().enumerate().map(|(i, (name, ty))| plain(view.oid, name, *ty, i)));
    }
    for object in local(run) {
        match object {
            Object::Relation(r) => out.extend(r.columns.iter().enumerate().map(|(number, c)| {
                let gone = format!("........pg.dropped.{}........", number + 1);
                attribute_row(Attribute {
                    relation: r.oid,
                    name: if c.is_dropped() { &gone } else { &c.name },
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
                let columns = i.columns.iter().map(|c| c.column).chain(i.include.iter().copied());
                out.extend(columns.enumerate().map(|(number, c)| {
                    let Column { name, type_oid: ty, type_mod: modifier, .. } = &table.columns[c];
                    let (relation, ty, modifier) = (i.oid, *ty, *modifier);
                    attribute_row(Attribute {
                        relation,
                        name,
                        ty,
                        modifier,
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
            Object::Database(_) | Object::Schema(_) | Object::Role(_) | Object::Comment(_) | Object::Type(_) => {}
        }
    }
    out
}

fn vector(element: Oid, values: impl Iterator<Item = Datum>) -> Datum {
    let mut array = Array::one_dimensional(element, values.collect());
    array.dims.iter_mut().for_each(|d| d.1 = 0);
    Datum::Array(array.into())
}

fn pg_index(run: &Run<'_>) -> Vec<Row> {
    let mut out = Vec::new();
    for object in local(run) {
        let Object::Index(i) = object else { continue };
        let Some(table) = run.names.catalog.relation(i.table) else { continue };
        let columns = || i.columns.iter().map(|c| c.column).chain(i.include.iter().copied());
        let collated = |c: usize| matches!(table.columns[c].type_oid, TEXT | oid::VARCHAR | oid::BPCHAR);
        let collations = i.columns.iter().map(|c| int_oid(if collated(c.column) { 100 } else { 0 }));
        let options = i.columns.iter().map(|c| Datum::Int2(i16::from(c.descending) + 2 * i16::from(c.nulls_first)));
        let public = i.state == clearway_engine::catalog::IndexState::Public;
        let no = || Datum::Bool(false);
        out.push(vec![
            int_oid(i.oid),
            int_oid(i.table),
            Datum::Int2(columns().count() as i16),
            Datum::Int2(i.columns.len() as i16),
            Datum::Bool(i.unique),
            no(),
            Datum::Bool(i.primary),
            no(),
            Datum::Bool(true),
            Datum::Bool(i.clustered),
            Datum::Bool(public),
            no(),
            Datum::Bool(true),
            Datum::Bool(true),
            no(),
            vector(INT2, columns().map(|c| Datum::Int2(c as i16 + 1))),
            vector(OID, collations),
            vector(
                OID,
                i.columns.iter().map(|c| int_oid(super::builtin::default_opclass(table.columns[c.column].type_oid))),
            ),
            vector(INT2, options),
            Datum::Null,
            Datum::Null,
        ]);
    }
    out
}

fn pg_sequence(run: &Run<'_>) -> Vec<Row> {
    let sequences = local(run).filter_map(|o| match o {
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

/// The statement that makes an index.
pub fn index_definition(run: &Run<'_>, i: &Index, pretty: bool) -> String {
    let Some(table) = run.names.catalog.relation(i.table) else { return String::new() };
    let column = |c: &clearway_engine::catalog::IndexColumn| {
        let mut shown = quote(&table.columns[c.column].name);
        if c.descending {
            shown.push_str(" DESC");
        }
        if c.nulls_first != c.descending {
            shown.push_str(if c.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
        shown
    };
    let columns: Vec<String> = i.columns.iter().map(column).collect();
    let full = || format!("{}.{}", quote(&schema_name(run, table.schema)), quote(&table.name));
    let name = run.names.relation_name(table.oid).filter(|_| pretty).unwrap_or_else(full);
    let include: Vec<String> = i.include.iter().map(|c| quote(&table.columns[*c].name)).collect();
    format!(
        "CREATE {}INDEX {} ON {} USING btree ({}){}",
        if i.unique { "UNIQUE " } else { "" },
        quote(&i.name),
        name,
        columns.join(", "),
        if include.is_empty() { String::new() } else { format!(" INCLUDE ({})", include.join(", ")) }
    )
}
