//! A session inside the process: text in, rows of text out.

use std::sync::Arc;

use clearway_base::sync::block_on;
use clearway_base::waits::{SessionStats, with_session};
use clearway_engine::db::Db;
use clearway_sql::context::backend::{ClientIdentity, Listed};
use clearway_sql::error::SqlError;
use clearway_sql::session::{Backends, Client, Column, Session, SessionStart};

/// A row of a result; `None` is NULL.
pub type TextRow = Vec<Option<String>>;

/// Keeps the rows of a result.
#[derive(Default)]
struct Rows(Vec<TextRow>);

impl Client for Rows {
    fn row_description(&mut self, _: &[Column<'_>]) {
        self.0.clear();
    }
    fn row(&mut self, fields: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let field = |i| {
            let mut out = Vec::new();
            write(i, &mut out).then(|| String::from_utf8_lossy(&out).into_owned())
        };
        self.0.push((0..fields).map(field).collect());
    }
}

/// A session; every call parks the calling thread until the answer is there.
pub struct Local {
    waits: Arc<SessionStats>,
    listed: Listed,
    session: Session,
}

impl Local {
    /// A session of the role `postgres` in the database `clearway`.
    ///
    /// # Errors
    /// What a client would be told.
    pub fn open(db: &Arc<Db>, backends: &Arc<Backends>, name: &str) -> Result<Local, SqlError> {
        let waits = SessionStats::new(name);
        let who = ClientIdentity {
            server: None,
            user: "postgres".to_owned(),
            database: "clearway".to_owned(),
            application_name: name.to_owned(),
            ..ClientIdentity::default()
        };
        let listed = backends.list(waits.clone(), 0, who);
        let start = SessionStart {
            backend: listed.backend().clone(),
            backends: backends.clone(),
            database: "clearway".to_owned(),
            user: "postgres".to_owned(),
            options: vec![("application_name".to_owned(), name.to_owned())],
        };
        let session = block_on(Session::new(db, start))?;
        Ok(Local { waits, listed, session })
    }

    /// Its number in every view.
    pub fn pid(&self) -> i32 {
        self.listed.backend().pid
    }

    /// Runs statements and returns the rows of the last one, when everything that they depend on is durable.
    ///
    /// # Errors
    /// What a client would be told.
    pub fn run(&mut self, sql: &str) -> Result<Vec<TextRow>, SqlError> {
        let mut rows = Rows::default();
        self.listed.backend().activity.lock().query = sql.into();
        let session = &mut self.session;
        block_on(with_session(self.waits.clone(), async {
            session.simple(sql, &mut rows).await?;
            session.before_send().await
        }))?;
        Ok(rows.0)
    }

    /// Ends it.
    pub fn end(self) {
        block_on(self.session.end());
    }
}
