//! The SQL interface on a simulated disk that crashes at any begin or end of an I/O. Afterwards changes that were acknowledged or shown are
//! there, changes that were rolled back are not, and a transaction that was under way is there as a whole or not at all.
//!
//! Long form: `CLEARWAY_SEEDS=100 CLEARWAY_CRASHES=100 cargo test --release -p clearway --test it crash`.

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;

use clearway::{AsyncConnection, Database, Result};
use clearway_base::for_each_seed;
use clearway_base::sync::Mutex;
use clearway_base::testkit::{self, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::Vfs;
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::db::{Db, DbOptions};

const WORKERS: u64 = 4;
const ROUNDS: u64 = 6;
const ACCOUNTS: u64 = 5;
const START: i64 = 100;

const TABLES: &str = "
    CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL);
    CREATE TABLE ledger (work bigint, part bigint, account bigint REFERENCES accounts, amount bigint NOT NULL, PRIMARY KEY (work, part));
    CREATE INDEX ledger_account ON ledger (account);
    INSERT INTO accounts SELECT g, 100 FROM generate_series(0, 4) g";

/// What became of a piece of work, as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Its end was asked for; nothing was heard.
    Asked,
    Acknowledged,
    GivenUp,
}

/// What the clients know: of each piece of work, and which pieces a query has shown.
#[derive(Clone, Default)]
struct ClientKnowledge {
    work: BTreeMap<i64, Known>,
    seen: Vec<i64>,
}

type Book = Arc<Mutex<ClientKnowledge>>;

fn new_book() -> Book {
    Arc::new(Mutex::new("test/heard", ClientKnowledge::default()))
}

async fn open(disk: &SimDisk) -> (Arc<Db>, Database) {
    let dir = Path::new("/db");
    if disk.create_dir(dir).await.is_ok() {
        disk.sync_dir(Path::new("/")).await.expect("a durable name");
    }
    let mut options = DbOptions::new(Arc::new(disk.clone()), dir);
    options.store.wal.caller_flushes = false;
    options.store.wal.ring_bytes = 256 << 10;
    options.store.wal.segment_bytes = 256 << 10;
    options.store.wal.ahead_bytes = 256 << 10;
    options.store.wal.floor_bytes = 64 << 10;
    options.store.checkpoint_bytes = 48 << 10;
    options.store.checkpoint_pause = std::time::Duration::ZERO;
    options.store.pool.frames = 256;
    let db = Db::open(options, |name, task| {
        testkit::spawn(name, task);
    })
    .await
    .expect("opened");
    let database = Database::builder().on_engine(Arc::clone(&db)).expect("its database is there");
    (db, database)
}

/// A connection that is never dropped: a drop waits, which the tasks of a simulation can't, and a crash drops everything.
async fn connect(db: &Database) -> ManuallyDrop<AsyncConnection> {
    ManuallyDrop::new(db.connect_async().await.expect("a connection"))
}

/// Plays a scene; unoptimized futures of whole statements are large.
fn play<F: Future<Output = ()> + Send + 'static>(
    seed: u64,
    scene: impl FnOnce() -> F + Send + 'static,
) -> Result<(), Stop> {
    let sim = move || {
        let options = SimOptions { steps_max: 20_000_000 };
        Sim::with_options(seed, options).block_on(async move { scene().await })
    };
    let stage = std::thread::Builder::new().stack_size(64 << 20).spawn(sim).expect("a thread");
    stage.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs the clients to their ends, or to the crash.
fn run(seed: u64, disk: &SimDisk, book: &Book) -> Result<(), Stop> {
    let (disk, book) = (disk.clone(), Arc::clone(book));
    play(seed, move || async move {
        let (engine, db) = open(&disk).await;
        let db = ManuallyDrop::new(db);
        connect(&db).await.execute_batch(TABLES).await.expect("tables");
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let worker = Worker { number, rng: Rng::new(seed * 1_000 + number), book: Arc::clone(&book) };
                testkit::spawn("worker", worker.work((*db).clone()))
            })
            .collect();
        for worker in workers {
            worker.await;
        }
        engine.close().await.expect("closed");
    })
}

