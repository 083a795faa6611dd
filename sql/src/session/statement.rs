//! Chooses the part of the session that carries out a statement.

use super::client::Client;
use super::session::{Prepared, Session, is_planned};
use super::{call, copy, deferred, discard, explain, held_up, mysql, utility};
use crate::error::{Result, SqlError};
use crate::exec::boxed;
use crate::syntax::stmt::Statement;
use crate::types::Datum;
use clearway_engine::session::StatementMode;
use clearway_storage::space::giving_back;
use std::sync::Arc;

impl Session {
    /// Runs a statement and gives all its rows, in the formats that the portal asks for; statements about transactions are not run here.
    pub(super) async fn statement(
        &mut self,
        prepared: &Arc<Prepared>,
        statement: &Statement,
        params: Arc<[Datum]>,
        client: &mut dyn Client,
    ) -> Result<String> {
        if is_planned(statement) {
            let mut execution = self.start(prepared, statement, params).await?;
            let (core, formats) = (self.core.clone(), self.result_formats.clone());
            execution.describe(&core, &formats, client)?;
            execution.give(&core, 0, &formats, client).await?;
            return Ok(execution.tag());
        }
        self.changes += 1;
        {
            let mut engine = self.core.engine.take();
            engine.owner().statement(&prepared.text);
            if takes_snapshot(statement) {
                engine.keep_snapshot(StatementMode::Write);
            }
        }
        match statement {
            Statement::Execute { name, args } => {
                let (target, params) = Box::pin(self.execute_arguments(name, args)).await?;
                self.cursors.skip_unnamed();
                let inner = target.statement.clone().ok_or_else(|| SqlError::internal("an empty statement"))?;
                Box::pin(self.statement(&target, &inner, params, client)).await
            }
            Statement::Explain { options, statement } => {
                Box::pin(explain::explain(self, prepared, (options, statement), params, client)).await
            }
            // Rare statements are boxed: the states of all other arms are part of every session's memory.
            Statement::Copy(c) => Box::pin(copy::copy(self, prepared, c, client)).await,
            Statement::DeclareCursor { .. } => {
                Box::pin(self.declare(prepared, statement, params)).await.map(str::to_owned)
            }
            Statement::Fetch { name, direction, is_move } => {
                Box::pin(self.fetch(name, *direction, *is_move, client)).await
            }
            Statement::CloseCursor { name } => self.close_cursor(name.as_deref()).map(str::to_owned),
            Statement::Listen { .. } | Statement::Unlisten { .. } | Statement::Notify { .. } => {
                self.notifying(statement).map(str::to_owned)
            }
            Statement::SetConstraints { names, deferred } => {
                self.warn_outside("SET CONSTRAINTS");
                boxed(deferred::set_constraints(&self.core, names, *deferred)).await?;
                Ok("SET CONSTRAINTS".to_owned())
            }
            Statement::Routine(r) if r.is_call() => boxed(call::run(self, prepared, r, &params, client)).await,
            Statement::Do(d) => boxed(self.run_do(d, client)).await,
            Statement::Mysql(what) => boxed(mysql::run(self, what, client)).await,
            Statement::Discard(what) => boxed(discard::discard(self, *what)).await.map(str::to_owned),
            _ => match boxed(utility::run(self, statement, client)).await? {
                Some(tag) => Ok(tag),
                None => {
                    let core = self.core.clone();
                    let frees = matches!(statement, Statement::Truncate(_) | Statement::Drop(_));
                    let run = clearway_ddl::run(self, &prepared.text, statement);
                    match frees {
                        true => Box::pin(held_up::telling(&core, client, giving_back(run))).await,
                        false => Box::pin(held_up::telling(&core, client, run)).await,
                    }
                }
            },
        }
    }

    fn warn_outside(&self, what: &str) {
        if !self.shares_transaction() {
            let message = format!("{what} can only be used in transaction blocks");
            self.core.notice("WARNING", SqlError::new("25P01", message));
        }
    }
}

/// Whether a statement that is not planned needs a snapshot, as PostgreSQL has it (`PlannedStmtRequiresSnapshot`): under repeatable read the
/// first that does takes it for the whole transaction.
fn takes_snapshot(statement: &Statement) -> bool {
    use Statement as S;
    !matches!(
        statement,
        S::Set(_)
            | S::Show { .. }
            | S::Reset { .. }
            | S::LockTable(_)
            | S::SetConstraints { .. }
            | S::Fetch { .. }
            | S::Listen { .. }
            | S::Notify { .. }
            | S::Unlisten { .. }
            | S::Checkpoint
    )
}
