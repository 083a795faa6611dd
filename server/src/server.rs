//! Listening: sockets, the loop that accepts, the end.
//!
//! # Invariants
//! - SRV-1: a socket beyond loopback is bound only if a role has a password, and TLS is configured or waived by name.
//! - SRV-2: after `stop` no session begins; it returns when none is left or the time is up.
//!
//! # Not here
//! What a connection does: `connection`. Which database it talks to: `sessions`.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use clearway_base::sync::{sleep, timeout};
use clearway_base::waits::{Object, SessionStats, WaitEvent, in_wait, with_session};
use clearway_sql::session::{Backends, Reason};
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio_rustls::TlsAcceptor;

use crate::connection::{self, Peer};
use crate::sessions::Sessions;
use crate::stream::Stream;
use crate::turns::Turns;

/// What may be chosen about listening and connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Addresses to listen at; port 0 takes a free one.
    pub addresses: Vec<SocketAddr>,
    /// The directory of the Unix socket, which is named after the first port; None: no such socket.
    pub unix_directory: Option<PathBuf>,
    /// Sessions at once.
    pub max_connections: usize,
    /// More of them for superusers.
    pub superuser_connections: usize,
    /// Bytes of the largest message of a client.
    pub message_bytes: usize,
    /// How long a connection may take to become a session.
    pub authentication_timeout: Duration,
    /// Clients on this machine prove a password as well.
    pub password_on_loopback: bool,
    /// Clients beyond this machine may do without TLS.
    pub allow_plaintext_beyond_loopback: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            addresses: vec![SocketAddr::from(([127, 0, 0, 1], 5433))],
            unix_directory: None,
            max_connections: 5_000,
            superuser_connections: 3,
            message_bytes: 64 << 20,
            authentication_timeout: Duration::from_secs(60),
            password_on_loopback: false,
            allow_plaintext_beyond_loopback: false,
        }
    }
}

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
    /// How TLS is begun, if it is configured.
    pub tls: Option<TlsAcceptor>,
    /// Makes the salts of roles that do not exist.
    pub mock_key: [u8; 32],
    /// Whose turn it is.
    pub turns: Turns,
    /// Connections, those on their way to a session included.
    pub sockets: AtomicUsize,
    stopping: AtomicBool,
}

/// Sockets that are bound, and not yet served.
#[derive(Debug)]
pub struct Bound {
    tcp: Vec<TcpListener>,
    unix: Option<UnixListener>,
    /// Where TCP clients find the server; ports are the real ones.
    pub addresses: Vec<SocketAddr>,
    /// Where the Unix socket is.
    pub unix_path: Option<PathBuf>,
}

const BACKLOG: u32 = 4096;
/// A connection that says nothing for so long is asked whether it is still there,
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// again after each of these,
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// and so often without an answer it is gone.
const KEEPALIVE_COUNT: u32 = 6;

impl<D: Sessions> Server<D> {
    /// A server that does not listen yet.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(
        options: ListenOptions,
        sessions: Arc<D>,
        backends: Arc<Backends>,
        tls: Option<TlsAcceptor>,
    ) -> Result<Arc<Self>, ListenError> {
        let mut mock_key = [0; 32];
        getrandom::fill(&mut mock_key).map_err(|_| ListenError::NoRandom)?;
        let (sockets, stopping) = (AtomicUsize::new(0), AtomicBool::new(false));
        let turns = Turns::default();
        Ok(Arc::new(Self { options, sessions, backends, tls, mock_key, turns, sockets, stopping }))
    }

    /// Whether `stop` has been called.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }

    /// Binds every address.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn bind(&self) -> Result<Bound, ListenError> {
        let mut bound = Bound { tcp: Vec::new(), unix: None, addresses: Vec::new(), unix_path: None };
        for &address in &self.options.addresses {
            if let Peer::Beyond(_) = Peer::at(address) {
                self.may_listen_beyond(address)?; // SRV-1
            }
            let fail = |error| ListenError::Bind { place: address.to_string(), error };
            let listener = listen_at(address).map_err(fail)?;
            bound.addresses.push(listener.local_addr().map_err(fail)?);
            bound.tcp.push(listener);
        }
        if let (Some(directory), Some(first)) = (&self.options.unix_directory, bound.addresses.first()) {
            let path = directory.join(format!(".s.PGSQL.{}", first.port()));
            let fail = |error| ListenError::Bind { place: path.display().to_string(), error };
            bound.unix = Some(UnixListener::bind(&path).map_err(fail)?);
            bound.unix_path = Some(path);
        }
        Ok(bound)
    }

    fn may_listen_beyond(&self, address: SocketAddr) -> Result<(), ListenError> {
        if !self.sessions.has_passwords() {
            return Err(ListenError::NoPassword(address));
        }
        if self.tls.is_none() && !self.options.allow_plaintext_beyond_loopback {
            return Err(ListenError::NoTls(address));
        }
        Ok(())
    }

    /// Begins to accept, as tasks of the runtime; they end with it, or with `stop`.
    pub fn serve(self: &Arc<Self>, bound: Bound) {
        for listener in bound.tcp {
            tokio::spawn(with_session(SessionStats::new("acceptor"), Arc::clone(self).accept_tcp(listener)));
        }
        if let Some(listener) = bound.unix {
            tokio::spawn(with_session(SessionStats::new("acceptor"), Arc::clone(self).accept_unix(listener)));
        }
    }

    async fn accept_tcp(self: Arc<Self>, listener: TcpListener) {
        while !self.is_stopping() {
            let accepted = in_wait(WaitEvent::AcceptMain, Object::NONE, listener.accept()).await;
            let Ok((stream, address)) = accepted else {
                pause().await;
                continue;
            };
            // Answers are written whole; a failure costs delay, not correctness.
            let _ = stream.set_nodelay(true);
            let server = Arc::clone(&self);
            tokio::spawn(connection::serve(server, Stream::Tcp(stream), Peer::at(address)));
        }
    }

    async fn accept_unix(self: Arc<Self>, listener: UnixListener) {
        while !self.is_stopping() {
            let accepted = in_wait(WaitEvent::AcceptMain, Object::NONE, listener.accept()).await;
            let Ok((stream, _)) = accepted else {
                pause().await;
                continue;
            };
            let server = Arc::clone(&self);
            tokio::spawn(connection::serve(server, Stream::Unix(stream), Peer::Unix));
        }
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

/// After a failed accept: most likely no file descriptor is free, and none will be at once.
async fn pause() {
    in_wait(WaitEvent::RetryDelay, Object::NONE, sleep(Duration::from_millis(20))).await;
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Connections inherit these: a client whose machine has died is found out by the kernel, and its session ends.
    socket.set_keepalive(true)?;
    sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_COUNT)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
