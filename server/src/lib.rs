//! The PostgreSQL wire protocol and sessions: sockets in, statements to the SQL layer, answers out.
//!
//! Structure:
//! ```text
//! server      listens, accepts, stops
//!   connection  one client: start, then its messages; the two buffers
//!     wire        bytes to messages and back
//!     auth        SCRAM-SHA-256
//!   sessions    what the SQL layer must offer, as traits
//! ```
#![forbid(unsafe_code)]

pub mod auth;
pub mod connection;
pub mod server;
pub mod sessions;
pub mod stream;
pub mod wire;
