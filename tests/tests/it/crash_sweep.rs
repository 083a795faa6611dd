//! The sweeps, short: some seeds, some points, some failing calls of each.

use clearway_tests::crash::workload::Size;
use clearway_tests::crash::{faults, stale, sweep};
use std::collections::BTreeSet;

#[test]
fn every_crash_leaves_what_was_acknowledged() {
    let size = Size::default();
    clearway_base::for_each_seed!(3, |seed| {
        let points = sweep::points(seed, size).expect("without a crash");
        // A step that shares no factor with what repeats in the workload; long form: the binary crash-sweep.
        for point in (1 + seed..=points).step_by(97) {
            if let Err(wrong) = sweep::crash_at(seed, size, point) {
                panic!("crash at point {point} of {points}: {wrong}");
            }
        }
    });
}

/// Chains of up to 600 pages, through a cache of 48 frames and a ring of 128 KiB.
#[test]
fn a_crash_in_a_chain_of_megabytes_leaves_what_was_acknowledged() {
    let size = Size::LONG_CHAINS;
    clearway_base::for_each_seed!(1, |seed| {
        let points = sweep::points(seed, size).expect("without a crash");
        assert!(points > 2000, "{points} points: no long chain");
        for point in (1 + seed..=points).step_by(points as usize / 8) {
            if let Err(wrong) = sweep::crash_at(seed, size, point) {
                panic!("crash at point {point} of {points}: {wrong}");
            }
        }
    });
}

#[test]
fn every_failing_call_is_told_and_loses_nothing() {
    let size = Size::default();
    clearway_base::for_each_seed!(1, |seed| {
        let all = faults::disturbances(seed, size).expect("undisturbed");
        let mut outcomes = BTreeSet::new();
        for what in all.into_iter().skip(seed as usize).step_by(29) {
            match faults::disturb(seed, size, what) {
                Ok(outcome) => drop(outcomes.insert(outcome)),
                Err(wrong) => panic!("{what:?}: {wrong}"),
            }
        }
        assert!(outcomes.len() > 1, "too much alike: {outcomes:?}");
    });
}

#[test]
fn records_behind_an_earlier_end_of_the_log_stay_dead() {
    clearway_base::for_each_seed!(16, |seed| {
        if let Err(wrong) = stale::stale_records(seed) {
            panic!("{wrong}");
        }
    });
}
