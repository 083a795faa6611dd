//! Ending statements and sessions of others: `pg_cancel_backend` and `pg_terminate_backend`.

use super::Cx;
use clearway_base::sync::sleep;
use clearway_base::waits::{Object, WaitEvent, in_wait};
use clearway_context::interrupt::Reason;
use clearway_context::privileges::Judge;
use clearway_engine::catalog::predefined::SIGNAL_BACKEND;
use clearway_syntax::error::{Result, SqlError};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a session that has to end is looked for, as in PostgreSQL.
const LOOK_MS: u64 = 100;

impl Cx<'_> {
    /// Cancels or terminates a session of a role whose rights the session's role has, any but a superuser's with those of
    /// pg_signal_backend, any as a superuser.
    pub(super) fn signal(self, pid: i32, reason: Reason) -> Result<bool> {
        let core = self.run.core;
        let Some(backend) = core.backends.get(pid) else {
            core.notice("WARNING", SqlError::new("01000", format!("PID {pid} is not a PostgreSQL backend process")));
            return Ok(false);
        };
        let catalog = core.catalog();
        let judge = Judge::of(core, &catalog);
        let role = backend.role.load(Ordering::Relaxed);
        let cancels = reason == Reason::Cancel;
        if Judge::new(&catalog, core.database, Some(role)).is_superuser() && !judge.is_superuser() {
            let what = if cancels { "cancel superuser query" } else { "terminate superuser process" };
            return Err(SqlError::new("42501", format!("must be a superuser to {what}")));
        }
        if !judge.has_rights_of(role) && !judge.has_rights_of(SIGNAL_BACKEND) {
            let what = if cancels { "query is being canceled" } else { "process is being terminated" };
            let message = format!("must be a member of the role whose {what} or member of pg_signal_backend");
            return Err(SqlError::new("42501", message));
        }
        backend.interrupt.raise(reason);
        if pid == core.backend.pid {
            // A session that ends itself, or its statement, gets no answer.
            core.backend.interrupt.check()?;
        }
        Ok(true)
    }

    /// `pg_terminate_backend` with a time to wait: true once the session has ended; false, with a warning, if it has not within so many milliseconds.
    pub(super) async fn terminate_within(self, pid: i32, timeout_ms: i64) -> Result<bool> {
        let Ok(mut left_ms) = u64::try_from(timeout_ms) else {
            return Err(SqlError::new("22003", "\"timeout\" must not be negative"));
        };
        if !self.signal(pid, Reason::Terminate)? {
            return Ok(false);
        }
        let core = self.run.core;
        if left_ms == 0 {
            return Ok(true);
        }
        while core.backends.get(pid).is_some() {
            if left_ms == 0 {
                let message = format!("backend with PID {pid} did not terminate within {timeout_ms} milliseconds");
                core.notice("WARNING", SqlError::new("01000", message));
                return Ok(false);
            }
            let pause_ms = left_ms.min(LOOK_MS);
            in_wait(WaitEvent::BackendTermination, Object::NONE, sleep(Duration::from_millis(pause_ms))).await;
            core.backend.interrupt.check()?;
            left_ms -= pause_ms;
        }
        Ok(true)
    }
}
