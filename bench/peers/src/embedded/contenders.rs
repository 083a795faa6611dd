//! The databases that are compared, by name; Clearway's SQL and typed tables among them.

use std::path::Path;

use clearway::typed::Table;
use clearway::{Connection, Database};

use super::sqlite::Sqlite;
use super::trees::{Lmdb, Redb};
use super::{Session, Store};

/// Memory for pages, where a database has a setting.
pub const CACHE_BYTES: usize = 256 << 20;
/// Bytes of a value.
pub const VALUE: usize = 92;

const SQL: &str = "Clearway, SQL";
const SQL_OFF: &str = "Clearway, SQL, synchronous_commit = off";
const TYPED: &str = "Clearway, typed tables";
const FULL: &str = "SQLite, FULL";
const NORMAL: &str = "SQLite, NORMAL";

/// In the order of the tables.
pub const NAMES: [&str; 7] = [SQL, TYPED, FULL, "redb", "LMDB", SQL_OFF, NORMAL];

/// Whether a commit of this contender survives a power cut once its call has returned.
pub fn is_durable(kind: &str) -> bool {
    kind != SQL_OFF && kind != NORMAL
}

/// A database of this name in an empty directory, with its tables.
pub fn open(kind: &str, dir: &Path) -> Box<dyn Store> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    match kind {
        SQL => Box::new(Sql::open(dir, "on")),
        SQL_OFF => Box::new(Sql::open(dir, "off")),
        TYPED => Box::new(Typed::open(dir)),
        FULL => Box::new(Sqlite::open(&dir.join("db"), "FULL")),
        NORMAL => Box::new(Sqlite::open(&dir.join("db"), "NORMAL")),
        "redb" => Box::new(Redb::open(dir)),
        "LMDB" => Box::new(Lmdb::open(dir)),
        other => panic!("no database {other}"),
    }
}

/// The value of a row.
pub fn value(key: i64) -> [u8; VALUE] {
    let mut bytes = [0; VALUE];
    let mut word = crate::scatter(key as u64);
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    bytes
}

/// Looks at a value as a program that uses it would.
pub fn look_at(value: &[u8]) {
    assert_eq!(std::hint::black_box(value).len(), VALUE);
}

/// SQL through the crate `clearway`.
struct Sql(Option<Database>);

impl Sql {
    fn open(dir: &Path, synchronous_commit: &str) -> Sql {
        let builder = Database::builder().cache_bytes(CACHE_BYTES).setting("synchronous_commit", synchronous_commit);
        let db = builder.open(dir).unwrap();
        let tables = "CREATE TABLE t (k bigint PRIMARY KEY, v bytea NOT NULL); CREATE TABLE jobs (id bigint PRIMARY KEY);
                      CREATE TABLE counter (id bigint PRIMARY KEY, n bigint NOT NULL); INSERT INTO counter VALUES (1, 0)";
        db.connect().unwrap().execute_batch(tables).unwrap();
        Sql(Some(db))
    }
}

impl Drop for Sql {
    fn drop(&mut self) {
        self.0.take().unwrap().close().unwrap();
    }
}

impl Store for Sql {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(SqlSession(self.0.as_ref().unwrap().connect().unwrap()))
    }
}

struct SqlSession(Connection);

impl Session for SqlSession {
    fn get(&mut self, key: i64) -> bool {
        let mut rows = self.0.query("SELECT v FROM t WHERE k = $1", (key,)).unwrap();
        match rows.next().unwrap() {
            Some(row) => {
                look_at(row.get(0).unwrap());
                true
            }
            None => false,
        }
    }

    fn range(&mut self, from: i64, rows: usize) -> usize {
        let sql = "SELECT v FROM t WHERE k >= $1 ORDER BY k LIMIT $2";
        let mut found = self.0.query(sql, (from, rows as i64)).unwrap();
        let mut count = 0;
        while let Some(row) = found.next().unwrap() {
            look_at(row.get(0).unwrap());
            count += 1;
        }
        count
    }

