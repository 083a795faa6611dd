//! Versions: who sees which one, and how long each is kept.

pub mod book;
pub mod snapshots;
pub mod state;
pub mod undo;
