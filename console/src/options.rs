//! What `clearway watch` is asked to do, and why it may not be possible.

use crate::custom;
use std::net::SocketAddr;

/// What `clearway watch` is asked to do.
#[derive(Debug)]
pub struct Options {
    /// The server to watch, as a URL or as `name=value` pairs.
    pub server: String,
    /// The server's password, where the URL has none: a URL stands in the list of processes.
    pub password: Option<String>,
    /// Where the console listens; an address of this machine.
    pub listen: SocketAddr,
    /// The text of a file of queries and its name.
    pub queries: Option<(String, String)>,
    /// How often the queries run.
    pub interval: std::time::Duration,
    /// Whether the page may cancel statements.
    pub may_cancel: bool,
}

/// Why the console does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The URL.
    #[error("the server's URL: {0}")]
    Url(tokio_postgres::Error),
    /// The address can't be listened at.
    #[error("could not listen at {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The address is reached from other machines.
    #[error(
        "{0} can be reached from other machines, and the console asks nobody for a password: give an address of this machine, such as 127.0.0.1:9187, and let a proxy with TLS and a login stand before it"
    )]
    Open(SocketAddr),
    /// The file of queries.
    #[error("{0}")]
    Queries(custom::Problem),
    /// No random numbers for the token.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
}
