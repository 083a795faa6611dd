//! What the statement that a session runs reads and writes (USG-3 in `usage`).
//!
//! Most statements begin and end within one poll: theirs is the difference of two readings of the thread's counts. What a poll has counted that ends
//! before the statement does is kept with the session.

use super::session::SessionStats;
use crate::usage::{self, Usage};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// No statement runs.
const NONE: u8 = 0;
/// One runs.
const RUNS: u8 = 1;
/// One runs that has counts of earlier polls.
const KEPT: u8 = 2;

/// Whether a session's statement counts. Of the thread that polls the session, as `kept` is (SES-2).
#[derive(Default)]
pub(super) struct Counting(AtomicU8);

/// The counts of polls that have ended, of the statement that runs.
#[derive(Default)]
pub(super) struct Kept(Mutex<Usage>);

impl Kept {
    fn with<R>(&self, f: impl FnOnce(&mut Usage) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl SessionStats {
    /// A statement of the session begins. To be called by the thread that polls the session, like [`SessionStats::use_ends`].
    #[inline]
    pub fn use_begins(&self) {
        if self.counting.0.load(Relaxed) == KEPT {
            self.kept.with(|kept| *kept = Usage::default());
        }
        self.counting.0.store(RUNS, Relaxed);
        usage::mark();
    }

    /// The statement ends; what it has used.
    #[inline]
    pub fn use_ends(&self) -> Usage {
        let state = self.counting.0.load(Relaxed);
        self.counting.0.store(NONE, Relaxed);
        match state {
            NONE => Usage::default(),
            RUNS => usage::since_mark(),
            _ => self.use_with_kept(),
        }
    }

    /// Whether the statement that runs has been polled before.
    #[inline]
    pub fn use_is_kept(&self) -> bool {
        self.counting.0.load(Relaxed) == KEPT
    }

    #[cold]
    #[inline(never)]
    fn use_with_kept(&self) -> Usage {
        self.kept.with(std::mem::take) + usage::since_mark()
    }

    /// A poll begins, or goes on after one of another session within it.
    #[inline]
    pub(super) fn use_goes_on(&self) {
        if self.counting.0.load(Relaxed) != NONE {
            usage::mark();
        }
    }

    /// It ends, or one of another session begins within it.
    #[inline]
    pub(super) fn use_rests(&self) {
        if self.counting.0.load(Relaxed) != NONE {
            self.keeps_use();
        }
    }

    #[cold]
    #[inline(never)]
    fn keeps_use(&self) {
        self.kept.with(|kept| *kept += usage::since_mark());
        self.counting.0.store(KEPT, Relaxed);
        usage::mark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::with_session;
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// A statement of `polls` polls, each of which finds `pages` pages in the cache.
    async fn statement(session: &SessionStats, polls: u64, pages: u64) -> Usage {
        session.use_begins();
        let mut left = polls;
        poll_fn(|_| {
            (0..pages).for_each(|_| usage::page_hit());
            left -= 1;
            if left == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        session.use_ends()
    }

    #[test]
    fn statements_that_are_polled_in_turns_have_their_own_counts() {
        let sessions = [SessionStats::new("a"), SessionStats::new("b")];
        let [a, b] = &sessions;
        let mut first = pin!(with_session(a.clone(), statement(a, 3, 5)));
        let mut second = pin!(with_session(b.clone(), async {
            let short = statement(b, 1, 7).await;
            usage::log_record(100); // between two statements, it belongs to none
            (short, statement(b, 2, 11).await)
        }));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let Poll::Ready((short, long)) = second.as_mut().poll(&mut cx) else { panic!("two polls") };
        let Poll::Ready(whole) = first.as_mut().poll(&mut cx) else { panic!("three polls") };
        let of = |pages_hit| Usage { pages_hit, ..Usage::default() };
        assert_eq!([short, long, whole], [of(7), of(22), of(15)], "USG-3");
    }

    #[test]
    fn a_poll_within_another_sessions_poll_keeps_the_two_apart() {
        let [outer, inner] = [SessionStats::new("outer"), SessionStats::new("inner")];
        let mut cx = Context::from_waker(Waker::noop());
        let around = with_session(outer.clone(), async {
            outer.use_begins();
            usage::page_hit();
            let within = pin!(with_session(inner.clone(), statement(&inner, 1, 9)));
            let Poll::Ready(within) = within.poll(&mut Context::from_waker(Waker::noop())) else { panic!("one poll") };
            usage::page_hit();
            (outer.use_ends(), within)
        });
        let Poll::Ready((whole, within)) = pin!(around).poll(&mut cx) else { panic!("one poll") };
        assert_eq!((whole.pages_hit, within.pages_hit), (2, 9), "USG-3");
    }

    #[test]
    fn a_statement_whose_end_was_lost_leaves_nothing_to_the_next() {
        let session = SessionStats::new("a");
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut dropped = pin!(with_session(session.clone(), statement(&session, 5, 5)));
            assert!(dropped.as_mut().poll(&mut cx).is_pending());
        }
        let next = pin!(with_session(session.clone(), statement(&session, 1, 1)));
        let Poll::Ready(next) = next.poll(&mut cx) else { panic!("one poll") };
        assert_eq!(next.pages_hit, 1, "USG-3");
    }
}
