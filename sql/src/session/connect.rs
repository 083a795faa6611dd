//! Which roles may begin a session, and where.

use std::sync::atomic::Ordering::Relaxed;

use clearway_engine::catalog::{Catalog, Database, Role};

use super::session::SessionStart;
use crate::context::limits::{LimitKind, Scope};
use crate::context::privileges::Judge;
use crate::error::{Result, SqlError};

/// The role of a name, which may log in.
///
/// # Errors
/// 28000.
pub(super) fn login_role(catalog: &Catalog, user: &str) -> Result<Role> {
    let known = catalog.role(user).ok_or_else(|| format!("role \"{user}\" does not exist"));
    let role =
        known.and_then(|r| if r.login { Ok(r) } else { Err(format!("role \"{user}\" is not permitted to log in")) });
    role.cloned().map_err(|message| SqlError::new("28000", message))
}

/// Whether a role may begin a session in a database: both have room, and it was granted CONNECT.
pub(super) fn may_connect(catalog: &Catalog, start: &SessionStart, role: &Role, database: &Database) -> Result<()> {
    let judge = Judge::new(catalog, database.oid, Some(role.oid));
    let object = catalog.get(database.oid);
    if !object.is_some_and(|object| judge.may_with(object, 'c')) {
        return Err(SqlError::new("42501", format!("permission denied for database \"{}\"", database.name))
            .detail("User does not have CONNECT privilege."));
    }
    if role.superuser {
        return Ok(());
    }
    let others = start.backends.all();
    let others = || others.iter().filter(|b| b.pid != start.backend.pid && b.role.load(Relaxed) != 0);
    let beyond = |limit: i32, count: usize| usize::try_from(limit).is_ok_and(|limit| count >= limit);
    let violated = |scope, oid| {
        let group = start.backends.limits.group(scope, oid);
        group.call(catalog.get(oid).map_or("", |object| object.name()));
        group.violated(LimitKind::Connections, "53300", &start.backends, &start.backend);
    };
    if beyond(role.connection_limit, others().filter(|b| b.role.load(Relaxed) == role.oid).count()) {
        violated(Scope::Role, role.oid);
        return Err(SqlError::new("53300", format!("too many connections for role \"{}\"", role.name)));
    }
    if beyond(database.connection_limit, others().filter(|b| b.database == database.name).count()) {
        violated(Scope::Database, database.oid);
        return Err(SqlError::new("53300", format!("too many connections for database \"{}\"", database.name)));
    }
    Ok(())
}
