//! Sessions: what a connection says to the SQL layer, and what the SQL layer says back.
//!
//! Structure: `client` is the trait through which results leave, `interrupt` stops a statement from outside, `backend`
//! lists the sessions for the system views and for cancel requests, `core` is what statements share, `settings` the
//! session's settings.

pub mod backend;
pub mod client;
pub mod core;
pub mod interrupt;
pub mod password;
pub mod settings;

pub use backend::{Activity, Backend, BackendState, Backends};
pub use client::{Client, Column, CopyFormat, CopyIn, Gone, TransactionStatus};
pub use interrupt::{Interrupt, Reason};
