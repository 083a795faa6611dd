//! Tests of requests that step aside, in virtual time: a schema change that waits behind a long transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_base::sync::sleep;
use clearway_base::testkit::{self, Sim};
use clearway_base::waits::clock;
use clearway_storage::ids::Lsn;

use crate::lockmgr::modes::LockMode;
use crate::lockmgr::owner::{LockScope, Owner};
use crate::lockmgr::step_aside::StepAsideTerms;
use crate::lockmgr::tag::LockTag;
use crate::lockmgr::{Granted, IfTaken, LockError, LockManager, Request};

const TABLE: LockTag = LockTag::Relation { database: 1, relation: 77 };
const WINDOW: Duration = Duration::from_millis(50);
const MS: u64 = 1_000_000;

fn request<'a>(owner: &'a Arc<Owner>, mode: LockMode) -> Request<'a> {
    let (scope, if_taken) = (LockScope::Transaction, IfTaken::Wait);
    Request { owner, tag: TABLE, mode, scope, if_taken, implicit: None, looks: false }
}

async fn ddl(
    locks: Arc<LockManager>,
    owner: Arc<Owner>,
    terms: Option<StepAsideTerms>,
) -> (Result<Granted, LockError>, u64) {
    let request = request(&owner, LockMode::AccessExclusive);
    let got = match terms {
        Some(terms) => locks.acquire_stepping_aside(request, terms).await,
        None => locks.acquire(request).await,
    };
    let at_ns = clock::now_ns();
    if got.is_ok() {
        locks.release_transaction(&owner, Lsn::ZERO);
    }
    (got, at_ns)
}

/// A transaction holds the table for `held_ms`, a schema change comes, and then a writer every seven milliseconds. Returns what became of
/// the schema change and when, in milliseconds since the transaction began, and the longest wait of a writer.
fn scene(held_ms: u64, terms: Option<StepAsideTerms>) -> (Result<Granted, LockError>, u64, u64) {
    Sim::new(7)
        .block_on(async move {
            let locks = Arc::new(LockManager::new());
            let (long, change) = (locks.register(1), locks.register(2));
            let begun_ns = clock::now_ns();
            locks.acquire(request(&long, LockMode::RowExclusive)).await.expect("free");
            let over = Arc::new(AtomicBool::new(false));
            let change = testkit::spawn("ddl", {
                let (locks, over) = (locks.clone(), over.clone());
                async move {
                    let ended = ddl(locks, change, terms).await;
                    over.store(true, Ordering::SeqCst);
                    ended
                }
            });
            let writers = testkit::spawn("writers", {
                let (locks, over) = (locks.clone(), over.clone());
                async move {
                    let mut longest_ns = 0;
                    for pid in 0..held_ms / 14 {
                        sleep(Duration::from_millis(7)).await;
                        let owner = locks.register(100 + pid as i32);
                        let came_ns = clock::now_ns();
                        locks.acquire(request(&owner, LockMode::RowExclusive)).await.expect("a lock");
                        longest_ns = longest_ns.max(clock::now_ns() - came_ns);
                        if !over.load(Ordering::SeqCst) {
                            assert!(locks.locks().iter().any(|row| row.pid == 2 && !row.granted), "pg_locks shows it");
                            assert!(locks.blockers(2).contains(&1), "pg_blocking_pids names the long transaction");
                        }
                        locks.unregister(&owner);
                    }
                    longest_ns
                }
            });
            sleep(Duration::from_millis(held_ms)).await;
            over.store(true, Ordering::SeqCst);
            locks.release_transaction(&long, Lsn::ZERO);
            let (got, at_ns) = change.await;
            let longest_ns = writers.await;
            assert!(locks.locks().is_empty());
            (got, (at_ns - begun_ns) / MS, longest_ns / MS)
        })
        .expect("the scene ends")
}

#[test]
fn newcomers_wait_no_longer_than_the_window() {
    let terms = StepAsideTerms { window: WINDOW, rounds: Some(1_000), fails: false };
    let (got, at_ms, longest_ms) = scene(5_000, Some(terms));
    assert!(got.is_ok());
    assert!(longest_ms > 0 && longest_ms <= 50, "a writer waited {longest_ms} ms");
    assert!((5_000..=5_100).contains(&at_ms), "the change came at {at_ms} ms");
}

#[test]
fn after_the_last_round_it_stays_in_the_queue_or_fails() {
    let (got, at_ms, longest_ms) = scene(2_000, Some(StepAsideTerms { window: WINDOW, rounds: Some(3), fails: true }));
    assert!(matches!(got, Err(LockError::NotAvailable)), "{got:?}");
    assert!((300..400).contains(&at_ms) && longest_ms <= 50, "after {at_ms} ms");
}

#[test]
fn without_a_window_whoever_comes_later_waits_for_its_end() {
    for terms in [None, Some(StepAsideTerms { window: WINDOW, rounds: Some(0), fails: false })] {
        let (got, at_ms, longest_ms) = scene(2_000, terms);
        assert!(got.is_ok());
        assert_eq!(at_ms, 2_000);
        assert!(longest_ms > 1_900, "a writer waited {longest_ms} ms");
    }
}

#[test]
fn it_steps_aside_for_ever_unless_told_otherwise() {
    let terms = StepAsideTerms { window: WINDOW, rounds: None, fails: false };
    let (got, at_ms, longest_ms) = scene(600_000, Some(terms));
    assert!(got.is_ok());
    assert!(longest_ms > 0 && longest_ms <= 50, "a writer waited {longest_ms} ms in ten minutes");
    assert!((600_000..=600_100).contains(&at_ms), "the change came at {at_ms} ms");
}

#[test]
fn without_a_window_nobody_is_held_back() {
    let (got, at_ms, longest_ms) =
        scene(5_000, Some(StepAsideTerms { window: Duration::ZERO, rounds: None, fails: false }));
    assert!(got.is_ok());
    assert_eq!(longest_ms, 0, "a writer waited");
    assert!((5_000..=5_100).contains(&at_ms), "the change came at {at_ms} ms");
}
