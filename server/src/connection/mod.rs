//! A client's connection from its first byte to its last.
//!
//! # Structure
//! `start` (startup packets, TLS), `authenticate` (authentication, and the decision whether the client gets in), `talk` (the session's
//! messages), `channel` (the stream, the buffers, and the `Client` to which results are written).
//!
//! # Life of a connection
//! accepted -> `start` within `authentication_timeout` -> listed -> `talk` until Terminate, the client's end, a fatal error or a
//! termination -> its transaction is rolled back -> off the list.

mod authenticate;
pub mod channel;
mod start;
mod talk;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use clearway_base::memory::{Account, charged};
use clearway_base::waits::{SessionStats, with_session};
use clearway_sql::SqlError;

use crate::server::Server;
use crate::sessions::Sessions;
use crate::stream::Stream;
use crate::wire::backend;

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// On this machine, by TCP.
    Loopback(std::net::SocketAddr),
    /// On this machine, by the Unix socket.
    Unix,
    /// Anywhere else.
    Beyond(std::net::SocketAddr),
}

impl Peer {
    /// The peer at an address.
    pub fn at(address: std::net::SocketAddr) -> Peer {
        if address.ip().to_canonical().is_loopback() { Peer::Loopback(address) } else { Peer::Beyond(address) }
    }

    /// Its address.
    pub fn address(self) -> Option<std::net::SocketAddr> {
        match self {
            Peer::Loopback(address) | Peer::Beyond(address) => Some(address),
            Peer::Unix => None,
        }
    }
}

/// A session's memory account, closed also when its task panics.
struct OpenAccount(&'static Account);

impl Drop for OpenAccount {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Counts a socket while it is open, also when its task panics.
struct Socket<'a>(&'a AtomicUsize);

impl Drop for Socket<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Serves a connection to its end.
pub async fn serve<D: Sessions>(server: Arc<Server<D>>, stream: Stream, peer: Peer) {
    let open = server.sockets.fetch_add(1, Relaxed);
    let _socket = Socket(&server.sockets);
    let counted = match peer {
        // One address beyond this machine can't take every place there is.
        Peer::Beyond(address) => {
            let counted = server.origins.enter(address.ip(), server.door().connections_per_address);
            if counted.is_none() {
                return turn_away(&server, &stream, address);
            }
            counted
        }
        Peer::Loopback(_) | Peer::Unix => None,
    };
    if open < server.options.max_connections.saturating_add(start::UNAUTHENTICATED_CONNECTIONS) {
        let waits = SessionStats::new("client backend");
        let work = connect(&server, stream, peer, Arc::clone(&waits));
        with_session(waits, work).await;
    }
    drop(counted);
}

/// Says so to a client whose address has its connections already, as far as the system takes it at once.
fn turn_away<D: Sessions>(server: &Server<D>, stream: &Stream, address: std::net::SocketAddr) {
    let error = SqlError::new("53300", "too many connections from this address");
    server.log_fatal(&error, None, Some(address));
    let mut out = Vec::new();
    backend::error(&mut out, "FATAL", &error, None);
    let _ = stream.try_write(&out);
}

async fn connect<D: Sessions>(server: &Arc<Server<D>>, stream: Stream, peer: Peer, waits: Arc<SessionStats>) {
    // The future of the start is large and short-lived: boxed, it is gone while the session idles.
    let started = Box::pin(start::start(server, stream, peer, waits)).await;
    if let Some(started) = started {
        let account = OpenAccount(Account::open(started.listed.backend().pid));
        charged(account.0, talk::talk(server, started)).await;
    }
}
