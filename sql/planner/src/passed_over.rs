//! What executions of a plan tell the next ones of SKIP LOCKED: that they had to pass over many rows.
//!
//! Where a thousand sessions claim jobs behind a thousand jobs that one transaction has locked, each claim computes for milliseconds, and so waits for a turn at the processor. With its snapshot
//! taken before that wait, it came back seconds later to rows that had been deleted since, each of which it had to ask for; meanwhile no dead row could be removed. So all
//! claims stayed long after the locks had gone.
//!
//! # Invariants
//! - PSO-1: an execution of a plan of which a recent one has passed over rows, at least [`MANY`], for as long as a computation may last without a turn waits for its turn before it takes its snapshot.
//!   [`MEMORY`] executions after the last such one, none does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// After so many rows that were passed over, and each time after as many again, an execution looks at the clock.
pub const MANY: u32 = 512;
/// So many executions behind a long one take their turn first.
const MEMORY: u32 = 64;

/// How many of the next executions are expected to be long; all copies of a plan share it.
#[derive(Clone, Debug, Default)]
pub struct PassedOver(Arc<AtomicU32>);

impl PassedOver {
    /// An execution has passed over rows for long.
    pub fn note(&self) {
        self.0.store(MEMORY, Ordering::Relaxed);
    }

    /// Whether the execution that begins is expected to be long.
    pub fn expects_long(&self) -> bool {
        // Most plans never pass over a row: they write nothing here.
        self.0.load(Ordering::Relaxed) > 0
            && self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PSO-1
    #[test]
    fn executions_behind_a_long_one_are_expected_to_be_long_for_a_while() {
        let (passed, mut expected) = (PassedOver::default(), 0);
        assert!(!passed.expects_long());
        passed.clone().note();
        while passed.expects_long() {
            expected += 1;
        }
        assert_eq!(expected, MEMORY);
        assert!(!passed.expects_long());
    }
}
