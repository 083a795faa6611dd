//! The system's views: what PostgreSQL's clients ask of pg_catalog, built when it is read.
//!
//! Structure: each view is a row of a table: name, columns, and a function that gives its rows. `catalog`, `attributes` and
//! `constraints` show the objects, `activity` and `locks` sessions and what they hold, `deadlocks` what
//! became of rings of them; `empty` is what nothing stands in,
//! `undo` who holds old versions.

mod activity;
pub mod attributes;
pub mod catalog;
pub mod constraints;
mod deadlocks;
mod empty;
mod locks;
mod log;
mod undo;

use crate::exec::{Row, Run};
use crate::types::{Datum, Oid};

/// A system view.
pub struct SystemView {
    /// Its oid, PostgreSQL's where that has one.
    pub oid: Oid,
    /// Its schema.
    pub schema: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its columns with their types.
    pub columns: &'static [(&'static str, Oid)],
    /// Its rows.
    pub rows: fn(&Run<'_>) -> Vec<Row>,
}

impl std::fmt::Debug for SystemView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every view.
pub fn all() -> impl Iterator<Item = &'static SystemView> {
    let of_objects = catalog::VIEWS.iter().chain(attributes::VIEWS).chain(constraints::VIEWS);
    let of_sessions = activity::VIEWS.iter().chain(locks::VIEWS).chain(deadlocks::VIEWS).chain(empty::VIEWS);
    of_objects.chain(of_sessions).chain(undo::VIEWS).chain(log::VIEWS)
}

/// A view by schema and name.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemView> {
    all().find(|v| v.name == name && v.schema == schema)
}

/// A view by oid.
pub fn by_oid(oid: Oid) -> Option<&'static SystemView> {
    all().find(|v| v.oid == oid)
}

/// The oid of the schema pg_catalog.
pub const PG_CATALOG: Oid = 11;
/// The oid of the schema information_schema.
pub const INFORMATION_SCHEMA: Oid = 13_000;

fn text(s: &str) -> Datum {
    Datum::text(s)
}

fn opt(s: Option<&str>) -> Datum {
    s.map_or(Datum::Null, Datum::text)
}
