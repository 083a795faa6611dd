//! Files, latches, wait events and test kit: the base of every layer, which knows no database.
//!
//! Unsafe code is denied but in the files that say so at their top: `sync/mutex.rs` and `sync/rwlock.rs` (a value behind
//! a lock), `sync/slice.rs` (two system calls), `waits/tsc.rs` (one instruction), `memory/allocator.rs` (the hook in the allocator).
#![deny(unsafe_code)]
// What the other layers must not use is wrapped here (clippy.toml).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[cfg(not(loom))]
pub mod breath;
#[cfg(not(loom))]
pub mod certificate;
mod held;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod stack;
pub mod sync;
#[cfg(not(loom))]
pub mod testkit;
#[cfg(not(loom))]
pub mod vfs;
pub mod waits;
