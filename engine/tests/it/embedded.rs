//! The embedded library through its public interface.

use std::sync::Arc;

use clearway_base::sync::{block_on, spawn_thread};
use clearway_base::vfs::{MemVfs, Vfs};
use clearway_engine::catalog::Object;
use clearway_engine::db::Db;
use clearway_engine::embedded::{AsyncTxn, Database, Direction, Error, Isolation, Table, TxnOptions};
use clearway_engine::session::Durability;
use clearway_storage::store::StoreOptions;
use clearway_txn::lockmgr::{IfTaken, LockMode, LockScope, LockTag};

type Counters = Table<i64, i64>;

fn counters(db: &Database) -> Counters {
    db.table("counters", &["id"], &["n"]).expect("a table")
}

#[test]
fn a_table_is_there_after_a_restart_and_has_its_types() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let dir = std::path::Path::new("/db");
    block_on(vfs.create_dir(dir)).expect("a directory");
    let open = || Database::open_on(vfs.clone(), dir, StoreOptions::default()).expect("open");
    let db = open();
    type Notes = Table<(String, i32), (Option<String>, Vec<u8>, f64, bool)>;
    let names = (["who", "day"], ["text", "data", "weight", "done"]);
    let notes: Notes = db.table("notes", &names.0, &names.1).expect("a table");
    let value = (None, vec![0, 255], 0.5, true);
    db.transact(|txn| txn.insert(&notes, &("a".to_owned(), -1), &value)).expect("inserted");
    assert!(matches!(
        Database::open_on(vfs.clone(), dir, StoreOptions::default()),
        Err(Error::Held { pid, .. }) if pid == std::process::id()
    ));
    db.close().expect("closed");
    let db = open();
    let notes: Notes = db.table("notes", &names.0, &names.1).expect("the table");
    let found = db.transact(|txn| txn.get(&notes, &("a".to_owned(), -1))).expect("read");
    assert_eq!(found, Some(value));
    assert!(matches!(db.table::<i64, i64>("notes", &["a"], &["b"]), Err(Error::Mismatch { .. })));
    assert!(matches!(db.table::<i64, i64>("other", &["a"], &["a"]), Err(Error::Declaration { .. })));
}

#[test]
fn a_range_has_the_keys_between_its_bounds() {
    let db = Database::in_memory().expect("open");
    let table = counters(&db);
    db.transact(|txn| (-5..5).try_for_each(|id| txn.insert(&table, &id, &(id * 10)))).expect("inserted");
    let keys = |from, to| {
        db.transact(|txn| txn.range(&table, (from, to)))
            .expect("read")
            .into_iter()
            .map(|(key, value)| {
                assert_eq!(value, key * 10);
                key
            })
            .collect::<Vec<i64>>()
    };
    use std::ops::Bound::{Excluded, Included, Unbounded};
    assert_eq!(keys(Included(-2), Excluded(2)), [-2, -1, 0, 1]);
    assert_eq!(keys(Excluded(-2), Included(2)), [-1, 0, 1, 2]);
    assert_eq!(keys(Unbounded, Included(-4)), [-5, -4]);
    assert_eq!(keys(Included(4), Unbounded), [4]);
    assert_eq!(keys(Included(3), Excluded(3)), [] as [i64; 0]);
}

#[test]
fn an_error_undoes_the_transaction_and_a_duplicate_does_not() {
    let db = Database::in_memory().expect("open");
    let table = counters(&db);
    let stopped: Result<(), Error> = db.transact(|txn| {
        txn.put(&table, &1, &1)?;
        Err(Error::Closed)
    });
    assert!(matches!(stopped, Err(Error::Closed)));
    db.transact(|txn| {
        assert_eq!(txn.get(&table, &1)?, None);
        txn.insert(&table, &1, &10)?;
        let again = txn.insert(&table, &1, &11);
        assert!(again.is_err_and(|e| e.is_duplicate()));
        txn.put(&table, &1, &12)?;
        assert!(!txn.delete(&table, &2)?);
        txn.insert(&table, &2, &20)?;
        assert!(txn.delete(&table, &2)?);
        Ok::<_, Error>(())
    })
    .expect("committed");
    let options = TxnOptions { isolation: Isolation::RepeatableRead, read_only: true };
    let all = db.transact_with(options, |txn| txn.range(&table, ..)).expect("read");
    assert_eq!(all, [(1, 12)]);
    let refused = db.transact_with(options, |txn| txn.put(&table, &1, &0));
    assert!(refused.is_err());
}

