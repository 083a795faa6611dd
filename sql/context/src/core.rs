//! The state of a session that its statements share: the engine's session, settings, sequences, notices.

use super::archived::Archived;
use super::backend::{Backend, Backends};
use super::configuration::Shown;
use super::deferred::Deferred;
use super::interrupt::Reason;
use super::large_objects::Descriptors;
use super::limits::OfSession;
use super::notify::Notifying;
use super::obstacle;
use super::privileges::{Identities, Identity, Judge, role_by_oid};
use super::random::Random;
use super::setting_text::shortened;
use super::settings::{Settings, SettingsMark};
use crate::cell::EngineCell;
use crate::errors::{from_engine, is_lock_not_available};
use crate::names::CatalogNames;
use clearway_base::memory::{Held, Kind};
use clearway_base::sync::{Mutex, timeout};
use clearway_base::waits;
use clearway_engine::catalog::{Catalog, Oid, Role};
use clearway_engine::db::Db;
use clearway_engine::error::EngineError;
use clearway_engine::session::Mark;
use clearway_syntax::error::{Result, SqlError, code};
use clearway_txn::lockmgr::step_aside::StepAsideTerms;
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};
use clearway_values::types::datetime::Format;
use clearway_values::types::user::Slot;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Microseconds from 1970 to 2000.
const EPOCH_US: i64 = 946_684_800_000_000;

/// A digest of a row's table and key: FNV-1a.
#[inline]
pub fn row_digest(table: u32, key: &[u8]) -> u64 {
    let bytes = table.to_le_bytes().into_iter().chain(key.iter().copied());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Now, microseconds since 2000-01-01 UTC.
#[inline]
pub fn now() -> i64 {
    waits::wall_us() as i64 - EPOCH_US
}

/// Messages for the client, with their severities.
pub type Notices = Vec<(&'static str, SqlError)>;

/// What `currval` and `lastval` remember.
#[derive(Debug, Default)]
pub struct SequenceMemory {
    /// The last value of each sequence.
    pub of: HashMap<u32, i64>,
    /// The last of all.
    pub last: Option<(Oid, i64)>,
}

/// A prepared statement as pg_prepared_statements shows it.
#[derive(Clone)]
pub struct NamedStatement {
    /// Its text.
    pub text: Arc<str>,
    /// The types of its parameters.
    pub types: Vec<u32>,
    /// When it was prepared, microseconds since 2000.
    pub at: i64,
    /// By PREPARE, not by the protocol.
    pub from_sql: bool,
    /// How often it has run, by which plan.
    pub uses: Arc<dyn PlanUses>,
}

/// How often a prepared statement has run.
pub trait PlanUses: Send + Sync {
    /// By the plan for any values of its parameters, and by plans for the values at hand.
    fn by_plan(&self) -> (u64, u64);
}

/// A cursor as pg_cursors shows it.
#[derive(Clone, Debug)]
pub struct NamedCursor {
    /// The statement that declared it.
    pub text: Arc<str>,
    /// WITH HOLD.
    pub hold: bool,
    /// BINARY.
    pub binary: bool,
    /// It may go back.
    pub scroll: bool,
    /// When it was declared, microseconds since 2000.
    pub at: i64,
    /// The tables that it has still to read: none once all its rows are kept, or if it is a portal of the protocol.
    pub tables: Vec<Oid>,
}

/// The last savepoint of the transaction, and how many there are.
#[derive(Clone, Debug, Default)]
pub struct LastSavepoint {
    /// Where it goes back to.
    pub mark: Option<Mark>,
    /// How many there are.
    pub level: usize,
}

type Path = (u64, Arc<Catalog>, Arc<[String]>);

/// A function, and the types of its arguments and result where a call decides them.
type BodyKey = (Oid, Vec<Oid>);
type Body = Arc<dyn Any + Send + Sync>;

/// A session that works as another role for as long as this lives; with `settings`, the settings are restored at its end (ACT-1).
pub struct Acting<'a> {
    core: &'a Core,
    before: Option<Identity>,
    settings: Option<SettingsMark>,
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        if let Some(mark) = &self.settings {
            self.core.roll_back_settings(mark);
        }
        self.core.settings.lock().act_as(self.before);
    }
}

