//! The server's configuration, for the statements, functions and views that show or change it.
//!
//! # Structure
//! The server implements [`Configuration`] over its files; an embedded database has none. [`Defaults`] are the settings that the server's
//! files and command line give to every session. Each version of the defaults has a number. Before a statement outside of a transaction
//! block, a session compares that number with the one it last used, and takes over the new defaults if they differ.
//!
//! # Invariants
//! - CNF-1: a reload changes only those settings of a session that neither SET nor the client's startup options have set.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::accepted_settings::default_of;
use super::settings::{Kept, Kind, Setting, Settings, all, find};
use clearway_base::sync::Mutex;
use clearway_syntax::error::Result;

/// A future that may move between threads.
pub type SendFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Names and values of settings.
pub type Pairs = Arc<Vec<(String, String)>>;

/// Where a session has a value from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// It was never set.
    #[default]
    Default,
    /// The server's files or command line.
    File,
    /// ALTER ROLE or ALTER DATABASE.
    Kept,
    /// The start of the connection.
    Client,
    /// SET.
    Session,
}

impl Source {
    /// `pg_settings.source`.
    pub fn name(self) -> &'static str {
        match self {
            Source::Default => "default",
            Source::File => "configuration file",
            Source::Kept => "user",
            Source::Client => "client",
            Source::Session => "session",
        }
    }

    fn is_the_servers(self) -> bool {
        matches!(self, Source::Default | Source::File)
    }
}

/// A setting of the server as `pg_settings` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its name.
    pub name: &'static str,
    /// The value in force.
    pub value: String,
    /// The value where nothing is configured.
    pub default: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether a reload changes it; else only a restart does.
    pub reloads: bool,
    /// Whether only superusers may see the value.
    pub private: bool,
    /// `pg_settings.source`.
    pub source: &'static str,
    /// The files say otherwise than what is in force, and a restart would make it so.
    pub pending_restart: bool,
}

/// A line of the access file as `pg_hba_file_rules` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleShown {
    /// Its line; none for the rules that hold without a file.
    pub line: Option<u32>,
    /// Type, databases, roles, address and mask, method, options; none: the line is no rule.
    pub rule: Option<RuleText>,
    /// What is wrong with the line.
    pub error: Option<String>,
}

/// The parts of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RuleText {
    pub kind: &'static str,
    pub databases: Vec<String>,
    pub users: Vec<String>,
    pub address: Option<String>,
    pub mask: Option<String>,
    pub method: &'static str,
    pub options: Option<&'static str>,
}

/// A line of a file of settings as `pg_file_settings` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSetting {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The setting's name.
    pub name: String,
    /// Its value there.
    pub value: String,
    /// Whether this line decides, and what it says is in force or would be after a reload.
    pub applied: bool,
    /// What is wrong with it.
    pub error: Option<String>,
}

/// What ALTER SYSTEM asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A value for a setting.
    Set(String, String),
    /// A setting as if ALTER SYSTEM had never set it.
    Reset(String),
    /// The same for all.
    ResetAll,
}

/// The configuration of a server.
pub trait Configuration: Send + Sync {
    /// The server's own settings, by name.
    fn settings(&self) -> Vec<Shown>;
    /// The file and the line that decide about a setting.
    fn place(&self, name: &str) -> Option<(String, u32)>;
    /// ALTER SYSTEM. The caller checks the right to do it.
    fn alter(&self, change: Change) -> SendFuture<'_, Result<()>>;
    /// Reads all files again and puts in force what a running server can change; false: there was a mistake, which the log has.
    fn reload(&self) -> SendFuture<'_, bool>;
    /// Looks at the files as they are now, for the two functions below.
    fn read_files(&self) -> SendFuture<'_, ()>;
    /// The access file as of the last look.
    fn rules(&self) -> Vec<RuleShown>;
    /// The lines of the files of settings as of the last look.
    fn file_settings(&self) -> Vec<FileSetting>;
    /// When the files were read last, in microseconds since 2000.
    fn loaded(&self) -> i64;
}

/// What every session of a server begins with.
pub struct Defaults {
    /// Changes with each change of the list.
    number: AtomicU64,
    list: Mutex<Pairs>,
}

impl fmt::Debug for Defaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Defaults")
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults { number: AtomicU64::new(0), list: Mutex::new("sql/defaults", Arc::default()) }
    }
}

impl Defaults {
    /// The number of the list that is in force.
    pub fn number(&self) -> u64 {
        // Acquire pairs with the Release in `change`: a session that sees a number finds its list.
        self.number.load(Ordering::Acquire)
    }

    /// The list.
    pub fn list(&self) -> Pairs {
        Arc::clone(&self.list.lock())
    }

    /// Puts another list in force.
    pub fn change(&self, list: Vec<(String, String)>) {
        *self.list.lock() = Arc::new(list);
        self.number.fetch_add(1, Ordering::Release);
    }
}

