//! Changes of rows in runs have the same effect as changes one by one, beside other transactions, and are all there or none after a crash.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use clearway_base::for_each_seed;
use clearway_base::testkit::{self, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::catalog::Object;
use clearway_engine::db::Db;
use clearway_engine::error::EngineError;
use clearway_engine::session::batch::Replaced;
use clearway_engine::session::load::Loading;
use clearway_engine::session::{Durability, Isolation, Session, StatementMode, TxnOptions};
use clearway_engine::table::batch::EntryBatch;
use clearway_engine::table::shape::TableShape;
use clearway_engine::table::verify::verify;
use clearway_engine::value::Value;
use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, index_on_a, key, row, simulated};

const ROWS: i64 = 400;
/// Rows from this id on are long.
const LONG: i64 = 100_000;

fn in_simulation<T: Send + 'static>(seed: u64, test: impl Future<Output = T> + Send + 'static) -> T {
    Sim::with_options(seed, SimOptions { steps_max: 40_000_000 }).block_on(test).expect("the run ends")
}

/// A table with an index on `a`.
async fn indexed(session: &mut Session) -> Arc<TableShape> {
    let table = create(session, true, false).await.oid;
    session.begin(TxnOptions::default());
    let mut index = index_on_a(session, table, false);
    index.tree = session.create_tree().await.expect("a tree").0;
    session.put_object(Object::Index(index)).await.expect("put");
    session.commit(Durability::Wait).await.expect("committed");
    TableShape::new(&session.catalog(), table).expect("the table")
}

/// The same with `ROWS` rows.
async fn filled(session: &mut Session) -> Arc<TableShape> {
    let shape = indexed(session).await;
    session.begin(TxnOptions::default());
    insert_all(session, &shape, 0..ROWS).await.expect("inserted");
    session.commit(Durability::Wait).await.expect("committed");
    shape
}

async fn insert_all(
    session: &mut Session,
    shape: &TableShape,
    ids: impl Iterator<Item = i64>,
) -> Result<(), EngineError> {
    let mut loading = Loading::default();
    for id in ids {
        loading.set_number(id as u64);
        // As INSERT does: what needs no wait is taken at once.
        let text = if id < LONG { "xyz".to_owned() } else { "x".repeat(600) };
        if let Some(row) = session.take_one_of(&mut loading, shape, row(id, (id * 7_919) % 1_009, &text))? {
            session.insert_one_of(&mut loading, shape, &row).await?;
        }
    }
    let ended = session.end_loading(&mut loading, shape).await;
    if let Some(failed) = loading.failed() {
        assert_eq!(failed.row[0], Value::Int(failed.number as i64), "LDG-4");
    }
    ended
}

/// The rows that a new statement sees.
async fn rows(session: &mut Session, shape: &Arc<TableShape>) -> Vec<Vec<Value>> {
    let statement = session.open_statement(&"read".into(), StatementMode::Write);
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, &statement.view);
    let mut found = Vec::new();
    while let Some(keyed) = session.next(&mut scan).await.expect("a row") {
        found.push(keyed.row);
    }
    session.close_statement(statement);
    found
}

fn id_of(row: &[Value]) -> i64 {
    let Value::Int(id) = row[0] else { panic!("{row:?}") };
    id
}

/// `a` plus `by` in these rows, those that a run leaves alone; says how many that were.
async fn update(session: &mut Session, shape: &Arc<TableShape>, by: i64) -> usize {
    let statement = session.open_statement(&"update".into(), StatementMode::Write);
    let (mut entries, mut alone) = (EntryBatch::of_bytes(1 << 10), 0);
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, &statement.view);
    let mut changes = Vec::new();
    while let Some(keyed) = session.next(&mut scan).await.expect("a row") {
        let Value::Int(a) = keyed.row[1] else { panic!("{:?}", keyed.row) };
        let mut new = keyed.row.clone();
        (new[1], new[2]) = (Value::Int(a + by), Value::bytes(&b"longer than before"[..(a % 18) as usize]));
        changes.push(Replaced { key: keyed.key.clone(), old: keyed.row, new });
    }
    let mut at = 0;
    while at < changes.len() {
        let basis = Basis::Read(statement.view);
        at += session
            .update_rows(&mut entries, shape, &changes[at..], basis, true)
            .await
            .map_err(|e| e.1)
            .expect("updated");
        if let Some(left) = changes.get(at) {
            let done = session.update(shape, &left.key, &left.old, &left.new, basis).await.expect("updated");
            assert!(matches!(done, Changed::Done | Changed::Newer), "{done:?}");
            (at, alone) = (at + 1, alone + 1);
        }
    }
    session.apply_entries(&mut entries, shape).await.expect("entries");
    session.close_statement(statement);
    alone
}

