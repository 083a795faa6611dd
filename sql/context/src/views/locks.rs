//! Declares pg_locks.

use super::SystemView;
use clearway_values::types::oid;

use oid::{BOOL, INT2, INT4, OID, TEXT, TIMESTAMPTZ, XID};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[SystemView {
    oid: 12_073,
    schema: "pg_catalog",
    name: "pg_locks",
    columns: &[
        ("locktype", TEXT),
        ("database", OID),
        ("relation", OID),
        ("page", INT4),
        ("tuple", INT2),
        ("virtualxid", TEXT),
        ("transactionid", XID),
        ("classid", OID),
        ("objid", OID),
        ("objsubid", INT2),
        ("virtualtransaction", TEXT),
        ("pid", INT4),
        ("mode", TEXT),
        ("granted", BOOL),
        ("fastpath", BOOL),
        ("waitstart", TIMESTAMPTZ),
    ],
}];
