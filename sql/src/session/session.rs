//! A session: texts in, results out, transactions in between.
//!
//! # Life of a transaction block
//! ```text
//!           BEGIN                      error
//!   None ----------> Open ---------------------> Failed
//!    ^ \              | COMMIT, ROLLBACK            | ROLLBACK (or COMMIT, which then rolls back)
//!    |  \ statement   v                             v
//!    |   -> Implicit -> None  <---------------------
//! ```
//! A statement outside of a block runs in an implicit transaction, which ends with the batch: the text of a simple
//! query, or the messages up to Sync.

use super::backend::Backend;
use super::client::{Client, TransactionStatus};
use super::core::{Core, now};
use super::run::{self, Cached, Execution};
use super::settings::{Settings, SettingsMark};
use super::{Backends, copy, ddl, utility};
use crate::error::{Result, SqlError, code};
use crate::exec::cell::EngineCell;
use crate::exec::errors::from_engine;
use crate::expr::Params;
use crate::planner::plan::OutputColumn;
use crate::syntax::stmt::{Isolation as SqlIsolation, Statement, Transaction, TransactionModes};
use crate::syntax::{Parsed, parse};
use crate::types::{Datum, Oid, SqlType, oid, text};
use clearway_base::sync::Mutex;
use clearway_engine::db::Db;
use clearway_engine::session::{Durability, Isolation, Mark, TxnOptions};
use std::collections::HashMap;
use std::sync::Arc;

/// Texts whose parsed form and plan are kept.
const CACHE_MAX: usize = 200;
/// Longer texts are not kept.
const CACHED_TEXT_MAX: usize = 4_096;

/// Who begins a session, and how.
pub struct SessionStart {
    /// The session as others see it.
    pub backend: Arc<Backend>,
    /// All sessions.
    pub backends: Arc<Backends>,
    /// The database's name.
    pub database: String,
    /// The role's name.
    pub user: String,
    /// Settings from the start of the connection.
    pub options: Vec<(String, String)>,
}

/// What Bind says.
pub struct Bind<'a> {
    /// Forms of the parameters.
    pub formats: &'a [i16],
    /// Their values.
    pub values: &'a [Option<&'a [u8]>],
    /// Forms of the result's columns.
    pub result_formats: &'a [i16],
}

/// What the server times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// `statement_timeout`; 0: none.
    pub statement_ms: u64,
    /// `idle_in_transaction_session_timeout`.
    pub idle_in_transaction_ms: u64,
    /// `idle_session_timeout`.
    pub idle_session_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    None,
    Implicit,
    Open,
    Failed,
}

struct Savepoint {
    name: String,
    mark: Mark,
    settings: SettingsMark,
    /// A statement since has changed or locked rows.
    wrote: bool,
}

/// A prepared statement.
pub struct Prepared {
    /// Its text.
    pub text: Arc<str>,
    /// Its tree; none: the text is empty.
    pub statement: Option<Arc<Statement>>,
    /// Types of its parameters.
    pub types: Vec<Oid>,
    /// The result's columns.
    pub columns: Option<Vec<OutputColumn>>,
    plan: Mutex<Option<Arc<Cached>>>,
}

struct Portal {
    prepared: Arc<Prepared>,
    params: Arc<[Datum]>,
    formats: Vec<i16>,
    running: Option<Execution>,
    finished: bool,
}

/// A session.
pub struct Session {
    pub(super) core: Arc<Core>,
    block: Block,
    savepoints: Vec<Savepoint>,
    settings_at_begin: Option<SettingsMark>,
    transaction_started: i64,
    statements: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    cache: HashMap<Arc<str>, Arc<Vec<Arc<Prepared>>>>,
    /// Statements run in the implicit transaction so far.
    in_batch: u32,
    /// Rows or an error have been given since the last wait for durability.
    told: bool,
}

