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
//! A statement outside of a block runs in an implicit transaction. It ends with the batch: the text of a simple query, or the messages up
//! to Sync.

use super::Backends;
use super::awaited::tag_of;
use super::choice::Choice;
use super::client::{Client, TransactionStatus};
use super::connect::{login_role, may_connect};
use super::cursors::Cursors;
use super::fastpath::Called;
use super::form::Described;
use super::kept;
use super::point::Scratch;
use super::portals::Portals;
use super::range::RangeScratch;
use super::run::{self, Cached, Execution};
use super::shared_plans::{SharedPlan, SharedPlans};
use super::short::ChangeScratch;
use super::template::Templates;
use super::texts::Unnamed;
use super::watch::Watch;
use crate::context::backend::Backend;
use crate::context::cell::EngineCell;
use crate::context::core::{Core, LastSavepoint};
use crate::context::deferred::DeferredMark;
use crate::context::errors::from_engine;
use crate::context::notify::NotifyMark;
use crate::context::obstacle;
use crate::context::privileges::{Identities, Identity};
use crate::context::settings::{Settings, SettingsMark};
use crate::context::statements::Digest;
use crate::context::steering::Steering;
use crate::context::witness;
use crate::error::{Result, SqlError};
use crate::exec::BoxFuture;
use crate::planner::plan::OutputColumn;
use crate::syntax::stmt::Statement;
use crate::types::user;
use crate::types::{Datum, Oid};
use clearway_base::breath;
use clearway_base::memory::{self, Held, Kind};
use clearway_base::sync::Mutex;
use clearway_engine::db::Db;
use clearway_engine::row_turn::RowTurn;
use clearway_engine::session::Mark;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// Texts whose parsed form and plan are kept.
pub(super) const CACHE_MAX: usize = 200;
/// Longer texts are not kept.
pub(super) const CACHED_TEXT_MAX: usize = 4_096;

/// The client that begins a session, and its options.
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
pub(super) enum Block {
    None,
    Implicit,
    Open,
    Failed,
}

pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) mark: Mark,
    pub(super) settings: SettingsMark,
    pub(super) notify: NotifyMark,
    pub(super) deferred: DeferredMark,
    /// A statement since has changed or locked rows.
    pub(super) wrote: bool,
    /// The transaction was read-only when it was set.
    pub(super) read_only: bool,
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
    /// Its digest.
    pub digest: Arc<Digest>,
    /// Values of its parameters, where they stand for constants of the text (`template`).
    pub constants: Arc<[Datum]>,
    /// By which plan it runs.
    pub(super) choice: Choice,
    /// The plan for any values of its parameters.
    pub(super) plan: Mutex<Option<Arc<Cached>>>,
    /// What a connection was told of `columns`.
    pub(super) described: OnceLock<Described>,
    /// What `statement` and `plan` belong to, if sessions share them; dropped after them (PSH-3).
    #[expect(dead_code, reason = "it is kept, and not looked at")]
    pub(super) shared: Option<Arc<SharedPlan>>,
}

/// A session.
pub struct Session {
    pub(super) core: Arc<Core>,
    pub(super) block: Block,
    pub(super) savepoints: Vec<Savepoint>,
    /// Of the session of a function: the last savepoint of the session around it, and how many there are.
    pub(super) outer: Option<LastSavepoint>,
    pub(super) settings_at_begin: Option<SettingsMark>,
    pub(super) statements: HashMap<String, Arc<Prepared>, RandomState>,
    /// The statement that was bound last, by its name; none after any change of `statements`.
    pub(super) recent: Option<(String, Arc<Prepared>)>,
    /// Statements that it has forgotten so far (DCT-3).
    pub(super) forgotten: u64,
    /// The functions that were called by their numbers.
    pub(super) called: HashMap<Oid, Arc<Called>, RandomState>,
    pub(super) portals: Portals,
    pub(super) cursors: Arc<Cursors>,
    /// The formats of the result's columns that Bind asked for, for FETCH, EXECUTE and CALL; empty in the simple protocol.
    pub(super) result_formats: Vec<i16>,
    pub(super) scratch: Scratch,
    pub(super) range_scratch: RangeScratch,
    pub(super) change_scratch: ChangeScratch,
    /// Its turn at the row that it changes on the fast path.
    pub(super) row_turn: RowTurn,
    pub(super) cache: HashMap<Arc<str>, Arc<Vec<Arc<Prepared>>>, RandomState>,
    pub(super) templates: Templates,
    pub(super) unnamed: Unnamed,
    pub(super) shared: Arc<SharedPlans>,
    /// The forms of values as text, and the change that it goes back to.
    pub(super) format_text: (u64, Arc<str>),
    /// The change of formats (DateStyle, TimeZone) that `cache` and `templates` go back to: constants mean what these say.
    pub(super) cache_formats: u64,
    /// Statements run in the implicit transaction so far.
    pub(super) in_batch: u32,
    /// A body runs the statement: it is none of the client's (PLS-3).
    pub(super) within_body: bool,
    /// Settings have changed, and the client is told of them at the end of the implicit transaction.
    pub(super) untold: bool,
    /// The text that is running has several statements.
    pub(super) of_several: bool,
    /// Rows or an error have been given since the last wait for durability.
    pub(super) told: bool,
    /// All that the last transaction depended on was durable when it had ended, and no other has begun.
    pub(super) replies: bool,
    /// Statements so far that may have changed or locked something.
    pub(super) changes: u64,
    /// What prepared statements and the cache of texts have of the session's memory.
    pub(super) prepared_held: Held,
    /// What the latest statements have cost.
    pub(super) watch: Watch,
    /// When the statement began that the client has sent a Parse for; 0: none, or there is no `statement_timeout`.
    pub(super) parsed_ns: u64,
    /// The number of the server's defaults that the settings have followed.
    pub(super) followed: u64,
}

