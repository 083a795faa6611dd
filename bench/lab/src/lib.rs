//! The contention lab: the same scenario against Clearway and its peers.
//!
//! # Structure
//! ```text
//! scenario, scenarios/*   what is set up, what each client does, what the chart shows, the limit line
//! session                 servers x variants x points x repeats, interleaved; progress
//!   server/*              starts a server on loopback with a scratch directory, or takes a URL; what it promises
//!   load                  one load generator: groups of clients that run scripts; counts and latencies
//!     wire/*              a client's half of PostgreSQL's and of MySQL's protocol
//!   usage                 processor time and context switches of the server
//!   books                 spinning and unaccounted time, by Clearway's own books
//!   limit/*               what the machine itself can do, measured in the same session
//! outcome                 every run, with machine, versions and settings; medians and spread
//!   report/*              JSON, text table, chart, page: each made from the outcome alone
//! command                 the command line        demo   the hot row of `clearway demo`
//! ```
//! A new scenario is one file under `scenarios/` and one line in [`scenarios::all`].
//!
//! # Invariants
//! - LAB-1: equal durability: a reply to a committed change means that a sync has happened, unless the scenario's variant waives this
//!   for all servers; a server that promises less does not take part (LSRV-3).
//! - LAB-2: at each point and variant every server is measured once before the next one begins, and repeats are the outer loop.
//! - LAB-3: after every run a scenario checks, where it can, that the table holds everything that clients were told was committed. A run
//!   that fails its check or its load is reported as failed, never left out.
//!
//! # Not here
//! Comparisons across sessions of the lab: machines differ, and the same machine differs from day to day.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a client, no part of the database")]

mod books;
pub mod command;
mod demo;
pub mod histogram;
pub mod limit;
pub mod load;
pub mod machine;
pub mod outcome;
pub mod report;
pub mod scenario;
pub mod scenarios;
pub mod server;
pub mod session;
pub mod usage;
pub mod wire;

/// Why the lab can't do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A name that the lab does not know.
    #[error("there is no {kind} \"{name}\"; there are: {known}")]
    Unknown {
        /// "scenario" or "server".
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A server that can't take part.
    #[error("{server} does not take part: {reason}")]
    Absent {
        /// Its name.
        server: String,
        /// The reason, with the package to install where that helps.
        reason: String,
    },
    /// A server that did not start.
    #[error("{server} did not start: {reason}")]
    Start {
        /// Its name.
        server: String,
        /// The reason, with the end of its log.
        reason: String,
    },
    /// A file or directory.
    #[error("{place}: {error}")]
    File {
        /// The path.
        place: String,
        /// The system's reason.
        error: std::io::Error,
    },
    /// A statement that the lab itself ran, not the load.
    #[error("{server}: {statement}: {reason}")]
    Statement {
        /// The server.
        server: String,
        /// What was run.
        statement: String,
        /// What it said.
        reason: String,
    },
    /// Interrupted by a signal.
    #[error("interrupted by {0}")]
    Interrupted(&'static str),
    /// No server is left to measure.
    #[error("no server takes part")]
    Nobody,
}

impl LabError {
    /// Names the file that an error belongs to.
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let place = path.display().to_string();
        move |error| Self::File { place, error }
    }
}
