//! A directory that several processes share: the first has it open, the others work through its socket with the same calls.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use clearway::{Connection, Database, Error};

/// What the process of [`owner`] is told to open.
const DIRECTORY: &str = "CLEARWAY_TEST_DIRECTORY";

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("clearway-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The other process: this program again, with one test of it.
struct Owner {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Owner {
    /// Starts it; returns when it has the directory.
    fn start(path: &Path, how: &str) -> Owner {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "processes::owner", "--nocapture", "--ignored"]).env(DIRECTORY, path).env("HOW", how);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("its output"));
        let mut owner = Owner { child, input, output: BufReader::new(output) };
        owner.wait_for("open");
        owner
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert!(self.output.read_line(&mut line).expect("a line") > 0, "the other process has ended");
        }
    }

    fn say(&mut self, word: &str) {
        writeln!(self.input.as_mut().expect("not ended"), "{word}").expect("told");
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().expect("ended").success());
    }

    fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

/// Not a test: what the other process does. It ends with its input.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn owner() {
    let Some(path) = std::env::var_os(DIRECTORY) else { return };
    let db = match std::env::var("HOW").as_deref() {
        Ok("alone") => Database::open(&path),
        _ => Database::open_or_connect(&path),
    }
    .expect("open");
    assert!(db.has_directory());
    println!("open");
    for line in std::io::stdin().lines() {
        if line.expect("a line") == "notify" {
            db.connect().expect("a connection").execute("NOTIFY news, 'from the owner'", ()).expect("sent");
        }
    }
    db.close().expect("closed");
}

fn is_stopped_by_another_thread(connection: &mut Connection) {
    let cancel = connection.cancel_handle();
    let stopped = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A cancel that comes before the statement has begun is lost.
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                cancel.cancel();
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let ended = connection.execute("SELECT pg_sleep(600)", ());
        stopped.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(ended.expect_err("cancelled").code(), Some("57014"));
    });
}

/// What every connection can do, wherever the directory is open.
fn exercise(db: &Database) {
    let mut connection = db.connect().expect("a connection");
    connection
        .execute_batch("CREATE TABLE t (id bigint PRIMARY KEY, name text, big numeric, at timestamptz, raw bytea)")
        .expect("DDL");
    let insert = "INSERT INTO t VALUES ($1, $2, $3, now(), $4)";
    for id in 0..3i64 {
        let raw: &[u8] = &[0, 1, 255];
        assert_eq!(connection.execute(insert, (id, "é", "12345678901234567890.5", raw)).expect("inserted"), 1);
    }
    let error = connection.execute(insert, (0, "again", None::<&str>, None::<Vec<u8>>)).expect_err("a duplicate");
    assert_eq!(error.code(), Some("23505"));
    let Error::Sql(failure) = &error else { panic!("{error}") };
    assert_eq!((failure.constraint(), failure.table()), (Some("t_pkey"), Some("t")));
    assert!(error.is_duplicate() && failure.detail().is_some());
    let row: (i64, String, String, Vec<u8>) =
        connection.query_row("SELECT id, name, big, raw FROM t WHERE id = ?", [2]).expect("a row");
    assert_eq!(row, (2, "é".into(), "12345678901234567890.5".into(), vec![0, 1, 255]));
    assert!(connection.query_opt::<(i64,)>("SELECT id FROM t WHERE id = 77", ()).expect("no error").is_none());
    let named = clearway::Named(&[("id", &1i64), ("nothing", &None::<i32>)]);
    let none: (Option<i32>,) =
        connection.query_row("SELECT :nothing::int FROM t WHERE id = :id", named).expect("a row");
    assert_eq!(none.0, None);

    // More rows than a batch, read to the end and given up.
    let mut rows =
        connection.query("SELECT n, repeat('x', n::int % 100) FROM generate_series(1, 5000) n", ()).expect("rows");
    let mut sum = 0;
    while let Some(row) = rows.next().expect("a row") {
        let n = row.get::<i64>(0).expect("a number");
        assert_eq!(row.get::<&str>(1).expect("a text").len() as i64, n % 100);
        sum += n;
    }
    drop(rows);
    assert_eq!(sum, 5000 * 5001 / 2);
    let mut rows = connection.query("SELECT n FROM generate_series(1, 5000) n", ()).expect("rows");
    assert!(rows.next().expect("a row").is_some());
    drop(rows);

    transactions(&mut connection);
    copies(&mut connection);
    let n = db.transaction(|t| t.query_row::<(i64,)>("SELECT count(*) FROM t", ())).expect("a closure");
    assert_eq!(n.0, 5);

    // Another connection's DDL: the prepared statement gives the columns of today.
    let all = "SELECT * FROM t ORDER BY id";
    assert_eq!(connection.query(all, ()).expect("rows").columns().len(), 5);
    db.connect().expect("another").execute_batch("ALTER TABLE t ADD COLUMN more int DEFAULT 7").expect("DDL");
    assert_eq!(connection.query(all, ()).expect("rows").columns().len(), 6);

    is_stopped_by_another_thread(&mut connection);

    connection.execute("LISTEN news", ()).expect("listens");
    let mut other = db.connect().expect("another");
    other.execute("SELECT pg_notify('news', $1)", ["told"]).expect("sent");
    let heard = connection.notifications(None).expect("heard");
    assert_eq!((heard.len(), &*heard[0].channel, &*heard[0].payload), (1, "news", "told"));
    assert_eq!(heard[0].pid, other.cancel_handle().pid());
    assert!(connection.notifications(Some(Duration::from_millis(30))).expect("nothing").is_empty());
    connection.execute("UNLISTEN *", ()).expect("listens no more");
    connection.execute_batch("DROP TABLE t").expect("DDL");
}

