//! Custom settings (PostgreSQL: customized options): names of two or more parts that users choose, with values that the server does not
//! interpret. Row-level security policies read them (`current_setting('app.tenant')`).

use clearway_syntax::error::{Result, SqlError, code};

/// How many a session may have.
pub(super) const MAX: usize = 1_000;

pub(super) fn unknown(name: &str) -> SqlError {
    SqlError::new(code::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

/// Whether a name can be made up.
///
/// # Errors
/// 42704 for a name of one part, which only a setting of the server has; 42602 for what is no name.
pub(super) fn check(name: &str) -> Result<()> {
    if !name.contains('.') {
        return Err(unknown(name));
    }
    let part = |part: &str| {
        let mut chars = part.chars();
        let first = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
        first && part.len() < 64 && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
    };
    if name.len() < 256 && name.split('.').all(part) {
        return Ok(());
    }
    let message = format!("invalid configuration parameter name \"{name}\"");
    let detail = "Custom parameter names must be two or more simple identifiers separated by dots.";
    Err(SqlError::new("42602", message).detail(detail))
}

/// A session has as many as it may have.
pub(super) fn too_many() -> SqlError {
    SqlError::new("54000", format!("a session can have at most {MAX} settings that are made up"))
}
