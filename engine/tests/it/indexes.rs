//! Secondary indexes under concurrent transactions and crashes, on a simulated disk: they always agree with their table.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clearway_base::for_each_seed;
use clearway_base::testkit::{self, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::catalog::{IndexState, Object, Oid};
use clearway_engine::db::Db;
use clearway_engine::error::EngineError;
use clearway_engine::session::{Durability, Isolation, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::Lsn;
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};
use clearway_txn::mvcc::book::View;
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, index_on_a, key, row, simulated};

fn in_simulation<T: Send + 'static>(seed: u64, test: impl Future<Output = T> + Send + 'static) -> T {
    Sim::with_options(seed, SimOptions { steps_max: 20_000_000 }).block_on(test).expect("the run ends")
}

async fn put(session: &mut Session, shape: &TableShape, id: i64, a: i64) {
    session.begin(TxnOptions::default());
    session.insert(shape, &row(id, a, "x")).await.expect("inserted");
    session.commit(Durability::Wait).await.expect("committed");
}

/// Rows of the table, and rows found by the index, as one view sees them: (a, id).
async fn both(session: &mut Session, shape: &Arc<TableShape>, place: usize, view: &View) -> [BTreeSet<(i64, i64)>; 2] {
    let pair = |row: &[Value]| match (&row[1], &row[0]) {
        (Value::Int(a), Value::Int(id)) => (*a, *id),
        other => panic!("{other:?}"),
    };
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, view);
    while let Some(row) = session.next(&mut scan).await.expect("a row") {
        assert!(found[0].insert(pair(&row.row)));
    }
    let mut scan = session.index_scan(shape, place, KeyRange::all(), Direction::Forward, view);
    while let Some(row) = session.next_by_index(&mut scan).await.expect("a row") {
        assert!(found[1].insert(pair(&row.row)), "twice in the index: {row:?}");
    }
    found
}

async fn assert_agreement(session: &mut Session, table: Oid) -> usize {
    let shape = TableShape::new(&session.catalog(), table).expect("the table");
    let statement = session.open_statement(&"compare".into(), StatementMode::Write);
    let [rows, entries] = both(session, &shape, 0, &statement.view).await;
    session.close_statement(statement);
    assert_eq!(rows, entries, "TAB-1");
    rows.len()
}

#[test]
fn two_inserters_of_one_unique_key() {
    // TAB-2: the second waits for the first, and what it is told depends on how that ended.
    for commits in [true, false] {
        for_each_seed!(10, move |seed| in_simulation(seed, async move {
            let db = simulated(&SimDisk::new(seed)).await;
            let (mut a, mut b) = (db.session(1, DATABASE), db.session(2, DATABASE));
            let shape = create(&mut a, true, true).await;
            a.begin(TxnOptions::default());
            a.insert(&shape, &row(1, 7, "x")).await.expect("inserted");
            let ended = Arc::new(AtomicBool::new(false));
            let (seen, its) = (ended.clone(), shape.clone());
            let second = testkit::spawn("second", async move {
                b.begin(TxnOptions::default());
                let inserted = b.insert(&its, &row(2, 7, "x")).await;
                assert!(seen.load(Ordering::Relaxed), "it did not wait");
                match inserted {
                    Ok(_) => b.commit(Durability::Wait).await.map(|()| true),
                    Err(EngineError::Duplicate { .. }) => b.roll_back().await.map(|()| false),
                    Err(error) => Err(error),
                }
            });
            testkit::sleep(Duration::from_millis(5)).await;
            ended.store(true, Ordering::Relaxed);
            match commits {
                true => a.commit(Durability::Wait).await.expect("committed"),
                false => a.roll_back().await.expect("rolled back"),
            }
            let inserted = second.await.expect("no other error");
            assert_eq!(inserted, !commits);
            assert_eq!(assert_agreement(&mut a, shape.oid).await, 1);
            drop(a);
            db.close().await.expect("closed");
        }));
    }
}

