//! The sessions of an open database: how a session begins, and the list of sessions that closing ends.
//!
//! # Invariants
//! - EMD-1: closing is final for every clone and every connection. No session begins after closing has begun. Running statements are stopped
//!   (57P01), then open transactions are rolled back, then the files are closed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clearway_base::sync::{Mutex, sleep};
use clearway_base::waits::{Object, SessionStats, WaitEvent, in_wait, now_ns};
use clearway_engine::embedded as tables;
use clearway_sql::context::backend::ClientIdentity;
use clearway_sql::session::{Backends, Reason, Session, SessionStart};
use clearway_storage::store::StoreOptions;

use crate::error::{Error, Result};
use crate::guest::{Caller, Guest, off};
use crate::link::{Link, Own};
use crate::slot::{CancelHandle, Slot};
use crate::statement::{Live, Statements};

/// The Unix socket in a directory that several processes share.
pub(crate) const SOCKET: &str = "clearway.sock";
/// How long a process that has the directory may take to begin to listen, or to end.
const CHANGE_MAX: Duration = Duration::from_secs(30);
const CHANGE_PAUSE: Duration = Duration::from_millis(20);

/// The database where this process has the directory open.
pub(crate) struct Home {
    pub(crate) tables: tables::Database,
    pub(crate) backends: Arc<Backends>,
}

/// A directory that this process shares with others: the process that opens it first has it; the others work through that process.
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) store: StoreOptions,
    /// A thread is opening the directory.
    opening: AtomicBool,
}

impl Shared {
    pub(crate) fn new(dir: &Path, store: StoreOptions) -> Shared {
        // The program may change its working directory later.
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        Shared { dir, store, opening: AtomicBool::new(false) }
    }
}

/// The database, the user and the settings of a session that begins.
pub(crate) struct Start {
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) settings: Vec<(String, String)>,
}

/// What sessions of this database begin with, and those that are open.
pub(crate) struct Sessions {
    home: OnceLock<Home>,
    shared: Option<Shared>,
    start: Start,
    application_name: String,
    open: Mutex<Vec<Arc<Slot>>>,
    closed: AtomicBool,
    #[cfg(feature = "server")]
    servers: Mutex<Vec<crate::serve::Running>>,
}

impl Sessions {
    /// No session is open yet.
    pub(crate) fn new(tables: Option<tables::Database>, shared: Option<Shared>, start: Start) -> Sessions {
        let home = OnceLock::new();
        if let Some(tables) = tables {
            let _ = home.set(Home { tables, backends: Arc::default() });
        }
        let name = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        Sessions {
            home,
            shared,
            start,
            application_name: name.unwrap_or_default(),
            open: Mutex::new("embedded/open", Vec::new()),
            closed: AtomicBool::new(false),
            #[cfg(feature = "server")]
            servers: Mutex::new("embedded/servers", Vec::new()),
        }
    }

    /// The database, for what only the process can do that has the directory.
    pub(crate) fn home(&self, what: &'static str) -> Result<&Home> {
        self.home.get().ok_or(Error::Elsewhere(what))
    }

    /// Whether this process has the directory open.
    pub(crate) fn is_home(&self) -> bool {
        self.home.get().is_some()
    }

    /// Begins a session.
    pub(crate) async fn begin(&self) -> Result<Live> {
        let deadline = now_ns().saturating_add(CHANGE_MAX.as_nanos() as u64);
        loop {
            if self.closed.load(Ordering::SeqCst) {
                return Err(Error::Closed);
            }
            if let Some(home) = self.home.get() {
                return self.begin_here(home, &self.start.database).await;
            }
            let Some(shared) = &self.shared else { return Err(Error::Closed) };
            if let Some(live) = self.begin_there(shared).await? {
                return Ok(live);
            }
            // No process listens: either none has the directory, and this process opens it, or another one has only just opened it, or is closing.
            match self.take_over(shared).await {
                Err(Error::Table(tables::Error::Held { .. })) if now_ns() < deadline => {
                    in_wait(WaitEvent::RetryDelay, Object::NONE, sleep(CHANGE_PAUSE)).await;
                }
                taken => taken?,
            }
        }
    }