fn transactions(connection: &mut clearway::Connection) {
    let mut transaction = connection.transaction().expect("begun");
    transaction.execute("INSERT INTO t VALUES (10)", ()).expect("inserted");
    {
        let mut savepoint = transaction.savepoint().expect("a savepoint");
        assert!(savepoint.execute("INSERT INTO t VALUES (10)", ()).is_err());
    }
    transaction.commit().expect("committed");
    let transaction = connection.transaction().expect("begun");
    assert!(transaction.in_transaction().expect("known"));
    drop(transaction);
    assert!(!connection.in_transaction().expect("known"));
    let mut transaction = connection.transaction().expect("begun");
    assert!(transaction.execute("SELECT 1/0", ()).is_err());
    assert_eq!(transaction.commit().expect_err("failed").code(), Some("25P02"));
    let n: (i64,) = connection.query_row("SELECT count(*) FROM t", ()).expect("a row");
    assert_eq!(n.0, 4);
}

fn copies(connection: &mut clearway::Connection) {
    let copied = connection.copy_in("COPY t (id, name) FROM STDIN (FORMAT csv)", &mut "20,copied\n".as_bytes());
    assert_eq!(copied.expect("copied"), 1);
    let bad = connection.copy_in("COPY t (id, name) FROM STDIN (FORMAT csv)", &mut "x,copied\n".as_bytes());
    assert_eq!(bad.expect_err("no number").code(), Some("22P02"));
    let mut out = Vec::new();
    connection
        .copy_out("COPY (SELECT id, name FROM t WHERE id >= 10 ORDER BY id) TO STDOUT", &mut out)
        .expect("copied");
    assert_eq!(out, b"10\t\\N\n20\tcopied\n");
    let error = connection.execute("COPY t FROM STDIN", ()).expect_err("no data");
    assert!(error.to_string().contains("copy_in"), "{error}");
}

