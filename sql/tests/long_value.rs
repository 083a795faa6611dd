//! A long text on real files, with a page cache of 8 MiB: written, read, replaced, rolled back and deleted, by the embedded calls and
//! through SQL; closed while much of it is still to be freed, and read again. No step needs more memory than a few times the text. 20 MB,
//! and with `LONG_VALUE_MB=100` a hundred.

#![allow(clippy::disallowed_methods, reason = "tests, no part of the database")]

mod memory;

use clearway_base::sync::block_on;
use clearway_engine::embedded::{Database, Table};
use clearway_sql::session::client::Client;
use clearway_sql::session::{Backends, Bind, Session};
use clearway_storage::buffer::PoolOptions;
use clearway_storage::store::StoreOptions;
use memory::session;
use std::path::Path;
use std::sync::Arc;

/// What a step may take beyond what was there before it, in texts: an UPDATE has the most copies, its caller's, the old and the new row's
/// and those that go to the log among them.
const PEAK_TEXTS: usize = 6;
/// And for the buffers of log and page cache, which are filled as they are first used.
const BUFFERS: usize = 64 << 20;

/// Bytes of a text.
fn len() -> usize {
    let megabytes = std::env::var("LONG_VALUE_MB").map_or(20, |text| text.parse().expect("a number"));
    megabytes * 1_000_000
}

