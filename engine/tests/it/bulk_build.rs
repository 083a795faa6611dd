//! An index that is loaded in the order of its keys equals one that is made entry by entry, however its entries were divided into runs, and
//! is complete or absent after a crash at any moment.

use std::time::Duration;

use clearway_base::for_each_seed;
use clearway_base::testkit::{self, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::catalog::{Object, Oid};
use clearway_engine::error::EngineError;
use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};

use super::support::{DATABASE, create, index_on_a, row, simulated};

const ROWS: i64 = 700;

fn in_simulation<T: Send + 'static>(seed: u64, test: impl Future<Output = T> + Send + 'static) -> T {
    Sim::with_options(seed, SimOptions { steps_max: 40_000_000 }).block_on(test).expect("the run ends")
}

async fn fill(session: &mut Session, shape: &TableShape, seed: u64) {
    session.begin(TxnOptions::default());
    for id in 0..ROWS {
        // Every value once, in no order.
        let a = (id * 7_919 + seed as i64) % 10_007;
        session.insert(shape, &row(id, a, "x")).await.expect("inserted");
    }
    session.commit(Durability::Wait).await.expect("committed");
}

/// Makes the index in the open transaction, by runs of so many bytes.
async fn build(session: &mut Session, table: Oid, unique: bool, run_bytes: usize) -> Result<(), EngineError> {
    let mut index = index_on_a(session, table, unique);
    index.tree = session.create_tree().await?.0;
    index.valid_from_lsn = session.db().transactions().visible_lsn().0; // BLD-2
    let oid = index.oid;
    session.put_object(Object::Index(index)).await?;
    let shape = TableShape::new(&session.catalog(), table)?;
    let place = shape.indexes.iter().position(|i| i.oid == oid).expect("the index");
    session.build_index_by_runs(&shape, place, run_bytes).await
}

/// The index has the rows of the table, in its order, and its tree is sound.
async fn assert_whole(session: &mut Session, table: Oid) {
    let shape = TableShape::new(&session.catalog(), table).expect("the table");
    session.begin(TxnOptions::default());
    let statement = session.open_statement(&"compare".into(), StatementMode::Write);
    let mut scan = session.index_scan(&shape, 0, KeyRange::all(), Direction::Forward, &statement.view);
    let mut found = Vec::new();
    while let Some(entry) = session.next_by_index(&mut scan).await.expect("an entry") {
        match (&entry.row[1], &entry.row[0]) {
            (Value::Int(a), Value::Int(id)) => found.push((*a, *id)),
            other => panic!("{other:?}"),
        }
    }
    session.close_statement(statement);
    session.roll_back().await.expect("ended");
    assert_eq!(found.len(), ROWS as usize, "TAB-1");
    assert!(shape.indexes[0].valid_from_lsn > 0, "BLD-2: snapshots older than the rows stay away");
    assert!(found.is_sorted());
    let tree = shape.indexes[0].entries(session.db().transactions()).clone();
    tree.check().await.expect("a sound tree");
}

#[test]
fn runs_of_any_size_make_the_same_index() {
    for_each_seed!(2, |seed| {
        in_simulation(seed, async move {
            for (unique, run_bytes) in [(false, 1 << 20), (true, 1 << 20), (false, 3_000), (true, 3_000), (true, 1)] {
                let db = simulated(&SimDisk::new(seed)).await;
                let mut session = db.session(1, DATABASE);
                let shape = create(&mut session, true, false).await;
                fill(&mut session, &shape, seed).await;
                session.begin(TxnOptions::default());
                build(&mut session, shape.oid, unique, run_bytes).await.expect("built");
                session.commit(Durability::Wait).await.expect("committed");
                assert_whole(&mut session, shape.oid).await;
                // SRT-2: one entry a run makes two levels of runs.
                let files = db.transactions().store().temp_files().clone();
                let runs = match run_bytes {
                    1 => ROWS as u64 + ROWS as u64 / 24..ROWS as u64 + ROWS as u64 / 20,
                    3_000 => 2..100,
                    _ => 0..1,
                };
                assert!(runs.contains(&files.created()), "{} files for {run_bytes} bytes", files.created());
                assert_eq!(files.bytes_in_use(), 0, "TMF-4");
                // It takes what comes afterwards.
                let shape = TableShape::new(&session.catalog(), shape.oid).expect("the table");
                session.begin(TxnOptions::default());
                session.insert(&shape, &row(-1, 20_000, "y")).await.expect("inserted");
                session.insert(&shape, &row(-2, -20_000, "y")).await.expect("inserted");
                if unique {
                    let twice = session.insert(&shape, &row(-3, 20_000, "y")).await;
                    assert!(matches!(twice, Err(EngineError::Duplicate { .. })), "BLD-3: {twice:?}");
                }
                session.roll_back().await.expect("undone");
                assert_whole(&mut session, shape.oid).await;
                drop(session);
                db.close().await.expect("closed");
            }
        });
    });
}

