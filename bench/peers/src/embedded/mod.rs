//! Compares embedded databases: the tables of `docs/measured/embedded.md`.
//!
//! Every round runs every database in turn, each in an empty directory; the figures are medians of the rounds. A turn:
//! ```text
//!   load       rows in the order of their keys, a thousand a commit
//!   at random  rows at random keys, a thousand a commit
//!   point      one row at random by its key, 1, 2 and 4 threads; the key is never the same twice in a row
//!   range      a hundred rows from a random one on
//!   commit     one row a commit, each thread at random keys of its own, 1, 4, 16 and 64 threads
//!   counter    one row that 16 threads count up, a commit each
//!   queue      16 workers take the first free job and commit
//! ```
//! At the end the counter must equal the number of commits, and each job must have been taken once; otherwise the run stops.

mod contenders;
mod page;
mod sqlite;
mod trees;

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use crate::scatter;
use page::Figures;

/// With this variable in the environment the rates of reads are those of a second of a thread's processor time: for machines that do other work.
const BY_PROCESSOR: &str = "PEERS_BY_PROCESSOR";
/// Threads of the counter and of the queue.
const WORKERS: u64 = 16;
const READERS: [u64; 3] = [1, 2, 4];
const COMMITTERS: [u64; 4] = [1, 4, 16, 64];
/// Rows of a transaction of the load.
const BATCH: usize = 1000;
const RANGE_ROWS: usize = 100;
/// More than any queue can work off in its time.
const JOBS: i64 = 60_000;

/// An open database with a table of rows, one of jobs, and a counter.
pub trait Store: Send + Sync {
    /// What one thread works with.
    fn session(&self) -> Box<dyn Session + '_>;
}

/// Work on an open database. A call that changes something returns when its commit is as durable as the database's setting says.
pub trait Session {
    /// Whether the row is there; its value is looked at.
    fn get(&mut self, key: i64) -> bool;
    /// Looks at the values of so many rows from a key on; how many there were.
    fn range(&mut self, from: i64, rows: usize) -> usize;
    /// Puts rows, in one transaction.
    fn put(&mut self, keys: &[i64]);
    /// Counts up.
    fn count(&mut self);
    /// What the counter holds.
    fn counted(&mut self) -> i64;
    /// Makes jobs 1 to `jobs`, in one transaction.
    fn make_jobs(&mut self, jobs: i64);
    /// Takes the first free job.
    fn take_job(&mut self) -> Option<i64>;
}

/// How a run is made.
pub struct Run<'a> {
    pub dir: &'a Path,
    pub page: Option<&'a Path>,
    /// Rows of the table.
    pub rows: i64,
    pub rounds: usize,
    /// How long each figure is measured.
    pub time: Duration,
    /// Only contenders whose names contain one of these; all if there are none.
    pub only: Vec<String>,
    /// Only the steps whose names are here; all if there are none.
    pub steps: Vec<String>,
}

impl Run<'_> {
    fn does(&self, step: &str) -> bool {
        self.steps.is_empty() || self.steps.iter().any(|wanted| wanted == step)
    }
}

/// Runs everything and prints the tables, or puts them into the page.
pub fn run(run: &Run<'_>) {
    let begin = Instant::now();
    let kinds: Vec<&'static str> = contenders::NAMES
        .into_iter()
        .filter(|name| run.only.is_empty() || run.only.iter().any(|part| name.contains(part.as_str())))
        .collect();
    let mut figures = Figures::default();
    figures.sync_us = sync_us(run.dir);
    for round in 0..run.rounds {
        for turn in 0..kinds.len() {
            // No contender is always the first.
            let kind = kinds[(turn + round) % kinds.len()];
            one(run, kind, &mut figures);
            eprintln!("{:4.0} s: round {}, {kind}", begin.elapsed().as_secs_f64(), round + 1);
        }
        // A run that is cut off leaves the rounds that it had.
        let text = page::tables(&figures, &kinds, run, begin.elapsed());
        match run.page {
            Some(page) => crate::against::put_into(page, &text),
            None => println!("{text}"),
        }
    }
    let _ = std::fs::remove_dir_all(run.dir);
}

