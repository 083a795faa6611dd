//! EXPLAIN: its options, the execution of the statement for ANALYZE, and the answer.

use super::choice::Choice;
use super::client::Client;
use super::run;
use super::session::{Prepared, Session, is_planned};
use super::utility::{DiscardRows, text_row};
use crate::context::core::Core;
use crate::context::names::schema_of;
use crate::context::steering::Steering;
use crate::error::{Result, SqlError, code};
use crate::expr::Params;
use crate::planner::apart::Sharing;
use crate::planner::cost::Figures;
use crate::planner::environment::with_env;
use crate::planner::explain::render::{ExplainOptions, Format, Value, lines};
use crate::planner::explain::{Actuals, Explainer};
use crate::planner::plan::{OutputColumn, Plan};
use crate::syntax::ddl::CreateTableAs;
use crate::syntax::stmt::{GenericOption, Statement};
use crate::types::text::{Conversion, Names};
use crate::types::{Datum, Oid, oid};
use clearway_base::usage::{Counted, Usage};
use clearway_base::waits::{Measure, SessionTime, SessionTotals, WaitClass, WaitEvent, now_ns, settle};
use clearway_txn::lockmgr::IfTaken;
use std::sync::Arc;

/// Reads the options of EXPLAIN.
///
/// # Errors
/// 42601 for one that is not known, 22023 for one that has no sense.
fn asked(options: &[GenericOption]) -> Result<ExplainOptions> {
    let mut out = ExplainOptions {
        analyze: false,
        verbose: false,
        costs: true,
        timing: true,
        summary: false,
        buffers: false,
        wal: false,
        waits: false,
        generic: false,
        format: Format::Text,
    };
    let (mut timing, mut summary) = (None, None);
    for o in options {
        let boolean = || {
            o.as_bool().ok_or_else(|| SqlError::new(code::SYNTAX_ERROR, format!("{} requires a Boolean value", o.name)))
        };
        match o.name.as_str() {
            "analyze" | "analyse" => out.analyze = boolean()?,
            "verbose" => out.verbose = boolean()?,
            "costs" => out.costs = boolean()?,
            "buffers" => out.buffers = boolean()?,
            // No setting changes a plan: PostgreSQL leaves out what is not changed, too.
            "settings" => drop(boolean()?),
            "wal" => out.wal = boolean()?,
            "timing" => timing = Some(boolean()?),
            "summary" => summary = Some(boolean()?),
            "waits" => out.waits = boolean()?,
            "generic_plan" => out.generic = boolean()?,
            "format" => {
                let name = o.as_str().unwrap_or("").to_ascii_lowercase();
                out.format = match name.as_str() {
                    "text" => Format::Text,
                    "json" => Format::Json,
                    "yaml" => Format::Yaml,
                    "xml" => Format::Xml,
                    _ => {
                        let message = format!("unrecognized value for EXPLAIN option \"format\": \"{name}\"");
                        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message).at(o.pos));
                    }
                };
            }
            _ => {
                let message = format!("unrecognized EXPLAIN option \"{}\"", o.name);
                return Err(SqlError::new(code::SYNTAX_ERROR, message).at(o.pos));
            }
        }
    }
    for (name, is_set) in [("WAL", out.wal), ("TIMING", timing == Some(true)), ("WAITS", out.waits)] {
        if is_set && !out.analyze {
            let message = format!("EXPLAIN option {name} requires ANALYZE");
            return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
        }
    }
    if out.generic && out.analyze {
        let message = "EXPLAIN options ANALYZE and GENERIC_PLAN cannot be used together";
        return Err(SqlError::new(code::INVALID_PARAMETER_VALUE, message));
    }
    out.timing = out.analyze && timing.unwrap_or(true);
    out.summary = summary.unwrap_or(out.analyze);
    Ok(out)
}

/// For EXPLAIN (ANALYZE, WAITS): the session's clocks and waits when the statement began.
struct StatementStart {
    time: SessionTime,
    waits: Vec<(WaitEvent, SessionTotals)>,
}

impl StatementStart {
    fn begin(core: &Core) -> StatementStart {
        let waits = &core.backend.waits;
        let now = now_ns();
        settle(waits, now, Measure::RunDelay);
        StatementStart { time: waits.time(now), waits: waits.totals() }
    }

