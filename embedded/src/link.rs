//! The session of a connection: one in this process, or one in the process that has the directory open.

use std::sync::Arc;

use clearway_base::waits::{SessionStats, with_session};
use clearway_engine::db::Db;
use clearway_sql::context::backend::{Listed, redacted};
use clearway_sql::session::{Backend, BackendState, Backends, Bind, Client, Session, TransactionStatus};

use crate::error::{Error, Result};
use crate::guest::Guest;
use crate::row::Collector;
use crate::wait::wait;

/// See the head of this module.
pub(crate) enum Link {
    Own(Box<Own>),
    Guest(Box<Guest>),
}

/// A session of this process.
pub(crate) struct Own {
    pub(crate) db: Arc<Db>,
    pub(crate) session: Session,
    pub(crate) listed: Listed,
    pub(crate) backends: Arc<Backends>,
}

impl Own {
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        self.listed.backend()
    }

    /// See [`Link::try_all`].
    pub(crate) fn try_all(&mut self, out: &mut Collector) -> bool {
        let done = self.session.try_execute("", out) && self.session.try_sync() && self.session.may_send();
        if !done && !self.session.wants_turn() {
            self.session.give_turn_back(); // TRN-3
        }
        done
    }

    /// The same for a thread that may wait, and waits for its turn at a row that other threads change.
    pub(crate) fn try_all_in_turn(&mut self, waits: &Arc<SessionStats>, out: &mut Collector) -> bool {
        if self.try_all(out) {
            return true;
        }
        if !self.session.wants_turn() {
            return false;
        }
        wait(with_session(Arc::clone(waits), self.session.wait_for_turn()));
        self.try_all(out)
    }
}

impl Link {
    /// Rolls back what is open, releases every lock, and takes the session off the list.
    pub(crate) async fn end(self) {
        match self {
            Link::Own(own) => {
                let Own { session, listed, .. } = *own;
                session.end().await;
                drop(listed);
            }
            Link::Guest(guest) => guest.end(),
        }
    }

    /// What others see of it between two calls.
    pub(crate) fn rests(&self) {
        let Link::Own(own) = self else { return };
        let state = match own.session.transaction_status() {
            TransactionStatus::Idle => BackendState::Idle,
            TransactionStatus::InBlock => BackendState::IdleInTransaction,
            TransactionStatus::Failed => BackendState::IdleInTransactionAborted,
        };
        own.backend().rests(state, clearway_base::waits::now_ns());
    }

    pub(crate) fn status(&self) -> TransactionStatus {
        match self {
            Link::Own(own) => own.session.transaction_status(),
            Link::Guest(guest) => guest.status(),
        }
    }

    /// Whether the connection to the other process broke.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Link::Guest(guest) if guest.is_lost())
    }

    /// Grows with each change of the catalog; a guest is told by an error instead ([`Link::is_stale`]).
    pub(crate) fn catalog_version(&self) -> u64 {
        match self {
            Link::Own(own) => own.db.catalog_version(),
            Link::Guest(_) => 1,
        }
    }

    /// Whether a statement failed only because it was prepared under an older catalog.
    pub(crate) fn is_stale(&self, error: &Error) -> bool {
        let is_it = |text: &str| text == "cached plan must not change result type";
        matches!((self, error), (Link::Guest(_), Error::Sql(failure)) if is_it(failure.message()))
    }

    /// Prepares a statement, and takes the types of its parameters and its columns.
    pub(crate) async fn prepare(&mut self, name: &str, sql: &str, out: &mut Collector) -> Result<()> {
        match self {
            Link::Own(own) => {
                own.session.parse(name, sql, &[]).await?;
                Ok(own.session.describe_statement(name, out).await?)
            }
            Link::Guest(guest) => guest.prepare(name, sql, out).await,
        }
    }

    pub(crate) fn close_statement(&mut self, name: &str) {
        match self {
            Link::Own(own) => own.session.close_statement(name),
            Link::Guest(guest) => guest.close_statement(name),
        }
    }

    pub(crate) async fn bind(&mut self, name: &str, bind: Bind<'_>) -> Result<()> {
        match self {
            Link::Own(own) => {
                if !own.session.try_bind("", name, &bind) {
                    own.session.bind("", name, bind).await?;
                }
            }
            Link::Guest(guest) => guest.bind(name, &bind),
        }
        Ok(())
    }

    /// Runs the bound statement to its end if that needs no wait. Where it does not, `out` says whether it ran.
    pub(crate) fn try_all(&mut self, out: &mut Collector) -> bool {
        match self {
            Link::Own(own) => own.try_all(out),
            Link::Guest(_) => false,
        }
    }

    /// What was to stop the last statement does not stop the next one.
    pub(crate) fn forget_interrupt(&self) {
        if let Link::Own(own) = self {
            own.backend().interrupt.forget();
        }
    }

    /// Runs the bound statement for so many rows.
    pub(crate) async fn execute(&mut self, rows: u32, out: &mut Collector) -> Result<()> {
        match self {
            Link::Own(own) => {
                let limit_ms = own.session.timeouts().statement_ms;
                let backend = Arc::clone(own.backend());
                Ok(backend.interrupt.timed(limit_ms, own.session.execute("", rows, out)).await?)
            }
            Link::Guest(guest) => guest.execute(rows, out).await,
        }
    }

    /// Ends the implicit transaction.
    pub(crate) async fn sync(&mut self) -> Result<()> {
        match self {
            Link::Own(own) => {
                let ended = own.session.sync().await;
                own.session.close_portal("");
                Ok(ended?)
            }
            // What broke has rolled back.
            Link::Guest(guest) if guest.is_lost() => Ok(()),
            Link::Guest(guest) => guest.sync().await,
        }
    }

    /// Waits until what was told is durable.
    pub(crate) async fn before_send(&mut self) -> Result<()> {
        match self {
            Link::Own(own) => Ok(own.session.before_send().await?),
            // The other process has waited.
            Link::Guest(_) => Ok(()),
        }
    }

    /// Runs all statements of a text.
    pub(crate) async fn simple(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        match self {
            Link::Own(own) => {
                own.backend().interrupt.forget();
                own.backend().runs(redacted(sql).into());
                Ok(own.session.simple(sql, client).await?)
            }
            Link::Guest(guest) => guest.simple(sql, client).await,
        }
    }
}