struct Worker {
    number: u64,
    rng: Rng,
    book: Book,
}

impl Worker {
    async fn work(mut self, db: Database) {
        let db = ManuallyDrop::new(db);
        let mut connection = connect(&db).await;
        for round in 0..ROUNDS {
            let work = (self.number * ROUNDS + round) as i64;
            loop {
                match self.one(&mut connection, work).await {
                    Ok(()) => break,
                    // Another one was faster, or a deadlock was broken: the work is done again, from its beginning.
                    Err(error) if error.is_retryable() => {
                        self.note(work, Known::GivenUp);
                        if connection.in_transaction().expect("open") {
                            connection.execute("ROLLBACK", ()).await.expect("rolled back");
                        }
                    }
                    Err(error) => panic!("work {work}: {error}"),
                }
            }
            self.look(&mut connection).await;
        }
    }

    fn note(&self, work: i64, known: Known) {
        self.book.lock().work.insert(work, known);
    }

    async fn look(&mut self, connection: &mut AsyncConnection) {
        let rows = connection.query("SELECT DISTINCT work FROM ledger", ()).await.expect("rows");
        let seen: Vec<(i64,)> = rows.collect().await.expect("all");
        self.book.lock().seen.extend(seen.into_iter().map(|(work,)| work));
    }

    /// Moves money between two accounts and writes both movements down, in one of the ways that the interface has.
    async fn one(&mut self, connection: &mut AsyncConnection, work: i64) -> Result<()> {
        let from = self.rng.below(ACCOUNTS);
        let to = (from + 1 + self.rng.below(ACCOUNTS - 1)) % ACCOUNTS;
        let (from, to, amount) = (from as i64, to as i64, self.rng.range(1..9) as i64);
        match self.rng.below(4) {
            // One statement.
            0 => {
                self.note(work, Known::Asked);
                let sql = "WITH moved AS (UPDATE accounts SET balance = balance + CASE id WHEN $2::bigint THEN -$4::bigint ELSE $4::bigint END
                                          WHERE id IN ($2::bigint, $3::bigint) RETURNING id)
                           INSERT INTO ledger SELECT $1::bigint, CASE id WHEN $2::bigint THEN 1 ELSE 2 END, id, CASE id WHEN $2::bigint THEN -$4::bigint ELSE $4::bigint END
                           FROM moved";
                assert_eq!(connection.execute(sql, (work, from, to, amount)).await?, 2);
                self.note(work, Known::Acknowledged);
            }
            // A transaction with a savepoint that is given up.
            1 => {
                let mut t = connection.transaction().await?;
                movement(&mut t, work, 1, from, -amount).await?;
                t.execute("SAVEPOINT s", ()).await?;
                movement(&mut t, work, 7, to, amount).await?;
                t.execute("ROLLBACK TO SAVEPOINT s", ()).await?;
                movement(&mut t, work, 2, to, amount).await?;
                self.note(work, Known::Asked);
                t.commit().await?;
                self.note(work, Known::Acknowledged);
            }
            // A guard that is dropped.
            2 => {
                self.note(work, Known::GivenUp);
                let mut t = connection.transaction().await?;
                movement(&mut t, work, 1, from, -amount).await?;
                movement(&mut t, work, 2, to, amount).await?;
                drop(t);
                assert!(!connection.in_transaction()?);
            }
            // Several statements as one text.
            _ => {
                self.note(work, Known::Asked);
                let move_one = |part: i64, account: i64, amount: i64| {
                    format!(
                        "UPDATE accounts SET balance = balance + {amount} WHERE id = {account};
                         INSERT INTO ledger VALUES ({work}, {part}, {account}, {amount});"
                    )
                };
                let text = move_one(1, from, -amount) + &move_one(2, to, amount);
                connection.execute_batch(&text).await?;
                self.note(work, Known::Acknowledged);
            }
        }
        Ok(())
    }
}

async fn movement(connection: &mut AsyncConnection, work: i64, part: i64, account: i64, amount: i64) -> Result<()> {
    connection.execute("UPDATE accounts SET balance = balance + $1 WHERE id = $2", (amount, account)).await?;
    connection.execute("INSERT INTO ledger VALUES ($1, $2, $3, $4)", (work, part, account, amount)).await?;
    Ok(())
}

