//! Versions: who sees which one, and how long each is kept.

pub mod snapshots;
pub mod state;
pub mod undo;
