//! PREPARE.

use super::explain::lock_planned;
use super::session::Session;
use crate::error::{Result, SqlError};
use crate::syntax::ast::TypeName;
use crate::syntax::stmt::Statement;
use crate::types::{Oid, resolve};
use std::sync::Arc;

impl Session {
    /// PREPARE.
    pub(super) async fn sql_prepare(
        &mut self,
        name: &str,
        types: &[TypeName],
        statement: &Statement,
        text: &Arc<str>,
    ) -> Result<()> {
        if self.statements.contains_key(name) {
            return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let types: Vec<Oid> = types.iter().map(|t| resolve(t).map(|t| t.oid)).collect::<Result<_>>()?;
        self.prepared_held.resume();
        let prepared = loop {
            let prepared = self.prepare_statement(statement.clone(), text.clone(), &types)?;
            let planned = prepared.plan.lock().clone();
            // A change of its tables that is not committed yet is waited for: the statement is of what they are then.
            match planned {
                Some(planned) if !lock_planned(&self.core, &planned).await? => {}
                _ => break prepared,
            }
        };
        let prepared = Arc::new(prepared);
        self.recent = None;
        self.list_prepared(name, &prepared, true);
        self.statements.insert(name.to_owned(), prepared);
        self.prepared_held.measure();
        Ok(())
    }
}
