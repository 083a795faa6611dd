//! Locks that transactions own: modes, queues, hand-off and deadlocks.

pub mod deadlock;
pub mod modes;
pub mod tag;
