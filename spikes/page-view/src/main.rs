//! Point reads: optimistic leaves, shared latches on leaves, LMDB; `page-view ROWS [uniform|hot]`,
//! `page-view copy`, `page-view async ROWS`. Each row read is checked for being whole.

mod copies;
mod lmdb;
mod page;
mod tree;

use lmdb::Lmdb;
use page::CellBuf;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tree::{Leaf, Tree};

const ROUNDS: usize = 3;
const RUN: Duration = Duration::from_millis(800);
/// Updates a second of the concurrent writer, one transaction each in LMDB.
const WRITES: u64 = 10_000;

pub struct Random(pub u64);

impl Random {
    /// xorshift64*, Vigna 2016.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

fn key(row: u64) -> u64 {
    row * 3 + 7
}

/// All words of a value are alike, so that a torn copy shows.
fn value(stamp: u64, out: &mut [u8; 100]) {
    for chunk in out.chunks_mut(8) {
        chunk.copy_from_slice(&stamp.to_le_bytes()[..chunk.len()]);
    }
}

fn whole(value: &[u8]) -> bool {
    value.len() == 100 && value[..8] == value[40..48] && value[..8] == value[88..96]
}

#[derive(Clone, Copy)]
enum Reader<'a> {
    Tree(&'a Tree, Leaf),
    /// A read transaction for each read, or for 1,024 of them.
    Lmdb(&'a Lmdb, u64),
}

/// Reads until told to stop; returns (reads, repetitions).
fn read(reader: Reader, rows: u64, seed: u64, stop: &AtomicBool) -> (u64, u64) {
    let (mut random, mut reads, mut retries) = (Random(seed), 0, 0);
    let mut cell = CellBuf::new();
    let mut row = [0u8; 100];
    while !stop.load(Relaxed) {
        match reader {
            Reader::Tree(tree, leaf) => {
                for _ in 0..1024 {
                    let key = key(random.next() % rows).to_be_bytes();
                    assert!(tree.get(leaf, &key, &mut cell, &mut retries));
                    assert!(whole(cell.value()), "torn row");
                }
            }
            Reader::Lmdb(lmdb, batch) => {
                for _ in 0..1024 / batch {
                    let txn = lmdb.env.read_txn().expect("read transaction");
                    for _ in 0..batch {
                        let key = key(random.next() % rows).to_be_bytes();
                        let found = lmdb.db.get(&txn, &key).expect("read").expect("row");
                        row.copy_from_slice(found);
                        assert!(whole(&row), "torn row");
                    }
                }
            }
        }
        reads += 1024;
    }
    (reads, retries)
}

fn write(reader: Reader, rows: u64, stop: &AtomicBool, done: &AtomicU64) {
    let mut random = Random(77);
    let mut bytes = [0; 100];
    let (start, mut count) = (Instant::now(), 0);
    while !stop.load(Relaxed) {
        if count >= start.elapsed().as_micros() as u64 * WRITES / 1_000_000 {
            std::thread::sleep(Duration::from_micros(500));
            continue;
        }
        value(random.next(), &mut bytes);
        let key = key(random.next() % rows).to_be_bytes();
        match reader {
            Reader::Tree(tree, _) => assert!(tree.put(&key, &bytes)),
            Reader::Lmdb(lmdb, _) => {
                let mut txn = lmdb.env.write_txn().expect("write transaction");
                lmdb.db.put(&mut txn, &key, &bytes).expect("write");
                txn.commit().expect("commit");
            }
        }
        count += 1;
    }
    done.store(count, Relaxed);
}

/// (Million reads a second, repetitions a million reads, writes a second).
fn measure(reader: Reader, rows: u64, threads: u64, writer: bool) -> (f64, f64, f64) {
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|t| {
                let stop = &stop;
                scope.spawn(move || read(reader, rows, 0x9e37_79b9 + t * 7919, stop))
            })
            .collect();
        let writer = writer.then(|| scope.spawn(|| write(reader, rows, &stop, &done)));
        let start = Instant::now();
        std::thread::sleep(RUN);
        stop.store(true, Relaxed);
        let sums: Vec<_> = readers
            .into_iter()
            .map(|r| r.join().expect("reader"))
            .collect();
        let seconds = start.elapsed().as_secs_f64();
        if let Some(writer) = writer {
            writer.join().expect("writer");
        }
        let reads: u64 = sums.iter().map(|s| s.0).sum();
        let retries: u64 = sums.iter().map(|s| s.1).sum();
        (
            reads as f64 / seconds / 1e6,
            retries as f64 * 1e6 / reads as f64,
            done.load(Relaxed) as f64 / seconds,
        )
    })
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    )
}

