//! The library's SQL interface as a program uses it.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use clearway::{Array, Connection, Database, Error, FromRow, Named, Params, Result, ValueRef};

fn connection(setup: &str) -> (Database, Connection) {
    let db = Database::in_memory().expect("a database");
    let mut connection = db.connect().expect("a connection");
    connection.execute_batch(setup).expect("the tables");
    (db, connection)
}

#[test]
fn parameters_are_converted_to_what_the_statement_expects() {
    let (_db, mut c) =
        connection("CREATE TABLE t (a smallint, b bigint, c numeric, d text, e bytea, f boolean, g float8, h date)");
    let insert = "INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let changed = c.execute(insert, (1u8, 2i32, 12.5, "text", b"\x00\xff".to_vec(), true, 3, "2024-02-29"));
    assert_eq!(changed.expect("inserted"), 1);
    assert_eq!(c.execute(insert, (None::<i16>, 1, 0, "", Vec::new(), false, 0.5, None::<&str>)).expect("inserted"), 1);
    type Row = (Option<i16>, i64, String, String, Vec<u8>, bool, f64);
    let rows: Vec<Row> =
        c.query("SELECT a, b, c, d, e, f, g FROM t ORDER BY b DESC", ()).expect("rows").collect().expect("all");
    assert_eq!(rows[0], (Some(1), 2, "12.5".into(), "text".into(), vec![0, 255], true, 3.0));
    assert_eq!(rows[1].0, None);
    let mut rows = c.query("SELECT h FROM t WHERE a = $1", [1]).expect("rows");
    assert_eq!(rows.next().expect("a row").expect("one").value(0).expect("h"), ValueRef::Date(8_825));
    drop(rows);
    let found: Vec<(i64,)> = c
        .query("SELECT b FROM t WHERE b = ANY ($1) ORDER BY b", [Array(&[1i64, 2, 9])])
        .expect("rows")
        .collect()
        .expect("all");
    assert_eq!(found, [(1,), (2,)]);
    let error = c.execute("INSERT INTO t (a) VALUES ($1)", [70_000]).expect_err("too large");
    assert_eq!(error.code(), Some("22003"));
    let error = c.execute("INSERT INTO t (a) VALUES ($1)", (1, 2)).expect_err("too many");
    assert!(matches!(error, Error::Parameters(_)), "{error}");
}

#[test]
fn what_does_not_fit_is_an_error_that_names_the_column() {
    let (_db, mut c) = connection("");
    let error = c.query_row::<(i32,)>("SELECT 5000000000 AS large", ()).expect_err("out of range");
    assert_eq!(error.to_string(), "column \"large\": 5000000000 is out of the range of i32");
    let error = c.query_row::<(String,)>("SELECT NULL::text AS nothing", ()).expect_err("null");
    assert_eq!(error.to_string(), "column \"nothing\": NULL does not fit String");
    assert!(matches!(c.query_row::<(i32,)>("SELECT 1 WHERE false", ()), Err(Error::NoRow)));
    let mut rows = c.query("SELECT 1 AS a", ()).expect("rows");
    let row = rows.next().expect("no error").expect("a row");
    assert!(row.get::<i32>("b").is_err() && row.get::<i32>(1).is_err());
}

#[derive(Debug, PartialEq, FromRow, Params)]
struct Person {
    id: i64,
    #[clearway(rename = "full_name")]
    name: String,
    age: Option<i32>,
}

#[test]
fn structures_are_parameters_and_rows_by_name() {
    let (_db, mut c) = connection("CREATE TABLE people (id bigint PRIMARY KEY, full_name text, age int)");
    let ada = Person { id: 1, name: "Ada".into(), age: Some(36) };
    let grace = Person { id: 2, name: "Grace".into(), age: None };
    for person in [&ada, &grace] {
        c.execute("INSERT INTO people VALUES (:id, :full_name, :age::int)", person).expect("inserted");
    }
    let people: Vec<Person> =
        c.query("SELECT age, full_name, id FROM people ORDER BY id", ()).expect("rows").collect().expect("all");
    assert_eq!(people, [ada, grace]);
    let found = c.query_opt::<(i64,)>(
        "SELECT id FROM people WHERE full_name = :n AND id < :id",
        Named(&[("id", &5), (":n", &"Ada")]),
    );
    assert_eq!(found.expect("found"), Some((1,)));
    assert!(c.execute("DELETE FROM people WHERE id = :id", Named(&[("other", &1)])).is_err());
}

