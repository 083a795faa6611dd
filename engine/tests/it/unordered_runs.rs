//! Runs of changes whose rows do not come in the order of their keys, as a join gives them.

use std::sync::Arc;
use std::time::Duration;

use clearway_base::testkit::{self, Sim};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::session::batch::Replaced;
use clearway_engine::session::{Durability, Isolation, Session, StatementMode, TxnOptions};
use clearway_engine::table::batch::EntryBatch;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_txn::transaction::Basis;

use super::support::{DATABASE, create, key, row, simulated};

const ROWS: i64 = 60;

/// The second column of each row as a new statement sees it, each found by its key.
async fn values(session: &mut Session, shape: &Arc<TableShape>) -> Vec<Value> {
    let statement = session.open_statement(&"read".into(), StatementMode::Write);
    let mut found = Vec::new();
    for id in 0..ROWS {
        let row = session.get(shape, &statement.view, &key(shape, id)).await.expect("looked up");
        found.push(row.expect("a row")[1].clone());
    }
    session.close_statement(statement);
    found
}

/// Sets the second column of these rows, in this order, in one run.
async fn set(session: &mut Session, shape: &Arc<TableShape>, ids: &[i64], to: i64) {
    let statement = session.open_statement(&"update".into(), StatementMode::Write);
    let of = |id: &i64| Replaced { key: key(shape, *id), old: row(*id, *id, "x"), new: row(*id, to, "x") };
    let changes: Vec<Replaced<Vec<u8>>> = ids.iter().map(of).collect();
    let (mut entries, basis) = (EntryBatch::default(), Basis::Read(statement.view));
    let done = session.update_rows(&mut entries, shape, &changes, basis, true).await;
    assert_eq!(done.map_err(|(_, error)| error).expect("updated"), ids.len());
    session.close_statement(statement);
}

/// RSH-1, RSH-5
#[test]
fn rows_out_of_order_have_their_own_values_before() {
    let test = async {
        let db = simulated(&SimDisk::new(1)).await;
        let (mut session, mut old) = (db.session(1, DATABASE), db.session(2, DATABASE));
        let shape = create(&mut session, true, false).await;
        session.begin(TxnOptions::default());
        for id in 0..ROWS {
            session.insert(&shape, &row(id, id, "x")).await.expect("inserted");
        }
        session.commit(Durability::Wait).await.expect("committed");
        // Until the rows are settled: others share no record.
        testkit::sleep(Duration::from_secs(2)).await;
        old.begin(TxnOptions { isolation: Isolation::RepeatableRead, read_only: false });
        let first = values(&mut old, &shape).await;
        let (low, high) = ((0..ROWS / 2).collect::<Vec<_>>(), (ROWS / 2..ROWS).collect::<Vec<_>>());
        for ids in [[high.clone(), low].concat(), (0..ROWS).rev().collect()] {
            session.begin(TxnOptions::default());
            set(&mut session, &shape, &ids, -1).await;
            assert_eq!(values(&mut session, &shape).await, vec![Value::Int(-1); ROWS as usize]);
            assert_eq!(values(&mut old, &shape).await, first, "under a snapshot from before the run");
            session.roll_back().await.expect("undone");
            session.begin(TxnOptions::default());
            assert_eq!(values(&mut session, &shape).await, first, "after the undo of the run");
            session.roll_back().await.expect("ended");
        }
        old.roll_back().await.expect("ended");
        drop((session, old));
        db.close().await.expect("closed");
    };
    Sim::new(1).block_on(test).expect("the run ends");
}
