//! Sessions: what a connection says to the SQL layer, and what the SQL layer says back.
//!
//! # Structure
//! ```text
//! session     a session: texts in, results out          block       its transaction block
//! extended    its prepared statements                    portals     its portals
//! statement   chooses what carries a statement out: a plan (run), or one of call, utility, alter_system, ddl, copy
//! run         one execution of a plan                    routine     plans in the bodies of functions
//! point       the short way of a plan that reads one row by its key
//! short       the short way of a plan that changes one   at_once     other statements that need no wait
//! template    one plan for texts that differ in integers only
//! form        how rows are written                       client      the trait through which results leave
//! watch       what each statement has cost               series      statements that run in a loop
//! ```
//! What the planner and the executor need of a session is in `context`, below them.

mod admission;
mod alter_system;
mod at_once;
mod block;
mod call;
pub mod client;
mod copy;
mod cursor;
mod ddl;
mod deferred;
mod discard;
mod explain;
mod extended;
mod form;
mod held_up;
mod kept;
mod mysql;
mod notifying;
pub mod password;
mod point;
mod portals;
mod quiet;
pub mod routine;
mod run;
mod series;
#[allow(clippy::module_inception)]
pub mod session;
mod short;
mod statement;
mod template;
mod utility;
mod watch;

pub use crate::context::backend::{Activity, Backend, BackendState, Backends};
pub use crate::context::interrupt::{Interrupt, Reason};
pub use at_once::AtOnce;
pub use client::{Client, Column, CopyFormat, CopyIn, Gone, TransactionStatus};
pub use session::{Bind, Session, SessionStart, Timeouts};
