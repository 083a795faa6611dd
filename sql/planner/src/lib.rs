//! Turns syntax trees into plans.
//!
//! # Structure
//! ```text
//! select    plans query levels                  dml       plans changes           plan      the result
//! from      lays out the items of FROM          view      reads a view's text     through   changes a table through a view
//! arrange   simplifies one level                pullup    merges queries in FROM  joins     orders joins
//! access    how a table is read (tids)          order     orders without a sort (merging)   covering  index-only reads (jumping)
//! sought    how a system view is read           wanted    the columns that a level reads
//! cost      estimates of rows and shares        estimate  estimates of sources    policies  row-level security
//! grouping  values behind the slots of a row    with      WITH                    explain   the plan as text
//! collapse  which joins are ordered together (JOIN limits)
//! apart     what several threads may share           dense     the slots of a complete plan (filled)
//! gate      conditions that are judged on stored rows (met_keys)   passed_over   how many rows recent executions have skipped
//! ```
//! Names of relations are resolved in `clearway_context::names`.
//!
//! # Life of a level
//! 1. Its FROM is laid out (`from`), and its expressions are bound (`select`, `dml`).
//! 2. It is arranged (`arrange`): queries in FROM are merged into it, and its joins are ordered (`joins`). In a query, EXISTS and IN
//!    become joins (`pullup`). A level that locks rows keeps the order of the text instead.
//! 3. Its slots are numbered by the order of the joins (`rewrite`).
//! 4. Its conditions are handed down to the tables that they concern.
//! 5. When the plan is complete, its slots are numbered anew so that rows have no slot that is not read (`dense`).
//!
//! # Invariants
//! - PLN-3: a condition of WHERE is never pushed below an outer join into the side that the join may extend with nulls.
//! - PLN-4: host functions, and subqueries that refer to rows of outer levels, are evaluated above all joins of their level.
#![forbid(unsafe_code)]

pub mod access;
pub mod apart;
mod arrange;
mod assign;
pub mod calls;
mod carried;
mod checks;
mod collapse;
mod conditions;
pub mod cost;
mod covering;
mod dense;
mod differing;
pub mod dml;
mod entries;
pub mod environment;
mod estimate;
pub mod explain;
mod extremes;
pub mod facts;
#[cfg(debug_assertions)]
mod filled;
mod fold;
pub mod from;
mod functions;
pub mod gate;
pub mod generated;
mod group_ends;
mod grouping;
mod hashed;
mod implied;
mod implies;
pub mod indexes;
mod insert_rows;
mod join;
mod joined;
mod joins;
mod jumping;
pub mod leaf;
mod literals;
mod long_lists;
pub mod merge;
mod merging;
pub mod met_keys;
pub mod order;
mod outline;
mod parts;
pub mod passed_over;
pub mod plan;
pub mod policies;
mod pullup;
mod pushdown;
pub mod ranges;
mod recursion;
mod repeated;
mod rewrite;
mod routine;
mod row_ends;
pub mod sample;
pub mod select;
mod set_keys;
mod settings;
pub mod sought;
mod stages;
mod system;
pub mod system_columns;
mod tested;
mod through;
mod tids;
mod ties;
mod unique_sides;
mod using;
mod view;
pub mod walk;
mod wanted;
mod with;

use clearway_engine::catalog::{Relation, ViewMeaning};
use clearway_syntax::ast::{Expr, Query as AstQuery, With};
use clearway_syntax::error::{Pos, Result, SqlError, code};
use clearway_syntax::stmt::Statement;
use clearway_txn::lockmgr::LockMode;
use clearway_values::expr::collect::Collected;
use clearway_values::expr::{Binder, Bound, BoundKind, HostFunction, Params, Reads, Scope, Subqueries};
use clearway_values::types::SqlType;
use plan::{Action, Columns, OutputColumn, Plan, Subplan, TableLock, WithChange};
use std::collections::HashMap;
use std::sync::Arc;

pub use clearway_context::names::PlanEnv;
pub use estimate::cost_of;
pub use outline::outline;
pub use through::Updatable;
pub use view::may_read_column;

