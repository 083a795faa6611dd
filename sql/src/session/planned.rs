//! A statement's plan, and what it was made for.

use super::body::BodyContext;
use super::choice::constants;
use super::short::Fast;
use crate::context::core::Core;
use crate::context::privileges;
use crate::context::steering::Steering;
use crate::error::{Result, SqlError};
use crate::expr::{Params, Reads};
use crate::planner::cost::Figures;
use crate::planner::explain::places::Places;
use crate::planner::plan::{Plan, TableLock};
use crate::planner::{PlanEnv, Planner, cost_of, outline};
use crate::syntax::stmt::Statement;
use crate::types::text::Conversion;
use crate::types::{Datum, Oid, user};
use clearway_engine::catalog::{Catalog, Relation};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

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
    pub(super) permitted: bool,
    /// The state of the statistics by which it was made; none: it would be the same by any others.
    pub(super) generation: Option<u64>,
    /// What it is estimated to cost, where `generation` is set: planning is a part of what a custom plan costs ([`choice`](super::choice)).
    pub(super) cost: f64,
    /// Its outline, likewise.
    pub(super) outline: u64,
    /// The settings of the planner by which it was made.
    pub(super) steering: Steering,
    /// The number of those ([`Steering::number`]) under which it is carried out: other ones, where a prepared statement keeps it.
    pub(super) steered: AtomicU64,
    /// The fast path of the statement, if it has one.
    pub fast: Option<Fast>,
    /// The plan.
    pub plan: Arc<Plan>,
    /// It is to be shown, not only carried out: how it is shown.
    pub(super) shown: Option<Arc<ShownPlan>>,
}

impl Cached {
    /// It is carried out under the settings of the planner of the moment, whatever they were when it was made (CHO-4).
    pub(super) fn stays(&self, core: &Core) {
        self.steered.store(core.settings.lock().steering.number(), Relaxed);
    }
}

/// A plan as EXPLAIN shows it: its slots tell their columns (PLN-1).
pub struct ShownPlan {
    /// The plan.
    pub(super) plan: Plan,
    /// Where what is measured of the plan that is carried out is shown.
    pub(super) places: Places,
}

/// What a plan is for.
#[derive(Clone, Copy, Default)]
pub(super) struct Purpose<'a> {
    /// The server's own query: rights and policies do not hold for it.
    pub(super) exempt: bool,
    /// Its text is the server's own and names relations of the system alone.
    pub(super) system: bool,
    /// It is in the body of a function.
    pub(super) body: Option<&'a BodyContext>,
    /// It is to be shown, not only carried out.
    pub(super) is_shown: bool,
    /// These values of its parameters, and no others.
    pub(super) values: Option<&'a [Datum]>,
    /// By these settings of the planner, not by the session's.
    pub(super) steering: Option<Steering>,
}

/// Plans a statement for the catalog of the moment; none if it is not planned at all. By settings of the planner, if not by the session's.
pub fn plan(
    core: &Core,
    statement: &Statement,
    params: &mut Params,
    steering: Option<Steering>,
) -> Result<Option<Cached>> {
    let purpose = Purpose { steering, ..Purpose::default() };
    plan_or_locks(core, statement, params, purpose).map_err(|unplanned| unplanned.error)
}

/// The same for EXPLAIN; with values, for these alone; by settings of the planner, if not by the session's.
pub fn plan_shown(
    core: &Core,
    statement: &Statement,
    params: &mut Params,
    (values, steering): (Option<&[Datum]>, Option<Steering>),
) -> Result<Option<Cached>> {
    let purpose = Purpose { is_shown: true, values, steering, ..Purpose::default() };
    plan_or_locks(core, statement, params, purpose).map_err(|unplanned| unplanned.error)
}

/// A statement that can't be planned.
pub(super) struct Unplanned {
    pub(super) error: SqlError,
    /// The catalog by which it was judged.
    pub(super) catalog: Arc<Catalog>,
    /// The tables that had been found before.
    pub(super) locks: Vec<TableLock>,
}

pub(super) fn plan_or_locks(
    core: &Core,
    statement: &Statement,
    params: &mut Params,
    Purpose { exempt, system, body, is_shown, values, steering }: Purpose<'_>,
) -> std::result::Result<Option<Cached>, Box<Unplanned>> {
    let version = core.catalog_version();
    let catalog = core.catalog();
    let (path_changes, role_changes, row_security, format, steered) = {
        let s = core.settings.lock();
        (s.path_changes, s.role_changes, s.row_security, s.format.clone(), s.steering)
    };
    let steering = steering.unwrap_or(steered);
    let mut names = core.names(&catalog);
    let (role, own_path) = (names.role, names.path.clone());
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
    let env =
        PlanEnv { catalog: &catalog, database, path, judge, conversion, statistics, snapshots, row_security, steering };
    let planner = if exempt { Planner::new(&env).exempt() } else { Planner::new(&env) };
    let planner = if system { planner.of_the_server() } else { planner };
    let planner = match body.and_then(|body| body.meaning.as_ref()) {
        Some(meaning) => planner.of_body(meaning),
        None => planner,
    };
    params.values = values.map(|values| constants(values, &params.types)).or_else(|| params.values.take());
    let make = || planner.plan_or_locks(statement, params);
    let plan = match path_of_body {
        Some(path) => user::on_path(path, make),
        None if body.is_some() => user::off_path(make),
        None => make(),
    };
    let plan = plan.map_err(|(error, locks)| Box::new(Unplanned { error, catalog: catalog.clone(), locks }))?;
    Ok(plan.map(|mut plan| {
        let may = |lock: &TableLock, table| permitted(core, &catalog, table, lock).is_ok();
        let permitted = plan.locks.iter().all(|lock| catalog.relation(lock.oid).is_none_or(|table| may(lock, table)));
        let generation = plan.depends_on_figures().then_some(generation);
        let is_chosen = generation.is_some() && !params.types.is_empty();
        let (cost, outline) =
            if is_chosen { judged(&plan, Figures { statistics, steering: &steering }) } else { (0.0, 0) };
        let fast = Fast::of(&plan, core.database).filter(|_| permitted && !is_shown);
        let shown = if fast.is_none() { make_dense(&mut plan, is_shown) } else { None };
        Cached {
            catalog: catalog.clone(),
            version,
            path: own_path,
            path_changes,
            role_changes,
            role,
            row_security,
            permitted,
            generation,
            cost,
            outline,
            steering,
            steered: steered.number().into(),
            fast,
            plan: Arc::new(plan),
            shown,
        }
    }))
}

/// Numbers the slots of a plan anew; how it is shown, if it is to be.
fn make_dense(plan: &mut Plan, is_shown: bool) -> Option<Arc<ShownPlan>> {
    let shown = is_shown.then(|| plan.clone());
    let copies = plan.make_dense();
    let places = Places::of(shown.as_ref()?, plan, &copies);
    shown.map(|plan| Arc::new(ShownPlan { plan, places }))
}

/// What a plan costs, and its outline: by these a custom plan is compared with the generic one.
fn judged(plan: &Plan, figures: Figures<'_>) -> (f64, u64) {
    (cost_of(plan, figures), outline(plan))
}

/// Whether a table may be used as a plan uses it (PRV-1): by the rights for the table, or by those for each column used. What a statement
/// changes and reads no column of needs no right to read.
pub(super) fn permitted(core: &Core, catalog: &Catalog, table: &Relation, lock: &TableLock) -> Result<()> {
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

#[cfg(test)]
#[path = "planned_tests.rs"]
mod tests;
