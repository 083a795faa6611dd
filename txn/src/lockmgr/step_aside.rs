//! Requests that step aside: they wait in the queue only for short windows, so that a schema change that waits for a long transaction does not
//! block other sessions for long.
//!
//! # Life of a request that steps aside
//! ```text
//! in the queue ──► granted
//!   │   ▲  for at most `window`: requests that come meanwhile wait behind it
//!   ▼   │
//! aside, for as long again, 50 ms at least: out of the queue, no session waits for it; `pg_locks` still shows it as waiting
//! ```
//! This repeats for ever, or `rounds` times: then the request stays in the queue for good, or fails, as its session has set. With a window
//! of zero the request is in the queue for one poll only, which also searches for a deadlock.
//!
//! # Invariants
//! - POL-1: while a request is aside, it has no entry in the lock table: neither a waiter nor an announcement of a strong mode.

use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::{sleep, timeout};
use clearway_base::waits::{self, WaitEvent, clock};

use super::modes::LockMode;
use super::owner::Owner;
use super::tag::LockTag;
use super::wait::Waiter;
use super::{Granted, LockError, LockManager, Request, wait_event};

/// The least time that a request stays aside.
const ASIDE_MIN: Duration = Duration::from_millis(50);

/// How a request steps aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepAsideTerms {
    /// How long it is in the queue at a time. Then it stays aside as long, 50 ms at least.
    pub window: Duration,
    /// How often it steps aside; `None`: without limit.
    pub rounds: Option<u32>,
    /// After the last round it fails (`NotAvailable`) instead of waiting in the queue.
    pub fails: bool,
}

/// A request that steps aside, while it waits: in the queue or aside.
#[derive(Clone, Debug)]
pub(super) struct AsideRequest {
    pub(super) tag: LockTag,
    pub(super) mode: LockMode,
    pub(super) since_ns: u64,
    /// Its latest place in the queue.
    pub(super) waiter: Option<Arc<Waiter>>,
}

/// Shows the request as waiting until dropped.
struct Shown<'a>(&'a LockManager, &'a Arc<Owner>);

impl<'a> Shown<'a> {
    fn new(manager: &'a LockManager, owner: &'a Arc<Owner>, aside: AsideRequest) -> Shown<'a> {
        *owner.aside.lock() = Some(aside);
        Shown(manager, owner)
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let aside = self.1.aside.lock().take();
        if let Some((waiter, since_ns)) = aside.and_then(|aside| Some((aside.waiter?, aside.since_ns))) {
            self.0.history().ended(&waiter, since_ns);
        }
    }
}

impl LockManager {
    /// Takes a lock, stepping aside again and again while it is taken. Dropping the future gives up the wait, wherever it is.
    ///
    /// # Errors
    /// As [`LockManager::acquire`]; `NotAvailable` after the last round if `terms` says so.
    pub async fn acquire_stepping_aside(
        &self,
        request: Request<'_>,
        terms: StepAsideTerms,
    ) -> Result<Granted, LockError> {
        let since_ns = clock::now_ns();
        let aside = AsideRequest { tag: request.tag.clone(), mode: request.mode, since_ns, waiter: None };
        let _shown = Shown::new(self, request.owner, aside);
        let mut left = terms.rounds;
        while left != Some(0) {
            left = left.map(|rounds| rounds - 1);
            if let Ok(done) = timeout(terms.window, self.acquire(request.clone())).await {
                return done;
            }
            // POL-1
            assert!(request.owner.waiting.lock().is_none(), "POL-1: a waiter that stepped aside still waits");
            let (_, object) = wait_event(&request.tag);
            waits::in_wait(WaitEvent::DdlStepAside, object, sleep(terms.window.max(ASIDE_MIN))).await;
        }
        match terms.fails {
            true => Err(LockError::NotAvailable),
            false => self.acquire(request).await,
        }
    }
}

#[cfg(test)]
#[path = "step_aside_tests.rs"]
mod tests;
