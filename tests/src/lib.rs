//! Black-box tests and the model of the protocol.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests, no part of the database")]

pub mod crash;
pub mod model;
