//! What tests are built on: a deterministic executor with a virtual clock, seeds that replay, and
//! data-driven test files.
//!
//! # Structure
//! ```text
//!   sim         Sim: tasks, timers and pending I/O on one thread, scheduled by a seed
//!   rng         Rng: small and reproducible, the only source of chance in a test
//!   seed        for_each_seed!: many seeds, and the command that replays the one that failed
//!   datadriven  `command` / input / ---- / expected, rewritten by a flag
//! ```
//!
//! # Not here
//! The simulated disk (`vfs::sim`), which uses the executor; models of the layers above.

pub mod datadriven;
mod rng;
mod seed;
mod sim;
#[cfg(test)]
mod sim_tests;

pub use rng::Rng;
pub use seed::{Caller, for_each_seed};
pub use sim::{
    JoinHandle, Sim, SimOptions, Stop, advance, crash, defer, in_simulation, now_ns, sleep, spawn, yield_now,
};
