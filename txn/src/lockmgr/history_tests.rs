//! Waits whose direct blocker and whose end of the chain are known: the history has to name both.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use clearway_base::sync::Mutex;
use clearway_base::waits::VirtualClock;
use clearway_storage::ids::{Lsn, TreeId};

use super::super::{
    AdvisoryKey, Granted, IfTaken, LockError, LockManager, LockMode, LockScope, LockTag, Owner, Request, RequestState,
};
use super::*;

type Acquire<'a> = Pin<Box<dyn Future<Output = Result<Granted, LockError>> + Send + 'a>>;

fn row(n: u8) -> LockTag {
    LockTag::Row { tree: TreeId(7), key: Arc::from([n].as_slice()) }
}

fn ask<'a>(locks: &'a LockManager, owner: &'a Arc<Owner>, tag: LockTag, mode: LockMode) -> Acquire<'a> {
    let scope = LockScope::Transaction;
    Box::pin(locks.acquire(Request { owner, tag, mode, scope, if_taken: IfTaken::Wait, implicit: None, looks: false }))
}

fn poll(future: &mut Acquire<'_>) -> Poll<Result<Granted, LockError>> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn says(owner: &Owner, text: &str, digest: u64) {
    owner.statement_begins(digest);
    owner.statement(&Arc::from(text));
    owner.statement_opens(0);
}

/// Remembers every wait, however short.
fn locks() -> LockManager {
    let locks = LockManager::new();
    locks.history().remember_from(0);
    locks
}

#[test]
fn the_statement_that_took_the_lock_is_named_and_not_the_last() {
    let locks = locks();
    let (a, b) = (locks.register(1), locks.register(2));
    a.begin();
    says(&a, "select 0", 1);
    says(&a, "update t set v = 1 where id = 1", 2);
    assert!(poll(&mut ask(&locks, &a, row(1), LockMode::RowUpdate)).is_ready());
    (1..=4).for_each(|n| says(&a, &format!("select {n}"), 3));
    b.begin();
    says(&b, "delete from t where id = 1", 4);
    let mut wait = ask(&locks, &b, row(1), LockMode::RowUpdate);
    assert!(poll(&mut wait).is_pending());
    let live = locks.waits();
    assert_eq!((live.len(), live[0].outcome), (1, Outcome::Waiting));
    locks.release_transaction(&a, Lsn(1));
    a.begin();
    says(&a, "select 'another transaction'", 5);
    assert!(poll(&mut wait).is_ready());
    let records = locks.history().records();
    for record in [&live[0], &*records[0]] {
        let blocker = record.blocker.as_ref().expect("a blocker");
        assert_eq!((blocker.pid, blocker.ago), (1, 4));
        assert_eq!(blocker.taken_by.as_deref(), Some("update t set v = 1 where id = 1"));
        assert_eq!(blocker.latest.as_deref(), Some("select 4"));
        assert_eq!(record.root.as_ref().map(|root| root.pid), Some(1));
        assert_eq!((record.depth, record.waiter.latest.as_deref()), (1, Some("delete from t where id = 1")));
    }
    assert_eq!(records[0].outcome, Outcome::Granted);
}

/// The same prepared statement, five times.
#[test]
fn each_execution_of_one_text_counts() {
    let locks = locks();
    let (a, b) = (locks.register(1), locks.register(2));
    a.begin();
    let text: Arc<str> = "update t set v = v + 1 where id = $1".into();
    for n in 0..5 {
        a.statement_begins(9);
        a.statement(&text);
        // `open_statement` says it again.
        a.statement(&text);
        a.statement_opens(n);
        assert!(poll(&mut ask(&locks, &a, row(n as u8), LockMode::RowUpdate)).is_ready());
    }
    says(&b, "other", 1);
    let mut wait = ask(&locks, &b, row(1), LockMode::RowUpdate);
    assert!(poll(&mut wait).is_pending());
    assert_eq!(locks.waits()[0].blocker.as_ref().map(|b| b.ago), Some(3));
}

