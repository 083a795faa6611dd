//! One flipped bit anywhere in a database: the right answer or a typed error, never a panic, never a wrong answer.

use clearway_storage::error::StorageError;
use clearway_tests::crash::flips;
use clearway_tests::crash::sweep::{Ended, Stopper, WORK, World};
use clearway_tests::crash::workload::Size;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Flips per file; the first bytes of each file are all among them.
const FLIPS: u64 = 24;

fn sweep_files(seed: u64, stopper: Stopper) {
    let mut world = World::new(seed, Size::default());
    world.live(WORK, stopper).expect("undisturbed");
    let world = world.fork();
    let files = flips::files(&world.disk).expect("the files of a database");
    assert!(files.len() > 3, "too few files: {files:?}");
    let unrecorded = flips::unrecorded(&world.disk).expect("the log of a database");
    let mut refused = 0;
    for (path, len) in files {
        for flip in 0..FLIPS {
            let offset = match flip {
                0..8 => (flip * 5).min(len - 1),
                _ => (flip - 8) * len / (FLIPS - 8),
            };
            let bit = (flip % 8) as u8;
            let place = format!("seed {seed}, {stopper:?}, bit {bit} at {offset} of {}", path.display());
            let flipped = AssertUnwindSafe(|| flips::recover_flipped(&world, &path, offset, bit));
            let Ok(answer) = catch_unwind(flipped) else { panic!("{place}: a panic") };
            match answer {
                Ok(()) => {}
                Err(Ended::Storage(StorageError::Corruption(_))) => refused += 1,
                Err(Ended::Storage(err)) => panic!("{place}: not a typed error of damage: {err}"),
                // Nothing tells the end of the log that no record vouches for from an unfinished write.
                Err(Ended::Wrong(_)) if unrecorded.holds(&path, offset) => refused += 1,
                Err(Ended::Wrong(wrong)) => panic!("{place}: {wrong}"),
            }
        }
    }
    assert!(refused > 0, "no flip was noticed");
}

#[test]
fn a_flipped_bit_in_a_closed_database_is_told_or_does_no_harm() {
    sweep_files(3, Stopper::None);
}

#[test]
fn a_flipped_bit_after_a_crash_is_told_or_does_no_harm() {
    for point in [450, 940] {
        sweep_files(4, Stopper::Power(point));
    }
}
