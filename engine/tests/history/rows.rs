//! Random concurrent transactions over one table with two indexes, on a simulated disk: changes of every kind, savepoints, statements
//! that fail, statements and commits whose futures are dropped, sessions that end without a word. Every reply is recorded.

use std::sync::Arc;
use std::time::Duration;

use clearway_base::sync::{Mutex, latches_held};
use clearway_base::testkit::{self, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::catalog::{Column, Index, IndexColumn, IndexState, Object, Relation};
use clearway_engine::db::Db;
use clearway_engine::embedded::{Isolation, TxnOptions};
use clearway_engine::error::EngineError;
use clearway_engine::session::{Durability, Mark, Session, StatementMode};
use clearway_engine::table::shape::TableShape;
use clearway_engine::value::Storage;
use clearway_storage::ids::Lsn;
use clearway_txn::lockmgr::LockMode;
use clearway_txn::mvcc::state::{Status, TxnState};

use super::cut::{Cut, until};
use super::disk::open_engine;
use super::oracle::{CATALOG, ObservedReply, Own, Reply, Row, Rows, Txn};
use super::statements::{KEYS, Refused, Runner, StatementEffects, Step, US, extra, read_table};

const WORKERS: u64 = 4;
const TXNS_EACH: u64 = 7;
const DATABASE: u32 = 6;
const SCHEMA: u32 = 2201;

/// What is written down of one transaction.
pub struct Entry {
    txn: Txn,
    state: Option<Arc<TxnState>>,
}

/// What is written down of a run.
#[derive(Default)]
pub struct Notes {
    entries: Vec<Entry>,
    /// The disk's crash points when the table was there, acknowledged.
    pub ready_at: Option<u64>,
}

pub type Shared = Arc<Mutex<Notes>>;

pub fn new_notes() -> Shared {
    Arc::new(Mutex::new("test/notes", Notes::default()))
}

impl Notes {
    /// The history, with the place of every commit, known to its client or not.
    pub fn history(&self) -> Vec<Txn> {
        let commit = |entry: &Entry| match entry.state.as_ref().map(|s| s.status()) {
            Some(Status::Committed(lsn)) => Some(lsn),
            _ => None,
        };
        self.entries.iter().map(|entry| Txn { commit: commit(entry), ..entry.txn.clone() }).collect()
    }
}

fn column(name: &str, storage: Storage) -> Column {
    Column {
        name: name.to_owned(),
        storage: storage.code(),
        type_oid: 0,
        type_mod: -1,
        not_null: true,
        default: None,
        identity: None,
        dropped_version: None,
        statistics: None,
        since_version: 0,
        missing: None,
        ..Default::default()
    }
}

/// `t (id bigint primary key, a bigint, u bigint unique, v bigint, pad bytea)` with an index on `a`.
pub async fn create(session: &mut Session) -> Result<Arc<TableShape>, EngineError> {
    session.begin(TxnOptions::default());
    let oid = session.db().new_oid();
    let numbers = ["id", "a", "u", "v"].map(|name| column(name, Storage::Int(8)));
    let columns = numbers.into_iter().chain([column("pad", Storage::Bytes)]).collect();
    let tree = session.create_tree().await?.0;
    let relation = Relation { key: vec![0], ..Relation::table(oid, DATABASE, SCHEMA, "t", columns, tree) };

    session.put_object(Object::Relation(relation)).await?;
    for (name, position, unique) in [("t_a", 1, false), ("t_u", 2, true)] {
        let index = Index {
            oid: session.db().new_oid(),
            database: DATABASE,
            schema: SCHEMA,
            name: name.to_owned(),
            table: oid,
            tree: session.create_tree().await?.0,
            columns: vec![IndexColumn::ascending(position)],
            unique,
            primary: false,
            constraint: unique,
            state: IndexState::Public,
            valid_from_lsn: 0,
            clustered: false,
            include: Vec::new(),
            ..Index::default()
        };
        session.put_object(Object::Index(index)).await?;
    }
    session.commit(Durability::Wait).await?;
    TableShape::new(&session.catalog(), oid)
}

/// The table, if it is there.
fn shape(session: &mut Session) -> Option<Arc<TableShape>> {
    let catalog = session.catalog();
    let table = catalog.in_schema(SCHEMA, "t")?.oid();
    Some(TableShape::new(&catalog, table).expect("a shape"))
}

/// Runs the workload to its end, or to the disk's crash point.
pub fn run(seed: u64, disk: &SimDisk, notes: &Shared, cuts: bool) -> Result<(), Stop> {
    let (disk, notes) = (disk.clone(), notes.clone());
    Sim::with_options(seed, SimOptions { steps_max: 5_000_000 }).block_on(async move {
        let db = open_engine(&disk).await.expect("opened");
        let mut session = db.session(100, DATABASE);
        let shape = create(&mut session).await.expect("a table");
        drop(session);
        notes.lock().ready_at = Some(disk.points());
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let rng = Rng::new(seed * 1_000 + number);
                let (db, shape, notes) = (db.clone(), shape.clone(), notes.clone());
                let worker = Worker { session: session_of(&db, number), db, shape, notes, rng, number, v: 0, cuts };
                testkit::spawn("worker", worker.work())
            })
            .collect();
        let upkeep = testkit::spawn("upkeep", keep_up(db.clone(), Rng::new(seed)));
        for worker in workers {
            worker.await;
        }
        upkeep.await;
        nothing_is_left(&db).await;
        db.close().await.expect("closed");
    })
}

