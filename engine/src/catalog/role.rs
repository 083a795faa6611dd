//! Roles in the catalog: their attributes, passwords, memberships, settings and default privileges.

use super::acl::Acl;
use super::object::Oid;
use serde::{Deserialize, Serialize};

pub(super) fn any_number() -> i32 {
    -1
}

fn yes() -> bool {
    true
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Its number.
    pub oid: Oid,
    /// Its name.
    pub name: String,
    /// It may log in.
    pub login: bool,
    /// It may do everything.
    pub superuser: bool,
    /// It may create databases.
    pub create_db: bool,
    /// It may create roles.
    pub create_role: bool,
    /// The SCRAM-SHA-256 verifier of its password.
    pub password: Option<String>,
    /// Connections at once, -1 for any number.
    pub connection_limit: i32,
    /// It has the rights of the roles that it is a member of without SET ROLE.
    #[serde(default = "yes")]
    pub inherit: bool,
    /// Row-level security does not hold it up.
    #[serde(default)]
    pub bypass_rls: bool,
    /// It may copy the whole directory: backups, replicas.
    #[serde(default)]
    pub replication: bool,
    /// Its password is good until then: microseconds since 2000-01-01 UTC.
    #[serde(default)]
    pub valid_until: Option<i64>,
    /// The roles that it is a member of.
    #[serde(default)]
    pub member_of: Vec<Membership>,
    /// ALTER ROLE ... SET: what its sessions begin with; of one database, or of all (0).
    #[serde(default)]
    pub settings: Vec<(Oid, String, String)>,
    /// ALTER ROLE ALL SET: what every session begins with. The bootstrap role keeps it, which can't be dropped.
    #[serde(default)]
    pub settings_of_all: Vec<(String, String)>,
    /// ALTER DEFAULT PRIVILEGES: what objects that it makes begin with.
    #[serde(default)]
    pub defaults: Vec<DefaultAcl>,
}

impl Role {
    /// A role that may do nothing.
    pub fn new(oid: Oid, name: &str) -> Role {
        Role {
            oid,
            name: name.to_owned(),
            login: false,
            superuser: false,
            create_db: false,
            create_role: false,
            password: None,
            connection_limit: any_number(),
            inherit: true,
            bypass_rls: false,
            replication: false,
            valid_until: None,
            member_of: Vec::new(),
            settings: Vec::new(),
            settings_of_all: Vec::new(),
            defaults: Vec::new(),
        }
    }

    /// Whether it has the attribute REPLICATION, which the bootstrap role was born with.
    pub fn has_replication(&self) -> bool {
        self.replication || self.oid == super::BOOTSTRAP_ROLE
    }
}

/// A role is a member of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The other.
    pub role: Oid,
    /// Whether it may make others members.
    pub admin: bool,
    /// By whom it was made one.
    pub by: Oid,
}

/// What objects of a kind begin with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultAcl {
    /// In this database.
    pub database: Oid,
    /// In this schema; 0: in any.
    pub schema: Oid,
    /// `r` for tables, `S` for sequences, `n` for schemas, `T` for types, `f` for functions.
    pub kind: char,
    /// For a schema what is added; else the whole list.
    pub acl: Acl,
}
