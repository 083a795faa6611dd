//! The SQL language over tables: sessions, and by short names the crates on which sessions stand.
//!
//! # Structure
//! ```text
//!   session   statements in, results out: transaction blocks, prepared statements, COPY
//!   clearway_ddl       statements that define data
//!   clearway_views     the rows of the system views
//!   clearway_exec      runs plans
//!   clearway_planner   turns syntax trees into plans
//!   clearway_context   what all of them need of a session: settings, interrupt, privileges, names, errors
//!   clearway_values, clearway_syntax
//! ```
//! Each depends only on what is below it in this list. They are crates of their own so that they are compiled beside each other. The
//! reference for the behaviour of all of them is PostgreSQL 15.
#![forbid(unsafe_code)]

pub mod session;

pub use clearway_context as context;
pub use clearway_exec as exec;
pub use clearway_planner as planner;
pub use clearway_syntax as syntax;
pub use clearway_syntax::error::{self, Result, SqlError};
pub use clearway_values::{encoding, expr, types};
pub use clearway_views as views;
