//! Sessions: what a connection says to the SQL layer, and what the SQL layer says back.
//!
//! Structure: `session` is a session, `block` its transaction block, `extended` its prepared statements, `portals` its portals; `run` one execution
//! of a planned statement, `point` the short way of those that read one row; `utility`, `ddl` and `copy` carry out the other statements; `core` is what they share,
//! `settings` the session's settings. `client` is the trait through which results leave, `interrupt` stops a statement
//! from outside, `backend` lists the sessions for the system views and for cancel requests.

pub mod backend;
mod block;
mod checkpoint;
pub mod client;
mod copy;
pub mod core;
mod ddl;
mod extended;
pub mod interrupt;
pub mod password;
mod point;
mod portals;
pub mod privileges;
mod quiet;
pub mod run;
#[allow(clippy::module_inception)]
pub mod session;
pub mod settings;
mod utility;

pub use backend::{Activity, Backend, BackendState, Backends};
pub use client::{Client, Column, CopyFormat, CopyIn, Gone, TransactionStatus};
pub use interrupt::{Interrupt, Reason};
pub use session::{Bind, Session, SessionStart, Timeouts};
