//! Files, latches, wait events and test kit: what every layer stands on and that knows no database.
#![deny(unsafe_code)]
// What the other layers must not use is wrapped here (clippy.toml).
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod sync;
pub mod testkit;
pub mod vfs;
pub mod waits;
