//! What a transaction costs as the number of its changes, of open transactions or of inserting tasks grows.
//!
//! `cargo run --release -p clearway-engine --example transaction_costs WHAT DIRECTORY [NUMBER [MEGABYTES [TIMES]]]`, where WHAT is
//! - `rollback`: an update of NUMBER rows (1,000,000) in one transaction, forward and rolled back, three times; with MEGABYTES (64) of memory
//!   for undo, and, if TIMES is given, so many updates of all rows one after the other in each transaction;
//! - `snapshots`: beginning and ending a snapshot while 1, 100, 1,000 and 10,000 transactions that have changed a row are open;
//! - `inserts`: rows a second into tables without a primary key, with a rising key and with a random key, by 16, 32 and 64 tasks, each
//!   row a durable transaction; NUMBER rounds (5), the three in turn; in place of MEGABYTES a number of tasks, for these alone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clearway_base::sync::{block_on, sleep};
use clearway_base::vfs::inline_io_here;
use clearway_base::waits::{Books, books, now_ns};
use clearway_engine::catalog::{Column, Object, Oid, Relation};
use clearway_engine::embedded::Database;
use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::{Storage, Value};
use clearway_storage::btree::{Direction, KeyRange};
use clearway_txn::transaction::{Basis, Changed};

/// The database and the schema that a new directory has for embedded use.
const DATABASE: Oid = 6;
const SCHEMA: Oid = 2201;

fn column(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        storage: Storage::Int(8).code(),
        type_oid: 20,
        type_mod: -1,
        not_null: false,
        default: None,
        identity: None,
        dropped_version: None,
        statistics: None,
        since_version: 0,
        missing: None,
        ..Default::default()
    }
}

/// A table of two numbers, with the first as its key or without one.
async fn table(session: &mut Session, name: &str, keyed: bool) -> Arc<TableShape> {
    let oid = session.db().new_oid();
    session.begin(TxnOptions::default());
    let tree = session.create_tree().await.expect("a tree");
    let (name, columns) = (format!("{name}_{oid}"), vec![column("id"), column("n")]);
    let key = if keyed { vec![0] } else { Vec::new() };
    let relation = Relation { key, ..Relation::table(oid, DATABASE, SCHEMA, &name, columns, tree.0) };

    session.put_object(Object::Relation(relation)).await.expect("a table");
    session.commit(Durability::Wait).await.expect("committed");
    TableShape::new(&session.catalog(), oid).expect("a shape")
}

async fn fill(session: &mut Session, shape: &TableShape, rows: i64) {
    for from in (0..rows).step_by(10_000) {
        session.begin(TxnOptions::default());
        for id in from..rows.min(from + 10_000) {
            session.insert(shape, &[Value::Int(id), Value::Int(0)]).await.expect("inserted");
        }
        session.commit(Durability::Wait).await.expect("committed");
    }
}

/// `UPDATE t SET n = n + 1` in the open transaction; returns how many rows it changed.
async fn update_all(session: &mut Session, shape: &Arc<TableShape>) -> u64 {
    let statement = session.open_statement(&"update".into(), StatementMode::Write);
    let mut scan = session.scan(shape, KeyRange::all(), Direction::Forward, &statement.view);
    let mut changed = 0;
    while let Some(found) = session.next(&mut scan).await.expect("a row") {
        let mut new = found.row.clone();
        let Value::Int(n) = new[1] else { panic!("{new:?}") };
        new[1] = Value::Int(n + 1);
        let basis = Basis::Read(statement.view);
        let done = session.update(shape, &found.key, &found.row, &new, basis).await.expect("updated");
        assert_eq!(done, Changed::Done);
        changed += 1;
    }
    session.close_statement(statement);
    changed
}

/// Megabytes ever written to the spill file and read from it.
fn spilled_mb(db: &Database) -> (f64, f64) {
    let file = db.engine().transactions().book().spill_file();
    file.map_or((0.0, 0.0), |file| (file.written_bytes() as f64 / 1e6, file.read_bytes() as f64 / 1e6))
}

