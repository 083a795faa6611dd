//! The language PL/pgSQL: a parser that turns the text of a body into a tree. The meaning of types and of columns is not known here.
//!
//! # Structure
//! ```text
//! tree        the tree: blocks, statements, variables     names       which variable a name means in which place
//! parser      the cursor and the pieces of SQL text       declare     DECLARE
//! statement   decides which statement comes               control     IF, CASE and the loops
//! cursor      cursor variables, OPEN, FETCH, MOVE, CLOSE
//! raise       RAISE, ASSERT, GET DIAGNOSTICS, EXCEPTION   conditions  names of errors and their SQLSTATEs
//! ```
//! The tokens are those of SQL's lexer. An expression or an SQL statement is found by the token that ends it, and its text goes through the parser
//! of SQL at once, so that a syntax error is known before anything runs.
//!
//! # Invariants
//! - PLP-1: every form that PostgreSQL accepts and this parser does not is refused with 0A000 and its name.
//!
//! Source: PostgreSQL 15's src/pl/plpgsql/src/pl_gram.y, for what is accepted and for the errors.

pub mod conditions;
mod control;
mod cursor;
mod declare;
pub mod names;
mod parser;
mod raise;
mod statement;
pub mod tree;

use crate::error::Result;
use tree::Body;
pub use tree::{Gives, Owner};

/// Parses the text of a body.
///
/// # Errors
/// 42601 and others with the place in the text; 0A000 for what is not supported.
pub fn parse(text: &str, owner: &Owner) -> Result<Body> {
    parser::Parser::new(text, owner)?.body()
}
