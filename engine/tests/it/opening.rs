//! An opening reports its progress while it goes on.

use std::path::Path;
use std::sync::Arc;

use clearway_base::for_each_seed;
use clearway_base::testkit::{self, Sim, SimOptions};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::db::{Db, DbOptions};
use clearway_engine::session::{Durability, TxnOptions};
use clearway_storage::recovery::progress::{Phase, Shown};

use super::support::{DATABASE, create, row, simulated};

/// Rows behind the last checkpoint, and no end: the world stops.
async fn fill(disk: SimDisk) {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let shape = create(&mut session, true, true).await;
    for id in 0..100 {
        session.begin(TxnOptions::default());
        session.insert(&shape, &row(id, id, &"x".repeat(300))).await.expect("inserted");
        session.commit(Durability::Wait).await.expect("committed");
    }
    disk.crash_at(disk.points() + 1);
    db.transactions().store().checkpoint().await.expect("nobody comes here");
}

#[test]
fn an_opening_that_recovers_shows_each_phase_in_order() {
    for_each_seed!(3, |seed| {
        let disk = SimDisk::new(seed);
        let options = || SimOptions { steps_max: 5_000_000 };
        let ended = Sim::with_options(seed, options()).block_on(fill(disk.clone()));
        assert!(ended.is_err(), "the world stops");
        let disk = disk.restart();
        let seen = Sim::with_options(seed, options()).block_on(async move {
            let mut options = DbOptions::new(Arc::new(disk.clone()), Path::new("/db"));
            options.store.wal.caller_flushes = false;
            let progress = Arc::clone(&options.store.progress);
            let watched = testkit::spawn("watcher", async move {
                let mut seen: Vec<Shown> = Vec::new();
                while seen.last().is_none_or(|last| last.phase != Phase::Loading) {
                    let now = progress.shown();
                    if seen.last() != Some(&now) {
                        seen.push(now);
                    }
                    testkit::yield_now().await;
                }
                seen
            });
            let db = Db::open(options, |name, task| {
                testkit::spawn(name, task);
            });
            let db = db.await.expect("opened");
            let seen = watched.await;
            db.close().await.expect("closed");
            seen
        });
        let seen = seen.expect("the run ends");
        let mut phases: Vec<Phase> = seen.iter().map(|shown| shown.phase).collect();
        phases.dedup();
        assert_eq!(phases, [Phase::Begins, Phase::Analysis, Phase::Redo, Phase::Loading], "{seen:?}");
        assert!(seen.iter().all(|shown| shown.done <= shown.all), "{seen:?}");
        for phase in [Phase::Analysis, Phase::Redo] {
            let of_phase: Vec<&Shown> = seen.iter().filter(|shown| shown.phase == phase).collect();
            assert!(of_phase.is_sorted_by_key(|shown| shown.done), "{of_phase:?}");
            assert!(of_phase.last().is_some_and(|shown| shown.done > 0 && shown.all > 20_000), "{of_phase:?}");
        }
    });
}
