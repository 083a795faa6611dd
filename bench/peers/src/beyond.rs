//! Measures data larger than memory: whether the cache keeps to its budget, how steady the rate is, and what splits cost readers.

use crate::scatter;
use crate::stored::Stored;
use clearway_storage::btree::RowBuf;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|kb| kb.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn fresh(dir: &Path) {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
}

/// A cache of 64 MiB, 1 GB of rows of a kilobyte loaded in order, then updates and reads at random for `seconds`.
pub fn memory(dir: &Path, seconds: u64) {
    fresh(dir);
    let stored = Stored::open(dir, 64 << 20);
    let rows = 1_000_000;
    let value = vec![7; 1000];
    let begin = Instant::now();
    for tenth in 0..10 {
        let start = Instant::now();
        stored.put((tenth * rows / 10)..((tenth + 1) * rows / 10), &value);
        let rate = rows as f64 / 10.0 / start.elapsed().as_secs_f64();
        println!("load {:3} %: {:7.0} rows/s, {} MiB resident", (tenth + 1) * 10, rate, resident_mb());
    }
    println!("loaded 1 GB in {:.1} s", begin.elapsed().as_secs_f64());
    let (written, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut i = 1;
            while !stop.load(Relaxed) {
                let keys: Vec<u64> = (0..100).map(|n| scatter(i + n) % rows).collect();
                i += 100;
                stored.put(keys.into_iter(), &value);
                written.fetch_add(100, Relaxed);
            }
        });
        scope.spawn(|| {
            let (mut out, mut i) = (RowBuf::default(), 77);
            while !stop.load(Relaxed) {
                i = scatter(i);
                assert!(stored.get(i % rows, &mut out), "a row is missing");
                read.fetch_add(1, Relaxed);
            }
        });
        let (mut before, mut reads_before) = (0, 0);
        for second in 0..seconds / 4 {
            std::thread::sleep(Duration::from_secs(4));
            let (now, reads) = (written.load(Relaxed), read.load(Relaxed));
            let (updates, reads_now) = ((now - before) / 4, (reads - reads_before) / 4);
            println!("{:3} s: {updates:6} updates/s, {reads_now:6} reads/s, {} MiB", 4 * (second + 1), resident_mb());
            (before, reads_before) = (now, reads);
        }
        stop.store(true, Relaxed);
    });
    println!("{:?}", stored.store.pool().counters().view());
}

/// Latencies in microseconds.
fn percentile(latencies: &mut [u32], share: f64) -> f64 {
    latencies.sort_unstable();
    let at = ((latencies.len() as f64 * share) as usize).min(latencies.len().saturating_sub(1));
    latencies.get(at).map_or(f64::NAN, |ns| f64::from(*ns) / 1000.0)
}

