//! The options of `clearway serve`, from the command line or a file of `name = value` lines.
//!
//! # Errors
//! Every unknown name and every invalid value is an error with its line: nothing is ignored.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clearway_base::memory::HugePages;
use clearway_sql::context::recorded::Recorders;
use clearway_storage::store::RECOVERY_TARGET;

use crate::configuration::file;
use crate::http::HttpConfig;
use crate::log::{Form, LogConfig};
use crate::options::ListenOptions;

/// Everything that a server is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The data directory.
    pub data: PathBuf,
    /// Keep everything in memory; the directory is not touched.
    pub memory: bool,
    /// Sockets and limits.
    pub listen: ListenOptions,
    /// The certificate chain, PEM.
    pub tls_certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub tls_key: Option<PathBuf>,
    /// Authorities that sign clients' certificates, PEM.
    pub tls_client_ca: Option<PathBuf>,
    /// Who may connect; none: by the options.
    pub access_file: Option<PathBuf>,
    /// Bytes of the page cache.
    pub cache_bytes: usize,
    /// Whether the page cache lies in huge pages.
    pub huge_pages: HugePages,
    /// How long opening may take after a crash: checkpoints come as often as that asks for.
    pub recovery_target: Duration,
    /// Bytes of memory for undo; what is beyond goes to a file.
    pub undo_bytes: u64,
    /// Bytes that the whole server may have; 0: three quarters of what the system grants.
    pub server_bytes: u64,
    /// The server's log.
    pub log: LogConfig,
    /// Shorter waits for locks are not remembered.
    pub lock_history_min: Duration,
    /// What is recorded all the time.
    pub recorders: Recorders,
    /// Threads that run sessions; 0: as many as there are processors, at least two.
    pub workers: usize,
    /// Where the log is archived, and how.
    pub archive: ArchiveConfig,
    /// The console.
    pub http: HttpConfig,
    /// Settings that sessions begin with.
    pub settings: Vec<(String, String)>,
    /// Where all that was read from, to be read again.
    pub sources: Sources,
}

/// Where settings are read from, beside the file that ALTER SYSTEM writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The file of `--config`.
    pub file: Option<PathBuf>,
    /// The command line's names and values.
    pub given: Vec<(String, String)>,
}

/// Where the log is archived, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveConfig {
    /// The directory, or the address of an object store.
    pub target: Option<String>,
    /// Commits with `synchronous_commit = archive` wait for it.
    pub sync: bool,
    /// Log is not older than this before it is sent.
    pub timeout: Duration,
    /// The archive may be so far behind, in bytes; 0: as far as the disk allows.
    pub max_lag: u64,
    /// What counts beyond that: the archive, for which the log is held, or the disk.
    pub holds: bool,
}

impl Default for ArchiveConfig {
    fn default() -> Self {
        Self { target: None, sync: false, timeout: Duration::from_secs(10), max_lag: 0, holds: true }
    }
}

impl ArchiveConfig {
    /// Whether the settings fit together: log for which commits wait is not let go.
    ///
    /// # Errors
    /// They don't.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.sync && (self.target.is_none() || self.limit_bytes() < u64::MAX) {
            true => Err(ConfigError::Sync),
            false => Ok(()),
        }
    }

    /// The log that may be held for the archive, in bytes.
    pub fn limit_bytes(&self) -> u64 {
        if self.holds || self.max_lag == 0 { u64::MAX } else { self.max_lag }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: PathBuf::from("clearway-data"),
            memory: false,
            listen: ListenOptions::default(),
            tls_certificate: None,
            tls_key: None,
            tls_client_ca: None,
            access_file: None,
            cache_bytes: 256 << 20,
            huge_pages: HugePages::Try,
            recovery_target: RECOVERY_TARGET,
            undo_bytes: clearway_engine::db::UNDO_BYTES,
            server_bytes: 0,
            log: LogConfig::default(),
            lock_history_min: Duration::from_millis(1),
            recorders: Recorders::default(),
            workers: 0,
            archive: ArchiveConfig::default(),
            http: HttpConfig::default(),
            settings: Vec::new(),
            sources: Sources::default(),
        }
    }
}

/// What a statement may have at least, unless it is configured.
const STATEMENT_BYTES_MIN: u64 = 16 << 20;