#[test]
fn a_duplicate_is_found_in_a_run_and_between_runs() {
    in_simulation(1, async {
        for run_bytes in [1 << 20, 3_000, 1] {
            let db = simulated(&SimDisk::new(1)).await;
            let mut session = db.session(1, DATABASE);
            let shape = create(&mut session, true, false).await;
            fill(&mut session, &shape, 0).await;
            session.begin(TxnOptions::default());
            session.insert(&shape, &row(ROWS + 5, 7_919, "again")).await.expect("inserted");
            session.commit(Durability::Wait).await.expect("committed");
            session.begin(TxnOptions::default());
            let built = build(&mut session, shape.oid, true, run_bytes).await;
            assert!(matches!(built, Err(EngineError::Duplicate { .. })), "BLD-3: {built:?}");
            session.roll_back().await.expect("undone");
            assert!(db.catalog().indexes(shape.oid).next().is_none(), "BLD-1");
            drop(session);
            db.close().await.expect("closed");
        }
    });
}

async fn build_alone(disk: SimDisk) {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let shape = create(&mut session, true, false).await;
    fill(&mut session, &shape, 3).await;
    session.begin(TxnOptions::default());
    build(&mut session, shape.oid, true, 8_000).await.expect("built");
    session.commit(Durability::Wait).await.expect("committed");
    drop(session);
    db.close().await.expect("closed");
}

/// After a restart: whether the index is there; none: the crash came before there were rows.
async fn what_is_left(disk: SimDisk) -> Option<bool> {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let table = session.catalog().objects().find(|o| o.kind() == "table").map(|o| o.oid())?;
    let is_there = db.catalog().indexes(table).next().is_some();
    if is_there {
        assert_whole(&mut session, table).await;
    }
    drop(session);
    for _ in 0..50 {
        testkit::sleep(Duration::from_millis(100)).await;
    }
    let known = db.catalog().indexes(table).count() + 1;
    let trees = db.transactions().store().space().trees();
    assert_eq!(trees.len(), 2 + known, "a tree is left behind: {trees:?}");
    db.close().await.expect("closed");
    Some(is_there)
}

#[test]
fn a_crash_during_a_load_leaves_the_whole_index_or_nothing() {
    for_each_seed!(2, |seed| {
        let whole = SimDisk::new(seed);
        in_simulation(seed, build_alone(whole.clone()));
        let (mut rng, mut with, mut without) = (Rng::new(seed), 0, 0);
        for _ in 0..30 {
            let disk = SimDisk::new(seed);
            disk.crash_at(rng.range(whole.points() / 3..whole.points()));
            let options = SimOptions { steps_max: 40_000_000 };
            let ended = Sim::with_options(seed, options).block_on(build_alone(disk.clone()));
            assert_eq!(ended.err(), Some(Stop::Crashed));
            match in_simulation(seed, what_is_left(disk.restart())) {
                Some(true) => with += 1,
                Some(false) => without += 1,
                None => {}
            }
        }
        assert!(with > 0 && without > 0, "{with} with, {without} without the index: nothing was tried");
    });
}
