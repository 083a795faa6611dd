//! Completes new rows and checks them: computes generated columns, then evaluates policies (RLS-1 to RLS-3 of the planner's `policies`)
//! and constraints.

use super::{Cx, Row};
use clearway_context::privileges::Judge;
use clearway_planner::plan::{PolicyCheck, Target};
use clearway_syntax::error::{Result, SqlError};
use clearway_values::types::Datum;

impl Cx<'_> {
    /// row_security_active: whether the policies of a table hold for the session's role.
    pub(super) fn row_security_active(self, table: &Datum) -> Result<Datum> {
        let names = &self.run.names;
        let number = match table {
            Datum::Text(name) => clearway_values::types::aliases::relation(names, name)?,
            other => other.as_i64().unwrap_or(0) as u32,
        };
        let judge = Judge::of(self.run.core, &names.catalog);
        Ok(Datum::Bool(names.catalog.relation(number).is_some_and(|r| judge.is_held_by_policies(r))))
    }

    /// Generated columns get their values; then the conditions of every row are checked.
    pub fn complete_row(self, target: &Target, row: &mut Row) -> Result<()> {
        self.generate(target, row)?;
        self.check_row(target, row)
    }

    /// Generated columns get their values.
    fn generate(self, target: &Target, row: &mut Row) -> Result<()> {
        for (column, e) in target.generated.iter() {
            row[*column] = self.value_now(e, row)?;
        }
        Ok(())
    }

    /// Completes a new row that policies judge before its constraints do, or that has conditions which may wait.
    pub(super) async fn complete_guarded(self, target: &Target, checks: &[PolicyCheck], row: &mut Row) -> Result<()> {
        self.generate(target, row)?;
        self.meets_policies(target, checks, row, "").await?;
        self.check_row(target, row)?;
        if target.checks_wait {
            for (name, check) in target.checks.iter() {
                if self.value(check, row).await?.as_bool() == Some(false) {
                    return Err(self.check_failed(target, row, name));
                }
            }
        }
        Ok(())
    }

    /// Whether a row meets policies; what is not known is not permitted.
    ///
    /// # Errors
    /// 42501.
    pub(super) async fn meets_policies(
        self,
        target: &Target,
        checks: &[PolicyCheck],
        row: &[Datum],
        which: &str,
    ) -> Result<()> {
        let Some(check) = self.first_refusal(checks, row).await? else { return Ok(()) };
        let name = check.name.as_ref().map_or(String::new(), |name| format!(" \"{name}\""));
        let table = &target.table.shape.name;
        let message = format!("new row violates row-level security policy{name}{which} for table \"{table}\"");
        Err(SqlError::new("42501", message))
    }

    /// The first policy that a row does not meet.
    pub(super) async fn first_refusal<'c>(
        self,
        checks: &'c [PolicyCheck],
        row: &[Datum],
    ) -> Result<Option<&'c PolicyCheck>> {
        for check in checks {
            if !self.holds(Some(&check.condition), row).await? {
                return Ok(Some(check));
            }
        }
        Ok(None)
    }
}
