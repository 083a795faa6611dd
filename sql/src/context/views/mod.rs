//! The declarations of the system views: their names, oids and columns. The planner needs no more of them.
//!
//! Structure: each view is a row of a table; the modules here are named as those in `crate::views` that give the rows. `empty`
//! declares what has no rows.
//!
//! Not here: the rows (`crate::views`).

mod activity;
mod attributes;
mod catalog;
mod constraints;
mod deadlocks;
mod empty;
mod locks;
mod log;
mod memory;
mod rights;
mod undo;

use crate::types::Oid;

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
}

impl std::fmt::Debug for SystemView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every view.
pub fn all() -> impl Iterator<Item = &'static SystemView> {
    with_rows().chain(empty::VIEWS)
}

/// Every view but those without rows.
pub fn with_rows() -> impl Iterator<Item = &'static SystemView> {
    let of_objects = catalog::VIEWS.iter().chain(attributes::VIEWS).chain(constraints::VIEWS);
    let of_sessions = activity::VIEWS.iter().chain(locks::VIEWS).chain(deadlocks::VIEWS);
    of_objects.chain(of_sessions).chain(undo::VIEWS).chain(log::VIEWS).chain(memory::VIEWS).chain(rights::VIEWS)
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
