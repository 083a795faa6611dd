//! Statements that neither define nor change data: settings, PREPARE, table locks, ANALYZE, VACUUM, CHECKPOINT.

use super::client::Client;
use super::held_up;
use super::run;
use super::session::Session;
use crate::context::core::Core;
use crate::context::errors::from_engine;
use crate::context::errors::in_block;
use crate::context::names::Found;
use crate::context::privileges::{self, Judge};
use crate::context::rebuild::{assign_id, lock_for_rebuild};
use crate::context::set_value::set_value;
use crate::context::settings::all;
use crate::error::{Result, SqlError, code};
use crate::exec::bare::bare_run;
use crate::exec::{Cx, RunState};
use crate::expr::{Bound, BoundKind, Params, Scope};
use crate::planner::Planner;
use crate::planner::environment::{bare_plan, relation_oid, with_env};
use crate::planner::plan::OutputColumn;
use crate::syntax::ast::{Expr, QualName};
use crate::syntax::stmt::{LockTable, Statement, TableLockMode};
use crate::types::cast::Context;
use crate::types::{Datum, SqlType, oid};
use crate::views::SystemViews;
use clearway_engine::catalog::predefined::CHECKPOINT;
use clearway_engine::catalog::{Catalog, Object, RelationKind};
use clearway_engine::progress::{Work, WorkView};
use clearway_engine::table::sample::{TARGET, Targets};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use std::borrow::Cow;
use std::sync::Arc;

/// Values of the arguments of EXECUTE, cast to types.
pub async fn arguments(core: &Core, args: &[Expr], types: &[SqlType]) -> Result<Vec<Datum>> {
    let catalog = core.catalog();
    let bound = with_env(core, &catalog, |env| {
        let bind = |(e, ty): (&Expr, &SqlType)| {
            let mut planner = Planner::new(env);
            planner.bind(&Scope::default(), &mut Params::default(), "EXECUTE", None, |b| {
                let bound = b.bind_unsettled(e)?;
                let pos = bound.pos;
                if bound.any(&|e| matches!(e.kind, BoundKind::Subquery { .. })) {
                    return Err(
                        SqlError::new(code::FEATURE_NOT_SUPPORTED, "cannot use subquery in EXECUTE parameter").at(pos)
                    );
                }
                b.coerce(bound, *ty, Context::Assignment)?
                    .ok_or_else(|| SqlError::new("42804", "a parameter cannot be coerced to the expected type").at(pos))
            })
        };
        args.iter().zip(types).map(bind).collect::<Result<Vec<Bound>>>()
    })?;
    let (plan, state) = (bare_plan(), RunState::new());
    let format = core.settings.lock().format.clone();
    let run = bare_run(core, &catalog, format, (&plan, &state), &SystemViews);
    Cx { run: &run, outer: &[] }.values(&bound, &[], &[]).await
}

fn lock_mode(mode: TableLockMode) -> LockMode {
    match mode {
        TableLockMode::AccessShare => LockMode::AccessShare,
        TableLockMode::RowShare => LockMode::RowShare,
        TableLockMode::RowExclusive => LockMode::RowExclusive,
        TableLockMode::ShareUpdateExclusive => LockMode::ShareUpdateExclusive,
        TableLockMode::Share => LockMode::Share,
        TableLockMode::ShareRowExclusive => LockMode::ShareRowExclusive,
        TableLockMode::Exclusive => LockMode::Exclusive,
        TableLockMode::AccessExclusive => LockMode::AccessExclusive,
    }
}

/// One setting, or all of them, as the session began with.
fn reset(core: &Core, name: Option<&str>) -> Result<()> {
    match name {
        Some(name) => core.set(name, None, false),
        None => {
            core.settings.lock().reset_all();
            Ok(())
        }
    }
}

