//! The engines that are compared, each as its crate's documentation says to use it.
//!
//! A key has 8 bytes, a value 92 that do not compress. A writer's call is one transaction; it is durable when it
//! returns, or no engine syncs. Every read copies the value.

use crate::clearway::Clearway;
use crate::scatter;
use crate::stored::Stored;
use clearway_storage::btree::RowBuf;
use redb::ReadableDatabase as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Bytes of a value.
pub const VALUE: usize = 92;

/// Puts rows with these keys, in one transaction; the number makes the values differ from earlier ones.
pub type Writer<'e> = Box<dyn FnMut(&[u64], u64) + 'e>;
/// Reads one row, or so many from this key on; how many there were.
pub type Reader<'e> = Box<dyn FnMut(u64, usize) -> usize + 'e>;

/// One engine with one table.
pub trait Engine: Send + Sync {
    /// A writer for one thread.
    fn writer(&self) -> Writer<'_>;
    /// A reader for one thread.
    fn reader(&self) -> Reader<'_>;
    /// Gives memory and threads back.
    fn close(self: Box<Self>) {}
}

/// How engines are opened.
#[derive(Clone, Copy)]
pub struct Terms {
    /// Every transaction is durable when its call returns.
    pub durable: bool,
    /// Bytes of memory for pages, where an engine has a setting.
    pub cache: usize,
}

/// An engine of this name in an empty directory.
pub fn open(kind: &str, dir: &Path, terms: Terms) -> Box<dyn Engine> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    match kind {
        "Clearway" => Box::new(Served { stored: Stored::open(dir, terms.cache), durable: terms.durable }),
        "Clearway, trees alone" => Box::new(Clearway::open(dir, terms.cache)),
        "LMDB" => Box::new(Lmdb::open(dir, terms.durable)),
        "redb" => Box::new(Redb::open(dir, terms)),
        "fjall" => Box::new(Fjall::open(dir, terms)),
        "SQLite" => Box::new(Sqlite { path: dir.join("db"), terms, turn: Mutex::new(()) }),
        _ => panic!("no engine {kind}"),
    }
}

fn value(key: u64, round: u64) -> [u8; VALUE] {
    let mut bytes = [0; VALUE];
    let mut word = scatter(key ^ round.rotate_left(48));
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    bytes
}

/// Copies values to one place, as a program that uses them would.
#[derive(Default)]
struct Sink(Vec<u8>);

impl Sink {
    fn take(&mut self, value: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(std::hint::black_box(value));
    }
}

struct Served {
    stored: Stored,
    durable: bool,
}

impl Engine for Served {
    fn writer(&self) -> Writer<'_> {
        Box::new(|keys, round| self.stored.put_rows(keys, |key| value(key, round), self.durable))
    }

    fn reader(&self) -> Reader<'_> {
        let (mut out, mut sink) = (RowBuf::default(), Sink::default());
        Box::new(move |key, rows| match rows {
            1 => usize::from(self.stored.get(key, &mut out)),
            rows => crate::stored::scan(&self.stored.tree, key, rows, |value| sink.take(value)),
        })
    }

    fn close(self: Box<Self>) {
        self.stored.abandon();
    }
}

impl Engine for Clearway {
    fn writer(&self) -> Writer<'_> {
        let mut log = Clearway::log();
        Box::new(move |keys, round| self.put_rows(&mut log, keys, |key| value(key, round)))
    }

    fn reader(&self) -> Reader<'_> {
        let (mut out, mut sink) = (RowBuf::default(), Sink::default());
        Box::new(move |key, rows| match rows {
            1 => usize::from(self.get(&key.to_be_bytes(), &mut out)),
            rows => crate::stored::scan(&self.tree, key, rows, |value| sink.take(value)),
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
        // SAFETY: no other process opens the directory; nothing is to survive a crash.
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
    fn writer(&self) -> Writer<'_> {
        Box::new(|keys, round| {
            let mut txn = self.env.write_txn().unwrap();
            for key in keys {
                self.db.put(&mut txn, &key.to_be_bytes(), &value(*key, round)).unwrap();
            }
            txn.commit().unwrap();
        })
    }

    fn reader(&self) -> Reader<'_> {
        let mut sink = Sink::default();
        Box::new(move |key, rows| {
            let txn = self.env.read_txn().unwrap();
            let key = key.to_be_bytes();
            if rows == 1 {
                return self.db.get(&txn, &key).unwrap().map_or(0, |value| {
                    sink.take(value);
                    1
                });
            }
            let range = (std::ops::Bound::Included(&key[..]), std::ops::Bound::Unbounded);
            let found = self.db.range(&txn, &range).unwrap().take(rows);
            found.map(|row| sink.take(row.unwrap().1)).count()
        })
    }
}

