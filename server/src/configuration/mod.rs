//! The settings of a running server: read at the start, read again on SIGHUP and pg_reload_conf(), changed by ALTER SYSTEM.
//!
//! # Structure
//! `load` reads all places, `file` is the form of a file. [`Configured`] holds the settings in force and gives them to the views.
//!
//! # Invariants
//! - CFG-1: a reload puts in force every setting that a running server can change. If a line of a file has a mistake, it changes no
//!   setting.
//! - CFG-2: reloads and ALTER SYSTEM run one after the other.
//!
//! # Crash safety
//! ALTER SYSTEM writes a new file beside the old one, syncs it, and renames it: a crash leaves the old file or the new one.

pub(crate) mod file;
mod load;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use clearway_base::memory;
use clearway_base::sync::{Mutex, sleep};
use clearway_base::vfs::Vfs;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_engine::db::Db;
use clearway_sql::SqlError;
use clearway_sql::context::configuration::{
    Change, Configuration, FileSetting, RuleShown, RuleText, SendFuture, Shown,
};
use clearway_sql::context::core::now;
use clearway_sql::context::log_line::Severity;

use crate::access::{self, Network, Rule, Rules};
use crate::config::{Config, SETTINGS};
use crate::database::Database;
use crate::door::{self, Door};
use crate::log::Log;
use crate::server::Server;

pub use file::AUTO_FILE;
pub use load::{Entry, Loaded, Place, load};

/// What a running server has that a reload changes.
struct Running {
    server: Weak<Server<Database>>,
    db: Weak<Db>,
    log: Log,
}

struct State {
    /// What is in force: the values of the start, and those that a reload has changed since.
    in_force: Loaded,
    /// The same files as they were at the last look or reload.
    seen: Loaded,
    /// Settings that wait for a restart, as of the last reload.
    pending: Vec<&'static str>,
    /// The lines of the access file at the last look.
    rules: Vec<RuleShown>,
    loaded: i64,
}

/// The configuration of a server.
pub struct Configured {
    vfs: Arc<dyn Vfs>,
    state: Mutex<State>,
    running: OnceLock<Running>,
    busy: AtomicBool,
}

/// Only one at a time changes anything (CFG-2).
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What every session begins with, and what the server may have in bytes.
pub fn session_defaults(config: &Config) -> (Vec<(String, String)>, u64) {
    let (server_bytes, statement_bytes) = config.memory(memory::granted_bytes());
    let mut settings = vec![("statement_memory".to_owned(), format!("{}kB", statement_bytes >> 10))];
    settings.extend(config.settings.iter().cloned());
    (settings, server_bytes)
}

