//! Crashes during backups and archiving: a short sweep; `BACKUP_POINTS=10000` makes it long.

use clearway_tests::crash::backups;
use clearway_tests::crash::workload::Size;

#[test]
fn every_crash_leaves_backups_that_are_whole_and_an_archive_without_a_hole() {
    let size = Size::default();
    let wanted = std::env::var("BACKUP_POINTS").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(24);
    clearway_base::for_each_seed!(2, |seed| {
        let points = backups::points(seed, size).expect("without a crash");
        for point in (1 + seed..=points).step_by((points / (wanted / 2).max(1)).max(1) as usize) {
            if let Err(wrong) = backups::crash_at(seed, size, point) {
                panic!("crash at point {point} of {points}: {wrong}");
            }
        }
    });
}