pub fn session_of(db: &Arc<Db>, number: u64) -> Session {
    db.session(number as i32 + 1, DATABASE)
}

/// Old versions and ghosts go while others read: more often than the background would see to it.
async fn keep_up(db: Arc<Db>, mut rng: Rng) {
    for _ in 0..400 {
        testkit::sleep(Duration::from_micros(rng.range(1..200))).await;
        db.transactions().upkeep_step().await.expect("upkeep");
    }
}

/// When all transactions have ended, nothing of them is there but their changes.
async fn nothing_is_left(db: &Arc<Db>) {
    let all = db.transactions();
    db.undo_losers().await.expect("undone");
    while !all.book().active().is_empty() {
        // The background loop is at it.
        testkit::yield_now().await;
    }
    assert!(all.locks().locks().is_empty(), "a lock is left: {:?}", all.locks().locks());
    assert_eq!(all.locks().archive().missed_by_fast_path(), 0);
    assert_eq!(latches_held(), 0, "a latch is left");
    all.store().wal().wait_durable(all.visible_lsn()).await.expect("durable");
    let durable = all.durable_snapshot();
    assert_eq!(all.book().snapshots().refresh(durable).oldest(), durable, "a snapshot is left");
    while all.upkeep_step().await.expect("upkeep") > 0 {}
    let mut undo = Vec::new();
    all.book().undo().for_each(|record| undo.push(format!("{record:?}")));
    assert!(undo.is_empty(), "undo is left: {undo:#?}");
}

/// What a crash left: the last commit, and the table with what stands in the catalog beside it, if there is a table.
pub struct Left {
    pub last: Lsn,
    pub rows: Option<Rows>,
}

/// Opens what a crash left and reads it, by table and by index.
pub fn recover(seed: u64, disk: &SimDisk) -> Result<Left, Stop> {
    let disk = disk.restart();
    Sim::with_options(seed, SimOptions { steps_max: 5_000_000 }).block_on(async move {
        let db = open_engine(&disk).await.expect("recovered");
        let last = db.transactions().visible_lsn();
        db.undo_losers().await.expect("undone");
        let mut session = session_of(&db, 0);
        let rows = match shape(&mut session) {
            Some(shape) => {
                let names: Vec<&str> = shape.indexes.iter().map(|index| index.name.as_str()).collect();
                assert_eq!(names, ["t_a", "t_u"], "CAT-2: said by the indexes, and read back as it was");
                let statement = session.open_statement(&"read".into(), StatementMode::ReadOnly);
                let mut rows = read_table(&mut session, &shape, &statement.view).await.expect("read");
                session.close_statement(statement);
                rows.extend(extra(&mut session).map(|row| (CATALOG, row)));
                Some(rows)
            }
            None => None,
        };
        drop(session);
        nothing_is_left(&db).await;
        Left { last, rows }
    })
}

