//! The library through its public interface, and the programs of the folder `examples`. `idle` is a program of its own: it counts the wake-ups of all
//! threads of the process.

#![allow(clippy::disallowed_methods, reason = "tests, no part of the database")]

mod crash;
mod examples;
mod futures;
#[cfg(feature = "server")]
mod processes;
#[cfg(feature = "server")]
mod serve;
mod sql;
mod typed;
