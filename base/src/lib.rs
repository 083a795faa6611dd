//! Files, latches, wait events and test kit: what every layer stands on and that knows no database.
#![deny(unsafe_code)]

pub mod sync;
pub mod testkit;
pub mod vfs;
pub mod waits;
