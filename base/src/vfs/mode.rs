//! Whether the calling thread performs its own I/O or hands it to a pool.

use std::cell::Cell;
use std::marker::PhantomData;

/// What performs an operation of [`super::RealVfs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoMode {
    /// The thread that polls it first.
    Inline,
    /// The pool, if the file system has one.
    Pooled,
}

thread_local! {
    static INLINE_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, operations first polled on this thread run on this thread. Nests.
#[must_use = "the mode ends when the guard is dropped"]
pub struct InlineIo {
    // The guard belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

/// From now until the guard goes, this thread performs its own I/O: for dedicated background threads
/// and for a committing thread that flushes itself.
pub fn inline_io_here() -> InlineIo {
    INLINE_DEPTH.with(|depth| depth.set(depth.get() + 1));
    InlineIo { _not_send: PhantomData }
}

/// The mode of the calling thread.
#[inline]
pub fn io_mode() -> IoMode {
    if INLINE_DEPTH.with(Cell::get) > 0 { IoMode::Inline } else { IoMode::Pooled }
}

impl Drop for InlineIo {
    fn drop(&mut self) {
        INLINE_DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}
