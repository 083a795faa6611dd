//! Trees against peers: the same rows, nobody syncs, one machine, one run.
//!
//! `clearway-peers trees DIR ROWS` and `clearway-peers row-size DIR ROWS`.

mod clearway;

use clearway::Clearway;
use clearway_storage::btree::RowBuf;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const VALUE: usize = 92;
const BATCH: u64 = 1000;

/// A permutation of 0..2^n restricted to `rows`: keys in random order without a table.
fn scatter(i: u64) -> u64 {
    let mut x = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

trait Engine: Send + Sync {
    fn name(&self) -> &'static str;
    /// Puts rows `from..to` of `key(i)`, in batches.
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8);
    /// A reader for one thread: point read, scan of n rows.
    fn reader(&self) -> Box<dyn FnMut(u64, usize) -> usize + '_>;
}

impl Engine for Clearway {
    fn name(&self) -> &'static str {
        "clearway"
    }
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) {
        let mut log = Clearway::log();
        Clearway::put(self, &mut log, (from..to).map(key), &[fill; VALUE]);
    }
    fn reader(&self) -> Box<dyn FnMut(u64, usize) -> usize + '_> {
        let mut out = RowBuf::default();
        Box::new(move |key, rows| match rows {
            1 => usize::from(self.get(&key.to_be_bytes(), &mut out)),
            rows => self.scan(&key.to_be_bytes(), rows),
        })
    }
}

struct Lmdb {
    env: heed::Env,
    db: heed::Database<heed::types::Bytes, heed::types::Bytes>,
}

impl Lmdb {
    fn open(dir: &Path) -> Lmdb {
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(8 << 30).max_readers(64);
        // SAFETY: nobody else opens the directory; nothing is to survive a crash.
        let env = unsafe {
            options.flags(heed::EnvFlags::NO_SYNC | heed::EnvFlags::NO_META_SYNC);
            options.open(dir).unwrap()
        };
        let mut txn = env.write_txn().unwrap();
        let db = env.create_database(&mut txn, None).unwrap();
        txn.commit().unwrap();
        Lmdb { env, db }
    }
}

impl Engine for Lmdb {
    fn name(&self) -> &'static str {
        "LMDB"
    }
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) {
        for first in (from..to).step_by(BATCH as usize) {
            let mut txn = self.env.write_txn().unwrap();
            for i in first..(first + BATCH).min(to) {
                self.db.put(&mut txn, &key(i).to_be_bytes(), &[fill; VALUE]).unwrap();
            }
            txn.commit().unwrap();
        }
    }
    fn reader(&self) -> Box<dyn FnMut(u64, usize) -> usize + '_> {
        Box::new(move |key, rows| {
            let txn = self.env.read_txn().unwrap();
            let key = key.to_be_bytes();
            match rows {
                1 => usize::from(std::hint::black_box(self.db.get(&txn, &key).unwrap().map(<[u8]>::to_vec)).is_some()),
                rows => {
                    let range = (std::ops::Bound::Included(&key[..]), std::ops::Bound::Unbounded);
                    self.db.range(&txn, &range).unwrap().take(rows).map(|row| std::hint::black_box(row.unwrap().1.to_vec())).count()
                }
            }
        })
    }
}

const TABLE: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new("t");

struct Redb(redb::Database);

impl Engine for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) {
        for first in (from..to).step_by(BATCH as usize) {
            let mut txn = self.0.begin_write().unwrap();
            txn.set_durability(redb::Durability::None);
            {
                let mut table = txn.open_table(TABLE).unwrap();
                for i in first..(first + BATCH).min(to) {
                    table.insert(&key(i).to_be_bytes()[..], &[fill; VALUE][..]).unwrap();
                }
            }
            txn.commit().unwrap();
        }
    }
    fn reader(&self) -> Box<dyn FnMut(u64, usize) -> usize + '_> {
        let table = self.0.begin_read().unwrap().open_table(TABLE).unwrap();
        Box::new(move |key, rows| {
            let key = key.to_be_bytes();
            match rows {
                1 => usize::from(std::hint::black_box(table.get(&key[..]).unwrap().map(|v| v.value().to_vec())).is_some()),
                rows => table.range(&key[..]..).unwrap().take(rows).map(|row| std::hint::black_box(row.unwrap().1.value().to_vec())).count(),
            }
        })
    }
}

