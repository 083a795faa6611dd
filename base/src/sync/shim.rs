//! The atomics, threads and tables that the primitives are written on: the real ones, or loom's under `--cfg loom`, so
//! that the same code runs in both.
//!
//! Statistics (`class`) and the record of held latches (`held`) stay on real atomics and thread-locals: they decide
//! nothing that the model explores.

#[cfg(not(loom))]
mod imp {
    use std::sync::atomic::Ordering::{AcqRel, Release};
    use std::thread::Thread;

    pub use std::sync::Mutex as TableMutex;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};

    use crate::waits;

    /// Stops the thread that made it until another one sets it; a signal that was set before counts, once.
    #[derive(Debug)]
    pub struct Signal {
        is_set: AtomicBool,
        thread: Thread,
    }

    impl Signal {
        /// A signal for the calling thread, which alone may wait for it.
        pub fn new() -> Self {
            Self { is_set: AtomicBool::new(false), thread: std::thread::current() }
        }

        /// Sets the signal and lets its thread go on.
        pub fn set(&self) {
            self.is_set.store(true, Release);
            self.thread.unpark();
        }

        /// Waits for the signal and takes it.
        pub fn wait(&self) {
            while !self.is_set.swap(false, AcqRel) {
                std::thread::park();
            }
        }

        /// As `wait`, at most until `deadline_ns`; false if that came first.
        pub fn wait_until(&self, deadline_ns: u64) -> bool {
            while !self.is_set.swap(false, AcqRel) {
                let now_ns = waits::now_ns();
                if now_ns >= deadline_ns {
                    return false;
                }
                std::thread::park_timeout(std::time::Duration::from_nanos(deadline_ns - now_ns));
            }
            true
        }
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

    /// The same on loom's condition: its `park` forgets an `unpark` that comes while the thread stands at a mutex.
    #[derive(Debug)]
    pub struct Signal {
        is_set: loom::sync::Mutex<bool>,
        changed: loom::sync::Condvar,
    }

    impl Signal {
        pub fn new() -> Self {
            Self { is_set: loom::sync::Mutex::new(false), changed: loom::sync::Condvar::new() }
        }

        pub fn set(&self) {
            *self.is_set.lock().unwrap() = true;
            self.changed.notify_one();
        }

        pub fn wait(&self) {
            let mut is_set = self.is_set.lock().unwrap();
            while !*is_set {
                is_set = self.changed.wait(is_set).unwrap();
            }
            *is_set = false;
        }

        /// The model has no time: a deadline never comes before the signal.
        pub fn wait_until(&self, _deadline_ns: u64) -> bool {
            self.wait();
            true
        }
    }

    /// A spinning thread lets the others go on, else the model would explore the spin for ever.
    pub fn spin() {
        loom::thread::yield_now();
    }
}

pub(crate) use imp::*;
