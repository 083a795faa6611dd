//! The state that all connections of a server share, and the end of all connections.
//!
//! # Invariants
//! - SRV-2: after `stop` no session begins; `stop` returns when no session is left or its time limit has passed.
//!
//! # Not here
//! Sockets and the loops that accept: `listen`. What a connection does: `connection`. The database: `sessions`.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clearway_base::sync::{Mutex, sleep, timeout};
use clearway_base::waits::{self, Object, WaitEvent, in_wait};
use clearway_sql::SqlError;
use clearway_sql::context::log_line::{Line, Severity};
use clearway_sql::session::{Backend, Backends, Reason};

pub use crate::options::ListenOptions;

use crate::door::Door;
use crate::failures::Failures;
use crate::log::Log;
use crate::origins::Origins;
use crate::sessions::Sessions;
use crate::turns::Turns;

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// An address can't be bound.
    #[error("could not listen at {place}: {error}")]
    Bind {
        /// The address or the path.
        place: String,
        /// The reason.
        error: io::Error,
    },
    /// SRV-1, no password.
    #[error(
        "refusing to listen at {0}, beyond this machine: no role has a password yet. Start on loopback, run \
         ALTER ROLE postgres PASSWORD '...', and try again"
    )]
    NoPassword(SocketAddr),
    /// SRV-1, no TLS.
    #[error(
        "refusing to listen at {0}, beyond this machine, without TLS: set tls_certificate and tls_key, or waive it with \
         --allow-plaintext-beyond-loopback"
    )]
    NoTls(SocketAddr),
    /// The system gives no random bytes.
    #[error("no random bytes from the system")]
    NoRandom,
}

/// What all connections share.
pub struct Server<D> {
    /// The options.
    pub options: ListenOptions,
    /// The database.
    pub sessions: Arc<D>,
    /// The list of sessions.
    pub backends: Arc<Backends>,
    /// Who gets in; to be changed by `change_door`.
    door: Mutex<Arc<Door>>,
    /// Makes the salts of roles that do not exist.
    mock_key: OnceLock<[u8; 32]>,
    random_key: [u8; 32],
    /// The server's log; none in tests of the protocol.
    pub log: Option<Log>,
    /// Logins that have failed.
    pub failures: Failures,
    /// Connections by where they come from.
    pub origins: Origins,
    /// Whose turn it is.
    pub turns: Turns,
    /// Connections, those on their way to a session included.
    pub sockets: AtomicUsize,
    stopping: AtomicBool,
}

impl<D: Sessions> Server<D> {
    /// A server that does not listen yet.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(
        options: ListenOptions,
        sessions: Arc<D>,
        backends: Arc<Backends>,
        door: Option<Door>,
        log: Option<Log>,
    ) -> Result<Arc<Self>, ListenError> {
        let mut random_key = [0; 32];
        getrandom::fill(&mut random_key).map_err(|_| ListenError::NoRandom)?;
        let door = door.unwrap_or_else(|| Door::of(&options, None));
        Ok(Arc::new(Self {
            options,
            sessions,
            backends,
            door: Mutex::new("server/door", Arc::new(door)),
            mock_key: OnceLock::new(),
            random_key,
            turns: Turns::default(),
            sockets: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            log,
            failures: Failures::default(),
            origins: Origins::default(),
        }))
    }

    /// Who gets in, as it is decided now.
    pub fn door(&self) -> Arc<Door> {
        Arc::clone(&self.door.lock())
    }

    /// Connections that begin from now on are decided about by this.
    pub fn change_door(&self, door: Door) {
        *self.door.lock() = Arc::new(door);
    }

    /// The key that makes the salts of roles that do not exist: the one that was given, or one of this run.
    pub fn mock_key(&self) -> &[u8; 32] {
        self.mock_key.get().unwrap_or(&self.random_key)
    }

    /// Gives the key that was kept since an earlier run; the first call counts.
    pub fn keep_mock_key(&self, key: [u8; 32]) {
        let _ = self.mock_key.set(key);
    }

    /// Tells the log that a connection was refused.
    pub fn log_fatal(&self, error: &SqlError, detail: Option<String>, peer: Option<SocketAddr>) {
        let Some(log) = &self.log else { return };
        let from = peer.map_or_else(|| "[local]".to_owned(), |address| address.to_string());
        let mut line = Line::new(Severity::Fatal, error.fields().code, error.message());
        let detail = detail.or_else(|| error.fields().detail.clone());
        line.detail = detail.unwrap_or_else(|| format!("Connection from {from}."));
        log.line(line);
    }

    /// Tells the log of a session that has begun.
    pub fn log_connected(&self, backend: &Arc<Backend>, encrypted: bool) {
        let Some(log) = self.log.as_ref().filter(|log| log.config().connections) else { return };
        let application = backend.activity.lock().application_name.clone();
        let mut text = format!("connection authorized: user={} database={}", backend.user, backend.database);
        if !application.is_empty() {
            text.push_str(&format!(" application_name={application}"));
        }
        if encrypted {
            text.push_str(" SSL enabled");
        }
        log.line(Line::new(Severity::Log, "00000", text).of(backend));
    }

    /// Tells the log of a session that has ended.
    pub fn log_disconnected(&self, backend: &Arc<Backend>) {
        let Some(log) = self.log.as_ref().filter(|log| log.config().disconnections) else { return };
        let us = waits::wall_us() - backend.started_us;
        let (seconds, ms) = (us / 1_000_000, us / 1_000 % 1_000);
        let place = backend
            .client
            .map_or_else(|| "[local]".to_owned(), |client| format!("{} port={}", client.ip(), client.port()));
        let text = format!(
            "disconnection: session time: {}:{:02}:{:02}.{ms:03} user={} database={} host={place}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            backend.user,
            backend.database
        );
        log.line(Line::new(Severity::Log, "00000", text).of(backend));
    }

    /// Whether `stop` has been called.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }

    /// Ends all sessions and waits until they are gone, at most for `patience`; false if some are left then.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.stopping.store(true, SeqCst);
        let gone = async {
            while self.backends.count() > 0 {
                // Again and again: a session may have been on its way into the list (SRV-2).
                self.backends.all().iter().for_each(|backend| backend.interrupt.raise(Reason::Shutdown));
                in_wait(WaitEvent::TaskDone, Object::NONE, sleep(Duration::from_millis(5))).await;
            }
        };
        timeout(patience, gone).await.is_ok()
    }
}
