//! One execution of a planned statement: it takes the locks and the snapshot, and sends the rows to the client.

use super::body::BodyContext;
use super::client::Client;
pub use super::form::{describe, format_of, write_row};
pub use super::fresh::is_fresh;
use super::fresh::same_columns;
use super::short::Fast;
use crate::context::core::{Core, now};
use crate::context::names::CatalogNames;
use crate::context::privileges;
use crate::error::{Result, SqlError};
use crate::exec::change::Feed;
use crate::exec::pending::Pending;
use crate::exec::query::QueryRows;
use crate::exec::row_list::TakenRows;
use crate::exec::sink::Sink;
use crate::exec::{Cx, Row, Run, RunState};
use crate::expr::{Params, Reads};
use crate::planner::explain::Actuals;
use crate::planner::plan::{Action, OutputColumn, Plan, TableLock};
use crate::planner::{PlanEnv, Planner};
use crate::syntax::stmt::Statement;
use crate::types::text::Conversion;
use crate::types::user;
use crate::types::{Datum, Oid};
use crate::views::SystemViews;
use clearway_base::breath;
use clearway_engine::catalog::{Catalog, Relation};
use clearway_engine::session::{Statement as EngineStatement, StatementMode};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mvcc::book::View;
use std::sync::Arc;

/// A plan and the catalog that it was made for.
pub struct Cached {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// Its number; none: it had changes that only the session saw.
    pub version: Option<u64>,
    /// The search path, and the number of the change that it goes back to.
    pub path: Arc<[String]>,
    pub(super) path_changes: u64,
    /// The number of the change that the session's role goes back to.
    pub(super) role_changes: u64,
    /// The session's role, and whether policies hide rows or refuse the statement.
    pub(super) role: Option<Oid>,
    pub(super) row_security: bool,
    /// The session's role may do what the plan does.
    permitted: bool,
    /// The state of the statistics by which it was made; none: it would be the same by any others.
    pub(super) generation: Option<u64>,
    /// The fast path of the statement, if it has one.
    pub fast: Option<Fast>,
    /// The plan.
    pub plan: Plan,
    /// It is to be shown, not only carried out: its slots tell their columns (PLN-1).
    is_shown: bool,
}

/// A statement's snapshot; given back on drop, also when the statement is dropped in the middle of a wait.
pub struct Opened {
    core: Arc<Core>,
    statement: Option<EngineStatement>,
    /// It sees what the calling statement sees.
    of_caller: Option<View>,
}

impl Opened {
    /// A snapshot that is given back with this.
    pub fn new(core: &Arc<Core>, statement: EngineStatement) -> Opened {
        Opened { core: core.clone(), statement: Some(statement), of_caller: None }
    }

    /// What the statement sees.
    pub fn view(&self) -> View {
        if let Some(view) = self.of_caller {
            return view;
        }
        self.statement.as_ref().map_or_else(Default::default, |s| s.view)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(statement) = self.statement.take() {
            self.core.engine.take().close_statement(statement);
        }
    }
}

/// Rows that are being read.
pub enum Rows {
    /// From a query.
    Query(Box<QueryRows>),
    /// Already there.
    List(TakenRows),
}

impl Rows {
    /// The next row; one that is buffered makes no boxed future.
    async fn next(&mut self, cx: Cx<'_>) -> Result<Option<Row>> {
        match self {
            Rows::Query(query) => match query.buffered(cx) {
                Some(row) => row.map(Some),
                None => query.next(cx).await,
            },
            Rows::List(list) => list.next().await,
        }
    }
}

/// A statement that has begun to run; a portal keeps it between two calls of Execute.
pub struct Execution {
    /// Its plan.
    pub cached: Arc<Cached>,
    /// Its parameters.
    pub params: Arc<[Datum]>,
    opened: Opened,
    state: RunState,
    pub(super) rows: Rows,
    started: i64,
    transaction_started: i64,
    /// Rows given, or changed.
    pub count: u64,
}

/// What a planned statement runs with.
pub struct Request<'a> {
    /// Its syntax tree.
    pub statement: &'a Statement,
    /// Its text.
    pub text: &'a Arc<str>,
    /// The parameters.
    pub params: Arc<[Datum]>,
    /// Their types.
    pub types: &'a [Oid],
    /// The columns that the client was told of, if it was: another plan must give the same.
    pub columns: Option<&'a [OutputColumn]>,
    /// Whether the transaction block was not open before it and holds nothing else.
    pub alone: bool,
    /// When the transaction began.
    pub transaction_started: i64,
    /// It reads what is committed now, whatever the isolation: a query of DDL about all rows of a table that it has locked. Rights and policies do
    /// not hold for it: it is the server's own.
    pub latest: bool,
    /// Its text is the server's own and names relations of the system alone.
    pub system: bool,
    /// Nodes are measured.
    pub measured: bool,
    /// It is in the body of a function.
    pub body: Option<&'a BodyContext>,
}