/// A setting of the server, for the page `docs/configuration.md`, which is made from these.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// The name in a file and after `-c`.
    pub name: &'static str,
    /// The value at the start; empty: none.
    pub default: &'static str,
    /// What it may be.
    pub values: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether a running server takes a change when it reads its files again; else it is read at the start.
    pub reloads: bool,
}

const fn d(name: &'static str, default: &'static str, values: &'static str, about: &'static str) -> Described {
    Described { name, default, values, about, reloads: false }
}

const fn r(name: &'static str, default: &'static str, values: &'static str, about: &'static str) -> Described {
    Described { name, default, values, about, reloads: true }
}

/// The path; none where nothing is written.
fn path(value: &str) -> Option<PathBuf> {
    (!value.is_empty()).then(|| PathBuf::from(value))
}

/// Every setting of the server.
#[rustfmt::skip]
pub static SETTINGS: &[Described] = &[
    d("data", "clearway-data", "a directory", "The data directory; made if it does not exist (`--data`)."),
    d("memory", "off", "on, off", "Nothing is written to disk, and all is lost at the end (`--memory`)."),
    d("listen", "127.0.0.1:5433", "ADDRESS:PORT, more with commas", "Where to listen; port 0 takes a free one, which is printed (`--listen`)."),
    d("unix_socket_directory", "", "a directory", "Also listen at `DIR/.s.PGSQL.PORT` (`--unix-socket-directory`)."),
    d("max_connections", "5000", "a number", "Sessions at once."),
    d("superuser_reserved_connections", "3", "a number", "Sessions beyond that for superusers."),
    d("max_message_size", "64MB", "bytes, kB, MB or GB", "The largest message that a client may send: a query, the parameters of one Bind, a piece of COPY data. A larger one ends the connection with 08P01, which names this setting; values of up to 1 GiB need as much here."),
    r("authentication_timeout", "60s", "seconds", "How long a client may take from the connection to the session."),
    r("password_on_loopback", "off", "on, off", "Clients on this machine prove a password as well."),
    r("allow_plaintext_beyond_loopback", "off", "on, off", "Other machines may do without TLS."),
    r("tls_certificate", "", "a PEM file", "The certificate chain; with `tls_key` it switches TLS on."),
    r("tls_key", "", "a PEM file", "The certificate's key."),
    r("tls_client_ca", "", "a PEM file", "Authorities that sign clients' certificates; with it clients are asked for one, which the access file can require."),
    r("access_file", "", "a file", "Who may connect, in lines as in `pg_hba.conf` (docs/serving.md); without it clients on this machine are trusted and all others prove a password."),
    r("connections_per_address", "0", "a number", "Connections at once from one address beyond this machine, or from 2^64 addresses of IPv6 that begin alike; 0 is nine tenths of `max_connections`."),
    d("cache_size", "256MB", "bytes, kB, MB or GB", "The page cache."),
    d("huge_pages", "try", "try, on, off", "Whether the page cache, from 128 MB on, lies in huge pages of 2 MB (Linux's transparent huge pages). With `try` the system is asked and may refuse; with `on` the server does not start where the system never gives them."),
    d("recovery_target", "10s", "seconds, 1 to 3600", "How long opening may take after a crash; checkpoints come as often as that asks for."),
    d("undo_memory", "256MB", "bytes, kB, MB or GB", "Old versions of rows; beyond it they go to the file `undo.spill`, and who holds most of them is named in the log and in `clearway_undo_alarms`."),
    d("server_memory", "0", "bytes, kB, MB or GB", "What the whole server may have, the page cache and old versions included; past it statements with more than 4 MB are refused (53200). 0 is three quarters of the least of the machine's memory, the limits of its control groups and two thirds of RLIMIT_AS."),
    d("archive", "", "a directory, s3://, gs:// or az://", "Where the log is archived, beside the backups that `clearway backup` puts there (docs/backup.md)."),
    d("archive_mode", "async", "async, sync", "Commits never wait for the archive; or those with `synchronous_commit = archive` do, and the log is sent as soon as one waits."),
    d("archive_timeout", "10s", "seconds, 1 to 86400", "Log is sent when a segment is full, and no later than this."),
    d("archive_max_lag", "0", "bytes, kB, MB or GB", "How far the archive may be behind; 0 is as far as the disk allows."),
    d("archive_on_lag", "hold", "hold, break", "Beyond `archive_max_lag`: hold the log and say so, or let it go; then the archive has a hole, and a new backup is needed."),
    r("lock_history_min", "1ms", "us, ms or s", "Shorter waits for locks are not remembered in `clearway_lock_waits`."),
    r("recorders", "statements,sessions,time", "statements, sessions, time, latches, more with commas; or none", "What is recorded: statements by digest (`pg_stat_statements`), what each active session does once a second (`clearway_session_history`), processor time and elapsed time (`clearway_time`), who holds a latch, since when and taken where (`clearway_latches`; each latch that is taken then costs some 15 ns more). What is left out shows no figures. Waits are switched by `performance_schema_instrument`, the history of lock waits by `lock_history_min`."),
    r("log_destination", "stderr", "stderr, csvlog, jsonlog, slowlog, more with commas", "The forms of the server's log: text, PostgreSQL's CSV, PostgreSQL's JSON; slow statements alone as MySQL's slow query log, which pt-query-digest reads."),
    r("log_directory", "", "a directory", "The log goes to `clearway.log`, `clearway.csv`, `clearway.json` and `clearway-slow.log` there instead of standard error."),
    r("log_rotation_size", "10MB", "bytes, kB, MB or GB", "A file of the log that is full becomes `.1`, that `.2`, and so on."),
    r("log_file_count", "10", "a number", "So many files of each form are kept."),
    r("log_line_prefix", "%m [%p] ", "text with PostgreSQL's escapes", "What each line of the text form begins with."),
    r("log_min_messages", "warning", "warning, error, log, fatal", "What is less than this is not logged; `error` and below log the statements that fail."),
    r("log_lock_waits", "on", "on, off", "Waits for locks of a second or more are logged, with the statement that took the lock, and so is their end."),
    r("log_connections", "off", "on, off", "Sessions are logged when they begin."),
    r("log_disconnections", "off", "on, off", "Sessions are logged when they end, with how long they were."),
    d("performance_schema_instrument", "", "PATTERN=ON, COUNTED or OFF", "Switches wait events at the start, by their names in performance_schema; `%` stands for anything."),
    d("http", "", "ADDRESS:PORT", "Where the console and `/metrics` are, on this machine; empty: nowhere (`--http`, docs/console.md)."),
    d("http_role", "postgres", "a role", "The role with which the console samples the sessions; visitors of the page log in with their own."),
    d("http_password_file", "", "a file", "The password of `http_role`, where the server asks for one; only its owner may read the file."),
    d("http_queries", "", "a YAML file", "Queries whose results become metrics, as the exporters for Prometheus read them."),
    d("http_queries_interval", "60s", "seconds, 1 to 86400", "How often they run."),
    d("workers", "0", "a number", "Threads that run sessions; 0 is one per processor, at least two."),
];