/// Rows, a table and an advisory lock; the chain is closed from its end, so that every wait began before the next link was there.
#[test]
fn the_head_of_a_chain_of_five_is_the_root_of_all() {
    let locks = locks();
    let owners: Vec<_> = (1..=5).map(|pid| locks.register(pid)).collect();
    let tags = [
        row(1),
        LockTag::Relation { database: 1, relation: 9 },
        LockTag::Advisory { database: 1, key: AdvisoryKey::One(7) },
        row(2),
    ];
    let mode =
        |tag: &LockTag| if matches!(tag, LockTag::Row { .. }) { LockMode::RowUpdate } else { LockMode::Exclusive };
    for (owner, tag) in owners.iter().zip(&tags) {
        owner.begin();
        says(owner, &format!("take {}", owner.pid()), owner.pid() as u64);
        assert!(poll(&mut ask(&locks, owner, tag.clone(), mode(tag))).is_ready());
        says(owner, "later", 0);
    }
    let mut waits: Vec<_> =
        (1..5).rev().map(|n| ask(&locks, &owners[n], tags[n - 1].clone(), mode(&tags[n - 1]))).collect();
    waits.iter_mut().for_each(|wait| assert!(poll(wait).is_pending()));
    locks.background_scan(u64::MAX);
    for wait in locks.waits() {
        let root = wait.root.expect("a root");
        assert_eq!((root.pid, root.taken_by.as_deref(), root.ago), (1, Some("take 1"), 1), "of {}", wait.waiter.pid);
        assert_eq!(wait.depth as i32, wait.waiter.pid - 1);
    }
}

#[test]
fn equal_waits_fold_and_none_is_lost() {
    let locks = locks();
    let owners: Vec<_> = (1..=2).map(|pid| locks.register(pid)).collect();
    const ROUNDS: u64 = 200;
    for n in 0..ROUNDS {
        let (holder, waiter) = (&owners[n as usize % 2], &owners[(n as usize + 1) % 2]);
        for owner in [holder, waiter] {
            owner.begin();
            says(owner, &format!("update t set v = {n} where id = 1"), 5);
        }
        assert!(poll(&mut ask(&locks, holder, row(1), LockMode::RowUpdate)).is_ready());
        let mut wait = ask(&locks, waiter, row(1), LockMode::RowUpdate);
        assert!(poll(&mut wait).is_pending());
        locks.release_transaction(holder, Lsn(n));
        assert!(poll(&mut wait).is_ready());
        drop(wait);
        locks.release_transaction(waiter, Lsn(n));
    }
    let records = locks.history().records();
    assert_eq!(records.iter().map(|record| record.count).sum::<u64>(), ROUNDS, "HIS-2");
    let folded: Vec<_> = records.iter().filter(|record| record.count > 1).collect();
    assert_eq!(folded.len(), 1);
    assert_eq!(folded[0].histogram.iter().sum::<u64>(), folded[0].count);
    assert!(folded[0].total_ns >= folded[0].waited_ns, "its longest is one of them");
    assert!(records.len() < 20, "HIS-1: {}", records.len());
}

/// HIS-2, whenever a minute turns; what was seen is there ten minutes later.
#[test]
fn no_wait_is_lost_when_the_minute_turns() {
    let time = Arc::new(VirtualClock::new());
    let _installed = time.install();
    let locks = locks();
    let (holder, waiter) = (locks.register(1), locks.register(2));
    const ROUNDS: u64 = 300;
    const STEP_NS: u64 = 1_999_999_999;
    for n in 0..ROUNDS {
        for owner in [&holder, &waiter] {
            owner.begin();
            says(owner, "update t set v = 1 where id = 1", 5);
        }
        assert!(poll(&mut ask(&locks, &holder, row(1), LockMode::RowUpdate)).is_ready());
        let mut wait = ask(&locks, &waiter, row(1), LockMode::RowUpdate);
        assert!(poll(&mut wait).is_pending());
        time.advance(STEP_NS);
        locks.release_transaction(&holder, Lsn(n));
        assert!(poll(&mut wait).is_ready());
        drop(wait);
        locks.release_transaction(&waiter, Lsn(n));
    }
    let sums = || {
        let records = locks.history().records();
        (records.len(), records.iter().map(|r| r.count).sum::<u64>(), records.iter().map(|r| r.total_ns).sum::<u64>())
    };
    let seen = sums();
    assert_eq!((seen.1, seen.2), (ROUNDS, ROUNDS * STEP_NS));
    // Ten minutes have turned: five records of each, and the group.
    assert!((50..=56).contains(&seen.0), "{}", seen.0);
    time.advance(10 * MINUTE_NS);
    assert_eq!(sums(), seen);
}

