//! What the server needs of the SQL layer, as traits, so that the protocol can be tested without a database.
//!
//! # Life of a batch
//! parse, bind, describe, execute, close in any order -> `sync` ends the implicit transaction. After an error the connection skips to
//! Sync. `simple` is a batch of its own. Before bytes leave, `before_send` waits until everything on which they depend is durable.
//!
//! Most messages of most clients need no wait: `try_bind` and the other `try_` functions handle them at once, or report that they can't.

use std::future::Future;
use std::sync::Arc;

use clearway_sql::session::{AtOnce, Backend, Backends, Client, TransactionStatus};
use clearway_sql::{Result, SqlError};

use crate::wire::frontend::{Bind, FunctionCall};

/// What a session begins with.
#[derive(Debug)]
pub struct Start {
    /// Its entry in the list.
    pub backend: Arc<Backend>,
    /// The list.
    pub backends: Arc<Backends>,
    /// The database.
    pub database: String,
    /// The role.
    pub user: String,
    /// Settings of the startup packet, `options` taken apart.
    pub settings: Vec<(String, String)>,
}

/// A role's right to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// It may log in at all.
    pub allowed: bool,
    /// Its verifier.
    pub password: Option<String>,
    /// It may use connections beyond the limit for others.
    pub superuser: bool,
}

/// Timeouts of a session in milliseconds; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// `statement_timeout`.
    pub statement_ms: u64,
    /// `idle_in_transaction_session_timeout`.
    pub idle_in_transaction_ms: u64,
    /// `idle_session_timeout`.
    pub idle_session_ms: u64,
}

/// What a database offers to a server.
pub trait Sessions: Send + Sync + 'static {
    /// Its sessions.
    type Session: Session;

    /// Who may log in under that name; None if there is no such role.
    fn login(&self, user: &str) -> Option<Login>;

    /// Whether a role is a member of another, at whatever remove, or that role itself. That it is a superuser does not make it one.
    fn is_member(&self, user: &str, role: &str) -> bool;

    /// Whether any role that may log in has a password.
    fn has_passwords(&self) -> bool;

    /// Begins a session.
    ///
    /// # Errors
    /// 3D000 for an unknown database, 28000 for a role that may not log in, those of settings.
    fn begin(&self, start: Start) -> impl Future<Output = Result<Self::Session>> + Send;

    /// Counts a session that has a statement in progress; with `false` it has none any more.
    fn in_progress(&self, begins: bool);
}

/// A session, as the connection drives it.
pub trait Session: Send + 'static {
    /// Settings that the client is told at the start.
    fn reported(&self) -> Vec<(String, String)>;

    /// Timeouts as they are set now.
    fn timeouts(&self) -> Timeouts;

    /// The types that users define: they are put in place for each poll.
    fn types(&self) -> clearway_sql::types::user::Slot;

    /// What ReadyForQuery says.
    fn status(&self) -> TransactionStatus;

    /// Runs all statements of a text, as one transaction where no block says otherwise.
    fn simple(&mut self, sql: &str, client: &mut dyn Client) -> impl Future<Output = Result<()>> + Send;

    /// Calls a function by its number, as a batch of its own; the value of its result, or none for NULL.
    fn function_call(
        &mut self,
        call: &FunctionCall<'_>,
        client: &mut dyn Client,
    ) -> impl Future<Output = Result<Option<Vec<u8>>>> + Send;

    /// Prepares a statement.
    fn parse(&mut self, name: &str, sql: &str, types: &[u32]) -> impl Future<Output = Result<()>> + Send;

    /// Makes a portal.
    fn bind(&mut self, bind: &Bind<'_>) -> impl Future<Output = Result<()>> + Send;

    /// Describes a statement: parameters, then columns or no data.
    fn describe_statement(&mut self, name: &str, client: &mut dyn Client) -> impl Future<Output = Result<()>> + Send;

    /// Describes a portal: columns or no data.
    fn describe_portal(&mut self, name: &str, client: &mut dyn Client) -> impl Future<Output = Result<()>> + Send;

    /// Runs a portal for `max_rows` rows, 0 for all.
    fn execute(
        &mut self,
        portal: &str,
        max_rows: u32,
        client: &mut dyn Client,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Forgets a statement; one that does not exist is no error.
    ///
    /// # Errors
    /// None of its own at present.
    fn close_statement(&mut self, name: &str) -> Result<()>;

    /// Forgets a portal, likewise.
    ///
    /// # Errors
    /// None of its own at present.
    fn close_portal(&mut self, name: &str) -> Result<()>;

    /// Ends the batch: commits its implicit transaction, or rolls it back after an error.
    fn sync(&mut self, client: &mut dyn Client) -> impl Future<Output = Result<()>> + Send;

    /// When the latest statement ended, by the clock of wait events; 0: none has ended since the last call.
    fn take_ended_ns(&mut self) -> u64 {
        0
    }

    /// Waits until everything is durable that the replies so far depend on.
    fn before_send(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Statements so far that may have changed or locked something.
    fn changes(&self) -> u64 {
        0
    }

    /// A digest of the row that the latest of these changed or locked last; 0: none.
    fn row_written(&self) -> u64 {
        0
    }

    /// As `bind`, on the spot; false: it can't be done so, or there is an error to tell, and nothing has happened.
    fn try_bind(&mut self, _bind: &Bind<'_>) -> bool {
        false
    }

    /// As `describe_portal`, likewise.
    fn try_describe_portal(&mut self, _name: &str, _client: &mut dyn Client) -> bool {
        false
    }

    /// As `execute`, likewise.
    fn try_execute(&mut self, _portal: &str, _client: &mut dyn Client) -> bool {
        false
    }

    /// As `try_bind`, `try_describe_portal` if `describes`, and `try_execute_last` in turn, for the unnamed portal of a statement that only reads.
    fn try_read(&mut self, _bind: &Bind<'_>, _describes: bool, _client: &mut dyn Client) -> bool {
        false
    }

    /// As `try_execute` for the unnamed portal, where Sync follows.
    fn try_execute_last(&mut self, client: &mut dyn Client) -> bool {
        self.try_execute("", client)
    }

    /// As `simple`, likewise.
    fn try_simple(&mut self, _sql: &str, _client: &mut dyn Client) -> AtOnce {
        AtOnce::Nothing
    }

    /// Whether what was tried has to wait for its turn at a row, and can be tried again then.
    fn wants_turn(&self) -> bool {
        false
    }

    /// Waits for that turn.
    fn wait_for_turn(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Gives back the turn at a row, if the session has one: what comes now may wait.
    fn give_turn_back(&mut self) {}

    /// As `sync`, likewise. What has been committed is durable only when `may_send` says so or `before_send` has returned.
    fn try_sync(&mut self) -> bool {
        false
    }

    /// As `before_send`; true: what has been told may leave.
    fn may_send(&mut self) -> bool {
        false
    }

    /// Ends the session: an open transaction is rolled back.
    fn end(self) -> impl Future<Output = ()> + Send;
}

/// Whether the connection ends with this error.
pub fn is_fatal(error: &SqlError) -> bool {
    matches!(error.code(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "08007")
}