/// A setting that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The value does not fit.
    #[error("invalid value for {name}: \"{value}\" ({wanted})")]
    Value {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A line of a file without a name and a value.
    #[error("line {line}: expected name = value, found \"{text}\"")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A line of a file whose value does not fit.
    #[error("line {line}: {error}")]
    At {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        error: Box<ConfigError>,
    },
    /// One of certificate and key is missing.
    #[error("tls_certificate and tls_key belong together")]
    HalfTls,
    /// Commits would wait for what never comes.
    #[error("archive_mode = sync needs an archive, and archive_on_lag = hold")]
    Sync,
}

impl Config {
    /// Takes one setting; an unknown name is taken for a setting of sessions.
    ///
    /// # Errors
    /// The value does not fit.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let bad = |wanted| ConfigError::Value { name: name.to_owned(), value: value.to_owned(), wanted };
        let number = || value.parse::<usize>().map_err(|_| bad("a number"));
        match name {
            "data" => self.data = PathBuf::from(value),
            "memory" => self.memory = boolean(value).ok_or_else(|| bad("on or off"))?,
            "listen" => {
                self.listen.addresses = addresses(value).ok_or_else(|| bad("ADDRESS:PORT, more with commas"))?
            }
            "unix_socket_directory" => self.listen.unix_directory = path(value),
            "max_connections" => self.listen.max_connections = number()?,
            "superuser_reserved_connections" => self.listen.superuser_connections = number()?,
            "max_message_size" => self.listen.message_bytes = bytes(value).ok_or_else(|| bad("bytes, kB, MB or GB"))?,
            "authentication_timeout" => {
                let seconds = value.strip_suffix('s').unwrap_or(value).parse::<u64>().ok().filter(|&s| s > 0);
                self.listen.authentication_timeout = Duration::from_secs(seconds.ok_or_else(|| bad("seconds"))?);
            }
            "password_on_loopback" => {
                self.listen.password_on_loopback = boolean(value).ok_or_else(|| bad("on or off"))?;
            }
            "allow_plaintext_beyond_loopback" => {
                self.listen.allow_plaintext_beyond_loopback = boolean(value).ok_or_else(|| bad("on or off"))?;
            }
            "performance_schema_instrument" => instruments(value).map_err(bad)?,
            "tls_certificate" => self.tls_certificate = Some(PathBuf::from(value)),
            "tls_key" => self.tls_key = Some(PathBuf::from(value)),
            "tls_client_ca" => self.tls_client_ca = Some(PathBuf::from(value)),
            "access_file" => self.access_file = path(value),
            "connections_per_address" => self.listen.connections_per_address = number()?,
            "cache_size" => self.cache_bytes = bytes(value).ok_or_else(|| bad("bytes, kB, MB or GB"))?,
            "huge_pages" => self.huge_pages = HugePages::named(value).ok_or_else(|| bad("try, on or off"))?,
            "recovery_target" => {
                let seconds = value.strip_suffix('s').unwrap_or(value).parse::<u64>().ok();
                let seconds = seconds.filter(|s| (1..=3600).contains(s)).ok_or_else(|| bad("seconds, 1 to 3600"))?;
                self.recovery_target = Duration::from_secs(seconds);
            }
            "undo_memory" => self.undo_bytes = bytes(value).ok_or_else(|| bad("bytes, kB, MB or GB"))? as u64,
            "server_memory" => self.server_bytes = bytes(value).ok_or_else(|| bad("bytes, kB, MB or GB"))? as u64,
            "log_destination" | "log_directory" | "log_rotation_size" | "log_file_count" | "log_line_prefix"
            | "log_min_messages" | "log_lock_waits" | "log_connections" | "log_disconnections" => {
                set_log(&mut self.log, name, value).map_err(bad)?;
            }
            "http" | "http_role" | "http_password_file" | "http_queries" | "http_queries_interval" => {
                self.http.set(name, value).map_err(bad)?;
            }
            "lock_history_min" => self.lock_history_min = short_time(value).ok_or_else(|| bad("us, ms or s"))?,
            "recorders" => {
                self.recorders = Recorders::named(value).ok_or_else(|| bad("names of recorders, or none"))?
            }
            "workers" => self.workers = number()?,
            "archive" => self.archive.target = Some(value.to_owned()).filter(|target| !target.is_empty()),
            "archive_mode" => {
                self.archive.sync = is_second(value, ["async", "sync"]).ok_or_else(|| bad("async or sync"))?;
            }
            "archive_timeout" => {
                let seconds = value.strip_suffix('s').unwrap_or(value).parse::<u64>().ok();
                let seconds = seconds.filter(|s| (1..=86_400).contains(s)).ok_or_else(|| bad("seconds, 1 to 86400"))?;
                self.archive.timeout = Duration::from_secs(seconds);
            }
            "archive_max_lag" => {
                self.archive.max_lag = bytes(value).ok_or_else(|| bad("bytes, kB, MB or GB"))? as u64;
            }
            "archive_on_lag" => {
                self.archive.holds = is_second(value, ["break", "hold"]).ok_or_else(|| bad("hold or break"))?;
            }
            _ => self.settings.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    /// What the server and one statement may have in bytes: as configured, else by what the system grants. A statement gets half of
    /// what page cache and old versions leave.
    pub fn memory(&self, granted_bytes: u64) -> (u64, u64) {
        let server = if self.server_bytes > 0 { self.server_bytes } else { granted_bytes / 4 * 3 };
        let taken = self.undo_bytes.saturating_add(self.cache_bytes as u64);
        (server, (server.saturating_sub(taken) / 2).max(STATEMENT_BYTES_MIN))
    }

    /// Takes the lines of a file: `name = value`, comments after `#`, values optionally in single quotes.
    ///
    /// # Errors
    /// The first line that can't be used.
    pub fn read(&mut self, text: &str) -> Result<(), ConfigError> {
        for (line, pair) in file::lines(text) {
            let found = || text.lines().nth(line as usize - 1).unwrap_or_default().trim().to_owned();
            let (name, value) = pair.ok_or_else(|| ConfigError::Line { line: line as usize, text: found() })?;
            self.set(name, &value).map_err(|error| ConfigError::At { line: line as usize, error: Box::new(error) })?;
        }
        Ok(())
    }

    /// Certificate and key, if TLS is configured.
    ///
    /// # Errors
    /// Only one of them is given.
    pub fn tls(&self) -> Result<Option<(&Path, &Path)>, ConfigError> {
        match (&self.tls_certificate, &self.tls_key) {
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            (None, None) => Ok(None),
            _ => Err(ConfigError::HalfTls),
        }
    }

    /// Takes from `new` what a running server can change.
    pub fn take_reloadable(&mut self, new: &Config) {
        let listen = &new.listen;
        self.listen.authentication_timeout = listen.authentication_timeout;
        self.listen.password_on_loopback = listen.password_on_loopback;
        self.listen.allow_plaintext_beyond_loopback = listen.allow_plaintext_beyond_loopback;
        self.listen.connections_per_address = listen.connections_per_address;
        self.tls_certificate.clone_from(&new.tls_certificate);
        self.tls_key.clone_from(&new.tls_key);
        self.tls_client_ca.clone_from(&new.tls_client_ca);
        self.access_file.clone_from(&new.access_file);
        self.log = new.log.clone();
        self.lock_history_min = new.lock_history_min;
        self.recorders = new.recorders;
        self.settings.clone_from(&new.settings);
    }
}

/// Switches wait events; else what the value should be.
fn instruments(value: &str) -> Result<(), &'static str> {
    if value.is_empty() {
        return Ok(());
    }
    clearway_sql::context::instruments::start_up(value).map_err(|_| "PATTERN=ON, COUNTED or OFF")
}

