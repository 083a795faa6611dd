//! The session of a connection: one in this process, or one in the process that has the directory open.

use std::sync::Arc;

use clearway_base::waits::{SessionStats, with_session};
use clearway_engine::db::Db;
use clearway_sql::context::backend::{Listed, redacted};
use clearway_sql::session::{Backend, BackendState, Backends, Bind, Called, Client, Known, Session, TransactionStatus};
use clearway_values::types::Datum;

use crate::error::{Error, Result};
use crate::guest::Guest;
use crate::row::Collector;
use crate::statement::Caller;
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

/// What came of a statement that was tried on the spot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// It is done, and may be told.
    Done,
    /// It has run; its end, or a wait for what it depends on, is left.
    Ran,
    /// Nothing has happened: something stood in its way.
    GivenUp,
    /// Nothing has happened: it is no statement for this.
    Other,
}

/// A statement with its values, and the forms of its columns.
pub(crate) type Call<'a> = (&'a Known, &'a [Datum], &'a [i16]);

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

    /// Runs a statement whose parameters are values, on the spot: a read that is a transaction of its own, or a change of one row; of a task only reads.
    pub(crate) fn try_known(
        &mut self,
        call: Call<'_>,
        caller: Caller,
        waits: &Arc<SessionStats>,
        out: &mut Collector,
    ) -> Tried {
        let (known, values, formats) = call;
        if known.has_columns() {
            return match self.session.read_known(known, values, formats, out) {
                false => Tried::Other,
                true if self.session.may_send() => Tried::Done,
                true => Tried::Ran,
            };
        }
        if caller == Caller::Task {
            return Tried::Other;
        }
        let tried = self.try_change(call, out);
        if tried != Tried::GivenUp || !self.session.wants_turn() {
            return tried;
        }
        wait(with_session(Arc::clone(waits), self.session.wait_for_turn()));
        self.try_change(call, out)
    }

    fn try_change(&mut self, (known, values, _): Call<'_>, out: &mut Collector) -> Tried {
        let tried = match self.session.change_known(known, values, out) {
            Called::Done if self.session.try_sync() && self.session.may_send() => return Tried::Done,
            Called::Done => Tried::Ran, // DCT-2
            Called::GivenUp => Tried::GivenUp,
            Called::Other => Tried::Other,
        };
        if !self.session.wants_turn() {
            self.session.give_turn_back(); // TRN-3
        }
        tried
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

    /// The session's handle of a prepared statement, where the session is in this process.
    pub(crate) fn known(&self, name: &str) -> Option<Known> {
        match self {
            Link::Own(own) => own.session.known(name),
            Link::Guest(_) => None,
        }
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

    /// As [`Link::sync`], on the spot. False: that has to be called.
    pub(crate) fn try_sync(&mut self) -> bool {
        match self {
            Link::Own(own) => own.session.try_sync(),
            Link::Guest(_) => false,
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