/// What a write of 512 bytes and a sync take on this disk, in microseconds: the median.
fn sync_us(dir: &Path) -> f64 {
    use std::io::Write as _;
    std::fs::create_dir_all(dir).unwrap();
    let mut file = std::fs::File::create(dir.join("sync")).unwrap();
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            file.write_all(&[7; 512]).unwrap();
            file.sync_data().unwrap();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// One turn of one contender.
fn one(run: &Run<'_>, kind: &'static str, figures: &mut Figures) {
    let store = contenders::open(kind, &run.dir.join("db"));
    let store = &*store;
    let rows = run.rows;
    let start = Instant::now();
    let mut session = store.session();
    for first in (0..rows).step_by(BATCH) {
        // Every second key, so that other rows fit between them.
        let keys: Vec<i64> = (first..(first + BATCH as i64).min(rows)).map(|n| 2 * n).collect();
        session.put(&keys);
    }
    figures.note(kind, "load", 1, rows as f64 / start.elapsed().as_secs_f64());
    reads(run, kind, store, figures);
    writes(run, kind, store, figures);
    if run.does("counter") {
        let done = timed(store, WORKERS, run.time, |session, _| session.count());
        assert_eq!(done.calls as i64, session.counted(), "{kind}: the counter is another number than its commits");
        figures.waits(kind, "counter", WORKERS, &done);
    }
    if run.does("queue") {
        session.make_jobs(JOBS);
        let (taken, sum) = (AtomicI64::new(0), AtomicI64::new(0));
        let highest = AtomicI64::new(0);
        let done = timed(store, WORKERS, run.time, |session, _| {
            let job = session.take_job().expect("there are more jobs than can be taken");
            taken.fetch_add(1, Relaxed);
            sum.fetch_add(job, Relaxed);
            highest.fetch_max(job, Relaxed);
        });
        // Every free job is taken before a later one, but for those that others had at that moment.
        let (taken, sum) = (taken.into_inner(), sum.into_inner());
        assert_eq!(highest.into_inner(), taken, "{kind}: a job was left or taken twice");
        assert_eq!(sum, taken * (taken + 1) / 2, "{kind}: a job was left or taken twice");
        figures.waits(kind, "queue", WORKERS, &done);
    }
}

fn reads(run: &Run<'_>, kind: &'static str, store: &dyn Store, figures: &mut Figures) {
    let rows = run.rows;
    let anywhere = |n: u64| 2 * (scatter(n) % rows as u64) as i64;
    if run.does("point") {
        for threads in READERS {
            let done = counted(store, threads, run.time, |session, n| {
                assert!(session.get(anywhere(n)), "{kind}: a row is missing");
            });
            figures.note(kind, "point", threads, done);
        }
    }
    if run.does("range") {
        let done = counted(store, 1, run.time, |session, n| {
            let from = anywhere(n).min(2 * (rows - RANGE_ROWS as i64));
            assert_eq!(session.range(from, RANGE_ROWS), RANGE_ROWS, "{kind}: rows are missing");
        });
        figures.note(kind, "range", 1, done);
    }
}

fn writes(run: &Run<'_>, kind: &'static str, store: &dyn Store, figures: &mut Figures) {
    let rows = run.rows;
    // Odd keys: no row of the load.
    let anywhere = |n: u64| 2 * (scatter(n) % (1 << 40)) as i64 + 1;
    if run.does("random") {
        let mut keys = vec![0; BATCH];
        let done = counted(store, 1, run.time, move |session, n| {
            keys.iter_mut()
                .enumerate()
                .for_each(|(at, key)| *key = anywhere(n * BATCH as u64 + at as u64) % (2 * rows));
            session.put(&keys);
        });
        figures.note(kind, "random", 1, done * BATCH as f64);
    }
    if run.does("commit") {
        for threads in COMMITTERS {
            let ran = all_processor_time();
            let done = timed(store, threads, run.time, |session, n| session.put(&[anywhere(n)]));
            let each_us = (all_processor_time() - ran).as_secs_f64() * 1e6 / done.calls as f64;
            eprintln!("{kind}, {threads} threads: {each_us:.1} us of processor time a commit");
            figures.waits(kind, "commit", threads, &done);
        }
    }
}

/// A fixed number of calls of one step by one thread, for tools that count instructions: what a call takes is the difference of two runs.
pub fn calls(dir: &Path, kind: &str, step: &str, calls: u64) {
    const ROWS: i64 = 20_000;
    let kind = contenders::NAMES.into_iter().find(|name| *name == kind).expect("a contender");
    let store = contenders::open(kind, &dir.join("db"));
    let mut session = store.session();
    let mut load = |from: i64, rows: i64, apart: i64| {
        for first in (from..from + rows).step_by(BATCH) {
            session.put(&(first..first + BATCH as i64).map(|n| apart * n).collect::<Vec<i64>>());
        }
    };
    load(0, ROWS, 2);
    if step == "load" {
        load(ROWS, calls as i64 * BATCH as i64, 2);
    }
    for n in 0..calls {
        let key = 2 * (scatter(n) % (ROWS as u64 - RANGE_ROWS as u64)) as i64;
        match step {
            "point" => assert!(session.get(key), "a row is missing"),
            "range" => assert_eq!(session.range(key, RANGE_ROWS), RANGE_ROWS, "rows are missing"),
            "random" => {
                let keys = (0..BATCH as u64).map(|at| (scatter(n * BATCH as u64 + at) % (1 << 40)) as i64 | 1);
                session.put(&keys.collect::<Vec<i64>>());
            }
            "commit" => session.put(&[(scatter(n) % (1 << 40)) as i64 | 1]),
            "load" => break,
            other => panic!("no step {other}"),
        }
    }
}

/// The processor time of all threads, those of the database too.
fn all_processor_time() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let told = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name before may have blanks; user and system time are the 14th and 15th field.
    let fields = told.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    fields.map(|ticks| TICK * ticks.parse::<u32>().unwrap()).sum()
}

