//! A database on a simulated disk, and the tasks of the seed's scheduler that work on it and record their replies.

use std::collections::BTreeMap;
use std::sync::Arc;

use clearway_base::sync::Mutex;
use clearway_base::testkit::{self, Rng, Sim, SimOptions, Stop};
use clearway_base::vfs::sim::SimDisk;
use clearway_engine::embedded::{AsyncTxn, Database, Error, Isolation, Table, TableNames, TxnOptions};

use super::checker::{Element, Key, Op, Outcome, Txn};
use super::disk::open_engine;

const KEYS: i64 = 4;
const WORKERS: usize = 5;
const TXNS_EACH: usize = 12;

type Lists = Table<i64, Vec<u8>>;
pub type History = Arc<Mutex<Vec<Txn>>>;

/// An error of the workload's own: the client changes its mind.
#[derive(Debug)]
enum Ended {
    OnPurpose,
    Database(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Ended {
        Ended::Database(error)
    }
}

fn encode(list: &[Element]) -> Vec<u8> {
    list.iter().flat_map(|e| e.to_be_bytes()).collect()
}

fn decode(bytes: &[u8]) -> Vec<Element> {
    bytes.chunks(8).map(|c| Element::from_be_bytes(c.try_into().expect("whole elements"))).collect()
}

pub async fn open(disk: &SimDisk) -> Result<Database, Error> {
    Database::on_engine(open_engine(disk).await?)
}

async fn lists(db: &Database) -> Result<Lists, Error> {
    db.table_async(TableNames { table: "lists", key: &["k"], value: &["elements"] }).await
}

/// What the lists are.
pub async fn read_all(db: &Database) -> Result<BTreeMap<Key, Vec<Element>>, Error> {
    let table = lists(db).await?;
    let rows: Vec<(i64, Vec<u8>)> = db
        .transact_async(TxnOptions::default(), |txn: &mut AsyncTxn<'_>| {
            let table = table.clone();
            Box::pin(async move { txn.range(&table, ..).await })
        })
        .await?;
    Ok(rows.into_iter().map(|(key, bytes)| (key, decode(&bytes))).collect())
}

/// Runs the workload to its end or to the disk's crash point; returns the final lists.
pub fn run(
    seed: u64,
    disk: &SimDisk,
    isolation: Isolation,
    history: &History,
) -> Result<BTreeMap<Key, Vec<Element>>, Stop> {
    let (disk, history) = (disk.clone(), history.clone());
    Sim::with_options(seed, SimOptions { steps_max: 5_000_000 }).block_on(async move {
        let db = open(&disk).await.expect("opened");
        let table = lists(&db).await.expect("a table");
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let rng = Rng::new(seed * 1_000 + number as u64);
                let worker = Worker { db: db.clone(), table: table.clone(), history: history.clone(), isolation, rng };
                testkit::spawn("worker", worker.work())
            })
            .collect();
        for worker in workers {
            worker.await;
        }
        assert!(db.engine().transactions().locks().locks().is_empty(), "no lock is left");
        assert_eq!(db.engine().transactions().locks().archive().missed_by_fast_path(), 0);
        let last = read_all(&db).await.expect("read");
        db.engine().close().await.expect("closed");
        last
    })
}

/// Opens what a crash left and reads it.
pub fn recover(seed: u64, disk: &SimDisk) -> Result<BTreeMap<Key, Vec<Element>>, Stop> {
    let disk = disk.restart();
    Sim::with_options(seed, SimOptions { steps_max: 5_000_000 }).block_on(async move {
        let db = open(&disk).await.expect("recovered");
        let last = read_all(&db).await.expect("read");
        db.engine().close().await.expect("closed");
        last
    })
}

struct Worker {
    db: Database,
    table: Lists,
    history: History,
    isolation: Isolation,
    rng: Rng,
}

/// One step that a transaction is going to take.
#[derive(Clone, Copy)]
enum Step {
    Read(Key),
    /// By `update_with`, under the row's lock.
    Append(Key),
    /// By reading and then putting.
    ReadPut(Key),
    Pause,
}

