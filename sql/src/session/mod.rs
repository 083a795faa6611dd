//! Sessions: what a connection says to the SQL layer, and what the SQL layer says back.
//!
//! Structure: `session` is a session, `block` its transaction block, `extended` its prepared statements, `portals` its portals; `run` one execution
//! of a planned statement, `routine` those in the bodies of functions, `form` how rows are written, `point` the short way of those that read one row, `short` of those that change one, `at_once` what else needs no wait, `template` that of texts that differ in integers only; `statement` chooses: `call`, `utility`, `alter_system`, `ddl` and `copy` carry out the other statements. `watch` notes what each has cost, `series` finds loops of them. `client` is the trait through which results leave.
//! What the planner and the executor need of a session stands below them, in `context`.

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