/// Runs a statement of this module; none if it is another's.
pub async fn run(session: &mut Session, statement: &Statement, client: &mut dyn Client) -> Result<Option<String>> {
    let core = session.core.clone();
    Ok(Some(
        match statement {
            Statement::Set(s) => {
                core.set(&s.name, set_value(s).as_deref(), s.local)?;
                if s.local && !session.shares_transaction() {
                    let message = "SET LOCAL can only be used in transaction blocks";
                    core.notice("WARNING", SqlError::new("25P01", message));
                }
                "SET"
            }
            Statement::Show { name } => {
                show(&core, name, client)?;
                "SHOW"
            }
            Statement::Reset { name } => {
                reset(&core, name.as_deref())?;
                "RESET"
            }
            Statement::LockTable(l) => {
                lock_table(session, &core, l).await?;
                "LOCK TABLE"
            }
            Statement::Prepare { name, types, statement } => {
                let text = core.backend.activity.lock().query.clone();
                session.sql_prepare(name, types, statement, &text).await?;
                "PREPARE"
            }
            Statement::Deallocate { name } => {
                session.deallocate(name.as_deref())?;
                if name.is_some() { "DEALLOCATE" } else { "DEALLOCATE ALL" }
            }
            Statement::Analyze { verbose: _, tables } => {
                let locks = upkeep(&core, tables, LockMode::ShareUpdateExclusive, "analyze");
                let own = held_up::telling(&core, client, locks).await?;
                analyze(&core, if tables.is_empty() { own_tables(&core) } else { own }).await?;
                "ANALYZE"
            }
            Statement::Vacuum { .. } if session.shares_transaction() => return Err(in_block("VACUUM")),
            Statement::Vacuum { options, tables } => {
                let full = options.iter().any(|o| o.name == "full" && o.as_bool() == Some(true));
                if full && options.iter().any(|o| o.name == "process_toast" && o.as_bool() == Some(false)) {
                    return Err(SqlError::new("0A000", "PROCESS_TOAST required with VACUUM FULL"));
                }
                let mode = if full { LockMode::AccessExclusive } else { LockMode::ShareUpdateExclusive };
                held_up::telling(&core, client, upkeep(&core, tables, mode, "vacuum")).await?;
                "VACUUM"
            }
            Statement::Cluster { table, index, verbose: _ } => {
                if let Some(table) = table {
                    held_up::telling(&core, client, cluster(&core, table, index.as_deref())).await?;
                }
                "CLUSTER"
            }
            Statement::AlterSystem { set } => super::alter_system::alter_system(session, set).await?,
            Statement::Checkpoint => checkpoint(&core).await?,
            _ => return Ok(None),
        }
        .to_owned(),
    ))
}

/// CLUSTER: the locks that it takes; rows are in the order of their key anyway.
async fn cluster(core: &Core, table: &QualName, index: Option<&str>) -> Result<()> {
    let (oid, catalog) = relation_oid(core, table)?;
    if let Some(object) = catalog.get(oid) {
        privileges::owns(core, &catalog, object)?;
    }
    core.lock_relation(oid, LockMode::AccessExclusive, IfTaken::Wait).await?;
    let (oid, catalog) = relation_oid(core, table)?;
    if let Some(index) = index.filter(|index| !catalog.indexes(oid).any(|known| known.name == **index)) {
        let message = format!("index \"{index}\" for table \"{}\" does not exist", table.name());
        return Err(SqlError::new("42704", message));
    }
    lock_for_rebuild(core, &catalog, oid).await
}

fn text_column(name: &str) -> OutputColumn {
    OutputColumn { name: name.to_owned(), ty: oid::TEXT.into(), origin: (0, 0), shape: None }
}

/// The columns of a statement that is not planned.
pub fn columns_of(session: &Session, statement: &Statement) -> Result<Option<Vec<OutputColumn>>> {
    Ok(match statement {
        Statement::Show { name } if name == "all" => Some(["name", "setting", "description"].map(text_column).to_vec()),
        Statement::Show { name } => {
            let shown = crate::context::settings::find(name).map_or(name.as_str(), |s| s.name);
            Some(vec![text_column(shown)])
        }
        Statement::Mysql(statement) => super::mysql::columns(statement),
        Statement::Explain { options, .. } => Some(vec![super::explain::column(options)]),
        Statement::Execute { name, .. } => session.prepared(name).ok().and_then(|prepared| prepared.columns.clone()),
        Statement::Fetch { name, is_move: false, .. } => session.fetched_columns(name),
        _ => None,
    })
}

