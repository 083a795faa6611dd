//! Inserts into typed tables that are done on the spot (EMB-9 in `embedded/short.rs`), and those that are not, give the same answers.

use std::collections::BTreeMap;

use clearway_engine::embedded::{Database, Error, Table};

type Pairs = BTreeMap<i64, String>;

fn table(db: &Database) -> Table<i64, String> {
    db.table("t", &["k"], &["v"]).expect("a table")
}

fn rows(db: &Database, table: &Table<i64, String>) -> Pairs {
    db.transact(|t| t.range(table, ..)).expect("read").into_iter().collect()
}

#[test]
fn puts_inserts_and_deletes_in_any_order_leave_what_a_map_has() {
    let db = Database::in_memory().expect("a database");
    let (table, mut model, mut n) = (table(&db), Pairs::new(), 1_u64);
    let mut refused = 0;
    for turn in 0..80 {
        let mut draft = model.clone();
        let ended = db.transact(|t| {
            for step in 0..40 {
                n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (key, value) = ((n >> 33) as i64 % 300, format!("{turn} {step}"));
                match (n >> 20) % 4 {
                    0 => match t.insert(&table, &key, &value) {
                        Ok(()) => assert!(draft.insert(key, value).is_none(), "{key} stood there"),
                        Err(error) if error.is_duplicate() => {
                            assert!(draft.contains_key(&key), "{key} did not stand there");
                            refused += 1;
                        }
                        Err(error) => return Err(error),
                    },
                    1 => assert_eq!(t.delete(&table, &key)?, draft.remove(&key).is_some()),
                    _ => {
                        t.put(&table, &key, &value)?;
                        draft.insert(key, value);
                    }
                }
                assert_eq!(t.get(&table, &key)?, draft.get(&key).cloned());
            }
            // One in five is undone.
            if turn % 5 == 4 { Err(Error::Failed) } else { Ok(()) }
        });
        assert_eq!(ended.is_err(), turn % 5 == 4, "{ended:?}");
        if ended.is_ok() {
            model = draft;
        }
    }
    assert!(refused > 100, "only {refused} inserts met a row");
    assert_eq!(rows(&db, &table), model);
}

#[test]
fn a_put_over_a_row_that_its_snapshot_lacks_runs_again() {
    let db = Database::in_memory().expect("a database");
    let table = table(&db);
    let mut turns = 0;
    db.transact(|t| {
        turns += 1;
        // The first one finds out that rows are inserted; the second is done on the spot.
        t.put(&table, &(10 * turns), &"first".to_owned())?;
        t.put(&table, &(10 * turns + 1), &"second".to_owned())?;
        if turns == 1 {
            let other = || db.transact(|t| t.put(&table, &50, &"other".to_owned()));
            std::thread::scope(|scope| scope.spawn(other).join().expect("no panic"))?;
        }
        t.put(&table, &50, &"own".to_owned())
    })
    .expect("committed");
    assert_eq!(turns, 2, "the first attempt met a conflict");
    let found: Vec<(i64, String)> = rows(&db, &table).into_iter().collect();
    assert_eq!(found, [(20, "first".to_owned()), (21, "second".to_owned()), (50, "own".to_owned())]);
}

#[test]
fn a_savepoint_undoes_what_was_inserted_on_the_spot() {
    let db = Database::in_memory().expect("a database");
    let table = table(&db);
    db.transact(|t| {
        (0..3).try_for_each(|key| t.put(&table, &key, &"kept".to_owned()))?;
        t.set_savepoint();
        (3..6).try_for_each(|key| t.put(&table, &key, &"undone".to_owned()))?;
        t.put(&table, &0, &"undone".to_owned())?;
        t.end_savepoint(false)?;
        t.put(&table, &6, &"kept".to_owned())
    })
    .expect("committed");
    let found = rows(&db, &table);
    assert_eq!(found.keys().copied().collect::<Vec<i64>>(), [0, 1, 2, 6]);
    assert!(found.values().all(|value| value == "kept"), "{found:?}");
}
