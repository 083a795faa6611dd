//! The settings with which a session begins: those of the server's files, those that ALTER ROLE and ALTER DATABASE have stored, and those
//! that the client sends.

use crate::context::configuration::Source;
use crate::context::limits::is_limit;
use crate::context::privileges::Identities;
use crate::context::settings::{Setting, Settings, find};
use crate::error::{Result, SqlError};
use clearway_engine::catalog::{BOOTSTRAP_ROLE, Database, Object, Role};

/// Names of settings with their values.
type Pairs<'a> = &'a [(String, String)];

/// Sets what the server's files say, what is kept, and what the client asks for; what is said later counts.
///
/// # Errors
/// For a value of the files or of the client. What is kept and can't be set any more is passed over and given back: no role is locked out
/// by it.
pub(super) fn begin(
    settings: &mut Settings,
    identities: &Identities<'_>,
    (role, database): (&Role, &Database),
    (defaults, options): (Pairs<'_>, Pairs<'_>),
) -> Result<Vec<SqlError>> {
    settings.source = Source::File;
    for (name, value) in defaults {
        settings.set(name, Some(value), false, identities)?;
    }
    settings.source = Source::Kept;
    let refused = of_roles(settings, identities, (role, database));
    settings.source = Source::Client;
    for (name, value) in options {
        may_begin_with(role, name)?;
        if find(name).is_some() || !matches!(name.as_str(), "user" | "database" | "replication" | "options") {
            settings.set(name, Some(value), false, identities)?;
        }
    }
    settings.source = Source::Session;
    Ok(refused)
}

/// Sets what is kept, the most general first: for all sessions, for the database, for the role, for the role in the database; so what is
/// said of fewer sessions counts. Gives back what can't be set any more.
fn of_roles(
    settings: &mut Settings,
    identities: &Identities<'_>,
    (role, database): (&Role, &Database),
) -> Vec<SqlError> {
    let for_all = match identities.catalog.get(BOOTSTRAP_ROLE).map(|o| &**o) {
        Some(Object::Role(first)) => first.settings_of_all.as_slice(),
        _ => &[],
    };
    let of =
        |database: u32| role.settings.iter().filter(move |s| s.0 == database).map(|(_, name, value)| (name, value));
    let general = for_all.iter().chain(&database.settings).map(|(name, value)| (name, value));
    // Limits are no settings of the session.
    let all = general.chain(of(0)).chain(of(database.oid)).filter(|(name, _)| !is_limit(name));
    all.filter_map(|(name, value)| settings.set(name, Some(value), false, identities).err()).collect()
}

/// Whether a role may choose a setting when it begins a session.
///
/// # Errors
/// 42501.
fn may_begin_with(role: &Role, name: &str) -> Result<()> {
    if find(name).is_some_and(Setting::is_for_superusers) && !role.superuser {
        return Err(SqlError::new("42501", format!("permission denied to set parameter \"{name}\"")));
    }
    Ok(())
}
