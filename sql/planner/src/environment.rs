//! The planner as a session's statements see it: the names, rights and formats of the session, and what a name of a statement leads to.

use crate::PlanEnv;
use crate::plan::{Action, Body, Plan, Query};
use clearway_context::core::Core;
use clearway_context::names::Found;
use clearway_context::privileges::Judge;
use clearway_engine::catalog::{Catalog, Object};
use clearway_syntax::ast::QualName;
use clearway_syntax::error::{Result, code};
use clearway_values::types::text::Conversion;
use clearway_values::types::user;
use std::sync::Arc;

/// Calls `f` with what the planner knows of the session.
pub fn with_env<T>(core: &Core, catalog: &Arc<Catalog>, f: impl FnOnce(&PlanEnv<'_>) -> T) -> T {
    let names = core.names(catalog);
    let (format, row_security, steering) = {
        let settings = core.settings.lock();
        (settings.format.clone(), settings.row_security, settings.steering)
    };
    let conversion = Conversion { format: &format, now: core.transaction_started(), names: &names };
    let judge = Judge::of(core, catalog);
    f(&PlanEnv {
        catalog,
        database: core.database,
        path: &names.path,
        judge,
        conversion,
        statistics: core.db.statistics(),
        snapshots: core.db.transactions().book().snapshots(),
        row_security,
        steering,
    })
}

/// A plan of nothing, for what runs without a statement of its own.
pub fn bare_plan() -> Plan {
    Plan {
        changes: Vec::new(),
        action: Action::Select(Arc::new(Query::of(Body::Values(Vec::new()), Vec::new()))),
        subqueries: Vec::new(),
        locks: Vec::new(),
        params: Vec::new(),
        columns: None,
        read_only: true,
        passed_over: Default::default(),
    }
}

/// The oid of a table or view, and the catalog in which it was found. As in PostgreSQL the errors have no place in the statement, and say where
/// it is the schema that does not exist.
///
/// # Errors
/// 3F000, 42P01, 42809, 42501.
pub fn relation_oid(core: &Core, name: &QualName) -> Result<(u32, Arc<Catalog>)> {
    let catalog = core.catalog();
    let found = with_env(core, &catalog, |env| {
        let found = env.relation(name).map(|r| r.oid);
        found.map_err(|e| match e.code() == code::UNDEFINED_TABLE {
            true => user::missing_schema(name.schema()).unwrap_or_else(|| e.nowhere()),
            false => e.nowhere(),
        })
    });
    Ok((found?, catalog))
}

/// The object that a name leads to, for statements on any kind.
pub fn find_object(core: &Core, catalog: &Arc<Catalog>, name: &QualName) -> Option<Arc<Object>> {
    with_env(core, catalog, |env| match env.lookup(name) {
        Ok(Found::Object(o)) => Some(o.clone()),
        _ => None,
    })
}
