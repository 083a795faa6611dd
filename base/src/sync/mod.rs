//! Latches, mutexes, queues of waiting tasks, and threads. Spin-then-park is written once, and every slow path is accounted for.
//!
//! # Structure
//! ```text
//!  tasks:   WaitQueue   LsnWaiters   timer (sleep, timeout)     thread (spawn_thread, block_on, Parker)
//!                 \         |         /
//!  threads:        Mutex, Condvar     Latch, RwLock
//!                           \         /
//!                    park: spin, then park        class: name, rank, figures     held: what this thread holds
//!  --------------------------------------------------------------------------------------------------------
//!  shim: real atomics and threads, or loom's
//! ```
//! Tests of the primitives under loom: `RUSTFLAGS="--cfg loom" cargo test -p clearway-base --release --test loom`.
//!
//! # Latch order
//! By `Class::ranked`: a thread that holds rank r waits only for higher ranks; lower layers (storage) have the higher
//! ranks, since calls go downward. A thread that holds a latch may wait for another latch or for a mutex, and for nothing else
//! (`assert_no_latches`).

mod class;
mod latch;
mod lsn;
mod mutex;
mod park;
mod queue;
mod rwlock;
mod shim;
mod slice;
mod thread;
#[cfg(not(loom))]
mod timer;

pub use crate::held::{Bare, assert_no_latches, latches_held};
pub use class::{Class, ClassStats, Holder, classes, restore_classes, track_holders};
pub use class::{note_latch_given_back, note_latch_taken};
pub use latch::{Exclusive, Latch, Shared, Version};
pub use lsn::{Closed, LsnWaiters, WaitLsn};
pub use mutex::{Condvar, Loan, Mutex, MutexGuard};
pub use queue::{WaitQueue, Waiter};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use slice::ask_for_slice;
pub use thread::{JoinHandle, Parker, block_on, spawn_thread, thread_number, yield_now};
#[cfg(not(loom))]
pub use timer::{Sleep, TimedOut, Timeout, pause, sleep, sleep_until_ns, timeout};
