//! The log and who holds it.

use super::SystemView;
use crate::types::oid;

use oid::{BOOL, INT8, TEXT};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[
    SystemView {
        oid: 12_923,
        schema: "pg_catalog",
        name: "clearway_log",
        columns: &[
            ("end_lsn", INT8),
            ("durable_lsn", INT8),
            ("epoch", INT8),
            ("recovery_bytes", INT8),
            ("file_bytes", INT8),
            ("undo_reserved_bytes", INT8),
            ("undo_reserved_pages", INT8),
            ("flushes", INT8),
        ],
    },
    SystemView {
        oid: 12_924,
        schema: "pg_catalog",
        name: "clearway_log_holders",
        columns: &[("name", TEXT), ("needs_lsn", INT8), ("held_bytes", INT8), ("limit_bytes", INT8), ("lost", BOOL)],
    },
];