struct Fjall {
    _keyspace: fjall::Keyspace,
    part: fjall::PartitionHandle,
}

impl Engine for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) {
        for i in from..to {
            self.part.insert(key(i).to_be_bytes(), [fill; VALUE]).unwrap();
        }
    }
    fn reader(&self) -> Box<dyn FnMut(u64, usize) -> usize + '_> {
        Box::new(move |key, rows| match rows {
            1 => usize::from(std::hint::black_box(self.part.get(key.to_be_bytes()).unwrap()).is_some()),
            rows => self.part.range(key.to_be_bytes()..).take(rows).map(|row| std::hint::black_box(row.unwrap().1.to_vec())).count(),
        })
    }
}

struct Sqlite(PathBuf);

impl Sqlite {
    fn connect(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(&self.0).unwrap();
        db.execute_batch("pragma journal_mode=wal; pragma synchronous=off; pragma cache_size=-262144; pragma mmap_size=0;
            create table if not exists t (k integer primary key, v blob)").unwrap();
        db
    }
}

impl Engine for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) {
        let mut db = self.connect();
        for first in (from..to).step_by(BATCH as usize) {
            let txn = db.transaction().unwrap();
            {
                let mut put = txn.prepare_cached("insert or replace into t values (?, ?)").unwrap();
                for i in first..(first + BATCH).min(to) {
                    put.execute((key(i) as i64, &[fill; VALUE][..])).unwrap();
                }
            }
            txn.commit().unwrap();
        }
    }
    fn reader(&self) -> Box<dyn FnMut(u64, usize) -> usize + '_> {
        let db = self.connect();
        Box::new(move |key, rows| {
            let mut get = db.prepare_cached("select v from t where k >= ? order by k limit ?").unwrap();
            let rows = get.query_map((key as i64, rows as i64), |row| row.get::<_, Vec<u8>>(0)).unwrap();
            rows.map(|row| std::hint::black_box(row.unwrap())).count()
        })
    }
}

fn open(kind: &str, dir: &Path) -> Box<dyn Engine> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    match kind {
        "clearway" => Box::new(Clearway::open(dir, 512 << 20)),
        "LMDB" => Box::new(Lmdb::open(dir)),
        "redb" => {
            let db = redb::Database::builder().set_cache_size(512 << 20).create(dir.join("db")).unwrap();
            let txn = db.begin_write().unwrap();
            txn.open_table(TABLE).unwrap();
            txn.commit().unwrap();
            Box::new(Redb(db))
        }
        "fjall" => {
            let keyspace = fjall::Config::new(dir).cache_size(512 << 20).open().unwrap();
            let part = keyspace.open_partition("t", fjall::PartitionCreateOptions::default()).unwrap();
            Box::new(Fjall { _keyspace: keyspace, part })
        }
        _ => Box::new(Sqlite(dir.join("db"))),
    }
}

/// Operations a second of `threads` readers for a second.
fn read_rate(engine: &dyn Engine, threads: u64, rows: u64, take: usize, key: &(dyn Fn(u64) -> u64 + Sync)) -> f64 {
    let done = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    let time = Duration::from_millis(700);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let done = done.clone();
            scope.spawn(move || {
                let mut read = engine.reader();
                let mut i = scatter(thread + 77);
                let mut count = 0_u64;
                while begin.elapsed() < time {
                    for _ in 0..64 {
                        i = scatter(i);
                        let found = read(key(i % rows), take);
                        assert!(found > 0 || take > 1, "a row is missing");
                        count += 1;
                    }
                }
                done.fetch_add(count, Relaxed);
            });
        }
    });
    done.load(Relaxed) as f64 / begin.elapsed().as_secs_f64()
}

