//! `clearway sql`: a terminal client for SQL, for machines without psql.
//!
//! # Structure
//! ```text
//!   shell      the line loop, and what each command does
//!   meta       commands with a backslash
//!   split      where a statement ends
//!   link       the connection; tap: reads what the client library does not report
//!   table      results as psql draws them; place: errors as psql prints them
//!   complete   the Tab key; history: the statements of earlier runs
//!   edit       the editor, and files of statements; password: asks for a password
//!   server     a server of the shell's own for --data
//! ```
//!
//! # Not here
//! COPY to and from the terminal, TLS, other formats, variables: psql has them.

mod complete;
mod edit;
mod history;
mod link;
mod meta;
mod password;
mod place;
mod server;
mod shell;
mod split;
mod table;
mod tap;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::rc::Rc;

pub(crate) use place::{chain, not_connected};
use server::Served;
use shell::Shell;

/// Where a server listens if nothing else is said.
const DEFAULT_URL: &str = "postgresql://postgres@127.0.0.1:5433/clearway";

/// Which server.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// A server: `postgresql://...`, or `name=value` pairs; `None`: the default.
    Url(Option<String>),
    /// A directory, which is served as long as the shell runs.
    Data(PathBuf),
}

/// Runs the shell until `\q` or the end of the input.
///
/// # Errors
/// No connection; where the input is no terminal also the first statement that fails.
pub fn run(target: &Target) -> Result<(), String> {
    let (served, url) = match target {
        Target::Url(url) => (None, url.clone().unwrap_or_else(|| DEFAULT_URL.to_owned())),
        Target::Data(dir) => {
            let served = Served::start(dir)?;
            let url = served.url();
            (Some(served), url)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let mut shell = Shell::connect(Rc::new(runtime.map_err(|error| error.to_string())?), &url)?;
    let done = if std::io::stdin().is_terminal() { shell.interact() } else { shell.pipe() };
    drop(shell);
    let stopped = served.map_or(Ok(()), Served::stop);
    done.and(stopped)
}
