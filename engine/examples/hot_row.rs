//! One row that all tasks increment, durably: by `update_with`, and by a closure that reads and then writes.
//!
//! `cargo run --release -p clearway-engine --example hot_row DIRECTORY [SECONDS [TASKS...]]`; prints a row per number of tasks, then
//! the same for the closure with an `r` before the numbers (`... 3 1 10 100 r 1 10`); `w1` before numbers: tasks run on one thread, not two. Each task waits until its increment is durable before
//! it begins the next one. At the end the row must hold every increment that was acknowledged, and again after closing and opening.
//!
//! `... --example hot_row kill DIRECTORY [SECONDS [TASKS...]]`: another process increments the row and reports how many increments it has
//! acknowledged; it is killed in the middle (SIGKILL), and the row must hold all acknowledged increments.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    let workers = tokio::runtime::Handle::current().metrics().num_workers();
    println!("| {name} | {workers} | {tasks} | {rate:.0} | {p50:.2} | {p99:.2} | {:.1} |", p99 / p50);
    took.len()
}

fn counters(dir: &str) -> Result<(Database, Counters), Error> {
    let db = Database::open(dir)?;
    let table: Counters = db.table("counters", &["id"], &["n"])?;
    Ok((db, table))
}

/// One line of the table: form, tasks, threads that run them.
type Line = (Form, usize, usize);

/// Numbers of tasks by form; those behind an `r` are for the closure, those behind `w1` for one thread.
fn plan(args: &[String]) -> Vec<Line> {
    let (mut form, mut workers) = (Form::UpdateWith, 2);
    let mut plan = Vec::new();
    for arg in args {
        match (arg.parse(), arg.strip_prefix('w').and_then(|n| n.parse().ok())) {
            (Ok(tasks), _) => plan.push((form, tasks, workers)),
            (_, Some(n)) => workers = n,
            _ => form = Form::ReadThenWrite,
        }
    }
    match plan.is_empty() {
        true => [1, 10, 100, 1_000].map(|tasks| (Form::UpdateWith, tasks, 2)).to_vec(),
        false => plan,
    }
}

fn runtime(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().expect("a runtime")
}

/// Increments until it is killed, and writes down how many are acknowledged.
fn child(dir: &str, tasks: usize) -> Result<(), Error> {
    let (db, table) = counters(dir)?;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let runtime = runtime(2);
    for _ in 0..tasks {
        let (db, table, acknowledged) = (db.clone(), table.clone(), acknowledged.clone());
        runtime.spawn(async move {
            loop {
                increment(&db, &table, Form::UpdateWith).await.expect("incremented");
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    runtime.block_on(async {
        let mut out = std::io::stdout();
        loop {
            sleep(Duration::from_millis(1)).await;
            writeln!(out, "{}", acknowledged.load(Ordering::SeqCst)).expect("somebody listens");
        }
    })
}

fn kill(dir: &str, seconds: u64, plan: &[Line]) -> Result<(), Error> {
    println!("| tasks | acknowledged before the kill | the row holds more | opened in ms |\n|---:|---:|---:|---:|");
    let (db, table) = counters(dir)?;
    db.transact(|txn| txn.put(&table, &1, &0))?;
    db.close()?;
    let mut held = 0;
    for (_, tasks, _) in plan {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program);
        child.args(["child", dir, &tasks.to_string()]).stdout(Stdio::piped());
        let mut child = child.spawn().expect("another process");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines().map_while(Result::ok);
        let (mut said, mut began) = (0, None);
        for line in lines.by_ref() {
            said = line.parse().unwrap_or(said);
            let began = *began.get_or_insert_with(now_ns);
            if now_ns() - began > seconds * 1_000_000_000 {
                break;
            }
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        // What it had written when it died; a line that was cut short says less, never more.
        said = lines.filter_map(|line| line.parse().ok()).fold(said, i64::max);
        let opening = now_ns();
        let (db, table) = counters(dir)?;
        let opened_ms = (now_ns() - opening) as f64 / 1e6;
        let stands = db.transact(|txn| txn.get(&table, &1))?.expect("the row is there");
        assert!(stands - held >= said, "{said} were acknowledged, {} survived", stands - held);
        println!("| {tasks} | {said} | {} | {opened_ms:.0} |", stands - held - said);
        held = stands;
        db.close()?;
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mode = args.first().filter(|arg| ["kill", "child"].contains(&arg.as_str())).cloned();
    if mode.is_some() {
        args.remove(0);
    }
    let dir = args.first().cloned().unwrap_or_else(|| "hot-row-data".to_owned());
    let seconds = args.get(1).and_then(|s| s.parse().ok()).unwrap_or(3);
    let plan = plan(args.get(2..).unwrap_or_default());
    match mode.as_deref() {
        Some("kill") => return kill(&dir, seconds, &plan),
        Some(_) => return child(&dir, seconds as usize),
        None => {}
    }
    let (db, table) = counters(&dir)?;
    db.transact(|txn| txn.put(&table, &1, &0))?;
    println!("| form | threads | tasks | increments/s | p50 ms | p99 ms | p99/p50 |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let mut acknowledged = 0;
    for (form, tasks, workers) in plan {
        let runtime = runtime(workers);
        acknowledged += runtime.block_on(run(&db, &table, form, tasks, seconds));
    }
    let stands = db.transact(|txn| txn.get(&table, &1))?;
    let locks = db.engine().transactions().locks();
    println!("acknowledged {acknowledged}, the row holds {stands:?}");
    println!("deadlocks missed by the fast path: {}", locks.archive().missed_by_fast_path());
    assert_eq!(stands, Some(acknowledged as i64), "no increment is lost");
    db.close()?;
    let (db, table) = counters(&dir)?;
    assert_eq!(db.transact(|txn| txn.get(&table, &1))?, stands, "nor by a restart");
    db.close()
}
