//! Temporary trees: only their session sees them, and they are dropped at its end and after a crash at any point (TMP-1, TMP-2).

use std::time::Duration;

use clearway_base::for_each_seed;
use clearway_base::sync::sleep;
use clearway_base::testkit::{Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::catalog::{Object, Oid, Relation, Schema};
use clearway_engine::db::Db;
use clearway_engine::session::{Durability, Session, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Storage;

use super::support::{DATABASE, column, row, simulated};

const TABLES: usize = 3;
const ROWS: i64 = 60;

/// How many trees the directory has.
fn trees(db: &Db) -> usize {
    db.transactions().store().space().trees().len()
}

/// A temporary table of two columns in the open transaction.
async fn temporary(session: &mut Session, schema: Oid, name: &str) -> Oid {
    let columns = vec![column("id", Storage::Int(8)), column("a", Storage::Int(8)), column("b", Storage::Bytes)];
    let tree = session.create_temporary_tree().await.expect("a tree").0;
    let oid = session.db().new_oid();
    let relation = Relation::table(oid, DATABASE, schema, name, columns, tree);
    session.put_object(Object::Relation(relation)).await.expect("put");
    oid
}

async fn temp_schema(session: &mut Session) -> Oid {
    let oid = session.db().new_oid();
    let schema = Schema::new(oid, DATABASE, "pg_temp_1", 10);
    session.put_object(Object::Schema(schema)).await.expect("put");
    oid
}

async fn fill(session: &mut Session, table: Oid) {
    let shape = TableShape::new(&session.catalog(), table).expect("a shape");
    for id in 0..ROWS {
        session.insert(&shape, &row(id, id, &"x".repeat(200))).await.expect("inserted");
    }
}

/// One life: tables that are committed, rolled back, dropped, and one with rows of a transaction that is open when the session ends.
async fn life(disk: SimDisk) -> usize {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    session.begin(TxnOptions::default());
    let schema = temp_schema(&mut session).await;
    let mut tables = Vec::new();
    for n in 0..TABLES {
        tables.push(temporary(&mut session, schema, &format!("t{n}")).await);
    }
    session.commit(Durability::Wait).await.expect("committed");
    assert!(db.catalog().get(tables[0]).is_none(), "the published catalog does not have it");
    assert!(session.catalog().relation(tables[0]).is_some(), "the session's has");
    for table in &tables {
        session.begin(TxnOptions::default());
        fill(&mut session, *table).await;
        session.commit(Durability::Wait).await.expect("committed");
    }
    session.begin(TxnOptions::default());
    let mark = session.mark();
    let gone = temporary(&mut session, schema, "gone").await;
    fill(&mut session, gone).await;
    session.roll_back_to(&mark).await.expect("rolled back");
    assert!(session.catalog().relation(gone).is_none());
    session.commit(Durability::Wait).await.expect("committed");
    session.begin(TxnOptions::default());
    let dropped = session.catalog().relation(tables[0]).expect("there").clone();
    session.drop_object(dropped.oid).await.expect("dropped");
    session.drop_tree_at_commit(clearway_storage::ids::TreeId(dropped.tree));
    session.commit(Durability::Wait).await.expect("committed");
    session.begin(TxnOptions::default());
    fill(&mut session, tables[1]).await;
    drop(session);
    db.undo_losers().await.expect("undone");
    for _ in 0..600 {
        let store = db.transactions().store();
        if store.pending_drops().is_empty() && store.held_trees().is_empty() && trees(&db) == 2 {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    let left = trees(&db);
    db.close().await.expect("closed");
    left
}

#[test]
fn temporary_trees_leave_nothing_behind_over_many_crashes() {
    for_each_seed!(4, |seed| {
        let options = || SimOptions { steps_max: 5_000_000 };
        let whole = SimDisk::new(seed);
        let alone = Sim::with_options(seed, options()).block_on(life(whole.clone())).expect("the run ends");
        let mut rng = Rng::new(seed);
        let mut disk = SimDisk::new(seed);
        for _ in 0..8 {
            disk.crash_at(rng.range(1..whole.points()));
            match Sim::with_options(seed, options()).block_on(life(disk.clone())) {
                Err(Stop::Crashed) => {}
                other => assert!(other.is_ok(), "{other:?}"),
            }
            disk = disk.restart();
        }
        let after = Sim::with_options(seed, options()).block_on(life(disk)).expect("the run ends");
        assert_eq!(after, alone, "trees that are left");
    });
}
