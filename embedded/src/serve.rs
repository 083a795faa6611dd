//! Serves the open database to clients of PostgreSQL's protocol, while the program goes on using it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clearway_server::database::Database as Served;
use clearway_server::server::{ListenOptions, Server as Listener};

use crate::database::Database;
use crate::error::{Error, Result};

/// How long sessions may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A listener with the threads that serve its clients.
pub(crate) struct Running {
    listener: Arc<Listener<Served>>,
    runtime: tokio::runtime::Runtime,
}

impl Running {
    /// Ends the clients' sessions, then the listener.
    pub(crate) fn stop(self) {
        self.runtime.block_on(self.listener.stop(PATIENCE));
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

/// Where the clients find the database. It is served until it is closed.
#[derive(Clone, Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// The addresses; a port that was given as 0 is the real one here.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Database {
    /// Opens the database to psql and every other client of PostgreSQL's protocol, until it is closed. `pg_stat_activity` and the lock views
    /// show the program's own connections beside the clients'. Clients on this machine need no password unless an address beyond loopback is
    /// given, which needs a role with a password, and is refused for want of TLS.
    ///
    /// # Errors
    /// `Listen`: the address is taken, or lies beyond loopback without password or TLS.
    pub fn serve(&self, addresses: &[SocketAddr]) -> Result<Server> {
        let refused = |error: &dyn std::fmt::Display| Error::Listen(error.to_string());
        let sessions = self.sessions();
        let served = Served::new(Arc::clone(sessions.db()), Vec::new());
        let options = ListenOptions { addresses: addresses.to_vec(), ..ListenOptions::default() };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().thread_name("worker").build();
        let runtime = runtime.map_err(|error| refused(&error))?;
        let listener = Listener::new(options, served, Arc::clone(&sessions.backends), None, None);
        let listener = listener.map_err(|error| refused(&error))?;
        let entered = runtime.enter();
        let bound = listener.bind().map_err(|error| refused(&error))?;
        let addresses = bound.addresses.clone();
        listener.serve(bound);
        drop(entered);
        self.keep(Running { listener, runtime });
        Ok(Server { addresses })
    }
}
