//! Statements that are stopped at any wait: by a cancel after a number of polls, or by a client that disconnects. Whatever the seed
//! chooses, no partial effect of a statement, no lock, no latch and no snapshot is left. The same holds for a panic in a statement.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::sim::{Connection, Values, connect, open, simulate};
use clearway_base::for_each_seed;
use clearway_base::sync::{Mutex, latches_held};
use clearway_base::testkit::{self, Rng, Sim, SimOptions};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::db::Db;
use clearway_sql::SqlError;
use clearway_sql::session::client::Client;
use clearway_sql::session::{Backends, Reason};

const ACCOUNTS: u64 = 8;
const WORKERS: u64 = 4;

/// What stops a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Nothing,
    /// A cancel after so many polls.
    Cancel(u64),
    /// The client is gone after so many polls.
    Gone(u64),
    /// The program panics where so many rows have been sent.
    Panic(usize),
}

/// Takes rows, and panics in the middle of a statement.
struct Rows {
    values: Values,
    stop: Stop,
}

impl Client for Rows {
    fn row(&mut self, columns: usize, write: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        self.values.row(columns, write);
        if self.stop == Stop::Panic(self.values.0.len()) {
            std::panic::resume_unwind(Box::new("planted"));
        }
    }
}

/// Runs a text; `None` if the client is gone.
async fn run(connection: &mut Connection, sql: &str, stop: Stop) -> Option<Result<Vec<String>, SqlError>> {
    connection.backend.interrupt.forget();
    let mut rows = Rows { values: Values::default(), stop };
    let ended = {
        let backend = connection.backend.clone();
        let mut work = pin!(connection.session.simple(sql, &mut rows));
        let mut polls = 0;
        poll_fn(move |cx| {
            polls += 1;
            if stop == Stop::Gone(polls) {
                return Poll::Ready(None);
            }
            if stop == Stop::Cancel(polls) {
                backend.interrupt.raise(Reason::Cancel);
            }
            // As the server does: this session ends, and no other.
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
                Ok(ended) => ended.map(Some),
                Err(_) => Poll::Ready(None),
            }
        })
        .await
    }?;
    Some(ended.map(|_| rows.values.0))
}

/// One text of a client; each leaves the sum of all balances as it was, or is undone.
fn text(rng: &mut Rng) -> String {
    let (a, b) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
    let transfer = format!(
        "UPDATE account SET balance = balance + CASE WHEN id = {a} THEN -5 ELSE 5 END WHERE id IN ({a}, {b}) AND {a} <> {b}"
    );
    match rng.below(9) {
        0..=2 => transfer,
        3 => format!(
            "BEGIN; SELECT * FROM account WHERE id = {a} FOR UPDATE; SELECT pg_sleep(0.002); {transfer}; COMMIT"
        ),
        4 => format!(
            "BEGIN; SAVEPOINT s; DELETE FROM account WHERE id = {a}; SELECT pg_sleep(0.001); ROLLBACK TO s; {transfer}; SELECT pg_sleep(0.002); COMMIT"
        ),
        5 => "BEGIN; UPDATE account SET note = note || 'x', tag = tag + 10; SELECT pg_sleep(0.001); COMMIT".to_owned(),
        6 => format!("INSERT INTO account VALUES ({a}, 0, 'n', {b}) ON CONFLICT (id) DO UPDATE SET note = 'again'"),
        7 => "SELECT count(*) FROM account a JOIN account b ON a.tag = b.tag".to_owned(),
        _ => "LOCK TABLE account IN SHARE ROW EXCLUSIVE MODE; SELECT pg_advisory_xact_lock(7); SELECT pg_sleep(0.001)"
            .to_owned(),
    }
}

async fn client(db: Arc<Db>, backends: Arc<Backends>, mut rng: Rng) -> [u64; 3] {
    let mut connection = connect(&db, &backends).await;
    let mut met = [0; 3];
    for _ in 0..12 {
        // Most texts wait a few times only, for locks and for durability.
        let polls = if rng.chance(3, 4) { rng.range(1..6) } else { rng.range(1..40) };
        let stop = match rng.below(4) {
            0 => Stop::Nothing,
            1 => Stop::Gone(polls),
            _ => Stop::Cancel(polls),
        };
        match run(&mut connection, &text(&mut rng), stop).await {
            Some(Ok(_)) => met[0] += 1,
            Some(Err(error)) => {
                met[1] += u64::from(error.code() == "57014");
                assert!(["57014", "40P01", "40001", "23505", "25P01"].contains(&error.code()), "{error:?}");
                // A failed block is left by its client.
                connection.run("ROLLBACK").await.expect("rolled back");
            }
            None => {
                met[2] += 1;
                connection = connect(&db, &backends).await;
            }
        }
    }
    met
}

