//! Serves the open database to clients over PostgreSQL's protocol, while the program goes on using it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clearway_base::vfs::{RealVfs, Vfs as _};
use clearway_server::database::Database as Served;
use clearway_server::listen::{Bound, bind_in};
use clearway_server::server::{ListenError, ListenOptions, Server as Listener};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::sessions::Home;
use crate::wait::wait;

/// How long sessions may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A listener with the threads that serve its clients.
pub(crate) struct Running {
    listener: Arc<Listener<Served>>,
    runtime: tokio::runtime::Runtime,
    /// The socket that others find in the directory.
    socket: Option<PathBuf>,
}

impl Running {
    /// Ends the clients' sessions, then the listener.
    pub(crate) fn stop(self) {
        self.runtime.block_on(self.listener.stop(PATIENCE));
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        if let Some(socket) = self.socket {
            // The next process that opens the directory finds out by itself that the socket has no listener.
            let _ = wait(RealVfs::inline().remove(&socket));
        }
    }
}

/// Lets other processes in through a Unix socket in the directory.
pub(crate) fn share(home: &Home, dir: &Path) -> Result<Running> {
    let options = ListenOptions { addresses: Vec::new(), ..ListenOptions::default() };
    let (running, bound) = start(home, options, |_| wait(bind_in(&RealVfs::inline(), dir)))?;
    Ok(Running { socket: bound.unix_path, ..running })
}

/// Where a listener was bound.
struct Place {
    addresses: Vec<SocketAddr>,
    unix_path: Option<PathBuf>,
}

fn start(
    home: &Home,
    options: ListenOptions,
    bind: impl FnOnce(&Listener<Served>) -> std::result::Result<Bound, ListenError>,
) -> Result<(Running, Place)> {
    let refused = |error: &dyn std::fmt::Display| Error::Listen(error.to_string());
    let served = Served::new(Arc::clone(home.tables.engine()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().thread_name("worker").build();
    let runtime = runtime.map_err(|error| refused(&error))?;
    let listener = Listener::new(options, served, Arc::clone(&home.backends), None, None);
    let listener = listener.map_err(|error| refused(&error))?;
    let entered = runtime.enter();
    let bound = bind(&listener).map_err(|error| refused(&error))?;
    let place = Place { addresses: bound.addresses.clone(), unix_path: bound.unix_path.clone() };
    listener.serve_database(bound);
    drop(entered);
    Ok((Running { listener, runtime, socket: None }, place))
}

/// Where the clients find the database. It is served until it is closed.
///
/// ```
/// # fn main() -> Result<(), clearway::Error> {
/// let db = clearway::Database::in_memory()?;
/// let server = db.serve(&["127.0.0.1:0".parse().expect("an address")])?;
/// println!("psql -h 127.0.0.1 -p {} -U postgres clearway", server.addresses()[0].port());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// The addresses; a port that was given as 0 is the real one here.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// let server = db.serve(&["127.0.0.1:0".parse().expect("an address")])?;
    /// assert_ne!(server.addresses()[0].port(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Database {
    /// Opens the database to psql and every other client of PostgreSQL's protocol, until it is closed. `pg_stat_activity` and the lock views
    /// show the program's own connections beside the clients'. Clients on this machine need no password unless an address beyond loopback is
    /// given, which needs a role with a password, and is refused for want of TLS.
    ///
    /// ```
    /// # fn main() -> Result<(), clearway::Error> {
    /// let db = clearway::Database::in_memory()?;
    /// let server = db.serve(&["127.0.0.1:0".parse().expect("an address")])?;
    /// std::net::TcpStream::connect(server.addresses()[0])?;
    /// db.close()?; // ends the clients' sessions, too
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Listen`: the address is taken, or lies beyond loopback without password or TLS.
    pub fn serve(&self, addresses: &[SocketAddr]) -> Result<Server> {
        let sessions = self.sessions();
        let options = ListenOptions { addresses: addresses.to_vec(), ..ListenOptions::default() };
        let (running, place) = start(sessions.home("listeners")?, options, Listener::bind)?;
        sessions.keep(running);
        Ok(Server { addresses: place.addresses })
    }
}
