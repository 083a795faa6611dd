//! The console's options, and the reasons for which they can't be met.

use crate::custom;
use std::net::SocketAddr;
use std::pin::Pin;

/// What the console does for its caller: boxed, so that its code is generated in this crate and not in the one that awaits it.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A file of queries, which is read again before each run of them.
pub struct Queries {
    /// Its name.
    pub name: String,
    /// Reads it; else says why not.
    pub read: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
}

impl std::fmt::Debug for Queries {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Queries({})", self.name)
    }
}

impl Queries {
    /// The present content of the file.
    ///
    /// # Errors
    /// It can't be read, or has a mistake.
    pub(crate) fn parse(&self) -> Result<Vec<custom::Query>, custom::Problem> {
        let text = (self.read)().map_err(|what| custom::Problem { file: self.name.clone(), line: 0, what })?;
        custom::parse(&self.name, &text)
    }
}

/// What the console is asked to do.
#[derive(Debug)]
pub struct Options {
    /// The server to watch, as a URL or as `name=value` pairs.
    pub server: String,
    /// The server's password, where the URL has none: the list of processes shows a URL.
    pub password: Option<String>,
    /// A file of queries.
    pub queries: Option<Queries>,
    /// How often the queries run.
    pub interval: std::time::Duration,
    /// Whether the page may cancel statements, as far as the visitor's role may.
    pub may_cancel: bool,
    /// How many processors the server has, where it can't tell.
    pub processors: Option<u32>,
    /// Who gets to see the page.
    pub entry: Entry,
}

impl Options {
    /// Whether the console can run with these.
    ///
    /// # Errors
    /// The file of queries has a mistake.
    pub fn check(&self) -> Result<(), WatchError> {
        self.queries.as_ref().map_or(Ok(()), |queries| queries.parse().map(|_| ())).map_err(WatchError::Queries)
    }
}

/// Who gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Every visitor of the page has the rights of the console's own login.
    Everybody,
    /// The roles that the watched server lets in.
    Login,
}

/// Why the console does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The URL.
    #[error("the server's URL: {0}")]
    Url(tokio_postgres::Error),
    /// A URL of MySQL's.
    #[error("the server's URL: expected mysql://USER@HOST:PORT/DATABASE")]
    MySqlUrl,
    /// What the address asks of TLS.
    #[error("{0}")]
    Tls(String),
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
