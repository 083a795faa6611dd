//! Versions: who sees which one, and how long each is kept.
//!
//! # Structure
//! ```text
//! book ── snapshots   who reads where          state   transactions that change something
//!      ├─ undo        records by tag           record  one of them
//!      ├─ prune       what nobody reads goes           fate    what became of a row that somebody read
//!      └─ budget      memory's limit           span, spill   what stands in the file    holders   who is to blame
//! ```

pub mod book;
mod budget;
pub mod fate;
pub mod holders;
pub mod prune;
pub mod record;
pub mod snapshots;
pub mod span;
pub mod spill;
pub mod state;
pub mod undo;

#[cfg(test)]
mod prune_tests;
