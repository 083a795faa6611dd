//! The rows of clearway_shared_plans: the plans that sessions share.

use super::waits::VisibleStatements;
use super::{ViewOf, int, text};
use clearway_engine::catalog::Object;
use clearway_exec::{Row, Run};
use clearway_values::types::Datum;

/// The rows of the view.
pub const ROWS: &[ViewOf] = &[("pg_catalog", "clearway_shared_plans", plans)];

/// One row for each plan. Another role's text is hidden from roles that may not watch it.
fn plans(run: &Run<'_>) -> Vec<Row> {
    let Some(plans) = run.core.backends.shared_plans.get() else { return Vec::new() };
    let (seen, catalog) = (VisibleStatements::new(run), &run.names.catalog);
    let name = |oid: u32| match catalog.get(oid).map(|object| &**object) {
        Some(Object::Database(database)) => text(&database.name),
        Some(Object::Role(role)) => text(&role.name),
        _ => Datum::Null,
    };
    let rows = plans.rows().into_iter().map(|plan| {
        vec![
            name(plan.database),
            plan.role.map_or(Datum::Null, name),
            text(&plan.path.join(", ")),
            text(if plan.simple { "simple" } else { "extended" }),
            seen.text(plan.role.unwrap_or(0), &plan.text),
            int(plan.taken),
            Datum::TimestampTz(plan.at),
        ]
    });
    rows.collect()
}
