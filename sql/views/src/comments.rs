//! The rows of pg_description that COMMENT has made, appended to those with which the catalog begins; the rows of pg_shdescription.

use super::{ViewOf, breathes, text};
use clearway_context::comments::{Place, place_of, shared_place_of};
use clearway_engine::catalog::{Comment, Object};
use clearway_exec::{Row, Run, SoughtRows};
use clearway_values::types::Datum;

/// The rows of the views of this module.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "pg_shdescription", shared)];

fn comments<'r>(run: &'r Run<'_>) -> impl Iterator<Item = &'r Comment> {
    run.names.catalog.objects().filter_map(|object| match &**object {
        Object::Comment(comment) => Some(comment),
        _ => None,
    })
}

/// Appends the comments on the objects of this database.
pub(super) fn append(run: &Run<'_>, sought: Option<&SoughtRows>, rows: &mut Vec<Row>) {
    for comment in comments(run).map_while(breathes(run)) {
        let Some(Place { object, class, part }) = place_of(&run.names.catalog, run.names.database, comment) else {
            continue;
        };
        let row = vec![Datum::Oid(object), Datum::Oid(class), Datum::Int4(part), text(comment.text.as_str())];
        if sought.is_none_or(|sought| sought.keys.have(&row[sought.place])) {
            rows.push(row);
        }
    }
}

/// The comments on databases and roles.
fn shared(run: &Run<'_>) -> Vec<Row> {
    let row = |comment: &Comment| {
        let Place { object, class, .. } = shared_place_of(&run.names.catalog, comment)?;
        Some(vec![Datum::Oid(object), Datum::Oid(class), text(comment.text.as_str())])
    };
    comments(run).map_while(breathes(run)).filter_map(row).collect()
}
