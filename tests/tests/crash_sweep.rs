//! The crash sweep, short: some seeds, some points of each.

use clearway_tests::crash::sweep;
use clearway_tests::crash::workload::Size;

#[test]
fn every_crash_leaves_what_was_acknowledged() {
    let size = Size::default();
    clearway_base::for_each_seed!(4, |seed| {
        let points = sweep::points(seed, size).expect("without a crash");
        // A step that shares no factor with what repeats in the workload; long form: the binary crash-sweep.
        for point in (1..=points).step_by(37) {
            if let Err(wrong) = sweep::crash_at(seed, size, point) {
                panic!("crash at point {point} of {points}: {wrong}");
            }
        }
    });
}

/// Crashes that once found a mistake; what a seed runs into changes with the program, so each has a name of its own.
fn regression(seed: u64, point: u64) {
    if let Err(wrong) = sweep::crash_at(seed, Size::default(), point) {
        panic!("seed {seed}, crash at point {point}: {wrong}");
    }
}

#[test]
fn a_first_opening_that_crashed_leaves_no_file_behind() {
    (1..=38).for_each(|point| regression(27, point));
}

#[test]
fn two_operations_of_a_record_on_one_page_are_both_applied_again() {
    regression(46, 297);
}
