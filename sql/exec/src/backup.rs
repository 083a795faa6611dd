//! The functions through which a backup client talks to the server: `clearway_backup` carries requests and their answers,
//! `pg_create_restore_point` names a position in the log.
//!
//! # Not here
//! The meaning of the requests: `clearway_storage::backup`. The client: `clearway backup`.

use super::Cx;
use clearway_context::checkpoint;
use clearway_context::errors::from_engine;
use clearway_storage::backup::Request;
use clearway_syntax::{Result, SqlError};
use clearway_values::expr::HostFunction;
use clearway_values::types::Datum;

/// The longest name of a restore point, in bytes, as in PostgreSQL.
const POINT_BYTES_MAX: usize = 63;

impl Cx<'_> {
    pub(super) async fn backup_call(self, function: HostFunction, args: &[Datum]) -> Result<Datum> {
        let text = args.first().and_then(Datum::as_str).unwrap_or("");
        match function {
            HostFunction::Backup => self.backup(text).await,
            HostFunction::CreateRestorePoint => self.create_restore_point(text).await,
            other => self.large_object_call(other, args).await,
        }
    }

    fn refuse(function: &str) -> SqlError {
        SqlError::new("42501", format!("permission denied for function {function}"))
    }

    async fn backup(self, text: &str) -> Result<Datum> {
        // It reads everything, as BASE_BACKUP does in PostgreSQL.
        let role = self.run.core.role(&self.run.names.catalog);
        if !role.is_some_and(|role| role.superuser || role.has_replication()) {
            let hint = "A backup is taken by a superuser or a role with the REPLICATION attribute.";
            return Err(Self::refuse("clearway_backup").hint(hint));
        }
        let request = Request::parse(text);
        let request = request.ok_or_else(|| SqlError::new("22023", format!("\"{text}\" is no request of a backup")))?;
        let store = self.run.core.db.transactions().store();
        if matches!(request, Request::Begin) && store.checkpoint_spares_log() {
            // One that fails stops the database or leaves the one before, from which the copy begins then.
            let _ = checkpoint::take(self.run.core).await;
        }
        let answer = store.answer_copy(request).await.map_err(|error| from_engine(error.into()))?;
        Ok(Datum::Bytea(answer.into()))
    }

    async fn create_restore_point(self, name: &str) -> Result<Datum> {
        if !self.run.core.role(&self.run.names.catalog).is_some_and(|role| role.superuser) {
            return Err(Self::refuse("pg_create_restore_point"));
        }
        if name.len() > POINT_BYTES_MAX {
            let message = format!("value too long for restore point (maximum {POINT_BYTES_MAX} characters)");
            return Err(SqlError::new("22023", message));
        }
        let store = self.run.core.db.transactions().store();
        let lsn = store.create_restore_point(name).await.map_err(|error| from_engine(error.into()))?;
        Ok(Datum::Int8(i64::try_from(lsn.0).unwrap_or(i64::MAX)))
    }
}