/// Plans one statement.
pub struct Planner<'a> {
    /// The session's facts.
    pub env: &'a PlanEnv<'a>,
    subplans: Vec<Subplan>,
    locks: Vec<TableLock>,
    read_only: bool,
    ctes: Vec<with::Named>,
    /// Statements in WITH that change rows, in the order in which they run.
    changes: Vec<WithChange>,
    /// Queries and changes around: only the outermost may have changes in its WITH.
    level: u32,
    /// Working tables so far.
    works: usize,
    /// Expressions of WITH whose rows may be kept, so far.
    kept: usize,
    /// How high the plans of expressions of WITH stand on each other that the query being planned reads.
    height: usize,
    /// References to working tables of recursive queries that are still being planned.
    working_uses: Vec<(usize, Pos)>,
    /// What the text being planned means, a view's or the statement's.
    meaning: view::Meaning,
    /// The selection that was planned last, as it was before its conditions were handed down.
    raw: Option<pullup::Raw>,
    /// Such selections by the address of their plan, which they keep.
    raws: pullup::Raws,
    /// The policies of tables.
    policies: policies::Expansion,
    /// Levels of views being expanded: a cycle can't be written, a deep nest can.
    view_depth: u32,
    /// Functions in FROM whose queries took the place of their calls.
    inlined: u32,
}

/// What a statement does, and the columns of what it gives.
type Planned = (Action, Option<Vec<OutputColumn>>);

/// Views inside views.
const VIEW_DEPTH_MAX: u32 = 60;

/// The most columns of a result, as in PostgreSQL; messages count them in 16 bits.
const COLUMNS_MAX: usize = 1664;

impl<'a> Planner<'a> {
    /// A planner for one statement.
    pub fn new(env: &'a PlanEnv<'a>) -> Self {
        Self {
            env,
            subplans: Vec::new(),
            locks: Vec::new(),
            read_only: true,
            ctes: Vec::new(),
            changes: Vec::new(),
            level: 0,
            works: 0,
            kept: 0,
            height: 0,
            working_uses: Vec::new(),
            raw: None,
            raws: HashMap::new(),
            view_depth: 0,
            inlined: 0,
            policies: policies::Expansion::default(),
            meaning: view::Meaning::default(),
        }
    }

