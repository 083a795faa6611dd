//! The SQL language: syntax, types, planner, executor and system views.
//!
//! Structure: `syntax` (text to tree), `types` (values and what they can do), `expr` (trees bound to types and
//! evaluated). The reference for all of it is PostgreSQL 15.
#![forbid(unsafe_code)]

pub mod exec;
pub mod planner;
pub mod session;
pub mod views;

pub use clearway_syntax as syntax;
pub use clearway_syntax::error::{self, Result, SqlError};
pub use clearway_values::{expr, types};