#[test]
fn read_and_write_closures_lose_no_increment() {
    const THREADS: i64 = 4;
    const EACH: i64 = 50;
    let db = Database::in_memory().expect("open");
    let table = counters(&db);
    db.transact(|txn| txn.insert(&table, &1, &0)).expect("inserted");
    for isolated in [true, false] {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (db, table) = (db.clone(), table.clone());
                spawn_thread("incrementer", move || {
                    for _ in 0..EACH {
                        if isolated {
                            db.transact(|txn| {
                                let n = txn.get(&table, &1)?.expect("the row");
                                txn.put(&table, &1, &(n + 1))
                            })
                            .expect("incremented");
                        } else {
                            db.update_with(&table, &1, |n| *n += 1).expect("incremented").expect("the row");
                        }
                    }
                })
                .expect("a thread")
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().expect("no panic"));
    }
    let n = db.transact(|txn| txn.get(&table, &1)).expect("read");
    assert_eq!(n, Some(2 * THREADS * EACH));
    assert!(db.engine().transactions().locks().locks().is_empty(), "no lock is left");
}

#[test]
fn a_deadlock_is_run_again_until_both_are_through() {
    let db = Database::in_memory().expect("open");
    let table = counters(&db);
    db.transact(|txn| (0..2).try_for_each(|id| txn.insert(&table, &id, &0))).expect("inserted");
    let threads: Vec<_> = [[0, 1], [1, 0]]
        .into_iter()
        .map(|order| {
            let (db, table) = (db.clone(), table.clone());
            spawn_thread("swapper", move || {
                for _ in 0..50 {
                    let options = TxnOptions::default();
                    db.transact_with(options, |txn| {
                        for id in order {
                            txn.update_with(&table, &id, |n| *n += 1)?;
                        }
                        Ok::<_, Error>(())
                    })
                    .expect("committed");
                }
            })
            .expect("a thread")
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().expect("no panic"));
    let all = db.transact(|txn| txn.range(&table, ..)).expect("read");
    assert_eq!(all, [(0, 100), (1, 100)]);
}

#[test]
fn asynchronous_calls_are_futures_that_can_move_between_threads() {
    fn moves<F: Future + Send>(future: F) -> F {
        future
    }
    let db = Database::in_memory().expect("open");
    let table = counters(&db);
    let n = block_on(moves(async {
        let options = TxnOptions::default();
        db.transact_async(options, |txn: &mut AsyncTxn<'_>| {
            let table = table.clone();
            Box::pin(async move {
                txn.insert(&table, &1, &1).await?;
                Ok::<_, Error>(())
            })
        })
        .await?;
        db.update_with_async(&table, &1, |n| {
            *n += 1;
            *n
        })
        .await
    }));
    assert_eq!(n.expect("updated"), Some(2));
    // A future that is dropped half-way leaves nothing.
    let mut dropped = Box::pin(db.transact_async(TxnOptions::default(), |txn: &mut AsyncTxn<'_>| {
        let table = table.clone();
        Box::pin(async move {
            txn.put(&table, &1, &99).await?;
            std::future::pending::<Result<(), Error>>().await
        })
    }));
    let polled = dropped.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    assert!(polled.is_pending());
    drop(dropped);
    // The row's lock goes when the background has undone the change.
    let n = db.update_with(&table, &1, |n| *n).expect("read");
    assert_eq!(n, Some(2));
}

#[test]
fn a_panic_in_a_closure_leaves_nothing() {
    let db = Database::in_memory().expect("open");
    let table = counters(&db);
    let (inside, in_table) = (db.clone(), table.clone());
    let thread = spawn_thread("panics", move || {
        let _ = inside.transact(|txn| -> Result<(), Error> {
            txn.put(&in_table, &1, &1)?;
            std::panic::resume_unwind(Box::new("planted"))
        });
    });
    assert!(thread.expect("a thread").join().is_err());
    db.transact(|txn| txn.insert(&table, &1, &2)).expect("the key is free");
}

