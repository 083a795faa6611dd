//! Calls functions that users define, from expressions and from FROM.

use super::{Cx, Row};
use clearway_context::routines::{self, RoutineCall};
use clearway_planner::plan::Action;
use clearway_syntax::error::Result;
use clearway_txn::lockmgr::LockMode;
use clearway_values::types::{Datum, Oid, SqlType};

impl Cx<'_> {
    /// The value of a function.
    pub(super) async fn routine_value(self, oid: Oid, args: Vec<Datum>) -> Result<Datum> {
        let rows = self.routine(oid, args, None).await?;
        Ok(rows.into_iter().next().and_then(|mut row| row.pop()).unwrap_or(Datum::Null))
    }

    /// The rows of a function; with `columns` each row has those.
    pub(super) async fn routine_rows(self, oid: Oid, args: Vec<Datum>, columns: Vec<SqlType>) -> Result<Vec<Row>> {
        self.routine(oid, args, Some(columns)).await
    }

    async fn routine(self, oid: Oid, args: Vec<Datum>, columns: Option<Vec<SqlType>>) -> Result<Vec<Row>> {
        self.breathe().await?;
        let plan = self.run.plan;
        let changes = !matches!(plan.action, Action::Select(_))
            || !plan.changes.is_empty()
            || plan.locks.iter().any(|lock| lock.mode != LockMode::AccessShare);
        let call = RoutineCall { oid, args, columns, by_call: false, view: self.run.view, changes };
        Box::pin(clearway_base::stack::deeper_polls(routines::call(self.run.core, call))).await
    }
}
