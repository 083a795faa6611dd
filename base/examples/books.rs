//! Do the books close on the real clock, with other load on the machine?
//!
//! `cargo run --release -p clearway-base --example books [seconds] [load threads]`
//!
//! One task computes, spins and parks for a held mutex, sleeps, waits for a position, is in a run queue and writes
//! with a sync, while load threads compete for the processors. Each share is also measured without the books: the computing
//! by the kernel's CPU clock around it, the blocked stretches by the clock of the task that holds or wakes, the sync by the
//! clock less the scheduler's run delay. Prints the books, these second figures, and what is unaccounted.
// The truth is measured by other means than those that are judged.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::future::Future;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use clearway_base::sync::{LsnWaiters, Mutex, block_on, sleep, spawn_thread};
use clearway_base::waits::{Books, Object, Wait, WaitEvent, books, clock, in_wait, now_ns, wall_us};

/// What the task itself knows of its time, by readings of its own.
#[derive(Default)]
struct Truth {
    compute_cpu_ns: u64,
    sleep_ns: u64,
    lsn_ns: u64,
    sync_ns: u64,
    held_ns: u64,
}

fn compute(truth: &mut Truth, us: u64) {
    let start_ns = clock::thread_cpu_ns();
    let mut x = 1u64;
    while clock::thread_cpu_ns() - start_ns < us * 1_000 {
        for _ in 0..1_000 {
            x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
    truth.compute_cpu_ns += clock::thread_cpu_ns() - start_ns;
}

struct Stage {
    mutex: Mutex<()>,
    held: AtomicBool,
    wanted: AtomicBool,
    released_ns: AtomicU64,
    waiters: LsnWaiters,
    published_ns: AtomicU64,
    stop: AtomicBool,
}

/// Holds the mutex for 3 ms whenever the task wants to meet it held, and publishes the next position 2 ms after.
fn counterpart(stage: &Stage) {
    let mut lsn = 0;
    while !stage.stop.load(Relaxed) {
        if !stage.wanted.swap(false, Relaxed) {
            std::hint::spin_loop();
            std::thread::yield_now();
            continue;
        }
        let hold = stage.mutex.lock();
        stage.held.store(true, Relaxed);
        clearway_base::sync::pause(Duration::from_millis(3), WaitEvent::Pause);
        stage.released_ns.store(now_ns(), Relaxed);
        drop(hold);
        clearway_base::sync::pause(Duration::from_millis(2), WaitEvent::Pause);
        lsn += 1;
        stage.published_ns.store(now_ns(), Relaxed);
        stage.waiters.publish(lsn);
    }
}

/// A future that says when it was woken last, by a waker of its own.
struct Noted<F> {
    future: Pin<Box<F>>,
    noter: Arc<Noter>,
}

struct Noter {
    woke_ns: AtomicU64,
    inner: Mutex<Waker>,
}

impl Wake for Noter {
    fn wake(self: Arc<Self>) {
        self.woke_ns.store(now_ns(), Relaxed);
        self.inner.lock().wake_by_ref();
    }
}

impl<F> Noted<F> {
    fn new(future: F) -> Self {
        let inner = Mutex::new("example/noter", Waker::noop().clone());
        Self { future: Box::pin(future), noter: Arc::new(Noter { woke_ns: AtomicU64::new(0), inner }) }
    }
}

impl<F: Future<Output = ()>> Future for Noted<F> {
    type Output = u64;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        let this = self.get_mut();
        *this.noter.inner.lock() = cx.waker().clone();
        let waker = Waker::from(Arc::clone(&this.noter));
        let polled = this.future.as_mut().poll(&mut Context::from_waker(&waker));
        polled.map(|()| this.noter.woke_ns.load(Relaxed))
    }
}

async fn round(stage: &Stage, truth: &mut Truth, file: &mut std::fs::File, lsn: u64) {
    compute(truth, 2_000);
    stage.wanted.store(true, Relaxed);
    stage.held.store(false, Relaxed);
    while !stage.held.load(Relaxed) {
        compute(truth, 5);
    }
    let began_ns = now_ns();
    drop(stage.mutex.lock());
    truth.held_ns += stage.released_ns.load(Relaxed).saturating_sub(began_ns);
    let began_ns = now_ns();
    let _ = in_wait(WaitEvent::CommitDurable, Object::NONE, stage.waiters.wait(lsn)).await;
    truth.lsn_ns += stage.published_ns.load(Relaxed).saturating_sub(began_ns);
    let began_ns = now_ns();
    let woke_ns = in_wait(WaitEvent::PgSleep, Object::NONE, Noted::new(sleep(Duration::from_millis(2)))).await;
    truth.sleep_ns += woke_ns.saturating_sub(began_ns);
    let (began_ns, delay_ns) = (now_ns(), clock::run_delay_ns().unwrap_or(0));
    {
        let _wait = Wait::begin(WaitEvent::WalSync, Object::NONE);
        file.write_all(&[0u8; 4096]).and_then(|()| file.sync_data()).expect("the scratch file takes writes");
    }
    let delay_ns = clock::run_delay_ns().unwrap_or(0) - delay_ns;
    truth.sync_ns += (now_ns() - began_ns).saturating_sub(delay_ns);
    compute(truth, 1_000);
}

fn row(name: &str, books_ns: u64, truth_ns: u64, elapsed_ns: u64) {
    let ms = |ns: u64| ns as f64 / 1e6;
    let off = (books_ns as f64 - truth_ns as f64) / truth_ns.max(1) as f64 * 100.0;
    let share = books_ns as f64 / elapsed_ns as f64 * 100.0;
    println!(
        "{name:<34}{:>11.2} ms {share:>6.2} %   truth {:>11.2} ms   off by {off:>6.2} %",
        ms(books_ns),
        ms(truth_ns)
    );
}

fn report(closed: &Books, truth: &Truth) {
    let all = closed.elapsed_ns;
    row("CPU", closed.cpu_ns, truth.compute_cpu_ns, all);
    row("Mutex, parked", closed.wait(WaitEvent::Mutex).wait_ns + closed.spin_ns(), truth.held_ns, all);
    row("CommitDurable", closed.wait(WaitEvent::CommitDurable).wait_ns, truth.lsn_ns, all);
    row("PgSleep", closed.wait(WaitEvent::PgSleep).wait_ns, truth.sleep_ns, all);
    row("WALSync", closed.wait(WaitEvent::WalSync).wait_ns, truth.sync_ns, all);
    let percent = |ns: f64| ns / all as f64 * 100.0;
    println!(
        "spin                       {:>18.2} ms {:>6.2} %",
        closed.spin_ns() as f64 / 1e6,
        percent(closed.spin_ns() as f64)
    );
    let queue = closed.run_queue_ns as f64;
    println!(
        "run queue                  {:>18.2} ms {:>6.2} %   run delay known: {}",
        queue / 1e6,
        percent(queue),
        closed.run_delay_known
    );
    let left = closed.unaccounted_ns as f64;
    println!("unaccounted                {:>18.3} ms {:>6.3} %", left / 1e6, percent(left));
    println!("elapsed                    {:>18.2} ms", all as f64 / 1e6);
}

fn main() -> std::io::Result<()> {
    let argument = |n: usize, default: u64| std::env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (seconds, load) = (argument(1, 5), argument(2, 2));
    println!("clock: {}", clock::description());
    println!("{load} load threads, {seconds} s, wall clock {} us", wall_us());
    let stage = Arc::new(Stage {
        mutex: Mutex::new("example/books", ()),
        held: AtomicBool::new(false),
        wanted: AtomicBool::new(false),
        released_ns: AtomicU64::new(0),
        waiters: LsnWaiters::new("example/books/lsn", 0),
        published_ns: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    });
    let for_load = Arc::clone(&stage);
    let mut threads = vec![spawn_thread("counterpart", move || counterpart(&for_load))?];
    for _ in 0..load {
        let stage = Arc::clone(&stage);
        threads.push(spawn_thread("load", move || {
            while !stage.stop.load(Relaxed) {
                std::hint::black_box(now_ns());
            }
        })?);
    }
    let path = std::env::temp_dir().join(format!("clearway-books-{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
    let mut truth = Truth::default();
    let until_ns = now_ns() + seconds * 1_000_000_000;
    let ((), closed) = block_on(books(async {
        let mut lsn = 0;
        while now_ns() < until_ns {
            lsn += 1;
            round(&stage, &mut truth, &mut file, lsn).await;
        }
    }));
    stage.stop.store(true, Relaxed);
    for thread in threads {
        let _ = thread.join();
    }
    std::fs::remove_file(&path)?;
    report(&closed, &truth);
    Ok(())
}
