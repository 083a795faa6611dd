//! Declares the views of old row versions and of the transactions that keep them.

use super::SystemView;
use clearway_values::types::oid;

use oid::{FLOAT8, INT4, INT8, TEXT, TIMESTAMPTZ};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[
    SystemView {
        oid: 12_920,
        schema: "pg_catalog",
        name: "clearway_undo",
        columns: &[
            ("memory_bytes", INT8),
            ("budget_bytes", INT8),
            ("file_bytes", INT8),
            ("written_bytes", INT8),
            ("spans", INT8),
            ("alarms", INT8),
            ("pending_chains", INT8),
        ],
    },
    SystemView {
        oid: 12_921,
        schema: "pg_catalog",
        name: "clearway_undo_holders",
        columns: &[
            ("pid", INT4),
            ("kind", TEXT),
            ("txn", INT8),
            ("read_lsn", INT8),
            ("age_s", FLOAT8),
            ("bytes", INT8),
            ("query", TEXT),
        ],
    },
    SystemView {
        oid: 12_922,
        schema: "pg_catalog",
        name: "clearway_undo_alarms",
        columns: &[("at", TIMESTAMPTZ), ("pid", INT4), ("message", TEXT)],
    },
];
