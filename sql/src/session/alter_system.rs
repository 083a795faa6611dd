//! ALTER SYSTEM: settings for all sessions and for the server, kept in a file beside the data.

use super::session::Session;
use crate::context::configuration::{Change, check, in_files};
use crate::context::errors::in_block;
use crate::context::privileges::Judge;
use crate::context::set_value::set_value;
use crate::context::settings::find;
use crate::error::{Result, SqlError, code};
use crate::syntax::stmt::SetVariable;

/// Runs it; the command tag. What it sets holds after a reload, or after a restart where only that changes the setting.
///
/// # Errors
/// 25001 in a block, 42501 for a role that is no superuser, 42704 for an unknown setting, 22023 for a value that does not fit, 55P02 for a
/// setting that no file sets, 0A000 where there is no server; those of the disk.
pub(super) async fn alter_system(session: &Session, set: &SetVariable) -> Result<&'static str> {
    if session.shares_transaction() {
        return Err(in_block("ALTER SYSTEM"));
    }
    let core = &session.core;
    let (name, resets_all) = (&set.name, set.resets_all());
    if !Judge::of(core, &core.catalog()).is_superuser() {
        let message = match resets_all {
            true => "permission denied to perform ALTER SYSTEM RESET ALL".to_owned(),
            false => format!("permission denied to set parameter \"{name}\""),
        };
        return Err(SqlError::new("42501", message));
    }
    let Some(configuration) = core.backends.configuration() else {
        return Err(SqlError::unsupported("ALTER SYSTEM in a database without a server"));
    };
    let change = match (set_value(set), find(name)) {
        _ if resets_all => Change::ResetAll,
        (_, Some(setting)) if in_files(name).is_none() => {
            return Err(SqlError::new("55P02", format!("parameter \"{}\" cannot be changed", setting.name)));
        }
        (Some(value), Some(setting)) => {
            check(setting, &value)?;
            Change::Set(setting.name.to_owned(), value)
        }
        (Some(value), None) => Change::Set(name.clone(), value),
        (None, setting) => Change::Reset(setting.map_or(name.clone(), |setting| setting.name.to_owned())),
    };
    if let Change::Set(_, value) = &change
        && value.contains(['\n', '\r'])
    {
        let message = "parameter value for ALTER SYSTEM must not contain a newline";
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    configuration.alter(change).await?;
    Ok("ALTER SYSTEM")
}