impl Session {
    /// Begins a session.
    ///
    /// # Errors
    /// 3D000 for an unknown database, 28000 for an unknown role, 22023 and others for bad settings.
    pub async fn new(db: &Arc<Db>, start: SessionStart) -> Result<Session> {
        crate::context::index_terms::install();
        crate::context::routines::install(&super::routine::Runner);
        let catalog = db.catalog();
        let role = login_role(&catalog, &start.user)?;
        let database = catalog
            .database(&start.database)
            .ok_or_else(|| SqlError::new("3D000", format!("database \"{}\" does not exist", start.database)))?;
        may_connect(&catalog, &start, &role, database)?;
        let mut settings = Settings::default();
        settings.log_in(&start.user, Identity::of(&role));
        settings.log = start.backend.log.clone();
        if let Some(directory) = start.backends.directory.get().filter(|_| role.superuser) {
            settings.fix("data_directory", directory);
        }
        let identities = Identities { catalog: &catalog, database: database.oid, login: role.oid };
        let (followed, defaults) = (start.backends.defaults.number(), start.backends.defaults.list());
        let refused = kept::begin(&mut settings, &identities, (&role, database), (&defaults, &start.options))?;
        settings.keep_as_start();
        settings.take_changed();
        settings.get("application_name").clone_into(&mut start.backend.activity.lock().application_name);
        start.backend.role.store(role.oid, Relaxed);
        let mut engine = db.session(start.backend.pid, database.oid);
        engine.expect_two_rows();
        let engine = EngineCell::new(engine);
        let _ = start.backend.owner.set(engine.take().owner().clone());
        let _ = start.backend.progress.set(engine.take().progress().clone());
        start.backend.tell_owner();
        witness::install(db, &start.backends);
        let core = Arc::new(Core::new(
            engine,
            db.clone(),
            (start.backend, start.backends),
            (database.oid, start.database),
            role.oid,
            settings,
        ));
        refused.into_iter().for_each(|error| core.notice("WARNING", error));
        core.know();
        let session = Session::over(core, followed);
        session.cursors.share(&session.core);
        Ok(session)
    }

    /// A session outside of any transaction.
    pub(super) fn over(core: Arc<Core>, followed: u64) -> Session {
        let row_turn = RowTurn::new(core.db.row_turns().clone());
        let shared = SharedPlans::of(&core.backends);
        Session {
            outer: None,
            core,
            block: Block::None,
            savepoints: Vec::new(),
            settings_at_begin: None,
            statements: HashMap::default(),
            recent: None,
            forgotten: 0,
            called: HashMap::default(),
            portals: Portals::default(),
            cursors: Arc::default(),
            result_formats: Vec::new(),
            scratch: Scratch::default(),
            range_scratch: RangeScratch::default(),
            change_scratch: ChangeScratch::default(),
            row_turn,
            cache: HashMap::default(),
            templates: Templates::default(),
            unnamed: Unnamed::default(),
            shared,
            format_text: (0, Arc::from("")),
            cache_formats: 0,
            in_batch: 0,
            within_body: false,
            untold: false,
            of_several: false,
            told: false,
            replies: false,
            changes: 0,
            prepared_held: Held::new(Kind::Prepared),
            watch: Watch::default(),
            parsed_ns: 0,
            followed,
        }
    }

