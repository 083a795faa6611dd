//! The SQL language over tables: planner, executor, sessions and system views. Syntax and values are crates of their own.
//!
//! # Structure
//! ```text
//!   session   statements in, results out: transaction blocks, prepared statements, DDL, COPY
//!   views     the rows of the system views
//!   exec      runs plans
//!   planner   turns syntax trees into plans
//!   context   what all of them need of a session: settings, interrupt, privileges, names, errors
//!   clearway_values, clearway_syntax
//! ```
//! A module imports only what is below it in this list. The reference for the behaviour of all of them is PostgreSQL 15.
#![forbid(unsafe_code)]

pub mod context;
pub mod exec;
pub mod planner;
pub mod session;
pub mod views;

pub use clearway_syntax as syntax;
pub use clearway_syntax::error::{self, Result, SqlError};
pub use clearway_values::{encoding, expr, types};
