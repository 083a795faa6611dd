//! Latches, mutexes, queues of waiting tasks and threads: spin-then-park written once, every slow path in the books.
//!
//! # Structure
//! ```text
//! Mutex, Condvar   Latch, RwLock        threads that wait
//!        \          /      \
//!         park: spin, then park          class: name, rank, figures     held: what this thread holds
//!                                        
//! ```
//! `shim` puts loom's atomics under all of them for the tests under `--cfg loom`.
mod class;
mod held;
mod latch;
mod mutex;
mod park;
mod rwlock;
mod shim;

pub use class::{Class, ClassStats, Holder, classes, track_holders};
pub use held::{assert_no_latches, latches_held};
pub use latch::{Exclusive, Latch, Shared, Version};
pub use mutex::{Condvar, Mutex, MutexGuard};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
