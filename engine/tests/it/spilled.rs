//! A transaction whose undo does not fit the memory for undo: it reads the rows that it changed, changes them again and rolls back, each in
//! one pass over the spill file.

use std::sync::Arc;

use clearway_engine::db::Db;
use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, memory, open, row, run};

const ROWS: i64 = 20_000;
/// Less than a tenth of what the changes take.
const BUDGET: u64 = 512 << 10;

/// Bytes that were written to the spill file and read from it.
fn spilled(db: &Db) -> (u64, u64) {
    db.transactions().book().spill_file().map_or((0, 0), |file| (file.written_bytes(), file.read_bytes()))
}

async fn sum(session: &mut Session, shape: &Arc<TableShape>) -> i64 {
    let statement = session.open_statement(&"sum".into(), StatementMode::Write);
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, &statement.view);
    let mut sum = 0;
    while let Some(found) = session.next(&mut scan).await.expect("a row") {
        let Value::Int(a) = found.row[1] else { panic!("{found:?}") };
        sum += a;
    }
    session.close_statement(statement);
    sum
}

/// `UPDATE t SET a = a + 1`
async fn add_one(session: &mut Session, shape: &Arc<TableShape>) {
    let statement = session.open_statement(&"update".into(), StatementMode::Write);
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, &statement.view);
    let mut changed = 0;
    while let Some(found) = session.next(&mut scan).await.expect("a row") {
        let Value::Int(a) = found.row[1] else { panic!("{found:?}") };
        let mut new = found.row.clone();
        new[1] = Value::Int(a + 1);
        let basis = Basis::Read(statement.view);
        let done = session.update(shape, &found.key, &found.row, &new, basis).await.expect("updated");
        assert_eq!(done, Changed::Done);
        changed += 1;
    }
    session.close_statement(statement);
    assert_eq!(changed, ROWS);
}

#[test]
fn what_was_spilled_is_read_a_few_times_and_not_for_each_leaf() {
    // UND-6
    let db = open(&memory());
    let (mut session, mut other) = (db.session(1, DATABASE), db.session(2, DATABASE));
    run(async {
        let shape = create(&mut session, true, false).await;
        session.begin(TxnOptions::default());
        for id in 0..ROWS {
            session.insert(&shape, &row(id, 0, "some bytes")).await.expect("inserted");
        }
        session.commit(Durability::Wait).await.expect("committed");
        db.transactions().book().set_budget(BUDGET);

        session.begin(TxnOptions::default());
        add_one(&mut session, &shape).await;
        let (written, read) = spilled(&db);
        assert!(written > 2 * BUDGET, "{written} bytes were spilled");
        let mark = session.mark();
        assert_eq!(sum(&mut session, &shape).await, ROWS);
        add_one(&mut session, &shape).await;
        assert_eq!(sum(&mut session, &shape).await, 2 * ROWS);
        session.roll_back_to(&mark).await.expect("undone");
        assert_eq!(sum(&mut session, &shape).await, ROWS);
        // A reader beside it goes past all of it, too.
        assert_eq!(sum(&mut other, &shape).await, 0);
        session.roll_back().await.expect("rolled back");
        assert_eq!(sum(&mut other, &shape).await, 0);
        let (written, read) = (spilled(&db).0, spilled(&db).1 - read);
        // Four walks, a walk that changes and looks at each row twice, two ways back, and upkeep that joins what has become small.
        assert!(read < 10 * written, "{read} bytes read of {written} written");
    });
}
