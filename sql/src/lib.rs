//! The SQL language: syntax, types, planner, executor and system views.
//!
//! Structure: `syntax` (text to tree), `types` (values and what they can do), `expr` (trees bound to types and
//! evaluated). The reference for all of it is PostgreSQL 15.
#![forbid(unsafe_code)]

pub mod error;
pub mod exec;
pub mod expr;
pub mod planner;
pub mod session;
pub mod syntax;
pub mod types;
pub mod views;

pub use error::{Result, SqlError};
