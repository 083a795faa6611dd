//! The crash sweep finds mistakes that are planted in recovery (run with the feature `mutations`).
#![cfg(feature = "mutations")]

use clearway_storage::mutation::{ALL, Mutation, plant};
use clearway_tests::crash::workload::Size;
use clearway_tests::crash::{stale, sweep};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn guarded(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("a panic".to_owned()))
}

/// What the sweep says of the seeds; none if it finds nothing wrong.
fn found_by_stops() -> Option<String> {
    let size = Size::default();
    let swept = |seed: u64| {
        guarded(|| {
            let points = sweep::points(seed, size)?;
            (1 + seed..=points).step_by(17).try_for_each(|point| {
                sweep::crash_at(seed, size, point).map_err(|wrong| format!("point {point}: {wrong}"))
            })
        })
    };
    (1..=12).find_map(|seed| swept(seed).err().map(|wrong| format!("seed {seed}, {wrong}")))
}

fn found_by_stale_records() -> Option<String> {
    (1..=64).find_map(|seed| guarded(|| stale::stale_records(seed)).err().map(|wrong| format!("seed {seed}, {wrong}")))
}

// One test, since a mistake is planted for the whole process.
#[test]
fn each_planted_mistake_is_found() {
    let mut missed = Vec::new();
    for mutation in ALL {
        plant(mutation);
        let found = match mutation {
            Mutation::SameEpoch => found_by_stale_records(),
            _ => found_by_stops(),
        };
        match found {
            Some(finding) => println!("{mutation:?}: {finding}"),
            None => missed.push(mutation),
        }
    }
    plant(Mutation::None);
    assert!(missed.is_empty(), "not found: {missed:?}");
}