#[test]
fn a_repeatable_read_closure_is_not_starved_by_others() {
    // EMB-4: eight threads read a row and then put it, in snapshots; the thread that was beaten twice is served next.
    const THREADS: i64 = 8;
    const EACH: i64 = 60;
    let db = Database::in_memory().expect("open");
    let table = counters(&db);
    db.transact(|txn| txn.insert(&table, &1, &0)).expect("inserted");
    let options = TxnOptions { isolation: Isolation::RepeatableRead, ..TxnOptions::default() };
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (db, table) = (db.clone(), table.clone());
            let worst = Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let told = worst.clone();
            let thread = spawn_thread("closure", move || {
                for _ in 0..EACH {
                    let mut attempts = 0;
                    db.transact_with(options, |txn| {
                        attempts += 1;
                        let n = txn.get(&table, &1)?.expect("the row");
                        // Long enough for others to come between.
                        block_on(clearway_base::sync::sleep(std::time::Duration::from_micros(200)));
                        txn.put(&table, &1, &(n + 1))
                    })
                    .expect("it gets through");
                    told.fetch_max(attempts, std::sync::atomic::Ordering::Relaxed);
                }
            });
            (thread.expect("a thread"), worst)
        })
        .collect();
    for (thread, worst) in threads {
        thread.join().expect("no panic");
        assert!(worst.load(std::sync::atomic::Ordering::Relaxed) <= 3, "{worst:?} attempts of one closure");
    }
    assert_eq!(db.transact(|txn| txn.get(&table, &1)).expect("read"), Some(THREADS * EACH));
}

/// What a transaction that reads once or twice asks for.
const READS: TxnOptions = TxnOptions { isolation: Isolation::RepeatableRead, read_only: true };

fn two_rows(db: &Database) -> Counters {
    let table = counters(db);
    db.transact(|txn| [1, 2].into_iter().try_for_each(|id| txn.put(&table, &id, &10))).expect("put");
    table
}

#[test]
fn all_that_a_closure_reads_is_of_one_snapshot() {
    // EMB-8, ALN-4: the second read begins the transaction.
    let db = Database::in_memory().expect("open");
    let (table, other) = (two_rows(&db), db.table::<i64, i64>("other", &["id"], &["n"]).expect("a table"));
    let add_to_all = || {
        db.transact(|txn| {
            [1, 2].into_iter().try_for_each(|id| txn.update_with(&table, &id, |n| *n += 1).map(|_| ()))?;
            txn.put(&other, &1, &1)
        })
        .expect("updated");
    };
    let read = db.transact_with(READS, |txn| {
        let first = txn.get(&table, &1)?;
        add_to_all();
        let then = (txn.get(&table, &2)?, txn.get(&other, &1)?, txn.range(&table, ..)?);
        Ok::<_, Error>((first, then))
    });
    assert_eq!(read.expect("read"), (Some(10), (Some(10), None, vec![(1, 10), (2, 10)])));
    assert_eq!(db.transact_with(READS, |txn| txn.get(&table, &2)).expect("read"), Some(11));
    assert!(db.engine().transactions().book().snapshots().open().is_empty(), "each snapshot was closed");
}

#[test]
fn a_closure_whose_table_was_altered_between_two_reads_runs_again() {
    // EMB-8, ALN-4
    let db = Database::in_memory().expect("open");
    let table = two_rows(&db);
    let engine = db.engine().clone();
    let catalog = engine.catalog();
    let database = catalog.database(clearway_engine::embedded::DATABASE).expect("the database").oid;
    let (mut altering, mut attempts) = (engine.session(7, database), 0);
    let mut alter = || {
        block_on(async {
            altering.begin(TxnOptions::default());
            let oid = table_oid(&engine);
            let tag = LockTag::Relation { database, relation: u64::from(oid) };
            altering.lock(tag, LockMode::AccessExclusive, LockScope::Transaction, IfTaken::Fail).await.expect("locked");
            let object = catalog.get(oid).map(|object| Object::clone(object)).expect("the table");
            altering.put_object(object).await.expect("altered");
            altering.commit(Durability::Wait).await.expect("committed");
        });
    };
    let read = db.transact_with(READS, |txn| {
        attempts += 1;
        let first = txn.get(&table, &1)?;
        if attempts == 1 {
            alter();
        }
        Ok::<_, Error>((first, txn.get(&table, &2)?))
    });
    assert_eq!((read.expect("read"), attempts), ((Some(10), Some(10)), 2));
    // The second attempt has the lock from its first read on, and so has every transaction from its second one.
    let held = || {
        let locks = engine.transactions().locks();
        let tag = LockTag::Relation { database, relation: u64::from(table_oid(&engine)) };
        locks.locks().iter().filter(|lock| lock.tag == tag).count()
    };
    let read = db.transact_with(READS, |txn| {
        txn.get(&table, &1)?;
        let alone = held();
        txn.get(&table, &2)?;
        Ok::<_, Error>((alone, held()))
    });
    assert_eq!(read.expect("read"), (0, 1));
}

