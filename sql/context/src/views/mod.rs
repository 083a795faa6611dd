//! Declares the system views: their names, oids and columns. The planner needs no more of them.
//!
//! # Structure
//! Each view is a row of a table. A module here has the same name as the module in `clearway_views` that gives the rows. `declared` has
//! PostgreSQL's relations that are declared from data; `texts` has the definitions of the views that are queries; `keys` says which
//! columns find single rows.
//!
//! # Not here
//! The rows (`clearway_views`).

mod activity;
mod books;
mod deadlocks;
pub mod declared;
pub mod functions;
pub mod keys;
mod limits;
mod lock_waits;
mod locks;
mod log;
mod memory;
pub mod mysql;
mod shared_plans;
mod statement_times;
pub mod texts;
mod undo;
mod waits;

use clearway_values::types::{Oid, oid};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::LazyLock;

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

/// The columns that a table of the system has beside its own, hidden from `*`.
pub const SYSTEM_COLUMNS: [(&str, Oid); 4] =
    [("tableoid", oid::OID), ("xmin", oid::XID), ("xmax", oid::XID), ("cmin", oid::CID)];

impl SystemView {
    /// Whether it is a table, as pg_class says: it has [`SYSTEM_COLUMNS`].
    pub fn is_table(&self) -> bool {
        self.oid < 12_000
    }

    /// Whether it is a table that all databases share, as pg_class says.
    pub fn is_shared(&self) -> bool {
        matches!(self.oid, 1213 | 1214 | 1260..=1262 | 2396 | 2964 | 3592 | 6000 | 6100 | 6243)
    }

    /// Whether PostgreSQL finds the file of this table without pg_class, which then says 0 for it.
    pub fn is_mapped(&self) -> bool {
        self.is_shared() || matches!(self.oid, 1247 | 1249 | 1255 | 1259)
    }

    /// How many columns its rows have, with [`SYSTEM_COLUMNS`] if it has them.
    pub fn width(&self) -> usize {
        self.columns.len() + if self.is_table() { SYSTEM_COLUMNS.len() } else { 0 }
    }

    /// Whether only superusers may read it: it shows what proves a role's identity, or other people's data.
    pub fn is_for_superusers(&self) -> bool {
        matches!(
            self.name,
            "pg_authid"
                | "pg_shadow"
                | "pg_statistic"
                | "pg_hba_file_rules"
                | "pg_ident_file_mappings"
                | "pg_file_settings"
        ) || matches!(
            self.name,
            "pg_largeobject" | "pg_user_mapping" | "pg_statistic_ext_data" | "pg_replication_origin"
        )
    }

    /// Whether its rows are the server's files of settings as they are now.
    pub fn shows_files(&self) -> bool {
        matches!(self.name, "pg_hba_file_rules" | "pg_file_settings")
    }

    /// The query whose rows it shows.
    pub fn text(&self) -> Option<&'static str> {
        texts::of(self.schema, self.name)
    }
}

/// Every view, with the place of each by its name and by its oid.
struct Views {
    list: Vec<&'static SystemView>,
    by_name: HashMap<(&'static str, &'static str), &'static SystemView>,
    by_oid: HashMap<Oid, &'static SystemView>,
    /// Those of each name, in any schema.
    namesakes: HashMap<&'static str, Vec<&'static SystemView>>,
}

fn views() -> &'static Views {
    static VIEWS: LazyLock<Views> = LazyLock::new(|| {
        let (list, by_name, by_oid, namesakes) = (Vec::new(), HashMap::new(), HashMap::new(), HashMap::new());
        let mut views = Views { list, by_name, by_oid, namesakes };
        // What is declared in code comes first.
        for view in by_hand().chain(declared::all()) {
            if let Entry::Vacant(place) = views.by_name.entry((view.schema, view.name)) {
                place.insert(view);
                views.list.push(view);
                views.by_oid.insert(view.oid, view);
                views.namesakes.entry(view.name).or_default().push(view);
            }
        }
        views
    });
    &VIEWS
}

/// Every view.
pub fn all() -> impl Iterator<Item = &'static SystemView> {
    views().list.iter().copied()
}

/// The views that are declared in code.
fn by_hand() -> impl Iterator<Item = &'static SystemView> {
    let of_sessions = activity::VIEWS.iter().chain(locks::VIEWS).chain(deadlocks::VIEWS);
    let of_waits = lock_waits::VIEWS.iter().chain(waits::VIEWS).chain(books::VIEWS).chain(statement_times::VIEWS);
    of_sessions
        .chain(undo::VIEWS)
        .chain(log::VIEWS)
        .chain(memory::VIEWS)
        .chain(limits::VIEWS)
        .chain(of_waits)
        .chain(shared_plans::VIEWS)
}

/// A view by schema and name.
pub fn find(schema: &str, name: &str) -> Option<&'static SystemView> {
    views().by_name.get(&(schema, name)).copied().or_else(|| mysql::find(schema, name))
}

/// Those of [`all`] that have a name.
pub fn named(name: &str) -> &'static [&'static SystemView] {
    views().namesakes.get(name).map_or(&[], |all| all)
}

/// One of [`all`] by oid.
pub fn listed(oid: Oid) -> Option<&'static SystemView> {
    views().by_oid.get(&oid).copied()
}

/// A view by oid.
pub fn by_oid(oid: Oid) -> Option<&'static SystemView> {
    views().by_oid.get(&oid).copied().or_else(|| mysql::all().iter().find(|view| view.oid == oid))
}

/// The oid of the schema pg_catalog.
pub const PG_CATALOG: Oid = 11;
/// The oid of the schema information_schema.
pub const INFORMATION_SCHEMA: Oid = 13_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_views_share_a_name_or_an_oid() {
        let views = views();
        assert_eq!(views.by_oid.len(), views.list.len());
        let mut by_hand: Vec<_> = by_hand().map(|v| (v.schema, v.name)).collect();
        by_hand.sort_unstable();
        let twice: Vec<_> = by_hand.windows(2).filter(|w| w[0] == w[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
