//! Isolation and the rule of the replies: every acknowledged reply agrees with the data at the end of the run, also when the run ends with
//! a crash at any begin or end of an I/O.
//!
//! Long form: `CLEARWAY_SEEDS=1000 CLEARWAY_CRASHES=200 cargo test --release -p clearway-engine --test history`.

use std::sync::Arc;

use clearway_base::for_each_seed;
use clearway_base::sync::Mutex;
use clearway_base::testkit::{Rng, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::embedded::Isolation;

use super::checker::{Op, Outcome, check};
use super::world::{History, recover, run};

fn new_history() -> History {
    Arc::new(Mutex::new("test/history", Vec::new()))
}

fn isolated(seed: u64, isolation: Isolation) {
    let (disk, history) = (SimDisk::new(seed), new_history());
    let last = run(seed, &disk, isolation, &history).expect("the run ends");
    let found = check(&history.lock(), &last, isolation);
    assert!(found.is_empty(), "{found:#?}");
    let history = history.lock();
    let committed = history.iter().filter(|t| t.outcome == Outcome::Committed).count();
    let appends = last.values().map(Vec::len).sum::<usize>();
    assert!(committed > 30 && appends > 30, "{committed} committed, {appends} elements: nothing was tried");
    assert!(history.iter().all(|t| t.outcome != Outcome::Unknown));
}

#[test]
fn read_committed_has_no_g0_g1a_g1b_g1c() {
    for_each_seed!(20, |seed| isolated(seed, Isolation::ReadCommitted));
}

#[test]
fn repeatable_read_has_no_lost_update_and_no_read_skew() {
    for_each_seed!(20, |seed| isolated(seed, Isolation::RepeatableRead));
}

fn crashes_per_seed() -> u64 {
    std::env::var("CLEARWAY_CRASHES").ok().map_or(10, |n| n.parse().expect("a number of crashes"))
}

/// Returns how many transactions had been acknowledged, and how many were caught by a crash.
fn replies_hold(seed: u64) -> (usize, usize) {
    let isolation = if seed % 2 == 0 { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
    let whole = SimDisk::new(seed);
    run(seed, &whole, isolation, &new_history()).expect("the run ends");
    let mut rng = Rng::new(seed);
    let (mut acknowledged, mut unknown) = (0, 0);
    for _ in 0..crashes_per_seed() {
        let point = rng.range(1..whole.points());
        let (disk, history) = (SimDisk::new(seed), new_history());
        disk.crash_at(point);
        assert_eq!(run(seed, &disk, isolation, &history).err(), Some(Stop::Crashed), "point {point}");
        let last = recover(seed, &disk).unwrap_or_else(|stop| panic!("recovery after point {point}: {stop}"));
        let history = history.lock();
        let found = check(&history, &last, isolation);
        assert!(found.is_empty(), "after a crash at point {point}: {found:#?}");
        acknowledged += history.iter().filter(|t| t.outcome == Outcome::Committed).count();
        unknown += history.iter().filter(|t| t.outcome == Outcome::Unknown && has_append(&t.ops)).count();
    }
    (acknowledged, unknown)
}

fn has_append(ops: &[Op]) -> bool {
    ops.iter().any(|op| matches!(op, Op::Append(..)))
}

#[test]
fn every_reply_agrees_with_what_a_crash_leaves() {
    let (mut acknowledged, mut unknown) = (0, 0);
    for_each_seed!(4, |seed| {
        let met = replies_hold(seed);
        (acknowledged, unknown) = (acknowledged + met.0, unknown + met.1);
    });
    assert!(acknowledged > 0 && unknown > 0, "{acknowledged} acknowledged, {unknown} caught: nothing was tried");
}
