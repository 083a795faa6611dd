//! Roles' memberships, settings and default privileges.

use super::SystemView;
use crate::types::oid;

use oid::{BOOL, CHAR, OID, TEXT_ARRAY};

/// The views of this module.
pub static VIEWS: &[SystemView] = &[
    SystemView {
        oid: 1261,
        schema: "pg_catalog",
        name: "pg_auth_members",
        columns: &[("roleid", OID), ("member", OID), ("grantor", OID), ("admin_option", BOOL)],
    },
    SystemView {
        oid: 2964,
        schema: "pg_catalog",
        name: "pg_db_role_setting",
        columns: &[("setdatabase", OID), ("setrole", OID), ("setconfig", TEXT_ARRAY)],
    },
    SystemView {
        oid: 826,
        schema: "pg_catalog",
        name: "pg_default_acl",
        columns: &[
            ("oid", OID),
            ("defaclrole", OID),
            ("defaclnamespace", OID),
            ("defaclobjtype", CHAR),
            ("defaclacl", TEXT_ARRAY),
        ],
    },
];
