//! The run of what belongs to no statement: arguments of EXECUTE, constants of a definition.

use crate::{Run, RunState, ViewRows};
use clearway_context::core::{Core, now};
use clearway_engine::catalog::Catalog;
use clearway_planner::plan::Plan;
use clearway_values::types::datetime::Format;
use std::sync::Arc;

/// The run of a plan of nothing.
pub fn bare_run<'r>(
    core: &'r Core,
    catalog: &Arc<Catalog>,
    format: Format,
    (plan, state): (&'r Plan, &'r RunState),
    views: &'r dyn ViewRows,
) -> Run<'r> {
    Run {
        core,
        plan,
        params: &[],
        view: Default::default(),
        isolation: Default::default(),
        format,
        names: core.names(catalog),
        started: now(),
        transaction_started: core.transaction_started(),
        state,
        views,
    }
}
