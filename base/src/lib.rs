//! Files, latches, wait events, memory accounts, breaths and the test kit: what every layer is built on. Nothing here knows of a database.
//!
//! Unsafe code is denied except in the files that allow it at their top: `sync/mutex.rs` and `sync/rwlock.rs` (a value behind
//! a lock), `sync/slice.rs` (two system calls), `waits/tsc.rs` (one instruction), `memory/allocator.rs` (the hook in the allocator),
//! `memory/huge.rs` (one system call).
#![deny(unsafe_code)]
// What the other layers must not use is wrapped here (clippy.toml).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[cfg(not(loom))]
pub mod breath;
#[cfg(not(loom))]
pub mod certificate;
pub mod fold;
mod held;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod stack;
pub mod sync;
#[cfg(not(loom))]
pub mod testkit;
pub mod usage;
#[cfg(not(loom))]
pub mod vfs;
pub mod waits;