/// The parts of a session that statements share. What each of them touches stands in its first cache lines.
#[repr(C, align(64))]
pub struct Core {
    /// The engine's session.
    pub engine: EngineCell,
    /// The session as others see it.
    pub backend: Arc<Backend>,
    /// All sessions.
    pub backends: Arc<Backends>,
    /// The database directory.
    pub db: Arc<Db>,
    warnings: AtomicU64,
    /// The database.
    pub database: u32,
    /// How deep calls of functions nest (RTN-1).
    pub calls: AtomicU32,
    /// A digest of the row that the statement has changed or locked last; 0: none.
    pub row_written: AtomicU64,
    /// When the transaction began, or the last one: microseconds since 2000-01-01 UTC.
    transaction_started: AtomicI64,
    /// How many statements that change or lock rows wait for a function that they have called.
    pub changing: AtomicU32,
    /// The session has used what leaves work for the end of a transaction: cursors, large objects, notifications, constraints that are checked late,
    /// temporary objects. Other sessions' commits pass all that by.
    end_work: AtomicBool,
    /// Its name.
    pub database_name: String,
    /// The number of the role that logged in.
    pub login: Oid,
    /// Settings.
    pub settings: Mutex<Settings>,
    /// What limits of its role and its database say of it.
    pub limits: OfSession,
    /// Sequences.
    pub sequences: Mutex<SequenceMemory>,
    /// The session's prepared statements that have names.
    pub prepared: Mutex<BTreeMap<String, NamedStatement>>,
    /// The session's open cursors.
    pub cursors: Mutex<BTreeMap<String, NamedCursor>>,
    /// What the transaction notifies, and to what the session listens.
    pub notifying: Mutex<Notifying>,
    /// Whether the transaction's commit waits for the archive.
    pub archived: Archived,
    /// Large objects that are open.
    pub large_objects: Mutex<Descriptors>,
    /// Checks of constraints that wait for the end of the transaction.
    pub deferred: Mutex<Deferred>,
    notices: Mutex<(Notices, Option<Held>)>,
    /// What advisory locks have of the session's memory.
    pub advisory_held: Mutex<Held>,
    /// Its random numbers.
    pub random: Random,
    /// The search path taken apart, the number of the change that it goes back to, and the catalog that it was made for.
    path: Mutex<Option<Path>>,
    /// The types that users define, as of the catalog that the path was made for.
    pub types: Slot,
    /// The bodies of functions that the session has called, and their plans; the session's part above knows what they are.
    pub bodies: Mutex<HashMap<BodyKey, Body>>,
    /// The last savepoint of the transaction: a function sets and releases others above it.
    pub savepoint: Mutex<LastSavepoint>,
    /// The session's open cursors, which functions share; the session's part above knows what they are.
    pub open_cursors: OnceLock<Weak<dyn Any + Send + Sync>>,
    own: OnceLock<Weak<Core>>,
}

const _: () = assert!(std::mem::offset_of!(Core, database) < 64, "one cache line");

impl Core {
    /// The core of a new session.
    pub fn new(
        engine: EngineCell,
        db: Arc<Db>,
        (backend, backends): (Arc<Backend>, Arc<Backends>),
        (database, database_name): (u32, String),
        login: Oid,
        settings: Settings,
    ) -> Self {
        let seed = waits::now_ns() ^ u64::from(backend.pid as u32).rotate_left(40) | 1;
        Self {
            engine,
            db,
            backend,
            backends,
            database,
            database_name,
            login,
            settings: Mutex::new("sql/settings", settings),
            limits: OfSession::default(),
            sequences: Mutex::new("sql/sequences", SequenceMemory::default()),
            prepared: Mutex::new("sql/prepared", BTreeMap::new()),
            cursors: Mutex::new("sql/cursors", BTreeMap::new()),
            row_written: AtomicU64::new(0),
            notifying: Mutex::new("sql/notifying", Notifying::default()),
            archived: Archived::default(),
            large_objects: Mutex::new("sql/large_objects", Descriptors::default()),
            deferred: Mutex::new("sql/deferred", Deferred::default()),
            end_work: AtomicBool::new(false),
            notices: Mutex::new("sql/notices", (Vec::new(), None)),
            warnings: AtomicU64::new(0),
            advisory_held: Mutex::new("sql/advisory", Held::new(Kind::AdvisoryLocks)),
            random: Random::new(seed),
            transaction_started: AtomicI64::new(now()),
            path: Mutex::new("sql/search_path", None),
            types: clearway_values::types::user::slot(),
            calls: AtomicU32::new(0),
            bodies: Mutex::new("sql/bodies", HashMap::new()),
            savepoint: Mutex::new("sql/savepoint", LastSavepoint::default()),
            open_cursors: OnceLock::new(),
            changing: AtomicU32::new(0),
            own: OnceLock::new(),
        }
    }