/// Plans a statement for the catalog of the moment; none if it is not planned at all.
pub fn plan(core: &Core, statement: &Statement, params: &mut Params) -> Result<Option<Cached>> {
    plan_or_locks(core, statement, params, (false, false, None, false)).map_err(|unplanned| unplanned.error)
}

/// The same for EXPLAIN.
pub fn plan_shown(core: &Core, statement: &Statement, params: &mut Params) -> Result<Option<Cached>> {
    plan_or_locks(core, statement, params, (false, false, None, true)).map_err(|unplanned| unplanned.error)
}

/// A statement that can't be planned.
struct Unplanned {
    error: SqlError,
    /// The catalog by which it was judged.
    catalog: Arc<Catalog>,
    /// The tables that had been found before.
    locks: Vec<TableLock>,
}

fn plan_or_locks(
    core: &Core,
    statement: &Statement,
    params: &mut Params,
    (exempt, system, body, is_shown): (bool, bool, Option<&BodyContext>, bool),
) -> std::result::Result<Option<Cached>, Box<Unplanned>> {
    let version = core.catalog_version();
    let catalog = core.catalog();
    let (path_changes, role_changes, row_security, format) = {
        let settings = core.settings.lock();
        (settings.path_changes, settings.role_changes, settings.row_security, settings.format.clone())
    };
    let mut names = core.names(&catalog);
    let role = names.role;
    let own_path = names.path.clone();
    let path_of_body = body.and_then(|body| body.path.clone());
    if let Some(path) = &path_of_body {
        names.path = path.schemas.clone();
    }
    let conversion = Conversion { format: &format, now: core.transaction_started(), names: &names };
    let judge = privileges::Judge::of(core, &catalog);
    let statistics = core.db.statistics();
    let generation = statistics.generation();
    let (database, path) = (core.database, &*names.path);
    let snapshots = core.db.transactions().book().snapshots();
    let env = PlanEnv { catalog: &catalog, database, path, judge, conversion, statistics, snapshots, row_security };
    let planner = Planner::new(&env);
    let planner = if exempt { planner.exempt() } else { planner };
    let planner = if system { planner.of_the_server() } else { planner };
    let planner = match body.and_then(|body| body.meaning.as_ref()) {
        Some(meaning) => planner.of_body(meaning),
        None => planner,
    };
    let plan = match path_of_body {
        Some(path) => user::on_path(path, || planner.plan_or_locks(statement, params)),
        None if body.is_some() => user::off_path(|| planner.plan_or_locks(statement, params)),
        None => planner.plan_or_locks(statement, params),
    };
    let plan = plan.map_err(|(error, locks)| Box::new(Unplanned { error, catalog: catalog.clone(), locks }))?;
    let path = own_path;
    Ok(plan.map(|mut plan| {
        let may = |lock: &TableLock, table| permitted(core, &catalog, table, lock).is_ok();
        let permitted = plan.locks.iter().all(|lock| catalog.relation(lock.oid).is_none_or(|table| may(lock, table)));
        let generation = plan.depends_on_figures().then_some(generation);
        let fast = Fast::of(&plan, core.database).filter(|_| permitted);
        if fast.is_none() && !is_shown {
            plan.make_dense();
        }
        Cached {
            catalog: catalog.clone(),
            version,
            path,
            path_changes,
            role_changes,
            role,
            row_security,
            permitted,
            generation,
            fast,
            plan,
            is_shown,
        }
    }))
}

