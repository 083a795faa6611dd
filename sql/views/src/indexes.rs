//! The rows of pg_index, and the CREATE INDEX statements of indexes.

use super::catalog::{int_oid, local, schema_name};
use super::{Columns, PickedOf};
use clearway_context::index_terms::Place;
use clearway_context::names::quote;
use clearway_context::opclass;
use clearway_engine::catalog::{Index, IndexColumn, Object, Relation};
use clearway_exec::{Keys, Row, Run, SoughtRows};
use clearway_planner::explain::definition::definition;
use clearway_planner::indexes::column_names;
use clearway_values::types::datum::Array;
use clearway_values::types::text::Names as _;
use clearway_values::types::{Datum, Oid, SqlType, oid};

use oid::{INT2, OID, TEXT};

/// The views of this module, of whose rows only some columns are built.
pub const PICKED: &[PickedOf] = &[("pg_index", pg_index)];

/// An oidvector or int2vector: an array whose first element is number 0.
pub(super) fn vector(element: Oid, values: impl Iterator<Item = Datum>) -> Datum {
    Datum::Array(Array::vector(element, values.collect()).into())
}

/// The types of the columns of an index's key.
fn columns_of_key(table: &Relation, i: &Index) -> impl Iterator<Item = SqlType> {
    i.columns.iter().map(|c| match &c.expression {
        Some(e) => SqlType { oid: e.type_oid, modifier: e.type_mod },
        None => column_type(table, c.column),
    })
}

fn column_type(table: &Relation, at: usize) -> SqlType {
    let none = || SqlType { oid: oid::UNKNOWN, modifier: -1 };
    table.columns.get(at).map_or_else(none, |c| SqlType { oid: c.type_oid, modifier: c.type_mod })
}

/// Names and types of all columns of an index.
pub fn columns(table: &Relation, i: &Index) -> Vec<(String, SqlType)> {
    let key = column_names(table, &i.columns).into_iter().zip(columns_of_key(table, i));
    let included = i.include.iter().filter_map(|c| Some((table.columns.get(*c)?.name.clone(), column_type(table, *c))));
    key.chain(included).collect()
}

/// The expressions of an index, as the node tree of PostgreSQL that pg_get_expr turns into text.
fn expressions(run: &Run<'_>, table: &Relation, i: &Index) -> Datum {
    let texts = i.columns.iter().filter_map(|c| c.expression.as_ref());
    let shown = texts.map(|e| definition(&run.names.catalog, (table, i), &e.text, Place::Key, false).text);
    let list: Vec<String> = shown.collect();
    if list.is_empty() { Datum::Null } else { Datum::text(list.join(", ").replace(" \n", "\n")) }
}

fn pg_index(run: &Run<'_>, sought: Option<&SoughtRows>, columns: &Columns<'_>) -> Vec<Row> {
    let catalog = &run.names.catalog;
    let row = |i: &Index| {
        let table = catalog.relation(i.table)?;
        Some(columns.row(|at| index_says(run, table, i, at)))
    };
    let Some((SoughtRows { column, .. }, Keys::Oids(oids))) = sought.map(|sought| (sought, &sought.keys)) else {
        let all = local(run).filter_map(|object| match object {
            Object::Index(i) => Some(i),
            _ => None,
        });
        return all.filter_map(row).collect();
    };
    let is_here = |i: &&Index| i.database == run.names.database;
    match *column {
        "indrelid" => oids.iter().flat_map(|oid| catalog.indexes(*oid)).filter(is_here).filter_map(row).collect(),
        _ => oids.iter().filter_map(|oid| catalog.index(*oid)).filter(is_here).filter_map(row).collect(),
    }
}

