//! The rows of the system's views: what PostgreSQL's clients ask of pg_catalog, built when it is read.
//!
//! Structure: `crate::context::views` declares the views; for each a function here gives its rows. `catalog`, `attributes` and
//! `constraints` show the objects, `activity` and `locks` sessions and what they hold, `deadlocks` what
//! became of rings of them, `undo` who holds old versions, `memory` who has how much of the heap.

mod activity;
mod attributes;
mod catalog;
mod constraints;
mod deadlocks;
mod locks;
mod log;
mod memory;
mod rights;
mod undo;

use crate::context::views::SystemView;
use crate::exec::{Row, Run, ViewRows};
use crate::types::{Datum, Oid};
use clearway_engine::catalog::Index;

/// Schema and name of a view, and what gives its rows.
type ViewOf = (&'static str, &'static str, fn(&Run<'_>) -> Vec<Row>);

const ROWS: [&[ViewOf]; 10] = [
    catalog::ROWS,
    attributes::ROWS,
    constraints::ROWS,
    activity::ROWS,
    locks::ROWS,
    deadlocks::ROWS,
    undo::ROWS,
    log::ROWS,
    memory::ROWS,
    rights::ROWS,
];

fn rows_of(view: &SystemView) -> Option<&'static ViewOf> {
    ROWS.iter().copied().flatten().find(|(schema, name, _)| view.name == *name && view.schema == *schema)
}

/// What the executor asks of the system views.
pub struct SystemViews;

impl ViewRows for SystemViews {
    fn rows(&self, view: &SystemView, run: &Run<'_>) -> Vec<Row> {
        rows_of(view).map_or_else(Vec::new, |(_, _, rows)| rows(run))
    }

    fn index_definition(&self, index: &Index, pretty: bool, run: &Run<'_>) -> String {
        attributes::index_definition(run, index, pretty)
    }

    fn constraint_definition(&self, constraint: Oid, run: &Run<'_>) -> Option<String> {
        constraints::definition(run, constraint)
    }
}

fn text(s: &str) -> Datum {
    Datum::text(s)
}

fn opt(s: Option<&str>) -> Datum {
    s.map_or(Datum::Null, Datum::text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::views as declared;

    #[test]
    fn every_view_has_rows_and_all_rows_are_of_a_view() {
        for view in declared::with_rows() {
            assert!(rows_of(view).is_some(), "nothing gives the rows of {}.{}", view.schema, view.name);
        }
        for (schema, name, _) in ROWS.iter().copied().flatten() {
            assert!(declared::find(schema, name).is_some(), "{schema}.{name} is not declared");
        }
    }
}