fn put_rate(engine: &dyn Engine, threads: u64, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) -> f64 {
    let begin = Instant::now();
    let share = (to - from) / threads;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let first = from + thread * share;
            scope.spawn(move || engine.put(first, first + share, key, fill));
        }
    });
    (share * threads) as f64 / begin.elapsed().as_secs_f64()
}

fn trees(dir: &Path, rows: u64, kinds: &[&str]) {
    // Positive as i64, so that SQLite orders them alike.
    let random = |i: u64| scatter(i) >> 1;
    println!("rows {rows} of 100 bytes; thousand operations a second");
    println!("engine    | seq ins | rnd ins | upd 1 | upd 2 | read 1 | read 2 | read 8 | scan100 1 | scan100 2");
    for kind in kinds {
        let ordered = open(kind, &dir.join("ordered"));
        let sequential = put_rate(&*ordered, 1, 0, rows, &|i| i, 1);
        drop(ordered);
        let engine = open(kind, &dir.join("random"));
        let inserts = put_rate(&*engine, 1, 0, rows, &random, 1);
        let updates = put_rate(&*engine, 1, 0, rows / 4, &|i| random(scatter(i) % rows), 2);
        let many = match *kind {
            "SQLite" => f64::NAN,
            _ => put_rate(&*engine, 2, 0, rows / 4, &|i| random(scatter(i + rows) % rows), 3),
        };
        let reads: Vec<f64> = [1, 2, 8].iter().map(|threads| read_rate(&*engine, *threads, rows, 1, &random)).collect();
        let scans: Vec<f64> = [1, 2].iter().map(|threads| read_rate(&*engine, *threads, rows, 100, &random)).collect();
        print!("{:9} |", engine.name());
        for rate in [sequential, inserts, updates, many].iter().chain(&reads).chain(&scans) {
            print!(" {:7.0} |", rate / 1000.0);
        }
        println!();
    }
}

/// Bytes on disk for a row of a bigint key and five 2-byte columns behind a prelude of two bytes.
fn row_size(dir: &Path, rows: u64) {
    println!("load          | bytes a row | over 18 bytes | pages");
    for (name, key) in [("in key order", (|i| i) as fn(u64) -> u64), ("random order", |i| scatter(i) >> 1)] {
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir).unwrap();
        let tree = Clearway::open(dir, 1 << 30);
        let mut log = Clearway::log();
        // Random keys of a dense range, as row numbers are: the order is random, not the numbers.
        let mask = rows.next_power_of_two() - 1;
        let numbers = (0..rows).map(|i| if name.starts_with("in") { key(i) } else { i.wrapping_mul(0x9e37_79b1) & mask });
        tree.put(&mut log, numbers, &[0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        report(name, f64::from(tree.pages()) * 8192.0 / rows as f64, tree.pages());
    }
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    let tree = Clearway::open(dir, 1 << 30);
    clearway_base::sync::block_on(async {
        let mut load = tree.tree.bulk_load();
        for i in 0..rows {
            load.push(&i.to_be_bytes(), &[0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).await.unwrap();
        }
        load.finish().await.unwrap();
    });
    report("bulk load", f64::from(tree.pages()) * 8192.0 / rows as f64, tree.pages());
}

fn report(name: &str, bytes: f64, pages: u32) {
    println!("{name:13} | {bytes:11.2} | {:13.2} | {pages}", bytes - 18.0);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dir = PathBuf::from(args.get(2).map_or("/tmp/clearway-peers", String::as_str));
    let rows = args.get(3).map_or(1_000_000, |rows| rows.parse().expect("a number of rows"));
    match args.get(1).map(String::as_str) {
        Some("row-size") => row_size(&dir, rows),
        Some("trees") => match args.get(4) {
            Some(kind) => trees(&dir, rows, &[kind]),
            None => trees(&dir, rows, &["clearway", "LMDB", "redb", "fjall", "SQLite"]),
        },
        _ => eprintln!("usage: clearway-peers trees|row-size DIR [ROWS [ENGINE]]"),
    }
    // The cleaner's thread runs for ever.
    std::process::exit(0);
}
