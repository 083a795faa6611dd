//! The console: shows, on a page and as metrics, which session of a server waits for which.
//!
//! It is a client. It connects to a server that speaks PostgreSQL's protocol (Clearway, PostgreSQL 13 and later) or MySQL's (MariaDB 10.6
//! and later with performance_schema = ON; MySQL 8, never tested), reads that server's views with the rights of the role that it was
//! given, and serves the result over HTTP on this machine.
//!
//! # Structure
//! ```text
//! source     the watched server                       link       a connection, by either protocol      tls   its protection
//! sample     what each second looked like, for an hour           sampled    waits and deadlocks, from these samples
//! trend      statements, every ten seconds            custom     the file of queries that become metrics
//! metrics    their values, as text for Prometheus     panels     the page's tables and their SQL
//! statement  the page of one statement                schema     what the data says of columns and keys
//! mysql      the statements for MariaDB and MySQL     visitors   logins of visitors
//! http       requests and answers                     top        the same in a terminal
//! options    the options, and why they can't be met   processors how many processors the server has
//! ```
//!
//! # Invariants
//! - CON-1: every session of the console is read only. The console's one action on the watched server is `POST /api/cancel`, which exists
//!   only if the user asked for it and has the visitor's rights.
//! - CON-2: an answer is given only to a request whose `Host` is an address of this machine. A request that changes something also needs
//!   the page's token and, if the browser sends an origin, the page's own origin.
//! - CON-3: what is kept is bounded: seconds, sessions of a second, series of a query.
#![forbid(unsafe_code)]

pub mod custom;
mod http;
mod link;
mod metrics;
mod mysql;
mod options;
mod panels;
mod processors;
mod sample;
mod sampled;
pub mod schema;
mod source;
mod statement;
mod tls;
mod top;
mod trend;
mod visitors;

pub use options::{Entry, Options, Queries, WatchError, Work};
pub use top::top;

use std::sync::Arc;

/// Where the console is reached.
pub struct Listener {
    tcp: tokio::net::TcpListener,
    at: std::net::SocketAddr,
}

impl Listener {
    /// Binds an address of this machine; port 0 takes a free one.
    ///
    /// # Errors
    /// It can't be bound, or can be reached from other machines.
    pub async fn bind(address: std::net::SocketAddr) -> Result<Listener, WatchError> {
        if !address.ip().is_loopback() {
            return Err(WatchError::Open(address));
        }
        let bound = tokio::net::TcpListener::bind(address).await;
        let bound = bound.and_then(|tcp| Ok((tcp.local_addr()?, tcp)));
        let (at, tcp) = bound.map_err(|error| WatchError::Listen(address, error))?;
        Ok(Listener { tcp, at })
    }
}

/// Watches a server until the process ends. `say` is told where the console is.
///
/// # Errors
/// See [`WatchError`]; none after the console has begun: a server that goes away is named on the page and connected to again.
pub fn watch(options: Options, listener: Listener, say: &mut dyn FnMut(&str)) -> Work<'_, Result<(), WatchError>> {
    Box::pin(watch_forever(options, listener, say))
}

async fn watch_forever(options: Options, listener: Listener, say: &mut dyn FnMut(&str)) -> Result<(), WatchError> {
    let source = Arc::new(source::Source::of(&options.server, options.password.as_deref())?);
    options.check()?;
    let at = listener.at;
    say(&format!("the console of {} is at http://{at}/", source.place()));
    let history = Arc::new(sample::History::default());
    let trends = Arc::new(trend::Trends::default());
    let metrics = Arc::new(metrics::Metrics::new(options.queries));
    let site = http::Site {
        at,
        may_cancel: options.may_cancel,
        token: visitors::random().map_err(WatchError::Random)?,
        visitors: visitors::Visitors::new(options.entry, &source),
        source: Arc::clone(&source),
        history: Arc::clone(&history),
        trends: Arc::clone(&trends),
        metrics: Arc::clone(&metrics),
    };
    tokio::join!(
        sample::run(&source, &history, options.processors),
        trend::run(&source, &trends),
        metrics::run(&source, &metrics, options.interval),
        http::serve(listener.tcp, Arc::new(site)),
    );
    Ok(())
}