impl Worker {
    async fn work(mut self) {
        for _ in 0..TXNS_EACH {
            let read_only = self.rng.chance(1, 5);
            let steps: Vec<Step> = (0..self.rng.range(1..5)).map(|_| self.step(read_only)).collect();
            let gives_up = !read_only && self.rng.chance(1, 6);
            self.transaction(TxnOptions { isolation: self.isolation, read_only }, &steps, gives_up).await;
        }
    }

    fn step(&mut self, read_only: bool) -> Step {
        let key = self.rng.below(KEYS as u64) as Key;
        match self.rng.below(8) {
            _ if read_only => Step::Read(key),
            0 => Step::Pause,
            1..=2 => Step::Read(key),
            // In read committed two may read the same list and put: a lost update that it allows.
            3..=4 if self.isolation == Isolation::RepeatableRead => Step::ReadPut(key),
            _ => Step::Append(key),
        }
    }

    async fn transaction(&mut self, options: TxnOptions, steps: &[Step], gives_up: bool) {
        let at: Arc<Mutex<Option<usize>>> = Arc::new(Mutex::new("test/place", None));
        let ended = self
            .db
            .transact_async(options, |txn: &mut AsyncTxn<'_>| {
                // An attempt that is run again has been undone.
                let number = begin(&self.history, at.lock().take());
                *at.lock() = Some(number);
                let attempt = Attempt { table: self.table.clone(), history: self.history.clone(), number };
                let steps = steps.to_vec();
                Box::pin(async move {
                    for (place, step) in steps.into_iter().enumerate() {
                        attempt.step(txn, step, place).await?;
                    }
                    if gives_up { Err(Ended::OnPurpose) } else { Ok(()) }
                })
            })
            .await;
        let number = at.lock().expect("begun");
        self.history.lock()[number].outcome = match ended {
            Ok(()) => Outcome::Committed,
            Err(Ended::OnPurpose) => Outcome::Aborted,
            Err(Ended::Database(error)) => panic!("{error}"),
        };
    }
}

fn begin(history: &History, undone: Option<usize>) -> usize {
    let mut history = history.lock();
    if let Some(undone) = undone {
        // No client was told what it read: its client saw nothing of it.
        history[undone].outcome = Outcome::Aborted;
        history[undone].ops.retain(|op| matches!(op, Op::Append(..)));
    }
    history.push(Txn { ops: Vec::new(), outcome: Outcome::Unknown });
    history.len() - 1
}

struct Attempt {
    table: Lists,
    history: History,
    number: usize,
}

impl Attempt {
    fn note(&self, op: Op) {
        self.history.lock()[self.number].ops.push(op);
    }

    async fn step(&self, txn: &mut AsyncTxn<'_>, step: Step, place: usize) -> Result<(), Error> {
        let element = (self.number * 10 + place) as Element;
        match step {
            Step::Pause => testkit::yield_now().await,
            Step::Read(key) => {
                let list = txn.get(&self.table, &key).await?;
                self.note(Op::Read(key, list.as_deref().map_or(Vec::new(), decode)));
            }
            Step::Append(key) => {
                self.note(Op::Append(key, element));
                let append = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&element.to_be_bytes());
                if txn.update_with(&self.table, &key, append).await?.is_none() {
                    self.first(txn, key, element, append).await?;
                }
            }
            Step::ReadPut(key) => {
                let mut list = txn.get(&self.table, &key).await?.map_or(Vec::new(), |bytes| decode(&bytes));
                self.note(Op::Read(key, list.clone()));
                self.note(Op::Append(key, element));
                list.push(element);
                txn.put(&self.table, &key, &encode(&list)).await?;
            }
        }
        Ok(())
    }

    /// No list yet; another session may be faster.
    async fn first(
        &self,
        txn: &mut AsyncTxn<'_>,
        key: Key,
        element: Element,
        append: impl Fn(&mut Vec<u8>) + Send,
    ) -> Result<(), Error> {
        match txn.insert(&self.table, &key, &encode(&[element])).await {
            Err(error) if error.is_duplicate() => {
                let there = txn.update_with(&self.table, &key, append).await?;
                assert!(there.is_some(), "nobody deletes lists");
                Ok(())
            }
            done => done,
        }
    }
}
