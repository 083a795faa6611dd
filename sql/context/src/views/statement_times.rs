//! Declares clearway_statement_times: the distribution of each statement's durations.

use super::SystemView;
use clearway_values::types::oid::{FLOAT8, INT8, TEXT};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[SystemView {
    oid: 12_949,
    schema: "pg_catalog",
    name: "clearway_statement_times",
    columns: &[
        ("queryid", INT8),
        ("application_name", TEXT),
        ("from_ms", FLOAT8),
        ("to_ms", FLOAT8),
        ("executions", INT8),
    ],
}];