/// A column of pg_index.
fn index_says(run: &Run<'_>, table: &Relation, i: &Index, at: usize) -> Datum {
    let columns = || i.columns.iter().map(|c| c.column).chain(i.include.iter().copied());
    let types = || columns_of_key(table, i).map(|ty| ty.oid);
    match at {
        0 => int_oid(i.oid),
        1 => int_oid(i.table),
        2 => Datum::Int2(columns().count() as i16),
        3 => Datum::Int2(i.columns.len() as i16),
        4 => Datum::Bool(i.unique),
        5 => Datum::Bool(i.nulls_not_distinct),
        6 => Datum::Bool(i.primary),
        9 => Datum::Bool(i.clustered),
        10 => Datum::Bool(i.state == clearway_engine::catalog::IndexState::Public),
        8 | 12 | 13 => Datum::Bool(true),
        15 => vector(INT2, columns().map(|c| Datum::Int2(if c == IndexColumn::OF_NONE { 0 } else { c as i16 + 1 }))),
        16 => {
            let collated = |ty: Oid| matches!(ty, TEXT | oid::VARCHAR | oid::BPCHAR | oid::CITEXT);
            vector(OID, types().map(|ty| int_oid(if collated(ty) { 100 } else { 0 })))
        }
        17 => vector(OID, types().enumerate().map(|(at, ty)| int_oid(class_of(i, at, ty)))),
        18 => {
            let option = |c: &IndexColumn| i16::from(c.descending) + 2 * i16::from(c.nulls_first);
            vector(INT2, i.columns.iter().map(|c| Datum::Int2(option(c))))
        }
        19 => expressions(run, table, i),
        20 => i.condition.as_ref().map_or(Datum::Null, |text| {
            Datum::text(definition(&run.names.catalog, (table, i), text, Place::Condition, false).text)
        }),
        _ => Datum::Bool(false),
    }
}

/// The operator class of a column of an index.
fn class_of(i: &Index, at: usize, ty: Oid) -> Oid {
    i.columns.get(at).and_then(|c| c.class).unwrap_or_else(|| opclass::of_type(ty))
}

/// The condition of a partial index of a table with few parentheses, if `text` is what pg_index has of it.
pub fn pretty_condition(run: &Run<'_>, text: &str, table: Oid) -> Option<String> {
    let table = run.names.catalog.relation(table)?;
    let shown = |i: &Index, pretty| {
        let condition = i.condition.as_deref()?;
        Some(definition(&run.names.catalog, (table, i), condition, Place::Condition, pretty).text)
    };
    let found = run.names.catalog.indexes(table.oid).find(|i| shown(i, false).as_deref() == Some(text));
    found.and_then(|i| shown(i, true))
}

/// One column of an index, from 0, without its direction.
pub fn index_column(run: &Run<'_>, i: &Index, at: usize, pretty: bool) -> Option<String> {
    let table = run.names.catalog.relation(i.table)?;
    let name = |c: usize| table.columns.get(c).map(|column| quote(&column.name));
    let Some(column) = i.columns.get(at) else { return name(*i.include.get(at - i.columns.len())?) };
    let Some(e) = &column.expression else { return name(column.column) };
    let shown = definition(&run.names.catalog, (table, i), &e.text, Place::Key, pretty);
    Some(if shown.is_call { shown.text } else { format!("({})", shown.text) })
}

/// The statement that makes an index.
pub fn index_definition(run: &Run<'_>, i: &Index, pretty: bool) -> String {
    let Some(table) = run.names.catalog.relation(i.table) else { return String::new() };
    let column = |(at, c): (usize, &IndexColumn)| {
        let mut shown = index_column(run, i, at, pretty).unwrap_or_default();
        if let Some(class) = c.class {
            shown = format!("{shown} {}", opclass::name(&run.names, class));
        }
        if c.descending {
            shown.push_str(" DESC");
        }
        if c.nulls_first != c.descending {
            shown.push_str(if c.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
        shown
    };
    let columns: Vec<String> = i.columns.iter().enumerate().map(column).collect();
    let full = || format!("{}.{}", quote(&schema_name(run, table.schema)), quote(&table.name));
    let name = run.names.relation_name(table.oid).filter(|_| pretty).unwrap_or_else(full);
    let include: Vec<String> = i.include.iter().map(|c| quote(&table.columns[*c].name)).collect();
    let options: Vec<String> =
        i.options.iter().filter_map(|o| o.split_once('=')).map(|(name, value)| format!("{name}='{value}'")).collect();
    let options = if options.is_empty() { String::new() } else { format!(" WITH ({})", options.join(", ")) };
    let condition = i.condition.as_ref().map_or_else(String::new, |text| {
        format!(" WHERE {}", definition(&run.names.catalog, (table, i), text, Place::Condition, pretty).text)
    });
    format!(
        "CREATE {}INDEX {} ON {} USING btree ({}){}{}{options}{condition}",
        if i.unique { "UNIQUE " } else { "" },
        quote(&i.name),
        name,
        columns.join(", "),
        if include.is_empty() { String::new() } else { format!(" INCLUDE ({})", include.join(", ")) },
        if i.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" },
    )
}