    /// Settings that the client is told of at the start.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        let settings = self.core.settings.lock();
        let reported = crate::context::settings::SETTINGS.iter().filter(|s| s.reported);
        reported.map(|s| (s.name, settings.get(s.name).to_owned())).collect()
    }

    /// The timeouts that the server keeps.
    pub fn timeouts(&self) -> Timeouts {
        let mut timeouts = {
            let settings = self.core.settings.lock();
            Timeouts {
                statement_ms: settings.statement_timeout_ms,
                idle_in_transaction_ms: settings.idle_in_transaction_ms,
                idle_session_ms: settings.idle_session_ms,
            }
        };
        timeouts.statement_ms = self.time_left(self.core.limits.statement_ms(&self.core, timeouts.statement_ms));
        timeouts
    }

    /// Statements so far that may have changed or locked something: all but those that only read.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// A digest of the row that the latest of these changed or locked last; 0: none.
    #[inline]
    pub fn row_written(&self) -> u64 {
        self.core.row_written.load(Relaxed)
    }

    /// The state of the transaction, as ReadyForQuery reports it.
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
        let durable = self.core.engine.take().wait_reply().await.map_err(from_engine);
        self.settle_waits();
        durable?;
        self.core.wait_archived().await
    }

    /// When the latest statement ended, by the clock of wait events; 0: none has ended since the last call.
    #[inline]
    pub fn take_ended_ns(&mut self) -> u64 {
        self.watch.take_ended_ns()
    }

    /// Ends the session: its transaction is rolled back, its locks go.
    pub async fn end(mut self) {
        self.portals.clear();
        self.cursors.clear();
        self.core.limits.rest(&self.core);
        let mut engine = self.core.engine.take();
        // What can't be undone now is undone in the background: the engine keeps the transaction.
        let _ = engine.roll_back().await;
        let locks = self.core.db.transactions().locks().clone();
        locks.release_session(&engine.owner().clone());
    }

    /// The types that users define, for the thread that polls the session.
    pub fn types(&self) -> user::Slot {
        self.core.types.clone()
    }

    /// Runs the statements of a text.
    ///
    /// # Errors
    /// The first statement's that fails; the rest is not run.
    pub async fn simple(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        self.give_turn_back();
        self.parsed_ns = 0;
        self.begin_account();
        let flag = self.core.backend.interrupt.flag();
        let types = self.core.types.clone();
        let ran = user::within(types, pin!(breath::within(flag, self.running_text(sql, client)))).await;
        self.rest();
        ran
    }

    /// The future of `run_text`. It is made by a function that is not async: so its code is generated in this crate, and not once more in each
    /// crate that awaits a session.
    fn running_text<'a>(&'a mut self, sql: &'a str, client: &'a mut dyn Client) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.run_text(sql, client))
    }

    async fn run_text(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        let list = match self.prepare_text(sql) {
            Ok(list) => list,
            Err(e) => return self.failed(e, client).await,
        };
        if list.is_empty() {
            client.empty_query();
            return Ok(());
        }
        let count = list.len();
        self.of_several = count > 1;
        for (i, prepared) in list.iter().enumerate() {
            let began_ns = self.watch(&prepared.digest, &prepared.text, None);
            let awaited = if count == 1 { self.change_awaited(None, prepared, began_ns).await } else { Ok(None) };
            let run = match awaited {
                Ok(None) => self.run_simple(prepared, client).await,
                Ok(Some(count)) => Ok(Some(tag_of(count).to_owned())),
                Err(e) => Err(e),
            };
            if let Ok(Some(tag)) = &run {
                // `COPY 7`: what ran outside of the planner says it in its tag.
                self.watch.rows = tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
            }
            self.watched(&prepared.digest, began_ns, run.as_ref().err(), None);
            let tag = match run {
                Ok(tag) => tag,
                Err(e) => return self.failed(e, client).await,
            };
            // AWT-3: the commit before the turn.
            let has_ended = self.row_turn.is_held() && self.block == Block::Implicit && self.end_now();
            self.give_turn_back();
            if i + 1 == count
                && !has_ended
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

    /// Whether the server's defaults are others than those that the session has followed, and it can follow now.
    pub(super) fn may_follow(&self) -> bool {
        self.followed != self.core.backends.defaults.number() && self.block == Block::None
    }

    /// The server was configured anew: what the session has not set itself changes with it.
    fn follow(&mut self) {
        let defaults = &self.core.backends.defaults;
        self.followed = defaults.number();
        // The server has judged each value.
        let _judged = self.core.settings.lock().follow(&defaults.list());
    }

    /// The same where nothing may wait; false: the client is to be told of a change, or one was not told yet.
    #[cold]
    pub(super) fn follow_now(&mut self) -> bool {
        self.follow();
        !self.core.settings.lock().has_changed()
    }

    /// A statement begins: the session's memory account counts anew.
    pub(super) fn begin_account(&mut self) {
        self.core.backend.interrupt.hear();
        if self.may_follow() {
            self.follow();
        }
        self.core.limits.follow(&self.core);
        memory::begin_statement(self.core.settings.lock().statement_memory);
    }

    pub(super) async fn run_simple(
        &mut self,
        prepared: &Arc<Prepared>,
        client: &mut dyn Client,
    ) -> Result<Option<String>> {
        let Some(statement) = prepared.statement.clone() else { return Ok(None) };
        self.result_formats.clear();
        self.check_block(&statement)?;
        if let Statement::Transaction(t) = &*statement {
            return self.transaction(t).await.map(Some);
        }
        let core = self.core.clone();
        let interrupt = &core.backend.interrupt;
        let limit_ms = self.timeouts().statement_ms;
        self.admit(limit_ms).await?;
        self.begin_implicit();
        let body = pin!(self.statement(prepared, &statement, prepared.constants.clone(), client));
        let ended = interrupt.timed(limit_ms, pin!(interrupt.guard(body))).await;
        interrupt.ended(ended.map_err(|e| obstacle::explained(&core, e))).map(Some)
    }

    /// Begins to run a planned statement.
    pub(super) async fn start(
        &mut self,
        prepared: &Prepared,
        statement: &Statement,
        params: Arc<[Datum]>,
    ) -> Result<Execution> {
        let is_custom = prepared.choice.is_custom(&self.core, prepared.plan.lock().as_deref());
        self.start_as(prepared, statement, params, (false, is_custom), None).await
    }

    /// The same for a cursor, which need not be read to its end.
    pub(super) async fn start_cursor(
        &mut self,
        prepared: &Prepared,
        statement: &Statement,
        params: Arc<[Datum]>,
    ) -> Result<Execution> {
        let steering = self.core.settings.lock().steering.of_cursor();
        let is_custom = prepared.choice.is_custom(&self.core, prepared.plan.lock().as_deref());
        self.start_as(prepared, statement, params, (false, is_custom), Some(steering)).await
    }

    /// The same for EXPLAIN ANALYZE: nodes are measured, and the caller says whether the plan is custom, and by which settings it is made, if not by
    /// the session's.
    pub(super) async fn start_measured(
        &mut self,
        prepared: &Prepared,
        statement: &Statement,
        params: Arc<[Datum]>,
        (is_custom, steering): (bool, Option<Steering>),
    ) -> Result<Execution> {
        self.start_as(prepared, statement, params, (true, is_custom), steering).await
    }

    async fn start_as(
        &mut self,
        prepared: &Prepared,
        statement: &Statement,
        params: Arc<[Datum]>,
        (measured, custom): (bool, bool),
        steering: Option<Steering>,
    ) -> Result<Execution> {
        self.core.row_written.store(0, Relaxed);
        let at_cursor = self.at_cursor(statement, None)?;
        let statement = at_cursor.as_ref().unwrap_or(statement);
        let generic = prepared.plan.lock().clone().filter(|_| !custom);
        let generic = generic.and_then(|generic| prepared.choice.kept(&self.core, generic));
        let request = run::Request {
            statement,
            text: &prepared.text,
            params,
            types: &prepared.types,
            columns: prepared.columns.as_deref(),
            alone: self.block == Block::Implicit && self.in_batch <= 1,
            transaction_started: self.core.transaction_started(),
            latest: false,
            system: false,
            measured,
            custom,
            body: None,
            steering,
        };
        let (execution, cached) = run::begin(&self.core, request, generic).await?;
        self.told |= cached.plan.columns.is_some();
        self.changes += u64::from(!cached.plan.read_only);
        if !cached.plan.read_only
            && let Some(savepoint) = self.savepoints.last_mut()
        {
            savepoint.wrote = true;
            self.show_savepoints();
        }
        if custom {
            prepared.choice.made(&cached); // CHO-1
        } else if at_cursor.is_none() {
            *prepared.plan.lock() = Some(cached);
        }
        Ok(execution)
    }

    /// Sends messages and reported settings. As in PostgreSQL a change that an implicit transaction can still take back, as it does that of
    /// SET LOCAL, is told at its end.
    pub(super) fn deliver(&mut self, client: &mut dyn Client) {
        let changed = {
            let mut settings = self.core.settings.lock();
            self.untold = self.block == Block::Implicit && settings.has_changed();
            if self.untold { Vec::new() } else { settings.take_changed() }
        };
        self.deliver_notices(client);
        for (name, value) in changed {
            client.parameter_status(name, &value);
        }
    }
}

/// Whether a statement goes through the planner.
pub(super) fn is_planned(statement: &Statement) -> bool {
    use Statement as S;
    matches!(statement, S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) | S::Merge(_))
}