#[test]
fn a_to_b_to_a_updates_with_purge_running() {
    // The entry of `a` is a ghost, or its purge is under way, when it comes back.
    for_each_seed!(8, |seed| in_simulation(seed, async move {
        let db = simulated(&SimDisk::new(seed)).await;
        let mut session = db.session(1, DATABASE);
        let shape = create(&mut session, true, true).await;
        for id in 0..3 {
            put(&mut session, &shape, id, id * 10).await;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (purges, until) = (db.clone(), stop.clone());
        let purger = testkit::spawn("purger", async move {
            while !until.load(Ordering::Relaxed) {
                purges.transactions().upkeep_step().await.expect("purged");
                testkit::sleep(Duration::from_micros(30)).await;
            }
        });
        let reader = testkit::spawn("reader", reads(db.clone(), shape.clone(), stop.clone()));
        let mut rng = Rng::new(seed);
        for _ in 0..120 {
            let id = rng.below(3) as i64;
            for (from, to) in [(id * 10, id * 10 + 5), (id * 10 + 5, id * 10)] {
                session.begin(TxnOptions::default());
                let (old, new) = (row(id, from, "x"), row(id, to, "x"));
                let changed = session.update(&shape, &key(&shape, id), &old, &new, Basis::Locked).await;
                assert_eq!(changed.expect("updated"), Changed::Done);
                if rng.below(4) == 0 {
                    session.roll_back().await.expect("rolled back");
                    session.begin(TxnOptions::default());
                    let changed = session.update(&shape, &key(&shape, id), &old, &new, Basis::Locked).await;
                    assert_eq!(changed.expect("updated"), Changed::Done);
                }
                testkit::sleep(Duration::from_micros(rng.below(20))).await;
                session.commit(Durability::Async).await.expect("committed");
                testkit::sleep(Duration::from_micros(rng.below(300))).await;
            }
        }
        stop.store(true, Ordering::Relaxed);
        purger.await;
        assert!(reader.await > 5, "nothing was compared");
        assert_eq!(assert_agreement(&mut session, shape.oid).await, 3);
        drop(session);
        db.close().await.expect("closed");
    }));
}

/// Snapshot after snapshot sees table and index agree; how many did.
async fn reads(db: Arc<Db>, shape: Arc<TableShape>, stop: Arc<AtomicBool>) -> usize {
    let mut session = db.session(9, DATABASE);
    let mut compared = 0;
    while !stop.load(Ordering::Relaxed) {
        session.begin(TxnOptions { isolation: Isolation::RepeatableRead, read_only: false });
        let statement = session.open_statement(&"compare".into(), StatementMode::Write);
        let [rows, entries] = both(&mut session, &shape, 0, &statement.view).await;
        assert_eq!(rows, entries, "TAB-1 at {:?}", statement.view);
        session.close_statement(statement);
        session.commit(Durability::Async).await.expect("ended");
        compared += 1;
        testkit::sleep(Duration::from_micros(50)).await;
    }
    compared
}

#[test]
fn old_snapshots_over_new_indexes() {
    // ONL-3, DB-2: a snapshot from before the build, and one from the middle of it, are both too old for the index.
    in_simulation(1, async {
        let db = simulated(&SimDisk::new(1)).await;
        let (mut builder, mut writer) = (db.session(1, DATABASE), db.session(2, DATABASE));
        let shape = create(&mut builder, true, false).await;
        for id in 0..50 {
            put(&mut writer, &shape, id, id).await;
        }
        let repeatable = TxnOptions { isolation: Isolation::RepeatableRead, read_only: false };
        let mut old = [db.session(3, DATABASE), db.session(4, DATABASE)];
        let mut snapshots = Vec::new();
        old[0].begin(repeatable);
        snapshots.push(old[0].open_statement(&"before".into(), StatementMode::Write));
        put(&mut writer, &shape, 100, 100).await;

        builder.begin(TxnOptions::default());
        let mut index = index_on_a(&builder, shape.oid, false);
        index.tree = builder.create_tree().await.expect("a tree").0;
        index.valid_from_lsn = db.transactions().visible_lsn().0;
        let oid = index.oid;
        builder.put_object(Object::Index(index)).await.expect("an index");
        let built = TableShape::new(&builder.catalog(), shape.oid).expect("a shape");
        builder.build_index(&built, 0).await.expect("built");
        old[1].begin(repeatable);
        snapshots.push(old[1].open_statement(&"in the middle".into(), StatementMode::Write));
        builder.commit(Durability::Wait).await.expect("committed");

        let valid_from = Lsn(db.catalog().index(oid).expect("published").valid_from_lsn);
        for snapshot in &snapshots {
            assert!(snapshot.view.read_lsn < valid_from, "{:?} would use it", snapshot.view);
        }
        // What the older one would have met, since entries are loaded settled (BLD-2): one that leads to no row of its own.
        let mut scan = old[0].index_scan(&built, 0, KeyRange::all(), Direction::Forward, &snapshots[0].view);
        let met = loop {
            match old[0].next_by_index(&mut scan).await {
                Ok(Some(_)) => {}
                met => break met,
            }
        };
        assert!(matches!(met, Err(EngineError::BadCatalog(_))), "the test shows nothing: {met:?}");
        let statement = writer.open_statement(&"after".into(), StatementMode::Write);
        assert!(statement.view.read_lsn >= valid_from);
        writer.close_statement(statement);
        assert_eq!(assert_agreement(&mut writer, shape.oid).await, 51);
    });
}

#[test]
fn key_updates_are_followed_by_waiters() {
    // The row is at 1, then at 2, then at 3; a statement that waited for it finds it at its new key.
    in_simulation(3, async {
        let db = simulated(&SimDisk::new(3)).await;
        let (mut mover, mut waiter) = (db.session(1, DATABASE), db.session(2, DATABASE));
        let shape = create(&mut mover, true, true).await;
        put(&mut mover, &shape, 1, 10).await;
        mover.begin(TxnOptions::default());
        for (from, to) in [(1, 2), (2, 3)] {
            let (old, new) = (row(from, 10, "x"), row(to, 10, "x"));
            let moved = mover.update(&shape, &key(&shape, from), &old, &new, Basis::Locked).await;
            assert_eq!(moved.expect("moved"), Changed::Done);
        }
        let its = shape.clone();
        let waiting = testkit::spawn("waiter", async move {
            waiter.begin(TxnOptions::default());
            let (mut at, mut hops) = (key(&its, 1), 0);
            let locked = loop {
                let locked = waiter.lock_row(&its, &at, LockMode::RowUpdate, IfTaken::Wait).await.expect("no error");
                let locked = locked.expect("a row or a ghost");
                match &locked.moved_to {
                    Some(next) if locked.ghost => (at, hops) = (next.to_vec(), hops + 1),
                    _ => break locked,
                }
            };
            assert!(!locked.ghost && hops == 2, "{locked:?} after {hops} hops");
            let new = row(3, 11, "x");
            let changed = waiter.update(&its, &at, &locked.row, &new, Basis::Locked).await.expect("updated");
            waiter.commit(Durability::Wait).await.expect("committed");
            changed
        });
        testkit::sleep(Duration::from_millis(3)).await;
        mover.commit(Durability::Wait).await.expect("committed");
        assert_eq!(waiting.await, Changed::Done);
        let statement = mover.open_statement(&"r".into(), StatementMode::Write);
        let found = mover.get(&shape, &statement.view, &key(&shape, 3)).await.expect("read");
        mover.close_statement(statement);
        assert_eq!(found, Some(row(3, 11, "x")));
        assert_eq!(assert_agreement(&mut mover, shape.oid).await, 1);
    });
}

/// Changes rows until told to stop, each time in the catalog of the moment; how many transactions committed.
async fn writes(db: Arc<Db>, table: Oid, pid: i32, seed: u64, stop: Arc<AtomicBool>, next: Arc<AtomicU64>) -> u64 {
    let (mut session, mut rng, mut committed) = (db.session(pid, DATABASE), Rng::new(seed), 0);
    while !stop.load(Ordering::Relaxed) {
        session.begin(TxnOptions::default());
        match write(&mut session, table, &mut rng, &next).await {
            Ok(()) if rng.below(5) > 0 => {
                session.commit(Durability::Async).await.expect("committed");
                committed += 1;
            }
            _ => session.roll_back().await.expect("rolled back"),
        }
        testkit::sleep(Duration::from_micros(rng.below(200))).await;
    }
    committed
}

async fn write(session: &mut Session, table: Oid, rng: &mut Rng, next: &AtomicU64) -> Result<(), EngineError> {
    let tag = LockTag::Relation { database: DATABASE, relation: u64::from(table) };
    session.lock(tag, LockMode::RowExclusive, LockScope::Transaction, IfTaken::Wait).await?;
    let shape = TableShape::new(&session.catalog(), table)?;
    for _ in 0..1 + rng.below(3) {
        let id = rng.below(150) as i64;
        // No two rows ever have the same.
        let new = row(id, next.fetch_add(1, Ordering::Relaxed) as i64, "x");
        let at = key(&shape, id);
        let locked = session.lock_row(&shape, &at, LockMode::RowUpdate, IfTaken::Wait).await?;
        match locked.filter(|l| !l.ghost) {
            None => _ = session.insert(&shape, &new).await?,
            Some(old) if rng.below(4) == 0 => _ = session.delete(&shape, &at, &old.row, Basis::Locked).await?,
            Some(old) => _ = session.update(&shape, &at, &old.row, &new, Basis::Locked).await?,
        }
    }
    Ok(())
}

async fn build(session: &mut Session, table: Oid, unique: bool) -> Result<Oid, EngineError> {
    session.begin(TxnOptions::default());
    let index = index_on_a(session, table, unique);
    let oid = index.oid;
    let mut building = session.begin_index(index).await?;
    session.wait_for_writers(DATABASE, table).await?;
    session.fill_index(&building).await?;
    session.publish_index(&mut building).await?;
    session.commit(Durability::Wait).await?;
    Ok(oid)
}

#[test]
fn an_index_built_beside_writers_agrees_with_its_table() {
    // ONL-1, ONL-2, and that writers are not held: one transaction stays open for a while, the others go on meanwhile.
    for_each_seed!(12, |seed| in_simulation(seed, async move {
        let db = simulated(&SimDisk::new(seed)).await;
        let (mut builder, mut open) = (db.session(1, DATABASE), db.session(2, DATABASE));
        let shape = create(&mut builder, true, false).await;
        for id in 0..120 {
            put(&mut builder, &shape, id, -1 - id).await;
        }
        open.begin(TxnOptions::default());
        let tag = LockTag::Relation { database: DATABASE, relation: u64::from(shape.oid) };
        open.lock(tag, LockMode::RowExclusive, LockScope::Transaction, IfTaken::Wait).await.expect("locked");
        if seed % 2 == 0 {
            open.insert(&shape, &row(1000, -1000, "x")).await.expect("inserted");
        }
        let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(1)));
        let writers: Vec<_> = (0..4)
            .map(|n| {
                let work = writes(db.clone(), shape.oid, 10 + n, seed * 10 + n as u64, stop.clone(), next.clone());
                testkit::spawn("writer", work)
            })
            .collect();
        let (its, table) = (shape.clone(), shape.oid);
        let is_built = Arc::new(AtomicBool::new(false));
        let done = is_built.clone();
        let built = testkit::spawn("builder", async move {
            let built = build(&mut builder, table, seed % 3 > 0).await;
            done.store(true, Ordering::Relaxed);
            built
        });
        testkit::sleep(Duration::from_millis(20)).await;
        let before = next.load(Ordering::Relaxed);
        // The builder waits for `open`, which waits for this: writers that were held would stand still for good.
        for _ in 0..100 {
            testkit::sleep(Duration::from_millis(20)).await;
            if next.load(Ordering::Relaxed) > before + 20 {
                break;
            }
        }
        let after = next.load(Ordering::Relaxed);
        assert!(after > before + 20, "writers stand still while the builder waits: {before}, {after}");
        assert!(!is_built.load(Ordering::Relaxed), "it did not wait for the transaction that began before");
        // It writes without knowing the index, as it began before that.
        open.insert(&its, &row(1001, -1001, "x")).await.expect("inserted");
        open.commit(Durability::Wait).await.expect("committed");
        let oid = built.await.expect("built");
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            let done = writer.await;
            // How many depends on how soon the build ends.
            assert!(done > 0, "a writer made no change");
        }
        assert_eq!(db.catalog().index(oid).map(|i| i.state), Some(IndexState::Public));
        assert!(assert_agreement(&mut open, table).await > 100);
        assert!(db.transactions().locks().locks().is_empty(), "{:?}", db.transactions().locks().locks());
        drop(open);
        db.close().await.expect("closed");
    }));
}

