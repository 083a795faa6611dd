//! How long opening takes after a kill -9.
//!
//! `cargo run --release -p clearway-engine --example restart DIRECTORY [MEGABYTES_OF_LOG [ROWS]]`: another process fills a table, takes a
//! checkpoint, updates random rows until so much log is behind it, leaves a transaction of 100,000 changes open, and is killed. Then
//! the directory is opened and asked at once; the losers are undone in the background. Every acknowledged update has to be there, and
//! nothing of the open transaction.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use clearway_base::sync::{block_on, sleep, spawn_thread};
use clearway_base::waits::now_ns;
use clearway_engine::embedded::{Database, Error, Table};
use clearway_storage::store::{StoreOptions, redo_threads};
use std::ops::ControlFlow;
use std::time::Duration;

use clearway_storage::btree::Direction;

type Rows = Table<i64, (i64, String)>;

const LOSER: i64 = 100_000;
const THREADS: u64 = 2;
/// Updates per transaction.
const BATCH: u64 = 50;
const FILL: usize = 100;

fn options(megabytes: u64) -> StoreOptions {
    let mut options = StoreOptions { checkpoint_bytes: (megabytes << 20) * 8, ..StoreOptions::default() };
    options.wal.log_bytes_max = options.checkpoint_bytes;
    options.redo_threads = redo_threads();
    options
}

fn open(dir: &str, megabytes: u64) -> Result<(Database, Rows), Error> {
    let db = Database::open_with(dir, options(megabytes))?;
    let rows: Rows = db.table("rows", &["id"], &["n", "fill"])?;
    Ok((db, rows))
}

fn end_lsn(db: &Database) -> u64 {
    db.engine().transactions().store().wal().end_lsn().0
}

/// Numbers without a pattern.
fn scatter(i: u64) -> u64 {
    let x = i.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11
}

/// Updates until the log has grown to `until`; returns how many were acknowledged.
fn update(db: &Database, table: &Rows, rows: u64, from: u64, until: u64) -> Result<u64, Error> {
    let mut done = 0;
    while end_lsn(db) < until {
        db.transact(|txn| {
            let mut keys: Vec<i64> = (0..BATCH).map(|i| (scatter(from + done + i) % rows) as i64).collect();
            // In one order, so that no two of these wait for each other in a ring.
            keys.sort_unstable();
            keys.iter().try_for_each(|key| txn.update_with(table, key, |row| row.0 += 1).map(|_| ()))
        })?;
        done += BATCH;
    }
    Ok(done)
}

/// Prepares everything, says how many updates it has acknowledged, and waits to be killed.
fn child(dir: &str, megabytes: u64, rows: u64) -> Result<(), Error> {
    let (db, table) = open(dir, megabytes)?;
    let fill = "x".repeat(FILL);
    for from in (0..rows as i64).step_by(1000) {
        db.transact(|txn| (from..from + 1000).try_for_each(|id| txn.insert(&table, &id, &(0, fill.clone()))))?;
    }
    block_on(db.engine().transactions().store().checkpoint()).expect("a checkpoint");
    let until = end_lsn(&db) + (megabytes << 20);
    let running: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (db, table) = (db.clone(), table.clone());
            let body = move || update(&db, &table, rows, thread << 40, until);
            spawn_thread("updates", body).expect("a thread")
        })
        .collect();
    let mut acknowledged = 0;
    for thread in running {
        acknowledged += thread.join().expect("no panic")?;
    }
    db.transact(|txn| -> Result<(), Error> {
        (0..LOSER).try_for_each(|id| txn.update_with(&table, &id, |row| row.0 += 1_000_000).map(|_| ()))?;
        // Its records are on disk, its commit is not to be.
        let wal = db.engine().transactions().store().wal().clone();
        block_on(wal.wait_durable(wal.end_lsn())).expect("durable");
        println!("{acknowledged}");
        block_on(sleep(Duration::from_secs(3600)));
        Ok(())
    })
}

fn ms(from: u64) -> f64 {
    (now_ns() - from) as f64 / 1e6
}

fn main() -> Result<(), Error> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let is_child = args.first().is_some_and(|arg| arg == "child");
    if is_child {
        args.remove(0);
    }
    let dir = args.first().cloned().unwrap_or_else(|| "restart-data".to_owned());
    let number = |at: usize, default: u64| args.get(at).and_then(|s| s.parse().ok()).unwrap_or(default);
    let (megabytes, rows) = (number(1, 1024), number(2, 500_000).next_multiple_of(1000).max(LOSER as u64));
    if is_child {
        return child(&dir, megabytes, rows);
    }
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.args(["child", &dir, &megabytes.to_string(), &rows.to_string()]).stdout(Stdio::piped());
    let began = now_ns();
    let mut child = child.spawn().expect("another process");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let acknowledged: i64 = line.trim().parse().expect("a number");
    println!("made in {:.1} s: {acknowledged} updates acknowledged", ms(began) / 1e3);
    child.kill().expect("killed");
    child.wait().expect("ended");

    let began = now_ns();
    let (db, table) = open(&dir, megabytes)?;
    let opened = ms(began);
    let outside = db.transact(|txn| txn.get(&table, &(rows as i64 - 1)))?;
    let answered = ms(began);
    assert!(outside.is_some(), "a row that the open transaction had not changed");
    let inside = db.transact(|txn| txn.get(&table, &0))?.expect("a row that it had changed");
    assert!(inside.0 < 1_000_000, "nothing of the open transaction shows");
    let at_once = !db.engine().transactions().book().active().is_empty();
    while !db.engine().transactions().book().active().is_empty() {
        block_on(sleep(Duration::from_millis(5)));
    }
    let undone = ms(began);
    let mut sum = 0;
    db.transact(|txn| {
        sum = 0;
        txn.scan(&table, .., Direction::Forward, |_, row| {
            sum += row.0;
            ControlFlow::Continue(())
        })
    })?;
    assert_eq!(sum, acknowledged, "every acknowledged update, and nothing else");
    println!("opened in {opened:.0} ms, first answer after {answered:.0} ms");
    println!(
        "the open transaction of {LOSER} changes was undone after {undone:.0} ms, still there at the first answer: {at_once}"
    );
    println!("the sum over all rows is {sum}, as acknowledged");
    let report = db.engine().recovery();
    println!("{report:?}");
    db.close()
}