    /// What is known of tables.
    pub fn figures(&self) -> cost::Figures<'a> {
        cost::Figures { statistics: self.env.statistics, steering: &self.env.steering }
    }

    /// Policies do not hold for what is planned: it is about tables, not about rows, or about all rows for the sake of a definition.
    #[must_use]
    pub fn exempt(mut self) -> Self {
        self.policies.off = true;
        self
    }

    /// For a text of the server's own: its names are those of the system's relations.
    #[must_use]
    pub fn of_the_server(mut self) -> Self {
        self.meaning.system = true;
        self
    }

    /// For the text of a view, whose tables are not read.
    pub fn of_view(env: &'a PlanEnv<'a>, view: &Relation) -> Self {
        let mut planner = Planner::new(env).exempt();
        planner.meaning = view::Meaning::of(view);
        planner
    }

    /// What the names of a new policy's condition mean.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn plan_policy(self, r: &Relation, (condition, text): (&Expr, &str)) -> Result<ViewMeaning> {
        let mut planner = self.exempt();
        let scope = Scope::over(leaf::table_columns(r, &r.name, 0), None);
        let (params, place) = (&mut Params::default(), "policy expressions");
        planner.bind(&scope, params, place, None, |b| b.bind_condition(condition, "POLICY"))?;
        planner.meaning.text.path = planner.path_of_definition(text);
        Ok(planner.meaning.text)
    }

    /// Plans the query of a new view; with what its names and stars mean.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn plan_view(mut self, query: &AstQuery, text: &str) -> Result<(Vec<OutputColumn>, ViewMeaning)> {
        self.policies.off = true;
        let plan = self.query(query, None, &mut Params::default())?;
        if !self.changes.is_empty() {
            let message = "views must not contain data-modifying statements in WITH";
            return Err(SqlError::new(code::FEATURE_NOT_SUPPORTED, message));
        }
        self.meaning.text.path = self.path_of_definition(text);
        Ok((plan.columns.clone(), self.meaning.text))
    }

    /// Plans a statement that reads or changes rows; none for any other.
    ///
    /// # Errors
    /// Whatever is wrong with the statement.
    pub fn plan(self, statement: &Statement, params: &mut Params) -> Result<Option<Plan>> {
        self.plan_or_locks(statement, params).map_err(|(error, _)| error)
    }

    /// The same; an error comes with the locks of the tables that the planner had found before. PostgreSQL has them when it reports it.
    ///
    /// # Errors
    /// As `plan`.
    pub fn plan_or_locks(
        mut self,
        statement: &Statement,
        params: &mut Params,
    ) -> std::result::Result<Option<Plan>, (SqlError, Vec<TableLock>)> {
        let planned = match statement {
            Statement::Query(q) => self.query(q, None, params).map(|query| {
                let columns = Some(query.columns.clone());
                Some((Action::Select(query), columns))
            }),
            _ => self.change(statement, params),
        };
        match planned {
            Ok(Some(planned)) => self.finish(planned, params).map(Some).map_err(|error| (error, Vec::new())),
            Ok(None) => Ok(None),
            Err(error) => Err((error, self.locks)),
        }
    }

    fn finish(self, (action, columns): Planned, params: &Params) -> Result<Plan> {
        if columns.as_ref().is_some_and(|columns| columns.len() > COLUMNS_MAX) {
            let message = format!("target lists can have at most {COLUMNS_MAX} entries");
            return Err(SqlError::new("54011", message));
        }
        let types = params.settled()?;
        let read_only =
            self.read_only && matches!(action, Action::Select(_) | Action::Settings(_)) && self.changes.is_empty();
        let (changes, subqueries, locks) = (self.changes, self.subplans, self.locks);
        let passed_over = plan::PassedOver::default();
        Ok(Plan { changes, action, subqueries, locks, params: types, columns, read_only, passed_over })
    }

    /// Plans INSERT, UPDATE, DELETE or MERGE; none for any other statement.
    fn change(&mut self, statement: &Statement, params: &mut Params) -> Result<Option<Planned>> {
        let with: &Option<With> = match statement {
            Statement::Insert(s) => &s.with,
            Statement::Update(s) => &s.with,
            Statement::Delete(s) => &s.with,
            Statement::Merge(s) => {
                merge::check(s)?;
                &s.with
            }
            _ => return Ok(None),
        };
        let outer_ctes = self.ctes.len();
        self.level += 1;
        let planned =
            with.as_ref().map_or(Ok(()), |with| self.with(with, None, params)).and_then(|()| match statement {
                Statement::Insert(s) => self.insert(s, params).map(Some),
                Statement::Update(s) => {
                    self.update(s, params).map(Some).map_err(|e| entries::of_target(e, &s.table, &s.from))
                }
                Statement::Delete(s) => {
                    self.delete(s, params).map(Some).map_err(|e| entries::of_target(e, &s.table, &s.using))
                }
                Statement::Merge(s) => {
                    let source = std::slice::from_ref(&s.source);
                    self.merge(s, params).map(Some).map_err(|e| entries::of_target(e, &s.table, source))
                }
                _ => Ok(None),
            });
        self.level -= 1;
        self.ctes.truncate(outer_ctes);
        planned
    }

    /// Notes that the statement needs a table lock and these privileges; where the columns that it uses are to be noted.
    pub fn lock(&mut self, r: &Relation, mode: LockMode, privileges: &'static str, pos: Pos) -> Columns {
        if mode != LockMode::AccessShare {
            self.read_only = false;
        }
        let owner = self.meaning.owner;
        let same = |l: &&TableLock| (l.oid, l.mode, l.privileges, l.owner) == (r.oid, mode, privileges, owner);
        if let Some(lock) = self.locks.iter().find(same) {
            return lock.columns.clone();
        }
        let none = || Arc::new(Reads::none(r.columns.len()));
        let columns = Columns { reads: none(), inserts: none(), updates: none() };
        let name = r.name.clone();
        self.locks.push(TableLock { oid: r.oid, mode, name, privileges, pos, owner, columns: columns.clone() });
        columns
    }

    /// Binds expressions of one place.
    pub fn bind<T>(
        &mut self,
        scope: &Scope<'_>,
        params: &mut Params,
        place: &'static str,
        collected: Option<&mut Collected>,
        f: impl FnOnce(&mut Binder<'_>) -> Result<T>,
    ) -> Result<T> {
        let conversion = self.env.conversion;
        params.in_clause(|params| {
            let subqueries: Option<&mut dyn Subqueries> = Some(self);
            f(&mut Binder { scope, params, collected, subqueries, conversion, place, in_aggregate: false })
        })
    }

    /// Binds a condition and notes what it calls.
    pub fn condition(
        &mut self,
        e: &Expr,
        scope: &Scope<'_>,
        params: &mut Params,
        clause: &'static str,
    ) -> Result<Bound> {
        let bound = self.bind(scope, params, clause, None, |b| b.bind_condition(e, clause))?;
        self.note(&bound);
        Ok(bound)
    }

    /// Notes calls that make a statement more than a reader.
    pub fn note(&mut self, e: &Bound) {
        let writes = e.any(&|e| matches!(&e.kind, BoundKind::Host { function, .. } if !is_reading(*function)));
        self.read_only &= !writes;
    }
}

