//! Rows are counted in the background.

use std::time::Duration;

use clearway_base::testkit::{self, Sim};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::session::{Durability, TxnOptions};
use clearway_engine::table::sample::Targets;
use clearway_engine::table::shape::TableShape;

use super::support::{DATABASE, create, key, row, simulated};
use clearway_txn::transaction::Basis;

#[test]
fn rows_are_counted_in_the_background_and_never_at_the_opening() {
    // STA-1, STA-2, STA-4
    let disk = SimDisk::new(4);
    let first = disk.clone();
    let table = Sim::new(4).block_on(async move {
        let db = simulated(&first).await;
        let mut session = db.session(1, DATABASE);
        let shape = create(&mut session, true, false).await;
        // The background counts each second. What follows takes a tenth of one, and so comes between two of its turns.
        testkit::sleep(Duration::from_millis(300)).await;
        session.begin(TxnOptions::default());
        for id in 0..1000 {
            session.insert(&shape, &row(id, id, "x")).await.expect("inserted");
        }
        assert_eq!(db.statistics().of(shape.oid), None, "the session does not count");
        session.commit(Durability::Wait).await.expect("committed");
        testkit::sleep(Duration::from_secs(3)).await;
        let counted = db.statistics().of(shape.oid).expect("counted");
        assert_eq!((counted.rows, counted.leaves > 1), (1000, true));
        // A tenth and fifty more: due again.
        session.begin(TxnOptions::default());
        for id in 0..200 {
            session.delete(&shape, &key(&shape, id), &row(id, id, "x"), Basis::Locked).await.expect("deleted");
        }
        session.commit(Durability::Wait).await.expect("committed");
        testkit::sleep(Duration::from_secs(50)).await;
        assert_eq!(db.statistics().of(shape.oid).map(|s| s.rows), Some(1000), "STA-4: the table rests");
        testkit::sleep(Duration::from_secs(10)).await;
        assert_eq!(db.statistics().of(shape.oid).map(|s| s.rows), Some(800));
        // As many as it had: after a second.
        session.begin(TxnOptions::default());
        for id in 2000..3000 {
            session.insert(&shape, &row(id, id, "x")).await.expect("inserted");
        }
        session.commit(Durability::Wait).await.expect("committed");
        testkit::sleep(Duration::from_secs(3)).await;
        assert_eq!(db.statistics().of(shape.oid).map(|s| s.rows), Some(1800));
        drop(session);
        db.close().await.expect("closed");
        shape.oid
    });
    let table = table.expect("the run ends");
    Sim::new(4)
        .block_on(async move {
            let db = simulated(&disk).await;
            testkit::sleep(Duration::from_secs(3)).await;
            // STA-5
            let known = db.statistics().of(table).map(|s| s.rows);
            assert_eq!((known, db.statistics().due()), (Some(1800), 0), "nothing is counted at the opening");
            let mut session = db.session(1, DATABASE);
            let shape = TableShape::new(&session.catalog(), table).expect("a shape");
            db.statistics()
                .analyze(
                    db.transactions(),
                    (&session.catalog(), &db.catalog()),
                    db.usage(),
                    (shape.oid, Targets::default()),
                    session.progress(),
                )
                .await
                .expect("counted");
            assert_eq!(db.statistics().of(table).map(|s| s.rows), Some(1800));
            drop(session);
            db.close().await.expect("closed");
        })
        .expect("the run ends");
}
