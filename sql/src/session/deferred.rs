//! SET CONSTRAINTS, and the deferred checks at the end of a transaction (sql/context/src/deferred.rs).

use super::run::Opened;
use crate::context::core::{Core, now};
use crate::error::{Result, SqlError, code};
use crate::exec::{Cx, Run, RunState};
use crate::planner::environment::bare_plan;
use crate::syntax::ast::QualName;
use crate::views::SystemViews;
use clearway_engine::catalog::Object;
use clearway_engine::session::StatementMode;
use std::sync::Arc;

/// Makes the checks that were put off; of some constraints, or of all.
pub(super) async fn settle(core: &Arc<Core>, only: Option<&[(u32, String)]>) -> Result<()> {
    let named =
        |of: (u32, &str)| only.is_none_or(|list| list.iter().any(|(table, name)| (*table, name.as_str()) == of));
    loop {
        let checks = core.deferred.lock().take(|check| named(check.constraint()));
        if checks.is_empty() {
            return Ok(());
        }
        let opened = Opened::new(core, core.engine.take().open_statement(&"COMMIT".into(), StatementMode::Write));
        let (plan, state) = (bare_plan(), RunState::new());
        let catalog = core.catalog();
        let isolation = core.engine.take().options().isolation;
        let run = Run {
            core,
            plan: &plan,
            params: &[],
            view: opened.view(),
            isolation,
            format: core.format(),
            names: core.names(&catalog),
            started: now(),
            transaction_started: core.transaction_started(),
            state: &state,
            views: &SystemViews,
        };
        Cx { run: &run, outer: &[] }.settle_deferred(checks).await?;
    }
}

/// SET CONSTRAINTS.
pub(super) async fn set_constraints(core: &Arc<Core>, names: &[QualName], deferred: bool) -> Result<()> {
    let found = names.iter().map(|name| constraints(core, name)).collect::<Result<Vec<_>>>()?.concat();
    let found = (!names.is_empty()).then_some(found);
    if !deferred {
        settle(core, found.as_deref()).await?;
    }
    core.deferred.lock().set(found.as_deref(), deferred);
    core.ends_with_work(); // DFR-3
    Ok(())
}

/// The deferrable constraints of a name, in the first schema of the search path that has any.
fn constraints(core: &Core, name: &QualName) -> Result<Vec<(u32, String)>> {
    let catalog = core.catalog();
    let path = core.path();
    let schemas: Vec<&str> = match name.schema() {
        Some(schema) => vec![schema],
        None => path.iter().map(String::as_str).collect(),
    };
    for schema in schemas {
        let Some(schema) = catalog.schema(core.database, schema) else { continue };
        let (mut found, mut rigid) = (Vec::new(), false);
        for object in catalog.objects() {
            let (table, deferrable) = match &**object {
                Object::Relation(r) if r.schema == schema.oid => {
                    let Some(key) = r.foreign_keys.iter().find(|key| key.name == name.name()) else { continue };
                    (r.oid, key.deferrable)
                }
                Object::Index(i) if i.schema == schema.oid && i.constraint && i.name == name.name() => {
                    (i.table, i.deferrable)
                }
                _ => continue,
            };
            rigid |= !deferrable;
            found.push((table, name.name().to_owned()));
        }
        if rigid {
            let message = format!("constraint \"{}\" is not deferrable", name.name());
            return Err(SqlError::new(code::WRONG_OBJECT_TYPE, message));
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(SqlError::new(code::UNDEFINED_OBJECT, format!("constraint \"{}\" does not exist", name.name())))
}