/// 7 kB rows at random keys, data ten times the cache, readers beside two writers of a fixed pace: inserts, which split,
/// and updates, which write as much and split nothing, in turn.
pub fn big_rows(dir: &Path, pace: u64) {
    fresh(dir);
    let stored = Stored::open(dir, 32 << 20);
    let value = vec![3; 7000];
    let loaded = AtomicU64::new(0);
    let key = |i: u64| scatter(i) >> 1;
    for i in 0..45_000_u64 {
        stored.put_big(key(i), &value);
        loaded.fetch_add(1, Relaxed);
    }
    println!("writers      | rows/s | splits | pages written | reads/s | read p50 us | p99 us | p99.9 us");
    for round in 0..6 {
        let splits = round % 2 == 0;
        let counters = stored.store.pool().counters();
        let before = counters.view();
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let begin = Instant::now();
        let mut latencies: Vec<u32> = std::thread::scope(|scope| {
            for writer in 0..2 {
                let (stop, done, stored, value, loaded) = (&stop, &done, &stored, &value, &loaded);
                scope.spawn(move || {
                    let mut n = 0;
                    while !stop.load(Relaxed) {
                        let number = match splits {
                            true => loaded.fetch_add(1, Relaxed),
                            false => scatter(n * 2 + writer + round * 1_000_000) % 45_000,
                        };
                        stored.put_big(key(number), value);
                        n += 1;
                        done.fetch_add(1, Relaxed);
                        let due = Duration::from_micros(n * 2_000_000 / pace);
                        std::thread::sleep(due.saturating_sub(begin.elapsed()));
                    }
                });
            }
            let readers: Vec<_> = (0..2_u64)
                .map(|reader| {
                    let (stop, stored) = (&stop, &stored);
                    scope.spawn(move || {
                        let (mut out, mut i, mut latencies) = (RowBuf::default(), reader + round, Vec::new());
                        while !stop.load(Relaxed) {
                            i = scatter(i);
                            let start = Instant::now();
                            assert!(stored.get(key(i % 45_000), &mut out), "a row is missing");
                            latencies.push(start.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
                        }
                        latencies
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_secs(8));
            stop.store(true, Relaxed);
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
        });
        let (seconds, after) = (begin.elapsed().as_secs_f64(), counters.view());
        println!(
            "{:12} | {:6.0} | {:6} | {:13} | {:7.0} | {:11.1} | {:6.0} | {:7.0}",
            if splits { "insert" } else { "update" },
            done.load(Relaxed) as f64 / seconds,
            after.leaf_splits + after.inner_splits - before.leaf_splits - before.inner_splits,
            after.pages_written - before.pages_written,
            latencies.len() as f64 / seconds,
            percentile(&mut latencies, 0.5),
            percentile(&mut latencies, 0.99),
            percentile(&mut latencies, 0.999),
        );
    }
    println!("{:?}", stored.store.pool().counters().view());
}

/// A value of 100 MB through a cache of 64 MiB: written, read, replaced, deleted.
pub fn long_value(dir: &Path) {
    fresh(dir);
    let stored = Stored::open(dir, 64 << 20);
    let before = resident_mb();
    for (what, byte) in [("insert", 1_u8), ("update", 2)] {
        let value = vec![byte; 100_000_000];
        let start = Instant::now();
        stored.put_big(1, &value);
        drop(value);
        println!("{what}: {:.2} s, {} MiB resident after", start.elapsed().as_secs_f64(), resident_mb());
        let mut out = RowBuf::default();
        let start = Instant::now();
        assert!(stored.get(1, &mut out) && out.row().value.len() == 100_000_000 && out.row().value.iter().all(|b| *b == byte));
        println!("read: {:.2} s, {} MiB resident with the value", start.elapsed().as_secs_f64(), resident_mb());
    }
    println!("resident at first {before} MiB; {:?}", stored.store.pool().counters().view());
}

/// Bytes for a row of a bigint key and five 2-byte columns behind a prelude of two bytes, once background work is done.
pub fn row_size(dir: &Path, rows: u64) {
    println!("load          | bytes a row | over 18 bytes | leaves | after background work: bytes a row | over 18 | leaves | seconds");
    let mask = rows.next_power_of_two() - 1;
    let orders: [(&str, Box<dyn Fn(u64) -> u64 + Sync>); 3] = [
        ("in order", Box::new(|i| i)),
        ("strides", Box::new(move |i| i.wrapping_mul(0x9e37_79b1) & mask)),
        ("at random", Box::new(move |i| scatter(i) % (8 * rows))),
    ];
    for (name, key) in &orders {
        fresh(dir);
        let stored = Stored::open(dir, 512 << 20);
        let start = Instant::now();
        stored.put((0..rows).map(key), &[0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let loaded = start.elapsed().as_secs_f64();
        let size = || {
            let report = clearway_base::sync::block_on(stored.tree.check()).unwrap();
            (report.pages.len() as f64 * 8192.0 / report.rows as f64, report.leaves)
        };
        let (bytes, leaves) = size();
        let start = Instant::now();
        let (mut after, mut still) = (size(), 0);
        while still < 5 && start.elapsed() < Duration::from_secs(40) {
            std::thread::sleep(Duration::from_secs(1));
            let now = size();
            still = if now == after { still + 1 } else { 0 };
            after = now;
        }
        println!(
            "{name:13} | {bytes:11.2} | {:13.2} | {leaves} | {:.2} | {:.2} | {} | loaded in {loaded:.1} s, settled after {:.0} s, {:?} moves",
            bytes - 18.0,
            after.0,
            after.0 - 18.0,
            after.1,
            start.elapsed().as_secs_f64(),
            stored.store.pool().counters().view().moves,
        );
    }
}