struct Worker {
    db: Arc<Db>,
    session: Session,
    shape: Arc<TableShape>,
    notes: Shared,
    rng: Rng,
    number: u64,
    v: i64,
    cuts: bool,
}

/// A transaction as its worker sees it.
struct Open {
    at: usize,
    isolation: Isolation,
    read_only: bool,
    own: Own,
    savepoints: Vec<(Mark, Own, usize)>,
}

/// What becomes of the transaction after a statement.
enum Then {
    GoesOn,
    Fails,
}

impl Worker {
    async fn work(mut self) {
        for _ in 0..TXNS_EACH {
            self.transaction().await;
        }
    }

    fn version(&mut self) -> i64 {
        self.v += 10;
        self.number as i64 * 100_000 + self.v
    }

    fn step(&mut self, read_only: bool) -> Step {
        let key = self.rng.below(KEYS as u64) as i64;
        let locks = self.rng.chance(1, 2);
        let row = Row { a: self.rng.below(4) as i64, u: self.rng.below(US as u64) as i64, v: self.version() };
        match self.rng.below(if read_only { 6 } else { 24 }) {
            0 | 1 => Step::Point(key),
            2 | 3 => Step::Table,
            4 => Step::Catalog,
            5 => Step::Pause,
            6..=10 => Step::Insert(key, row),
            11..=15 => Step::Update(key, row, locks),
            16 | 17 => Step::Delete(key, locks),
            18 => Step::Move(key, self.rng.below(KEYS as u64) as i64, row.v),
            19 | 20 => Step::Bump(row.a, row.v),
            21 => {
                Step::LockRow(key, *self.rng.pick(&[LockMode::RowKeyShare, LockMode::RowForShare, LockMode::RowUpdate]))
            }
            22 => Step::LockTable(*self.rng.pick(&[
                LockMode::Share,
                LockMode::ShareRowExclusive,
                LockMode::AccessExclusive,
            ])),
            _ => Step::Toggle,
        }
    }

    async fn transaction(&mut self) {
        let isolation = *self.rng.pick(&[Isolation::ReadCommitted, Isolation::RepeatableRead]);
        let read_only = self.rng.chance(1, 5);
        self.session.begin(TxnOptions { isolation, read_only });
        let at = {
            let txn = Txn { isolation, told: Vec::new(), writes: Vec::new(), commit: None, acknowledged: false };
            let mut notes = self.notes.lock();
            notes.entries.push(Entry { txn, state: None });
            notes.entries.len() - 1
        };
        let mut open = Open { at, isolation, read_only, own: Own::new(), savepoints: Vec::new() };
        for _ in 0..self.rng.range(1..6) {
            match self.rng.below(12) {
                0 => open.savepoints.push((self.session.mark(), open.own.clone(), self.writes(&open))),
                1 if !open.savepoints.is_empty() => self.back(&mut open).await,
                _ => {
                    if let Then::Fails = self.statement(&mut open).await {
                        return self.roll_back(&open).await;
                    }
                }
            }
        }
        match self.rng.below(10) {
            0 => self.roll_back(&open).await,
            // The client has gone: the reaper undoes it.
            1 if self.cuts => self.session = session_of(&self.db, self.number),
            _ => self.commit(&open).await,
        }
    }

    fn writes(&self, open: &Open) -> usize {
        self.notes.lock().entries[open.at].txn.writes.len()
    }

