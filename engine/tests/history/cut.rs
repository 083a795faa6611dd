//! Drops a future before it has ended, as a cancel, a timeout or a lost connection does to a statement.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use clearway_base::testkit::Rng;

/// When a future is dropped.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// After so many polls.
    polls: u64,
    /// Only when it would be polled again: what it waited for may have been granted by then.
    late: bool,
}

impl Cut {
    /// Once in a while.
    pub fn sometimes(rng: &mut Rng, one_in: u64) -> Option<Cut> {
        rng.chance(1, one_in).then(|| Cut { polls: rng.range(1..20), late: rng.chance(1, 2) })
    }
}

/// Runs a future to its end or to the cut.
pub async fn until<F: Future>(cut: Option<Cut>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|cx| {
        if cut.is_some_and(|cut| polls >= cut.polls) {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if cut.is_some_and(|cut| polls == cut.polls && !cut.late) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
