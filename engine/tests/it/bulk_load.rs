//! A table whose rows are loaded as whole leaves equals one that is filled row by row, for every view, and is complete or absent after a crash
//! at any moment.

use std::sync::Arc;
use std::time::Duration;

use clearway_base::for_each_seed;
use clearway_base::testkit::{self, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::catalog::{Object, Oid};
use clearway_engine::error::EngineError;
use clearway_engine::session::load::Loading;
use clearway_engine::session::rewrite::{Rewritten, Rows};
use clearway_engine::session::{Durability, Isolation, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};

use super::support::{DATABASE, create, row, simulated};

const ROWS: i64 = 600;

fn in_simulation<T: Send + 'static>(seed: u64, test: impl Future<Output = T> + Send + 'static) -> T {
    Sim::with_options(seed, SimOptions { steps_max: 40_000_000 }).block_on(test).expect("the run ends")
}

/// A fresh tree in the place of the table's, as TRUNCATE makes it.
async fn truncate(session: &mut Session, table: Oid) -> Arc<TableShape> {
    let catalog = session.catalog();
    let mut relation = catalog.relation(table).expect("the table").clone();
    session.drop_tree_at_commit(clearway_storage::ids::TreeId(relation.tree));
    relation.tree = session.create_tree().await.expect("a tree").0;
    session.put_object(Object::Relation(relation)).await.expect("put");
    for index in catalog.indexes(table) {
        let mut index = index.clone();
        session.drop_tree_at_commit(clearway_storage::ids::TreeId(index.tree));
        index.tree = session.create_tree().await.expect("a tree").0;
        session.put_object(Object::Index(index)).await.expect("put");
    }
    TableShape::new(&session.catalog(), table).expect("the table")
}

/// Rows of many lengths; every hundredth too long for a leaf.
fn row_of(id: i64) -> Vec<Value> {
    let len = if id % 100 == 99 { 3_000 } else { (id % 130) as usize };
    row(id, (id * 7_919) % 10_007, &"x".repeat(len))
}

async fn load(session: &mut Session, shape: &TableShape, ids: impl Iterator<Item = i64>) -> Result<(), EngineError> {
    let mut loading = Loading::default();
    for id in ids {
        // As INSERT does: what needs no wait is taken at once.
        if let Some(row) = session.take_one_of(&mut loading, shape, row_of(id))? {
            session.insert_one_of(&mut loading, shape, &row).await?;
        }
    }
    session.end_loading(&mut loading, shape).await
}

/// The ids of the rows that a new statement of the session sees; each row is as it was loaded.
async fn ids(session: &mut Session, shape: &Arc<TableShape>) -> Vec<i64> {
    let statement = session.open_statement(&"read".into(), StatementMode::Write);
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, &statement.view);
    let mut found = Vec::new();
    while let Some(keyed) = session.next(&mut scan).await.expect("a row") {
        let Value::Int(id) = keyed.row[0] else { panic!("{:?}", keyed.row) };
        assert_eq!(keyed.row, row_of(id));
        found.push(id);
    }
    session.close_statement(statement);
    found
}

async fn assert_sound(session: &mut Session, shape: &TableShape) {
    let all = session.db().transactions().clone();
    shape.rows(&all).check().await.expect("a sound tree");
    for index in &shape.indexes {
        index.entries(&all).check().await.expect("a sound tree");
    }
}

#[test]
fn loaded_rows_are_seen_as_inserted_ones_are() {
    for_each_seed!(2, |seed| {
        in_simulation(seed, async move {
            for (keyed, unique) in [(true, false), (false, false), (true, true)] {
                let db = simulated(&SimDisk::new(seed)).await;
                let mut session = db.session(1, DATABASE);
                let table = create(&mut session, keyed, unique).await.oid;
                let mut old = db.session(2, DATABASE);
                old.begin(TxnOptions { isolation: Isolation::RepeatableRead, read_only: false });
                let kept = old.open_statement(&"fix the snapshot".into(), StatementMode::Write);
                old.close_statement(kept);

                session.begin(TxnOptions::default());
                let shape = truncate(&mut session, table).await;
                let before = session.open_statement(&"before".into(), StatementMode::Write);
                load(&mut session, &shape, 0..ROWS).await.expect("loaded");
                // LOD-2: a statement that began before the load sees none of its rows.
                let mut scan = session.scan(&shape, KeyRange::all(), Direction::Forward, &before.view);
                assert_eq!(session.next(&mut scan).await.expect("a scan"), None);
                session.close_statement(before);
                assert_eq!(ids(&mut session, &shape).await, (0..ROWS).collect::<Vec<_>>());
                // A second load goes on behind the first one.
                load(&mut session, &shape, ROWS..ROWS + 300).await.expect("loaded");
                assert_eq!(ids(&mut session, &shape).await.len() as i64, ROWS + 300);
                session.commit(Durability::Wait).await.expect("committed");
                assert_sound(&mut session, &shape).await;

                // A snapshot from before sees nothing of it, one from after all.
                assert!(ids(&mut old, &shape).await.is_empty());
                old.roll_back().await.expect("ended");
                drop(old);
                session.begin(TxnOptions::default());
                assert_eq!(ids(&mut session, &shape).await, (0..ROWS + 300).collect::<Vec<_>>());
                session.roll_back().await.expect("ended");
                drop(session);
                db.close().await.expect("closed");
            }
        });
    });
}

