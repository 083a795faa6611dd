//! What the console is asked to do, and why it may not be possible.

use crate::custom;
use std::net::SocketAddr;

/// What the console is asked to do.
#[derive(Debug)]
pub struct Options {
    /// The server to watch, as a URL or as `name=value` pairs.
    pub server: String,
    /// The server's password, where the URL has none: a URL stands in the list of processes.
    pub password: Option<String>,
    /// The text of a file of queries and its name.
    pub queries: Option<(String, String)>,
    /// How often the queries run.
    pub interval: std::time::Duration,
    /// Whether the page may cancel statements, as far as the visitor's role may.
    pub may_cancel: bool,
    /// Who gets to see the page.
    pub entry: Entry,
}

impl Options {
    /// Whether the console can run with these.
    ///
    /// # Errors
    /// The file of queries has a mistake.
    pub fn check(&self) -> Result<(), WatchError> {
        self.custom().map(|_| ())
    }

    pub(crate) fn custom(&self) -> Result<Vec<custom::Query>, WatchError> {
        match &self.queries {
            Some((name, text)) => custom::parse(name, text).map_err(WatchError::Queries),
            None => Ok(Vec::new()),
        }
    }
}

/// Who gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Whoever reaches the page has the rights of the console's own login.
    Everybody,
    /// Those whom the watched server lets in.
    Login,
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
        "{0} can be reached from other machines, and the console speaks HTTP without TLS: give an address of this machine, such as 127.0.0.1:9187, and reach it through a tunnel (ssh -L 9187:127.0.0.1:9187)"
    )]
    Open(SocketAddr),
    /// The file of queries.
    #[error("{0}")]
    Queries(custom::Problem),
    /// The terminal of `clearway top`.
    #[error("{0}")]
    Terminal(String),
    /// No random numbers for the token.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
}
