//! Reads the settings from all their places. The order of precedence: the command line, what ALTER SYSTEM has set, the file of
//! `--config`, the default.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clearway_base::vfs::Vfs;
use clearway_sql::context::configuration as sessions;

use super::file::{self, AUTO_FILE};
use crate::config::{Config, SETTINGS, Sources};
use crate::door;

/// The place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file.
    Line(String, u32),
    /// The command line.
    CommandLine,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The name as it is written there; empty: the line has none.
    pub name: String,
    /// The value.
    pub value: String,
    /// What is wrong.
    pub error: Option<String>,
}

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// What they make; lines with a mistake are left out.
    pub config: Config,
    /// The lines of the files.
    pub entries: Vec<Entry>,
    /// By name, the value in force and its place.
    pub deciding: BTreeMap<&'static str, (String, Place)>,
}

impl Loaded {
    /// The first mistake, as a start tells it.
    pub fn mistake(&self) -> Option<String> {
        self.entries.iter().find_map(|entry| {
            let error = entry.error.as_ref()?;
            Some(format!("{}: line {}: {error}", entry.file, entry.line))
        })
    }
}

/// A setting by name, whichever layer it belongs to.
pub(super) fn known(name: &str) -> Option<&'static str> {
    let own = SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name)).map(|setting| setting.name);
    own.or_else(|| sessions::in_files(name).map(|setting| setting.name))
}

/// What is wrong with a value.
pub(super) fn mistake(name: &'static str, value: &str) -> Option<String> {
    match sessions::in_files(name) {
        Some(setting) => sessions::check(setting, value).err().map(|error| error.message().to_owned()),
        None => Config::default().set(name, value).err().map(|error| error.to_string()),
    }
}

/// Reads all places.
///
/// # Errors
/// A file can't be read, or the command line has a mistake.
pub async fn load(vfs: &Arc<dyn Vfs>, sources: &Sources) -> Result<Loaded, String> {
    let mut loaded = Loaded::default();
    if let Some(path) = &sources.file {
        let text = text(vfs, path).await?;
        loaded.take_file(path, &text, |_| false);
    }
    // A file can't name the place of the other file.
    let mut config = loaded.config.clone();
    for (name, value) in &sources.given {
        config.set(name, value).map_err(|error| error.to_string())?;
    }
    if !config.memory {
        let path = config.data.join(AUTO_FILE);
        match text(vfs, &path).await {
            Ok(text) => loaded.take_file(&path, &text, is_fixed),
            Err(_) if !exists(vfs, &config.data).await => {}
            Err(error) => return Err(error),
        }
    }
    for (name, value) in &sources.given {
        let known = known(name).ok_or_else(|| format!("unknown setting {name} ('clearway settings' lists all)"))?;
        if let Some(error) = mistake(known, value) {
            return Err(error);
        }
        loaded.take(known, value, Place::CommandLine);
    }
    loaded.config.sources = sources.clone();
    Ok(loaded)
}

/// Settings that name files and directories. Only superusers see them.
pub(super) const OF_FILES: &[&str] = &[
    "access_file",
    "archive",
    "data",
    "http_password_file",
    "http_queries",
    "log_directory",
    "tls_certificate",
    "tls_client_ca",
    "tls_key",
    "unix_socket_directory",
];

/// Whether ALTER SYSTEM has no say in it: a superuser of the database does not get to read and write files of the machine by naming them.
pub(super) fn is_fixed(name: &str) -> bool {
    name == "memory" || OF_FILES.contains(&name)
}

async fn exists(vfs: &Arc<dyn Vfs>, dir: &Path) -> bool {
    let entries = vfs.list(dir).await.unwrap_or_default();
    entries.iter().any(|entry| entry.name == AUTO_FILE)
}

async fn text(vfs: &Arc<dyn Vfs>, path: &Path) -> Result<String, String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = door::read(vfs, path, file::BYTES_MAX).await.map_err(|error| fail(&error))?;
    let bytes = bytes.ok_or_else(|| fail(&"it is too large for a file of settings"))?;
    String::from_utf8(bytes).map_err(|_| fail(&"not UTF-8"))
}

impl Loaded {
    fn take(&mut self, name: &'static str, value: &str, place: Place) {
        // `mistake` has tried it.
        let _taken = self.config.set(name, value);
        self.deciding.insert(name, (value.to_owned(), place));
    }

    fn take_file(&mut self, path: &Path, text: &str, refused: impl Fn(&str) -> bool) {
        let file = path.display().to_string();
        for (line, pair) in file::lines(text) {
            let (name, value) = pair.unwrap_or_default();
            let error = match known(name) {
                _ if name.is_empty() => {
                    let found = text.lines().nth(line as usize - 1).unwrap_or_default().trim();
                    Some(format!("expected name = value, found \"{found}\""))
                }
                None => Some(format!("unrecognized configuration parameter \"{name}\"")),
                Some(known) if refused(known) => Some(format!("parameter \"{known}\" cannot be changed here")),
                Some(known) => mistake(known, &value),
            };
            if let (None, Some(known)) = (&error, known(name)) {
                self.take(known, &value, Place::Line(file.clone(), line));
            }
            self.entries.push(Entry { file: file.clone(), line, name: name.to_owned(), value, error });
        }
    }
}
