//! The crash sweep finds mistakes that are planted in recovery: run with the feature `mutations`.
#![cfg(feature = "mutations")]

use clearway_storage::mutation::{Mutation, plant};
use clearway_tests::crash::sweep;
use clearway_tests::crash::workload::Size;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Not here: `NoTailRewrite`, which only the crash of a process can show (what survives a power failure of the
/// simulated disk is durable), and `SameEpoch`, which needs two ends of a log that fall on each other by chance.
const FOUND: [Mutation; 10] = [
    Mutation::SkipLogSync,
    Mutation::NoUndoNext,
    Mutation::RedoAlways,
    Mutation::NoSavedUndo,
    Mutation::ControlBeforeCheckpoint,
    Mutation::PageBeforeLog,
    Mutation::RecycleTooMuch,
    Mutation::DropPendingFrees,
    Mutation::NoLosers,
    Mutation::RedoFromBegin,
];

/// What the sweep says of the seeds, a panic included; none if it finds nothing wrong.
fn first_finding() -> Option<String> {
    let size = Size::default();
    for seed in 1..=12 {
        let swept = catch_unwind(AssertUnwindSafe(|| {
            let points = sweep::points(seed, size)?;
            (1 + seed..=points).step_by(7).try_for_each(|point| {
                sweep::crash_at(seed, size, point).map_err(|wrong| format!("point {point}: {wrong}"))
            })
        }));
        match swept {
            Ok(Ok(())) => {}
            Ok(Err(wrong)) => return Some(format!("seed {seed}, {wrong}")),
            Err(_) => return Some(format!("seed {seed}, a panic")),
        }
    }
    None
}

// One test, since a mistake is planted for the whole process.
#[test]
fn each_planted_mistake_is_found() {
    let mut missed = Vec::new();
    for mutation in FOUND {
        plant(mutation);
        match first_finding() {
            Some(finding) => println!("{mutation:?}: {finding}"),
            None => missed.push(mutation),
        }
    }
    plant(Mutation::None);
    assert!(missed.is_empty(), "not found: {missed:?}");
}
