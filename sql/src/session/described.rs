//! What the client of the simple protocol is told before the rows of a statement, and the rows that it alone is shown.

use super::client::Client;
use super::form::{describe, write_row};
use super::run::{Execution, Rows};
use crate::context::core::Core;
use crate::error::Result;
use crate::planner::plan::Action;
use crate::types::text::Conversion;

impl Execution {
    /// Tells the columns of a result. An UPDATE of pg_settings has none, and shows what PostgreSQL's rule gives beside it.
    ///
    /// # Errors
    /// If a value can't be written.
    pub(super) fn describe(&self, core: &Core, formats: &[i16], client: &mut dyn Client) -> Result<()> {
        if let Some(columns) = &self.cached.plan.columns {
            describe(columns, formats, client);
        }
        let Action::Settings(query) = &self.cached.plan.action else { return Ok(()) };
        describe(&query.columns, formats, client);
        let run = self.run(core);
        let conversion = Conversion { format: &run.format, now: run.transaction_started, names: &run.names };
        let Rows::List(rows) = &self.rows else { return Ok(()) };
        rows.in_memory().iter().try_for_each(|row| write_row(&conversion, &query.columns, formats, row, client))
    }
}
