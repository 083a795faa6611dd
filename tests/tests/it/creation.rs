//! A power cut while a database is being created.

use clearway_base::sync::block_on;
use clearway_base::testkit::{Sim, SimOptions};
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::{SimDisk, SimDiskOptions};
use clearway_tests::crash::sweep::{DIR, Running};
use std::path::Path;

/// NEW-1, NEW-2: whatever a power cut during the creation leaves, the next opening makes a database of it.
#[test]
fn a_creation_that_was_cut_off_is_taken_up_again() {
    let open_and_close = |seed: u64, disk: &SimDisk| {
        let (sim, disk) = (Sim::with_options(seed, SimOptions { steps_max: 1_000_000 }), disk.clone());
        sim.block_on(async move {
            let (running, _) = Running::open(&disk).await?;
            running.close().await
        })
    };
    clearway_base::for_each_seed!(6, |seed| {
        let whole = SimDisk::with_options(seed, SimDiskOptions::default());
        open_and_close(seed, &whole).expect("ends").expect("a database");
        let (mut unfinished, mut made) = (0, 0);
        for point in 1..=whole.points() {
            let disk = SimDisk::with_options(seed, SimDiskOptions::default());
            disk.crash_at(point);
            let _stopped = open_and_close(seed, &disk);
            let disk = disk.restart();
            let control = block_on(disk.list(Path::new(DIR))).is_ok_and(|all| all.iter().any(|e| e.name == "control"));
            (unfinished, made) = if control { (unfinished, made + 1) } else { (unfinished + 1, made) };
            if made > 20 {
                break; // From here on it is a recovery like others, which the sweeps of crashes look at.
            }
            match open_and_close(seed + 1, &disk) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("crash at point {point}: {error}"),
                Err(stuck) => panic!("crash at point {point}: {stuck:?}"),
            }
        }
        assert!(unfinished > 10, "the power went {unfinished} times during a creation");
    });
}