#[test]
fn rows_stream_in_batches_and_may_be_left_unread() {
    let (_db, mut c) =
        connection("CREATE TABLE t AS SELECT g AS a, repeat('x', 100) AS b FROM generate_series(1, 3000) g");
    let mut sum = 0;
    let mut rows = c.query("SELECT a, b FROM t", ()).expect("rows");
    while let Some(row) = rows.next().expect("no error") {
        assert_eq!(row.get::<&str>(1).expect("text").len(), 100);
        sum += row.get::<i64>("a").expect("number");
    }
    drop(rows);
    assert_eq!(sum, 3000 * 3001 / 2);
    let mut rows = c.query("SELECT a FROM t", ()).expect("rows");
    assert!(rows.next().expect("no error").is_some());
    drop(rows);
    assert!(!c.in_transaction().expect("open"));
    let firsts: Result<Vec<(i32,)>> = c.query_as("SELECT a FROM t ORDER BY a", ()).expect("rows").take(3).collect();
    assert_eq!(firsts.expect("rows"), [(1,), (2,), (3,)]);
    let mut rows = c.query("SELECT 1000 / (2500 - a) FROM t ORDER BY a", ()).expect("rows");
    let error = loop {
        match rows.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("no division by zero"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Some("22012"));
    drop(rows);
    assert_eq!(c.query_row::<(i64,)>("SELECT count(*) FROM t", ()).expect("usable").0, 3000);
}

#[test]
fn prepared_statements_follow_the_tables() {
    let (db, mut c) = connection("CREATE TABLE t (a int); INSERT INTO t VALUES (1)");
    let count = |c: &mut Connection| c.query("SELECT * FROM t", ()).expect("rows").columns().len();
    assert_eq!(count(&mut c), 1);
    db.connect().expect("another").execute("ALTER TABLE t ADD COLUMN b int", ()).expect("altered");
    assert_eq!(count(&mut c), 2);
    {
        let mut t = c.transaction().expect("begun");
        t.execute("ALTER TABLE t ADD COLUMN c int", ()).expect("altered");
        assert_eq!(count(&mut t), 3);
    }
    assert_eq!(count(&mut c), 2);
}

/// A point read of a cached statement runs without a transaction; see `clearway_sql`'s tests `alone` for what it heeds.
#[test]
fn point_reads_follow_what_others_do() {
    const READ: &str = "SELECT b, a FROM t WHERE a = $1";
    let (db, mut c) =
        connection("CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'one'), (2, NULL)");
    let mut other = db.connect().expect("another");
    let read = |c: &mut Connection, a: i32| c.query_opt::<(Option<String>, i32)>(READ, [a]);
    let one = |b: &str| Some((Some(b.to_owned()), 1));
    for _ in 0..3 {
        assert_eq!(read(&mut c, 1).expect("read"), one("one"));
        assert_eq!(read(&mut c, 2).expect("read"), Some((None, 2)));
        assert_eq!(read(&mut c, 3).expect("read"), None);
    }
    let activity = "SELECT state, query, xact_start IS NULL FROM pg_stat_activity WHERE pid = $1";
    let shown: (String, String, bool) = other.query_row(activity, [c.cancel_handle().pid()]).expect("listed");
    assert_eq!(shown, ("idle".to_owned(), READ.to_owned(), true));
    c.cancel_handle().cancel();
    assert_eq!(read(&mut c, 1).expect("nothing ran that could be cancelled"), one("one"));
    let mut changing = other.transaction().expect("begun");
    changing.execute("UPDATE t SET b = 'two' WHERE a = 1", ()).expect("updated");
    assert_eq!(read(&mut c, 1).expect("read"), one("one"));
    changing.commit().expect("committed");
    assert_eq!(read(&mut c, 1).expect("read"), one("two"));
    other.execute_batch("DROP TABLE t").expect("dropped");
    assert_eq!(read(&mut c, 1).expect_err("no table").code(), Some("42P01"));
    other
        .execute_batch("CREATE TABLE t (b text, a int PRIMARY KEY); INSERT INTO t VALUES ('new', 1)")
        .expect("created");
    assert_eq!(read(&mut c, 1).expect("read"), one("new"));
    assert_eq!(read(&mut c, 1).expect("read"), one("new"));
    db.close().expect("closed");
    assert!(matches!(read(&mut c, 1), Err(Error::Closed)));
}

#[test]
fn a_guard_rolls_back_unless_it_commits() {
    let (_db, mut c) = connection("CREATE TABLE t (a int PRIMARY KEY)");
    let rows = |c: &mut Connection| c.query_row::<(i64,)>("SELECT count(*) FROM t", ()).expect("count").0;
    let mut t = c.transaction().expect("begun");
    t.execute("INSERT INTO t VALUES (1)", ()).expect("inserted");
    assert_eq!(t.transaction().err().and_then(|e| e.code()), Some("25001"));
    drop(t);
    assert_eq!(rows(&mut c), 0);
    let mut t = c.transaction().expect("begun");
    t.execute("INSERT INTO t VALUES (1)", ()).expect("inserted");
    {
        let mut s = t.savepoint().expect("a savepoint");
        let error = s.execute("INSERT INTO t VALUES (1)", ()).expect_err("a duplicate");
        assert!(error.is_duplicate());
        assert!(matches!(&error, Error::Sql(f) if f.constraint() == Some("t_pkey") && f.table() == Some("t")));
    }
    let mut s = t.savepoint().expect("a savepoint");
    s.execute("INSERT INTO t VALUES (2)", ()).expect("inserted");
    s.release().expect("released");
    t.commit().expect("committed");
    assert_eq!(rows(&mut c), 2);
    let mut t = c.transaction().expect("begun");
    t.execute("INSERT INTO t VALUES (1)", ()).expect_err("a duplicate");
    assert_eq!(t.commit().expect_err("failed").code(), Some("25P02"));
    assert!(!c.in_transaction().expect("open"));
}

#[test]
fn closures_run_again_until_no_conflict_is_left() {
    let (db, mut c) = connection("CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    db.transaction(|t| {
                        let (n,) = t.query_row::<(i32,)>("SELECT n FROM t WHERE a = 1", ())?;
                        t.execute("UPDATE t SET n = $1 WHERE a = 1", [n + 1])
                    })
                    .expect("counted");
                }
            });
        }
    });
    assert_eq!(c.query_row::<(i32,)>("SELECT n FROM t", ()).expect("n").0, 200);
}

