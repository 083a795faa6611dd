//! Sessions: they take the client's texts and messages and write results.
//!
//! # Structure
//! ```text
//! session     a session: texts in, results out          block       its transaction block
//! extended    its prepared statements                    portals     its portals
//! statement   chooses what carries a statement out: a plan (run), or one of call, utility, copy, cursor, explain,
//!             discard, deferred, notifying, mysql; what defines data, `clearway_ddl` does (defining)
//! run         one execution of a plan                    routine     plans in the bodies of functions
//! point       the fast path that reads one row by key    short       the fast path that changes one row; short_insert, short_delete
//! range       the fast path that reads few rows          cells       columns of stored rows on their way to the client
//! at_once     messages that are handled without a wait   template    one plan for texts that differ in integers only
//! alone       reads of the fast paths that are transactions of their own
//! awaited     updates of the fast path that wait for their row
//! plpgsql     bodies in PL/pgSQL                         subtransaction  blocks of them that can be undone
//! form        how rows are written                       client      the trait through which results leave
//! described   what a client is told before the rows    direct      statements of a program in the same process
//! watch       what each statement has cost               series      statements that run in a loop
//! kept        the settings with which a session begins   held_up     reports which sessions block DDL
//! texts       texts that were parsed before              shared_plans  plans that sessions share
//! planned     a plan and what it was made for            fresh       whether a plan that was kept still fits
//! choice      whether a prepared statement runs by a plan for any values or by one for those at hand
//! ```
//! The parts of a session that the planner and the executor need are in `context`, below them.

mod admission;
mod alone;
mod alter_system;
mod at_once;
mod awaited;
mod block;
mod body;
mod call;
mod cells;
mod choice;
pub mod client;
mod connect;
mod copy;
mod current_of;
mod cursor;
mod cursors;
mod deferred;
mod defining;
mod described;
mod direct;
mod discard;
mod explain;
mod extended;
mod fastpath;
mod form;
mod fresh;
mod held_up;
mod kept;
mod mysql;
mod notifying;
mod overdue;
mod parameters;
mod planned;
mod plpgsql;
mod point;
mod portals;
mod quiet;
mod range;
pub mod routine;
mod run;
mod series;
#[allow(clippy::module_inception)]
pub mod session;
mod shared_plans;
mod short;
mod short_delete;
mod short_insert;
mod sql_prepare;
mod statement;
mod subtransaction;
mod template;
mod texts;
mod utility;
mod watch;

pub use crate::context::backend::{Activity, Backend, BackendState, Backends};
pub use crate::context::interrupt::{Interrupt, Reason};
pub use crate::context::password;
pub use at_once::AtOnce;
pub use client::{Client, Column, CopyFormat, CopyIn, Gone, TransactionStatus};
pub use direct::{Called, Known};
pub use fastpath::FunctionCall;
pub use session::{Bind, Session, SessionStart, Timeouts};
