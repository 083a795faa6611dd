//! Constraints, defaults, collations.

use super::SystemView;
use crate::types::oid;

use oid::{BOOL, CHAR, INT2, INT4, NAME, OID, TEXT};

/// int2[].
const INT2_ARRAY: u32 = 1005;

/// The views of this module.
pub static VIEWS: &[SystemView] = &[
    SystemView {
        oid: 2606,
        schema: "pg_catalog",
        name: "pg_constraint",
        columns: &[
            ("oid", OID),
            ("conname", NAME),
            ("connamespace", OID),
            ("contype", CHAR),
            ("condeferrable", BOOL),
            ("condeferred", BOOL),
            ("convalidated", BOOL),
            ("conrelid", OID),
            ("contypid", OID),
            ("conindid", OID),
            ("conparentid", OID),
            ("confrelid", OID),
            ("confupdtype", CHAR),
            ("confdeltype", CHAR),
            ("confmatchtype", CHAR),
            ("conislocal", BOOL),
            ("coninhcount", INT4),
            ("connoinherit", BOOL),
            ("conkey", INT2_ARRAY),
            ("confkey", INT2_ARRAY),
        ],
    },
    SystemView {
        oid: 2604,
        schema: "pg_catalog",
        name: "pg_attrdef",
        columns: &[("oid", OID), ("adrelid", OID), ("adnum", INT2), ("adbin", TEXT)],
    },
    SystemView {
        oid: 3456,
        schema: "pg_catalog",
        name: "pg_collation",
        columns: &[
            ("oid", OID),
            ("collname", NAME),
            ("collnamespace", OID),
            ("collowner", OID),
            ("collprovider", CHAR),
            ("collisdeterministic", BOOL),
            ("collencoding", INT4),
            ("collcollate", TEXT),
            ("collctype", TEXT),
            ("colliculocale", TEXT),
            ("collversion", TEXT),
        ],
    },
    SystemView {
        oid: 1213,
        schema: "pg_catalog",
        name: "pg_tablespace",
        columns: &[
            ("oid", OID),
            ("spcname", NAME),
            ("spcowner", OID),
            ("spcacl", oid::TEXT_ARRAY),
            ("spcoptions", oid::TEXT_ARRAY),
        ],
    },
];