async fn nothing_is_left(db: &Arc<Db>) {
    let all = db.transactions();
    db.undo_losers().await.expect("undone");
    while !all.book().active().is_empty() {
        testkit::yield_now().await;
    }
    assert!(all.locks().locks().is_empty(), "a lock is left: {:?}", all.locks().locks());
    assert_eq!(latches_held(), 0, "a latch is left");
    all.store().wal().wait_durable(all.visible_lsn()).await.expect("durable");
    let durable = all.durable_snapshot();
    assert_eq!(all.book().snapshots().refresh(durable).oldest(), durable, "a snapshot is left");
    assert_eq!(all.locks().archive().missed_by_fast_path(), 0);
}

#[test]
fn a_statement_that_is_stopped_leaves_nothing() {
    let mut met = [0; 3];
    for_each_seed!(25, |seed| {
        let seen = Sim::with_options(seed, SimOptions { steps_max: 20_000_000 })
            .block_on(async move {
                let disk = SimDisk::new(seed);
                let db = open(&disk).await;
                let backends = Arc::new(Backends::default());
                let mut first = connect(&db, &backends).await;
                let table = "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, note text, tag int UNIQUE)";
                let rows = format!(
                    "INSERT INTO account SELECT g, 100, repeat('n', 900), g FROM generate_series(0, {}) g",
                    ACCOUNTS - 1
                );
                for sql in [table, "CREATE INDEX ON account (balance)", &rows] {
                    first.value(sql).await;
                }
                let clients: Vec<_> = (0..WORKERS)
                    .map(|n| testkit::spawn("client", client(db.clone(), backends.clone(), Rng::new(seed * 100 + n))))
                    .collect();
                let mut met = [0; 3];
                for client in clients {
                    let seen = client.await;
                    (0..3).for_each(|i| met[i] += seen[i]);
                }
                let total = (ACCOUNTS * 100).to_string();
                assert_eq!(first.value("SELECT sum(balance) FROM account").await, total, "half of a statement is left");
                let by_index = "SELECT sum(balance) FROM (SELECT balance FROM account WHERE balance > -1000000 ORDER BY balance) b";
                assert_eq!(first.value(by_index).await, total, "the index says otherwise");
                let tags = "SELECT count(DISTINCT tag % 10) FROM account";
                assert_eq!(first.value(tags).await, ACCOUNTS.to_string(), "an update of all rows was done by half");
                drop(first);
                nothing_is_left(&db).await;
                met
            })
            .expect("the run ends");
        (0..3).for_each(|i| met[i] += seen[i]);
    });
    let [done, canceled, gone] = met;
    assert!(
        done > 50 && canceled > 20 && gone > 20,
        "{done} done, {canceled} canceled, {gone} gone: nothing was tried"
    );
}