/// TRN-4 and TRN-5: none of the threads stays asleep, and none of the calls that goes another way (a transaction, an async call) keeps a turn.
#[test]
fn threads_that_count_in_one_row_take_turns_and_add_up() {
    const EACH: i32 = 400;
    let (db, mut c) = connection("CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)");
    let count = "UPDATE t SET n = n + 1 WHERE a = $1";
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut c = db.connect().expect("a connection");
                (0..EACH).for_each(|_| assert_eq!(c.execute(count, [1]).expect("counted"), 1));
            });
        }
        scope.spawn(|| {
            let mut c = db.connect().expect("a connection");
            for _ in 0..EACH / 10 {
                let mut t = c.transaction().expect("begun");
                t.execute(count, [1]).expect("counted");
                t.execute(count, [2]).expect("counted");
                t.commit().expect("committed");
            }
        });
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                let mut c = db.connect_async().await.expect("a connection");
                for _ in 0..EACH {
                    assert_eq!(c.execute(count, [1]).await.expect("counted"), 1);
                }
            });
        });
    });
    let counted =
        c.query_row::<(i32, i32)>("SELECT max(n) FILTER (WHERE a = 1), max(n) FILTER (WHERE a = 2) FROM t", ());
    assert_eq!(counted.expect("counts"), (5 * EACH + EACH / 10, EACH / 10));
}

#[test]
fn a_change_that_waits_for_its_row_is_made_once() {
    let (db, mut c) = connection("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
    const ADD: &str = "UPDATE t SET n = n + 1 WHERE id = $1";
    const REMOVE: &str = "DELETE FROM t WHERE id = $1";
    for (sql, changed, rows) in [(ADD, 1, 1), (REMOVE, 1, 0), (REMOVE, 0, 0)] {
        let mut waiter = db.connect().expect("a connection");
        assert_eq!(waiter.execute(sql, [7]).expect("no such row"), 0);
        let mut transaction = c.transaction().expect("a transaction");
        transaction
            .execute("INSERT INTO t VALUES (1, 10) ON CONFLICT (id) DO UPDATE SET n = t.n + 10", ())
            .expect("its row");
        if changed == 0 {
            transaction.execute(REMOVE, [1]).expect("gone again");
        }
        let waiting = std::thread::spawn(move || waiter.execute(sql, [1]));
        let mut looks = db.connect().expect("a connection");
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        while changed == 1 && looks.query_row::<(i64,)>(waits, ()).expect("a count").0 == 0 {
            std::thread::yield_now();
        }
        transaction.commit().expect("committed");
        assert_eq!(waiting.join().expect("it ends").expect("changed"), changed, "{sql}");
        let found: Vec<(i32,)> = c.query("SELECT n FROM t", ()).expect("rows").collect().expect("all");
        assert_eq!(found.len(), rows, "{sql}");
        assert!(found.iter().all(|(n,)| *n == 11), "{found:?}");
    }
}

#[test]
fn a_statement_can_be_stopped_from_another_thread() {
    let (_db, mut c) = connection("");
    let handle = c.cancel_handle();
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The statement may not have begun yet: a cancel before it is lost.
            while started.elapsed() < Duration::from_secs(60) && std::sync::Arc::strong_count(&PROBE) == 1 {
                handle.cancel();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let error = c.execute("SELECT pg_sleep(600)", ()).expect_err("stopped");
        let _done = std::sync::Arc::clone(&PROBE);
        assert_eq!(error.code(), Some("57014"));
        std::thread::sleep(Duration::from_millis(100));
    });
    // A cancel that came too late stops nothing.
    c.execute("SELECT 1", ()).expect("usable");
}