    /// Back to a savepoint; a rollback that is cut off goes on with the next.
    async fn back(&mut self, open: &mut Open) {
        let at = self.rng.index(open.savepoints.len());
        open.savepoints.truncate(at + 1);
        let (mark, own, writes) = open.savepoints[at].clone();
        self.undo(&mark).await;
        open.own = own;
        self.notes.lock().entries[open.at].txn.writes.truncate(writes);
    }

    async fn undo(&mut self, mark: &Mark) {
        while until(self.cut(3), self.session.roll_back_to(mark)).await.map(|r| r.expect("undone")).is_none() {}
    }

    fn cut(&mut self, one_in: u64) -> Option<Cut> {
        if self.cuts { Cut::sometimes(&mut self.rng, one_in) } else { None }
    }

    async fn statement(&mut self, open: &mut Open) -> Then {
        let step = self.step(open.read_only);
        let cut = self.cut(6);
        let mark = self.session.mark();
        let mode = if open.read_only { StatementMode::ReadOnly } else { StatementMode::Write };
        let statement = self.session.open_statement(&"statement".into(), mode);
        let view = statement.view;
        let mut runner = Runner { session: &mut self.session, shape: &self.shape, view, isolation: open.isolation };
        let ran = until(cut, runner.run(step)).await;
        self.session.close_statement(statement);
        let before = open.own.clone();
        let (replies, then) = match ran {
            None => {
                self.undo(&mark).await;
                return Then::GoesOn;
            }
            Some(Ok(did)) => (self.done(open, did), Then::GoesOn),
            Some(Err(Refused::Statement(reply))) => {
                self.undo(&mark).await;
                (vec![reply], Then::GoesOn)
            }
            Some(Err(Refused::Conflict(key))) => (vec![Reply::Conflict(key)], Then::Fails),
            Some(Err(Refused::Deadlock)) => return Then::Fails,
            Some(Err(Refused::Other(error))) => panic!("{step:?}: {error}"),
        };
        let upto = self.db.transactions().visible_lsn();
        let told = replies.into_iter().map(|reply| {
            let own = before.clone();
            ObservedReply { read_lsn: view.read_lsn, upto, own, reply, given: false }
        });
        self.notes.lock().entries[open.at].txn.told.extend(told);
        if self.rng.chance(1, 3) && until(self.cut(8), self.session.wait_reply()).await.is_some_and(|r| r.is_ok()) {
            self.given(open);
        }
        then
    }

    fn done(&mut self, open: &mut Open, did: StatementEffects) -> Vec<Reply> {
        open.own.extend(did.writes.iter().map(|write| (write.key, write.after)));
        self.notes.lock().entries[open.at].txn.writes.extend(did.writes);
        did.replies
    }

    /// Everything that the transaction was told so far has gone out.
    fn given(&self, open: &Open) {
        self.notes.lock().entries[open.at].txn.told.iter_mut().for_each(|told| told.given = true);
    }

    async fn commit(&mut self, open: &Open) {
        // Its state says where it stands, whether or not it comes to an answer.
        if self.session.txn().id().is_some() {
            let state = self.session.txn().assign().expect("it has an id");
            self.notes.lock().entries[open.at].state = Some(state);
        }
        match until(self.cut(6), self.session.commit(Durability::Wait)).await {
            Some(committed) => {
                committed.expect("committed");
                self.given(open);
                self.notes.lock().entries[open.at].txn.acknowledged = true;
            }
            None if self.session.is_open() => self.roll_back(open).await,
            // It has committed, and no client was there to hear of it.
            None => self.session = session_of(&self.db, self.number),
        }
    }

    async fn roll_back(&mut self, open: &Open) {
        loop {
            let ended = until(self.cut(3), self.session.roll_back()).await;
            if let Some(ended) = ended {
                ended.expect("undone");
                return self.given(open);
            }
            if !self.session.is_open() {
                return;
            }
        }
    }
}
