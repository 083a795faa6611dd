//! The limit for thread switches: how often a second the system can switch between threads that do nothing else.
//!
//! Source: the test "threads" of sysbench, whose threads take one of some mutexes, yield, and give it back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::usage::usage_of;

/// Threads and mutexes, as sysbench is run for this with `--threads=1024 --thread-locks=128`.
const THREADS: usize = 1024;
const LOCKS: usize = 128;

/// Context switches per second of all processors together.
pub fn switches(length: Duration) -> f64 {
    let locks: Vec<Mutex<()>> = (0..LOCKS).map(|_| Mutex::new(())).collect();
    let stop = AtomicBool::new(false);
    let (locks, stop) = (&locks, &stop);
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let body = move || {
                for at in number.. {
                    let held = locks[at % LOCKS].lock();
                    std::thread::yield_now();
                    drop(held);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            };
            // Fewer threads than asked for still show the rate.
            let _ = std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, body);
        }
        let me = [std::process::id()];
        let (before, start) = (usage_of(&me), Instant::now());
        std::thread::sleep(length);
        let rate = usage_of(&me).since(&before).switches() as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        rate
    })
}
