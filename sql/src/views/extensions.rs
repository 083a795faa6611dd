//! pg_extension, and the extensions that could be made.

use super::ViewOf;
use crate::context::extensions::{KNOWN, of};
use crate::exec::{Row, Run};
use crate::types::Datum;

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
    let row = |known: &crate::context::extensions::Known| {
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
