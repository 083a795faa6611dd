//! Durable commits a second by 1, 8, 64 and 512 committers, compared with one thread that appends to a file and syncs it.
//!
//! `cargo run --release -p clearway-engine --example commit_rate DIRECTORY [SECONDS [ROUNDS]]`
//!
//! Rows: `raw`, 4 KiB appended to a file as the log's segments are (zero-filled, direct) and fdatasync, by one thread; `log`, one small
//! record appended and waited for; `transaction`, one row of a table changed and committed, each committer its own row. `tasks` run on a
//! runtime of two threads, `threads` park. All rows run one after the other, round by round, in one process; medians over the rounds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_base::sync::{JoinHandle, block_on, sleep, spawn_thread};
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, RealVfs, Vfs, inline_io_here};
use clearway_base::waits::now_ns;
use clearway_engine::embedded::{Database, Error, Table};
use clearway_storage::record::Record;
use clearway_storage::seams::Purpose;
use clearway_storage::wal::Wal;

const COMMITTERS: [usize; 4] = [1, 8, 64, 512];
const BLOCK: usize = 4096;
const SEGMENT: u64 = 16 << 20;

type Rows = Table<i64, i64>;

#[derive(Clone, Copy, PartialEq)]
enum What {
    Raw,
    Log,
    Transaction,
}

#[derive(Clone, Copy)]
struct Cell {
    what: What,
    threads: bool,
    committers: usize,
}

/// What a run gave.
#[derive(Clone, Copy, Default)]
struct Outcome {
    per_s: f64,
    p50_us: f64,
    p99_us: f64,
    per_sync: f64,
}

#[derive(Clone)]
struct Bench {
    db: Database,
    rows: Rows,
    stop: Arc<AtomicBool>,
}

async fn log_once(wal: &Wal) {
    let record = Record { body: &[7; 32], ..Record::structure(&[]) };
    let mut credit = wal.credit(Purpose::Change, Wal::record_bytes(&record)).await.expect("room in the log");
    let end = wal.append(&mut credit, &record).end;
    drop(credit);
    wal.wait_durable(end).await.expect("durable");
}

impl Bench {
    async fn committer(self, what: What, key: i64) -> Vec<u64> {
        let wal = self.db.engine().transactions().store().wal().clone();
        let mut took = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let began = now_ns();
            match what {
                What::Log => log_once(&wal).await,
                _ => {
                    let done = self.db.update_with_async(&self.rows, &key, |n| *n += 1).await.expect("committed");
                    assert!(done.is_some(), "row {key} is there");
                }
            }
            took.push(now_ns() - began);
        }
        took
    }

    fn threads(&self, what: What, committers: usize, run: Duration) -> Vec<u64> {
        let start = |key: usize| -> JoinHandle<Vec<u64>> {
            let bench = self.clone();
            let body = move || {
                let _inline = inline_io_here();
                block_on(bench.committer(what, key as i64))
            };
            spawn_thread("committer", body).expect("a thread")
        };
        let running: Vec<_> = (0..committers).map(start).collect();
        block_on(sleep(run));
        self.stop.store(true, Ordering::Relaxed);
        running.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    }

    fn tasks(&self, what: What, committers: usize, run: Duration) -> Vec<u64> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        runtime.block_on(async {
            let running: Vec<_> =
                (0..committers).map(|key| tokio::spawn(self.clone().committer(what, key as i64))).collect();
            sleep(run).await;
            self.stop.store(true, Ordering::Relaxed);
            let mut took = Vec::new();
            for task in running {
                took.extend(task.await.expect("no panic"));
            }
            took
        })
    }

    fn run(&self, cell: Cell, dir: &Path, run: Duration) -> Outcome {
        self.stop.store(false, Ordering::Relaxed);
        let wal = self.db.engine().transactions().store().wal();
        let (began, flushes) = (now_ns(), wal.stats().flushes);
        let mut took = match (cell.what, cell.threads) {
            (What::Raw, _) => raw(&dir.join("raw"), run),
            (what, true) => self.threads(what, cell.committers, run),
            (what, false) => self.tasks(what, cell.committers, run),
        };
        let ran_s = (now_ns() - began) as f64 / 1e9;
        let flushes = match cell.what {
            What::Raw => took.len() as u64,
            _ => wal.stats().flushes - flushes,
        };
        took.sort_unstable();
        let at = |part: f64| took.get((took.len() as f64 * part) as usize).map_or(0.0, |ns| *ns as f64 / 1e3);
        let count = took.len() as f64;
        Outcome { per_s: count / ran_s, p50_us: at(0.5), p99_us: at(0.99), per_sync: count / flushes.max(1) as f64 }
    }
}