/// How long the calling thread has had a processor.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}

/// Calls a second by so many threads for a while. The number that a call gets is no other call's.
fn counted(
    store: &dyn Store,
    threads: u64,
    time: Duration,
    work: impl FnMut(&mut dyn Session, u64) + Send + Clone,
) -> f64 {
    let (done, ready) = (AtomicU64::new(0), Barrier::new(threads as usize));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (mut work, done, ready) = (work.clone(), &done, &ready);
            scope.spawn(move || {
                let mut session = store.session();
                ready.wait();
                let (begin, ran) = (Instant::now(), processor_time());
                let mut calls = 0;
                while begin.elapsed() < time {
                    for _ in 0..16 {
                        work(&mut *session, (thread << 40) + calls);
                        calls += 1;
                    }
                }
                // Each thread's own rate: a call that goes on beyond the time takes nothing from the others.
                let elapsed = match std::env::var_os(BY_PROCESSOR) {
                    Some(_) => processor_time() - ran,
                    None => begin.elapsed(),
                };
                done.fetch_add((calls as f64 / elapsed.as_secs_f64()) as u64, Relaxed);
            });
        }
    });
    done.into_inner() as f64
}

/// Calls and how long they took.
pub struct Timed {
    pub calls: u64,
    pub rate: f64,
    pub p99_ms: f64,
    pub longest_ms: f64,
}

/// Calls by so many threads for a while, each timed.
fn timed(store: &dyn Store, threads: u64, time: Duration, work: impl Fn(&mut dyn Session, u64) + Sync) -> Timed {
    let (waits, ready) = (Mutex::new(Vec::new()), Barrier::new(threads as usize + 1));
    let mut begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (work, waits, ready) = (&work, &waits, &ready);
            scope.spawn(move || {
                let mut session = store.session();
                ready.wait();
                let begin = Instant::now();
                let mut own = Vec::new();
                while begin.elapsed() < time {
                    let start = Instant::now();
                    // The threads of a step before have taken lower numbers.
                    work(&mut *session, ((threads << 8 | thread) << 40) + own.len() as u64);
                    own.push(start.elapsed().as_secs_f64() * 1e3);
                }
                waits.lock().unwrap().append(&mut own);
            });
        }
        ready.wait();
        begin = Instant::now();
    });
    let elapsed = begin.elapsed().as_secs_f64();
    let mut waits = waits.into_inner().unwrap();
    waits.sort_by(f64::total_cmp);
    let calls = waits.len() as u64;
    let p99_ms = waits.get(waits.len() * 99 / 100).copied().unwrap_or_default();
    Timed { calls, rate: calls as f64 / elapsed, p99_ms, longest_ms: waits.last().copied().unwrap_or_default() }
}
