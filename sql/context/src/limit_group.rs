//! A role or a database that has limits, and what its sessions use of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use clearway_base::breath::{Share, Turns, processors};
use clearway_base::memory::{POOLS_MAX, Pool};
use clearway_base::sync::Mutex;
use clearway_base::waits;
use clearway_engine::catalog::{Catalog, Object, Oid};

use crate::backend::{Backend, Backends};
use crate::log_line::{Line, Severity};
use crate::units::{bytes, milliseconds};

/// The log is told of a limit's violations so often at most.
const LOG_PAUSE_NS: u64 = 10_000_000_000;

/// Whose limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A role's.
    Role,
    /// A database's.
    Database,
}

impl Scope {
    /// As the view and errors have it.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Role => "role",
            Scope::Database => "database",
        }
    }
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum LimitKind {
    /// Sessions: CONNECTION LIMIT.
    Connections,
    /// Sessions that run a statement or have a transaction open.
    Statements,
    /// Percent of the processors' time.
    ProcessorShare,
    /// Memory of all sessions.
    Memory,
    /// Undo that open transactions have written.
    Undo,
    /// How long a statement runs.
    StatementTime,
}

impl LimitKind {
    /// All of them.
    pub const ALL: [LimitKind; 6] = [
        LimitKind::Connections,
        LimitKind::Statements,
        LimitKind::ProcessorShare,
        LimitKind::Memory,
        LimitKind::Undo,
        LimitKind::StatementTime,
    ];

    /// Its setting; of connections the words of ALTER ROLE.
    pub fn setting(self) -> &'static str {
        match self {
            LimitKind::Connections => "connection limit",
            LimitKind::Statements => "limit_statements",
            LimitKind::ProcessorShare => "limit_processor_share",
            LimitKind::Memory => "limit_memory",
            LimitKind::Undo => "limit_undo",
            LimitKind::StatementTime => "limit_statement_time",
        }
    }

    /// The unit of its values.
    pub fn unit(self) -> &'static str {
        match self {
            LimitKind::Connections => "sessions",
            LimitKind::Statements => "transactions",
            LimitKind::ProcessorShare => "percent",
            LimitKind::Memory | LimitKind::Undo => "bytes",
            LimitKind::StatementTime => "ms",
        }
    }

    /// The limit that a setting sets.
    pub fn of_setting(name: &str) -> Option<LimitKind> {
        Self::ALL.into_iter().skip(1).find(|kind| kind.setting().eq_ignore_ascii_case(name))
    }
}

/// The limits of a role or a database; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values([u64; 6]);

impl Values {
    /// Those among the settings that a role or a database keeps.
    pub fn of<'a>(settings: impl Iterator<Item = (&'a String, &'a String)>) -> Values {
        let mut values = Values::default();
        for (name, value) in settings {
            let Some(kind) = LimitKind::of_setting(name) else { continue };
            // The values were judged when they were set.
            let number = match kind {
                LimitKind::Memory | LimitKind::Undo => bytes(value),
                LimitKind::StatementTime => milliseconds(value),
                _ => value.parse().ok(),
            };
            values.0[kind as usize] = number.unwrap_or(0);
        }
        values
    }

    /// Those of a role, or of a database.
    pub fn in_catalog(catalog: &Catalog, oid: Oid) -> Values {
        match catalog.get(oid).map(|object| &**object) {
            Some(Object::Role(role)) if !role.superuser => Values::of(
                role.settings.iter().filter(|(within, ..)| *within == 0).map(|(_, name, value)| (name, value)),
            ),
            Some(Object::Database(database)) => Values::of(database.settings.iter().map(|(name, value)| (name, value))),
            _ => Values::default(),
        }
    }

    /// One of them.
    pub fn get(self, kind: LimitKind) -> u64 {
        self.0[kind as usize]
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self == Values::default()
    }
}

#[derive(Debug, Default)]
struct Count {
    violations: AtomicU64,
    /// The last one: microseconds since 2000; 0: none.
    last_us: AtomicI64,
    /// When the log was told, and how many violations there were then.
    logged_ns: AtomicU64,
    logged: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// The number of the catalog from which the limits are.
    version: u64,
    values: Values,
    name: String,
}

