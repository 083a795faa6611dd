//! Typed tables as a program uses them.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use clearway::typed::{Rows, Table};
use clearway::{Database, Error, Result};

type Pairs = BTreeMap<i64, String>;

fn filled(db: &Database, keys: impl Iterator<Item = i64>) -> (Table<i64, String>, Pairs) {
    let table = db.table("t", &["k"], &["v"]).expect("a table");
    let model: Pairs = keys.map(|k| (k, format!("value {k}"))).collect();
    db.transact(|t| model.iter().try_for_each(|(k, v)| t.put(&table, k, v))).expect("filled");
    (table, model)
}

/// Takes rows from both ends, as the bits of a number say, and compares with the model.
fn take_both(rows: Rows<'_, '_, '_, i64, String>, model: &Pairs, range: impl RangeBounds<i64>, mut turns: u64) {
    let (mut rows, mut model) = (rows, model.range(range));
    loop {
        turns = turns.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x55;
        let (found, wanted) = match turns & 1 {
            0 => (rows.next(), model.next()),
            _ => (rows.next_back(), model.next_back()),
        };
        let found = found.map(|row| row.expect("no error"));
        assert_eq!(found.as_ref().map(|(k, v)| (k, v)), wanted);
        if wanted.is_none() {
            assert!(rows.next().is_none() && rows.next_back().is_none());
            return;
        }
    }
}

#[test]
fn rows_of_a_range_come_from_both_ends_until_the_ends_meet() {
    let db = Database::in_memory().expect("a database");
    let (table, model) = filled(&db, (0..2_000).map(|k| 3 * k));
    for turns in [1, 2, 3, u64::MAX] {
        db.read(|t| {
            take_both(t.range(&table, ..), &model, .., turns);
            take_both(t.range(&table, 300..=900), &model, 300..=900, turns);
            take_both(t.range(&table, 301..303), &model, 301..303, turns);
            let open = (Bound::Excluded(300), Bound::Excluded(5_997));
            take_both(t.range(&table, open), &model, open, turns);
            take_both(t.range(&table, 5_990..), &model, 5_990.., turns);
            Ok::<_, Error>(())
        })
        .expect("read");
    }
    let backward: Vec<i64> =
        db.read(|t| t.range(&table, ..=9).rev().map(|row| row.map(|(k, _)| k)).collect::<Result<_>>()).expect("read");
    assert_eq!(backward, [9, 6, 3, 0]);
}

#[test]
fn a_secondary_index_is_looked_up_by_its_first_columns() {
    let db = Database::in_memory().expect("a database");
    type People = Table<i64, (String, Option<i32>, f64)>;
    let people: People = db.table("people", &["id"], &["name", "age", "height"]).expect("a table");
    let mut c = db.connect().expect("a connection");
    c.execute_batch(
        "CREATE INDEX by_name ON people (name, age DESC); CREATE INDEX by_age ON people (age);
         CREATE INDEX low ON people (lower(name)); CREATE INDEX partial ON people (name) WHERE age > 1",
    )
    .expect("indexes");
    db.transact(|t| {
        for (id, name, age) in [(1, "Ada", Some(36)), (2, "Alan", None), (3, "Ada", Some(40)), (4, "Ad", None)] {
            t.insert(&people, &id, &(name.to_owned(), age, 1.5))?;
        }
        // Its own rows are found, too.
        assert_eq!(t.by_index(&people, "by_age", &Some(40))?.len(), 1);
        Ok::<_, Error>(())
    })
    .expect("inserted");
    db.read(|t| {
        let ids = |rows: Vec<(i64, _)>| rows.into_iter().map(|(id, _)| id).collect::<Vec<i64>>();
        assert_eq!(ids(t.by_index(&people, "by_name", &"Ada".to_owned())?), [3, 1]);
        assert_eq!(ids(t.by_index(&people, "by_name", &("Ada".to_owned(), 36))?), [1]);
        assert_eq!(ids(t.by_index(&people, "by_name", &"Grace".to_owned())?), [0; 0]);
        assert_eq!(ids(t.by_index(&people, "by_age", &None::<i32>)?), [2, 4]);
        for (index, what) in
            [("nothing", "it has no index"), ("low", "does not have every row"), ("partial", "every row")]
        {
            let error = t.by_index(&people, index, &"ada".to_owned()).expect_err("refused");
            assert!(error.to_string().contains(what), "{error}");
        }
        let error = t.by_index(&people, "by_age", &"36".to_owned()).expect_err("refused");
        assert!(error.to_string().contains("of other types"), "{error}");
        // A refused look-up leaves the transaction as it was.
        assert_eq!(t.get(&people, &1)?.map(|(name, ..)| name), Some("Ada".to_owned()));
        Ok::<_, Error>(())
    })
    .expect("read");
}