/// A text whose megabytes can be told apart.
fn text(seed: u64) -> String {
    let mut megabyte = String::new();
    for word in 0..(1_000_000 / 16) as u64 {
        megabyte.push_str(&format!("{:016x}", (word << 8 | seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
    let mut text = String::with_capacity(len());
    for number in 0..len() / megabyte.len() {
        text.push_str(&format!("{number:016}"));
        text.push_str(&megabyte[16..]);
    }
    text
}

/// Bytes of memory, now or at the most since [`forget_peak`].
fn resident(which: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(which)).expect("a line of the status");
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().expect("kB") * 1024
}

fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
}

/// Runs one step and looks at what it took.
fn step<T>(name: &str, run: impl FnOnce() -> T) -> T {
    forget_peak();
    let before = resident("VmRSS:");
    let begin = std::time::Instant::now();
    let result = run();
    let peak = resident("VmHWM:").saturating_sub(before);
    eprintln!("{name}: {} MB at the peak, {:.2} s", peak / 1_000_000, begin.elapsed().as_secs_f64());
    assert!(peak < PEAK_TEXTS * len() + BUFFERS, "{name} took {peak} bytes of memory for a text of {}", len());
    result
}

/// What a statement answered: the first column of its last row, and its tag.
#[derive(Default)]
struct Last {
    value: Vec<u8>,
    tag: String,
}

impl Client for Last {
    fn row(&mut self, _: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        self.value.clear();
        write(0, &mut self.value);
    }
    fn command_complete(&mut self, tag: &str) {
        self.tag = tag.to_owned();
    }
}

/// Parse, Bind, Execute, Sync.
fn query(session: &mut Session, sql: &str, values: &[&str]) -> Last {
    let values: Vec<Option<&[u8]>> = values.iter().map(|value| Some(value.as_bytes())).collect();
    let mut last = Last::default();
    block_on(async {
        session.parse("", sql, &[]).await?;
        session.bind("", "", Bind { formats: &[], values: &values, result_formats: &[] }).await?;
        session.execute("", 0, &mut last).await?;
        session.sync().await
    })
    .unwrap_or_else(|err| panic!("{sql}: {}", err.message()));
    last
}

fn open(dir: &Path) -> Database {
    let store = StoreOptions { pool: PoolOptions::for_budget(8 << 20), ..StoreOptions::default() };
    Database::open_with(dir, store).expect("a database")
}

#[test]
fn a_long_text_is_written_read_replaced_and_deleted() {
    let dir = std::env::temp_dir().join(format!("clearway-long-value-{}", std::process::id()));
    let db = open(&dir);
    let texts = [text(1), text(2)];
    assert!(texts.iter().all(|text| text.len() == len()));
    embedded(&db, &texts);
    through_sql(&db, &texts);
    db.close().expect("a clean end");
    // What is left stands in the files.
    let db = open(&dir);
    let mut sql = session(db.engine(), &Arc::new(Backends::default()), "postgres", &[]);
    let read = step("read after a restart", || query(&mut sql, "SELECT t FROM long WHERE id = 2", &[]).value);
    assert!(read == texts[0].as_bytes(), "{} bytes, not those that were put in", read.len());
    assert_eq!(query(&mut sql, "SELECT count(*) FROM long", &[]).value, b"1");
    drop(sql);
    db.close().expect("a clean end");
    std::fs::remove_dir_all(dir).expect("the directory of this test");
}

fn embedded(db: &Database, texts: &[String; 2]) {
    let table: Table<i64, String> = db.table("long_embedded", &["id"], &["t"]).expect("a table");
    step("embedded insert", || db.transact(|txn| txn.insert(&table, &1, &texts[0]))).expect("inserted");
    let read = step("embedded read", || db.transact(|txn| txn.get(&table, &1))).expect("read");
    assert!(read.as_ref() == Some(&texts[0]), "not the text that was inserted");
    drop(read);
    step("embedded put", || db.transact(|txn| txn.put(&table, &1, &texts[1]))).expect("replaced");
    let read = step("embedded read", || db.transact(|txn| txn.get(&table, &1))).expect("read");
    assert!(read.as_ref() == Some(&texts[1]), "not the text that was put");
    drop(read);
    assert!(step("embedded delete", || db.transact(|txn| txn.delete(&table, &1))).expect("deleted"));
    assert_eq!(db.transact(|txn| txn.get(&table, &1)).expect("read"), None);
}

fn through_sql(db: &Database, texts: &[String; 2]) {
    let mut sql = session(db.engine(), &Arc::new(Backends::default()), "postgres", &[]);
    query(&mut sql, "CREATE TABLE long (id int PRIMARY KEY, t text)", &[]);
    let insert = "INSERT INTO long VALUES ($1, $2)";
    assert_eq!(step("INSERT", || query(&mut sql, insert, &["1", &texts[0]])).tag, "INSERT 0 1");
    let select = "SELECT t FROM long WHERE id = 1";
    let read = step("SELECT", || query(&mut sql, select, &[])).value;
    assert!(read == texts[0].as_bytes(), "{} bytes, not those that were inserted", read.len());
    drop(read);
    let update = "UPDATE long SET t = $1 WHERE id = 1";
    query(&mut sql, "BEGIN", &[]);
    step("UPDATE", || query(&mut sql, update, &[&texts[1]]));
    step("ROLLBACK", || query(&mut sql, "ROLLBACK", &[]));
    let read = step("SELECT", || query(&mut sql, select, &[])).value;
    assert!(read == texts[0].as_bytes(), "the update was rolled back");
    drop(read);
    assert_eq!(step("UPDATE", || query(&mut sql, update, &[&texts[1]])).tag, "UPDATE 1");
    let read = step("SELECT", || query(&mut sql, select, &[])).value;
    assert!(read == texts[1].as_bytes(), "{} bytes, not those that were updated to", read.len());
    drop(read);
    let copy = format!("INSERT INTO long SELECT 2, repeat('0123456789', {})", len() / 10);
    assert_eq!(step("INSERT ... SELECT", || query(&mut sql, &copy, &[])).tag, "INSERT 0 1");
    let length = step("SELECT length", || query(&mut sql, "SELECT sum(length(t)) FROM long", &[])).value;
    assert_eq!(length, (2 * len()).to_string().as_bytes());
    let gone = step("DELETE", || query(&mut sql, "DELETE FROM long", &[]));
    assert_eq!(gone.tag, "DELETE 2");
    assert_eq!(query(&mut sql, "SELECT count(*) FROM long", &[]).value, b"0");
    assert_eq!(query(&mut sql, insert, &["2", &texts[0]]).tag, "INSERT 0 1");
}
