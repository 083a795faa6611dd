//! `synchronous_commit = archive`: nothing leaves for a client before the commits on which it depends are in the archive (ARS-1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use crate::sim::{Connection, connect, open, simulate};
use clearway_base::sync::sleep;
use clearway_base::testkit;
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::db::Db;
use clearway_sql::session::client::{Client, ClientFuture, CopyFormat, CopyIn};
use clearway_sql::session::{Backends, Reason};
use clearway_storage::backup::Archive;

/// A client with room for one row: each leaves before the next comes.
struct Narrow {
    db: Arc<Db>,
    full: bool,
    /// How far the archive had come when a row left, or when the client was asked for data.
    left: Vec<u64>,
    warnings: usize,
}

impl Narrow {
    fn new(db: &Arc<Db>) -> Narrow {
        Narrow { db: db.clone(), full: false, left: Vec::new(), warnings: 0 }
    }

    fn leaves(&mut self) {
        self.full = false;
        self.left.push(archive(&self.db).reached().0);
    }
}

impl Client for Narrow {
    fn row(&mut self, _: usize, _: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        self.full = true;
    }

    fn copy_data(&mut self, _: &[u8]) {
        self.full = true;
    }

    fn copy_in(&mut self, _: CopyFormat) {
        self.leaves();
    }

    fn copy_next(&mut self) -> ClientFuture<'_, CopyIn> {
        Box::pin(async { Ok(CopyIn::Done) })
    }

    fn notice(&mut self, severity: &'static str, _: &clearway_sql::SqlError) {
        self.warnings += usize::from(severity == "WARNING");
    }

    fn is_full(&self) -> bool {
        self.full
    }

    fn drain(&mut self) -> ClientFuture<'_, ()> {
        self.leaves();
        Box::pin(async { Ok(()) })
    }
}

fn archive(db: &Db) -> &Archive {
    db.transactions().store().archive()
}

/// An archive that takes what is durable, some time after a session has asked for it.
async fn send(db: Arc<Db>) {
    loop {
        let reached = archive(&db).reached();
        archive(&db).asked_beyond(reached).await;
        sleep(Duration::from_millis(20)).await;
        archive(&db).publish(db.transactions().store().wal().durable_lsn());
    }
}

/// A session that writes as others do, and one whose replies wait for the archive.
async fn two(db: &Arc<Db>, backends: &Arc<Backends>) -> (Connection, Connection) {
    let (mut writer, mut careful) = (connect(db, backends).await, connect(db, backends).await);
    writer.value("CREATE TABLE t (id int PRIMARY KEY)").await;
    archive(db).set_sync();
    archive(db).publish(db.transactions().store().wal().durable_lsn());
    careful.value("SET synchronous_commit = archive").await;
    (writer, careful)
}

fn parts_of_results(seed: u64) {
    simulate(seed, move || async move {
        let db = open(&SimDisk::new(seed)).await;
        let (mut writer, mut careful) = two(&db, &Arc::default()).await;
        testkit::spawn("archiver", send(db.clone()));
        let statements = [
            "SELECT * FROM t",
            "BEGIN; DECLARE c CURSOR FOR SELECT * FROM t; FETCH ALL FROM c; COMMIT",
            "COPY t TO STDOUT",
            "COPY (SELECT id FROM t WHERE id > 0) TO STDOUT",
            "UPDATE t SET id = id RETURNING id",
            "SELECT count(*) FROM t; COPY t FROM STDIN",
        ];
        for (number, sql) in statements.into_iter().enumerate() {
            writer.value(&format!("INSERT INTO t SELECT 10 * {number} + i FROM generate_series(1, 5) i")).await;
            let written = db.transactions().visible_lsn();
            assert!(archive(&db).reached() < written, "{sql}: nobody has asked for it yet");
            let mut client = Narrow::new(&db);
            careful.session.simple(sql, &mut client).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            assert!(!client.left.is_empty(), "{sql}: nothing left before the end");
            for reached in client.left {
                assert!(reached >= written.0, "{sql}: rows left when the archive had {reached} of {written}");
            }
            careful.session.before_send().await.expect("sent");
        }
    });
}

#[test]
fn parts_of_a_result_wait_for_the_archive() {
    clearway_base::for_each_seed!(2, parts_of_results);
}

/// The archive does not answer. A cancel ends a statement that waits for it, and its error leaves at once; the next statement waits again.
fn a_cancel(seed: u64) {
    simulate(seed, move || async move {
        let db = open(&SimDisk::new(seed)).await;
        let (mut writer, mut careful) = two(&db, &Arc::default()).await;
        for round in 0..2 {
            writer.value(&format!("INSERT INTO t SELECT {round} * 10 + i FROM generate_series(1, 5) i")).await;
            let (asked, backend) = (db.clone(), careful.backend.clone());
            let cancel = testkit::spawn("cancel", async move {
                while archive(&asked).waiting() == 0 {
                    sleep(Duration::from_millis(1)).await;
                }
                backend.interrupt.raise(Reason::Cancel);
            });
            let mut client = Narrow::new(&db);
            careful.backend.interrupt.forget();
            let error = careful.session.simple("SELECT * FROM t", &mut client).await.expect_err("it was cancelled");
            cancel.await;
            assert_eq!((error.code(), client.left.len(), client.warnings), ("57014", 0, 1));
            careful.session.before_send().await.expect("it waits no more");
        }
    });
}

#[test]
fn a_cancel_ends_the_wait_of_a_statement_and_of_its_error() {
    clearway_base::for_each_seed!(2, a_cancel);
}

/// A listener hears of a commit when it is in the archive: by the policy of the session that notifies, or by its own.
fn notifications(seed: u64) {
    simulate(seed, move || async move {
        let db = open(&SimDisk::new(seed)).await;
        let backends = Arc::new(Backends::default());
        let (mut plain, mut careful) = two(&db, &backends).await;
        testkit::spawn("archiver", send(db.clone()));
        plain.value("LISTEN a").await;
        careful.value("LISTEN b").await;
        careful.session.before_send().await.expect("sent");
        let reached = Arc::new(AtomicU64::new(0));
        let (heard, inbox, asked) = (reached.clone(), plain.backend.clone(), db.clone());
        let listener = testkit::spawn("listener", async move {
            while !inbox.inbox.has_any() {
                sleep(Duration::from_millis(1)).await;
            }
            heard.store(archive(&asked).reached().0, SeqCst);
        });
        careful.value("BEGIN; INSERT INTO t VALUES (1); NOTIFY a; COMMIT").await;
        let written = db.transactions().visible_lsn();
        listener.await;
        assert!(reached.load(SeqCst) >= written.0, "the listener heard of {written} when the archive had {reached:?}");

        plain.value("BEGIN; INSERT INTO t VALUES (2); NOTIFY b; COMMIT").await;
        let written = db.transactions().visible_lsn();
        assert!(archive(&db).reached() < written);
        assert_eq!(backends.channels.take(&careful.backend).len(), 1);
        careful.session.before_send().await.expect("sent");
        assert!(archive(&db).reached() >= written, "it left when the archive had {}", archive(&db).reached());
    });
}

#[test]
fn notifications_wait_for_the_archive() {
    clearway_base::for_each_seed!(2, notifications);
}
