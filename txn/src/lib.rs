//! Transactions: row versions and snapshots, locks with deadlock detection, and the commit section.
#![forbid(unsafe_code)]

pub mod error;
pub mod lockmgr;
pub mod mutation;
pub mod mvcc;
mod purge;
pub mod read;
pub mod transaction;
pub mod transactions;
