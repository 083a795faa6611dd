//! The settings of one session: their values, and what SET, SHOW and RESET do with them.

use super::accepted_settings::default_of;
pub use super::accepted_settings::{all, find};
use super::configuration::Source;
use super::limits::is_limit;
use super::log_line::LogLevels;
use super::made_up;
pub use super::plan_cache_mode::PlanCacheMode;
use super::planner_settings::PLANNER;
use super::privileges::{Identities, Identity};
pub use super::setting_table::{Kind, SERVER_VERSION, SETTINGS, Setting};
pub use super::setting_text::{HiddenMessages, list_items, parse_bool};
use super::setting_text::{client_name, date_style_name, isolation_word, style_of};
use super::setting_values::invalid;
use super::steering::{self, Steering};
use super::units::{bytes, milliseconds};
use clearway_syntax::error::{Result, SqlError};
use clearway_txn::lockmgr::step_aside::StepAsideTerms;
use clearway_values::encoding::Encoding;
use clearway_values::types::Oid;
use clearway_values::types::datetime::{self, DateOrder, DateStyle, Format};
use clearway_values::types::interval::IntervalStyle;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What `version()` says.
pub const VERSION_TEXT: &str = "PostgreSQL 15.0 (Clearway 0.1.0)";

/// A value, and the role that it named when it was set (`role`, `session_authorization`): a role keeps its number when it is renamed, and
/// no other session gets it when it is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) text: String,
    pub(super) identity: Option<Identity>,
    pub(super) source: Source,
}

impl From<&str> for Kept {
    fn from(text: &str) -> Self {
        Kept { text: text.to_owned(), identity: None, source: Source::Default }
    }
}

/// Values by name: a setting's, or one that a user made up.
pub(super) type Names = BTreeMap<Cow<'static, str>, Kept>;
pub(super) type Values = Arc<Names>;