/// Takes one setting of the log; else what it should be.
fn set_log(log: &mut LogConfig, name: &str, value: &str) -> Result<(), &'static str> {
    use clearway_sql::context::log_line::Severity;
    let switch = || boolean(value).ok_or("on or off");
    match name {
        "log_destination" => {
            let form = |word: &str| match word.trim() {
                "stderr" => Some(Form::Text),
                "csvlog" => Some(Form::Csv),
                "jsonlog" => Some(Form::Json),
                "slowlog" => Some(Form::Slow),
                _ => None,
            };
            let forms: Option<Vec<Form>> = value.split(',').map(form).collect();
            log.forms = forms.ok_or("stderr, csvlog, jsonlog, slowlog, more with commas")?;
        }
        "log_directory" => log.directory = Some(PathBuf::from(value)).filter(|path| !path.as_os_str().is_empty()),
        "log_rotation_size" => {
            let least = bytes(value).filter(|bytes| *bytes >= 1_024);
            log.bytes = least.ok_or("1kB or more")? as u64;
        }
        "log_file_count" => {
            log.count = value.parse().ok().filter(|count| (1..=10_000).contains(count)).ok_or("1 to 10000")?;
        }
        "log_line_prefix" => log.prefix = value.to_owned(),
        "log_min_messages" => {
            log.least = match value {
                "warning" => Severity::Warning,
                "error" => Severity::Error,
                "log" => Severity::Log,
                "fatal" => Severity::Fatal,
                _ => return Err("warning, error, log or fatal"),
            };
        }
        "log_lock_waits" => log.lock_waits = switch()?,
        "log_connections" => log.connections = switch()?,
        _ => log.disconnections = switch()?,
    }
    Ok(())
}