async fn delete_even(session: &mut Session, shape: &Arc<TableShape>) {
    let statement = session.open_statement(&"delete".into(), StatementMode::Write);
    let mut entries = EntryBatch::of_bytes(1 << 10);
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, &statement.view);
    let mut gone = Vec::new();
    while let Some(keyed) = session.next(&mut scan).await.expect("a row") {
        if id_of(&keyed.row) % 2 == 0 {
            gone.push((keyed.key.clone(), keyed.row));
        }
    }
    let mut at = 0;
    while at < gone.len() {
        let basis = Basis::Read(statement.view);
        at += session.delete_rows(&mut entries, shape, &gone[at..], basis).await.expect("deleted");
        if let Some((key, old)) = gone.get(at) {
            assert_eq!(session.delete(shape, key, old, basis).await.expect("deleted"), Changed::Done);
            at += 1;
        }
    }
    session.apply_entries(&mut entries, shape).await.expect("entries");
    session.close_statement(statement);
}

async fn assert_sound(session: &mut Session, shape: &TableShape) {
    let all = session.db().transactions().clone();
    testkit::sleep(Duration::from_secs(2)).await; // Until the background has taken empty leaves away.
    shape.rows(&all).check().await.expect("a sound tree");
    for index in &shape.indexes {
        index.entries(&all).check().await.expect("a sound tree");
    }
    let found = verify(&all, &session.catalog(), shape.oid).await.expect("read");
    assert!(found.is_empty(), "TAB-1, BAT-1: {found:?}");
}

/// A transaction each: rows, another `a` in all of them, half of them gone, others in their place, and one that is undone. Returns the points of the disk at
/// which each of them began, and the end.
async fn history(disk: SimDisk) -> Vec<u64> {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let shape = indexed(&mut session).await;
    let mut points = Vec::new();
    for step in 0..5 {
        points.push(disk.points());
        session.begin(TxnOptions::default());
        match step {
            0 => insert_all(&mut session, &shape, 0..ROWS).await.expect("inserted"),
            1 => _ = update(&mut session, &shape, 5).await,
            2 => delete_even(&mut session, &shape).await,
            3 => insert_all(&mut session, &shape, (0..ROWS).filter(|id| id % 2 == 0)).await.expect("inserted"),
            _ => {
                insert_all(&mut session, &shape, 1_000..1_000 + ROWS).await.expect("inserted");
                let mark = session.mark();
                delete_even(&mut session, &shape).await;
                insert_all(&mut session, &shape, 2_000..2_000 + ROWS).await.expect("inserted");
                session.roll_back_to(&mark).await.expect("undone");
                update(&mut session, &shape, 100).await;
                delete_even(&mut session, &shape).await;
                session.roll_back().await.expect("undone");
                continue;
            }
        }
        session.commit(Durability::Wait).await.expect("committed");
    }
    points.push(disk.points());
    assert_sound(&mut session, &shape).await;
    drop(session);
    db.close().await.expect("closed");
    points
}

/// How far the history had come: the step after which the rows are as they are.
fn step_of(rows: &[Vec<Value>]) -> Option<usize> {
    let first = |id: i64| (id * 7_919) % 1_009;
    let is = |wanted: &dyn Fn(i64) -> Option<i64>| {
        let all: Vec<(i64, i64)> = (0..ROWS).filter_map(|id| wanted(id).map(|a| (id, a))).collect();
        let found = rows.iter().map(|row| match (&row[0], &row[1]) {
            (Value::Int(id), Value::Int(a)) => (*id, *a),
            other => panic!("{other:?}"),
        });
        found.eq(all)
    };
    let odd = |id: i64| (id % 2 == 1).then(|| first(id) + 5);
    let steps: [&dyn Fn(i64) -> Option<i64>; 5] =
        [&|_| None, &|id| Some(first(id)), &|id| Some(first(id) + 5), &odd, &|id| odd(id).or(Some(first(id)))];
    steps.iter().position(|wanted| is(wanted))
}