impl Session {
    /// Begins a session.
    ///
    /// # Errors
    /// 3D000 for an unknown database, 28000 for an unknown role, 22023 and others for bad settings.
    pub async fn new(db: &Arc<Db>, start: SessionStart) -> Result<Session> {
        let catalog = db.catalog();
        let role = catalog.role(&start.user).filter(|r| r.login).cloned();
        let Some(role) = role else {
            let message = match catalog.role(&start.user) {
                Some(_) => format!("role \"{}\" is not permitted to log in", start.user),
                None => format!("role \"{}\" does not exist", start.user),
            };
            return Err(SqlError::new("28000", message));
        };
        let database = catalog
            .database(&start.database)
            .ok_or_else(|| SqlError::new("3D000", format!("database \"{}\" does not exist", start.database)))?;
        let mut settings = Settings::default();
        settings.set_fixed("session_authorization", &start.user);
        settings.set_fixed("is_superuser", if role.superuser { "on" } else { "off" });
        for (name, value) in &start.options {
            if super::settings::find(name).is_some()
                || !matches!(name.as_str(), "user" | "database" | "replication" | "options")
            {
                settings.set(name, Some(value), false)?;
            }
        }
        settings.keep_as_start();
        settings.take_changed();
        let engine = EngineCell::new(db.session(start.backend.pid, database.oid));
        let core = Core::new(
            engine,
            db.clone(),
            (start.backend, start.backends),
            (database.oid, start.database),
            start.user,
            settings,
        );
        Ok(Session {
            core: Arc::new(core),
            block: Block::None,
            savepoints: Vec::new(),
            settings_at_begin: None,
            transaction_started: 0,
            statements: HashMap::new(),
            portals: HashMap::new(),
            cache: HashMap::new(),
            in_batch: 0,
            told: false,
        })
    }