/// Seconds of computing, and of the waits that took most.
fn where_it_went(books: &Books) -> String {
    let mut waits = books.waits.clone();
    waits.sort_by_key(|share| std::cmp::Reverse(share.wait_ns));
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut parts = vec![format!("CPU {:.2}, ready {:.2}", seconds(books.cpu_ns), seconds(books.run_queue_ns))];
    parts.extend(
        waits
            .iter()
            .take(3)
            .map(|wait| format!("{} {:.2} in {}", wait.event.name(), seconds(wait.wait_ns + wait.spin_ns), wait.count)),
    );
    parts.join(", ")
}

async fn rollback(db: &Database, rows: i64, memory: u64, times: usize) {
    db.engine().transactions().book().set_budget(memory);
    let mut session = db.engine().session(1, DATABASE);
    let shape = table(&mut session, "rollback", true).await;
    fill(&mut session, &shape, rows).await;
    println!("| round | rows | forward s | rolled back s | ratio | spilled MB | read again MB | forward | back |");
    println!("|---:|---:|---:|---:|---:|---:|---:|---|---|");
    for round in 1..=3 {
        session.begin(TxnOptions::default());
        let spilled = spilled_mb(db);
        let ((), forward) = books(async {
            for _ in 0..times {
                assert_eq!(update_all(&mut session, &shape).await, rows as u64);
            }
        })
        .await;
        let (undone, back) = books(session.roll_back()).await;
        undone.expect("rolled back");
        let (written, read) = spilled_mb(db);
        let (written, read) = (written - spilled.0, read - spilled.1);
        let (forward_s, back_s) = (forward.elapsed_ns as f64 / 1e9, back.elapsed_ns as f64 / 1e9);
        println!(
            "| {round} | {rows} | {forward_s:.2} | {back_s:.2} | {:.2} | {written:.0} | {read:.0} | {} | {} |",
            back_s / forward_s,
            where_it_went(&forward),
            where_it_went(&back)
        );
    }
    let statement = session.open_statement(&"check".into(), StatementMode::ReadOnly);
    let mut scan = session.scan(&shape, KeyRange::all(), Direction::Forward, &statement.view);
    while let Some(found) = session.next(&mut scan).await.expect("a row") {
        assert_eq!(found.row[1], Value::Int(0), "as before");
    }
    session.close_statement(statement);
}

async fn snapshots(db: &Database) {
    const PER_ROUND: u32 = 20_000;
    const ROUNDS: usize = 15;
    let counts = [1, 100, 1_000, 10_000];
    let mut reader = db.engine().session(1, DATABASE);
    let shape = table(&mut reader, "snapshots", true).await;
    let mut took = vec![Vec::new(); counts.len()];
    for _ in 0..ROUNDS {
        let mut writers: Vec<Session> = Vec::new();
        for (count, took) in counts.iter().zip(&mut took) {
            while writers.len() < *count {
                let mut writer = db.engine().session(2 + writers.len() as i32, DATABASE);
                writer.begin(TxnOptions::default());
                let row = [Value::Int(writers.len() as i64), Value::Int(0)];
                writer.insert(&shape, &row).await.expect("inserted");
                writers.push(writer);
            }
            let text = "read".into();
            let began = now_ns();
            for _ in 0..PER_ROUND {
                let statement = reader.open_statement(&text, StatementMode::ReadOnly);
                reader.close_statement(statement);
            }
            took.push((now_ns() - began) as f64 / f64::from(PER_ROUND));
        }
        for mut writer in writers {
            writer.roll_back().await.expect("rolled back");
        }
    }
    println!(
        "| open writers | ns to begin and end a snapshot | least | most | of that with 1 |\n|---:|---:|---:|---:|---:|"
    );
    let mut base = 0.0;
    for (count, mut took) in counts.iter().zip(took) {
        took.sort_by(f64::total_cmp);
        let median = took[took.len() / 2];
        base = if *count == 1 { median } else { base };
        println!("| {count} | {median:.1} | {:.1} | {:.1} | {:.2} |", took[0], took[took.len() - 1], median / base);
    }
}

#[derive(Clone, Copy)]
enum Keys {
    None,
    Rising,
    Random,
}

struct Insert {
    db: Database,
    shape: Arc<TableShape>,
    keys: Keys,
    next: AtomicU64,
    stop: AtomicBool,
    rows: AtomicU64,
}

