//! Declares the views of the deadlock archive.

use super::SystemView;
use clearway_values::types::oid;

use oid::{BOOL, INT4, INT8, TEXT, TIMESTAMPTZ};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[
    SystemView {
        oid: 12_901,
        schema: "pg_catalog",
        name: "clearway_deadlocks",
        columns: &[
            ("number", INT8),
            ("happened", TIMESTAMPTZ),
            ("found_in_us", INT8),
            ("by_background_scan", BOOL),
            ("place", INT4),
            ("victim", BOOL),
            ("pid", INT4),
            ("virtualtransaction", TEXT),
            ("wants", TEXT),
            ("wants_mode", TEXT),
            ("waited_us", INT8),
            ("waits_for", INT4),
            ("holds", TEXT),
            ("holds_modes", TEXT),
            ("held_by_statement", TEXT),
            ("statements", TEXT),
            ("application_name", TEXT),
            ("usename", TEXT),
            ("datname", TEXT),
            ("parameters", TEXT),
            ("context", TEXT),
        ],
    },
    SystemView {
        oid: 12_902,
        schema: "pg_catalog",
        name: "clearway_deadlock_counters",
        columns: &[("searches", INT8), ("deadlocks", INT8), ("reordered", INT8), ("missed_by_fast_path", INT8)],
    },
];
