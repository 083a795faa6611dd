//! Tests of single features, each in a database in memory.

use std::sync::Arc;

use clearway_base::sync::spawn_thread;
use clearway_engine::db::Db;
use clearway_engine::error::EngineError;
use clearway_engine::session::{Durability, Isolation, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::lockmgr::{IfTaken, LockMode};
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, key, memory, open, read_a, row, run};

async fn put(session: &mut Session, shape: &TableShape, id: i64, a: i64) {
    session.begin(TxnOptions::default());
    session.insert(shape, &row(id, a, "x")).await.expect("inserted");
    session.commit(Durability::Wait).await.expect("committed");
}

/// `a = a + 1` as a statement of its own: read, change, look again if another one was faster.
async fn increment(session: &mut Session, shape: &TableShape, id: i64) -> Result<(), EngineError> {
    session.begin(TxnOptions::default());
    let statement = session.open_statement(&"increment".into(), StatementMode::Write);
    let key = key(shape, id);
    let mut basis = Basis::Read(statement.view);
    let mut old = session.get(shape, &statement.view, &key).await?.expect("the row");
    loop {
        let mut new = old.clone();
        let Value::Int(a) = old[1] else { panic!("{old:?}") };
        new[1] = Value::Int(a + 1);
        if session.update(shape, &key, &old, &new, basis).await? == Changed::Done {
            break;
        }
        let locked = session.lock_row(shape, &key, LockMode::RowNoKeyUpdate, IfTaken::Wait).await?;
        old = locked.expect("the row").row;
        basis = Basis::Locked;
    }
    session.close_statement(statement);
    session.commit(Durability::Wait).await
}

#[test]
fn what_was_committed_is_there_after_a_restart() {
    let vfs = memory();
    let db = open(&vfs);
    let mut session = db.session(1, DATABASE);
    let oid = run(async {
        let shape = create(&mut session, true, true).await;
        for id in 0..500 {
            put(&mut session, &shape, id, id * 2).await;
        }
        shape.oid
    });
    drop(session);
    run(db.close()).expect("closed");
    drop(db);
    let db = open(&vfs);
    let mut session = db.session(1, DATABASE);
    run(async {
        let shape = TableShape::new(&session.catalog(), oid).expect("the table is still there");
        assert_eq!(read_a(&mut session, &shape, 499).await, Some(998));
        assert_eq!(read_a(&mut session, &shape, 500).await, None);
        let statement = session.open_statement(&"scan".into(), StatementMode::ReadOnly);
        let mut scan = session.index_scan(&shape, 0, KeyRange::all(), Direction::Backward, &statement.view);
        let mut seen = Vec::new();
        while let Some(found) = session.next_by_index(&mut scan).await.expect("a row") {
            seen.push(found.row[0].clone());
        }
        session.close_statement(statement);
        assert_eq!(seen, (0..500).rev().map(Value::Int).collect::<Vec<_>>());
    });
    drop(session);
    run(db.close()).expect("closed");
}

#[test]
fn a_rollback_leaves_nothing() {
    let db = open(&memory());
    let mut session = db.session(1, DATABASE);
    run(async {
        let shape = create(&mut session, true, true).await;
        put(&mut session, &shape, 1, 10).await;
        session.begin(TxnOptions::default());
        let mark = session.mark();
        session.insert(&shape, &row(2, 20, "y")).await.expect("inserted");
        session.roll_back_to(&mark).await.expect("back");
        session.insert(&shape, &row(3, 20, "z")).await.expect("the key is free again");
        let statement = session.open_statement(&"d".into(), StatementMode::Write);
        let old = row(1, 10, "x");
        let deleted = session.delete(&shape, &key(&shape, 1), &old, Basis::Read(statement.view)).await;
        assert_eq!(deleted.expect("deleted"), Changed::Done);
        session.close_statement(statement);
        session.roll_back().await.expect("rolled back");
        assert_eq!(read_a(&mut session, &shape, 1).await, Some(10));
        assert_eq!(read_a(&mut session, &shape, 2).await, None);
        assert_eq!(read_a(&mut session, &shape, 3).await, None);
    });
}

#[test]
fn a_unique_key_is_unique() {
    let db = open(&memory());
    let mut session = db.session(1, DATABASE);
    run(async {
        let shape = create(&mut session, true, true).await;
        put(&mut session, &shape, 1, 10).await;
        for (id, a, index) in [(1, 11, shape.name.clone() + "_pkey"), (2, 10, shape.name.clone() + "_a_key")] {
            session.begin(TxnOptions::default());
            match session.insert(&shape, &row(id, a, "x")).await {
                Err(EngineError::Duplicate { index: named, .. }) => assert_eq!(named, index),
                other => panic!("{other:?}"),
            }
            session.roll_back().await.expect("rolled back");
        }
        // a to b to a.
        for (from, to) in [(10, 12), (12, 10)] {
            session.begin(TxnOptions::default());
            let changed =
                session.update(&shape, &key(&shape, 1), &row(1, from, "x"), &row(1, to, "x"), Basis::Locked).await;
            assert_eq!(changed.expect("updated"), Changed::Done);
            session.commit(Durability::Wait).await.expect("committed");
        }
        assert_eq!(read_a(&mut session, &shape, 1).await, Some(10));
    });
}