/// Opens what a crash left, and compares it with what the clients know.
fn check(seed: u64, disk: &SimDisk, book: &Book, point: u64) {
    let (disk, book) = (disk.restart(), Arc::clone(book));
    let ended = play(seed, move || async move {
        let (engine, db) = open(&disk).await;
        let db = ManuallyDrop::new(db);
        let mut connection = connect(&db).await;
        let there = |name: &'static str| format!("SELECT count(*) FROM pg_class WHERE relname = '{name}'");
        let made: (i64,) = connection.query_row(&there("accounts"), ()).await.expect("a count");
        let heard = book.lock().clone();
        if made.0 == 0 {
            assert!(heard.work.is_empty(), "the tables are gone after a crash at point {point}");
            engine.close().await.expect("closed");
            return;
        }
        let sql = "SELECT work, count(*), sum(part), sum(amount)::bigint FROM ledger GROUP BY work";
        let rows: Vec<(i64, i64, i64, i64)> =
            connection.query(sql, ()).await.expect("rows").collect().await.expect("all");
        for (work, parts, sum, amount) in &rows {
            assert_eq!((*parts, *sum, *amount), (2, 3, 0), "a part of work {work} after a crash at point {point}");
            let known = heard.work.get(work);
            assert!(
                matches!(known, Some(Known::Asked | Known::Acknowledged)),
                "work {work} was given up: point {point}"
            );
        }
        let is_there = |work: &i64| rows.iter().any(|row| row.0 == *work);
        for (work, known) in &heard.work {
            assert!(*known != Known::Acknowledged || is_there(work), "work {work} is lost: crash at point {point}");
        }
        for work in &heard.seen {
            assert!(is_there(work), "work {work} was shown and is lost: crash at point {point}");
        }
        let wrong = "SELECT a.id, a.balance, l.sum FROM accounts a
                     LEFT JOIN (SELECT account, sum(amount)::bigint FROM ledger GROUP BY account) l ON l.account = a.id
                     WHERE a.balance <> $1 + coalesce(l.sum, 0)";
        let wrong: Vec<(i64, i64, i64)> =
            connection.query(wrong, [START]).await.expect("rows").collect().await.expect("all");
        assert!(wrong.is_empty(), "accounts and ledger differ after a crash at point {point}: {wrong:?}");
        // It goes on working.
        connection.execute("INSERT INTO ledger VALUES (-1, 1, 1, 0)", ()).await.expect("inserted");
        engine.close().await.expect("closed");
    });
    assert_eq!(ended, Ok(()), "recovery after a crash at point {point}");
}

fn crashes_per_seed() -> u64 {
    std::env::var("CLEARWAY_CRASHES").ok().map_or(6, |n| n.parse().expect("a number of crashes"))
}

#[test]
fn every_answer_agrees_with_what_a_crash_leaves() {
    let (mut acknowledged, mut asked, mut given_up) = (0, 0, 0);
    for_each_seed!(3, |seed| {
        let (whole, book) = (SimDisk::new(seed), new_book());
        run(seed, &whole, &book).expect("the run ends");
        check(seed, &whole, &book, u64::MAX);
        let mut rng = Rng::new(seed);
        for _ in 0..crashes_per_seed() {
            let point = rng.range(1..whole.points());
            let (disk, book) = (SimDisk::new(seed), new_book());
            disk.crash_at(point);
            assert_eq!(run(seed, &disk, &book).err(), Some(Stop::Crashed), "point {point}");
            check(seed, &disk, &book, point);
            for known in book.lock().work.values() {
                match known {
                    Known::Acknowledged => acknowledged += 1,
                    Known::Asked => asked += 1,
                    Known::GivenUp => given_up += 1,
                }
            }
        }
    });
    let met = format!("{acknowledged} acknowledged, {asked} asked, {given_up} given up");
    assert!(acknowledged > 0 && asked > 0 && given_up > 0, "{met}: nothing was tried");
}
