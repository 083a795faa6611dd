//! Declares clearway_memory.

use super::SystemView;
use clearway_values::types::oid::{INT4, INT8, TEXT};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[SystemView {
    oid: 12_925,
    schema: "pg_catalog",
    name: "clearway_memory",
    columns: &[
        ("pid", INT4),
        ("kind", TEXT),
        ("bytes", INT8),
        ("peak_bytes", INT8),
        ("limit_bytes", INT8),
        ("refused", INT8),
    ],
}];
