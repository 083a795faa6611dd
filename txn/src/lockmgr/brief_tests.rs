//! Brief requests: directed cases, and a model of a hot row's sessions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use clearway_base::sync::Mutex;
use clearway_storage::ids::Lsn;

use super::super::line::CALLED_MAX;
use super::super::tests::{Acquire, ask_as, given, of, poll, row};
use super::super::{Granted, IfTaken, LockError, LockManager, LockMode, LockTag, Owner};

fn tag() -> LockTag {
    row(1)
}

fn ask<'a>(locks: &'a LockManager, owner: &'a Arc<Owner>, mode: LockMode, if_taken: IfTaken) -> Acquire<'a> {
    ask_as(locks, owner, tag(), mode, if_taken)
}

fn update<'a>(locks: &'a LockManager, owner: &'a Arc<Owner>, if_taken: IfTaken) -> Acquire<'a> {
    ask(locks, owner, LockMode::RowNoKeyUpdate, if_taken)
}

/// Polls with the turn at the row.
fn poll_in_turn(owner: &Owner, future: &mut Acquire<'_>) -> Poll<Result<Granted, LockError>> {
    owner.has_turn(true);
    let polled = poll(future);
    owner.has_turn(false);
    polled
}

fn takes(owner: &Owner, future: &mut Acquire<'_>) -> Granted {
    of(poll_in_turn(owner, future))
}

fn is_refused(future: &mut Acquire<'_>) -> bool {
    matches!(poll(future), Poll::Ready(Err(LockError::NotAvailable)))
}

/// LKM-17, LKM-18
#[test]
fn a_brief_waiter_is_called_and_only_brief_requests_go_ahead_of_it() {
    let locks = LockManager::new();
    locks.history().remember_from(0);
    let [holder, called, brief, other] = [1, 2, 3, 4].map(|pid| locks.register(pid));
    given(&mut update(&locks, &holder, IfTaken::Wait));
    let mut waits = update(&locks, &called, IfTaken::WaitBriefly);
    assert!(poll_in_turn(&called, &mut waits).is_pending() && !called.is_called());
    locks.release_transaction(&holder, Lsn(100));
    assert!(called.is_called() && locks.holders_of(&tag()).is_empty(), "LKM-17");
    assert!(poll(&mut waits).is_pending() && called.is_called(), "it takes the lock only with its turn");
    assert!(is_refused(&mut update(&locks, &other, IfTaken::Fail)), "LKM-18");
    assert!(!given(&mut ask(&locks, &other, LockMode::RowKeyShare, IfTaken::Wait)).waited, "the modes agree");
    locks.release_transaction(&other, Lsn::ZERO);
    let mut behind = update(&locks, &other, IfTaken::Wait);
    assert!(poll(&mut behind).is_pending(), "LKM-18");
    assert_eq!(locks.blockers(4), [2]);
    assert_eq!(given(&mut update(&locks, &brief, IfTaken::FailBriefly)), Granted { dep_lsn: Lsn(100), waited: false });
    assert!(poll_in_turn(&called, &mut waits).is_pending() && !called.is_called(), "another has it again");
    assert!(is_refused(&mut update(&locks, &holder, IfTaken::FailBriefly)));
    locks.release_transaction(&brief, Lsn(110));
    assert!(called.is_called());
    assert_eq!(takes(&called, &mut waits), Granted { dep_lsn: Lsn(110), waited: true });
    assert!(poll(&mut behind).is_pending() && !called.is_called());
    locks.release_transaction(&called, Lsn(120));
    assert_eq!(given(&mut behind).dep_lsn, Lsn(120));
    assert_eq!(locks.history().records().len(), 2, "each wait is told once");
    locks.release_transaction(&other, Lsn::ZERO);
    assert!(locks.locks().is_empty());
}

/// LKM-17: a waiter that gives up, or that another transaction keeps from the lock, passes its call on.
#[test]
fn no_call_is_lost() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=5).map(|pid| locks.register(pid)).collect();
    given(&mut update(&locks, &owners[0], IfTaken::Wait));
    let mut first = update(&locks, &owners[1], IfTaken::WaitBriefly);
    let mut long = update(&locks, &owners[2], IfTaken::Wait);
    let mut third = update(&locks, &owners[3], IfTaken::WaitBriefly);
    for future in [&mut first, &mut long, &mut third] {
        assert!(poll(future).is_pending());
    }
    locks.release_transaction(&owners[0], Lsn::ZERO);
    assert!(owners[1].is_called() && !owners[3].is_called(), "a longer transaction stands between them");
    drop(first);
    assert!(!given(&mut long).dep_lsn.0 > 0 && !owners[3].is_called());
    locks.release_transaction(&owners[2], Lsn::ZERO);
    assert!(owners[3].is_called());
    let mut late = update(&locks, &owners[4], IfTaken::Wait);
    assert!(poll(&mut late).is_pending());
    drop(third);
    given(&mut late);
    locks.release_transaction(&owners[4], Lsn::ZERO);
    assert!(locks.locks().is_empty());
}

