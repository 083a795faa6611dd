//! The console: who waits for whom, on a page and as metrics.
//!
//! It is a client. It attaches to a server that speaks PostgreSQL's protocol (Clearway, PostgreSQL 13 and later), reads that server's
//! views with the rights of the role that it was given, and serves what it saw over HTTP on this machine.
//!
//! # Structure
//! `options` (what is asked for, and why it can't be done), `source` (the connection to the watched server), `sample` (what each second looked like, for an hour), `custom` (the file of queries whose
//! results become metrics), `metrics` (their values, and the text that Prometheus reads), `http` (requests, and who may make them).
//!
//! # Invariants
//! - CON-1: nothing is changed on the watched server but by `POST /api/cancel`, which exists only if the user asked for it: every session of
//!   the console is read only.
//! - CON-2: an answer is given only to a request whose `Host` is an address of this machine; a request that changes something also needs the
//!   page's token and, where a browser names it, the page's own origin.
//! - CON-3: what is kept is bounded: seconds, sessions of a second, series of a query.
#![forbid(unsafe_code)]

pub mod custom;
mod http;
mod metrics;
mod options;
mod sample;
mod source;

pub use options::{Options, WatchError};

use std::sync::Arc;

/// Watches a server until the process ends. `say` is told where the console is.
///
/// # Errors
/// See [`WatchError`]; none after the console listens: a server that goes away is named on the page and connected to again.
pub async fn watch(options: Options, say: &mut dyn FnMut(&str)) -> Result<(), WatchError> {
    if !options.listen.ip().is_loopback() {
        return Err(WatchError::Open(options.listen));
    }
    let source = Arc::new(source::Source::new(&options)?);
    let custom = match &options.queries {
        Some((name, text)) => custom::parse(name, text).map_err(WatchError::Queries)?,
        None => Vec::new(),
    };
    let listener = tokio::net::TcpListener::bind(options.listen).await;
    let listener = listener.map_err(|error| WatchError::Listen(options.listen, error))?;
    let at = listener.local_addr().map_err(|error| WatchError::Listen(options.listen, error))?;
    say(&format!("watching {}; the console is at http://{at}/", source.place()));
    let history = Arc::new(sample::History::default());
    let metrics = Arc::new(metrics::Metrics::new(custom));
    let site = http::Site::new(at, options.may_cancel, &source, &history, &metrics).map_err(WatchError::Random)?;
    tokio::join!(
        sample::run(&source, &history),
        metrics::run(&source, &metrics, options.interval),
        http::serve(listener, Arc::new(site)),
    );
    Ok(())
}