/// A role or a database with limits.
#[derive(Debug)]
pub struct Group {
    /// Which.
    pub scope: Scope,
    /// Its number.
    pub oid: Oid,
    state: Mutex<State>,
    /// `limit_statements`.
    pub turns: Turns,
    /// `limit_processor_share`.
    pub share: Arc<Share>,
    /// `limit_memory`, once it has been set; none in it: there are more such roles and databases than pools.
    pool: OnceLock<Option<Pool>>,
    /// The log was told so.
    told: AtomicBool,
    /// Undo that the open transactions of its sessions have written.
    pub undo_bytes: AtomicI64,
    counts: [Count; 6],
}

impl Group {
    fn new(scope: Scope, oid: Oid) -> Group {
        let state = State { version: 0, values: Values::default(), name: String::new() };
        Group {
            scope,
            oid,
            state: Mutex::new("sql/limits/group", state),
            turns: Turns::new(usize::MAX),
            share: Arc::default(),
            pool: OnceLock::new(),
            told: AtomicBool::new(false),
            undo_bytes: AtomicI64::new(0),
            counts: Default::default(),
        }
    }

    /// Its limits.
    pub fn values(&self) -> Values {
        self.state.lock().values
    }

    /// `role "name"`, for errors.
    pub fn named(&self) -> String {
        format!("{} \"{}\"", self.scope.name(), self.state.lock().name)
    }

    /// Takes the limits of a catalog, unless those of a newer one are in force.
    fn set(&self, version: u64, values: Values, name: &str) {
        {
            let mut state = self.state.lock();
            if version < state.version || (state.values == values && state.name == name) {
                return;
            }
            *state = State { version, values, name: name.to_owned() };
        }
        let statements = usize::try_from(values.get(LimitKind::Statements)).unwrap_or(usize::MAX);
        self.turns.set_max(if statements == 0 { usize::MAX } else { statements });
        let processors = u64::try_from(processors()).unwrap_or(1);
        self.share.set_rate(values.get(LimitKind::ProcessorShare) * processors * 10_000_000);
        if values.get(LimitKind::Memory) > 0 {
            self.pool.get_or_init(Pool::new);
        }
        if let Some(pool) = self.pool() {
            pool.set(values.get(LimitKind::Memory), &self.named());
        }
    }

    /// What its sessions have together, if it has or had `limit_memory`.
    pub fn pool(&self) -> Option<Pool> {
        self.pool.get().copied().flatten()
    }

    /// What the log is to be told once: `limit_memory` is set and not in force.
    pub fn without_pool(&self) -> Option<Line> {
        let lacks = self.pool.get().is_some_and(Option::is_none) && self.values().get(LimitKind::Memory) > 0;
        if !lacks || self.told.swap(true, Relaxed) {
            return None;
        }
        let message = format!("limit_memory of {} is not in force", self.named());
        let mut line = Line::new(Severity::Warning, "53400", message);
        line.detail = format!("Roles and databases with limit_memory since the server's start: {POOLS_MAX} at most.");
        line.hint =
            "Its other limits hold. After a restart of the server those that have the limit then count.".to_owned();
        Some(line)
    }

    /// Errors and the log name it so.
    pub fn call(&self, name: &str) {
        name.clone_into(&mut self.state.lock().name);
    }

    /// How often a limit was reached, and when last: microseconds since 2000.
    pub fn violations(&self, kind: LimitKind) -> (u64, Option<i64>) {
        let count = &self.counts[kind as usize];
        let last_us = count.last_us.load(Relaxed);
        (count.violations.load(Relaxed), (last_us != 0).then_some(last_us))
    }

