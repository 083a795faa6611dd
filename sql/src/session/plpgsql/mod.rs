//! Runs bodies in PL/pgSQL: DO, and the bodies of procedures and functions.
//!
//! # Structure
//! ```text
//! compile      a body with the types of its variables      frame       a run: its variables, and what CONTEXT says of it
//! evaluate     expressions and queries                      assign      values on their way into variables
//! flow         blocks, conditions, loops                    statement   SQL, EXECUTE, INTO, GET DIAGNOSTICS
//! cursor       cursor variables
//! raise        RAISE and ASSERT                             ended       COMMIT and ROLLBACK
//! block        DO                                          called      procedures and functions
//! returned     what a function gives
//! ```
//!
//! # Life of a run
//! The body is parsed, and the types of its variables are looked up. Each piece of SQL text in it is planned when it first runs and keeps its plan
//! for as long as the records that it may name have the same fields. Variables are parameters of these statements, each by its number. The statements
//! run in the session's transaction, each with a snapshot of its own.
//!
//! A function that an expression calls runs in a session of its own over the same transaction: the session around it waits for the statement that calls.
//!
//! The rest of the session calls what is here as methods of the session.
//!
//! # Invariants
//! - PLS-1: a block with EXCEPTION is a savepoint: what ran in it is undone before a handler runs, and the savepoint has gone when the block ends.
//! - PLS-2: every turn of a loop and every statement is a breath, so that each can be cancelled and timed out.
//! - PLS-3: a statement of a body shares its transaction with the body: LOCK TABLE, DECLARE, SET LOCAL, SET CONSTRAINTS and SET TRANSACTION run in it as
//!   within a transaction block, and what has to be alone in its transaction is refused, as in PostgreSQL (`isTopLevel`).
//!
//! Source: PostgreSQL 15's src/pl/plpgsql/src/pl_exec.c.

mod assign;
mod block;
mod called;
mod compile;
mod cursor;
mod ended;
mod evaluate;
mod flow;
mod frame;
mod raise;
mod returned;
mod statement;
