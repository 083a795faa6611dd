//! Declares pg_stat_activity.

use super::SystemView;
use clearway_values::types::oid;

use oid::{INET, INT4, INT8, NAME, OID, TEXT, TIMESTAMPTZ, XID};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[SystemView {
    oid: 12_219,
    schema: "pg_catalog",
    name: "pg_stat_activity",
    columns: &[
        ("datid", OID),
        ("datname", NAME),
        ("pid", INT4),
        ("leader_pid", INT4),
        ("usesysid", OID),
        ("usename", NAME),
        ("application_name", TEXT),
        ("client_addr", INET),
        ("client_hostname", TEXT),
        ("client_port", INT4),
        ("backend_start", TIMESTAMPTZ),
        ("xact_start", TIMESTAMPTZ),
        ("query_start", TIMESTAMPTZ),
        ("state_change", TIMESTAMPTZ),
        ("wait_event_type", TEXT),
        ("wait_event", TEXT),
        ("state", TEXT),
        ("backend_xid", XID),
        ("backend_xmin", XID),
        ("query_id", INT8),
        ("query", TEXT),
        ("backend_type", TEXT),
    ],
}];