static PROBE: std::sync::LazyLock<std::sync::Arc<()>> = std::sync::LazyLock::new(Default::default);

#[test]
fn closing_is_final_for_clones_and_connections_and_stops_what_runs() {
    let (db, mut idle) = connection("CREATE TABLE t (a int)");
    let mut open = db.connect().expect("a connection");
    open.execute_batch("BEGIN; INSERT INTO t VALUES (1)").expect("begun");
    let mut busy = db.connect().expect("a connection");
    let clone = db.clone();
    let ready = Barrier::new(2);
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            ready.wait();
            busy.execute("SELECT pg_sleep(600)", ()).expect_err("stopped")
        });
        ready.wait();
        db.close().expect("closed");
        let error = busy.join().expect("no panic");
        assert!(matches!(error, Error::Closed) || error.code() == Some("57P01"), "{error}");
    });
    assert!(matches!(idle.execute("SELECT 1", ()), Err(Error::Closed)));
    assert!(matches!(open.execute("COMMIT", ()), Err(Error::Closed)));
    assert!(matches!(clone.connect(), Err(Error::Closed)));
    assert!(matches!(clone.transaction(|t| t.execute("SELECT 1", ())), Err(Error::Closed)));
    clone.close().expect("closed already");
}

#[test]
fn a_directory_keeps_what_was_committed_and_an_empty_one_is_small() {
    let dir = std::env::temp_dir().join(format!("clearway-embedded-{}", std::process::id()));
    let db = Database::open(&dir).expect("made");
    let bytes: u64 = walk(&dir);
    assert!(bytes <= 2 << 20, "an empty database has {bytes} bytes");
    let mut c = db.connect().expect("a connection");
    c.execute_batch("CREATE TABLE t (a int PRIMARY KEY)").expect("a table");
    c.execute("INSERT INTO t SELECT generate_series(1, 10000)", ()).expect("rows");
    assert!(Database::open(&dir).is_err(), "a second opening");
    drop(c);
    db.close().expect("closed");
    let db = Database::open(&dir).expect("opened");
    assert_eq!(db.connect().expect("c").query_row::<(i64,)>("SELECT count(*) FROM t", ()).expect("count").0, 10_000);
    db.close().expect("closed");
    std::fs::remove_dir_all(&dir).expect("removed");
}

fn walk(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten();
    entries.map(|e| if e.path().is_dir() { walk(&e.path()) } else { e.metadata().expect("a file").len() }).sum()
}