/// The values of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) values: Values,
    /// What RESET goes back to.
    pub(super) start: Values,
    /// Values to return to when the transaction ends: those that SET LOCAL replaced.
    local: Names,
    /// The same as numbers and formats, for the paths that need them often.
    pub lock_timeout_ms: u64,
    /// `statement_timeout`.
    pub statement_timeout_ms: u64,
    /// `statement_memory` in bytes; 0: no limit.
    pub statement_memory: u64,
    /// `work_mem` in bytes.
    pub work_mem: u64,
    /// `hash_mem_multiplier`.
    pub hash_mem_multiplier: f64,
    /// How threads may share a statement's work.
    pub parallel: ParallelLimits,
    /// `idle_in_transaction_session_timeout`.
    pub idle_in_transaction_ms: u64,
    /// `idle_session_timeout`.
    pub idle_session_ms: u64,
    /// `synchronous_commit` is off.
    pub commits_later: bool,
    /// `synchronous_commit` is archive.
    pub commits_archived: bool,
    /// What the log is told of the session's statements.
    pub log: Arc<LogLevels>,
    /// `client_min_messages`, as far as it hides what a statement can send.
    pub hides: HiddenMessages,
    /// `default_transaction_isolation` and `default_transaction_read_only`.
    pub default_modes: (&'static str, bool),
    /// `transaction_isolation` and `transaction_read_only`, as the values have them.
    modes: (&'static str, bool),
    /// Changes with each change of `search_path` or of the role.
    pub path_changes: u64,
    /// By which plans prepared statements run.
    pub plan_cache_mode: PlanCacheMode,
    /// What the settings ask of the planner.
    pub steering: Steering,
    /// `row_security`: policies hide rows, and no statement fails for their sake.
    pub row_security: bool,
    /// Changes with each change of the role or of `row_security`: statements are planned anew.
    pub role_changes: u64,
    /// `session_authorization`; none before the session has begun.
    session_user: Option<Identity>,
    /// `role`, unless that is none.
    role: Option<Identity>,
    /// The role whose work the session does at the moment, whatever the settings say.
    acting: Option<Identity>,
    /// Formats of values.
    pub format: Format,
    /// Changes with each change of `format`.
    pub format_changes: u64,
    /// What `set` notes with a value.
    pub source: Source,
    changed: Vec<&'static str>,
}

/// Threads beside the session's that a scan may have, and the bytes of the smallest table that has any.
#[derive(Clone, Copy, Debug)]
pub struct ParallelLimits {
    /// `max_parallel_workers_per_gather`, and `max_parallel_workers`.
    pub workers: u32,
    /// `min_parallel_table_scan_size`.
    pub bytes_min: u64,
    /// `force_parallel_mode`: whether processors need not be idle.
    pub forced: bool,
}

/// Values to go back to.
#[derive(Clone, Debug)]
pub struct SettingsMark(Values, Names);

impl Default for Settings {
    fn default() -> Self {
        let values: Values = Arc::new(SETTINGS.iter().map(|s| (s.name.into(), s.default.into())).collect());
        Self {
            values: values.clone(),
            start: values,
            local: Names::new(),
            lock_timeout_ms: 0,
            statement_timeout_ms: 0,
            statement_memory: 0,
            work_mem: 64 << 20,
            hash_mem_multiplier: 2.0,
            parallel: ParallelLimits { workers: 2, bytes_min: 8 << 20, forced: false },
            idle_in_transaction_ms: 0,
            idle_session_ms: 0,
            commits_later: false,
            commits_archived: false,
            log: Arc::default(),
            hides: HiddenMessages::Nothing,
            default_modes: ("read committed", false),
            modes: ("read committed", false),
            path_changes: 0,
            row_security: true,
            steering: Steering::DEFAULT,
            plan_cache_mode: PlanCacheMode::Auto,
            role_changes: 0,
            session_user: None,
            role: None,
            acting: None,
            format: Format::default(),
            format_changes: 0,
            source: Source::Session,
            changed: Vec::new(),
        }
    }
}

impl Settings {
    /// How a DDL statement waits for its locks; none: first come, first served, for ever, as in PostgreSQL.
    pub fn step_aside_terms(&self) -> Option<StepAsideTerms> {
        let window: u64 = self.get("ddl_block_window").parse().ok()?;
        // -1 is no number of rounds.
        let rounds = self.get("ddl_block_rounds").parse().ok();
        let fails = self.get("ddl_block_then") == "error";
        Some(StepAsideTerms { window: Duration::from_millis(window), rounds, fails })
    }

    /// A value by its exact name.
    pub fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or_else(|| default_of(name), |kept| &kept.text)
    }

    /// What SHOW says.
    ///
    /// # Errors
    /// 42704.
    pub fn show(&self, name: &str) -> Result<String> {
        if let Some(setting) = find(name) {
            return Ok(self.get(setting.name).to_owned());
        }
        let made_up = self.values.get(name.to_ascii_lowercase().as_str());
        made_up.map(|kept| kept.text.clone()).ok_or_else(|| made_up::unknown(name))
    }

    /// Changes a value and returns what is kept. There is no other way to change one, whichever statement, function or message asks
    /// for it; so `identities` judges here which role may become which (PRV-2).
    ///
    /// # Errors
    /// 42704, 22023, 55P02; 42501 for a role that the session may not become.
    pub fn set(&mut self, name: &str, value: Option<&str>, local: bool, identities: &Identities<'_>) -> Result<String> {
        let Some(setting) = find(name) else { return self.set_made_up(name, value, local) };
        if is_limit(setting.name) {
            let message = format!("parameter \"{}\" cannot be changed now", setting.name);
            let hint = "Keep it for a role or a database by ALTER ROLE ... SET or ALTER DATABASE ... SET.";
            return Err(SqlError::new("55P02", message).hint(hint));
        }
        if self.acting.is_some() && matches!(setting.name, "role" | "session_authorization") {
            let message = "cannot set parameter \"{}\" within security-restricted operation";
            return Err(SqlError::new("42501", message.replace("{}", setting.name)));
        }
        let kept = match value {
            Some(value) => Kept {
                text: self.normalized(setting, value)?,
                identity: match setting.name {
                    "role" if value == "none" => None,
                    "role" => Some(identities.role(self.session_user, value)?),
                    "session_authorization" => Some(identities.session_user(value)?),
                    _ => None,
                },
                source: self.source,
            },
            None => self.start.get(setting.name).cloned().unwrap_or_else(|| setting.default.into()),
        };
        let text = kept.text.clone();
        self.put(setting.name.into(), kept, local);
        if setting.name == "session_authorization" {
            self.put("role".into(), "none".into(), local);
        }
        Ok(text)
    }

    /// Whether a setting can have this name.
    ///
    /// # Errors
    /// 42704, 42602.
    pub fn is_name(&self, name: &str) -> Result<()> {
        find(name).map_or_else(|| made_up::check(name), |_| Ok(()))
    }

    /// Judges a value that later sessions shall begin with, as SET would judge it; which role may become which is judged when they begin.
    ///
    /// # Errors
    /// 42704, 22023, 55P02; 25001 for what belongs to one transaction.
    pub fn check(&self, name: &str, value: &str) -> Result<()> {
        let Some(setting) = find(name) else { return made_up::check(name) };
        if setting.name.starts_with("transaction_") {
            let message =
                format!("parameter \"{}\" belongs to a transaction and can't be kept for sessions", setting.name);
            return Err(SqlError::new("25001", message));
        }
        self.normalized(setting, value).map(|_| ())
    }

    /// Sets what no part of the server looks at: `app.tenant`.
    fn set_made_up(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<String> {
        made_up::check(name)?;
        let name = name.to_ascii_lowercase();
        if !self.values.contains_key(name.as_str()) && self.values.len() >= SETTINGS.len() + made_up::MAX {
            return Err(made_up::too_many());
        }
        let start = || self.start.get(name.as_str()).map_or_else(String::new, |kept| kept.text.clone());
        let text = value.map_or_else(start, str::to_owned);
        let kept = Kept { text: text.clone(), identity: None, source: self.source };
        self.put(name.into(), kept, local);
        Ok(text)
    }

    pub(super) fn put(&mut self, name: Cow<'static, str>, kept: Kept, local: bool) {
        let old = Arc::make_mut(&mut self.values).insert(name.clone(), kept);
        if local {
            self.local.entry(name.clone()).or_insert_with(|| old.unwrap_or_else(|| default_of(&name).into()));
        } else {
            self.local.remove(&name);
        }
        self.apply_named(&name);
    }

    fn apply_named(&mut self, name: &str) {
        if let Some(setting) = find(name) {
            self.apply(setting.name);
        }
    }

    /// The role that began the session.
    pub fn log_in(&mut self, name: &str, identity: Identity) {
        self.put(
            "session_authorization".into(),
            Kept { text: name.to_owned(), identity: Some(identity), source: self.source },
            false,
        );
        self.count_processors();
    }

    /// What `processors` shows. Asking the system takes longer than the rest of a session's start: it is asked once.
    fn count_processors(&mut self) {
        static COUNT: OnceLock<String> = OnceLock::new();
        let count = COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).to_string());
        self.fix("processors", count);
    }

    /// What a setting that can't be changed shows in this session.
    pub fn fix(&mut self, name: &'static str, value: &str) {
        self.put(name.into(), Kept { text: value.to_owned(), identity: None, source: Source::Default }, false);
    }

    /// The number of the role that the session works as: that of SET ROLE, else that of SET SESSION AUTHORIZATION, which at the start
    /// is the one that logged in.
    pub fn current_role(&self) -> Option<Oid> {
        self.acting.or(self.role).or(self.session_user).map(|identity| identity.oid)
    }

    /// The session does the work of another role, or its own again; what was before.
    pub fn act_as(&mut self, identity: Option<Identity>) -> Option<Identity> {
        self.role_changes += 1;
        self.path_changes += 1;
        std::mem::replace(&mut self.acting, identity)
    }

    /// The number of the role that `session_user` names.
    pub fn session_role(&self) -> Option<Oid> {
        self.session_user.map(|identity| identity.oid)
    }

    pub(super) fn normalized(&self, setting: &Setting, value: &str) -> Result<String> {
        let kept = setting.check(value)?;
        match setting.name {
            "DateStyle" => {
                let (mut style, mut order) = (self.format.date_style, self.format.date_order);
                let (mut styles, mut orders) = (Vec::new(), Vec::new());
                for word in list_items(value) {
                    match word.as_str() {
                        "mdy" | "us" => orders.push(DateOrder::Mdy),
                        "dmy" => orders.push(DateOrder::Dmy),
                        "ymd" => orders.push(DateOrder::Ymd),
                        word if word.starts_with("noneuro") => orders.push(DateOrder::Mdy),
                        word if word.starts_with("euro") => orders.push(DateOrder::Dmy),
                        word if style_of(word).is_some() => styles.extend(style_of(word)),
                        word => {
                            return Err(invalid(setting, value).detail(format!("Unrecognized key word: \"{word}\".")));
                        }
                    }
                }
                if styles.windows(2).any(|pair| pair[0] != pair[1]) || orders.windows(2).any(|pair| pair[0] != pair[1])
                {
                    return Err(invalid(setting, value).detail("Conflicting \"datestyle\" specifications."));
                }
                if let Some(named) = styles.pop() {
                    // As in PostgreSQL, the style German alone brings its order with it.
                    if named == DateStyle::German && orders.is_empty() {
                        orders.push(DateOrder::Dmy);
                    }
                    style = named;
                }
                order = orders.pop().unwrap_or(order);
                Ok(date_style_name(style, order))
            }
            // A statement outside a block begins its transaction without asking: the default is judged here.
            "default_transaction_isolation" if kept == "serializable" && self.get("serializable") != "snapshot" => {
                Err(SqlError::unsupported("the isolation level SERIALIZABLE")
                    .hint("Set serializable = snapshot to run such transactions as REPEATABLE READ."))
            }
            "application_name" => Ok(client_name(&kept)),
            "TimeZone" => {
                if value.eq_ignore_ascii_case("default") {
                    return Ok(kept);
                }
                let known = datetime::zone_setting(value)?;
                known.map(|(_, name)| name).ok_or_else(|| invalid(setting, value))
            }
            _ => Ok(kept),
        }
    }

    fn parallel_limits(&self) -> ParallelLimits {
        let count = |name| self.get(name).parse().unwrap_or(0);
        let workers = count("max_parallel_workers_per_gather").min(count("max_parallel_workers"));
        let bytes_min = bytes(self.get("min_parallel_table_scan_size")).unwrap_or(8 << 20);
        ParallelLimits { workers, bytes_min, forced: self.get("force_parallel_mode") != "off" }
    }

    fn apply(&mut self, name: &'static str) {
        let value = self.get(name).to_owned();
        match name {
            "lock_timeout" => self.lock_timeout_ms = milliseconds(&value).unwrap_or(0),
            "statement_timeout" => self.statement_timeout_ms = milliseconds(&value).unwrap_or(0),
            "work_mem" => self.work_mem = bytes(&value).unwrap_or(64 << 20),
            "hash_mem_multiplier" => self.hash_mem_multiplier = value.parse().unwrap_or(2.0),
            name if name.contains("_parallel_") => self.parallel = self.parallel_limits(),
            "statement_memory" => self.statement_memory = bytes(&value).unwrap_or(0),
            "idle_in_transaction_session_timeout" => self.idle_in_transaction_ms = milliseconds(&value).unwrap_or(0),
            "log_min_duration_statement" | "log_statement" => self.log.set(name, &value),
            "idle_session_timeout" => self.idle_session_ms = milliseconds(&value).unwrap_or(0),
            "synchronous_commit" => {
                (self.commits_later, self.commits_archived) = (value == "off", value == "archive");
            }
            "search_path" => self.path_changes += 1,
            "plan_cache_mode" => self.plan_cache_mode = PlanCacheMode::of(&value),
            "row_security" => (self.row_security, self.role_changes) = (value == "on", self.role_changes + 1),
            "client_min_messages" => {
                self.hides = match value.as_str() {
                    "error" => HiddenMessages::Warnings,
                    "warning" => HiddenMessages::Notices,
                    _ => HiddenMessages::Nothing,
                }
            }
            "default_transaction_isolation" => self.default_modes.0 = isolation_word(&value),
            "default_transaction_read_only" => self.default_modes.1 = value == "on",
            "transaction_isolation" => self.modes.0 = isolation_word(&value),
            "transaction_read_only" => self.modes.1 = value == "on",
            "role" | "session_authorization" => self.identify(),
            name if steering::is_steering(name) => self.steering = Steering::of(|name| self.get(name)),
            _ => self.apply_format(name, &value),
        }
        if find(name).is_some_and(|s| s.reported) {
            self.changed.push(name);
        }
    }

    /// Of a setting that decides about the text forms of values.
    fn apply_format(&mut self, name: &str, value: &str) {
        match name {
            "DateStyle" => {
                self.format_changes += 1;
                for word in list_items(value) {
                    match word.as_str() {
                        "dmy" => self.format.date_order = DateOrder::Dmy,
                        "ymd" => self.format.date_order = DateOrder::Ymd,
                        word => match style_of(word) {
                            Some(style) => self.format.date_style = style,
                            None => self.format.date_order = DateOrder::Mdy,
                        },
                    }
                }
            }
            "client_encoding" => {
                self.format_changes += 1;
                self.format.encoding = Encoding::find(value).unwrap_or(Encoding::UTF8);
            }
            "extra_float_digits" => {
                self.format_changes += 1;
                self.format.float_digits = value.parse().unwrap_or(1);
            }
            "bytea_output" => {
                self.format_changes += 1;
                self.format.bytea_escape = value == "escape";
            }
            "IntervalStyle" => {
                self.format_changes += 1;
                self.format.interval_style = match value {
                    "postgres_verbose" => IntervalStyle::PostgresVerbose,
                    "sql_standard" => IntervalStyle::SqlStandard,
                    "iso_8601" => IntervalStyle::Iso8601,
                    _ => IntervalStyle::Postgres,
                }
            }
            "TimeZone" => {
                // The name of a POSIX zone says hours west of Greenwich, also where the setting was a number.
                if let Some(zone) = datetime::zone(value) {
                    (self.format.zone, self.format_changes) = (zone, self.format_changes + 1);
                }
            }
            _ => {}
        }
    }

    /// The session works as another role, or may.
    fn identify(&mut self) {
        let named = |name| self.values.get(name).and_then(|kept: &Kept| kept.identity);
        (self.session_user, self.role) = (named("session_authorization"), named("role"));
        self.role_changes += 1;
        self.path_changes += 1;
        let superuser = self.role.or(self.session_user).is_some_and(|identity| identity.superuser);
        let superuser = if superuser { "on" } else { "off" };
        if self.get("is_superuser") != superuser {
            self.set_fixed("is_superuser", superuser);
            self.changed.push("is_superuser");
        }
    }

    /// RESET ALL, which leaves the session the role that it works as.
    pub fn reset_all(&mut self) {
        let mut values = self.start.clone();
        for name in ["is_superuser", "role", "session_authorization"] {
            if let Some(kept) = self.values.get(name) {
                Arc::make_mut(&mut values).insert(name.into(), kept.clone());
            }
        }
        self.go_to(values);
        self.local.clear();
    }

    /// What the values are from now on is what RESET goes back to.
    pub fn keep_as_start(&mut self) {
        self.start = self.values.clone();
    }

    /// The values now.
    #[inline]
    pub fn mark(&self) -> SettingsMark {
        SettingsMark(self.values.clone(), self.local.clone())
    }

    /// Back to a mark: a rollback.
    pub fn roll_back_to(&mut self, mark: &SettingsMark) {
        self.local.clone_from(&mark.1);
        self.go_to(mark.0.clone());
    }

    /// Whether something is set for the open transaction alone.
    pub fn has_local(&self) -> bool {
        !self.local.is_empty()
    }

    /// The transaction has committed: what was set for it alone goes.
    pub fn end_transaction(&mut self) {
        if !self.has_local() {
            return;
        }
        for (name, value) in std::mem::take(&mut self.local) {
            Arc::make_mut(&mut self.values).insert(name.clone(), value);
            self.apply_named(&name);
        }
    }

    fn go_to(&mut self, values: Values) {
        let old = std::mem::replace(&mut self.values, values);
        if Arc::ptr_eq(&old, &self.values) {
            return;
        }
        // Those of the third table, which have no effect, have nothing to apply.
        for setting in SETTINGS.iter().chain(PLANNER) {
            if old.get(setting.name) != self.values.get(setting.name) {
                self.apply(setting.name);
            }
        }
    }

    /// Whether there are reported settings that have changed since the last call of `take_changed`.
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Reported settings that have changed since the last call.
    pub fn take_changed(&mut self) -> Vec<(&'static str, String)> {
        if self.changed.is_empty() {
            return Vec::new();
        }
        let mut names = std::mem::take(&mut self.changed);
        names.dedup();
        names.into_iter().map(|n| (n, self.get(n).to_owned())).collect()
    }

    /// Milliseconds of a timeout; 0: none. It reads the text: what is asked for with each message has a field.
    pub fn timeout_ms(&self, name: &str) -> u64 {
        milliseconds(self.get(name)).unwrap_or(0)
    }

    /// The modes of the transaction that begins. Most transactions have those of the one before, and then nothing is copied.
    #[inline]
    pub fn set_modes(&mut self, isolation: &'static str, read_only: bool) {
        if self.modes.0 != isolation {
            self.set_fixed("transaction_isolation", isolation);
        }
        if self.modes.1 != read_only {
            self.set_fixed("transaction_read_only", if read_only { "on" } else { "off" });
        }
        self.modes = (isolation, read_only);
    }

    /// The modes of the open transaction.
    pub fn modes(&self) -> (&'static str, bool) {
        self.modes
    }

    /// The transaction that is open changes what it may do.
    pub fn set_read_only(&mut self, read_only: bool) {
        self.set_modes(self.modes.0, read_only);
    }

    /// What is set by the server rather than by SET.
    pub fn set_fixed(&mut self, name: &'static str, value: &str) {
        Arc::make_mut(&mut self.values).insert(name.into(), value.into());
    }
}
