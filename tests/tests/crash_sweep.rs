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