/// A panic where a row is sent, with everything on the stack that a statement then has: whatever it had changed is undone, and others get its locks.
#[test]
fn a_panic_in_a_statement_leaves_nothing() {
    let statements = [
        "UPDATE account SET balance = balance + 1 RETURNING id",
        "BEGIN; LOCK TABLE account IN SHARE MODE; SELECT pg_advisory_lock(7); SELECT id FROM account ORDER BY note, id FOR UPDATE",
        "BEGIN; SAVEPOINT s; DELETE FROM account WHERE id < 3; SELECT a.id FROM account a JOIN account b ON a.balance = b.balance",
        "INSERT INTO account SELECT g, 1, 'n', g FROM generate_series(100, 120) g RETURNING id",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100) SELECT n FROM r",
        "BEGIN; CREATE TABLE made AS SELECT * FROM account; CREATE INDEX ON made (tag); SELECT id FROM made",
        "BEGIN; DECLARE c CURSOR FOR SELECT id FROM account FOR UPDATE; FETCH 3 FROM c; FETCH 5 FROM c",
    ];
    Sim::with_options(1, SimOptions { steps_max: 20_000_000 })
        .block_on(async move {
            let disk = SimDisk::new(1);
            let db = open(&disk).await;
            let backends = Arc::new(Backends::default());
            let mut other = connect(&db, &backends).await;
            other
                .value("CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, note text, tag int UNIQUE)")
                .await;
            other.value("INSERT INTO account SELECT g, 100, 'n', g FROM generate_series(1, 20) g").await;
            for sql in statements {
                for rows in [1, 5] {
                    let mut connection = connect(&db, &backends).await;
                    let ended = run(&mut connection, sql, Stop::Panic(rows)).await;
                    assert!(ended.is_none(), "{sql}: there was no panic: {ended:?}");
                    connection.session.end().await;
                    nothing_is_left(&db).await;
                    assert_eq!(other.value("UPDATE account SET note = 'o' RETURNING id").await, "20", "{sql}");
                    assert_eq!(other.value("SELECT sum(balance) FROM account").await, "2000", "{sql}: a half is left");
                    assert_eq!(other.value("SELECT count(*) FROM pg_class WHERE relname = 'made'").await, "0", "{sql}");
                    assert_eq!(
                        other.value("SELECT pg_try_advisory_lock(7), pg_advisory_unlock(7)").await,
                        "t",
                        "{sql}"
                    );
                }
            }
            assert!(db.transactions().store().wal().poisoned().is_none(), "the database is poisoned");
        })
        .expect("the run ends");
}

/// Statements over a query in FROM that has no rows, each of which would do something else if it had one.
const OVER_NO_ROW: [&str; 5] = [
    "SELECT CASE WHEN EXISTS (SELECT FROM {x}) THEN 'a row' ELSE 'none' END",
    "SELECT coalesce((SELECT 'a row' FROM {x} LIMIT 1), 'none')",
    "DELETE FROM t WHERE EXISTS (SELECT FROM {x} AND v.g <> t.id)",
    "UPDATE t SET n = 1 WHERE id > (SELECT count(*) FROM (SELECT g FROM {x} LIMIT 1) o) AND EXISTS (SELECT FROM {x})",
    "INSERT INTO t SELECT 100, g FROM {x} LIMIT 1",
];

/// EXE-17, BRE-11, INT-3
#[test]
fn a_stop_lets_no_row_through_that_was_not_judged() {
    for statement in OVER_NO_ROW {
        let sql = statement.replace("{x}", "(SELECT g FROM generate_series(1, 3000) g OFFSET 0) v WHERE v.g < 0");
        let mut stopped = 0;
        for polls in 1..60 {
            let (text, ended) = (sql.clone(), Arc::new(Mutex::new("test", None)));
            let told = ended.clone();
            simulate(polls, move || async move {
                let db = open(&SimDisk::new(polls)).await;
                let mut session = connect(&db, &Arc::new(Backends::default())).await;
                session.value("CREATE TABLE t (id int PRIMARY KEY, n int)").await;
                session.value("INSERT INTO t SELECT g, 0 FROM generate_series(1, 5) g").await;
                let ran = run(&mut session, &text, Stop::Cancel(polls)).await.expect("the client stays");
                session.backend.interrupt.forget();
                assert_eq!(
                    session.value("SELECT count(*) || ' ' || sum(n) FROM t").await,
                    "5 0",
                    "{text} after {polls}"
                );
                *told.lock() = Some(ran.map_err(|e| e.code().to_owned()));
            });
            match ended.lock().take().expect("it has ended") {
                Err(code) => assert_eq!(code, "57014", "{sql}"),
                Ok(rows) => {
                    assert!(rows.iter().all(|row| row == "none"), "{sql} after {polls}: {rows:?}");
                    break;
                }
            }
            stopped += 1;
        }
        assert!(stopped > 3, "{sql}: stopped at {stopped} of its polls");
    }
}

