//! Declares the views of the log, its holders and the archive.

use super::SystemView;
use clearway_values::types::oid;

use oid::{BOOL, INT8, TEXT, TIMESTAMPTZ};

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
    SystemView {
        oid: 12_926,
        schema: "pg_catalog",
        name: "clearway_archive",
        columns: &[
            ("target", TEXT),
            ("state", TEXT),
            ("archived_lsn", INT8),
            ("lag_bytes", INT8),
            ("last_sent", TIMESTAMPTZ),
            ("pieces", INT8),
            ("bytes", INT8),
            ("failures", INT8),
            ("last_error", TEXT),
            ("last_error_at", TIMESTAMPTZ),
            ("mode", TEXT),
            ("held_bytes", INT8),
            ("waiting", INT8),
            ("hole_begin_lsn", INT8),
            ("hole_end_lsn", INT8),
        ],
    },
];