/// After a restart: how far the history had come; none: there is no table yet.
async fn what_is_left(disk: SimDisk) -> Option<usize> {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let table = session.catalog().objects().find(|o| o.kind() == "table").map(|o| o.oid())?;
    let shape = TableShape::new(&session.catalog(), table).expect("the table");
    // What was running is undone in the background.
    for _ in 0..50 {
        testkit::sleep(Duration::from_millis(100)).await;
    }
    session.begin(TxnOptions::default());
    let found = rows(&mut session, &shape).await;
    session.roll_back().await.expect("ended");
    assert_sound(&mut session, &shape).await;
    let step = step_of(&found);
    assert!(step.is_some(), "rows of no step: {} of them", found.len());
    drop(session);
    db.close().await.expect("closed");
    step
}

#[test]
fn a_crash_leaves_the_rows_of_whole_statements() {
    for_each_seed!(1, |seed| {
        let whole = SimDisk::new(seed);
        let points = in_simulation(seed, history(whole.clone()));
        assert_eq!(in_simulation(seed, what_is_left(whole.restart())), Some(4));
        let (mut rng, mut seen) = (Rng::new(seed), [0; 5]);
        // Half of them while the last transaction works, which is undone.
        for (step, turn) in (0..5).flat_map(|step| (0..if step == 4 { 16 } else { 4 }).map(move |turn| (step, turn))) {
            let disk = SimDisk::new(seed);
            // The first one as soon as anything is written.
            let at = points[step] + 1;
            disk.crash_at(if turn == 0 { at } else { rng.range(at..points[step + 1].max(at + 1)) });
            let options = SimOptions { steps_max: 40_000_000 };
            let ended = Sim::with_options(seed, options).block_on(history(disk.clone()));
            assert_eq!(ended.err(), Some(Stop::Crashed));
            if let Some(step) = in_simulation(seed, what_is_left(disk.restart())) {
                seen[step] += 1;
            }
        }
        assert!(seen.iter().all(|count| *count > 0), "crashes after too few steps: {seen:?}");
    });
}

/// The ids that the table shows, and those that its index shows, which are the same.
async fn ids(session: &mut Session, shape: &Arc<TableShape>) -> Vec<i64> {
    let found: Vec<i64> = rows(session, shape).await.iter().map(|row| id_of(row)).collect();
    let statement = session.open_statement(&"read".into(), StatementMode::Write);
    let mut scan = session.index_scan(shape, 0, KeyRange::all(), Direction::Forward, &statement.view);
    let mut by_index = Vec::new();
    while let Some(keyed) = session.next_by_index(&mut scan).await.expect("a row") {
        by_index.push(id_of(&keyed.row));
    }
    session.close_statement(statement);
    by_index.sort_unstable();
    assert_eq!(by_index, found, "TAB-1");
    found
}

/// Changes in the book of versions: undo records.
fn records(db: &Db) -> usize {
    let mut count = 0;
    db.transactions().book().undo().for_each(|_| count += 1);
    count
}