#[test]
fn rows_out_of_order_and_duplicates_meet_the_loaded_ones() {
    in_simulation(1, async {
        let db = simulated(&SimDisk::new(1)).await;
        let mut session = db.session(1, DATABASE);
        let table = create(&mut session, true, true).await.oid;
        session.begin(TxnOptions::default());
        let shape = truncate(&mut session, table).await;
        let order = (500..1_000).chain(0..100).chain((100..500).rev()).chain(1_000..1_150);
        load(&mut session, &shape, order).await.expect("loaded");
        assert_eq!(ids(&mut session, &shape).await, (0..1_150).collect::<Vec<_>>());
        session.commit(Durability::Wait).await.expect("committed");
        assert_sound(&mut session, &shape).await;
        for again in [0, 350, 1_149] {
            session.begin(TxnOptions::default());
            let shape = truncate(&mut session, table).await;
            let twice = load(&mut session, &shape, (0..1_150).chain([again])).await;
            assert!(matches!(twice, Err(EngineError::Duplicate { .. })), "LDG-2: {twice:?}");
            session.roll_back().await.expect("undone");
        }
        session.begin(TxnOptions::default());
        assert_eq!(ids(&mut session, &shape).await.len(), 1_150, "each rollback brought the committed rows back");
        session.roll_back().await.expect("ended");
        drop(session);
        db.close().await.expect("closed");
    });
}

#[test]
fn nothing_is_loaded_that_a_savepoint_would_have_to_take_away() {
    in_simulation(1, async {
        let db = simulated(&SimDisk::new(1)).await;
        let mut session = db.session(1, DATABASE);
        let table = create(&mut session, true, false).await.oid;
        session.begin(TxnOptions::default());
        let shape = truncate(&mut session, table).await;
        load(&mut session, &shape, 0..350).await.expect("loaded");
        let mark = session.mark();
        session.note_savepoint(Some(&mark));
        load(&mut session, &shape, 350..700).await.expect("inserted");
        session.roll_back_to(&mark).await.expect("undone");
        assert_eq!(ids(&mut session, &shape).await, (0..350).collect::<Vec<_>>(), "LOD-1");
        // Without the note, the rows would stay: such a transaction must not commit.
        session.note_savepoint(None);
        load(&mut session, &shape, 350..700).await.expect("loaded");
        session.roll_back_to(&mark).await.expect("undone");
        let committed = session.commit(Durability::Wait).await;
        assert!(committed.is_err(), "LOD-3");
        session.roll_back().await.expect("undone");
        session.begin(TxnOptions::default());
        let shape = TableShape::new(&session.catalog(), table).expect("the table");
        assert!(ids(&mut session, &shape).await.is_empty());
        session.roll_back().await.expect("ended");
        drop(session);
        db.close().await.expect("closed");
    });
}

/// Replaces the table's row ids by the key `id`.
async fn add_key(session: &mut Session, table: Oid, rows: Rows) -> Result<Rewritten, EngineError> {
    let old = TableShape::new(&session.catalog(), table).expect("the table");
    let mut relation = session.catalog().relation(table).expect("the table").clone();
    relation.key = vec![0];
    session.put_object(Object::Relation(relation)).await?;
    let new = truncate(session, table).await;
    session.rewrite(&old, &new, rows).await
}

#[test]
fn a_table_gets_a_key_in_runs_of_any_size() {
    for_each_seed!(2, |seed| {
        in_simulation(seed, async move {
            for run_bytes in [1 << 20, 30_000, 1] {
                let db = simulated(&SimDisk::new(seed)).await;
                let mut session = db.session(1, DATABASE);
                let shape = create(&mut session, false, true).await;
                session.begin(TxnOptions::default());
                load(&mut session, &shape, (0..ROWS).map(|i| i * 7 % ROWS)).await.expect("inserted");
                session.commit(Durability::Wait).await.expect("committed");

                session.begin(TxnOptions::default());
                let mark = session.mark();
                let unordered = add_key(&mut session, shape.oid, Rows::AsTheyCome).await.expect("tried");
                assert_eq!(unordered, Rewritten::Unordered);
                session.roll_back_to(&mark).await.expect("undone");
                let done = add_key(&mut session, shape.oid, Rows::Sorted(run_bytes)).await.expect("rewritten");
                assert_eq!(done, Rewritten::Done);
                session.commit(Durability::Wait).await.expect("committed");
                let shape = TableShape::new(&session.catalog(), shape.oid).expect("the table");
                session.begin(TxnOptions::default());
                assert_eq!(ids(&mut session, &shape).await, (0..ROWS).collect::<Vec<_>>());
                let twice = session.insert(&shape, &row(1, 20_000, "again")).await;
                assert!(matches!(twice, Err(EngineError::Duplicate { .. })), "{twice:?}");
                session.roll_back().await.expect("ended");
                assert_sound(&mut session, &shape).await;
                drop(session);
                db.close().await.expect("closed");
            }
        });
    });
}

