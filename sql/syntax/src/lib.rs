//! The syntax of SQL: a lexer, digests, and a parser that builds Clearway's own syntax tree.
//!
//! # Structure
//! `lexer` cuts the text into tokens with byte ranges; `parser` (recursive descent with operator precedence, after PostgreSQL 15's
//! gram.y) turns them into the trees of `ast`, `stmt` and `ddl`; `digest` normalises tokens for statistics and the plan cache. Nothing
//! here knows a catalog.
//!
//! # Invariants
//! - SYN-1: the whole text of a Query is parsed before any of it runs: a syntax error anywhere runs nothing.
//! - SYN-2: nesting is at most [`NESTING_MAX`] and a tree at most [`HEIGHT_MAX`] high, so that recursion over a tree needs no check of
//!   its own.
//! - SYN-3: syntax that PostgreSQL accepts and this parser does not is refused: with 0A000 and the feature's name where the parser
//!   recognises it, otherwise with 42601. No clause is read and dropped.
//!
//! # Not here
//! The meaning of names and types (`expr`, `planner`).

#![forbid(unsafe_code)]

pub mod ast;
pub mod ddl;
pub mod digest;
pub mod error;
pub mod extension;
pub mod interval_fields;
pub mod keywords;
pub mod lexer;
pub mod merge;
pub mod operator;
mod parser;
pub mod plpgsql;
pub mod policy;
pub mod rename;
pub mod routine;
pub mod stmt;
/// Escapes by code points.
pub mod unicode;
pub mod user_type;
pub mod window;

pub use error::{Result, SqlError};
pub use parser::{
    HEIGHT_MAX, NESTING_MAX, Parsed, atomic_text, operations, parse, parse_expression, parse_type_name,
    routine_statements,
};