pub(super) fn text_row(values: &[&str], client: &mut dyn Client) {
    let encoding = client.encoding();
    client.row(values.len(), &mut |i, out| {
        out.extend_from_slice(&values.get(i).map_or(Cow::Borrowed(&[][..]), |v| encoding.encode_lossy(v)));
        true
    });
}

fn show(core: &Core, name: &str, client: &mut dyn Client) -> Result<()> {
    if name == "all" {
        run::describe(&["name", "setting", "description"].map(text_column), &[], client);
        let settings = core.settings.lock().clone();
        for s in all() {
            text_row(&[s.name, settings.get(s.name), s.about], client);
        }
        return Ok(());
    }
    let value = core.show(name)?;
    let shown = crate::context::settings::find(name).map_or(name, |s| s.name);
    run::describe(&[text_column(shown)], &[], client);
    text_row(&[&value], client);
    Ok(())
}

/// The privileges of which one allows a lock.
fn letters_of(mode: LockMode) -> &'static str {
    match mode {
        LockMode::AccessShare => "r",
        LockMode::RowExclusive => "awdD",
        _ => "wdD",
    }
}

async fn lock_table(session: &Session, core: &Core, l: &LockTable) -> Result<()> {
    if !session.shares_transaction() {
        return Err(SqlError::new("25P01", "LOCK TABLE can only be used in transaction blocks"));
    }
    for table in &l.tables {
        let mode = lock_mode(l.mode);
        let if_taken = if l.nowait { IfTaken::Fail } else { IfTaken::Wait };
        loop {
            let (oid, catalog) = relation_oid(core, &table.name)?;
            if let Some(relation) = catalog.relation(oid) {
                privileges::relation_any(core, &catalog, relation, letters_of(mode), None)?;
            }
            core.lock_in_turn(oid, mode, if_taken).await?;
            if Arc::ptr_eq(&catalog, &core.catalog()) {
                lock_view(core, &catalog, oid, mode, if_taken).await?;
                break;
            }
        }
    }
    Ok(())
}

/// A lock on a view goes to the tables that it names.
async fn lock_view(core: &Core, catalog: &Arc<Catalog>, oid: u32, mode: LockMode, if_taken: IfTaken) -> Result<()> {
    let Some(view) = catalog.relation(oid).filter(|r| r.kind == RelationKind::View) else { return Ok(()) };
    let parsed = crate::syntax::parse(view.query.as_deref().unwrap_or(""))?;
    let Some(statement) = parsed.first() else { return Ok(()) };
    let planned =
        with_env(core, catalog, |env| Planner::of_view(env, view).plan(&statement.statement, &mut Params::default()))?;
    let locks = planned.map(|p| p.locks).unwrap_or_default();
    for lock in &locks {
        // The view's owner, or its user (VIE-6), must be allowed to lock what the view reads.
        if let Some(relation) = catalog.relation(lock.oid) {
            privileges::relation_any(core, catalog, relation, letters_of(mode), lock.owner)?;
        }
    }
    for lock in locks {
        core.lock_in_turn(lock.oid, mode, if_taken).await?;
    }
    Ok(())
}

/// A relation and the places of its columns that a statement names, or all of them.
type Kept = (u32, Option<Vec<usize>>);

/// The relations of the database that the session's role may keep up; a warning for each other one.
fn own_tables(core: &Core) -> Vec<Kept> {
    let catalog = core.catalog();
    let has_rows =
        |o: &Object| matches!(o, Object::Relation(r) if r.database == core.database && r.kind != RelationKind::View);
    let relations = catalog.objects().filter(|o| has_rows(o));
    relations.filter(|o| may_keep_up(core, &catalog, o, "analyze")).map(|o| (o.oid(), None)).collect()
}

/// Whether the session's role owns a relation or the database; a warning if not.
fn may_keep_up(core: &Core, catalog: &Catalog, object: &Object, verb: &str) -> bool {
    let own = |object: &Object| privileges::owns(core, catalog, object).is_ok();
    let may = own(object) || catalog.get(core.database).is_some_and(|database| own(database));
    if !may {
        let name = object.name();
        let message = format!("skipping \"{name}\" --- only table or database owner can {verb} it");
        core.notice("WARNING", SqlError::new("01000", message));
    }
    may
}

