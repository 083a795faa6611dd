//! Declares clearway_time: the parts of elapsed time.

use super::SystemView;
use clearway_values::types::oid;

use oid::{FLOAT8, INT4, INT8, TEXT};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[SystemView {
    oid: 12_944,
    schema: "pg_catalog",
    name: "clearway_time",
    columns: &[
        ("scope", TEXT),
        ("pid", INT4),
        ("queryid", INT8),
        ("application_name", TEXT),
        ("elapsed_ms", FLOAT8),
        ("cpu_ms", FLOAT8),
        ("run_queue_ms", FLOAT8),
        ("wait_ms", FLOAT8),
        ("io_ms", FLOAT8),
        ("durable_ms", FLOAT8),
        ("unaccounted_ms", FLOAT8),
        ("unaccounted_percent", FLOAT8),
    ],
}];
