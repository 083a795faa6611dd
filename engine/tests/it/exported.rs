//! Exported snapshots: what keeps their versions, what they show, and when they end.

use std::sync::Arc;

use clearway_engine::db::Db;
use clearway_engine::session::{Durability, ImportRefused, Isolation, Session, Statement, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_txn::transaction::{Basis, Changed};

use super::support::{DATABASE, create, key, memory, open, read_a, row, run};

const REPEATABLE: TxnOptions = TxnOptions { isolation: Isolation::RepeatableRead, read_only: false };

/// Changes the only row without committing.
async fn change_within(session: &mut Session, shape: &TableShape, from: i64, to: i64) {
    let (old, new) = (row(1, from, "x"), row(1, to, "x"));
    let changed = session.update(shape, &key(shape, 1), &old, &new, Basis::Locked).await;
    assert_eq!(changed.expect("updated"), Changed::Done);
}

async fn change(session: &mut Session, shape: &TableShape, from: i64, to: i64) {
    session.begin(TxnOptions::default());
    change_within(session, shape, from, to).await;
    session.commit(Durability::Wait).await.expect("committed");
}

/// Changes the row again and again, and prunes what no snapshot reads.
async fn change_and_prune(db: &Db, session: &mut Session, shape: &TableShape, from: i64, to: i64) {
    for a in from..to {
        change(session, shape, a, a + 1).await;
        db.transactions().upkeep_step().await.expect("pruned");
    }
}

fn statement(session: &mut Session) -> Statement {
    session.open_statement(&"export".into(), StatementMode::Write)
}

/// Exports what a new statement sees, and closes the statement.
fn export(session: &mut Session) -> String {
    let statement = statement(session);
    let id = session.export_snapshot(&statement.view, false);
    session.close_statement(statement);
    id
}

fn import(session: &mut Session, id: &str) -> Result<(), ImportRefused> {
    session.begin(REPEATABLE);
    session.import_snapshot(id, false)
}

/// A table with the row (1, 10, x).
async fn filled(session: &mut Session) -> Arc<TableShape> {
    let shape = create(session, true, false).await;
    session.begin(TxnOptions::default());
    session.insert(&shape, &row(1, 10, "x")).await.expect("inserted");
    session.commit(Durability::Wait).await.expect("committed");
    shape
}

#[test]
fn versions_are_kept_for_an_exported_snapshot_alone() {
    // XPT-1, SNP-4
    let db = open(&memory());
    let (mut writer, mut exporter) = (db.session(1, DATABASE), db.session(2, DATABASE));
    let (mut importer, mut late) = (db.session(3, DATABASE), db.session(4, DATABASE));
    run(async {
        let shape = filled(&mut writer).await;
        // Under read committed nothing else holds the snapshot when the statement has ended.
        exporter.begin(TxnOptions::default());
        let id = export(&mut exporter);
        change_and_prune(&db, &mut writer, &shape, 10, 30).await;
        assert_eq!(import(&mut importer, &id), Ok(()));
        exporter.commit(Durability::Wait).await.expect("committed");
        change_and_prune(&db, &mut writer, &shape, 30, 50).await;
        assert_eq!(read_a(&mut importer, &shape, 1).await, Some(10));
        assert_eq!(import(&mut late, &id), Err(ImportRefused::Unknown), "its transaction has ended");
        late.roll_back().await.expect("ended");
        importer.commit(Durability::Wait).await.expect("committed");
        assert_eq!(read_a(&mut importer, &shape, 1).await, Some(50));
        let durable = db.transactions().store().wal().durable_lsn();
        let horizon = db.transactions().book().snapshots().refresh(durable);
        assert_eq!(horizon.oldest(), durable, "a snapshot is left");
        drop((writer, exporter, importer, late));
        db.close().await.expect("closed");
    });
}

#[test]
fn an_exported_snapshot_shows_nothing_of_its_own_transaction() {
    // XPT-4
    let db = open(&memory());
    let mut sessions = [1, 2, 3].map(|pid| db.session(pid, DATABASE));
    run(async {
        let [exporter, first, second] = &mut sessions;
        let shape = filled(exporter).await;
        exporter.begin(REPEATABLE);
        change_within(exporter, &shape, 10, 99).await;
        let id = export(exporter);
        assert_eq!(read_a(exporter, &shape, 1).await, Some(99));
        import(first, &id).expect("imported");
        assert_eq!(read_a(first, &shape, 1).await, Some(10));
        import(second, &id).expect("imported");
        exporter.commit(Durability::Wait).await.expect("committed");
        assert_eq!(read_a(first, &shape, 1).await, Some(10));
        assert_eq!(read_a(second, &shape, 1).await, Some(10));
        first.roll_back().await.expect("ended");
        second.roll_back().await.expect("ended");
        assert_eq!(read_a(first, &shape, 1).await, Some(99));
        drop(sessions);
        db.close().await.expect("closed");
    });
}

#[test]
fn an_importer_reads_below_its_own_commits_and_begins_no_snapshot_there() {
    // SNP-3
    let db = open(&memory());
    let mut sessions = [1, 2].map(|pid| db.session(pid, DATABASE));
    run(async {
        let [exporter, importer] = &mut sessions;
        let shape = filled(exporter).await;
        exporter.begin(TxnOptions::default());
        let id = export(exporter);
        change(importer, &shape, 10, 11).await;
        import(importer, &id).expect("imported");
        assert_eq!(read_a(importer, &shape, 1).await, Some(10));
        // What DDL and checks of foreign keys read.
        let newest = importer.open_newest();
        let found = importer.get(&shape, &newest.view, &key(&shape, 1)).await.expect("a read");
        assert_eq!(found, Some(row(1, 11, "x")));
        importer.close_statement(newest);
        importer.commit(Durability::Wait).await.expect("committed");
        assert_eq!(read_a(importer, &shape, 1).await, Some(11));
        exporter.roll_back().await.expect("ended");
        drop(sessions);
        db.close().await.expect("closed");
    });
}

#[test]
fn replies_of_an_importer_wait_for_what_the_snapshot_shows() {
    // XPT-3
    let db = open(&memory());
    let mut sessions = [1, 2, 3].map(|pid| db.session(pid, DATABASE));
    run(async {
        let [writer, exporter, importer] = &mut sessions;
        let shape = filled(writer).await;
        writer.begin(TxnOptions::default());
        change_within(writer, &shape, 10, 11).await;
        writer.commit_early(Durability::Wait).await.expect("committed");
        exporter.begin(TxnOptions::default());
        let id = export(exporter);
        import(importer, &id).expect("imported");
        assert!(importer.dep_lsn() >= writer.dep_lsn(), "the commit is seen");
        importer.wait_reply().await.expect("durable");
        assert!(db.transactions().store().wal().durable_lsn() >= writer.dep_lsn());
        importer.roll_back().await.expect("ended");
        exporter.roll_back().await.expect("ended");
        writer.wait_reply().await.expect("durable");
        drop(sessions);
        db.close().await.expect("closed");
    });
}

#[test]
fn an_id_ends_with_its_session_and_is_not_given_again() {
    // XPT-2
    let db = open(&memory());
    let mut importer = db.session(9, DATABASE);
    run(async {
        let mut ids = Vec::new();
        for pid in 1..4 {
            // Each has the slot of the one before.
            let mut exporter = db.session(pid, DATABASE);
            exporter.begin(TxnOptions::default());
            ids.extend([export(&mut exporter), export(&mut exporter)]);
            assert_eq!(import(&mut importer, ids.last().expect("an id")), Ok(()));
            importer.roll_back().await.expect("ended");
            drop(exporter);
            db.undo_losers().await.expect("undone, and the slot is free");
            for id in &ids {
                assert_eq!(import(&mut importer, id), Err(ImportRefused::Unknown), "{id}");
                importer.roll_back().await.expect("ended");
            }
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 6, "{ids:?}");
        drop(importer);
        db.close().await.expect("closed");
    });
}

#[test]
fn imports_are_refused() {
    let db = open(&memory());
    let mut sessions = [1, 2].map(|pid| db.session(pid, DATABASE));
    let mut elsewhere = db.session(3, DATABASE + 1);
    run(async {
        let [exporter, importer] = &mut sessions;
        let shape = filled(exporter).await;
        exporter.begin(TxnOptions { read_only: true, ..REPEATABLE });
        let view = statement(exporter);
        let (plain, serializable) =
            (exporter.export_snapshot(&view.view, false), exporter.export_snapshot(&view.view, true));
        exporter.close_statement(view);
        importer.begin(TxnOptions::default());
        assert_eq!(importer.import_snapshot("x", false), Err(ImportRefused::ReadCommitted));
        importer.set_options(REPEATABLE);
        assert_eq!(importer.import_snapshot("x", true), Err(ImportRefused::Unknown));
        assert_eq!(importer.import_snapshot(&plain, true), Err(ImportRefused::NotSerializable));
        assert_eq!(importer.import_snapshot(&serializable, true), Err(ImportRefused::ReadOnly));
        importer.set_options(TxnOptions { read_only: true, ..REPEATABLE });
        assert_eq!(importer.import_snapshot(&serializable, true), Ok(()));
        assert_eq!(importer.import_snapshot(&serializable, true), Err(ImportRefused::NotFirst));
        importer.roll_back().await.expect("ended");
        assert_eq!(import(&mut elsewhere, &plain), Err(ImportRefused::OtherDatabase));
        elsewhere.roll_back().await.expect("ended");
        importer.begin(REPEATABLE);
        importer.insert(&shape, &row(2, 20, "y")).await.expect("inserted");
        assert_eq!(importer.import_snapshot(&plain, false), Err(ImportRefused::NotFirst), "it has changed something");
        importer.roll_back().await.expect("ended");
        exporter.roll_back().await.expect("ended");
        drop((sessions, elsewhere));
        db.close().await.expect("closed");
    });
}
