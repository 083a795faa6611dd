//! Declares clearway_shared_plans.

use super::SystemView;
use clearway_values::types::oid::{INT8, NAME, TEXT, TIMESTAMPTZ};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[SystemView {
    oid: 12_951,
    schema: "pg_catalog",
    name: "clearway_shared_plans",
    columns: &[
        ("datname", NAME),
        ("usename", NAME),
        ("search_path", TEXT),
        ("protocol", TEXT),
        ("query", TEXT),
        ("taken", INT8),
        ("planned_at", TIMESTAMPTZ),
    ],
}];
