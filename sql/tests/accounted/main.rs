//! Statements whose memory is counted, or whose parts run on several threads: the allocator and the helpers belong to the whole process.

#![allow(clippy::disallowed_types, reason = "tests, no part of the database")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use clearway_base::memory::Accounted;

#[path = "../memory/mod.rs"]
mod memory;

mod apart;
mod claims;
mod explain_counts;
mod explain_usage;
mod spilling;
mod statement_use;

#[global_allocator]
static ALLOCATOR: Accounted = Accounted;

type Alone = MutexGuard<'static, ()>;

/// One test at a time. The standard library's mutex is not among the waits that are counted.
fn alone() -> Alone {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