    /// Opens the directory in this process and lets others in.
    async fn take_over(&self, shared: &Shared) -> Result<()> {
        if shared.opening.swap(true, Ordering::SeqCst) {
            in_wait(WaitEvent::RetryDelay, Object::NONE, sleep(CHANGE_PAUSE)).await;
            return Ok(());
        }
        let ended = self.open_here(shared).await;
        shared.opening.store(false, Ordering::SeqCst);
        ended
    }

    async fn open_here(&self, shared: &Shared) -> Result<()> {
        if self.home.get().is_some() {
            return Ok(());
        }
        let (dir, store) = (shared.dir.clone(), shared.store.clone());
        let tables = off(move || tables::Database::open_with(dir, store)).await??;
        let home = Home { tables, backends: Arc::default() };
        let shares = self.share(&home, &shared.dir);
        if let Err(error) = shares {
            home.tables.close()?;
            return Err(error);
        }
        let _ = self.home.set(home);
        Ok(())
    }

    #[cfg(feature = "server")]
    fn share(&self, home: &Home, dir: &Path) -> Result<()> {
        let running = crate::serve::share(home, dir)?;
        self.keep(running);
        Ok(())
    }

    #[cfg(not(feature = "server"))]
    fn share(&self, _: &Home, _: &Path) -> Result<()> {
        Ok(())
    }

    #[cfg(feature = "server")]
    pub(crate) fn keep(&self, server: crate::serve::Running) {
        self.servers.lock().push(server);
    }

    /// Ends the listeners and their sessions.
    #[cfg(feature = "server")]
    pub(crate) fn stop_servers(&self) {
        let servers = std::mem::take(&mut *self.servers.lock());
        servers.into_iter().for_each(crate::serve::Running::stop);
    }

    async fn begin_here(&self, home: &Home, database: &str) -> Result<Live> {
        let waits = SessionStats::new("client backend");
        let (user, database) = (self.start.user.clone(), database.to_owned());
        let application_name = self.application_name.clone();
        let who = ClientIdentity {
            user: user.clone(),
            database: database.clone(),
            client: None,
            server: None,
            tls: None,
            application_name,
        };
        // No client can ask for a cancel over the wire: `CancelHandle` needs no secret.
        let listed = home.backends.list(Arc::clone(&waits), 0, who);
        let (backend, backends) = (Arc::clone(listed.backend()), Arc::clone(&home.backends));
        let options = self.start.settings.clone();
        let start = SessionStart { backend, backends, database, user, options };
        let db = Arc::clone(home.tables.engine());
        let mut session = Session::new(&db, start).await?;
        session.takes_turns();
        let backends = Arc::clone(&home.backends);
        let live = live(Link::Own(Box::new(Own { db, session, listed, backends })), waits);
        live.rests();
        Ok(live)
    }

    /// A session of the process that has the directory; none if it does not listen.
    async fn begin_there(&self, shared: &Shared) -> Result<Option<Live>> {
        let caller = Caller {
            user: &self.start.user,
            database: &self.start.database,
            application_name: &self.application_name,
            settings: &self.start.settings,
        };
        let guest = Guest::connect(&shared.dir.join(SOCKET), caller).await?;
        Ok(guest.map(|guest| live(Link::Guest(Box::new(guest)), SessionStats::new("guest"))))
    }

    /// Begins a session and keeps it in the list of those that closing ends.
    pub(crate) async fn open(&self) -> Result<(Arc<Slot>, CancelHandle)> {
        self.keep_open(self.begin().await?).await
    }

    /// The same in the database where typed tables stand.
    pub(crate) async fn open_typed(&self) -> Result<(Arc<Slot>, CancelHandle)> {
        let home = self.home("typed tables")?;
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        self.keep_open(self.begin_here(home, tables::DATABASE).await?).await
    }

    async fn keep_open(&self, live: Live) -> Result<(Arc<Slot>, CancelHandle)> {
        let cancel = CancelHandle::of(&live);
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
        let backends = self.home.get().map(|home| home.backends.all()).unwrap_or_default();
        backends.iter().for_each(|backend| backend.interrupt.raise(Reason::Shutdown));
        for slot in open {
            slot.end().await;
        }
    }
}

fn live(link: Link, waits: Arc<SessionStats>) -> Live {
    Live { link, statements: Statements::default(), waits, unfinished: false, number: 0, texts: false, cut: false }
}