    /// What has come since: processor, run queue and waits, what is unaccounted, and each event with its time and number.
    fn ended(self, core: &Core) -> Vec<(&'static str, Value)> {
        let now = StatementStart::begin(core);
        let since = now.time.since(&self.time);
        let ms = |ns: u64| Value::Float(ns as f64 / 1e6, 3);
        let mut events = Vec::new();
        for (event, total) in &now.waits {
            let before =
                self.waits.iter().find(|(known, _)| known == event).map_or((0, 0), |(_, b)| (b.count, b.total_ns));
            let (count, ns) = (total.count - before.0, total.total_ns - before.1);
            if count > 0 && event.class() != WaitClass::Client {
                events.push((
                    ns,
                    format!("{} {} {:.3} ms in {count}", event.class().name(), event.name(), ns as f64 / 1e6),
                ));
            }
        }
        events.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        let mut told = vec![
            ("CPU Time", ms(since.cpu_ns)),
            ("Run Queue Time", ms(since.run_queue_ns)),
            ("Wait Time", ms(since.wait_ns)),
            ("Unaccounted Time", Value::Float(since.unaccounted_ns() as f64 / 1e6, 3)),
        ];
        if !events.is_empty() {
            told.push(("Waits", Value::List(events.into_iter().map(|(_, text)| text).collect())));
        }
        told
    }
}

/// The column of the answer; JSON is of its type.
pub(super) fn column(options: &[GenericOption]) -> OutputColumn {
    let is_json = asked(options).is_ok_and(|asked| asked.format == Format::Json);
    let ty = if is_json { oid::JSON } else { oid::TEXT };
    OutputColumn { name: "QUERY PLAN".to_owned(), ty: ty.into(), origin: (0, 0), shape: None }
}

/// EXPLAIN and EXPLAIN ANALYZE; for EXECUTE those of the prepared statement, with the values of its parameters; for DECLARE that of the query, as a
/// cursor reads it.
pub async fn explain(
    session: &mut Session,
    prepared: &Prepared,
    (options, statement): (&[GenericOption], &Statement),
    values: Arc<[Datum]>,
    client: &mut dyn Client,
) -> Result<String> {
    if let Statement::DeclareCursor { query, .. } = statement {
        let steering = Some(session.core.settings.lock().steering.of_cursor());
        let query = Statement::Query(query.clone());
        let given = Given { is_custom: !values.is_empty(), values, steering, choice: None };
        return explained(session, prepared, (options, &query), given, client).await;
    }
    let Statement::Execute { name, args } = statement else {
        let given = Given { is_custom: !values.is_empty(), values, steering: None, choice: None };
        return explained(session, prepared, (options, statement), given, client).await;
    };
    let (prepared, values) = Box::pin(session.execute_arguments(name, args)).await?;
    let Some(statement) = prepared.statement.clone() else {
        return Err(SqlError::unsupported("EXPLAIN of this statement"));
    };
    let is_custom = prepared.choice.is_custom(&session.core, prepared.plan.lock().as_deref());
    let generic = prepared.plan.lock().clone().filter(|_| !is_custom);
    let steering = generic.as_ref().and_then(|generic| prepared.choice.steering_of(generic));
    if let Some(generic) = generic
        && prepared.choice.kept(&session.core, generic).is_none()
    {
        // What is shown is what executions will keep.
        let anew = session.prepare_statement((*statement).clone(), prepared.text.clone(), &prepared.types)?;
        let plan = anew.plan.lock().take();
        *prepared.plan.lock() = plan;
    }
    let given = Given { values, is_custom, steering, choice: Some(&prepared.choice) };
    explained(session, &prepared, (options, &statement), given, client).await
}

/// What of a statement is planned: of CREATE TABLE AS, which is not carried out, its query.
fn planned_part<'s>(core: &Core, asked: &ExplainOptions, statement: &'s Statement) -> Result<&'s Statement> {
    match statement {
        Statement::CreateTableAs(s) if !asked.analyze => may_make(core, s).map(|()| &*s.query),
        other => Ok(other),
    }
}

/// Whether a table that a query is to fill could be made.
///
/// # Errors
/// 42P07.
fn may_make(core: &Core, s: &CreateTableAs) -> Result<()> {
    let catalog = core.catalog();
    let schema = with_env(core, &catalog, |env| env.schema_for(&s.name))?;
    match catalog.in_schema(schema, s.name.name()) {
        Some(_) if !s.if_not_exists => {
            Err(SqlError::new("42P07", format!("relation \"{}\" already exists", s.name.name())))
        }
        Some(_) => Err(SqlError::unsupported("EXPLAIN of a CREATE TABLE IF NOT EXISTS whose table exists")),
        None => Ok(()),
    }
}

/// Takes the locks of a plan, as PostgreSQL does before it plans; false: the catalog has changed during the wait, and it is to be made anew.
pub(super) async fn lock_planned(core: &Core, cached: &run::Cached) -> Result<bool> {
    for lock in &cached.plan.locks {
        core.lock_relation(lock.oid, lock.mode, IfTaken::Wait).await?;
    }
    Ok(run::is_fresh(core, cached))
}

/// The parameters of a statement that is explained.
struct Given<'a> {
    values: Arc<[Datum]>,
    /// The plan is for these values alone.
    is_custom: bool,
    /// It is made by these settings of the planner (CHO-4), not by the session's.
    steering: Option<Steering>,
    /// Of EXECUTE, where custom plans are counted.
    choice: Option<&'a Choice>,
}

