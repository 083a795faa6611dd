//! A prepared UPDATE of one row that another transaction has waits for the row and changes it as the general path does, which runs the same text
//! by the simple protocol. In virtual time.

use std::future::Future as _;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::sim::{Connection, Tag, connect, open, simulate};
use clearway_base::sync::sleep;
use clearway_base::testkit;
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::db::Db;
use clearway_sql::session::{AtOnce, Backends, Bind, Reason};

const TEXT: &str = "UPDATE t SET v = v + 1 WHERE id = 1";

async fn clients<const N: usize>(db: &Arc<Db>) -> [Connection; N] {
    let backends = Arc::new(Backends::default());
    let mut all = Vec::new();
    for _ in 0..N {
        all.push(connect(db, &backends).await);
    }
    all.try_into().unwrap_or_else(|_| panic!("as many as asked for"))
}

/// Executes the update by Bind and Execute, which try the fast path first; its tag or SQLSTATE, and whether it was done at once.
async fn update_prepared(client: &mut Connection) -> (String, bool) {
    let session = &mut client.session;
    session.parse("", "UPDATE t SET v = v + 1 WHERE id = $1", &[]).await.expect("it parses");
    let values = [Some(&b"1"[..])];
    session.bind("", "", Bind { formats: &[], values: &values, result_formats: &[] }).await.expect("it is bound");
    let mut tag = Tag::default();
    let at_once = session.try_execute("", &mut tag);
    let ran = if at_once { Ok(()) } else { session.execute("", 0, &mut tag).await };
    if !session.try_sync() {
        session.sync().await.expect("the batch ends");
    }
    session.before_send().await.expect("it is durable");
    (ran.map_or_else(|error| error.code().to_owned(), |()| tag.0), at_once)
}

async fn update_by_text(client: &mut Connection) -> String {
    let mut tag = Tag::default();
    let ran = client.session.simple(TEXT, &mut tag).await;
    ran.map_or_else(|error| error.code().to_owned(), |()| tag.0)
}

