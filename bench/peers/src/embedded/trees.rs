//! redb and LMDB: ordered maps in a file, one writer at a time, commits durable.

use std::ops::Bound;
use std::path::Path;

use heed::byteorder::BigEndian;
use heed::types::{Bytes, I64, Unit};
use redb::{ReadableDatabase as _, ReadableTable as _};

use super::contenders::{CACHE_BYTES, look_at, value};
use super::{Session, Store};

const ROWS: redb::TableDefinition<'_, i64, &[u8]> = redb::TableDefinition::new("t");
const JOBS: redb::TableDefinition<'_, i64, ()> = redb::TableDefinition::new("jobs");
const COUNTER: redb::TableDefinition<'_, i64, i64> = redb::TableDefinition::new("counter");

pub struct Redb(redb::Database);

impl Redb {
    pub fn open(dir: &Path) -> Redb {
        let db = redb::Database::builder().set_cache_size(CACHE_BYTES).create(dir.join("db")).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(ROWS).unwrap();
        txn.open_table(JOBS).unwrap();
        txn.open_table(COUNTER).unwrap().insert(1, 0).unwrap();
        txn.commit().unwrap();
        Redb(db)
    }

    /// A write transaction; `Immediate` is its durability unless another one is asked for.
    fn write<T>(&self, f: impl FnOnce(&redb::WriteTransaction) -> T) -> T {
        let txn = self.0.begin_write().unwrap();
        let value = f(&txn);
        txn.commit().unwrap();
        value
    }
}

impl Store for Redb {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(RedbSession(self))
    }
}

struct RedbSession<'a>(&'a Redb);

impl Session for RedbSession<'_> {
    fn get(&mut self, key: i64) -> bool {
        let table = self.0.0.begin_read().unwrap().open_table(ROWS).unwrap();
        table.get(key).unwrap().is_some_and(|value| {
            look_at(value.value());
            true
        })
    }

    fn range(&mut self, from: i64, rows: usize) -> usize {
        let table = self.0.0.begin_read().unwrap().open_table(ROWS).unwrap();
        table.range(from..).unwrap().take(rows).map(|row| look_at(row.unwrap().1.value())).count()
    }

    fn put(&mut self, keys: &[i64]) {
        self.0.write(|txn| {
            let mut table = txn.open_table(ROWS).unwrap();
            for key in keys {
                table.insert(*key, &value(*key)[..]).unwrap();
            }
        });
    }

    fn count(&mut self) {
        self.0.write(|txn| {
            let mut table = txn.open_table(COUNTER).unwrap();
            let n = table.get(1).unwrap().unwrap().value();
            table.insert(1, n + 1).unwrap();
        });
    }

    fn counted(&mut self) -> i64 {
        let table = self.0.0.begin_read().unwrap().open_table(COUNTER).unwrap();
        table.get(1).unwrap().unwrap().value()
    }

    fn make_jobs(&mut self, jobs: i64) {
        self.0.write(|txn| {
            let mut table = txn.open_table(JOBS).unwrap();
            for job in 1..=jobs {
                table.insert(job, ()).unwrap();
            }
        });
    }

    fn take_job(&mut self) -> Option<i64> {
        self.0.write(|txn| txn.open_table(JOBS).unwrap().pop_first().unwrap().map(|(job, _)| job.value()))
    }
}

type Key = I64<BigEndian>;

pub struct Lmdb {
    env: heed::Env,
    rows: heed::Database<Key, Bytes>,
    jobs: heed::Database<Key, Unit>,
    counter: heed::Database<Key, Key>,
}

impl Lmdb {
    pub fn open(dir: &Path) -> Lmdb {
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(16 << 30).max_readers(128).max_dbs(4);
        // SAFETY: no other process opens the directory, and this one opens it once at a time.
        let env = unsafe { options.open(dir) }.unwrap();
        let mut txn = env.write_txn().unwrap();
        let rows = env.create_database(&mut txn, Some("t")).unwrap();
        let jobs = env.create_database(&mut txn, Some("jobs")).unwrap();
        let counter: heed::Database<Key, Key> = env.create_database(&mut txn, Some("counter")).unwrap();
        counter.put(&mut txn, &1, &0).unwrap();
        txn.commit().unwrap();
        Lmdb { env, rows, jobs, counter }
    }
}

impl Store for Lmdb {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(LmdbSession(self))
    }
}

struct LmdbSession<'a>(&'a Lmdb);

impl Session for LmdbSession<'_> {
    fn get(&mut self, key: i64) -> bool {
        let txn = self.0.env.read_txn().unwrap();
        self.0.rows.get(&txn, &key).unwrap().is_some_and(|value| {
            look_at(value);
            true
        })
    }

    fn range(&mut self, from: i64, rows: usize) -> usize {
        let txn = self.0.env.read_txn().unwrap();
        let range = (Bound::Included(from), Bound::Unbounded);
        self.0.rows.range(&txn, &range).unwrap().take(rows).map(|row| look_at(row.unwrap().1)).count()
    }

    fn put(&mut self, keys: &[i64]) {
        let mut txn = self.0.env.write_txn().unwrap();
        for key in keys {
            self.0.rows.put(&mut txn, key, &value(*key)).unwrap();
        }
        txn.commit().unwrap();
    }

    fn count(&mut self) {
        let mut txn = self.0.env.write_txn().unwrap();
        let n = self.0.counter.get(&txn, &1).unwrap().unwrap();
        self.0.counter.put(&mut txn, &1, &(n + 1)).unwrap();
        txn.commit().unwrap();
    }

    fn counted(&mut self) -> i64 {
        let txn = self.0.env.read_txn().unwrap();
        self.0.counter.get(&txn, &1).unwrap().unwrap()
    }

    fn make_jobs(&mut self, jobs: i64) {
        let mut txn = self.0.env.write_txn().unwrap();
        for job in 1..=jobs {
            self.0.jobs.put(&mut txn, &job, &()).unwrap();
        }
        txn.commit().unwrap();
    }

    fn take_job(&mut self) -> Option<i64> {
        let mut txn = self.0.env.write_txn().unwrap();
        let first = self.0.jobs.first(&txn).unwrap().map(|(job, ())| job)?;
        self.0.jobs.delete(&mut txn, &first).unwrap();
        txn.commit().unwrap();
        Some(first)
    }
}