/// The yardstick: nothing of the engine but the file.
fn raw(path: &Path, run: Duration) -> Vec<u64> {
    let vfs = RealVfs::inline();
    let file = vfs.open(path, OpenHow::create(FileKind::Other).direct()).wait().expect("a file");
    file.preallocate_zeroed(0, SEGMENT).wait().expect("room");
    file.sync_data().wait().expect("synced");
    let mut buf = IoBuf::zeroed(BLOCK);
    let (began, mut took, mut at) = (now_ns(), Vec::new(), 0);
    while now_ns() - began < run.as_nanos() as u64 {
        let step = now_ns();
        buf = file.write_at(at, buf).wait().expect("written");
        file.sync_data().wait().expect("synced");
        at = (at + BLOCK as u64) % SEGMENT;
        took.push(now_ns() - step);
    }
    took
}

fn cells() -> Vec<Cell> {
    let mut cells = vec![Cell { what: What::Raw, threads: true, committers: 1 }];
    for what in [What::Log, What::Transaction] {
        for threads in [false, true] {
            cells.extend(COMMITTERS.map(|committers| Cell { what, threads, committers }));
        }
    }
    cells
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| "commit-rate-data".to_owned());
    let seconds: f64 = args.next().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let rounds: usize = args.next().and_then(|s| s.parse().ok()).unwrap_or(3);
    let dir = Path::new(&dir);
    let db = Database::open(dir)?;
    let rows: Rows = db.table("rows", &["id"], &["n"])?;
    db.transact(|txn| (0..COMMITTERS[3] as i64).try_for_each(|key| txn.put(&rows, &key, &0)))?;
    let bench = Bench { db: db.clone(), rows, stop: Arc::default() };
    let cells = cells();
    let mut outcomes = vec![Vec::new(); cells.len()];
    for _ in 0..rounds {
        for (cell, outcomes) in cells.iter().zip(&mut outcomes) {
            outcomes.push(bench.run(*cell, dir, Duration::from_secs_f64(seconds)));
        }
    }
    println!("| what | by | committers | commits/s | of raw | every run | p50 us | p99 us | commits a sync |");
    println!("|---|---|---:|---:|---:|---|---:|---:|---:|");
    let of = |outcomes: &[Outcome], field: fn(&Outcome) -> f64| median(outcomes.iter().map(field).collect());
    let raw = of(&outcomes[0], |o| o.per_s);
    for (cell, outcomes) in cells.iter().zip(&outcomes) {
        let what = match cell.what {
            What::Raw => "raw",
            What::Log => "log",
            What::Transaction => "transaction",
        };
        let every: Vec<String> = outcomes.iter().map(|o| format!("{:.0}", o.per_s)).collect();
        let rate = of(outcomes, |o| o.per_s);
        println!(
            "| {what} | {} | {} | {rate:.0} | {:.2} | {} | {:.0} | {:.0} | {:.1} |",
            if cell.threads { "threads" } else { "tasks" },
            cell.committers,
            rate / raw,
            every.join(", "),
            of(outcomes, |o| o.p50_us),
            of(outcomes, |o| o.p99_us),
            of(outcomes, |o| o.per_sync)
        );
    }
    drop(bench);
    db.close()
}
