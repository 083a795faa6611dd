//! The calls that are futures, driven by a plain thread: they need no runtime.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use clearway::{AsyncConnection, Database, Error};
use futures_io::{AsyncRead, AsyncWrite};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future on this thread, and says how often it was pending.
fn driven<F: Future + Send>(future: F) -> (F::Output, usize) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut pending) = (pin!(future), 0);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return (output, pending),
            Poll::Pending => std::thread::park(),
        }
        pending += 1;
    }
}

fn now<F: Future + Send>(future: F) -> F::Output {
    driven(future).0
}

fn connection(setup: &str) -> (Database, AsyncConnection) {
    let db = Database::in_memory().expect("a database");
    let mut c = now(db.connect_async()).expect("a connection");
    now(c.execute_batch(setup)).expect("the tables");
    (db, c)
}

fn count(c: &mut AsyncConnection) -> i64 {
    now(c.query_row::<(i64,)>("SELECT count(*) FROM t", ())).expect("count").0
}

/// A line of two bytes at a time, and before each of them nothing yet. Behind the lines: the end, an error, or nothing ever.
struct Slowly {
    lines: usize,
    ready: bool,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    Closed,
    Cut,
    Never,
}

fn slowly(lines: usize, end: End) -> Slowly {
    Slowly { lines, ready: false, end }
}

impl AsyncRead for Slowly {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        self.ready = !self.ready;
        if self.ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.lines == 0 {
            return match self.end {
                End::Closed => Poll::Ready(Ok(0)),
                End::Cut => Poll::Ready(Err(io::Error::other("the wire is cut"))),
                End::Never => Poll::Pending,
            };
        }
        self.lines -= 1;
        out[..2].copy_from_slice(b"1\n");
        Poll::Ready(Ok(2))
    }
}

/// Takes at most 1000 bytes at a time, so many in all, and before each time nothing.
struct Narrow {
    taken: Vec<u8>,
    room: usize,
    ready: bool,
    flushed: bool,
}

impl AsyncWrite for Narrow {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.ready = !self.ready;
        if self.ready {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = bytes.len().min(1000).min(self.room - self.taken.len());
        if count == 0 {
            return Poll::Ready(Err(io::Error::other("the disk is full")));
        }
        self.taken.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }
    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushed = true;
        Poll::Ready(Ok(()))
    }
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        panic!("the writer is the caller's, who closes it");
    }
}

#[test]
fn copy_waits_for_its_reader() {
    let (_db, mut c) = connection("CREATE TABLE t (a int)");
    let (rows, pending) = driven(c.copy_in("COPY t FROM STDIN", &mut slowly(5, End::Closed)));
    assert_eq!(rows.expect("copied"), 5);
    assert!(pending >= 6, "one for each line and one for the end: {pending}");
    assert_eq!(count(&mut c), 5);
    let error = now(c.copy_in("COPY t FROM STDIN", &mut slowly(3, End::Cut))).expect_err("cut");
    assert!(matches!(error, Error::Io(_)) && error.to_string() == "the wire is cut", "{error}");
    let error = now(c.copy_in("COPY t FROM STDIN", &mut &b"1\nx\n"[..])).expect_err("no number");
    assert_eq!(error.code(), Some("22P02"));
    assert_eq!(count(&mut c), 5);
}

#[test]
fn a_copy_that_is_dropped_inserts_nothing() {
    let (_db, mut c) = connection("CREATE TABLE t (a int)");
    let mut reader = slowly(3, End::Never);
    {
        let mut copy = pin!(c.copy_in("COPY t FROM STDIN", &mut reader));
        for _ in 0..20 {
            assert!(copy.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
    }
    assert_eq!(reader.lines, 0, "it had read all that there was");
    assert!(matches!(now(c.execute("SELECT 1", ())), Err(Error::Dropped)), "the next call tells of it");
    assert_eq!(count(&mut c), 0);
}

#[test]
fn copy_waits_for_its_writer() {
    let (_db, mut c) = connection("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 50000) g");
    let mut writer = Narrow { taken: Vec::new(), room: usize::MAX, ready: false, flushed: false };
    let sql = "COPY (SELECT a FROM t ORDER BY a) TO STDOUT";
    assert_eq!(now(c.copy_out(sql, &mut writer)).expect("copied"), 50_000);
    let all: String = (1..=50_000).map(|g| format!("{g}\n")).collect();
    assert!(writer.taken == all.as_bytes() && writer.flushed, "{} bytes of {}", writer.taken.len(), all.len());
    let mut writer = Narrow { taken: Vec::new(), room: 70_000, ready: false, flushed: false };
    let error = now(c.copy_out(sql, &mut writer)).expect_err("full");
    assert!(matches!(error, Error::Io(_)) && error.to_string() == "the disk is full", "{error}");
    assert_eq!(count(&mut c), 50_000, "the connection goes on");
}

#[test]
fn rows_are_converted_one_by_one() {
    let (_db, mut c) = connection("");
    let sql = "SELECT g, NULLIF(g, 600) FROM generate_series(1, 1000) g";
    let mut rows = now(c.query_as::<(i64, Option<i32>)>(sql, ())).expect("rows");
    assert_eq!(now(rows.next()).expect("a row"), Some((1, Some(1))));
    let left = now(rows.collect()).expect("the others, of two batches");
    assert_eq!((left.len(), left[598], left[998]), (999, (600, None), (1000, Some(1000))));
    let mut rows = now(c.query_as::<(i64, i32)>(sql, ())).expect("rows");
    let mut good = 0;
    let error = loop {
        match now(rows.next()) {
            Ok(Some(_)) => good += 1,
            Ok(None) => panic!("NULL fits no i32"),
            Err(error) => break error,
        }
    };
    assert!(good == 599 && matches!(error, Error::Conversion { .. }), "{good}: {error}");
    now(rows.close()).expect("closed");
    assert_eq!(now(c.query_row::<(i32,)>("SELECT 1", ())).expect("a row").0, 1);
}

#[test]
fn a_backup_is_a_future() {
    let dir = std::env::temp_dir().join(format!("clearway-async-backup-{}", std::process::id()));
    let (_db, mut c) = connection("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 1000) g");
    let mut heard = Vec::new();
    now(c.backup(&dir, |done, all| heard.push((done, all)))).expect("backed up");
    assert!(heard.last().is_some_and(|(done, all)| *done > 0 && done <= all), "{heard:?}");
    let other = Database::in_memory().expect("another database");
    let mut c = now(other.connect_async()).expect("a connection");
    assert!(matches!(now(c.backup(&dir, |_, _| ())), Err(Error::Backup(_))), "those of another database");
    std::fs::remove_dir_all(&dir).expect("removed");
}