/// The books count a wait only if the session stood still.
#[test]
fn a_lock_that_is_granted_before_the_session_stands_still_is_no_wait() {
    let locks = locks();
    let (a, b) = (locks.register(1), locks.register(2));
    let scope = LockScope::Transaction;
    let queued = |owner| {
        let mode = LockMode::RowUpdate;
        locks.begin(&Request { owner, tag: row(1), mode, scope, if_taken: IfTaken::Wait, implicit: None, looks: false })
    };
    assert!(matches!(queued(&a), Ok(RequestState::Granted(_))));
    let Ok(RequestState::Queued(pending)) = queued(&b) else { panic!("it is taken") };
    locks.release_transaction(&a, Lsn(1));
    let mut wait: Acquire<'_> = Box::pin(pending.wait());
    assert!(poll(&mut wait).is_ready());
    assert!(locks.history().records().is_empty(), "HIS-2");
}

#[test]
fn groups_and_records_are_bounded_and_texts_are_cut() {
    let locks = locks();
    let (a, b) = (locks.register(1), locks.register(2));
    let long = "ä".repeat(TEXT_MAX);
    for n in 0..2 * RECORDS_MAX as u64 {
        let tag = LockTag::Advisory { database: 1, key: AdvisoryKey::One(n as i64) };
        says(&a, &long, n);
        assert!(poll(&mut ask(&locks, &a, tag.clone(), LockMode::Exclusive)).is_ready());
        let mut wait = ask(&locks, &b, tag, LockMode::Exclusive);
        assert!(poll(&mut wait).is_pending());
        drop(wait);
        locks.release_transaction(&a, Lsn(n));
    }
    let records = locks.history().records();
    assert!(records.len() <= RECORDS_MAX + FOLDS_MAX, "HIS-1");
    assert!(records.iter().all(|r| r.outcome == Outcome::Cancelled));
    let taken = records.last().and_then(|r| r.blocker.clone()).and_then(|b| b.taken_by).expect("a statement");
    assert!(taken.len() <= TEXT_MAX + 3 && taken.ends_with("..."), "HIS-1");
}

/// Keeps what the log is told.
struct LogLines(Arc<Mutex<Vec<String>>>);

impl Witness for LogLines {
    fn facts(&self, pid: i32) -> Facts {
        Facts { application: format!("app {pid}"), ..Facts::default() }
    }
    fn gave_up(&self, _: i32) -> Option<Outcome> {
        Some(Outcome::Timeout)
    }
    fn waits_long(&self, record: &WaitRecord) {
        self.0.lock().push(format!("{} waits", record.waiter.facts.application));
    }
    fn waited_long(&self, record: &WaitRecord) {
        self.0.lock().push(format!("{} {}", record.waiter.facts.application, record.outcome.name()));
    }
    fn context(&self, _: &DeadlockReport) -> String {
        "while testing".to_owned()
    }
    fn deadlock(&self, report: &DeadlockReport) {
        let apps: Vec<_> = report.participants.iter().map(|p| p.facts.application.clone()).collect();
        self.0.lock().push(format!("deadlock {} {}", apps.join(","), report.context));
    }
}

#[test]
fn the_log_hears_of_a_long_wait_once_of_its_end_and_of_deadlocks() {
    let locks = LockManager::new();
    let lines = Arc::new(Mutex::new("test/told", Vec::new()));
    locks.history().witnessed_by(|| Box::new(LogLines(lines.clone())));
    let (a, b) = (locks.register(1), locks.register(2));
    assert!(poll(&mut ask(&locks, &a, row(1), LockMode::RowUpdate)).is_ready());
    assert!(poll(&mut ask(&locks, &b, row(2), LockMode::RowUpdate)).is_ready());
    let mut first = ask(&locks, &b, row(1), LockMode::RowUpdate);
    assert!(poll(&mut first).is_pending());
    let later = clearway_base::waits::now_ns() + 5 * TOLD_NS;
    locks.look_at_waits(later);
    locks.look_at_waits(later);
    assert_eq!(*lines.lock(), ["app 2 waits"]);
    let mut second = ask(&locks, &a, row(2), LockMode::RowUpdate);
    assert!(matches!(poll(&mut second), Poll::Ready(Err(LockError::Deadlock(_)))));
    drop(first);
    assert_eq!(lines.lock()[1..], ["deadlock app 1,app 2 while testing", "app 2 timeout"]);
    assert_eq!(locks.history().take_changed(), (true, true));
}
