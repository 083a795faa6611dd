//! Declares clearway_limits.

use super::SystemView;
use clearway_values::types::oid::{INT8, TEXT, TIMESTAMPTZ};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[SystemView {
    oid: 12_950,
    schema: "pg_catalog",
    name: "clearway_limits",
    columns: &[
        ("scope", TEXT),
        ("name", TEXT),
        ("setting", TEXT),
        ("unit", TEXT),
        ("limit_value", INT8),
        ("used", INT8),
        ("waiting", INT8),
        ("violations", INT8),
        ("last_violation", TIMESTAMPTZ),
    ],
}];