#[test]
fn a_future_that_is_dropped_rolls_its_transaction_back() {
    use std::future::Future;
    use std::task::{Context, Waker};
    let (db, mut c) = connection("CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0)");
    let mut holder = c.transaction().expect("begun");
    holder.execute("UPDATE t SET n = 1", ()).expect("held");
    let mut other = now(db.connect_async()).expect("a connection");
    now(other.execute("BEGIN", ())).expect("begun");
    now(other.execute("INSERT INTO t VALUES (2, 0)", ())).expect("inserted");
    {
        let mut blocked = std::pin::pin!(other.execute("UPDATE t SET n = 2", ()));
        assert!(blocked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert!(matches!(now(other.execute("COMMIT", ())), Err(Error::Dropped)));
    holder.commit().expect("committed");
    assert_eq!(now(other.query_row::<(i64,)>("SELECT count(*) FROM t", ())).expect("usable").0, 1);
}

#[test]
fn savepoints_whose_guards_are_dropped_are_rolled_back_before_the_next_call() {
    let (db, _c) = connection("CREATE TABLE t (a int PRIMARY KEY)");
    let mut c = now(db.connect_async()).expect("a connection");
    let mut t = now(c.transaction_repeatable_read()).expect("begun");
    now(t.execute("INSERT INTO t VALUES (1)", ())).expect("inserted");
    {
        let mut outer = now(t.savepoint()).expect("a savepoint");
        now(outer.execute("INSERT INTO t VALUES (2)", ())).expect("inserted");
        let mut inner = now(outer.savepoint()).expect("a savepoint");
        assert_eq!(now(inner.execute("INSERT INTO t VALUES (1)", ())).expect_err("is there").code(), Some("23505"));
    } // both
    {
        let mut kept = now(t.savepoint()).expect("a savepoint");
        now(kept.execute("INSERT INTO t VALUES (3)", ())).expect("inserted");
        let mut inner = now(kept.savepoint()).expect("a savepoint");
        now(inner.execute("INSERT INTO t VALUES (4)", ())).expect("inserted");
        drop(inner);
        now(kept.release()).expect("kept");
    }
    assert!(t.in_transaction().expect("open"));
    now(t.commit()).expect("committed");
    let rows: Vec<(i32,)> =
        now(async { c.query("SELECT a FROM t ORDER BY a", ()).await?.collect().await }).expect("rows");
    assert_eq!(rows, [(1,), (3,)]);
    {
        let mut t = now(c.transaction()).expect("begun");
        let mut savepoint = now(t.savepoint()).expect("a savepoint");
        now(savepoint.execute("ROLLBACK", ())).expect("the program ends the block itself");
    }
    assert!(!c.in_transaction().expect("open"));
    assert_eq!(now(c.query_row::<(i64,)>("SELECT count(*) FROM t", ())).expect("usable").0, 2);
}

#[test]
fn the_size_of_the_cache_counts_in_memory_too() {
    let db = Database::builder().cache_bytes(1 << 20).in_memory().expect("a database");
    let mut c = db.connect().expect("a connection");
    c.execute("CREATE TABLE t AS SELECT repeat('x', 1000) AS b FROM generate_series(1, 8000)", ()).expect("rows");
    c.execute("SELECT sum(length(b)) FROM t", ()).expect("read");
    let (read,): (i64,) =
        c.query_row("SELECT heap_blks_read FROM pg_statio_user_tables WHERE relname = 't'", ()).expect("a view");
    assert!(read > 500, "8 MB through a cache of 1 MB: {read} pages read");
}

/// Drives a future on this thread.
fn now<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn futures_may_move_between_threads() {
    fn is_send<T: Send>(_: T) {}
    let db = Database::in_memory().expect("a database");
    let mut c = now(db.connect_async()).expect("a connection");
    is_send(c.execute("SELECT $1::int", [1]));
    is_send(c.query_row::<(i32,)>("SELECT 1", ()));
}

#[test]
fn copy_stops_with_the_reader() {
    struct Broken(usize);
    impl std::io::Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 3 {
                return Err(std::io::Error::other("the wire is cut"));
            }
            out[..2].copy_from_slice(b"1\n");
            Ok(2)
        }
    }
    let (_db, mut c) = connection("CREATE TABLE t (a int)");
    let error = c.copy_in("COPY t FROM STDIN", &mut Broken(0)).expect_err("cut");
    assert_eq!(error.to_string(), "the wire is cut");
    assert_eq!(c.query_row::<(i64,)>("SELECT count(*) FROM t", ()).expect("count").0, 0);
    assert_eq!(c.execute("COPY t FROM STDIN", ()).expect_err("no reader").code(), Some("57014"));
}

#[cfg(all(feature = "jiff", feature = "uuid", feature = "serde_json"))]
#[test]
fn types_of_other_crates_go_both_ways() {
    use jiff::Timestamp;
    use jiff::civil::{Date, DateTime, date};
    let (_db, mut c) = connection("");
    let day = date(1995, 2, 28);
    let noon = day.at(12, 0, 0, 1_000);
    let moment: Timestamp = "2026-11-22T09:52:27.123456Z".parse().expect("a moment");
    let sql = "SELECT $1::date, $2::timestamp, $3::timestamptz";
    assert_eq!(
        c.query_row::<(Date, DateTime, Timestamp)>(sql, (day, noon, moment)).expect("a row"),
        (day, noon, moment)
    );
    let error = c.query_row::<(Timestamp,)>("SELECT 'infinity'::timestamptz", ()).expect_err("no such moment");
    assert!(matches!(error, Error::Conversion { .. }), "{error}");
    let id = uuid::Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    assert_eq!(c.query_row::<(uuid::Uuid,)>("SELECT $1::text", [id]).expect("a row").0, id);
    let value = serde_json::json!({"a": [1, null, "x"]});
    assert_eq!(c.query_row::<(serde_json::Value,)>("SELECT $1::text", [&value]).expect("a row").0, value);
}