impl Configured {
    /// The configuration of a server that starts with `config`; its files are in `vfs`, also where the data is in memory.
    ///
    /// # Errors
    /// A place of settings can't be read, or has a mistake.
    pub async fn new(config: &Config, vfs: Arc<dyn Vfs>) -> Result<Arc<Configured>, String> {
        let mut loaded = load(&vfs, &config.sources).await?;
        if let Some(mistake) = loaded.mistake() {
            return Err(mistake);
        }
        // A program that starts a server has no command line: what it says is what holds.
        loaded.config = config.clone();
        let (pending, rules) = (Vec::new(), Vec::new());
        let state = State { in_force: loaded.clone(), seen: loaded, pending, rules, loaded: now() };
        let (running, busy) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Arc::new(Configured { vfs, state: Mutex::new("server/configuration", state), running, busy }))
    }

    /// What reloads change from now on.
    pub fn attach(&self, server: &Arc<Server<Database>>, db: &Arc<Db>, log: &Log) {
        let running = Running { server: Arc::downgrade(server), db: Arc::downgrade(db), log: log.clone() };
        let _ = self.running.set(running);
    }

    async fn turn(&self) -> Turn<'_> {
        while self.busy.swap(true, Ordering::Acquire) {
            in_wait(WaitEvent::RetryDelay, Object::NONE, sleep(Duration::from_millis(2))).await;
        }
        Turn(&self.busy)
    }

    fn sources(&self) -> crate::config::Sources {
        self.state.lock().in_force.config.sources.clone()
    }

    fn say(&self, severity: Severity, text: impl Into<String>) {
        if let Some(running) = self.running.get() {
            running.log.say(severity, text);
        }
    }

    async fn read_again(&self) -> bool {
        let _turn = self.turn().await;
        self.say(Severity::Log, "reloading the settings, the access file and certificates");
        let read = load(&self.vfs, &self.sources()).await;
        let loaded = match read {
            Ok(loaded) => loaded,
            Err(error) => {
                self.say(Severity::Log, format!("{error}; no changes were applied"));
                return false;
            }
        };
        let mut well = true;
        for entry in &loaded.entries {
            if let Some(error) = &entry.error {
                well = false;
                self.say(Severity::Log, format!("{}: line {}: {error}", entry.file, entry.line));
            }
        }
        if !well {
            self.state.lock().seen = loaded;
            self.say(Severity::Log, "the settings contain errors; no changes were applied"); // CFG-1
            return false;
        }
        let mut config = self.state.lock().in_force.config.clone();
        config.take_reloadable(&loaded.config);
        let well = self.put_in_force(&config).await;
        for name in self.keep(loaded, config) {
            self.say(Severity::Log, format!("parameter \"{name}\" cannot be changed without restarting the server"));
        }
        well
    }

    /// Notes what is in force now; the settings that wait for a restart.
    fn keep(&self, loaded: Loaded, config: Config) -> Vec<&'static str> {
        let mut state = self.state.lock();
        let mut pending = Vec::new();
        state.in_force.config = config;
        let restarts = |name: &str| SETTINGS.iter().any(|setting| setting.name == name && !setting.reloads);
        let (new, old) = (&loaded.deciding, &mut state.in_force.deciding);
        old.retain(|name, _| restarts(name) || new.contains_key(name));
        for (name, decided) in new {
            if !restarts(name) {
                old.insert(name, decided.clone());
            }
        }
        for setting in SETTINGS.iter().filter(|setting| !setting.reloads) {
            let value = |all: &Loaded| all.deciding.get(setting.name).map(|(value, _)| value.clone());
            if value(&loaded) != value(&state.in_force) {
                pending.push(setting.name);
            }
        }
        state.seen = loaded;
        state.loaded = now();
        state.pending.clone_from(&pending);
        pending
    }

    async fn put_in_force(&self, config: &Config) -> bool {
        let Some(running) = self.running.get() else { return false };
        let (Some(server), Some(db)) = (running.server.upgrade(), running.db.upgrade()) else { return false };
        let before = server.door();
        let (door, errors) = Door::read(config, &self.vfs, Some(&before)).await;
        for error in &errors {
            running.log.say(Severity::Log, format!("{error}; what was in force before stays in force"));
        }
        server.change_door(door);
        running.log.configure(config.log.clone());
        let min_ns = u64::try_from(config.lock_history_min.as_nanos()).unwrap_or(u64::MAX);
        db.transactions().locks().history().remember_from(min_ns);
        server.backends.recorded.run(config.recorders);
        server.backends.defaults.change(session_defaults(config).0);
        errors.is_empty()
    }

    async fn alter_file(&self, change: Change) -> Result<(), SqlError> {
        let _turn = self.turn().await;
        let config = self.state.lock().in_force.config.clone();
        if config.memory {
            let error = SqlError::unsupported("ALTER SYSTEM on a server that keeps everything in memory");
            return Err(error.hint("There is no directory for the file that it writes."));
        }
        let mut pairs = match change {
            Change::ResetAll => Vec::new(),
            _ => self.own_pairs(&config).await?,
        };
        match change {
            Change::Set(name, value) => {
                let name = alterable(&name)?;
                if load::mistake(name, &value).is_some() {
                    let text = format!("invalid value for parameter \"{name}\": \"{value}\"");
                    return Err(SqlError::new("22023", text));
                }
                pairs.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                pairs.push((name.to_owned(), value));
            }
            Change::Reset(name) => {
                let name = alterable(&name)?;
                pairs.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            }
            Change::ResetAll => {}
        }
        file::write(&self.vfs, &config.data, &pairs).await.map_err(disk)
    }

    /// What ALTER SYSTEM has set so far.
    async fn own_pairs(&self, config: &Config) -> Result<Vec<(String, String)>, SqlError> {
        let path = config.data.join(AUTO_FILE);
        let bytes = match door::read(&self.vfs, &path, file::BYTES_MAX).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(disk)?,
        };
        let damaged = || {
            let text = format!("could not parse contents of file \"{AUTO_FILE}\"");
            SqlError::new("F0000", text).hint("Correct the line that is no setting, or use ALTER SYSTEM RESET ALL.")
        };
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(damaged)?;
        let pair = |(_, pair): file::Line<'_>| pair.map(|(name, value)| (name.to_owned(), value));
        file::lines(&text).map(pair).collect::<Option<Vec<_>>>().ok_or_else(damaged)
    }

    async fn read_files_for_views(&self) {
        let seen = load(&self.vfs, &self.sources()).await;
        let config = self.state.lock().in_force.config.clone();
        let rules = match &config.access_file {
            None => {
                let rules = Rules::without_a_file(config.listen.proves_passwords_everywhere());
                rules.0.iter().map(shown_rule).collect()
            }
            Some(path) => match door::text(&self.vfs, path).await {
                Ok(text) => access::read(&text).into_iter().map(shown_line).collect(),
                Err(error) => vec![RuleShown { error: Some(error.to_string()), ..RuleShown::default() }],
            },
        };
        let mut state = self.state.lock();
        state.rules = rules;
        if let Ok(seen) = seen {
            state.seen = seen;
        }
    }
}

