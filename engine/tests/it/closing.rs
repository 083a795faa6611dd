//! Closing is final for every clone (EMB-6).

use clearway_engine::embedded::{Database, Error};
use std::sync::mpsc;
use std::thread;

#[test]
fn after_close_every_clone_is_told_and_the_directory_opens_clean() {
    let dir = std::env::temp_dir().join(format!("clearway-closing-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let db = Database::open(&dir).expect("a database");
    let table = db.table::<i64, (i64,)>("t", &["id"], &["v"]).expect("a table");
    let clone = db.clone();
    db.transact(|txn| txn.put(&table, &1, &(1,))).expect("a row");
    db.close().expect("closed");
    for _ in 0..2 {
        let refused = clone.transact(|txn| txn.put(&table, &2, &(2,)));
        assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
        let refused = clone.update_with(&table, &1, |row| row.0 += 1);
        assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
        assert!(matches!(clone.table::<i64, (i64,)>("u", &["id"], &["v"]), Err(Error::Closed)));
    }
    clone.close().expect("closing again is nothing");
    let again = Database::open(&dir).expect("the directory is free");
    assert!(again.engine().recovery().clean, "nothing was written after the end of the log");
    let table = again.table::<i64, (i64,)>("t", &["id"], &["v"]).expect("the table");
    assert_eq!(again.transact(|txn| txn.get(&table, &1)).expect("a read"), Some((1,)));
    again.close().expect("closed");
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn close_waits_for_a_transaction_that_another_thread_has_open() {
    let db = Database::in_memory().expect("a database");
    let table = db.table::<i64, (i64,)>("t", &["id"], &["v"]).expect("a table");
    let clone = db.clone();
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let inside = table.clone();
    let worker = thread::spawn(move || {
        clone.transact(|txn| {
            txn.put(&inside, &1, &(1,))?;
            begun.send(()).expect("somebody waits");
            may_go_on.recv().expect("told to go on");
            txn.put(&inside, &2, &(2,))
        })
    });
    has_begun.recv().expect("begun");
    let other = db.clone();
    let closer = thread::spawn(move || db.close());
    // From some moment on nothing begins any more, while the transaction still runs.
    while other.transact(|txn| txn.get(&table, &7)).is_ok() {
        thread::yield_now();
    }
    assert!(!closer.is_finished(), "close does not wait");
    go_on.send(()).expect("it waits");
    worker.join().expect("no panic").expect("it commits: it had begun before");
    closer.join().expect("no panic").expect("closed");
}
