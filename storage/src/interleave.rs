//! Where a scheduler of tests may switch between threads: every atomic step of pages and their translation.
//!
//! Without the feature `interleave` the types here are the standard library's and a step is nothing. With it, each
//! operation first calls the hook that a test has installed; the test's scheduler (shuttle's, in the workspace
//! `storage/interleave/`) may then let another task run. So the code that runs is the real one, pool and trees alike.

/// What is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// An operation on an entry of the translation, a pin, a frame's state.
    Atomic,
    /// A word of a page is read or written.
    Word,
    /// A task found a latch taken: it can't go on before another has run.
    Spin,
}

#[cfg(not(feature = "interleave"))]
mod steps {
    pub(crate) use std::sync::atomic::AtomicU64 as AtomicWord;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
}

#[cfg(feature = "interleave")]
mod steps {
    use super::{Point, step};
    use std::sync::atomic::{self, Ordering};

    macro_rules! wrapped {
        ($($name:ident, $inner:ident, $value:ty, $point:expr;)*) => {$(
            /// An atomic whose operations are points of the schedule.
            #[derive(Debug, Default)]
            pub struct $name(atomic::$inner);

            #[allow(dead_code)]
            impl $name {
                pub(crate) const fn new(value: $value) -> Self {
                    $name(atomic::$inner::new(value))
                }
                pub(crate) fn load(&self, order: Ordering) -> $value {
                    step($point);
                    self.0.load(order)
                }
                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    step($point);
                    self.0.store(value, order);
                }
                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    step($point);
                    self.0.swap(value, order)
                }
                pub(crate) fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    step($point);
                    self.0.compare_exchange(current, new, success, failure)
                }
            }
        )*};
    }

    macro_rules! counting {
        ($($name:ident, $value:ty;)*) => {$(
            #[allow(dead_code)]
            impl $name {
                pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    step(Point::Atomic);
                    self.0.fetch_add(value, order)
                }
                pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    step(Point::Atomic);
                    self.0.fetch_sub(value, order)
                }
                pub(crate) fn fetch_update(
                    &self,
                    set: Ordering,
                    fetch: Ordering,
                    f: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    step(Point::Atomic);
                    self.0.fetch_update(set, fetch, f)
                }
            }
        )*};
    }

    wrapped! {
        AtomicWord, AtomicU64, u64, Point::Word;
        AtomicU64, AtomicU64, u64, Point::Atomic;
        AtomicU32, AtomicU32, u32, Point::Atomic;
        AtomicUsize, AtomicUsize, usize, Point::Atomic;
        AtomicBool, AtomicBool, bool, Point::Atomic;
    }
    counting! { AtomicU64, u64; AtomicU32, u32; AtomicUsize, usize; }
}

pub(crate) use steps::*;

#[cfg(feature = "interleave")]
static HOOK: std::sync::OnceLock<fn(Point)> = std::sync::OnceLock::new();

/// Installs the hook, once for the process.
#[cfg(feature = "interleave")]
pub fn install(hook: fn(Point)) {
    let _ = HOOK.set(hook);
}

/// A point of the schedule.
#[inline(always)]
pub(crate) fn step(_point: Point) {
    #[cfg(feature = "interleave")]
    if let Some(hook) = HOOK.get() {
        hook(_point);
    }
}