const TABLE: redb::TableDefinition<&[u8], &[u8]> = redb::TableDefinition::new("t");

struct Redb {
    db: redb::Database,
    durable: bool,
}

impl Redb {
    fn open(dir: &Path, terms: Terms) -> Redb {
        let db = redb::Database::builder().set_cache_size(terms.cache).create(dir.join("db")).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(TABLE).unwrap();
        txn.commit().unwrap();
        Redb { db, durable: terms.durable }
    }
}

impl Engine for Redb {
    fn writer(&self) -> Writer<'_> {
        Box::new(|keys, round| {
            let mut txn = self.db.begin_write().unwrap();
            txn.set_durability(if self.durable { redb::Durability::Immediate } else { redb::Durability::None })
                .unwrap();
            {
                let mut table = txn.open_table(TABLE).unwrap();
                for key in keys {
                    table.insert(&key.to_be_bytes()[..], &value(*key, round)[..]).unwrap();
                }
            }
            txn.commit().unwrap();
        })
    }

    fn reader(&self) -> Reader<'_> {
        let table = self.db.begin_read().unwrap().open_table(TABLE).unwrap();
        let mut sink = Sink::default();
        Box::new(move |key, rows| {
            let key = key.to_be_bytes();
            if rows == 1 {
                return table.get(&key[..]).unwrap().map_or(0, |value| {
                    sink.take(value.value());
                    1
                });
            }
            let found = table.range(&key[..]..).unwrap().take(rows);
            found.map(|row| sink.take(row.unwrap().1.value())).count()
        })
    }
}

struct Fjall {
    db: fjall::Database,
    rows: fjall::Keyspace,
    durable: bool,
}

impl Fjall {
    fn open(dir: &Path, terms: Terms) -> Fjall {
        let db = fjall::Database::builder(dir).cache_size(terms.cache as u64).open().unwrap();
        let rows = db.keyspace("t", fjall::KeyspaceCreateOptions::default).unwrap();
        Fjall { db, rows, durable: terms.durable }
    }
}

impl Engine for Fjall {
    fn writer(&self) -> Writer<'_> {
        Box::new(|keys, round| {
            if let [key] = keys {
                self.rows.insert(key.to_be_bytes(), value(*key, round)).unwrap();
            } else {
                let mut batch = self.db.batch();
                for key in keys {
                    batch.insert(&self.rows, key.to_be_bytes(), value(*key, round));
                }
                batch.commit().unwrap();
            }
            if self.durable {
                self.db.persist(fjall::PersistMode::SyncAll).unwrap();
            }
        })
    }

    fn reader(&self) -> Reader<'_> {
        let mut sink = Sink::default();
        Box::new(move |key, rows| {
            if rows == 1 {
                return self.rows.get(key.to_be_bytes()).unwrap().map_or(0, |value| {
                    sink.take(&value);
                    1
                });
            }
            self.rows.range(key.to_be_bytes()..).take(rows).map(|row| sink.take(&row.value().unwrap())).count()
        })
    }
}

struct Sqlite {
    path: PathBuf,
    terms: Terms,
    /// Writers queue here: SQLite's own way is to sleep and try again.
    turn: Mutex<()>,
}

impl Sqlite {
    fn connect(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(&self.path).unwrap();
        let sync = if self.terms.durable { "full" } else { "off" };
        let kib = self.terms.cache >> 10;
        db.execute_batch(&format!(
            "pragma journal_mode=wal; pragma synchronous={sync}; pragma cache_size=-{kib}; pragma mmap_size=2147418112;
             pragma busy_timeout=60000; create table if not exists t (k integer primary key, v blob)"
        ))
        .unwrap();
        db
    }
}

impl Engine for Sqlite {
    fn writer(&self) -> Writer<'_> {
        let mut db = self.connect();
        Box::new(move |keys, round| {
            let _turn = self.turn.lock().unwrap();
            let txn = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
            {
                let mut put = txn.prepare_cached("insert or replace into t values (?, ?)").unwrap();
                for key in keys {
                    put.execute((*key as i64, &value(*key, round)[..])).unwrap();
                }
            }
            txn.commit().unwrap();
        })
    }

    fn reader(&self) -> Reader<'_> {
        let db = self.connect();
        let mut sink = Sink::default();
        Box::new(move |key, rows| {
            let sql = match rows {
                1 => "select v from t where k = ? limit ?",
                _ => "select v from t where k >= ? order by k limit ?",
            };
            let mut get = db.prepare_cached(sql).unwrap();
            let mut found = get.query((key as i64, rows as i64)).unwrap();
            let mut count = 0;
            while let Some(row) = found.next().unwrap() {
                sink.take(row.get_ref(0).unwrap().as_blob().unwrap());
                count += 1;
            }
            count
        })
    }
}