/// The plan that is shown, with the locks of its tables; with values, that for these alone; by settings of the planner, if not by the
/// session's.
async fn locked_plan(
    core: &Core,
    statement: &Statement,
    (types, generic): (&[Oid], bool),
    custom: (Option<&[Datum]>, Option<Steering>),
) -> Result<run::Cached> {
    // A parameter of a generic plan has the type that its place asks for, and no value.
    let given = types.iter().map(|ty| Some(*ty)).collect();
    let mut params = Params { types: given, open: generic, ..Params::default() };
    loop {
        let cached = run::plan_shown(core, statement, &mut params, custom)?;
        let cached = cached.ok_or_else(|| SqlError::internal("nothing planned"))?;
        run::may_run(core, &cached)?;
        if lock_planned(core, &cached).await? {
            return Ok(cached);
        }
    }
}

async fn explained(
    session: &mut Session,
    prepared: &Prepared,
    (options, statement): (&[GenericOption], &Statement),
    Given { values, is_custom, steering, choice }: Given<'_>,
    client: &mut dyn Client,
) -> Result<String> {
    let asked = asked(options)?;
    let statement = planned_part(&session.core, &asked, statement)?;
    if !is_planned(statement) {
        return Err(SqlError::unsupported("EXPLAIN of this statement"));
    }
    let core = session.core.clone();
    let began = now_ns();
    let custom = (is_custom && !asked.generic).then_some(&*values);
    let cached = locked_plan(&core, statement, (&prepared.types, asked.generic), (custom, steering)).await?;
    if let Some(choice) = choice.filter(|_| custom.is_some()) {
        choice.made(&cached);
    }
    let planned_ms = (now_ns() - began) as f64 / 1e6;
    let mut behind = Vec::new();
    if asked.summary {
        behind.push(("Planning Time", Value::Float(planned_ms, 3)));
    }
    let (mut told, mut actuals): (Arc<run::Cached>, Option<Actuals>) = (Arc::new(cached), None);
    let mut whole = None;
    if asked.analyze {
        let mut inner = session.prepare_statement(statement.clone(), prepared.text.clone(), &prepared.types)?;
        // The client is not told of its columns: they may be others when the tables are locked.
        inner.columns = None;
        let spent = asked.waits.then(|| StatementStart::begin(&core));
        let began = now_ns();
        let (execution, usage) = Counted::new(Box::pin(async {
            let mut execution = session.start_measured(&inner, statement, values, (is_custom, steering)).await?;
            execution.give_to(&core, &mut DiscardRows).await?;
            Ok::<_, SqlError>(execution)
        }))
        .await;
        let execution = execution?;
        let took = now_ns() - began;
        whole = Some((took, usage));
        if asked.summary {
            behind.push(("Execution Time", Value::Float(took as f64 / 1e6, 3)));
        }
        behind.extend(spent.into_iter().flat_map(|spent| spent.ended(&core)));
        actuals = execution.actuals();
        told = execution.cached.clone();
    }
    let planned = told.shown.as_ref().ok_or_else(|| SqlError::internal("a plan that is not to be shown"))?;
    let actuals = actuals.map(|measured| planned.places.shown(measured));
    let shown = shown(&core, (&planned.plan, &told.steering), (actuals.as_ref(), whole), (&asked, &behind));
    run::describe(&[column(options)], &[], client);
    for line in &shown {
        text_row(&[line], client);
    }
    Ok("EXPLAIN".to_owned())
}

/// The lines of a plan, with what was measured of its parts and of the whole.
fn shown(
    core: &Core,
    (plan, steering): (&Plan, &Steering),
    (actuals, whole): (Option<&Actuals>, Option<(u64, Usage)>),
    (asked, behind): (&ExplainOptions, &[(&'static str, Value)]),
) -> Vec<String> {
    let catalog = core.catalog();
    let names = core.names(&catalog);
    let format = core.settings.lock().format.clone();
    let limits = core.settings.lock().parallel;
    let conversion = Conversion { format: &format, now: core.transaction_started(), names: &names };
    let figures = Figures { statistics: core.db.statistics(), steering };
    let explainer = Explainer {
        conversion: &conversion,
        plan,
        figures,
        sharing: Sharing::new(limits, figures),
        actuals,
        whole,
        verbose: asked.verbose,
        schema: &|oid| {
            let name = Names::schema_name(&names, schema_of(catalog.get(oid)?)?)?;
            Some(if name.starts_with("pg_temp_") { "pg_temp".to_owned() } else { name })
        },
        works: Default::default(),
        told: Default::default(),
        told_with: Default::default(),
    };
    lines(&explainer.tree(), behind, asked)
}