#[test]
fn a_savepoint_that_fails_is_undone_with_its_locks_and_the_transaction_goes_on() {
    let db = Database::in_memory().expect("a database");
    let (table, _) = filled(&db, 0..3);
    let other: Table<i64, i64> = db.table("other", &["k"], &["v"]).expect("a table");
    let mut watcher = db.connect().expect("a connection");
    let mut held = |what: &str| {
        let sql = "SELECT count(*) FROM pg_locks WHERE relation = $1::text::regclass AND mode = 'RowExclusiveLock'";
        watcher.query_row::<(i64,)>(sql, [what]).expect("locks").0
    };
    db.transact(|t| {
        t.put(&table, &0, &"before".to_owned())?;
        let failed = t.savepoint(|t| {
            t.put(&table, &0, &"in it".to_owned())?;
            t.put(&other, &1, &1)?;
            let inner = t.savepoint(|t| t.put(&other, &2, &2));
            assert!(inner.is_ok() && t.get(&other, &2)? == Some(2));
            assert_eq!(held("other"), 1);
            Err::<(), _>(Error::NoRow)
        });
        assert!(matches!(failed, Err(Error::NoRow)));
        assert_eq!(t.get(&table, &0)?, Some("before".to_owned()));
        assert_eq!(held("other"), 0);
        t.put(&other, &3, &3)?;
        assert_eq!(held("other"), 1, "EMB-7");
        let kept = t.savepoint(|t| t.delete(&table, &1));
        assert!(kept?);
        let error = t.savepoint(|t| t.insert(&table, &2, &"again".to_owned())).expect_err("it stands there");
        assert!(error.is_duplicate());
        Ok::<_, Error>(())
    })
    .expect("committed");
    db.read(|t| {
        let rows: Vec<(i64, String)> = t.range(&table, ..).collect::<Result<_>>()?;
        assert_eq!(rows, [(0, "before".to_owned()), (2, "value 2".to_owned())]);
        let others: Vec<(i64, i64)> = t.range(&other, ..).collect::<Result<_>>()?;
        assert_eq!(others, [(3, 3)]);
        Ok::<_, Error>(())
    })
    .expect("read");
}

#[test]
fn tables_are_listed_and_dropped() {
    let db = Database::builder().database("postgres").in_memory().expect("a database");
    let (table, _) = filled(&db, 0..3);
    let odd: Table<i64, i64> = db.table("odd \"name\"", &["k"], &["v"]).expect("a table");
    assert_eq!(db.tables().expect("names"), ["odd \"name\"", "t"]);
    assert!(db.drop_table("odd \"name\"").expect("dropped"));
    assert!(!db.drop_table("odd \"name\"").expect("not there"));
    assert_eq!(db.tables().expect("names"), ["t"]);
    assert!(db.read(|t| t.get(&odd, &1)).is_err());
    assert_eq!(db.read(|t| t.get(&table, &1)).expect("read"), Some("value 1".to_owned()));
    db.clone().close().expect("closed");
    assert!(matches!(db.drop_table("t"), Err(Error::Closed)));
    assert!(matches!(db.read(|t| t.get(&table, &1)), Err(Error::Closed)));
    assert!(matches!(db.transact(|t| t.delete(&table, &1)), Err(Error::Closed)));
    assert!(matches!(db.update_with(&table, &1, |_| ()), Err(Error::Closed)));
}

#[cfg(feature = "server")]
#[test]
fn a_guest_is_told_that_typed_tables_are_elsewhere() {
    let dir = std::env::temp_dir().join(format!("clearway-typed-{}", std::process::id()));
    let owner = Database::open_or_connect(&dir).expect("opened");
    let guest = Database::open_or_connect(&dir).expect("connected");
    let (table, _) = filled(&owner, 0..1);
    assert!(matches!(guest.transact(|t| t.delete(&table, &0)), Err(Error::Elsewhere(_))));
    assert!(matches!(guest.read(|t| t.get(&table, &0)), Err(Error::Elsewhere(_))));
    assert!(matches!(guest.tables(), Err(Error::Elsewhere(_))));
    assert!(matches!(guest.drop_table("t"), Err(Error::Elsewhere(_))));
    guest.close().expect("closed");
    owner.close().expect("closed");
    std::fs::remove_dir_all(&dir).expect("removed");
}