    /// Settings that the client is told of at the start.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        let settings = self.core.settings.lock();
        let reported = super::settings::SETTINGS.iter().filter(|s| s.reported);
        reported.map(|s| (s.name, settings.get(s.name).to_owned())).collect()
    }

    /// The timeouts that the server keeps.
    pub fn timeouts(&self) -> Timeouts {
        let settings = self.core.settings.lock();
        Timeouts {
            statement_ms: settings.timeout_ms("statement_timeout"),
            idle_in_transaction_ms: settings.timeout_ms("idle_in_transaction_session_timeout"),
            idle_session_ms: settings.timeout_ms("idle_session_timeout"),
        }
    }

    /// Where the transaction stands.
    pub fn transaction_status(&self) -> TransactionStatus {
        match self.block {
            Block::None | Block::Implicit => TransactionStatus::Idle,
            Block::Open => TransactionStatus::InBlock,
            Block::Failed => TransactionStatus::Failed,
        }
    }

    /// Waits until what replies depend on is durable; within an open block bare tags need not wait.
    ///
    /// # Errors
    /// The log is poisoned.
    pub async fn before_send(&mut self) -> Result<()> {
        // A bare tag within a block tells nothing that a crash could take back; rows and errors do.
        if self.block == Block::Open && !std::mem::take(&mut self.told) {
            return Ok(());
        }
        self.told = false;
        self.core.engine.take().wait_reply().await.map_err(from_engine)
    }

    /// Ends the session: its transaction is rolled back, its locks go.
    pub async fn end(mut self) {
        self.portals.clear();
        let mut engine = self.core.engine.take();
        // What can't be undone now is undone in the background: the engine keeps the transaction.
        let _ = engine.roll_back().await;
        let locks = self.core.db.transactions().locks().clone();
        locks.release_session(&engine.owner().clone());
    }

    // ---- simple queries

    /// Runs the statements of a text.
    ///
    /// # Errors
    /// The first statement's that fails; the rest is not run.
    pub async fn simple(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        let list = match self.prepare_text(sql) {
            Ok(list) => list,
            Err(e) => return self.failed(e, client).await,
        };
        if list.is_empty() {
            client.empty_query();
            return Ok(());
        }
        let count = list.len();
        for (i, prepared) in list.iter().enumerate() {
            let run = self.run_simple(prepared, client).await;
            let tag = match run {
                Ok(tag) => tag,
                Err(e) => return self.failed(e, client).await,
            };
            if i + 1 == count
                && let Err(e) = self.end_implicit().await
            {
                return self.failed(e, client).await;
            }
            self.deliver(client);
            if let Some(tag) = tag {
                client.command_complete(&tag);
            }
        }
        Ok(())
    }

    fn prepare_text(&mut self, sql: &str) -> Result<Arc<Vec<Arc<Prepared>>>> {
        if let Some(list) = self.cache.get(sql) {
            return Ok(list.clone());
        }
        let list: Vec<Arc<Prepared>> = parse(sql)?.into_iter().map(|p| Arc::new(unplanned(p, sql))).collect();
        let list = Arc::new(list);
        if sql.len() <= CACHED_TEXT_MAX {
            if self.cache.len() >= CACHE_MAX {
                self.cache.clear();
            }
            self.cache.insert(sql.into(), list.clone());
        }
        Ok(list)
    }

    async fn run_simple(&mut self, prepared: &Arc<Prepared>, client: &mut dyn Client) -> Result<Option<String>> {
        let Some(statement) = prepared.statement.clone() else { return Ok(None) };
        self.check_block(&statement)?;
        if let Statement::Transaction(t) = &*statement {
            return self.transaction(t).await.map(Some);
        }
        self.begin_implicit();
        let core = self.core.clone();
        let interrupt = &core.backend.interrupt;
        interrupt.guard(self.statement(prepared, &statement, Arc::from([]), client)).await?.map(Some)
    }

    /// Runs a statement that is none about transactions, with all its rows.
    pub(super) async fn statement(
        &mut self,
        prepared: &Arc<Prepared>,
        statement: &Statement,
        params: Arc<[Datum]>,
        client: &mut dyn Client,
    ) -> Result<String> {
        if is_planned(statement) {
            let mut execution = self.start(prepared, statement, params).await?;
            let core = self.core.clone();
            if let Some(columns) = &execution.cached.plan.columns {
                run::describe(columns, &[], client);
            }
            execution.give(&core, 0, &[], client).await?;
            return Ok(execution.tag());
        }
        self.core.engine.take().owner().statement(&prepared.text);
        match statement {
            Statement::Execute { name, args } => {
                let (target, params) = self.execute_arguments(name, args)?;
                let inner = target.statement.clone().ok_or_else(|| SqlError::internal("an empty statement"))?;
                Box::pin(self.statement(&target, &inner, params, client)).await
            }
            Statement::Explain { options, statement } => {
                utility::explain(self, prepared, options, statement, client).await
            }
            Statement::Copy(c) => copy::copy(self, prepared, c, client).await,
            _ => match utility::run(self, statement, client).await? {
                Some(tag) => Ok(tag),
                None => ddl::run(self, prepared, statement).await,
            },
        }
    }

    /// Begins to run a planned statement.
    pub(super) async fn start(
        &mut self,
        prepared: &Prepared,
        statement: &Statement,
        params: Arc<[Datum]>,
    ) -> Result<Execution> {
        let cached = prepared.plan.lock().clone();
        let request = run::Request {
            statement,
            text: &prepared.text,
            params,
            types: &prepared.types,
            alone: self.block == Block::Implicit && self.in_batch <= 1,
            transaction_started: self.transaction_started,
        };
        let (execution, cached) = run::begin(&self.core, request, cached).await?;
        self.told |= cached.plan.columns.is_some();
        if !cached.plan.read_only
            && let Some(savepoint) = self.savepoints.last_mut()
        {
            savepoint.wrote = true;
            self.show_savepoints();
        }
        *prepared.plan.lock() = Some(cached);
        Ok(execution)
    }

    /// Sends messages and reported settings.
    fn deliver(&mut self, client: &mut dyn Client) {
        let level = self.core.settings.lock().get("client_min_messages").to_owned();
        for (severity, message) in self.core.take_notices() {
            let hidden = match level.as_str() {
                "error" => true,
                "warning" => severity != "WARNING",
                _ => false,
            };
            if !hidden {
                client.notice(severity, &message);
            }
        }
        let changed = self.core.settings.lock().take_changed();
        for (name, value) in changed {
            client.parameter_status(name, &value);
        }
    }

    // ---- transactions

    fn check_block(&self, statement: &Statement) -> Result<()> {
        let ends = matches!(
            statement,
            Statement::Transaction(
                Transaction::Commit { .. } | Transaction::Rollback { .. } | Transaction::RollbackTo(_)
            )
        );
        if self.block == Block::Failed && !ends {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new("25P02", message));
        }
        Ok(())
    }

    /// Whether a block was opened by BEGIN.
    pub(super) fn in_block(&self) -> bool {
        self.block == Block::Open
    }

    fn begin_implicit(&mut self) {
        if self.block == Block::None {
            self.open(TransactionModes::default());
            self.block = Block::Implicit;
        }
        self.in_batch += 1;
    }

    fn open(&mut self, modes: TransactionModes) {
        let mut settings = self.core.settings.lock();
        self.settings_at_begin = Some(settings.mark());
        let level = match modes.isolation {
            Some(SqlIsolation::ReadUncommitted) => "read uncommitted".to_owned(),
            Some(SqlIsolation::ReadCommitted) => "read committed".to_owned(),
            Some(SqlIsolation::RepeatableRead) => "repeatable read".to_owned(),
            Some(SqlIsolation::Serializable) => "serializable".to_owned(),
            None => settings.get("default_transaction_isolation").to_owned(),
        };
        let read_only = modes.read_only.unwrap_or(settings.get("default_transaction_read_only") == "on");
        settings.set_fixed("transaction_isolation", &level);
        settings.set_fixed("transaction_read_only", if read_only { "on" } else { "off" });
        drop(settings);
        self.transaction_started = now();
        self.core.engine.take().begin(TxnOptions { isolation: isolation_of(&level), read_only });
        self.in_batch = 0;
    }

    fn check_modes(&self, modes: TransactionModes) -> Result<()> {
        let settings = self.core.settings.lock();
        let asked = modes.isolation == Some(SqlIsolation::Serializable)
            || (modes.isolation.is_none() && settings.get("default_transaction_isolation") == "serializable");
        if asked && settings.get("serializable") != "snapshot" {
            return Err(SqlError::unsupported("the isolation level SERIALIZABLE")
                .hint("Set serializable = snapshot to run such transactions as REPEATABLE READ."));
        }
        Ok(())
    }

    async fn transaction(&mut self, t: &Transaction) -> Result<String> {
        match t {
            Transaction::Begin { modes, start } => {
                self.check_modes(*modes)?;
                match self.block {
                    Block::Open => {
                        let message = "there is already a transaction in progress";
                        self.core.notice("WARNING", SqlError::new("25001", message));
                    }
                    Block::Implicit => {
                        self.set_modes(*modes)?;
                        self.block = Block::Open;
                    }
                    _ => {
                        self.open(*modes);
                        self.block = Block::Open;
                    }
                }
                Ok(if *start { "START TRANSACTION" } else { "BEGIN" }.to_owned())
            }
            Transaction::Commit { chain } => self.end_block(true, *chain).await,
            Transaction::Rollback { chain } => self.end_block(false, *chain).await,
            Transaction::Savepoint(name) => {
                self.need_block("SAVEPOINT")?;
                let mark = self.core.engine.take().mark();
                let settings = self.core.settings.lock().mark();
                self.savepoints.push(Savepoint { name: name.clone(), mark, settings, wrote: false });
                Ok("SAVEPOINT".to_owned())
            }
            Transaction::Release(name) => {
                self.need_block("RELEASE SAVEPOINT")?;
                let at = self.savepoint(name)?;
                let wrote = self.savepoints[at..].iter().any(|s| s.wrote);
                self.savepoints.truncate(at);
                // PostgreSQL keeps a released subtransaction's id until the end; here the one below stands for it.
                if let Some(below) = self.savepoints.last_mut() {
                    below.wrote |= wrote;
                }
                self.show_savepoints();
                Ok("RELEASE".to_owned())
            }
            Transaction::RollbackTo(name) => {
                if self.block != Block::Failed {
                    self.need_block("ROLLBACK TO SAVEPOINT")?;
                }
                let at = self.savepoint(name)?;
                self.portals.clear();
                self.savepoints.truncate(at + 1);
                self.savepoints[at].wrote = false;
                self.show_savepoints();
                let (mark, settings) = (self.savepoints[at].mark.clone(), self.savepoints[at].settings.clone());
                self.core.engine.take().roll_back_to(&mark).await.map_err(from_engine)?;
                self.core.settings.lock().roll_back_to(&settings);
                self.block = Block::Open;
                Ok("ROLLBACK".to_owned())
            }
            Transaction::Set(modes) => {
                if self.block == Block::None {
                    let message = "SET TRANSACTION can only be used in transaction blocks";
                    self.core.notice("WARNING", SqlError::new("25P01", message));
                } else {
                    self.set_modes(*modes)?;
                }
                Ok("SET".to_owned())
            }
            Transaction::SetSession(modes) => {
                if let Some(level) = modes.isolation {
                    let level = match level {
                        SqlIsolation::ReadUncommitted => "read uncommitted",
                        SqlIsolation::ReadCommitted => "read committed",
                        SqlIsolation::RepeatableRead => "repeatable read",
                        SqlIsolation::Serializable => "serializable",
                    };
                    self.core.set("default_transaction_isolation", Some(level), false)?;
                }
                if let Some(read_only) = modes.read_only {
                    let value = if read_only { "on" } else { "off" };
                    self.core.set("default_transaction_read_only", Some(value), false)?;
                }
                Ok("SET".to_owned())
            }
            Transaction::Prepare(_) | Transaction::CommitPrepared(_) | Transaction::RollbackPrepared(_) => {
                Err(SqlError::unsupported("a prepared transaction"))
            }
        }
    }

    /// Changes the modes of the transaction that is open.
    pub(super) fn set_modes(&mut self, modes: TransactionModes) -> Result<()> {
        if modes == TransactionModes::default() {
            return Ok(());
        }
        self.check_modes(modes)?;
        let mut engine = self.core.engine.take();
        let mut options = engine.options();
        if let Some(level) = modes.isolation {
            let (name, level) = match level {
                SqlIsolation::RepeatableRead => ("repeatable read", Isolation::RepeatableRead),
                SqlIsolation::Serializable => ("serializable", Isolation::RepeatableRead),
                SqlIsolation::ReadCommitted => ("read committed", Isolation::ReadCommitted),
                SqlIsolation::ReadUncommitted => ("read uncommitted", Isolation::ReadCommitted),
            };
            if engine.has_snapshot() && level != options.isolation {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(SqlError::new("25001", message));
            }
            options.isolation = level;
            self.core.settings.lock().set_fixed("transaction_isolation", name);
        }
        if let Some(read_only) = modes.read_only {
            options.read_only = read_only;
            let value = if read_only { "on" } else { "off" };
            self.core.settings.lock().set_fixed("transaction_read_only", value);
        }
        engine.set_options(options);
        Ok(())
    }

    /// Tells pg_locks how many levels of the transaction would have an id of their own in PostgreSQL.
    fn show_savepoints(&self) {
        let levels = self.savepoints.iter().rposition(|s| s.wrote).map_or(0, |at| at + 1);
        self.core.backend.subtransactions.store(levels as u32, std::sync::atomic::Ordering::Relaxed);
    }

    fn need_block(&self, what: &str) -> Result<()> {
        if self.block == Block::Open {
            return Ok(());
        }
        Err(SqlError::new("25P01", format!("{what} can only be used in transaction blocks")))
    }

    fn savepoint(&self, name: &str) -> Result<usize> {
        let at = self.savepoints.iter().rposition(|s| s.name == name);
        at.ok_or_else(|| SqlError::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    async fn end_block(&mut self, commit: bool, chain: bool) -> Result<String> {
        if matches!(self.block, Block::None | Block::Implicit) {
            self.core.notice("WARNING", SqlError::new("25P01", "there is no transaction in progress"));
        }
        let options = self.core.engine.take().options();
        let commit = commit && self.block != Block::Failed;
        if commit {
            self.commit().await?;
        } else {
            self.roll_back().await?;
        }
        if chain {
            self.core.engine.take().begin(options);
            self.block = Block::Open;
            self.settings_at_begin = Some(self.core.settings.lock().mark());
            self.transaction_started = now();
        }
        Ok(if commit { "COMMIT" } else { "ROLLBACK" }.to_owned())
    }

    async fn commit(&mut self) -> Result<()> {
        self.portals.clear();
        self.savepoints.clear();
        self.show_savepoints();
        let later = self.core.settings.lock().get("synchronous_commit") == "off";
        let durability = if later { Durability::Async } else { Durability::Wait };
        {
            let mut engine = self.core.engine.take();
            if engine.is_open() {
                engine.commit(durability).await.map_err(from_engine)?;
            }
        }
        self.block = Block::None;
        self.in_batch = 0;
        self.settings_at_begin = None;
        self.core.settings.lock().end_transaction();
        Ok(())
    }

    async fn roll_back(&mut self) -> Result<()> {
        self.portals.clear();
        self.savepoints.clear();
        self.show_savepoints();
        self.block = Block::None;
        self.in_batch = 0;
        if let Some(mark) = self.settings_at_begin.take() {
            self.core.settings.lock().roll_back_to(&mark);
        }
        let undone = self.core.engine.take().roll_back().await;
        undone.map_err(from_engine)
    }

    async fn end_implicit(&mut self) -> Result<()> {
        if self.block == Block::Implicit {
            self.commit().await?;
        }
        Ok(())
    }

    /// A statement has failed: its effects go, and the block is failed.
    async fn failed<T>(&mut self, e: SqlError, client: &mut dyn Client) -> Result<T> {
        self.fail().await?;
        self.deliver(client);
        Err(e)
    }

    async fn fail(&mut self) -> Result<()> {
        self.told = true;
        match self.block {
            Block::None | Block::Failed => {}
            Block::Implicit => self.roll_back().await?,
            Block::Open => {
                self.portals.clear();
                self.block = Block::Failed;
                match self.savepoints.last() {
                    // The locks since the last savepoint go; those before stay with what they protect.
                    Some(savepoint) => {
                        let mark = savepoint.mark.clone();
                        self.core.engine.take().roll_back_to(&mark).await.map_err(from_engine)?;
                    }
                    None => self.core.engine.take().roll_back().await.map_err(from_engine)?,
                }
            }
        }
        Ok(())
    }

    // ---- the extended protocol

    /// Prepares a statement.
    ///
    /// # Errors
    /// Whatever is wrong with the text.
    pub async fn parse(&mut self, name: &str, sql: &str, types: &[Oid]) -> Result<()> {
        if !name.is_empty() && self.statements.contains_key(name) {
            return Err(self
                .broken(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")))
                .await);
        }
        match self.prepare(sql, types) {
            Ok(prepared) => {
                self.statements.insert(name.to_owned(), Arc::new(prepared));
                Ok(())
            }
            Err(e) => Err(self.broken(e).await),
        }
    }

    /// A message of the extended protocol has failed.
    async fn broken(&mut self, e: SqlError) -> SqlError {
        match self.fail().await {
            Ok(()) => e,
            Err(worse) => worse,
        }
    }

    fn prepare(&mut self, sql: &str, types: &[Oid]) -> Result<Prepared> {
        let mut parsed = parse(sql)?;
        if parsed.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(SqlError::new(code::SYNTAX_ERROR, message));
        }
        let Some(parsed) = parsed.pop() else {
            return Ok(Prepared {
                text: sql.into(),
                statement: None,
                types: Vec::new(),
                columns: None,
                plan: Mutex::new("sql/plan", None),
            });
        };
        self.check_block(&parsed.statement)?;
        self.prepare_statement(parsed.statement, sql.into(), types)
    }

    /// Prepares a parsed statement.
    pub(super) fn prepare_statement(
        &mut self,
        statement: Statement,
        text: Arc<str>,
        types: &[Oid],
    ) -> Result<Prepared> {
        let given = types.iter().map(|t| if *t == 0 || *t == oid::UNKNOWN { None } else { Some(*t) }).collect();
        let mut params = Params { types: given, open: true };
        let planned = if is_planned(&statement) { run::plan(&self.core, &statement, &mut params)? } else { None };
        let (types, columns, plan) = match planned {
            Some(cached) => {
                let columns = cached.plan.columns.clone();
                (cached.plan.params.clone(), columns, Some(Arc::new(cached)))
            }
            None => (Vec::new(), utility::columns_of(self, &statement)?, None),
        };
        Ok(Prepared { text, statement: Some(Arc::new(statement)), types, columns, plan: Mutex::new("sql/plan", plan) })
    }

    fn prepared(&self, name: &str) -> Result<Arc<Prepared>> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = if name.is_empty() {
                "unnamed prepared statement does not exist".to_owned()
            } else {
                format!("prepared statement \"{name}\" does not exist")
            };
            SqlError::new("26000", message)
        })
    }

    /// Binds parameters to a prepared statement.
    ///
    /// # Errors
    /// 26000, 08P01, 22P02, 22P03.
    pub async fn bind(&mut self, portal: &str, statement: &str, bind: Bind<'_>) -> Result<()> {
        match self.bind_now(portal, statement, &bind) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.broken(e).await),
        }
    }

    fn bind_now(&mut self, portal: &str, statement: &str, bind: &Bind<'_>) -> Result<()> {
        let prepared = self.prepared(statement)?;
        if let Some(s) = &prepared.statement {
            self.check_block(s)?;
        }
        if bind.values.len() != prepared.types.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
                bind.values.len(),
                prepared.types.len()
            );
            return Err(SqlError::new("08P01", message));
        }
        let mut params = Vec::with_capacity(bind.values.len());
        if !bind.values.is_empty() {
            let catalog = self.core.catalog();
            let names = self.core.names(&catalog);
            let format = self.core.settings.lock().format.clone();
            let conversion = text::Conversion { format: &format, now: now(), names: &names };
            for (i, (value, ty)) in bind.values.iter().zip(&prepared.types).enumerate() {
                params.push(parameter(*value, *ty, run::format_of(bind.formats, i), &conversion)?);
            }
        }
        if !portal.is_empty() && self.portals.contains_key(portal) {
            return Err(SqlError::new("42P03", format!("cursor \"{portal}\" already exists")));
        }
        let formats = bind.result_formats.to_vec();
        let made = Portal { prepared, params: params.into(), formats, running: None, finished: false };
        self.portals.insert(portal.to_owned(), made);
        Ok(())
    }

    /// Tells the client of a statement's parameters and columns.
    ///
    /// # Errors
    /// 26000.
    pub async fn describe_statement(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        let prepared = match self.prepared(name) {
            Ok(prepared) => prepared,
            Err(e) => return Err(self.broken(e).await),
        };
        client.parameter_description(&prepared.types);
        match &prepared.columns {
            Some(columns) => run::describe(columns, &[], client),
            None => client.no_data(),
        }
        Ok(())
    }

    /// Tells the client of a portal's columns.
    ///
    /// # Errors
    /// 34000.
    pub async fn describe_portal(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        let Some(portal) = self.portals.get(name) else {
            return Err(self.broken(no_portal(name)).await);
        };
        match &portal.prepared.columns {
            Some(columns) => run::describe(columns, &portal.formats, client),
            None => client.no_data(),
        }
        Ok(())
    }

    /// Runs a portal, or goes on with it.
    ///
    /// # Errors
    /// The statement's.
    pub async fn execute(&mut self, portal: &str, max_rows: u32, client: &mut dyn Client) -> Result<()> {
        match self.execute_portal(portal, max_rows, client).await {
            Ok(()) => {
                self.deliver(client);
                Ok(())
            }
            Err(e) => self.failed(e, client).await,
        }
    }

    async fn execute_portal(&mut self, name: &str, max_rows: u32, client: &mut dyn Client) -> Result<()> {
        let portal = self.portals.get_mut(name).ok_or_else(|| no_portal(name))?;
        let prepared = portal.prepared.clone();
        let (params, formats) = (portal.params.clone(), portal.formats.clone());
        let (mut running, finished) = (portal.running.take(), portal.finished);
        let Some(statement) = prepared.statement.clone() else {
            client.empty_query();
            return Ok(());
        };
        self.core.backend.runs(prepared.text.clone());
        self.check_block(&statement)?;
        if let Statement::Transaction(t) = &*statement {
            let tag = self.transaction(t).await?;
            client.command_complete(&tag);
            return Ok(());
        }
        if !is_planned(&statement) {
            if finished {
                return Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")));
            }
            self.begin_implicit();
            let core = self.core.clone();
            // A client of the extended protocol has its columns from Describe.
            let mut quiet = super::quiet::Quiet(client);
            let body = self.statement(&prepared, &statement, params, &mut quiet);
            let tag = core.backend.interrupt.guard(body).await??;
            client.command_complete(&tag);
            if let Some(portal) = self.portals.get_mut(name) {
                portal.finished = true;
            }
            return Ok(());
        }
        if finished {
            let tag = if prepared.columns.is_some() { "SELECT 0" } else { "" };
            client.command_complete(tag);
            return Ok(());
        }
        self.begin_implicit();
        let core = self.core.clone();
        let body = async {
            let mut execution = match running.take() {
                Some(execution) => execution,
                None => self.start(&prepared, &statement, params).await?,
            };
            let done = execution.give(&core, u64::from(max_rows), &formats, client).await?;
            Ok::<_, SqlError>((execution, done))
        };
        let (execution, done) = core.backend.interrupt.guard(body).await??;
        if done {
            client.command_complete(&execution.tag());
        } else {
            client.portal_suspended();
        }
        if let Some(portal) = self.portals.get_mut(name) {
            portal.finished = done;
            portal.running = if done { None } else { Some(execution) };
        }
        Ok(())
    }

    /// Forgets a prepared statement.
    pub fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Forgets a portal.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Ends a batch: the implicit transaction commits.
    ///
    /// # Errors
    /// The commit's.
    pub async fn sync(&mut self) -> Result<()> {
        if self.block == Block::Implicit
            && let Err(e) = self.commit().await
        {
            return Err(self.broken(e).await);
        }
        if self.block == Block::None {
            self.portals.clear();
        }
        Ok(())
    }

    // ---- PREPARE, EXECUTE, DEALLOCATE

    /// PREPARE.
    pub(super) fn sql_prepare(
        &mut self,
        name: &str,
        types: &[crate::syntax::ast::TypeName],
        statement: &Statement,
        text: &Arc<str>,
    ) -> Result<()> {
        if self.statements.contains_key(name) {
            return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let types: Vec<Oid> = types.iter().map(|t| crate::types::resolve(t).map(|t| t.oid)).collect::<Result<_>>()?;
        let prepared = self.prepare_statement(statement.clone(), text.clone(), &types)?;
        self.statements.insert(name.to_owned(), Arc::new(prepared));
        Ok(())
    }

    /// DEALLOCATE.
    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.statements.clear(),
            Some(name) => {
                self.prepared(name)?;
                self.statements.remove(name);
            }
        }
        Ok(())
    }

    fn execute_arguments(
        &mut self,
        name: &str,
        args: &[crate::syntax::ast::Expr],
    ) -> Result<(Arc<Prepared>, Arc<[Datum]>)> {
        let prepared = self.prepared(name)?;
        if args.len() != prepared.types.len() {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let detail = format!("Expected {} parameters but got {}.", prepared.types.len(), args.len());
            return Err(SqlError::new(code::SYNTAX_ERROR, message).detail(detail));
        }
        let types: Vec<SqlType> = prepared.types.iter().map(|t| SqlType::new(*t)).collect();
        let params = utility::constants(&self.core, args, &types)?;
        Ok((prepared, params.into()))
    }
}

/// The engine's isolation for a level of SQL.
fn isolation_of(level: &str) -> Isolation {
    match level {
        "repeatable read" | "serializable" => Isolation::RepeatableRead,
        _ => Isolation::ReadCommitted,
    }
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}

fn parameter(value: Option<&[u8]>, ty: Oid, is_binary: bool, conversion: &text::Conversion<'_>) -> Result<Datum> {
    let Some(bytes) = value else { return Ok(Datum::Null) };
    if is_binary {
        return crate::types::binary::input(ty.into(), bytes);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| SqlError::new(code::CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\""))?;
    text::input(ty.into(), text, conversion)
}

/// Whether a statement goes through the planner.
pub(super) fn is_planned(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_))
}

fn unplanned(parsed: Parsed, sql: &str) -> Prepared {
    Prepared {
        text: sql.get(parsed.range).unwrap_or(sql).into(),
        statement: Some(Arc::new(parsed.statement)),
        types: Vec::new(),
        columns: None,
        plan: Mutex::new("sql/plan", None),
    }
}
