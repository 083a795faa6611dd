//! Trees against peers: the same rows, one machine, one run; nobody syncs (`trees`), or every thousand rows are
//! committed durably (`durable`). And Clearway's storage alone: data beyond memory, long rows, bytes a row.

mod beyond;
mod clearway;
mod stored;

use clearway::Clearway;
use stored::Stored;
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

impl Engine for Stored {
    fn name(&self) -> &'static str {
        "Clearway"
    }
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) {
        Stored::put(self, (from..to).map(key), &[fill; VALUE]);
    }
    fn reader(&self) -> Box<dyn FnMut(u64, usize) -> usize + '_> {
        let mut out = RowBuf::default();
        Box::new(move |key, rows| match rows {
            1 => usize::from(self.get(key, &mut out)),
            rows => self.scan(key, rows),
        })
    }
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
    fn open(dir: &Path, durable: bool) -> Lmdb {
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(16 << 30).max_readers(64);
        // SAFETY: nobody else opens the directory; nothing is to survive a crash.
        let env = unsafe {
            if !durable {
                options.flags(heed::EnvFlags::NO_SYNC | heed::EnvFlags::NO_META_SYNC);
            }
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

struct Redb(redb::Database, bool);

impl Engine for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) {
        for first in (from..to).step_by(BATCH as usize) {
            let mut txn = self.0.begin_write().unwrap();
            txn.set_durability(if self.1 { redb::Durability::Immediate } else { redb::Durability::None });
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
    keyspace: fjall::Keyspace,
    part: fjall::PartitionHandle,
    durable: bool,
}

impl Engine for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }
    fn put(&self, from: u64, to: u64, key: &(dyn Fn(u64) -> u64 + Sync), fill: u8) {
        for first in (from..to).step_by(BATCH as usize) {
            for i in first..(first + BATCH).min(to) {
                self.part.insert(key(i).to_be_bytes(), [fill; VALUE]).unwrap();
            }
            if self.durable {
                self.keyspace.persist(fjall::PersistMode::SyncAll).unwrap();
            }
        }
    }
    fn reader(&self) -> Box<dyn FnMut(u64, usize) -> usize + '_> {
        Box::new(move |key, rows| match rows {
            1 => usize::from(std::hint::black_box(self.part.get(key.to_be_bytes()).unwrap()).is_some()),
            rows => self.part.range(key.to_be_bytes()..).take(rows).map(|row| std::hint::black_box(row.unwrap().1.to_vec())).count(),
        })
    }
}

struct Sqlite(PathBuf, bool);

impl Sqlite {
    fn connect(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(&self.0).unwrap();
        let sync = if self.1 { "full" } else { "off" };
        db.execute_batch(&format!("pragma journal_mode=wal; pragma synchronous={sync}; pragma cache_size=-524288;
            pragma busy_timeout=60000; create table if not exists t (k integer primary key, v blob)")).unwrap();
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
            let txn = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
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

fn open(kind: &str, dir: &Path, durable: bool) -> Box<dyn Engine> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    match kind {
        "clearway" if durable => Box::new(Stored::open(dir, 512 << 20)),
        "clearway" => Box::new(Clearway::open(dir, 512 << 20)),
        "LMDB" => Box::new(Lmdb::open(dir, durable)),
        "redb" => {
            let db = redb::Database::builder().set_cache_size(512 << 20).create(dir.join("db")).unwrap();
            let txn = db.begin_write().unwrap();
            txn.open_table(TABLE).unwrap();
            txn.commit().unwrap();
            Box::new(Redb(db, durable))
        }
        "fjall" => {
            let keyspace = fjall::Config::new(dir).cache_size(512 << 20).open().unwrap();
            let part = keyspace.open_partition("t", fjall::PartitionCreateOptions::default()).unwrap();
            Box::new(Fjall { keyspace, part, durable })
        }
        _ => Box::new(Sqlite(dir.join("db"), durable)),
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

fn trees(dir: &Path, rows: u64, kinds: &[&str], durable: bool) {
    // Positive as i64, so that SQLite orders them alike.
    let random = |i: u64| scatter(i) >> 1;
    println!("rows {rows} of 100 bytes, durable {durable}; thousand operations a second");
    println!("engine    | seq ins | rnd ins | upd 1 | upd 2 | upd 8 | read 1 | read 2 | read 8 | scan100 1 | scan100 2 | scan100 8");
    for kind in kinds {
        let ordered = open(kind, &dir.join("ordered"), durable);
        let mut rates = vec![put_rate(&*ordered, 1, 0, rows, &|i| i, 1)];
        drop(ordered);
        let _ = std::fs::remove_dir_all(dir.join("ordered"));
        let engine = open(kind, &dir.join("random"), durable);
        rates.push(put_rate(&*engine, 1, 0, rows, &random, 1));
        let updates = (rows / 4).min(400_000);
        for tasks in [1, 2, 8] {
            rates.push(put_rate(&*engine, tasks, 0, updates, &|i| random(scatter(i + tasks * rows) % rows), 2));
        }
        rates.extend([1, 2, 8].map(|tasks| read_rate(&*engine, tasks, rows, 1, &random)));
        rates.extend([1, 2, 8].map(|tasks| read_rate(&*engine, tasks, rows, 100, &random)));
        print!("{:9} |", engine.name());
        for rate in rates {
            print!(" {:7.1} |", rate / 1000.0);
        }
        println!();
        drop(engine);
        let _ = std::fs::remove_dir_all(dir.join("random"));
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dir = PathBuf::from(args.get(2).map_or("/tmp/clearway-peers", String::as_str));
    let rows = args.get(3).map_or(1_000_000, |rows| rows.parse().expect("a number of rows"));
    let all = ["clearway", "LMDB", "redb", "fjall", "SQLite"];
    let kinds: Vec<&str> = if args.len() > 4 { args[4..].iter().map(String::as_str).collect() } else { all.to_vec() };
    match args.get(1).map(String::as_str) {
        Some("row-size") => beyond::row_size(&dir, rows),
        Some("trees") => trees(&dir, rows, &kinds, false),
        Some("durable") => trees(&dir, rows, &kinds, true),
        Some("memory") => beyond::memory(&dir, rows),
        Some("big-rows") => beyond::big_rows(&dir, rows),
        Some("long-value") => beyond::long_value(&dir),
        _ => eprintln!("usage: clearway-peers trees|durable|row-size DIR [ROWS [ENGINE...]]\n       clearway-peers memory DIR SECONDS | big-rows DIR ROWS_PER_SECOND | long-value DIR"),
    }
    // The cleaner's thread runs for ever.
    std::process::exit(0);
}