#[test]
fn a_key_with_duplicates_or_nulls_is_refused() {
    in_simulation(1, async {
        for rows in [Rows::AsTheyCome, Rows::SORTED, Rows::Sorted(30_000), Rows::Sorted(1)] {
            let db = simulated(&SimDisk::new(1)).await;
            let mut session = db.session(1, DATABASE);
            let shape = create(&mut session, false, false).await;
            session.begin(TxnOptions::default());
            load(&mut session, &shape, (0..300).chain([299])).await.expect("inserted");
            session.commit(Durability::Wait).await.expect("committed");
            session.begin(TxnOptions::default());
            let twice = add_key(&mut session, shape.oid, rows).await;
            match rows {
                Rows::AsTheyCome => assert_eq!(twice.expect("tried"), Rewritten::Unordered),
                Rows::Sorted(_) => assert!(matches!(twice, Err(EngineError::Duplicate { .. })), "RWR-2: {twice:?}"),
            }
            session.roll_back().await.expect("undone");
            session.begin(TxnOptions::default());
            session.insert(&shape, &[Value::Null, Value::Int(1), Value::Null]).await.expect("inserted");
            session.commit(Durability::Wait).await.expect("committed");
            session.begin(TxnOptions::default());
            match add_key(&mut session, shape.oid, rows).await {
                Ok(Rewritten::Null(0) | Rewritten::Unordered) | Err(EngineError::Duplicate { .. }) => {}
                other => panic!("{other:?}"),
            }
            session.roll_back().await.expect("undone");
            drop(session);
            db.close().await.expect("closed");
        }
    });
}

/// A table is filled row by row, loaded anew, changed and given a key.
async fn load_alone(disk: SimDisk) {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let table = create(&mut session, false, true).await.oid;
    session.begin(TxnOptions::default());
    let shape = truncate(&mut session, table).await;
    load(&mut session, &shape, 0..ROWS).await.expect("loaded");
    session.commit(Durability::Wait).await.expect("committed");
    session.begin(TxnOptions::default());
    add_key(&mut session, table, Rows::AsTheyCome).await.expect("rewritten");
    session.commit(Durability::Wait).await.expect("committed");
    session.begin(TxnOptions::default());
    let shape = truncate(&mut session, table).await;
    load(&mut session, &shape, 0..ROWS / 2).await.expect("loaded");
    // A row that was loaded is changed by the same transaction, and that is undone again.
    let mark = session.mark();
    session.insert(&shape, &row_of(ROWS)).await.expect("inserted");
    session.roll_back_to(&mark).await.expect("undone");
    session.commit(Durability::Wait).await.expect("committed");
    drop(session);
    db.close().await.expect("closed");
}

/// After a restart: how many rows are there; none: the crash came before there was a table.
async fn rows_left(disk: SimDisk) -> Option<i64> {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let table = session.catalog().objects().find(|o| o.kind() == "table").map(|o| o.oid())?;
    let shape = TableShape::new(&session.catalog(), table).expect("the table");
    session.begin(TxnOptions::default());
    let found = ids(&mut session, &shape).await;
    assert_eq!(found, (0..found.len() as i64).collect::<Vec<_>>());
    // New changes get tags of their own: none is taken for a loaded row's.
    session.insert(&shape, &row(ROWS + 1, 20_001, "y")).await.expect("inserted");
    let mut other = db.session(2, DATABASE);
    other.begin(TxnOptions::default());
    assert_eq!(ids(&mut other, &shape).await, found);
    other.roll_back().await.expect("ended");
    session.roll_back().await.expect("undone");
    assert_sound(&mut session, &shape).await;
    drop((session, other));
    for _ in 0..50 {
        testkit::sleep(Duration::from_millis(100)).await;
    }
    let known = db.catalog().indexes(table).count() + 1;
    let trees = db.transactions().store().space().trees();
    assert_eq!(trees.len(), 2 + known, "a tree is left behind: {trees:?}");
    db.close().await.expect("closed");
    Some(found.len() as i64)
}

#[test]
fn a_crash_during_a_load_leaves_all_rows_or_none() {
    for_each_seed!(2, |seed| {
        let whole = SimDisk::new(seed);
        in_simulation(seed, load_alone(whole.clone()));
        let mut rng = Rng::new(seed);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..12 {
            let disk = SimDisk::new(seed);
            disk.crash_at(rng.range(whole.points() / 8..whole.points()));
            let options = SimOptions { steps_max: 40_000_000 };
            let ended = Sim::with_options(seed, options).block_on(load_alone(disk.clone()));
            assert_eq!(ended.err(), Some(Stop::Crashed));
            *seen.entry(in_simulation(seed, rows_left(disk.restart()))).or_insert(0) += 1;
        }
        let expected = [Some(0), Some(ROWS), Some(ROWS / 2)];
        assert!(seen.keys().all(|left| left.is_none() || expected.contains(left)), "part of a load: {seen:?}");
        assert!(expected.iter().filter(|left| seen.contains_key(left)).count() >= 2, "little was tried: {seen:?}");
    });
}
