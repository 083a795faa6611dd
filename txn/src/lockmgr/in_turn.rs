//! Waits for a row outside of its queue: a session waits until a short transaction on another thread, which changes the same row, has ended.
//!
//! The turns themselves are kept by the layer above (`engine/src/row_turn.rs`). This module makes such a wait visible: views, wait events and the
//! history of lock waits show it as a wait for the row's lock behind the session that has the turn.
//!
//! # Invariants
//! - LKM-15: a waiter of this kind is in no queue and is no node of the waits-for graph. The session that has the turn waits for nothing while
//!   it has it (TRN-3), so no deadlock can contain this wait.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use clearway_base::waits::{self, clock};
use clearway_storage::ids::Lsn;

use super::history::Culprit;
use super::modes::LockMode;
use super::owner::{LockScope, Owner};
use super::tag::LockTag;
use super::wait::Waiter;
use super::{IfTaken, LockManager, Request, wait_event};

/// A wait that is shown until it is dropped.
struct Shown<'m> {
    manager: &'m LockManager,
    waiter: Arc<Waiter>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.waiter.left(); // false: its turn came
        self.manager.wait_over(&self.waiter);
    }
}

impl LockManager {
    /// Waits for a turn at a row, and shows that as a wait of this session for the row's lock. `text` is the statement that waits, which
    /// [`Owner::statement_begins`] has announced; `behind` is the slot number of the session that has the turn.
    pub async fn wait_in_turn(
        &self,
        (owner, text): (&Arc<Owner>, &Arc<str>),
        (tag, mode): (LockTag, LockMode),
        behind: u32,
        turn: impl Future<Output = ()>,
    ) {
        owner.statement(text);
        let holder = (behind != owner.id()).then(|| self.owner_in(behind)).flatten();
        let before = holder.map(|holder| Culprit::running(&holder, mode));
        let (event, object) = wait_event(&tag);
        let scope = LockScope::Transaction;
        let request = Request { owner, tag, mode, scope, if_taken: IfTaken::Wait, implicit: None, looks: false };
        let waiter = Waiter::in_turn(&request, clock::now_ns(), before);
        waiter.find_root();
        *owner.waiting.lock() = Some(waiter.clone());
        let shown = Shown { manager: self, waiter };
        let mut turn = pin!(turn);
        let turn = poll_fn(|cx| {
            let polled = turn.as_mut().poll(cx);
            if polled.is_pending() {
                shown.waiter.pauses();
            }
            polled
        });
        waits::in_wait(event, object, turn).behind(u64::from(behind)).await;
        shown.waiter.granted(Lsn::ZERO);
    }

    /// The session with this slot number.
    fn owner_in(&self, slot: u32) -> Option<Arc<Owner>> {
        self.owners.lock().get((slot as usize).checked_sub(1)?)?.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use clearway_storage::ids::TreeId;

    use super::super::history::Outcome;
    use super::super::{LockManager, LockMode, LockTag, Owner};

    fn says(owner: &Owner, text: &Arc<str>, digest: u64) {
        owner.begin();
        owner.statement_begins(digest);
        owner.statement(text);
    }

    /// LKM-15: views show it as a wait for the row behind the session that has the turn; the history has it when the turn has come, and as given up when
    /// the future is dropped.
    #[test]
    fn a_wait_for_a_turn_is_shown_as_one_for_the_row() {
        let locks = LockManager::new();
        locks.history().remember_from(0);
        let (holder, waiter) = (locks.register(1), locks.register(2));
        let text: Arc<str> = "update hot".into();
        let tag = LockTag::Row { tree: TreeId(7), key: [1].as_slice().into() };
        says(&holder, &text, 5);
        for comes in [true, false] {
            waiter.statement_begins(6);
            let mut turn = Some(());
            let turn = std::future::poll_fn(|_| turn.take().map_or(Poll::Ready(()), |()| Poll::Pending));
            let wanted = (tag.clone(), LockMode::RowNoKeyUpdate);
            {
                let mut wait = pin!(locks.wait_in_turn((&waiter, &text), wanted, holder.id(), turn));
                let mut poll = || wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(poll().is_pending());
                let live = locks.live_waits();
                assert_eq!((live.len(), live[0].pid(), live[0].blocker(), live[0].tag()), (1, 2, Some(1), &tag));
                assert_eq!(locks.blockers(2), [1]);
                assert!(locks.locks().iter().any(|lock| lock.pid == 2 && lock.tag == tag && !lock.granted));
                locks.background_scan(0);
                assert!(!comes || poll().is_ready());
            }
            assert!(locks.live_waits().is_empty() && locks.blockers(2).is_empty());
        }
        let records = locks.history().records();
        let told: Vec<_> = records.iter().map(|record| (record.outcome, record.waiter.pid, &record.tag)).collect();
        assert_eq!(told, [(Outcome::Granted, 2, &tag), (Outcome::Cancelled, 2, &tag)]);
        for record in &records {
            let (blocker, root) = (record.blocker.as_ref().expect("a blocker"), record.root.as_ref().expect("a root"));
            assert_eq!((blocker.pid, root.pid, blocker.taken_by.as_deref()), (1, 1, Some("update hot")));
            assert_eq!(record.waiter.latest.as_deref(), Some("update hot"));
        }
    }

    /// LKM-15: a turn that comes at once is no wait (HIS-2).
    #[test]
    fn a_turn_that_comes_at_once_is_no_wait() {
        let locks = LockManager::new();
        locks.history().remember_from(0);
        let owner = locks.register(1);
        let wanted = (LockTag::Row { tree: TreeId(7), key: [1].as_slice().into() }, LockMode::RowNoKeyUpdate);
        let text = "update".into();
        let mut wait = pin!(locks.wait_in_turn((&owner, &text), wanted, 9, std::future::ready(())));
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert!(locks.history().records().is_empty());
    }
}
