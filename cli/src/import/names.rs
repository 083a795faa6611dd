//! Writes names and texts as SQL and messages need them.

use std::path::Path;

/// A name as SQL text.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL text.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A path for messages.
pub fn of(path: &Path) -> String {
    path.display().to_string()
}