/// Counts the rows of tables.
async fn analyze(core: &Core, tables: Vec<Kept>) -> Result<()> {
    let catalog = core.catalog();
    let default = core.settings.lock().get("default_statistics_target").parse().unwrap_or(TARGET);
    let progress = core.engine.take().progress().clone();
    let now = WorkView { work: Work::Analyze, command: "ANALYZE", phase: "acquiring sample rows", table: 0, index: 0 };
    let _working = progress.begin(now);
    for (table, only) in tables {
        let (all, statistics) = (core.db.transactions(), core.db.statistics());
        let (published, asked) = (core.db.catalog(), (table, Targets { default, only }));
        let counted = statistics.analyze(all, (&catalog, &published), core.db.usage(), asked, &progress).await;
        let stored = counted.map_err(from_engine)?;
        core.engine.take().depends_on(stored);
    }
    Ok(())
}

/// The places of the columns that ANALYZE names; none: all of them.
fn analyzed_columns(catalog: &Catalog, table: u32, names: &[String]) -> Result<Option<Vec<usize>>> {
    let Some(r) = catalog.relation(table).filter(|_| !names.is_empty()) else { return Ok(None) };
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let place = r.columns.iter().position(|c| c.name == *name && !c.is_dropped()).ok_or_else(|| {
            SqlError::new("42703", format!("column \"{name}\" of relation \"{}\" does not exist", r.name))
        })?;
        if places.contains(&place) {
            let message = format!("column \"{name}\" of relation \"{}\" appears more than once", r.name);
            return Err(SqlError::new("42701", message));
        }
        places.push(place);
    }
    Ok(Some(places))
}

/// VACUUM and CLUSTER have nothing to do here, ANALYZE only counts; they take PostgreSQL's locks. Gives the tables that were not skipped.
async fn upkeep(core: &Core, tables: &[(QualName, Vec<String>)], mode: LockMode, verb: &str) -> Result<Vec<Kept>> {
    let mut own = Vec::new();
    for (name, columns) in tables {
        if of_system(core, name, verb)? {
            continue;
        }
        let (oid, catalog) = relation_oid(core, name)?;
        if catalog.get(oid).is_some_and(|object| !may_keep_up(core, &catalog, object, verb)) {
            continue;
        }
        own.push((oid, analyzed_columns(&catalog, oid, columns)?));
        core.lock_relation(oid, mode, IfTaken::Wait).await?;
        if core.catalog().get(oid).is_none() {
            // What it is named now; most often it has gone during the wait.
            relation_oid(core, name)?;
        }
        if verb == "analyze" {
            for index in catalog.indexes(oid) {
                core.lock_relation(index.oid, LockMode::AccessShare, IfTaken::Wait).await?;
            }
            assign_id(core)?;
        }
    }
    Ok(own)
}

/// Whether a name is that of a system catalog, which needs no upkeep; a warning for a role that could not keep it up.
fn of_system(core: &Core, name: &QualName, verb: &str) -> Result<bool> {
    let catalog = core.catalog();
    let system = with_env(core, &catalog, |env| match env.lookup(name) {
        Ok(Found::System(view)) => Some(view.name),
        _ => None,
    });
    let Some(system) = system else { return Ok(false) };
    let may = core.role(&catalog).is_some_and(|role| role.superuser)
        || catalog.get(core.database).is_some_and(|database| privileges::owns(core, &catalog, database).is_ok());
    if !may {
        let message = format!("skipping \"{system}\" --- only superuser or database owner can {verb} it");
        core.notice("WARNING", SqlError::new("01000", message));
    }
    Ok(true)
}

/// Rows that are dropped: EXPLAIN ANALYZE counts them.
pub(super) struct DiscardRows;

impl crate::exec::sink::Sink for DiscardRows {
    fn row(&mut self, _: &crate::exec::Run<'_>, _: crate::exec::Row) -> Result<()> {
        Ok(())
    }
    fn is_full(&self) -> bool {
        false
    }
    fn flush(&mut self) -> crate::exec::BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// CHECKPOINT.
async fn checkpoint(core: &Core) -> Result<&'static str> {
    if !Judge::of(core, &core.catalog()).has_rights_of(CHECKPOINT) {
        return Err(SqlError::new("42501", "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT"));
    }
    crate::context::checkpoint::take(core).await?;
    Ok("CHECKPOINT")
}
