//! The atomics, threads and tables that the primitives are written on: the real ones, or loom's under `--cfg loom`, so
//! that the same code runs in both.
//!
//! Statistics (`class`) and the record of held latches (`held`) stay on real atomics and thread-locals: they decide
//! nothing that the model explores.

#[cfg(not(loom))]
mod imp {
    pub use std::sync::Mutex as TableMutex;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
    pub use std::thread::{Thread, current, park};

    /// Parks the calling thread for at most `ns` nanoseconds.
    pub fn park_timeout_ns(ns: u64) {
        std::thread::park_timeout(std::time::Duration::from_nanos(ns));
    }

    /// One step of a spin.
    #[inline]
    pub fn spin() {
        std::hint::spin_loop();
    }
}

#[cfg(loom)]
mod imp {
    pub use loom::sync::Mutex as TableMutex;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
    pub use loom::thread::{Thread, current, park};

    /// The model has no time: a timeout never comes before the wake-up.
    pub fn park_timeout_ns(_ns: u64) {
        park();
    }

    /// A spinning thread lets the others go on, else the model would explore the spin for ever.
    pub fn spin() {
        loom::thread::yield_now();
    }
}

pub(crate) use imp::*;