/// LKM-17, LKM-18: waiters have the lock one after the other, in their order; each request that goes ahead of them calls one more, up to so many.
#[test]
fn each_that_goes_ahead_calls_one_more() {
    let locks = LockManager::new();
    let owners: Vec<_> = (1..=3 * CALLED_MAX as i32).map(|pid| locks.register(pid)).collect();
    let other = locks.register(0);
    given(&mut update(&locks, &other, IfTaken::Wait));
    let mut waits: Vec<_> = owners.iter().map(|owner| update(&locks, owner, IfTaken::WaitBriefly)).collect();
    assert!(waits.iter_mut().all(|wait| poll(wait).is_pending()));
    let called = || owners.iter().filter(|owner| owner.is_called()).count();
    locks.release_transaction(&other, Lsn::ZERO);
    let (alone, beside) = owners.iter().zip(&mut waits).enumerate().partition::<Vec<_>, _>(|(at, _)| *at < CALLED_MAX);
    for (number, (owner, wait)) in alone {
        assert!(called() == 1 && owner.is_called(), "LKM-18: the one of number {number}, not {}", called());
        takes(owner, wait);
        locks.release_transaction(owner, Lsn::ZERO);
    }
    for number in 1..=2 * CALLED_MAX {
        assert_eq!(called(), number.min(CALLED_MAX), "LKM-17");
        given(&mut update(&locks, &other, IfTaken::FailBriefly));
        locks.release_transaction(&other, Lsn::ZERO);
    }
    for (number, (owner, wait)) in beside {
        assert!(owner.is_called() && called() <= CALLED_MAX, "{number}: {} are called", called());
        takes(owner, wait);
        locks.release_transaction(owner, Lsn::ZERO);
    }
    assert!(locks.locks().is_empty());
}

/// The tasks that are to be polled, in their order.
struct RunQueue(Mutex<VecDeque<usize>>);

struct Task(usize, Arc<RunQueue>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.1.0.lock().push_back(self.0);
    }
}

/// What a thousand sessions that update one row do to its queue, after one transaction has had the row for long: how many stand in it, each
/// time when every session has been polled once more on average. The sessions have one thread; a task that is woken is polled after all that
/// were woken before it.
fn queue_after_a_long_transaction(ways: (IfTaken, IfTaken), rounds: usize) -> Vec<usize> {
    const SESSIONS: usize = 200;
    let (tries, waits) = ways;
    let locks = LockManager::new();
    let owners: Vec<_> = (0..SESSIONS as i32).map(|pid| locks.register(pid + 1)).collect();
    let long = locks.register(0);
    let run = Arc::new(RunQueue(Mutex::new("test/run_queue", (0..SESSIONS).collect())));
    let wakers: Vec<Waker> = (0..SESSIONS).map(|task| Waker::from(Arc::new(Task(task, run.clone())))).collect();
    let mut waiting: Vec<Option<Acquire<'_>>> = (0..SESSIONS).map(|_| None).collect();
    given(&mut update(&locks, &long, IfTaken::Wait));
    let (mut lengths, mut polls) = (Vec::new(), 0);
    while lengths.len() < rounds {
        let task = run.0.lock().pop_front();
        let Some(task) = task else {
            assert!(locks.holds_for_transaction(&long), "LKM-17: a call was lost");
            locks.release_transaction(&long, Lsn::ZERO); // all wait
            continue;
        };
        polls += 1;
        if polls % SESSIONS == 0 {
            lengths.push(waiting.iter().flatten().count());
        }
        let owner = &owners[task];
        if waiting[task].is_none() && is_refused(&mut update(&locks, owner, tries)) {
            waiting[task] = Some(update(&locks, owner, waits));
        }
        if let Some(wait) = &mut waiting[task] {
            owner.has_turn(true);
            let polled = wait.as_mut().poll(&mut Context::from_waker(&wakers[task]));
            owner.has_turn(false);
            if polled.is_pending() {
                continue;
            }
            waiting[task] = None;
        }
        locks.release_transaction(owner, Lsn::ZERO);
        wakers[task].wake_by_ref(); // its client sends the next statement
    }
    lengths
}

/// LKM-17 and LKM-18: a queue that one long transaction has made is gone when each session has been polled a few times; where the lock is handed over it
/// stays for ever.
#[test]
fn a_queue_of_brief_waiters_dissolves() {
    let lengths = queue_after_a_long_transaction((IfTaken::FailBriefly, IfTaken::WaitBriefly), 20);
    assert!(lengths[0] > 190 && lengths[6..].iter().all(|length| *length == 0), "{lengths:?}");
    let handed_over = queue_after_a_long_transaction((IfTaken::Fail, IfTaken::Wait), 20);
    assert!(handed_over[6..].iter().all(|length| *length > 190), "{handed_over:?}");
}
