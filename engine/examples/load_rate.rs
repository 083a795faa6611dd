//! Rows a second that one thread loads in the order of their keys, a thousand a transaction, into an empty database with the options of the library.
//!
//! `cargo run --release -p clearway-engine --example load_rate DIRECTORY [ROWS [ROUNDS]]`
//!
//! Rows: `typed`, `put` of typed tables; `session`, what SQL's fast path asks of the engine for an INSERT. In turns, round by round; medians, and of the last round
//! where the time went: computing, waiting for a processor, and waits.

use std::path::Path;
use std::time::Duration;

use clearway_base::sync::{block_on, sleep};
use clearway_base::vfs::inline_io_here;
use clearway_base::waits::{books_of, now_ns};
use clearway_engine::embedded::{Database, Error, Table};
use clearway_engine::session::{Durability, Session, StatementMode, TxnOptions};
use clearway_engine::table::entry_moves::EntryMoves;
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Value;
use clearway_storage::buffer::PoolOptions;
use clearway_storage::store::StoreOptions;
use clearway_txn::lockmgr::{LockMode, LockTag};
use clearway_txn::transaction::Changed;

const BATCH: i64 = 1000;
const VALUE: [u8; 92] = [b'v'; 92];

type Rows = Table<i64, Vec<u8>>;

/// As the builder of the crate `clearway` has them.
fn options() -> StoreOptions {
    let mut store = StoreOptions { pool: PoolOptions::for_budget(256 << 20), ..StoreOptions::default() };
    store.wal.segment_bytes = 256 << 10;
    store.wal.ahead_bytes = 384 << 10;
    store.wal.floor_bytes = 128 << 10;
    store.space.extent_pages = 32;
    store.space.spare_pages = 16;
    store
}

fn typed(db: &Database, rows: &Rows, first: i64) {
    let keys = first..first + BATCH;
    db.transact(|t| keys.clone().try_for_each(|key| t.put(rows, &(2 * key), &VALUE.to_vec()))).expect("committed");
}

/// A session with what a connection keeps from call to call.
struct Loader {
    session: Session,
    tag: LockTag,
    moves: EntryMoves,
    bytes: (Vec<u8>, Vec<u8>),
}

impl Loader {
    fn insert(&mut self, shape: &TableShape, key: i64) {
        let Loader { session, tag, moves, bytes: (key_bytes, value) } = self;
        let now_ns = now_ns();
        assert!(session.begin_short(&"INSERT".into(), tag, LockMode::RowExclusive, now_ns), "no other session");
        let statement = session.open_short(StatementMode::Write, now_ns);
        let values = [Value::Int(key), Value::bytes(&VALUE)];
        key_bytes.clear();
        value.clear();
        shape.key_into(&values, key_bytes);
        shape.value_into(&values, value);
        let done = session.insert_now(shape, (Some(key_bytes), value), None, moves);
        if !matches!(done, Some(Changed::Done)) {
            block_on(session.insert(shape, &values)).expect("inserted");
        }
        session.close_statement(statement);
    }

    fn load(&mut self, shape: &TableShape, first: i64) {
        let _inline = inline_io_here();
        self.session.begin(TxnOptions::default());
        (first..first + BATCH).for_each(|key| self.insert(shape, 2 * key));
        block_on(self.session.commit(Durability::Wait)).expect("committed");
    }
}

/// Rows a second, and where the time went.
fn round(dir: &Path, rows: i64, is_typed: bool) -> (f64, String) {
    let _ = std::fs::remove_dir_all(dir);
    let db = Database::open_with(dir, options()).expect("opened");
    let table: Rows = db.table("t", &["k"], &["v"]).expect("a table");
    let catalog = db.engine().catalog();
    let shape = catalog.in_schema(2201, "t").map(|object| TableShape::new(&catalog, object.oid()).expect("a shape"));
    let shape = shape.expect("the table");
    let tag = LockTag::Relation { database: shape.database, relation: u64::from(shape.oid) };
    let session = db.engine().session(1, shape.database);
    let mut loader = Loader { session, tag, moves: EntryMoves::default(), bytes: (Vec::new(), Vec::new()) };
    block_on(sleep(Duration::from_millis(200)));
    let began = now_ns();
    let ((), books) = books_of(|| {
        for first in (0..rows).step_by(BATCH as usize) {
            if is_typed { typed(&db, &table, first) } else { loader.load(&shape, first) }
        }
    });
    let took = (now_ns() - began) as f64 / 1e9;
    let mut waits = books.waits.clone();
    waits.sort_by_key(|share| std::cmp::Reverse(share.wait_ns));
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut told = format!("CPU {:.1} ms, ready {:.1}", ms(books.cpu_ns), ms(books.run_queue_ns));
    for share in waits.iter().take(8) {
        told += &format!(", {} {:.1} in {}", share.event.name(), ms(share.wait_ns + share.spin_ns), share.count);
    }
    drop(loader);
    db.close().expect("closed");
    (rows as f64 / took, told)
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().collect();
    let dir = Path::new(args.get(1).expect("a directory")).join("load_rate");
    let number = |at: usize, default: i64| args.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (rows, rounds) = (number(2, 100_000), number(3, 3));
    let mut rates = [Vec::new(), Vec::new()];
    let mut told = [String::new(), String::new()];
    for _ in 0..rounds {
        for (at, is_typed) in [(0, true), (1, false)] {
            let (rate, parts) = round(&dir, rows, is_typed);
            rates[at].push(rate);
            told[at] = parts;
        }
    }
    for (at, name) in [(0, "typed"), (1, "session")] {
        rates[at].sort_by(f64::total_cmp);
        let all: Vec<String> = rates[at].iter().map(|rate| format!("{rate:.0}")).collect();
        println!("{name}: {:.0} rows/s ({}); {}", rates[at][rates[at].len() / 2], all.join(", "), told[at]);
    }
    Ok(())
}