/// Whether a table may be used as a plan uses it (PRV-1): by the rights for the table, or by those for each column used. What a statement
/// changes and reads no column of needs no right to read.
fn permitted(core: &Core, catalog: &Catalog, table: &Relation, lock: &TableLock) -> Result<()> {
    let judge = privileges::Judge::of(core, catalog).or_owner(lock.owner);
    let whole = |letter| catalog.get(lock.oid).is_some_and(|object| judge.may_with(object, letter));
    let by_column = |letter, used: &Reads| {
        let mut used = used.columns().peekable();
        match used.peek() {
            None => judge.may_with_some_column(table, letter),
            Some(_) => used.all(|column| judge.may_with_column(table, column, letter)),
        }
    };
    let columns = &lock.columns;
    let may = |letter| match letter {
        'r' => whole('r') || by_column('r', &columns.reads),
        'a' => whole('a') || by_column('a', &columns.inserts),
        'w' => whole('w') || by_column('w', &columns.updates),
        letter => whole(letter),
    };
    let reads = !lock.privileges.contains('r') && columns.reads.columns().next().is_some();
    let allowed = lock.privileges.chars().chain(reads.then_some('r')).all(may);
    if allowed { Ok(()) } else { Err(privileges::denied(table.kind.name(), &table.name)) }
}

/// Whether the session's role may do what a plan does: a role that may not run it is not told of it either.
///
/// # Errors
/// 42501.
pub fn may_run(core: &Core, cached: &Cached) -> Result<()> {
    let tables = cached.plan.locks.iter().filter(|_| !cached.permitted);
    let mut tables = tables.filter_map(|lock| Some((lock, cached.catalog.relation(lock.oid)?)));
    tables.try_for_each(|(lock, table)| permitted(core, &cached.catalog, table, lock))
}

/// Begins to run a statement, and changes what it changes.
pub async fn begin(
    core: &Arc<Core>,
    request: Request<'_>,
    cached: Option<Arc<Cached>>,
) -> Result<(Execution, Arc<Cached>)> {
    let mut execution = open(core, request, cached).await?;
    execution.change(core).await?;
    let cached = execution.cached.clone();
    Ok((execution, cached))
}

/// Begins an INSERT whose rows come from outside: see [`Execution::feed`].
pub async fn begin_fed(core: &Arc<Core>, request: Request<'_>, cached: Option<Arc<Cached>>) -> Result<Execution> {
    open(core, request, cached).await
}

/// Begins to run a statement: plans it if need be, takes its table locks, opens its snapshot. The plan is looked
/// at again after the locks: the transactions that held them may have changed the tables.
async fn open(core: &Arc<Core>, request: Request<'_>, mut cached: Option<Arc<Cached>>) -> Result<Execution> {
    core.engine.take().owner().statement(request.text);
    let (cached, opened, read_only) = loop {
        let fresh = match cached.take().filter(|c| is_fresh(core, c) && (c.is_shown || !request.measured)) {
            Some(fresh) => fresh,
            None => {
                let types = request.types.iter().map(|t| Some(*t)).collect();
                let names = request.body.map(|body| body.names.clone());
                let mut params = Params { types, names, ..Params::default() };
                let kind = (request.latest, request.system, request.body, request.measured);
                let planned = match plan_or_locks(core, request.statement, &mut params, kind) {
                    Ok(planned) => planned,
                    Err(unplanned) => {
                        judge_again(core, *unplanned).await?;
                        continue;
                    }
                };
                let planned = planned.ok_or_else(|| SqlError::internal("a statement without a plan"))?;
                same_columns(request.columns, planned.plan.columns.as_deref())?;
                Arc::new(planned)
            }
        };
        let read_only = core.engine.take().options().read_only;
        let durable = fresh.plan.read_only && (request.alone || read_only);
        let mode = if durable { StatementMode::ReadOnly } else { StatementMode::Write };
        if !request.latest {
            core.engine.take().keep_snapshot(mode);
        }
        for lock in &fresh.plan.locks {
            if !fresh.permitted
                && !request.latest
                && let Some(relation) = fresh.catalog.relation(lock.oid)
            {
                permitted(core, &fresh.catalog, relation, lock)?;
            }
            core.lock_relation(lock.oid, lock.mode, IfTaken::Wait).await?;
        }
        if !is_fresh(core, &fresh) {
            continue;
        }
        let statement = {
            let mut engine = core.engine.take();
            if request.latest { engine.open_latest(request.text) } else { engine.open_statement(request.text, mode) }
        };
        let of_caller = request.body.and_then(|body| body.view);
        let opened = Opened { core: core.clone(), statement: Some(statement), of_caller };
        // REINDEX lets readers be: what it committed before the snapshot, the plan must know.
        if is_fresh(core, &fresh) {
            break (fresh, opened, read_only);
        }
    };
    let plan = &cached.plan;
    if read_only && writes_temporary(&cached.catalog, plan)? {
        core.engine.take().lift_read_only(true);
    }
    let rows = match &plan.action {
        Action::Select(query) => Rows::Query(Box::new(QueryRows::new(query.clone()))),
        _ => Rows::List(TakenRows::default()),
    };
    Ok(Execution {
        cached: cached.clone(),
        params: request.params,
        opened,
        state: RunState::measured(request.measured),
        rows,
        started: now(),
        transaction_started: request.transaction_started,
        count: 0,
    })
}

