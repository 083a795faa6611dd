//! Binds sockets, and runs the loops that accept connections.
//!
//! # Invariants
//! - SRV-1: a socket beyond loopback is bound only if a role has a password, and TLS is configured or explicitly waived.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::sleep;
use clearway_base::vfs::Vfs;
use clearway_base::waits::{Object, SessionStats, WaitEvent, in_wait, with_session};
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpSocket, UnixListener};

use crate::connection::{self, Peer};
use crate::server::{ListenError, Server};
use crate::sessions::Sessions;
use crate::stream::Stream;

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

/// The socket in a directory through which other processes of its owner work with it.
pub const SOCKET: &str = "clearway.sock";

/// Binds the socket in a directory that this process has open, and removes first what an earlier process left of it: a socket at which
/// no process answers.
///
/// # Errors
/// The system's; a path of more than some hundred bytes, which no socket can have.
pub async fn bind_in(vfs: &dyn Vfs, directory: &Path) -> Result<Bound, ListenError> {
    let path = directory.join(SOCKET);
    let fail = |error| ListenError::Bind { place: path.display().to_string(), error };
    let there = vfs.list(directory).await.unwrap_or_default();
    if there.iter().any(|entry| entry.name == SOCKET && entry.size == 0)
        && let Err(error) = std::os::unix::net::UnixStream::connect(&path)
        && error.kind() == io::ErrorKind::ConnectionRefused
    {
        let _ = vfs.remove(&path).await;
    }
    let unix = Some(UnixListener::bind(&path).map_err(fail)?);
    Ok(Bound { tcp: Vec::new(), unix, addresses: Vec::new(), unix_path: Some(path) })
}

const BACKLOG: u32 = 4096;
/// A connection that says nothing for so long is asked whether it is still there,
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// again after each of these,
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// and so often without an answer it is gone.
const KEEPALIVE_COUNT: u32 = 6;

impl<D: Sessions> Server<D> {
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
        let door = self.door();
        if door.tls.is_none() && !door.allow_plaintext_beyond_loopback {
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
