//! Values of SQL: their types, and the expressions that compute them.
//!
//! # Structure
//! `builtin` is data about PostgreSQL's catalogs; `encoding` converts text of clients and files; `types` holds the types of PostgreSQL, values in memory, their text and binary forms,
//! and casts; `expr` binds a syntax tree to types, operators and functions, and evaluates it.
//!
//! # Not here
//! Tables, plans and sessions. An expression asks for what it needs of them through the traits of `expr::host`.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod encoding;
pub mod expr;
pub mod types;

pub(crate) use clearway_syntax as syntax;
pub(crate) use clearway_syntax::error;