/// Whether a host function only looks.
fn is_reading(f: HostFunction) -> bool {
    use HostFunction as H;
    matches!(
        f,
        H::PgSleep
            | H::PgSleepFor
            | H::PgSleepUntil
            | H::GetExpr
            | H::GetExprPretty
            | H::GetIndexdef
            | H::GetIndexdefColumn
            | H::GetConstraintdef
            | H::GetConstraintdefPretty
            | H::Currval
            | H::Lastval
            | H::SetConfig
            | H::BlockingPids
            | H::TestSessionIsBlocked
            | H::CancelBackend
            | H::TerminateBackend
            | H::TerminateBackendWithin
            | H::TableIsVisible
            | H::GetUserById
            | H::RelationSize
            | H::RelationForkSize
            | H::TotalRelationSize
            | H::GetViewdef
            | H::GetViewdefPretty
            | H::Catalog(_)
            | H::Backup
            | H::CreateRestorePoint
            | H::ExportSnapshot
    )
}

impl Subqueries for Planner<'_> {
    fn bind(
        &mut self,
        query: &AstQuery,
        scope: &Scope<'_>,
        params: &mut Params,
        shared: bool,
    ) -> Result<(usize, Vec<SqlType>, bool)> {
        let repeats = scope.repeats.as_ref().filter(|_| shared).map(|list| (repeated::without_places(query), list));
        if let Some((said, list)) = &repeats
            && let Some((_, found)) = list.borrow().iter().find(|(other, _)| other == said)
        {
            return Ok(found.clone());
        }
        let uses = self.working_uses.len();
        let plan = self.query(query, Some(scope), params)?;
        if self.working_uses.len() != uses {
            let message = "a recursive reference must not appear within a subquery";
            return Err(SqlError::new("42P19", message).at(query.pos));
        }
        let types: Vec<SqlType> = plan.columns.iter().map(|c| c.ty).collect();
        let correlated = walk::is_correlated(&plan, &self.subplans);
        self.subplans.push(Subplan { query: plan, correlated });
        let bound = (self.subplans.len() - 1, types, correlated);
        if let Some((said, list)) = repeats {
            list.borrow_mut().push((said, bound.clone()));
        }
        Ok(bound)
    }

    fn lowest_level(&self, id: usize) -> Option<u16> {
        self.subplans.get(id).and_then(|sub| walk::lowest_beyond(&sub.query, &self.subplans))
    }

    fn cast_columns(&mut self, id: usize, to: &[SqlType]) {
        if let Some(sub) = self.subplans.get_mut(id) {
            let mut columns = sub.query.columns.clone();
            columns.iter_mut().zip(to).for_each(|(c, to)| c.ty = *to);
            sub.query = select::cast_output(sub.query.clone(), &columns, 0);
        }
    }
}