/// Refuses a plan that changes or locks rows, in a read-only transaction; those of temporary tables may be changed, and whether they are is
/// what it says.
fn writes_temporary(catalog: &Catalog, plan: &Plan) -> Result<bool> {
    let temporary = |oid: u32| catalog.get(oid).is_some_and(|object| catalog.is_temporary(object));
    let mut changes = false;
    for action in std::iter::once(&plan.action).chain(plan.changes.iter().map(|c| &c.action)) {
        let (verb, target) = match action {
            Action::Select(_) | Action::Settings(_) => continue,
            Action::Merge(m) if m.does_nothing() => continue,
            Action::Insert(i) => ("INSERT", &i.target),
            Action::Update(u) => ("UPDATE", &u.target),
            Action::Delete(d) => ("DELETE", &d.target),
            Action::Merge(m) => ("MERGE", &m.target),
        };
        if !temporary(target.table.shape.oid) {
            return Err(SqlError::new("25006", format!("cannot execute {verb} in a read-only transaction")));
        }
        changes = true;
    }
    let mut locks = plan.locks.iter().filter(|l| l.mode == LockMode::RowShare).peekable();
    changes |= locks.peek().is_some();
    if locks.any(|l| !temporary(l.oid)) {
        return Err(SqlError::new("25006", "cannot execute SELECT FOR UPDATE in a read-only transaction"));
    }
    Ok(changes)
}

/// Waits for the locks of the tables that a statement names which can't be planned: the transaction that holds them may be about to make the statement right. Returns if
/// the catalog is another one after that.
///
/// # Errors
/// What is wrong with the statement.
async fn judge_again(core: &Core, unplanned: Unplanned) -> Result<()> {
    core.engine.take().keep_snapshot(StatementMode::Write);
    for lock in &unplanned.locks {
        core.lock_relation(lock.oid, lock.mode, IfTaken::Wait).await?;
    }
    if Arc::ptr_eq(&unplanned.catalog, &core.catalog()) { Err(unplanned.error) } else { Ok(()) }
}

impl Execution {
    pub(super) fn run<'a>(&'a self, core: &'a Core) -> Run<'a> {
        let isolation = core.engine.take().options().isolation;
        let (format, role) = core.format_and_role();
        Run {
            core,
            plan: &self.cached.plan,
            params: &self.params,
            view: self.opened.view(),
            isolation,
            format,
            names: CatalogNames {
                role,
                catalog: self.cached.catalog.clone(),
                database: core.database,
                path: self.cached.path.clone(),
            },
            started: self.started,
            transaction_started: self.transaction_started,
            state: &self.state,
            views: &SystemViews,
        }
    }

    /// Carries out a statement that changes rows.
    async fn change(&mut self, core: &Core) -> Result<()> {
        let plan = &self.cached.plan;
        if plan.changes.is_empty() && matches!(plan.action, Action::Select(_)) {
            return Ok(());
        }
        let changes = {
            let run = self.run(core);
            let cx = Cx { run: &run, outer: &[] };
            let mut pending = Pending::default();
            for change in &plan.changes {
                if let Some(mut changes) = cx.change(&change.action, &mut pending).await? {
                    changes.rows.end().await?;
                    self.state.set_work(change.work, Arc::new(changes.rows));
                }
            }
            let changes = cx.change(&plan.action, &mut pending).await?;
            if !pending.is_empty() {
                cx.settle(pending).await?;
            }
            core.limits.check_undo(core)?;
            let Some(mut changes) = changes else { return Ok(()) };
            changes.rows.end().await?;
            changes
        };
        self.count = changes.count;
        self.rows = Rows::List(TakenRows::new(changes.rows));
        Ok(())
    }