    /// Lets it find the reference that holds it.
    pub fn know(self: &Arc<Core>) {
        let _ = self.own.set(Arc::downgrade(self));
    }

    /// A reference that holds it; none before `know`.
    pub fn own(&self) -> Option<Arc<Core>> {
        self.own.get()?.upgrade()
    }

    /// The formats of values as they are set now.
    pub fn format(&self) -> Format {
        self.settings.lock().format.clone()
    }

    /// From now on the ends of the session's transactions may have work to do.
    pub fn ends_with_work(&self) {
        self.end_work.store(true, Ordering::Relaxed);
    }

    /// Whether they may.
    pub fn has_end_work(&self) -> bool {
        self.end_work.load(Ordering::Relaxed)
    }

    /// A transaction begins at this moment of the clock of wait events.
    #[inline]
    pub fn transaction_begins(&self, now_ns: u64) {
        self.transaction_started.store(waits::wall_us_at(now_ns) - EPOCH_US, Ordering::Relaxed);
    }

    /// When the transaction began, in microseconds since 2000-01-01 UTC: what `now()` says and 'now' means.
    #[inline]
    pub fn transaction_started(&self) -> i64 {
        self.transaction_started.load(Ordering::Relaxed)
    }

    /// Notes the row that the statement changes or locks.
    #[inline]
    pub fn writes_row(&self, table: u32, key: &[u8]) {
        self.row_written.store(row_digest(table, key), Ordering::Relaxed);
    }

    /// A message for the client, delivered when the statement ends.
    pub fn notice(&self, severity: &'static str, message: SqlError) {
        self.warnings.fetch_add(u64::from(severity == "WARNING"), Ordering::Relaxed);
        let mut notices = self.notices.lock();
        notices.1.get_or_insert_with(|| Held::new(Kind::Notices)).resume();
        notices.0.push((severity, message.clone()));
        notices.1.iter_mut().for_each(Held::measure);
    }

