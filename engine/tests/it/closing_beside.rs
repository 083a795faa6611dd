//! Closing beside the upkeep (BG-3): whatever the upkeep removes at that moment, nothing stands behind the end of the closed log.

use std::time::Duration;

use clearway_base::for_each_seed;
use clearway_base::testkit::{self, Sim, SimOptions};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::session::{Durability, StatementMode, TxnOptions};
use clearway_txn::transaction::Basis;

use super::support::{DATABASE, create, key, row, simulated};

const ROWS: i64 = 40;

/// Deletes all rows, which the upkeep then removes from the leaves, and closes some time later.
async fn deleted_and_closed(disk: SimDisk, later: Duration) {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let shape = create(&mut session, true, true).await;
    session.begin(TxnOptions::default());
    for id in 0..ROWS {
        session.insert(&shape, &row(id, id, "x")).await.expect("inserted");
    }
    session.commit(Durability::Wait).await.expect("committed");
    session.begin(TxnOptions::default());
    let statement = session.open_statement(&"delete".into(), StatementMode::Write);
    for id in 0..ROWS {
        let basis = Basis::Read(statement.view);
        session.delete(&shape, &key(&shape, id), &row(id, id, "x"), basis).await.expect("deleted");
    }
    session.close_statement(statement);
    session.commit(Durability::Wait).await.expect("committed");
    drop(session);
    testkit::sleep(later).await;
    db.close().await.expect("closed");
}

#[test]
fn a_closed_log_has_nothing_behind_its_end() {
    for_each_seed!(2, |seed| {
        // The upkeep begins a pass every 100 ms; the last checkpoint of a closing takes a quarter of a millisecond.
        for later in (900..1000).map(|n| Duration::from_micros(n * 100)) {
            let disk = SimDisk::new(seed);
            let options = || SimOptions { steps_max: 5_000_000 };
            let closed = Sim::with_options(seed, options()).block_on(deleted_and_closed(disk.clone(), later));
            closed.expect("the run ends");
            let reopened = disk.restart();
            let clean = Sim::with_options(seed, options()).block_on(async move {
                let db = simulated(&reopened).await;
                let clean = db.recovery().clean;
                db.close().await.expect("closed");
                clean
            });
            assert!(clean.expect("the run ends"), "closed {later:?} after the deletion");
        }
    });
}