impl Insert {
    fn id(&self) -> i64 {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        match self.keys {
            Keys::Random => (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1) as i64,
            Keys::None | Keys::Rising => n as i64,
        }
    }

    async fn task(self: Arc<Self>, pid: i32) {
        let wal = self.db.engine().transactions().store().wal().clone();
        let mut session = self.db.engine().session(pid, DATABASE);
        while !self.stop.load(Ordering::Relaxed) {
            wal.session_busy(true);
            session.begin(TxnOptions::default());
            session.insert(&self.shape, &[Value::Int(self.id()), Value::Int(0)]).await.expect("inserted");
            session.commit(Durability::Wait).await.expect("committed");
            wal.session_busy(false);
            self.rows.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Rows a second into a table that is new.
/// Rows a second, and how many of them one flush of the log took along.
fn insert_rate(db: &Database, keys: Keys, tasks: usize, run: Duration) -> (f64, f64) {
    let shape = block_on(async {
        let mut session = db.engine().session(1, DATABASE);
        table(&mut session, "inserts", !matches!(keys, Keys::None)).await
    });
    let insert = Arc::new(Insert {
        db: db.clone(),
        shape,
        keys,
        next: AtomicU64::new(1),
        stop: AtomicBool::new(false),
        rows: AtomicU64::new(0),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let flushes = || db.engine().transactions().store().wal().stats().flushes;
    runtime.block_on(async {
        let (began, flushed) = (now_ns(), flushes());
        let running: Vec<_> = (0..tasks).map(|n| tokio::spawn(insert.clone().task(n as i32 + 2))).collect();
        sleep(run).await;
        insert.stop.store(true, Ordering::Relaxed);
        for task in running {
            task.await.expect("no panic");
        }
        let rows = insert.rows.load(Ordering::Relaxed) as f64;
        (rows / ((now_ns() - began) as f64 / 1e9), rows / (flushes() - flushed).max(1) as f64)
    })
}

fn median(of: &[f64]) -> f64 {
    let mut of = of.to_vec();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn inserts(db: &Database, rounds: usize, tasks: &[usize]) {
    let tables = [("no primary key", Keys::None), ("rising key", Keys::Rising), ("random key", Keys::Random)];
    println!(
        "| tasks | table | rows/s | every run | rows a flush | no key against this |\n|---:|---|---:|---|---:|---:|"
    );
    for &tasks in tasks {
        let mut measured = vec![(Vec::new(), Vec::new()); tables.len()];
        for round in 0..rounds {
            // Each comes first, second and last in turn: the pages of the table before are being written and packed meanwhile.
            for place in 0..tables.len() {
                let table = (round + place) % tables.len();
                let (rates, flushed) = &mut measured[table];
                let (rate, a_flush) = insert_rate(db, tables[table].1, tasks, Duration::from_secs(1));
                rates.push(rate);
                flushed.push(a_flush);
            }
        }
        let without = median(&measured[0].0);
        for ((name, _), (rates, flushed)) in tables.iter().zip(&measured) {
            let every: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
            let rate = median(rates);
            let (every, a_flush) = (every.join(", "), median(flushed));
            println!("| {tasks} | {name} | {rate:.0} | {every} | {a_flush:.1} | {:.2} |", without / rate);
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let what = args.first().map_or("", String::as_str);
    let dir = args.get(1).map_or("transaction-costs-data", String::as_str);
    let argument = |at: usize, default: i64| args.get(at).and_then(|s| s.parse().ok()).unwrap_or(default);
    let number = |default| argument(2, default);
    let db = Database::open(Path::new(dir)).expect("a database");
    let _inline = inline_io_here();
    match what {
        "rollback" => {
            block_on(rollback(&db, number(1_000_000), argument(3, 64) as u64 * 1_000_000, argument(4, 1) as usize))
        }
        "snapshots" => block_on(snapshots(&db)),
        "inserts" => match argument(3, 0) as usize {
            0 => inserts(&db, number(5) as usize, &[16, 32, 64]),
            tasks => inserts(&db, number(5) as usize, &[tasks]),
        },
        _ => println!("rollback, snapshots or inserts?"),
    }
    db.close().expect("closed");
}