#[test]
fn runs_before_and_behind_a_savepoint_are_undone_each_for_itself() {
    // RSH-1, RSH-2
    for_each_seed!(2, |seed| {
        in_simulation(seed, async move {
            let db = simulated(&SimDisk::new(seed)).await;
            let (mut session, mut old) = (db.session(1, DATABASE), db.session(2, DATABASE));
            let shape = filled(&mut session).await;
            old.begin(TxnOptions { isolation: Isolation::RepeatableRead, read_only: false });
            let first: Vec<i64> = (0..ROWS).collect();
            assert_eq!(ids(&mut old, &shape).await, first);

            session.begin(TxnOptions::default());
            insert_all(&mut session, &shape, 1_000..1_000 + ROWS).await.expect("inserted");
            let both: Vec<i64> = (0..ROWS).chain(1_000..1_000 + ROWS).collect();
            let mark = session.mark();
            for _ in 0..2 {
                delete_even(&mut session, &shape).await;
                insert_all(&mut session, &shape, 2_000..2_000 + ROWS).await.expect("inserted");
                assert_eq!(ids(&mut session, &shape).await.len() as i64, 2 * ROWS);
                session.roll_back_to(&mark).await.expect("undone");
                assert_eq!(ids(&mut session, &shape).await, both);
            }
            assert_eq!(ids(&mut old, &shape).await, first);
            // Rows of the run get records of their own above it, and lose them.
            update(&mut session, &shape, 3).await;
            session.roll_back_to(&mark).await.expect("undone");
            delete_even(&mut session, &shape).await;
            session.commit(Durability::Wait).await.expect("committed");
            assert_sound(&mut session, &shape).await;

            // The rows of a run are changed again under a snapshot from before it, and one from after it.
            let odd: Vec<i64> = both.iter().copied().filter(|id| id % 2 == 1).collect();
            let mut newer = db.session(3, DATABASE);
            newer.begin(TxnOptions { isolation: Isolation::RepeatableRead, read_only: false });
            assert_eq!(ids(&mut newer, &shape).await, odd);
            for by in [7, 9] {
                session.begin(TxnOptions::default());
                update(&mut session, &shape, by).await;
                insert_all(&mut session, &shape, both.iter().copied().filter(|id| id % 2 == 0)).await.expect("back");
                session.commit(Durability::Wait).await.expect("committed");
                testkit::sleep(Duration::from_millis(300)).await;
                session.begin(TxnOptions::default());
                delete_even(&mut session, &shape).await;
                session.commit(Durability::Wait).await.expect("committed");
                testkit::sleep(Duration::from_millis(300)).await;
                assert_eq!((ids(&mut old, &shape).await, ids(&mut newer, &shape).await), (first.clone(), odd.clone()));
            }
            old.roll_back().await.expect("ended");
            newer.roll_back().await.expect("ended");
            drop((old, newer));
            testkit::sleep(Duration::from_secs(2)).await;
            session.begin(TxnOptions::default());
            assert_eq!(ids(&mut session, &shape).await, odd);
            session.roll_back().await.expect("ended");
            assert_sound(&mut session, &shape).await;
            let ghosts = purgeable(&db, &shape).await;
            assert_eq!(ghosts, 0, "PUR-1: each row of a run is purged");
            drop(session);
            db.close().await.expect("closed");
        });
    });
}

#[test]
fn each_row_of_a_run_has_its_own_value_before() {
    // RSH-5. With a budget, the records are in the spill file.
    for budget in [None, Some(16 << 10)] {
        in_simulation(1, async move {
            let db = simulated(&SimDisk::new(1)).await;
            if let Some(budget) = budget {
                db.transactions().book().set_budget(budget);
            }
            let (mut session, mut old) = (db.session(1, DATABASE), db.session(2, DATABASE));
            let shape = filled(&mut session).await;
            testkit::sleep(Duration::from_secs(2)).await;
            old.begin(TxnOptions { isolation: Isolation::RepeatableRead, read_only: false });
            let first = rows(&mut old, &shape).await;
            for deletes in [false, true, false] {
                session.begin(TxnOptions::default());
                let mark = session.mark();
                for _ in 0..2 {
                    match deletes {
                        true => delete_even(&mut session, &shape).await,
                        false => _ = update(&mut session, &shape, 5).await,
                    }
                    assert_ne!(rows(&mut session, &shape).await, first);
                    assert_eq!(rows(&mut old, &shape).await, first, "under a snapshot from before the run");
                    let statement = old.open_statement(&"read".into(), StatementMode::Write);
                    for row in first.iter().step_by(37) {
                        let found = old.get(&shape, &statement.view, &key(&shape, id_of(row))).await;
                        assert_eq!(found.expect("looked up").as_ref(), Some(row), "by its key");
                    }
                    old.close_statement(statement);
                    session.roll_back_to(&mark).await.expect("undone");
                    assert_eq!(rows(&mut session, &shape).await, first, "after the undo of the run");
                }
                session.roll_back().await.expect("undone");
            }
            session.begin(TxnOptions::default());
            update(&mut session, &shape, 5).await;
            session.commit(Durability::Wait).await.expect("committed");
            let spilled = db.transactions().book().spill_file().map_or(0, |file| file.written_bytes());
            assert_eq!(spilled > 0, budget.is_some(), "{spilled} bytes were spilled");
            session.begin(TxnOptions::default());
            delete_even(&mut session, &shape).await;
            session.commit(Durability::Wait).await.expect("committed");
            // Committed, durable, and pruned as far as the snapshot lets it.
            testkit::sleep(Duration::from_secs(2)).await;
            assert_eq!(rows(&mut old, &shape).await, first, "behind two committed runs");
            old.roll_back().await.expect("ended");
            assert_sound(&mut session, &shape).await;
            drop((session, old));
            db.close().await.expect("closed");
        });
    }
}

