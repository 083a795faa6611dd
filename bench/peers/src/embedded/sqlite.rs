//! SQLite through rusqlite: a connection for each thread, statements cached, write-ahead log, a busy handler of a minute.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::contenders::{CACHE_BYTES, look_at, value};
use super::{Session, Store};

pub struct Sqlite {
    path: PathBuf,
    synchronous: &'static str,
}

impl Sqlite {
    pub fn open(path: &Path, synchronous: &'static str) -> Sqlite {
        let store = Sqlite { path: path.to_owned(), synchronous };
        let tables = "CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB NOT NULL); CREATE TABLE jobs (id INTEGER PRIMARY KEY);
                      CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL); INSERT INTO counter VALUES (1, 0)";
        store.connect().execute_batch(tables).unwrap();
        store
    }

    fn connect(&self) -> Connection {
        let db = Connection::open(&self.path).unwrap();
        db.busy_timeout(Duration::from_secs(60)).unwrap();
        let (sync, kib) = (self.synchronous, CACHE_BYTES >> 10);
        // Another thread may have the lock that a change of the journal mode takes: the mode of the file stays.
        let settings =
            format!("PRAGMA synchronous = {sync}; PRAGMA cache_size = -{kib}; PRAGMA mmap_size = 2147418112");
        if !std::fs::exists(self.path.with_extension("wal-set")).unwrap() {
            db.execute_batch("PRAGMA journal_mode = WAL").unwrap();
            std::fs::write(self.path.with_extension("wal-set"), "").unwrap();
        }
        db.execute_batch(&settings).unwrap();
        db
    }
}

impl Store for Sqlite {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(SqliteSession(self.connect()))
    }
}

struct SqliteSession(Connection);

/// Runs a call again while the database is busy: a program that wants its work done has to.
fn until_free<T>(mut call: impl FnMut() -> rusqlite::Result<T>) -> T {
    loop {
        match call() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
            ended => return ended.unwrap(),
        }
    }
}

impl Session for SqliteSession {
    fn get(&mut self, key: i64) -> bool {
        let mut statement = self.0.prepare_cached("SELECT v FROM t WHERE k = ?1").unwrap();
        let mut rows = statement.query((key,)).unwrap();
        match rows.next().unwrap() {
            Some(row) => {
                look_at(row.get_ref(0).unwrap().as_blob().unwrap());
                true
            }
            None => false,
        }
    }

    fn range(&mut self, from: i64, rows: usize) -> usize {
        let mut statement = self.0.prepare_cached("SELECT v FROM t WHERE k >= ?1 ORDER BY k LIMIT ?2").unwrap();
        let mut found = statement.query((from, rows as i64)).unwrap();
        let mut count = 0;
        while let Some(row) = found.next().unwrap() {
            look_at(row.get_ref(0).unwrap().as_blob().unwrap());
            count += 1;
        }
        count
    }

    fn put(&mut self, keys: &[i64]) {
        const PUT: &str = "INSERT INTO t VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v";
        if let [key] = keys {
            let value = value(*key);
            until_free(|| self.0.prepare_cached(PUT)?.execute((*key, &value[..])));
            return;
        }
        until_free(|| {
            let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut put = transaction.prepare_cached(PUT)?;
                for key in keys {
                    put.execute((*key, &value(*key)[..]))?;
                }
            }
            transaction.commit()
        });
    }

    fn count(&mut self) {
        let sql = "UPDATE counter SET n = n + 1 WHERE id = ?1";
        assert_eq!(until_free(|| self.0.prepare_cached(sql)?.execute((1_i64,))), 1);
    }

    fn counted(&mut self) -> i64 {
        self.0.query_row("SELECT n FROM counter WHERE id = 1", (), |row| row.get(0)).unwrap()
    }

    fn make_jobs(&mut self, jobs: i64) {
        let sql = "INSERT INTO jobs WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT i FROM n";
        until_free(|| self.0.execute(sql, (jobs,)));
    }

    fn take_job(&mut self) -> Option<i64> {
        let sql = "DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1) RETURNING id";
        until_free(|| {
            let mut statement = self.0.prepare_cached(sql)?;
            let mut rows = statement.query(())?;
            let id = match rows.next()? {
                Some(row) => Some(row.get(0)?),
                None => None,
            };
            // The commit is made when the statement has come to its end.
            while rows.next()?.is_some() {}
            Ok(id)
        })
    }
}