    fn put(&mut self, keys: &[i64]) {
        const PUT: &str = "INSERT INTO t VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v";
        if let [key] = keys {
            self.0.execute(PUT, (*key, &value(*key)[..])).unwrap();
            return;
        }
        let mut transaction = self.0.transaction().unwrap();
        for key in keys {
            transaction.execute(PUT, (*key, &value(*key)[..])).unwrap();
        }
        transaction.commit().unwrap();
    }

    fn count(&mut self) {
        let counted = self.0.execute("UPDATE counter SET n = n + 1 WHERE id = $1", (1_i64,)).unwrap();
        assert_eq!(counted, 1);
    }

    fn counted(&mut self) -> i64 {
        self.0.query_row::<(i64,)>("SELECT n FROM counter WHERE id = 1", ()).unwrap().0
    }

    fn make_jobs(&mut self, jobs: i64) {
        self.0.execute("INSERT INTO jobs SELECT generate_series(1, $1)", (jobs,)).unwrap();
    }

    fn take_job(&mut self) -> Option<i64> {
        let sql = "DELETE FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id";
        self.0.query_opt::<(i64,)>(sql, ()).unwrap().map(|(id,)| id)
    }
}

/// Typed tables of the crate `clearway`.
struct Typed {
    db: Option<Database>,
    rows: Table<i64, Vec<u8>>,
    jobs: Table<i64, i64>,
    counter: Table<i64, i64>,
}

impl Typed {
    fn open(dir: &Path) -> Typed {
        let db = Database::builder().cache_bytes(CACHE_BYTES).open(dir).unwrap();
        let rows = db.table("t", &["k"], &["v"]).unwrap();
        let jobs = db.table("jobs", &["id"], &["n"]).unwrap();
        let counter = db.table("counter", &["id"], &["n"]).unwrap();
        db.transact(|t| t.put(&counter, &1, &0)).unwrap();
        Typed { db: Some(db), rows, jobs, counter }
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        self.db.take().unwrap().close().unwrap();
    }
}

impl Store for Typed {
    fn session(&self) -> Box<dyn Session + '_> {
        Box::new(TypedSession { db: self.db.as_ref().unwrap(), of: self })
    }
}

struct TypedSession<'a> {
    db: &'a Database,
    of: &'a Typed,
}

impl Session for TypedSession<'_> {
    fn get(&mut self, key: i64) -> bool {
        self.db.read(|t| t.get_ref(&self.of.rows, &key, look_at)).unwrap().is_some()
    }

    fn range(&mut self, from: i64, rows: usize) -> usize {
        let mut count = 0;
        self.db
            .read(|t| {
                count = 0;
                t.scan_ref(&self.of.rows, from.., clearway::typed::Direction::Forward, |_, value| {
                    look_at(value);
                    count += 1;
                    if count == rows { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
                })
            })
            .unwrap();
        count
    }

    fn put(&mut self, keys: &[i64]) {
        self.db.transact(|t| keys.iter().try_for_each(|key| t.put(&self.of.rows, key, &value(*key).to_vec()))).unwrap();
    }

    fn count(&mut self) {
        assert!(self.db.update_with(&self.of.counter, &1, |n| *n += 1).unwrap().is_some());
    }

    fn counted(&mut self) -> i64 {
        self.db.transact(|t| t.get(&self.of.counter, &1)).unwrap().unwrap()
    }

    fn make_jobs(&mut self, jobs: i64) {
        self.db.transact(|t| (1..=jobs).try_for_each(|job| t.put(&self.of.jobs, &job, &job))).unwrap();
    }

    /// Typed tables have no SKIP LOCKED: workers meet at the first job, and a loser's closure runs again.
    fn take_job(&mut self) -> Option<i64> {
        self.db
            .transact(|t| {
                let mut first = None;
                t.scan(&self.of.jobs, .., clearway::typed::Direction::Forward, |job, _| {
                    first = Some(job);
                    std::ops::ControlFlow::Break(())
                })?;
                if let Some(job) = first {
                    t.delete(&self.of.jobs, &job)?;
                }
                Ok::<_, clearway::Error>(first)
            })
            .unwrap()
    }
}
