//! The space of superseded values, ghosts and undo is given back, also when a crash comes in between.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use clearway_base::for_each_seed;
use clearway_base::sync::sleep;
use clearway_base::testkit::{self, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::OpKind;
use clearway_base::vfs::sim::{Fault, SimDisk};
use clearway_engine::db::Db;
use clearway_engine::session::{Durability, Session, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_storage::ids::TreeId;
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, key, memory, open, row, run, simulated};

/// One version after the other of row 1, each in a transaction of its own; every seventh is rolled back.
async fn replace(session: &mut Session, shape: &TableShape, a: i64, bytes: usize) {
    session.begin(TxnOptions::default());
    let statement = session.open_statement(&"replace".into(), clearway_engine::session::StatementMode::Write);
    let old = session.get(shape, &statement.view, &key(shape, 1)).await.expect("read").expect("the row");
    let new = row(1, a, &char::from(b'a' + (a % 26) as u8).to_string().repeat(bytes));
    let basis = Basis::Read(statement.view);
    assert_eq!(session.update(shape, &key(shape, 1), &old, &new, basis).await.expect("updated"), Changed::Done);
    session.close_statement(statement);
    if a % 7 == 6 {
        session.roll_back().await.expect("rolled back");
    } else {
        session.commit(Durability::Wait).await.expect("committed");
    }
}

fn pages(db: &Db) -> usize {
    db.transactions().store().space().allocated().len()
}

/// Until everything that was superseded is free.
async fn settle(db: &Db) {
    for _ in 0..600 {
        if db.transactions().store().pending_chains() == 0 {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("{} chains are still not free", db.transactions().store().pending_chains());
}

#[test]
fn a_large_value_that_is_replaced_1000_times_takes_the_space_of_a_few() {
    // TXN-5, PND-1. A megabyte in the long form (CLEARWAY_LONG), 64 kB else.
    let bytes = if std::env::var_os("CLEARWAY_LONG").is_some() { 1 << 20 } else { 64 << 10 };
    let db = open(&memory());
    let mut session = db.session(1, DATABASE);
    run(async {
        let shape = create(&mut session, true, false).await;
        session.begin(TxnOptions::default());
        session.insert(&shape, &row(1, 0, "first")).await.expect("inserted");
        session.commit(Durability::Wait).await.expect("committed");
        let empty = pages(&db);
        let mut highest = 0;
        for a in 0..1000 {
            replace(&mut session, &shape, a, bytes).await;
            highest = highest.max(pages(&db) - empty);
            // Upkeep comes each 100 ms: what is between two of its steps may pile up, not more.
            if a % 50 == 49 {
                settle(&db).await;
                assert!(pages(&db) - empty <= bytes / 8000 + 4, "{} pages after {a}", pages(&db) - empty);
            }
        }
        println!("at most {highest} pages for values of {} pages", bytes / 8192);
        assert!(highest <= 60 * (bytes / 8000 + 1), "{highest} pages for a value of {} pages", bytes / 8192);
    });
}

async fn shape_of(session: &mut Session) -> Arc<TableShape> {
    let catalog = session.catalog();
    let table = catalog.objects().find(|o| o.kind() == "table").map(|o| o.oid());
    match table {
        Some(oid) => TableShape::new(&catalog, oid).expect("a shape"),
        None => create(session, true, true).await,
    }
}

/// One life: the value is replaced again and again until the world ends.
async fn life(disk: SimDisk, updates: i64) -> usize {
    const BYTES: usize = 30_000;
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let shape = shape_of(&mut session).await;
    session.begin(TxnOptions::default());
    if session.insert(&shape, &row(1, 0, "first")).await.is_ok() {
        session.commit(Durability::Wait).await.expect("committed");
    } else {
        session.roll_back().await.expect("rolled back");
    }
    for a in 0..updates {
        replace(&mut session, &shape, a, BYTES).await;
    }
    drop(session);
    db.undo_losers().await.expect("undone");
    settle(&db).await;
    let pages = pages(&db);
    db.close().await.expect("closed");
    pages
}

#[test]
fn large_values_leave_nothing_behind_over_many_crashes() {
    for_each_seed!(3, |seed| {
        let options = || SimOptions { steps_max: 5_000_000 };
        let whole = SimDisk::new(seed);
        let disk = whole.clone();
        let alone = Sim::with_options(seed, options()).block_on(life(disk, 40)).expect("the run ends");
        let mut rng = Rng::new(seed);
        let mut disk = SimDisk::new(seed);
        for _ in 0..8 {
            disk.crash_at(rng.range(1..whole.points()));
            match Sim::with_options(seed, options()).block_on(life(disk.clone(), 40)) {
                Err(Stop::Crashed) => {}
                other => assert!(other.is_ok(), "{other:?}"),
            }
            disk = disk.restart();
        }
        let after = Sim::with_options(seed, options()).block_on(life(disk, 1)).expect("the run ends");
        assert!(after <= alone + 2, "{after} pages after eight crashes, {alone} without");
    });
}

async fn ghosts(db: &Db, tree: TreeId) -> usize {
    let tree = db.transactions().store().tree(tree);
    let mut cursor = tree.cursor(KeyRange::all(), Direction::Forward);
    let mut ghosts = 0;
    while let Some(leaf) = cursor.next_leaf().await.expect("readable") {
        ghosts += leaf.iter().filter(|(_, row)| row.ghost).count();
    }
    ghosts
}

#[test]
fn ghosts_that_a_crash_left_are_purged_after_the_restart() {
    // GHO-1: the crash comes right after the commit, before any upkeep.
    let disk = SimDisk::new(1);
    let first = disk.clone();
    let left = Sim::new(1).block_on(async move {
        let db = simulated(&first).await;
        let mut session = db.session(1, DATABASE);
        let shape = shape_of(&mut session).await;
        for deletes in [false, true] {
            session.begin(TxnOptions::default());
            for id in 0..400 {
                let (key, row) = (key(&shape, id), row(id, id, "x"));
                match deletes {
                    false => _ = session.insert(&shape, &row).await.expect("inserted"),
                    true => _ = session.delete(&shape, &key, &row, Basis::Locked).await.expect("deleted"),
                }
            }
            session.commit(Durability::Wait).await.expect("committed");
        }
        testkit::crash();
    });
    assert_eq!(left.err(), Some(Stop::Crashed));
    let second = disk.restart();
    Sim::new(2)
        .block_on(async move {
            let db = simulated(&second).await;
            let mut session = db.session(1, DATABASE);
            let shape = shape_of(&mut session).await;
            let trees = [shape.tree, shape.indexes[0].tree];
            assert!(ghosts(&db, trees[0]).await > 0, "nothing to purge: the test shows nothing");
            for _ in 0..100 {
                if db.ghosts().progress().0 == 0 {
                    break;
                }
                sleep(Duration::from_millis(100)).await;
            }
            for tree in trees {
                assert_eq!(ghosts(&db, tree).await, 0, "{tree:?}, {:?}", db.ghosts().progress());
            }
            drop(session);
            db.close().await.expect("closed");
        })
        .expect("the run ends");
}

#[test]
fn what_one_statement_deleted_is_purged_leaf_by_leaf() {
    // PUR-1, BTR-20
    Sim::new(1)
        .block_on(async {
            let db = simulated(&SimDisk::new(1)).await;
            let mut session = db.session(1, DATABASE);
            let shape = shape_of(&mut session).await;
            for deletes in [false, true] {
                session.begin(TxnOptions::default());
                for id in 0..400 {
                    let (key, row) = (key(&shape, id), row(id, id * 7_919 % 1_009, "xyz"));
                    match deletes {
                        false => _ = session.insert(&shape, &row).await.expect("inserted"),
                        true => _ = session.delete(&shape, &key, &row, Basis::Locked).await.expect("deleted"),
                    }
                }
                session.commit(Durability::Wait).await.expect("committed");
            }
            let (all, trees) = (db.transactions(), [shape.tree, shape.indexes[0].tree]);
            {
                let mut step = std::pin::pin!(all.upkeep_step());
                std::future::poll_fn(|context| std::task::Poll::Ready(step.as_mut().poll(context).is_pending())).await;
            }
            let left = all.book().purgeable();
            assert!(0 < left && left < 800, "{left} rows are to be purged after a step that was given up in between");
            let before = all.store().wal().end_lsn();
            while all.upkeep_step().await.expect("upkeep") > 0 {}
            let bytes = all.store().wal().end_lsn().0 - before.0;
            // A record for each row would take 72 at least.
            assert!(bytes < 16 * left as u64, "{bytes} bytes of log for {left} rows");
            for tree in trees {
                assert_eq!(ghosts(&db, tree).await, 0, "{tree:?}");
            }
            drop(session);
            db.close().await.expect("closed");
        })
        .expect("the run ends");
}

/// Rows of a kilobyte, each in a transaction of its own, until there is no page for one more; how many there are.
async fn fill_up(session: &mut Session, shape: &TableShape, from: i64) -> i64 {
    for id in from.. {
        session.begin(TxnOptions::default());
        match session.insert(shape, &row(id, id, &"x".repeat(1000))).await {
            Ok(_) => session.commit(Durability::Wait).await.expect("committed"),
            Err(error) => {
                assert!(error.to_string().contains("no space"), "{error}");
                session.roll_back().await.expect("rolled back");
                return id;
            }
        }
    }
    unreachable!("a disk without end")
}

#[test]
fn pages_of_a_dropped_table_are_used_on_a_full_disk_though_nobody_commits() {
    // SPC-4: every snapshot gets above the freeing records, also when what would be committed waits for a page.
    for_each_seed!(3, |seed| {
        let run = Sim::with_options(seed, SimOptions { steps_max: 20_000_000 }).block_on(async move {
            let disk = SimDisk::new(seed);
            let db = simulated(&disk).await;
            let mut session = db.session(1, DATABASE);
            let (kept, dropped) = (create(&mut session, true, false).await, create(&mut session, true, false).await);
            fill_some(&mut session, &dropped, 400).await;
            disk.plant(Fault::on(OpKind::Preallocate, ErrorKind::StorageFull).path(".dat").times(u64::MAX));
            let next = fill_up(&mut session, &kept, 0).await;
            let before = pages(&db);
            session.begin(TxnOptions::default());
            session.drop_object(dropped.oid).await.expect("dropped");
            session.drop_tree_at_commit(dropped.rows(db.transactions()).id());
            session.commit(Durability::Wait).await.expect("committed");
            while pages(&db) + 40 > before {
                testkit::sleep(Duration::from_millis(50)).await;
            }
            // Nothing commits from here on but what finds pages.
            let mut tries = 0;
            while fill_up(&mut session, &kept, next).await == next {
                tries += 1;
                assert!(tries < 100, "after {tries} tries, {} of {before} pages are in use", pages(&db));
                testkit::sleep(Duration::from_millis(100)).await;
            }
            disk.clear_faults();
            drop(session);
            db.close().await.expect("closed");
        });
        run.expect("the run ends");
    });
}

async fn fill_some(session: &mut Session, shape: &TableShape, rows: i64) {
    for id in 0..rows {
        session.begin(TxnOptions::default());
        session.insert(shape, &row(id, id, &"x".repeat(1000))).await.expect("inserted");
        session.commit(Durability::Wait).await.expect("committed");
    }
}
