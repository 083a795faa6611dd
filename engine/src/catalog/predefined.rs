//! The roles that every directory has, with PostgreSQL's numbers. They are not stored until something changes them.

use super::{BOOTSTRAP_ROLE, Catalog, Membership, Object, Oid, Role};
use std::sync::Arc;

/// Implicit members: the owner of the database at hand.
pub const DATABASE_OWNER: Oid = 6171;
/// May read all tables, views and sequences, and use all schemas.
pub const READ_ALL_DATA: Oid = 6181;
/// May write them.
pub const WRITE_ALL_DATA: Oid = 6182;
/// May read all settings.
pub const READ_ALL_SETTINGS: Oid = 3374;
/// May see what other roles' sessions do.
pub const READ_ALL_STATS: Oid = 3375;
/// May cancel and terminate other roles' sessions, but superusers'.
pub const SIGNAL_BACKEND: Oid = 4200;
/// May take checkpoints.
pub const CHECKPOINT: Oid = 4544;
/// May look at what servers are watched by.
pub const MONITOR: Oid = 3373;
/// May have statements read files of the server's machine.
pub const READ_SERVER_FILES: Oid = 4569;
/// May have statements write files of the server's machine.
pub const WRITE_SERVER_FILES: Oid = 4570;
/// May have statements run programs on the server's machine.
pub const EXECUTE_SERVER_PROGRAM: Oid = 4571;
const STAT_SCAN_TABLES: Oid = 3377;

const ROLES: [(Oid, &str); 12] = [
    (DATABASE_OWNER, "pg_database_owner"),
    (READ_ALL_DATA, "pg_read_all_data"),
    (WRITE_ALL_DATA, "pg_write_all_data"),
    (MONITOR, "pg_monitor"),
    (READ_ALL_SETTINGS, "pg_read_all_settings"),
    (READ_ALL_STATS, "pg_read_all_stats"),
    (STAT_SCAN_TABLES, "pg_stat_scan_tables"),
    (READ_SERVER_FILES, "pg_read_server_files"),
    (WRITE_SERVER_FILES, "pg_write_server_files"),
    (EXECUTE_SERVER_PROGRAM, "pg_execute_server_program"),
    (SIGNAL_BACKEND, "pg_signal_backend"),
    (CHECKPOINT, "pg_checkpoint"),
];

impl Catalog {
    /// The catalog of no objects but the predefined roles.
    pub fn with_predefined_roles() -> Catalog {
        let mut catalog = Catalog::default();
        for (oid, name) in ROLES {
            let mut role = Role::new(oid, name);
            if oid == MONITOR {
                let of = [READ_ALL_SETTINGS, READ_ALL_STATS, STAT_SCAN_TABLES];
                role.member_of = of.map(|role| Membership { role, admin: false, by: BOOTSTRAP_ROLE }).to_vec();
            }
            catalog.put(Arc::new(Object::Role(role))).expect("their names differ");
        }
        catalog
    }

    /// Whether a role is one of them.
    pub fn is_predefined(oid: Oid) -> bool {
        ROLES.iter().any(|(predefined, _)| *predefined == oid)
    }
}
