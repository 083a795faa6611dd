//! COMMIT and ROLLBACK in a body.

use super::frame::Frame;
use crate::error::{Result, SqlError};

/// 2D000.
fn invalid(message: &str) -> SqlError {
    SqlError::new("2D000", message)
}

impl Frame<'_> {
    /// Ends the transaction, and begins the next one.
    pub(super) async fn end_transaction(&mut self, commit: bool, chain: bool) -> Result<()> {
        if self.atomic {
            return Err(invalid("invalid transaction termination"));
        }
        if self.session.in_subtransaction() {
            return Err(invalid(match commit {
                true => "cannot commit while a subtransaction is active",
                false => "cannot roll back while a subtransaction is active",
            }));
        }
        Box::pin(self.session.next_transaction(commit, chain)).await
    }
}