/// Queries by every kind of node, each over enough rows to be stopped in the midst of it. `{f}` is a condition that has to be judged on rows.
const STOPPED: [&str; 24] = [
    "SELECT count(*) FROM a WHERE {f}",
    "SELECT count(*) FROM (SELECT * FROM a OFFSET 0) a WHERE {f}",
    "SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE b.id = a.id AND b.g = 2) AND {f}",
    "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.g = a.g AND b.id > 1990) AND {f}",
    "SELECT count(*) FROM a WHERE id IN (SELECT id + 1 FROM b WHERE g < 3) AND {f}",
    "SELECT count(*) FROM a JOIN b ON b.id = a.id AND b.g <> a.g WHERE {f}",
    "SELECT count(*), count(b.id) FROM a LEFT JOIN b ON b.id = a.id AND b.g > 4 WHERE {f}",
    "SELECT count(a.id), count(b.id) FROM (SELECT * FROM a WHERE {f}) a FULL JOIN b ON b.id = a.id + 500",
    "SELECT count(*) FROM a JOIN b ON b.t = a.t AND b.g = a.g WHERE {f}",
    "SELECT count(*) FROM a, LATERAL (SELECT max(b.id) m FROM b WHERE b.id < a.id AND b.g = a.g) l WHERE a.id % 40 = 3 AND l.m > 0",
    "SELECT sum(n) FROM (SELECT g, count(*) n FROM a WHERE {f} GROUP BY g HAVING count(*) > 2) s",
    "SELECT sum(n) FROM (SELECT g, t, count(*) n FROM a WHERE {f} GROUP BY ROLLUP (g, t)) s WHERE t IS NULL",
    "SELECT count(*) FROM (SELECT DISTINCT g, t FROM a WHERE {f}) s",
    "SELECT sum(id) FROM (SELECT DISTINCT ON (g) g, id FROM a WHERE {f} ORDER BY g, t DESC, id) s",
    "SELECT sum(id) FROM (SELECT id FROM a WHERE {f} ORDER BY t, id LIMIT 70 OFFSET 30) s",
    "SELECT sum(r) FROM (SELECT row_number() OVER (PARTITION BY g ORDER BY t, id) r FROM a WHERE {f}) s WHERE r < 9",
    "SELECT count(*) FROM (SELECT id FROM a WHERE {f} EXCEPT SELECT id FROM b WHERE g = 1) s",
    "SELECT count(*) FROM (SELECT g FROM a WHERE {f} INTERSECT ALL SELECT g FROM b) s",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 900) SELECT count(*) FROM r JOIN a ON a.id = r.n WHERE {f}",
    "WITH w AS MATERIALIZED (SELECT * FROM a OFFSET 0) SELECT count(*) FROM w a JOIN w b ON b.id = a.g WHERE a.id % 7 <> 3",
    "SELECT count(*) FROM generate_series(1, 3000) g WHERE g % 5 = 2 AND EXISTS (SELECT FROM (VALUES (1), (2), (3)) v(x) WHERE v.x = g % 4)",
    "SELECT count(*) FROM a WHERE t = ANY (ARRAY(SELECT t FROM b WHERE g = 5)) AND {f}",
    "SELECT (SELECT min(id) FROM a WHERE {f} AND g = 4) + (SELECT count(*) FROM b WHERE t LIKE '%7%' AND g > 2)",
    "SELECT count(*) FROM a WHERE g + 3 > ALL (SELECT g FROM b WHERE b.id = a.id) AND {f}",
];

/// A query that is stopped at any of its breaths fails, or its answer is right (EXE-17, BRE-11, INT-3).
#[test]
fn a_stopped_query_fails_or_is_right() {
    simulate(12, || async {
        let db = open(&SimDisk::new(12)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        for table in ["a", "b"] {
            session.value(&format!("CREATE TABLE {table} (id int PRIMARY KEY, g int, t text)")).await;
            session
                .value(&format!(
                    "INSERT INTO {table} SELECT g, g * 7 % 11, (g * 31 % 97)::text FROM generate_series(1, 2000) g"
                ))
                .await;
            session.value(&format!("CREATE INDEX ON {table} (t)")).await;
        }
        session.value("ANALYZE").await;
        let mut stopped = 0;
        for settings in ["RESET work_mem", "SET work_mem = '64kB'"] {
            session.backend.interrupt.forget();
            session.value(settings).await;
            for query in STOPPED {
                let sql = query.replace("{f}", "(a.g * 3 + length(a.t)) % 4 <> 1");
                session.backend.interrupt.forget();
                let right = session.run(&sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
                for polls in 1.. {
                    match run(&mut session, &sql, Stop::Cancel(polls)).await.expect("the client stays") {
                        Err(e) => assert_eq!(e.code(), "57014", "{sql}"),
                        Ok(rows) => {
                            assert_eq!(rows, right, "{sql}, stopped after {polls} polls");
                            break;
                        }
                    }
                    stopped += 1;
                }
            }
        }
        assert!(stopped > 500, "{stopped} stops");
    });
}
