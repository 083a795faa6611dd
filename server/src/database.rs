//! Implements the server's traits (`sessions`) with the SQL layer's sessions.

use std::sync::Arc;

use clearway_engine::catalog::{Object, Role};
use clearway_engine::db::Db;
use clearway_sql::Result;
use clearway_sql::context::privileges::Judge;
use clearway_sql::session::{self as sql, Client, TransactionStatus};

use crate::listen::Bound;
use crate::server::Server;
use crate::sessions::{Login, Session, Sessions, Start, Timeouts};
use crate::wire::frontend::{Bind, FunctionCall};

/// An open database directory, served.
pub struct Database {
    db: Arc<Db>,
}

impl Database {
    /// Serves `db`.
    pub fn new(db: Arc<Db>) -> Arc<Database> {
        Arc::new(Database { db })
    }

    /// The database.
    pub fn db(&self) -> &Arc<Db> {
        &self.db
    }

    /// Reads the catalog from its pages. No role and no database is needed for it: whichever of them were dropped or may not log in, the
    /// server starts, and a superuser can put it right.
    ///
    /// # Errors
    /// From the engine.
    pub async fn answers(&self) -> std::result::Result<(), clearway_engine::error::EngineError> {
        self.db.reads_its_catalog().await
    }
}

impl Server<Database> {
    /// `serve` for a program that serves a database, too: the code of a connection's task is generated in this crate, not once more in the caller's.
    #[inline(never)]
    pub fn serve_database(self: &Arc<Self>, bound: Bound) {
        self.serve(bound);
    }
}

impl Sessions for Database {
    type Session = sql::Session;

    fn login(&self, user: &str) -> Option<Login> {
        let catalog = self.db.catalog();
        let Role { login, password, superuser, valid_until, .. } = catalog.role(user)?.clone();
        // A password that has expired is none.
        let now = clearway_sql::context::core::now();
        let password = password.filter(|_| valid_until.is_none_or(|until| until > now));
        Some(Login { allowed: login, password, superuser })
    }

    fn is_member(&self, user: &str, role: &str) -> bool {
        let catalog = self.db.catalog();
        let (Some(user), Some(role)) = (catalog.role(user), catalog.role(role)) else { return false };
        Judge::new(&catalog, 0, Some(user.oid)).reaches(role.oid, |_| true)
    }

    fn has_passwords(&self) -> bool {
        let may =
            |object: &Arc<Object>| matches!(&**object, Object::Role(role) if role.login && role.password.is_some());
        self.db.catalog().objects().any(may)
    }

    async fn begin(&self, start: Start) -> Result<sql::Session> {
        let Start { backend, backends, database, user, settings: options } = start;
        let start = sql::SessionStart { backend, backends, database, user, options };
        let mut session = sql::Session::new(&self.db, start).await?;
        session.takes_turns();
        session.is_polled_when_woken(); // by the task of its connection
        Ok(session)
    }

    fn in_progress(&self, begins: bool) {
        self.db.transactions().store().wal().session_busy(begins);
    }
}

impl Session for sql::Session {
    fn reported(&self) -> Vec<(String, String)> {
        sql::Session::reported(self).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn timeouts(&self) -> Timeouts {
        let sql::Timeouts { statement_ms, idle_in_transaction_ms, idle_session_ms } = sql::Session::timeouts(self);
        Timeouts { statement_ms, idle_in_transaction_ms, idle_session_ms }
    }

    fn types(&self) -> clearway_sql::types::user::Slot {
        sql::Session::types(self)
    }

    fn status(&self) -> TransactionStatus {
        self.transaction_status()
    }

    async fn simple(&mut self, sql: &str, client: &mut dyn Client) -> Result<()> {
        sql::Session::simple(self, sql, client).await
    }

    async fn function_call(&mut self, call: &FunctionCall<'_>, client: &mut dyn Client) -> Result<Option<Vec<u8>>> {
        let FunctionCall { function, formats, values, result_format } = call;
        let call = sql::FunctionCall { function: *function, formats, values, result_format: *result_format };
        sql::Session::function_call(self, &call, client).await
    }

    async fn parse(&mut self, name: &str, sql: &str, types: &[u32]) -> Result<()> {
        sql::Session::parse(self, name, sql, types).await
    }

    async fn bind(&mut self, bind: &Bind<'_>) -> Result<()> {
        let Bind { portal, statement, formats, values, result_formats } = bind;
        sql::Session::bind(self, portal, statement, sql::Bind { formats, values, result_formats }).await
    }

    async fn describe_statement(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        sql::Session::describe_statement(self, name, client).await
    }

    async fn describe_portal(&mut self, name: &str, client: &mut dyn Client) -> Result<()> {
        sql::Session::describe_portal(self, name, client).await
    }

    async fn execute(&mut self, portal: &str, max_rows: u32, client: &mut dyn Client) -> Result<()> {
        sql::Session::execute(self, portal, max_rows, client).await
    }

    fn close_statement(&mut self, name: &str) -> Result<()> {
        sql::Session::close_statement(self, name);
        Ok(())
    }

    fn close_portal(&mut self, name: &str) -> Result<()> {
        sql::Session::close_portal(self, name);
        Ok(())
    }

    async fn sync(&mut self, client: &mut dyn Client) -> Result<()> {
        self.sync_and_tell(client).await
    }

    fn take_ended_ns(&mut self) -> u64 {
        sql::Session::take_ended_ns(self)
    }

    async fn before_send(&mut self) -> Result<()> {
        sql::Session::before_send(self).await
    }

    fn changes(&self) -> u64 {
        sql::Session::changes(self)
    }

    fn row_written(&self) -> u64 {
        sql::Session::row_written(self)
    }

    fn try_bind(&mut self, bind: &Bind<'_>) -> bool {
        let Bind { portal, statement, formats, values, result_formats } = bind;
        sql::Session::try_bind(self, portal, statement, &sql::Bind { formats, values, result_formats })
    }

    fn try_read(&mut self, bind: &Bind<'_>, describes: bool, client: &mut dyn Client) -> bool {
        let Bind { statement, formats, values, result_formats, .. } = bind;
        let bind = sql::Bind { formats, values, result_formats };
        sql::Session::try_read_batch(self, statement, &bind, describes, client)
    }

    fn try_describe_portal(&mut self, name: &str, client: &mut dyn Client) -> bool {
        sql::Session::try_describe_portal(self, name, client)
    }

    fn try_execute(&mut self, portal: &str, client: &mut dyn Client) -> bool {
        sql::Session::try_execute(self, portal, client)
    }

    fn try_execute_last(&mut self, client: &mut dyn Client) -> bool {
        sql::Session::try_execute_last(self, client)
    }

    fn try_simple(&mut self, sql: &str, client: &mut dyn Client) -> sql::AtOnce {
        sql::Session::try_simple(self, sql, client)
    }

    fn wants_turn(&self) -> bool {
        sql::Session::wants_turn(self)
    }

    async fn wait_for_turn(&mut self) {
        sql::Session::wait_for_turn(self).await;
    }

    fn give_turn_back(&mut self) {
        sql::Session::give_turn_back(self);
    }

    fn try_sync(&mut self) -> bool {
        sql::Session::try_sync(self)
    }

    fn may_send(&mut self) -> bool {
        sql::Session::may_send(self)
    }

    async fn end(self) {
        sql::Session::end(self).await;
    }
}