#[test]
fn a_guest_can_do_what_the_owner_can() {
    let directory = Directory::new("guests");
    let mine = Database::open_or_connect(&directory.0).expect("open");
    assert!(mine.has_directory());
    exercise(&mine);
    mine.close().expect("closed");
    let mut owner = Owner::start(&directory.0, "shared");
    let guest = Database::open_or_connect(&directory.0).expect("connected");
    assert!(!guest.has_directory());
    exercise(&guest);
    let mut listener = guest.connect().expect("a connection");
    listener.execute("LISTEN news", ()).expect("listens");
    owner.say("notify");
    assert_eq!(listener.notifications(None).expect("heard")[0].payload, "from the owner");
    assert!(matches!(guest.table::<i64, (i64,)>("t", &["id"], &["n"]), Err(Error::Elsewhere(_))));
    drop(listener);
    guest.close().expect("closed");
    owner.end();
}

/// The futures of a guest do not block the thread that polls them.
#[test]
fn a_guests_futures_wait_without_their_thread() {
    let directory = Directory::new("guest-futures");
    let owner = Owner::start(&directory.0, "shared");
    let guest = Database::open_or_connect(&directory.0).expect("connected");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (mut one, mut two) = (guest.connect_async().await.expect("one"), guest.connect_async().await.expect("two"));
        one.execute("CREATE TABLE f (a int)", ()).await.expect("DDL");
        one.execute("SELECT pg_advisory_lock(1)", ()).await.expect("locked");
        let waiting = tokio::spawn(async move {
            two.execute("SELECT pg_advisory_lock(1)", ()).await.expect("locked, too");
            two.execute("INSERT INTO f VALUES (2)", ()).await.expect("inserted");
        });
        tokio::task::yield_now().await;
        // Were the one thread blocked by the other future, this would never come about.
        one.execute("SELECT pg_advisory_unlock(1)", ()).await.expect("unlocked");
        waiting.await.expect("done");
        assert_eq!(one.query_row::<(i64,)>("SELECT count(*) FROM f", ()).await.expect("a row").0, 1);
    });
    guest.close().expect("closed");
    owner.end();
}

#[test]
fn a_guest_opens_the_directory_when_its_owner_was_killed() {
    let directory = Directory::new("take-over");
    let owner = Owner::start(&directory.0, "shared");
    let guest = Database::open_or_connect(&directory.0).expect("connected");
    let mut connection = guest.connect().expect("a connection");
    let mut writer = guest.connect().expect("a connection");
    connection.execute_batch("CREATE TABLE t (a int PRIMARY KEY)").expect("DDL");
    connection.execute("INSERT INTO t VALUES (1)", ()).expect("acknowledged");
    let mut transaction = writer.transaction().expect("begun");
    transaction.execute("INSERT INTO t VALUES (2)", ()).expect("not committed");
    owner.kill();
    assert!(matches!(transaction.execute("INSERT INTO t VALUES (3)", ()), Err(Error::Lost)));
    // GST-2: a program that ignores the error is told again, and its commit commits nothing.
    assert!(matches!(transaction.execute("INSERT INTO t VALUES (4)", ()), Err(Error::Lost)));
    assert!(matches!(transaction.commit(), Err(Error::Lost)));
    assert!(matches!(connection.execute("INSERT INTO t VALUES (5)", ()), Err(Error::Lost)));
    assert_eq!(connection.query_row::<(i64,)>("SELECT sum(a) FROM t", ()).expect("open here").0, 1);
    assert!(guest.has_directory());
    writer.execute("INSERT INTO t VALUES (6)", ()).expect("works again");
    // The next process is a guest of this one.
    let another = Database::open_or_connect(&directory.0).expect("connected");
    assert!(!another.has_directory());
    assert_eq!(
        another.connect().expect("a connection").query_row::<(i64,)>("SELECT sum(a) FROM t", ()).expect("a row").0,
        7
    );
    another.close().expect("closed");
    drop((connection, writer));
    guest.close().expect("closed");
}

#[test]
fn who_opens_a_directory_alone_is_named_to_the_second() {
    let directory = Directory::new("alone");
    let owner = Owner::start(&directory.0, "alone");
    let Err(error) = Database::open(&directory.0) else { panic!("opened twice") };
    assert!(error.to_string().contains(&owner.child.id().to_string()), "{error}");
    owner.end();
    Database::open(&directory.0).expect("free again").close().expect("closed");
}