fn table_oid(engine: &Db) -> u32 {
    let catalog = engine.catalog();
    let named = |object: &Arc<Object>| match &**object {
        Object::Relation(relation) if relation.name == "counters" => Some(relation.oid),
        _ => None,
    };
    catalog.objects().find_map(named).expect("the table")
}

#[test]
fn a_walk_goes_on_where_a_row_can_not_be_read_at_once() {
    // EMB-9: long values stand in chains of pages, which are read by the way that waits.
    let db = Database::in_memory().expect("open");
    let table = db.table::<i64, Vec<u8>>("long", &["id"], &["bytes"]).expect("a table");
    let long = |id: i64| if id % 97 == 50 { 20_000 } else { 10 };
    for ids in [0..250, 250..500] {
        db.transact(|txn| ids.clone().try_for_each(|id| txn.put(&table, &id, &vec![7; long(id) as usize])))
            .expect("put");
    }
    let expected: Vec<(i64, usize)> = (3..490).map(|id| (id, long(id) as usize)).collect();
    for direction in [Direction::Forward, Direction::Backward] {
        for (options, own) in [(READS, 0), (READS, 1), (TxnOptions::default(), 0)] {
            let mut seen = Vec::new();
            db.transact_with(options, |txn| {
                seen.clear();
                for _ in 0..own {
                    txn.get(&table, &50)?;
                }
                txn.scan_ref(&table, 3..490, direction, |id, bytes| {
                    seen.push((id, bytes.len()));
                    std::ops::ControlFlow::Continue(())
                })
            })
            .expect("walked");
            if direction == Direction::Backward {
                seen.reverse();
            }
            assert_eq!(seen, expected, "{direction:?}, {options:?}, {own}");
        }
    }
    assert_eq!(db.transact_with(READS, |txn| txn.get(&table, &50)).expect("read").map(|v| v.len()), Some(20_000));
}

#[test]
fn reads_count_as_transactions_and_look_ups() {
    // ALN-3
    let db = Database::in_memory().expect("open");
    let table = two_rows(&db);
    let engine = db.engine();
    let oid = table_oid(engine);
    let database = engine.catalog().database(clearway_engine::embedded::DATABASE).expect("the database").oid;
    let now = || (engine.usage().databases()[&database].commits, engine.usage().of(oid).lookups);
    let before = now();
    for _ in 0..3 {
        db.transact_with(READS, |txn| txn.get(&table, &1)).expect("read");
    }
    assert_eq!(now(), (before.0 + 3, before.1 + 3));
    db.transact_with(READS, |txn| {
        txn.get(&table, &1)?;
        txn.get(&table, &2)
    })
    .expect("read");
    assert_eq!(now(), (before.0 + 4, before.1 + 5));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = db.transact_with(READS, |txn| {
            txn.get(&table, &1)?;
            panic!("the closure's");
            #[expect(unreachable_code, reason = "it gives the closure its type")]
            Ok::<(), Error>(())
        });
    }));
    assert!(panicked.is_err());
    assert!(
        engine.transactions().book().snapshots().open().is_empty(),
        "EMB-3: its session went, and the snapshot with it"
    );
    let failed = db.transact_with(READS, |txn| txn.get(&table, &1).and_then(|_| Err::<(), Error>(Error::Failed)));
    assert!(matches!(failed, Err(Error::Failed)));
    assert!(engine.transactions().book().snapshots().open().is_empty());
}
