//! Sessions that acknowledge their commits before they are durable: their replies wait for no commit that told them nothing.

use clearway_engine::session::{Durability, Session, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_txn::lockmgr::{IfTaken, LockMode};

use super::support::{DATABASE, create, key, memory, open, row, run};

/// Begins, locks row 1 as a check of a foreign key does, and inserts a row.
async fn insert(session: &mut Session, shape: &TableShape, id: i64) {
    session.begin(TxnOptions::default());
    let key = key(shape, 1);
    let parent = session.lock_row(shape, &key, LockMode::RowKeyShare, IfTaken::Fail).await.expect("no conflict");
    assert!(parent.is_some());
    session.insert(shape, &row(id, id, "x")).await.expect("inserted");
}

/// SES-4, LKM-12
#[test]
fn relaxed_sessions_that_insert_different_rows_do_not_wait_for_each_other() {
    let db = open(&memory());
    run(async {
        let mut sessions: Vec<_> = (1..=4).map(|pid| db.session(pid, DATABASE)).collect();
        let shape = create(&mut sessions[0], true, true).await;
        sessions[0].begin(TxnOptions::default());
        sessions[0].insert(&shape, &row(1, 1, "x")).await.expect("inserted");
        sessions[0].commit(Durability::Wait).await.expect("committed");
        let durable = db.transactions().store().wal().durable_lsn();
        for (session, id) in sessions.iter_mut().zip(10..) {
            session.set_relaxed(true);
            insert(session, &shape, id).await;
        }
        // The fourth keeps its locks, so that the lock of row 1 is never free: each of the others begins anew beside the other two.
        for id in 20..40 {
            let session = &mut sessions[id % 3];
            assert!(session.commit_early(Durability::Async).await.expect("committed"), "it has inserted");
            assert!(session.dep_lsn() <= durable, "{} and {durable}: a reply that waits for others", session.dep_lsn());
            insert(session, &shape, id as i64).await;
        }
        for mut session in sessions {
            session.roll_back().await.expect("ended");
        }
        db.close().await.expect("closed");
    });
}