/// Ghosts in the trees of a table.
async fn purgeable(db: &Db, shape: &TableShape) -> u64 {
    let all = db.transactions();
    let mut ghosts = 0;
    for tree in std::iter::once(shape.rows(all)).chain(shape.indexes.iter().map(|index| index.entries(all))) {
        let mut cursor = tree.cursor(KeyRange::all(), Direction::Forward);
        while let Some(leaf) = cursor.next_leaf().await.expect("a leaf") {
            ghosts += leaf.iter().filter(|(_, row)| row.ghost).count() as u64;
        }
    }
    ghosts
}

#[test]
fn neighbours_that_change_in_the_same_way_share_a_record() {
    // RSH-2
    in_simulation(1, async {
        let db = simulated(&SimDisk::new(1)).await;
        let mut session = db.session(1, DATABASE);
        let shape = indexed(&mut session).await;
        session.begin(TxnOptions::default());
        insert_all(&mut session, &shape, 0..4 * ROWS).await.expect("inserted");
        let inserted = records(&db);
        assert!(inserted < ROWS as usize, "{inserted} records for {} new rows and their entries", 4 * ROWS);
        session.commit(Durability::Wait).await.expect("committed");
        testkit::sleep(Duration::from_secs(2)).await;
        let before = records(&db);
        session.begin(TxnOptions::default());
        delete_even(&mut session, &shape).await;
        let (deleted, rows) = (records(&db) - before, 2 * ROWS as usize);
        assert!(deleted < rows / 4, "{deleted} records for {rows} rows and their entries");
        session.roll_back().await.expect("undone");
        let before = records(&db);
        session.begin(TxnOptions::default());
        update(&mut session, &shape, 0).await;
        let updated = records(&db) - before;
        assert!(updated < rows / 2, "{updated} records for {} rows with other values", 2 * rows);
        session.roll_back().await.expect("undone");
        session.begin(TxnOptions::default());
        assert_eq!(ids(&mut session, &shape).await, (0..4 * ROWS).collect::<Vec<_>>());
        session.roll_back().await.expect("ended");
        assert_sound(&mut session, &shape).await;
        drop(session);
        db.close().await.expect("closed");
    });
}

