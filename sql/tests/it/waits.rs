//! Every wait of a statement has a name: in virtual time, which passes only while a task waits, the books of each statement balance to
//! the nanosecond (WAIT-1).

use std::sync::Arc;
use std::time::Duration;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::sync::sleep;
use clearway_base::testkit;
use clearway_base::vfs::sim::SimDisk;
use clearway_base::waits::{Books, WaitEvent, books};
use clearway_sql::session::Backends;

/// Runs a text and returns where its time went.
async fn booked(connection: &mut Connection, sql: &str) -> Books {
    let (ended, books) = books(connection.run(sql)).await;
    ended.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    assert_eq!(books.unaccounted_ns, 0, "{sql}: {books:?}");
    books
}

/// The texts, one after the other, beside a client that holds a row for ten milliseconds and another one that reads.
fn statements(seed: u64) {
    simulate(seed, move || async move {
        let db = open(&SimDisk::new(seed)).await;
        let backends = Arc::new(Backends::default());
        let mut holder = connect(&db, &backends).await;
        let mut reader = connect(&db, &backends).await;
        let mut one = connect(&db, &backends).await;
        holder.value("CREATE TABLE t (id int PRIMARY KEY, v int, w text)").await;

        // More pages than the cache of this database has frames.
        let filled =
            booked(&mut one, "INSERT INTO t SELECT g, 0, repeat('x', 700) FROM generate_series(1, 4000) g").await;
        assert!(filled.wait(WaitEvent::CommitDurable).wait_ns > 0, "{filled:?}");
        let looked = booked(&mut one, "SELECT sum(v) FROM t").await;
        let read = [WaitEvent::DataFileRead, WaitEvent::BufferIo, WaitEvent::FreeFrame].map(|e| looked.wait(e).wait_ns);
        assert!(read.iter().sum::<u64>() > 0, "{looked:?}");

        holder.value("BEGIN; UPDATE t SET v = v + 1 WHERE id = 1").await;
        let held = testkit::spawn("holder", async move {
            sleep(Duration::from_millis(10)).await;
            holder.value("COMMIT").await;
        });
        let others = testkit::spawn("reader", async move {
            for key in (1..4000).step_by(97) {
                reader.value(&format!("SELECT w FROM t WHERE id = {key}")).await;
            }
        });
        let stood = booked(&mut one, "UPDATE t SET v = v + 1 WHERE id = 1").await;
        let behind = stood.wait(WaitEvent::LockTuple).wait_ns + stood.wait(WaitEvent::LockTransactionid).wait_ns;
        assert!(behind > 5_000_000, "{stood:?}");
        assert!(stood.wait(WaitEvent::CommitDurable).wait_ns > 0, "{stood:?}");
        let slept = booked(&mut one, "SELECT pg_sleep(0.25)").await;
        assert_eq!(slept.wait(WaitEvent::PgSleep).wait_ns, 250_000_000, "{slept:?}");
        booked(&mut one, "CREATE INDEX i ON t (v)").await;
        booked(&mut one, "BEGIN; UPDATE t SET v = v + 1; ROLLBACK").await;
        booked(&mut one, "ANALYZE t").await;
        booked(&mut one, "CHECKPOINT").await;
        booked(&mut one, "DROP TABLE t").await;
        held.await;
        others.await;
    });
}

#[test]
fn no_wait_is_without_a_name() {
    clearway_base::for_each_seed!(3, statements);
}
