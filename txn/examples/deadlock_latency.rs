//! How long a session waits until it is told that it closed a deadlock, with a thousand others waiting.
//!
//! `cargo run --release -p clearway-txn --example deadlock_latency [ROUNDS [WAITERS]]`
//!
//! Two owners hold a row each and ask for the other's row. Measured is the time from the second request, which closes the cycle, to its
//! error. The cases differ in where the other waiters wait: there are none; each waits for a row of its own; all wait for one other row; all
//! wait for one of the two rows of the cycle; they form a chain that ends at a holder of the cycle (each holds what the next one wants). The
//! cases take turns, one deadlock at a time.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use clearway_base::waits::now_ns;
use clearway_storage::ids::{Lsn, TreeId};
use clearway_txn::lockmgr::{Granted, IfTaken, LockError, LockManager, LockMode, LockScope, LockTag, Owner, Request};

type Acquire<'a> = Pin<Box<dyn Future<Output = Result<Granted, LockError>> + Send + 'a>>;

const CASES: [&str; 5] = [
    "nobody else waits",
    "each behind a row of its own",
    "all behind one other row",
    "all behind a row of the ring",
    "a chain that ends in the ring",
];

fn row(n: usize) -> LockTag {
    LockTag::Row { tree: TreeId(7), key: Arc::from(n.to_be_bytes().as_slice()) }
}

fn ask<'a>(locks: &'a LockManager, owner: &'a Arc<Owner>, n: usize) -> Acquire<'a> {
    let (tag, mode, scope) = (row(n), LockMode::RowNoKeyUpdate, LockScope::Transaction);
    Box::pin(async move {
        locks.acquire(Request { owner, tag, mode, scope, if_taken: IfTaken::Wait, implicit: None, looks: false }).await
    })
}

fn poll(future: &mut Acquire<'_>) -> Poll<Result<Granted, LockError>> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn granted(mut future: Acquire<'_>) {
    assert!(matches!(poll(&mut future), Poll::Ready(Ok(_))), "granted");
}

/// A lock table in which others wait as the case says, and a ring that is closed again and again.
struct Case {
    locks: LockManager,
    others: Vec<Arc<Owner>>,
    ring: [Arc<Owner>; 2],
}

/// The rows of the ring; the others' rows come behind them.
const A: usize = 0;
const B: usize = 1;
const OTHERS: usize = 2;

impl Case {
    fn new(waiters: usize) -> Case {
        let locks = LockManager::new();
        let owner = |pid: usize| locks.register(pid as i32);
        let ring = [owner(1), owner(2)];
        let others = (0..2 * waiters).map(|n| owner(n + 3)).collect();
        Case { locks, others, ring }
    }

    /// Has the others take their places; the waits must be kept.
    fn fill(&self, case: usize) -> Vec<Acquire<'_>> {
        let (holders, waiters) = self.others.split_at(self.others.len() / 2);
        let mut waits = Vec::new();
        let mut wait = |owner, n| {
            let mut future = ask(&self.locks, owner, n);
            assert!(poll(&mut future).is_pending(), "it waits");
            waits.push(future);
        };
        match case {
            1 => {
                for (n, (holder, waiter)) in holders.iter().zip(waiters).enumerate() {
                    granted(ask(&self.locks, holder, OTHERS + n));
                    wait(waiter, OTHERS + n);
                }
            }
            2 => {
                granted(ask(&self.locks, &holders[0], OTHERS));
                waiters.iter().for_each(|waiter| wait(waiter, OTHERS));
            }
            3 => waiters.iter().for_each(|waiter| wait(waiter, B)),
            4 => {
                // The first waits for the ring, each next one for the one before: a search that begins in the ring does not
                // meet them, one that begins at the end of the chain walks all of it.
                for (n, waiter) in waiters.iter().enumerate() {
                    granted(ask(&self.locks, waiter, OTHERS + n));
                }
                for (n, waiter) in waiters.iter().enumerate() {
                    wait(waiter, if n == 0 { B } else { OTHERS + n - 1 });
                }
            }
            _ => {}
        }
        waits
    }

    /// One deadlock; nanoseconds from the request that closed the ring to its error.
    fn deadlock(&self) -> u64 {
        let [first, second] = &self.ring;
        granted(ask(&self.locks, first, A));
        let mut waits = ask(&self.locks, first, B);
        assert!(poll(&mut waits).is_pending(), "the first waits for the second");
        let began = now_ns();
        let mut closes = ask(&self.locks, second, A);
        let told = poll(&mut closes);
        let took = now_ns() - began;
        assert!(matches!(told, Poll::Ready(Err(LockError::Deadlock(_)))), "the ring was seen: {told:?}");
        drop((waits, closes));
        self.locks.release_transaction(first, Lsn::ZERO);
        took
    }
}

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let (rounds, waiters) = (args.next().unwrap_or(2_000), args.next().unwrap_or(1_000));
    let cases: Vec<Case> = CASES.iter().map(|_| Case::new(waiters)).collect();
    // The second of the ring holds its row throughout, so that its waiters keep their places.
    cases.iter().for_each(|case| granted(ask(&case.locks, &case.ring[1], B)));
    let waits: Vec<_> = cases.iter().enumerate().map(|(n, case)| case.fill(n)).collect();
    let mut took = vec![Vec::with_capacity(rounds); cases.len()];
    for _ in 0..rounds {
        for (case, took) in cases.iter().zip(&mut took) {
            took.push(case.deadlock());
        }
    }
    println!("| {waiters} others wait | deadlocks | p50 us | p99 us | most us |\n|---|---:|---:|---:|---:|");
    for (name, mut took) in CASES.iter().zip(took) {
        took.sort_unstable();
        let at = |part: usize| took[(took.len() * part / 100).min(took.len() - 1)] as f64 / 1e3;
        println!("| {name} | {} | {:.1} | {:.1} | {:.1} |", took.len(), at(50), at(99), at(100));
    }
    drop(waits);
    let missed: u64 = cases.iter().map(|case| case.locks.archive().missed_by_fast_path()).sum();
    println!("\nmissed by the search at the start of a wait: {missed}");
}
