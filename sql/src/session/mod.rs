//! Sessions: what a connection says to the SQL layer, and what the SQL layer says back.
//!
//! Structure: `client` is the trait through which results leave, `interrupt` stops a statement from outside, `backend`
//! lists the sessions for the system views and for cancel requests, `password` makes what is stored of a password.

pub mod backend;
pub mod client;
pub mod interrupt;
pub mod password;

pub use backend::{Activity, Backend, BackendState, Backends};
pub use client::{Client, Column, CopyFormat, CopyIn, Gone, TransactionStatus};
pub use interrupt::{Interrupt, Reason};