#[test]
fn a_unique_index_over_duplicates_is_refused_and_leaves_nothing() {
    in_simulation(5, async {
        let db = simulated(&SimDisk::new(5)).await;
        let mut session = db.session(1, DATABASE);
        let shape = create(&mut session, true, false).await;
        for id in 0..100 {
            put(&mut session, &shape, id, id % 99).await;
        }
        let trees = db.transactions().store().space().trees().len();
        let refused = build(&mut session, shape.oid, true).await;
        assert!(matches!(refused, Err(EngineError::Duplicate { .. })), "{refused:?}");
        session.roll_back().await.expect("rolled back");
        testkit::sleep(Duration::from_millis(2000)).await;
        assert_eq!(db.catalog().indexes(shape.oid).count(), 0);
        assert_eq!(db.transactions().store().space().trees().len(), trees);
        assert!(db.transactions().locks().locks().is_empty());
        put(&mut session, &shape, 100, 1).await;
    });
}

/// Fills a table and builds an index on it.
async fn build_alone(disk: SimDisk) {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let shape = create(&mut session, true, false).await;
    for id in 0..70 {
        put(&mut session, &shape, id, 1000 - id).await;
    }
    build(&mut session, shape.oid, true).await.expect("built");
    drop(session);
    db.close().await.expect("closed");
}

/// What is there after a restart: whether the index is.
async fn what_is_left(disk: SimDisk) -> Option<bool> {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    // None: the crash came before there was a table.
    let table = session.catalog().objects().find(|o| o.kind() == "table").map(|o| o.oid())?;
    let is_there = db.catalog().indexes(table).next().is_some();
    if is_there {
        assert_agreement(&mut session, table).await;
    }
    assert!(db.catalog().indexes(table).all(|i| i.state == IndexState::Public));
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
fn a_crash_in_the_middle_of_a_build_leaves_nothing() {
    for_each_seed!(2, |seed| {
        let whole = SimDisk::new(seed);
        in_simulation(seed, build_alone(whole.clone()));
        let (mut rng, mut with, mut without) = (Rng::new(seed), 0, 0);
        for _ in 0..25 {
            let disk = SimDisk::new(seed);
            // The build is the last fifth or so of the run.
            disk.crash_at(rng.range(whole.points() * 3 / 5..whole.points()));
            let ended =
                Sim::with_options(seed, SimOptions { steps_max: 20_000_000 }).block_on(build_alone(disk.clone()));
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