/// `100us`, `1ms`, `2s`; a plain number is milliseconds.
fn short_time(value: &str) -> Option<Duration> {
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let number = number.parse::<u64>().ok()?;
    match unit.trim() {
        "us" => Some(Duration::from_micros(number)),
        "ms" | "" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "min" => Some(Duration::from_secs(number.checked_mul(60)?)),
        _ => None,
    }
}

/// Whether the value is the second of two words; none: it is neither.
fn is_second(value: &str, words: [&str; 2]) -> Option<bool> {
    words.iter().position(|word| *word == value).map(|at| at == 1)
}

fn boolean(value: &str) -> Option<bool> {
    match value {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

fn bytes(value: &str) -> Option<usize> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match value.get(digits.len()..)? {
        "" | "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1usize << 30,
        _ => return None,
    };
    digits.trim().parse::<usize>().ok()?.checked_mul(unit)
}

/// `ADDRESS:PORT` or `PORT`, several with commas; names are looked up.
fn addresses(value: &str) -> Option<Vec<SocketAddr>> {
    let mut all = Vec::new();
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if let Ok(port) = part.parse::<u16>() {
            all.push(SocketAddr::from(([127, 0, 0, 1], port)));
        } else {
            all.extend(part.to_socket_addrs().ok()?);
        }
    }
    Some(all).filter(|all| !all.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_described_with_its_true_default() {
        let mut config = Config::default();
        for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
            config.set(setting.name, setting.default).expect(setting.name);
            assert_eq!(config, Config::default(), "{}", setting.name);
        }
        let source = include_str!("config.rs");
        let body = source.split("match name {").nth(1).and_then(|rest| rest.split("_ => self.settings.push").next());
        let known = body
            .expect("the match of `set`")
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with(['"', '|']))
            .flat_map(|line| line.split(" => ").next().unwrap_or_default().split('|'))
            .map(|name| name.trim().trim_matches('"'));
        let mut known: Vec<&str> = known.filter(|name| !name.is_empty()).collect();
        let mut described: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        known.sort_unstable();
        described.sort_unstable();
        assert_eq!(known, described);
    }

    /// What a reload takes is what says so of itself, and nothing else.
    #[test]
    fn a_reload_takes_what_it_says() {
        // What that one switches stands outside of the configuration.
        for setting in SETTINGS.iter().filter(|setting| setting.name != "performance_schema_instrument") {
            let mut new = Config::default();
            let another = [
                "7s",
                "on",
                "off",
                "7",
                "64kB",
                "7ms",
                "x",
                "none",
                "error",
                "jsonlog",
                "127.0.0.1:7",
                "break",
                "sync",
                "64MB",
            ];
            let taken = another.iter().any(|value| new.set(setting.name, value).is_ok() && new != Config::default());
            assert!(taken, "{}: no other value", setting.name);
            let mut running = Config::default();
            running.take_reloadable(&new);
            assert_eq!(running == new, setting.reloads, "{}", setting.name);
        }
    }

    #[test]
    fn a_file_is_taken_whole_or_refused_with_its_line() {
        let mut config = Config::default();
        let text = "# mine\nlisten = 127.0.0.1:0, [::1]:0\nmax_connections = 7 # few\n\ncache_size='64MB'\nserializable = snapshot\n";
        config.read(text).expect("well formed");
        assert_eq!(config.listen.addresses.len(), 2);
        assert_eq!((config.listen.max_connections, config.cache_bytes), (7, 64 << 20));
        assert_eq!(config.settings, [("serializable".to_owned(), "snapshot".to_owned())]);
        for (bad, line) in
            [("a\n", 1), ("\nmax_connections = many", 2), ("x y = 1", 1), ("data = 'a' b", 1), ("= 3", 1)]
        {
            match Config::default().read(bad) {
                Err(ConfigError::Line { line: at, .. } | ConfigError::At { line: at, .. }) => {
                    assert_eq!(at, line, "{bad}")
                }
                other => panic!("{bad}: {other:?}"),
            }
        }
        let half = Config { tls_key: Some("k".into()), ..Config::default() };
        assert_eq!(half.tls(), Err(ConfigError::HalfTls));
    }

    #[test]
    fn commits_do_not_wait_for_an_archive_that_may_have_holes() {
        let mut config = Config::default();
        config.set("archive_mode", "sync").expect("a mode");
        assert_eq!(config.archive.check(), Err(ConfigError::Sync));
        config.set("archive", "/b/shop").expect("a target");
        assert_eq!(config.archive.check(), Ok(()));
        config.set("archive_max_lag", "1MB").expect("a size");
        assert_eq!(config.archive.check(), Ok(()));
        config.set("archive_on_lag", "break").expect("a choice");
        assert_eq!(config.archive.check(), Err(ConfigError::Sync));
    }
}