fn compare(rows: u64, hot: bool) {
    let tree = Tree::load(rows, key, value);
    let dir = std::env::temp_dir().join("page-view-lmdb");
    let lmdb = Lmdb::load(&dir, rows, key, value).expect("LMDB loads");
    println!(
        "# {rows} rows, {} pages of 8 KiB, {}",
        tree.pages(),
        if hot { "64 hot rows" } else { "uniform" }
    );
    println!(
        "# million reads/s: median (least, most) of {ROUNDS}; repetitions a million reads; writes/s"
    );
    let variants = [
        ("optimistic", Reader::Tree(&tree, Leaf::Optimistic)),
        ("shared", Reader::Tree(&tree, Leaf::Shared)),
        ("lmdb, txn per read", Reader::Lmdb(&lmdb, 1)),
        ("lmdb, txn per 1024", Reader::Lmdb(&lmdb, 1024)),
    ];
    let picked = if hot { 64 } else { rows };
    for (threads, writer) in [(1, false), (2, false), (1, true), (2, true)] {
        let mut results = vec![Vec::new(); variants.len()];
        for round in 0..ROUNDS {
            for at in 0..variants.len() {
                let at = (at + round) % variants.len();
                results[at].push(measure(variants[at].1, picked, threads, writer));
            }
        }
        for (at, result) in results.iter().enumerate() {
            let rate = median(result.iter().map(|r| r.0).collect());
            let again = median(result.iter().map(|r| r.1).collect()).0;
            let writes = median(result.iter().map(|r| r.2).collect()).0;
            println!(
                "{threads} threads{} | {:<18} | {:.2} ({:.2}, {:.2}) | {again:.1} | {writes:.0}",
                if writer { " + writer" } else { "" },
                variants[at].0,
                rate.0,
                rate.1,
                rate.2
            );
        }
    }
    let _ = std::fs::remove_dir_all(dir);
}

async fn table_get(tree: &Tree, leaf: Leaf, key: &[u8], out: &mut CellBuf) -> bool {
    tree.get_async(leaf, key, out).await
}

async fn executor_get(tree: &Tree, leaf: Leaf, key: &[u8], out: &mut CellBuf) -> bool {
    table_get(tree, leaf, key, out).await
}

fn ready<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> T {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a hit waits for nothing"),
    }
}

#[inline(never)]
fn boxed<'a>(
    tree: &'a Tree,
    key: &'a [u8],
    out: &'a mut CellBuf,
) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
    Box::pin(executor_get(tree, Leaf::Optimistic, key, out))
}

fn asynchronous(rows: u64) {
    let tree = Tree::load(rows, key, value);
    println!("# ns a read, {rows} rows: median (least, most) of 5, interleaved");
    for picked in [64, rows] {
        let mut results = vec![Vec::new(); 4];
        for _ in 0..5 {
            for (way, result) in results.iter_mut().enumerate() {
                let (mut random, mut cell, mut retries) = (Random(5), CellBuf::new(), 0);
                let reads = 2_000_000;
                let start = Instant::now();
                for _ in 0..reads {
                    let key = key(random.next() % picked).to_be_bytes();
                    let found = match way {
                        0 => tree.get(Leaf::Optimistic, &key, &mut cell, &mut retries),
                        1 => ready(pin!(tree.get_async(Leaf::Optimistic, &key, &mut cell))),
                        2 => ready(pin!(executor_get(&tree, Leaf::Optimistic, &key, &mut cell))),
                        _ => ready(boxed(&tree, &key, &mut cell).as_mut()),
                    };
                    assert!(found && whole(cell.value()));
                }
                result.push(start.elapsed().as_nanos() as f64 / reads as f64);
            }
        }
        for (name, result) in [
            "plain call",
            "async, polled once",
            "three async fns deep",
            "three deep, boxed dyn",
        ]
        .iter()
        .zip(results)
        {
            let (mid, least, most) = median(result);
            println!("{picked} rows read | {name:<22} | {mid:.1} ({least:.1}, {most:.1})");
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("copy") => copies::run(),
        Some("async") => asynchronous(arguments[1].parse().expect("rows")),
        Some(rows) => compare(
            rows.parse().expect("rows"),
            arguments.get(1).is_some_and(|w| w == "hot"),
        ),
        None => eprintln!("page-view ROWS [hot] | copy | async ROWS"),
    }
}
