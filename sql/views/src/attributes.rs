//! The rows of pg_attribute and pg_sequence.

use super::catalog::{acl, int_oid, local, sought};
use super::{Columns, PickedOf, SoughtOf, ViewOf, letter, text};
use clearway_context::views::{SystemView, all, listed};
use clearway_engine::catalog::{AclKind, Column, Object, TypeBody};
use clearway_exec::{Keys, Row, Run, SoughtRows};
use clearway_values::types::{Datum, Oid, facts, oid};

use oid::{BOOL, INT8};

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_sequence", pg_sequence)];

/// Those of whose rows only some columns are built.
pub const PICKED: &[PickedOf] = &[("pg_attribute", pg_attribute)];

/// Those whose rows are found by a column.
pub const SOUGHT: &[SoughtOf] = &[("pg_sequence", sought_sequences)];

/// What pg_attribute says of one column.
struct Attribute<'a> {
    relation: Oid,
    name: &'a str,
    ty: Oid,
    modifier: i32,
    number: usize,
    /// The column of a table that it is, with the table's owner.
    column: Option<(&'a Column, Oid)>,
}

impl<'a> Attribute<'a> {
    fn plain(relation: Oid, name: &'a str, ty: Oid, number: usize) -> Self {
        Self { relation, name, ty, modifier: -1, number, column: None }
    }

    /// A column of pg_attribute.
    fn says(&self, run: &Run<'_>, at: usize) -> Datum {
        let column = self.column.map(|(column, _)| column);
        let is = |f: &dyn Fn(&Column) -> bool| Datum::Bool(column.is_some_and(f));
        let kind = || super::builtin::storage_of(self.ty);
        let mut bytes = [0; 4];
        match at {
            0 => int_oid(self.relation),
            1 => text(self.name),
            2 => int_oid(if column.is_some_and(Column::is_dropped) { 0 } else { self.ty }),
            3 => Datum::Int4(column.and_then(|c| c.statistics).map_or(-1, i32::from)),
            4 => Datum::Int2(facts(self.ty).map_or(-1, |f| f.len)),
            5 => Datum::Int2(self.number as i16 + 1),
            // A column whose definition did not write them, or of a directory that did not keep them, counts as one of one dimension.
            6 => Datum::Int4(
                column
                    .and_then(|c| c.dimensions)
                    .map_or_else(|| i32::from(clearway_values::types::element_of(self.ty).is_some()), i32::from),
            ),
            7 => Datum::Int4(-1),
            8 => Datum::Int4(self.modifier),
            9 => Datum::Bool(kind().by_value),
            10 => letter(kind().align),
            11 => match column.and_then(|c| c.strategy) {
                Some(strategy) => letter(strategy.encode_utf8(&mut bytes)),
                None => letter(kind().storage),
            },
            12 => letter(""),
            13 => is(&|c| c.not_null),
            14 => is(&|c| c.default.is_some() && c.identity.is_none()),
            15 => Datum::Bool(false),
            16 => letter(column.and_then(|c| c.identity).map_or("", |c| c.encode_utf8(&mut bytes))),
            17 => letter(if column.is_some_and(|c| c.generated) { "s" } else { "" }),
            18 => is(&Column::is_dropped),
            19 => Datum::Bool(true),
            20 => Datum::Int4(0),
            21 => int_oid(column.and_then(|c| c.collation).unwrap_or_else(|| kind().collation)),
            22 => self.column.map_or(Datum::Null, |(c, owner)| acl(run, owner, &c.acl, AclKind::Column)),
            _ => Datum::Null,
        }
    }
}

fn pg_attribute(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    match sought.map(|sought| &sought.keys) {
        Some(keys @ Keys::Oids(oids)) => {
            let views = oids.iter().filter_map(|oid| listed(*oid));
            attributes(run, columns, views, self::sought(run, keys).into_iter())
        }
        _ => attributes(run, columns, all(), local(run)),
    }
}

/// Rows of pg_attribute for the columns of these.
fn attributes<'r>(
    run: &Run<'_>,
    columns: &Columns<'_>,
    views: impl Iterator<Item = &'static SystemView>,
    objects: impl Iterator<Item = &'r Object>,
) -> Vec<Row> {
    let mut out = Vec::new();
    let row = |a: Attribute<'_>| columns.row(|at| a.says(run, at));
    for view in views {
        let of_view = |(i, (name, ty)): (usize, &(&'static str, Oid))| row(Attribute::plain(view.oid, name, *ty, i));
        out.extend(view.columns.iter().enumerate().map(of_view));
    }
    for object in objects {
        match object {
            Object::Relation(r) => out.extend(r.columns.iter().enumerate().map(|(number, c)| {
                let gone = c.is_dropped().then(|| format!("........pg.dropped.{}........", number + 1));
                let plain = Attribute::plain(r.oid, gone.as_deref().unwrap_or(&c.name), c.type_oid, number);
                row(Attribute { modifier: c.type_mod, column: Some((c, r.owner)), ..plain })
            })),
            Object::Index(i) => {
                let Some(table) = run.names.catalog.relation(i.table) else { continue };
                out.extend(super::indexes::columns(table, i).iter().enumerate().map(|(number, (name, ty))| {
                    row(Attribute { modifier: ty.modifier, ..Attribute::plain(i.oid, name, ty.oid, number) })
                }));
            }
            Object::Sequence(s) => {
                let columns = [("last_value", INT8), ("log_cnt", INT8), ("is_called", BOOL)];
                out.extend(
                    columns.into_iter().enumerate().map(|(i, (name, ty))| row(Attribute::plain(s.oid, name, ty, i))),
                );
            }
            Object::Type(t) => {
                let TypeBody::Composite(composite) = &t.body else { continue };
                out.extend(composite.attributes.iter().enumerate().map(|(number, a)| {
                    let plain = Attribute::plain(composite.class, &a.name, a.type_oid, number);
                    row(Attribute { modifier: a.type_mod, ..plain })
                }));
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
