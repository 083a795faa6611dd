//! The real program as a child of a test, with clients. One program, since each program of tests is compiled and linked with all of the crate's
//! dependencies.

#![allow(clippy::disallowed_methods, reason = "tests, no part of the database")]

#[path = "../program/mod.rs"]
mod program;

mod add_column;
mod backup;
mod backup_targets;
mod bounded;
mod copy;
mod door;
mod hostile;
mod import;
mod large_partitions;
mod library;
mod limits;
mod memory;
mod memory_boundless;
mod memory_changes;
mod old_directories;
mod rights;
mod secure;
mod serve;
