//! The sessions of an open database: how one begins, and the list that closing goes through.
//!
//! # Invariants
//! - EMD-1: closing is final for every clone and every connection. No session begins after it; statements that run are stopped (57P01), open
//!   transactions are rolled back, and only then the files are closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clearway_base::sync::Mutex;
use clearway_base::waits::SessionStats;
use clearway_engine::db::Db;
use clearway_engine::embedded as tables;
use clearway_sql::context::backend::Who;
use clearway_sql::session::{Backends, Reason, Session, SessionStart};

use crate::error::{Error, Result};
use crate::slot::{CancelHandle, Slot};
use crate::statement::{Live, Statements};

/// What sessions of this database begin with, and those that are open.
pub(crate) struct Sessions {
    pub(crate) tables: tables::Database,
    pub(crate) backends: Arc<Backends>,
    database: String,
    user: String,
    settings: Vec<(String, String)>,
    open: Mutex<Vec<Arc<Slot>>>,
    closed: AtomicBool,
}

impl Sessions {
    /// No session is open yet.
    pub(crate) fn new(
        tables: tables::Database,
        (database, user): (String, String),
        settings: Vec<(String, String)>,
    ) -> Sessions {
        let (backends, open) = (Arc::new(Backends::default()), Mutex::new("embedded/open", Vec::new()));
        Sessions { tables, backends, database, user, settings, open, closed: AtomicBool::new(false) }
    }

    pub(crate) fn db(&self) -> &Arc<Db> {
        self.tables.engine()
    }

    /// Begins a session.
    pub(crate) async fn begin(&self) -> Result<Live> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        let waits = SessionStats::new("client backend");
        let (user, database) = (self.user.clone(), self.database.clone());
        let name = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let application_name = name.unwrap_or_default();
        let who = Who { user: user.clone(), database: database.clone(), client: None, server: None, application_name };
        // Nobody can ask for a cancel over the wire: `CancelHandle` needs no secret.
        let listed = self.backends.list(Arc::clone(&waits), 0, who);
        let (backend, backends) = (Arc::clone(listed.backend()), Arc::clone(&self.backends));
        let options = self.settings.clone();
        let start = SessionStart { backend, backends, database, user, options };
        let session = Session::new(self.db(), start).await?;
        let db = Arc::clone(self.db());
        let live = Live {
            db,
            session,
            statements: Statements::default(),
            listed,
            waits,
            unfinished: false,
            number: 0,
            texts: false,
            cut: false,
        };
        live.rests();
        Ok(live)
    }

    /// Begins a session and keeps it in the list of those that closing ends.
    pub(crate) async fn open(&self) -> Result<(Arc<Slot>, CancelHandle)> {
        let live = self.begin().await?;
        let cancel = CancelHandle(Arc::clone(live.listed.backend()));
        let slot = Slot::new(live);
        let mut open = self.open.lock();
        if self.closed.load(Ordering::SeqCst) {
            drop(open);
            slot.end().await;
            return Err(Error::Closed); // EMD-1
        }
        open.push(Arc::clone(&slot));
        drop(open);
        Ok((slot, cancel))
    }

    pub(crate) fn forget(&self, slot: &Arc<Slot>) {
        self.open.lock().retain(|open| !Arc::ptr_eq(open, slot));
    }

    /// Ends all sessions (EMD-1).
    pub(crate) async fn end(&self) {
        let open = {
            let mut open = self.open.lock();
            self.closed.store(true, Ordering::SeqCst);
            std::mem::take(&mut *open)
        };
        self.backends.all().iter().for_each(|backend| backend.interrupt.raise(Reason::Shutdown));
        for slot in open {
            slot.end().await;
        }
    }
}
