//! A session with two open snapshots, as a statement beside a cursor has them: pruning keeps what each of them reads.

use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, key, memory, open, row, run};

async fn change(session: &mut Session, shape: &TableShape, from: i64, to: i64) {
    session.begin(TxnOptions::default());
    let (old, new) = (row(1, from, "x"), row(1, to, "x"));
    let changed = session.update(shape, &key(shape, 1), &old, &new, Basis::Locked).await;
    assert_eq!(changed.expect("updated"), Changed::Done);
    session.commit(Durability::Wait).await.expect("committed");
}

async fn read(session: &mut Session, shape: &TableShape, view: &View) -> Value {
    let found = session.get(shape, view, &key(shape, 1)).await.expect("a read");
    found.expect("the row is there").swap_remove(1)
}

#[test]
fn the_younger_of_two_snapshots_keeps_its_versions() {
    // SNP-1
    let db = open(&memory());
    let (mut writer, mut reader) = (db.session(1, DATABASE), db.session(2, DATABASE));
    run(async {
        let shape = create(&mut writer, true, false).await;
        writer.begin(TxnOptions::default());
        writer.insert(&shape, &row(1, 10, "x")).await.expect("inserted");
        writer.commit(Durability::Wait).await.expect("committed");
        reader.begin(TxnOptions::default());
        let cursor = reader.open_statement(&"cursor".into(), StatementMode::Write);
        change(&mut writer, &shape, 10, 20).await;
        let statement = reader.open_statement(&"statement".into(), StatementMode::Write);
        for a in 20..40 {
            change(&mut writer, &shape, a, a + 1).await;
            db.transactions().upkeep_step().await.expect("pruned");
        }
        assert_eq!(read(&mut reader, &shape, &statement.view).await, Value::Int(20));
        assert_eq!(read(&mut reader, &shape, &cursor.view).await, Value::Int(10));
        // The older one goes first.
        reader.close_statement(cursor);
        change(&mut writer, &shape, 40, 41).await;
        db.transactions().upkeep_step().await.expect("pruned");
        assert_eq!(read(&mut reader, &shape, &statement.view).await, Value::Int(20));
        reader.close_statement(statement);
        reader.roll_back().await.expect("ended");
        drop((writer, reader));
        db.close().await.expect("closed");
    });
}