#[cfg(feature = "derive")]
mod structures {
    use std::ops::ControlFlow;

    use clearway::typed::{Columns, Direction, Key};
    use clearway::{Database, Result};

    #[derive(Key, Clone, Debug, PartialEq)]
    struct Place {
        shelf: i32,
        #[clearway(rename = "position")]
        slot: String,
    }

    #[derive(Columns, Clone, Debug, PartialEq)]
    struct Thing {
        label: String,
        weight: Option<f64>,
        photo: Vec<u8>,
        sold: bool,
    }

    fn place(shelf: i32, slot: &str) -> Place {
        Place { shelf, slot: slot.to_owned() }
    }

    fn thing(label: &str, weight: Option<f64>) -> Thing {
        Thing { label: label.to_owned(), weight, photo: label.as_bytes().repeat(700), sold: weight.is_none() }
    }

    #[test]
    fn structures_are_keys_and_rows_by_their_fields_names() {
        let db = Database::in_memory().expect("a database");
        let things = db.table_of::<Place, Thing>("things").expect("made");
        let all = [
            (place(1, "a"), thing("pen", Some(0.5))),
            (place(1, "b"), thing("ink", None)),
            (place(2, "a"), thing("", None)),
        ];
        db.transact(|t| all.iter().try_for_each(|(key, value)| t.insert(&things, key, value))).expect("inserted");
        let read: Vec<_> = db.read(|t| t.range(&things, ..).collect::<Result<_>>()).expect("read");
        assert_eq!(read, all);
        let mut c = db.connect().expect("a connection");
        let sql = "SELECT label, weight FROM things WHERE shelf = 1 AND position = 'a'";
        assert_eq!(c.query_row::<(String, f64)>(sql, ()).expect("a row"), ("pen".to_owned(), 0.5));
        assert!(db.table::<Place, Thing>("things", &["shelf"], &[]).is_err());
    }

    #[test]
    fn values_are_looked_at_where_they_are_also_in_rows_of_an_older_version() {
        let db = Database::in_memory().expect("a database");
        let things = db.table_of::<Place, Thing>("things").expect("made");
        let (first, second) = (thing("pen", Some(0.5)), thing("ink", None));
        db.transact(|t| t.insert(&things, &place(1, "a"), &first)).expect("inserted");
        // The first row stays as it was written, the second one has a column more.
        db.connect()
            .expect("c")
            .execute_batch("ALTER TABLE things ADD COLUMN note text DEFAULT 'none'")
            .expect("added");
        db.transact(|t| t.insert(&things, &place(1, "b"), &second)).expect("inserted");
        let same = |(label, weight, photo, sold): (&str, Option<f64>, &[u8], bool), of: &Thing| {
            (label, weight, photo, sold) == (of.label.as_str(), of.weight, of.photo.as_slice(), of.sold)
        };
        for (key, value) in [(place(1, "a"), &first), (place(1, "b"), &second)] {
            let is = db.read(|t| t.get_ref(&things, &key, |seen| same(seen, value))).expect("read");
            assert_eq!(is, Some(true), "{key:?}");
        }
        let none = db.read(|t| t.get_ref(&things, &place(9, "z"), |_| ())).expect("read");
        assert_eq!(none, None);
        let mut seen = Vec::new();
        db.read(|t| {
            seen.clear();
            t.scan_ref(&things, .., Direction::Backward, |key, value| {
                seen.push((key, same(value, if value.0 == "pen" { &first } else { &second })));
                ControlFlow::Continue(())
            })
        })
        .expect("read");
        assert_eq!(seen, [(place(1, "b"), true), (place(1, "a"), true)]);
        let mut count = 0;
        db.read(|t| {
            t.scan_ref(&things, .., Direction::Forward, |_, _| {
                count += 1;
                ControlFlow::Break(())
            })
        })
        .expect("read");
        assert_eq!(count, 1);
    }

    #[test]
    fn a_writer_sees_its_own_changes_where_they_are() {
        let db = Database::in_memory().expect("a database");
        let things = db.table_of::<Place, Thing>("things").expect("made");
        db.transact(|t| {
            t.put(&things, &place(1, "a"), &thing("pen", None))?;
            let length = t.get_ref(&things, &place(1, "a"), |(label, ..)| label.len())?;
            assert_eq!(length, Some(3));
            Ok::<_, clearway::Error>(())
        })
        .expect("committed");
    }
}