fn disk(error: clearway_base::vfs::VfsError) -> SqlError {
    SqlError::new("58030", format!("could not write \"{AUTO_FILE}\": {error}"))
}

fn alterable(name: &str) -> Result<&'static str, SqlError> {
    let known = load::known(name);
    let known =
        known.ok_or_else(|| SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\"")))?;
    if load::is_fixed(known) {
        let error = SqlError::new("55P02", format!("parameter \"{known}\" cannot be changed"));
        return Err(error.hint("It is set on the command line or in the file of --config."));
    }
    Ok(known)
}

fn shown_line(line: access::Line) -> RuleShown {
    match line.rule {
        Ok(rule) => shown_rule(&rule),
        Err(error) => RuleShown { line: Some(line.number), rule: None, error: Some(error) },
    }
}

fn shown_rule(rule: &Rule) -> RuleShown {
    let (address, mask) = match (rule.kind, rule.network) {
        (access::Kind::Local, _) => (None, None),
        (_, None) => (Some("all".to_owned()), None),
        (_, Some(network)) => (Some(network.address().to_string()), Some(Network::mask(&network).to_string())),
    };
    let words = |words: &[access::Word]| words.iter().map(access::Word::shown).collect();
    let text = RuleText {
        kind: rule.kind.name(),
        databases: words(&rule.databases),
        users: words(&rule.users),
        address,
        mask,
        method: rule.method.name(),
        options: rule.options(),
    };
    RuleShown { line: Some(rule.line).filter(|line| *line > 0), rule: Some(text), error: None }
}

impl Configuration for Configured {
    fn settings(&self) -> Vec<Shown> {
        let state = self.state.lock();
        let shown = SETTINGS.iter().map(|setting| {
            let decided = state.in_force.deciding.get(setting.name);
            Shown {
                name: setting.name,
                value: decided.map_or(setting.default, |(value, _)| value).to_owned(),
                default: setting.default,
                about: setting.about,
                reloads: setting.reloads,
                private: load::OF_FILES.contains(&setting.name),
                source: match decided.map(|(_, place)| place) {
                    None => "default",
                    Some(Place::Line(..)) => "configuration file",
                    Some(Place::CommandLine) => "command line",
                },
                pending_restart: state.pending.contains(&setting.name),
            }
        });
        let mut shown: Vec<Shown> = shown.collect();
        shown.sort_by_key(|setting| setting.name);
        shown
    }

    fn place(&self, name: &str) -> Option<(String, u32)> {
        match self.state.lock().in_force.deciding.get(name)? {
            (_, Place::Line(file, line)) => Some((file.clone(), *line)),
            (_, Place::CommandLine) => None,
        }
    }

    fn alter(&self, change: Change) -> SendFuture<'_, Result<(), SqlError>> {
        Box::pin(self.alter_file(change))
    }

    fn reload(&self) -> SendFuture<'_, bool> {
        Box::pin(self.read_again())
    }

    fn read_files(&self) -> SendFuture<'_, ()> {
        Box::pin(self.read_files_for_views())
    }

    fn rules(&self) -> Vec<RuleShown> {
        self.state.lock().rules.clone()
    }

    fn file_settings(&self) -> Vec<FileSetting> {
        let state = self.state.lock();
        let rows = state.seen.entries.iter().map(|entry| {
            let known = load::known(&entry.name);
            let place = Place::Line(entry.file.clone(), entry.line);
            let decides =
                known.and_then(|name| state.seen.deciding.get(name)).is_some_and(|(_, decides)| *decides == place);
            let restarts = known.is_some_and(|name| SETTINGS.iter().any(|s| s.name == name && !s.reloads));
            let in_force = known.and_then(|name| state.in_force.deciding.get(name)).map(|(value, _)| value);
            let waits = decides && restarts && in_force != Some(&entry.value);
            FileSetting {
                file: entry.file.clone(),
                line: entry.line,
                name: entry.name.clone(),
                value: entry.value.clone(),
                applied: decides && !waits,
                error: entry.error.clone().or_else(|| waits.then(|| "setting could not be applied".to_owned())),
            }
        });
        rows.collect()
    }

    fn loaded(&self) -> i64 {
        self.state.lock().loaded
    }
}