/// What the update answers, and then stands in the table, if the holder does this and ends so while the update waits.
fn waits_for(change: &'static str, end: &'static str, prepared: bool) -> (String, String) {
    let (told, answer) = std::sync::mpsc::channel();
    simulate(11, move || async move {
        let db = open(&SimDisk::new(11)).await;
        let [mut holder, mut waiter, mut reader] = clients(&db).await;
        holder.value("CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        holder.value("INSERT INTO t VALUES (1, 10), (2, 20)").await;
        if prepared {
            assert_eq!(update_prepared(&mut waiter).await.0, "UPDATE 1");
            assert_eq!(
                update_prepared(&mut waiter).await,
                ("UPDATE 1".to_owned(), true),
                "no other transaction has it"
            );
        } else {
            assert_eq!(update_by_text(&mut waiter).await, "UPDATE 1");
            assert_eq!(update_by_text(&mut waiter).await, "UPDATE 1");
        }
        holder.value("BEGIN").await;
        holder.value(change).await;
        let waiting = testkit::spawn("waiter", async move {
            let answer = match prepared {
                true => {
                    let (answer, at_once) = update_prepared(&mut waiter).await;
                    assert!(!at_once, "the row is taken");
                    answer
                }
                false => update_by_text(&mut waiter).await,
            };
            (answer, waiter)
        });
        sleep(Duration::from_millis(50)).await;
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        assert_eq!(reader.value(waits).await, "1", "it waits for the row");
        holder.value(end).await;
        let (answer, _waiter) = waiting.await;
        let rows = reader.value("SELECT string_agg(id || ':' || v, ' ' ORDER BY id) FROM t").await;
        assert!(db.transactions().locks().locks().is_empty(), "a lock is left");
        told.send((answer, rows)).expect("the test listens");
    });
    answer.recv().expect("the scene has told")
}

/// AWT-1, AWT-2
#[test]
fn an_update_that_has_waited_for_its_row_judges_it_as_the_general_path_does() {
    for (change, end, expected) in [
        ("UPDATE t SET v = 50 WHERE id = 1", "COMMIT", ("UPDATE 1", "1:51 2:20")),
        ("UPDATE t SET v = 50 WHERE id = 1", "ROLLBACK", ("UPDATE 1", "1:13 2:20")),
        ("SELECT v FROM t WHERE id = 1 FOR UPDATE", "COMMIT", ("UPDATE 1", "1:13 2:20")),
        ("DELETE FROM t WHERE id = 1", "COMMIT", ("UPDATE 0", "2:20")),
        // Another row stands at the key then.
        ("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, 70)", "COMMIT", ("UPDATE 0", "1:70 2:20")),
        ("UPDATE t SET id = 3 WHERE id = 1", "COMMIT", ("UPDATE 0", "2:20 3:12")),
        ("UPDATE t SET id = 3 WHERE id = 1; UPDATE t SET id = 1 WHERE id = 3", "COMMIT", ("UPDATE 1", "1:13 2:20")),
        ("UPDATE t SET v = 2147483647 WHERE id = 1", "COMMIT", ("22003", "1:2147483647 2:20")),
    ] {
        let expected = (expected.0.to_owned(), expected.1.to_owned());
        assert_eq!(waits_for(change, end, false), expected, "by text: {change}; {end}");
        assert_eq!(waits_for(change, end, true), expected, "prepared: {change}; {end}");
    }
}

#[test]
fn a_wait_for_the_row_is_cancelled_and_leaves_nothing() {
    simulate(12, || async {
        let db = open(&SimDisk::new(12)).await;
        let [mut holder, mut waiter] = clients(&db).await;
        holder.value("CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        holder.value("INSERT INTO t VALUES (1, 10)").await;
        update_prepared(&mut waiter).await;
        holder.value("BEGIN").await;
        holder.value(TEXT).await;
        let backend = waiter.backend.clone();
        let waiting = testkit::spawn("waiter", async move {
            let answer = update_prepared(&mut waiter).await;
            (answer, waiter)
        });
        sleep(Duration::from_millis(50)).await;
        backend.interrupt.raise(Reason::Cancel);
        let (answer, mut waiter) = waiting.await;
        assert_eq!(answer, ("57014".to_owned(), false));
        holder.value("COMMIT").await;
        assert_eq!(update_prepared(&mut waiter).await.0, "UPDATE 1");
        assert_eq!(holder.value("SELECT v FROM t").await, "13");
        assert!(db.transactions().locks().locks().is_empty(), "a lock is left");
    });
}

/// AWT-1: clients that change one row in blocks, each of which waits for the one before, lose no change.
#[test]
fn updates_of_a_row_that_many_wait_for_add_up() {
    simulate(13, || async {
        let db = open(&SimDisk::new(13)).await;
        let [mut first, one, two, three, four] = clients(&db).await;
        first.value("CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        first.value("INSERT INTO t VALUES (1, 0)").await;
        let all = [one, two, three, four].into_iter().enumerate().map(|(at, mut client)| {
            testkit::spawn("client", async move {
                for turn in 0..20 {
                    client.value("BEGIN").await;
                    assert_eq!(update_prepared(&mut client).await.0, "UPDATE 1");
                    sleep(Duration::from_millis(1 + (at as u64 * 7 + turn) % 5)).await;
                    client.value(if turn % 4 == 3 { "ROLLBACK" } else { "COMMIT" }).await;
                }
            })
        });
        for client in all.collect::<Vec<_>>() {
            client.await;
        }
        assert_eq!(first.value("SELECT v FROM t").await, "60");
    });
}

/// LKM-17, TRN-6, AWT-3: a session that waits for the row is called when the row is free, and another one that comes with its turn goes ahead of it. It waits for the
/// turn then, where a cancel reaches it, and takes the lock with it.
#[test]
fn an_update_that_is_called_lets_others_pass_and_takes_the_row_with_its_turn() {
    for by_text in [false, true] {
        simulate(14, move || async move {
            let db = open(&SimDisk::new(14)).await;
            let [mut holder, mut waiter, mut brief] = clients(&db).await;
            holder.value("CREATE TABLE t (id int PRIMARY KEY, v int)").await;
            holder.value("INSERT INTO t VALUES (1, 0)").await;
            let history = db.transactions().locks().history();
            history.remember_from(0);
            for client in [&mut waiter, &mut brief] {
                client.session.takes_turns();
                client.session.is_polled_when_woken();
                update_by_text(client).await;
                update_prepared(client).await;
            }
            for cancelled in [false, true] {
                holder.value("BEGIN").await;
                holder.value(TEXT).await;
                let owner = waiter.backend.owner.get().expect("it has begun").clone();
                let backend = waiter.backend.clone();
                {
                    let mut waits = Box::pin(async {
                        match by_text {
                            true => try_by_text(&mut waiter).await,
                            false => update_prepared(&mut waiter).await.0,
                        }
                    });
                    let mut poll = || waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    assert!(poll().is_pending() && !owner.is_called());
                    holder.value("COMMIT").await;
                    assert!(owner.is_called(), "LKM-17: {by_text} {cancelled} {:?}", db.transactions().locks().locks());
                    let bind = Bind { formats: &[], values: &[Some(&b"1"[..])], result_formats: &[] };
                    assert!(
                        brief.session.try_bind("", "", &bind) && brief.session.try_execute("", &mut Tag::default())
                    );
                    assert!(poll().is_pending() && owner.is_called(), "TRN-6: it waits for the turn");
                    let mut left = Poll::Pending;
                    if cancelled {
                        backend.interrupt.raise(Reason::Cancel);
                        left = poll();
                        assert!(!owner.is_called(), "a cancel reaches it");
                    }
                    assert!(brief.session.try_sync());
                    brief.session.before_send().await.expect("it is durable");
                    let answer = match left {
                        Poll::Ready(answer) => answer,
                        Poll::Pending => waits.await,
                    };
                    assert_eq!(answer, if cancelled { "57014" } else { "UPDATE 1" });
                }
                let told = history.records();
                let outcomes: Vec<_> = told.iter().map(|record| record.outcome.name()).collect();
                let expected = ["granted", "cancelled"];
                assert_eq!(outcomes, expected[..1 + usize::from(cancelled)], "each wait is told once");
            }
            assert!(brief.session.try_sync());
            assert_eq!(
                update_prepared(&mut brief).await,
                ("UPDATE 1".to_owned(), true),
                "the turn has been given back"
            );
            assert_eq!(holder.value("SELECT v FROM t").await, "10");
            assert!(db.transactions().locks().locks().is_empty(), "a lock is left");
        });
    }
}

/// Runs the text as a connection does.
async fn try_by_text(client: &mut Connection) -> String {
    let mut tag = Tag::default();
    let ran = match client.session.try_simple(TEXT, &mut tag) {
        AtOnce::Nothing => client.session.simple(TEXT, &mut tag).await,
        AtOnce::Uncommitted | AtOnce::Done => Ok(()),
    };
    client.session.before_send().await.expect("it is durable");
    ran.map_or_else(|error| error.code().to_owned(), |()| tag.0)
}

/// A reload of the settings does not send the next change to the general path.
#[test]
fn a_session_follows_new_defaults_on_the_fast_path() {
    simulate(15, || async {
        let db = open(&SimDisk::new(15)).await;
        let backends = Arc::new(Backends::default());
        let mut client = connect(&db, &backends).await;
        client.value("CREATE TABLE t (id int PRIMARY KEY, v int)").await;
        client.value("INSERT INTO t VALUES (1, 0)").await;
        update_prepared(&mut client).await;
        let bind = Bind { formats: &[], values: &[Some(&b"1"[..])], result_formats: &[] };
        let change = |client: &mut Connection| {
            let session = &mut client.session;
            session.try_bind("", "", &bind) && session.try_execute("", &mut Tag::default())
        };
        backends.defaults.change(vec![("lock_timeout".to_owned(), "7s".to_owned())]);
        assert!(change(&mut client), "on the fast path");
        assert!(client.session.try_sync());
        assert_eq!(client.value("SHOW lock_timeout").await, "7s");
        // The client has to be told of this one.
        backends.defaults.change(vec![("TimeZone".to_owned(), "Asia/Tokyo".to_owned())]);
        assert!(!change(&mut client));
        client.session.execute("", 0, &mut Tag::default()).await.expect("it runs");
        client.session.sync().await.expect("it commits");
        update_prepared(&mut client).await;
        assert!(change(&mut client));
    });
}
