//! Refuses rows that violate a view's check option.

use super::Cx;
use clearway_planner::plan::Target;
use clearway_syntax::error::{Result, SqlError};
use clearway_values::expr::Bound;
use clearway_values::types::Datum;

impl Cx<'_> {
    /// VIE-4. `slots` is what the conditions are bound over, `row` the table's row in it.
    pub(super) async fn check_views(
        self,
        target: &Target,
        checks: &[(String, Bound)],
        slots: &[Datum],
        row: &[Datum],
    ) -> Result<()> {
        for (view, condition) in checks {
            if !self.holds(Some(condition), slots).await? {
                let message = format!("new row violates check option for view \"{view}\"");
                return Err(super::shown::detailed(SqlError::new("44000", message), self.failing(target, row)));
            }
        }
        Ok(())
    }
}