    /// A limit was reached: it is counted, and the log is told, of many at once.
    pub fn violated(&self, kind: LimitKind, code: &'static str, backends: &Backends, backend: &Arc<Backend>) {
        let count = &self.counts[kind as usize];
        let violations = count.violations.fetch_add(1, Relaxed) + 1;
        count.last_us.store(crate::core::now(), Relaxed);
        let now_ns = waits::now_ns();
        let logged_ns = count.logged_ns.load(Relaxed);
        let is_due = logged_ns == 0 || now_ns.saturating_sub(logged_ns) >= LOG_PAUSE_NS;
        if !is_due || count.logged_ns.compare_exchange(logged_ns, now_ns.max(1), Relaxed, Relaxed).is_err() {
            return;
        }
        let others = violations.saturating_sub(count.logged.swap(violations, Relaxed) + 1);
        let message = format!("{} of {} was reached", kind.setting(), self.named());
        let mut line = Line::new(Severity::Log, code, message).of(backend);
        if others > 0 {
            line.detail = format!("It was reached {others} times more since the last line about it.");
        }
        backends.log_line(line);
    }
}

/// The roles and databases that have limits, or had them.
#[derive(Debug)]
pub struct Groups {
    all: Mutex<BTreeMap<(Scope, Oid), Arc<Group>>>,
}

impl Default for Groups {
    fn default() -> Self {
        Self { all: Mutex::new("sql/limits", BTreeMap::new()) }
    }
}

impl Groups {
    /// The group of a role or a database, which is made if need be.
    pub fn group(&self, scope: Scope, oid: Oid) -> Arc<Group> {
        let mut all = self.all.lock();
        all.entry((scope, oid)).or_insert_with(|| Arc::new(Group::new(scope, oid))).clone()
    }

    /// The same if there is one already.
    pub fn find(&self, scope: Scope, oid: Oid) -> Option<Arc<Group>> {
        self.all.lock().get(&(scope, oid)).cloned()
    }

    /// The group of a role or a database with the limits that it has in a catalog of this number; none if it has none.
    pub fn refreshed(&self, scope: Scope, oid: Oid, (catalog, version): (&Catalog, u64)) -> Option<Arc<Group>> {
        let values = Values::in_catalog(catalog, oid);
        let group = if values.is_empty() { self.find(scope, oid)? } else { self.group(scope, oid) };
        group.set(version, values, catalog.get(oid).map_or("", |object| object.name()));
        (!values.is_empty()).then_some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_beyond_the_number_of_pools_is_told_once_by_name() {
        let group = Group::new(Scope::Role, 7);
        let limit = |text: &str| Values::of([(&"limit_memory".to_owned(), &text.to_owned())].into_iter());
        group.set(1, Values::default(), "reports");
        assert!(group.pool.get().is_none(), "no pool without the limit");
        group.pool.set(None).expect("not set");
        assert!(group.without_pool().is_none(), "no limit");
        group.set(2, limit("2MB"), "reports");
        let told = group.without_pool().map(|line| line.message);
        assert_eq!(told.as_deref(), Some("limit_memory of role \"reports\" is not in force"));
        assert!(group.without_pool().is_none(), "once");
        let other = Group::new(Scope::Role, 8);
        other.set(1, limit("2MB"), "others");
        assert!(other.pool().is_some() && other.without_pool().is_none());
    }

    #[test]
    fn limits_are_read_from_kept_settings() {
        let kept =
            [("limit_memory", "2MB"), ("work_mem", "1MB"), ("limit_statement_time", "3s"), ("limit_statements", "4")];
        let kept: Vec<(String, String)> = kept.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let values = Values::of(kept.iter().map(|(name, value)| (name, value)));
        let got = LimitKind::ALL.map(|kind| values.get(kind));
        assert_eq!(got, [0, 4, 0, 2 << 20, 0, 3_000]);
        assert!(Values::default().is_empty() && !values.is_empty());
        assert!(crate::limits::is_limit("LIMIT_UNDO") && !crate::limits::is_limit("limit_rows"));
    }

    #[test]
    fn the_limits_of_an_older_catalog_do_not_return() {
        let group = Group::new(Scope::Role, 7);
        let limits = |n: u64| Values([0, n, 0, 0, 0, 0]);
        group.set(5, limits(2), "a");
        group.set(4, limits(9), "a");
        assert_eq!(group.values().get(LimitKind::Statements), 2);
        group.set(6, limits(0), "b");
        assert_eq!((group.values().is_empty(), group.named().as_str()), (true, "role \"b\""));
    }
}
