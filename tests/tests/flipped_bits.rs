//! One flipped bit anywhere in a database: the right answer or a typed error, never a panic, never a wrong answer.

use clearway_tests::crash::sweep;
use clearway_tests::crash::workload::Size;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Flips per file; the first bytes of each file are all among them.
const FLIPS: u64 = 24;

fn sweep_files(seed: u64, crash_at: Option<u64>) {
    let size = Size::default();
    let ran = sweep::run(seed, size, true, |disk| {
        if let Some(point) = crash_at {
            disk.crash_at(point);
        }
    });
    let base = ran.disk.restart();
    let files = sweep::files(&base).expect("the files of a database");
    assert!(files.len() > 3, "too few files: {files:?}");
    let mut refused = 0;
    for (path, len) in files {
        for flip in 0..FLIPS {
            let offset = match flip {
                0..8 => (flip * 5).min(len - 1),
                _ => (flip - 8) * len / (FLIPS - 8),
            };
            let bit = (flip % 8) as u8;
            let flipped = AssertUnwindSafe(|| sweep::recover_flipped(&base, &ran.history, &path, offset, bit));
            let place = format!("seed {seed}, crash at {crash_at:?}, bit {bit} at {offset} of {}", path.display());
            let Ok(answer) = catch_unwind(flipped) else { panic!("{place}: a panic") };
            let Err(wrong) = answer else { continue };
            // The end of the log that no later record vouches for looks like an unfinished write.
            let unvouched = crash_at.is_some()
                && path.extension().is_some_and(|extension| extension == "wal")
                && wrong.contains("was acknowledged, the log ends at");
            assert!(wrong.starts_with("recovery: ") || unvouched, "{place}: {wrong}");
            refused += 1;
        }
    }
    assert!(refused > 0, "no flip was noticed");
}

#[test]
fn a_flipped_bit_in_a_closed_database_is_told_or_does_no_harm() {
    sweep_files(3, None);
}

#[test]
fn a_flipped_bit_after_a_crash_is_told_or_does_no_harm() {
    for point in [250, 340] {
        sweep_files(4, Some(point));
    }
}
