//! One row that everybody increments, durably: by `update_with`, and by a closure that reads and then writes.
//!
//! `cargo run --release --example hot_row DIRECTORY [SECONDS [TASKS...]]`; prints a row per number of tasks and form. Each task waits
//! until its increment is durable before it begins the next one. At the end the row must hold every increment that was acknowledged,
//! and again after closing and opening.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_base::sync::sleep;
use clearway_base::waits::now_ns;
use clearway_engine::embedded::{AsyncTxn, Database, Error, Isolation, Table, TxnOptions};

type Counters = Table<i64, i64>;

#[derive(Clone, Copy)]
enum Form {
    UpdateWith,
    ReadThenWrite,
}

async fn increment(db: &Database, table: &Counters, form: Form) -> Result<(), Error> {
    match form {
        Form::UpdateWith => db.update_with_async(table, &1, |n| *n += 1).await.map(|_| ()),
        Form::ReadThenWrite => {
            let options = TxnOptions { isolation: Isolation::RepeatableRead, read_only: false };
            db.transact_async(options, |txn: &mut AsyncTxn<'_>| {
                let table = table.clone();
                Box::pin(async move {
                    let n = txn.get(&table, &1).await?.unwrap_or(0);
                    txn.put(&table, &1, &(n + 1)).await
                })
            })
            .await
        }
    }
}

/// Nanoseconds that each acknowledged increment took.
async fn task(db: Database, table: Counters, form: Form, stop: Arc<AtomicBool>) -> Vec<u64> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let began = now_ns();
        increment(&db, &table, form).await.expect("incremented");
        took.push(now_ns() - began);
    }
    took
}

async fn run(db: &Database, table: &Counters, form: Form, tasks: usize, seconds: u64) -> usize {
    let stop = Arc::new(AtomicBool::new(false));
    let began = now_ns();
    let running: Vec<_> =
        (0..tasks).map(|_| tokio::spawn(task(db.clone(), table.clone(), form, stop.clone()))).collect();
    sleep(Duration::from_secs(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for handle in running {
        took.extend(handle.await.expect("no panic"));
    }
    let ran_s = (now_ns() - began) as f64 / 1e9;
    took.sort_unstable();
    let at = |part: f64| took.get((took.len() as f64 * part) as usize).map_or(0.0, |ns| *ns as f64 / 1e6);
    let name = match form {
        Form::UpdateWith => "update_with",
        Form::ReadThenWrite => "read, then write",
    };
    let (rate, p50, p99) = (took.len() as f64 / ran_s, at(0.5), at(0.99));
    println!("| {name} | {tasks} | {rate:.0} | {p50:.2} | {p99:.2} | {:.1} |", p99 / p50);
    took.len()
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| "hot-row-data".to_owned());
    let seconds = args.next().and_then(|s| s.parse().ok()).unwrap_or(3);
    let given: Vec<usize> = args.filter_map(|a| a.parse().ok()).collect();
    let tasks = if given.is_empty() { vec![1, 10, 100, 1_000] } else { given };
    let db = Database::open(&dir)?;
    let table: Counters = db.table("counters", &["id"], &["n"])?;
    db.transact(|txn| txn.put(&table, &1, &0))?;
    println!("| form | tasks | increments/s | p50 ms | p99 ms | p99/p50 |");
    println!("|---|---:|---:|---:|---:|---:|");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let mut acknowledged = 0;
    for form in [Form::UpdateWith, Form::ReadThenWrite] {
        for count in &tasks {
            acknowledged += runtime.block_on(run(&db, &table, form, *count, seconds));
        }
    }
    let stands = db.transact(|txn| txn.get(&table, &1))?;
    let locks = db.engine().transactions().locks();
    println!("acknowledged {acknowledged}, the row holds {stands:?}");
    println!("deadlocks missed by the fast path: {}", locks.archive().missed_by_fast_path());
    assert_eq!(stands, Some(acknowledged as i64), "no increment is lost");
    drop(runtime);
    db.close()?;
    let db = Database::open(&dir)?;
    let table: Counters = db.table("counters", &["id"], &["n"])?;
    assert_eq!(db.transact(|txn| txn.get(&table, &1))?, stands, "nor by a restart");
    db.close()
}