    /// Gives up to `max` rows to the client (0: all); true when there are no more.
    pub async fn give(&mut self, core: &Core, max: u64, formats: &[i16], client: &mut dyn Client) -> Result<bool> {
        if matches!(self.cached.plan.action, Action::Settings(_)) {
            return Ok(true);
        }
        let columns = self.cached.plan.columns.clone().unwrap_or_default();
        let mut rows = std::mem::replace(&mut self.rows, Rows::List(TakenRows::default()));
        let mut given = 0u64;
        let done = {
            let run = self.run(core);
            let cx = Cx { run: &run, outer: &[] };
            loop {
                if max > 0 && given == max {
                    break false;
                }
                let Some(row) = rows.next(cx).await? else { break true };
                given += 1;
                breath::breathe(breath::ROW).await?;
                {
                    let (format, now) = (&run.format, run.transaction_started);
                    write_row(&Conversion { format, now, names: &run.names }, &columns, formats, &row, client)?;
                }
                if client.is_full() {
                    core.wait_told().await?;
                    client.drain().await.map_err(|_| SqlError::new("08006", "connection to client lost"))?;
                }
            }
        };
        self.rows = rows;
        if matches!(self.cached.plan.action, Action::Select(_)) {
            self.count += given;
        }
        Ok(done)
    }

    /// Gives all rows to a sink, one after the other; how many there were.
    pub async fn give_to(&mut self, core: &Core, sink: &mut dyn Sink) -> Result<u64> {
        let mut rows = std::mem::replace(&mut self.rows, Rows::List(TakenRows::default()));
        let run = self.run(core);
        let cx = Cx { run: &run, outer: &[] };
        let mut given = 0;
        loop {
            let Some(row) = rows.next(cx).await? else { break };
            given += 1;
            cx.breathe().await?;
            sink.row(&run, row)?;
            if sink.is_full() {
                sink.flush().await?;
            }
        }
        sink.flush().await?;
        Ok(given)
    }

    /// Up to `max` of the rows that are left.
    pub async fn take(&mut self, core: &Core, max: u64) -> Result<Vec<Row>> {
        let mut rows = std::mem::replace(&mut self.rows, Rows::List(TakenRows::default()));
        let mut out = Vec::new();
        {
            let run = self.run(core);
            let cx = Cx { run: &run, outer: &[] };
            while (out.len() as u64) < max {
                let Some(row) = rows.next(cx).await? else { break };
                cx.breathe().await?;
                out.push(row);
            }
        }
        self.rows = rows;
        Ok(out)
    }

    /// Whether it is a query that locks rows.
    pub fn locks_rows(&self) -> bool {
        let plan = &self.cached.plan;
        matches!(plan.action, Action::Select(_)) && plan.locks.iter().any(|lock| lock.mode == LockMode::RowShare)
    }

    /// It is read after the statement has ended that called the function in whose body it stands: it keeps the snapshot which it has of that.
    pub fn outlive_caller(&mut self) {
        let Some(view) = self.opened.of_caller.take() else { return };
        let mut engine = self.opened.core.engine.take();
        let kept = engine.keep_view(&view);
        if let Some(own) = self.opened.statement.replace(kept) {
            engine.close_statement(own);
        }
    }

    /// A query is read from its beginning again, at the same snapshot.
    pub fn restart(&mut self) {
        if let Action::Select(query) = &self.cached.plan.action {
            self.rows = Rows::Query(Box::new(QueryRows::new(query.clone())));
            self.state = RunState::new();
        }
    }

    /// Inserts rows that come from outside.
    pub async fn feed(&self, core: &Core, feed: &mut Feed, rows: &mut Vec<Row>) -> Result<()> {
        let run = self.run(core);
        let Action::Insert(insert) = &self.cached.plan.action else {
            return Err(SqlError::internal("only an INSERT can be fed"));
        };
        Cx { run: &run, outer: &[] }.feed(insert, feed, rows).await
    }

    /// There are no more of them; how many were inserted.
    pub async fn end_feed(&self, core: &Core, feed: Feed) -> Result<u64> {
        let run = self.run(core);
        Cx { run: &run, outer: &[] }.end_feed(feed).await
    }

    /// Lends the run, for COPY.
    pub fn with_run<T>(&self, core: &Core, f: impl FnOnce(&Run<'_>) -> T) -> T {
        f(&self.run(core))
    }

    /// What was measured at the plan's nodes.
    pub fn actuals(&self) -> Option<Actuals> {
        self.state.actuals()
    }

    /// The command tag.
    pub fn tag(&self) -> String {
        match self.cached.plan.action {
            Action::Select(_) => format!("SELECT {}", self.count),
            Action::Insert(_) => format!("INSERT 0 {}", self.count),
            Action::Update(_) => format!("UPDATE {}", self.count),
            Action::Delete(_) => format!("DELETE {}", self.count),
            Action::Merge(_) => format!("MERGE {}", self.count),
            Action::Settings(_) => "UPDATE 0".to_owned(),
        }
    }
}
