//! The history of typed statements, kept between runs in a file that only its owner may read.

use std::path::{Path, PathBuf};

use clearway_base::sync::block_on;
use clearway_base::vfs::{RealVfs, Vfs as _};
use rustyline::history::DefaultHistory;
use rustyline::{Editor, Helper};

/// How many statements are kept.
pub const ENTRIES_MAX: usize = 2_000;

/// Where they are kept; none: nothing is.
pub struct Kept {
    file: Option<PathBuf>,
}

impl Kept {
    /// Reads the statements of earlier runs.
    pub fn load<H: Helper>(editor: &mut Editor<H, DefaultHistory>) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
        let Some(directory) = state.map(|state| state.join("clearway")) else { return Self { file: None } };
        if let Err(error) = make(&directory) {
            eprintln!("WARNING:  statements are not kept: {}: {error}", directory.display());
            return Self { file: None };
        }
        let file = directory.join("sql_history");
        // There is none before the first run.
        let _ = editor.load_history(&file);
        Self { file: Some(file) }
    }

    /// Takes a statement, or a command of the shell. One that begins with a blank, or that holds a password, is not kept.
    pub fn add<H: Helper>(&mut self, editor: &mut Editor<H, DefaultHistory>, text: &str) {
        if holds_password(text) || !editor.add_history_entry(text.trim_end()).unwrap_or(false) {
            return;
        }
        if let Some(file) = &self.file
            && let Err(error) = editor.append_history(file)
        {
            eprintln!("WARNING:  statements are not kept: {}: {error}", file.display());
            self.file = None;
        }
    }
}

/// Makes a directory and those above it.
fn make(directory: &Path) -> Result<(), String> {
    let vfs = RealVfs::inline();
    for path in directory.ancestors().collect::<Vec<_>>().into_iter().rev().filter(|path| !path.as_os_str().is_empty())
    {
        match block_on(vfs.create_dir(path)) {
            Ok(()) => {}
            // Above it there may be directories that allow nothing to be made, and are there.
            Err(_) if block_on(vfs.mode(path)).is_ok() => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// `PASSWORD '...'`, as in CREATE ROLE.
fn holds_password(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.match_indices("password").any(|(at, word)| {
        let rest = lower[at + word.len()..].trim_start();
        let rest = rest.strip_prefix(['=', 'e']).unwrap_or(rest).trim_start();
        rest.starts_with(['\'', '$'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_seen() {
        for text in ["create role a PASSWORD 'x'", "alter user a password\n E'x'", "select 1; set password = 'x'"] {
            assert!(holds_password(text), "{text}");
        }
        assert!(!holds_password("alter role a password null") && !holds_password("select password from t"));
    }
}
