//! Row versions: which version a snapshot sees, and how long each version is kept.
//!
//! # Structure
//! ```text
//! book ── snapshots   open snapshots and the horizon       state    writing transactions: status, changes
//!      ├─ undo        undo records by tag                  record   one undo record, its key, the rows that share it
//!      ├─ prune       frees records that no snapshot needs fate     how a row ended, or where it was moved
//!      ├─ budget      memory limit of undo                 span, spill   undo in the file   holders   what holds undo
//!      └─ ended       how the latest transactions ended, and the ids of a snapshot
//! ```

pub mod book;
mod budget;
pub mod ended;
pub mod fate;
pub mod holders;
pub mod key;
pub mod prune;
pub mod record;
pub(crate) mod rows;
pub mod snapshots;
pub mod span;
pub mod spill;
pub mod state;
pub mod undo;

#[cfg(test)]
mod prune_tests;
