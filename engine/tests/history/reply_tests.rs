//! Sweeps of crashes, short and long.
//!
//! Long form: `CLEARWAY_POINTS=25000 cargo test --release -p clearway-engine --test history -- --ignored --nocapture replies_long`.

use clearway_base::for_each_seed;
use clearway_base::vfs::sim::SimDisk;

use super::oracle::Oracle;
use super::replies::{Swept, sweep, whole};
use super::rows::{new_notes, run};

#[test]
fn rows_and_indexes_are_what_the_order_of_commits_says() {
    let mut commits = 0;
    for_each_seed!(30, |seed| {
        let (disk, notes) = (SimDisk::new(seed), new_notes());
        run(seed, &disk, &notes, false).expect("the run ends");
        let history = notes.lock().history();
        let found = Oracle::new(&history).isolation();
        assert!(found.is_empty(), "{found:#?}");
        commits += history.iter().filter(|txn| !txn.writes.is_empty() && txn.acknowledged).count();
    });
    assert!(commits > 20, "{commits} commits: nothing was tried");
}

#[test]
fn what_is_dropped_in_the_middle_leaves_nothing() {
    for_each_seed!(60, |seed| {
        whole(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
    });
}

#[test]
fn every_reply_is_true_of_what_a_crash_leaves() {
    let mut swept = Swept::default();
    for_each_seed!(6, |seed| sweep(seed, 25, &mut swept).unwrap_or_else(|wrong| panic!("{wrong}")));
    assert!(swept.given > 100 && swept.untold_lost > 0 && swept.untold_kept > 0, "nothing was tried: {swept:?}");
}

#[test]
#[ignore = "takes minutes: the long form"]
fn replies_long() {
    let wanted = std::env::var("CLEARWAY_POINTS").map_or(25_000, |n| n.parse().expect("a number of crash points"));
    let start = std::env::var("CLEARWAY_SEED_START").map_or(1_000, |n| n.parse().expect("a seed"));
    let mut swept = Swept::default();
    for seed in start.. {
        if swept.points >= wanted {
            break;
        }
        if let Err(wrong) = sweep(seed, 3, &mut swept) {
            panic!("seed {seed}: {wrong}");
        }
    }
    println!("from seed {start}: {swept:?}");
}
