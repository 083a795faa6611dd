//! Deep recursion: gives a function more stack where little is left.
//!
//! The parser bounds the depth of a recursion over a statement (SYN-2: the height of a syntax tree); this module provides the stack for
//! that depth. So a thread's own stack need not be large enough for the deepest statement.
//!
//! tests/recursion.py looks for recursions that do not ask, in the machine code.
//!
//! # Invariants
//! - STK-1: a recursive function calls [`deeper`] at every level, and takes less than [`SPARE_BYTES`] of stack between two calls. Code that
//!   cannot call it, such as the compiler's own code that drops a tree, needs less than that for the highest tree.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// What is left on a stack at least; frames are several times as large without optimization.
pub const SPARE_BYTES: usize = if cfg!(debug_assertions) { 2 << 20 } else { 1 << 20 };
/// What is added at a time.
const PIECE_BYTES: usize = 8 << 20;

/// Runs `f`, on a new piece of stack if little is left of the present one.
#[inline]
pub fn deeper<R>(f: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(SPARE_BYTES, PIECE_BYTES, f) // STK-1
}

pin_project! {
    /// A future whose polls are run by [`deeper`].
    pub struct Deeper<F> {
        #[pin]
        future: F,
    }
}

/// Makes the polls of a future ask for stack.
pub fn deeper_polls<F: Future>(future: F) -> Deeper<F> {
    Deeper { future }
}

impl<F: Future> Future for Deeper<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.project().future;
        deeper(|| future.poll(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(n: u64) -> u64 {
        deeper(|| {
            let kept = std::hint::black_box([n; 512]);
            if n == 0 { 0 } else { depth(n - 1) + kept[0] / n }
        })
    }

    #[test]
    fn recursion_goes_on_beyond_a_threads_stack() {
        assert_eq!(depth(10_000), 10_000);
    }
}
