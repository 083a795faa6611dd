//! Reads that are transactions of their own take no lock of their table: they count only where no other session locked it meanwhile.

use std::sync::Arc;

use clearway_base::waits::now_ns;
use clearway_engine::catalog::Object;
use clearway_engine::db::Db;
use clearway_engine::session::{Durability, Session, Statement, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};

use super::support::{DATABASE, create, key, memory, open, row, run};

fn tag(shape: &TableShape) -> LockTag {
    LockTag::Relation { database: DATABASE, relation: u64::from(shape.oid) }
}

fn begin(session: &mut Session, shape: &TableShape, version: u64) -> Option<Statement> {
    session.open_alone(&tag(shape), version, false, now_ns())
}

async fn lock(session: &mut Session, shape: &TableShape, mode: LockMode) {
    session.begin(TxnOptions::default());
    session.lock(tag(shape), mode, LockScope::Transaction, IfTaken::Wait).await.expect("the lock");
}

fn snapshots(db: &Db) -> usize {
    db.transactions().book().snapshots().open().len()
}

/// A database with a table of one row, and two sessions.
async fn opened() -> (Arc<Db>, Arc<TableShape>, Session, Session) {
    let db = open(&memory());
    let (mut other, reader) = (db.session(1, DATABASE), db.session(2, DATABASE));
    let shape = create(&mut other, true, false).await;
    other.begin(TxnOptions::default());
    other.insert(&shape, &row(1, 10, "x")).await.expect("inserted");
    other.commit(Durability::Wait).await.expect("committed");
    (db, shape, other, reader)
}

#[test]
fn a_strong_lock_before_or_during_the_read_sends_it_the_ordinary_way() {
    // ALN-1
    run(async {
        let (db, shape, mut other, mut reader) = opened().await;
        let version = db.catalog_version();
        lock(&mut other, &shape, LockMode::AccessExclusive).await;
        assert!(begin(&mut reader, &shape, version).is_none(), "the table is locked");
        assert_eq!(snapshots(&db), 0, "nothing is left open");
        other.roll_back().await.expect("ended");
        let statement = begin(&mut reader, &shape, version).expect("it is free");
        assert_eq!(snapshots(&db), 1);
        assert!(reader.find_now(&shape, &statement.view, &key(&shape, 1)).expect("in memory").is_some());
        lock(&mut other, &shape, LockMode::AccessExclusive).await;
        assert!(!reader.close_alone(statement, &tag(&shape), version), "the lock was taken meanwhile");
        assert_eq!(snapshots(&db), 0);
        other.roll_back().await.expect("ended");
        // A weak mode is no obstacle.
        lock(&mut other, &shape, LockMode::RowExclusive).await;
        let statement = begin(&mut reader, &shape, version).expect("it is free");
        assert!(reader.close_alone(statement, &tag(&shape), version));
        other.roll_back().await.expect("ended");
        drop((other, reader));
        db.close().await.expect("closed");
    });
}

#[test]
fn what_changed_the_catalog_and_is_over_is_noticed() {
    // ALN-1: no lock is left that the reader could see, but the new version.
    run(async {
        let (db, shape, mut other, mut reader) = opened().await;
        let version = db.catalog_version();
        let statement = begin(&mut reader, &shape, version).expect("it is free");
        lock(&mut other, &shape, LockMode::AccessExclusive).await;
        let object = other.catalog().get(shape.oid).map(|object| Object::clone(object)).expect("the table");
        other.put_object(object).await.expect("altered");
        other.commit(Durability::Wait).await.expect("committed");
        assert!(!reader.close_alone(statement, &tag(&shape), version));
        assert!(begin(&mut reader, &shape, version).is_none(), "the plan is out of date");
        let statement = begin(&mut reader, &shape, db.catalog_version()).expect("a new plan");
        assert!(reader.close_alone(statement, &tag(&shape), db.catalog_version()));
        drop((other, reader));
        db.close().await.expect("closed");
    });
}

#[test]
fn a_read_that_counts_is_a_committed_transaction() {
    // ALN-3
    run(async {
        let (db, shape, other, mut reader) = opened().await;
        let version = db.catalog_version();
        let commits = || db.usage().databases()[&DATABASE].commits;
        let lookups = || db.usage().of(shape.oid).lookups;
        let before = (commits(), lookups());
        for _ in 0..3 {
            let statement = begin(&mut reader, &shape, version).expect("it is free");
            assert!(reader.find_now(&shape, &statement.view, &key(&shape, 1)).expect("in memory").is_some());
            assert!(reader.close_alone(statement, &tag(&shape), version));
        }
        assert_eq!((commits(), lookups()), (before.0 + 3, before.1 + 3));
        drop((other, reader));
        db.close().await.expect("closed");
    });
}
