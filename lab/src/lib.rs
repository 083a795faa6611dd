//! The contention lab: the same scenario against Clearway and its peers.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a client, no part of the database")]