/// Whether every session has its own, which no file sets.
fn is_the_sessions(setting: &Setting) -> bool {
    let name = setting.name;
    matches!(setting.kind, Kind::Fixed)
        || super::limits::is_limit(name)
        || matches!(name, "role" | "session_authorization")
        || (name.starts_with("transaction_") && name != "transaction_timeout")
}

/// A setting of sessions that a file may set.
pub fn in_files(name: &str) -> Option<&'static Setting> {
    super::settings::find(name).filter(|setting| !is_the_sessions(setting))
}

/// Judges a value for a setting of sessions, as SET would.
///
/// # Errors
/// 22023, 0A000.
pub fn check(setting: &Setting, value: &str) -> Result<String> {
    Settings::default().normalized(setting, value)
}

impl Settings {
    /// What RESET goes back to changes; with `now` the value does, too.
    fn set_start(&mut self, setting: &Setting, value: Option<&str>, now: bool) -> Result<()> {
        let text = value.map_or_else(|| Ok(setting.default.to_owned()), |value| self.normalized(setting, value))?;
        let kept = Kept { text, identity: None, source: self.source };
        Arc::make_mut(&mut self.start).insert(setting.name.into(), kept.clone());
        if now && self.values.get(setting.name) != Some(&kept) {
            self.put(setting.name.into(), kept, false);
        }
        Ok(())
    }

    /// Where the value is from that RESET goes back to.
    fn start_source(&self, name: &str) -> Option<Source> {
        find(name).map(|_| self.start.get(name).map_or(Source::Default, |kept| kept.source))
    }

    /// Where a value is from.
    pub fn source_of(&self, name: &str) -> Source {
        self.values.get(name).map(|kept| kept.source).unwrap_or_default()
    }

    /// What RESET goes back to.
    pub fn start_of(&self, name: &str) -> &str {
        self.start.get(name).map_or_else(|| default_of(name), |kept| &kept.text)
    }

    /// Takes the server's list as it is now (CNF-1). To be called outside of a transaction.
    ///
    /// # Errors
    /// 22023 for a value that does not fit; the rest is not looked at.
    pub fn follow(&mut self, list: &[(String, String)]) -> Result<()> {
        let before = self.source;
        for setting in all().filter(|setting| !is_the_sessions(setting)) {
            let new = list.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(setting.name));
            let new = new.map(|(_, value)| value.as_str());
            let Some(start) = self.start_source(setting.name).filter(|source| source.is_the_servers()) else {
                continue;
            };
            if new.is_none() && start == Source::Default {
                continue;
            }
            let unchanged = self.source_of(setting.name).is_the_servers();
            self.source = if new.is_some() { Source::File } else { Source::Default };
            let followed = self.set_start(setting, new, unchanged);
            self.source = before;
            followed?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privileges::Identities;
    use clearway_engine::catalog::Catalog;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// CNF-1
    #[test]
    fn what_a_session_has_set_itself_stays() {
        let catalog = Catalog::default();
        let identities = Identities { catalog: &catalog, database: 0, login: 0 };
        let mut settings = Settings::default();
        settings.source = Source::Client;
        settings.set("extra_float_digits", Some("3"), false, &identities).expect("set");
        settings.keep_as_start();
        settings.source = Source::Session;
        settings.set("statement_timeout", Some("0"), false, &identities).expect("set");
        let first = [
            ("lock_timeout", "5s"),
            ("statement_timeout", "7s"),
            ("extra_float_digits", "2"),
            ("TIMEZONE", "Asia/Tokyo"),
        ];
        settings.follow(&pairs(&first)).expect("followed");
        assert_eq!((settings.get("lock_timeout"), settings.lock_timeout_ms), ("5s", 5_000));
        assert_eq!(settings.get("statement_timeout"), "0", "SET to what it was by default is SET all the same");
        assert_eq!(settings.get("extra_float_digits"), "3");
        assert_eq!(settings.get("TimeZone"), "Asia/Tokyo");
        assert_eq!(settings.source_of("lock_timeout"), Source::File);
        settings.set("statement_timeout", None, false, &identities).expect("reset");
        assert_eq!(settings.get("statement_timeout"), "7s", "RESET goes back to what the server says now");
        settings.follow(&pairs(&[("statement_timeout", "8s")])).expect("followed");
        assert_eq!((settings.get("lock_timeout"), settings.get("statement_timeout")), ("0", "8s"));
        assert_eq!(settings.source_of("lock_timeout"), Source::Default);
    }

    #[test]
    fn no_file_sets_what_is_the_sessions() {
        for name in ["role", "session_authorization", "transaction_isolation", "server_version", "nothing"] {
            assert!(in_files(name).is_none(), "{name}");
        }
        assert!(in_files("Lock_Timeout").is_some_and(|setting| check(setting, "x").is_err()));
    }
}
