//! The PostgreSQL wire protocol and sessions: sockets in, statements to the SQL layer, answers out.
//!
//! # Structure
//! ```text
//! run         directory, database, sockets, signals, end            config: its options      tls
//!   observe     samples of sessions; checkpoints and recovery, for the log
//!   archive     the thread that sends the log to the archive
//!   http        the console's options; the command runs the console beside the server
//!   notify      tells the service manager that the server serves
//!   log         standard error or files, as text, CSV or JSON
//!   configuration  the settings' files: read, read again, changed by ALTER SYSTEM
//!     door        what decides which clients get in: rules (access), TLS, limits
//!   listen      sockets; accepts connections; origins, failures: connections and failed logins by address
//!     connection  one client: start, then its messages; the two buffers
//!       wire        bytes to messages and back
//!       auth        SCRAM-SHA-256
//!       turns       time reserved for sessions which write contended rows
//!       server      what all connections share; stops them
//!     sessions    what the SQL layer must offer, as traits           database: implements them
//! ```
#![forbid(unsafe_code)]

pub mod access;
pub mod archive;
mod auth;
pub mod config;
pub mod configuration;
pub mod connection;
pub mod database;
pub mod door;
pub mod failures;
pub mod http;
pub mod listen;
pub mod log;
mod notify;
pub mod observe;
mod options;
mod origins;
pub mod run;
pub mod server;
pub mod sessions;
pub mod stream;
pub mod tls;
pub mod turns;
pub mod wire;
