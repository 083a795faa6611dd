//! pg_authid: what ALTER ROLE changes of a role.

use super::catalog::{Changeable, Edit, Here, flag, limit, number};
use crate::password::Verifier;
use crate::privileges::role_by_oid;
use clearway_engine::catalog::{Catalog, Object};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::{Datum, Oid};

/// The places of the columns.
const SUPERUSER: usize = 2;
const INHERIT: usize = 3;
const CREATE_ROLE: usize = 4;
const CREATE_DB: usize = 5;
const LOGIN: usize = 6;
const REPLICATION: usize = 7;
const BYPASS_RLS: usize = 8;
const CONNECTION_LIMIT: usize = 9;
const PASSWORD: usize = 10;
const VALID_UNTIL: usize = 11;

/// pg_authid.
pub(super) struct Roles;

/// The verifier of a row. PostgreSQL takes any text, and a text that is no verifier lets no client log in; here a password is stored as a verifier only.
fn password(row: &[Datum]) -> Result<Option<String>> {
    let Some(text) = row.get(PASSWORD).and_then(Datum::as_str) else { return Ok(None) };
    match Verifier::parse(text) {
        Some(_) => Ok(Some(text.to_owned())),
        None => Err(SqlError::unsupported("a rolpassword that is no verifier of SCRAM-SHA-256")
            .hint("ALTER ROLE ... PASSWORD makes one of a password.")),
    }
}

impl Changeable for Roles {
    fn name(&self) -> &'static str {
        "pg_authid"
    }

    fn key(&self) -> (&'static str, &'static [usize]) {
        ("pg_authid_oid_index", &[0])
    }

    fn columns(&self) -> &'static [&'static str] {
        &[
            "rolsuper",
            "rolinherit",
            "rolcreaterole",
            "rolcreatedb",
            "rolcanlogin",
            "rolreplication",
            "rolbypassrls",
            "rolconnlimit",
            "rolpassword",
            "rolvaliduntil",
        ]
    }

    fn has_free_rows(&self) -> bool {
        false
    }

    fn nullable(&self) -> &'static [&'static str] {
        &["rolpassword", "rolvaliduntil"]
    }

    fn kept_by(&self, here: Here<'_>, row: &[Datum]) -> Option<Oid> {
        role_by_oid(here.catalog, number(row, 0)).map(|role| role.oid)
    }

    fn edits(&self, here: Here<'_>, _old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<Vec<Edit>> {
        let Some((new, role)) = new.and_then(|new| Some((new, role_by_oid(here.catalog, number(new, 0))?))) else {
            return Ok(Vec::new());
        };
        if Catalog::is_predefined(role.oid) {
            let message = format!("role name \"{}\" is reserved", role.name);
            return Err(SqlError::new("42939", message).detail("Cannot alter reserved roles."));
        }
        let mut role = role.clone();
        role.superuser = flag(new, SUPERUSER);
        role.inherit = flag(new, INHERIT);
        role.create_role = flag(new, CREATE_ROLE);
        role.create_db = flag(new, CREATE_DB);
        role.login = flag(new, LOGIN);
        // The bootstrap role has it without being told.
        if flag(new, REPLICATION) != role.has_replication() {
            role.replication = flag(new, REPLICATION);
        }
        role.bypass_rls = flag(new, BYPASS_RLS);
        role.connection_limit = limit(new, CONNECTION_LIMIT)?;
        role.password = password(new)?;
        role.valid_until = match new.get(VALID_UNTIL) {
            Some(Datum::TimestampTz(at)) => Some(*at),
            _ => None,
        };
        Ok(vec![Edit::Put(Box::new(Object::Role(role)))])
    }
}
