//! One execution of a planned statement: it takes the locks and the snapshot, and sends the rows to the client.

use super::body::BodyContext;
use super::client::Client;
pub use super::form::{describe, format_of, write_row};
pub use super::fresh::is_fresh;
use super::fresh::same_columns;
pub use super::planned::{Cached, may_run, plan, plan_shown};
use super::planned::{Purpose, Unplanned, permitted, plan_or_locks};
use crate::context::core::{Core, now};
use crate::context::errors::{concurrent, from_engine};
use crate::context::names::CatalogNames;
use crate::context::steering::Steering;
use crate::error::{Result, SqlError};
use crate::exec::feed::Feed;
use crate::exec::pending::Pending;
use crate::exec::query::QueryRows;
use crate::exec::row_list::TakenRows;
use crate::exec::sink::Sink;
use crate::exec::{Cx, Row, Run, RunState};
use crate::expr::Params;
use crate::planner::explain::Actuals;
use crate::planner::plan::{Action, Insert, OutputColumn, Plan};
use crate::syntax::stmt::Statement;
use crate::types::text::Conversion;
use crate::types::{Datum, Oid};
use crate::views::SystemViews;
use clearway_base::breath;
use clearway_engine::catalog::Catalog;
use clearway_engine::session::{Statement as EngineStatement, StatementMode};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::mvcc::book::View;
use std::sync::Arc;

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
    /// It is planned for the values of its parameters.
    pub custom: bool,
    /// It is in the body of a function.
    pub body: Option<&'a BodyContext>,
    /// It is planned by these settings of the planner, not by the session's.
    pub steering: Option<Steering>,
}

/// Begins to run a statement, and changes what it changes.
pub async fn begin(
    core: &Arc<Core>,
    request: Request<'_>,
    cached: Option<Arc<Cached>>,
) -> Result<(Execution, Arc<Cached>)> {
    let mut execution = open(core, request, cached).await?;
    let plan = &execution.cached.plan;
    if !plan.changes.is_empty() || !matches!(plan.action, Action::Select(_)) {
        // As a part of this future it made that of a query 8 kB large, which was copied for each execution.
        Box::pin(execution.change(core)).await?;
    }
    let cached = execution.cached.clone();
    Ok((execution, cached))
}

/// Begins an INSERT whose rows come from outside: see [`Execution::feed`].
pub async fn begin_fed(core: &Arc<Core>, request: Request<'_>, cached: Option<Arc<Cached>>) -> Result<Execution> {
    open(core, request, cached).await
}

/// Plans the statement of a request.
fn plan_requested(core: &Core, request: &Request<'_>) -> std::result::Result<Option<Cached>, Box<Unplanned>> {
    let types = request.types.iter().map(|t| Some(*t)).collect();
    let names = request.body.map(|body| body.names.clone());
    let mut params = Params { types, names, ..Params::default() };
    let purpose = Purpose {
        exempt: request.latest,
        system: request.system,
        body: request.body,
        is_shown: request.measured,
        values: request.custom.then_some(&*request.params),
        steering: request.steering,
    };
    plan_or_locks(core, request.statement, &mut params, purpose)
}

/// Begins to run a statement: plans it if need be, takes its table locks, opens its snapshot. The plan is looked
/// at again after the locks: the transactions that held them may have changed the tables.
async fn open(core: &Arc<Core>, request: Request<'_>, mut cached: Option<Arc<Cached>>) -> Result<Execution> {
    core.engine.take().undo_half().await.map_err(from_engine)?; // SHT-1
    core.engine.take().owner().statement(request.text);
    let mut asked = false;
    let (cached, opened, read_only) = loop {
        let fresh = match cached.take().filter(|c| is_fresh(core, c) && (c.shown.is_some() || !request.measured)) {
            Some(fresh) => fresh,
            None => {
                let planned = match plan_requested(core, &request) {
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
        take_turn_first(&mut asked, &fresh.plan).await;
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
        sees_rows(core, &fresh.plan, request.latest)?;
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

/// An error where the snapshot that a transaction keeps does not see the rows of the tables that a statement reads where they stand now (DB-3). A statement
/// that reads what is the latest has a snapshot of its own.
fn sees_rows(core: &Core, plan: &Plan, latest: bool) -> Result<()> {
    // An insertion reads nothing of the table that gets the rows.
    let inserts = matches!(plan.action, Action::Insert(_));
    let mut read = plan.locks.iter().filter(|lock| !inserts || lock.mode != LockMode::RowExclusive);
    match !latest && read.any(|lock| core.engine.take().is_older_than_rows(lock.oid)) {
        true => Err(concurrent(false)),
        false => Ok(()),
    }
}

/// PSO-1, once.
async fn take_turn_first(asked: &mut bool, plan: &Plan) {
    if !std::mem::replace(asked, true) && plan.passed_over.expects_long() {
        breath::take_turn().await;
    }
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
        let cached = self.cached.clone();
        let columns = cached.plan.columns.as_deref().unwrap_or_default();
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
                    write_row(&Conversion { format, now, names: &run.names }, columns, formats, &row, client)?;
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
        Cx { run: &run, outer: &[] }.feed(self.insert()?, feed, rows).await
    }

    /// The INSERT that is fed.
    pub fn insert(&self) -> Result<&Insert> {
        match &self.cached.plan.action {
            Action::Insert(insert) => Ok(insert),
            _ => Err(SqlError::internal("only an INSERT can be fed")),
        }
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
