//! pg_extension, the extensions that could be made, and the rows that an extension adds to other catalogs.

use super::ViewOf;
use clearway_base::memory;
use clearway_context::extensions::{KNOWN, of};
use clearway_context::views::SystemView;
use clearway_exec::{Row, Run, SoughtRows};
use clearway_values::builtin;
use clearway_values::types::Datum;
use std::sync::OnceLock;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] =
    &[("pg_catalog", "pg_extension", pg_extension), ("pg_catalog", "pg_available_extensions", pg_available_extensions)];

fn pg_extension(run: &Run<'_>) -> Vec<Row> {
    let extensions = of(&run.names.catalog, run.core.database).iter();
    let row = |e: &clearway_engine::catalog::Extension| {
        vec![
            Datum::Oid(e.oid),
            Datum::text(e.name.clone()),
            Datum::Oid(e.owner),
            Datum::Oid(e.schema),
            Datum::Bool(true),
            Datum::text(e.version.clone()),
            Datum::Null,
            Datum::Null,
        ]
    };
    extensions.map(row).collect()
}

fn pg_available_extensions(run: &Run<'_>) -> Vec<Row> {
    let made = of(&run.names.catalog, run.core.database);
    let row = |known: &clearway_context::extensions::Known| {
        let installed = made.iter().find(|e| e.name == known.name);
        vec![
            Datum::text(known.name.to_owned()),
            Datum::text(known.version.to_owned()),
            installed.map_or(Datum::Null, |e| Datum::text(e.version.clone())),
            Datum::text(known.comment.to_owned()),
        ]
    };
    KNOWN.iter().map(row).collect()
}

/// A row of an extension, and its catalog.
struct Added {
    extension: &'static str,
    catalog: &'static str,
    row: Row,
}

fn all_added() -> &'static [Added] {
    static ADDED: OnceLock<Vec<Added>> = OnceLock::new();
    let read = |(extension, catalog, line): (&'static str, &'static str, &'static str)| {
        let view = clearway_context::views::find("pg_catalog", catalog)?;
        Some(Added { extension, catalog, row: super::builtin::row_of(line, view) })
    };
    ADDED.get_or_init(|| memory::uncharged(|| builtin::extension_rows().filter_map(read).collect()))
}

/// The columns of a catalog that tell the schema and the owner.
fn places(view: &SystemView) -> (Option<usize>, Option<usize>) {
    let place = |end: &str| view.columns.iter().position(|column| column.0.ends_with(end));
    (place("namespace"), place("owner"))
}

/// The rows that the extensions of the database add to a catalog, of which only some may be sought.
pub(super) fn rows_of(run: &Run<'_>, catalog: &str, sought: Option<&SoughtRows>) -> Vec<Row> {
    let mut out = Vec::new();
    for made in of(&run.names.catalog, run.core.database) {
        let Some(view) = clearway_context::views::find("pg_catalog", catalog) else { continue };
        let (schema, owner) = places(view);
        for added in all_added().iter().filter(|added| added.extension == made.name && added.catalog == catalog) {
            let mut row = added.row.clone();
            if let Some(at) = schema {
                row[at] = Datum::Oid(made.schema);
            }
            if let Some(at) = owner {
                row[at] = Datum::Oid(made.owner);
            }
            out.push(row);
        }
    }
    if let Some(sought) = sought {
        out.retain(|row| sought.keys.have(&row[sought.place]));
    }
    out
}

/// The objects of the extensions of the database: the number of the extension, that of the catalog, and the object's own. The types of arrays belong
/// to the types of their elements.
pub(super) fn members(run: &Run<'_>) -> Vec<(u32, u32, u32)> {
    const CATALOGS: [(&str, u32); 6] = [
        ("pg_type", 1247),
        ("pg_proc", 1255),
        ("pg_operator", 2617),
        ("pg_cast", 2605),
        ("pg_opclass", 2616),
        ("pg_opfamily", 2753),
    ];
    let mut out = Vec::new();
    for made in of(&run.names.catalog, run.core.database) {
        for added in all_added().iter().filter(|added| added.extension == made.name) {
            let class = CATALOGS.iter().find(|(name, _)| *name == added.catalog);
            let Some((_, class)) = class else { continue };
            let number = added.row.first().and_then(Datum::as_i64).unwrap_or(0) as u32;
            let is_array = clearway_values::types::facts(number).is_some_and(|facts| facts.element != 0);
            if !(added.catalog == "pg_type" && is_array) {
                out.push((made.oid, *class, number));
            }
        }
    }
    out
}