    /// How many warnings the session has made.
    #[inline]
    pub fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Relaxed)
    }

    /// The messages so far.
    pub fn take_notices(&self) -> Notices {
        let mut notices = self.notices.lock();
        notices.1 = None;
        std::mem::take(&mut notices.0)
    }

    /// The catalog as the session sees it.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.engine.take().catalog()
    }

    /// The number of the catalog that the session sees; none while it sees changes of its own. To be asked before `catalog`.
    pub fn catalog_version(&self) -> Option<u64> {
        let version = self.db.catalog_version();
        self.engine.take().sees_catalog(version).then_some(version)
    }

    /// The schemas that names without one are looked for in.
    pub fn path(&self) -> Arc<[String]> {
        let catalog = self.catalog();
        let (changes, text) = {
            let settings = self.settings.lock();
            let path = self.path.lock();
            if let Some((changes, of, list)) = &*path
                && *changes == settings.path_changes
                && Arc::ptr_eq(of, &catalog)
            {
                return list.clone();
            }
            (settings.path_changes, settings.get("search_path").to_owned())
        };
        let user = self.role(&catalog).map(|role| role.name.clone());
        let judge = Judge::of(self, &catalog);
        // A schema that the role may not use is as if it were not there. (A role that was dropped is told what it may not do.)
        let usable = |name: &String| {
            let schema = catalog.schema(self.database, name);
            judge.role().is_none() || schema.is_none_or(|schema| judge.may_with_schema(schema, 'U'))
        };
        let list = super::settings::list_items(&text).into_iter();
        let list = list.filter_map(|s| if s == "$user" { user.clone() } else { Some(s) }).filter(usable);
        let mut list: Vec<String> = list.collect();
        // Temporary relations are found first, unless the path says otherwise.
        if let Some(own) = catalog.temp_schema()
            && !list.iter().any(|name| name == "pg_temp" || *name == own.name)
        {
            list.insert(0, own.name.clone());
        }
        let role = judge.role().map(|role| role.oid);
        super::types::refresh(&self.types, &catalog, (self.database, role), &list);
        let list: Arc<[String]> = list.into();
        *self.path.lock() = Some((changes, catalog, list.clone()));
        list
    }

    /// Names in a catalog.
    pub fn names(&self, catalog: &Arc<Catalog>) -> CatalogNames {
        let role = self.settings.lock().current_role();
        CatalogNames { catalog: catalog.clone(), database: self.database, path: self.path(), role }
    }

    /// How values are shown, and the session's role.
    pub fn format_and_role(&self) -> (Format, Option<Oid>) {
        let settings = self.settings.lock();
        (settings.format.clone(), settings.current_role())
    }

    /// The role that the session works as; none if it has been dropped meanwhile: the caller must deny then (PRV-2).
    pub fn role<'c>(&self, catalog: &'c Catalog) -> Option<&'c Role> {
        let oid = self.settings.lock().current_role();
        role_by_oid(catalog, oid?)
    }

    /// Until the guard is dropped the session works as another role: the owner of a SECURITY DEFINER function or of a materialized view.
    pub fn act_as(&self, catalog: &Catalog, role: Oid) -> Acting<'_> {
        let identity = role_by_oid(catalog, role).map_or(Identity { oid: role, superuser: false }, Identity::of);
        Acting { core: self, before: self.settings.lock().act_as(Some(identity)), settings: None }
    }

    /// The same, and settings that are changed meanwhile are restored: for the query of a materialized view, which another role has written
    /// (ACT-1).
    pub fn act_for(&self, catalog: &Catalog, role: Oid) -> Acting<'_> {
        let mark = self.settings.lock().mark();
        let mut acting = self.act_as(catalog, role);
        acting.settings = Some(mark);
        acting
    }

    /// Settings are again as they were.
    pub fn roll_back_settings(&self, mark: &SettingsMark) {
        let application = {
            let mut settings = self.settings.lock();
            settings.roll_back_to(mark);
            settings.get("application_name").to_owned()
        };
        self.known_as(application);
    }

    /// The session calls itself by another name.
    fn known_as(&self, application: String) {
        {
            let mut activity = self.backend.activity.lock();
            if activity.application_name == application {
                return;
            }
            activity.application_name = application;
        }
        self.backend.tell_owner();
    }

    /// The name of the role that the session works as.
    ///
    /// # Errors
    /// 42704 if it has been dropped meanwhile.
    pub fn current_user(&self) -> Result<String> {
        let oid = self.settings.lock().current_role();
        self.role_name(oid)
    }

    /// The name of the role that the session was begun as, or took by SET SESSION AUTHORIZATION.
    ///
    /// # Errors
    /// 42704 if it has been dropped meanwhile.
    pub fn session_user(&self) -> Result<String> {
        let oid = self.settings.lock().session_role();
        self.role_name(oid)
    }

    fn role_name(&self, oid: Option<Oid>) -> Result<String> {
        let (catalog, oid) = (self.catalog(), oid.unwrap_or(0));
        let gone = || SqlError::new(code::UNDEFINED_OBJECT, format!("invalid role OID: {oid}"));
        role_by_oid(&catalog, oid).map(|role| role.name.clone()).ok_or_else(gone)
    }

    /// What SHOW says of a setting of sessions or of the server.
    ///
    /// # Errors
    /// 42704; 42501 for a setting of the server that tells of its files.
    pub fn show(&self, name: &str) -> Result<String> {
        if let Some(shown) = self.limits.shown(self, name) {
            return Ok(shown);
        }
        let shown = self.settings.lock().show(name);
        let Some(server) = shown.as_ref().err().and_then(|_| self.server_setting(name)) else { return shown };
        if server.private && !self.role(&self.catalog()).is_some_and(|role| role.superuser) {
            let message = format!("must be superuser to examine \"{}\"", server.name);
            return Err(SqlError::new("42501", message));
        }
        Ok(server.value)
    }

    fn server_setting(&self, name: &str) -> Option<Shown> {
        self.server_settings().into_iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
    }

    /// The settings of the server, those under PostgreSQL's names included; none in an embedded database.
    pub fn server_settings(&self) -> Vec<Shown> {
        let mut settings =
            self.backends.configuration().map(|configuration| configuration.settings()).unwrap_or_default();
        settings.extend(super::postgres_settings::of(&settings, self.backend.server));
        settings
    }

    /// Changes a setting; none: to its default.
    pub fn set(&self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        let catalog = self.catalog();
        let identities = Identities { catalog: &catalog, database: self.database, login: self.login };
        self.may_set(&catalog, name)?;
        if super::settings::find(name).is_none()
            && let Some(server) = self.server_setting(name)
        {
            let why = if server.reloads { "now" } else { "without restarting the server" };
            return Err(SqlError::new("55P02", format!("parameter \"{}\" cannot be changed {why}", server.name)));
        }
        self.check_mode(name, value)?;
        let shown = self.settings.lock().set(name, value, local, &identities)?;
        self.apply_mode(name);
        if name.eq_ignore_ascii_case("application_name") {
            if let Some(long) = value.filter(|long| shortened(long).len() < long.len()) {
                let message = format!("identifier \"{long}\" will be truncated to \"{}\"", shortened(long));
                self.notice("NOTICE", SqlError::new("42622", message));
            }
            self.known_as(shown);
        }
        Ok(())
    }

    /// Whether the session's role may change a setting at all.
    ///
    /// # Errors
    /// 42501.
    pub fn may_set(&self, catalog: &Catalog, name: &str) -> Result<()> {
        let guarded = super::settings::find(name).is_some_and(super::settings::Setting::is_for_superusers);
        if guarded && !self.role(catalog).is_some_and(|role| role.superuser) {
            return Err(SqlError::new("42501", format!("permission denied to set parameter \"{name}\"")));
        }
        Ok(())
    }

    /// Awaits something that may wait for a lock, for as long as `lock_timeout` allows; pinned by the caller, or each level of calls
    /// would hold it twice. When that has passed the
    /// session interrupts itself, which drops the statement at this very wait.
    pub async fn lock_wait<T>(
        &self,
        wait: impl Future<Output = std::result::Result<T, EngineError>>,
    ) -> std::result::Result<T, EngineError> {
        let limit = self.settings.lock().lock_timeout_ms;
        if limit == 0 {
            return wait.await;
        }
        // The session still waits when it is interrupted, so the error can name the session that blocks it.
        let mut wait = pin!(wait);
        match timeout(Duration::from_millis(limit), wait.as_mut()).await {
            Ok(done) => done,
            Err(_) => {
                self.backend.interrupt.raise(Reason::LockTimeout);
                std::future::pending().await
            }
        }
    }

    /// Locks a relation until the transaction ends. A strong mode lets others pass while it waits, as the settings say.
    pub async fn lock_relation(&self, oid: u32, mode: LockMode, if_taken: IfTaken) -> Result<()> {
        let strong = mode.is_strong_table_mode() && if_taken == IfTaken::Wait;
        let terms = if strong { self.settings.lock().step_aside_terms() } else { None };
        self.lock_as(oid, mode, if_taken, terms).await
    }

    /// The same for DROP INDEX CONCURRENTLY: where waiting DDL holds back later statements for as long as it waits, this one lets them pass.
    ///
    /// # Errors
    /// Those of locks.
    pub async fn lock_holding_nobody(&self, oid: u32, mode: LockMode) -> Result<()> {
        let terms = self.settings.lock().step_aside_terms();
        let never = StepAsideTerms { window: Duration::ZERO, rounds: None, fails: false };
        self.lock_as(oid, mode, IfTaken::Wait, Some(terms.unwrap_or(never))).await
    }

    /// The same, first come, first served: `LOCK TABLE`.
    pub async fn lock_in_turn(&self, oid: u32, mode: LockMode, if_taken: IfTaken) -> Result<()> {
        self.lock_as(oid, mode, if_taken, None).await
    }

    async fn lock_as(&self, oid: u32, mode: LockMode, if_taken: IfTaken, terms: Option<StepAsideTerms>) -> Result<()> {
        let database = if oid < 16_384 { 0 } else { self.database };
        let tag = LockTag::Relation { database, relation: u64::from(oid) };
        let taken = {
            let mut session = self.engine.take();
            match terms {
                Some(terms) => {
                    let lock = session.lock_stepping_aside(tag.clone(), mode, terms);
                    Box::pin(self.lock_wait(lock)).await
                }
                None => self.lock_wait(pin!(session.lock(tag.clone(), mode, LockScope::Transaction, if_taken))).await,
            }
        };
        taken.map_err(|e| {
            if is_lock_not_available(&e) {
                let catalog = self.catalog();
                let name = catalog.get(oid).map_or_else(|| oid.to_string(), |o| o.name().to_owned());
                let error = SqlError::new("55P03", format!("could not obtain lock on relation \"{name}\""));
                return obstacle::refused(self, error, &tag, mode);
            }
            from_engine(e)
        })
    }
}
