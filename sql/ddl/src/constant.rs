//! The value of an expression of a definition.

use crate::context::core::Core;
use crate::error::Result;
use crate::exec::bare::bare_run;
use crate::exec::{Cx, RunState};
use crate::expr::Bound;
use crate::planner::PlanEnv;
use crate::planner::environment::bare_plan;
use crate::types::Datum;
use crate::views::SystemViews;

/// The value of an expression that names nothing and can't wait.
pub fn constant_of(core: &Core, bound: &Bound, env: &PlanEnv<'_>) -> Result<Datum> {
    let (plan, state) = (bare_plan(), RunState::new());
    let run = bare_run(core, env.catalog, env.conversion.format.clone(), (&plan, &state), &SystemViews);
    Cx { run: &run, outer: &[] }.value_now(bound, &[])
}
