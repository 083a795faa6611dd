//! Spare pages: free pages that only work which gives space back may take. So DELETE, TRUNCATE and DROP work on a full disk, although they
//! change rows of tables and of the catalog before any page becomes free.
//!
//! # Invariants
//! - SPC-11: ordinary work gets a page only if [`SpaceOptions::spare_pages`](super::SpaceOptions::spare_pages) free pages are left after it;
//!   else the files have to grow. So spare pages that were taken are replaced before ordinary work gets another page.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;

thread_local! {
    /// What is polled on this thread gives space back.
    static GIVES_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs work that gives space back in the end: it may take the spare pages.
pub async fn giving_back<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|cx| {
        let _entered = Entered(GIVES_BACK.replace(true));
        work.as_mut().poll(cx)
    })
    .await
}

/// Whether this is such work.
pub(super) fn gives_back() -> bool {
    GIVES_BACK.get()
}

/// Puts back what was before, also when a poll panics.
struct Entered(bool);

impl Drop for Entered {
    fn drop(&mut self) {
        GIVES_BACK.set(self.0);
    }
}