#[test]
fn ddl_rolls_back() {
    let db = open(&memory());
    let mut session = db.session(1, DATABASE);
    run(async {
        let shape = create(&mut session, true, false).await;
        session.begin(TxnOptions::default());
        session.drop_object(shape.oid).await.expect("dropped");
        assert!(session.catalog().get(shape.oid).is_none());
        assert!(db.catalog().get(shape.oid).is_some(), "others still see it");
        session.roll_back().await.expect("rolled back");
        assert!(session.catalog().get(shape.oid).is_some());
    });
}

#[test]
fn repeatable_read_keeps_its_snapshot_and_refuses_lost_updates() {
    let db = open(&memory());
    let (mut a, mut b) = (db.session(1, DATABASE), db.session(2, DATABASE));
    run(async {
        let shape = create(&mut a, true, false).await;
        put(&mut a, &shape, 1, 10).await;
        b.begin(TxnOptions { isolation: Isolation::RepeatableRead, read_only: false });
        let statement = b.open_statement(&"r".into(), StatementMode::Write);
        increment(&mut a, &shape, 1).await.expect("incremented");
        let seen = b.get(&shape, &statement.view, &key(&shape, 1)).await.expect("read").expect("the row");
        assert_eq!(seen[1], Value::Int(10), "an older version");
        let changed = b.update(&shape, &key(&shape, 1), &seen, &row(1, 99, "x"), Basis::Read(statement.view)).await;
        assert_eq!(changed.expect("judged"), Changed::Newer);
        b.close_statement(statement);
        b.roll_back().await.expect("rolled back");
        assert_eq!(read_a(&mut b, &shape, 1).await, Some(11));
    });
}

#[test]
fn a_hot_row_loses_no_increment() {
    let db = open(&memory());
    let shape = run(async {
        let mut session = db.session(0, DATABASE);
        let shape = create(&mut session, true, false).await;
        put(&mut session, &shape, 1, 0).await;
        shape
    });
    const THREADS: i32 = 8;
    const EACH: i64 = 200;
    let threads: Vec<_> = (1..=THREADS).map(|pid| hammer(db.clone(), shape.clone(), pid, EACH)).collect();
    threads.into_iter().for_each(|t| t.join().expect("no panic"));
    let mut session = db.session(0, DATABASE);
    assert_eq!(run(read_a(&mut session, &shape, 1)), Some(EACH * i64::from(THREADS)));
    assert_eq!(db.transactions().locks().archive().missed_by_fast_path(), 0);
    assert!(db.transactions().locks().locks().is_empty(), "no lock is left: {:?}", db.transactions().locks().locks());
}

fn hammer(db: Arc<Db>, shape: Arc<TableShape>, pid: i32, each: i64) -> clearway_base::sync::JoinHandle<()> {
    spawn_thread("hammer", move || {
        let mut session = db.session(pid, DATABASE);
        for _ in 0..each {
            run(increment(&mut session, &shape, 1)).expect("incremented");
        }
    })
    .expect("a thread")
}

#[test]
fn a_large_value_comes_back_and_goes_with_a_rollback() {
    let db = open(&memory());
    let mut session = db.session(1, DATABASE);
    let large = "large ".repeat(50_000);
    run(async {
        let shape = create(&mut session, true, false).await;
        for commit in [false, true] {
            session.begin(TxnOptions::default());
            session.insert(&shape, &row(1, 1, &large)).await.expect("inserted");
            match commit {
                true => session.commit(Durability::Wait).await.expect("committed"),
                false => session.roll_back().await.expect("rolled back"),
            }
        }
        let statement = session.open_statement(&"r".into(), StatementMode::ReadOnly);
        let found = session.get(&shape, &statement.view, &key(&shape, 1)).await.expect("read").expect("the row");
        assert_eq!(found[2], Value::bytes(large.as_bytes()));
        let mut scan = session.scan(&shape, KeyRange::all(), Direction::Forward, &statement.view);
        let scanned = session.next(&mut scan).await.expect("read").expect("the row");
        assert_eq!(scanned.row, found);
        session.close_statement(statement);
    });
}

#[test]
fn rows_without_a_key_keep_their_order() {
    let db = open(&memory());
    let mut session = db.session(1, DATABASE);
    run(async {
        let shape = create(&mut session, false, false).await;
        session.begin(TxnOptions::default());
        for id in 0..300 {
            session.insert(&shape, &row(id, 0, "x")).await.expect("inserted");
        }
        session.commit(Durability::Wait).await.expect("committed");
        let statement = session.open_statement(&"r".into(), StatementMode::ReadOnly);
        let mut scan = session.scan(&shape, KeyRange::all(), Direction::Forward, &statement.view);
        for id in 0..300 {
            let found = session.next(&mut scan).await.expect("read").expect("a row");
            assert_eq!(found.row[0], Value::Int(id));
        }
        assert!(session.next(&mut scan).await.expect("read").is_none());
        session.close_statement(statement);
    });
}
