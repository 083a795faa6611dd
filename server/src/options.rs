//! The options of listening and of connections.
//!
//! # Invariants
//! - SRV-3: if any socket beyond loopback is bound, clients on this machine need a password as well: otherwise a proxy on this machine
//!   would let every client in.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

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
    /// Connections at once from one address beyond this machine; 0: nine tenths of all.
    pub connections_per_address: usize,
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
            connections_per_address: 0,
        }
    }
}

impl ListenOptions {
    /// Whether clients on this machine prove a password as well (SRV-3).
    pub fn proves_passwords_everywhere(&self) -> bool {
        self.password_on_loopback || self.addresses.iter().any(|address| !address.ip().to_canonical().is_loopback())
    }

    /// Connections at once from one address beyond this machine.
    pub fn per_address(&self) -> usize {
        match self.connections_per_address {
            0 => (self.max_connections / 10).saturating_mul(9).max(1),
            limit => limit,
        }
    }
}