/// Polls a future so many times, and drops it if it is not done then.
async fn polled<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let (mut future, mut polls) = (std::pin::pin!(future), 0);
    std::future::poll_fn(|cx| {
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if polls >= times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

#[test]
fn a_rollback_of_runs_that_is_broken_off_goes_on_where_it_was() {
    // RSH-3. With a budget, part of the undo is in the spill file.
    for budget in [None, Some(64 << 10)] {
        in_simulation(1, async move {
            let db = simulated(&SimDisk::new(1)).await;
            if let Some(budget) = budget {
                db.transactions().book().set_budget(budget);
            }
            let mut session = db.session(1, DATABASE);
            let shape = filled(&mut session).await;
            session.begin(TxnOptions::default());
            let mark = session.mark();
            // More than the cache holds, so that the rollback has to wait for pages.
            insert_all(&mut session, &shape, LONG..LONG + 3_000).await.expect("inserted");
            delete_even(&mut session, &shape).await;
            let mut broken_off = 0;
            while polled(2 + broken_off % 3, session.roll_back_to(&mark)).await.is_none() {
                broken_off += 1;
            }
            assert!(broken_off > 20, "broken off {broken_off} times");
            let spilled = db.transactions().book().spill_file().map_or(0, |file| file.written_bytes());
            assert_eq!(spilled > 0, budget.is_some(), "{spilled} bytes were spilled");
            assert_eq!(ids(&mut session, &shape).await, (0..ROWS).collect::<Vec<_>>());
            session.commit(Durability::Wait).await.expect("committed");
            assert_sound(&mut session, &shape).await;
            drop(session);
            db.close().await.expect("closed");
        });
    }
}

/// A transaction of runs is undone a part of the way, with checkpoints before and after, and then the world stops.
async fn stopped(disk: SimDisk, polls: usize) -> (usize, usize) {
    let db = simulated(&disk).await;
    let mut session = db.session(1, DATABASE);
    let shape = filled(&mut session).await;
    session.begin(TxnOptions::default());
    let mark = session.mark();
    insert_all(&mut session, &shape, LONG..LONG + 1_000).await.expect("inserted");
    delete_even(&mut session, &shape).await;
    let active = || {
        let all = db.transactions().book().active();
        all.first().map_or(0, |txn| txn.changes())
    };
    let (made, store) = (active(), db.transactions().store().clone());
    // The second one saves the undo of a transaction that began before the first one.
    for _ in 0..2 {
        store.checkpoint().await.expect("a checkpoint");
    }
    for _ in 0..polls {
        if polled(2, session.roll_back_to(&mark)).await.is_some() {
            break;
        }
    }
    for _ in 0..2 {
        store.checkpoint().await.expect("a checkpoint");
    }
    (made, active())
}

#[test]
fn checkpoints_among_runs_and_their_undo_keep_what_is_left_to_undo() {
    // BTR-24, REC-2
    for polls in [0, 1, 10, 60] {
        let disk = SimDisk::new(1);
        let (made, left) = in_simulation(1, stopped(disk.clone(), polls));
        assert!(left > 0 && (polls < 10 || left < made), "{left} of {made} changes are left after {polls} polls");
        in_simulation(1, async move {
            let db = simulated(&disk.restart()).await;
            let mut session = db.session(1, DATABASE);
            let table = session.catalog().objects().find(|o| o.kind() == "table").map(|o| o.oid()).expect("a table");
            let shape = TableShape::new(&session.catalog(), table).expect("the table");
            testkit::sleep(Duration::from_secs(5)).await;
            session.begin(TxnOptions::default());
            assert_eq!(ids(&mut session, &shape).await, (0..ROWS).collect::<Vec<_>>(), "after {polls} polls");
            session.roll_back().await.expect("ended");
            assert_sound(&mut session, &shape).await;
            drop(session);
            db.close().await.expect("closed");
        });
    }
}

#[test]
fn a_run_ends_before_a_row_that_another_transaction_has() {
    in_simulation(1, async {
        let db = simulated(&SimDisk::new(1)).await;
        let (mut session, mut other) = (db.session(1, DATABASE), db.session(2, DATABASE));
        let shape = filled(&mut session).await;
        other.begin(TxnOptions::default());
        let (old, new) = (row(57, (57 * 7_919) % 1_009, "xyz"), row(57, 9_000, "other"));
        let done = other.update(&shape, &key(&shape, 57), &old, &new, Basis::Locked).await.expect("updated");
        assert_eq!(done, Changed::Done);
        let waiting = {
            let (db, shape) = (db.clone(), shape.clone());
            testkit::spawn("waiter", async move {
                let mut session = db.session(3, DATABASE);
                session.begin(TxnOptions::default());
                let alone = update(&mut session, &shape, 5).await;
                session.commit(Durability::Wait).await.expect("committed");
                alone
            })
        };
        testkit::sleep(Duration::from_millis(200)).await;
        other.commit(Durability::Wait).await.expect("committed");
        let alone = waiting.await;
        // TXN-11: the row of the other transaction, those behind it in its leaf, which has a hint of locks now, and those that a split takes.
        assert!((1..ROWS as usize / 2).contains(&alone), "{alone} rows one by one");
        session.begin(TxnOptions::default());
        let found = rows(&mut session, &shape).await;
        session.roll_back().await.expect("ended");
        assert_eq!((found.len() as i64, &found[57]), (ROWS, &new), "a row that was changed since is for the caller");
        assert_eq!(found[58][1], Value::Int((58 * 7_919) % 1_009 + 5));
        assert_sound(&mut session, &shape).await;
        drop((session, other));
        db.close().await.expect("closed");
    });
}

#[test]
fn a_duplicate_is_the_first_one_in_the_order_of_the_rows() {
    in_simulation(1, async {
        let db = simulated(&SimDisk::new(1)).await;
        let mut session = db.session(1, DATABASE);
        let shape = indexed(&mut session).await;
        session.begin(TxnOptions::default());
        insert_all(&mut session, &shape, [300, 310].into_iter()).await.expect("inserted");
        session.commit(Durability::Wait).await.expect("committed");
        session.begin(TxnOptions::default());
        let mut loading = Loading::default();
        for id in (200..280).chain([310, 300]) {
            loading.set_number(id);
            if let Some(row) = session.take_one_of(&mut loading, &shape, row(id as i64, 1, "")).expect("taken") {
                session.insert_one_of(&mut loading, &shape, &row).await.expect("gathered");
            }
        }
        let ended = session.end_loading(&mut loading, &shape).await;
        assert!(matches!(ended, Err(EngineError::Duplicate { .. })), "{ended:?}");
        assert_eq!(loading.failed().map(|failed| failed.number), Some(310), "LDG-4");
        session.roll_back().await.expect("undone");
        assert_sound(&mut session, &shape).await;
        drop(session);
        db.close().await.expect("closed");
    });
}
